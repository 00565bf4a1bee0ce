"""Activation functions of neural networks; kinks have the derivative of the side that is named.

At 0 the derivative of relu, relu6, elu, selu, celu, leaky_relu and prelu is that of x < 0; at the
ends of hard_* and *_shrink it is that of the flat side. Sources: TensorFlow's nn, PyTorch's
nn.functional, each by its defining formula.
"""

from __future__ import annotations

from typing import Any

from passkit import ast
from passkit.ast import Expr
from passkit.ops.pointwise import elementwise
from passkit.values.dtype import float32

SELU = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
"""Scale and alpha. Source: Klambauer et al., Self-Normalizing Neural Networks, 2017."""


def _above(x: Expr, low: Expr | float) -> Expr:
    """x, or where it is less ``low``; NaN stays."""
    return ast.where(x > 0, x, low)


def _elu(x: Expr, *, alpha: float) -> Expr:
    return _above(x, ast.expm1(x) * alpha)


def _selu(x: Expr) -> Expr:
    scale, alpha = SELU
    return _above(x, ast.expm1(x) * alpha) * scale


def _celu(x: Expr, *, alpha: float) -> Expr:
    return _above(x, ast.expm1(x / alpha) * alpha)


def _between(x: Expr, low: float, high: float) -> Expr:
    """x cut off at both ends; NaN stays."""
    return ast.where(x <= low, low, ast.where(x >= high, high, x))


def _hard_sigmoid(x: Expr) -> Expr:
    return _between(x + 3.0, 0.0, 6.0) / 6.0


def _mish(x: Expr) -> Expr:
    """x tanh(log(1 + exp(x))) as x n / (n + 2) with n = e (e + 2), e = exp(x)."""
    e = ast.exp(ast.minimum(x, 30))
    n = e * (e + 2.0)
    return x * (n / (n + 2.0))


def _tanh_shrink(x: Expr) -> Expr:
    """Near 0, where x - tanh(x) cancels, by its series."""
    z = x * x
    series = (
        *(1 / 3, -2 / 15, 17 / 315, -62 / 2835, 1382 / 155925, -21844 / 6081075),
        *(929569 / 638512875, -6404582 / 10854718875, 443861162 / 1856156927625),
    )
    near: Any = 0.0
    for c in series[::-1]:
        near = near * z + c
    return ast.where(z < 0.04, x * z * near, x - ast.tanh(x))


# name, code, meaning, parameters, the other names, whether f(0) = 0
for _name, _code, _doc, _params, _aliases, _zero in (
    ("relu6", lambda x: _between(x, 0, 6), "x cut off at 0 and 6", {}, "", True),
    (
        *("leaky_relu", lambda x, *, alpha: _above(x, x * alpha)),
        *("x if positive, else alpha x", {"alpha": 0.2}, "", True),
    ),
    ("elu", _elu, "x if positive, else alpha (exp(x) - 1)", {"alpha": 1.0}, "", True),
    ("selu", _selu, "elu that keeps mean 0 and variance 1", {}, "", True),
    ("celu", _celu, "x if positive, else alpha (exp(x / alpha) - 1)", {"alpha": 1.0}, "", True),
    ("softsign", lambda x: x / (abs(x) + 1.0), "x / (1 + |x|)", {}, "", True),
    ("hard_sigmoid", _hard_sigmoid, "relu6(x + 3) / 6", {}, "", False),
    (
        *("hard_swish", lambda x: x * _hard_sigmoid(x), "x relu6(x + 3) / 6"),
        *({}, "hard_silu", True),
    ),
    (
        *("hard_tanh", lambda x, *, low, high: _between(x, low, high), "x cut off at both ends"),
        *({"low": -1.0, "high": 1.0}, "", False),
    ),
    (
        *("hard_shrink", lambda x, *, threshold: ast.where(abs(x) <= threshold, 0, x)),
        *("x, and 0 where it is no larger than threshold", {"threshold": 0.5}, "", False),
    ),
    (
        *("soft_shrink", lambda x, *, threshold: x - _between(x, -threshold, threshold)),
        *("x moved towards 0 by threshold", {"threshold": 0.5}, "", True),
    ),
    (
        *("threshold", lambda x, *, threshold, value: ast.where(x <= threshold, value, x)),
        *("x if it exceeds threshold, else value", {"threshold": 0.0, "value": 0.0}, "", False),
    ),
    ("mish", _mish, "x tanh(softplus(x))", {}, "", True),
    (
        *("quick_gelu", lambda x: x * ast.sigmoid(x * 1.702)),
        *("x sigmoid(1.702 x)", {}, "", True),
    ),
    ("tanh_shrink", _tanh_shrink, "x - tanh(x), exact near 0", {}, "", True),
):
    elementwise(
        _name,
        "f",
        _code,
        _doc,
        params=_params,
        cost="light" if _params or _name in ("relu6", "hard_tanh") else "expensive",
        zero=_zero,
        least=float32,
        aliases=_aliases,
    )

elementwise(
    "prelu",
    "f",
    lambda x, alpha: _above(x, x * alpha),
    "x if positive, else alpha x; alpha broadcasts",
    least=float32,
)
