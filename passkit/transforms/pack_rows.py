"""pack_rows: tiles of short rows, of which a CPU handles many at a time.

The partial results of sixteen rows are combined together, and the reciprocals of divisors are taken
for all rows at once, in front of the loop over rows. Where two rows together are whole vectors, as
rows of 8, 24 or 40 elements are, the loop takes two: they share one vector, of which each has a
half. What a row has for all its points differs from position to position then.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping

from attrs import frozen

from passkit.ast import Binary, Const, Expr, Load, Var, const
from passkit.ast.stage import Fold, Let, Loop, Prefetch, Running, Stage, Statement, Store
from passkit.ast.walk import variables
from passkit.ir.strides import Stride, stride_of
from passkit.schedule.tiling import row_packing
from passkit.transforms.vector_shape import computed_parts, vector_variables
from passkit.values import dtype as dt
from passkit.values.size import Extent

MIN_NBYTES = 4
"""The smallest elements of which halves of two vectors are joined."""


@frozen
class RowTile:
    """The rows of a tile, each with a place of its own in shared arrays.

    Attributes:
        loop: the loop over the rows.
        shared: the extents of the shared arrays by name.
        width: the positions of a vector.
    """

    loop: Loop
    shared: Mapping[str, Extent]
    width: int

    @property
    def count(self) -> Expr:
        """Return the number of rows."""
        match self.loop.stop:
            case Binary("+", start, Const() as count) if start == self.loop.start:
                return count
            case stop:
                return Binary("-", stop, self.loop.start, dt.int64)

    @property
    def row(self) -> Expr:
        """Return the number of the current row."""
        return Binary("-", self.loop.var, self.loop.start, dt.int64)

    def places(self, buffer: str, index: Expr) -> int | None:
        """Return the places of an array, rounded up to whole vectors.

        Returns: None for another index than that of the row's own place, or an unknown extent.
        """
        extent = self.shared.get(buffer)
        if index != self.row or not isinstance(extent, int):
            return None
        return -(-extent // self.width) * self.width

    def result_of(self, f: Fold, after: Iterable[Store]) -> Store | None:
        """Return the store of a reduction's result at the row's own place, if there is one."""
        if f.buffer is not None:
            return None
        stores = (s for s in after if s.value == f.var and self.places(s.buffer, s.index))
        return next(stores, None)

    def is_prepared(self, x: Expr) -> bool:
        """Return whether the reciprocals of ``x`` of all rows can be taken together."""
        if not isinstance(x, Load) or not x.dtype.is_float:
            return False
        return self.places(x.buffer, x.index) is not None

    def prepared_load(self, divisor: Expr, body: Iterable[Statement]) -> Load | None:
        """Return the load of a divisor that is prepared for all rows; None for another one."""
        values = (s.value for s in body if isinstance(s, Let) and s.var == divisor)
        value = next(values, None)
        return value if isinstance(value, Load) and self.is_prepared(value) else None


@frozen
class RowGroups:
    """The rows of a stage in groups, whose elements are whole vectors.

    Attributes:
        stage: the stage, whose loops are the one over rows and the vector loop.
        tile: the rows.
        values: numbers that each row has of its own.
        divisors: those of them whose reciprocals are taken for all rows at once.
        is_any_number: whether groups have as many rows as are whole vectors, without such numbers;
            else they have two.
    """

    stage: Stage
    tile: RowTile
    values: tuple[Let, ...]
    divisors: frozenset[Var]
    is_any_number: bool = False

    @property
    def length(self) -> int:
        """Return the elements of a row."""
        stop = self.stage.loops[1].stop
        assert isinstance(stop, Const)
        return int(stop.value)

    @property
    def is_even(self) -> bool:
        """Return whether there is certainly no single row left."""
        count = self.tile.count
        return isinstance(count, Const) and count.value % 2 == 0

    def stride(self, index: Expr) -> Stride | None:
        """Return how far an index moves from row to row; None if it moves unevenly."""
        moving = {self.tile.loop.var, *(s.var for s in self.values)}
        return stride_of(index, self.tile.loop.var, _contains(moving))

    def distance(self, index: Expr) -> Stride | None:
        """Return how far apart two rows begin, if the second does not follow the first."""
        stride = self.stride(index)
        return None if stride == self.length else stride

    def is_legal(self) -> bool:
        """Return whether all statements can be executed for a group of rows."""
        reductions = [s for s in self.stage.body if isinstance(s, Fold)]
        results = [self.tile.result_of(f, self.stage.after) for f in reductions]
        return (
            all(map(self._is_value, self.values))
            and all(map(self._is_legal, self.stage.body))
            and {s for s in results if s is not None} == set(self.stage.after)
        )

    def _is_value(self, s: Let) -> bool:
        """Return whether the numbers of neighbouring rows lie side by side."""
        if not isinstance(s.value, Load) or self.stride(s.value.index) != 1:
            return False
        dtype = s.var.dtype
        return (dtype.is_float or dtype.is_integer) and dtype.nbytes >= MIN_NBYTES

    def _is_legal(self, s: Statement) -> bool:
        """Return whether a statement can be executed for a group of rows."""
        match s:
            case Prefetch():
                return True
            case Running():
                return False
            case Fold(var, value):
                has_result = self.tile.result_of(s, self.stage.after) is not None
                return var.dtype.nbytes == 4 and has_result and self._is_even_value(value)
            case Store(_, index, value):
                return self._is_even_index(index) and self._is_even_value(value)
            case Let(_, value):
                return s in self.values or self._is_even_value(value)

    def _is_even_value(self, x: Expr) -> bool:
        """Return whether a value is made of even loads alone, and of no loop variable."""
        loop_variables = {loop.var for loop in self.stage.loops}
        return all(
            self._is_even_load(part) if isinstance(part, Load) else part not in loop_variables
            for part in computed_parts(x)
        )

    def _is_even_load(self, x: Load) -> bool:
        """Return whether a load can be one of a group of rows."""
        varies = _contains(vector_variables(self.stage.body, self.stage.loops[1].var))
        is_whole = (
            x.dtype.nbytes >= MIN_NBYTES
            or not varies(x.index)
            or self.stride(x.index) == self.length
        )
        return is_whole and self._is_even_index(x.index)

    def _is_even_index(self, index: Expr) -> bool:
        """Return whether an index increases by 1 from point to point, or is the same for all."""
        lane = self.stage.loops[1].var
        varies = _contains(vector_variables(self.stage.body, lane))
        if not varies(index):
            return self.stride(index) == 0
        return stride_of(index, lane, varies) == 1 and self.stride(index) is not None


def pairs_of_rows(stage: Stage, tile: RowTile) -> RowGroups | None:
    """Return the rows of a stage in groups of two; None where they cannot be taken so."""
    if len(stage.loops) != 2 or stage.loops[0] != tile.loop or tile.loop.limit is not None:
        return None
    row, lane = stage.loops
    length = int(lane.stop.value) if isinstance(lane.stop, Const) else 0
    if lane.down or lane.start != const(0, dt.int64) or row_packing(length) != 2:
        return None
    vectors = vector_variables(stage.body, lane.var)
    moving = {row.var}
    values: list[Let] = []
    for s in stage.body:
        if isinstance(s, Let) and s.var not in vectors and _contains(moving)(s.value):
            moving.add(s.var)
            values.append(s)
    divisors = frozenset(s.var for s in values if tile.is_prepared(s.value))
    groups = RowGroups(stage, tile, tuple(values), divisors)
    return groups if groups.is_legal() else None


def whole_vectors_of_rows(stage: Stage, tile: RowTile) -> RowGroups | None:
    """Return the rows of a stage in groups of any number; None where they cannot be taken so.

    The stage reduces nothing, and no row has a number for all its points.
    """
    row, lane = stage.loops
    length = int(lane.stop.value) if isinstance(lane.stop, Const) else 0
    if lane.down or lane.start != const(0, dt.int64) or row_packing(length) == 1:
        return None
    vectors = vector_variables(stage.body, lane.var)
    own = [s.value for s in stage.body if isinstance(s, Let) and s.var not in vectors]
    if any(row.var in variables(x) for x in [*own, *(s.value for s in stage.before)]):
        return None
    if stage.after or any(isinstance(s, Fold) for s in stage.body):
        return None
    groups = RowGroups(stage, tile, (), frozenset(), is_any_number=True)
    return groups if groups.is_legal() else None


def _contains(moving: Container[Var]) -> Callable[[Expr], bool]:
    """Return a function that returns whether an expression contains any of some variables."""
    return lambda x: any(v in moving for v in variables(x))
