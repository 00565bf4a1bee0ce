"""Special functions: identities between them and known values."""

from __future__ import annotations

from math import erf, erfc, gamma, lgamma, log

import numpy as np
import pytest

from passkit import xp
from passkit.errors import ArgumentError, ShapeError

X = [0.1, 0.5, 0.9, 2.5, 7.0]


@pytest.mark.parametrize("small", [0, 256])
def test_functions_equal_those_of_python(small: int) -> None:
    """Functions that Python's math module has, and definitions by them, have its values."""
    with xp.config(small=small):
        x = xp.asarray(X)
        half = 0.5**0.5
        pairs = [
            (xp.special.erf(x), [erf(v) for v in X]),
            (xp.special.erfc(x), [erfc(v) for v in X]),
            (xp.special.gamma(x), [gamma(v) for v in X]),
            (xp.special.gammaln(x), [lgamma(v) for v in X]),
            (xp.special.beta(x, 2), [gamma(v) * gamma(2) / gamma(v + 2) for v in X]),
            (xp.special.ndtr(-x), [0.5 * erfc(v * half) for v in X]),
            (xp.special.log_ndtr(-x), [log(0.5 * erfc(v * half)) for v in X]),
            (xp.special.xlogy(x, 3.0), [v * log(3) for v in X]),
            (xp.special.entr(x), [-v * log(v) for v in X]),
            (xp.special.rel_entr(x, 2.0), [v * log(v / 2) for v in X]),
        ]
        xp.eval(*[result for result, _ in pairs])
        for result, reference in pairs:
            np.testing.assert_allclose(np.asarray(result), reference, 1e-9)


@pytest.mark.parametrize("small", [0, 256])
def test_inverse_functions_return_to_the_operand(small: int) -> None:
    """erfinv, erfcinv, ndtri and logit undo their functions."""
    with xp.config(small=small):
        x = xp.asarray(X[:3])
        special = xp.special
        for inverse in (
            special.erfinv(special.erf(x)),
            special.erfcinv(special.erfc(x)),
            special.ndtri(special.ndtr(x)),
            special.logit(special.expit(x)),
        ):
            np.testing.assert_allclose(np.asarray(inverse), X[:3], 1e-9)


@pytest.mark.parametrize("small", [0, 256])
def test_softmax_and_its_relatives(small: int) -> None:
    """softmax sums to 1 along an axis or over all elements; logsumexp is its logarithm's sum."""
    with xp.config(small=small):
        x = np.arange(12.0).reshape(3, 4)
        a = xp.asarray(x)
        total = np.log(np.exp(x).sum())
        rows = np.log(np.exp(x).sum(1, keepdims=True))
        pairs = [
            (xp.special.logsumexp(a), total),
            (xp.special.logsumexp(a, axis=1, keepdims=True), rows),
            (xp.special.softmax(a), np.exp(x - total)),
            (xp.special.softmax(a, axis=1), np.exp(x - rows)),
            (xp.special.log_softmax(a), x - total),
            (xp.special.log_softmax(a, axis=-1), x - rows),
        ]
        for result, reference in pairs:
            np.testing.assert_allclose(np.asarray(result), reference, 1e-9)


@pytest.mark.parametrize("small", [0, 256])
def test_poles_and_limits(small: int) -> None:
    """At poles and at the ends of domains, functions have the values of SciPy's."""
    nan, inf = np.nan, np.inf
    with xp.config(small=small):
        a, b = (
            xp.asarray([-3.0, -3.0, 1.0, 0.0, nan, 2.0, -8e9]),
            xp.asarray([1.0, 5.0, -3.0, 2.0, 1.0, 3.0, 2.0]),
        )
        zero = xp.asarray([0.0, 0.0, -1.0, 2.0])
        x = xp.asarray([1.0, -1.0, 1.0, 0.0])
        ends = xp.asarray([0.0, 2.0])
        orders = xp.asarray([0, 1, 2, -3])
        pairs = [
            (xp.special.betaln(a, b), [-log(3), inf, -log(3), inf, nan, -log(12), inf]),
            (xp.special.betainc(zero, 1.0, x), [1.0, nan, nan, 0.0]),
            (xp.special.betainc(1.0, zero, x), [1.0, nan, nan, 0.0]),
            (xp.special.gammainc(zero, x), [1.0, nan, nan, 0.0]),
            (xp.special.gammaincc(zero, x), [0.0, nan, nan, 1.0]),
            (xp.special.zeta(2.0, xp.asarray([-2.0, 0.0, 1.0])), [inf, inf, np.pi**2 / 6]),
            (xp.special.chdtr(2.0, xp.asarray([2.0, 0.0])), [1 - np.exp(-1), 0.0]),
            (xp.special.chdtrc(2.0, xp.asarray([2.0, 0.0])), [np.exp(-1), 1.0]),
            (xp.special.chdtr(0.0, ends), [nan, 1.0]),
            (xp.special.chdtrc(0.0, ends), [nan, 0.0]),
            (xp.special.stdtr(1.0, xp.asarray([1.0, 0.0, -1.0, nan])), [0.75, 0.5, 0.25, nan]),
            (xp.special.stdtr(xp.asarray([inf, -1.0]), 0.0), [0.5, nan]),
            (
                xp.special.polygamma(orders, xp.asarray(1.0)),
                [-0.5772156649015329, np.pi**2 / 6, -2.4041138063191886, nan],
            ),
        ]
        xp.eval([result for result, _ in pairs])
        for result, reference in pairs:
            np.testing.assert_allclose(np.asarray(result), reference, 1e-9)


def test_polygamma_takes_orders_beyond_those_of_the_operator() -> None:
    """Of a large order, polygamma(n, 1) is n! with the sign of (-1)**(n + 1)."""
    x = xp.asarray([1.0], dtype=xp.float32)
    result = xp.special.polygamma(25, x)
    assert result.dtype == xp.float32
    np.testing.assert_allclose(np.asarray(result), [1.5511210e25], 1e-5)


def test_integers_are_computed_in_float64() -> None:
    """Integers give float64, float32 stays, and NaN of a zero weight does not count."""
    assert xp.special.gammaln(xp.asarray([1, 2])).dtype == xp.float64
    assert xp.special.erf(xp.asarray([1.0], dtype=xp.float32)).dtype == xp.float32
    single = xp.asarray([1.0, 2.0], dtype=xp.float32)
    for name in (
        "betaln",
        "chdtr",
        "chdtrc",
        "gammainc",
        "gammaincc",
        "polygamma",
        "stdtr",
        "zeta",
    ):
        assert getattr(xp.special, name)(single, single).dtype == xp.float32, name
    assert xp.special.betainc(single, 2.0, single - 0.5).dtype == xp.float32
    assert np.asarray(xp.special.xlogy(xp.asarray([0.0]), 0.0)).tolist() == [0.0]
    assert np.asarray(xp.special.entr(xp.asarray([0.0, -1.0]))).tolist() == [0.0, -np.inf]
    tail = np.asarray(xp.special.log_ndtr(xp.asarray([-40.0, -31.0, -29.0])))
    np.testing.assert_allclose(
        tail, [-804.6084420137539, -484.8539636271794, -424.78741990973026], 1e-12
    )


def test_wrong_arguments_are_refused() -> None:
    """Messages name the function and what was given."""
    x = xp.asarray(X)
    with pytest.raises(ArgumentError, match=r"polygamma: n must be a natural number, got 1\.5"):
        xp.special.polygamma(1.5, x)
    with pytest.raises(ArgumentError, match=r"polygamma: n must be at most 2\*\*53, got 1000"):
        xp.special.polygamma(10**400, 2.0)
    with pytest.raises(ArgumentError, match=r"polygamma: n must be a natural number, got -1"):
        xp.special.polygamma(-1, x)
    with pytest.raises(ShapeError, match=r"softmax: there is no axis 1 in an array of 1 axes"):
        xp.special.softmax(x, axis=1)
    with pytest.raises(ArgumentError, match=r"got \[1\.0\]"):
        xp.special.erf([1.0])
