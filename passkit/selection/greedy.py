"""Selections without a solver: the largest gain first, and a beam along the graph."""

from __future__ import annotations

from collections.abc import Iterable

from passkit.selection.cycles import Choice, closes
from passkit.selection.problem import Problem, Selection
from passkit.selection.units import Units

SWAPS = 200
"""How many patterns are tried at most in place of those that they overlap."""
WIDTH = 3
"""How many selections a beam keeps."""


def greedy(problem: Problem) -> Selection:
    """Patterns by their gain, as long as they fit; then swaps of some for one that gains more."""
    units, taken = Units(problem.needs), set[int]()
    chosen: set[int] = set()
    order = sorted(range(len(problem.patterns)), key=lambda k: (-problem.patterns[k].gain, k))
    for k in order:
        members = problem.patterns[k].members
        if taken.isdisjoint(members) and units.can_join(members):
            units.join(members)
            taken |= members
            chosen.add(k)
    chosen = _swapped(problem, chosen, order)
    return selection(problem, chosen, "greedy")


def _swapped(problem: Problem, chosen: set[int], order: Iterable[int]) -> set[int]:
    overlaps, tried = problem.overlaps, 0
    for k in order:
        if k in chosen or tried == SWAPS:
            continue
        met = overlaps[k] & chosen
        if problem.patterns[k].gain > problem.gain(met):
            tried += 1
            others = chosen - met
            if not closes(problem, Choice.of(problem, others), k):
                chosen = others | {k}
    return chosen


def beam(problem: Problem, width: int = WIDTH) -> Selection:
    """Patterns from producers to consumers, of which some ``width`` best selections are kept."""
    kept = [Choice()]
    for k in range(len(problem.patterns)):
        more = [c.and_(problem, k) for c in kept]
        kept += [c for c in more if c is not None]
        kept = sorted(kept, key=lambda c: (-c.gain, c.patterns))[:width]
    return selection(problem, kept[0].patterns, "beam")


def selection(problem: Problem, chosen: Iterable[int], solver: str) -> Selection:
    """What somebody chose, with a bound that holds for any selection.

    Of the gain of a pattern each of its operators has an equal part.
    """
    parts: dict[int, float] = {}
    for p in problem.patterns:
        for v in p.members:
            parts[v] = max(parts.get(v, 0.0), p.gain / len(p.members))
    found = tuple(sorted(chosen))
    return Selection(found, problem.gain(found), sum(parts[v] for v in sorted(parts)), solver)
