"""Dealing out one loop to blocks and to what works inside them, in one way of saying it."""

from __future__ import annotations

from passkit.analysis.tilemap import Split, SplitKind, rows_with
from passkit.ast.stage import Level
from passkit.schedule.template import Attr, LoopLevel, NestPlan, kind_of, owned_loops
from passkit.schedule.template_loops import Nest
from passkit.values.size import Extent, Quotient, Size, at_least, divide_exactly


def dealt(extent: Extent, chunk: Extent, level: Level, inside: Extent = 1) -> Attr:
    """A loop of which a block has ``chunk`` steps, and ``level`` in it takes them.

    Each step goes ``inside`` so many points. Pieces are counted where that says the same: of 10
    steps pieces of 6 are two, but two have 5. A loop of one step has nothing to deal out.
    """
    if extent == 1:
        return (LoopLevel(Level.THREAD),)
    if chunk == 1:
        return (LoopLevel(Level.GRID),)
    if at_least(chunk, extent):
        return (LoopLevel(level),)
    pieces = pieces_of(extent, chunk)
    if isinstance(chunk, int):
        grid = LoopLevel(Level.GRID, pieces) if pieces else LoopLevel(Level.GRID, chunk=chunk)
        return (grid, LoopLevel(level, chunk))
    if pieces:
        return (LoopLevel(Level.GRID, pieces),)
    points = _points(chunk, inside)
    assert points is not None
    return (LoopLevel(Level.GRID, points=points),)


def settled(attr: Attr, extent: Extent, inside: Extent = 1) -> Attr:
    """What `dealt` says where ``attr`` means that; ``attr`` as it is where it means no such thing.

    What is left of a numbered loop runs one after another, as the rows of a block do.
    """
    if extent == 1:
        return (LoopLevel(Level.THREAD),)
    first, *others = attr
    if first.level is not Level.GRID:
        whole = first.pieces is None or at_least(first.pieces, extent)
        return (LoopLevel(first.level),) if whole and not others else attr
    chunk = first.steps(extent, inside)
    if len(others) > 1 or (others and not at_least(others[0].pieces or extent, chunk)):
        return attr
    return dealt(extent, chunk, others[0].level if others else Level.WARP, inside)


def pieces_of(extent: Extent, chunk: Extent) -> int | None:
    """The number n for which ``ceil(extent / n)`` is ``chunk``, None where there is none."""
    if isinstance(extent, int) and isinstance(chunk, int):
        pieces = -(-extent // chunk)
        return pieces if pieces <= 1 or -(-extent // pieces) == chunk else None
    exact = divide_exactly(extent, chunk)
    if isinstance(exact, int):
        return exact
    for quotient in _quotients(chunk):
        found = quotient.denominator
        if isinstance(found, int) and (extent + (found - 1)) // found == chunk:
            return found
    return None


def _points(chunk: Extent, length: Extent) -> int | None:
    """The points that so many rows of ``length`` have about, None where it is no such chunk."""
    for quotient in _quotients(chunk):
        found = quotient.numerator
        if isinstance(found, int) and rows_with(found, length) == chunk:
            return found
    return None


def _quotients(size: Extent) -> list[Quotient]:
    terms = size.terms if isinstance(size, Size) else ()
    atoms = [m[0] for m, count in terms if len(m) == 1 and count == 1]
    return [a for a in atoms if isinstance(a, Quotient)]


def split_of(stage: NestPlan, nest: Nest) -> Split:
    """The split of a value's result that a template says."""
    row = kind_of(stage, nest) is SplitKind.ROW
    grid = [d for d in owned_loops(nest) if stage.part(d, Level.GRID) is not None]
    if not grid:
        return Split(0, nest.result[0], SplitKind.ROW)
    d = grid[-1 if row else 0]
    part = stage.part(d, Level.GRID)
    assert part is not None
    chunk = part.steps(nest.dims[d])
    kind = SplitKind.ROW if row else SplitKind.COLUMN
    return Split(nest.axes.index(d), 1 if chunk == 0 else chunk, kind)
