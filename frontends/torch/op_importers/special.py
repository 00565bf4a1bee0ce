"""Importers of special functions: complementary error functions, Bessel functions, polynomials."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import passkit.ops as ops
from passkit.frontends.torch.op_importers.elementwise import DEFAULT, TO_FLOAT, promoted
from passkit.frontends.torch.op_importers.registry import (
    IMPORTERS,
    AtenCall,
    aten,
    cast,
    dtype_name,
    imports,
)
from passkit.graph.node import Entry
from passkit.values.dtype import dtype_of

# Error functions.


def _erfcx(x: Entry) -> Entry:
    """Return exp(x^2) erfc(x), for large x by its asymptotic series."""
    limit = 20.0 if dtype_name(x) == "float64" else 8.0
    near = ops.minimum(x, limit)
    plain = ops.exp(near * near) * ops.erfc(near)
    far = ops.maximum(x, limit)
    ratio = 0.5 / (far * far)
    series: Any = 1.0
    for k in range(8, 0, -1):
        series = 1 - (2 * k - 1) * ratio * series
    return ops.where(ops.greater(x, limit), series / (far * math.sqrt(math.pi)), plain)


def _spherical_bessel_j0(x: Entry) -> Entry:
    """Return sin(x) / x, 1 at 0 and 0 at infinity."""
    square = x * x
    series: Any = 1.0
    for k in range(6, 0, -1):
        series = 1 - square / (2 * k * (2 * k + 1)) * series
    quotient = ops.where(ops.is_inf(x), ops.zeros_like(x), ops.sin(x) / x)
    return ops.where(ops.less(ops.abs(x), 0.5), series, quotient)


def _unary(function: Callable[[Entry], Entry], call: AtenCall, x: Entry) -> Entry:
    """Import a function of one number; 16-bit floats are computed as float32."""
    (a,), dtype = promoted(call, TO_FLOAT, (x,), (call.args[0],))
    return cast(function(a), dtype)


IMPORTERS[aten.special_erfcx.default] = partial(_unary, _erfcx)
IMPORTERS[aten.special_ndtri.default] = partial(_unary, ops.inv_Phi)
IMPORTERS[aten.special_spherical_bessel_j0.default] = partial(_unary, _spherical_bessel_j0)


# Parts and digits of floats.


@imports(aten.round.decimals)
def _round_decimals(call: AtenCall, x: Entry, *, decimals: int) -> Entry:
    """Import numbers rounded to decimal digits; of negative ones to powers of 10."""
    if not call.dtype.is_float:
        return x
    (a,), dtype = promoted(call, DEFAULT, (x,), (call.args[0],))
    scale = 10.0 ** abs(decimals)
    if decimals >= 0:
        return cast(ops.round(a * scale) / scale, dtype)
    return cast(ops.round(a / scale) * scale, dtype)


@imports(aten.frexp.Tensor)
def _frexp(call: AtenCall, x: Entry) -> list[Entry]:
    """Import numbers as mantissas, from 0.5 to 1, and powers of 2."""
    wide = cast(x, dtype_of("float64"))
    is_plain = ops.logical_and(ops.is_finite(wide), ops.not_equal(wide, 0))
    magnitude = ops.where(is_plain, ops.abs(wide), 1.0)
    power = ops.cast(ops.floor(ops.log2(magnitude)), "int32") + 1
    mantissa = ops.ldexp(magnitude, -power)
    power = ops.where(ops.greater_equal(mantissa, 1), power + 1, power)
    power = ops.where(ops.less(mantissa, 0.5), power - 1, power)
    power = ops.where(is_plain, power, 0)
    return [cast(ops.ldexp(wide, -power), call.dtype), power]


# Chebyshev polynomials, by the angle whose cosine is x.


def _first_kind(x: Entry, n: Entry) -> Entry:
    """Return the Chebyshev polynomials of the first kind."""
    inside = ops.cos(n * ops.acos(_inside(x)))
    outside = ops.cosh(n * ops.acosh(_outside(x))) * _sign(x, n)
    return _chosen(x, inside, outside)


def _second_kind(x: Entry, n: Entry) -> Entry:
    """Return the Chebyshev polynomials of the second kind."""
    angle, distance = ops.acos(_inside(x)), ops.acosh(_outside(x))
    inside = ops.sin((n + 1) * angle) / ops.sin(angle)
    outside = ops.sinh((n + 1) * distance) / ops.sinh(distance) * _sign(x, n)
    at_one = (n + 1) * _sign(x, n)
    return ops.where(ops.equal(ops.abs(x), 1), at_one, _chosen(x, inside, outside))


def _third_kind(x: Entry, n: Entry) -> Entry:
    """Return the Chebyshev polynomials of the third kind: 1 at 1."""
    angle, distance = ops.acos(_inside(x)), ops.acosh(_outside(x))
    inside = ops.cos((n + 0.5) * angle) / ops.cos(angle / 2)
    above = ops.cosh((n + 0.5) * distance) / ops.cosh(distance / 2)
    below = ops.sinh((n + 0.5) * distance) / ops.sinh(distance / 2) * _sign(x, n)
    outside = ops.where(ops.greater(x, 0), above, below)
    at_minus_one = (2 * n + 1) * _sign(x, n)
    return ops.where(ops.equal(x, -1), at_minus_one, _chosen(x, inside, outside))


def _fourth_kind(x: Entry, n: Entry) -> Entry:
    """Return the Chebyshev polynomials of the fourth kind: 1 at -1, up to the sign."""
    return _third_kind(-x, n) * ops.where(_is_odd(n), -1.0, 1.0)


def _inside(x: Entry) -> Entry:
    """Return x limited to the range from -1 to 1."""
    return ops.minimum(ops.maximum(x, -1), 1)


def _outside(x: Entry) -> Entry:
    """Return the magnitude of x, at least 1."""
    return ops.maximum(ops.abs(x), 1)


def _is_odd(n: Entry) -> Entry:
    """Return whether whole numbers are odd."""
    return ops.equal(ops.mod(n, 2), 1)


def _sign(x: Entry, n: Entry) -> Entry:
    """Return -1 for negative x and odd n, else 1."""
    return ops.where(ops.logical_and(ops.less(x, 0), _is_odd(n)), -1.0, 1.0)


def _chosen(x: Entry, inside: Entry, outside: Entry) -> Entry:
    """Return one of two values, by whether x is from -1 to 1."""
    return ops.where(ops.greater(ops.abs(x), 1), outside, inside)


def _polynomial(
    function: Callable[[Entry, Entry], Entry], is_shifted: bool, call: AtenCall, x: Any, n: Any
) -> Entry:
    """Import a Chebyshev polynomial of the whole part of ``n``; below 0 it is 0."""
    operands, dtype = promoted(call, TO_FLOAT, (x, n), tuple(call.args[:2]))
    argument, degree = (cast(v, dtype_of("float64")) for v in operands)
    argument = 2 * argument - 1 if is_shifted else argument
    degree = ops.trunc(degree)
    result = function(argument, ops.maximum(degree, 0))
    return cast(ops.where(ops.less(degree, 0), 0.0, result), dtype)


KINDS_OF_POLYNOMIALS = {
    "t": _first_kind,
    "u": _second_kind,
    "v": _third_kind,
    "w": _fourth_kind,
}
"""The Chebyshev polynomials by PyTorch's letter."""
for _letter, _function in KINDS_OF_POLYNOMIALS.items():
    for _shift in ("", "shifted_"):
        _packet = getattr(aten, f"special_{_shift}chebyshev_polynomial_{_letter}")
        for _overload in ("default", "x_scalar", "n_scalar"):
            _target = getattr(_packet, _overload)
            IMPORTERS[_target] = partial(_polynomial, _function, bool(_shift))
