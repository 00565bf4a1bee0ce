"""Turned reads: inputs across the lanes, of which blocks are turned in registers.

Where lanes step over the rows of an input, each would touch a cache line of its own. If another
axis steps through that input one by one, blocks of both axes are read line by line instead. Where
the last axis has a few elements only, lanes run along the one before, and results are turned too.
"""

from __future__ import annotations

from passkit.analysis.domain import Axis
from passkit.analysis.domain_info import DomainInfo
from passkit.ast import Var
from passkit.ast.index import Sum
from passkit.ast.walk import variables
from passkit.ir.vector import MAX_COLUMNS
from passkit.values.size import Extent

BLOCK = 16
"""Lanes, and turns of the other axis, of a block."""
TILE_POINTS, TILE_WIDTHS = 16384, (BLOCK, 64, 256)
"""The points of a tile of blocks, and how many lanes it may have."""
MAX_NARROW = MAX_COLUMNS
"""The most elements of a last axis that lanes do not run along."""


def transposed_axis(info: DomainInfo) -> Axis | None:
    """The axis along which most of those inputs lie that the lanes step over, if there are any."""
    domain = info.domain
    if domain.reduced or len(domain.axes) < 2:
        return None
    *others, lane = domain.axes
    votes = dict.fromkeys(others, 0)
    for reads in info.input_accesses.values():
        for access in reads:
            for axis in others:
                votes[axis] += is_transposed(access, lane.var, axis.var)
    best = max(others, key=lambda a: votes[a])
    few = any(isinstance(n, int) and n < 2 for n in (best.extent, lane.extent))
    return best if votes[best] and not few else None


def penultimate_vector_axis(info: DomainInfo) -> Axis | None:
    """The axis before the last that lanes run along, where the last is narrow.

    What is read moves evenly along both, and no value depends on where it is.
    """
    domain = info.domain
    if domain.reduced or len(domain.axes) < 2:
        return None
    rows, last = domain.axes[-2:]
    if not isinstance(last.extent, int) or not 1 < last.extent <= MAX_NARROW:
        return None
    both = {rows.var, last.var}
    few = isinstance(rows.extent, int) and rows.extent <= last.extent
    even = all(
        isinstance(atom, Var) or both.isdisjoint(variables(atom))
        for reads in info.input_accesses.values()
        for access in reads
        for atom, _ in access.terms
    )
    return rows if even and not few and both.isdisjoint(info.pinned) else None


def is_transposed(access: Sum, lane: Var, axis: Var) -> bool:
    """Whether an index steps one by one along ``axis``, and further along ``lane``."""
    if access.coefficient(axis) != 1 or access.coefficient(lane) in (0, 1, -1):
        return False
    return all(
        isinstance(atom, Var) or {lane, axis}.isdisjoint(variables(atom))
        for atom, _ in access.terms
    )


def narrow_tile_rows(tile: int, few: int) -> int:
    """The rows of a few elements in a tile of about so many points: whole vectors of rows."""
    return max(BLOCK, tile // few // BLOCK * BLOCK)


def transposed_tile(lane: Extent, across: Extent, tile: int) -> tuple[int, int]:
    """The lanes and the turns of the other axis of a tile: one of few, for all shapes to share.

    Another axis that makes one block has a tile of whole rows.
    """
    if isinstance(across, int) and across <= BLOCK:
        return narrow_tile_rows(tile, across), across
    width = next((w for w in TILE_WIDTHS if isinstance(lane, int) and lane <= w), TILE_WIDTHS[-1])
    return width, TILE_POINTS // width
