"""Executables: compiled graphs, which are called with arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any, NamedTuple

from passkit.errors import CompilerError, FeedError, PassError
from passkit.graph.graph import Graph
from passkit.library.store import snapshot
from passkit.program import plans
from passkit.runtime.native.build import kernel_digest, stats
from passkit.runtime.native.compiler import INSTALL_HINT
from passkit.runtime.native.feeds import Feeds, InputSpec, make_program
from passkit.runtime.native.launcher import prefetch
from passkit.runtime.state import State
from passkit.runtime.table import Table
from passkit.values import arguments
from passkit.values.dtype import DType
from passkit.values.lazy import Lazy
from passkit.values.size import Shape, evaluate, symbols_of
from passkit.values.warning import warn_user

# What makes plans is imported where it is used: a warm start finds its plan on disk.
if TYPE_CHECKING:
    from pathlib import Path

    from passkit.passes.context import PassContext
    from passkit.plan.kernel import Kernel
    from passkit.plan.target import Target
    from passkit.runtime.assemble import Input
    from passkit.runtime.device.runtimes import Runtime
    from passkit.runtime.profile import Profile
    from passkit.runtime.program import Program, Step

notebook: Any = Lazy("passkit.reporting.notebook")
"""What notebooks show stands above, and is asked for only by them."""


def _nested(graph: Graph) -> Executable:
    """The program of a graph that an operator holds, under the options in force.

    Templates are for the graph around it, and hints for where their nodes are.
    """
    from passkit.passes.context import PassContext, current
    from passkit.passes.hints import within

    return Executable(graph, {"templates": {}, **within(graph, current() or PassContext())})


class Signature(NamedTuple):
    """An input or output: its name, shape (unknown sizes as expressions) and dtype."""

    name: str
    shape: Shape
    dtype: DType


class Executable:
    """A compiled graph: call it with arrays, by name or as a dict; it returns a list of arrays.

    ``exe(x=array)`` or ``exe({"x": array}, out=None)``; ``out`` may list arrays of the results'
    shapes and dtypes, to be written and returned. May be called from several threads. Results are
    the caller's to keep. Raises: FeedError for feeds that do not fit.
    """

    # The launcher's callable itself sits in the slot, so that a call runs no Python code: 0.3 us.
    # Type checkers would take it for an attribute that is not bound to the instance.
    if not TYPE_CHECKING:
        __slots__ = ("__call__", "__dict__", "__weakref__")
    if TYPE_CHECKING:

        def __call__(self, *feeds: Any, **named: Any) -> list[Any]:
            """Run on arrays."""
            ...

    graph: Graph
    """The planned graph; where the plan was found on disk, it is made when it is asked for."""
    context: PassContext
    target: Target
    _program: Program | None
    _device: Runtime | None = None

    def __init__(
        self, graph: Graph, options: Mapping[str, Any], state: State | None = None
    ) -> None:
        arguments.instance("Executable: graph", graph, Graph, "a Graph")
        options = arguments.mapping("Executable: options", options)
        if state is not None:
            need = "a pk.State or None; pk.State({name: array}) makes one"
            arguments.instance("compile: state", state, State, need)
        self.source_graph = graph
        self.state = State.of(graph) if state is None else state.holding(graph)
        self._variants: dict[tuple[tuple[int, ...], ...], Program] = {}
        self._newly_compiled = 0
        self._measured = snapshot()
        key = plans.plan_key(graph, options, self._measured)
        table = None
        if key is not None and not plans.has_planned():
            table = plans.recall(key, graph, self.state.memory)
            if table is None:  # a key means target="cpu", and nobody has made a context
                prefetch()  # at once: the launcher takes as long as planning and the kernels
        if table is not None:
            self._options = options
            self._ready(table)
            return
        from passkit.passes.context import PassContext, current
        from passkit.passes.hints import by_name

        outer = current()
        from passkit.program.placement import placed

        given = by_name(graph, (outer or PassContext()).with_options(**options))
        if given.evaluator is None:
            given = given.with_options(evaluator=self._measured.evaluator)
        self.context = placed(given, graph)
        self.target = self.context.target
        with self.context:
            self._start(graph, key if outer is None else None)

    if not TYPE_CHECKING:  # other names are no attributes

        def __getattr__(self, name: str) -> Any:
            """Plan the graph again for attributes that a plan on disk does not hold."""
            planned = ("graph", "context", "target", "_program")
            if name not in planned or "_options" not in self.__dict__:
                raise AttributeError(f"'Executable' object has no attribute {name!r}")
            Context().run(self._plan_again)  # no context in force here was in force then
            return self.__dict__[name]

    def _plan_again(self) -> None:
        from passkit.passes.context import PassContext

        self.context = PassContext(**self._options, evaluator=self._measured.evaluator)
        self.target = self.context.target
        with self.context:
            self._plan(self.source_graph)

    def _start(self, graph: Graph, key: str | None) -> None:
        before = stats.compiled
        if self.target.name != "interpret":
            try:
                self._compiled(graph, key)
            except CompilerError as error:
                if "no C++ compiler" not in str(error):
                    raise
                warn_user(f"passkit interprets, because no C++ compiler was found; {INSTALL_HINT}")
                self._interpreted(graph)
        else:
            self._interpreted(graph)
        self._newly_compiled = stats.compiled - before

    def _plan(self, graph: Graph) -> Program:
        from passkit.program.placement import planned_or_apart
        from passkit.runtime.assemble import assemble

        self.graph = planned_or_apart(graph)
        self._program = assemble(
            self.graph, self.state, self.target, signature(graph, self.graph), _nested
        )
        return self._program

    def _compiled(self, graph: Graph, key: str | None) -> None:
        if self.target.name == "cpu":
            prefetch()
        program = self._plan(graph)
        from passkit.program.host_steps import warn_of_interpreted

        warn_of_interpreted(self.graph, program, self.target)
        self._ready(program.table)
        if key is not None:
            from passkit.passes.rtcgen import FLAGS, kernel_text

            kernels = {k.key: kernel_digest(kernel_text(k), FLAGS) for k in self.kernels}
            plans.keep(key, graph, self.graph, program, kernels)

    def _ready(self, table: Table) -> None:
        self._table = table
        self.inputs = tuple(Signature(n, s, d) for n, d, s in table.inputs)
        self.outputs = tuple(
            Signature(n, s, d)
            for n, (d, s) in zip(_outputs(self.source_graph), table.outputs, strict=True)
        )
        specs = [InputSpec(s.name, s.dtype.numpy, tuple(map(_dim, s.shape))) for s in self.inputs]
        unread = self.source_graph.unread
        device = self._device_runtime()
        self._device = device
        if device is not None:
            from passkit.runtime.device.front import DeviceProgram

            self._run: Any = DeviceProgram(
                specs, self._bind, device.said, device.find, device.make, unread
            )
        else:
            lock = self.state.lock if self.state.memory else None
            if lock:
                self.state.pin()
            self._run = make_program(specs, len(self.outputs), self._bind, lock, unread)
        self.run_positional = self._run.run_positional
        object.__setattr__(self, "__call__", self._run)

    def _interpreted(self, graph: Graph) -> None:
        from passkit.passes.apply import ApplyPasses
        from passkit.program.planning import prepared
        from passkit.runtime.interpreted import Interpreted

        names = [graph.names[n] for n in graph.inputs]
        if not self.context.passes.is_default:  # a user's passes may change what a graph means
            graph = prepared(graph)
        self.graph = ApplyPasses(graph, ["InferShape", "InferType"], target="interpret")
        g = self.graph
        self._program = None
        self.inputs = tuple(
            Signature(g.names[n], g.shape(n.entries[0]), g.dtype(n.entries[0])) for n in g.inputs
        )
        self.outputs = tuple(
            Signature(n, g.shape(e), g.dtype(e))
            for n, e in zip(_outputs(graph), g.outputs, strict=True)
        )
        self._run = Interpreted(graph, self.state, names)
        object.__setattr__(self, "__call__", self._run)

    def _bind(self, shapes: tuple[tuple[int, ...], ...]) -> Any:
        """A run is asked for by shapes not seen before: numbers for every size."""
        table, sizes = self._fitting(shapes)
        self._shapes, self._sizes = shapes, sizes
        if self._device is None:
            return table.bind(shapes, sizes)
        return self._device.bound(self._program_of(table), sizes, self.state)

    def _fitting(self, shapes: tuple[tuple[int, ...], ...]) -> tuple[Table, dict[str, int]]:
        """The table that serves these shapes, and the number of every size in it."""
        sizes = self._table.sizes(shapes)
        if self._table.broken(sizes) is None:
            return self._table, sizes
        return (self._variants.get(shapes) or self._variant(shapes)).table, {}

    def _program_of(self, table: Table) -> Program:
        """The program whose table it is; a table that was found on disk has one planned anew."""
        if table is self._table and self._program is not None:
            return self._program
        (found,) = (p for p in (self._program, *self._variants.values()) if p and p.table is table)
        return found

    def _device_runtime(self) -> Runtime | None:
        """What runs the kernels if the CPU does not; a plan on disk is for the CPU."""
        if "target" not in self.__dict__ or not self.target.device:
            return None
        from passkit.runtime.device.runtimes import runtime_of

        return runtime_of(self.target)

    def _variant(self, shapes: tuple[tuple[int, ...], ...]) -> Program:
        """A program for shapes whose sizes are not related as planned: planned anew for them.

        Its loops are others than those that templates were given for, so it has its own.
        """
        from passkit.program.placement import planned_or_apart
        from passkit.program.planning import with_shapes
        from passkit.runtime.assemble import assemble

        names = [s.name for s in self.inputs]
        graph = with_shapes(self.source_graph, dict(zip(names, shapes, strict=True)))
        with self.context.with_options(templates={}):
            plan = planned_or_apart(graph)
            made = assemble(plan, self.state, self.target, signature(graph, plan), _nested)
        self._variants[shapes] = made
        return made

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, one for each launch, in order."""
        found = self.graph.attrs.get("kernel", {})
        return tuple(found[n] for n in self.graph.nodes if n in found)

    @property
    def program(self) -> Program | None:
        """The steps of a run with all that they need; None where it interprets."""
        return self._program

    @property
    def sizes(self) -> Mapping[str, int]:
        """The numbers of unknown sizes in the last call; empty before it."""
        return dict(getattr(self, "_sizes", {}))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of a run."""
        return () if self._program is None else self._program.steps

    @property
    def source(self) -> str:
        """The text of all kernels, each once."""
        return "\n".join({k.key: k.source for k in self.kernels}.values())

    @property
    def stats(self) -> dict[str, Any]:
        """Counts: native calls, kernels, compilations, input copies, steps by kind, and bytes.

        ``python_calls`` are all steps in Python; of these, ``interpreted_calls`` evaluate an
        operator in NumPy because it has no kernel, and compiling warned of them.

        Bytes are those that one run reads and writes, at the sizes last bound; ``bytes_unfused`` is
        what the operators would move one by one. They are 0 until sizes are known. Of scratch, a
        tile of each kernel has arrays of ``scratch_requested`` bytes, all kernels together; they
        lie in ``scratch_allocated`` bytes, since arrays share. ``epilogues`` counts the kernels
        that run as part of a convolution, on the rows that it has just stored. On a device,
        ``host_steps`` are not run there, ``relaxed`` names the operations that it may compute less
        exactly than other targets, and the last call moved ``bytes_uploaded`` and
        ``bytes_downloaded``.
        """
        from passkit.program.counts import Counts

        counts = Counts(self.graph, self.kernels, self.steps, getattr(self, "_sizes", {}))
        launches = counts.launches()
        on_host = launches["library_calls"] + launches["python_calls"]
        return {
            "target": self.target.name if self._program is not None else "interpret",
            "native_calls": getattr(self._run, "native_calls", 0),
            "compiled": self._newly_compiled,
            "copies": getattr(self._run, "copies", 0),
            **launches,
            **counts.bytes(),
            "epilogues": self._table.epilogues if "_table" in self.__dict__ else 0,
            **({} if self._device is None else {"host_steps": on_host}),
            **({} if self._device is None else self._run.stats(self.kernels)),
        }

    def profile(
        self,
        feeds: Mapping[str, Any] | Sequence[Any] | None = None,
        runs: int = 20,
        copies: bool = True,
        **named: Any,
    ) -> Profile:
        """Measure each step of a call by itself.

        Args:
            feeds: Arrays by the names of inputs, as in a call; ``profile(x=array)`` works too.
                Without any, random arrays of the shapes of the last call, and before one of
                64 in place of each unknown size. Inputs that are called like an option of this
                method can only be given here.
            runs: Number of calls; the seconds of a step are the median over them.
            copies: Whether to compare each step with a copy of as many bytes on this machine.
            **named: Arrays by the names of inputs.

        Returns: Seconds and bytes of each step; printed, a table.

        Raises:
            PassError: The executable interprets.
            FeedError: Feeds do not fit the inputs.
        """
        from passkit.runtime.profile import profile_program, random_feeds, unknown

        if self._program is None:
            raise PassError(
                f"{self!r} interprets operator by operator; compile for target 'cpu' to profile it"
            )
        inputs = {s.name for s in self.inputs}
        for option, value in (("runs", runs), ("copies", copies)):
            if option in inputs and not isinstance(value, int):
                raise FeedError(
                    f"profile: {option}={arguments.shown(value)} would be the option of this name; "
                    f"feed the input in a mapping: profile({{{option!r}: …}})"
                )
        runs = arguments.count("profile: runs", runs, 1)
        arguments.flag("profile: copies", copies)
        if feeds is None and not named:
            shapes = getattr(self, "_shapes", None) or tuple(
                tuple(evaluate(n, dict.fromkeys(symbols_of([n]), 64)) for n in s.shape)
                for s in self.inputs
            )
            feeds = random_feeds([(s.name, s.dtype) for s in self.inputs], shapes)
        specs = [InputSpec(s.name, s.dtype.numpy, tuple(map(_dim, s.shape))) for s in self.inputs]
        arrays = Feeds(tuple(specs), self.source_graph.unread).repair(feeds, named)
        shapes = tuple(a.shape for a in arrays)
        table, sizes = self._fitting(shapes)
        program = self._program_of(table)
        copying = unknown
        if copies:
            from passkit.program.copying import copy_speed  # few need it

            copying = copy_speed().seconds
        if self._device is not None:
            from passkit.runtime.device.profiled import profile_on_device

            made = self._device.bound(program, sizes, self.state)
            return profile_on_device(made, arrays, runs, copying)
        return profile_program(program, sizes, arrays, runs, copying)

    def save(self, folder: str | Path) -> None:
        """Write graph, options, state and compiled kernels into a folder, for `pk.load`."""
        from passkit.program.saved import save  # it loads, so it stands above this

        save(self, folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled are graph, options, measurements and state, as `save` writes them.

        The kernels are found in the cache, or compiled, where it is unpickled.
        """
        from passkit.program.saved import described, remade  # these load, so they stand above this

        return remade, (described(self), "a pickled executable", self.state)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """What a notebook shows."""
        return notebook.executable(self)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"Executable({len(self.kernels)} kernels on {self.target.name})"


def _dim(size: Any) -> int | str | None:
    if isinstance(size, int):
        return size
    text = str(size)
    return text if text.isidentifier() else None


def _outputs(graph: Graph) -> list[str]:
    names = graph.names
    return [
        names[e.node] if len(e.node.entries) == 1 else f"{names[e.node]}:{e.index}"
        for e in graph.outputs
    ]


def signature(graph: Graph, plan: Graph) -> tuple[Input, ...]:
    """What every input of ``graph`` must be, as declared and as plan.

    The planned graph may lack some of them, and knows more of the shapes of the others.
    """
    from passkit.passes.apply import ApplyPasses
    from passkit.runtime.assemble import Input

    names = [graph.names[n] for n in graph.inputs]
    if names != [plan.names[n] for n in plan.inputs]:
        plan = ApplyPasses(graph, "Complete")
    entries = {plan.names[n]: n.entries[0] for n in plan.inputs}
    found = []
    for node, name in zip(graph.inputs, names, strict=True):
        shape, declared = plan.shape(entries[name]), node.entries[0].shape
        found.append(Input(name, plan.dtype(entries[name]), declared or shape, shape))
    return tuple(found)
