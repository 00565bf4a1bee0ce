"""Choices that are settled: selects whose comparisons are known to hold, or to fail."""

from __future__ import annotations

from collections.abc import Callable

from passkit.ast import Binary, Const, Expr, Select, Unary, Var, const
from passkit.ast.index import Extents, add, normal
from passkit.ast.tidy import replace_children
from passkit.values import dtype as dt

ORDERS = ("<", "<=", ">", ">=")
Outcome = Callable[[Expr], bool | None]


def settled(x: Expr, outcome: Outcome) -> Expr:
    """``x`` without the arms that are never chosen, where ``outcome`` tells what a test says."""
    known = outcome(x)
    if known is not None:
        return const(known, dt.bool_)
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
    """What comparisons of indices say wherever their variables are below their extents."""

    def outcome(x: Expr) -> bool | None:
        if not isinstance(x, Binary) or x.op not in ORDERS or x.a.dtype is not dt.int64:
            return None
        low, high = _range(x, extents)
        if x.op in (">", "<="):  # of whole numbers: a > b is a >= b + 1
            low, high = (None if n is None else n - 1 for n in (low, high))
        if low is not None and low >= 0:
            return x.op in (">", ">=")
        return x.op in ("<", "<=") if high is not None and high < 0 else None

    return outcome


def _range(x: Binary, extents: Extents) -> tuple[int | None, int | None]:
    """The least and the greatest difference of the sides of a comparison, as far as known."""
    difference = add(normal(x.a, extents), normal(x.b, extents), -1)
    if not isinstance(difference.constant, int):
        return None, None
    low: int | None = difference.constant
    high: int | None = difference.constant
    for atom, c in difference.terms:
        top = extents.get(atom.name) if isinstance(atom, Var) else None
        if top is None or not isinstance(c, int):
            return None, None
        if c < 0:
            low = low + c * (top - 1) if low is not None and isinstance(top, int) else None
        else:
            high = high + c * (top - 1) if high is not None and isinstance(top, int) else None
    return low, high
