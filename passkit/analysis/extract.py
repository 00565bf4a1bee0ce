"""Extraction: nodes of a graph as a group, with a variable for each value that the nodes read."""

from __future__ import annotations

from collections.abc import Container, Sequence
from functools import lru_cache

from passkit.analysis.group import Group, Kind
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FContract, FReduce, FScan
from passkit.graph.quotient import live_ins


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


@lru_cache(maxsize=1024)
def extract_nest(
    graph: Graph, nodes: tuple[Node, ...], results: tuple[Node, ...]
) -> tuple[Group, tuple[Entry, ...]]:
    """Return the group of the nodes of a loop nest, and the values that feed its variables.

    It does not depend on tiles, so all tilings share it.

    Args:
        graph: the graph.
        nodes: the nodes, in post-order.
        results: those whose first outputs are the results of the group.
    """
    outputs = [n.entries[0] for n in results]
    group, feeds = extract_group(graph, nodes, live_ins(graph, nodes), outputs)
    return group, tuple(feeds)


def outputs_of(graph: Graph, nodes: Sequence[Node], inside: Container[Node]) -> list[Entry]:
    """Return the first outputs of nodes that none of them reads, or that are read outside.

    ``inside`` has the nodes that do not count as outside.
    """
    read = {e for n in nodes for e in n.inputs}
    return [
        e
        for n in nodes
        for e in n.entries[:1]
        if e not in read or any(u not in inside for u in graph.users.get(e, ()))
    ]
