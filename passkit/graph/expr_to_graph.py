"""Kernel expressions spelled out in operators: the graph that computes what an expression says.

A sign is the operator that implements it in Python (TOperator), a function the operator of its
name; so nothing here knows which operators there are. What is found out about an expression is a
recipe, from which many nodes can be made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import frozen

from passkit.ast import Binary, Call, Cast, Const, Expr, Select, Unary
from passkit.errors import CodeGenError, RegistryError
from passkit.graph.call import convert, find_operator
from passkit.graph.node import Entry, constant
from passkit.graph.op import get_op
from passkit.values.dtype import DType

TRUNCATING = ("//", "%")
"""Signs that mean something else in Python than in a kernel, where they round toward zero."""

Step = tuple[Callable[..., Entry], tuple[int, ...]]


@frozen
class Recipe:
    """Steps that each make an entry of those before it, and which of all are wanted.

    The first entries are given; a result of None is none.
    """

    steps: tuple[Step, ...]
    results: tuple[int | None, ...]

    def made(self, given: Sequence[Entry]) -> list[Entry | None]:
        """The results for the entries ``given``."""
        slots = list(given)
        for make, at in self.steps:
            slots.append(make(*[slots[k] for k in at]))
        return [None if k is None else slots[k] for k in self.results]


def expr_to_graph(wanted: Sequence[Expr | None], known: Mapping[Expr, int]) -> Recipe:
    """The recipe for some expressions, where ``known`` says which parts are given, and where.

    Raises: CodeGenError for a part that no operator means.
    """
    slots = dict(known)
    steps: list[Step] = []
    count = 1 + max(known.values(), default=-1)

    def slot(x: Expr) -> int:
        if x not in slots:
            make, parts = _meaning(x)
            at = tuple(slot(part) for part in parts)
            slots[x] = count + len(steps)
            steps.append((make, at))
        return slots[x]

    results = tuple(None if x is None else slot(x) for x in wanted)
    return Recipe(tuple(steps), results)


def _meaning(x: Expr) -> tuple[Callable[..., Entry], tuple[Expr, ...]]:
    """What makes the entry of an expression, and of which parts."""
    match x:
        case Const():
            return _literal(x.value, x.dtype), ()
        case Unary("-", a):
            return find_operator("neg"), (a,)
        case Unary("~", a):
            return find_operator("~"), (a,)
        case Binary(sign, a, b) if sign not in TRUNCATING:
            return find_operator(sign), (a, b)
        case Select(c, a, b):
            return find_operator("where"), (c, a, b)
        case Cast(a):
            return _cast(x.dtype), (a,)
        case Call(name, args):
            return _function(name), args
    what = f"'{x.op}'" if isinstance(x, Binary) else type(x).__name__
    raise CodeGenError(
        f"no operator means the kernel expression {what} of {x.dtype}; set FGradient on the "
        f"operator that uses it"
    )


def _literal(value: Any, dtype: DType) -> Callable[..., Entry]:
    return lambda: constant(value, dtype)


def _cast(dtype: DType) -> Callable[..., Entry]:
    return lambda entry: convert(entry, dtype)


def _function(name: str) -> Callable[..., Entry]:
    try:
        return get_op(name)
    except RegistryError:
        raise CodeGenError(
            f"no operator is called {name!r}, as the kernel function is; register one whose "
            f"FCodeGen is ast.{name}(x), or set FGradient on the operator that uses it"
        ) from None
