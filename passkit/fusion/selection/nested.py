"""Families of patterns, each of which lies within another or apart from it: solved exactly."""

from __future__ import annotations

from collections.abc import Collection

from passkit.fusion.selection.problem import Problem


def is_nested(problem: Problem, family: Collection[int]) -> bool:
    """Return whether of any two patterns that share an operator one has all of the other."""
    overlaps = problem.overlaps
    members = [p.members for p in problem.patterns]
    return all(
        members[k] <= members[j] or members[j] <= members[k] for k in family for j in overlaps[k]
    )


def nested(problem: Problem, family: Collection[int]) -> set[int]:
    """Return the disjoint patterns of a nested family that gain most.

    A pattern is compared with the best ones inside it; if both gain the same it is chosen.
    """
    members = [p.members for p in problem.patterns]
    best: dict[int, tuple[float, set[int]]] = {}
    tops: list[int] = []
    for k in sorted(family, key=lambda k: (len(members[k]), k)):
        inside = [j for j in tops if members[j] <= members[k]]
        gain = sum(best[j][0] for j in inside)
        own = problem.patterns[k].gain
        chosen = {i for j in inside for i in best[j][1]}
        best[k] = (own, {k}) if own >= gain else (gain, chosen)
        tops = [j for j in tops if j not in inside] + [k]
    return {i for j in tops for i in best[j][1]}
