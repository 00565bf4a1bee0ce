"""Constants whose reciprocal, as a sum of two floats, divides with the division's own rounding.

With 1 / c = high + low, x / c is close to x high + x low, rounded once by a fused multiply-add. The
sum is so accurate that only an x whose quotient lies next to the middle of two floats can be
rounded wrongly, and there are few of those: N. Brisebarre, J.-M. Muller, S. K. Raina, Accelerating
Correctly Rounded Floating-Point Division when the Divisor Is Known in Advance, 2004.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

from passkit.ast.expr import Binary, Const, Expr
from passkit.values import dtype as dt

PRECISION = {4: 24, 8: 53}
"""Bits of a float of so many bytes."""
RANGE = {4: 60, 8: 500}
"""The divisor's exponent lies between minus this and this, so that its reciprocal is normal."""
TRIES = 3
"""How many neighbours of low are tried on either side."""
LEAST, MOST = 2.0**-32, 2.0**32
"""Between these, any divisor can be prepared at run time."""


@lru_cache(maxsize=1024)
def reciprocal(c: float, nbytes: int) -> tuple[float, float] | None:
    """Return ``(high, low)``, by which every x is divided by ``c`` with correct rounding, or None.

    ``c`` is a float of ``nbytes`` bytes. High is rounded towards 0, so that low > 0: then zeros,
    infinities and NaN come out right too. Products must be normal numbers.
    """
    p = PRECISION[nbytes]
    if not (math.isfinite(c) and c > 0):
        return None
    mantissa, exponent = math.frexp(c)
    if abs(exponent) > RANGE[nbytes] or mantissa == 0.5:
        return None
    m = int(mantissa * 2**p)  # c = m 2^(exponent - p)
    scale = 4 * p  # high and low in units of 2^-scale / 2^(exponent - p)
    whole = (1 << scale) // m
    high = _cut(whole, p)
    rest = (1 << scale) - high * m  # low m / m
    unit = 1 << max(0, (rest // m).bit_length() - p)
    nearest = (rest + m * unit // 2) // (m * unit)
    for step in sorted(range(-TRIES, TRIES + 1), key=abs):
        low = (nearest + step) * unit
        if (
            low > 0
            and low.bit_length() - p <= unit.bit_length() - 1
            and _divides(m, high, low, scale, p)
        ):
            shift = p - exponent - scale
            return math.ldexp(high, shift), math.ldexp(low, shift)
    return None


def _divides(m: int, high: int, low: int, scale: int, p: int) -> bool:
    """Return whether rounded x high + rounded x low is rounded x / m for all integers of p bits."""
    return all(
        _rounded(x * high + _rounded(x * low, p), p) == _quotient(x, m, scale, p)
        for x in _hard(m, p)
    )


def _hard(m: int, p: int) -> Iterator[int]:
    """Yield the x whose quotient by m lies within 16 units of 2^-2p from the middle of two floats.

    x / m = (2k + 1) / 2^s + r / (m 2^s) with s = p where x >= m, else p + 1: then x 2^s is r modulo
    m, and r is small.
    """
    first, last = 1 << (p - 1), 1 << p
    for s, low, high in ((p, m, last), (p + 1, first, m)):
        for r in range(-32, 33):
            g = math.gcd(1 << s, m)
            if r == 0 or r % g:  # 0: the quotient is a float itself, as it is never the middle
                continue
            part = m // g
            x = r // g * pow((1 << s) // g, -1, part) % part if part > 1 else 0
            x += -(-(low - x) // part) * part
            yield from range(x, high, part)


def _cut(n: int, p: int) -> int:
    """Return n rounded towards 0 to p bits."""
    shift = max(0, n.bit_length() - p)
    return n >> shift << shift


def _rounded(n: int, p: int) -> int:
    """Return n rounded to the nearest number of p bits, from the middle to the even one."""
    shift = max(0, n.bit_length() - p)
    if shift == 0:
        return n
    cut, rest, half = n >> shift, n & ((1 << shift) - 1), 1 << (shift - 1)
    return cut + (rest > half or (rest == half and cut & 1 == 1)) << shift


def _quotient(x: int, m: int, scale: int, p: int) -> int:
    """Return x 2^scale / m rounded to p bits; no quotient is the middle of two floats."""
    return _rounded(2 * ((x << scale) // m) + 1, p) // 2


def is_quotient(x: Expr) -> bool:
    """Return whether an expression is a quotient of float32 that is not a multiplication."""
    if not isinstance(x, Binary) or x.op != "/" or x.dtype is not dt.float32:
        return False
    return not (isinstance(x.b, Const) and _is_power_of_two(float(x.b.value)))


def has_divisor(c: Const) -> bool:
    """Return whether a literal is a divisor: a known one, or one that is prepared at run time."""
    value = float(c.value)
    if not math.isfinite(value) or value == 0:
        return False
    return reciprocal(abs(value), c.dtype.nbytes) is not None or LEAST <= value <= MOST


def is_known_divisor(c: Const) -> bool:
    """Return whether a literal's reciprocal, as a sum of two floats, divides as it does."""
    return reciprocal(abs(float(c.value)), c.dtype.nbytes) is not None


def parts_of(c: Const) -> tuple[float, float]:
    """Return the high and low part of the reciprocal of a known divisor."""
    value = float(c.value)
    pair = reciprocal(abs(value), c.dtype.nbytes)
    assert pair is not None
    return math.copysign(pair[0], value), math.copysign(pair[1], value)


def _is_power_of_two(value: float) -> bool:
    return math.isfinite(value) and abs(math.frexp(value)[0]) == 0.5
