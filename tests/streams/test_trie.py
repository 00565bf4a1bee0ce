"""The trie of plans: Burn's traces, and the same decisions as with lists of plans."""

from __future__ import annotations

import random

import pytest

from tests.streams.toy_explorer import ListRun, ToyPlan, TrieRun


def test_a_stream_alternates_between_plans_without_exploring_again() -> None:
    """Burn's trace "complex": three plans, found once each, serve five executions."""
    run = TrieRun([(1, 2), (2, 2)])

    counts = [run.add(operation) for operation in (1, 1, 1, 2, 2, 2, 1, 2, 2, 2)]

    assert counts[:5] == [(1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    assert counts[5:] == [(0, 3), (1, 3), (0, 4), (1, 4), (0, 5)]
    assert run.explorer.plans == [ToyPlan((1, 1), 0), ToyPlan((1, 2), 2), ToyPlan((2, 2), 2)]
    assert [o for o, _ in run.executed] == [(1, 1), (1, 2), (2, 2), (1, 2), (2, 2)]
    assert run.triggers() == {(1, 1): {()}, (1, 2): {()}, (2, 2): {()}}
    assert run.explorations == 3


def test_operations_that_nothing_fuses_are_stored_as_plans_too() -> None:
    """Burn's trace "basic reuse": operations that no fuser takes run one by one, by a plan."""
    run = TrieRun([(1, 2)])

    assert [run.add(3), run.add(3)] == [(0, 1), (0, 2)]
    assert run.add(1, 3) == (0, 3)

    assert run.explorer.plans == [ToyPlan((3,), 0), ToyPlan((1, 3), 0)]


def test_a_plan_gains_triggers_instead_of_copies() -> None:
    """Burn's trace "overlapping": what follows a plan decides when to execute it."""
    run = TrieRun([(1, 2), (1, 2, 1, 1)])

    assert [run.add(o) for o in (1, 2, 1, 2, 2)] == [(1, 0), (2, 0), (3, 0), (2, 1), (0, 3)]
    assert [run.add(o) for o in (1, 2, 1, 1)] == [(1, 3), (2, 3), (3, 3), (0, 4)]
    assert run.add(1, 2, 1) == (3, 4)
    assert run.sync() == (0, 5)
    assert run.add(3) == (0, 6)

    assert run.explorer.plans == [
        ToyPlan((1, 2), 2),
        ToyPlan((2,), 0),
        ToyPlan((1, 2, 1, 1), 4),
        ToyPlan((1, 2, 1), 2),
        ToyPlan((3,), 0),
    ]
    assert run.triggers()[1, 2] == {(1, 2), (2,)}
    assert run.triggers()[(2,)] == {()}
    assert (1, 2, 1) not in run.triggers()


def test_a_plan_found_while_a_caller_waits_is_found_again() -> None:
    """Burn's trace "sync reuse": the second wait explores nothing (burn#5137)."""
    run = TrieRun([(1, 2), (1, 2, 3, 1)])

    for _ in range(2):
        run.add(1, 2, 3)
        run.sync()

    assert run.executed == [((1, 2, 3), 2)] * 2
    assert run.explorations == 1


def test_the_plan_of_the_operations_that_came_is_executed() -> None:
    """Three plans share their first five operations; each stream executes the plan it recorded."""
    beginning = (1, 2, 3, 4, 5)
    run = TrieRun([(*beginning, 6), (*beginning, 7), (*beginning, 8)])

    for last in (6, 7, 8, 7, 6, 8):
        run.add(*beginning, last)

    assert [o[-1] for o, _ in run.executed] == [6, 7, 8, 7, 6, 8]
    assert run.explorations == 3


def test_a_plan_never_covers_more_than_is_queued() -> None:
    """When a caller waits, a longer plan that begins with the queue is not executed."""
    run = TrieRun([(1, 2, 3, 4)])
    run.add(1, 2, 3, 4)

    run.add(1, 2)
    run.sync()

    assert run.executed == [((1, 2, 3, 4), 4), ((1, 2), 0)]


@pytest.mark.parametrize("seed", range(10))
def test_the_trie_decides_as_lists_of_plans_do(seed: int) -> None:
    """On random programs, queue lengths, executions and explorations equal those of Burn's policy.

    A thousand programs for each seed.
    """
    rng = random.Random(seed)
    for _ in range(1000):
        patterns = [
            tuple(rng.randint(1, 3) for _ in range(rng.randint(1, 5)))
            for _ in range(rng.randint(1, 4))
        ]
        trie, lists = TrieRun(patterns), ListRun(patterns)
        for _ in range(rng.randint(1, 40)):
            if rng.random() < 0.1:
                assert trie.sync() == lists.sync()
            else:
                operation = rng.randint(1, 3)
                assert trie.add(operation) == lists.add(operation)
        assert trie.executed == lists.executed
        assert trie.explorations == lists.explorations
