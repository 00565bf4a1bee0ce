"""What operators write kernels with: expressions, the functions every dialect has, and folds.

An operator's `FCodeGen` writes one element of its result with these. Indices are int64
expressions of the same kind; `passkit.ast.index` simplifies them.
"""

from __future__ import annotations

from collections.abc import Callable

from passkit.ast.expr import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Fixed,
    Load,
    Operand,
    Read,
    Select,
    SizeOf,
    Unary,
    Var,
    binary,
    call,
    cast,
    compare,
    const,
    equal,
    is_const,
    lift,
    not_equal,
    size_of,
    where,
)
from passkit.ast.folds import Chunks, Contract, Reduce, Scan, is_sum, left, right
from passkit.values import dtype as dt

# name: number of arguments. Every dialect has these, for floats; the last three also for integers.
_OF_ONE = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan"),
    *("sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
    *("erf", "erfc", "sigmoid", "sqrt", "rsqrt", "floor", "ceil", "trunc", "rint"),
    *("cbrt", "lgamma", "tgamma", "digamma", "trigamma", "erfinv", "erfcinv"),
)
_OF_TWO = (
    *("pow", "atan2", "hypot", "fmod", "copysign", "nextafter", "ldexp"),
    *("igamma", "igammac", "zeta"),
)
FUNCTIONS = {
    **dict.fromkeys(_OF_ONE, 1),
    **dict.fromkeys(_OF_TWO, 2),
    "betainc": 3,
    "fma": 3,
    "abs": 1,
    "maximum": 2,
    "minimum": 2,
}
INTEGER_FUNCTIONS = {"left_shift": 2, "right_shift": 2, "gcd": 2, "whole_power": 2}
"""Functions of integers: shifts are total, a count below 0 or of the width moves all bits out."""

WORDS = {"philox_low": 3, "philox_high": 3}
"""Functions of int64 that every dialect has: halves of a random block of (counter, stream, key)."""

VARIANTS = {"exp_nonpositive": "exp"}
"""Functions for arguments of which lowering knows more, such as that none is above 0: they have the
same bits as those that they are variants of, which a dialect may spell instead."""


def _function(name: str) -> Callable[..., Expr]:
    def build(*args: Operand) -> Expr:
        return call(name, *args)

    build.__name__ = name
    count = FUNCTIONS.get(name) or INTEGER_FUNCTIONS[name]
    build.__doc__ = f"``{name}`` of {count} value(s) of one dtype."
    return build


exp, exp2, expm1, log, log2, log10, log1p, sin, cos, tan = map(_function, _OF_ONE[:10])
sinh, cosh, tanh, asin, acos, atan, asinh, acosh, atanh = map(_function, _OF_ONE[10:19])
erf, erfc, sigmoid, sqrt, rsqrt, floor, ceil, trunc, rint = map(_function, _OF_ONE[19:28])
cbrt, lgamma, tgamma, digamma, trigamma, erfinv, erfcinv = map(_function, _OF_ONE[28:])
pow, atan2, hypot, fmod, copysign, nextafter, ldexp = map(_function, _OF_TWO[:7])
igamma, igammac, zeta = map(_function, _OF_TWO[7:])
left_shift, right_shift, gcd, whole_power = map(_function, INTEGER_FUNCTIONS)
fma, betainc = _function("fma"), _function("betainc")
abs, maximum, minimum = _function("abs"), _function("maximum"), _function("minimum")

__all__ = [
    "FUNCTIONS",
    "INTEGER_FUNCTIONS",
    "VARIANTS",
    "Binary",
    "Call",
    "Cast",
    "Chunks",
    "Const",
    "Contract",
    "Expr",
    "Fixed",
    "Load",
    "Operand",
    "Read",
    "Reduce",
    "Scan",
    "Select",
    "SizeOf",
    "Unary",
    "Var",
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "betainc",
    "binary",
    "call",
    "cast",
    "cbrt",
    "ceil",
    "compare",
    "const",
    "copysign",
    "cos",
    "cosh",
    "digamma",
    "dt",
    "equal",
    "erf",
    "erfc",
    "erfcinv",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fma",
    "fmod",
    "gcd",
    "hypot",
    "igamma",
    "igammac",
    "is_const",
    "is_sum",
    "ldexp",
    "left",
    "left_shift",
    "lgamma",
    "lift",
    "log",
    "log1p",
    "log2",
    "log10",
    "maximum",
    "minimum",
    "nextafter",
    "not_equal",
    "pow",
    "right",
    "right_shift",
    "rint",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "size_of",
    "sqrt",
    "tan",
    "tanh",
    "tgamma",
    "trigamma",
    "trunc",
    "where",
    "whole_power",
    "zeta",
]
