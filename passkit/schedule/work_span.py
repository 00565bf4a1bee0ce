"""Work and span: the cost class of each value of a group, and its distance from the outputs.

The order in which values are recomputed for want of scratch memory depends on both. Source:
FusionStitching.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from passkit.analysis.accesses import accesses_of
from passkit.analysis.domain import reduced_axes_of
from passkit.analysis.recompute import is_expensive
from passkit.analysis.slots import Work
from passkit.ast import Var
from passkit.ast.folds import Contract
from passkit.graph.attribute_calls import contraction_of
from passkit.graph.graph import Graph
from passkit.graph.node import Node, known_shape
from passkit.values import dtype as dt


def work_of(node: Node) -> Work:
    """Return the cost class of an element of a node; scans are reductions."""
    if isinstance(contraction_of(node), Contract):
        return Work.DOT
    if reduced_axes_of(node) is not None:
        return Work.REDUCE
    if is_expensive(node):
        return Work.EXPENSIVE
    shape = known_shape(node.entries[0])
    index = _index(len(shape))
    extents = {v.name: n for v, n in zip(index, shape, strict=True)}
    return Work.FREE if accesses_of(node, index, extents).plain else Work.LIGHT


def spans(graph: Graph) -> Mapping[Node, int]:
    """Return for each node the length of the longest path from it to a node without readers."""
    lengths = dict.fromkeys(graph.nodes, 0)
    for node in reversed(graph.nodes):
        for e in node.inputs:
            lengths[e.node] = max(lengths[e.node], lengths[node] + 1)
    return lengths


@cache
def _index(rank: int) -> tuple[Var, ...]:
    """Return ``rank`` index variables."""
    return tuple(Var(f"i{k}", dt.int64) for k in range(rank))
