"""The functions of kernel expressions in TensorFlow's operators."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.frontends.tf_graphdef.export.writer import BOOL, Scope, Tensor
from passkit.values.dtype import DType, dtype_of

Writer = Callable[..., Tensor]

SAME = {
    **{"exp": "Exp", "expm1": "Expm1", "log": "Log", "log1p": "Log1p", "sin": "Sin", "cos": "Cos"},
    **{"tan": "Tan", "sinh": "Sinh", "cosh": "Cosh", "tanh": "Tanh", "asin": "Asin"},
    **{"acos": "Acos", "atan": "Atan", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh"},
    **{"erfc": "Erfc", "sigmoid": "Sigmoid", "sqrt": "Sqrt", "rsqrt": "Rsqrt"},
    **{"floor": "Floor", "ceil": "Ceil", "rint": "Rint", "lgamma": "Lgamma", "pow": "Pow"},
    **{"erfinv": "Erfinv", "atan2": "Atan2", "fmod": "TruncateMod"},
    **{"nextafter": "NextAfter", "igamma": "Igamma", "igammac": "Igammac"},
    **{"zeta": "Zeta"},
}
FUNCTIONS: dict[str, Writer] = {}


def _same(op: str) -> Writer:
    return lambda scope, *x, last: scope.op(op, *x, last=last)


FUNCTIONS |= {name: _same(op) for name, op in SAME.items()}


def function(name: str) -> Callable[[Writer], Writer]:
    """Enter what writes a function of kernel expressions."""

    def enter(write: Writer) -> Writer:
        FUNCTIONS[name] = write
        return write

    return enter


def select(scope: Scope, condition: Tensor, a: Tensor, b: Tensor, last: bool = False) -> Tensor:
    """``a`` where the condition holds, else ``b``."""
    return scope.op("SelectV2", condition, a, b, T=a.dtype, out=a.dtype, last=last)


def truth(scope: Scope, op: str, a: Tensor, b: Any) -> Tensor:
    """A comparison with a tensor or a number."""
    other = b if isinstance(b, Tensor) else scope.const(b, a.dtype)
    return scope.op(op, a, other, out=BOOL)


def both(scope: Scope, a: Tensor, b: Tensor) -> Tensor:
    """Whether two conditions hold."""
    return scope.op("LogicalAnd", a, b)


def either(scope: Scope, a: Tensor, b: Tensor) -> Tensor:
    """Whether one of two conditions holds."""
    return scope.op("LogicalOr", a, b)


def _scaled(factor: float) -> Writer:
    def write(scope: Scope, x: Tensor, last: bool) -> Tensor:
        return scope.op("Mul", scope.op("Log", x), scope.const(factor, x.dtype), last=last)

    return write


FUNCTIONS |= {"log2": _scaled(1 / math.log(2)), "log10": _scaled(1 / math.log(10))}


@function("exp2")
def _exp2(scope: Scope, x: Tensor, last: bool) -> Tensor:
    return scope.op("Pow", scope.const(2, x.dtype), x, last=last)


@function("abs")
def magnitude(scope: Scope, x: Tensor, last: bool = False) -> Tensor:
    """The magnitude; of unsigned integers they themselves."""
    return scope.op("Identity" if x.dtype.kind == "u" else "Abs", x, last=last)


def _extreme(op: str) -> Writer:
    """NaN where either is: which TensorFlow's operator gives depends on the order of the two."""

    def write(scope: Scope, a: Tensor, b: Tensor, last: bool) -> Tensor:
        made = scope.op(op, a, b, last=last and not a.dtype.is_float)
        if not a.dtype.is_float:
            return made
        unordered = either(scope, truth(scope, "NotEqual", a, a), truth(scope, "NotEqual", b, b))
        return select(scope, unordered, scope.op("AddV2", a, b), made, last)

    return write


FUNCTIONS |= {"maximum": _extreme("Maximum"), "minimum": _extreme("Minimum")}


@function("trunc")
def truncated(scope: Scope, x: Tensor, last: bool = False) -> Tensor:
    """Toward zero: TensorFlow has only the roundings down and up."""
    up, down = scope.op("Ceil", x), scope.op("Floor", x)
    return select(scope, truth(scope, "Less", x, 0), up, down, last)


@function("fma")
def _fma(scope: Scope, x: Tensor, y: Tensor, z: Tensor, last: bool) -> Tensor:
    """Exact to the last rounding for float32, whose products fit into a double."""
    wide = dtype_of("float64")
    a, b, c = (scope.cast(t, wide) for t in (x, y, z))
    made = scope.op("AddV2", scope.op("Mul", a, b), c, last=last and x.dtype is wide)
    return scope.cast(made, x.dtype, last=last and x.dtype is not wide)


def is_negative(scope: Scope, x: Tensor) -> Tensor:
    """Whether the sign bit is set, for -0 too."""
    inverse = scope.op("Reciprocal", x)
    zero = truth(scope, "Equal", x, 0)
    return either(
        scope,
        truth(scope, "Less", x, 0),
        both(scope, zero, truth(scope, "Less", inverse, 0)),
    )


@function("copysign")
def _copysign(scope: Scope, x: Tensor, y: Tensor, last: bool) -> Tensor:
    size = scope.op("Abs", x)
    return select(scope, is_negative(scope, y), scope.op("Neg", size), size, last)


@function("cbrt")
def _cbrt(scope: Scope, x: Tensor, last: bool) -> Tensor:
    root = scope.op("Pow", scope.op("Abs", x), scope.const(1 / 3, x.dtype))
    return scope.op("Mul", scope.op("Sign", x), root, last=last)


@function("hypot")
def _hypot(scope: Scope, x: Tensor, y: Tensor, last: bool) -> Tensor:
    """The larger one scaled, so that squares neither overflow nor vanish."""
    a, b = scope.op("Abs", x), scope.op("Abs", y)
    large, small = scope.op("Maximum", a, b), scope.op("Minimum", a, b)
    ratio = scope.op("DivNoNan", small, large)
    rest = scope.op("Sqrt", scope.op("AddV2", scope.op("Square", ratio), scope.const(1, x.dtype)))
    made = scope.op("Mul", large, rest)
    unordered = either(scope, truth(scope, "NotEqual", x, x), truth(scope, "NotEqual", y, y))
    made = select(scope, unordered, scope.op("AddV2", x, y), made)
    endless = either(scope, truth(scope, "Equal", a, np.inf), truth(scope, "Equal", b, np.inf))
    return select(scope, endless, scope.const(np.inf, x.dtype), made, last)


@function("ldexp")
def _ldexp(scope: Scope, x: Tensor, n: Tensor, last: bool) -> Tensor:
    """Three factors of a power of two, of which none overflows where the result does not."""
    most = scope.const(2100 if x.dtype.nbytes == 8 else 300, n.dtype)
    whole = truncated(
        scope, scope.op("Maximum", scope.op("Minimum", n, most), scope.op("Neg", most))
    )
    third = truncated(scope, scope.op("Mul", whole, scope.const(1 / 3, n.dtype)))
    rest = scope.op("Sub", scope.op("Sub", whole, third), third)
    two = scope.const(2, x.dtype)
    factor = scope.op("Pow", two, third)
    made = scope.op("Mul", scope.op("Mul", x, factor), factor)
    return scope.op("Mul", made, scope.op("Pow", two, rest), last=last)


@function("erf")
def _erf(scope: Scope, x: Tensor, last: bool) -> Tensor:
    """TensorFlow's gives NaN for doubles that are infinite."""
    if x.dtype.nbytes < 8:
        return scope.op("Erf", x, last=last)
    endless = truth(scope, "Equal", scope.op("Abs", x), np.inf)
    return select(scope, endless, scope.op("Sign", x), scope.op("Erf", x), last)


@function("digamma")
def _digamma(scope: Scope, x: Tensor, last: bool) -> Tensor:
    """TensorFlow's gives NaN at the pole of 0."""
    pole = scope.op("RealDiv", scope.const(-1, x.dtype), x)
    return select(scope, truth(scope, "Equal", x, 0), pole, scope.op("Digamma", x), last)


@function("erfcinv")
def _erfcinv(scope: Scope, x: Tensor, last: bool) -> Tensor:
    half = scope.op("Mul", x, scope.const(0.5, x.dtype))
    return scope.op(
        "Mul", scope.op("Ndtri", half), scope.const(-math.sqrt(0.5), x.dtype), last=last
    )


@function("tgamma")
def _tgamma(scope: Scope, x: Tensor, last: bool) -> Tensor:
    """exp(lgamma(x)), negative where an odd number of the factors x, x + 1, … is."""
    size = scope.op("Exp", scope.op("Lgamma", x))
    odd = truth(
        scope, "Equal", scope.op("FloorMod", scope.op("Floor", x), scope.const(2, x.dtype)), 1
    )
    negative = either(scope, both(scope, truth(scope, "Less", x, 0), odd),
                      both(scope, truth(scope, "Equal", x, 0), is_negative(scope, x)))  # fmt: skip
    made = select(scope, negative, scope.op("Neg", size), size)
    pole = both(scope, truth(scope, "Less", x, 0), truth(scope, "Equal", scope.op("Floor", x), x))
    return select(scope, pole, scope.const(np.nan, x.dtype), made, last)


@function("trigamma")
def _trigamma(scope: Scope, x: Tensor, last: bool) -> Tensor:
    """By zeta where x is positive, else by its reflection: pi² / sin²(pi x) - trigamma(1 - x)."""
    one = scope.const(1, x.dtype)
    low = truth(scope, "Less", x, 0)
    at = select(scope, low, scope.op("Sub", one, x), x)
    found = scope.op("Polygamma", one, at, like="T")
    whole = scope.op("Rint", x)
    sine = scope.op(
        "Sin", scope.op("Mul", scope.op("Sub", x, whole), scope.const(math.pi, x.dtype))
    )
    ratio = scope.op("RealDiv", scope.const(math.pi, x.dtype), sine)
    other = scope.op("Sub", scope.op("Square", ratio), found)
    return select(scope, low, other, found, last)


@function("betainc")
def _betainc(scope: Scope, a: Tensor, b: Tensor, x: Tensor, last: bool) -> Tensor:
    """TensorFlow's does not broadcast, so each is what is chosen of it and of all."""
    true = scope.const(True, BOOL)
    every = select(scope, true, a, select(scope, true, b, x))
    given = [every, select(scope, true, b, every), select(scope, true, x, every)]
    return scope.op("Betainc", *given, last=last)


def _shift(op: str, fills: bool) -> Writer:
    """Total: a count below 0 or of the width moves all bits out."""

    def write(scope: Scope, x: Tensor, n: Tensor, last: bool) -> Tensor:
        width = 8 * x.dtype.nbytes
        outside = truth(scope, "GreaterEqual", n, width)
        if n.dtype.kind == "i":
            outside = either(scope, outside, truth(scope, "Less", n, 0))
        count = select(scope, outside, scope.const(0, n.dtype), n)
        rest = scope.const(0, x.dtype)
        if fills and x.dtype.kind == "i":
            rest = select(scope, truth(scope, "Less", x, 0), scope.const(-1, x.dtype), rest)
        return select(scope, outside, rest, scope.op(op, x, count), last)

    return write


FUNCTIONS |= {"left_shift": _shift("LeftShift", False), "right_shift": _shift("RightShift", True)}


@function("whole_power")
def _whole_power(scope: Scope, x: Tensor, n: Tensor, last: bool) -> Tensor:
    """TensorFlow fails for negative exponents: there 1 / x^n is cut to a whole number."""
    work = _signed(x.dtype)
    x_, n_ = scope.cast(x, work), scope.cast(n, work)
    zero, one = scope.const(0, work), scope.const(1, work)
    positive = scope.op("Pow", x_, scope.op("Maximum", n_, zero))
    if x.dtype.kind == "i":
        odd = truth(scope, "NotEqual", scope.op("BitwiseAnd", n_, one), 0)
        unit = truth(scope, "Equal", scope.op("Abs", x_), one)
        inverse = select(scope, unit, select(scope, odd, x_, one), zero)
        positive = select(scope, truth(scope, "Less", n_, 0), inverse, positive)
    return scope.cast(positive, x.dtype, last)


MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
STEPS = 0x9E3779B9, 0xBB67AE85
WORD = 0xFFFFFFFF


def philox(scope: Scope, *given: Tensor) -> tuple[Tensor, Tensor]:
    """The two halves of a block of Philox4x32-10, spelled out in uint64; written once for each.

    Source: Salmon, Moraes, Dror and Shaw, Parallel Random Numbers: As Easy as 1, 2, 3.
    """
    key = ("philox", *(t.ref for t in given))
    if key in scope.writer.sizes:
        known: tuple[Tensor, Tensor] = scope.writer.sizes[key]
        return known
    wide, plain = dtype_of("uint64"), dtype_of("int64")

    def number(n: int) -> Tensor:
        return scope.const(n, wide)

    def low(x: Tensor) -> Tensor:
        return scope.op("BitwiseAnd", x, number(WORD))

    def high(x: Tensor) -> Tensor:
        return scope.op("RightShift", x, number(32))

    def mixed(*x: Tensor) -> Tensor:
        return scope.op("BitwiseXor", scope.op("BitwiseXor", x[0], x[1]), x[2])

    counter, stream, secret = (scope.cast(t, wide) for t in given)
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
    scope.writer.sizes[key] = found = (halves[0], halves[1])
    return found


def _half(k: int) -> Writer:
    def write(scope: Scope, *x: Tensor, last: bool) -> Tensor:
        made = philox(scope, *x)[k]
        return scope.op("Identity", made, last=True) if last else made

    return write


FUNCTIONS |= {"philox_low": _half(0), "philox_high": _half(1)}


def _signed(dtype: DType) -> DType:
    """A type in which powers wrap as those of ``dtype``."""
    return dtype if dtype.kind == "i" else dtype_of("int64")
