"""Interleaved loads in C: neighbouring elements of each lane's row, loaded as whole vectors.

Where lanes step over rows of a few elements, such as the coordinates of points, each strided load
takes its elements one by one. The loads of one row read all of it together: as many whole vectors
as the row has elements, which shuffles take apart into one vector for each column.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from passkit.ast import Load, Var
from passkit.ast.index import Sum, normal
from passkit.ast.stage import Let, Statement
from passkit.ast.tidy import expressions
from passkit.ast.walk import variables
from passkit.dialects.lanes import MASK, Lanes
from passkit.dialects.turned import certain_loads
from passkit.space.turning import FEW

BYTES = (4, 8)
"""The sizes of elements that are loaded so: others take several steps to shuffle."""


@frozen
class Columns:
    """Loads that belong to one row of each lane: ``loads`` by how far each is from the first."""

    name: str
    count: int
    loads: dict[Load, int]

    @property
    def first(self) -> Load:
        """The load of the first element."""
        return min(self.loads, key=lambda x: self.loads[x])

    def named(self, lanes: Lanes) -> dict[Load, Var]:
        """The variable that holds the column of each load."""
        template = lanes.vectors.column
        return {
            x: Var(template.format(name=self.name, k=k), x.dtype) for x, k in self.loads.items()
        }

    def line(self, lanes: Lanes) -> str:
        """The load of all columns."""
        at = lanes.scalars.address(self.first.buffer, self.first.index)
        return lanes.vectors.columns.format(name=self.name, count=self.count, at=at, mask=MASK)


def interleaved(
    statements: Sequence[Statement], lanes: Lanes, written: Iterable[str]
) -> list[Columns]:
    """The groups of loads in a lane loop's ``statements`` that read rows of a few elements.

    A group has the first and the last element of its row, so that no memory is touched that the
    loop does not read. Loads that happen in an arm of a select only, that read ``written`` buffers
    or whose index is computed in the loop are left as they are.
    """
    if not lanes.vectors.columns or lanes.fixed or lanes.pairs is not None:
        return []
    excluded = {*written, *lanes.scalars.registers}
    inside = {s.var for s in statements if isinstance(s, Let)}
    rows: dict[tuple[str, int, Sum], dict[int, Load]] = {}
    for x in dict.fromkeys(_loads(statements)):
        step = lanes.step(x.index)
        if x.buffer in excluded or not inside.isdisjoint(variables(x.index)):
            continue
        if not isinstance(step, int) or not 2 <= step <= FEW:
            continue
        if x.dtype.nbytes not in BYTES:
            continue
        total = normal(x.index, {})
        if isinstance(total.constant, int):
            rows.setdefault((x.buffer, step, Sum(total.terms)), {})[total.constant] = x
    groups = [
        (buffer, step, group)
        for (buffer, step, _), loads in rows.items()
        for group in _whole_rows(step, loads)
    ]
    return [Columns(f"{b}_columns_{k}", step, g) for k, (b, step, g) in enumerate(groups)]


def _loads(statements: Iterable[Statement]) -> Iterator[Load]:
    for s in statements:
        for value in expressions(s):
            yield from certain_loads(value)


def _whole_rows(count: int, loads: dict[int, Load]) -> Iterator[dict[Load, int]]:
    """The rows of ``count`` elements of which the first and the last are loaded.

    ``loads`` are given by the constant that is added to their index.
    """
    left = sorted(loads)
    while left:
        row = [k for k in left if k < left[0] + count]
        if row[-1] == row[0] + count - 1:
            yield {loads[k]: k - row[0] for k in row}
        left = left[len(row) :]
