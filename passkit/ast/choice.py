"""Simplification of selections and conditions whose comparisons have a known result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard

from passkit.ast import Binary, Const, Expr, Select, Unary, const
from passkit.ast.index import Extents, add, count_of, expression, is_exact, normal
from passkit.ast.tidy import replace_children
from passkit.ast.walk import loads, variables
from passkit.values import dtype as dt

ORDERS = ("<", "<=", ">", ">=")
COMPARISONS = (*ORDERS, "==", "!=")
Outcome = Callable[[Expr], bool | None]


def settled(x: Expr, outcome: Outcome) -> Expr:
    """Return ``x`` without arms that are never selected, and without conditions that are certain.

    ``outcome`` is called with each subexpression, and returns its truth value if it is a comparison
    whose result is certain, else None.
    """
    result = outcome(x)
    if result is not None:
        return const(result, dt.bool_)
    x = replace_children(x, lambda child: settled(child, outcome))
    match x:
        case Select(Const() as c, a, b):
            return a if c.value else b
        case Binary("&", Const() as a, b) | Binary("&", b, Const() as a) if x.dtype is dt.bool_:
            return b if a.value else a
        case Binary("|", Const() as a, b) | Binary("|", b, Const() as a) if x.dtype is dt.bool_:
            return a if a.value else b
        case Unary("~", Const() as a) if x.dtype is dt.bool_:
            return const(not a.value, dt.bool_)
    return x


def by_extents(extents: Extents) -> Outcome:
    """Return an outcome function, as `settled` takes it, for comparisons of indices.

    ``extents`` are the exclusive upper bounds of loop variables, which begin at 0.
    """

    def outcome(x: Expr) -> bool | None:
        """Return the result of a comparison of int64 indices, None if it is not certain.

        None also for other expressions.
        """
        if not _compares(x) or not is_exact(x, extents):
            return None
        low, high = _range(x, extents)
        if x.op in ("==", "!="):
            if low == high == 0:
                return x.op == "=="
            apart = (low is not None and low > 0) or (high is not None and high < 0)
            return x.op == "!=" if apart else None
        if x.op in (">", "<="):  # of whole numbers: a > b is a >= b + 1
            low, high = (None if n is None else n - 1 for n in (low, high))
        if low is not None and low >= 0:
            return x.op in (">", ">=")
        return x.op in ("<", "<=") if high is not None and high < 0 else None

    return outcome


def shortened(x: Expr, extents: Extents) -> Expr:
    """Return ``x`` with both sides of index comparisons simplified.

    Comparisons of indices that load anything, have other variables or divide what may be negative
    stay as they are. ``extents`` are the exclusive upper bounds of loop variables, which begin at
    0, by name.
    """
    if _compares(x) and _counts(x, extents):
        a, b = (expression(normal(side, extents)) for side in (x.a, x.b))
        return Binary(x.op, a, b, x.dtype)
    return replace_children(x, lambda child: shortened(child, extents))


def _compares(x: Expr) -> TypeGuard[Binary]:
    """Return whether ``x`` is a comparison, by an operator of `COMPARISONS`, of int64 values."""
    return isinstance(x, Binary) and x.op in COMPARISONS and x.a.dtype is dt.int64


def _counts(x: Expr, extents: Extents) -> bool:
    """Return whether the algebra of indices applies to an expression.

    It does if all variables are in ``extents``, and it neither loads anything nor divides what may
    be negative.
    """
    only_loop_variables = all(v.name in extents for v in variables(x))
    return only_loop_variables and next(loads(x), None) is None and is_exact(x, extents)


def _range(x: Binary, extents: Extents) -> tuple[int | None, int | None]:
    """Return the least and the greatest difference ``x.a - x.b`` of a comparison's sides.

    ``extents`` are the exclusive upper bounds of loop variables, by name.

    Returns: None for a bound that is unknown.
    """
    difference = add(normal(x.a, extents), normal(x.b, extents), -1)
    if not isinstance(difference.constant, int):
        return None, None
    low: int | None = difference.constant
    high: int | None = difference.constant
    for atom, c in difference.terms:
        top = count_of(atom, extents)
        if top is None or not isinstance(c, int):
            return None, None
        if c < 0:
            low = low + c * (top - 1) if low is not None and isinstance(top, int) else None
        else:
            high = high + c * (top - 1) if high is not None and isinstance(top, int) else None
    return low, high
