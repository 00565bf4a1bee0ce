"""Results are compared with references by shape, NaN, infinity and size of the difference."""

from __future__ import annotations

import numpy as np

from passkit.values.tolerance import compare


def test_values_within_the_tolerance_agree() -> None:
    """Equal values, NaN beside NaN, equal infinities and small differences are in tolerance."""
    expected = np.array([1.0, np.nan, np.inf, 100.0], np.float32)
    result = np.array([1.00005, np.nan, np.inf, 100.0], np.float32)
    (deviation,) = compare({"y": result}, {"y": expected}, "a reference")

    assert deviation.good
    assert 4e-5 < deviation.largest < 6e-5
    assert "too much" not in str(deviation)


def test_values_outside_the_tolerance_are_reported() -> None:
    """A large difference, a lone NaN, another infinity and another shape are out of tolerance."""
    expected = np.array([1.0, 2.0], np.float32)
    wrong = ([1.1, 2.0], [np.nan, 2.0], [np.inf, 2.0], [[1.0, 2.0]])
    for result in wrong:
        array = np.array(result, np.float32)
        (deviation,) = compare({"y": array}, {"y": expected}, "stored results")

        assert not deviation.good, result
        assert "in y against stored results" in str(deviation)


def test_results_without_a_reference_are_skipped() -> None:
    """A result ``a:0`` has the reference ``a``; one without a reference is not compared."""
    x = np.zeros(2)

    deviations = compare({"a:0": x, "b": x}, {"a": x}, "a reference")

    assert [d.output for d in deviations] == ["a:0"]
