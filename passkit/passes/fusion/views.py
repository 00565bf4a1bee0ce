"""Views: groups that would only copy are no kernels, as their results are the memory they read."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.passes.fusion.partition import Partition
from passkit.plan.storage import identities
from passkit.space.space import is_free


def without_views(graph: Graph, partition: Partition) -> Partition:
    """The partition without groups of nothing but views, such as a reshape between two libraries.

    A view of an input that is a result of the graph stays a kernel: it is copied anyway, and all
    threads copy faster than one.
    """
    heads = {e.node for e in graph.heads}
    clones = partition.clones or [[] for _ in partition.groups]
    left = [
        (group, more)
        for group, more in zip(partition.groups, clones, strict=True)
        if more or not _is_view(group, heads)
    ]
    groups, kept = [g for g, _ in left], [c for _, c in left]
    return evolve(partition, groups=groups, clones=kept if partition.clones else partition.clones)


def _is_view(group: Sequence[Node], heads: set[Node]) -> bool:
    """Whether each node is its input's memory, and what is behind has no copy to make."""
    inside = set(group)
    if not all(identities(n) for n in group):
        return False
    sources = [e.node for n in group for e in n.inputs if e.node not in inside]
    return not (any(map(is_free, sources)) and inside & heads)
