"""Sessions: run graphs. Each session holds the values of all variables and the compiled runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any

from attrs import frozen

from passkit.errors import DeviceError, FeedError, GraphError, PasskitError, SettingError
from passkit.frontends.tinyflow.argument_checks import reject_arguments
from passkit.frontends.tinyflow.feeds import (
    Feed,
    FeedShapeFamily,
    create_feeds,
    is_unranked_key,
    rank_key,
    shape_of_feed,
)
from passkit.frontends.tinyflow.fetches import (
    FetchStructure,
    fetch_key,
    flatten_fetches,
    resolve_fetch,
)
from passkit.frontends.tinyflow.functionalize import FunctionalRun, functionalize
from passkit.frontends.tinyflow.graphs import Graph, default_sessions, graph_or_default
from passkit.frontends.tinyflow.host_runs import create_host_run, runs_on_host
from passkit.frontends.tinyflow.numerics import check_outputs, find_first_nonfinite
from passkit.frontends.tinyflow.session_config import (
    TINYFLOW_CONFIGS,
    ConfigProto,
    Passes,
    resolve_config,
)
from passkit.frontends.tinyflow.tensors import HostTensor, Operation
from passkit.frontends.tinyflow.variables import Variable
from passkit.graph.graph import Graph as Core
from passkit.graph.node import Entry
from passkit.program.compiler import compile
from passkit.runtime.state import State
from passkit.values import arguments
from passkit.values.size import Shape

NO_SHAPES: Mapping[Any, Shape] = MappingProxyType({})


@frozen(eq=False)
class TracedRun:
    """A run before compilation: its functional form, its feeds and the structure of its results."""

    pure: FunctionalRun
    feeds: Sequence[Feed]
    selectors: tuple[Callable[[Any], Any], ...]
    """For each leaf of the fetches a function that returns its value from the run's outputs."""
    structure: FetchStructure


@frozen(eq=False)
class _CompiledRun:
    """A compiled run, and how to feed it and to arrange its results."""

    run: Callable[..., Any]
    """Takes the arrays of the inputs in order, and returns the outputs."""
    executable: Any
    """The `pk.Executable`; None for a run on the host."""
    pure: FunctionalRun
    feeds: tuple[Feed, ...]
    """One for each input of the pure graph, in order."""
    selectors: tuple[Callable[[Any], Any], ...]
    structure: FetchStructure
    counts_runs: bool
    """Whether random draws depend on the number of the run."""


class Session:
    """Runs a graph and holds its variables; no other session sees them.

    A session may be used in one thread at a time. Other sessions may run at the same time.

    Args:
        target: "cpu", "cuda", …, as in `pk.compile`; or TinyFlow's "gpu" or "gpu fusion". By
            default that of ``config``, else that of `pk.compile`.
        graph: The graph to run; by default the default graph.
        config: Settings, or TinyFlow's "cpu", "gpu" or "gpu fusion". TinyFlow's configurations run
            on the CPU, with a warning, where there is no GPU.
        fusion: How operators are fused, as in `pk.compile`; overrides ``config``.
        numerics: The permitted rounding differences, as in `pk.compile`; overrides ``config``.
        passes: The passes that compile runs, as in `pk.compile`; override ``config``.
        check_numerics: Whether each run looks for NaNs and infinities; False by default. See
            `ConfigProto`.

    Raises:
        SettingError: For an unknown configuration, another object as ``config``, or ``passes`` that
            are neither a list nor a mapping.
        RegistryError: For an unknown pass.
        ArgumentError: If ``target`` is no text, or ``graph`` neither None nor a graph of tinyflow.

    An unknown target, fusion or numerics is refused by the first run that is compiled.

    >>> from passkit.frontends import tinyflow as tf
    >>> with tf.Session(target="interpret") as session:
    ...     session.run(tf.constant([1.0, 2.0]) * 3)
    array([3., 6.], dtype=float32)
    """

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: ConfigProto | str | None = None,
        *,
        fusion: str | None = None,
        numerics: str | None = None,
        passes: Passes | None = None,
        check_numerics: bool = False,
    ) -> None:
        settings = resolve_config(target, config)
        self._may_fall_back = settings in TINYFLOW_CONFIGS.values()
        options = {
            "target": settings.target or None,
            "fusion": fusion or settings.fusion,
            "numerics": numerics or settings.numerics,
            "passes": settings.passes if passes is None else passes,
        }
        self.options: dict[str, Any] = {k: v for k, v in options.items() if v is not None}
        if "passes" in self.options:
            from passkit.passes.context import PassContext  # few sessions have their own passes

            PassContext(passes=self.options["passes"])  # names are checked before anything runs
        self.check_numerics = check_numerics or settings.check_numerics
        self.graph = graph_or_default("Session: graph", graph)
        self.state = State()
        self.runs = 0
        self._compiled_runs: dict[Any, _CompiledRun] = {}
        self._unranked_keys: set[Any] = set()
        """Keys of fetches and feeds of which a feed has unknown rank."""
        self._families: dict[Any, FeedShapeFamily] = {}
        """For such a key and the ranks of its feeds the shapes so far."""
        self._is_closed = False
        self._contexts: list[Any] = []

    @property
    def num_compiled_runs(self) -> int:
        """The number of compiled runs that the session holds; 0 after `close`.

        There is one for each structure of fetches and keys of feeds, and for feeds of unknown rank
        one or several for each rank.
        """
        return len(self._compiled_runs)

    @reject_arguments(
        "exe.profile() and tf.summary tell what a run does", "options", "run_metadata"
    )
    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Compute ``fetches`` and perform the writes that they need.

        A run is compiled once for each structure of fetches and feeds, and for each rank of feeds
        of unknown rank. After that it is one native call.

        Args:
            fetches: Tensors, operations and names of variables, in nested lists, tuples and dicts.
            feed_dict: Values by placeholder, or by any other tensor, which is then not computed;
                none by default.
            options: Unsupported; only the default is accepted.
            run_metadata: Unsupported; only the default is accepted.

        Returns:
            The values, NumPy arrays and numbers in the structure of ``fetches``; None for
            operations.

        Raises:
            FeedError: If a fetch is none of these, a feed is missing, unknown or does not fit, or a
                variable that the run reads has no value yet.
            GraphError: If the session is closed.
            NumericsError: If a checked value is not finite.
            SettingError: If an unsupported argument is set, the target, fusion or numerics is
                unknown, or an operator was placed on a GPU and the session runs elsewhere.
            DeviceError: If the device of the target is missing.
            ShapeError: If the shape of a feed for a placeholder without shape does not fit an
                operator.
            ArgumentError: If ``feed_dict`` is no mapping.
            DTypeError: If a key of ``feed_dict`` is a tensor of text.
        """
        compiled, feeds = self._find_open_run("Session.run", fetches, feed_dict)
        if self.state.unset:
            self._check_variables_set(compiled)
        inputs = [f.array(feeds) for f in compiled.feeds]
        if compiled.counts_runs:
            self.runs += 1
        if self.check_numerics:
            outputs = self._run_checked(compiled, inputs)
        else:
            outputs = compiled.run(*inputs)
        if compiled.pure.checks:
            check_outputs(compiled.pure.checks, outputs)
        if self.state.unset:
            self.state.unset.difference_update(compiled.pure.writes)
        return compiled.structure.rebuilt([select(outputs) for select in compiled.selectors])

    def executable(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Return the `pk.Executable` for these fetches and feeds, for its kernels and profile.

        Args:
            fetches: Tensors, operations and names of variables, in nested lists, tuples and dicts.
            feed_dict: Values by placeholder, or by any other tensor, which is then not computed;
                none by default. Only its keys matter, and the shapes of feeds of unknown rank.

        Returns:
            The executable, which later runs of these fetches and feeds use.

        Raises:
            GraphError: If the fetches only initialize variables, which the host computes, or the
                session is closed.
            FeedError: If a fetch is no element of the graph, or a feed is missing or unknown.
            ArgumentError: If ``feed_dict`` is no mapping.
            SettingError: If the target, fusion or numerics is unknown, or an operator was placed on
                a GPU and the session runs elsewhere.
            DeviceError: If the device of the target is missing.
            ShapeError: If the shape of a feed for a placeholder without shape does not fit an
                operator.
            DTypeError: If a key of ``feed_dict`` is a tensor of text.
        """
        executable = self._find_open_run("Session.executable", fetches, feed_dict)[0].executable
        if executable is None:
            raise GraphError(
                f"{fetches!r} is not compiled: it only computes initial values, on the host; "
                f"fetch a tensor that reads variables"
            )
        return executable

    def _find_open_run(
        self, method: str, fetches: Any, feed_dict: Any
    ) -> tuple[_CompiledRun, Mapping[Any, Any]]:
        """Return the compiled run for fetches and feeds, and the feeds, {} for None.

        Args:
            method: The method that was called, for messages.
            fetches: The nested tensors, operations and names of variables to compute.
            feed_dict: Values by placeholder or other tensor; None for none.

        Raises:
            GraphError: If the session is closed.
            ArgumentError: If ``feed_dict`` is no mapping.
            FeedError: If a fetch is no element of the graph, or a feed is missing or unknown.
            SettingError: If the target, fusion or numerics is unknown, or an operator was placed on
                a GPU and the session runs elsewhere.
            DeviceError: If the device of the target is missing.
            ShapeError: If the shapes of feeds of unknown rank do not fit an operator.
            DTypeError: If a key of ``feed_dict`` is a tensor of text.
        """
        if self._is_closed:
            raise GraphError("this session is closed, and cannot run any more; create another one")
        requirement = "a dict of values by placeholders, or None"
        feeds = arguments.mapping(f"{method}: feed_dict", feed_dict, requirement)
        return self._find_run(fetches, feeds), feeds

    def _find_run(self, fetches: Any, feeds: Mapping[Any, Any]) -> _CompiledRun:
        """Return the compiled run for fetches and feeds; compile and store it if it is new.

        Args:
            fetches: The nested tensors, operations and names of variables to compute.
            feeds: Values by placeholder or other tensor. Of those of known rank only the keys are
                read.

        Raises:
            FeedError: If a fetch is no element of the graph, or a feed is missing or unknown.
            SettingError: If the target, fusion or numerics is unknown, or an operator was placed on
                a GPU and the session runs elsewhere.
            DeviceError: If the device of the target is missing.
            ShapeError: If the shapes of feeds of unknown rank do not fit an operator.
            DTypeError: If a key of ``feeds`` is a tensor of text.
        """
        key: Any = (fetch_key(fetches), tuple(feeds))
        if key in self._compiled_runs:
            return self._compiled_runs[key]
        if key not in self._unranked_keys:
            if not any(map(is_unranked_key, feeds)):
                compiled = self._compiled_runs[key] = self._compile_run(fetches, feeds)
                return compiled
            self._unranked_keys.add(key)
        return self._find_run_for_shapes(key, fetches, feeds)

    def _find_run_for_shapes(
        self, key: Any, fetches: Any, feeds: Mapping[Any, Any]
    ) -> _CompiledRun:
        """Return the compiled run for feeds of unknown rank.

        The first one is compiled for the exact shapes. When other shapes of the same rank follow,
        with extents of 1 at the same axes, the extents that differ become symbols in a second one
        for all of these. A graph that needs the numbers, such as to unstack a tensor, gets a run
        for each combination of shapes.

        Args:
            key: The fetches and the keys of feeds; see `fetch_key`.
            fetches: The nested tensors, operations and names of variables to compute.
            feeds: Values by placeholder or other tensor.

        Raises:
            FeedError: If a fetch is no element of the graph, or a feed is missing, unknown or no
                array.
            SettingError: If the target, fusion or numerics is unknown, or an operator was placed on
                a GPU and the session runs elsewhere.
            DeviceError: If the device of the target is missing.
            ShapeError: If the shapes of the feeds do not fit an operator.
            DTypeError: If a key of ``feeds`` is a tensor of text.
        """
        exact = {k: shape_of_feed(k, v) for k, v in feeds.items() if is_unranked_key(k)}
        exact_key = (key, tuple(exact.values()))
        if exact_key in self._compiled_runs:
            return self._compiled_runs[exact_key]
        family_key = (key, rank_key(exact.values()))
        family = self._families.get(family_key)
        if family is None:
            family = self._families[family_key] = FeedShapeFamily()
        if family.accepts(exact):
            return self._compiled_runs[family_key]
        free = family.generalize(exact)
        if free is not None:
            try:
                compiled = self._compile_run(fetches, feeds, free)
            except PasskitError:  # the graph needs numbers; another error comes up again below
                family.is_exact = True
            else:
                self._compiled_runs[family_key] = compiled
                return compiled
        compiled = self._compiled_runs[exact_key] = self._compile_run(fetches, feeds, exact)
        return compiled

    def _compile_run(
        self, fetches: Any, feeds: Mapping[Any, Any], shapes: Mapping[Any, Shape] = NO_SHAPES
    ) -> _CompiledRun:
        """Trace and compile a run; return it without storing it.

        Args:
            fetches: The nested tensors, operations and names of variables to compute.
            feeds: Values by placeholder or other tensor; only the keys are used.
            shapes: The shapes of the feeds of unknown rank, by key; they may hold symbols. By
                default there are none.

        Raises:
            FeedError: If a fetch is no element of the graph, or a feed is missing or unknown.
            SettingError: If the target, fusion or numerics is unknown, or an operator was placed on
                a GPU and the session runs elsewhere.
            DeviceError: If the device of the target is missing.
            ShapeError: If ``shapes`` do not fit an operator.
            DTypeError: If a key of ``feeds`` is a tensor of text.
        """
        traced = self._trace(fetches, feeds, shapes)
        pure = traced.pure
        self._check_devices(pure)
        inputs = self._order_feeds(pure, traced.feeds)
        run_number = self.graph.run_number.node
        executable = None
        if runs_on_host(pure, run_number):
            run = create_host_run(pure.graph, self.state)
        else:
            executable = self._compile(pure.graph)
            run = _positional_call(executable, [n.name for n in pure.graph.inputs])
        counts_runs = any(n is run_number for n in pure.graph.inputs)
        return _CompiledRun(
            run, executable, pure, inputs, traced.selectors, traced.structure, counts_runs
        )

    def _compile(self, graph: Core) -> Any:
        """Compile a pure graph; for the CPU, with a warning, if TinyFlow's "gpu" finds no GPU.

        The session then stays on the CPU. Return the `pk.Executable`.

        Raises:
            DeviceError: If the device is missing, unless the target is TinyFlow's.
            SettingError: If the target, fusion or numerics is unknown.
        """
        try:
            return compile(graph, state=self.state, **self.options)
        except DeviceError as error:
            if not self._may_fall_back:
                raise
            warnings.warn(
                f"TinyFlow's configuration 'gpu' runs on the CPU, as there is no GPU: {error}",
                stacklevel=5,
            )
            self.options["target"], self._may_fall_back = "cpu", False
            return compile(graph, state=self.state, **self.options)

    def _trace(
        self, fetches: Any, feeds: Mapping[Any, Any], shapes: Mapping[Any, Shape] = NO_SHAPES
    ) -> TracedRun:
        """Build the functional form of a run.

        Args:
            fetches: The nested tensors, operations and names of variables to compute.
            feeds: Values by placeholder or other tensor; only the keys are used.
            shapes: The shapes of the feeds of unknown rank, by key; () for one that is left out.

        Raises:
            FeedError: If a fetch is no element of the graph, a key is no tensor of it or is a
                variable, or a placeholder without a shape is needed and not fed.
            ShapeError: If ``shapes`` do not fit an operator.
            DTypeError: If a key is a tensor of text.
        """
        structure = flatten_fetches(fetches, partial(resolve_fetch, self.graph))
        run_feeds = [f for k in feeds for f in create_feeds(k, self.graph, shapes.get(k, ()))]
        entries: list[Entry | Variable] = []
        selectors = [self._selector(leaf, entries) for leaf in structure.leaves]
        targets = [n for t in structure.leaves if isinstance(t, Operation) for n in t.nodes]
        fed = {f.entry: f.input for f in run_feeds}
        run = functionalize(self.graph, entries, targets, fed)
        return TracedRun(run, run_feeds, tuple(selectors), structure)

    def _selector(self, leaf: Any, entries: list[Entry | Variable]) -> Callable[[Any], Any]:
        """Return a function from the outputs of a run to the value of a leaf.

        Args:
            leaf: Tensor, variable, host tensor, or operation, whose value is None.
            entries: List of outputs to compute. Those of the leaf are appended; an operation has
                none.
        """
        if isinstance(leaf, Operation):
            return lambda outputs: None
        if isinstance(leaf, HostTensor):
            selectors = [self._selector(s, entries) for s in leaf.sources]
            function = leaf.function
            return lambda outputs: function(*(select(outputs) for select in selectors))
        entries.append(leaf if isinstance(leaf, Variable) else leaf.entry)
        return fetch_result(len(entries) - 1)

    def _order_feeds(self, run: FunctionalRun, feeds: Sequence[Feed]) -> tuple[Feed, ...]:
        """Return one feed per input of the run's graph, in the order of its inputs.

        Args:
            run: The functional form of the run.
            feeds: The feeds that the caller passes.

        Raises:
            FeedError: If an input is not fed.
        """
        by_input = {f.input.node: f for f in feeds}
        ordered = []
        for node in run.graph.inputs:
            if node is self.graph.run_number.node:
                ordered.append(Feed.counter(self))
                continue
            if node not in by_input:
                names = [f.name for f in feeds]
                raise FeedError(
                    f"placeholder '{node.name}' needs a value in feed_dict, got "
                    f"{', '.join(names) if names else 'none at all'}; session.run(fetches, "
                    f"{{{node.name}: array}})"
                )
            ordered.append(by_input[node])
        return tuple(ordered)

    def _check_variables_set(self, compiled: _CompiledRun) -> None:
        """Raise FeedError if the run ``compiled`` reads a variable that has no value yet."""
        for name in compiled.pure.reads:
            if name in self.state.unset:
                remedy = "run tf.global_variables_initializer() first, or restore it"
                if any(
                    v._name == name and v.initializer is None
                    for v in self.graph.get_collection("variables")
                ):
                    remedy = (
                        "tf.assign(variable, value) of each that tf.infer_variable_shapes gives"
                    )
                raise FeedError(f"variable '{name}' has no value in this session; {remedy}")

    def _check_devices(self, run: FunctionalRun) -> None:
        """Raise SettingError if a node of ``run`` was placed on a device whose name has "gpu".

        With the targets cuda and opencl, every placement is accepted.
        """
        target = self.options.get("target", "cpu")
        if target in ("cuda", "opencl"):
            return
        for node in run.graph.nodes:
            device, name = self.graph.devices.get(node, ("", ""))
            if "gpu" in device.lower():
                raise SettingError(
                    f"'{name}' was placed on {device!r}, and this session runs on {target!r}; "
                    f"tf.Session(target='cuda') runs there, or leave tf.device out"
                )

    def _run_checked(self, compiled: _CompiledRun, inputs: list[Any]) -> Any:
        """Run, and check that results and variables are finite.

        If they are not, the variables that had values before the run get them back.

        Args:
            compiled: The run.
            inputs: The arrays of its inputs, in order.

        Returns:
            The outputs.

        Raises:
            NumericsError: Naming the operator that computed the first NaN or infinity, or a feed
                that holds one. Nothing is raised where the run is finite when it is repeated.
        """
        assigned = [k for k in compiled.pure.writes if k in self.state.arrays]
        values_before = {k: self.state[k] for k in {*compiled.pure.reads, *assigned}}
        outputs = compiled.run(*inputs)
        find_first_nonfinite(compiled.pure.graph, inputs, values_before, outputs, self.state)
        return outputs

    def load(self, variable: Variable, value: Any) -> None:
        """Set the value of a variable, without a run.

        Args:
            variable: The variable.
            value: Numbers of its shape, which are converted to its dtype; floats are truncated to
                integers, and arrays may wrap.

        Raises:
            FeedError: If the value does not have the variable's shape.
            ArgumentError: If NumPy cannot convert the value, such as text, a tensor, complex
                numbers for floats, 300 for uint8, or NaN for integers.
        """
        self.declare([variable])
        where = f"load: value of '{variable.name}'"
        array = arguments.numbers(where, value, variable.dtype.numpy)
        self.state[variable.state.node.name] = array

    def declare(self, variables: list[Variable]) -> None:
        """Allocate memory, with zeros, for variables that this session does not have yet.

        Raises:
            FeedError: If it has a variable of the same name with another shape or dtype.
        """
        self.state.holding(Core([v.state for v in variables]))

    def address(self, variable: Variable) -> int:
        """Return the memory address of a variable's value, which stays the same in this session.

        A variable that no run has used yet is declared, with zeros.
        """
        self.declare([variable])
        return int(self.state.arrays[variable.state.node.name].ctypes.data)

    @contextmanager
    def as_default(self) -> Iterator[Session]:
        """Make this the session of `Tensor.eval` and `Operation.run` in the block; yield it."""
        with default_sessions.entered(self):
            yield self

    def close(self) -> None:
        """Drop compiled runs. `run` and `executable` raise GraphError afterwards; values stay."""
        self._is_closed = True
        self._compiled_runs.clear()

    def __enter__(self) -> Session:
        """Make the session and its graph the defaults of this thread, and return the session."""
        session_context = self.as_default()
        graph_context = self.graph.as_default()
        graph_context.__enter__()
        session_context.__enter__()
        self._contexts += [graph_context, session_context]
        return self

    def __exit__(self, *error: Any) -> None:
        """Restore the outer defaults, and close the session."""
        for _ in range(2):
            self._contexts.pop().__exit__(*error)
        self.close()


class InteractiveSession(Session):
    """A session that is the default of its thread from the start until it is closed.

    Args:
        target: "cpu", "cuda", …, as in `pk.compile`; or TinyFlow's "gpu" or "gpu fusion". By
            default that of ``config``, else that of `pk.compile`.
        graph: The graph to run; by default the default graph.
        config: Settings, or TinyFlow's "cpu", "gpu" or "gpu fusion"; None for the defaults.
        **options: The keyword arguments of `Session`: fusion, numerics, passes, check_numerics.

    Raises:
        SettingError: For an unknown configuration, another object as ``config``, or ``passes`` that
            are neither a list nor a mapping.
        RegistryError: For an unknown pass.
        ArgumentError: If ``target`` is no text.
    """

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: ConfigProto | str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(target, graph, config, **options)
        default_sessions.items.append(self)

    def close(self) -> None:
        """Close the session; it is no longer the default."""
        super().close()
        default_sessions.remove(self)


def fetch_result(k: int) -> Callable[[Any], Any]:
    """Return a function that selects output ``k`` of a run; a scalar as a NumPy number."""
    return lambda outputs: outputs[k] if outputs[k].ndim else outputs[k][()]


def _positional_call(executable: Any, names: list[str]) -> Callable[..., Any]:
    """Return a function that runs an executable with one array per input.

    Args:
        executable: A `pk.Executable`.
        names: The names of its inputs, in the order of the arrays.
    """
    if hasattr(executable, "run_positional"):
        return executable.run_positional  # type: ignore[no-any-return]
    return lambda *arrays: executable(dict(zip(names, arrays, strict=True)))


def get_default_session() -> Session | None:
    """Return the innermost default session of this thread.

    Returns:
        The session of the innermost ``with session.as_default()`` block; None if there is none.
    """
    return default_sessions.innermost
