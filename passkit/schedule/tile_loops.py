"""The loops of a kernel around and inside its stages: tiles, rows of a tile, lanes."""

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
ROW = Var("row", dt.int64)
POINT = Var("point", dt.int64)
LOW, HIGH = Var("low", dt.int64), Var("high", dt.int64)
FIRST, LAST = Var("first_row", dt.int64), Var("last_row", dt.int64)
FROM, UNTIL = Var("from", dt.int64), Var("until", dt.int64)
"""The ends of a chunk."""
LONG = 128
"""The lanes of a tile of blocks that stand inside the loop over the other axis."""
WIDE = 64
"""From how many lanes on a tile has room for packs of vectors."""


class TileLoops:
    """The loops that a schedule asks for.

    ``across`` is the axis along which row values have lanes of their own; None where they are
    scalars. ``blocked`` is the axis that blocks of lanes go along, ``few`` one of few elements,
    which every vector of lanes takes as a whole.
    """

    def __init__(self, domain: Domain, schedule: Schedule) -> None:
        self.domain, self.schedule = domain, schedule
        narrow = schedule.composition is Composition.NARROW
        self.lane = domain.axes[-2 if narrow else -1]
        self.column = schedule.composition is Composition.COLUMN
        self.short = schedule.composition is Composition.SHORT
        blocked = schedule.composition is Composition.BLOCK
        across = domain.axes[schedule.split.split_dim] if blocked else None
        few = isinstance(across.extent, int) and across.extent <= BLOCK if across else False
        self.few = domain.axes[-1] if narrow else across if few else None
        self.blocked = None if few else across
        self.across = self.lane if self.column else domain.kept[0] if self.short else None

    def tiles(self) -> tuple[Loop, Loop | None, list[Let], Extent]:
        """The loop over tiles, the one over a tile's rows, what both decode; how many tiles."""
        s, chunk, width = self.domain, self.schedule.split.chunk, self.schedule.width
        grid = [a for a in s.kept if a not in (self.lane, self.blocked, self.few)]
        count = numel(a.extent for a in grid)
        if self.short:
            tiles = _ceil(count, chunk)
            low, high = _range(TILE, chunk, count)
            lets = [low, high] if self._last_row == HIGH else [low]
            return over_tiles(tiles), None, lets, tiles
        if self.blocked is not None:
            return self._blocks(self.blocked, grid)
        if self.column or self.few is not None or (not grid and not self.lane.reduced):
            assert width is not None
            blocks = _ceil(self.lane.extent, width)
            tiles = count * blocks
            several = argument(blocks)
            block = Binary("%", TILE, several, dt.int64) if grid else TILE
            lets = [*_range(block, width, self.lane.extent), *decoded(TILE // several, grid)]
            return over_tiles(tiles), None, [*lets, *self._chunk()], tiles
        tiles = _ceil(count, chunk)
        var = grid[0].var if len(grid) == 1 else ROW
        start = TILE * argument(chunk)
        rows = Loop(var, start, start + argument(chunk), Level.WARP, argument(count))
        lets = [] if len(grid) == 1 else decoded(ROW, grid)
        return over_tiles(tiles), rows, [*lets, *self._chunk()], tiles

    def _chunk(self) -> list[Let]:
        """The steps that a chunk takes along its axis, if there are chunks."""
        lets: list[Let] = []
        for axis in self.domain.reduced:
            if axis.chunk is not None:
                number, step = self.domain.axes[0].var, size_of(axis.chunk, Fixed.LITERAL)
                end, last = FROM + step, size_of(axis.extent)
                lets += [Let(FROM, number * step), Let(UNTIL, where(end < last, end, last))]
        return lets

    def _folded(self, axis: Axis, level: Level, fixed: Fixed = Fixed.AUTO) -> Loop:
        """The loop over a whole axis, or over a chunk of it."""
        if axis.chunk is not None:
            return Loop(axis.var, FROM, UNTIL, level)
        return Loop(axis.var, size_of(0), size_of(axis.extent, fixed), level)

    def _blocks(self, axis: Axis, grid: list[Axis]) -> tuple[Loop, Loop | None, list[Let], Extent]:
        """Tiles of a part of the lanes and a part of another axis; those along the lanes first."""
        chunk, width = self.schedule.split.chunk, self.schedule.width
        assert width is not None
        across, down = _ceil(self.lane.extent, width), _ceil(axis.extent, chunk)
        rest = TILE // argument(across)
        block = rest % argument(down) if grid else rest
        lets = [
            *_range(TILE % argument(across), width, self.lane.extent),
            *_range(block, chunk, axis.extent, FIRST, LAST),
            *decoded(rest // argument(down), grid),
        ]
        tiles = numel(a.extent for a in grid) * across * down
        return over_tiles(tiles), None, lets, tiles

    def lanes(self) -> Loop:
        """The loop along the lanes."""
        if self.schedule.width is None:
            # So that a short row, or one that is kept in registers, is no loop.
            in_registers = any(k.place is Place.LANES for k in self.schedule.kept)
            fixed = Fixed.LITERAL if self.short or in_registers else Fixed.AUTO
            return self._folded(self.lane, Level.CTA, fixed)
        wide = isinstance(self.schedule.width, int) and self.schedule.width >= WIDE
        return Loop(self.lane.var, LOW, HIGH, Level.CTA, wide=wide)

    def serial(self) -> list[Loop]:
        """The loops inside a tile that are not the lanes'."""
        if self.blocked is not None:
            return [Loop(self.blocked.var, FIRST, LAST, Level.THREAD)]
        if self.few is not None:
            return [self._folded(self.few, Level.THREAD, Fixed.LITERAL)]
        axes = [a for a in self.domain.reduced if a is not self.lane]
        return [self._folded(a, Level.THREAD) for a in axes]

    def inner(self) -> tuple[Loop, ...]:
        """The loops of a pass over a tile, or over a row of it, outermost first.

        The lanes stand inside, but of blocks that go further along the other axis: its inputs are
        then read on from where the block before ended.
        """
        serial, lanes, width = self.serial(), self.lanes(), self.schedule.width
        if self.blocked is not None and isinstance(width, int) and width < LONG:
            return lanes, *serial
        return *serial, lanes

    def short_rows(self, level: Level) -> list[Loop]:
        """The rows of a tile of short rows."""
        if not self.short or self.across is None:
            return []
        return [Loop(self.across.var, LOW, self._last_row, level)]

    @property
    def _last_row(self) -> Expr:
        """The end of a tile of short rows; known to be as far off in every tile if it is."""
        chunk, count = self.schedule.split.chunk, numel(a.extent for a in self.domain.kept)
        whole = isinstance(chunk, int) and isinstance(count, int) and count % chunk == 0
        return LOW + size_of(chunk, Fixed.LITERAL) if whole else HIGH

    def points(self) -> Loop:
        """The loop over all points of a tile of short or narrow rows."""
        last = self._last_row if self.short else HIGH
        return Loop(POINT, self._row_begin(LOW), self._row_begin(last), Level.CTA)

    def first_point(self) -> Expr:
        """The first point of a tile of short or narrow rows."""
        return self._row_begin(LOW)

    def _row_begin(self, row: Expr) -> Expr:
        """The point that a row begins with."""
        if self.few is None:
            return row * size_of(self.lane.extent)
        others = [t for t in self.domain.full.terms if t[0] not in (self.lane.var, self.few.var)]
        return expression(add(Sum(tuple(others)), Sum(((row, 1),)), self.few.extent))

    def offset(self) -> Expr:
        """The place of the current lane, or short row, in the tile."""
        assert self.across is not None
        return Binary("-", self.across.var, LOW, dt.int64)


def tiles_of(schedule: Schedule) -> Extent:
    """The number of tiles that a schedule makes, all its phases together."""
    if schedule.multi_nest is not None:
        return schedule.multi_nest.tiles
    if schedule.phase_outputs:
        return sum(map(tiles_of, schedule.parts), start=0)
    if schedule.parts:
        firsts = (schedule.parts[numbers[0]] for numbers in schedule.share)
        return sum(map(tiles_of, firsts), start=0)
    return TileLoops(schedule.domain, schedule).tiles()[3]


def over_tiles(tiles: Extent) -> Loop:
    """The loop over tiles."""
    return Loop(TILE, size_of(0), argument(tiles), Level.GRID)


def _range(
    block: Expr, width: Extent, extent: Extent, low: Var = LOW, high: Var = HIGH
) -> list[Let]:
    """The lanes, or rows, of a tile: from ``low`` to ``high``."""
    step = size_of(width, Fixed.LITERAL)
    end = low + step
    last = argument(extent)
    return [Let(low, block * step), Let(high, where(end < last, end, last))]


def decoded(linear: Expr, axes: list[Axis]) -> list[Let]:
    """Locals for the coordinates of a linear index, outermost first."""
    lets, stride = [], numel(a.extent for a in axes)
    for k, axis in enumerate(axes):
        stride = _over(stride, axis.extent)
        value = linear if stride == 1 else Binary("//", linear, size_of(stride), dt.int64)
        if k:
            value = Binary("%", value, size_of(axis.extent), dt.int64)
        lets.append(Let(axis.var, value))
    return lets


def _over(a: Extent, b: Extent) -> Extent:
    return a // b if b != 0 else 0


def _ceil(a: Extent, b: Extent) -> Extent:
    return (a + (b - 1)) // b
