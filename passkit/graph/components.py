"""Connected components of undirected graphs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

V = TypeVar("V", bound=Hashable)


def connected_components(vertices: Iterable[V], edges: Iterable[tuple[V, V]]) -> list[list[V]]:
    """Return the connected components, each and all of them in the order of ``vertices``.

    Edges with an end that is no vertex do not count.
    """
    root = {v: v for v in vertices}

    def find(v: V) -> V:
        """Return the vertex that stands for the component of one."""
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        return v

    for a, b in edges:
        if a in root and b in root:
            root[find(a)] = find(b)
    components: dict[V, list[V]] = {}
    for v in root:
        components.setdefault(find(v), []).append(v)
    return list(components.values())
