"""Selections without a solver: the largest gain first."""

from __future__ import annotations

from collections.abc import Iterable

from passkit.fusion.selection.problem import Problem, Selection
from passkit.graph.merge_graph import MergeGraph


def greedy(problem: Problem) -> Selection:
    """Return patterns in the order of their gain, as long as they are disjoint and make no cycle.

    No pattern that is left out gains more than those that it overlaps, as these came before it.
    """
    vertices, taken = MergeGraph(problem.predecessors), set[int]()
    chosen: set[int] = set()
    order = sorted(range(len(problem.patterns)), key=lambda k: (-problem.patterns[k].gain, k))
    for k in order:
        members = problem.patterns[k].members
        if taken.isdisjoint(members) and vertices.can_merge(members):
            vertices.merge(members)
            taken |= members
            chosen.add(k)
    return selection(problem, chosen, "greedy")


def selection(problem: Problem, chosen: Iterable[int], solver: str) -> Selection:
    """Return the selection of some patterns, with a bound that holds for any selection.

    An operator gains at most the largest equal part of the gain of a pattern that it has.

    Args:
        problem: the patterns.
        chosen: the numbers of some.
        solver: who chose them.
    """
    parts: dict[int, float] = {}
    for p in problem.patterns:
        for v in p.members:
            parts[v] = max(parts.get(v, 0.0), p.gain / len(p.members))
    numbers = tuple(sorted(chosen))
    return Selection(numbers, problem.gain(numbers), sum(parts[v] for v in sorted(parts)), solver)
