"""The parts of a stitched kernel that go through rows, read from statements it is lowered to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from passkit.ast import Binary, Expr, Var
from passkit.ast.index import Known, Sum
from passkit.ast.stage import Fold, Let, Level, Part, Running, Stage, Statement, Store
from passkit.ast.tidy import loads_of
from passkit.diagnostics import Diagnostic
from passkit.ir.index import times, with_literals
from passkit.ir.loop import ACCESS_NBYTES
from passkit.ir.rewrite import substitute
from passkit.schedule.block_nest import ROW, VECTOR, RowPart
from passkit.transforms.block_coordinates import ZERO, BlockCoordinates, Window, ends_of
from passkit.transforms.part_stages import (
    accesses_of_part,
    is_of_its_thread,
    overwritten,
    part_stages,
    reads_of,
)
from passkit.values import dtype as dt


def read_row_part(
    number: int,
    part: Part,
    stages: tuple[Stage, ...],
    names: Mapping[str, Expr],
    tile: BlockCoordinates,
) -> RowPart | Diagnostic:
    """Return a part that goes through rows, or why there is no schedule of it.

    Args:
        number: the number of the part.
        part: the part.
        stages: its stages.
        names: what stands for its variables.
        tile: the coordinates of the tile.
    """
    lanes = [x for s in stages for x in s.loops if x.level is Level.CTA]
    serial = [x for s in stages for x in s.loops if x.level is not Level.CTA]
    if not lanes or not all(_has_rows(s) for s in stages):
        return Diagnostic("block.order")
    rows = _rows_of(part, stages, names, tile)
    if isinstance(rows, Diagnostic):
        return rows
    axis, extents = lanes[0].var, Known(((lanes[0].var.name, rows.length),))
    changed = part_stages(number, stages, rows.values, extents)
    statements = [s for x in changed for s in (*x.before, *x.body, *x.after)]
    for s in statements:
        if isinstance(s, Running) or (isinstance(s, Fold) and s.buffer is not None):
            return Diagnostic("block.order")
    if serial and any(isinstance(s, Store) and s.buffer.startswith("r") for s in statements):
        return Diagnostic("block.order")  # registers have no room for all of such a row
    accesses = list(accesses_of_part(statements, tile))
    stores = [(s.buffer, tile.sum(s.index)) for s in statements if isinstance(s, Store)]
    result = RowPart(
        stages=changed,
        rows=rows.window.rows,
        bound=rows.window.bound,
        axis=axis,
        length=rows.length,
        is_reduced=any(isinstance(s, Fold) for s in statements),
        vector=min(VECTOR, ACCESS_NBYTES // _widest(statements)),
        reads=reads_of(statements),
        writes=frozenset(b for b, _ in stores),
        wide=frozenset(b for b, at in accesses if b in tile.place and at.coefficient(axis) != 0),
        reach=_reach(statements, axis, rows.length, tile),
        partial=frozenset(b for b, at in stores if at.constant != 0),
        scattered=frozenset(),
        has_kept=any(b.startswith("r") for b, _ in stores),
    )
    written: dict[str, set[Sum]] = {}
    for buffer, at in stores:
        if buffer in tile.place:
            written.setdefault(buffer, set()).add(at)
    pitches = {b: 0 if rows.is_single else max(n, 1) for b, n in tile.length_of.items()}
    scattered: set[str] = set()
    computed: set[Var] = {s.var for s in statements if isinstance(s, (Let, Fold))}
    for buffer, index in (x for x in accesses if x[0] in tile.place):
        if not is_of_its_thread(buffer, index, written, computed):
            return Diagnostic("block.access", {"buffer": buffer})
        others = overwritten(buffer, index, written, tile)
        scattered |= others
        if others or not _is_in_row(result, index, tile.length_of[buffer], pitches[buffer]):
            scattered.add(buffer)
    return evolve(result, scattered=frozenset(scattered))


def _has_rows(stage: Stage) -> bool:
    """Return whether a stage has at most a loop along the row, inside of serial ones."""
    *outer, last = stage.loops or (None,)
    return last is None or (
        last.level is Level.CTA and all(x.level is Level.THREAD and not x.down for x in outer)
    )


@frozen(eq=False)
class _Rows:
    """The rows of a part.

    Attributes:
        window: those of a tile.
        length: the elements of a row.
        is_single: whether a tile has one row, so that no index depends on it.
        values: what stands for the variables of the part.
    """

    window: Window
    length: int
    is_single: bool
    values: Mapping[str, Expr]


def _rows_of(
    part: Part, stages: Sequence[Stage], names: Mapping[str, Expr], tile: BlockCoordinates
) -> _Rows | Diagnostic:
    """Return the rows of a part, whose stages have a loop each; or that there are none.

    The arguments are those of `read_row_part`.
    """
    loops = [x for s in stages for x in s.loops if x.level is Level.CTA]
    is_plain = all(len(s.loops) < 2 for s in stages)
    axis, problem = loops[0].var, Diagnostic("block.rows")
    ends = [ends_of(x, names) for x in loops]
    along = tile.window(*ends[0])
    if any(e != ends[0] for e in ends) or any(x.var != axis for x in loops):
        return problem
    if isinstance(along, Diagnostic) or along.bound is not None:
        return problem  # of unequal rows, or the last tile has fewer elements of one
    length = along.rows
    values = dict(names)
    window: Window | Diagnostic = Window(ZERO, 1, None)
    flat = 0
    if part.rows is None and is_plain:
        flat = _flat_length(stages, along.rows, tile)
    if part.rows is not None:
        first, last = ends_of(part.rows, names)
        window = tile.window(first, last)
        values[part.rows.var.name] = Binary("+", first, ROW, dt.int64)
        if not tile.is_zero(along.first):
            return problem
    elif flat:
        length, window = flat, Window(along.first, along.rows // flat, None)
        row = Binary("+", along.first, times(ROW, flat), dt.int64)
        values[axis.name] = Binary("+", row, axis, dt.int64)
    elif not tile.is_zero(along.first):  # a tile has a part of the row
        values[axis.name] = Binary("+", along.first, axis, dt.int64)
    if isinstance(window, Diagnostic) or not length or not window.rows:
        return problem
    for let in part.row_lets:
        values[let.var.name] = with_literals(substitute(let.value, values))
    return _Rows(window, length, part.rows is None and not flat, values)


def _flat_length(stages: Sequence[Stage], count: int, tile: BlockCoordinates) -> int:
    """Return the length of rows that a part goes through as one; 0 if it does not.

    It is that of a value in shared memory. ``count`` are the elements of all rows.
    """
    statements = [s for x in stages for s in x.body]
    if any(not isinstance(s, (Let, Store)) for s in statements):
        return 0  # what is reduced is all of it
    buffers = reads_of(statements) | {s.buffer for s in statements if isinstance(s, Store)}
    lengths = {tile.length_of[b] for b in buffers if b in tile.length_of}
    length = lengths.pop() if len(lengths) == 1 else 0
    return length if length and count % length == 0 and count > length else 0


def _is_in_row(part: RowPart, index: Sum, length: int, pitch: int) -> bool:
    """Return whether an index of shared memory is that of an element of the own row.

    Args:
        part: the part.
        index: the index.
        length: the elements of a row of the array; 0 for a value of each row.
        pitch: the distance of rows.
    """
    last = index.constant
    if not isinstance(last, int) or any(not isinstance(c, int) for _, c in index.terms):
        return False
    step = index.coefficient(part.axis)
    is_even = step in (0, 1) and (part.rows == 1 or index.coefficient(ROW) == pitch)
    if not is_even or any(atom not in (ROW, part.axis) for atom, _ in index.terms):
        return False
    return 0 <= last < last + (part.length if step else 1) <= max(length, 1)


def _reach(
    statements: Sequence[Statement], axis: Var, length: int, tile: BlockCoordinates
) -> dict[str, int]:
    """Return for arrays in shared memory the elements of a row up to the last one that is read.

    ``length`` are the elements of a row along ``axis``.
    """
    reach: dict[str, int] = {}
    for load in (x for x in loads_of(statements) if x.buffer in tile.place):
        at = tile.sum(load.index)
        if isinstance(at.constant, int):
            last = at.constant + (length if at.coefficient(axis) != 0 else 1)
            reach[load.buffer] = max(reach.get(load.buffer, 0), last)
    return reach


def _widest(statements: Sequence[Statement]) -> int:
    """Return the bytes of the widest element that statements load or store."""
    dtypes = [x.dtype for x in loads_of(statements)]
    dtypes += [s.value.dtype for s in statements if isinstance(s, Store)]
    return max((dtype.nbytes for dtype in dtypes), default=1)
