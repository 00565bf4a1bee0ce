"""The strategy "stitch", the default: greedy groups, joined where that gains, small ones packed.

Large values of small operands are computed again where that is cheaper than to store them.
"""

from __future__ import annotations

from attrs import evolve

from passkit.graph.graph import Graph
from passkit.passes.context import PassContext, evaluator_of
from passkit.passes.fusion.greedy import greedy
from passkit.passes.fusion.partition import Partition
from passkit.passes.fusion.pricing import comparing, priced
from passkit.passes.fusion.recompute import recomputed
from passkit.passes.fusion.select import selected
from passkit.passes.fusion.stitched import with_stitched
from passkit.plan.strategy import register_fusion


@register_fusion("stitch", library_patterns=True)
def stitch(graph: Graph, context: PassContext) -> Partition:
    """Groups of one iteration space each, then of several where the cost model gains by it."""
    partition = with_stitched(graph, greedy(graph, context), context)
    known, target = evaluator_of(context), context.target
    prices = priced(known, target), comparing(known, target)
    partition, chosen = selected(graph, partition, context, *prices)
    partition, chosen = recomputed(graph, partition, context, prices[0], chosen)
    return evolve(partition, selection=chosen, packs=True)
