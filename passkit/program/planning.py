"""The ladder: the passes of a compilation, and a graph taken up it as far as asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from passkit.errors import PassError, nearest
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes.apply import ApplyPasses
from passkit.passes.context import PassContext, current

LADDER = (
    "Functionalize",
    "Expand",
    "Simplify",
    "Wholes",
    "SumProducts",
    "SplitReduce",
    "Fusion",
    "SchedulePlan",
    "SharedMemPlan",
    "CodeGen",
    "RTCGen",
    "PlanMemory",
)
"""The passes of a compilation, in order; analyses are run in between where they are needed."""

PROVIDES = {
    "Fusion": "subgraph",
    "SchedulePlan": "schedule",
    "SharedMemPlan": "shared",
    "CodeGen": "kernel",
    "RTCGen": "rtc",
    "PlanMemory": "storage",
}
"""What a pass leaves behind, by which a graph shows how far up it is."""


def planned(graph: Graph, last: str = LADDER[-1], **options: Any) -> Graph:
    """The graph after the passes of the ladder up to ``last``.

    Those that it has been through are not repeated, those that the context disables are skipped.
    Before RTCGen nothing is compiled, so no device of the target is needed. ``options`` are those
    of `PassContext`.

    Raises: PassError when ``last`` is not a pass of the ladder.
    """
    if last not in LADDER:
        raise PassError(f"{last!r} is not a pass of the ladder; {nearest(last, LADDER)}")
    context = current() or PassContext()
    skipped = {*context.disabled, *options.get("disabled", ())} - set(PROVIDES)
    done = [LADDER.index(p) for p, what in PROVIDES.items() if what in graph.attrs]
    passes = LADDER[max(done, default=-1) + 1 : LADDER.index(last) + 1]
    return ApplyPasses(graph, [p for p in passes if p not in skipped], **options)


def with_shapes(graph: Graph, shapes: Mapping[str, tuple[int, ...]]) -> Graph:
    """The graph with other shapes for some of its inputs; everything else is inferred anew."""
    from passkit.runtime.feeds import bind_sizes
    from passkit.runtime.interpret import numbers

    declared = [(graph.names[n], n.entries[0].shape) for n in graph.inputs]
    sizes = bind_sizes((name, s, shapes[name]) for name, s in declared if name in shapes)

    def change(node: Node, inputs: tuple[Entry, ...]) -> tuple[Entry, ...] | None:
        if not node.is_variable:
            params = {k: numbers(v, sizes) for k, v in node.params.items()}
            if params == dict(node.params):
                return None
            return Node(node.op, inputs, params, node.name, node.control).entries
        if node.params.get("state") or graph.names[node] not in shapes:
            return None
        params = {**node.params, "shape": tuple(shapes[graph.names[node]])}
        return Node(None, (), params, graph.names[node]).entries

    return graph.rebuild(change)
