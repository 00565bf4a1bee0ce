"""The selection problem: a graph of operators, patterns of them, and the gain of each pattern.

`cycles` finds those that chosen patterns, each of them as one node, make in the graph.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence, Set
from functools import cached_property

from attrs import frozen

from passkit.graph.components import connected_components

_Successors = dict[int, list[int]]


@frozen
class Pattern:
    """Operators that one kernel could compute.

    Attributes:
        members: the numbers of the operators.
        gain: the seconds that the kernel saves.
    """

    members: frozenset[int]
    gain: float


@frozen(eq=False, slots=False)
class Problem:
    """Patterns of a graph, in the order of their members, each of which could be chosen alone.

    Attributes:
        predecessors: for each operator, in a topological order, those that must run before it.
        patterns: the patterns.
    """

    predecessors: Sequence[Set[int]]
    patterns: Sequence[Pattern]

    def gain(self, chosen: Iterable[int]) -> float:
        """Return the seconds that patterns save together."""
        return sum(self.patterns[k].gain for k in chosen)

    @cached_property
    def overlaps(self) -> Sequence[Set[int]]:
        """For each pattern those that share an operator with it."""
        patterns_with: dict[int, set[int]] = {}
        for k, p in enumerate(self.patterns):
            for v in p.members:
                patterns_with.setdefault(v, set()).add(k)
        return [
            frozenset().union(*(patterns_with[v] for v in p.members)) - {k}
            for k, p in enumerate(self.patterns)
        ]


@frozen(eq=False)
class Selection:
    """A selection of patterns.

    Attributes:
        chosen: the numbers of the patterns.
        gain: the seconds that they save.
        bound: no selection saves more seconds than this.
        solver: the names of the solvers that chose them.
        rows: the number of constraints of all programs together, one for each operator that several
            patterns have.
        cuts: the number of constraints that cycles added.
    """

    chosen: tuple[int, ...]
    gain: float
    bound: float
    solver: str
    rows: int = 0
    cuts: int = 0

    @property
    def gap(self) -> float:
        """How much more another selection might gain, as a share of the bound."""
        return 0.0 if self.bound <= 0 else max(0.0, 1 - self.gain / self.bound)


def cycles(problem: Problem, chosen: Collection[int]) -> list[frozenset[int]]:
    """Return the patterns on a shortest cycle of each connected part of the graph that has one.

    There is none if the chosen patterns can all be kernels. Not all patterns of such a cycle can be
    chosen, whatever else is: it remains a cycle, as chosen patterns are disjoint.
    """
    successors = _contracted(problem, chosen)
    left = _on_cycles(successors)
    edges = ((u, v) for u in left for v in successors[u])
    components = connected_components([u for u in successors if u in left], edges)
    return [_shortest_cycle(successors, component) for component in components]


def _contracted(problem: Problem, chosen: Iterable[int]) -> _Successors:
    """Return the successors of each node: pattern k is node -1 - k, an operator its number."""
    node_of = list(range(len(problem.predecessors)))
    for k in sorted(chosen):
        for v in problem.patterns[k].members:
            node_of[v] = -1 - k
    successors: dict[int, dict[int, None]] = {u: {} for u in node_of}
    for v, before in enumerate(problem.predecessors):
        for n in sorted(before):
            if node_of[n] != node_of[v]:
                successors[node_of[n]][node_of[v]] = None
    return {u: list(after) for u, after in successors.items()}


def _on_cycles(successors: _Successors) -> set[int]:
    """Return the nodes on cycles, or on paths between these: the others are removed, ends first."""
    predecessors: _Successors = {u: [] for u in successors}
    for u, after in successors.items():
        for v in after:
            predecessors[v].append(u)
    left = set(successors)
    for edges in (successors, predecessors):
        waiting = Counter(v for u in left for v in edges[u])
        todo = [u for u in left if not waiting[u]]
        while todo:
            u = todo.pop()
            left.discard(u)
            for v in edges[u]:
                waiting[v] -= 1
                if not waiting[v] and v in left:
                    todo.append(v)
    return left


def _shortest_cycle(successors: _Successors, component: Collection[int]) -> frozenset[int]:
    """Return the patterns on a cycle through as few nodes as any in a component."""
    best, inside = list[int](), set(component)
    for start in sorted((u for u in component if u < 0), reverse=True):
        previous: dict[int, int] = {}
        todo = deque([start])
        while todo and start not in previous:
            node = todo.popleft()
            for after in successors[node]:
                if after in inside and after not in previous:
                    previous[after] = node
                    todo.append(after)
        if start not in previous:
            continue
        cycle, node = [start], previous[start]
        while node != start:
            cycle.append(node)
            node = previous[node]
        if not best or len(cycle) < len(best):
            best = cycle
    return frozenset(-1 - u for u in best if u < 0)
