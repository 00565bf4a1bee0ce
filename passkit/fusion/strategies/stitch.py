"""The strategy "stitch", the default: seed groups, merged if that gains, small ones packed.

Large values of small operands are computed again if that is cheaper than to store them.
"""

from __future__ import annotations

from attrs import evolve

from passkit.fusion.fusion_plan import FusionPlan
from passkit.fusion.options import FusionOptions
from passkit.fusion.recompute import recomputed
from passkit.fusion.score import costs_of
from passkit.fusion.seed import seed_plan
from passkit.fusion.select import selected
from passkit.fusion.strategy import register_fusion
from passkit.graph.graph import Graph


@register_fusion("stitch", library_patterns=True)
def stitch(graph: Graph, context: FusionOptions) -> FusionPlan:
    """Groups of one iteration domain each, then of several if that is faster by the cost model."""
    costs = costs_of(context)
    fusion_plan, report = selected(graph, seed_plan(graph, context), context, costs)
    if report is not None:
        fusion_plan, report = recomputed(graph, fusion_plan, context, costs, report)
    return evolve(fusion_plan, selection=report, packs=True)
