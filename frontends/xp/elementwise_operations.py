"""The elementwise operations of the array API: how each is built, and computed by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from attrs import frozen

import passkit.ops as ops
from passkit.frontends.xp.runtime import OPERATIONS
from passkit.graph.node import Entry
from passkit.values.dtype import bool_, float64, promote


@frozen
class ElementwiseFunction:
    """An elementwise function of the standard.

    Attributes:
        name: its name in the standard.
        build: the operator of `passkit.ops`, a function of entries.
        on_arrays: NumPy's function.
        summary: the first line of its documentation.
        arity: the number of operands.
        domain: "float" converts integers and booleans to float64 first, as NumPy does; "bool"
            converts operands to booleans; "" only promotes them to a common dtype.
    """

    name: str
    build: Callable[..., Entry]
    on_arrays: Callable[..., Any]
    summary: str
    arity: int = 1
    domain: str = ""


def converted(operands: Sequence[Entry], domain: str = "") -> list[Entry]:
    """Return operands cast to their common dtype, of a domain as in `ElementwiseFunction`."""
    dtypes = [e.dtype for e in operands if e.dtype is not None]
    dtype = reduce(promote, dtypes)
    if domain == "bool":
        dtype = bool_
    elif domain == "float" and not dtype.is_float:
        dtype = float64
    return [e if e.dtype is dtype else ops.cast(e, dtype=dtype) for e in operands]


def _build(function: ElementwiseFunction, *operands: Entry) -> Entry:
    """Build a function's operator on operands that are converted to its domain."""
    return function.build(*converted(operands, function.domain))


def _unchanged_integers(build: Callable[..., Entry]) -> Callable[..., Entry]:
    """Return a rounding function that keeps integers and booleans as they are."""
    return lambda x: build(x) if x.dtype.is_float else ops.identity(x)


FUNCTIONS = (
    ElementwiseFunction("abs", ops.abs, np.abs, "The absolute value."),
    ElementwiseFunction("acos", ops.acos, np.arccos, "The arc cosine, in radians.", domain="float"),
    ElementwiseFunction(
        "acosh", ops.acosh, np.arccosh, "The inverse hyperbolic cosine.", domain="float"
    ),
    ElementwiseFunction("add", ops.add, np.add, "The sum x1 + x2.", 2),
    ElementwiseFunction("asin", ops.asin, np.arcsin, "The arc sine, in radians.", domain="float"),
    ElementwiseFunction(
        "asinh", ops.asinh, np.arcsinh, "The inverse hyperbolic sine.", domain="float"
    ),
    ElementwiseFunction(
        "atan", ops.atan, np.arctan, "The arc tangent, in radians.", domain="float"
    ),
    ElementwiseFunction(
        "atan2", ops.atan2, np.arctan2, "The angle of the point (x2, x1), in radians.", 2, "float"
    ),
    ElementwiseFunction(
        "atanh", ops.atanh, np.arctanh, "The inverse hyperbolic tangent.", domain="float"
    ),
    ElementwiseFunction(
        "bitwise_and", ops.bitwise_and, np.bitwise_and, "The bits that are set in both.", 2
    ),
    ElementwiseFunction(
        "bitwise_left_shift", ops.left_shift, np.left_shift, "x1 shifted left by x2 bits.", 2
    ),
    ElementwiseFunction(
        "bitwise_invert", ops.bitwise_invert, np.bitwise_invert, "All bits inverted."
    ),
    ElementwiseFunction(
        "bitwise_or", ops.bitwise_or, np.bitwise_or, "The bits that are set in either.", 2
    ),
    ElementwiseFunction(
        "bitwise_right_shift", ops.right_shift, np.right_shift, "x1 shifted right by x2 bits.", 2
    ),
    ElementwiseFunction("bitwise_xor", ops.bitwise_xor, np.bitwise_xor, "The bits that differ.", 2),
    ElementwiseFunction("ceil", _unchanged_integers(ops.ceil), np.ceil, "Rounded up."),
    ElementwiseFunction(
        "copysign", ops.copysign, np.copysign, "x1 with the sign of x2.", 2, "float"
    ),
    ElementwiseFunction(
        "cos", ops.cos, np.cos, "The cosine of an angle in radians.", domain="float"
    ),
    ElementwiseFunction("cosh", ops.cosh, np.cosh, "The hyperbolic cosine.", domain="float"),
    ElementwiseFunction("divide", ops.divide, np.divide, "The quotient x1 / x2.", 2, "float"),
    ElementwiseFunction("equal", ops.equal, np.equal, "Whether x1 == x2.", 2),
    ElementwiseFunction("exp", ops.exp, np.exp, "The exponential function.", domain="float"),
    ElementwiseFunction(
        "expm1", ops.expm1, np.expm1, "exp(x) - 1, accurate near 0.", domain="float"
    ),
    ElementwiseFunction("floor", _unchanged_integers(ops.floor), np.floor, "Rounded down."),
    ElementwiseFunction(
        "floor_divide", ops.floor_divide, np.floor_divide, "The quotient, rounded down.", 2
    ),
    ElementwiseFunction("greater", ops.greater, np.greater, "Whether x1 > x2.", 2),
    ElementwiseFunction(
        "greater_equal", ops.greater_equal, np.greater_equal, "Whether x1 >= x2.", 2
    ),
    ElementwiseFunction(
        "hypot", ops.hypot, np.hypot, "sqrt(x1**2 + x2**2), without overflow.", 2, "float"
    ),
    ElementwiseFunction(
        "isfinite", ops.isfinite, np.isfinite, "Whether it is neither infinite nor NaN."
    ),
    ElementwiseFunction("isinf", ops.isinf, np.isinf, "Whether it is infinite."),
    ElementwiseFunction("isnan", ops.isnan, np.isnan, "Whether it is NaN."),
    ElementwiseFunction("less", ops.less, np.less, "Whether x1 < x2.", 2),
    ElementwiseFunction("less_equal", ops.less_equal, np.less_equal, "Whether x1 <= x2.", 2),
    ElementwiseFunction("log", ops.log, np.log, "The natural logarithm.", domain="float"),
    ElementwiseFunction(
        "log1p", ops.log1p, np.log1p, "log(1 + x), accurate near 0.", domain="float"
    ),
    ElementwiseFunction("log2", ops.log2, np.log2, "The logarithm to base 2.", domain="float"),
    ElementwiseFunction("log10", ops.log10, np.log10, "The logarithm to base 10.", domain="float"),
    ElementwiseFunction(
        "logaddexp",
        ops.logaddexp,
        np.logaddexp,
        "log(exp(x1) + exp(x2)), without overflow.",
        2,
        "float",
    ),
    ElementwiseFunction(
        "logical_and", ops.logical_and, np.logical_and, "Whether both are true.", 2, "bool"
    ),
    ElementwiseFunction(
        "logical_not", ops.logical_not, np.logical_not, "Whether it is false.", 1, "bool"
    ),
    ElementwiseFunction(
        "logical_or", ops.logical_or, np.logical_or, "Whether either is true.", 2, "bool"
    ),
    ElementwiseFunction(
        "logical_xor", ops.logical_xor, np.logical_xor, "Whether exactly one is true.", 2, "bool"
    ),
    ElementwiseFunction(
        "maximum", ops.maximum, np.maximum, "The larger one; NaN if either is NaN.", 2
    ),
    ElementwiseFunction(
        "minimum", ops.minimum, np.minimum, "The smaller one; NaN if either is NaN.", 2
    ),
    ElementwiseFunction("multiply", ops.multiply, np.multiply, "The product x1 * x2.", 2),
    ElementwiseFunction("negative", ops.negative, np.negative, "The number with the other sign."),
    ElementwiseFunction(
        "nextafter", ops.nextafter, np.nextafter, "The next number after x1 towards x2.", 2, "float"
    ),
    ElementwiseFunction("not_equal", ops.not_equal, np.not_equal, "Whether x1 != x2.", 2),
    ElementwiseFunction("positive", ops.identity, np.positive, "The number itself."),
    ElementwiseFunction("pow", ops.pow, np.power, "x1 to the power of x2.", 2),
    ElementwiseFunction("reciprocal", ops.reciprocal, np.reciprocal, "1 / x.", domain="float"),
    ElementwiseFunction(
        "remainder", ops.mod, np.remainder, "The remainder of the division, with the sign of x2.", 2
    ),
    ElementwiseFunction(
        "round",
        _unchanged_integers(ops.rint),
        np.round,
        "Rounded to the nearest integer, halves to even.",
    ),
    ElementwiseFunction("sign", ops.sign, np.sign, "-1, 0 or 1 by the sign; NaN of NaN."),
    ElementwiseFunction(
        "signbit",
        ops.signbit,
        np.signbit,
        "Whether the sign bit is set, as of -0.0.",
        domain="float",
    ),
    ElementwiseFunction("sin", ops.sin, np.sin, "The sine of an angle in radians.", domain="float"),
    ElementwiseFunction("sinh", ops.sinh, np.sinh, "The hyperbolic sine.", domain="float"),
    ElementwiseFunction("sqrt", ops.sqrt, np.sqrt, "The square root.", domain="float"),
    ElementwiseFunction("square", ops.square, np.square, "x * x."),
    ElementwiseFunction("subtract", ops.subtract, np.subtract, "The difference x1 - x2.", 2),
    ElementwiseFunction(
        "tan", ops.tan, np.tan, "The tangent of an angle in radians.", domain="float"
    ),
    ElementwiseFunction("tanh", ops.tanh, np.tanh, "The hyperbolic tangent.", domain="float"),
    ElementwiseFunction("trunc", _unchanged_integers(ops.trunc), np.trunc, "Rounded towards 0."),
)
"""Functions with one operand or two. conj, imag, real and clip are in `elementwise`."""

for _function in FUNCTIONS:
    OPERATIONS.define(_function.name, partial(_build, _function), _function.on_arrays)
