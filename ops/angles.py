"""Angles and hyperbolas: trigonometric and hyperbolic functions and their inverses."""

from __future__ import annotations

from math import pi

from passkit import ast
from passkit.ast import Expr
from passkit.ops.pointwise import elementwise
from passkit.values.dtype import float32


def _sinc(x: Expr) -> Expr:
    """The sine of less than a quarter turn: 0 at whole numbers. Where x is 0 the limit, 1."""
    t = x - ast.rint(x * 0.5) * 2.0  # whole turns do not count
    r = ast.where(abs(t) > 0.5, ast.copysign(ast.const(1, x.dtype), t) - t, t)
    return ast.where(ast.equal(x, 0), 1, ast.sin(r * pi) / (x * pi))


# name, code, meaning, the other names, whether f(0) = 0
for _name, _code, _doc, _aliases, _zero in (
    ("tan", lambda x: ast.tan(x), "the tangent of x in radians", "", True),
    ("asin", lambda x: ast.asin(x), "the angle whose sine is x", "arcsin", True),
    ("acos", lambda x: ast.acos(x), "the angle whose cosine is x", "arccos", False),
    ("atan", lambda x: ast.atan(x), "the angle whose tangent is x", "arctan", True),
    ("sinh", lambda x: ast.sinh(x), "(exp(x) - exp(-x)) / 2", "", True),
    ("cosh", lambda x: ast.cosh(x), "(exp(x) + exp(-x)) / 2", "", False),
    ("asinh", lambda x: ast.asinh(x), "the inverse of sinh", "arcsinh", True),
    ("acosh", lambda x: ast.acosh(x), "the inverse of cosh", "arccosh", False),
    ("atanh", lambda x: ast.atanh(x), "the inverse of tanh", "arctanh", True),
    ("sinc", _sinc, "sin(pi x) / (pi x), and 1 at 0", "", False),
):
    elementwise(
        _name,
        "f",
        _code,
        _doc,
        cost="expensive",
        aliases=_aliases,
        zero=_zero,
        least=float32 if _code is _sinc else None,
    )

elementwise(
    "atan2",
    "f",
    lambda y, x: ast.atan2(y, x),
    "the angle of the point (x, y); NaN keeps, zeros keep their signs",
    cost="expensive",
    aliases="arctan2",
)
elementwise(
    "hypot", "f", lambda x, y: ast.hypot(x, y), "sqrt(x^2 + y^2) without overflow", cost="expensive"
)
elementwise(
    "deg2rad", "f", lambda x: x * (pi / 180), "degrees as radians", aliases="radians", zero=True
)
elementwise(
    "rad2deg", "f", lambda x: x * (180 / pi), "radians as degrees", aliases="degrees", zero=True
)
