"""Groups from nodes of a graph: closed graphs, whose variables stand for what the nodes read."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.analysis.group import Group, Kind
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FContract, FReduce, FScan


def extract_group(
    graph: Graph, body: Sequence[Node], reads: Sequence[Entry], outputs: Sequence[Entry]
) -> tuple[Group, list[Entry]]:
    """Return the group of some nodes, and the values that feed its variables, in their order.

    Args:
        graph: the graph.
        body: the nodes, in post-order.
        reads: the values that they read from outside, which become variables. Literals among their
            inputs become part of the group.
        outputs: the results of the group.
    """
    new: dict[Entry, Entry] = {}
    origin: dict[Node, str] = {}
    feeds: dict[Node, Entry] = {}
    for entry in reads:
        params = {"shape": graph.shape(entry), "dtype": graph.dtype(entry)}
        node = Node(None, (), params, graph.names[entry.node])
        feeds[node] = entry
        new[entry] = node.entries[0]
    for node in body:
        inputs = []
        for e in node.inputs:
            if e not in new:
                new[e] = e  # a literal: constants have no inputs, so the node itself is shared
            inputs.append(new[e])
        copy = node.isolated(tuple(inputs))
        origin[copy] = graph.names[node]
        new.update(zip(node.entries, copy.entries, strict=True))
    closed = Graph([new[e] for e in outputs])
    return Group(closed, kind_of(body), origin), [feeds[n] for n in closed.inputs]


def kind_of(body: Sequence[Node]) -> Kind:
    """Return the kind of a group of nodes: by its products, else by its reductions and scans."""
    names = [n.op.name for n in body if n.op is not None]
    if any(FContract.get(n) for n in names):
        return Kind.GEMM
    reduces = any(FReduce.get(n) or FScan.get(n) for n in names)
    return Kind.REDUCTION if reduces else Kind.ELEMWISE
