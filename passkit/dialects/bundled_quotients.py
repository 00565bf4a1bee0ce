"""Quotients of all elements of a bundle together: one branch for those that need a division."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from passkit.ast import Binary, Expr, Load, Select, Var
from passkit.ast.stage import Let, Statement
from passkit.ast.tidy import map_statement, replace_children
from passkit.ast.walk import children, variables
from passkit.dialects.quotients import Proof, is_quotient
from passkit.values import dtype as dt

if TYPE_CHECKING:
    from passkit.dialects.bundles import Bundles

MOST_ARRAYS = 4
"""Quotients that get arrays; each takes registers."""


def quotients_before(bundles: Bundles) -> Sequence[Statement]:
    """Print quotients of whole bundles, and return the statements that read them from arrays.

    They are those that nothing but their operands decides on: not in an arm of a choice.
    """
    statements, scalars = list(bundles.statements), bundles.body.scalars
    if scalars.dialect.quotients is None:
        return statements
    for number in range(MOST_ARRAYS):
        x = next(_candidates(statements, bundles), None)
        if x is None:
            break
        array = _print_array(x, number, statements, bundles)
        element = Load(array, Var(f"{bundles.loop.var.name}_k", dt.int64), x.dtype)
        statements = [map_statement(s, partial(_replaced, old=x, new=element)) for s in statements]
    return statements


def _candidates(statements: Sequence[Statement], bundles: Bundles) -> Iterator[Binary]:
    """Yield quotients whose operands are known before the statements, the inner ones first."""
    scalars = bundles.body.scalars
    locals_ = {s.var for s in statements if isinstance(s, Let)}
    for s in statements:
        for x in _unconditional(s.value):  # type: ignore[union-attr]
            if not is_quotient(x) or not isinstance(x, Binary):
                continue
            proof = scalars.proofs.get(x, Proof())
            if proof.near_0 or proof.at_least_1 or scalars.divisor(x) is None:
                continue
            if not locals_.isdisjoint(variables(x.b)):
                continue
            yield x


def _unconditional(x: Expr) -> Iterator[Expr]:
    """Yield the parts of an expression that are computed whatever it chooses, operands first."""
    for child in (x.condition,) if isinstance(x, Select) else children(x):
        yield from _unconditional(child)
    yield x


def _print_array(x: Binary, number: int, statements: Sequence[Statement], bundles: Bundles) -> str:
    """Print a quotient of all elements, and return the array's name."""
    body, templates = bundles.body, bundles.body.dialect.quotients
    assert templates is not None
    name = f"{bundles.loop.var.name}_quotient{number or ''}"
    element = Var(f"{bundles.loop.var.name}_k", dt.int64)
    match x.a:
        case Load(buffer, index) if index == element and x.a.dtype is x.dtype:
            dividends = buffer
        case _:
            dividends = f"{name}_of"
            _print_dividends(x.a, dividends, statements, bundles)
    body.line(_array(name, x, bundles))
    divisor = body.scalars.divisor(x)
    body.line(templates.over_array.format(name=name, x=dividends, divisor=divisor))
    return name


def _array(name: str, x: Expr, bundles: Bundles) -> str:
    kind = bundles.body.dialect.type_of(x.dtype)
    return bundles.templates.array.format(type=kind, name=name, count=bundles.count)


def _print_dividends(x: Expr, name: str, statements: Sequence[Statement], bundles: Bundles) -> None:
    """Print the values of an expression for all elements of a bundle, and what they are made of."""
    body, text = bundles.body, _array(name, x, bundles)
    body.line(text.removesuffix(";") + " = {};" if bundles.ragged else text)
    bundles.open_elements()
    needed, lets = set(variables(x)), list[Let]()
    for s in reversed(statements):
        if isinstance(s, Let) and s.var in needed:
            lets.append(s)
            needed |= set(variables(s.value))
    for let in reversed(lets):
        body.let(let)
    body.line(f"{name}[{bundles.loop.var.name}_k] = {body.scalars.expr(x)};")
    bundles.close_elements()


def _replaced(x: Expr, old: Expr, new: Expr) -> Expr:
    """An expression with another one in the place of a part."""
    return new if x == old else replace_children(x, partial(_replaced, old=old, new=new))
