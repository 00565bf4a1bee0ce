"""A solver that exact selections are compared with: a beam search along the graph."""

from __future__ import annotations

from passkit.fusion.selection.cycles import closes
from passkit.fusion.selection.greedy import selection
from passkit.fusion.selection.problem import Problem, Selection

WIDTH = 3
"""The number of selections that the search keeps."""


def beam(problem: Problem, width: int = WIDTH) -> Selection:
    """Return the best selection of a search that keeps the ``width`` best ones."""
    choices: list[tuple[int, ...]] = [()]
    for k, pattern in enumerate(problem.patterns):
        for chosen in list(choices):
            owner = problem.owner(chosen)
            if owner.keys().isdisjoint(pattern.members) and not closes(problem, owner, k):
                choices.append((*chosen, k))
        choices = sorted(choices, key=lambda c: (-problem.gain(c), c))[:width]
    return selection(problem, choices[0], "beam")
