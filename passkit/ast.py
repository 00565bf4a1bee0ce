"""What operators write kernels with: expressions, the functions every dialect has, and folds.

An operator's `FCodeGen` writes one element of its result with these. Indices are int64
expressions of the same kind; `passkit.index` simplifies them.
"""

from __future__ import annotations

from collections.abc import Callable

from passkit import dtype as dt
from passkit.expr import (
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Fixed,
    Load,
    Operand,
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
from passkit.folds import Contract, Reduce, left, right

# name: number of arguments. Every dialect has these, for floats; the last row also for integers.
_OF_ONE = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan"),
    *("sinh", "cosh", "tanh", "asin", "acos", "atan", "asinh", "acosh", "atanh"),
    *("erf", "erfc", "sigmoid", "sqrt", "rsqrt", "floor", "ceil", "trunc", "rint"),
)
FUNCTIONS = {
    **dict.fromkeys(_OF_ONE, 1),
    "pow": 2,
    "atan2": 2,
    "abs": 1,
    "maximum": 2,
    "minimum": 2,
}

WORDS = {"philox_low": 3, "philox_high": 3}
"""Functions of int64 that every dialect has: halves of a random block of (counter, stream, key)."""


def _function(name: str) -> Callable[..., Expr]:
    def build(*args: Operand) -> Expr:
        return call(name, *args)

    build.__name__ = name
    build.__doc__ = f"``{name}`` of {FUNCTIONS[name]} value(s) of one dtype."
    return build


exp, exp2, expm1, log, log2, log10, log1p, sin, cos, tan = map(_function, _OF_ONE[:10])
sinh, cosh, tanh, asin, acos, atan, asinh, acosh, atanh = map(_function, _OF_ONE[10:19])
erf, erfc, sigmoid, sqrt, rsqrt, floor, ceil, trunc, rint = map(_function, _OF_ONE[19:])
pow, atan2 = _function("pow"), _function("atan2")
abs, maximum, minimum = _function("abs"), _function("maximum"), _function("minimum")

__all__ = [
    "FUNCTIONS",
    "Binary",
    "Call",
    "Cast",
    "Const",
    "Contract",
    "Expr",
    "Fixed",
    "Load",
    "Operand",
    "Reduce",
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
    "binary",
    "call",
    "cast",
    "ceil",
    "compare",
    "const",
    "cos",
    "cosh",
    "dt",
    "equal",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "is_const",
    "left",
    "lift",
    "log",
    "log1p",
    "log2",
    "log10",
    "maximum",
    "minimum",
    "not_equal",
    "pow",
    "right",
    "rint",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "size_of",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "where",
]
