"""Loads of rows of a few elements: neighbouring elements of each point's row, as whole vectors.

Where points step over rows of a few elements, such as coordinates, a load with a stride takes its
elements one by one. The loads of one row read all of it together: as many whole vectors as the row
has elements, which shuffles take apart into one vector for each column.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from attrs import frozen

from passkit.ast import Expr, Load, Select
from passkit.ast.index import Sum, normal
from passkit.ast.stage import Let, Statement
from passkit.ast.tidy import expressions
from passkit.ast.walk import children, variables
from passkit.ir.strides import Stride
from passkit.ir.vector import MAX_COLUMNS, Column, LoadColumns

ELEMENT_NBYTES = (4, 8)
"""The sizes of elements that are loaded so: others take several steps to shuffle."""


@frozen
class RowLoads:
    """The loads of one row of each point.

    Attributes:
        name: the name of the loaded columns.
        count: the elements of a row.
        offsets: the loads, with their distances from the first element.
    """

    name: str
    count: int
    offsets: dict[Load, int]

    def columns(self) -> dict[Load, Column]:
        """Return the column that stands in the place of each load."""
        return {x: Column(self.name, k, x.dtype) for x, k in self.offsets.items()}

    def statement(self) -> LoadColumns:
        """Return the load of all columns."""
        first = min(self.offsets, key=lambda x: self.offsets[x])
        return LoadColumns(self.name, self.count, first.buffer, first.index)


def row_loads(
    statements: Sequence[Statement],
    stride: Callable[[Expr], Stride | None],
    excluded: Iterable[str],
) -> list[RowLoads]:
    """Return the groups of loads that read rows of a few elements.

    A group has the first and the last element of its row, so that no memory is touched that the
    loop does not read. Loads that happen in one case of a choice only, or whose index is computed
    in the loop, are in none.

    Args:
        statements: the statements of a vector loop.
        stride: returns how far an index moves from point to point.
        excluded: buffers whose loads are in no group, as the loop writes them.
    """
    without = set(excluded)
    inside = {s.var for s in statements if isinstance(s, Let)}
    rows: dict[tuple[str, int, Sum], dict[int, Load]] = {}
    for x in dict.fromkeys(certain_loads(statements)):
        step = stride(x.index)
        if x.buffer in without or not inside.isdisjoint(variables(x.index)):
            continue
        if not isinstance(step, int) or not 2 <= step <= MAX_COLUMNS:
            continue
        if x.dtype.nbytes not in ELEMENT_NBYTES:
            continue
        total = normal(x.index, {})
        if isinstance(total.constant, int):
            rows.setdefault((x.buffer, step, Sum(total.terms)), {})[total.constant] = x
    groups = [
        (buffer, step, group)
        for (buffer, step, _), loads in rows.items()
        for group in _whole_rows(step, loads)
    ]
    return [RowLoads(f"{b}_columns_{k}", step, g) for k, (b, step, g) in enumerate(groups)]


def certain_loads(statements: Iterable[Statement]) -> Iterator[Load]:
    """Yield the loads of statements that happen at every point: outside the values of choices."""
    todo = [x for s in statements for x in expressions(s)][::-1]
    while todo:
        x = todo.pop()
        if isinstance(x, Load):
            yield x
        elif isinstance(x, Select):
            todo.append(x.condition)
        else:
            todo += reversed(children(x))


def _whole_rows(count: int, loads: dict[int, Load]) -> Iterator[dict[Load, int]]:
    """Yield the rows of ``count`` elements of which the first and the last are loaded.

    ``loads`` are given by the constant that is added to their index.
    """
    offsets = sorted(loads)
    while offsets:
        row = [k for k in offsets if k < offsets[0] + count]
        if row[-1] == row[0] + count - 1:
            yield {loads[k]: k - row[0] for k in row}
        offsets = offsets[len(row) :]
