"""Special functions with the values of `scipy.special` at poles and limits of their domains.

The operators of `passkit.ops` compute the inside of a domain, and NaN where a formula has the form
infinity minus infinity. These functions build them with the limits that SciPy returns.
"""

from __future__ import annotations

import passkit.ops as ops
from passkit.graph.node import Entry

NAN, INF = float("nan"), float("inf")


def _is_pole(x: Entry) -> Entry:
    """Build whether floats are 0 or negative integers, where the gamma function has poles."""
    return ops.logical_and(ops.less_equal(x, 0.0), ops.equal(ops.floor(x), x))


def betaln(a: Entry, b: Entry) -> Entry:
    """Build the logarithm of the magnitude of the beta function of floats; NaN of NaN.

    Where an operand is 0 or a negative integer it is infinite, but finite if the other one is a
    positive integer, a + b < 1, and both fit in 32 bits; the last is SciPy's condition.
    """
    is_pole_a, is_pole_b = _is_pole(a), _is_pole(b)
    # At a pole p, with a natural number n: B(p, n) = (-1)**n B(1 - p - n, n) if 1 - p - n > 0.
    pole = ops.where(is_pole_a, a, b)
    other = ops.where(is_pole_a, b, a)
    reflected = 1.0 - pole - other
    is_natural = ops.logical_and(ops.greater(other, 0.0), ops.equal(ops.floor(other), other))
    is_near = ops.less(ops.maximum(-pole, other), 2.0**31)
    is_finite = ops.logical_and(is_natural, ops.logical_and(is_near, ops.greater(reflected, 0.0)))
    at_pole = ops.logical_or(is_pole_a, is_pole_b)
    is_reflected = ops.logical_and(at_pole, is_finite)
    first = ops.where(is_reflected, reflected, ops.where(at_pole, 1.0, a))
    second = ops.where(is_reflected, other, ops.where(at_pole, 1.0, b))
    regular = ops.betaln(first, second)
    is_infinite = ops.logical_and(at_pole, ops.logical_not(is_finite))
    value = ops.where(is_infinite, INF, regular)
    return ops.where(ops.logical_or(ops.isnan(a), ops.isnan(b)), NAN, value)


def betainc(a: Entry, b: Entry, x: Entry) -> Entry:
    """Build the regularized incomplete beta function of floats; NaN for x outside of [0, 1].

    If only a is 0, it is 1 for x > 0 and else 0; if only b is, it is 1 for x = 1 and else 0.
    """
    assert x.dtype is not None
    is_inside = ops.logical_and(ops.greater_equal(x, 0.0), ops.less_equal(x, 1.0))
    at_0 = ops.cast(ops.greater(x, 0.0), dtype=x.dtype)
    at_1 = ops.cast(ops.greater_equal(x, 1.0), dtype=x.dtype)
    is_a_0 = ops.logical_and(ops.equal(a, 0.0), ops.greater(b, 0.0))
    is_b_0 = ops.logical_and(ops.equal(b, 0.0), ops.greater(a, 0.0))
    value = ops.where(is_a_0, at_0, ops.where(is_b_0, at_1, ops.betainc(a, b, x)))
    return ops.where(is_inside, value, NAN)


def gammainc(a: Entry, x: Entry) -> Entry:
    """Build the regularized lower incomplete gamma function of floats.

    It is 1 where a is 0 and x positive, and NaN where a or x is negative or both are 0.
    """
    return _with_limits(a, x, 1.0, ops.gammainc(a, x))


def gammaincc(a: Entry, x: Entry) -> Entry:
    """Build the regularized upper incomplete gamma function of floats.

    It is 0 where a is 0 and x positive, and NaN where a or x is negative or both are 0.
    """
    return _with_limits(a, x, 0.0, ops.gammaincc(a, x))


def _with_limits(a: Entry, x: Entry, at_zero: float, value: Entry) -> Entry:
    """Build ``value``, an incomplete gamma function of a and x, with limits.

    It is ``at_zero`` where a is 0 and x positive, and NaN where a or x is negative or both are 0.
    """
    is_zero = ops.equal(a, 0.0)
    is_limit = ops.logical_and(is_zero, ops.greater(x, 0.0))
    is_undefined = ops.logical_and(is_zero, ops.equal(x, 0.0))
    is_outside = ops.logical_or(ops.logical_or(ops.less(a, 0.0), ops.less(x, 0.0)), is_undefined)
    return ops.where(is_limit, at_zero, ops.where(is_outside, NAN, value))


def zeta(x: Entry, q: Entry) -> Entry:
    """Build Hurwitz' zeta function of floats; infinite for x > 1 and q = 0, -1, -2 and so on."""
    is_pole = ops.logical_and(ops.greater(x, 1.0), _is_pole(q))
    return ops.where(is_pole, INF, ops.zeta(x, q))


def chdtr(v: Entry, x: Entry) -> Entry:
    """Build the distribution function of the chi-square distribution with v degrees of freedom.

    It is NaN where v or x is negative or both are 0.
    """
    return gammainc(v * 0.5, x * 0.5)


def chdtrc(v: Entry, x: Entry) -> Entry:
    """Build 1 - chdtr(v, x), accurate in the upper tail.

    It is NaN where v or x is negative or both are 0.
    """
    return gammaincc(v * 0.5, x * 0.5)


def stdtr(df: Entry, t: Entry) -> Entry:
    """Build the distribution function of Student's t with df degrees of freedom.

    It is NaN where df is not positive; for infinite df it is that of the normal distribution.
    """
    squared = ops.square(t)
    ratio = ops.where(ops.isinf(squared), 0.0, df / (squared + df))
    tail = 0.5 * betainc(df * 0.5, ops.ones_like(df) * 0.5, ratio)
    value = ops.where(ops.less(t, 0.0), tail, 1.0 - tail)
    normal = 0.5 * ops.erfc(-(0.5**0.5) * t)
    value = ops.where(ops.isinf(df), normal, value)
    is_outside = ops.logical_or(ops.less_equal(df, 0.0), ops.isnan(t))
    return ops.where(is_outside, NAN, value)


def polygamma(n: Entry, x: Entry) -> Entry:
    """Build the n-th derivative of `digamma`, for n that are whole numbers in a float type.

    It is infinite or NaN for negative n, and for n > 0 infinite where x is 0, -1, -2 and so on.
    """
    order = n + 1.0
    is_even = ops.equal(ops.floor(order * 0.5) * 2.0, order)
    value = ops.gamma(order) * zeta(order, x)
    value = ops.where(is_even, value, -value)
    return ops.where(ops.equal(n, 0.0), ops.digamma(x), value)
