"""Views: groups whose results are the memory that they read, which need no kernel."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.fusion.fusion_plan import FusionPlan
from passkit.graph.graph import Graph
from passkit.graph.node import Node, is_leaf
from passkit.graph.storage import identities


def without_views(graph: Graph, fusion_plan: FusionPlan) -> FusionPlan:
    """Return the plan without groups of nothing but views, as a reshape between two libraries.

    A view of an input that is a result of the graph stays a kernel: it is copied anyway, and
    several threads copy faster than one.
    """
    heads = {e.node for e in graph.heads}
    pairs = fusion_plan.pairs
    return fusion_plan.with_pairs(p for p in pairs if p[1] or not _is_view(p[0], heads))


def _is_view(group: Sequence[Node], heads: set[Node]) -> bool:
    """Return whether results of each node are its inputs' memory, and none has to be copied."""
    inside = set(group)
    if not all(identities(n) for n in group):
        return False
    sources = [e.node for n in group for e in n.inputs if e.node not in inside]
    return not (any(map(is_leaf, sources)) and inside & heads)
