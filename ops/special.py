"""Special functions: gamma and error functions, logits, the normal distribution.

Kernels compute the gamma functions and the inverse error functions in double, within 16 units in
the last place of a float64, except near a zero of lgamma or digamma: there the error is a few
units of the largest summand.
"""

from __future__ import annotations

from math import factorial, pi, sqrt
from typing import Any

from passkit import ast
from passkit.ast import Expr
from passkit.errors import GraphError
from passkit.graph.node import Entry, Node
from passkit.ops.composites import composite
from passkit.ops.exponentials import log1m_exp, log1p_exp
from passkit.ops.helpers import make
from passkit.ops.pointwise import elementwise
from passkit.values.dtype import float32, float64

ROOT_HALF = sqrt(0.5)
REST = -4.833646656726457e-17
"""The root of 1/2 less ROOT_HALF."""


def phi(x: Expr) -> Expr:
    """erfc(-x / sqrt(2)) / 2, corrected for the rounding of the quotient, which erfc enlarges."""
    minus = -x
    h = minus * ROOT_HALF
    high = ast.const(ROOT_HALF, x.dtype)
    low = ast.fma(minus, high, -h) + minus * (ROOT_HALF - float(high.value) + REST)
    tail = (h > 1) & (h < 40)
    return ast.erfc(h) * 0.5 * ast.where(tail, 1.0 - 2.0 * h * low, 1)


def _inv_phi(p: Expr) -> Expr:
    return ast.erfcinv(p + p) * -sqrt(2)


def _logit(p: Expr) -> Expr:
    """log(p / (1 - p)); about 1/2, where that cancels, by log1p."""
    middle = ast.log1p((p + p - 1.0) / (1.0 - p))
    return ast.where((p > 0.3) & (p < 0.65), middle, ast.log(p / (1.0 - p)))


def _log_beta(a: Expr, b: Expr) -> Expr:
    return ast.lgamma(a) + ast.lgamma(b) - ast.lgamma(a + b)


def _log_binomial(n: Expr, k: Expr) -> Expr:
    """log of n! / (k! (n - k)!)."""
    return ast.lgamma(n + 1.0) - ast.lgamma(k + 1.0) - ast.lgamma(n - k + 1.0)


def _log_inv_logit_diff(x: Expr, y: Expr) -> Expr:
    """x - log1p_exp(x) + log1m_exp(y - x) - log1p_exp(y), as in Stan."""
    return x - log1p_exp(x) + log1m_exp(y - x) - log1p_exp(y)


def _phi_approx(x: Expr) -> Expr:
    """Source: S. R. Bowling et al., A logistic approximation to the cumulative normal, 2009."""
    return ast.sigmoid(x * (x * x * 0.07056 + 1.5976))


def _phi_gradient(node: Any, dy: Any) -> list[Any]:
    x = node.inputs[0]
    return [dy * (make("exp", x * x * -0.5) * sqrt(0.5 / pi))]


def _logit_gradient(node: Any, dy: Any) -> list[Any]:
    p = node.inputs[0]
    return [dy / (p * (1.0 - p))]


def _share(sign: float, factor: float) -> Any:
    """The derivative of the logarithms of sigmoids."""
    return lambda node, dy: [dy * (make("sigmoid", node.inputs[0] * sign) * factor)]


GRADIENTS = {
    **{"Phi": _phi_gradient, "logit": _logit_gradient},
    **{"log_inv_logit": _share(-1.0, 1.0), "log1m_inv_logit": _share(1.0, -1.0)},
}
"""Where the derivative of the code is long, or not exact."""

# name, code, meaning, the other names
for _name, _code, _doc, _aliases in (
    ("erfc", lambda x: ast.erfc(x), "1 - erf(x), exact in the tail", ""),
    ("erfinv", lambda x: ast.erfinv(x), "the inverse of erf: from -1 to 1", ""),
    ("erfcinv", lambda x: ast.erfcinv(x), "the inverse of erfc: from 0 to 2", ""),
    ("tgamma", lambda x: ast.tgamma(x), "the gamma function; NaN at -1, -2, ...", "gamma"),
    ("Phi", phi, "the distribution function of the normal distribution", "ndtr normal_cdf"),
    ("Phi_approx", _phi_approx, "Phi to three digits, by a sigmoid", ""),
    ("inv_Phi", _inv_phi, "the inverse of Phi: from 0 to 1", "ndtri"),
    ("logit", _logit, "log(p / (1 - p))", ""),
    ("log_inv_logit", lambda x: -log1p_exp(-x), "log(sigmoid(x))", "log_sigmoid log_expit"),
    ("log1m_inv_logit", lambda x: -log1p_exp(x), "log(1 - sigmoid(x))", ""),
):
    elementwise(
        _name,
        "f",
        _code,
        _doc,
        cost="expensive",
        aliases=_aliases,
        least=float32,
        gradient=GRADIENTS.get(_name),
    )

for _name, _code2, _doc, _aliases in (
    ("lbeta", _log_beta, "the logarithm of the beta function", "betaln"),
    ("beta", lambda a, b: ast.exp(_log_beta(a, b)), "the beta function", ""),
    (
        *("binomial_coefficient_log", _log_binomial),
        *("log of n! / (k! (n - k)!), by gamma functions", "log_choose"),
    ),
    ("log_inv_logit_diff", _log_inv_logit_diff, "log(sigmoid(x) - sigmoid(y))", ""),
):
    elementwise(_name, "f", _code2, _doc, cost="expensive", aliases=_aliases, least=float64)


# The derivatives of lgamma are operators of their own, so that each has the next.


def _next(name: str) -> Any:
    return lambda node, dy: [dy * make(name, node.inputs[0])]


elementwise(
    "lgamma",
    "f",
    lambda x: ast.lgamma(x),
    "the logarithm of the magnitude of the gamma function",
    cost="expensive",
    aliases="gammaln",
    gradient=_next("digamma"),
)
elementwise(
    "digamma",
    "f",
    lambda x: ast.digamma(x),
    "the derivative of lgamma; -inf at 0, NaN at -1, -2, ...",
    cost="expensive",
    aliases="psi",
    gradient=_next("trigamma"),
)
elementwise(
    "trigamma",
    "f",
    lambda x: ast.trigamma(x),
    "the derivative of digamma; inf at 0, -1, -2, ...",
    cost="expensive",
    gradient=lambda node, dy: [dy * make("polygamma", node.inputs[0], n=2)],
)

BERNOULLI = (
    *(1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510),
    *(43867 / 798, -174611 / 330),
)
"""B2, B4 up to B20: enough from 10 + n on."""


def _polygamma(node: Node, x: Entry) -> Entry:
    """In double: steps of 1 up to 10 + n, then an asymptotic series; below 1/2 by reflection.

    Source: NIST Digital Library of Mathematical Functions, 5.15.
    """
    n = node.params["n"]
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= 20:
        raise GraphError(f"{node.where} needs a whole number from 0 to 20 as n, got {n!r}")
    if n < 2:
        return make(("digamma", "trigamma")[n], x)
    wide = make("cast", x, dtype="float64")
    low = wide < 0.5
    a = make("where", low, 1.0 - wide, wide)
    total = sum(_power(1.0 / (a + float(k)), n + 1) for k in range(1, 10 + n))
    total = _power(1.0 / a, n + 1) + total
    r = 1.0 / (a + float(10 + n))
    w = r * r
    tail: Any = 0.0
    for k in range(len(BERNOULLI), 0, -1):
        tail = (tail + BERNOULLI[k - 1] * factorial(2 * k + n - 1) / factorial(2 * k)) * w
    tail = tail + r * (factorial(n) / 2) + float(factorial(n - 1))
    above = total * float(factorial(n)) + _power(r, n) * tail
    out = make("where", low, _reflected(n, wide, above), above if n % 2 else -above)
    return make("cast", out, dtype=str(x.dtype))


def _reflected(n: int, x: Entry, above: Entry) -> Entry:
    """The n-th derivative of -pi cot(pi x), and what remains; a polynomial in the cotangent."""
    turn = x - make("rint", x)
    turn = make("where", make("equal", x, 0.0), x, turn)
    sine = make("sin", turn * pi)
    c = make("sin", (0.5 - make("abs", turn)) * pi) / sine
    factors = [0.0, 1.0]  # of 1, c, c^2 and so on
    for _ in range(n):
        slopes = [k * f for k, f in enumerate(factors)][1:]
        both = zip([*slopes, 0.0, 0.0], [0.0, 0.0, *slopes], strict=True)
        factors = [-pi * (a + b) for a, b in both]
    value: Any = 0.0
    for f in factors[::-1]:
        value = value * c + f
    return value * -pi - above  # type: ignore[no-any-return]


def _power(x: Entry, n: int) -> Entry:
    out = x
    for _ in range(n - 1):
        out = out * x
    return out


composite(
    "polygamma",
    1,
    _polygamma,
    "the n-th derivative of digamma",
    {"n": 0},
    FGradient=lambda node, dy: [dy * make("polygamma", node.inputs[0], n=node.params["n"] + 1)],
)
