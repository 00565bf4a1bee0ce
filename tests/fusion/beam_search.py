"""Selections of random patterns: problems, and a solver that exact ones are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from passkit.fusion.selection.exact import selection
from passkit.fusion.selection.problem import Pattern, Problem, Selection, cycles
from passkit.graph.merge_graph import MergeGraph

WIDTH = 3
"""The number of selections that the search keeps."""


def beam(problem: Problem, width: int = WIDTH) -> Selection:
    """Return the best selection of a search that keeps the ``width`` best ones."""
    choices: list[tuple[int, ...]] = [()]
    for k, pattern in enumerate(problem.patterns):
        for chosen in list(choices):
            taken = {v for j in chosen for v in problem.patterns[j].members}
            if taken.isdisjoint(pattern.members) and not cycles(problem, (*chosen, k)):
                choices.append((*chosen, k))
        choices = sorted(choices, key=lambda c: (-problem.gain(c), c))[:width]
    return selection(problem, choices[0], "beam")


def problem_of(predecessors: Sequence[Set[int]], patterns: Iterable[Pattern]) -> Problem:
    """Return the problem of those patterns that gain something and can be merged, each once.

    Args:
        predecessors: for each operator, in a topological order, those that must run before it.
        patterns: the patterns; of equal ones that with the largest gain counts.
    """
    graph = MergeGraph(predecessors)
    best: dict[frozenset[int], Pattern] = {}
    for p in patterns:
        other = best.get(p.members)
        if p.gain > 0 and len(p.members) > 1 and (other is None or other.gain < p.gain):
            best[p.members] = p
    legal = [p for p in best.values() if graph.can_merge(p.members)]
    return Problem(predecessors, sorted(legal, key=lambda p: sorted(p.members)))
