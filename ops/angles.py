"""Trigonometric and hyperbolic functions and their inverses, conversions of angles."""

from __future__ import annotations

from math import pi

from passkit import ast
from passkit.ast import Expr
from passkit.ops.elementwise_definition import elementwise
from passkit.values.dtype import float32


def _sinc(x: Expr) -> Expr:
    """Return sin(pi x) / (pi x), exactly 0 at whole numbers other than 0, and 1 at 0.

    The argument is reduced to -1/2 to 1/2 before it is multiplied by pi.
    """
    t = x - ast.rint(x * 0.5) * 2.0
    r = ast.where(abs(t) > 0.5, ast.copysign(ast.const(1, x.dtype), t) - t, t)
    return ast.where(ast.equal(x, 0), 1, ast.sin(r * pi) / (x * pi))


elementwise(
    name="tan",
    kinds="f",
    code=lambda x: ast.tan(x),
    cost="expensive",
    zero_preserving=True,
    doc="the tangent of x in radians",
)
elementwise(
    name="asin",
    aliases="arcsin",
    kinds="f",
    code=lambda x: ast.asin(x),
    cost="expensive",
    zero_preserving=True,
    doc="the angle in radians whose sine is x, from -pi/2 to pi/2",
)
elementwise(
    name="acos",
    aliases="arccos",
    kinds="f",
    code=lambda x: ast.acos(x),
    cost="expensive",
    doc="the angle in radians whose cosine is x, from 0 to pi",
)
elementwise(
    name="atan",
    aliases="arctan",
    kinds="f",
    code=lambda x: ast.atan(x),
    cost="expensive",
    zero_preserving=True,
    doc="the angle in radians whose tangent is x, from -pi/2 to pi/2",
)
elementwise(
    name="sinh",
    kinds="f",
    code=lambda x: ast.sinh(x),
    cost="expensive",
    zero_preserving=True,
    doc="(exp(x) - exp(-x)) / 2",
)
elementwise(
    name="cosh",
    kinds="f",
    code=lambda x: ast.cosh(x),
    cost="expensive",
    doc="(exp(x) + exp(-x)) / 2",
)
elementwise(
    name="asinh",
    aliases="arcsinh",
    kinds="f",
    code=lambda x: ast.asinh(x),
    cost="expensive",
    zero_preserving=True,
    doc="the inverse hyperbolic sine",
)
elementwise(
    name="acosh",
    aliases="arccosh",
    kinds="f",
    code=lambda x: ast.acosh(x),
    cost="expensive",
    doc="the inverse hyperbolic cosine; NaN where x < 1",
)
elementwise(
    name="atanh",
    aliases="arctanh",
    kinds="f",
    code=lambda x: ast.atanh(x),
    cost="expensive",
    zero_preserving=True,
    doc="the inverse hyperbolic tangent; NaN outside of -1 to 1",
)
elementwise(
    name="sinc",
    kinds="f",
    code=_sinc,
    compute_dtype=float32,
    cost="expensive",
    doc="sin(pi x) / (pi x), and 1 at 0",
)

elementwise(
    name="atan2",
    aliases="arctan2",
    kinds="f",
    code=lambda y, x: ast.atan2(y, x),
    cost="expensive",
    doc="the angle of the point (x, y) in radians, from -pi to pi; signs of zeros count, NaN stays",
)
elementwise(
    name="hypot",
    kinds="f",
    code=lambda x, y: ast.hypot(x, y),
    cost="expensive",
    doc="sqrt(x^2 + y^2) without overflow",
)
elementwise(
    name="deg2rad",
    aliases="radians",
    kinds="f",
    code=lambda x: x * (pi / 180),
    zero_preserving=True,
    doc="x degrees in radians",
)
elementwise(
    name="rad2deg",
    aliases="degrees",
    kinds="f",
    code=lambda x: x * (180 / pi),
    zero_preserving=True,
    doc="x radians in degrees",
)
