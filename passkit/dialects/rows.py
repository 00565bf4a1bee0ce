"""Tiles of short rows in C, where the language has vectors: what is done for many rows at once.

Sixteen rows join what their lanes fold to together, and divisors are prepared with a lane for each
row. Both stand outside the loop over rows.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from passkit.ast import Binary, Const, Expr, Load
from passkit.ast.stage import Fold, Let, Loop, Statement, Store
from passkit.dialects.base import RowTemplates
from passkit.dialects.expressions import Scalars
from passkit.ir.vector import VECTOR_WIDTH
from passkit.values import dtype as dt


@frozen
class Rows:
    """The rows of a tile; each has a place for what it folds to in arrays of scratch."""

    loop: Loop
    scalars: Scalars
    templates: RowTemplates

    @property
    def _values(self) -> dict[str, str]:
        return {"row": self.scalars.expr(self._index), "rows": self.scalars.expr(self.count)}

    @property
    def count(self) -> Expr:
        """How many rows there are."""
        match self.loop.stop:
            case Binary("+", start, Const() as count) if start == self.loop.start:
                return count
            case stop:
                return Binary("-", stop, self.loop.start, dt.int64)

    @property
    def _index(self) -> Expr:
        return Binary("-", self.loop.var, self.loop.start, dt.int64)

    def room(self, buffer: str, index: Expr) -> int | None:
        """The places of an array that a row reads or writes at its own place, by blocks of rows."""
        extent = self.scalars.scratch.get(buffer)
        if index != self._index or not isinstance(extent, int):
            return None
        return -(-extent // VECTOR_WIDTH) * VECTOR_WIDTH

    def total_of(self, f: Fold, after: tuple[Store, ...]) -> Store | None:
        """The store of what ``f`` folds to at the row's own place."""
        found = (s for s in after if s.value == f.var and self.room(s.buffer, s.index))
        return None if f.buffer is not None else next(found, None)

    def fold_lines(self, f: Fold, fold: str, total: Store) -> tuple[str, str, str, str]:
        """In front of the rows, at a row's begin, at its end, behind the rows."""
        t = self.templates
        values = {**self._values, "name": f.var.name, "fold": fold, "to": total.buffer}
        values["most"] = str(self.room(total.buffer, total.index))
        texts = (x.format(**values) for x in (t.folds, t.begin, t.end, t.results))
        front, begin, end, results = texts
        return front, begin, end, results

    def prepares(self, x: Expr) -> bool:
        """Whether many rows prepare together to be divided by ``x``."""
        if not isinstance(x, Load) or not x.dtype.is_float:
            return False
        return self.room(x.buffer, x.index) is not None

    def divisor_lines(
        self, b: Expr, name: str, body: Iterable[Statement]
    ) -> tuple[str, str] | None:
        """In front of the rows and in a row, if ``b`` is what lies at the row's own place."""
        load = next((s.value for s in body if isinstance(s, Let) and s.var == b), None)
        if not isinstance(load, Load) or not self.prepares(load):
            return None
        most = self.room(load.buffer, load.index)
        kind = self.scalars.dialect.type_of(load.dtype)
        values = {**self._values, "type": kind, "name": name, "most": most, "buffer": load.buffer}
        t = self.templates
        return t.divisors.format(**values), t.divisor.format(**values)
