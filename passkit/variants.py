"""Variants: the templates that a group has, and how templates and splits say the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from passkit.nest import Nest
from passkit.sharing import Work
from passkit.size import Extent, Quotient, Shape, Size, divide_exactly, numel
from passkit.split import Split, SplitKind
from passkit.stage import Level
from passkit.template import WARP_SIZE, Attr, NestPlan, Part, Template

MOST = 24
"""Templates a group has at most."""
SIZES = (256, 128, 512)
"""Threads of a block, the first choice first."""
SHORT, LONG = 32, 512
"""A fold of up to SHORT elements is best left to a thread, one of up to LONG to a warp."""


def split_of(stage: NestPlan, nest: Nest) -> Split:
    """The split of a value's result that a template says."""
    row = stage.kind is SplitKind.ROW
    if not stage.grid:
        return Split(0, nest.result[0], SplitKind.ROW)
    d = stage.grid[-1 if row else 0]
    part = stage.part(d, Level.GRID)
    assert part is not None
    chunk = part.steps(nest.dims[d])
    return Split(nest.axes.index(d), 1 if chunk == 0 else chunk, stage.kind)


def splits_of(template: Template, nests: Sequence[Nest]) -> tuple[Split, ...]:
    """The split of each nest's result, in the order of the nests; the template must fit them."""
    stages = {stage.name: stage for stage in template.stages}
    return tuple(split_of(stages[nest.name], nest) for nest in nests)


def grid_of(split: Split, nest: Nest) -> dict[int, Part] | None:
    """What blocks take of each loop, if a split of the result can be said in a template.

    It cannot where blocks would share a fold, or a chunk depends on sizes that only a call knows.
    Pieces are counted where that says the same: of 10 steps pieces of 6 are two, but two have 5.
    """
    if not nest.axes:
        return {}  # a scalar has one block
    found = _grid(split, nest)
    turned = _turned(split, nest.result) if found is None else None
    return _grid(turned, nest) if turned is not None else found


def _turned(split: Split, shape: Shape) -> Split | None:
    """The same blocks in the other kind, where there is one: all single elements, or one line."""
    d, row = split.split_dim, split.kind is SplitKind.ROW
    other = SplitKind.COLUMN if row else SplitKind.ROW
    inward = shape[d + 1 :] if row else shape[:d]
    if numel(shape[:d]) == 1 and numel(shape[d + 1 :]) == 1:
        return Split(d, split.chunk, other)
    if split.chunk == 1 and numel(inward) == 1:
        return Split(0 if row else len(shape) - 1, 1, other)
    return None


def _grid(split: Split, nest: Nest) -> dict[int, Part] | None:
    row = split.kind is SplitKind.ROW
    last = nest.axes[split.split_dim]
    dims = nest.axes[: split.split_dim + 1] if row else nest.axes[split.split_dim :][::-1]
    # With keepdims a folded loop is a dimension of extent 1, of which nothing is to be shared out.
    parts = {d: Part(Level.GRID) for d in dims if d not in nest.folded}
    if last in parts and split.chunk != 1:
        pieces = pieces_of(nest.dims[last], split.chunk)
        if pieces is not None and pieces <= 1:
            del parts[last]
        elif pieces is not None:
            parts[last] = Part(Level.GRID, pieces)
        elif isinstance(split.chunk, int):
            parts[last] = Part(Level.GRID, chunk=split.chunk)
        else:
            return None
    outward = range(len(nest.dims)) if row else range(len(nest.dims) - 1, -1, -1)
    if list(parts) != list(outward)[: len(parts)] or not parts.keys().isdisjoint(nest.whole):
        return None
    return parts


def pieces_of(extent: Extent, chunk: Extent) -> int | None:
    """The number n for which ``ceil(extent / n)`` is ``chunk``, None where there is none."""
    if isinstance(extent, int) and isinstance(chunk, int):
        pieces = -(-extent // chunk)
        return pieces if pieces <= 1 or -(-extent // pieces) == chunk else None
    exact = divide_exactly(extent, chunk)
    if isinstance(exact, int):
        return exact
    for monomial, count in chunk.terms if isinstance(chunk, Size) else ():
        atom = monomial[0] if len(monomial) == 1 and count == 1 else None
        if isinstance(atom, Quotient) and isinstance(atom.denominator, int):
            found = atom.denominator
            return found if (extent + (found - 1)) // found == chunk else None
    return None


def blocks(split: Split, shape: Shape) -> Extent:
    """How many blocks a split makes of a result."""
    d = split.split_dim
    others = shape[:d] if split.kind is SplitKind.ROW else shape[d + 1 :]
    return numel(others) * split.sword(shape[d])


def composition(stage: NestPlan, nest: Nest) -> Level:
    """Who works on a row together: one thread, the threads of a warp, or those of the block (CTA).

    A row is what is folded to one element; of elementwise values what lies along the last loop.
    """
    inner = _inner(nest)
    if any(stage.part(d, Level.WARP) for d in inner):
        return Level.CTA
    if not any(stage.part(d, Level.CTA) for d in inner):
        return Level.THREAD
    warps = any(stage.part(d, Level.WARP) for d in range(len(nest.dims)))
    return Level.WARP if warps else Level.CTA


def plans(nest: Nest, split: Split, cta_size: int) -> tuple[NestPlan, ...]:
    """The ways to deal out a nest of which blocks have the parts of ``split``, the best first.

    Light elementwise values have one. Others have three, where there is something to choose: an
    element, or a row of an expensive elementwise value, is left to a thread, a warp or the block.
    """
    grid = grid_of(split, nest)
    if grid is None:
        return ()
    found: dict[tuple[Attr, ...], None] = {}
    for level in _order(nest, split):
        attrs = _attrs(nest, grid, level, cta_size)
        if attrs is not None:
            found[attrs] = None
    return tuple(NestPlan(nest.name, attrs, nest.shared) for attrs in found)


def _inner(nest: Nest) -> tuple[int, ...]:
    """The loops that a thread, a warp or a block goes through together."""
    elementwise = nest.work not in (Work.REDUCE, Work.DOT)
    return nest.whole or ((len(nest.dims) - 1,) if elementwise else ())


def _order(nest: Nest, split: Split) -> tuple[Level, ...]:
    """Who had best work on a row: by its length; columns side by side are left to threads."""
    if nest.work in (Work.FREE, Work.LIGHT) and not nest.scanned:
        return (Level.CTA,)
    if split.kind is SplitKind.COLUMN:
        return (Level.THREAD, Level.WARP, Level.CTA)
    if not nest.whole:
        return (Level.CTA, Level.WARP, Level.THREAD)
    length = prod(nest.dims[d] for d in nest.whole)
    if isinstance(length, int) and length <= SHORT:
        return (Level.THREAD, Level.WARP, Level.CTA)
    if isinstance(length, int) and length <= LONG:
        return (Level.WARP, Level.CTA, Level.THREAD)
    return (Level.CTA, Level.WARP, Level.THREAD)


def _attrs(
    nest: Nest, grid: dict[int, Part], level: Level, cta_size: int
) -> tuple[Attr, ...] | None:
    """One attribute a loop, so that ``level`` works on each row; None where a block has one row."""
    if grid and 0 not in grid:
        return _columns(nest, grid, level, cta_size)
    inner = _inner(nest)
    whole = [d for d in range(len(nest.dims)) if d not in grid]
    rows = [d for d in whole if d not in inner]
    cut = next((d for d, part in grid.items() if part.numbered), None)
    one_row = not rows and cut is None
    if level is not Level.CTA and (one_row or grid.keys() >= {*inner}):
        return None
    across, along = {
        Level.THREAD: (Level.CTA, Level.THREAD),
        Level.WARP: (Level.WARP, Level.CTA),
        Level.CTA: (Level.THREAD if nest.whole else Level.CTA, Level.CTA),
    }[level]
    attrs: dict[int, Attr] = {d: (Part(along if d in inner else across),) for d in whole}
    attrs |= {d: (part,) for d, part in grid.items()}
    if cut is not None and not rows and across is not Level.THREAD:
        width = cta_size // WARP_SIZE if across is Level.WARP else cta_size
        attrs[cut] = _cut(grid[cut], across, nest.dims[cut], width)
    return tuple(attrs[d] for d in range(len(nest.dims)))


def _columns(
    nest: Nest, grid: dict[int, Part], level: Level, cta_size: int
) -> tuple[Attr, ...] | None:
    """The same where blocks have columns: threads lie side by side, warps one below the other."""
    level = level if nest.whole else Level.WARP
    cut = next((d for d, part in grid.items() if part.numbered), None)
    if cut is None and level is Level.THREAD:
        return None
    other = Level.THREAD if level is Level.CTA else Level.CTA
    attrs: dict[int, Attr] = {d: (part,) for d, part in grid.items()}
    for d in range(len(nest.dims)):
        if d not in grid:
            attrs[d] = (Part(level if d in nest.whole or not nest.whole else other),)
    if cut is not None and level is not Level.CTA:
        width = WARP_SIZE if level is Level.WARP else cta_size
        attrs[cut] = _cut(grid[cut], Level.CTA, nest.dims[cut], width)
    return tuple(attrs[d] for d in range(len(nest.dims)))


def _cut(grid: Part, level: Level, extent: Extent, most: int) -> Attr:
    """A loop that is cut for blocks and again for what is in a block."""
    chunk = grid.steps(extent)
    return (grid, Part(level, min(chunk, most) if isinstance(chunk, int) else most))


def templates(
    nests: Sequence[Nest],
    splits: Sequence[Sequence[Split]] | None = None,
    most_blocks: int | None = None,
    most: int = MOST,
) -> tuple[Template, ...]:
    """At most so many templates of a group, the likely best first, in a fixed order.

    ``splits`` are the ways to share the group out over blocks, each with one split a nest; without,
    they are `default_splits`. Nests that work alike are dealt out alike, and first all of them in
    the way that suits each best, then one after another in another. Of more than ``most_blocks``
    pieces a block takes several.
    """
    ranked: dict[Template, int] = {}
    for (i, way), (j, size) in product(
        enumerate(default_splits(nests) if splits is None else splits), enumerate(SIZES)
    ):
        number = blocks_of(nests, way)
        if number is None or number == 0:
            continue  # blocks that do not agree, or nothing to do
        if most_blocks is not None and isinstance(number, int):
            number = min(number, most_blocks)
        for k, stages in enumerate(_choices(nests, way, size)):
            if k >= most:
                break
            found = Template(stages, number, size)
            ranked[found] = min(ranked.get(found, i + j + k), i + j + k)
    return tuple(sorted(ranked, key=lambda t: ranked[t]))[:most]


def _choices(
    nests: Sequence[Nest], splits: Sequence[Split], size: int
) -> Iterator[tuple[NestPlan, ...]]:
    """First the best of each, then one alternative for all that work alike, then single ones."""
    ways = [plans(nest, split, size) for nest, split in zip(nests, splits, strict=True)]
    if not all(ways):
        return
    alike = [(n.dims, n.folded, n.scanned, n.work, s) for n, s in zip(nests, splits, strict=True)]
    yield tuple(w[0] for w in ways)
    for wanted in (Level.THREAD, Level.WARP, Level.CTA):
        yield tuple(
            next((p for p in w if composition(p, n) is wanted), w[0])
            for n, w in zip(nests, ways, strict=True)
        )
    for kind in dict.fromkeys(alike):
        for k in range(1, max(len(w) for w, a in zip(ways, alike, strict=True) if a == kind)):
            yield tuple(w[k] if a == kind else w[0] for w, a in zip(ways, alike, strict=True))


def blocks_of(nests: Sequence[Nest], splits: Sequence[Split]) -> Extent | None:
    """The number of blocks of a group; None where its nests do not agree on one.

    Values that nothing in the group reads need not agree: unless they do, each has its own blocks.
    """
    numbers = [blocks(s, n.result) for n, s in zip(nests, splits, strict=True)]
    if len(dict.fromkeys(numbers)) == 1:
        return numbers[0]
    return None if any(n.shared for n in nests) else sum(numbers)


CHUNKS = (1, 8, 256)
"""Rows of a block: one, one a warp, one a thread."""
POINTS = (1024, 256, 4096)
"""Elements of a block that folds nothing."""
COLUMNS = (32, 128, 512)
"""Columns of a block that folds columns."""


def default_splits(nests: Sequence[Nest]) -> tuple[tuple[Split, ...], ...]:
    """Ways to share a group out over blocks where nothing better is known, one split a nest.

    Rows: along the first loops that all nests have and none folds. Columns: along the last such
    loop. Else one block. Values that nothing in the group reads are each on their own.
    """
    if not any(n.shared for n in nests):
        own = [_common_splits([nest]) for nest in nests]
        longest = max(map(len, own))
        return tuple(tuple(o[min(k, len(o) - 1)][0] for o in own) for k in range(longest))
    return _common_splits(nests)


def _common_splits(nests: Sequence[Nest]) -> tuple[tuple[Split, ...], ...]:
    rows = _shared_loops(nests, outward=range(min(len(n.dims) for n in nests)))
    found: list[tuple[Split, ...]] = []
    if rows:
        d, extent = rows - 1, nests[0].dims[rows - 1]
        for chunk in _chunks(extent, _likely_rows(nests, rows)):
            found.append(tuple(Split(n.axes.index(d), chunk, SplitKind.ROW) for n in nests))
    else:
        last = [len(n.dims) - 1 for n in nests]
        extents = dict.fromkeys(n.dims[d] for n, d in zip(nests, last, strict=True))
        if len(extents) == 1 and not any(d in n.whole for n, d in zip(nests, last, strict=True)):
            for chunk in _chunks(next(iter(extents)), COLUMNS):
                ends = (Split(len(n.axes) - 1, chunk, SplitKind.COLUMN) for n in nests)
                found.append(tuple(ends))
    whole = tuple(Split(0, n.result[0], SplitKind.ROW) for n in nests)
    return tuple(dict.fromkeys([*found, *([] if found else [whole])]))


def _shared_loops(nests: Sequence[Nest], outward: range) -> int:
    """How many first loops all nests have and none folds; of a dot only those of its batch."""
    for d in outward:
        extents = dict.fromkeys(n.dims[d] for n in nests)
        limits = (len(n.dims) - 3 if n.work is Work.DOT else len(n.dims) for n in nests)
        if len(extents) > 1 or any(d in n.whole for n in nests) or d >= min(limits):
            return d
    return len(outward)


def _likely_rows(nests: Sequence[Nest], loops: int) -> tuple[int, ...]:
    """What a block takes of the last of so many loops, best first.

    As many rows as it has threads where they are short, or warps, or one; one of what has rows in
    it, such as a matrix.
    """
    folding = [n for n in nests if n.whole]
    if not folding:
        return POINTS
    if any(d >= loops for n in folding for d in n.kept if d not in n.scanned):
        return CHUNKS
    longest = [prod(n.dims[d] for d in n.whole) for n in folding]
    if all(isinstance(n, int) and n <= SHORT for n in longest):
        return CHUNKS[::-1]
    if all(isinstance(n, int) and n <= LONG for n in longest):
        return (8, 1, 256)
    return CHUNKS


def _chunks(extent: Extent, wanted: Sequence[int]) -> tuple[Extent, ...]:
    """Chunks of about the wanted sizes, as equal as can be."""
    if not isinstance(extent, int):
        return tuple(wanted)
    pieces = [max(1, -(-extent // chunk)) for chunk in wanted]
    return tuple(dict.fromkeys(max(1, -(-extent // n)) for n in pieces))
