"""Dominance: against its definition by paths, and on graphs as long as they come."""

from __future__ import annotations

import random

from passkit.analysis.dominance import dominance

Flow = tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]


def random_flow(rng: random.Random) -> Flow:
    """Values with one or two operands before them, in any order; 1 to 3 roots."""
    n = rng.randint(1, 12)
    place = rng.sample(range(n), n)
    operands: list[tuple[int, ...]] = [()] * n
    for k in range(1, n):
        operands[place[k]] = tuple(place[rng.randrange(k)] for _ in range(rng.randint(1, 2)))
    return tuple(operands), tuple(rng.choices(place[-3:], k=rng.randint(1, 3)))


def reached(flow: Flow, without: int) -> set[int]:
    """The values that a path leads from to a root, past ``without``."""
    operands, roots = flow
    found: set[int] = set()
    todo = [r for r in roots if r != without]
    while todo:
        v = todo.pop()
        if v not in found:
            found.add(v)
            todo += [w for w in operands[v] if w != without]
    return found


def test_dominance_is_that_of_paths() -> None:
    """On 5,000 random graphs ``a`` dominates ``b`` where no path from ``b`` leads past ``a``."""
    rng = random.Random(0)
    pairs = several = 0
    for _ in range(5000):
        flow = random_flow(rng)
        operands, roots = flow
        found = dominance(operands, roots)
        live = reached(flow, -1)
        for a in range(len(operands)):
            past = reached(flow, a)
            wanted = {b for b in live if b not in past} if a in live else set()
            assert {b for b in range(len(operands)) if found.dominates(a, b)} == wanted, flow
            pairs += len(wanted - {a})
        several += len({*roots}) > 1

    assert pairs > 10_000 and several > 2000  # the graphs have something to be wrong about


def test_the_tree() -> None:
    """A diamond meets above its fork; two roots meet at the exit; what is dead has nothing."""
    fork, left, right, join, dead = range(5)
    found = dominance(((), (fork,), (fork, fork), (left, right), (fork,)), (join,))

    assert found.above == (join, join, join, 5, -1, 5)
    assert found.dominates(join, fork) and not found.dominates(left, fork)
    assert not found.dominates(join, dead) and not found.dominates(dead, dead)
    assert dominance(((), (0,), (0,)), (1, 2)).above == (3, 3, 3, 3)


def test_long_chains() -> None:
    """100,000 values one after another take no recursion, nor do 50,000 diamonds."""
    chain = dominance([(k - 1,) if k else () for k in range(100_000)], (99_999,))
    diamonds: list[tuple[int, ...]] = [()]
    for fork in range(0, 90_000, 3):
        diamonds += [(fork,), (fork,), (fork + 1, fork + 2)]
    found = dominance(diamonds, (90_000,))

    assert chain.dominates(99_999, 0) and not chain.dominates(0, 99_999)
    assert found.above[0] == 3 and found.dominates(90_000, 1) and not found.dominates(1, 0)
