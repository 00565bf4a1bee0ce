"""Cycles in an acyclic graph of which each chosen pattern is contracted to one node."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping

from passkit.fusion.selection.problem import Problem

_Successors = dict[int, list[int]]


def cycles(problem: Problem, chosen: Collection[int]) -> list[frozenset[int]]:
    """Return the patterns on a shortest cycle of each strongly connected component.

    There is none if the chosen patterns can all be kernels. Not all patterns of such a cycle can be
    chosen, whatever else is: it remains a cycle, as chosen patterns are disjoint.
    """
    successors = _contracted(problem, chosen)
    return [_shortest_cycle(successors, component) for component in _components(successors)]


def closes(problem: Problem, owner: Mapping[int, int], k: int) -> bool:
    """Return whether pattern ``k`` would be on a cycle with chosen ones, which make none alone.

    Only operators before the last one of all patterns are visited: later ones lead back to none of
    them.

    Args:
        problem: the patterns.
        owner: the chosen pattern of each operator that is in one.
        k: another pattern.
    """
    members, successors = problem.patterns[k].members, problem.successors
    last = max(*owner, *members)
    todo = [a for v in members for a in successors[v] if a not in members and a <= last]
    seen = set(todo)
    while todo:
        v = todo.pop()
        inside = problem.patterns[owner[v]].members if v in owner else (v,)
        seen.update(inside)
        for a in (a for u in inside for a in successors[u]):
            if a in members:
                return True
            if a <= last and a not in seen:
                seen.add(a)
                todo.append(a)
    return False


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


def _components(successors: _Successors) -> Iterator[set[int]]:
    """Yield the strongly connected components of several nodes.

    Source: R. Tarjan, Depth-First Search and Linear Graph Algorithms, 1972.
    """
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    waiting: set[int] = set()
    for first in successors:
        if first in index:
            continue
        work = [(first, iter(successors[first]))]
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
                    work.append((after, iter(successors[after])))
                    break
                if after in waiting:
                    low[node] = min(low[node], index[after])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = set(stack[stack.index(node) :])
                    del stack[-len(component) :]
                    waiting -= component
                    if len(component) > 1:
                        yield component


def _shortest_cycle(successors: _Successors, component: set[int]) -> frozenset[int]:
    """Return the patterns on a cycle through as few nodes as any in a component."""
    best: list[int] = []
    for start in sorted((u for u in component if u < 0), reverse=True):
        previous: dict[int, int] = {}
        todo = deque([start])
        while todo and start not in previous:
            node = todo.popleft()
            for after in successors[node]:
                if after in component and after not in previous:
                    previous[after] = node
                    todo.append(after)
        cycle, node = [start], previous[start]
        while node != start:
            cycle.append(node)
            node = previous[node]
        if not best or len(cycle) < len(best):
            best = cycle
    return frozenset(-1 - u for u in best if u < 0)
