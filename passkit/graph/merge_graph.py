"""Merge graphs: acyclic graphs whose vertices can be merged, with a topological order.

Source: D. J. Pearce, P. H. J. Kelly, A Dynamic Topological Sort Algorithm for Directed Acyclic
Graphs, 2007.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set


class MergeGraph:
    """An acyclic graph of numbered vertices, some of which can be merged into one.

    A vertex has the number of one of its original vertices. A topological order is kept valid under
    merges; questions about some vertices are answered from the part of the order that they span.

    Attributes:
        members: for each vertex the original vertices that were merged into it.
        vertex_of: for each original vertex the vertex that it is part of.
        predecessors: for each vertex those that must run before it.
        successors: for each vertex those that must run after it.
    """

    def __init__(self, predecessors: Sequence[Collection[int]]) -> None:
        """Make a vertex of each element.

        Args:
            predecessors: for each vertex, in a topological order, the vertices before it.
        """
        self.members = {v: [v] for v in range(len(predecessors))}
        self.vertex_of = list(self.members)
        self.predecessors = {v: set(before) for v, before in enumerate(predecessors)}
        self.successors: dict[int, set[int]] = {v: set() for v in self.members}
        for vertex, before in self.predecessors.items():
            for other in before:
                self.successors[other].add(vertex)
        self._order: list[int | None] = list(self.members)
        self._place = {v: v for v in self.members}

    @property
    def order(self) -> Iterator[int]:
        """Yield the vertices, each after its predecessors."""
        return (v for v in self._order if v is not None)

    def spans(self) -> dict[int, int]:
        """Return for each vertex the length of the longest path to one without successors."""
        spans: dict[int, int] = {}
        for vertex in reversed(list(self.order)):
            spans[vertex] = max((spans[v] + 1 for v in self.successors[vertex]), default=0)
        return spans

    def can_merge(self, vertices: Collection[int]) -> bool:
        """Return whether no path between two of ``vertices`` passes through another vertex.

        Paths are searched in both directions in turn, until one search has seen all of its own.
        """
        inside = set(vertices)
        walks = (self._walk(inside, edges) for edges in (self.successors, self.predecessors))
        return not any(map(any, zip(*walks, strict=False)))

    def are_independent(self, vertices: Collection[int]) -> bool:
        """Return whether no path leads from one of ``vertices`` to another."""
        inside = set(vertices)
        adjacent = any(not self.successors[v].isdisjoint(inside) for v in inside)
        return not adjacent and self.can_merge(inside)

    def between(self, vertices: Collection[int]) -> set[int]:
        """Return the vertices on paths between two of ``vertices``, without these themselves."""
        first = min(self._place[v] for v in vertices)
        last = max(self._place[v] for v in vertices)
        after = self._reachable(vertices, self.successors, lambda place: place < last)
        return after & self._reachable(vertices, self.predecessors, lambda place: place > first)

    def merge(self, vertices: Collection[int]) -> int:
        """Merge vertices into one; return its number, that of the first one in the order.

        Raises: ValueError if a path between two of them passes through another vertex.
        """
        after = self._after(vertices)
        if after is None:
            raise ValueError("vertices cannot be merged if a path between them passes others")
        places = sorted(self._place[v] for v in vertices)
        span = slice(places[0], places[-1] + 1)
        region = [v for v in self._order[span] if v is not None]
        first = next(v for v in region if v in vertices)
        before = [v for v in region if v not in vertices and v not in after]
        moved = [*before, first, *(v for v in region if v in after)]
        start = span.stop - len(moved)  # what is merged next comes behind as a rule
        self._order[span] = [*[None] * (start - span.start), *moved]
        self._place.update({v: start + k for k, v in enumerate(moved)})
        self._contract(first, [v for v in region if v in vertices and v != first])
        return first

    def set_predecessors(self, vertex: int, before: Set[int]) -> None:
        """Replace the vertices that must run before one; paths from all of them lead to it."""
        for other in self.predecessors[vertex] - before:
            self.successors[other].discard(vertex)
        for other in before:
            self.successors[other].add(vertex)
        self.predecessors[vertex] = set(before)

    def _contract(self, first: int, others: Collection[int]) -> None:
        """Give the edges and members of ``others`` to ``first``."""
        inside = {first, *others}
        for vertex in others:
            self.members[first] += self.members.pop(vertex)
            self.predecessors[first] |= self.predecessors.pop(vertex)
            self.successors[first] |= self.successors.pop(vertex)
            del self._place[vertex]
        self.predecessors[first] -= inside
        self.successors[first] -= inside
        for original in self.members[first]:
            self.vertex_of[original] = first
        for vertex in self.predecessors[first]:
            self.successors[vertex] = (self.successors[vertex] - inside) | {first}
        for vertex in self.successors[first]:
            self.predecessors[vertex] = (self.predecessors[vertex] - inside) | {first}

    def _reachable(
        self,
        vertices: Collection[int],
        edges: Mapping[int, Set[int]],
        is_near: Callable[[int], bool],
    ) -> set[int]:
        """Return what ``edges`` lead to from ``vertices`` through places that are near."""
        inside, reached = set(vertices), set[int]()
        todo = [w for v in inside for w in edges[v]]
        while todo:
            vertex = todo.pop()
            if vertex not in inside and vertex not in reached and is_near(self._place[vertex]):
                reached.add(vertex)
                todo += edges[vertex]
        return reached

    def _walk(self, inside: Set[int], edges: Mapping[int, Set[int]]) -> Iterator[bool]:
        """Yield for each edge on a way from ``inside`` whether it returns there from outside."""
        places = [self._place[v] for v in inside]
        first, last = min(places), max(places)
        reached, path = set[int](), [(False, iter(edges[v])) for v in inside]
        while path:
            is_outside, rest = path[-1]
            vertex = next(rest, None)
            if vertex is None:
                path.pop()
            elif vertex in inside:
                yield is_outside
            else:
                yield False
                if vertex not in reached and first < self._place[vertex] < last:
                    reached.add(vertex)
                    path.append((True, iter(edges[vertex])))

    def _after(self, vertices: Collection[int]) -> set[int] | None:
        """Return the vertices that follow some of ``vertices`` before the last of them.

        None if an edge leads from one of those back to ``vertices``.
        """
        inside = set(vertices)
        last = max(self._place[v] for v in inside)
        todo = [w for v in inside for w in self.successors[v] if w not in inside]
        reached: set[int] = set()
        while todo:
            vertex = todo.pop()
            if vertex in reached or self._place[vertex] > last:
                continue
            reached.add(vertex)
            for successor in self.successors[vertex]:
                if successor in inside:
                    return None
                todo.append(successor)
        return reached
