"""Quotients and remainders: truncated as in C, guarded against zero, common divisors."""

from __future__ import annotations

from passkit import ast
from passkit.ast import Expr
from passkit.ops.pointwise import elementwise
from passkit.values.dtype import float64


def _trunc_div(x: Expr, y: Expr) -> Expr:
    return ast.trunc(x / y) if x.dtype.is_float else x // y


def fmod(x: Expr, y: Expr) -> Expr:
    """The rest of division towards 0: exact, with the sign of x."""
    return ast.fmod(x, y) if x.dtype.is_float else x % y


def _lcm(x: Expr, y: Expr) -> Expr:
    return abs(x // ast.gcd(x, y) * y)


def _unless_zero(condition: Expr, value: Expr) -> Expr:
    return ast.where(ast.equal(condition, 0), 0, value)


elementwise(
    "trunc_div",
    "iuf",
    _trunc_div,
    "x / y rounded toward 0; for integers x / 0 = 0",
    cost="expensive",
    least=float64,
    aliases="truncate_div",
)
for _name, _kinds, _code, _doc, _aliases in (
    (
        *(
            "fmod",
            "iuf",
            fmod,
            "x - trunc_div(x, y) * y, with the sign of x; for integers x % 0 = 0",
        ),
        "trunc_mod truncate_mod",
    ),
    ("gcd", "iu", lambda x, y: ast.gcd(x, y), "the greatest common divisor", ""),
    ("lcm", "iu", _lcm, "the least common multiple, wrapped; 0 if either is", ""),
    (
        *("div_no_nan", "f", lambda x, y: _unless_zero(y, x / y), "x / y, and 0 where y is 0"),
        "divide_no_nan",
    ),
    (
        *("mul_no_nan", "f", lambda x, y: _unless_zero(y, x * y)),
        *("x * y, and 0 where y is 0, even for x infinite or NaN", "multiply_no_nan"),
    ),
    ("xdivy", "f", lambda x, y: _unless_zero(x, x / y), "x / y, and 0 where x is 0", ""),
):
    elementwise(_name, _kinds, _code, _doc, cost="expensive", aliases=_aliases)

elementwise(
    "reciprocal_no_nan",
    "f",
    lambda x: _unless_zero(x, 1.0 / x),
    "1 / x, and 0 where x is 0",
    cost="expensive",
)
