"""The distribution of loops over blocks and threads, as schedules and templates describe it.

`distribute` is the canonical form: equal distributions of a loop have one text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from passkit.analysis.tilemap import Split, SplitKind, TileMap, rows_with
from passkit.analysis.transposed_accesses import BLOCK
from passkit.ast.stage import Level
from passkit.graph.node import Node, known_shape
from passkit.schedule.schedule import Schedule
from passkit.schedule.template import (
    Attr,
    LoopLevel,
    ValueTemplate,
    distributable_loops,
    split_kind_of,
)
from passkit.schedule.template_loops import LoopKind, ValueLoops
from passkit.schedule.tiling import Composition
from passkit.values.size import Extent, Quotient, Size, at_least, divide_exactly, numel

NEST_LEVELS = {
    Composition.ROW: (Level.WARP, Level.CTA),
    Composition.SHORT: (Level.CTA, Level.THREAD),
    Composition.COLUMN: (Level.WARP, Level.THREAD),
    Composition.THREAD: (Level.WARP, Level.CTA),
    Composition.BLOCK: (Level.THREAD, Level.CTA),
}
"""The levels of rows and of reduced loops in a nest of a multi-nest kernel."""


def distribute(extent: Extent, chunk: Extent, level: Level, row_points: Extent = 1) -> Attr:
    """Return the levels of a loop of which a block has ``chunk`` iterations.

    The number of chunks is written if it determines their length, else the length: 10 iterations
    in chunks of 6 are two chunks, but two chunks of 10 have 5.

    Args:
        extent: the iterations of the loop.
        chunk: the iterations of a block; an unknown one must be a fraction of ``extent``, or a
            number of rows with a given number of points.
        level: the level inside a block that takes them.
        row_points: the points of a row, for chunks of rows with a given number of points.
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
    points = _points_of(chunk, row_points)
    assert points is not None
    return (LoopLevel(Level.GRID, points=points),)


def normalize_attr(attr: Attr, extent: Extent, row_points: Extent = 1) -> Attr:
    """Return the form of `distribute` that is equal to ``attr``; ``attr`` itself if none is.

    Iterations of a numbered loop that no level takes run one after another, as rows do.

    Args:
        attr: the levels of a loop.
        extent: the iterations of the loop.
        row_points: the points of a row.
    """
    if extent == 1:
        return (LoopLevel(Level.THREAD),)
    first, *others = attr
    if first.level is not Level.GRID:
        takes_all = first.pieces is None or at_least(first.pieces, extent)
        return (LoopLevel(first.level),) if takes_all and not others else attr
    chunk = first.steps(extent, row_points)
    if len(others) > 1 or (others and not at_least(others[0].pieces or extent, chunk)):
        return attr
    return distribute(extent, chunk, others[0].level if others else Level.WARP, row_points)


def normalize(template: ValueTemplate, value: ValueLoops) -> ValueTemplate:
    """Return the template of a value with each loop in the form of `distribute`, if it has one."""
    pairs = zip(template.attrs, value.extents, strict=True)
    attrs = tuple(normalize_attr(attr, n, value.row_points) for attr, n in pairs)
    return ValueTemplate(template.name, attrs, value.shared)


def single_nest_template(value: ValueLoops, schedule: Schedule) -> ValueTemplate:
    """Return the template of a value under the schedule of a single-nest kernel."""
    kinds = value.kinds or (LoopKind.LAST,)
    pairs = zip(kinds, value.extents, strict=True)
    return _template(value, (_tile_of(k, n, bool(value.carried), schedule) for k, n in pairs))


def multi_nest_template(
    node: Node, value: ValueLoops, tile_map: TileMap, schedule: Schedule | None
) -> ValueTemplate:
    """Return the template of a value of a multi-nest kernel.

    Args:
        node: the operator that computes the value.
        value: its loops.
        tile_map: the part of the value that a tile has.
        schedule: the schedule of its nest; None for a matrix product.
    """
    chunks = chunks_of(value, tile_map)
    levels = _nest_levels(node, value, schedule)
    return _template(value, ((chunks.get(d, n), levels[d]) for d, n in enumerate(value.extents)))


def _template(value: ValueLoops, tiles: Iterable[tuple[Extent, Level]]) -> ValueTemplate:
    """Return the template of a value, given the chunk and the level of each loop."""
    pairs = zip(value.extents, tiles, strict=True)
    attrs = (distribute(n, chunk, level, value.row_points) for n, (chunk, level) in pairs)
    return ValueTemplate(value.name, tuple(attrs), value.shared)


def _tile_of(
    kind: LoopKind, extent: Extent, is_carried: bool, schedule: Schedule
) -> tuple[Extent, Level]:
    """Return the iterations of a loop that a tile has, and the level that takes them.

    Args:
        kind: the role of the loop.
        extent: the iterations of the loop.
        is_carried: whether the value of the loop is reduced or scanned.
        schedule: the schedule of the single-nest kernel.
    """
    chunk = schedule.split.chunk
    width = extent if schedule.width is None else schedule.width
    match schedule.composition, kind:
        case Composition.ROW, LoopKind.ROWS:
            return chunk, Level.WARP
        case Composition.SHORT, LoopKind.ROWS:
            return chunk, Level.CTA
        case Composition.SHORT, LoopKind.LAST:
            return extent, Level.THREAD if is_carried else Level.CTA
        case Composition.THREAD, LoopKind.ROWS | LoopKind.TILED:
            return chunk, Level.WARP
        case Composition.BLOCK, LoopKind.TILED:
            return chunk, Level.THREAD
        case Composition.NARROW, LoopKind.TILED:
            return width, Level.CTA
        case _, LoopKind.ROWS:
            return 1, Level.WARP
        case (_, LoopKind.REDUCED) | (Composition.NARROW, LoopKind.LAST):
            return extent, Level.THREAD
        case _:
            return width, Level.CTA


def chunks_of(value: ValueLoops, tile_map: TileMap) -> Mapping[int, Extent]:
    """Return the iterations that a tile has of each loop of which it has not all.

    ``tile_map`` is the part of the value that a tile has.
    """
    if not value.result_loops:
        return {}
    loops = value.result_loops
    chunks: dict[int, Extent] = {
        loops[k]: 1 for k in tile_map.outer if loops[k] not in value.reduced
    }
    window = tile_map.window
    if window is not None:
        chunks[loops[window]] = tile_map.dims[window].chunk
    return chunks


def _nest_levels(node: Node, value: ValueLoops, schedule: Schedule | None) -> list[Level]:
    """Return the level inside a tile of each loop of a value of a multi-nest kernel.

    ``node`` computes the value; ``schedule`` is that of its nest, None for a matrix product.
    """
    rank = len(value.extents)
    if schedule is None:
        batch = [Level.THREAD] * (rank - 3)
        return [*batch, Level.WARP, Level.CTA, Level.THREAD]
    rows, reduced = NEST_LEVELS[schedule.composition]
    is_column = schedule.composition is Composition.COLUMN
    if value.carried:
        vector = value.unreduced[-1] if value.unreduced and is_column else None
        levels = [Level.CTA if d == vector else rows for d in range(rank)]
        return [reduced if d in value.carried else levels[d] for d in range(rank)]
    domain = schedule.domain
    is_row_value = bool(domain.reduced) and numel(known_shape(node.entries[0])) != domain.size
    return [*[rows] * (rank - 1), rows if is_row_value and not is_column else Level.CTA]


def pieces_of(extent: Extent, chunk: Extent) -> int | None:
    """Return the number n with ``ceil(extent / n) == chunk``; None if there is none."""
    if isinstance(extent, int) and isinstance(chunk, int):
        pieces = -(-extent // chunk)
        return pieces if pieces <= 1 or -(-extent // pieces) == chunk else None
    exact = divide_exactly(extent, chunk)
    if isinstance(exact, int):
        return exact
    for quotient in _quotients(chunk):
        divisor = quotient.denominator
        if isinstance(divisor, int) and (extent + (divisor - 1)) // divisor == chunk:
            return divisor
    return None


def _points_of(chunk: Extent, row_points: Extent) -> int | None:
    """Return the number of points for which `rows_with` gives ``chunk``; None if there is none."""
    for quotient in _quotients(chunk):
        points = quotient.numerator
        if isinstance(points, int) and rows_with(points, row_points) == chunk:
            return points
    return None


def _quotients(size: Extent) -> list[Quotient]:
    """Return the quotients that are terms of a size."""
    terms = size.terms if isinstance(size, Size) else ()
    atoms = [m[0] for m, count in terms if len(m) == 1 and count == 1]
    return [a for a in atoms if isinstance(a, Quotient)]


def split_of(template: ValueTemplate, value: ValueLoops) -> Split:
    """Return the split of the result of a value that a template describes."""
    is_row = split_kind_of(template, value) is SplitKind.ROW
    grid = [d for d in distributable_loops(value) if template.part(d, Level.GRID) is not None]
    if not grid:
        return Split(0, value.result_shape[0], SplitKind.ROW)
    d = grid[-1 if is_row else 0]
    part = template.part(d, Level.GRID)
    assert part is not None
    chunk = part.steps(value.extents[d])
    kind = SplitKind.ROW if is_row else SplitKind.COLUMN
    return Split(value.result_loops.index(d), 1 if chunk == 0 else chunk, kind)


def tile_sizes_of(
    template: ValueTemplate, value: ValueLoops, composition: Composition
) -> tuple[Extent, Extent | None]:
    """Return the chunk and the width of tiles that a template of a single-nest kernel describes.

    Args:
        template: the template of a value that has all loops of the kernel.
        value: the loops.
        composition: the composition of the kernel.

    Returns: the chunk of the split, and the points along the vector axis, None for all.
    """
    sizes: dict[LoopKind, Extent] = {}
    for d, (kind, extent) in enumerate(zip(value.kinds, value.extents, strict=True)):
        part = template.part(d, Level.GRID)
        if part is not None:
            sizes[kind] = _at_most(part.steps(extent, value.row_points), extent)
        elif kind is not LoopKind.REDUCED:
            sizes[kind] = extent
    last = sizes[LoopKind.LAST]
    if composition is Composition.COLUMN:
        return 1, last
    if composition is Composition.NARROW:
        return sizes[LoopKind.TILED], sizes[LoopKind.TILED]
    if composition is Composition.BLOCK:
        tiled = value.extents[value.kinds.index(LoopKind.TILED)]
        return tiled if at_least(BLOCK, tiled) else sizes[LoopKind.TILED], last
    if composition is Composition.THREAD and len(value.kinds) == 1:
        return last, last
    return sizes.get(LoopKind.ROWS, sizes.get(LoopKind.TILED, 1)), None


def _at_most(chunk: Extent, extent: Extent) -> Extent:
    """Return a chunk that is no longer than its loop, so that equal tiles have equal sizes."""
    if isinstance(chunk, int) and isinstance(extent, int):
        return min(chunk, max(extent, 1))
    return chunk
