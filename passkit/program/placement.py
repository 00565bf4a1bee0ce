"""Plans for a device that is there: within its limits, and without kernels that it refuses."""

from __future__ import annotations

from passkit.errors import KernelRefusedError
from passkit.graph.graph import Graph
from passkit.passes.context import PassContext, current
from passkit.program.planning import finished, planned, prepared
from passkit.values.warning import warn_user


def placed(context: PassContext, graph: Graph) -> PassContext:
    """The context with its target as this machine's device wants it.

    A graph that has been planned keeps the target, and what nobody gave.
    """
    if "options" in graph.attrs:
        return context.inheriting(graph.attrs["options"])
    if not context.target.device:
        return context
    from passkit.runtime.device.runtimes import runtime_of

    settled = runtime_of(context.target).settled(context.target)
    return context.with_options(target=settled)


def planned_or_apart(graph: Graph) -> Graph:
    """The graph after the whole pipeline. A group whose kernel a device refuses runs unfused.

    A warning names each such group. Raises: KernelRefusedError for an operator by itself.
    """
    context = current() or PassContext()
    if not context.target.device:
        return planned(graph)
    fused = "subgraph" in graph.attrs
    before = graph if fused else prepared(graph)
    alone: tuple[str, ...] = ()
    while True:
        try:
            with context.with_options(no_fuse=(*context.no_fuse, *alone)):
                return planned(graph) if fused else finished(before)
        except KernelRefusedError as error:
            if len(error.nodes) < 2 or set(error.nodes) <= set(alone) or fused:
                raise
            alone += error.nodes
            warn_user(
                f"group {error.group} ({', '.join(error.nodes)}) runs unfused, because "
                f"{str(error).split(chr(10), 1)[0].rstrip(':')}"
            )
