"""Rows counted like an odometer: coordinates that a loop over rows carries on, without dividing."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.ast import Binary, Expr, Var
from passkit.ast.stage import Let, Loop
from passkit.ast.tidy import replace_children
from passkit.dialects.body import Body

Digit = tuple[Let, Expr | None]
"""A coordinate, and how many values it has; None for the first, which goes on for ever."""


def digits_of(rows: Loop, lets: Sequence[Let]) -> list[Digit]:
    """The coordinates, outermost first, into which the number of a row is taken apart."""
    found: list[Digit] = []
    for let in lets:
        match let.value:
            case Binary("//", Var() as row, _) if row == rows.var and not found:
                found.append((let, None))
            case Binary("%", Binary("//", Var() as row, _), n) if row == rows.var and found:
                found.append((let, n))
            case Binary("%", Var() as row, n) if row == rows.var and found:
                found.append((let, n))
    return found


def print_start(rows: Loop, digits: Sequence[Digit], body: Body) -> None:
    """What the coordinates are in the first row, in front of the loop."""
    for let, _ in digits:
        kind, value = body.dialect.type_of(let.var.dtype), _at(let.value, rows.var, rows.start)
        values = {"type": kind, "name": let.var.name, "value": body.scalars.expr(value)}
        body.line(body.dialect.counter.format(**values))


def print_step(digits: Sequence[Digit], body: Body) -> None:
    """The last coordinate goes on by one; where it is over, the one before does."""
    opened = 0
    for let, n in reversed(digits):
        if n is None:
            body.line(f"++{let.var.name};")
            break
        body.open(f"if (++{let.var.name} == {body.scalars.expr(n)})")
        body.line(f"{let.var.name} = 0;")
        opened += 1
    for _ in range(opened):
        body.close()


def _at(x: Expr, var: Var, value: Expr) -> Expr:
    if isinstance(x, Var):
        return value if x == var else x
    return replace_children(x, lambda child: _at(child, var, value))
