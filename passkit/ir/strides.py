"""Strides: how far an index moves with a loop, also where extents are arguments of the kernel."""

from __future__ import annotations

from collections.abc import Callable

from passkit.ast import Binary, Expr, Unary, Var, const
from passkit.ast.index import normal
from passkit.ast.walk import variables
from passkit.values import dtype as dt
from passkit.values.size import Extent

Stride = Extent | Expr


def stride_of(index: Expr, var: Var, varies: Callable[[Expr], bool]) -> Stride | None:
    """Return how far ``index`` moves when ``var`` grows by one; None if it moves unevenly.

    ``varies`` returns whether an expression changes with the loop, so that it can be no part of a
    stride. A stride that depends on arguments of the kernel is an expression.
    """
    total = normal(index, {})
    factors: list[Expr] = []
    for atom, c in total.terms:
        if atom != var and varies(atom):
            factor = _factor(atom, var, varies)
            if factor is None or not isinstance(c, int):
                return None
            factors.append(factor if c == 1 else const(c, dt.int64) * factor)
    coefficient = total.coefficient(var)
    if not factors:
        return coefficient
    if coefficient != 0:
        if not isinstance(coefficient, int):
            return None
        factors.append(const(coefficient, dt.int64))
    stride = factors[0]
    for factor in factors[1:]:
        stride = stride + factor
    return stride


def _factor(x: Expr, var: Var, varies: Callable[[Expr], bool]) -> Expr | None:
    """Return the factor of ``var`` in the product ``x``; None if ``x`` is no such product."""
    match x:
        case Var() if x == var:
            return const(1, dt.int64)
        case Unary("-", a):
            inner = _factor(a, var, varies)
            return None if inner is None else -inner
        case Binary("*", a, b):
            if varies(a) and varies(b):
                return None
            moving, fixed = (a, b) if varies(a) else (b, a)
            inner = _factor(moving, var, varies)
            if inner is None:
                return None
            return fixed if inner == const(1, dt.int64) else inner * fixed
        case Binary("+" | "-" as op, a, b):
            parts = [_factor(side, var, varies) for side in (a, b) if varies(side)]
            if len(parts) != 1 or parts[0] is None:
                return None
            return -parts[0] if op == "-" and not varies(a) else parts[0]
    return None


def moves_with(var: Var) -> Callable[[Expr], bool]:
    """Return a function that returns whether an expression contains ``var``."""
    return lambda x: var in set(variables(x))
