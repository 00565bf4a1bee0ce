"""Special functions that NumPy lacks, for the interpreter.

They are accurate in float64 and use other methods than the kernels, which are compared with them.

Sources: NIST Digital Library of Mathematical Functions, 5.11 and 5.15 (gamma functions), 7.12
(error function); S. Boldo, G. Melquiond, Emulation of a FMA and Correctly Rounded Sums, 2008.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

Array = Any

BERNOULLI = [
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
]
"""The Bernoulli numbers B2, B4, …, B20."""
FAR = 12.0
"""From this argument on, asymptotic series with the terms above are exact to the last bit."""


def each(f: Callable[[float], float], x: Array) -> Array:
    """Return a float64 array of ``f`` of every element of ``x``, of the same shape."""
    flat = np.ascontiguousarray(x, np.float64).reshape(-1)
    return np.fromiter(map(f, flat.tolist()), np.float64, flat.size).reshape(np.shape(x))


def lgamma(x: Array) -> Array:
    """Return log|gamma(x)| of each element, in float64; inf at 0, negative integers and -inf."""
    return each(_lgamma, x)


def _lgamma(x: float) -> float:
    """Return log|gamma(x)| of a number; inf at poles and where the result overflows."""
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def tgamma(x: Array) -> Array:
    """Return the gamma function of each element, in float64.

    NaN at negative integers and -inf; infinite at 0, with the sign of the zero, and where it
    overflows.
    """
    return each(_tgamma, x)


def _tgamma(x: float) -> float:
    """Return the gamma function of a number.

    NaN at negative integers and -inf; infinite at 0, with the sign of the zero, and where it
    overflows.
    """
    try:
        return math.gamma(x)
    except OverflowError:  # x is large, or next to the pole at 0, where the result has its sign
        return math.copysign(math.inf, x)
    except ValueError:
        return math.copysign(math.inf, x) if x == 0 else math.nan


def digamma(x: Array) -> Array:
    """Return the derivative of lgamma in float64.

    It is -inf at 0, inf at -0, and NaN at negative integers and -inf.
    """
    x = np.asarray(x, np.float64)
    low = x < 0.5
    b, total = np.where(low, 1 - x, x), np.zeros(x.shape)
    for _ in range(int(FAR)):
        total = total + np.where(b < FAR, 1 / b, 0)
        b = np.where(b < FAR, b + 1, b)
    tail = sum(c / (2 * k * b ** (2 * k)) for k, c in enumerate(BERNOULLI, 1))
    above = np.log(b) - 0.5 / b - tail - total
    fraction = np.where(x == 0, x, x - np.rint(x))
    cotangent = np.sin(np.pi * (0.5 - np.abs(fraction))) / np.sin(np.pi * fraction)
    pole = low & (fraction == 0) & (x != 0)
    return np.where(pole, np.nan, np.where(low, above - np.pi * cotangent, above))


def trigamma(x: Array) -> Array:
    """Return the derivative of digamma in float64; inf at 0 and negative integers, NaN at -inf."""
    x = np.asarray(x, np.float64)
    low = x < 0.5
    b, total = np.where(low, 1 - x, x), np.zeros(x.shape)
    for _ in range(int(FAR)):
        total = total + np.where(b < FAR, 1 / (b * b), 0)
        b = np.where(b < FAR, b + 1, b)
    tail = sum(c / b ** (2 * k + 1) for k, c in enumerate(BERNOULLI, 1))
    above = total + 1 / b + 0.5 / (b * b) + tail
    square = (np.pi / np.sin(np.pi * (x - np.rint(x)))) ** 2
    return np.where(low, square - above, above)


def erfinv(y: Array) -> Array:
    """Return x with erf(x) = y, in float64; infinite at y = 1 and -1, NaN beyond."""
    y = np.asarray(y, np.float64)
    a = np.abs(y)
    with np.errstate(all="ignore"):
        return np.copysign(np.where(a <= 0.5, _erf_middle(a), _erfc_tail(1 - a)), y)


def erfcinv(y: Array) -> Array:
    """Return x with erfc(x) = y, in float64; infinite at y = 0 and 2, NaN beyond."""
    y = np.asarray(y, np.float64)
    with np.errstate(all="ignore"):
        tail = _erfc_tail(np.where(y > 1, 2 - y, y))
        middle = np.copysign(_erf_middle(np.abs(1 - y)), 1 - y)
        return np.where(np.abs(1 - y) <= 0.5, middle, np.where(y > 1, -tail, tail))


def _erf_middle(a: Array) -> Array:
    """Return x with erf(x) = a for 0 <= a <= 1/2, by Halley's method; larger a count as 1/2."""
    a = np.minimum(a, 0.5)
    x = _guess(a)
    for _ in range(3):
        off = (each(math.erf, x) - a) * (np.sqrt(np.pi) / 2) * np.exp(x * x)
        x = x - off / (1 + x * off)
    return np.where(a < 1e-8, a * (np.sqrt(np.pi) / 2), x)


def _erfc_tail(y: Array) -> Array:
    """Return x with erfc(x) = y for y <= 1/2, by Newton's method on the logarithm.

    It is infinite at y = 0 and NaN below; larger y count as 1/2.
    """
    low = np.clip(y, 5e-324, 0.5)
    log = np.log(low)
    x = np.where(low > 1e-3, _guess(1 - low), np.sqrt(np.maximum(-log - 2, 1)))
    for _ in range(6):
        value, slope = _log_erfc(x)
        x = x - (value - log) / slope
    return np.where(y > 0, x, np.where(y == 0, np.inf, np.nan))


def _guess(a: Array) -> Array:
    """Return erfinv(a) to three digits, for 0 <= a < 1.

    Source: S. Winitzki, Approximation for the error function, 2008.
    """
    log = np.log1p(-a * a)
    half = 2 / (np.pi * 0.147) + log / 2
    return np.sqrt(np.sqrt(half * half - log / 0.147) - half)


def _log_erfc(x: Array) -> tuple[Array, Array]:
    """Return the pair of log(erfc(x)) and its derivative; for x > 10 by an asymptotic series."""
    near = np.minimum(x, 10.0)
    value = each(math.erfc, near)
    h = 1 / (2 * np.maximum(x, 10.0) ** 2)
    term, series = np.ones(np.shape(x)), np.ones(np.shape(x))
    for k in range(1, 18):
        term = -term * (2 * k - 1) * h
        series = series + term
    far = -x * x + np.log(series / (x * np.sqrt(np.pi)))
    slope = np.where(x < 10, -2 / np.sqrt(np.pi) * np.exp(-near * near) / value, -2 * x / series)
    return np.where(x < 10, np.log(value), far), slope


def fma(x: Array, y: Array, z: Array) -> Array:
    """Return ``x * y + z``, rounded once to the dtype that the operands' dtypes promote to.

    The arguments are floats of at most 64 bits, which broadcast.
    """
    dtype = np.result_type(x, y, z)
    a, b, c = np.broadcast_arrays(*(np.asarray(v, np.float64) for v in (x, y, z)))
    with np.errstate(all="ignore"):
        if dtype.itemsize < 8:  # the product is exact in float64
            return _sum_to_odd(a * b, c).astype(dtype)
        high, low = _product(a, b)
        top, rest = _two_sum(c, low)
        most, least = _two_sum(high, top)
        out = np.asarray(most + _sum_to_odd(least, rest))
        size = np.maximum(np.abs(a), np.abs(b))
        least_size = np.minimum(np.abs(a), np.abs(b))
        is_simple = (size < 1e130) & (least_size > 1e-130) & (np.abs(c) < 1e280)
        factors = np.isfinite(a) & np.isfinite(b)
        hard = ~is_simple & factors & np.isfinite(c)
        out = np.where(is_simple, out, a * b + c)
        out = np.where(factors & ~np.isfinite(c), c, out)  # a product that overflows is finite
        for k in np.argwhere(np.atleast_1d(hard)):
            at = tuple(k[: out.ndim])
            out[at] = _exactly(float(a[at]), float(b[at]), float(c[at]))
        return out


def _exactly(x: float, y: float, z: float) -> float:
    """Return x * y + z of finite numbers, rounded once; infinite where it overflows."""
    total = Fraction(x) * Fraction(y) + Fraction(z)
    if total == 0:
        return x * y + z if x * y == 0 or z == 0 else 0.0
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded sum of float64 numbers, and its rounding error.

    The error is exact unless the sum overflows.
    """
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _product(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the rounded product of float64 numbers, and its rounding error.

    The error is exact unless an intermediate result overflows or underflows.
    """
    p = a * b
    (ah, al), (bh, bl) = (_halves(v) for v in (a, b))
    return p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)


def _halves(a: Array) -> tuple[Array, Array]:
    """Split float64 numbers into a high and a low part of half the precision (Veltkamp's method).

    Return (high, low), whose sum is ``a``.
    """
    t = a * 134217729.0  # 2^27 + 1
    high = t - (t - a)
    return high, a - high


def _sum_to_odd(a: Array, b: Array) -> Array:
    """Return the float64 sum rounded to odd, so that a later rounding to fewer bits is correct."""
    s, lost = _two_sum(a, b)
    bits = np.asarray(s).view(np.int64)
    even = (lost != 0) & np.isfinite(lost) & (bits & 1 == 0)
    step = np.where((lost > 0) == (s > 0), 1, -1)
    return np.where(even, (bits + step).view(np.float64), s)
