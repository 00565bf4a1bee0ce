"""Plans of single nodes, by which one is measured, or a wrong one is found."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.analysis.group import FUSED
from passkit.graph.graph import Annotation, Graph
from passkit.graph.node import Entry, Node, var
from passkit.values.dtype import bool_
from passkit.values.size import Size, symbols_of


def as_plan(graph: Graph) -> Graph:
    """Return a graph of fused nodes as a plan: annotated so that Fusion leaves it as it is."""
    bodies = {n: n.params["body"] for n in graph.nodes if n.op is FUSED}
    return graph.with_attrs(subgraph=Annotation("subgraph", bodies), fusion_log=(), shape_guards=())


def single_node_plan(node: Node, inputs: Sequence[Entry]) -> Graph:
    """Return the plan of one node that reads variables.

    In a whole program the value of a symbolic size may be known from the shape of another input,
    while it is only part of an expression here, such as the tiles of ``(n + 127) // 128`` rows.
    Each such size has a variable ``size_n`` of shape (n, 0), on which the node has a control
    dependency.
    """
    shapes = [e.shape or () for e in inputs]
    known_sizes = {str(d) for shape in shapes for d in shape if isinstance(d, Size)}
    sizes = symbols_of([*shapes, *(e.shape for e in node.entries), *node.params.values()])
    if node.op is FUSED:
        sizes |= node.params["body"].sizes
    size_variables = [
        var(f"size_{n}", (Size.symbol(n), 0), bool_).node for n in sorted(sizes - known_sizes)
    ]
    return as_plan(Graph(node.replaced(inputs, size_variables).entries))
