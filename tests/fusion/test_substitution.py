"""Substitution patterns: the connected sets between cuts, which never wait for each other."""

from __future__ import annotations

import random

import pytest

from passkit.fusion.explore import LARGEST, substitution
from passkit.graph.components import connected_components
from passkit.graph.merge_graph import MergeGraph


def in_order(patterns: object) -> list[list[int]]:
    """Return patterns as lists, in order."""
    return sorted(sorted(p) for p in patterns)  # type: ignore[attr-defined]


CHAIN: list[set[int]] = [{0} if k == 1 else {k - 1} if k else set() for k in range(12)]


@pytest.mark.parametrize(
    "cuts, expected",
    [
        ({2, 9}, [[0, 1], [3, 4, 5, 6, 7, 8], [10, 11]]),
        ({2, 5, 9}, [[0, 1], [3, 4], [6, 7, 8], [10, 11]]),
        ({2, 5, 7, 9}, [[0, 1], [3, 4], [10, 11]]),
    ],
)
def test_what_lies_between_cuts(cuts: set[int], expected: list[list[int]]) -> None:
    """The more clusters cut, the smaller patterns are; nothing before the first cut is lost."""
    assert in_order(substitution(CHAIN, cuts)) == expected


def test_between_cuts_nothing_waits_for_itself() -> None:
    """2,000 random graphs: each pattern could be one kernel, and so could all of them at once."""
    draw = random.Random(0)
    for _ in range(2000):
        n = draw.randint(2, 14)
        needs = [set(draw.sample(range(k), min(k, draw.randint(0, 2)))) for k in range(n)]
        for share in (0.0, 0.2, 0.4):
            cuts = {k for k in range(n) if draw.random() < share}
            graph = MergeGraph(needs)
            for pattern in substitution(needs, cuts):
                graph.merge(pattern)  # raises where others stand between


def test_long_patterns_are_cut() -> None:
    """A chain of a hundred operators is two patterns, in the order in which they run."""
    needs = [set[int]()] + [{k} for k in range(99)]

    assert in_order(substitution(needs, ())) == [list(range(LARGEST)), list(range(LARGEST, 100))]


def test_connected_components() -> None:
    """500 random graphs: components as repeated spreading of labels finds them, in order."""
    draw = random.Random(1)
    for _ in range(500):
        n = draw.randint(0, 10)
        edges = [(draw.randrange(12), draw.randrange(12)) for _ in range(draw.randint(0, 12))]
        label = list(range(n))
        for _ in range(n):
            for a, b in edges:
                if a < n and b < n:
                    label[a] = label[b] = min(label[a], label[b])
        expected = [[k for k in range(n) if label[k] == r] for r in sorted(set(label))]
        assert connected_components(range(n), edges) == expected
