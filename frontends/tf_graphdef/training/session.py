"""Sessions that run and train TensorFlow 1 models; tensors are fetched and fed by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from passkit.errors import FeedError, nearest
from passkit.frontends.tf_graphdef.graph_body import ResultRef, read_graph_body, reference
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue, value_of
from passkit.frontends.tf_graphdef.importer import names_of, node_number, require_array
from passkit.frontends.tf_graphdef.inputs import InputDims
from passkit.frontends.tf_graphdef.model_source import ModelSource, read_model
from passkit.frontends.tf_graphdef.non_arrays import ModelVariable
from passkit.frontends.tf_graphdef.proto import node_label
from passkit.frontends.tf_graphdef.tensor import parse_dtype, parse_shape
from passkit.frontends.tf_graphdef.training.checkpoints import read_variables
from passkit.frontends.tf_graphdef.training.tracing import Trainer
from passkit.frontends.tinyflow import session as tinyflow
from passkit.frontends.tinyflow.feeds import Feed
from passkit.frontends.tinyflow.fetches import fetch_key, flatten_fetches
from passkit.frontends.tinyflow.functionalize import FunctionalRun, variables_read
from passkit.frontends.tinyflow.graphs import Graph as TinyflowGraph
from passkit.frontends.tinyflow.session_config import Passes
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, known_shape, var
from passkit.values import arguments
from passkit.values.size import Shape

MAX_COMPILED_RUNS = 32
"""Maximal number of compiled runs that a session caches; the least recently used one is evicted."""

_PLACEHOLDERS = ("Placeholder", "PlaceholderWithDefault")


class ModelSession(tinyflow.Session):
    """Run and train a model that TensorFlow 1 wrote; its variables keep their values between runs.

    Fetches are names in any structure: ``"loss:0"`` is a tensor, ``"train"`` an operation, which
    gives None. A run is compiled for the shapes of its feeds. ``session.state`` holds the variables
    by name, and saves and loads them as ``.npz``; `restore` reads TensorFlow's checkpoints.

    Args:
        source: A GraphDef, its serialized bytes, or the path of a file or SavedModel folder, as for
            `load`.
        shapes: Placeholder shapes with symbolic dimensions, so that one compiled run serves all
            sizes: ``{"x": ("n", 784), "y": ("n",)}``.
        max_nbytes: Bound of the memory that reading takes, in bytes, as for `load`.
        tags: Tags that select a graph of a SavedModel.
        max_rounds: Maximal number of iterations for which a loop is unrolled.
        target: Target of `pk.compile`.
        fusion: Fusion strategy of `pk.compile`.
        numerics: Numerics of `pk.compile`.
        passes: Passes of `pk.compile`.
        check_numerics: Whether runs check their results for NaN and infinities.

    Raises:
        ModelError: If the model cannot be read.
        ArgumentError: If an argument other than ``source`` has a wrong type.
        SettingError: If ``max_nbytes`` or ``max_rounds`` is no integer of at least 0, or ``passes``
            are no passes; a RegistryError for the name of a pass that is not registered.
    """

    def __init__(
        self,
        source: ModelSource,
        shapes: Mapping[str, InputDims] | None = None,
        max_nbytes: int | None = None,
        *,
        tags: Sequence[str] = ("train",),
        max_rounds: int = 1000,
        target: str = "",
        fusion: str | None = None,
        numerics: str | None = None,
        passes: Passes | None = None,
        check_numerics: bool = False,
    ) -> None:
        """Read the model.

        The arguments are those of the class: ``source``, ``shapes`` of placeholders, the bound
        ``max_nbytes``, ``tags``, ``max_rounds`` of unrolling, and ``target``, ``fusion``,
        ``numerics``, ``passes`` and ``check_numerics`` of compilation.

        Raises:
            ModelError: If the model cannot be read.
            DTypeError: If ``source`` is a function of TensorFlow that captured a value of a dtype
                that passkit does not have.
            ArgumentError: If an argument other than ``source`` has a wrong type.
            SettingError: If ``max_nbytes`` or ``max_rounds`` is no integer of at least 0, or
                ``passes`` are no passes; a RegistryError for the name of a pass that is not
                registered. An unknown ``target``, ``fusion`` or ``numerics`` is refused when a run
                is compiled.
        """
        super().__init__(
            target,
            TinyflowGraph(),
            fusion=fusion,
            numerics=numerics,
            passes=passes,
            check_numerics=check_numerics,
        )
        shapes = arguments.mapping("ModelSession: shapes", shapes, "a mapping of names to shapes")
        if max_nbytes is not None:
            max_nbytes = arguments.count("ModelSession: max_nbytes", max_nbytes, 0)
        max_rounds = arguments.count("ModelSession: max_rounds", max_rounds, 0)
        tag_names = names_of("ModelSession: tags", tags)
        self.model = read_model(source, max_nbytes, None, tag_names)
        body = read_graph_body(self.model.graph, self.model.where, self.model.budget)
        self._asked: dict[str, Feed] = {}
        self._shapes = {
            reference(arguments.text("ModelSession: a name in shapes", k))[0]: v
            for k, v in shapes.items()
        }
        factories = {k: _unfed for k, node in enumerate(body.nodes) if node.op == "Placeholder"}
        number = self.graph.run_number
        self._trainer = Trainer(
            self.model, body, number, factories, max_rounds, is_set=self._is_set
        )
        self._compiled_runs: OrderedDict[Any, Any] = OrderedDict()

    @property
    def num_compiled_runs(self) -> int:
        """Number of compiled runs that the session caches."""
        return len(self._compiled_runs)

    def restore(
        self,
        prefix: str | PathLike[str],
        variables: Iterable[str] | Mapping[str, str] | None = None,
        max_nbytes: int | None = None,
    ) -> None:
        """Set variables to the values of a checkpoint that TensorFlow wrote; all of them or none.

        Args:
            prefix: Path that TensorFlow's Saver or Checkpoint returned, without ``.index``.
            variables: Names of the variables to restore, or a map from names in the checkpoint to
                the graph's names; by default all variables of the graph.
            max_nbytes: Bound of the memory that reading takes, in bytes; None derives it from the
                size of the files.

        Raises:
            ModelError: If the graph has no such variable, the checkpoint lacks values or has them
                in another shape or dtype (at most eight are named), or files are missing or
                damaged.
            ArgumentError: If ``prefix`` is no path, or ``variables`` are no names, or a map from
                other keys than names.
            SettingError: If ``max_nbytes`` is no integer of at least 0.
        """
        path = arguments.path("ModelSession.restore: prefix", prefix)
        if isinstance(variables, Mapping):
            for name in variables:
                arguments.text("ModelSession.restore: a name in variables", name)
        elif variables is not None:
            variables = names_of("ModelSession.restore: variables", variables)
        if max_nbytes is not None:
            max_nbytes = arguments.count("ModelSession.restore: max_nbytes", max_nbytes, 0)
        values = read_variables(self.model, self._trainer.body, path, variables, max_nbytes)
        with self.state.lock:
            self.state.holding(Graph([entry for entry, _ in values]))
            for entry, array in values:
                self.state[entry.node.name] = array

    def _find_run(self, fetches: Any, feeds: Mapping[Any, Any]) -> Any:
        """Return the run compiled for these fetches and shapes of feeds; compile it if missing.

        At most `MAX_COMPILED_RUNS` are cached. For placeholders with symbolic shapes, only the rank
        of the feed matters.

        A new run is added to the cache; from a full one, that used longest ago is removed.

        Raises:
            ModelError: If the model has no such node or result, a fetch is no array, or the model
                cannot be imported.
            FeedError: If a fetch is no name, a feed's key or shape does not fit, or a placeholder
                is not fed.
            ShapeError: If shapes do not fit an operator; likewise DTypeError for dtypes, and other
                errors of compilation.
        """
        shapes = tuple(
            len(shape) if isinstance(k, str) and reference(k)[0] in self._shapes else shape
            for k, shape in ((k, _feed_shape(k, v)) for k, v in feeds.items())
        )
        key = (fetch_key(fetches), tuple(feeds), shapes)
        compiled = self._compiled_runs.get(key)
        if compiled is None:
            compiled = self._compiled_runs[key] = self._compile_run(fetches, feeds)
            if len(self._compiled_runs) > MAX_COMPILED_RUNS:
                self._compiled_runs.popitem(last=False)
        self._compiled_runs.move_to_end(key)
        return compiled

    def _trace(
        self,
        fetches: Any,
        feeds: Mapping[Any, Any],
        shapes: Mapping[Any, Shape] = tinyflow.NO_SHAPES,
    ) -> tinyflow.TracedRun:
        """Build the graph of a run.

        Args:
            fetches: Names in any structure.
            feeds: Arrays by name of the placeholder or node.
            shapes: Not used; shapes come from ``feeds`` and the session's ``shapes``.

        Returns:
            The graph, its feeds, and how to get each fetch from its outputs.

        Raises:
            ModelError: If the model has no such node or result, a fetch is no array, or the model
                cannot be imported.
            FeedError: If a fetch is no name, a feed's key or shape does not fit, or a placeholder
                is not fed.
            ShapeError: If shapes do not fit an operator; likewise DTypeError for dtypes.
        """
        structure = flatten_fetches(fetches, self._element)
        feed_list, nodes = self._fed(feeds)
        refs = [leaf for leaf in structure.leaves if isinstance(leaf, tuple)]
        targets = [leaf for leaf in structure.leaves if isinstance(leaf, int)]
        names = [self._name(ref) for ref in refs]
        self._asked.clear()
        run = self._trainer.trace(list(zip(names, refs, strict=True)), targets, nodes)
        outputs = [
            require_array(self.model, name, value).entry
            for name, value in zip(names, run.results, strict=True)
        ]
        graph = Graph(outputs, run.updates)
        result_getters, count = [], 0
        for leaf in structure.leaves:
            result_getters.append(
                tinyflow.fetch_result(count) if isinstance(leaf, tuple) else _nothing
            )
            count += isinstance(leaf, tuple)
        feed_list += self._asked.values()
        input_names = {n.name for n in graph.inputs}
        feed_list = [f for f in feed_list if f.input.node.name in input_names]
        pure = FunctionalRun(
            graph, variables_read(graph), tuple(v.name for v, _ in run.updates), ()
        )
        return tinyflow.TracedRun(pure, feed_list, tuple(result_getters), structure)

    def _name(self, ref: ResultRef) -> str:
        """Return the name of result ``ref``: its node's, with ``_index`` appended unless that is 0.

        ``ref`` is the node's number and the result's index.
        """
        name = self._trainer.body.nodes[ref[0]].name
        return f"{name}_{ref[1]}" if ref[1] else str(name)

    def _element(self, fetch: Any) -> ResultRef | int | None:
        """Resolve a fetched name.

        Returns:
            Node number and result index for a name with a colon, such as "loss:0"; the node number
            for a name without; None if the fetch is no string.

        Raises:
            ModelError: If the model has no such node.
        """
        if not isinstance(fetch, str):
            return None
        name, index = reference(fetch)
        number = node_number(self.model, self._trainer.body, name)
        return number if name == fetch else (number, index)

    def _fed(
        self, feeds: Mapping[Any, Any]
    ) -> tuple[list[Feed], dict[int, Sequence[ImportedValue]]]:
        """Build graph inputs for the fed nodes.

        Args:
            feeds: Arrays by name of a node.

        Returns:
            The feeds in the order of ``feeds``, and the value of each fed node by its number.

        Raises:
            FeedError: If a key is no node or a result other than its first, or a shape does not
                fit.
            ModelError: If the dtype of a placeholder is not supported, or its shape invalid.
            DTypeError: If another node is fed an array of a dtype that passkit does not have.
            ShapeError: If the session's shape of a placeholder has an invalid size; an
                ArgumentError if it is no shape.
        """
        body = self._trainer.body
        feed_list: list[Feed] = []
        nodes: dict[int, Sequence[ImportedValue]] = {}
        for key, value in feeds.items():
            name, index = reference(key) if isinstance(key, str) else ("", 0)
            if name not in body.node_numbers or index:
                placeholders = [n.name for n in body.nodes if n.op in _PLACEHOLDERS]
                raise FeedError(
                    f"feed_dict needs keys that name placeholders, or nodes with one result, got "
                    f"{key!r}; {nearest(str(key)[:200], placeholders)}"
                )
            number = body.node_numbers[name]
            entry = self._stand_in(body.nodes[number], value)
            nodes[number] = (value_of(entry),)
            feed_list.append(Feed(key, name, entry, entry, _dtype(entry), known_shape(entry)))
        return feed_list, nodes

    def _stand_in(self, node: Any, value: Any) -> Entry:
        """Return the graph input for a fed node.

        It has the shape of ``value``, the array fed, unless the session's ``shapes`` name the
        placeholder; and the placeholder's dtype, or the array's for another node.

        Raises:
            FeedError: If the array's shape contradicts the placeholder's, or it is a ragged list.
            ModelError: If the placeholder's dtype is not supported, or its shape invalid.
            DTypeError: If another node is fed an array of a dtype that passkit does not have.
            ShapeError: If the session's shape of the placeholder has an invalid size; an
                ArgumentError if it is no shape.
        """
        sizes: InputDims = _feed_shape(node.name, value)
        if node.op not in _PLACEHOLDERS:
            return var(node.name, sizes, np.asarray(value).dtype)
        has_shape = "shape" in node.attr
        declared_shape = (
            parse_shape(node.attr["shape"].shape, node_label(node)) if has_shape else None
        )
        fits = declared_shape is None or len(declared_shape) == len(sizes)
        for n, m in zip(declared_shape or (), sizes, strict=False):
            fits = fits and (n is None or n == m)
        if not fits:
            shown = (
                "(" + ", ".join("?" if n is None else str(n) for n in declared_shape or ()) + ")"
            )
            raise FeedError(
                f"'{node.name}' needs a feed of shape {shown}, got {sizes}; reshape "
                f"the array, or load a model whose placeholder has that shape"
            )
        dtype = parse_dtype(node.attr["dtype"].type, node_label(node))
        return var(node.name, self._shapes.get(node.name, sizes), dtype)

    def _is_set(self, variable: ModelVariable) -> ImportedValue:
        """Return a bool input: whether a variable has a value when a run begins.

        Its feed is added to the feeds of the run that is being traced.
        """
        name = f"{variable.name}/is_set"
        if name not in self._asked:
            entry = var(name, (), "bool")
            self._asked[name] = _IsSet(None, name, entry, entry, _dtype(entry), (), self)
        return value_of(self._asked[name].entry)


def _feed_shape(key: Any, value: Any) -> tuple[int, ...]:
    """Return the shape of ``value``, an array or nested lists that are fed under ``key``.

    Raises:
        FeedError: If the lists are ragged.
    """
    try:
        return tuple(np.shape(value))
    except ValueError:
        raise FeedError(
            f"{key!r} needs an array, or nested lists of equal lengths, got "
            f"{arguments.shown(value)}; pad the shorter lists"
        ) from None


class _IsSet(Feed):
    """Feed that reads from the session's state whether a variable has a value."""

    def array(self, feeds: Mapping[Any, Any]) -> Any:
        """Return whether the variable has a value in the session, as a bool array without axes.

        ``feeds`` is not read.
        """
        state, name = self.session.state, self.name.removesuffix("/is_set")
        return np.asarray(name in state.arrays and name not in state.unset)


def _unfed(call: ImportCall, inputs: Sequence[Any]) -> ImportedValue:
    """Raise FeedError: the input factory of a placeholder that is not fed.

    ``call`` is the node; ``inputs`` are not read.

    Raises:
        FeedError: Always.
    """
    raise FeedError(
        f"placeholder '{call.node.name}' needs a value in feed_dict, got none; "
        f"session.run(fetches, {{'{call.node.name}:0': array}})"
    )


def _dtype(entry: Entry) -> Any:
    """Return the dtype of an entry, which must be known."""
    assert entry.dtype is not None
    return entry.dtype


def _nothing(outs: Any) -> None:
    """Return None, the result of fetching an operation; the outputs ``outs`` are not read."""
    return None
