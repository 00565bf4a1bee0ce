"""Exponentials, logarithms and roots, and the sums and products of them that overflow else."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log
from typing import Any

from passkit import ast
from passkit.ast import Expr
from passkit.ops.helpers import make
from passkit.ops.pointwise import elementwise
from passkit.values.dtype import float32

LOG_2 = log(2)


def log1p_exp(x: Expr) -> Expr:
    """max(x, 0) + log1p(exp(-|x|)): nothing overflows, and small results keep their digits."""
    return ast.maximum(x, 0) + ast.log1p(ast.exp(-abs(x)))


def log1m_exp(x: Expr) -> Expr:
    """Two forms, each exact where the other cancels. Source: M. Mächler, Rmpfr, 2012."""
    near = ast.log(-ast.expm1(x))
    return ast.where(x > -LOG_2, near, ast.log1p(-ast.exp(x)))


def _logaddexp(x: Expr, y: Expr) -> Expr:
    """The larger plus log1p(exp(-|x - y|)); where both are one infinity, that."""
    top, apart = ast.maximum(x, y), ast.where(ast.equal(x, y), 0, -abs(x - y))
    return top + ast.log1p(ast.exp(apart))


def _logaddexp2(x: Expr, y: Expr) -> Expr:
    top, apart = ast.maximum(x, y), ast.where(ast.equal(x, y), 0, -abs(x - y))
    return top + ast.log1p(ast.exp2(apart)) * (1 / LOG_2)


def _log_diff_exp(x: Expr, y: Expr) -> Expr:
    """log(exp(x) - exp(y)): NaN where x < y, -inf where they are equal."""
    wanted = x + log1m_exp(y - x)
    return ast.where(ast.equal(x, y) & (x < inf), -inf, wanted)


def _times(logarithm: Callable[[Expr], Expr]) -> Callable[[Expr, Expr], Expr]:
    """x times a logarithm of y, but 0 where x is 0, unless y is NaN."""

    def code(x: Expr, y: Expr) -> Expr:
        zero = ast.equal(x, 0) & ast.equal(y, y)
        return ast.where(zero, 0, x * logarithm(y))

    return code


def _lmultiply(x: Expr, y: Expr) -> Expr:
    """As xlogy, but 0 only where both are 0: 0 * log(-1) is NaN."""
    return ast.where(ast.equal(x, 0) & ast.equal(y, 0), 0, x * ast.log(y))


def _exp10(x: Expr) -> Expr:
    return ast.pow(ast.const(10, x.dtype), x)


def _logaddexp_gradient(node: Any, dy: Any) -> list[Any]:
    """The share that each side has in the sum; where both are equal, a half."""
    x, y = node.inputs
    apart = (x - y) * (LOG_2 if node.op.name == "logaddexp2" else 1.0)
    return [dy * make("sigmoid", apart), dy * make("sigmoid", -apart)]


# name, code, meaning, the other names, whether f(0) = 0
for _name, _code, _doc, _aliases, _zero in (
    ("exp2", lambda x: ast.exp2(x), "2 to the power x", "", False),
    ("exp10", _exp10, "10 to the power x", "", False),
    ("log2", lambda x: ast.log2(x), "the logarithm of x to base 2", "", False),
    ("log10", lambda x: ast.log10(x), "the logarithm of x to base 10", "", False),
    ("cbrt", lambda x: ast.cbrt(x), "the cube root of x", "", True),
    ("log1m", lambda x: ast.log1p(-x), "log(1 - x), exact near 0", "", True),
    ("log1m_exp", log1m_exp, "log(1 - exp(x)); NaN where x > 0", "log1mexp", False),
):
    elementwise(
        _name, "f", _code, _doc, cost="expensive", aliases=_aliases, zero=_zero, least=float32
    )

elementwise(
    "log1p_exp",
    "f",
    log1p_exp,
    "log(1 + exp(x))",
    cost="expensive",
    aliases="softplus",
    least=float32,
    gradient=lambda node, dy: [dy * make("sigmoid", node.inputs[0])],
)

# name, code, meaning, the other names
for _name, _code2, _doc, _aliases in (
    ("log_diff_exp", _log_diff_exp, "log(exp(x) - exp(y)); NaN where x < y", ""),
    ("xlogy", _times(ast.log), "x log(y), and 0 where x is 0", ""),
    ("xlog1py", _times(ast.log1p), "x log(1 + y), and 0 where x is 0", ""),
    ("lmultiply", _lmultiply, "x log(y), and 0 where both are 0", "multiply_log"),
):
    elementwise(_name, "f", _code2, _doc, cost="expensive", aliases=_aliases, least=float32)

elementwise("inv_square", "f", lambda x: 1.0 / (x * x), "1 / x^2", cost="expensive", least=float32)

for _name, _code2, _doc, _aliases in (
    ("logaddexp", _logaddexp, "log(exp(x) + exp(y))", "log_sum_exp"),
    ("logaddexp2", _logaddexp2, "log2(2^x + 2^y)", ""),
):
    elementwise(
        _name,
        "f",
        _code2,
        _doc,
        cost="expensive",
        aliases=_aliases,
        least=float32,
        gradient=_logaddexp_gradient,
    )
