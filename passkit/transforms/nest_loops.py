"""The loops of a nest in a tile: over the points that the tile has of the nest's domain."""

from __future__ import annotations

from passkit.analysis.domain import Axis, Domain
from passkit.analysis.domain_tile import DomainTile
from passkit.analysis.tile_layout import window_bounds
from passkit.analysis.tilemap import TILE, TileMap
from passkit.ast import Binary, Expr, Fixed, Var, dt, size_of
from passkit.ast.index import Sum, add
from passkit.ast.stage import Let, Level, Loop
from passkit.schedule.nest_info import has_rows, row_axes
from passkit.schedule.schedule import Schedule
from passkit.schedule.tile_loops import FIRST, HIGH, LAST, LOW, MIN_WIDE_LOOP, ROW, decode_index
from passkit.schedule.tiling import Composition
from passkit.values.size import numel


class NestLoops:
    """As `TileLoops`, for one of several nests: its points are those of a tile of the kernel.

    Coordinates are those of whole values. Axes of which a tile has one coordinate are decoded; the
    axis of which it has a window goes from `FIRST` to `LAST`.
    """

    unrolled_axis = None

    def __init__(self, domain: Domain, schedule: Schedule, domain_tile: DomainTile) -> None:
        self.domain, self.schedule, self.domain_tile = domain, schedule, domain_tile
        self.vector_axis = domain.axes[-1]
        self.is_column = schedule.composition is Composition.COLUMN
        self.is_short = schedule.composition is Composition.SHORT
        blocked = schedule.composition is Composition.BLOCK
        self.block_axis = domain.axes[schedule.split.split_dim] if blocked else None
        self.has_one_vector_point = self.vector_axis in domain_tile.fixed
        self.row_axes = row_axes(domain, schedule, domain_tile)
        self.row_value_axis = (
            self.vector_axis if self.is_column else self.row_axes[0] if self.is_short else None
        )

    def decode(self, tile_map: TileMap) -> list[Let]:
        """Return the definitions of a tile's coordinates and of the ends of its window."""
        place = TILE if self.domain_tile.by_tile else tile_map.outer_number()
        lets = decode_index(place, list(self.domain_tile.fixed))
        if self.has_one_vector_point:  # the vector loop goes over it
            lets = [Let(FIRST, x.value) if x.var == self.vector_axis.var else x for x in lets]
            lets.append(Let(LAST, FIRST + 1))
        if self.domain_tile.window is not None:
            lets += window_bounds(tile_map, FIRST, LAST, self.domain_tile.scale)
        if self.is_short:
            low, high = self._ends(self.row_axes[0])
            lets += [Let(LOW, low), Let(HIGH, high)]
        return lets

    def _ends(self, axis: Axis) -> tuple[Expr, Expr]:
        """Return the ends of a tile's part of an axis."""
        if axis is self.domain_tile.window or axis in self.domain_tile.fixed:
            return FIRST, LAST
        return size_of(0), size_of(axis.extent)

    def along(self, at: Sum) -> Sum:
        """Return an index that depends on the vector axis, even where a tile has one step of it."""
        if not self.has_one_vector_point or at.coefficient(self.vector_axis.var) != 0:
            return at
        return add(add(at, Sum(((self.vector_axis.var, 1),))), Sum(((FIRST, 1),)), -1)

    def rows(self) -> tuple[Loop | None, list[Let]]:
        """Return the loop over the rows of a tile, if there is one, and definitions inside it."""
        if not has_rows(self.domain, self.schedule, self.domain_tile):
            return None, []
        first, *others = self.row_axes
        low, high = self._ends(first)
        if not others:
            return Loop(first.var, low, high, Level.WARP), []
        inner = size_of(numel(a.extent for a in others))
        return Loop(ROW, low * inner, high * inner, Level.WARP), decode_index(ROW, self.row_axes)

    def vector_loop(self) -> Loop:
        """Return the loop over the vector axis."""
        low, high = self._ends(self.vector_axis)
        if self.is_short:  # a literal extent: a short row is no loop
            high = size_of(self.vector_axis.extent, Fixed.LITERAL)
        length = self.domain_tile.length(self.vector_axis)
        wide = isinstance(length, int) and length >= MIN_WIDE_LOOP and not self.vector_axis.reduced
        return Loop(self.vector_axis.var, low, high, Level.CTA, wide=wide)

    def serial_loops(self) -> list[Loop]:
        """Return the loops inside a row without the vector loop."""
        axes = [a for a in self.domain.reduced if a is not self.vector_axis]
        axes += [] if self.block_axis is None else [self.block_axis]
        return [Loop(a.var, *self._ends(a), Level.THREAD) for a in axes]

    def stage_loops(self) -> tuple[Loop, ...]:
        """Return the loops of a stage, outermost first."""
        return *self.serial_loops(), self.vector_loop()

    def short_row_loops(self, level: Level) -> list[Loop]:
        """Return the loop over the rows of a tile of short rows; none for others."""
        return (
            [Loop(self.row_value_axis.var, LOW, HIGH, level)]
            if self.is_short and self.row_value_axis
            else []
        )

    def row_offset(self) -> Expr:
        """Return the position of the current column, or short row, in an array of row values."""
        assert self.row_value_axis is not None
        first: Var = LOW if self.is_short else FIRST
        if not self.is_short and self.vector_axis is not self.domain_tile.window:
            return self.row_value_axis.var
        return Binary("-", self.row_value_axis.var, first, dt.int64)
