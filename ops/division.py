"""Division: quotients rounded toward zero as in C, quotients guarded against 0, common divisors."""

from __future__ import annotations

from passkit import ast
from passkit.ast import Expr
from passkit.ops.elementwise_definition import elementwise
from passkit.values.dtype import float64


def _trunc_div(x: Expr, y: Expr) -> Expr:
    """Return x / y rounded toward 0; for integers 0 where y is 0."""
    return ast.trunc(x / y) if x.dtype.is_float else x // y


def _fmod(x: Expr, y: Expr) -> Expr:
    """Return the exact remainder of x / y rounded toward 0, which has the sign of x.

    For integers it is 0 where y is 0, for floats NaN.
    """
    return ast.fmod(x, y) if x.dtype.is_float else x % y


def _lcm(x: Expr, y: Expr) -> Expr:
    """Return the least common multiple of integers x and y; 0 where one is 0.

    It is divided before it is multiplied, so that less wraps.
    """
    return abs(x // ast.gcd(x, y) * y)


def _zero_where_zero(x: Expr, value: Expr) -> Expr:
    """Return 0 where x is 0, else ``value``."""
    return ast.where(ast.equal(x, 0), 0, value)


elementwise(
    name="trunc_div",
    aliases="truncate_div",
    kinds="iuf",
    code=_trunc_div,
    compute_dtype=float64,
    cost="expensive",
    doc="x / y rounded toward 0; an integer divided by 0 is 0",
)
elementwise(
    name="fmod",
    aliases="trunc_mod truncate_mod",
    kinds="iuf",
    code=_fmod,
    cost="expensive",
    doc="x - trunc_div(x, y) * y, the remainder with the sign of x; an integer modulo 0 is 0",
)
elementwise(
    name="gcd",
    kinds="iu",
    code=lambda x, y: ast.gcd(x, y),
    cost="expensive",
    doc="the greatest common divisor",
)
elementwise(
    name="lcm",
    kinds="iu",
    code=_lcm,
    cost="expensive",
    doc="the least common multiple, without the bits that overflow; 0 where x or y is 0",
)
elementwise(
    name="div_no_nan",
    aliases="divide_no_nan",
    kinds="f",
    code=lambda x, y: _zero_where_zero(y, x / y),
    cost="expensive",
    doc="x / y, and 0 where y is 0",
)
elementwise(
    name="mul_no_nan",
    aliases="multiply_no_nan",
    kinds="f",
    code=lambda x, y: _zero_where_zero(y, x * y),
    cost="expensive",
    doc="x * y, and 0 where y is 0, even where x is infinite or NaN",
)
elementwise(
    name="xdivy",
    kinds="f",
    code=lambda x, y: _zero_where_zero(x, x / y),
    cost="expensive",
    doc="x / y, and 0 where x is 0",
)

elementwise(
    name="reciprocal_no_nan",
    kinds="f",
    code=lambda x: _zero_where_zero(x, 1.0 / x),
    cost="expensive",
    doc="1 / x, and 0 where x is 0",
)
