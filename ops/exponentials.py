"""Exponentials, logarithms and roots, and sums and products of them that do not overflow."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log

from passkit import ast
from passkit.ast import Expr
from passkit.graph.node import Entry, Node
from passkit.ops.elementwise_definition import elementwise
from passkit.ops.helpers import make
from passkit.values.dtype import float32

LOG_2 = log(2)


def log1p_exp(x: Expr) -> Expr:
    """Return log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|)).

    Nothing overflows, and small results keep their digits.
    """
    return ast.maximum(x, 0) + ast.log1p(ast.exp(-abs(x)))


def log1m_exp(x: Expr) -> Expr:
    """Return log(1 - exp(x)) of x < 0, in two forms, each exact where the other cancels.

    It is -inf at 0 and NaN beyond. Source: M. Mächler, Accurately Computing log(1 - exp(-|a|)), in
    the R package Rmpfr, 2012.
    """
    near_zero = ast.log(-ast.expm1(x))
    return ast.where(x > -LOG_2, near_zero, ast.log1p(-ast.exp(x)))


def _logaddexp(x: Expr, y: Expr) -> Expr:
    """Return log(exp(x) + exp(y)) as max(x, y) + log1p(exp(-|x - y|)).

    Equal infinities stay: their difference, NaN, is taken as 0.
    """
    return ast.maximum(x, y) + ast.log1p(ast.exp(_minus_distance(x, y)))


def _logaddexp2(x: Expr, y: Expr) -> Expr:
    """Return log2(2^x + 2^y) as max(x, y) + log2(1 + 2^-|x - y|); equal infinities stay."""
    return ast.maximum(x, y) + ast.log1p(ast.exp2(_minus_distance(x, y))) * (1 / LOG_2)


def _minus_distance(x: Expr, y: Expr) -> Expr:
    """Return -|x - y|, 0 for equal infinities."""
    return ast.where(ast.equal(x, y), 0, -abs(x - y))


def _log_diff_exp(x: Expr, y: Expr) -> Expr:
    """Return log(exp(x) - exp(y)): NaN where x < y, -inf where both are equal and below inf."""
    difference = x + log1m_exp(y - x)
    return ast.where(ast.equal(x, y) & (x < inf), -inf, difference)


def _times_logarithm(logarithm: Callable[[Expr], Expr]) -> Callable[[Expr, Expr], Expr]:
    """Return the code of x times a logarithm of y, but 0 where x is 0 and y is not NaN."""

    def code(x: Expr, y: Expr) -> Expr:
        """Return x * logarithm(y), and 0 where x is 0 and y is not NaN."""
        zero = ast.equal(x, 0) & ast.equal(y, y)
        return ast.where(zero, 0, x * logarithm(y))

    return code


def _lmultiply(x: Expr, y: Expr) -> Expr:
    """Return x log(y), and 0 where both are 0; unlike xlogy, 0 log(-1) is NaN."""
    return ast.where(ast.equal(x, 0) & ast.equal(y, 0), 0, x * ast.log(y))


def _exp10(x: Expr) -> Expr:
    """Return 10 to the power x."""
    return ast.pow(ast.const(10, x.dtype), x)


def _logaddexp_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradients of x and y: dy times the share of each in the sum.

    A share is a sigmoid of the difference of the operands, for logaddexp2 times log(2). ``node`` is
    the forward node; ``dy`` is the gradient of its output.
    """
    assert node.op is not None
    x, y = node.inputs
    difference = (x - y) * (LOG_2 if node.op.name == "logaddexp2" else 1.0)
    return [dy * make("sigmoid", difference), dy * make("sigmoid", -difference)]


elementwise(
    name="exp2",
    kinds="f",
    code=lambda x: ast.exp2(x),
    compute_dtype=float32,
    cost="expensive",
    doc="2 to the power x",
)
elementwise(
    name="exp10",
    kinds="f",
    code=_exp10,
    compute_dtype=float32,
    cost="expensive",
    doc="10 to the power x",
)
elementwise(
    name="log2",
    kinds="f",
    code=lambda x: ast.log2(x),
    compute_dtype=float32,
    cost="expensive",
    doc="the logarithm of x to base 2",
)
elementwise(
    name="log10",
    kinds="f",
    code=lambda x: ast.log10(x),
    compute_dtype=float32,
    cost="expensive",
    doc="the logarithm of x to base 10",
)
elementwise(
    name="cbrt",
    kinds="f",
    code=lambda x: ast.cbrt(x),
    compute_dtype=float32,
    cost="expensive",
    zero_preserving=True,
    doc="the cube root of x",
)
elementwise(
    name="log1m",
    kinds="f",
    code=lambda x: ast.log1p(-x),
    compute_dtype=float32,
    cost="expensive",
    zero_preserving=True,
    doc="log(1 - x), accurate near 0",
)
elementwise(
    name="log1m_exp",
    aliases="log1mexp",
    kinds="f",
    code=log1m_exp,
    compute_dtype=float32,
    cost="expensive",
    doc="log(1 - exp(x)); NaN where x > 0",
)

elementwise(
    name="log1p_exp",
    aliases="softplus",
    kinds="f",
    code=log1p_exp,
    compute_dtype=float32,
    cost="expensive",
    gradient=lambda node, dy: [dy * make("sigmoid", node.inputs[0])],
    doc="log(1 + exp(x))",
)

elementwise(
    name="log_diff_exp",
    kinds="f",
    code=_log_diff_exp,
    compute_dtype=float32,
    cost="expensive",
    doc="log(exp(x) - exp(y)); NaN where x < y",
)
elementwise(
    name="xlogy",
    kinds="f",
    code=_times_logarithm(ast.log),
    compute_dtype=float32,
    cost="expensive",
    doc="x * log(y), and 0 where x is 0",
)
elementwise(
    name="xlog1py",
    kinds="f",
    code=_times_logarithm(ast.log1p),
    compute_dtype=float32,
    cost="expensive",
    doc="x * log(1 + y), and 0 where x is 0",
)
elementwise(
    name="lmultiply",
    aliases="multiply_log",
    kinds="f",
    code=_lmultiply,
    compute_dtype=float32,
    cost="expensive",
    doc="x * log(y), and 0 where both are 0",
)

elementwise(
    name="inv_square",
    kinds="f",
    code=lambda x: 1.0 / (x * x),
    compute_dtype=float32,
    cost="expensive",
    doc="1 / x^2",
)

elementwise(
    name="logaddexp",
    aliases="log_sum_exp",
    kinds="f",
    code=_logaddexp,
    compute_dtype=float32,
    cost="expensive",
    gradient=_logaddexp_gradient,
    doc="log(exp(x) + exp(y))",
)
elementwise(
    name="logaddexp2",
    kinds="f",
    code=_logaddexp2,
    compute_dtype=float32,
    cost="expensive",
    gradient=_logaddexp_gradient,
    doc="log2(2^x + 2^y)",
)
