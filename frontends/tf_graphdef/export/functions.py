"""Functions of kernel expressions, written as TensorFlow operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.frontends.tf_graphdef.export.graphdef_writer import BOOL, NameScope, NodeOutput
from passkit.values.dtype import DType, dtype_of

FunctionWriter = Callable[..., NodeOutput]

SAME = {
    "exp": "Exp",
    "expm1": "Expm1",
    "log": "Log",
    "log1p": "Log1p",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "tanh": "Tanh",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "erfc": "Erfc",
    "sigmoid": "Sigmoid",
    "sqrt": "Sqrt",
    "rsqrt": "Rsqrt",
    "floor": "Floor",
    "ceil": "Ceil",
    "rint": "Rint",
    "lgamma": "Lgamma",
    "pow": "Pow",
    "erfinv": "Erfinv",
    "atan2": "Atan2",
    "fmod": "TruncateMod",
    "nextafter": "NextAfter",
    "igamma": "Igamma",
    "igammac": "Igammac",
    "zeta": "Zeta",
}
"""Functions that are TensorFlow operators of one result."""
FUNCTIONS: dict[str, FunctionWriter] = {}


def _same(op: str) -> FunctionWriter:
    """Return a writer of one node of the TensorFlow operator ``op`` with the same operands.

    The writer raises ModelError if TensorFlow has no kernel for the dtype.
    """
    return lambda scope, *x, is_result: scope.op(op, *x, is_result=is_result)


FUNCTIONS |= {name: _same(op) for name, op in SAME.items()}


def function(name: str) -> Callable[[FunctionWriter], FunctionWriter]:
    """Return a decorator that registers the writer of a function of kernel expressions.

    A writer takes the name scope, the operands, and ``is_result``: whether its last node gets the
    scope's name.

    It is stored in `FUNCTIONS`, and returned unchanged.
    """

    def register(write: FunctionWriter) -> FunctionWriter:
        FUNCTIONS[name] = write
        return write

    return register


def select(
    scope: NameScope, condition: NodeOutput, a: NodeOutput, b: NodeOutput, is_result: bool = False
) -> NodeOutput:
    """Write ``a`` where ``condition`` is true, else ``b``; ``is_result`` gives the scope's name.

    Return the tensor; both arms have one dtype.
    """
    return scope.op("SelectV2", condition, a, b, T=a.dtype, out=a.dtype, is_result=is_result)


def compare(scope: NameScope, op: str, a: NodeOutput, y: Any) -> NodeOutput:
    """Write the comparison ``op``, such as "Less", of ``a`` with ``y``; return the bool tensor.

    ``y`` is a tensor or a number, which is written in the dtype of ``a``. The node is in ``scope``,
    without its name.

    Raises:
        ModelError: If TensorFlow has no kernel of the comparison for the dtype.
    """
    other = y if isinstance(y, NodeOutput) else scope.const(y, a.dtype)
    return scope.op(op, a, other, out=BOOL)


def logical_and(scope: NameScope, a: NodeOutput, b: NodeOutput) -> NodeOutput:
    """Write the conjunction of the bool tensors ``a`` and ``b`` in ``scope``; return it."""
    return scope.op("LogicalAnd", a, b)


def logical_or(scope: NameScope, a: NodeOutput, b: NodeOutput) -> NodeOutput:
    """Write the disjunction of the bool tensors ``a`` and ``b`` in ``scope``; return it."""
    return scope.op("LogicalOr", a, b)


def _scaled(factor: float) -> FunctionWriter:
    """Return a writer of the natural logarithm times ``factor``, for logarithms of other bases.

    The writer raises ModelError for integers.
    """

    def write(scope: NameScope, x: NodeOutput, is_result: bool) -> NodeOutput:
        return scope.op(
            "Mul", scope.op("Log", x), scope.const(factor, x.dtype), is_result=is_result
        )

    return write


FUNCTIONS |= {"log2": _scaled(1 / math.log(2)), "log10": _scaled(1 / math.log(10))}


@function("exp2")
def _exp2(scope: NameScope, x: NodeOutput, is_result: bool) -> NodeOutput:
    """Write 2 to the power of x, a float tensor.

    With ``is_result``, the node gets the name of ``scope``.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, such as uint64.
    """
    return scope.op("Pow", scope.const(2, x.dtype), x, is_result=is_result)


@function("abs")
def absolute(scope: NameScope, x: NodeOutput, is_result: bool = False) -> NodeOutput:
    """Write the absolute value of ``x`` in ``scope``; unsigned integers are passed on by Identity.

    With ``is_result``, the node gets the name of ``scope``.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, such as complex numbers.
    """
    return scope.op("Identity" if x.dtype.kind == "u" else "Abs", x, is_result=is_result)


def _extreme(op: str) -> FunctionWriter:
    """Return a writer of ``op``, "Maximum" or "Minimum", that gives NaN if either operand is NaN.

    TensorFlow's result for NaN depends on the order of the operands. The writer raises ModelError
    if TensorFlow has no kernel for the dtype.
    """

    def write(scope: NameScope, a: NodeOutput, b: NodeOutput, is_result: bool) -> NodeOutput:
        extreme = scope.op(op, a, b, is_result=is_result and not a.dtype.is_float)
        if not a.dtype.is_float:
            return extreme
        has_nan = logical_or(
            scope, compare(scope, "NotEqual", a, a), compare(scope, "NotEqual", b, b)
        )
        return select(scope, has_nan, scope.op("AddV2", a, b), extreme, is_result)

    return write


FUNCTIONS |= {"maximum": _extreme("Maximum"), "minimum": _extreme("Minimum")}


@function("trunc")
def truncate(scope: NameScope, x: NodeOutput, is_result: bool = False) -> NodeOutput:
    """Write floats ``x`` rounded toward zero, as Ceil or Floor; TensorFlow has no such operator.

    With ``is_result``, the last node gets the name of ``scope``.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, such as integers.
    """
    up, down = scope.op("Ceil", x), scope.op("Floor", x)
    return select(scope, compare(scope, "Less", x, 0), up, down, is_result)


@function("fma")
def _fma(
    scope: NameScope, x: NodeOutput, y: NodeOutput, z: NodeOutput, is_result: bool
) -> NodeOutput:
    """Write x * y + z, computed in float64 and cast to the dtype of ``x``.

    The product of 32-bit floats is exact; that of float64 is rounded before the sum. With
    ``is_result``, the last node gets the name of ``scope``.
    """
    wide = dtype_of("float64")
    a, b, c = (scope.cast(t, wide) for t in (x, y, z))
    total = scope.op("AddV2", scope.op("Mul", a, b), c, is_result=is_result and x.dtype is wide)
    return scope.cast(total, x.dtype, is_result=is_result and x.dtype is not wide)


def is_negative(scope: NameScope, x: NodeOutput) -> NodeOutput:
    """Write in ``scope`` whether the sign bit of a float ``x`` is set, also for -0.

    Return the bool tensor; a NaN gives False, whatever its sign.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, such as integers.
    """
    inverse = scope.op("Reciprocal", x)
    zero = compare(scope, "Equal", x, 0)
    return logical_or(
        scope,
        compare(scope, "Less", x, 0),
        logical_and(scope, zero, compare(scope, "Less", inverse, 0)),
    )


@function("copysign")
def _copysign(scope: NameScope, x: NodeOutput, y: NodeOutput, is_result: bool) -> NodeOutput:
    """Write the magnitude of x with the sign of y; that of -0.0 counts, that of NaN is positive.

    With ``is_result``, the last node gets the name of ``scope``.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, such as integers.
    """
    size = scope.op("Abs", x)
    return select(scope, is_negative(scope, y), scope.op("Neg", size), size, is_result)


@function("cbrt")
def _cbrt(scope: NameScope, x: NodeOutput, is_result: bool) -> NodeOutput:
    """Write the cube root, with the sign of x.

    With ``is_result``, the last node gets the name of ``scope``.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, such as uint64.
    """
    root = scope.op("Pow", scope.op("Abs", x), scope.const(1 / 3, x.dtype))
    return scope.op("Mul", scope.op("Sign", x), root, is_result=is_result)


@function("hypot")
def _hypot(scope: NameScope, x: NodeOutput, y: NodeOutput, is_result: bool) -> NodeOutput:
    """Write the root of x² + y² of floats, scaled by the larger so that squares do not overflow.

    An infinite operand gives infinity, else a NaN gives NaN. With ``is_result``, the last node gets
    the name of ``scope``.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, such as integers.
    """
    a, b = scope.op("Abs", x), scope.op("Abs", y)
    large, small = scope.op("Maximum", a, b), scope.op("Minimum", a, b)
    ratio = scope.op("DivNoNan", small, large)
    factor = scope.op("Sqrt", scope.op("AddV2", scope.op("Square", ratio), scope.const(1, x.dtype)))
    length = scope.op("Mul", large, factor)
    has_nan = logical_or(scope, compare(scope, "NotEqual", x, x), compare(scope, "NotEqual", y, y))
    length = select(scope, has_nan, scope.op("AddV2", x, y), length)
    has_inf = logical_or(
        scope, compare(scope, "Equal", a, np.inf), compare(scope, "Equal", b, np.inf)
    )
    return select(scope, has_inf, scope.const(np.inf, x.dtype), length, is_result)


@function("ldexp")
def _ldexp(scope: NameScope, x: NodeOutput, n: NodeOutput, is_result: bool) -> NodeOutput:
    """Write x * 2**n by three factors, none of which overflows unless the result does.

    n is a float tensor of whole numbers. With ``is_result``, the last node gets the name of
    ``scope``.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, such as integers.
    """
    limit = scope.const(2100 if x.dtype.nbytes == 8 else 300, n.dtype)
    exponent = truncate(
        scope, scope.op("Maximum", scope.op("Minimum", n, limit), scope.op("Neg", limit))
    )
    third = truncate(scope, scope.op("Mul", exponent, scope.const(1 / 3, n.dtype)))
    remainder = scope.op("Sub", scope.op("Sub", exponent, third), third)
    two = scope.const(2, x.dtype)
    factor = scope.op("Pow", two, third)
    scaled = scope.op("Mul", scope.op("Mul", x, factor), factor)
    return scope.op("Mul", scaled, scope.op("Pow", two, remainder), is_result=is_result)


@function("erf")
def _erf(scope: NameScope, x: NodeOutput, is_result: bool) -> NodeOutput:
    """Write erf(x) of floats: Erf, but the sign for infinite float64, of which it gives NaN.

    With ``is_result``, the last node gets the name of ``scope``.
    """
    if x.dtype.nbytes < 8:
        return scope.op("Erf", x, is_result=is_result)
    is_inf = compare(scope, "Equal", scope.op("Abs", x), np.inf)
    return select(scope, is_inf, scope.op("Sign", x), scope.op("Erf", x), is_result)


@function("digamma")
def _digamma(scope: NameScope, x: NodeOutput, is_result: bool) -> NodeOutput:
    """Write digamma(x) of floats: Digamma, and -1 / x at the pole 0, where TensorFlow's gives NaN.

    With ``is_result``, the last node gets the name of ``scope``.
    """
    pole = scope.op("RealDiv", scope.const(-1, x.dtype), x)
    return select(scope, compare(scope, "Equal", x, 0), pole, scope.op("Digamma", x), is_result)


@function("erfcinv")
def _erfcinv(scope: NameScope, x: NodeOutput, is_result: bool) -> NodeOutput:
    """Write the inverse of erfc at ``x`` by Ndtri, the inverse of the normal distribution.

    With ``is_result``, the last node gets the name of ``scope``.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, such as integers.
    """
    half = scope.op("Mul", x, scope.const(0.5, x.dtype))
    return scope.op(
        "Mul", scope.op("Ndtri", half), scope.const(-math.sqrt(0.5), x.dtype), is_result=is_result
    )


@function("tgamma")
def _tgamma(scope: NameScope, x: NodeOutput, is_result: bool) -> NodeOutput:
    """Write gamma as exp(lgamma(x)) with its sign; NaN at negative integers.

    With ``is_result``, the last node gets the name of ``scope``.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, such as integers.
    """
    size = scope.op("Exp", scope.op("Lgamma", x))
    odd = compare(
        scope, "Equal", scope.op("FloorMod", scope.op("Floor", x), scope.const(2, x.dtype)), 1
    )
    negative = logical_or(
        scope,
        logical_and(scope, compare(scope, "Less", x, 0), odd),
        logical_and(scope, compare(scope, "Equal", x, 0), is_negative(scope, x)),
    )
    signed = select(scope, negative, scope.op("Neg", size), size)
    pole = logical_and(
        scope, compare(scope, "Less", x, 0), compare(scope, "Equal", scope.op("Floor", x), x)
    )
    return select(scope, pole, scope.const(np.nan, x.dtype), signed, is_result)


@function("trigamma")
def _trigamma(scope: NameScope, x: NodeOutput, is_result: bool) -> NodeOutput:
    """Write trigamma by Polygamma for x >= 0, else by reflection.

    The reflection formula is trigamma(x) = pi² / sin²(pi x) - trigamma(1 - x).

    With ``is_result``, the last node gets the name of ``scope``.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, such as integers.
    """
    one = scope.const(1, x.dtype)
    is_negative_x = compare(scope, "Less", x, 0)
    argument = select(scope, is_negative_x, scope.op("Sub", one, x), x)
    positive_side = scope.op("Polygamma", one, argument, like="T")
    nearest = scope.op("Rint", x)
    sine = scope.op(
        "Sin", scope.op("Mul", scope.op("Sub", x, nearest), scope.const(math.pi, x.dtype))
    )
    ratio = scope.op("RealDiv", scope.const(math.pi, x.dtype), sine)
    reflected = scope.op("Sub", scope.op("Square", ratio), positive_side)
    return select(scope, is_negative_x, reflected, positive_side, is_result)


@function("betainc")
def _betainc(
    scope: NameScope, a: NodeOutput, b: NodeOutput, x: NodeOutput, is_result: bool
) -> NodeOutput:
    """Write the regularized incomplete beta function of ``a`` and ``b`` at ``x``.

    The operands are broadcast first, since TensorFlow's Betainc does not.

    With ``is_result``, the last node gets the name of ``scope``.

    Raises:
        ModelError: If TensorFlow has no kernel for the dtype, such as integers.
    """
    true = scope.const(True, BOOL)
    broadcast = select(scope, true, a, select(scope, true, b, x))
    operands = [broadcast, select(scope, true, b, broadcast), select(scope, true, x, broadcast)]
    return scope.op("Betainc", *operands, is_result=is_result)


def _shift(op: str, fills: bool) -> FunctionWriter:
    """Return a writer of shifts of integers, in which too large a count shifts all bits out.

    Counts that are negative or at least the number of bits are too large. The count must have the
    dtype of the number.

    Args:
        op: LeftShift or RightShift.
        fills: Whether negative numbers become -1 then, as in an arithmetic shift, instead of 0.

    The writer raises ModelError if the numbers are no integers.
    """

    def write(scope: NameScope, x: NodeOutput, n: NodeOutput, is_result: bool) -> NodeOutput:
        width = 8 * x.dtype.nbytes
        out_of_range = compare(scope, "GreaterEqual", n, width)
        if n.dtype.kind == "i":
            out_of_range = logical_or(scope, out_of_range, compare(scope, "Less", n, 0))
        safe_count = select(scope, out_of_range, scope.const(0, n.dtype), n)
        fill = scope.const(0, x.dtype)
        if fills and x.dtype.kind == "i":
            fill = select(scope, compare(scope, "Less", x, 0), scope.const(-1, x.dtype), fill)
        return select(scope, out_of_range, fill, scope.op(op, x, safe_count), is_result)

    return write


FUNCTIONS |= {"left_shift": _shift("LeftShift", False), "right_shift": _shift("RightShift", True)}


@function("whole_power")
def _whole_power(scope: NameScope, x: NodeOutput, n: NodeOutput, is_result: bool) -> NodeOutput:
    """Write the power ``x**n`` of integers.

    For a negative exponent, 1 / x**-n is truncated to 0, 1 or -1, and 0 for x = 0; TensorFlow's Pow
    fails there. For an unsigned x the power is computed in int64 and cast back. With ``is_result``,
    the last node gets the name of ``scope``.
    """
    work_dtype = _signed(x.dtype)
    x_, n_ = scope.cast(x, work_dtype), scope.cast(n, work_dtype)
    zero, one = scope.const(0, work_dtype), scope.const(1, work_dtype)
    power = scope.op("Pow", x_, scope.op("Maximum", n_, zero))
    if x.dtype.kind == "i":
        odd = compare(scope, "NotEqual", scope.op("BitwiseAnd", n_, one), 0)
        unit = compare(scope, "Equal", scope.op("Abs", x_), one)
        inverse = select(scope, unit, select(scope, odd, x_, one), zero)
        power = select(scope, compare(scope, "Less", n_, 0), inverse, power)
    return scope.cast(power, x.dtype, is_result)


MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
STEPS = 0x9E3779B9, 0xBB67AE85
WORD = 0xFFFFFFFF


def philox(scope: NameScope, *words: NodeOutput) -> tuple[NodeOutput, NodeOutput]:
    """Write a block of Philox4x32-10 in uint64 arithmetic, once for each tuple of ``words``.

    Source: Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3.

    Args:
        scope: Name scope to write in.
        words: Counter, stream and key, three int64 tensors.

    Returns:
        The low and the high 64 bits of the block as int64 tensors. They are stored in the writer's
        ``sizes``, from which later calls with the same words return them.
    """
    key = ("philox", *(t.ref for t in words))
    if key in scope.writer.sizes:
        cached: tuple[NodeOutput, NodeOutput] = scope.writer.sizes[key]
        return cached
    wide, plain = dtype_of("uint64"), dtype_of("int64")

    def number(n: int) -> NodeOutput:
        return scope.const(n, wide)

    def low(x: NodeOutput) -> NodeOutput:
        return scope.op("BitwiseAnd", x, number(WORD))

    def high(x: NodeOutput) -> NodeOutput:
        return scope.op("RightShift", x, number(32))

    def mixed(*x: NodeOutput) -> NodeOutput:
        return scope.op("BitwiseXor", scope.op("BitwiseXor", x[0], x[1]), x[2])

    counter, stream, secret = (scope.cast(t, wide) for t in words)
    a, b, c, d = low(counter), high(counter), low(stream), high(stream)
    k, m = low(secret), high(secret)
    for _ in range(10):
        p, q = (scope.op("Mul", x, number(f)) for x, f in zip((a, c), MULTIPLIERS, strict=True))
        a, b, c, d = mixed(high(q), b, k), low(q), mixed(high(p), d, m), low(p)
        k, m = (low(scope.op("AddV2", x, number(s))) for x, s in zip((k, m), STEPS, strict=True))
    halves = []
    for first, second in ((a, b), (c, d)):
        top = scope.op("LeftShift", second, number(32))
        halves.append(scope.cast(scope.op("BitwiseOr", first, top), plain))
    scope.writer.sizes[key] = result = (halves[0], halves[1])
    return result


def _half(k: int) -> FunctionWriter:
    """Return a writer of half k (0 the low, 1 the high) of a Philox block, as int64.

    The operands of the writer are the counter, the stream and the key.
    """

    def write(scope: NameScope, *x: NodeOutput, is_result: bool) -> NodeOutput:
        half_block = philox(scope, *x)[k]
        return scope.op("Identity", half_block, is_result=True) if is_result else half_block

    return write


FUNCTIONS |= {"philox_low": _half(0), "philox_high": _half(1)}


def _signed(dtype: DType) -> DType:
    """Return the dtype in which powers of ``dtype`` are computed: int64 if it is unsigned.

    A signed dtype is returned unchanged.
    """
    return dtype if dtype.kind == "i" else dtype_of("int64")
