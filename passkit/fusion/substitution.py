"""Substitution patterns: the connected sets of clusters between some at which a graph is cut.

Clusters with equally many cuts above them make no cycle.
Source: FusionStitching (2019), Algorithm 1, with clusters before the first cut, which its listing
leaves open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from passkit.graph.components import connected_components

LARGEST = 64
"""The most clusters of a pattern; longer ones are cut in the order in which they run."""

Members = frozenset[int]


def substitution(
    predecessors: Sequence[Collection[int]], cuts: Collection[int]
) -> Iterator[Members]:
    """Yield the connected sets between cuts, divided into ones of at most `LARGEST`.

    Args:
        predecessors: for each cluster, in a topological order, those that must run before it.
        cuts: the clusters at which the graph is cut.
    """
    depth: list[int] = []
    for before in predecessors:
        depth.append(max((depth[n] + (n in cuts) for n in before), default=0))
    inside = [k for k in range(len(depth)) if k not in cuts]
    edges = ((k, n) for k in inside for n in predecessors[k] if depth[n] == depth[k])
    for component in connected_components(inside, edges):
        for first in range(0, len(component), LARGEST):
            members = component[first : first + LARGEST]
            if len(members) > 1:
                yield frozenset(members)
