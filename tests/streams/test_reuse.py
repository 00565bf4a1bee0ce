"""When a plan serves again: other sizes, other numbers, loops, and never the wrong operands."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit import xp

RNG = np.random.default_rng(0)


def random(*shape: int) -> Any:
    """Return an array of random float32 numbers."""
    return xp.asarray(RNG.random(shape, dtype=np.float32))


def counts() -> tuple[int, int]:
    """Return how many plans were compiled, and how often one was there already."""
    stats = xp.stats()
    return stats["explorations"], stats["cache_hits"]


def check(x: Any, y: Any) -> None:
    """Compare a short program with NumPy."""
    result = np.asarray((x + y) * 2 - y)
    a, b = np.asarray(x), np.asarray(y)
    np.testing.assert_array_equal(result, (a + b) * np.float32(2) - b)


def test_a_plan_serves_other_sizes() -> None:
    """A program that ran at one size is not compiled for another of the same pattern."""
    check(random(32, 512, 64), random(32, 512, 64))
    check(random(18, 64, 256), random(18, 64, 256))

    assert counts() == (1, 1)


def test_equal_and_different_extents_are_different_patterns() -> None:
    """Square arrays have a plan of their own, and so have extents of one, which broadcast."""
    check(random(32, 32), random(32, 32))
    check(random(32, 64), random(32, 64))
    check(random(1, 64), random(32, 64))
    check(random(64), random(32, 64))

    assert counts() == (4, 0)


def test_extents_that_only_other_operations_have_are_given_to_the_plan() -> None:
    """A result reshaped to extents of an array that it does not depend on is right at all sizes."""
    for rows, columns in ((50, 70), (30, 90)):
        x, y = random(rows, columns), random(rows * columns)
        other = x + 1
        result = np.asarray(xp.reshape(y * 2, (rows, columns)) * 2)
        expected = np.asarray(y).reshape(rows, columns) * np.float32(4)
        np.testing.assert_array_equal(result, expected, strict=True)
        assert "pending" in repr(other)

    assert counts() == (1, 1)


def test_extents_of_short_last_axes_are_part_of_the_plan() -> None:
    """A result is reshaped to an extent that only short last axes have."""
    x, y = random(100, 4), random(800)
    total = xp.sum(x)
    rows = xp.prod(xp.reshape(y + 1, (200, 4)), axis=1)
    result = np.asarray(rows[::-1] * total)
    expected = (np.asarray(y) + 1).reshape(200, 4).prod(1)[::-1] * np.asarray(x).sum()
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_numbers_are_not_part_of_a_plan() -> None:
    """The same program with other Python numbers runs the same kernel."""
    x = random(40, 40)
    for a, b in ((0.5, 1.0), (0.7, 2.0), (0.5, 0.5), (0.0, -0.0)):
        result = np.asarray(x * a + b)
        np.testing.assert_array_equal(
            result, np.asarray(x) * np.float32(a) + np.float32(b), strict=True
        )

    assert counts() == (1, 3)


def test_equal_numbers_are_one_until_they_differ() -> None:
    """Equal subexpressions are computed once; numbers that differ later cost one more plan."""
    x = random(40, 40)
    for a, b in ((0.5, 0.5), (0.7, 0.7), (0.5, 1.0), (0.3, 0.3), (0.0, -0.0)):
        result = np.asarray(xp.exp(x * a) + xp.exp(x * b))
        numpy = np.exp(np.asarray(x) * np.float32(a)) + np.exp(np.asarray(x) * np.float32(b))
        np.testing.assert_allclose(result, numpy, rtol=1e-6)

    assert counts() == (2, 3)


def test_numbers_that_differ_are_remembered_on_disk() -> None:
    """A plan that serves any numbers is found again, and none is made for equal ones."""
    x = random(40, 40)

    def run(a: float, b: float) -> None:
        """Compute with two numbers."""
        result = np.asarray((x * a + x) / (x * b + x))
        a, b = np.float32(a), np.float32(b)
        y = np.asarray(x)
        np.testing.assert_allclose(result, (y * a + y) / (y * b + y), rtol=1e-6)

    run(2.0, 2.0)
    run(2.0, 3.0)
    xp.forget_plans()
    explorations = xp.stats()["explorations"]
    run(3.0, 3.0)
    run(3.0, 4.0)

    assert xp.stats()["explorations"] == explorations


def test_extents_of_short_last_axes_are_extents_of_reshapes() -> None:
    """An extent that only stands for itself, in an input's last axis, may be a new first axis."""
    x = random(40, 3)
    for _ in range(3):
        result = xp.reshape(x + 1, (3, -1)).reshape(40, 3) * 2

        np.testing.assert_array_equal(
            np.asarray(result)[0, 0], (np.asarray(x)[0, 0] + np.float32(1)) * 2
        )
        assert float(result[1, 2]) == float(np.asarray(result)[1, 2])


def test_a_loop_explores_once() -> None:
    """A hundred equal iterations: one plan is compiled, and used 99 times."""
    x, y = random(40, 40), random(40, 40)
    for _ in range(100):
        np.asarray((x + y) * x)

    assert counts() == (1, 99)


def test_programs_with_a_common_beginning_run_their_own_plan() -> None:
    """Plans that share five operations and differ in the sixth are distinguished."""
    x = random(40, 40)
    a = np.asarray(x)
    for _ in range(2):
        for last in (1, 2, 3):
            y = ((x + 1) * x - 2) * x + 3
            expected = ((a + 1) * a - 2) * a + 3
            if last == 1:
                np.testing.assert_allclose(np.asarray(y + x), expected + a, rtol=1e-6)
            elif last == 2:
                np.testing.assert_allclose(np.asarray(y * x), expected * a, rtol=1e-6)
            else:
                np.testing.assert_allclose(np.asarray(y - x), expected - a, rtol=1e-6)

    assert counts() == (3, 3)


def test_one_array_as_two_operands_is_another_program() -> None:
    """x + x and x + y have plans of their own, and neither is taken for the other."""
    x, y = random(40, 40), random(40, 40)
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(x + x), np.asarray(x) * 2)
        np.testing.assert_array_equal(np.asarray(x + y), np.asarray(x) + np.asarray(y))

    assert counts() == (2, 2)


def test_a_full_queue_is_executed_and_recognized_again() -> None:
    """Loops without a sync point run whenever the queue is full, by the same plan."""
    x = random(40, 40)
    with xp.config(max_ops=10):
        for _ in range(55):
            x = x * 1.0009765625
        xp.eval(x)

    assert xp.stats()["explorations"] == 2  # ten operations; and the five that are left
    assert xp.stats()["executed_plans"] == 6


def test_exploring_stops_at_its_limit() -> None:
    """A program that never repeats runs unfused after the limit, with right results."""
    x = random(40, 40)
    with xp.config(max_explorations=2):
        for count in range(1, 6):
            y = x
            for _ in range(count):
                y = y + x
            np.testing.assert_allclose(np.asarray(y), np.asarray(x) * (count + 1), rtol=1e-6)

    assert xp.stats()["explorations"] == 2
    assert xp.stats()["unfused_runs"] == 3


def test_small_unknown_programs_run_unfused_once() -> None:
    """A short program on small arrays is compiled when it is seen again."""
    x = random(40, 40)
    with xp.config(compile_at=1 << 20):
        for _ in range(3):
            np.testing.assert_array_equal(np.asarray(x * x + x), np.asarray(x) ** 2 + np.asarray(x))

    assert xp.stats()["unfused_runs"] == 1
    assert counts() == (1, 1)
