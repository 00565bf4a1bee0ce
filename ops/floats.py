"""Signs, neighbours, NaN and infinities of floats; differences, steps, interpolation."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from passkit import ast
from passkit.ast import Expr
from passkit.errors import DTypeError
from passkit.graph.node import Node
from passkit.ops.elementwise_definition import elementwise
from passkit.ops.helpers import check_kinds, make, number_param
from passkit.values.dtype import DType, bool_, float32, is_narrow, largest_finite


def _is_finite(x: Expr) -> Expr:
    """Return whether x is neither NaN nor infinite: true for integers."""
    return abs(x) < inf if x.dtype.is_float else ast.equal(x, x)


def _is_inf(x: Expr) -> Expr:
    """Return whether x is infinite: false for integers."""
    return ast.equal(abs(x), inf) if x.dtype.is_float else ast.not_equal(x, x)


class FloatLimits(NamedTuple):
    """Limits of a floating-point format."""

    epsilon: float
    """The distance from 1 to the next larger number."""
    smallest: float
    """The smallest positive number, which is subnormal."""
    largest: float
    """The largest finite number."""


NARROW_LIMITS = {
    "float16": FloatLimits(epsilon=2.0**-10, smallest=2.0**-24, largest=65504.0),
    "bfloat16": FloatLimits(epsilon=2.0**-7, smallest=2.0**-133, largest=2.0**128 - 2.0**120),
}


def _nextafter(x: Expr, y: Expr) -> Expr:
    """Return the float next to x in the direction of y."""
    return _nextafter_narrow(x, y) if is_narrow(x.dtype) else ast.nextafter(x, y)


def _nextafter_narrow(x: Expr, y: Expr) -> Expr:
    """Return the 16-bit float next to x in the direction of y, computed in float32.

    x is moved by 0.6 to 1.2 of the distance to its neighbour, and rounded to 16 bits. It is y where
    both are equal, NaN where one is NaN.
    """
    limits = NARROW_LIMITS[x.dtype.name]
    wide, target = ast.cast(x, float32), ast.cast(y, float32)
    distance = ast.maximum(abs(wide) * (0.6 * limits.epsilon), 0.6 * limits.smallest)
    moved = ast.where(wide < target, wide + distance, wide - distance)
    largest = ast.copysign(ast.const(limits.largest, float32), wide)
    moved = ast.where(ast.equal(abs(wide), inf), largest, moved)
    signed = ast.copysign(moved, ast.where(ast.equal(wide, 0.0), target, wide))
    neighbour = ast.where(ast.equal(wide, target), target, signed)
    both_numbers = ast.equal(wide, wide) & ast.equal(target, target)
    return ast.cast(ast.where(both_numbers, neighbour, wide + target), x.dtype)


def _signbit(x: Expr) -> Expr:
    """Return whether the sign bit is set, as it is of -0.0."""
    return ast.copysign(ast.const(1, x.dtype), x) < 0 if x.dtype.is_float else x < 0


def _fmax(x: Expr, y: Expr) -> Expr:
    """Return the larger of x and y; where one is NaN, the other."""
    return ast.where(ast.not_equal(x, x), y, ast.where(ast.not_equal(y, y), x, ast.maximum(x, y)))


def _fmin(x: Expr, y: Expr) -> Expr:
    """Return the smaller of x and y; where one is NaN, the other."""
    return ast.where(ast.not_equal(x, x), y, ast.where(ast.not_equal(y, y), x, ast.minimum(x, y)))


def _fdim(x: Expr, y: Expr) -> Expr:
    """Return x - y where x > y, else 0; NaN where one is NaN."""
    return ast.where(x <= y, 0, x - y)


def _heaviside(x: Expr, middle: Expr) -> Expr:
    """Return 0 where x is negative, 1 where it is positive, ``middle`` where it is 0; NaN stays."""
    return ast.where(
        x > 0, ast.const(1, x.dtype), ast.where(x < 0, 0, ast.where(ast.equal(x, 0), middle, x))
    )


def _lerp(x: Expr, y: Expr, t: Expr) -> Expr:
    """Return x + t (y - x), computed from the nearer end, so that both ends are exact."""
    difference = y - x
    return ast.where(abs(t) < 0.5, x + t * difference, y - difference * (1.0 - t))


def _is_close(x: Expr, y: Expr, *, rtol: float, atol: float, equal_nan: bool) -> Expr:
    """Return whether |x - y| <= atol + rtol |y| for a finite y, as NumPy; infinities must be equal.

    NaN is close to NaN only with ``equal_nan``.
    """
    near = (abs(x - y) <= abs(y) * rtol + atol) & (abs(y) < inf)
    close = near | ast.equal(x, y)
    return close | (ast.not_equal(x, x) & ast.not_equal(y, y)) if equal_nan else close


def _infer_nan_to_num_type(node: Node, x: DType) -> DType:
    """Infer the dtype, that of x, and check the parameters of ``node``.

    Raises:
        GraphError: If ``posinf`` or ``neginf`` is neither a number nor None.
        DTypeError: If x is no float.
    """
    for name in ("posinf", "neginf"):
        if node.params[name] is not None:
            number_param(node, name)
    check_kinds(node, "f", x)
    return x


def _nan_to_num(x: Expr, *, nan: float, posinf: Any, neginf: Any) -> Expr:
    """Return x with NaN replaced by ``nan``, infinity by ``posinf`` and -infinity by ``neginf``.

    None for an infinity is the largest or lowest finite number of the dtype of x.
    """
    largest = largest_finite(x.dtype)
    high = largest if posinf is None else posinf
    low = -largest if neginf is None else neginf
    finite = ast.where(ast.equal(x, inf), float(high), ast.where(ast.equal(x, -inf), float(low), x))
    return ast.where(ast.equal(x, x), finite, nan)


def _round_half_away(x: Expr) -> Expr:
    """Return the nearest integer; one half is rounded away from 0."""
    truncated = ast.trunc(x)
    next_integer = truncated + ast.copysign(ast.const(1, x.dtype), x)
    return ast.where(abs(x - truncated) >= 0.5, next_integer, truncated)


def _ldexp(x: Expr, n: Expr) -> Expr:
    """Return x 2^n; floats of 16 bits are computed in float32, so that they are rounded once.

    ``n`` is an integer expression.
    """
    wide = ast.cast(x, float32) if x.dtype.nbytes < 4 else x
    return ast.cast(ast.ldexp(wide, ast.cast(n, wide.dtype)), x.dtype)


def _infer_ldexp_type(node: Node, x: DType, n: DType) -> DType:
    """Infer the dtype, that of x; ``n`` is the dtype of the exponents.

    Errors name ``node``.

    Raises:
        DTypeError: If x is no float, or n no integer.
    """
    check_kinds(node, "f", x)
    if not n.is_integer:
        raise DTypeError(
            f"{node.where} needs integers as exponents, got {n}; pk.ops.cast(n, 'int32')"
        )
    return x


elementwise(
    name="isfinite",
    aliases="is_finite",
    kinds="iuf",
    result_dtype=bool_,
    code=_is_finite,
    doc="whether x is neither NaN nor infinite, as bool",
)
elementwise(
    name="isinf",
    aliases="is_inf",
    kinds="iuf",
    result_dtype=bool_,
    code=_is_inf,
    doc="whether x is infinite, as bool",
)
elementwise(
    name="signbit",
    kinds="iuf",
    result_dtype=bool_,
    code=_signbit,
    doc="whether the sign bit of x is set, as of -0.0, as bool",
)
elementwise(
    name="isclose",
    kinds="f",
    result_dtype=bool_,
    params={"rtol": 1e-5, "atol": 1e-8, "equal_nan": False},
    code=_is_close,
    compute_dtype=float32,
    doc="whether |x - y| <= atol + rtol * |y|, as bool",
)
elementwise(
    name="positive",
    kinds="iuf",
    code=lambda x: x,
    doc="x",
)
elementwise(
    name="copysign",
    kinds="f",
    code=lambda x, y: ast.copysign(x, y),
    doc="|x| with the sign of y",
)
elementwise(
    name="nextafter",
    kinds="f",
    code=_nextafter,
    doc="the float next to x in the direction of y",
)
elementwise(
    name="ldexp",
    kinds="f",
    infer_type=_infer_ldexp_type,
    code=_ldexp,
    gradient=lambda node, dy: [make("ldexp", dy, node.inputs[1]), None],
    doc="x * 2^n for integers n, rounded once",
)
elementwise(
    name="fmax",
    kinds="iuf",
    code=_fmax,
    doc="the larger of x and y; if one is NaN, the other. Of zeros of both signs it is y, in "
    "float16 x",
)
elementwise(
    name="fmin",
    kinds="iuf",
    code=_fmin,
    doc="the smaller of x and y; if one is NaN, the other. Of zeros of both signs it is y, in "
    "float16 x",
)
elementwise(
    name="fdim",
    kinds="iuf",
    code=_fdim,
    doc="x - y where that is positive, else 0; NaN stays",
)
elementwise(
    name="heaviside",
    kinds="f",
    code=_heaviside,
    doc="0 where x < 0, 1 where x > 0, middle where x is 0; NaN stays",
)
elementwise(
    name="step",
    kinds="f",
    code=lambda x: ast.where(x < 0, ast.const(0, x.dtype), 1),
    doc="0 where x < 0, else 1",
)
elementwise(
    name="squared_difference",
    kinds="iuf",
    code=lambda x, y: (x - y) * (x - y),
    compute_dtype=float32,
    commutative=True,
    doc="(x - y)^2",
)
elementwise(
    name="lerp",
    kinds="f",
    code=_lerp,
    compute_dtype=float32,
    doc="x + t * (y - x): x at t = 0, y at t = 1",
)
elementwise(
    name="fma",
    kinds="f",
    code=lambda x, y, z: ast.fma(x, y, z),
    compute_dtype=float32,
    doc="x * y + z, rounded once",
)
elementwise(
    name="nan_to_num",
    kinds="f",
    infer_type=_infer_nan_to_num_type,
    params={"nan": 0.0, "posinf": None, "neginf": None},
    code=_nan_to_num,
    doc="x with NaN replaced by nan, and infinities by posinf and neginf, by default the largest "
    "finite numbers",
)
elementwise(
    name="round_half_away",
    kinds="f",
    code=_round_half_away,
    zero_preserving=True,
    doc="x rounded to the nearest integer, ties away from 0, in the dtype of x",
)
