"""Which kernel expressions round, and which ones commute with rounding."""

from __future__ import annotations

from passkit.ast import Binary, Call, Cast, Expr
from passkit.ast.walk import children, walk
from passkit.values.dtype import is_lossless

ROUNDS = frozenset("+-*/")
"""The operators whose result may have more bits than its operands."""
EXACT = frozenset(
    ["abs", "maximum", "minimum", "floor", "ceil", "trunc", "rint", "fmod", "copysign"]
)
"""The functions whose result has no more bits than their arguments."""
COMMUTES = frozenset(["abs", "maximum", "minimum"])
"""The functions for which it is the same to round the arguments or the result."""


def may_round(x: Expr) -> bool:
    """Whether evaluating ``x`` may round a float."""
    return any(_rounds(part) for part in walk(x) if part.dtype.is_float)


def commutes_with_rounding(x: Expr) -> bool:
    """Whether rounding the variables of ``x`` first gives the same as rounding its value.

    An expression that rounds itself does not, nor does one that decides by a float, such as a
    comparison.
    """
    for part in walk(x):
        if part.dtype.is_float:
            if _rounds(part) or (isinstance(part, Call) and part.name not in COMMUTES):
                return False
        elif any(operand.dtype.is_float for operand in children(part)):
            return False
    return True


def _rounds(part: Expr) -> bool:
    """Whether the outermost operation of a float expression may round."""
    match part:
        case Binary(op, _, _):
            return op in ROUNDS
        case Call(name, _):
            return name not in EXACT
        case Cast(inner):
            return not is_lossless(inner.dtype, part.dtype)
    return False
