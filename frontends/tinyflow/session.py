"""Sessions: where graphs run. Each holds the values of all variables, and the compiled runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Union

import numpy as np
from attrs import evolve, frozen

from passkit.errors import (
    DeviceError,
    FeedError,
    GraphError,
    PasskitError,
    SettingError,
    nearest,
)
from passkit.frontends.tinyflow.checking import find_culprit, look
from passkit.frontends.tinyflow.families import Family, rank_of
from passkit.frontends.tinyflow.feeding import Feed, feeds_of, is_open, key_of
from passkit.frontends.tinyflow.graphs import Graph, get_default_graph
from passkit.frontends.tinyflow.hosting import is_hosted, on_host
from passkit.frontends.tinyflow.innermost import Innermost
from passkit.frontends.tinyflow.refusals import refuses
from passkit.frontends.tinyflow.running import Pure, pure
from passkit.frontends.tinyflow.structure import Structure, element_of, flattened
from passkit.frontends.tinyflow.tensors import HostTensor, Operation
from passkit.frontends.tinyflow.variables import Variable
from passkit.graph.graph import Graph as Core
from passkit.graph.node import Entry
from passkit.program.compiler import compile
from passkit.runtime.state import State
from passkit.values import arguments
from passkit.values.size import Shape

if TYPE_CHECKING:
    from passkit.passes.base import Pass

NO_SHAPES: Mapping[Any, Shape] = MappingProxyType({})
TINYFLOW = {
    "cpu": ("cpu", None),
    "gpu": ("cuda", "none"),
    "gpu fusion": ("cuda", "stitch"),
}
"""TinyFlow's configurations: what each means as target and fusion."""


Passes = Union[Sequence[Union[str, "Pass"]], Mapping[str, Any]]
"""The passes that compile runs, or those to add to the default ones, as in `pk.compile`."""


@frozen
class ConfigProto:
    """The settings of a session: `target`, `fusion`, `numerics`, `passes` as in `pk.compile`.

    ``check_numerics`` makes each run look for numbers that are not finite, and name the operator
    that made the first; that costs a copy of all variables a run.
    """

    target: str | None = None
    fusion: str | None = None
    numerics: str | None = None
    check_numerics: bool = False
    passes: Passes | None = None


@frozen(eq=False)
class Traced:
    """What a run computes: how it is fed, and what each leaf of its fetches is of the results."""

    pure: Pure
    feeds: Sequence[Feed]
    places: tuple[Callable[[Any], Any], ...]
    structure: Structure


@frozen(eq=False)
class _Plan:
    """A compiled run: how to feed it and what to make of its results."""

    run: Callable[..., Any]
    executable: Any
    pure: Pure
    feeds: tuple[Feed, ...]
    places: tuple[Callable[[Any], Any], ...]
    structure: Structure
    counts_runs: bool


class Session:
    """Where a graph runs: ``target`` says on what, ``fusion`` and ``passes`` how it is planned.

    Variables belong to the session; no other sees them. TinyFlow's ``"cpu"``, ``"gpu"`` and ``"gpu
    fusion"`` are understood as ``config``. May be used in one thread at a time; other sessions may
    run at the same time.
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
        found = _config(target, config)
        self._soft = found in (ConfigProto(*c) for c in TINYFLOW.values())
        options = {
            "target": found.target or None,
            "fusion": fusion or found.fusion,
            "numerics": numerics or found.numerics,
            "passes": found.passes if passes is None else passes,
        }
        self.options: dict[str, Any] = {k: v for k, v in options.items() if v is not None}
        if "passes" in self.options:
            from passkit.passes.context import PassContext  # few sessions have their own passes

            PassContext(passes=self.options["passes"])  # names are checked before anything runs
        self.check_numerics = check_numerics or found.check_numerics
        self.graph = get_default_graph() if graph is None else graph
        self.state = State()
        self.runs = 0
        self._plans: dict[Any, _Plan] = {}
        self._open: set[Any] = set()
        """Keys of feeds whose rank only a run knows."""
        self._families: dict[Any, Family] = {}
        """For fetches and the ranks of such feeds the shapes that came."""
        self._closed = False
        self._contexts: list[Any] = []

    @refuses("exe.profile() and tf.summary tell what a run does", "options", "run_metadata")
    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """The values of ``fetches``, of the same structure; None for operations.

        ``feed_dict`` gives placeholders, or any tensors, their values. Compiled once for each
        structure of fetches and feeds; after that it is one native call.

        Raises: FeedError naming a feed that is missing, unknown or does not fit, and a variable
        that has no value yet.
        """
        if self._closed:
            raise GraphError("this session is closed, and needs to be open to run; make another")
        need = "a dict of values by placeholders, or None"
        feeds = arguments.mapping("Session.run: feed_dict", feed_dict, need)
        plan = self._plan(fetches, feeds)
        if self.state.unset:
            self._check_set(plan)
        arrays = [f.array(feeds) for f in plan.feeds]
        if plan.counts_runs:
            self.runs += 1
        outs = self._checked(plan, arrays) if self.check_numerics else plan.run(*arrays)
        if plan.pure.checks:
            look(plan.pure.checks, outs)
        if self.state.unset:
            self.state.unset.difference_update(plan.pure.writes)
        return plan.structure.rebuilt([place(outs) for place in plan.places])

    def executable(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """The `pk.Executable` that serves these fetches and feeds, for its kernels and profile.

        Raises: GraphError for initial values, which the host computes.
        """
        found = self._plan(fetches, feed_dict or {}).executable
        if found is None:
            raise GraphError(
                f"{fetches!r} is not compiled: it only gives initial values, which the host "
                f"computes; ask for what reads variables"
            )
        return found

    def _plan(self, fetches: Any, feeds: Mapping[Any, Any]) -> _Plan:
        key: Any = (key_of(fetches), tuple(feeds))
        if key in self._plans:
            return self._plans[key]
        if key not in self._open:
            if not any(map(is_open, feeds)):
                plan = self._plans[key] = self._planned(fetches, feeds)
                return plan
            self._open.add(key)
        return self._plan_of_shapes(key, fetches, feeds)

    def _plan_of_shapes(self, key: Any, fetches: Any, feeds: Mapping[Any, Any]) -> _Plan:
        """The plan for feeds of unknown rank.

        The first one is for the sizes of the first feed. When others come, those sizes that differ
        become free in a plan for all of this rank; a graph that needs their numbers, as to take a
        tensor apart, keeps a plan for each shape.
        """
        exact = {k: np.shape(v) for k, v in feeds.items() if is_open(k)}
        case = (key, tuple(exact.values()))
        if case in self._plans:
            return self._plans[case]
        rank = (key, rank_of(exact.values()))
        family = self._families.get(rank)
        if family is None:
            family = self._families[rank] = Family()
        if family.fits(exact):
            return self._plans[rank]
        free = family.joined(exact)
        if free is not None:
            try:
                plan = self._plans[rank] = self._planned(fetches, feeds, free)
                return plan
            except PasskitError:  # it is made for numbers; what is wrong with it comes up again
                family.is_exact = True
        plan = self._plans[case] = self._planned(fetches, feeds, exact)
        return plan

    def _planned(
        self, fetches: Any, feeds: Mapping[Any, Any], shapes: Mapping[Any, Shape] = NO_SHAPES
    ) -> _Plan:
        """A compiled run; ``shapes`` are those of the feeds of unknown rank."""
        traced = self._traced(fetches, feeds, shapes)
        run = traced.pure
        self._check_devices(run)
        inputs = self._inputs(run, traced.feeds)
        executable = None
        if is_hosted(run, self.graph.run_number.node):
            call = on_host(run.graph, self.state)
        else:
            executable = self._compiled(run.graph)
            call = _positional(executable, [n.name for n in run.graph.inputs])
        counts = any(n is self.graph.run_number.node for n in run.graph.inputs)
        return _Plan(call, executable, run, inputs, traced.places, traced.structure, counts)

    def _compiled(self, graph: Core) -> Any:
        """The program of a graph: on the CPU where TinyFlow's "gpu" finds none, with a warning."""
        try:
            return compile(graph, state=self.state, **self.options)
        except DeviceError as error:
            if not self._soft:
                raise
            warnings.warn(
                f"TinyFlow's configuration 'gpu' runs on the CPU, as there is no GPU: {error}",
                stacklevel=5,
            )
            self.options["target"], self._soft = "cpu", False
            return compile(graph, state=self.state, **self.options)

    def _traced(
        self, fetches: Any, feeds: Mapping[Any, Any], shapes: Mapping[Any, Shape] = NO_SHAPES
    ) -> Traced:
        """What a run of these fetches and feeds computes."""
        structure = flattened(fetches, partial(element_of, self.graph))
        found = [f for k in feeds for f in feeds_of(k, self.graph, shapes.get(k, ()))]
        entries: list[Entry | Variable] = []
        places = [self._place(leaf, entries) for leaf in structure.leaves]
        targets = [n for t in structure.leaves if isinstance(t, Operation) for n in t.nodes]
        run = pure(self.graph, entries, targets, {f.entry: f.input for f in found})
        return Traced(run, found, tuple(places), structure)

    def _place(self, leaf: Any, entries: list[Entry | Variable]) -> Callable[[Any], Any]:
        """What a fetch is of the results; ``entries`` are added to."""
        if isinstance(leaf, Operation):
            return lambda outs: None
        if isinstance(leaf, HostTensor):
            places = [self._place(s, entries) for s in leaf.sources]
            function = leaf.function
            return lambda outs: function(*(p(outs) for p in places))
        entries.append(leaf if isinstance(leaf, Variable) else leaf.entry)
        return result(len(entries) - 1)

    def _inputs(self, run: Pure, found: Sequence[Feed]) -> tuple[Feed, ...]:
        """How each input of the run is fed, in its order. Raises: FeedError for a missing one."""
        by_input = {f.input.node: f for f in found}
        out = []
        for node in run.graph.inputs:
            if node is self.graph.run_number.node:
                out.append(Feed.counter(self))
                continue
            if node not in by_input:
                known = [f.name for f in found]
                raise FeedError(
                    f"placeholder '{node.name}' needs a value in feed_dict, got "
                    f"{', '.join(known) if known else 'none at all'}; session.run(fetches, "
                    f"{{{node.name}: array}})"
                )
            out.append(by_input[node])
        return tuple(out)

    def _check_set(self, plan: _Plan) -> None:
        for name in plan.pure.reads:
            if name in self.state.unset:
                way = "run tf.global_variables_initializer() first, or restore it"
                if any(
                    v._name == name and v.initializer is None
                    for v in self.graph.get_collection("variables")
                ):
                    way = "tf.assign(variable, value) of each that tf.infer_variable_shapes gives"
                raise FeedError(f"variable '{name}' has no value in this session; {way}")

    def _check_devices(self, run: Pure) -> None:
        """Refuse a run of what tf.device put on a GPU anywhere else."""
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

    def _checked(self, plan: _Plan, arrays: list[Any]) -> Any:
        """Run, and find what made the first number that is not finite."""
        before = {k: self.state[k] for k in plan.pure.reads}
        outs = plan.run(*arrays)
        find_culprit(plan.pure.graph, arrays, before, outs, self.state)
        return outs

    def load(self, variable: Variable, value: Any) -> None:
        """Give a variable a value. Raises: FeedError for one that does not fit."""
        self.declare([variable])
        self.state[variable.state.node.name] = np.asarray(value, variable.dtype.numpy)

    def declare(self, variables: list[Variable]) -> None:
        """Make room for variables that no run has used yet."""
        self.state.holding(Core([v.state for v in variables]))

    def address(self, variable: Variable) -> int:
        """Where a variable's value lies in memory; it stays there."""
        self.declare([variable])
        return int(self.state.arrays[variable.state.node.name].ctypes.data)

    @contextmanager
    def as_default(self) -> Iterator[Session]:
        """Within it, in this thread, tensor.eval() and operation.run() use this session."""
        with _defaults.within(self):
            yield self

    def close(self) -> None:
        """Forget compiled runs and values."""
        self._closed = True
        self._plans.clear()

    def __enter__(self) -> Session:
        inner = self.as_default()
        outer = self.graph.as_default()
        outer.__enter__()
        inner.__enter__()
        self._contexts += [outer, inner]
        return self

    def __exit__(self, *error: Any) -> None:
        for _ in range(2):
            self._contexts.pop().__exit__(*error)
        self.close()


class InteractiveSession(Session):
    """A session that is the default of its thread from the start, until it is closed."""

    def __init__(
        self,
        target: str = "",
        graph: Graph | None = None,
        config: ConfigProto | str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(target, graph, config, **options)
        _defaults.items.append(self)

    def close(self) -> None:
        """Close it; it is no longer the default."""
        super().close()
        _defaults.drop(self)


def _config(target: str, config: ConfigProto | str | None) -> ConfigProto:
    arguments.text("Session: target", target)
    if target in TINYFLOW and target != "cpu":
        config, target = target, ""
    if isinstance(config, str):
        if config not in TINYFLOW:
            raise SettingError(
                f"Session needs a ConfigProto or TinyFlow's 'cpu', 'gpu' or 'gpu fusion' as "
                f"config, got {config!r}; {nearest(config, TINYFLOW)}"
            )
        config = ConfigProto(*TINYFLOW[config])
    found = ConfigProto() if config is None else config
    return found if not target else evolve(found, target=target)


def result(k: int) -> Callable[[Any], Any]:
    """What fetches the result of a number; one without axes as a NumPy scalar."""
    return lambda outs: outs[k] if outs[k].ndim else outs[k][()]


def _positional(executable: Any, names: list[str]) -> Callable[..., Any]:
    """A call of an executable with arrays in the order of the graph's inputs."""
    if hasattr(executable, "run_positional"):
        return executable.run_positional  # type: ignore[no-any-return]
    return lambda *arrays: executable(dict(zip(names, arrays, strict=True)))


_defaults: Innermost[Session] = Innermost()


def get_default_session() -> Session | None:
    """The innermost session of this thread, or None."""
    return _defaults.last

