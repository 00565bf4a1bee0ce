"""Tilings: how a tile's points map to lanes, and how many points it has."""

from __future__ import annotations

from enum import Enum
from math import gcd, prod

from passkit.analysis.domain import Axis, Domain, reduced_axes_of
from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.tilemap import Split, SplitKind, rows_with
from passkit.analysis.transposed_accesses import block_axis, narrow_axis, rows_of, tile_of
from passkit.analysis.unrolled import RESULTS, small_taps
from passkit.ast.stage import Place
from passkit.target import Target
from passkit.target.heuristics import TilingHeuristics
from passkit.values.size import Extent, numel


class Composition(Enum):
    """How a tile's points map to lanes: FusionStitching's compositions, as far as built.

    THREAD: independent points. BLOCK: the same in blocks of the lanes and another axis, along which
    an input lies that is turned. NARROW: lanes along the last axis but one, as the last has few
    elements. ROW: lanes along the reduced axis of one row at a time. SHORT: the same for a tile of
    short rows, stage by stage, so that no row waits for its own folds; row values are computed with
    lanes across rows. COLUMN: lanes along the last kept axis, the reduction a serial loop.
    STITCHED: parts with compositions of their own, one after the other in each tile. PACKED: parts
    with schedules of their own, each with tiles of its own. PHASED: the same one after the other,
    and no tile begins before all of the phase before have ended.
    """

    THREAD = "thread"
    BLOCK = "block"
    NARROW = "narrow"
    ROW = "row"
    SHORT = "short"
    COLUMN = "column"
    STITCHED = "stitched"
    PACKED = "packed"
    PHASED = "phased"


PAIRED, BUNDLED = 64, 25
"""The longest row that comes with others: longer ones have less to gain, and more text; and the
vectors that so many rows are together at most."""


def tiling(info: DomainInfo, target: Target) -> tuple[Composition, Split, Extent | None]:
    """How a group's points map to lanes, how its work is split, and how wide a tile is."""
    composition = compositions(info, target)[0]
    chunk, width = _sizes(info, composition, target)
    return composition, split_for(info, composition, chunk), width


def _sizes(
    info: DomainInfo, composition: Composition, target: Target
) -> tuple[Extent, Extent | None]:
    """The chunk and the width of a tile."""
    domain, last = info.domain, info.domain.axes[-1]
    tile = max(RESULTS, target.tile // max(map(small_taps, info.graph.nodes)))
    match composition:
        case Composition.SHORT:
            assert isinstance(last.extent, int)
            return max(16, min(256, target.short_tile // max(1, last.extent) // 16 * 16)), None
        case Composition.ROW:
            return rows_with(target.tile, numel(a.steps for a in domain.reduced)), None
        case Composition.COLUMN:
            chunked = domain.axes[0].counting and target.lanes > 1
            if chunked:
                most = _columns(info, target.tiling)
            else:
                most = target.tiling.columns
                if target.lanes > 1:
                    most = _whole_columns(domain, target.tiling)
            return 1, _width(last.extent, most)
        case Composition.NARROW:
            assert isinstance(last.extent, int)
            rows = rows_of(target.tile // 2, last.extent)
            return rows, rows
        case Composition.BLOCK:
            across = cut_axis(info, target)
            assert across is not None
            width, chunk = tile_of(last.extent, across.extent, target.tile)
            return chunk, width
    return (tile, tile) if len(domain.axes) == 1 else (rows_with(tile, last.extent), None)


def compositions(info: DomainInfo, target: Target) -> tuple[Composition, ...]:
    """The ways in which a group's points can map to lanes, the best as a rule first."""
    domain = info.domain
    if domain.axes[-1].reduced:
        short = is_short(domain, target) and len(domain.kept) == 1
        return (Composition.SHORT, Composition.ROW) if short else (Composition.ROW,)
    if domain.reduced:
        return (Composition.COLUMN,)
    if cut_axis(info, target) is None:
        return (Composition.THREAD,)
    first = Composition.BLOCK if narrow_axis(info) is None else Composition.NARROW
    return (first, Composition.THREAD) if len(domain.axes) == 2 else (first,)


def cut_axis(info: DomainInfo, target: Target) -> Axis | None:
    """The axis beside the last along which tiles are cut, where lanes do not run along the last."""
    if target.lanes == 1:
        return None
    narrow = narrow_axis(info)
    return block_axis(info) if narrow is None else narrow


def split_for(info: DomainInfo, composition: Composition, chunk: Extent) -> Split:
    """The split that cuts the tiles of a composition."""
    domain = info.domain
    where = max(0, len(domain.kept) - 1)
    if composition is Composition.COLUMN:
        return Split(where, 1, SplitKind.COLUMN)
    if composition is Composition.NARROW:
        return Split(where - 1, chunk)
    if composition is Composition.BLOCK:
        across = block_axis(info)
        assert across is not None
        return Split(domain.axes.index(across), chunk)
    return Split(where, chunk)


def is_short(domain: Domain, target: Target) -> bool:
    """Whether rows are so short that many of them make a tile."""
    length = domain.axes[-1].extent
    return (
        target.lanes > 1
        and [a.reduced for a in domain.axes].count(True) == 1
        and domain.axes[-1].reduced
        and isinstance(length, int)
        and length <= target.short_row
    )


def in_pairs(length: Extent) -> bool:
    """Whether short rows of a length come two at a time: both are whole vectors, one is not."""
    return isinstance(length, int) and length <= PAIRED and length % 16 == 8


def in_bundles(length: Extent) -> bool:
    """Whether short rows that fold nothing come several at a time: some are whole vectors."""
    if not isinstance(length, int) or not 1 < length <= PAIRED or length % 16 == 0:
        return False
    return length // gcd(length, 16) <= BUNDLED


def row_place(info: DomainInfo, composition: Composition, target: Target) -> Place | None:
    """Where a short row's values stay between stages; None for longer rows.

    Registers are counted from the first: what runs the other way has no place in them.
    """
    if composition is Composition.SHORT:
        return Place.SHARED
    if info.reverse:
        return None
    domain = info.domain
    length = domain.axes[-1].extent
    few = isinstance(length, int) and length <= target.tiling.register_row
    return Place.LANES if few and is_short(domain, target) else None


def _columns(info: DomainInfo, tiling: TilingHeuristics) -> int:
    """The lanes of a tile that folds chunks of columns."""
    chunks, columns = info.domain.axes[0].extent, info.domain.axes[-1].extent
    folds = [n for n in info.graph.nodes if reduced_axes_of(n) is not None]
    nbytes = sum(info.graph.dtype(e).nbytes for n in folds for e in n.entries)
    least = tiling.chunk_columns
    most = max(least, 1 << max(1, tiling.chunk_sum_bytes // nbytes).bit_length() - 1)
    if not isinstance(chunks, int) or not isinstance(columns, int):
        return min(most, 2 * least)
    while most > least and chunks * -(-columns // most) < tiling.chunk_tiles:
        most //= 2
    return most


def _whole_columns(domain: Domain, tiling: TilingHeuristics) -> int:
    """The lanes of a tile that folds whole columns: fewer where there would be few tiles."""
    last = domain.axes[-1]
    if not isinstance(last.extent, int):
        return tiling.columns
    others = prod(a.extent for a in domain.kept if a is not last and isinstance(a.extent, int))
    line = tiling.line_elements
    tiles = min(-(-tiling.column_tiles // max(1, others)), last.extent // tiling.min_columns)
    if tiles < 2:
        return tiling.columns
    return min(tiling.columns, -(-last.extent // (tiles * line)) * line)


def _width(extent: Extent, most: int) -> int:
    return min(extent, most) if isinstance(extent, int) and extent else most
