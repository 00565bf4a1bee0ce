"""The comparison of specimens reports wrong results, within the stated tolerance."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.ast import dt
from tests.ops.specimens import Specimen, Trial, mistakes
from tests.random_graphs.registry import standard_ops

ONE = np.ones(3, np.float32)


def specimen(ulps: float = 0, slack: float = 0) -> Specimen:
    """Return a specimen whose reference adds 1."""
    return Specimen("add", "f", lambda x: x + 1, lambda dtype, rng: [], ulps, slack)


@pytest.mark.parametrize(
    "result, expected, message",
    [
        (ONE, ONE[:2], r"float32\(3,\), not float32\(2,\)"),
        (ONE, ONE.astype(int), "float32"),
        (ONE, ONE * 2, "3 of 3 elements are off"),
        (ONE * 0, -ONE * 0, "3 of 3"),
        (ONE * np.nan, ONE, r"such as np.float32\(nan\) at \(0,\) for np.float32\(1.0\)"),
        (ONE * np.inf, -ONE * np.inf, "3 of 3"),
        (np.array([1, 2]), np.array([1, 3]), "1 of 2"),
    ],
)
def test_wrong_results_are_reported(result: object, expected: object, message: str) -> None:
    """A wrong dtype, shape, element, sign of zero, NaN or infinity is reported."""
    (report,) = mistakes(specimen(), "here", result, expected)

    with pytest.raises(AssertionError, match=message):
        raise AssertionError(report)


def test_ulps_are_of_each_element_and_slack_is_of_the_largest() -> None:
    """``ulps`` counts from each element, ``slack`` from the largest of result or inputs."""
    near = np.nextafter(ONE, np.float32(2))
    small, twice = np.array([1e-9, 1.0], np.float32), np.array([2e-9, 1.0], np.float32)

    assert not [*mistakes(specimen(ulps=1), "", near, ONE)]
    assert [*mistakes(specimen(ulps=0.5), "", near, ONE)]
    assert not [*mistakes(specimen(slack=1), "", twice, small)]
    assert [*mistakes(specimen(ulps=1), "", twice, small)]
    cancelled, inexact = small[:1], twice[:1]
    assert [*mistakes(specimen(slack=1), "", inexact, cancelled, [ONE])]
    summed = evolve(specimen(slack=1), of_inputs=True)
    assert not [*mistakes(summed, "", inexact, cancelled, [ONE])]
    assert [*mistakes(summed, "", inexact, cancelled, [cancelled])]
    assert not [*mistakes(specimen(), "", ONE * np.nan, ONE * np.nan)]


def test_references_are_rounded_once() -> None:
    """Floats of 16 bits reach the reference in float64; integers keep their dtype."""
    half = np.array([1, 2**-11], np.float16)
    (sum_,) = specimen().expected([half], {})

    assert sum_.dtype == np.float16 and sum_.tolist() == [2, 1]
    assert specimen().expected([np.array([1], np.int8)], {})[0].dtype == np.int8


def test_trials_depend_on_operator_and_dtype_only() -> None:
    """The same trials are drawn each time, and others for another dtype."""
    drawing = Specimen("add", "f", np.add, lambda d, rng: [Trial(((),), {}, ((rng.random(2),),))])
    first, second = (drawing.drawn(dt.dtype_of("float32"))[0].feeds[0][0] for _ in range(2))

    assert first.tolist() == second.tolist()
    assert first.tolist() != drawing.drawn(dt.dtype_of("float64"))[0].feeds[0][0].tolist()


def test_operators_that_tests_register_need_no_specimen() -> None:
    """The list of operators to test holds the library's only."""
    pk.register_op("test_not_in_the_library", num_inputs=1)

    names = standard_ops.__wrapped__()  # without its cache
    assert "softmax" in names and "test_not_in_the_library" not in names
