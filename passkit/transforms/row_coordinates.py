"""Coordinates of rows that a loop over rows counts up, without dividing the number of a row."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.ast import Binary, Var
from passkit.ast.stage import Let, Loop
from passkit.ir.final import RowDigit


def row_digits(rows: Loop, lets: Sequence[Let]) -> list[RowDigit]:
    """Return the coordinates, outermost first, into which the number of a row is taken apart."""
    digits: list[RowDigit] = []
    for let in lets:
        match let.value:
            case Binary("//", Var() as row, _) if row == rows.var and not digits:
                digits.append(RowDigit(let, None))
            case Binary("%", Binary("//", Var() as row, _), n) if row == rows.var and digits:
                digits.append(RowDigit(let, n))
            case Binary("%", Var() as row, n) if row == rows.var and digits:
                digits.append(RowDigit(let, n))
    return digits
