"""How the points of a tile are mapped to loops and vectors: the structures that a nest can have."""

from __future__ import annotations

from enum import Enum
from math import gcd

from passkit.analysis.domain import Axis, Domain
from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.tilemap import Split, SplitKind
from passkit.analysis.transposed_accesses import penultimate_vector_axis, transposed_axis
from passkit.target import Target
from passkit.values.size import Extent


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


def fits_registers(info: DomainInfo, target: Target) -> bool:
    """Return whether the values of a short row may stay in registers between stages.

    Registers are indexed from the first element, so reverse scans do not stage values there.
    """
    length = info.domain.axes[-1].extent
    return (
        not info.reverse
        and isinstance(length, int)
        and length <= target.tiling.register_row
        and has_short_rows(info.domain, target)
    )
