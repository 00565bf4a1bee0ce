"""Specimens of special functions, exponentials and angles, against SciPy in double."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sp

from tests.ops.specimens import between, elementwise, normal, positive, unit

inner = between(-0.97, 0.97)

# angles
elementwise("tan", np.tan, ulps=4)
elementwise("asin", np.arcsin, inner, ulps=4)
elementwise("acos", np.arccos, inner, ulps=4)
elementwise("atan", np.arctan, ulps=4)
elementwise("sinh", np.sinh, ulps=4)
elementwise("cosh", np.cosh, ulps=4)
elementwise("asinh", np.arcsinh, ulps=4)
elementwise("acosh", np.arccosh, between(1, 50), ulps=4)
elementwise("atanh", np.arctanh, inner, ulps=4)
elementwise("atan2", np.arctan2, ulps=4)
elementwise("hypot", np.hypot, ulps=2)


def _sinc(x: Any) -> Any:
    """Return NumPy's sinc, but exactly 0 at whole numbers."""
    return np.where((x == np.rint(x)) & (x != 0), x * 0, np.sinc(x))


elementwise("sinc", _sinc, between(0.01, 0.9), ulps=8)

# exponentials and logarithms
elementwise("exp2", np.exp2, ulps=4)
elementwise("exp10", lambda x: np.power(10.0, x), ulps=4)
elementwise("log2", np.log2, positive, ulps=4)
elementwise("log10", np.log10, positive, ulps=4)
elementwise("cbrt", np.cbrt, ulps=2)
elementwise("log1m", lambda x: np.log1p(-x), inner, ulps=4)
elementwise("log1p_exp", lambda x: np.logaddexp(0, x), ulps=8)
elementwise(
    "log1m_exp",
    lambda x: np.where(x > -0.6, np.log(-np.expm1(x)), np.log1p(-np.exp(x))),
    lambda rng, shape: -positive(rng, shape),
    ulps=8,
)
elementwise("logaddexp", np.logaddexp, positive, positive, ulps=4)
elementwise("logaddexp2", np.logaddexp2, positive, positive, ulps=4)
elementwise(
    "log_diff_exp",
    lambda x, y: np.where(x == y, -np.inf, np.where(x < y, np.nan, x + np.log(-np.expm1(y - x)))),
    between(2, 3),
    between(-3, 1),
    ulps=20,
    special=False,
)
elementwise("xlogy", sp.xlogy, normal, positive, ulps=8)
elementwise("xlog1py", sp.xlog1py, normal, positive, ulps=8)


def _lmultiply(x: Any, y: Any) -> Any:
    return np.where((x == 0) & (y == 0), 0, x * np.log(y))


elementwise("lmultiply", _lmultiply, normal, positive, ulps=8)
elementwise("inv_square", lambda x: 1 / (x * x), ulps=2)

# error functions and the normal distribution
elementwise("erf", sp.erf, ulps=4)
elementwise("sigmoid", sp.expit, ulps=4)
elementwise("erfc", np.vectorize(math.erfc, otypes=[float]), ulps=4)
elementwise("erfinv", sp.erfinv, inner, ulps=16)
elementwise("erfcinv", sp.erfcinv, between(0.02, 1.98), ulps=16)
elementwise("Phi", sp.ndtr, ulps=64)  # SciPy's tail is that far off
elementwise("Phi", sp.ndtr, between(-1, 3), ulps=6)
elementwise("Phi_approx", lambda x: sp.expit(0.07056 * x**3 + 1.5976 * x), ulps=64)
elementwise("inv_Phi", sp.ndtri, unit, ulps=16)
elementwise("logit", sp.logit, unit, ulps=8)
elementwise("log_inv_logit", sp.log_expit, ulps=8)
elementwise("log1m_inv_logit", lambda x: sp.log_expit(-x), ulps=8)
elementwise(
    "log_inv_logit_diff",
    lambda x, y: np.log(sp.expit(x) - sp.expit(y)),
    between(1, 3),
    between(-3, 0.5),
    ulps=20,
    special=False,
)

# gamma functions
ABOVE = between(2.5, 12)


def _lgamma(x: Any) -> Any:
    """Return SciPy's gammaln, but inf for -inf as in C."""
    return np.where(x == -np.inf, np.inf, sp.gammaln(x))


def _trigamma(x: Any) -> Any:
    return np.where(x == -np.inf, np.nan, sp.polygamma(1, x))


elementwise("lgamma", _lgamma, ABOVE, ulps=16)
elementwise("tgamma", sp.gamma, ABOVE, ulps=16)
elementwise("digamma", sp.digamma, ABOVE, ulps=16)
elementwise("trigamma", _trigamma, ABOVE, ulps=16)
for _name, _reference in (
    ("lgamma", _lgamma),
    ("tgamma", sp.gamma),
    ("digamma", sp.digamma),
    ("trigamma", _trigamma),
):
    elementwise(_name, _reference, between(-0.4, -0.05), ulps=64, special=False)
for _n in (0, 1, 2, 5):
    elementwise(
        "polygamma",
        lambda x, n: sp.polygamma(n, x),
        ABOVE,
        params={"n": _n},
        ulps=64,
        special=False,
    )
elementwise(
    "polygamma",
    lambda x, n: sp.polygamma(n, x),
    between(-0.9, -0.6),
    params={"n": 2},
    ulps=64,
    special=False,
)
elementwise("lbeta", sp.betaln, between(2, 9), between(2, 9), ulps=400, special=False)
elementwise("beta", sp.beta, between(2, 9), between(2, 9), ulps=400, special=False)
elementwise(
    "binomial_coefficient_log",
    lambda n, k: sp.gammaln(n + 1) - sp.gammaln(k + 1) - sp.gammaln(n - k + 1),
    between(12, 30),
    between(1, 9),
    ulps=400,
    special=False,
)

# modified Bessel functions
for _name, _bessel in (
    ("bessel_i0", sp.i0),
    ("bessel_i1", sp.i1),
    ("bessel_i0e", sp.i0e),
    ("bessel_i1e", sp.i1e),
):
    elementwise(_name, _bessel, lambda rng, shape: rng.normal(size=shape) * 6, ulps=256)


# incomplete functions
def _igamma(a: Any, x: Any) -> Any:
    """Return SciPy's gammainc, but 0 for x = 0, else NaN for all a that are not positive."""
    return np.where(x == 0, 0, np.where(a > 0, sp.gammainc(a, x), np.nan))


def _igammac(a: Any, x: Any) -> Any:
    return np.where(a > 0, sp.gammaincc(a, x), np.nan)


def _zeta(x: Any, q: Any) -> Any:
    """Return SciPy's zeta, but NaN for NaN and at poles unless x is even; 0 for infinite x."""
    values = np.where((q <= 0) & (x % 2 != 0) & (x < np.inf) & (x > 1), np.nan, sp.zeta(x, q))
    values = np.where(np.isnan(q) | np.isnan(x), np.nan, values)
    return np.where((x > 1e30) & (q > 1), 0, values)


elementwise("igamma", _igamma, positive, positive, ulps=200)
elementwise("igammac", _igammac, positive, positive, ulps=400)
elementwise("igamma", _igamma, between(90, 200), between(80, 220), ulps=2000, special=False)
elementwise("igammac", _igammac, between(90, 200), between(80, 220), ulps=2000, special=False)
elementwise("igammac", _igammac, between(1e-6, 0.5), between(1e-6, 1), ulps=200, special=False)
elementwise("betainc", sp.betainc, positive, positive, unit, ulps=400, special=False)
elementwise("betainc", sp.betainc, between(50, 90), between(50, 90), unit, ulps=400, special=False)
elementwise("zeta", _zeta, between(1.1, 9), positive, ulps=20)
