"""Partitions of components that have too many patterns for one program.

Components are cut where the least gain is lost. The place of a cut depends on the patterns around
it, not on their position in a graph: equal layers are cut equally.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit.fusion.selection.problem import Problem

SHARE = 4
"""A part has at least this share of the patterns of a component: one in so many."""


def partition(problem: Problem, patterns: Sequence[int], most: int) -> list[list[int]]:
    """Return patterns in parts that share no operator; some patterns may be in none.

    Args:
        problem: the problem.
        patterns: the numbers of the patterns.
        most: the most patterns of a part.
    """
    parts: list[list[int]] = []
    todo = [sorted(patterns)]
    while todo:
        part = todo.pop()
        if len(part) > most and len({min(problem.patterns[k].members) for k in part}) == 1:
            # All of them share an operator.
            part = sorted(sorted(part, key=lambda k: -problem.patterns[k].gain)[:most])
        if len(part) <= most:
            parts.append(part)
            continue
        before, behind = _cut(problem, part)
        todo += [half for half in (behind, before) if half]
    return parts


def _cut(problem: Problem, part: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the patterns before an operator, and those from it on."""
    first = {k: min(problem.patterns[k].members) for k in part}
    last = {k: max(problem.patterns[k].members) for k in part}
    by_first, by_last = sorted(part, key=first.__getitem__), sorted(part, key=last.__getitem__)
    least = len(part) // SHARE
    begin = first[by_first[0]]
    middle = {first[k] for k in by_first[least : len(part) - least]} - {begin}
    places = sorted(middle or set(first.values()) - {begin})
    begun = ended = 0
    lost, best = 0.0, (float("inf"), places[0])
    for place in places:
        while begun < len(part) and first[by_first[begun]] < place:
            lost += problem.patterns[by_first[begun]].gain
            begun += 1
        while ended < len(part) and last[by_last[ended]] < place:
            lost -= problem.patterns[by_last[ended]].gain
            ended += 1
        best = min(best, (lost, place))
    place = best[1]
    return [k for k in part if last[k] < place], [k for k in part if first[k] >= place]
