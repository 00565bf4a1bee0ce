"""Incomplete gamma and beta functions, and Hurwitz' zeta function.

Each is a sum of as many terms as its arguments ask for, in double: within 1e-13 of the true value
for a and b up to 1e4, where a beta function that is 1 less a small part is exact as a part of 1.
Gradients are by the last input: what is integrated, and -x zeta(x + 1, q). By the others, which no
operator has, asking for one is an error.
"""

from __future__ import annotations

from passkit import ast
from passkit.ops.pointwise import elementwise

# name, code, meaning, the other name
for _name, _code, _doc, _alias in (
    (
        *("igamma", lambda a, x: ast.igamma(a, x)),
        *("the lower incomplete gamma function over gamma(a); NaN but for a > 0, x > 0, or x = 0",),
        "gammainc",
    ),
    (
        *("igammac", lambda a, x: ast.igammac(a, x)),
        *("the upper incomplete gamma function over gamma(a); NaN but for a > 0, x >= 0",),
        "gammaincc",
    ),
    (
        *("betainc", lambda a, b, x: ast.betainc(a, b, x)),
        *("the incomplete beta function over beta(a, b); NaN but for a, b > 0, x from 0 to 1", ""),
    ),
    (
        *("zeta", lambda x, q: ast.zeta(x, q)),
        *("Hurwitz' zeta function: the sum of (q + k)^-x for k from 0; NaN for x < 1", ""),
    ),
):
    _op = elementwise(_name, "f", _code, _doc, cost="expensive", aliases=_alias)
    _op.set_attr("FListInputNames", lambda params, code=_code: list(code.__code__.co_varnames))
