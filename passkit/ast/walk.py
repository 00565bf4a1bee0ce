"""Traversals of kernel expressions: operands, loads and variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from passkit.ast import Binary, Call, Cast, Const, Expr, Load, Read, Select, Unary, Var

_OPERANDS: dict[type, Callable[[Any], tuple[Expr, ...]]] = {
    Binary: attrgetter("a", "b"),
    Unary: lambda x: (x.x,),
    Cast: lambda x: (x.x,),
    Call: attrgetter("args"),
    Select: attrgetter("condition", "a", "b"),
    Load: lambda x: (x.index,),
    Read: attrgetter("index"),
}


def children(x: Expr) -> tuple[Expr, ...]:
    """Return the direct operands of an expression, an empty tuple for a leaf."""
    operands = _OPERANDS.get(type(x))
    return () if operands is None else operands(x)


def walk(x: Expr) -> Iterator[Expr]:
    """Yield an expression and all its subexpressions, in pre-order."""
    todo = [x]
    while todo:
        x = todo.pop()
        yield x
        operands = _OPERANDS.get(type(x))
        if operands is not None:
            todo += reversed(operands(x))


def loads(x: Expr) -> Iterator[Load]:
    """Yield the loads in an expression, also those in the indices of loads, in pre-order."""
    todo = [x]
    while todo:
        x = todo.pop()
        kind = type(x)
        if kind is Var or kind is Const:
            continue
        if isinstance(x, Binary):
            todo += (x.b, x.a)
        elif isinstance(x, Load):
            yield x
            todo.append(x.index)
        else:
            todo += reversed(children(x))


def has_loads(x: Expr) -> bool:
    """Return whether an expression contains a load."""
    return next(loads(x), None) is not None


def variables(x: Expr) -> Iterator[Var]:
    """Yield the variables in an expression, once per occurrence, in pre-order."""
    todo = [x]
    while todo:
        x = todo.pop()
        if type(x) is Var:
            yield x
            continue
        operands = _OPERANDS.get(type(x))
        if operands is not None:
            todo += reversed(operands(x))


def minimum_operands(x: Expr, definitions: Mapping[str, Expr]) -> Iterator[Expr]:
    """Yield the operands of a minimum ``select(a < b, a, b)``; of any other expression, itself.

    Operands that are minima are flattened. Variables are replaced by their ``definitions``.
    """
    while isinstance(x, Var) and x.name in definitions:
        x = definitions[x.name]
    match x:
        case Select(Binary("<", a, b), c, d) if (a, b) == (c, d):
            yield from minimum_operands(a, definitions)
            yield from minimum_operands(b, definitions)
        case _:
            yield x
