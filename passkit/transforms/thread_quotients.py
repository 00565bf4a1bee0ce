"""Quotients of threads: by prepared divisors, or all elements of a vector access together.

Elements that are divided together share one branch for those that need a division.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import partial

from attrs import evolve

from passkit.ast import Binary, Const, Expr, Load, Select, Var
from passkit.ast.stage import Let, Loop, Prefetch, Statement, Store
from passkit.ast.tidy import map_statement, replace_children
from passkit.ast.walk import children, variables, walk
from passkit.ir.loop import DivideVector, PrepareDivisor
from passkit.ir.reciprocal import has_divisor, is_quotient
from passkit.ir.threads import DeclareArray, ElementFor, ThreadStmt, element_of
from passkit.ir.vector import Prepared

MAX_ARRAYS = 4
"""Quotients that get arrays; each takes registers."""


def prepared_divisors(
    statements: Sequence[Statement], varying: Container[Var], begin: int
) -> tuple[list[PrepareDivisor], list[Statement]]:
    """Return divisors that all iterations share, and the statements that divide by them.

    Their names are numbered from ``begin`` on. ``varying`` are the variables that differ from
    iteration to iteration.
    """
    names: dict[Expr, str] = {}
    for s in statements:
        for x in () if isinstance(s, Prefetch) else walk(s.value):
            if not isinstance(x, Binary) or not is_quotient(x) or not isinstance(x.b, Var):
                continue
            if x.b not in varying and x.b not in names:
                names[x.b] = f"by{begin + len(names)}"

    def change(x: Expr) -> Expr:
        inner = replace_children(x, change)
        if isinstance(inner, Binary) and is_quotient(inner) and inner.b in names:
            return evolve(inner, b=Prepared(names[inner.b], False, inner.b.dtype))
        return inner

    divisors = [PrepareDivisor(name, x) for x, name in names.items() if isinstance(x, Var)]
    return divisors, [map_statement(s, change) for s in statements] if names else [*statements]


def divided_together(
    loop: Loop, statements: Sequence[Statement], is_ragged: bool
) -> tuple[list[ThreadStmt], Sequence[Statement]]:
    """Return quotients of all elements of an access, and the statements that read them.

    They are those that nothing but their operands decides on: not in an arm of a choice. Where the
    access ``is_ragged``, elements that do not exist are 0.
    """
    out: list[ThreadStmt] = []
    for number in range(MAX_ARRAYS):
        x = next(_candidates(statements), None)
        if x is None:
            break
        array = f"{loop.var.name}_quotient{number or ''}"
        out += _array_of(x, array, loop, statements, is_ragged)
        element = Load(array, element_of(loop), x.dtype)
        statements = [map_statement(s, partial(_replaced, old=x, new=element)) for s in statements]
    return out, statements


def _candidates(statements: Sequence[Statement]) -> Iterator[Binary]:
    """Yield quotients whose operands are known before the statements, the inner ones first."""
    locals_ = {s.var for s in statements if isinstance(s, Let)}
    for s in statements:
        for x in _unconditional(s.value):  # type: ignore[union-attr]
            if not isinstance(x, Binary) or not is_quotient(x):
                continue
            if not isinstance(x.b, Prepared) and not (isinstance(x.b, Const) and has_divisor(x.b)):
                continue
            if locals_.isdisjoint(variables(x.b)):
                yield x


def _unconditional(x: Expr) -> Iterator[Expr]:
    """Yield the parts of an expression that are computed whatever it chooses, operands first."""
    for child in (x.condition,) if isinstance(x, Select) else children(x):
        yield from _unconditional(child)
    yield x


def _array_of(
    x: Binary, name: str, loop: Loop, statements: Sequence[Statement], is_ragged: bool
) -> list[ThreadStmt]:
    """Return the statements that compute a quotient of all elements, into an array."""
    out: list[ThreadStmt] = []
    match x.a:
        case Load(buffer, index) if index == element_of(loop) and x.a.dtype is x.dtype:
            dividends = buffer
        case _:
            dividends = f"{name}_of"
            out += _dividends(x.a, dividends, loop, statements, is_ragged)
    assert isinstance(x.b, (Prepared, Const))
    divisor = x.b if isinstance(x.b, Const) else x.b.name
    return [*out, DeclareArray(name, x.dtype), DivideVector(name, dividends, divisor)]


def _dividends(
    x: Expr, name: str, loop: Loop, statements: Iterable[Statement], is_ragged: bool
) -> list[ThreadStmt]:
    """Return the statements that compute an expression for all elements, into an array."""
    needed, lets = set(variables(x)), list[Let]()
    for s in reversed(list(statements)):
        if isinstance(s, Let) and s.var in needed:
            lets.append(s)
            needed |= set(variables(s.value))
    body: list[ThreadStmt] = [*reversed(lets), Store(name, element_of(loop), x)]
    return [DeclareArray(name, x.dtype, is_ragged), element_loop(loop, body, is_ragged)]


def element_loop(loop: Loop, body: Iterable[ThreadStmt], is_ragged: bool) -> ElementFor:
    """Return the loop over the elements of an access of a loop.

    Where the access ``is_ragged``, the numbers of elements say which of them exist.
    """
    statements = tuple(body)
    return ElementFor(statements, is_ragged or any(_reads(s, loop.var) for s in statements))


def _reads(s: ThreadStmt, var: Var) -> bool:
    """Return whether a statement of an element reads a variable."""
    parts = (getattr(s, name, None) for name in ("value", "index"))
    return any(isinstance(x, Expr) and var in set(variables(x)) for x in parts)


def _replaced(x: Expr, old: Expr, new: Expr) -> Expr:
    """Return an expression with another one in the place of a part."""
    return new if x == old else replace_children(x, partial(_replaced, old=old, new=new))
