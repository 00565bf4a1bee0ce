"""The Fusion pass: ask a strategy for a fusion plan, and contract each group to one node."""

from __future__ import annotations

from collections.abc import Mapping

from passkit.analysis.group import FUSED, Group
from passkit.diagnostics import Diagnostic
from passkit.errors import PassError
from passkit.fusion.check_plan import fusion_plan_of
from passkit.fusion.contract import contract, flatten, without_views
from passkit.fusion.joins import with_joins
from passkit.fusion.pack import pack
from passkit.fusion.phases import with_phases
from passkit.fusion.strategy import find_fusion
from passkit.graph.graph import Annotation, Graph
from passkit.graph.node import Node
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.passes.expand import NONE, composites_left
from passkit.passes.fusion_hints import check_hint_names
from passkit.planner.plan import outline_group


@register_pass(
    "Fusion",
    depends=("functional", "expanded", "complete", "shape", "dtype"),
    provides=("subgraph", "fusion_log", "selection"),
    preserves=("shape_guards",),
    changes_graph=True,
    target_dependent=True,
)
def fusion(graph: Graph, context: PassContext) -> Graph:
    """Replace groups of operators by fused nodes, whose body is the group's own graph.

    Every operator that has code becomes part of a fused node, if only by itself; composites have
    been expanded. The fused nodes of a fused graph are replaced by their operators first.

    a -> exp -> add -> y    becomes    a -> fused{exp, add} -> y

    Raises: PassError for what is no fusion plan, for a group of several operators without a
    schedule, and for a graph whose composites were expanded for another strategy.
    """
    if graph.attrs["expanded"] not in (NONE, composites_left(context)):
        raise PassError(
            f"Fusion is to plan by {context.fusion!r}, and the graph was expanded but for "
            f"{graph.attrs['expanded']}; start from the graph as it was before Expand"
        )
    if any(n.op is FUSED for n in graph.nodes):
        graph = flatten(graph)
    check_hint_names(graph, context)
    fusion_plan = fusion_plan_of(graph, find_fusion(context.fusion), context)
    fusion_plan = without_views(graph, fusion_plan)
    fused, log = contract(graph, fusion_plan), fusion_plan.log
    if context.keep_together:
        fused = with_phases(fused, context)
    if context.target.has_maps_only:
        fused, log = with_joins(fused, context, log)
    if fusion_plan.packs:
        fused, log = pack(fused, context, log)
    groups = {n: n.params["body"] for n in fused.nodes if n.op is FUSED}
    _check_schedules(groups, context)
    return fused.with_attrs(
        subgraph=Annotation("subgraph", groups),
        fusion_log=tuple(log),
        selection=fusion_plan.selection,
        shape_guards=graph.attrs.get("shape_guards", ()),
    )


def _check_schedules(groups: Mapping[Node, Group], context: PassContext) -> None:
    """Assert that the target has a schedule for each group of several operators.

    Strategies test that for groups that they choose (`Legality`, level FULL); and clusters of one
    iteration domain have one.

    Raises: PassError if one has none.
    """
    for node, group in groups.items():
        if len(group.ops) > 1:
            schedule = outline_group(group, context.target)
            if isinstance(schedule, Diagnostic):
                raise PassError(
                    f"{node.where}: fusion strategy {context.fusion!r} made {group}, which has no "
                    f"schedule on target {context.target.name}: {schedule}; name one of its "
                    f"operators in no_fuse"
                )
