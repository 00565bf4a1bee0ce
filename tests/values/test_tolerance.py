"""Agreement of results: how far is too far, by shape, NaN, infinity and size."""

from __future__ import annotations

import numpy as np

from passkit.values.tolerance import compare


def test_what_agrees() -> None:
    """Equal values, NaN beside NaN, equal infinities, and what is a little off."""
    right = np.array([1.0, np.nan, np.inf, 100.0], np.float32)
    got = np.array([1.00005, np.nan, np.inf, 100.0], np.float32)
    (error,) = compare({"y": got}, {"y": right}, "it")

    assert error.good
    assert 4e-5 < error.largest < 6e-5
    assert "too much" not in str(error)


def test_what_does_not() -> None:
    """One value that is off, a lone NaN, another sign of infinity, and another shape."""
    right = np.array([1.0, 2.0], np.float32)
    wrong = ([1.1, 2.0], [np.nan, 2.0], [np.inf, 2.0], [[1.0, 2.0]])
    for got in wrong:
        (error,) = compare({"y": np.array(got, np.float32)}, {"y": right}, "stored results")

        assert not error.good, got
        assert "in y against stored results" in str(error)


def test_results_by_name() -> None:
    """What is not stored is not compared; a result without a number may be stored so."""
    x = np.zeros(2)

    assert [e.output for e in compare({"a:0": x, "b": x}, {"a": x}, "it")] == ["a:0"]
