"""SchedulePlan: how each group runs, as data that CodeGen obeys."""

from __future__ import annotations

from passkit.errors import ScheduleError
from passkit.graph import Annotation, Graph
from passkit.node import Node
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.planner import plan_group
from passkit.schedule import with_stream
from passkit.size import numel
from passkit.space import Infeasible
from passkit.target import Target


@register_pass(
    "SchedulePlan",
    depends=("subgraph", "shape", "dtype"),
    provides=("schedule",),
    target_dependent=True,
)
def schedule_plan(graph: Graph, context: PassContext) -> Graph:
    """Annotate each fused node with its `Schedule`.

    Raises: ScheduleError for a group that no schedule serves; Fusion makes none of those.
    """
    plans = {}
    for node, group in graph.attrs["subgraph"].items():
        plan = plan_group(group, context.target)
        if isinstance(plan, Infeasible):
            raise ScheduleError(
                f"{node.where}: {group} has no schedule on {context.target.name}: {plan.reason}; "
                f"name one of its operators in no_fuse"
            )
        plans[node] = with_stream(plan, streamed(graph, node, context.target), context.target)
    return graph.with_attrs(schedule=Annotation("schedule", plans))


def streamed(graph: Graph, node: Node, target: Target) -> tuple[int, ...]:
    """The outputs of a fused node that are only results, and together exceed `stream_bytes`."""
    found, total = [], 0
    results = set(graph.outputs)
    for k, entry in enumerate(node.entries):
        size = numel(graph.shape(entry))
        if entry in results and entry not in graph.users and isinstance(size, int):
            found.append(k)
            total += size * graph.dtype(entry).nbytes
    return tuple(found) if total >= target.stream_bytes else ()
