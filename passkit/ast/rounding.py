"""Analysis of kernel expressions: which ones round, and which commute with rounding."""

from __future__ import annotations

from passkit.ast import Binary, Call, Cast, Expr
from passkit.ast.walk import children, walk
from passkit.values.dtype import is_lossless

ROUNDS = frozenset("+-*/")
"""The operators whose exact result may need more bits than the operands have."""
EXACT = frozenset(
    ["abs", "maximum", "minimum", "floor", "ceil", "trunc", "rint", "fmod", "copysign"]
)
"""The functions whose result is exact in the dtype of the arguments."""
COMMUTES = frozenset(["abs", "maximum", "minimum"])
"""The functions for which rounding the arguments is the same as rounding the result."""


def may_round(x: Expr) -> bool:
    """Return whether evaluating ``x`` may round a real float, in any of its subexpressions.

    Arithmetic of complex numbers does not count.
    """
    return any(_rounds(part) for part in walk(x) if part.dtype.is_float)


def commutes_with_rounding(x: Expr) -> bool:
    """Return whether rounding the variables of ``x`` gives the same as rounding its value.

    That excludes expressions that round themselves, and those that compare floats or convert them
    to integers or bools.
    """
    for part in walk(x):
        if part.dtype.is_float:
            if _rounds(part) or (isinstance(part, Call) and part.name not in COMMUTES):
                return False
        elif any(operand.dtype.is_float for operand in children(part)):
            return False
    return True


def _rounds(part: Expr) -> bool:
    """Return whether the outermost operation of a float expression may round.

    Those of `ROUNDS` do, functions that are not in `EXACT`, and casts that are not lossless.
    """
    match part:
        case Binary(op, _, _):
            return op in ROUNDS
        case Call(name, _):
            return name not in EXACT
        case Cast(inner):
            return not is_lossless(inner.dtype, part.dtype)
    return False
