"""Dominance: compared with its definition by paths, and on long graphs."""

from __future__ import annotations

import random

from passkit.analysis.dominance import dominance

Flow = tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]


def random_flow(rng: random.Random) -> Flow:
    """Return random values with one or two operands each, and 1 to 3 roots."""
    n = rng.randint(1, 12)
    place = rng.sample(range(n), n)
    operands: list[tuple[int, ...]] = [()] * n
    for k in range(1, n):
        operands[place[k]] = tuple(place[rng.randrange(k)] for _ in range(rng.randint(1, 2)))
    return tuple(operands), tuple(rng.choices(place[-3:], k=rng.randint(1, 3)))


def reached(flow: Flow, without: int) -> set[int]:
    """Return the values from which a path leads to a root without a value."""
    operands, roots = flow
    values: set[int] = set()
    todo = [r for r in roots if r != without]
    while todo:
        v = todo.pop()
        if v not in values:
            values.add(v)
            todo += [w for w in operands[v] if w != without]
    return values


def test_dominance_is_that_of_paths() -> None:
    """On 5,000 random graphs ``a`` dominates ``b`` if no path from ``b`` to a root avoids ``a``."""
    rng = random.Random(0)
    pairs = several = 0
    for _ in range(5000):
        flow = random_flow(rng)
        operands, roots = flow
        tree = dominance(operands, roots)
        live = reached(flow, -1)
        for a in range(len(operands)):
            past = reached(flow, a)
            expected = {b for b in live if b not in past} if a in live else set()
            assert {b for b in range(len(operands)) if tree.dominates(a, b)} == expected, flow
            pairs += len(expected - {a})
        several += len({*roots}) > 1

    assert pairs > 10_000 and several > 2000  # the graphs are not trivial


def test_the_tree() -> None:
    """A join dominates a diamond, the exit two roots, and nothing a value that is not used."""
    fork, left, right, join, dead = range(5)
    tree = dominance(((), (fork,), (fork, fork), (left, right), (fork,)), (join,))

    assert tree.above == (join, join, join, 5, -1, 5)
    assert tree.dominates(join, fork) and not tree.dominates(left, fork)
    assert not tree.dominates(join, dead) and not tree.dominates(dead, dead)
    assert dominance(((), (0,), (0,)), (1, 2)).above == (3, 3, 3, 3)


def test_long_chains() -> None:
    """100,000 values in a chain need no recursion, nor do 30,000 diamonds."""
    chain = dominance([(k - 1,) if k else () for k in range(100_000)], (99_999,))
    diamonds: list[tuple[int, ...]] = [()]
    for fork in range(0, 90_000, 3):
        diamonds += [(fork,), (fork,), (fork + 1, fork + 2)]
    tree = dominance(diamonds, (90_000,))

    assert chain.dominates(99_999, 0) and not chain.dominates(0, 99_999)
    assert tree.above[0] == 3 and tree.dominates(90_000, 1) and not tree.dominates(1, 0)
