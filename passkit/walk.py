"""Walks over kernel expressions: their operands and their variables."""

from __future__ import annotations

from collections.abc import Iterator

from passkit.ast import Binary, Call, Cast, Expr, Load, Read, Select, Unary, Var


def children(x: Expr) -> tuple[Expr, ...]:
    """The direct operands of an expression."""
    match x:
        case Binary(_, a, b):
            return a, b
        case Unary(_, a) | Cast(a):
            return (a,)
        case Call(_, args):
            return args
        case Select(c, a, b):
            return c, a, b
        case Load(_, at):
            return (at,)
        case Read(_, index):
            return index
    return ()


def walk(x: Expr) -> Iterator[Expr]:
    """An expression and everything inside it."""
    yield x
    for child in children(x):
        yield from walk(child)


def variables(x: Expr) -> Iterator[Var]:
    """The variables that occur in an expression."""
    if isinstance(x, Var):
        yield x
    for child in children(x):
        yield from variables(child)
