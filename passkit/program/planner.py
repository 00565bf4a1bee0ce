"""The planner of an executable: from a graph and options to a planned graph and its program.

A warm start runs a table from the plan cache and does not import this module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from passkit.graph.graph import Graph
from passkit.library.store import Snapshot
from passkit.passes.apply import ApplyPasses
from passkit.passes.context import PassContext, current
from passkit.passes.fusion_hints import nested_hint_options, with_hints_by_name
from passkit.program.binder import Binder, CallShapes
from passkit.program.host_steps import warn_of_interpreted
from passkit.program.plan_writer import store_plan
from passkit.program.planning import planned, run_until_fusion, with_shapes
from passkit.runtime.assemble import ProgramInput, assemble
from passkit.runtime.interpreted_runner import InterpretedRunner
from passkit.runtime.program import RuntimeProgram
from passkit.runtime.state import State
from passkit.values.lazy import Lazy

on_device: Any = Lazy("passkit.program.on_device")
"""Imported for devices only: its modules load the launcher of devices."""

Compile = Callable[[Graph, Mapping[str, Any]], Callable[..., list[Any]]]
"""Compiles a graph under options, for the graphs that operators such as loops hold."""


class Planner:
    """Plans a graph under one context: once as given, and again for shapes that break its guards.

    Args:
        source: The graph as the user gave it.
        options: The options of `passkit.compile`, by name.
        library: The measurements that tell the costs of kernels, unless an evaluator is given.
        state: The values of the graph's variables.
        compile_nested: Compiles the graphs that operators of ``source`` hold.

    Raises:
        SettingError: An option is unknown or has a wrong value, or a fusion hint has an unnamed
            node that is not in the graph.
        RegistryError: A pass in ``passes`` is not registered.
        ParseError: A template cannot be read.
        ArgumentError: ``disabled`` or ``dump`` has a wrong type.
        CacheError: Other users may write to the cache folder.
        DeviceError: The target's device is not available.
        MissingDependencyError: A package that the device needs is not installed.
    """

    def __init__(
        self,
        source: Graph,
        options: Mapping[str, Any],
        library: Snapshot,
        state: State,
        compile_nested: Compile,
    ) -> None:
        self.source = source
        self.state = state
        self.compile_nested = compile_nested
        self.has_outer_context = current() is not None
        self.context = planning_context(source, options, library)

    def plan(self) -> tuple[Graph, RuntimeProgram]:
        """Return the planned graph and its program; warn of steps that NumPy interprets.

        Raises: CompilerError if a kernel does not compile (KernelRefusedError on a device), or if
        there is no C++ compiler; CacheError if others may write to the cache folder; DeviceError if
        a device cannot run a kernel; and errors of the passes, such as ShapeError.
        """
        with self.context:
            graph = plan_graph(self.source)
            program = self._assemble(self.source, graph)
        warn_of_interpreted(graph, program, self.context.target)
        return graph, program

    def store(self, key: str, graph: Graph, program: RuntimeProgram) -> None:
        """Store the result of `plan` in the plan cache, under a key from `plan_key`.

        ``graph`` is the planned graph, ``program`` its program. Do nothing if it was planned within
        a context: the key does not tell its options. Raises: CacheError if the cache folder is a
        file, or others may write to it.
        """
        if not self.has_outer_context:
            store_plan(key, self.source, graph, program)

    def binder(
        self, program: RuntimeProgram, specialize: Callable[[CallShapes], RuntimeProgram]
    ) -> Binder:
        """Return what binds the program to shapes, on the device of the target if it has one.

        Args:
            program: the program.
            specialize: plans the graph anew for shapes that break its guards.
        """
        if self.context.target.device:
            binder: Binder = on_device.DeviceBinder(program, specialize, self.state)
            return binder
        return Binder(program.table, specialize, self.state)

    def plan_for_shapes(self, names: list[str], shapes: CallShapes) -> RuntimeProgram:
        """Return the program of the source graph planned for known input shapes.

        ``names`` and ``shapes`` are those of the inputs, in one order. Templates do not apply: they
        were specified for the loops of the general plan.

        Raises: FeedError if two shapes need different values of a size; ShapeError if an operator
        does not take the shapes; CompilerError if a kernel does not compile; CacheError if others
        may write to the cache folder; DeviceError if a device cannot run a kernel; and what the
        passes raise for these shapes.
        """
        graph = with_shapes(self.source, dict(zip(names, shapes, strict=True)))
        with self.context.with_options(templates={}):
            return self._assemble(graph, plan_graph(graph))

    def interpreter(self) -> tuple[Graph, InterpretedRunner]:
        """Return the graph with shapes and dtypes, and the runner that evaluates it in NumPy.

        A user's passes before Fusion run, since they may change what the graph computes.

        Raises: ShapeError or DTypeError where these do not fit; what the user's passes raise.
        """
        names = [self.source.names[n] for n in self.source.inputs]
        with self.context:
            # A user's passes may change what a graph computes.
            graph = self.source if self.context.passes.is_default else run_until_fusion(self.source)
            typed = ApplyPasses(graph, ["InferShape", "InferType"], target="interpret")
        return typed, InterpretedRunner(graph, self.state, names)

    def _assemble(self, source: Graph, graph: Graph) -> RuntimeProgram:
        """Return the program of a planned graph; the context must be in force.

        ``source`` is the graph before planning, which has all inputs that a call may feed. Raises:
        CompilerError if the launcher cannot be compiled, CacheError if others may write to the
        cache folder, SettingError if PASSKIT_THREADS is no number of threads; ShapeError or
        DTypeError if those of an input are unknown; what compiling a nested graph raises.
        """
        return assemble(
            graph,
            self.state,
            self.context.target,
            declared_inputs(source, graph),
            self._compile_nested_graph,
        )

    def _compile_nested_graph(self, graph: Graph) -> Callable[..., list[Any]]:
        """Return the compiled form of a graph that an operator holds, under the context in force.

        It is called with arrays, and returns a list of them. Templates are for the outer graph, and
        hints for the graph that has their nodes.
        """
        options = {"templates": {}, **nested_hint_options(graph, current() or PassContext())}
        return self.compile_nested(graph, options)


def planning_context(graph: Graph, options: Mapping[str, Any], library: Snapshot) -> PassContext:
    """Return the settings to plan a graph under.

    Options come from ``options``, else from the context in force. For a planned graph, options that
    nobody gave are those it was planned under. The evaluator is that of the measurements in
    ``library`` unless one is given. For a graph that is not planned, the target of a device has the
    limits of this machine's.

    Raises:
        SettingError: An option is unknown or has a wrong value, such as an unknown target or
            strategy; or a fusion hint has an unnamed node that is not in the graph.
        RegistryError: A pass in ``passes`` is not registered.
        ParseError: A template cannot be read.
        ArgumentError: ``disabled`` or ``dump`` has a wrong type.
        CacheError: Other users may write to the cache folder.
        DeviceError: The target's device is not available.
        MissingDependencyError: A package that the device needs is not installed.
    """
    context = with_hints_by_name(graph, (current() or PassContext()).with_options(**options))
    if context.evaluator is None:
        context = context.with_options(evaluator=library.evaluator)
    if "options" in graph.attrs:
        return context.inheriting(graph.attrs["options"])
    if context.target.device:
        limited: PassContext = on_device.with_device_limits(context)
        return limited
    return context


def plan_graph(graph: Graph) -> Graph:
    """Return the graph after the entire pipeline, under the context in force.

    Without a context in force, the default options count. Raises: KernelRefusedError if a device
    refuses the kernel of a single operator; DeviceError if the target's device is not available,
    MissingDependencyError if a package for it is not installed; OSError where files of the option
    ``dump`` cannot be written; what the passes raise.
    """
    context = current() or PassContext()
    if context.target.device:
        plan: Graph = on_device.plan_for_device(graph, context)
        return plan
    return planned(graph)


def declared_inputs(source: Graph, planned_graph: Graph) -> tuple[ProgramInput, ...]:
    """Return each input of the source graph, in order: name, dtype, and shape as declared and used.

    The planned graph may lack some inputs, and knows more of the shapes of the others. An input of
    undeclared rank has the shape that the plan relies on as both.

    Raises: ShapeError or DTypeError if the planned graph lacks an input, and the source graph does
    not tell its shape or dtype.
    """
    names = [source.names[n] for n in source.inputs]
    if names != [planned_graph.names[n] for n in planned_graph.inputs]:
        planned_graph = ApplyPasses(source, "Complete")
    entries = {planned_graph.names[n]: n.entries[0] for n in planned_graph.inputs}
    inputs = []
    for node, name in zip(source.inputs, names, strict=True):
        entry = entries[name]
        shape, declared = planned_graph.shape(entry), node.entries[0].shape
        inputs.append(ProgramInput(name, planned_graph.dtype(entry), declared or shape, shape))
    return tuple(inputs)
