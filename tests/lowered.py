"""Groups that no strategy makes, for errors that no planned graph can cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import passkit as pk
from passkit.analysis.accesses import element_expr
from passkit.fusion.contract import contract
from passkit.fusion.fusion_plan import FusionPlan
from passkit.planner.plan import plan_group
from passkit.schedule.shared_plan import SharedPlan
from passkit.transforms.lower_group import lower
from tests.planned import plan, target


def lowered(group: pk.Group, schedule_of: str = "x: f32[4]; return exp(x)") -> Any:
    """Lower a group under the schedule of the only group of another graph, without scratch."""
    (schedule,) = plan(schedule_of, "SchedulePlan").attrs["schedule"].values()
    return lower(group, schedule, SharedPlan((), (), 0))


def element_of(node: pk.Node) -> Any:
    """Return the expression of an element of a node's result, for no operands and a scalar."""
    return element_expr(node, (), [])


def fused_by_hand(
    graph: pk.Graph,
    groups: Sequence[Sequence[pk.Node]],
    copies: Sequence[Sequence[pk.Node]] = (),
) -> pk.Graph:
    """Fuse a graph into groups of nodes that are not checked.

    ``copies`` are for each group the nodes that it computes besides, though others do, too.
    """
    partition = FusionPlan(groups=list(map(list, groups)), duplicated=list(map(list, copies)))
    fused = contract(graph, partition)
    bodies = {n: n.params["body"] for n in fused.nodes if n.op is not None}
    return fused.with_attrs(subgraph=pk.Annotation("subgraph", bodies))


def schedule_of(group: pk.Group) -> Any:
    """Plan a single group for the CPU, and return its schedule, or why it has none."""
    return plan_group(group, target())
