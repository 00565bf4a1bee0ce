"""Incomplete gamma and beta functions and Hurwitz' zeta function, in NumPy.

Series and fractions are evaluated for entire arrays until their last element has converged.
Sources: NIST Digital Library of Mathematical Functions, 8.7, 8.9, 8.12, 8.17 and 25.11.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erfc, factorial
from typing import Any

import numpy as np

from passkit.runtime.special_functions import BERNOULLI, each, lgamma

Array = Any

MAX_TERMS = 20_000
"""The most terms: about six times the square root of the largest `a` that needs a sum."""
CONVERGED = 5e-16
"""The relative change of a continued fraction at which it ends; more terms add rounding errors."""
LARGE = 1e7
"""From this `a` on two terms of an expansion in 1 / a are exact to the last bit."""


def _apply_where(where: Array, function: Callable[..., Array], out: Array, *args: Array) -> None:
    """Set the elements of ``out`` where a mask holds to a function of those of ``args``.

    All arrays have the shape of the mask ``where``; ``out`` is changed in place. The function gets
    the selected elements in one axis, and is not called if there are none.
    """
    if where.any():
        out[where] = function(*(a[where] for a in args))


def _arrays(*values: Array) -> list[Array]:
    """Return values as float64 arrays, broadcast to the same shape; they may be read-only views."""
    return list(np.broadcast_arrays(*(np.asarray(v, np.float64) for v in values)))


def _log_less(u: Array, ratio: Array) -> Array:
    """Return log(1 + u) - u without cancellation near 0; ``ratio`` is 1 + u."""
    near = np.where(np.abs(u) < 0.4, u, 0)
    t = near / (2 + near)
    series = sum(t ** (2 * k) / (2 * k + 1) for k in range(1, 16))
    return np.where(np.abs(u) < 0.4, 2 * t * series - near * t, np.log(ratio) - u)


def _stirling_rest(z: Array) -> Array:
    """Return lgamma(z) minus Stirling's formula (z - 1/2) log z - z + log(2 pi) / 2, for z > 0."""
    far = np.maximum(z, 10.0)
    tail = sum(b / (2 * k * (2 * k - 1) * far ** (2 * k - 1)) for k, b in enumerate(BERNOULLI, 1))
    direct = lgamma(np.minimum(z, 10.0)) - ((z - 0.5) * np.log(z) - z + 0.5 * np.log(2 * np.pi))
    return np.where(z < 10, direct, tail)


def _prefactor(a: Array, x: Array) -> Array:
    """Return x^a exp(-x) / gamma(a), the common factor of series and fraction, for a, x > 0."""
    u = (x - a) / a
    large = np.sqrt(a / (2 * np.pi)) * np.exp(a * _log_less(u, x / a) - _stirling_rest(a))
    return np.where(a < 8, np.exp(a * np.log(x) - x - lgamma(a)), large)


def _series(a: Array, x: Array) -> Array:
    """Return P(a, x), the regularized lower incomplete gamma function, by its power series.

    The arrays have one shape, and a, x > 0. After `MAX_TERMS` terms the sum ends unconverged.
    """
    term, total = np.ones(a.shape), np.ones(a.shape)
    for k in range(1, MAX_TERMS):
        term = term * (x / (a + k))
        total = total + term
        if not (term > total * 1e-17).any():
            break
    return _prefactor(a, x) * (total / a)


def _fraction(a: Array, x: Array) -> Array:
    """Return Q(a, x), the regularized upper incomplete gamma function, for x > 1.1 and x >= a > 0.

    The method is its continued fraction, which ends when each element has converged, or after
    `MAX_TERMS` terms.
    """
    b = x + 1 - a
    c, d, more = np.full(a.shape, 1e300), 1 / b, np.full(a.shape, True)
    out = d
    for k in range(1, MAX_TERMS):
        n = k * (a - k)
        b = b + 2
        d = 1 / (n * d + b)
        c = b + n / c
        out = np.where(more, out * (c * d), out)
        more &= np.abs(c * d - 1) > CONVERGED
        if not more.any():
            break
    return _prefactor(a, x) * out


def _upper_rest(a: Array, x: Array) -> Array:
    """Return Q(a, x) for 0 < x <= 1.1 and a small a > 0, where 1 - P(a, x) would cancel."""
    series = sum((-x) ** k / (factorial(k) * (a + k)) for k in range(1, 40))
    after = _lgamma_after(a)
    power = a * np.log(x) - after
    return -np.expm1(power) - a * np.exp(power) * series


def _lgamma_after(a: Array) -> Array:
    """Return lgamma(1 + a) for 0 < a < 2, accurately also for a near 0."""
    small = np.minimum(a, 0.25)
    power, out = small * small, -0.5772156649015329 * small
    for k in range(2, 40):
        out = out + (-1) ** k * float(zeta(float(k), 1.0)) / k * power
        power = power * small
    return np.where(a < 0.25, out, lgamma(1 + a))


def _about(a: Array, x: Array, sign: float) -> Array:
    """Return Q(a, x) (``sign`` 1) or P(a, x) (``sign`` -1) for a >= `LARGE` and x near a.

    The formula is Temme's uniform asymptotic expansion.
    """
    half = -_log_less((x - a) / a, x / a)
    eta = np.copysign(np.sqrt(2 * half), x - a)
    near = np.clip(eta, -0.02, 0.02)  # farther away the result is 0 or 1
    c0 = -1 / 3 + near * (1 / 12 + near * (-2 / 135 + near * (1 / 864 + near / 2835)))
    c1 = -1 / 540 - near / 288
    rest = np.exp(-a * half) / np.sqrt(2 * np.pi * a) * (c0 + c1 / a)
    return 0.5 * each(erfc, sign * eta * np.sqrt(a / 2)) + sign * rest


def _incomplete_gamma(a: Array, x: Array, upper: bool) -> Array:
    """Return Q(a, x) (``upper``) or P(a, x), by the method for each element's range.

    The arguments broadcast. The result is NaN unless a > 0 and x >= 0, and where both are infinite;
    but P(a, 0) is 0 for every a, also for NaN.
    """
    a, x = _arrays(a, x)
    with np.errstate(all="ignore"):
        out = np.full(a.shape, np.nan)
        valid = (a > 0) & (x >= 0) & ~(np.isinf(a) & np.isinf(x))
        out[valid & ((x == 0) | np.isinf(a))] = float(upper)
        out[(x == 0) & (not upper)] = 0.0
        out[valid & np.isinf(x)] = float(not upper)
        inner = valid & (x > 0) & np.isfinite(a) & np.isfinite(x)
        far = inner & (a >= LARGE) & (np.abs(x - a) < 0.02 * a)
        _apply_where(far, lambda a, x: _about(a, x, 1.0 if upper else -1.0), out, a, x)
        inner &= ~far
        small = x <= 1.1
        least = np.where(x <= 0.5, -0.4 / np.log(np.minimum(x, 0.5)) >= a, x * 1.1 >= a)
        sums = np.where(small, ~least if upper else True, x < a)
        _apply_where(inner & sums, lambda *v: 1 - _series(*v) if upper else _series(*v), out, a, x)
        _apply_where(inner & ~sums & small, _upper_rest, out, a, x)
        rest = inner & ~sums & ~small
        _apply_where(rest, lambda *v: _fraction(*v) if upper else 1 - _fraction(*v), out, a, x)
    return out


def igamma(a: Array, x: Array) -> Array:
    """Return the regularized lower incomplete gamma function P(a, x).

    The arguments broadcast. The result is 0 where x = 0, for every a; elsewhere it is NaN unless a
    and x are positive and not both infinite.
    """
    return _incomplete_gamma(a, x, upper=False)


def igammac(a: Array, x: Array) -> Array:
    """Return the regularized upper incomplete gamma function Q(a, x) = 1 - P(a, x).

    The arguments broadcast. The result is NaN unless a > 0 and x >= 0, and where both are infinite.
    """
    return _incomplete_gamma(a, x, upper=True)


def _beta_fraction(a: Array, b: Array, x: Array) -> Array:
    """Return the continued fraction of the regularized incomplete beta function I_x(a, b).

    It converges quickly for x < (a + 1) / (a + b + 2), and ends after `MAX_TERMS` terms anyway.
    """
    c, d, more = np.ones(a.shape), 1 / (1 - (a + b) / (a + 1) * x), np.full(a.shape, True)
    out = d
    for k in range(1, MAX_TERMS):
        m = a + 2.0 * k
        even = k / (m - 1) * ((b - k) / m) * x
        odd = -(a + k) / m * ((a + b + k) / (m + 1)) * x
        d, c = 1 / (1 + even * d), 1 + even / c
        first = c * d
        d, c = 1 / (1 + odd * d), 1 + odd / c
        out = np.where(more, out * (first * (c * d)), out)
        more &= np.abs(c * d - 1) > CONVERGED
        if not more.any():
            break
    return out


def _beta_inside(a: Array, b: Array, x: Array) -> Array:
    """Return I_x(a, b) for finite a, b > 0 that are not tiny, and 0 < x < 1."""
    s, y = a + b, 1 - x
    off = np.where(x < 0.5, a - s * x, s * y - b)
    power = a * _log_less(-off / a, s / a * x) + b * _log_less(off / b, s / b * y)
    power = power + _stirling_rest(s) - _stirling_rest(a) - _stirling_rest(b)
    front = np.sqrt(a / s * b / (2 * np.pi)) * np.exp(power)
    turned = x * (s + 2) > a + 1
    p, q, at = np.where(turned, b, a), np.where(turned, a, b), np.where(turned, y, x)
    part = front * (_beta_fraction(p, q, at) / p)
    return np.where(turned, 1 - part, part)


def betainc(a: Array, b: Array, x: Array) -> Array:
    """Return the regularized incomplete beta function I_x(a, b).

    The arguments broadcast. The result is NaN unless a, b > 0, not both of them infinite, and
    0 <= x <= 1.
    """
    a, b, x = _arrays(a, b, x)
    with np.errstate(all="ignore"):
        valid = (a > 0) & (b > 0) & (x >= 0) & (x <= 1) & ~(np.isinf(a) & np.isinf(b))
        out = np.where(valid, x, np.nan)
        inner = valid & (x > 0) & (x < 1)
        out = np.where(inner & np.isinf(a), 0.0, np.where(inner & np.isinf(b), 1.0, out))
        inner &= np.isfinite(a) & np.isfinite(b)
        tiny = np.minimum(a, b) < 1e-200
        out = np.where(inner & tiny, b / (a + b), out)
        _apply_where(inner & ~tiny, _beta_inside, out, a, b, x)
    return out


def _zeta_above(s: Array, q: Array) -> Array:
    """Return the sum of (q + k)^-s over k >= 0, for q > 0 and s > 1.

    The method is twelve terms and the Euler-Maclaurin formula for the rest.
    """
    total = np.zeros(s.shape)
    for k in range(12):
        total = total + (q + k) ** -s
    q = q + 12
    power = q**-s
    tail, term = q / (s - 1) * power + 0.5 * power, power * (s / q)
    for k, b in enumerate(BERNOULLI, 1):
        tail = tail + term * (b / factorial(2 * k))
        term = term * ((s + 2 * k - 1) / q * ((s + 2 * k) / q))
    return total + np.where(power > 0, tail, 0)


def _is_even(s: Array) -> Array:
    """Return a mask of the elements of ``s`` that are even integers or infinite."""
    return np.isinf(s) | (s % 2 == 0)


def _zeta_below(s: Array, q: Array) -> Array:
    """Return the sum of (q + k)^-s over k >= 0 for q < 0, not an integer, and an integer s > 1.

    Terms below and above 0 are summed separately.
    """
    sign, least = np.where(_is_even(s), 1.0, -1.0), q - np.floor(q + 0.5)
    one = np.where(least < 0, sign, 1.0) * np.abs(least) ** -s
    below = _zeta_above(s, 1 - least) - _zeta_above(s, 1 - q)
    return one + _zeta_above(s, 1 + least) + sign * below


def zeta(s: Array, q: Array) -> Array:
    """Return Hurwitz' zeta function, the sum of (q + k)^-s over k >= 0.

    The arguments broadcast. The result is infinite for s = 1, and NaN for s < 1, for q < 0 unless s
    is an integer, and where an argument is NaN. At the poles q = 0, -1, …, with s > 1, it is
    infinite for even and infinite s and NaN for others.
    """
    s, q = _arrays(s, q)
    with np.errstate(all="ignore"):
        out = np.full(s.shape, np.nan)
        valid = (s > 1) & ~np.isnan(q)
        out[(s == 1) & ~np.isnan(q)] = np.inf
        pole = valid & (q <= 0) & (q == np.floor(q))
        out[pole & _is_even(s)] = np.inf
        _apply_where(valid & (q > 0), _zeta_above, out, s, q)
        _apply_where(valid & (q < 0) & ~pole & (s == np.floor(s)), _zeta_below, out, s, q)
    return out
