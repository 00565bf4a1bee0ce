"""Closing: some nodes of a graph as a group, whose variables are what they read."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FContract, FReduce, FScan
from passkit.plan.group import Group, Kind
from passkit.space.space import is_free
from passkit.values.size import numel


def make_group(
    graph: Graph, body: Sequence[Node], reads: Sequence[Entry], outputs: Sequence[Entry]
) -> tuple[Group, list[Entry]]:
    """A closed group and what feeds its variables; ``reads`` become those, literals come along."""
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


def reads_of_part(graph: Graph, nodes: Collection[Node]) -> list[Entry]:
    """What nodes read from outside, once each, without literals."""
    inside = set(nodes)
    found = dict.fromkeys(e for n in nodes for e in n.inputs if e.node not in inside)
    return [e for e in found if not is_literal(graph, e)]


def results_of_part(graph: Graph, nodes: Collection[Node]) -> list[Entry]:
    """What of nodes others read, or the caller."""
    inside, heads = set(nodes), set(graph.heads)
    return [
        e
        for n in nodes
        for e in n.entries
        if e in heads or any(u not in inside for u in graph.users.get(e, ()))
    ]


def kind_of(body: Sequence[Node]) -> Kind:
    """The kind of a group of nodes: by its products, else by its folds and scans."""
    names = [n.op.name for n in body if n.op is not None]
    if any(FContract.get(n) for n in names):
        return Kind.GEMM
    folds = any(FReduce.get(n) or FScan.get(n) for n in names)
    return Kind.REDUCTION if folds else Kind.ELEMWISE


def is_literal(graph: Graph, entry: Entry) -> bool:
    """Whether a value is a constant of one element, which kernels have in their text."""
    node = entry.node
    return is_free(node) and not node.is_variable and numel(graph.shape(entry)) == 1
