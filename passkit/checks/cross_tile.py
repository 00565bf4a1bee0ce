"""Races between the tiles of a phase: tiles run in any order, without a barrier between them.

Only certain races are reported: stores to an element that does not depend on the tile, and accesses
of parts that have no tile in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from passkit.ast import Const, Expr, SizeOf, Var
from passkit.ast.stage import Phase
from passkit.checks.overlap import have_common_tile
from passkit.checks.stage_accesses import StageAccess
from passkit.checks.stage_indices import may_meet
from passkit.values.size import Extent


def cross_tile_races(
    phase: Phase, accesses: Iterable[StageAccess], sizes: Mapping[str, Extent]
) -> Iterator[tuple[StageAccess, StageAccess]]:
    """Yield pairs of accesses to outputs that race between two tiles; the first one is a store.

    Args:
        phase: the phase.
        accesses: its accesses to outputs.
        sizes: the values of the size arguments.
    """
    tiles, tile = _number_of_tiles(phase.tile.stop, sizes), phase.tile.var
    if tiles == 1:
        return
    by_buffer: dict[str, list[StageAccess]] = {}
    for access in accesses:
        if access.index is not None:
            by_buffer.setdefault(access.buffer, []).append(access)
    for group in by_buffer.values():
        for a in (x for x in group if x.is_store):
            part = phase.parts[a.part]
            if isinstance(tiles, int) and part.span is None and not a.element.depends_on(tile):
                yield a, a
            for b in (x for x in group if not x.is_store):
                is_cross_tile = a.element.depends_on(tile) and not b.element.depends_on(tile)
                is_cross_tile |= not have_common_tile(part, phase.parts[b.part])
                if is_cross_tile and may_meet(a.element, b.element):
                    yield a, b


def _number_of_tiles(count: Expr, sizes: Mapping[str, Extent]) -> Extent | None:
    """Return the number of tiles if it is a literal or a size argument, else None."""
    match count:
        case Const():
            return int(count.value)
        case SizeOf():
            return count.size
        case Var(name):
            return sizes.get(name)
    return None
