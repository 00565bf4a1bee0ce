"""Walks over kernel expressions: their operands and their variables."""

from __future__ import annotations

from collections.abc import Iterator

from passkit.ast import Binary, Call, Cast, Const, Expr, Load, Read, Select, Unary, Var


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


def loads(x: Expr) -> Iterator[Load]:
    """Everything that an expression reads, also for the indices of what it reads."""
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


def variables(x: Expr) -> Iterator[Var]:
    """The variables that occur in an expression."""
    if isinstance(x, Var):
        yield x
    for child in children(x):
        yield from variables(child)
