"""Special functions: error and gamma functions, logits, the normal distribution, zeta.

Kernels compute the gamma functions and the inverse error functions in float64, within 16 units in
the last place, except near a zero of lgamma or digamma: there the error is a few units of the
largest summand. The incomplete gamma and beta functions and zeta are sums of as many terms as their
inputs need, in float64: within 1e-13 for a and b up to 1e4. Where a beta function is 1 less a small
part, the error is relative to 1. Their gradients are with respect to the last input only; to ask
for another one is an error.
"""

from __future__ import annotations

from math import factorial, pi, sqrt
from typing import Any

from passkit import ast
from passkit.ast import Expr
from passkit.errors import GraphError
from passkit.graph.node import Entry, Node
from passkit.ops.composites import composite
from passkit.ops.elementwise_definition import elementwise
from passkit.ops.exponentials import log1m_exp, log1p_exp
from passkit.ops.helpers import make
from passkit.ops.layouts import as_dtype
from passkit.values.dtype import float32, float64

SQRT_HALF = sqrt(0.5)
SQRT_HALF_ERROR = -4.833646656726457e-17
"""The square root of 1/2 less SQRT_HALF."""


# Expressions of one element.


def _normal_cdf(x: Expr) -> Expr:
    """Return erfc(-x / sqrt(2)) / 2, the distribution function of the normal distribution.

    In the tail, erfc enlarges the rounding error of its argument, which is corrected to first
    order.
    """
    minus = -x
    h = minus * SQRT_HALF
    high = ast.const(SQRT_HALF, x.dtype)
    low = ast.fma(minus, high, -h) + minus * (SQRT_HALF - float(high.value) + SQRT_HALF_ERROR)
    tail = (h > 1) & (h < 40)
    return ast.erfc(h) * 0.5 * ast.where(tail, 1.0 - 2.0 * h * low, 1)


def _normal_cdf_approximation(x: Expr) -> Expr:
    """Return the normal distribution function by a sigmoid.

    Source: S. R. Bowling et al., A logistic approximation to the cumulative normal, 2009.
    """
    return ast.sigmoid(x * (x * x * 0.07056 + 1.5976))


def _normal_quantile(p: Expr) -> Expr:
    """Return the inverse of the normal distribution function: -inf at 0, inf at 1, NaN beyond."""
    return ast.erfcinv(p + p) * -sqrt(2)


def _logit(p: Expr) -> Expr:
    """Return log(p / (1 - p)); near 1/2, where that cancels, by log1p.

    It is -inf at 0, inf at 1 and NaN beyond.
    """
    near_half = ast.log1p((p + p - 1.0) / (1.0 - p))
    return ast.where((p > 0.3) & (p < 0.65), near_half, ast.log(p / (1.0 - p)))


def _log_inv_logit_diff(x: Expr, y: Expr) -> Expr:
    """Return log(sigmoid(x) - sigmoid(y)), as in Stan; NaN where x < y, -inf where x = y."""
    return x - log1p_exp(x) + log1m_exp(y - x) - log1p_exp(y)


def _log_beta(a: Expr, b: Expr) -> Expr:
    """Return the logarithm of the beta function of a and b."""
    return ast.lgamma(a) + ast.lgamma(b) - ast.lgamma(a + b)


def _log_binomial(n: Expr, k: Expr) -> Expr:
    """Return the logarithm of n! / (k! (n - k)!)."""
    return ast.lgamma(n + 1.0) - ast.lgamma(k + 1.0) - ast.lgamma(n - k + 1.0)


# Gradients, where the derivative of the expression is long or inexact.


def _normal_cdf_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of x: dy times the density of the normal distribution.

    ``node`` is the forward node; ``dy`` is the gradient of its output.
    """
    x = node.inputs[0]
    return [dy * (make("exp", x * x * -0.5) * sqrt(0.5 / pi))]


def _logit_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradient of p: dy / (p (1 - p)).

    ``node`` is the forward node; ``dy`` is the gradient of its output.
    """
    p = node.inputs[0]
    return [dy / (p * (1.0 - p))]


# The operators.

elementwise(
    name="erfc",
    kinds="f",
    code=lambda x: ast.erfc(x),
    compute_dtype=float32,
    cost="expensive",
    doc="1 - erf(x), accurate for large x",
)
elementwise(
    name="erfinv",
    kinds="f",
    code=lambda x: ast.erfinv(x),
    compute_dtype=float32,
    cost="expensive",
    doc="the inverse of erf, for x from -1 to 1",
)
elementwise(
    name="erfcinv",
    kinds="f",
    code=lambda x: ast.erfcinv(x),
    compute_dtype=float32,
    cost="expensive",
    doc="the inverse of erfc, for x from 0 to 2",
)
elementwise(
    name="tgamma",
    aliases="gamma",
    kinds="f",
    code=lambda x: ast.tgamma(x),
    compute_dtype=float32,
    cost="expensive",
    doc="the gamma function; NaN at -1, -2, ...",
)
elementwise(
    name="Phi",
    aliases="ndtr normal_cdf",
    kinds="f",
    code=_normal_cdf,
    compute_dtype=float32,
    cost="expensive",
    gradient=_normal_cdf_gradient,
    doc="the distribution function of the normal distribution at x",
)
elementwise(
    name="Phi_approx",
    kinds="f",
    code=_normal_cdf_approximation,
    compute_dtype=float32,
    cost="expensive",
    doc="Phi to three digits, computed by a sigmoid",
)
elementwise(
    name="inv_Phi",
    aliases="ndtri",
    kinds="f",
    code=_normal_quantile,
    compute_dtype=float32,
    cost="expensive",
    doc="the inverse of Phi, for p from 0 to 1",
)
elementwise(
    name="logit",
    kinds="f",
    code=_logit,
    compute_dtype=float32,
    cost="expensive",
    gradient=_logit_gradient,
    doc="log(p / (1 - p))",
)
elementwise(
    name="log_inv_logit",
    aliases="log_sigmoid log_expit",
    kinds="f",
    code=lambda x: -log1p_exp(-x),
    compute_dtype=float32,
    cost="expensive",
    gradient=lambda node, dy: [dy * (make("sigmoid", node.inputs[0] * -1.0) * 1.0)],
    doc="log(sigmoid(x))",
)
elementwise(
    name="log1m_inv_logit",
    kinds="f",
    code=lambda x: -log1p_exp(x),
    compute_dtype=float32,
    cost="expensive",
    gradient=lambda node, dy: [dy * (make("sigmoid", node.inputs[0] * 1.0) * -1.0)],
    doc="log(1 - sigmoid(x))",
)

elementwise(
    name="lbeta",
    aliases="betaln",
    kinds="f",
    code=_log_beta,
    compute_dtype=float64,
    cost="expensive",
    doc="the logarithm of the beta function",
)
elementwise(
    name="beta",
    kinds="f",
    code=lambda a, b: ast.exp(_log_beta(a, b)),
    compute_dtype=float64,
    cost="expensive",
    doc="the beta function",
)
elementwise(
    name="binomial_coefficient_log",
    aliases="log_choose",
    kinds="f",
    code=_log_binomial,
    compute_dtype=float64,
    cost="expensive",
    doc="log of n! / (k! (n - k)!), by gamma functions",
)
elementwise(
    name="log_inv_logit_diff",
    kinds="f",
    code=_log_inv_logit_diff,
    compute_dtype=float64,
    cost="expensive",
    doc="log(sigmoid(x) - sigmoid(y))",
)


# The gamma function's logarithm and its derivatives, each of which is an operator.

elementwise(
    name="lgamma",
    aliases="gammaln",
    kinds="f",
    code=lambda x: ast.lgamma(x),
    cost="expensive",
    gradient=lambda node, dy: [dy * make("digamma", node.inputs[0])],
    doc="the logarithm of the magnitude of the gamma function",
)
elementwise(
    name="digamma",
    aliases="psi",
    kinds="f",
    code=lambda x: ast.digamma(x),
    cost="expensive",
    gradient=lambda node, dy: [dy * make("trigamma", node.inputs[0])],
    doc="the derivative of lgamma; -inf at 0, NaN at -1, -2, ...",
)
elementwise(
    name="trigamma",
    kinds="f",
    code=lambda x: ast.trigamma(x),
    cost="expensive",
    gradient=lambda node, dy: [dy * make("polygamma", node.inputs[0], n=2)],
    doc="the derivative of digamma; inf at 0, -1, -2, ...",
)

BERNOULLI = (
    1 / 6,
    -1 / 30,
    1 / 42,
    -1 / 30,
    5 / 66,
    -691 / 2730,
    7 / 6,
    -3617 / 510,
    43867 / 798,
    -174611 / 330,
)
"""The Bernoulli numbers B2, B4 up to B20: enough for the asymptotic series from 10 + n on."""


def _derivative_order(node: Node) -> int:
    """Return the parameter ``n`` of ``node``, an int from 0 to 20.

    Raises: GraphError if it is anything else; a bool is no int.
    """
    n = node.params["n"]
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= 20:
        raise GraphError(f"{node.where} needs a whole number from 0 to 20 as n, got {n!r}")
    return n


def _polygamma(node: Node, x: Entry) -> Entry:
    """Expand the n-th derivative of digamma, in float64, cast to the dtype of ``x``.

    An unknown dtype gives float64. For n of 0 and 1 these are the operators digamma and trigamma.
    Recurrence raises x in steps of 1 to 10 + n, where an asymptotic series is used; x below 1/2 is
    reflected. Source: NIST Digital Library of Mathematical Functions, 5.15.

    Raises:
        GraphError: If the parameter ``n`` of ``node`` is no int from 0 to 20; a bool is none.
    """
    n = _derivative_order(node)
    if n < 2:
        return make(("digamma", "trigamma")[n], x)
    wide = make("cast", x, dtype="float64")
    low = wide < 0.5
    a = make("where", low, 1.0 - wide, wide)
    steps = sum(_power(1.0 / (a + float(k)), n + 1) for k in range(1, 10 + n))
    steps = _power(1.0 / a, n + 1) + steps
    r = 1.0 / (a + float(10 + n))
    w = r * r
    series: Any = 0.0
    for k in range(len(BERNOULLI), 0, -1):
        series = (series + BERNOULLI[k - 1] * factorial(2 * k + n - 1) / factorial(2 * k)) * w
    series = series + r * (factorial(n) / 2) + float(factorial(n - 1))
    magnitude = steps * float(factorial(n)) + _power(r, n) * series
    signed = magnitude if n % 2 else -magnitude
    out = make("where", low, _reflect_polygamma(n, wide, magnitude), signed)
    return as_dtype(out, x)


def _reflect_polygamma(n: int, x: Entry, magnitude: Entry) -> Entry:
    """Return the ``n``-th derivative of digamma at x < 1/2 by the reflection formula.

    It is the n-th derivative of -pi cot(pi x), a polynomial in the cotangent, less ``magnitude``,
    the magnitude of polygamma at 1 - x.
    """
    offset = x - make("rint", x)
    offset = make("where", make("equal", x, 0.0), x, offset)
    sine = make("sin", offset * pi)
    cotangent = make("sin", (0.5 - make("abs", offset)) * pi) / sine
    coefficients = [0.0, 1.0]  # of 1, cotangent, cotangent^2 and so on
    for _ in range(n):
        slopes = [k * c for k, c in enumerate(coefficients)][1:]
        pairs = zip([*slopes, 0.0, 0.0], [0.0, 0.0, *slopes], strict=True)
        coefficients = [-pi * (a + b) for a, b in pairs]
    value: Any = 0.0
    for c in coefficients[::-1]:
        value = value * cotangent + c
    return value * -pi - magnitude  # type: ignore[no-any-return]


def _power(x: Entry, n: int) -> Entry:
    """Return x to the power n >= 1 by multiplication; for 1 it is x itself."""
    out = x
    for _ in range(n - 1):
        out = out * x
    return out


composite(
    name="polygamma",
    inputs=1,
    expand=_polygamma,
    params={"n": 0},
    FGradient=lambda node, dy: [
        dy * make("polygamma", node.inputs[0], n=_derivative_order(node) + 1)
    ],
    doc="the n-th derivative of digamma",
)


# Incomplete gamma and beta functions, and Hurwitz' zeta function.

elementwise(
    name="igamma",
    aliases="gammainc",
    input_names=("a", "x"),
    kinds="f",
    code=lambda a, x: ast.igamma(a, x),
    cost="expensive",
    doc="the regularized lower incomplete gamma function; NaN unless a > 0 and x > 0, or x = 0",
)
elementwise(
    name="igammac",
    aliases="gammaincc",
    input_names=("a", "x"),
    kinds="f",
    code=lambda a, x: ast.igammac(a, x),
    cost="expensive",
    doc="the regularized upper incomplete gamma function; NaN unless a > 0 and x >= 0",
)
elementwise(
    name="betainc",
    input_names=("a", "b", "x"),
    kinds="f",
    code=lambda a, b, x: ast.betainc(a, b, x),
    cost="expensive",
    doc="the regularized incomplete beta function; NaN unless a, b > 0 and x is from 0 to 1",
)
elementwise(
    name="zeta",
    input_names=("x", "q"),
    kinds="f",
    code=lambda x, q: ast.zeta(x, q),
    cost="expensive",
    doc="Hurwitz' zeta function: the sum of (q + k)^-x for k from 0; NaN for x < 1",
)
