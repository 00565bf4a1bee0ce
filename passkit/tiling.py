"""Tilings: how a tile's points map to lanes, and how many points it has."""

from __future__ import annotations

from enum import Enum

from passkit.layout import Layout
from passkit.size import Extent, numel
from passkit.space import Space
from passkit.split import Split, SplitKind
from passkit.stage import Place
from passkit.target import Target
from passkit.turning import block_axis, narrow_axis, rows_of, tile_of
from passkit.unroll import RESULTS, small_taps


class Composition(Enum):
    """How a tile's points map to lanes: FusionStitching's compositions, as far as built.

    THREAD: independent points. BLOCK: the same in blocks of the lanes and another axis, along which
    an input lies that is turned. NARROW: lanes along the last axis but one, as the last has few
    elements. ROW: lanes along the reduced axis of one row at a time. SHORT: the same for a tile of
    short rows, stage by stage, so that no row waits for its own folds; row values are computed with
    lanes across rows. COLUMN: lanes along the last kept axis, the reduction a serial loop.
    STITCHED: parts with compositions of their own, one after the other in each tile. PACKED: parts
    with schedules of their own, each with tiles of its own.
    """

    THREAD = "thread"
    BLOCK = "block"
    NARROW = "narrow"
    ROW = "row"
    SHORT = "short"
    COLUMN = "column"
    STITCHED = "stitched"
    PACKED = "packed"


COLUMNS, PAGE = 512, 1024
"""Lanes of a tile that folds columns; of chunks of long columns, which are read from memory, a page
of floats, so that it is read in its order."""
REGISTERS = 64
"""The longest row whose values stay in registers."""


def tiling(layout: Layout, target: Target) -> tuple[Composition, Split, Extent | None]:
    """How a group's points map to lanes, how its work is split, and how wide a tile is."""
    space = layout.space
    last = space.axes[-1]
    where = max(0, len(space.kept) - 1)
    if is_short(space, target) and len(space.kept) == 1:
        assert isinstance(last.extent, int)
        rows = max(16, min(256, target.short_tile // max(1, last.extent) // 16 * 16))
        return Composition.SHORT, Split(0, rows, SplitKind.ROW), None
    if last.reduced:
        length = numel(a.steps for a in space.reduced)
        return Composition.ROW, Split(where, _chunk(target.tile, length), SplitKind.ROW), None
    if space.reduced:
        most = PAGE if space.axes[0].counting and target.lanes > 1 else COLUMNS
        return Composition.COLUMN, Split(where, 1, SplitKind.COLUMN), _width(last.extent, most)
    tile = max(RESULTS, target.tile // max(map(small_taps, layout.graph.nodes)))
    if len(space.axes) == 1:
        return Composition.THREAD, Split(0, tile, SplitKind.ROW), tile
    narrow = narrow_axis(layout) if target.lanes > 1 else None
    if narrow is not None:
        assert isinstance(last.extent, int)
        rows = rows_of(target.tile // 2, last.extent)
        return Composition.NARROW, Split(where - 1, rows), rows
    across = block_axis(layout) if target.lanes > 1 else None
    if across is not None:
        width, chunk = tile_of(last.extent, across.extent, target.tile)
        return Composition.BLOCK, Split(space.axes.index(across), chunk), width
    return Composition.THREAD, Split(where, _chunk(tile, last.extent), SplitKind.ROW), None


def is_short(space: Space, target: Target) -> bool:
    """Whether rows are so short that many of them make a tile."""
    length = space.axes[-1].extent
    return (
        target.lanes > 1
        and [a.reduced for a in space.axes].count(True) == 1
        and space.axes[-1].reduced
        and isinstance(length, int)
        and length <= target.short_row
    )


def row_place(layout: Layout, composition: Composition, target: Target) -> Place | None:
    """Where a short row's values stay between stages; None for longer rows.

    Registers are counted from the first: what runs the other way has no place in them.
    """
    if composition is Composition.SHORT:
        return Place.SHARED
    if layout.reverse:
        return None
    space = layout.space
    length = space.axes[-1].extent
    few = isinstance(length, int) and length <= REGISTERS
    return Place.LANES if few and is_short(space, target) else None


def _chunk(tile: int, length: Extent) -> Extent:
    """Rows of ``length`` points that make about ``tile`` points."""
    if isinstance(length, int):
        return max(1, tile // max(1, length))
    return tile // (length + 1) + 1  # the length may turn out to be 0


def _width(extent: Extent, most: int) -> int:
    return min(extent, most) if isinstance(extent, int) and extent else most
