"""What tiles of one phase do to each other: they never wait, so none may read what another writes.

Only what is certain is reported: an index that is the same for all tiles, parts that share none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from passkit.ast import Const, Expr, SizeOf, Var
from passkit.ast.stage import Part, Phase
from passkit.checks.touches import Touch, disjoint
from passkit.values.size import Extent


def among_tiles(
    phase: Phase, touches: Iterable[Touch], sizes: Mapping[str, Extent]
) -> Iterator[tuple[Touch, Touch]]:
    """The pairs of ``touches``, which are of results, by two tiles; the first of them writes."""
    tiles, tile = _number(phase.tile.stop, sizes), phase.tile.var.name
    if tiles == 1:
        return
    of: dict[str, list[Touch]] = {}
    for t in touches:
        if t.form is not None:
            of.setdefault(t.buffer, []).append(t)
    for found in of.values():
        for a in (t for t in found if t.writes):
            mine = phase.parts[a.part]
            if isinstance(tiles, int) and mine.span is None and not a.has(tile):
                yield a, a
            for b in (t for t in found if not t.writes):
                others = _apart(mine, phase.parts[b.part]) or (a.has(tile) and not b.has(tile))
                if others and not disjoint(a, b):
                    yield a, b


def _apart(a: Part, b: Part) -> bool:
    """Whether no tile is of both parts."""
    return a.span is not None and b.span is not None and a.span != b.span


def _number(count: Expr, sizes: Mapping[str, Extent]) -> Extent | None:
    """The number of tiles, where it is one number or argument."""
    match count:
        case Const():
            return int(count.value)
        case SizeOf():
            return count.size
        case Var(name):
            return sizes.get(name)
    return None
