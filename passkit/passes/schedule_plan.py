"""SchedulePlan: how each group runs, as data that CodeGen obeys."""

from __future__ import annotations

from passkit.errors import ScheduleError
from passkit.graph import Annotation, Graph
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.schedule import plan_group
from passkit.space import Infeasible


@register_pass("SchedulePlan", depends=("subgraph",), provides=("schedule",), target_dependent=True)
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
        plans[node] = plan
    return graph.with_attrs(schedule=Annotation("schedule", plans))
