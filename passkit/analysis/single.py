"""Nodes of a plan as programs by themselves: to measure one, or to find the one that is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.analysis.group import FUSED
from passkit.graph.graph import Annotation, Graph
from passkit.graph.node import Entry, Node, var
from passkit.values.dtype import bool_
from passkit.values.size import Size, symbols_of


def as_plan(graph: Graph) -> Graph:
    """A graph of fused nodes as the plan that Fusion has made, which is left as it is."""
    bodies = {n: n.params["body"] for n in graph.nodes if n.op is FUSED}
    return graph.with_attrs(subgraph=Annotation("subgraph", bodies), fusion_log=(), shape_guards=())


def single_node_plan(node: Node, inputs: Sequence[Entry]) -> Graph:
    """The plan of one node that reads variables.

    In a whole program other inputs may tell a size that is only a part of an extent here, as the
    tiles of ``(n + 127) // 128`` rows. Each such size has a variable of shape (n, 0) of its own,
    which the node waits for: ``size_n``, after the others.
    """
    read = [e.shape or () for e in inputs]
    told = {str(d) for shape in read for d in shape if isinstance(d, Size)}
    needed = symbols_of([*read, *(e.shape for e in node.entries), *node.params.values()])
    if node.op is FUSED:
        needed |= node.params["body"].sizes
    tellers = [var(f"size_{n}", (Size.symbol(n), 0), bool_).node for n in sorted(needed - told)]
    return as_plan(Graph(node.replaced(inputs, tellers).entries))
