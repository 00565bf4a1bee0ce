"""Cycles that chosen patterns make of a graph without any, by contracting each to one node."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator

from passkit.selection.problem import Problem

_Ways = dict[int, list[int]]


def cycles(problem: Problem, chosen: Collection[int]) -> list[frozenset[int]]:
    """The patterns on a shortest cycle of each knot; none where the chosen ones can all be kernels.

    Not all patterns of such a cycle can be chosen, whatever else is: it stays closed, as chosen
    patterns are disjoint.
    """
    ways = _contracted(problem, chosen)
    return [_shortest(ways, knot) for knot in _knots(ways)]


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
