"""Parts closed: nodes of a stitched group as groups of their own."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from passkit.analysis.domain_info import analyze_domain_in_order
from passkit.analysis.extract import extract_group
from passkit.analysis.group import Group
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.quotient import live_ins


@lru_cache(maxsize=1024)
def extract_nest(
    graph: Graph, nodes: tuple[Node, ...], results: tuple[Node, ...]
) -> tuple[Group, tuple[Entry, ...]]:
    """A part as a group of its own, and what feeds it: the same for all ways to split it."""
    wanted = [n.entries[0] for n in results]
    part, feeds = extract_group(graph, nodes, live_ins(graph, nodes), wanted)
    return part, tuple(feeds)


def analyze_extracted(graph: Graph, nodes: Sequence[Node]) -> object:
    """The layout of some nodes with all results that nobody among them reads, and row values."""
    inside = set(nodes)
    read = {e for n in nodes for e in n.inputs}
    wanted = [
        n.entries[0]
        for n in nodes
        if n.entries[0] not in read
        or any(u not in inside for u in graph.users.get(n.entries[0], ()))
    ]
    group, _ = extract_group(graph, nodes, live_ins(graph, nodes), wanted)
    return analyze_domain_in_order(group.graph)
