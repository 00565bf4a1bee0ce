"""Plan and run executables on a device: within its limits, without kernels that it refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from passkit.errors import KernelRefusedError
from passkit.graph.graph import Graph
from passkit.passes.context import PassContext
from passkit.program.binder import Binder, CallShapes
from passkit.program.planning import planned, run_from_fusion, run_until_fusion
from passkit.runtime.device.bound_program import BoundProgram
from passkit.runtime.device.program import DeviceProgram
from passkit.runtime.device.runtimes import runtime_of
from passkit.runtime.native.feeds import InputSpec
from passkit.runtime.program import RuntimeProgram
from passkit.runtime.state import State
from passkit.values.warning import warn_user


def with_device_limits(context: PassContext) -> PassContext:
    """Return the context with its target as this machine's device defines it.

    Raises: DeviceError if there is no such device, MissingDependencyError if a package that it
    needs is not installed.
    """
    target = runtime_of(context.target).adapt_target(context.target)
    return context.with_options(target=target)


def plan_for_device(graph: Graph, context: PassContext) -> Graph:
    """Return the graph after the entire pipeline for the device of the context's target.

    Groups whose kernel the device refuses run unfused; a warning names each of them.

    Raises: KernelRefusedError if the device refuses the kernel of a single operator, or of a graph
    that was fused before; DeviceError if there is no such device; MissingDependencyError if a
    package that it needs is not installed; and what the passes raise.
    """
    is_fused = "subgraph" in graph.attrs
    before_fusion = graph if is_fused else run_until_fusion(graph)
    unfused: tuple[str, ...] = ()
    while True:
        try:
            with context.with_options(no_fuse=(*context.no_fuse, *unfused)):
                return planned(graph) if is_fused else run_from_fusion(before_fusion)
        except KernelRefusedError as error:
            if len(error.nodes) < 2 or set(error.nodes) <= set(unfused) or is_fused:
                raise
            unfused += error.nodes
            reason = str(error).split("\n", 1)[0].rstrip(":")
            warn_user(
                f"group {error.group} ({', '.join(error.nodes)}) runs unfused, because {reason}"
            )


class DeviceBinder(Binder):
    """Binds a program to the shapes of calls, on the device of its target."""

    on_device = True

    def __init__(
        self,
        program: RuntimeProgram,
        specialize: Callable[[CallShapes], RuntimeProgram],
        state: State,
    ) -> None:
        super().__init__(program.table, specialize, state)
        self.program = program
        self.runtime = runtime_of(program.target)

    def runner(self, inputs: Sequence[InputSpec], unread: tuple[str, ...]) -> DeviceProgram:
        """Return the callable that checks feeds and runs the program, for any fitting shapes.

        Args:
            inputs: the inputs' names, shapes and dtypes.
            unread: names of inputs that the program does not read; feeds of them are only checked.
        """
        runtime = self.runtime
        return DeviceProgram(
            inputs,
            self.bind,
            runtime.kernel_stats,
            runtime.find_array,
            runtime.allocate_array,
            unread,
            runtime.array_type,
        )

    def bind(self, shapes: CallShapes) -> BoundProgram:
        """Return the program with a number for every size, as the device runs it.

        The shapes and the values of their sizes are kept in ``last_shapes`` and ``last_sizes``.

        Raises: FeedError if a shape does not fit its input; ShapeError if an extent divides by
        zero; what ``specialize`` raises for shapes that break a guard; DeviceError if the device
        fails.
        """
        specialized, sizes = self.fit(shapes)
        self.last_shapes, self.last_sizes = shapes, sizes
        program = self.program if specialized is None else specialized
        return self.runtime.bind_program(program, sizes, self.state)
