"""The strategy "stitch", the default: greedy groups, merged if that gains, small ones packed.

Large values of small operands are computed again if that is cheaper than to store them.
"""

from __future__ import annotations

from attrs import evolve

from passkit.fusion.fusion_plan import FusionPlan
from passkit.fusion.keep_together import with_kept_together
from passkit.fusion.measured_score import comparing, priced
from passkit.fusion.recompute import recomputed
from passkit.fusion.seed import greedy
from passkit.fusion.select import selected
from passkit.fusion.strategy import register_fusion
from passkit.graph.graph import Graph
from passkit.passes.context import PassContext, evaluator_of


@register_fusion("stitch", library_patterns=True)
def stitch(graph: Graph, context: PassContext) -> FusionPlan:
    """Groups of one iteration domain each, then of several if that is faster by the cost model."""
    fusion_plan = with_kept_together(graph, greedy(graph, context), context)
    evaluator, target = evaluator_of(context), context.target
    seconds, compared = priced(evaluator, target), comparing(evaluator, target)
    fusion_plan, chosen = selected(graph, fusion_plan, context, seconds, compared)
    fusion_plan, chosen = recomputed(graph, fusion_plan, context, seconds, chosen)
    return evolve(fusion_plan, selection=chosen, packs=True)
