"""Patterns: what lies between cuts, and what grows across them."""

from __future__ import annotations

import random

import pytest

from passkit.fusion.selection.patterns import LADDER, LARGEST, Kind, exploration, substitution
from passkit.graph.merge_graph import MergeGraph

L, E, R, P, G, OUT = (Kind.LIGHT, Kind.EXPENSIVE, Kind.ROW, Kind.PRODUCT, Kind.LIBRARY, Kind.OPAQUE)


def in_order(patterns: object) -> list[list[int]]:
    """Return patterns as lists, in order."""
    return sorted(sorted(p) for p in patterns)  # type: ignore[attr-defined]


MLP = (
    [L, L, G, L, L, P, L, R, L, G, E, L],
    [{0} if k == 1 else {k - 1} if k else set() for k in range(12)],
)
"""In front of the first of three products: two operators. Behind the second: a sum."""


@pytest.mark.parametrize(
    "step, expected",
    list(
        enumerate(
            [
                [[0, 1], [3, 4, 5, 6, 7, 8], [10, 11]],
                [[0, 1], [3, 4], [6, 7, 8], [10, 11]],
                [[0, 1], [3, 4], [6, 7, 8], [10, 11]],
                [[0, 1], [3, 4], [6, 7, 8], [10, 11]],
                [[0, 1], [3, 4], [10, 11]],
            ]
        )
    ),
)
def test_what_lies_between_cuts(step: int, expected: list[list[int]]) -> None:
    """The more classes cut, the smaller patterns are; nothing in front is lost."""
    kinds, needs = MLP

    assert in_order(substitution(needs, kinds, LADDER[step])) == expected


def test_between_cuts_nothing_waits_for_itself() -> None:
    """2,000 random graphs: each pattern could be one kernel, and so could all of them at once."""
    draw = random.Random(0)
    for _ in range(2000):
        n = draw.randint(2, 14)
        needs = [set(draw.sample(range(k), min(k, draw.randint(0, 2)))) for k in range(n)]
        kinds = [draw.choice((L, L, E, R, P, G)) for _ in range(n)]
        for cuts in LADDER:
            units = MergeGraph(needs)
            for pattern in substitution(needs, kinds, cuts):
                units.merge(pattern)  # raises where others stand between


def test_long_patterns_are_cut() -> None:
    """A chain of a hundred operators is two patterns, in the order in which they run."""
    needs = [set[int]()] + [{k} for k in range(99)]
    patterns = in_order(substitution(needs, [L] * 100, LADDER[0]))

    assert patterns == [list(range(LARGEST)), list(range(LARGEST, 100))]


FIGURE: list[set[int]] = [set(), {0}, {1}, {1}, {2, 3}]
"""A product, an operator, its row sum, another operator, and a product of both."""


def test_what_grows_across_cuts() -> None:
    """Product, elementwise, fold and product are one, which cuts at products never give."""
    kinds = [P, E, R, L, P]
    patterns = list(exploration(MergeGraph(FIGURE), kinds, [1]))

    assert frozenset(range(5)) in patterns and len(set(patterns)) == len(patterns)
    assert all(frozenset(range(5)) not in substitution(FIGURE, kinds, c) for c in LADDER[1:])


def test_what_stands_between_comes_along() -> None:
    """A step over an operator that cannot be left out takes it in; one that stays out ends it."""
    needs: list[set[int]] = [set(), {0}, {0, 1}]

    assert in_order(exploration(MergeGraph(needs), [L, L, L], [0])) == [[0, 1], [0, 1, 2]]
    assert in_order(exploration(MergeGraph(needs), [L, OUT, L], [0])) == []


def test_budgets_and_limits() -> None:
    """As many patterns as allowed, some for each seed; none that breaks the limit."""
    needs = [set[int]()] + [{k} for k in range(29)]
    units, kinds = MergeGraph(needs), [L] * 30
    patterns = list(exploration(units, kinds, [3, 20], budget=10))
    small = list(exploration(units, kinds, [3], limit=lambda p: len(p) < 3))

    assert len(patterns) == 10
    for seed in (3, 20):
        assert {seed in p for p in patterns} == {True, False}
    assert in_order(small) == [[2, 3], [3, 4]]
    assert list(exploration(MergeGraph([set()] * 11 + [set(range(11))]), [L] * 12, [0])) == []


def test_ways_between_units() -> None:
    """The operators on ways between others, as trying each of them finds."""
    draw = random.Random(2)
    for _ in range(300):
        n = draw.randint(3, 12)
        needs = [set(draw.sample(range(k), min(k, draw.randint(0, 2)))) for k in range(n)]
        units = MergeGraph(needs)
        body = draw.sample(range(n), 2)
        above: dict[int, set[int]] = {}
        for k in range(n):
            above[k] = needs[k].union(*(above[b] for b in needs[k]))
        expected = {
            k
            for k in range(n)
            if k not in body and above[k] & set(body) and any(k in above[b] for b in body)
        }
        assert units.between(body) == expected
