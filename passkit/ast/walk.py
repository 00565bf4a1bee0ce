"""Walks over kernel expressions: their operands and their variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    """The direct operands of an expression."""
    found = _OPERANDS.get(type(x))
    return () if found is None else found(x)


def walk(x: Expr) -> Iterator[Expr]:
    """An expression and everything inside it."""
    todo = [x]
    while todo:
        x = todo.pop()
        yield x
        found = _OPERANDS.get(type(x))
        if found is not None:
            todo += reversed(found(x))


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
    todo = [x]
    while todo:
        x = todo.pop()
        if type(x) is Var:
            yield x
            continue
        found = _OPERANDS.get(type(x))
        if found is not None:
            todo += reversed(found(x))
