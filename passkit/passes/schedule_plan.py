"""SchedulePlan: how each group runs, as data that CodeGen obeys."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from passkit.errors import ScheduleError
from passkit.graph import Annotation, Graph
from passkit.group import Group
from passkit.node import Entry, Node
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.planner import plan_group
from passkit.schedule import Schedule, with_stream
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
        plans[node] = _with_stream(graph, node, plan, context.target)
    return graph.with_attrs(schedule=Annotation("schedule", plans))


def _with_stream(graph: Graph, node: Node, plan: Schedule, target: Target) -> Schedule:
    """The schedule of a fused node with outputs streamed; packed parts decide each for itself."""
    group: Group = node.params["body"]
    outputs = streamed(graph, node.entries, target)
    if not plan.parts or not outputs:
        return with_stream(plan, outputs, target)
    parts = []
    for own, part in zip(plan.parts, group.parts, strict=True):
        results = [node.entries[o] for o in part.outputs]
        parts.append(with_stream(own, streamed(graph, results, target), target))
    return evolve(plan, parts=tuple(parts))


def streamed(graph: Graph, entries: Sequence[Entry], target: Target) -> tuple[int, ...]:
    """Which of a kernel's values are only results, and together exceed `stream_bytes`."""
    found, total = [], 0
    results = set(graph.outputs)
    for k, entry in enumerate(entries):
        size = numel(graph.shape(entry))
        if entry in results and entry not in graph.users and isinstance(size, int):
            found.append(k)
            total += size * graph.dtype(entry).nbytes
    return tuple(found) if total >= target.stream_bytes else ()
