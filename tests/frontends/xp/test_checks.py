"""Checks inside kernels: their message, where they run, and the stream afterwards."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import passkit as pk
from passkit import xp


def check_positive(x: xp.Array, name: str = "sigma") -> None:
    """Check that all elements are positive."""
    xp.check(x > 0, "scale", name, x, "positive")


def message(call: object) -> str:
    """Return the text of the CheckError that a call raises."""
    with pytest.raises(pk.errors.CheckError, match="must be") as raised:
        call()  # type: ignore[operator]
    assert isinstance(raised.value, ValueError)
    return str(raised.value)


def test_small_arrays_are_checked_at_once() -> None:
    """The message names the function, the variable, the first offending element and its value."""
    vector = xp.asarray([1.0, -2.0, -3.0])
    assert message(lambda: check_positive(vector)) == (
        "scale: sigma[1] = -2.0, but it must be positive!"
    )
    matrix = xp.asarray([[1, 2], [0, 4]])
    assert message(lambda: check_positive(matrix, "k")) == (
        "scale: k[1, 0] = 0, but it must be positive!"
    )
    assert message(lambda: xp.check(xp.asarray(False), "f", "nu", 0.5, "finite")) == (
        "f: nu = 0.5, but it must be finite!"
    )
    check_positive(xp.asarray([1.0, 2.0]))
    check_positive(xp.ones((0, 3)))


@pytest.mark.usefixtures("xp_queue")
def test_a_check_runs_in_the_kernel_that_computes_the_array() -> None:
    """Results and check come from one kernel; the error is raised once, and results are valid."""
    numbers = np.linspace(1, 2, 12).reshape(3, 4)
    for offending, text in (
        (None, ""),
        ((2, 1), "scale: sigma[2, 1] = -7.5, but it must be positive!"),
    ):
        if offending is not None:
            numbers[offending] = -7.5
            numbers[2, 2] = np.nan
        x = xp.asarray(numbers / 2) * 2
        check_positive(x)
        y = xp.sqrt(x) + 1
        with xp.inspect() as runs:
            if offending is None:
                xp.eval(y)
            else:
                assert message(partial(xp.eval, y)) == text
        assert len(runs[0].kernels) == 1
        assert "first_failure" in [runs[0].operations[k] for k in runs[0].computed]
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(np.asarray(y), np.sqrt(numbers) + 1)
        assert float(xp.sum(x * 0 + 1, axis=0)[0]) == 3.0


@pytest.mark.usefixtures("xp_queue")
def test_a_check_of_an_array_that_nobody_reads_runs_at_the_next_execution() -> None:
    """The value may be pending, and dropped: the check still runs, and says its value."""
    check_positive(xp.asarray([3.0, 2.0]) * -2)
    other = xp.asarray([1.0]) + 1
    assert message(lambda: float(other[0])) == "scale: sigma[0] = -6.0, but it must be positive!"
    assert float(other[0]) == 2.0
    check_positive(xp.asarray([3.0, -2.0]) * 2)
    assert message(xp.eval) == "scale: sigma[1] = -4.0, but it must be positive!"
    xp.eval()


@pytest.mark.usefixtures("xp_queue")
def test_the_first_of_several_failing_checks_raises() -> None:
    """One execution raises one error; the checks after it are forgotten."""
    x, y = xp.asarray([1.0, -1.0]) * 1, xp.asarray([-5.0, 1.0]) * 1
    check_positive(x, "x")
    check_positive(y, "y")
    assert message(xp.eval) == "scale: x[1] = -1.0, but it must be positive!"
    check_positive(xp.asarray([1.0]) * 1)
    xp.eval()


@pytest.mark.usefixtures("xp_queue")
def test_a_check_fails_when_a_full_queue_is_executed() -> None:
    """The operation that finds the queue full raises, and can be repeated."""
    x = xp.asarray([1.0, -1.0]) * 1
    y = xp.asarray([1.0, 2.0])
    with xp.config(max_ops=5):
        check_positive(x)
        assert "sigma[1] = -1.0" in message(lambda: y + 1 + 1 + 1)
        assert float(xp.sum(y + 1)) == 5.0


@pytest.mark.usefixtures("xp_queue")
def test_a_checked_array_can_be_replaced() -> None:
    """The check is of the value at the time of the call; arrays are still updated in place."""
    x = xp.asarray(np.full(64, 2.0)) + 0
    xp.eval(x)
    for step in range(6):
        x = x - 0.5
        check_positive(x, f"x{step}")
        if step < 3:
            xp.eval(x)
        else:
            assert message(partial(xp.eval, x)) == (
                f"scale: x{step}[0] = {1.5 - step / 2}, but it must be positive!"
            )
    x = xp.asarray([1.0, -1.0]) + 0
    check_positive(x)
    x += 5
    assert message(lambda: xp.eval(x)) == "scale: sigma[1] = -1.0, but it must be positive!"
    np.testing.assert_array_equal(np.asarray(x), [6, 4])


def test_checks_refuse_conditions_that_do_not_fit() -> None:
    """A condition needs booleans in the shape of the array."""
    x = xp.asarray([1.0, 2.0])
    with pytest.raises(pk.DTypeError, match="condition of sigma needs booleans, got float64"):
        xp.check(x, "f", "sigma", x, "positive")
    with pytest.raises(pk.ShapeError, match=r"condition of sigma needs shape \(2,\), got \(1,\)"):
        xp.check(x[:1] > 0, "f", "sigma", x, "positive")
