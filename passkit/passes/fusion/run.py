"""The Fusion pass: pick a strategy, check its partition, and contract each group to one node."""

from __future__ import annotations

from passkit.graph.graph import Annotation, Graph
from passkit.passes import hints
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext, evaluator_of
from passkit.passes.fusion.basic import basic
from passkit.passes.fusion.contract import contract
from passkit.passes.fusion.deep import deep
from passkit.passes.fusion.flatten import flatten
from passkit.passes.fusion.greedy import greedy
from passkit.passes.fusion.pack import pack
from passkit.passes.fusion.pairwise import pairwise, singles
from passkit.passes.fusion.phased import with_phases
from passkit.passes.fusion.pricing import comparing, priced
from passkit.passes.fusion.select import selected
from passkit.passes.fusion.stitched import with_stitched
from passkit.passes.fusion.views import without_views
from passkit.plan.group import FUSED

STRATEGIES = {"none": singles, "nnvm": pairwise, "xla": basic, "deep": deep, "stitch": greedy}
STITCHING = ("deep", "stitch")
"""Those that make groups of several iteration spaces."""


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
    been expanded. An already fused graph is opened first, so that the pass can be applied again.

    a -> exp -> add -> y    becomes    a -> fused{exp, add} -> y
    """
    if any(n.op is FUSED for n in graph.nodes):
        graph = flatten(graph)
    hints.check(graph, context)
    partition = STRATEGIES[context.fusion](graph, context)
    if context.fusion in STITCHING:
        partition = with_stitched(graph, partition, context)
    chosen = None
    if context.fusion == "stitch":
        known, target = evaluator_of(context), context.target
        prices = priced(known, target), comparing(known, target)
        partition, chosen = selected(graph, partition, context, *prices)
    partition = without_views(graph, partition)
    fused, log = contract(graph, partition), partition.log
    if context.keep_together:
        fused = with_phases(fused, context)
    if context.fusion == "stitch":
        fused, log = pack(fused, context, log)
    groups = {n: n.params["body"] for n in fused.nodes if n.op is FUSED}
    return fused.with_attrs(
        subgraph=Annotation("subgraph", groups),
        fusion_log=tuple(log),
        selection=chosen,
        shape_guards=graph.attrs.get("shape_guards", ()),
    )
