"""Functions with equal bits on every target: log, exp, cos and the inverse normal distribution.

They consist of additions, multiplications, divisions, square roots, comparisons and choices, which
IEEE 754 defines to the last bit. Libraries' functions differ in it from processor to processor.
The first parameter ``m`` of each function holds the functions to compute with: `passkit.ops` for
entries, or `ARRAYS` for NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, log2, pi
from typing import Any

import numpy as np

from passkit.runtime.philox import philox
from passkit.values.dtype import dtype_of


class ArrayMath:
    """The operators of `passkit.ops` that this module uses, for NumPy arrays."""

    abs = staticmethod(np.abs)
    argsort = staticmethod(np.argsort)
    equal = staticmethod(np.equal)
    floor = staticmethod(np.floor)
    greater = staticmethod(np.greater)
    ldexp = staticmethod(np.ldexp)
    less = staticmethod(np.less)
    logical_and = staticmethod(np.logical_and)
    logical_or = staticmethod(np.logical_or)
    maximum = staticmethod(np.maximum)
    minimum = staticmethod(np.minimum)
    nextafter = staticmethod(np.nextafter)
    reshape = staticmethod(np.reshape)
    rint = staticmethod(np.rint)
    sqrt = staticmethod(np.sqrt)
    where = staticmethod(np.where)
    zeros_like = staticmethod(np.zeros_like)

    @staticmethod
    def cast(x: Any, dtype: Any) -> Any:
        """Return a new array of a dtype or name of one, converted as by `numpy.ndarray.astype`."""
        return np.asarray(x).astype(dtype_of(dtype).numpy)

    @staticmethod
    def arange(start: int, stop: int, step: int, dtype: Any) -> Any:
        """Return the numbers from ``start`` to below ``stop`` in steps, of a dtype of NumPy."""
        return np.arange(start, stop, step).astype(dtype)

    @staticmethod
    def reduce_min(x: Any, axis: int) -> Any:
        """Return the smallest elements along an axis."""
        return np.min(x, axis=axis)

    @staticmethod
    def expand_dims(x: Any, axis: int) -> Any:
        """Return a view of an array with another axis of extent 1, at ``axis`` of the result."""
        return np.expand_dims(x, axis)

    @staticmethod
    def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
        """Return a read-only view of an array, broadcast to a shape."""
        return np.broadcast_to(x, shape)

    @staticmethod
    def philox(counter: Any, stream: Any, key: Any, half: int) -> Any:
        """Return half 0 or 1, 64 of 128 bits, of blocks of Philox4x32-10, as int64.

        ``counter`` and ``stream`` are the lower and upper words of the counters, and ``key`` the
        keys: int64 arrays that broadcast.
        """
        return np.asarray(philox(counter, stream, key)[half])

    @staticmethod
    def random_words(key: Any, shape: tuple[int, ...], stream: int, half: int) -> Any:
        """Return 64 random bits for each element of an array of a shape, as int64.

        ``stream`` and ``half`` (0 or 1) select independent bits of one key.
        """
        positions = np.arange(int(np.prod(shape, dtype=object))).reshape(shape)
        return np.asarray(philox(positions, np.int64(stream), key)[half])


ARRAYS = ArrayMath()
"""The functions for NumPy arrays."""


def polynomial(x: Any, coefficients: Sequence[float]) -> Any:
    """Return a polynomial of ``x`` by Horner's rule.

    There are two coefficients or more, that of the highest power first.
    """
    result = x * coefficients[0] + coefficients[1]
    for c in coefficients[2:]:
        result = result * x + c
    return result


def is_double(x: Any) -> bool:
    """Return whether an entry or array has elements of 8 bytes, here float64 and not float32."""
    return bool(x.dtype.itemsize == 8) if isinstance(x.dtype, np.dtype) else x.dtype.nbytes == 8


LN2_HIGH, LN2_LOW = 0.693145751953125, 1.42860682030941723e-6
"""log(2) as a sum; the first part has few bits, so that its multiples are exact."""


def log(m: Any, x: Any, up: int = 0) -> Any:
    """Return the natural logarithm.

    Args:
        m: the functions to compute with, `passkit.ops` or `ARRAYS`.
        x: float32 from 2**(up - 32) to 2**up, or float64 from 2**(up - 64) to 2**up. It is not
            checked: others give wrong numbers.
        up: the exponent of the largest number.

    The mantissa between sqrt(1/2) and sqrt(2) is found by comparisons. Its logarithm is the series
    of 2 artanh(s) for s = (x - 1) / (x + 1).
    """
    exponent = m.zeros_like(x) + float(up)
    x = x * 2.0**-up if up else x
    for bits in (32, 16, 8, 4, 2, 1) if is_double(x) else (16, 8, 4, 2, 1):
        is_below = x < 2.0**-bits
        x = m.where(is_below, x * 2.0**bits, x)
        exponent = m.where(is_below, exponent - float(bits), exponent)
    is_below = x < 0.5**0.5
    x = m.where(is_below, x * 2.0, x)
    exponent = m.where(is_below, exponent - 1.0, exponent)
    s = (x - 1.0) / (x + 1.0)
    terms = 11 if is_double(x) else 5
    series = polynomial(s * s, [2.0 / (2 * k + 1) for k in reversed(range(terms + 1))])
    return exponent * LN2_HIGH + (exponent * LN2_LOW + s * series)


def exp(m: Any, x: Any) -> Any:
    """Return the exponential function of floats from -700 to 700, in float32 from -87 to 87.

    ``m`` holds the functions to compute with: `passkit.ops` or `ARRAYS`.
    """
    exponent = m.rint(x * log2(np.e))
    rest = x - exponent * LN2_HIGH - exponent * LN2_LOW
    terms = 13 if is_double(x) else 7
    series = polynomial(rest, [1.0 / factorial(k) for k in reversed(range(terms + 1))])
    return m.ldexp(series, m.cast(exponent, dtype="int32"))


def cos_of_turns(m: Any, u: Any) -> Any:
    """Return the cosine of ``u`` full turns, for floats from 0 to 1.

    The angle to the nearest quarter is at most pi/4, for which Taylor's series are short. ``m``
    holds the functions to compute with: `passkit.ops` or `ARRAYS`.
    """
    quarter = m.floor(u * 4.0 + 0.5)
    angle = (u - quarter * 0.25) * (2 * pi)
    square = angle * angle
    terms = 8 if is_double(u) else 4
    cosine = polynomial(square, [(-1.0) ** k / factorial(2 * k) for k in range(terms, -1, -1)])
    sine = angle * polynomial(
        square, [(-1.0) ** k / factorial(2 * k + 1) for k in range(terms, -1, -1)]
    )
    is_odd = m.equal((quarter - 2.0) * (quarter - 2.0), 1.0)
    value = m.where(is_odd, sine, cosine)
    # At one quarter the cosine is minus the sine of the rest, at two it is minus its cosine.
    return m.where(m.less((quarter - 1.5) * (quarter - 1.5), 1.0), -value, value)


CENTRAL = (
    (
        2509.0809287301226727,
        33430.575583588128105,
        67265.770927008700853,
        45921.953931549871457,
        13731.693765509461125,
        1971.5909503065514427,
        133.14166789178437745,
        3.387132872796366608,
    ),
    (
        5226.495278852854561,
        28729.085735721942674,
        39307.89580009271061,
        21213.794301586595867,
        5394.1960214247511077,
        687.1870074920579083,
        42.313330701600911252,
        1.0,
    ),
)
NEAR = (
    (
        7.7454501427834140764e-4,
        0.0227238449892691845833,
        0.24178072517745061177,
        1.27045825245236838258,
        3.64784832476320460504,
        5.7694972214606914055,
        4.6303378461565452959,
        1.42343711074968357734,
    ),
    (
        1.05075007164441684324e-9,
        5.475938084995344946e-4,
        0.0151986665636164571966,
        0.14810397642748007459,
        0.68976733498510000455,
        1.6763848301838038494,
        2.05319162663775882187,
        1.0,
    ),
)
FAR = (
    (
        2.01033439929228813265e-7,
        2.71155556874348757815e-5,
        0.0012426609473880784386,
        0.026532189526576123093,
        0.29656057182850489123,
        1.7848265399172913358,
        5.4637849111641143699,
        6.6579046435011037772,
    ),
    (
        2.04426310338993978564e-15,
        1.4215117583164458887e-7,
        1.8463183175100546818e-5,
        7.868691311456132591e-4,
        0.0148753612908506148525,
        0.13692988092273580531,
        0.59983220655588793769,
        1.0,
    ),
)
"""Numerators and denominators, the highest power first: for |p - 1/2| up to 0.425, for tails down
to exp(-25), and beyond.

Source: Wichura, Algorithm AS 241, PPND16.
"""


def inverse_normal(m: Any, p: Any) -> Any:
    """Return where the normal distribution function is ``p``, for floats between 0 and 1.

    Float32 is accurate to 2**-24 in ``p``. ``m`` holds the functions to compute with: `passkit.ops`
    or `ARRAYS`. Source: Wichura, Algorithm AS 241.
    """
    q = p - 0.5
    tail = m.minimum(p, 1.0 - p)
    smallest = 2.0**-64 if is_double(p) else 2.0**-31
    root = m.sqrt(-log(m, m.maximum(tail, smallest)))
    central, near, far = (
        polynomial(x, numerator) / polynomial(x, denominator)
        for x, (numerator, denominator) in (
            (0.180625 - q * q, CENTRAL),
            (root - 1.6, NEAR),
            (root - 5.0, FAR),
        )
    )
    outer = m.where(m.greater(root, 5.0), far, near)
    outer = m.where(m.less(q, 0.0), -outer, outer)
    return m.where(m.less(q * q, 0.425 * 0.425), q * central, outer)
