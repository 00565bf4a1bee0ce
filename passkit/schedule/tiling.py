"""The tile sizes of single-nest kernels, and how the points of a tile are mapped to vectors."""

from __future__ import annotations

from enum import Enum
from math import gcd, prod

from passkit.analysis.domain import Axis, Domain, reduced_axes_of
from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.tilemap import Split, SplitKind, rows_with
from passkit.analysis.transposed_accesses import (
    narrow_tile_rows,
    penultimate_vector_axis,
    transposed_axis,
    transposed_tile,
)
from passkit.analysis.unrolled import MIN_RESULTS, unrolled_length
from passkit.ast.stage import Place
from passkit.target import Target
from passkit.target.heuristics import TilingHeuristics
from passkit.values.size import Extent, numel


class Composition(Enum):
    """How the points of a tile are mapped to vectors, and how nests and parts are combined.

    Attributes:
        THREAD: independent points, with vectors along the last axis.
        BLOCK: THREAD in blocks of the last axis and of another axis, along which a transposed input
            is contiguous.
        NARROW: vectors along the last axis but one, as the last has few elements.
        ROW: vectors along the reduced axis; one row after another runs all stages.
        SHORT: vectors along the reduced axis; all rows of a tile run one stage after another, and
            row values are computed by vectors across rows.
        COLUMN: vectors along the last kept axis; the reduction is a serial loop.
        MULTI_NEST: several loop nests, one after another in each tile.
        PACKED: several parts in one launch, each with tiles and a schedule of its own.
        PHASED: several parts with grid barriers in between.

    Source: FusionStitching's compositions.
    """

    THREAD = "thread"
    BLOCK = "block"
    NARROW = "narrow"
    ROW = "row"
    SHORT = "short"
    COLUMN = "column"
    MULTI_NEST = "stitched"
    PACKED = "packed"
    PHASED = "phased"


MAX_PACKED_ROW = 64
"""The longest row that is packed: longer ones gain less, and have longer texts."""

MAX_PACKED_VECTORS = 25
"""The most vectors that packed rows fill together."""


def tiling(info: DomainInfo, target: Target) -> tuple[Composition, Split, Extent | None]:
    """Return the default composition of a group, its tile map, and the width of a tile.

    The width is None where a tile has the whole vector axis.
    """
    composition = compositions(info, target)[0]
    chunk, width = _tile_sizes(info, composition, target)
    return composition, split_for(info, composition, chunk), width


def _tile_sizes(
    info: DomainInfo, composition: Composition, target: Target
) -> tuple[Extent, Extent | None]:
    """Return the chunk of the split and the width of a tile."""
    domain, last = info.domain, info.domain.axes[-1]
    tile = max(MIN_RESULTS, target.tile // max(map(unrolled_length, info.graph.nodes)))
    match composition:
        case Composition.SHORT:
            assert isinstance(last.extent, int)
            return max(16, min(256, target.short_tile // max(1, last.extent) // 16 * 16)), None
        case Composition.ROW:
            return rows_with(target.tile, numel(a.length for a in domain.reduced)), None
        case Composition.COLUMN:
            if target.lanes == 1:
                columns = target.tiling.columns
            elif domain.axes[0].is_chunk_axis:
                columns = _columns_of_chunks(info, target.tiling)
            else:
                columns = _whole_columns(domain, target.tiling)
            return 1, _at_most(last.extent, columns)
        case Composition.NARROW:
            assert isinstance(last.extent, int)
            rows = narrow_tile_rows(target.tile // 2, last.extent)
            return rows, rows
        case Composition.BLOCK:
            axis = second_tiled_axis(info, target)
            assert axis is not None
            width, chunk = transposed_tile(last.extent, axis.extent, target.tile)
            return chunk, width
    return (tile, tile) if len(domain.axes) == 1 else (rows_with(tile, last.extent), None)


def compositions(info: DomainInfo, target: Target) -> tuple[Composition, ...]:
    """Return the compositions that a single-nest group can have, the default first."""
    domain = info.domain
    if domain.axes[-1].reduced:
        is_short = has_short_rows(domain, target) and len(domain.kept) == 1
        return (Composition.SHORT, Composition.ROW) if is_short else (Composition.ROW,)
    if domain.reduced:
        return (Composition.COLUMN,)
    if second_tiled_axis(info, target) is None:
        return (Composition.THREAD,)
    first = Composition.BLOCK if penultimate_vector_axis(info) is None else Composition.NARROW
    return (first, Composition.THREAD) if len(domain.axes) == 2 else (first,)


def second_tiled_axis(info: DomainInfo, target: Target) -> Axis | None:
    """Return the axis that BLOCK and NARROW tiles have a chunk of, beside the last axis.

    Returns: None if THREAD is the default composition, or if the target has no vectors.
    """
    if target.lanes == 1:
        return None
    narrow = penultimate_vector_axis(info)
    return transposed_axis(info) if narrow is None else narrow


def split_for(info: DomainInfo, composition: Composition, chunk: Extent) -> Split:
    """Return the split of a domain into tiles of a composition, of ``chunk`` steps each."""
    domain = info.domain
    last_kept = max(0, len(domain.kept) - 1)
    if composition is Composition.COLUMN:
        return Split(last_kept, 1, SplitKind.COLUMN)
    if composition is Composition.NARROW:
        return Split(last_kept - 1, chunk)
    if composition is Composition.BLOCK:
        axis = transposed_axis(info)
        assert axis is not None
        return Split(domain.axes.index(axis), chunk)
    return Split(last_kept, chunk)


def has_short_rows(domain: Domain, target: Target) -> bool:
    """Return whether the last axis alone is reduced and so short that a tile has many rows."""
    length = domain.axes[-1].extent
    return (
        target.lanes > 1
        and [a.reduced for a in domain.axes].count(True) == 1
        and domain.axes[-1].reduced
        and isinstance(length, int)
        and length <= target.short_row
    )


def row_packing(length: Extent) -> int:
    """Return how many short rows fill whole vectors together; 1 if rows are not packed.

    >>> row_packing(8), row_packing(20), row_packing(16), row_packing(1000)
    (2, 4, 1, 1)
    """
    if not isinstance(length, int) or not 1 < length <= MAX_PACKED_ROW:
        return 1
    common = gcd(length, 16)
    return 16 // common if length // common <= MAX_PACKED_VECTORS else 1


def staging_place(info: DomainInfo, composition: Composition, target: Target) -> Place | None:
    """Return where a kernel of short rows stages its values; None for longer rows.

    Registers are indexed from the first element, so reverse scans do not stage values there.
    """
    if composition is Composition.SHORT:
        return Place.SHARED
    if info.reverse:
        return None
    length = info.domain.axes[-1].extent
    fits = isinstance(length, int) and length <= target.tiling.register_row
    return Place.LANES if fits and has_short_rows(info.domain, target) else None


def _columns_of_chunks(info: DomainInfo, tiling: TilingHeuristics) -> int:
    """Return the columns of a tile that reduces one chunk of them.

    The partial results of a tile stay within the target's limit, and there are enough tiles.
    """
    chunks, columns = info.domain.axes[0].extent, info.domain.axes[-1].extent
    reductions = [n for n in info.graph.nodes if reduced_axes_of(n) is not None]
    nbytes = sum(info.graph.dtype(e).nbytes for n in reductions for e in n.entries)
    least = tiling.chunk_columns
    most = max(least, 1 << max(1, tiling.chunk_sum_bytes // nbytes).bit_length() - 1)
    if not isinstance(chunks, int) or not isinstance(columns, int):
        return min(most, 2 * least)
    while most > least and chunks * -(-columns // most) < tiling.chunk_tiles:
        most //= 2
    return most


def _whole_columns(domain: Domain, tiling: TilingHeuristics) -> int:
    """Return the columns of a tile that reduces them whole; fewer if there would be few tiles."""
    last = domain.axes[-1]
    if not isinstance(last.extent, int):
        return tiling.columns
    others = prod(a.extent for a in domain.kept if a is not last and isinstance(a.extent, int))
    line = tiling.line_elements
    tiles = min(-(-tiling.column_tiles // max(1, others)), last.extent // tiling.min_columns)
    if tiles < 2:
        return tiling.columns
    return min(tiling.columns, -(-last.extent // (tiles * line)) * line)


def _at_most(extent: Extent, limit: int) -> int:
    """Return the smaller one of an extent and a limit; the limit for unknown and empty extents."""
    return min(extent, limit) if isinstance(extent, int) and extent else limit
