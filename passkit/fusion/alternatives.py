"""Alternatives: patterns that a selection chose, or nearly did, beside plans of their clusters.

Only patterns whose kernel has several iteration domains: the cost model is accurate enough for
others. A tuner measures both, and the next selection uses the measurements.

Source: FusionStitching (2019), execution-based scores of complex patterns.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from passkit.analysis.group import Group
from passkit.analysis.single import as_plan
from passkit.fusion.cluster_groups import ClusterGroups
from passkit.fusion.contract import contract, extract, without_views
from passkit.fusion.explore import Candidate, Members
from passkit.fusion.fusible import why_opaque
from passkit.fusion.fusion_plan import FusionPlan
from passkit.fusion.options import FusionOptions
from passkit.fusion.score import costs_of
from passkit.fusion.seed import seed_plan
from passkit.fusion.select import Exploration, explored
from passkit.graph.graph import Graph
from passkit.planner.plan import outline_group
from passkit.planner.typical_sizes import typical
from passkit.schedule.schedule import Schedule
from passkit.target import Target


@frozen(eq=False)
class Alternative:
    """A group, and the plan of its clusters apart.

    Attributes:
        group: the group.
        apart: the plan in which its clusters are kernels of their own, with the same inputs.
        names: the names of its operators.
        seconds: the seconds of the clusters by the cost model.
        chosen: whether the present plan has the group.
    """

    group: Group
    apart: Graph
    names: tuple[str, ...]
    seconds: float
    chosen: bool


def alternatives(graph: Graph, context: FusionOptions, most: int) -> list[Alternative]:
    """Return patterns that take longest of those that are chosen, and the best that are not.

    Of each key there is at most one, as groups of one key are alike.

    Args:
        graph: the graph, as Fusion gets it.
        context: the target, the hints and the evaluator.
        most: how many there are at most of either kind.
    """
    fusion_plan, target = seed_plan(graph, context), context.target
    present = explored(graph, fusion_plan, context, costs_of(context))
    if present is None:
        return []
    by_key: dict[str, Alternative] = {}
    chosen = _selected(present)
    for members in sorted(chosen, key=lambda m: (-present.seconds(m), sorted(m))):
        if len(by_key) < most:
            _add(by_key, present, members, target, chosen=True)
    by_model = explored(graph, fusion_plan, context)
    if by_model is not None:
        limit = most + len(by_key)
        for members in _rejected(by_model, _selected(by_model)):
            if len(by_key) >= limit:
                break
            _add(by_key, by_model, members, target, chosen=False)
    return list(by_key.values())


def _selected(exploration: Exploration) -> set[Members]:
    """Return the members of the selected patterns."""
    return {exploration.problem.patterns[k].members for k in exploration.selection.chosen}


def _rejected(exploration: Exploration, chosen: set[Members]) -> Iterator[Members]:
    """Yield the patterns that are not chosen, those with the largest relative gain first."""

    def share(c: Candidate) -> float:
        """Return the gain as a share of the seconds that the clusters take apart."""
        return c.promise / c.apart if c.apart else 0.0

    left = [
        c
        for c in exploration.explorer.candidates.values()
        if c.members not in chosen and (c.problem is None or c.problem.code == "cost.transposed")
    ]
    return (c.members for c in sorted(left, key=lambda c: (-share(c), sorted(c.members))))


def _add(
    by_key: dict[str, Alternative],
    exploration: Exploration,
    members: Members,
    target: Target,
    chosen: bool,
) -> None:
    """Add a pattern if its kernel has several iteration domains, and none like it is there."""
    groups = exploration.groups
    group = typical(extract(groups.quotient, members)[0])
    if group is None or group.key in by_key:
        return
    plan = outline_group(group, target)
    if not isinstance(plan, Schedule) or plan.multi_nest is None:
        return
    names = tuple(groups.graph.names[n] for n in groups.quotient.nodes(members)[0])
    apart = _apart(groups, group, members, target)
    by_key[group.key] = Alternative(group, apart, names, exploration.seconds(members), chosen)


def _apart(groups: ClusterGroups, group: Group, members: Members, target: Target) -> Graph:
    """Return the plan in which the clusters of a group are kernels of their own."""
    node_of = {name: n for n, name in group.origin.items()}
    names, graph = groups.graph.names, group.graph
    fusion_plan = FusionPlan()
    for k in sorted(members):
        own, copies = (
            [node_of[names[n]] for n in nodes if names[n] in node_of]
            for nodes in groups.quotient.nodes([k])
        )
        if len(own) > 1 or why_opaque(graph, own[0], target) is None:
            fusion_plan.groups.append(own)
            fusion_plan.duplicated.append(copies)
    return as_plan(contract(graph, without_views(graph, fusion_plan)))
