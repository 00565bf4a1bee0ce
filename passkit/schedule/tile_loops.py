"""The loops of a single-nest kernel: over tiles, over the rows of a tile, and inside its stages."""

from __future__ import annotations

from passkit.analysis.domain import Axis, Domain
from passkit.analysis.size_arguments import argument
from passkit.analysis.transposed_accesses import BLOCK
from passkit.ast import Binary, Expr, Fixed, Var, size_of, where
from passkit.ast.index import Sum, add, expression
from passkit.ast.stage import Let, Level, Loop, Place
from passkit.schedule.schedule import Schedule
from passkit.schedule.tiling import Composition
from passkit.values import dtype as dt
from passkit.values.size import Extent, numel

TILE = Var("tile", dt.int64)
"""The number of the tile."""

ROW = Var("row", dt.int64)
"""The number of a row, if several axes count rows."""

POINT = Var("point", dt.int64)
"""The number of a point, in the loop that streams a tile of an output."""

LOW, HIGH = Var("low", dt.int64), Var("high", dt.int64)
"""The first index of a tile along its last tiled axis, and the end."""

FIRST, LAST = Var("first_row", dt.int64), Var("last_row", dt.int64)
"""The first index of a tile along the other tiled axis, and the end."""

FROM, UNTIL = Var("from", dt.int64), Var("until", dt.int64)
"""The first index of a chunk of a reduced axis, and the end."""

MIN_INNER_VECTOR_LOOP = 128
"""The width from which the vector loop of a BLOCK tile is inside the loop over the other axis."""

MIN_WIDE_LOOP = 64
"""The width from which a vector loop has several vectors in an iteration."""


class TileLoops:
    """The loops that a schedule of a single nest describes.

    Attributes:
        domain: the iteration domain.
        schedule: the schedule.
        vector_axis: the axis along which vectors lie.
        is_column: whether the composition is COLUMN.
        is_short: whether the composition is SHORT.
        unrolled_axis: an axis of few elements, which is a literal loop inside the vector loop; None
            if there is none.
        block_axis: the axis beside the vector axis of which a BLOCK tile has a chunk; None if there
            is none.
        row_value_axis: the axis along which row values are vectors; None if they are scalars.
    """

    def __init__(self, domain: Domain, schedule: Schedule) -> None:
        self.domain, self.schedule = domain, schedule
        is_narrow = schedule.composition is Composition.NARROW
        self.vector_axis = domain.axes[-2 if is_narrow else -1]
        self.is_column = schedule.composition is Composition.COLUMN
        self.is_short = schedule.composition is Composition.SHORT
        self.unrolled_axis = domain.axes[-1] if is_narrow else None
        self.block_axis = None
        if schedule.composition is Composition.BLOCK:
            axis = domain.axes[schedule.split.split_dim]
            if isinstance(axis.extent, int) and axis.extent <= BLOCK:
                self.unrolled_axis = axis
            else:
                self.block_axis = axis
        self.row_value_axis = None
        if self.is_column:
            self.row_value_axis = self.vector_axis
        elif self.is_short:
            self.row_value_axis = domain.kept[0]

    def tile_loops(self) -> tuple[Loop, Loop | None, list[Let], Extent]:
        """Return the loops outside the stages.

        Returns: the loop over tiles; the loop over the rows of a tile, or None; the indices that
        the inner one of these loops decodes; and the number of tiles.
        """
        chunk, width = self.schedule.split.chunk, self.schedule.width
        vector_extent = self.vector_axis.extent
        not_grid = (self.vector_axis, self.block_axis, self.unrolled_axis)
        grid = [a for a in self.domain.kept if a not in not_grid]
        count = numel(a.extent for a in grid)
        if self.is_short:
            tiles = _ceil(count, chunk)
            low, high = _range(TILE, chunk, count)
            lets = [low, high] if self._last_row == HIGH else [low]
            return loop_over_tiles(tiles), None, lets, tiles
        if self.block_axis is not None:
            return self._block_tiles(self.block_axis, grid)
        is_elementwise = not grid and not self.vector_axis.reduced
        if self.is_column or self.unrolled_axis is not None or is_elementwise:
            assert width is not None
            blocks = _ceil(vector_extent, width)
            tiles = count * blocks
            divisor = argument(blocks)
            block = Binary("%", TILE, divisor, dt.int64) if grid else TILE
            lets = [*_range(block, width, vector_extent), *decode_index(TILE // divisor, grid)]
            return loop_over_tiles(tiles), None, [*lets, *self._chunk_range()], tiles
        tiles = _ceil(count, chunk)
        var = grid[0].var if len(grid) == 1 else ROW
        start = TILE * argument(chunk)
        rows = Loop(var, start, start + argument(chunk), Level.WARP, argument(count))
        lets = [] if len(grid) == 1 else decode_index(ROW, grid)
        return loop_over_tiles(tiles), rows, [*lets, *self._chunk_range()], tiles

    def _block_tiles(
        self, axis: Axis, grid: list[Axis]
    ) -> tuple[Loop, Loop | None, list[Let], Extent]:
        """Return the result of `tile_loops` for a BLOCK tile, which has a chunk of ``axis``.

        Consecutive tiles are neighbours along the vector axis. ``grid`` are the axes of which a
        tile has one index.
        """
        chunk, width = self.schedule.split.chunk, self.schedule.width
        assert width is not None
        across, down = _ceil(self.vector_axis.extent, width), _ceil(axis.extent, chunk)
        rest = TILE // argument(across)
        block = rest % argument(down) if grid else rest
        lets = [
            *_range(TILE % argument(across), width, self.vector_axis.extent),
            *_range(block, chunk, axis.extent, FIRST, LAST),
            *decode_index(rest // argument(down), grid),
        ]
        tiles = numel(a.extent for a in grid) * across * down
        return loop_over_tiles(tiles), None, lets, tiles

    def _chunk_range(self) -> list[Let]:
        """Return the range of a chunk of the reduced axis; nothing if it has no chunks."""
        lets: list[Let] = []
        for axis in self.domain.reduced:
            if axis.chunk is not None:
                number, step = self.domain.axes[0].var, size_of(axis.chunk, Fixed.LITERAL)
                end, last = FROM + step, size_of(axis.extent)
                lets += [Let(FROM, number * step), Let(UNTIL, where(end < last, end, last))]
        return lets

    def _axis_loop(self, axis: Axis, level: Level, fixed: Fixed = Fixed.AUTO) -> Loop:
        """Return the loop over an axis, or over one chunk of it."""
        if axis.chunk is not None:
            return Loop(axis.var, FROM, UNTIL, level)
        return Loop(axis.var, size_of(0), size_of(axis.extent, fixed), level)

    def vector_loop(self) -> Loop:
        """Return the loop over the vector axis inside a stage."""
        if self.schedule.width is None:
            # A literal length lets later passes unroll a short row, or one in registers.
            in_registers = any(k.place is Place.LANES for k in self.schedule.staged)
            fixed = Fixed.LITERAL if self.is_short or in_registers else Fixed.AUTO
            return self._axis_loop(self.vector_axis, Level.CTA, fixed)
        width = self.schedule.width
        is_wide = isinstance(width, int) and width >= MIN_WIDE_LOOP
        return Loop(self.vector_axis.var, LOW, HIGH, Level.CTA, wide=is_wide)

    def serial_loops(self) -> list[Loop]:
        """Return the loops inside a stage besides the vector loop."""
        if self.block_axis is not None:
            return [Loop(self.block_axis.var, FIRST, LAST, Level.THREAD)]
        if self.unrolled_axis is not None:
            return [self._axis_loop(self.unrolled_axis, Level.THREAD, Fixed.LITERAL)]
        axes = [a for a in self.domain.reduced if a is not self.vector_axis]
        return [self._axis_loop(a, Level.THREAD) for a in axes]

    def stage_loops(self) -> tuple[Loop, ...]:
        """Return the loops of a stage, outermost first.

        The vector loop is innermost, except in narrow blocks: there the serial loop inside it
        loads the inputs of the other axis in memory order.
        """
        serial, vector, width = self.serial_loops(), self.vector_loop(), self.schedule.width
        if self.block_axis is not None and isinstance(width, int) and width < MIN_INNER_VECTOR_LOOP:
            return vector, *serial
        return *serial, vector

    def short_row_loops(self, level: Level) -> list[Loop]:
        """Return the loop over the rows of a SHORT tile; nothing for other compositions."""
        if not self.is_short or self.row_value_axis is None:
            return []
        return [Loop(self.row_value_axis.var, LOW, self._last_row, level)]

    @property
    def _last_row(self) -> Expr:
        """The end of the rows of a SHORT tile, a literal distance from `LOW` if all are full."""
        chunk, count = self.schedule.split.chunk, numel(a.extent for a in self.domain.kept)
        is_full = isinstance(chunk, int) and isinstance(count, int) and count % chunk == 0
        return LOW + size_of(chunk, Fixed.LITERAL) if is_full else HIGH

    def point_loop(self) -> Loop:
        """Return the loop over all points of a SHORT or NARROW tile."""
        last = self._last_row if self.is_short else HIGH
        return Loop(POINT, self._row_begin(LOW), self._row_begin(last), Level.CTA)

    def first_point(self) -> Expr:
        """Return the number of the first point of a SHORT or NARROW tile."""
        return self._row_begin(LOW)

    def _row_begin(self, row: Expr) -> Expr:
        """Return the number of the first point of a row."""
        if self.unrolled_axis is None:
            return row * size_of(self.vector_axis.extent)
        inner = (self.vector_axis.var, self.unrolled_axis.var)
        outer = [t for t in self.domain.point_index.terms if t[0] not in inner]
        return expression(add(Sum(tuple(outer)), Sum(((row, 1),)), self.unrolled_axis.extent))

    def row_offset(self) -> Expr:
        """Return the index of the current row value in the tile."""
        assert self.row_value_axis is not None
        return Binary("-", self.row_value_axis.var, LOW, dt.int64)


def tiles_of(schedule: Schedule) -> Extent:
    """Return the number of tiles of a schedule, summed over its phases."""
    if schedule.multi_nest is not None:
        return schedule.multi_nest.tiles
    if schedule.phase_outputs:
        return sum(map(tiles_of, schedule.parts), start=0)
    if schedule.parts:
        first_parts = (schedule.parts[numbers[0]] for numbers in schedule.shared_tiles)
        return sum(map(tiles_of, first_parts), start=0)
    return TileLoops(schedule.domain, schedule).tile_loops()[3]


def loop_over_tiles(tiles: Extent) -> Loop:
    """Return the loop over tiles."""
    return Loop(TILE, size_of(0), argument(tiles), Level.GRID)


def _range(
    block: Expr, width: Extent, extent: Extent, low: Var = LOW, high: Var = HIGH
) -> list[Let]:
    """Return the definitions of the first index of a block of an axis, and of its end.

    Args:
        block: the number of the block.
        width: the indices of a block; the last block may have fewer.
        extent: the extent of the axis.
        low: the variable of the first index.
        high: the variable of the end.
    """
    step = size_of(width, Fixed.LITERAL)
    end = low + step
    last = argument(extent)
    return [Let(low, block * step), Let(high, where(end < last, end, last))]


def decode_index(linear: Expr, axes: list[Axis]) -> list[Let]:
    """Return the definitions of the variables of ``axes`` by their linear index."""
    lets, stride = [], numel(a.extent for a in axes)
    for k, axis in enumerate(axes):
        stride = stride // axis.extent if axis.extent != 0 else 0
        value = linear if stride == 1 else Binary("//", linear, size_of(stride), dt.int64)
        if k:
            value = Binary("%", value, size_of(axis.extent), dt.int64)
        lets.append(Let(axis.var, value))
    return lets


def _ceil(a: Extent, b: Extent) -> Extent:
    """Return ``a / b``, rounded up."""
    return (a + (b - 1)) // b
