"""Executables: compiled graphs, which are called with arrays.

An executable takes its table from the plan cache, or has the planner make one (`planner`). A
`Binder` gives the table the sizes of a call, and a runner of the launcher, of a device or of the
interpreter checks the feeds and runs it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import Context
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from passkit.errors import CompilerError
from passkit.graph.graph import Graph
from passkit.library.store import snapshot
from passkit.program.binder import Binder, CallShapes
from passkit.program.plan_cache import load_plan, plan_key, planner_is_imported
from passkit.runtime.native.build import stats
from passkit.runtime.native.compiler import INSTALL_HINT
from passkit.runtime.native.feeds import InputSpec
from passkit.runtime.native.launcher import prefetch
from passkit.runtime.state import State
from passkit.values import arguments
from passkit.values.dtype import DType
from passkit.values.lazy import Lazy
from passkit.values.size import Extent, Shape
from passkit.values.warning import warn_user

# A warm start finds its plan on disk, so what plans, counts and saves is imported on use.
if TYPE_CHECKING:
    from pathlib import Path

    from passkit.graph.kernel import Kernel
    from passkit.passes.context import PassContext
    from passkit.program.planner import Planner
    from passkit.runtime.profile import ExecutionProfile
    from passkit.runtime.program import ProgramStep, RuntimeProgram
    from passkit.target import Target

notebook: Any = Lazy("passkit.reporting.notebook")
"""The displays of notebooks, a higher layer."""


class ExecutablePlan(NamedTuple):
    """The plan of an executable. ``program`` is None if the graph is interpreted."""

    context: PassContext
    graph: Graph
    program: RuntimeProgram | None


class Signature(NamedTuple):
    """An input or output: its name, shape (unknown sizes as expressions) and dtype."""

    name: str
    shape: Shape
    dtype: DType

    @property
    def spec(self) -> InputSpec:
        """The check that feeds of this input must pass.

        A size may be any number there unless it is a number or a symbol with an identifier as name.
        """
        return InputSpec(self.name, self.dtype.numpy, tuple(map(_number_or_name, self.shape)))


class Executable:
    """A compiled graph: call it with arrays, by name or as a dict; it returns a list of arrays.

    ``exe(x=array)`` or ``exe({"x": array}, out=None)``; ``out`` may list arrays of the results'
    shapes and dtypes, to be written and returned. May be called from several threads. Results are
    the caller's to keep.

    Args:
        graph: The graph to compile.
        options: The options of `passkit.compile`, by name.
        state: The values of the graph's variables, by default a new `State`.
        reads_plans: Whether a stored plan is used even if the planner is imported. A `PassContext`
            in force then has no effect.

    Raises: When called, FeedError for feeds or arrays of ``out`` that do not fit, ShapeError for
    shapes that an operator does not take, ArgumentError for a masked array, TypeError for several
    positional feeds, CapacityError without memory for the results, DeviceError where a device
    fails; when created, ArgumentError where ``graph`` is no Graph or ``options`` no mapping, and
    the errors of `passkit.compile`.
    """

    # The launcher's callable itself sits in the slot, so that a call runs no Python code: 0.3 us.
    # Type checkers would take it for an attribute that is not bound to the instance.
    if not TYPE_CHECKING:
        __slots__ = ("__call__", "__dict__", "__weakref__")
    if TYPE_CHECKING:

        def __call__(self, *feeds: Any, **named: Any) -> list[Any]:
            """Run on arrays, and return a list of the results, in the order of the outputs.

            ``feeds`` is at most one dict of arrays by name, or one list or tuple of all in order;
            ``named`` has further arrays by name, or ``out``, a list of arrays to write to.

            Raises: FeedError if the arrays do not fit the inputs or the results; ShapeError if an
            operator does not take their shapes; ArgumentError for a masked array; TypeError for
            several ``feeds``; CapacityError without memory for the results; DeviceError where a
            device fails; and where shapes need a plan of their own, what `passkit.compile` raises.
            """
            ...

    inputs: tuple[Signature, ...]
    outputs: tuple[Signature, ...]
    run_positional: Any
    """Runs on arrays in the order of the inputs; an executable that interprets has none."""
    run_into: Any
    """``run_into(out, *arrays)`` also takes a list of arrays for the results, or None for each that
    is to be allocated; native programs have it."""
    donors: tuple[int, ...]
    """For each output, the input whose array may be given in ``out`` of `run_into`, or -1."""
    num_steps: int
    """The number of kernels, library calls, copies and Python functions of a run."""

    def __init__(
        self,
        graph: Graph,
        options: Mapping[str, Any],
        state: State | None = None,
        reads_plans: bool = False,
    ) -> None:
        arguments.instance("Executable: graph", graph, Graph, "a Graph")
        options = arguments.mapping("Executable: options", options)
        if state is not None:
            need = "a pk.State or None; pk.State({name: array}) makes one"
            arguments.instance("compile: state", state, State, need)
        self.source_graph = graph
        self.state = State.of(graph) if state is None else state.holding(graph)
        self._options = options
        self._library = snapshot()
        self._binder: Binder | None = None
        self._num_compiled = 0
        key = plan_key(graph, options, self._library)
        if key is not None and (reads_plans or not planner_is_imported()):
            table = load_plan(key, graph, self.state.memory)
            if table is not None:
                self._use_binder(Binder(table, self._specialize, self.state))
                return
            # At once: compiling the launcher takes as long as planning and compiling the kernels.
            # The key says that the target is "cpu", and no context is in force or matters.
            prefetch()
        self._planner = self._new_planner()
        compiled_before = stats.compiled
        self._compile(self._planner, key)
        self._num_compiled = stats.compiled - compiled_before

    def _new_planner(self) -> Planner:
        """Return a planner for the graph as it was given, which plans again for other shapes.

        Raises: SettingError, RegistryError, ParseError or ArgumentError for a wrong option;
        DeviceError or MissingDependencyError where the target is not available; CacheError where
        other users may write to the cache folder.
        """
        from passkit.program.planner import Planner

        return Planner(self.source_graph, self._options, self._library, self.state, Executable)

    @cached_property
    def _planner(self) -> Planner:
        """The planner of a warm start. No context was in force then, so none applies here."""
        return Context().run(self._new_planner)

    @cached_property
    def _plan(self) -> ExecutablePlan:
        """The plan of a warm start, planned again: the plan cache stores only its table."""
        graph, program = Context().run(self._planner.plan)
        return ExecutablePlan(self._planner.context, graph, program)

    def _compile(self, planner: Planner, key: str | None) -> None:
        """Plan the graph and set its runner; interpret it if there is no C++ compiler.

        For target "interpret" it is interpreted, too. The plan is stored under ``key``, unless it
        is None.

        Raises: CompilerError if the compiler refuses a kernel; SettingError if PASSKIT_THREADS is
        no number of threads; CacheError if others may write to the cache folder; DeviceError if the
        device cannot run a kernel; OSError where files of the option ``dump`` cannot be written;
        and what planning raises.
        """
        target = planner.context.target.name
        if target == "interpret":
            self._interpret(planner)
            return
        try:
            if target == "cpu":
                prefetch()
                from passkit.runtime.assemble import prefetch_convolutions

                prefetch_convolutions(self.source_graph)
            graph, program = planner.plan()
            self._plan = ExecutablePlan(planner.context, graph, program)
            self._use_binder(planner.binder(program, self._specialize))
            if key is not None:
                planner.store(key, graph, program)
        except CompilerError as error:
            if "no C++ compiler" not in str(error):
                raise
            warn_user(f"passkit interprets, because no C++ compiler was found; {INSTALL_HINT}")
            self._interpret(planner)

    def _use_binder(self, binder: Binder) -> None:
        """Set the runner, inputs, outputs, donors and number of steps from a binder's table.

        Raises: CompilerError if the launcher cannot be compiled, SettingError if PASSKIT_THREADS is
        no number of threads, CacheError if others may write to the cache folder.
        """
        table = binder.table
        names = _output_names(self.source_graph)
        self.inputs = tuple(Signature(name, shape, d) for name, d, shape in table.inputs)
        self.outputs = tuple(
            Signature(name, shape, d) for name, (d, shape) in zip(names, table.outputs, strict=True)
        )
        runner = binder.runner([s.spec for s in self.inputs], self.source_graph.unread)
        self._binder = binder
        self._set_runner(runner)
        self.run_positional = runner.run_positional
        self.run_into = getattr(runner, "run_into", None)
        self.donors = tuple(table.donors)
        self.num_steps = sum(row is not None for row in table.entries)

    def _interpret(self, planner: Planner) -> None:
        """Set the runner, and inputs and outputs, to evaluate the graph in NumPy.

        ``planner`` has the graph. No output has a donor, and there are no steps. Raises: ShapeError
        or DTypeError where these are unknown or do not fit; what the user's passes raise.
        """
        graph, runner = planner.interpreter()
        self._plan = ExecutablePlan(planner.context, graph, None)
        self._binder = None
        self.donors, self.num_steps = (-1,) * len(graph.outputs), 0
        self.inputs = tuple(
            Signature(graph.names[n], graph.shape(n.entries[0]), graph.dtype(n.entries[0]))
            for n in graph.inputs
        )
        self.outputs = tuple(
            Signature(name, graph.shape(e), graph.dtype(e))
            for name, e in zip(_output_names(runner.graph), graph.outputs, strict=True)
        )
        self._set_runner(runner)

    def _set_runner(self, runner: Any) -> None:
        """Set the object that calls go to, in ``_runner`` and as ``__call__``."""
        self._runner = runner
        object.__setattr__(self, "__call__", runner)

    def _specialize(self, shapes: CallShapes) -> RuntimeProgram:
        """Return the program for input ``shapes`` that break a guard of the general plan.

        Raises: FeedError if two shapes need different values of a size; ShapeError if an operator
        does not take the shapes; CompilerError if a kernel does not compile; and what passes raise.
        """
        return self._planner.plan_for_shapes([s.name for s in self.inputs], shapes)

    @property
    def graph(self) -> Graph:
        """The planned graph. A warm start plans it when it is first read."""
        return self._plan.graph

    @property
    def context(self) -> PassContext:
        """The settings that the graph was planned under."""
        return self._plan.context if "_plan" in self.__dict__ else self._planner.context

    @property
    def target(self) -> Target:
        """Return the target: where the kernels run."""
        return self.context.target

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels, one for each launch, in order; none if the graph is interpreted."""
        kernels = self.graph.attrs.get("kernel", {})
        return tuple(kernels[n] for n in self.graph.nodes if n in kernels)

    @property
    def program(self) -> RuntimeProgram | None:
        """The steps of a run with all that they need; None if the graph is interpreted."""
        return self._plan.program

    @property
    def native_program(self) -> Any:
        """The launcher's program; None if the graph is interpreted, or runs on a device."""
        is_native = self._binder is not None and not self._binder.on_device
        return self._runner if is_native else None

    @property
    def sizes(self) -> Mapping[str, int]:
        """The values of unknown sizes in the last call with new shapes, as a new dict.

        It is empty before such a call, if the graph is interpreted, and if the call's shapes broke
        a guard, so that they have a program of their own.
        """
        return {} if self._binder is None else dict(self._binder.last_sizes)

    @property
    def steps(self) -> tuple[ProgramStep, ...]:
        """The steps of a run; none if the graph is interpreted."""
        return () if self.program is None else self.program.steps

    @property
    def source(self) -> str:
        """The text of all kernels, each once; "" if there are none."""
        return "\n".join({k.key: k.source for k in self.kernels}.values())

    @property
    def stats(self) -> dict[str, Any]:
        """Counts of launches, compilations, copies, steps by kind, and bytes.

        - ``target``: where the kernels run; "interpret" if nothing was compiled.
        - ``native_calls``: calls of native code so far; 0 for other targets than the CPU.
        - ``compiled``: kernels that were compiled for this executable, and not found in the cache.
        - ``copies``: inputs that were copied so far, because of their layout, on the CPU.
        - ``kernels``, ``library_calls``: steps of one run, ``launches`` is their sum;
          ``distinct_kernels`` counts equal kernels once.
        - ``python_calls``: steps in Python; of these, ``interpreted_calls`` evaluate an operator
          in NumPy because it has no kernel, and compiling warned of them.
        - ``bytes_read``, ``bytes_written``: bytes of one run at the sizes last bound;
          ``bytes_unfused`` is what the operators would move one by one. 0 until sizes are known.
        - ``scratch_requested``: bytes of the scratch arrays of one tile, over all kernels; they
          share ``scratch_allocated`` bytes.
        - ``epilogues``: kernels that run as part of a convolution, on the rows just stored; with
          CUDA, after a call, those that add a bias as part of a matrix product.
        - ``row_chains``: sequences of matrix products and kernels that run block by block of the
          rows of a long matrix.

        On a device there are also

        - ``device``: its name.
        - ``host_steps``: the number of steps that do not run there; before a call, of all library
          calls and Python steps. After a call, ``device_library_steps`` is the number of library
          calls that run there.
        - ``relaxed``: the operations that it may compute less exactly than other targets.
        - ``bytes_uploaded``, ``bytes_downloaded``: what the last call moved.
        - ``graphs_made``, ``graph_replays``, with CUDA, after a call: the CUDA graphs that were
          created, and their launches.
        - ``on_host_because``, with CUDA: why library calls run on the host, if any do.
        """
        from passkit.program.counts import ProgramCounts

        counts = ProgramCounts(self.graph, self.kernels, self.steps, self.sizes)
        launches = counts.launches()
        stats = {
            "target": "interpret" if self.program is None else self.target.name,
            "native_calls": getattr(self._runner, "native_calls", 0),
            "compiled": self._num_compiled,
            "copies": getattr(self._runner, "copies", 0),
            **launches,
            **counts.bytes(),
            "epilogues": 0 if self._binder is None else self._binder.table.epilogues,
            "row_chains": 0 if self._binder is None else self._binder.table.row_chains,
        }
        if self._binder is not None and self._binder.on_device:
            stats["host_steps"] = launches["library_calls"] + launches["python_calls"]
            stats |= self._runner.stats(self.kernels)
        return stats

    def profile(
        self,
        feeds: Mapping[str, Any] | Sequence[Any] | None = None,
        runs: int = 20,
        copies: bool = True,
        **named: Any,
    ) -> ExecutionProfile:
        """Measure each step of a call separately.

        Each of the calls updates state variables, also with random arrays.

        Args:
            feeds: Arrays by the names of inputs, as in a call; ``profile(x=array)`` works too. By
                default random arrays of the shapes of the last call, or, before any call, with 64
                for each unknown size. Inputs that are named like an option of this method can only
                be given here.
            runs: Number of measured calls; the seconds of a step are the median over them. A
                device makes one more call before them.
            copies: Whether to compare each step with a copy of as many bytes on this machine.
            **named: Arrays by the names of inputs.

        Returns: Seconds and bytes of each step; printed, a table.

        Raises:
            PassError: The executable interprets.
            FeedError: Feeds do not fit the inputs, or an array is given by the name of an option.
            SettingError: ``runs`` is no integer from 1 on, or PASSKIT_THREADS no number of threads.
            ArgumentError: ``copies`` is no bool, or a feed is a masked array.
            ShapeError: A size divides by zero.
            CompilerError: The launcher, or the copy to compare with, cannot be compiled.
            CacheError: Other users may write to the cache folder.
            DeviceError: The device fails.
        """
        from passkit.program.profiling import profile_executable

        return profile_executable(self, self._binder, feeds, named, runs, copies)

    def save(self, folder: str | Path) -> None:
        """Write graph, options, state and compiled kernels into a folder, for `passkit.load`.

        The folder is created if it is missing.

        Raises: PassError if a pass of the executable is not registered; ArgumentError if ``folder``
        is no path; GraphError if the graph has a parameter that JSON cannot hold, and DTypeError if
        that is an array of a dtype that passkit does not have; FeedError if the state cannot be
        written; CacheError if others may write to its kernels; CompilerError if machine code is
        gone from the cache and cannot be compiled again; OSError if another file cannot be written.
        """
        from passkit.program.saved import save

        save(self, folder)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle graph, options, measurements and state, as `save` writes them.

        The kernels are found in the cache, or compiled, where the executable is unpickled. Raises:
        PassError if a pass is not registered; GraphError if the graph has a parameter that JSON
        cannot hold, and DTypeError if that is an array of a dtype that passkit does not have.
        """
        from passkit.program.saved import describe, restore

        return restore, (describe(self), "a pickled executable", self.state)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        """Return the MIME types and texts that a notebook displays.

        The arguments are those of IPython's display protocol and have no effect.
        """
        return notebook.executable(self)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        """Return the number of kernels and the target's name as text; a warm start is planned."""
        return f"Executable({len(self.kernels)} kernels on {self.target.name})"


def _number_or_name(size: Extent) -> int | str | None:
    """Return a number itself, the name of a symbol that is an identifier, else None.

    None stands for composite expressions, and for the symbols of extents without a name, which are
    called such as "x.0".
    """
    if isinstance(size, int):
        return size
    text = str(size)
    return text if text.isidentifier() else None


def _output_names(graph: Graph) -> list[str]:
    """Return the name of each output: its node's, with ``:k`` for output k of several."""
    names = graph.names
    return [
        names[e.node] if len(e.node.entries) == 1 else f"{names[e.node]}:{e.index}"
        for e in graph.outputs
    ]
