"""Sessions of models that TensorFlow 1 wrote: names are fetched and fed, as in its own."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from passkit.errors import FeedError, nearest
from passkit.frontends.tf_graphdef.body import Ref, graph_body, reference
from passkit.frontends.tf_graphdef.importer import array_of, node_number
from passkit.frontends.tf_graphdef.inputs import Dims
from passkit.frontends.tf_graphdef.opaque import Variable
from passkit.frontends.tf_graphdef.proto import called
from passkit.frontends.tf_graphdef.source import Source, read_model
from passkit.frontends.tf_graphdef.tensor import dtype_from, shape_from
from passkit.frontends.tf_graphdef.training.checkpoints import restored
from passkit.frontends.tf_graphdef.training.tracing import Trainer
from passkit.frontends.tf_graphdef.value import Call, Value, value_of
from passkit.frontends.tinyflow import session as tinyflow
from passkit.frontends.tinyflow.feeds import Feed
from passkit.frontends.tinyflow.fetches import fetch_key, flatten_fetches
from passkit.frontends.tinyflow.functionalize import FunctionalRun, variables_read
from passkit.frontends.tinyflow.graphs import Graph as Program
from passkit.frontends.tinyflow.session_config import Passes
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, known_shape, var
from passkit.values.size import Shape

MOST_PLANS = 32
"""Compiled runs that a session keeps; the one that was not used for longest goes first."""

_PLACEHOLDERS = ("Placeholder", "PlaceholderWithDefault")


class Session(tinyflow.Session):
    """Where a model that TensorFlow 1 wrote is trained: its variables keep their values.

    ``source``, ``max_nbytes``, ``tags`` and ``max_rounds`` are those of `load`. Fetches are
    names, in any structure: ``"loss:0"`` is a tensor, ``"train"`` an operation, which gives None.
    A run is compiled for the shapes of what is fed; ``shapes`` says which sizes of a placeholder
    stay unknown, so that one compiled run serves all of them: ``{"x": ("n", 784), "y": ("n",)}``.
    ``target``, ``fusion``, ``numerics`` and ``passes`` are those of `pk.compile`.
    ``session.state`` holds the variables by name, and saves and loads them as ``.npz``; `restore`
    reads TensorFlow's checkpoints.
    """

    def __init__(
        self,
        source: Source,
        shapes: Mapping[str, Dims] | None = None,
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
        super().__init__(
            target,
            Program(),
            fusion=fusion,
            numerics=numerics,
            passes=passes,
            check_numerics=check_numerics,
        )
        self.model = read_model(source, max_nbytes, None, tags)
        body = graph_body(self.model.graph, self.model.where, self.model.budget)
        self._asked: dict[str, Feed] = {}
        self._shapes = {reference(k)[0]: v for k, v in (shapes or {}).items()}
        makers = {k: _unfed for k, node in enumerate(body.nodes) if node.op == "Placeholder"}
        number = self.graph.run_number
        self._trainer = Trainer(self.model, body, number, makers, max_rounds, is_set=self._is_set)
        self._compiled_runs: OrderedDict[Any, Any] = OrderedDict()

    def restore(
        self,
        prefix: str | PathLike[str],
        variables: Iterable[str] | Mapping[str, str] | None = None,
        max_nbytes: int | None = None,
    ) -> None:
        """Give variables the values of a checkpoint that TensorFlow wrote; all of them or none.

        ``prefix`` is the path that TensorFlow's Saver or Checkpoint returned; the files are
        ``prefix.index`` and ``prefix.data-…``. ``variables`` are names of those to restore, or
        say for names in the checkpoint what the graph calls them; by default all of the graph's.

        Raises: ModelError naming each variable that the checkpoint lacks, or has in another shape
        or type, and files that are missing or damaged.
        """
        found = restored(self.model, self._trainer.body, prefix, variables, max_nbytes)
        with self.state.lock:
            self.state.holding(Graph([entry for entry, _ in found]))
            for entry, array in found:
                self.state[entry.node.name] = array

    def _find_run(self, fetches: Any, feeds: Mapping[Any, Any]) -> Any:
        shapes = tuple(
            np.ndim(v) if isinstance(k, str) and reference(k)[0] in self._shapes else np.shape(v)
            for k, v in feeds.items()
        )
        key = (fetch_key(fetches), tuple(feeds), shapes)
        plan = self._compiled_runs.get(key)
        if plan is None:
            plan = self._compiled_runs[key] = self._compile_run(fetches, feeds)
            if len(self._compiled_runs) > MOST_PLANS:
                self._compiled_runs.popitem(last=False)
        self._compiled_runs.move_to_end(key)
        return plan

    def _trace(
        self,
        fetches: Any,
        feeds: Mapping[Any, Any],
        shapes: Mapping[Any, Shape] = tinyflow.NO_SHAPES,
    ) -> tinyflow.TracedRun:
        structure = flatten_fetches(fetches, self._element)
        found, nodes = self._fed(feeds)
        refs = [leaf for leaf in structure.leaves if isinstance(leaf, tuple)]
        targets = [leaf for leaf in structure.leaves if isinstance(leaf, int)]
        names = [self._name(ref) for ref in refs]
        self._asked.clear()
        run = self._trainer.trace(list(zip(names, refs, strict=True)), targets, nodes)
        outputs = [
            array_of(self.model, name, value).entry
            for name, value in zip(names, run.results, strict=True)
        ]
        whole = Graph(outputs, run.updates)
        selectors, count = [], 0
        for leaf in structure.leaves:
            selectors.append(tinyflow.fetch_result(count) if isinstance(leaf, tuple) else _nothing)
            count += isinstance(leaf, tuple)
        found += self._asked.values()
        there = {n.name for n in whole.inputs}
        found = [f for f in found if f.input.node.name in there]
        pure = FunctionalRun(
            whole, variables_read(whole), tuple(v.name for v, _ in run.updates), ()
        )
        return tinyflow.TracedRun(pure, found, tuple(selectors), structure)

    def _name(self, ref: Ref) -> str:
        name = self._trainer.body.nodes[ref[0]].name
        return f"{name}_{ref[1]}" if ref[1] else str(name)

    def _element(self, fetch: Any) -> Ref | int | None:
        """What a name stands for: a result of a node, or with no colon the node."""
        if not isinstance(fetch, str):
            return None
        name, index = reference(fetch)
        number = node_number(self.model, self._trainer.body, name)
        return number if name == fetch else (number, index)

    def _fed(self, feeds: Mapping[Any, Any]) -> tuple[list[Feed], dict[int, Sequence[Value]]]:
        """How each key is fed, and the values of the nodes that are fed.

        Raises: FeedError for what cannot be fed.
        """
        body = self._trainer.body
        found: list[Feed] = []
        nodes: dict[int, Sequence[Value]] = {}
        for key, given in feeds.items():
            name, index = reference(key) if isinstance(key, str) else ("", 0)
            if name not in body.numbers or index:
                known = [n.name for n in body.nodes if n.op in _PLACEHOLDERS]
                raise FeedError(
                    f"feed_dict needs names of placeholders, or of nodes with one result, as "
                    f"keys, got {key!r}; {nearest(str(key)[:200], known)}"
                )
            number = body.numbers[name]
            entry = self._stand_in(body.nodes[number], given)
            nodes[number] = (value_of(entry),)
            found.append(Feed(key, name, entry, entry, _dtype(entry), known_shape(entry)))
        return found, nodes

    def _stand_in(self, node: Any, given: Any) -> Entry:
        """The input that a fed node becomes.

        Raises: FeedError for a feed whose shape contradicts the placeholder.
        """
        sizes: Dims = np.shape(given)
        if node.op not in _PLACEHOLDERS:
            return var(node.name, sizes, np.asarray(given).dtype)
        told = "shape" in node.attr
        wanted = shape_from(node.attr["shape"].shape, called(node)) if told else None
        fits = wanted is None or len(wanted) == len(sizes)
        for n, m in zip(wanted or (), sizes, strict=False):
            fits = fits and (n is None or n == m)
        if not fits:
            shown = "(" + ", ".join("?" if n is None else str(n) for n in wanted or ()) + ")"
            raise FeedError(
                f"'{node.name}' needs a feed of shape {shown}, got {np.shape(given)}; reshape "
                f"the array, or load a model whose placeholder has that shape"
            )
        dtype = dtype_from(node.attr["dtype"].type, called(node))
        return var(node.name, self._shapes.get(node.name, sizes), dtype)

    def _is_set(self, variable: Variable) -> Value:
        """An input that says whether a variable has a value when a run begins."""
        name = f"{variable.name}/is_set"
        if name not in self._asked:
            entry = var(name, (), "bool")
            self._asked[name] = _IsSet(None, name, entry, entry, _dtype(entry), (), self)
        return value_of(self._asked[name].entry)


class _IsSet(Feed):
    """Feeds whether a variable has a value."""

    def array(self, feeds: Mapping[Any, Any]) -> Any:
        """A boolean."""
        state, name = self.session.state, self.name.removesuffix("/is_set")
        return np.asarray(name in state.arrays and name not in state.unset)


def _unfed(call: Call, inputs: Sequence[Any]) -> Value:
    raise FeedError(
        f"placeholder '{call.node.name}' needs a value in feed_dict, got none; "
        f"session.run(fetches, {{'{call.node.name}:0': array}})"
    )


def _dtype(entry: Entry) -> Any:
    assert entry.dtype is not None
    return entry.dtype


def _nothing(outs: Any) -> None:
    return None
