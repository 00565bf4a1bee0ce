"""Numbers as floats are: signs, neighbours, NaN and infinities; differences, steps, mixtures."""

from __future__ import annotations

from math import inf
from typing import Any

from passkit import ast
from passkit.ast import Expr
from passkit.errors import DTypeError
from passkit.graph.node import Node
from passkit.ops.helpers import check_kinds, make, number_param
from passkit.ops.pointwise import elementwise
from passkit.values.dtype import DType, float32, is_narrow, largest_finite


def _is_finite(x: Expr) -> Expr:
    return abs(x) < inf if x.dtype.is_float else ast.equal(x, x)


def _is_inf(x: Expr) -> Expr:
    return ast.equal(abs(x), inf) if x.dtype.is_float else ast.not_equal(x, x)


def _nextafter(x: Expr, y: Expr) -> Expr:
    return _next_narrow(x, y) if is_narrow(x.dtype) else ast.nextafter(x, y)


def _next_narrow(x: Expr, y: Expr) -> Expr:
    """The next float of 16 bits: x moved by 0.6 to 1.2 of the distance, in float32, and rounded."""
    last, least, top = LIMITS[x.dtype.name]
    wide, toward = ast.cast(x, float32), ast.cast(y, float32)
    far = ast.maximum(abs(wide) * (0.6 * last), 0.6 * least)
    moved = ast.where(wide < toward, wide + far, wide - far)
    moved = ast.where(ast.equal(abs(wide), inf), ast.copysign(ast.const(top, float32), wide), moved)
    signed = ast.copysign(moved, ast.where(ast.equal(wide, 0.0), toward, wide))
    found = ast.where(ast.equal(wide, toward), toward, signed)
    number = ast.equal(wide, wide) & ast.equal(toward, toward)
    return ast.cast(ast.where(number, found, wide + toward), x.dtype)


LIMITS = {
    "float16": (2.0**-10, 2.0**-24, 65504.0),
    "bfloat16": (2.0**-7, 2.0**-133, 2.0**128 - 2.0**120),
}
"""The distance from 1 to the next float, the least float, and the greatest."""


def _signbit(x: Expr) -> Expr:
    return ast.copysign(ast.const(1, x.dtype), x) < 0 if x.dtype.is_float else x < 0


def _fmax(x: Expr, y: Expr) -> Expr:
    return ast.where(ast.not_equal(x, x), y, ast.where(ast.not_equal(y, y), x, ast.maximum(x, y)))


def _fmin(x: Expr, y: Expr) -> Expr:
    return ast.where(ast.not_equal(x, x), y, ast.where(ast.not_equal(y, y), x, ast.minimum(x, y)))


def _fdim(x: Expr, y: Expr) -> Expr:
    return ast.where(x <= y, 0, x - y)


def _heaviside(x: Expr, middle: Expr) -> Expr:
    return ast.where(
        x > 0, ast.const(1, x.dtype), ast.where(x < 0, 0, ast.where(ast.equal(x, 0), middle, x))
    )


def _lerp(x: Expr, y: Expr, t: Expr) -> Expr:
    """From the nearer end, so that both ends are met exactly."""
    apart = y - x
    return ast.where(abs(t) < 0.5, x + t * apart, y - apart * (1.0 - t))


def _is_close(x: Expr, y: Expr, *, rtol: float, atol: float, equal_nan: bool) -> Expr:
    """As NumPy's: finite y count relatively, infinities must be equal."""
    near = (abs(x - y) <= abs(y) * rtol + atol) & (abs(y) < inf)
    out = near | ast.equal(x, y)
    return out | (ast.not_equal(x, x) & ast.not_equal(y, y)) if equal_nan else out


def _replaced_type(node: Node, x: DType) -> DType:
    for what in ("posinf", "neginf"):
        if node.params[what] is not None:
            number_param(node, what)
    check_kinds(node, "f", x)
    return x


def _nan_to_num(x: Expr, *, nan: float, posinf: Any, neginf: Any) -> Expr:
    most = largest_finite(x.dtype)
    high, low = (most if posinf is None else posinf), (-most if neginf is None else neginf)
    finite = ast.where(ast.equal(x, inf), float(high), ast.where(ast.equal(x, -inf), float(low), x))
    return ast.where(ast.equal(x, x), finite, nan)


def _round_half_away(x: Expr) -> Expr:
    """The whole part, one further where at least a half is left."""
    whole = ast.trunc(x)
    further = whole + ast.copysign(ast.const(1, x.dtype), x)
    return ast.where(abs(x - whole) >= 0.5, further, whole)


def _ldexp(x: Expr, n: Expr) -> Expr:
    like = x.dtype
    wide = ast.cast(x, float32) if like.nbytes < 4 else x
    return ast.cast(ast.ldexp(wide, ast.cast(n, wide.dtype)), like)


def _ldexp_type(node: Node, x: DType, n: DType) -> DType:
    check_kinds(node, "f", x)
    if not n.is_integer:
        raise DTypeError(
            f"{node.where} needs integers as exponents, got {n}; pk.ops.cast(n, 'int32')"
        )
    return x


elementwise(
    "isfinite",
    "iuf",
    _is_finite,
    "whether x is no NaN and no infinity",
    truth=True,
    aliases="is_finite",
)
elementwise("isinf", "iuf", _is_inf, "whether x is infinite", truth=True, aliases="is_inf")
elementwise("signbit", "iuf", _signbit, "whether x has a minus: -0 too", truth=True)
elementwise(
    "isclose",
    "f",
    _is_close,
    "whether |x - y| <= atol + rtol |y|, as bool",
    params={"rtol": 1e-5, "atol": 1e-8, "equal_nan": False},
    least=float32,
    truth=True,
)
elementwise("positive", "iuf", lambda x: x, "x")
elementwise("copysign", "f", lambda x, y: ast.copysign(x, y), "|x| with the sign of y")
elementwise("nextafter", "f", _nextafter, "the float next to x on the way to y")
elementwise(
    "ldexp",
    "f",
    _ldexp,
    "x 2^n for integers n, rounded once",
    _ldexp_type,
    gradient=lambda node, dy: [make("ldexp", dy, node.inputs[1]), None],
)
elementwise(
    "fmax",
    "iuf",
    _fmax,
    "the larger; where one is NaN the other; of zeros of both signs y, in float16 x "
    "(NumPy's choice depends on the position)",
)
elementwise(
    "fmin",
    "iuf",
    _fmin,
    "the smaller; where one is NaN the other; of zeros of both signs y, in float16 x "
    "(NumPy's choice depends on the position)",
)
elementwise("fdim", "iuf", _fdim, "x - y where that is positive, else 0; NaN stays")
elementwise("heaviside", "f", _heaviside, "0 where x < 0, 1 where x > 0, middle at 0; NaN stays")
elementwise(
    "step", "f", lambda x: ast.where(x < 0, ast.const(0, x.dtype), 1), "0 where x < 0, else 1"
)
elementwise(
    "squared_difference",
    "iuf",
    lambda x, y: (x - y) * (x - y),
    "(x - y)^2",
    least=float32,
)
elementwise("lerp", "f", _lerp, "x + t (y - x): x at 0, y at 1", least=float32)
elementwise("fma", "f", lambda x, y, z: ast.fma(x, y, z), "x y + z, rounded once", least=float32)
elementwise(
    "nan_to_num",
    "f",
    _nan_to_num,
    "x with NaN and infinities replaced: by 0 and the largest finite floats, or as told",
    _replaced_type,
    params={"nan": 0.0, "posinf": None, "neginf": None},
)
elementwise(
    "round_half_away", "f", _round_half_away, "the nearest integer, ties away from 0", zero=True
)
