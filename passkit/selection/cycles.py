"""Cycles that chosen patterns make of a graph without any, by contracting each to one node."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping

from attrs import frozen

from passkit.selection.problem import Problem

_Ways = dict[int, list[int]]


@frozen
class Choice:
    """Disjoint patterns that make no cycle: which of them each operator is in."""

    patterns: tuple[int, ...] = ()
    gain: float = 0.0
    owner: Mapping[int, int] = {}
    last: int = -1

    @classmethod
    def of(cls, problem: Problem, patterns: Iterable[int]) -> Choice:
        """Patterns of which that is known."""
        found = tuple(sorted(patterns))
        owner = {v: k for k in found for v in problem.patterns[k].members}
        return cls(found, problem.gain(found), owner, max(owner, default=-1))

    def and_(self, problem: Problem, k: int) -> Choice | None:
        """The choice with pattern ``k`` as well; None where it cannot be chosen as well."""
        members = problem.patterns[k].members
        if not self.owner.keys().isdisjoint(members) or closes(problem, self, k):
            return None
        return Choice(
            (*self.patterns, k), self.gain + problem.patterns[k].gain,
            {**self.owner, **dict.fromkeys(members, k)}, max(self.last, *members),
        )  # fmt: skip


def cycles(problem: Problem, chosen: Collection[int]) -> list[frozenset[int]]:
    """The patterns on a shortest cycle of each knot; none where the chosen ones can all be kernels.

    Not all patterns of such a cycle can be chosen, whatever else is: it stays closed, as chosen
    patterns are disjoint.
    """
    ways = _contracted(problem, chosen)
    return [_shortest(ways, knot) for knot in _knots(ways)]


def closes(problem: Problem, chosen: Choice, k: int) -> bool:
    """Whether pattern ``k`` would be on a cycle with chosen ones, which make none by themselves.

    Only what is near the pattern is looked at: what is behind the last operator of all patterns
    leads back to none of them.
    """
    members, patterns, users = problem.patterns[k].members, problem.patterns, problem.users
    last = max(chosen.last, *members)
    todo = [a for v in members for a in users[v] if a not in members and a <= last]
    seen = set(todo)
    while todo:
        v = todo.pop()
        owner = chosen.owner.get(v)
        inside = (v,) if owner is None else patterns[owner].members
        seen.update(inside)
        for a in (a for u in inside for a in users[u]):
            if a in members:
                return True
            if a <= last and a not in seen:
                seen.add(a)
                todo.append(a)
    return False


def _contracted(problem: Problem, chosen: Iterable[int]) -> _Ways:
    """From each node those that need it: pattern k is node -1 - k, an operator itself."""
    of = list(range(len(problem.needs)))
    for k in sorted(chosen):
        for v in problem.patterns[k].members:
            of[v] = -1 - k
    found: dict[int, dict[int, None]] = {u: {} for u in of}
    for v, needs in enumerate(problem.needs):
        for n in sorted(needs):
            if of[n] != of[v]:
                found[of[n]][of[v]] = None
    return {u: list(after) for u, after in found.items()}


def _knots(ways: _Ways) -> Iterator[set[int]]:
    """Sets of nodes that all lead to each other, of more than one. Source: R. Tarjan, 1972."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    waiting: set[int] = set()
    for first in ways:
        if first in index:
            continue
        work = [(first, iter(ways[first]))]
        index[first] = low[first] = len(index)
        stack.append(first)
        waiting.add(first)
        while work:
            node, rest = work[-1]
            for after in rest:
                if after not in index:
                    index[after] = low[after] = len(index)
                    stack.append(after)
                    waiting.add(after)
                    work.append((after, iter(ways[after])))
                    break
                if after in waiting:
                    low[node] = min(low[node], index[after])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    knot = set(stack[stack.index(node) :])
                    del stack[-len(knot) :]
                    waiting -= knot
                    if len(knot) > 1:
                        yield knot


def _shortest(ways: _Ways, knot: set[int]) -> frozenset[int]:
    """The patterns on a cycle in a knot that goes through as few nodes as any."""
    best: list[int] = []
    for start in sorted((u for u in knot if u < 0), reverse=True):
        came: dict[int, int] = {}
        todo = deque([start])
        while todo and start not in came:
            node = todo.popleft()
            for after in ways[node]:
                if after in knot and after not in came:
                    came[after] = node
                    todo.append(after)
        found, node = [start], came[start]
        while node != start:
            found.append(node)
            node = came[node]
        if not best or len(found) < len(best):
            best = found
    return frozenset(-1 - u for u in best if u < 0)
