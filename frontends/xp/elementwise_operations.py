"""The elementwise operations of the array API: how each is built, and computed by NumPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
from attrs import frozen

import passkit.ops as ops
from passkit.errors import DTypeError
from passkit.frontends.xp import complex_limits
from passkit.frontends.xp.runtime import OPERATIONS, operation
from passkit.graph.node import Entry
from passkit.streams.operation import Operation
from passkit.streams.recorder import Value
from passkit.values.dtype import (
    DType,
    bool_,
    dtype_of,
    float16,
    float32,
    float64,
    int8,
    int64,
    promote,
)


@frozen
class ArrayFunction:
    """An elementwise function of the standard.

    Attributes:
        name: its name in the standard.
        build: the operator of `passkit.ops`, a function of entries of one dtype.
        on_arrays: NumPy's function.
        summary: the first line of its documentation, as a phrase.
        arity: the number of operands.
        domain: what operands are converted to, see `converted`.
        on_bools: the operator for booleans, where ``build`` takes numbers only.
    """

    name: str
    build: Callable[..., Entry]
    on_arrays: Callable[..., Any]
    summary: str
    arity: int = 1
    domain: str = ""
    on_bools: Callable[..., Entry] | None = None


def _float_like(dtype: DType) -> DType:
    """Return the float type in which NumPy computes functions of real numbers of a dtype.

    It is the dtype itself for floats; float16 for integers of 8 bits and bool, float32 for those of
    16, else float64.
    """
    if dtype.is_float:
        return dtype
    return {1: float16, 2: float32}.get(dtype.nbytes, float64)


def common_dtype(dtypes: Sequence[DType], domain: str) -> DType:
    """Return the dtype that operands are converted to.

    Args:
        dtypes: those of the operands, one at least.
        domain: "float" converts integers and booleans to a float type of twice their size at most,
            as NumPy; "quotient" and "special" to float64, unless there is a float among the
            operands; "number" converts booleans alone to int8; "bool" converts all to booleans; ""
            only promotes to a common dtype. With a complex operand, "float", "quotient" and
            "special" give a real dtype all the same, which `converted` refuses.

    Raises: DTypeError if the dtypes have no common one.
    """
    if domain == "bool":
        return bool_
    dtype = reduce(promote, dtypes)
    if dtype.is_float:
        return dtype
    if domain == "float":
        return reduce(promote, map(_float_like, dtypes))
    if domain in ("quotient", "special"):
        return float64
    return int8 if domain == "number" and dtype is bool_ else dtype


def converted(operands: Sequence[Entry], domain: str = "") -> list[Entry]:
    """Return operands cast to their common dtype, of a domain as in `common_dtype`.

    One of this dtype is returned itself. Raises: DTypeError if there is no common dtype, or an
    operand is complex and the domain makes it real.
    """
    dtype = common_dtype([e.dtype for e in operands if e.dtype is not None], domain)
    return [cast(e, dtype) for e in operands]


def promoted(*arrays: Any) -> list[Any]:
    """Return NumPy arrays, one at least, converted to their common dtype, as `converted` does it.

    One of this dtype is returned itself. Raises: DTypeError if there is none in `passkit.xp`.
    """
    dtype = reduce(promote, [dtype_of(a.dtype) for a in arrays]).numpy
    return [a.astype(dtype, copy=False) for a in arrays]


def cast(entry: Entry, dtype: DType) -> Entry:
    """Return an entry of numbers converted to a dtype; as bool, NaN and all but 0 are true.

    An entry of this dtype is returned itself. Raises: DTypeError if it is complex, unless the dtype
    is bool.
    """
    if entry.dtype is dtype:
        return entry
    return ops.not_equal(entry, 0) if dtype is bool_ else ops.cast(entry, dtype=dtype)


def _build(function: ArrayFunction, *operands: Entry) -> Entry:
    """Build a function's operator on operands that are converted to its domain.

    Booleans take the operator for booleans, where there is one. Raises: DTypeError if the operator
    does not take the dtype; ShapeError if the shapes do not broadcast.
    """
    entries = converted(operands, function.domain)
    if function.on_bools is not None and entries[0].dtype is bool_:
        return function.on_bools(*entries)
    return function.build(*entries)


def _unchanged_integers(build: Callable[..., Entry]) -> Callable[..., Entry]:
    """Return ``build``, a rounding of floats, such that it keeps integers and booleans."""
    return lambda x: build(x) if x.dtype.is_float else ops.identity(x)


def _positive(x: Entry) -> Entry:
    """Build a copy of x, which holds numbers. Raises: DTypeError for booleans, as NumPy."""
    if x.dtype is bool_:
        raise DTypeError("positive needs numbers, got bool; convert it with xp.astype first")
    return ops.identity(x)


def _reciprocal(x: Entry) -> Entry:
    """Build 1 / x of numbers, which is rounded towards 0 for integers."""
    assert x.dtype is not None
    return ops.reciprocal(x) if x.dtype.is_float else ops.trunc_div(ops.ones_like(x), x)


def _reciprocal_of_array(x: Any) -> Any:
    """Compute 1 / x in NumPy, rounded towards 0 for integers, whose 1 / 0 is 0.

    Booleans become int8.
    """
    if x.dtype.kind not in "iub":
        return np.reciprocal(x)
    one = np.ones((), np.int8) if x.dtype.kind == "b" else np.ones((), x.dtype)
    magnitude_is_one = (x == 1) | (x == -1) if x.dtype.kind == "i" else x == 1
    return np.where(magnitude_is_one, x, 0 * one)


def _power_of_arrays(x1: Any, x2: Any) -> Any:
    """Compute x1 to the power of x2 in NumPy; negative powers of integers are cut to integers.

    So they are 0 unless the base is 1 or -1; also of the base 0.
    """
    bases, exponents = promoted(x1, x2)
    if bases.dtype.kind != "i" or not (exponents < 0).any():
        return np.power(bases, exponents)
    powers = np.power(bases, np.maximum(exponents, 0))
    inverse_powers = np.where(exponents % 2 == 1, bases, bases * bases)
    inverse_powers[np.abs(bases) != 1] = 0
    return np.where(exponents < 0, inverse_powers, powers)


def _round_array(x: Any) -> Any:
    """Compute x rounded to the nearest integer in NumPy, halves to even; booleans are copied."""
    return x.copy() if x.dtype.kind == "b" else np.round(x)


FUNCTIONS = (
    ArrayFunction(
        "abs",
        ops.abs,
        np.abs,
        "the absolute value",
        on_bools=ops.identity,
    ),
    ArrayFunction("acos", ops.acos, np.arccos, "the arc cosine, in radians", domain="float"),
    ArrayFunction("acosh", ops.acosh, np.arccosh, "the inverse hyperbolic cosine", domain="float"),
    ArrayFunction("add", ops.add, np.add, "the sum x1 + x2", 2, on_bools=ops.logical_or),
    ArrayFunction("asin", ops.asin, np.arcsin, "the arc sine, in radians", domain="float"),
    ArrayFunction("asinh", ops.asinh, np.arcsinh, "the inverse hyperbolic sine", domain="float"),
    ArrayFunction("atan", ops.atan, np.arctan, "the arc tangent, in radians", domain="float"),
    ArrayFunction(
        "atan2", ops.atan2, np.arctan2, "the angle of the point (x2, x1), in radians", 2, "float"
    ),
    ArrayFunction("atanh", ops.atanh, np.arctanh, "the inverse hyperbolic tangent", domain="float"),
    ArrayFunction(
        "bitwise_and", ops.bitwise_and, np.bitwise_and, "the bits that are set in both", 2
    ),
    ArrayFunction(
        "bitwise_left_shift",
        ops.left_shift,
        np.left_shift,
        "x1 shifted left by x2 bits",
        2,
        "number",
    ),
    ArrayFunction("bitwise_invert", ops.bitwise_invert, np.bitwise_invert, "all bits inverted"),
    ArrayFunction(
        "bitwise_or", ops.bitwise_or, np.bitwise_or, "the bits that are set in either", 2
    ),
    ArrayFunction(
        "bitwise_right_shift",
        ops.right_shift,
        np.right_shift,
        "x1 shifted right by x2 bits, with copies of the sign",
        2,
        "number",
    ),
    ArrayFunction("bitwise_xor", ops.bitwise_xor, np.bitwise_xor, "the bits that differ", 2),
    ArrayFunction("ceil", _unchanged_integers(ops.ceil), np.ceil, "x rounded up"),
    ArrayFunction("copysign", ops.copysign, np.copysign, "x1 with the sign of x2", 2, "float"),
    ArrayFunction("cos", ops.cos, np.cos, "the cosine of an angle in radians", domain="float"),
    ArrayFunction("cosh", ops.cosh, np.cosh, "the hyperbolic cosine", domain="float"),
    ArrayFunction("divide", ops.divide, np.divide, "the quotient x1 / x2", 2, "quotient"),
    ArrayFunction("equal", ops.equal, np.equal, "whether x1 == x2", 2),
    ArrayFunction("exp", ops.exp, np.exp, "the exponential function", domain="float"),
    ArrayFunction(
        "expm1", ops.expm1, complex_limits.expm1, "exp(x) - 1, accurate near 0", domain="float"
    ),
    ArrayFunction("floor", _unchanged_integers(ops.floor), np.floor, "x rounded down"),
    ArrayFunction(
        "floor_divide",
        ops.floor_divide,
        np.floor_divide,
        "the quotient x1 / x2, rounded down",
        2,
        "number",
    ),
    ArrayFunction("greater", ops.greater, np.greater, "whether x1 > x2", 2),
    ArrayFunction("greater_equal", ops.greater_equal, np.greater_equal, "whether x1 >= x2", 2),
    ArrayFunction(
        "hypot", ops.hypot, np.hypot, "sqrt(x1**2 + x2**2), without overflow", 2, "float"
    ),
    ArrayFunction(
        "isfinite",
        ops.isfinite,
        np.isfinite,
        "whether x is neither infinite nor NaN",
        on_bools=ops.ones_like,
    ),
    ArrayFunction("isinf", ops.isinf, np.isinf, "whether x is infinite", on_bools=ops.zeros_like),
    ArrayFunction("isnan", ops.isnan, np.isnan, "whether x is NaN", on_bools=ops.zeros_like),
    ArrayFunction("less", ops.less, np.less, "whether x1 < x2", 2),
    ArrayFunction("less_equal", ops.less_equal, np.less_equal, "whether x1 <= x2", 2),
    ArrayFunction("log", ops.log, np.log, "the natural logarithm", domain="float"),
    ArrayFunction("log1p", ops.log1p, np.log1p, "log(1 + x), accurate near 0", domain="float"),
    ArrayFunction("log2", ops.log2, np.log2, "the logarithm to base 2", domain="float"),
    ArrayFunction("log10", ops.log10, np.log10, "the logarithm to base 10", domain="float"),
    ArrayFunction(
        "logaddexp",
        ops.logaddexp,
        np.logaddexp,
        "log(exp(x1) + exp(x2)), without overflow",
        2,
        "float",
    ),
    ArrayFunction(
        "logical_and", ops.logical_and, np.logical_and, "whether both are true", 2, "bool"
    ),
    ArrayFunction("logical_not", ops.logical_not, np.logical_not, "whether x is false", 1, "bool"),
    ArrayFunction("logical_or", ops.logical_or, np.logical_or, "whether either is true", 2, "bool"),
    ArrayFunction(
        "logical_xor", ops.logical_xor, np.logical_xor, "whether exactly one is true", 2, "bool"
    ),
    ArrayFunction(
        "maximum",
        ops.maximum,
        np.maximum,
        "the larger of x1 and x2; NaN if either is NaN",
        2,
        on_bools=ops.logical_or,
    ),
    ArrayFunction(
        "minimum",
        ops.minimum,
        np.minimum,
        "the smaller of x1 and x2; NaN if either is NaN",
        2,
        on_bools=ops.logical_and,
    ),
    ArrayFunction(
        "multiply", ops.multiply, np.multiply, "the product x1 * x2", 2, on_bools=ops.logical_and
    ),
    ArrayFunction("negative", ops.negative, np.negative, "x with the other sign"),
    ArrayFunction(
        "nextafter", ops.nextafter, np.nextafter, "the next number after x1 towards x2", 2, "float"
    ),
    ArrayFunction("not_equal", ops.not_equal, np.not_equal, "whether x1 != x2", 2),
    ArrayFunction("positive", _positive, np.positive, "x itself"),
    ArrayFunction("pow", ops.pow, _power_of_arrays, "x1 to the power of x2", 2, "number"),
    ArrayFunction("reciprocal", _reciprocal, _reciprocal_of_array, "1 / x", domain="number"),
    ArrayFunction(
        "remainder",
        ops.mod,
        np.remainder,
        "the remainder of the division x1 / x2, with the sign of x2",
        2,
        "number",
    ),
    ArrayFunction(
        "round",
        _unchanged_integers(ops.rint),
        _round_array,
        "x rounded to the nearest integer, halves to the even one",
    ),
    ArrayFunction("sign", ops.sign, np.sign, "-1, 0 or 1 by the sign of x; NaN of NaN"),
    ArrayFunction(
        "signbit",
        ops.signbit,
        np.signbit,
        "whether the sign bit of x is set, as of -0.0",
        on_bools=ops.zeros_like,
    ),
    ArrayFunction("sin", ops.sin, np.sin, "the sine of an angle in radians", domain="float"),
    ArrayFunction("sinh", ops.sinh, np.sinh, "the hyperbolic sine", domain="float"),
    ArrayFunction("sqrt", ops.sqrt, np.sqrt, "the square root", domain="float"),
    ArrayFunction("square", ops.square, np.square, "x * x", domain="number"),
    ArrayFunction("subtract", ops.subtract, np.subtract, "the difference x1 - x2", 2),
    ArrayFunction("tan", ops.tan, np.tan, "the tangent of an angle in radians", domain="float"),
    ArrayFunction("tanh", ops.tanh, complex_limits.tanh, "the hyperbolic tangent", domain="float"),
    ArrayFunction("trunc", _unchanged_integers(ops.trunc), np.trunc, "x rounded towards 0"),
)
"""Functions with one operand or two. conj, imag, real, clip and constant powers are separate."""

for _function in FUNCTIONS:
    OPERATIONS.define(_function.name, partial(_build, _function), _function.on_arrays)


# Parts of complex numbers: copies, since a result may be stored over an array that nobody reads.

OPERATIONS.define("conj", ops.identity, lambda x: np.conj(x) if x.dtype.kind == "c" else x.copy())
OPERATIONS.define("imag", ops.zeros_like, lambda x: np.imag(x).copy())
OPERATIONS.define("real", ops.identity, lambda x: np.real(x).copy())


# Powers with constant exponents.

EXPONENTS = frozenset((-2, -1, -0.5, 0, 0.5, 1, 2, 3, 4))
"""The exponents that are a parameter of the operation, since they need no logarithm."""


def _constant_power(x: Any, exponent: float, m: Any) -> Any:
    """Return x to the power of a constant, with the special cases of pow.

    Args:
        x: numbers, an entry or an array; floats or complex where the exponent is no natural number.
        exponent: one of `EXPONENTS`.
        m: the functions to compute with: `passkit.ops` or NumPy.
    """
    if exponent == 0:
        return m.ones_like(x)
    if exponent < 0:
        return m.reciprocal(_constant_power(x, -exponent, m))
    if exponent == 0.5:
        root = m.sqrt(x + 0)  # of -0.0, pow returns 0.0
        return root if x.dtype.kind == "c" else m.where(m.equal(x, -np.inf), np.inf, root)
    squared = m.square(x)
    return {1: x, 2: squared, 3: squared * x, 4: m.square(squared)}[int(exponent)]


def _build_power(x: Entry, exponent: float) -> Entry:
    """Build x to the power of a constant, which is weak beside integers and booleans.

    ``exponent`` is one of `EXPONENTS`: an int keeps integers and makes booleans int64, a float
    makes both float64. Integers have no negative int as exponent.
    """
    assert x.dtype is not None
    if not x.dtype.is_float and (type(exponent) is float or x.dtype is bool_):
        x = ops.cast(x, dtype=float64 if type(exponent) is float else int64)
    return ops.identity(x) if exponent == 1 else _constant_power(x, exponent, ops)


def _power_of_array(x: Any, exponent: float) -> Any:
    """Compute x to the power of ``exponent``, one of `EXPONENTS`, in NumPy.

    Booleans become int64 if the exponent is an int; booleans and integers become float64 if it is a
    float.
    """
    if x.dtype.kind == "b" or (type(exponent) is float and x.dtype.kind in "iu"):
        x = x.astype(type(exponent))
    if x.dtype.kind == "c" and exponent not in (0, 1, 2):
        return np.power(x, exponent)
    dtype = x.dtype
    return np.array(_constant_power(x, exponent, np), dtype)


OPERATIONS.define("constant_pow", _build_power, _power_of_array)


def constant_power(x: Value, exponent: Any) -> Operation | None:
    """Return the operation for the power of x with a constant exponent.

    Returns: None if the exponent is no int or float of Python in `EXPONENTS`.

    Raises: DTypeError for integers or booleans to a negative Python int.
    """
    if type(exponent) is int and exponent < 0 and x.type.dtype.kind in "iub":
        raise DTypeError(
            f"pow: {x.type.dtype} to the power of {exponent} is no integer; use {exponent}.0, or "
            f"convert with xp.astype first"
        )
    powers = _powers.get(type(exponent))
    if powers is None or exponent not in EXPONENTS:
        return None
    result = powers.get(exponent)
    if result is None:
        result = powers[exponent] = operation("constant_pow", exponent=exponent)
    return result


_powers: dict[type, dict[float, Operation]] = {int: {}, float: {}}
"""The operations that `constant_power` has returned, by the type of the exponent and by this."""
