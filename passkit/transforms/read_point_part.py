"""The parts of a stitched kernel whose points each belong to a thread, read from their statements.

They reduce along another axis than the one that threads lie along, or have blocks of two axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from attrs import evolve

from passkit.ast import Binary, Const, Expr, Var
from passkit.ast.index import Known, Sum
from passkit.ast.stage import Fold, Let, Level, Loop, Part, Running, Stage, Statement, Store
from passkit.diagnostics import Diagnostic
from passkit.ir.index import with_literals
from passkit.ir.rewrite import substitute
from passkit.schedule.block_nest import ROW, PointPart
from passkit.transforms.block_coordinates import ZERO, BlockCoordinates, Window, ends_of
from passkit.transforms.part_stages import (
    accesses_of_part,
    depends_on_data,
    is_of_its_thread,
    part_stages,
    reads_of,
)
from passkit.values import dtype as dt
from passkit.values.size import Extent


def read_point_part(
    number: int,
    part: Part,
    stages: tuple[Stage, ...],
    names: Mapping[str, Expr],
    tile: BlockCoordinates,
    axes: Mapping[str, Extent],
) -> PointPart | Diagnostic:
    """Return a part whose points are shared out over threads, or why there is no schedule of it.

    Args:
        number: the number of the part.
        part: the part.
        stages: its stages, each with one loop over threads.
        names: what stands for its variables.
        tile: the coordinates of the tile.
        axes: the extents of the axes of its iteration domain, by the names of their variables.
    """
    lanes = [x for s in stages for x in s.loops if x.level is Level.CTA]
    others = [x for s in stages for x in s.loops if x.level is not Level.CTA]
    is_plain = len(lanes) == len(stages) and not any(s.after for s in stages)
    if not is_plain or any(x.level is not Level.THREAD or x.down for x in others):
        return Diagnostic("block.order")
    axis = lanes[0].var
    rows, columns, values = _windows(part, lanes, names, tile)
    if rows is None or columns is None:
        return Diagnostic("block.rows")
    extents = Known(((axis.name, columns.rows),))
    changed = tuple(map(_without_lanes, part_stages(number, stages, values, extents)))
    statements = [s for x in changed for s in (*x.before, *x.body)]
    if any(
        isinstance(s, Running) or (isinstance(s, Fold) and s.buffer is None) for s in statements
    ):
        return Diagnostic("block.order")
    accesses = list(accesses_of_part(statements, tile))
    accesses += [
        (s.buffer, tile.sum(s.index))
        for s in statements
        if isinstance(s, Fold) and s.buffer is not None and s.index is not None
    ]
    result = PointPart(
        stages=changed,
        rows=rows.rows,
        bound=rows.bound,
        axis=axis,
        columns=columns.rows,
        column_bound=columns.bound,
        length=axes[axis.name],
        reads=reads_of(statements),
        writes=frozenset(s.buffer for s in statements if isinstance(s, Store)),
        scattered=frozenset(b for b, _ in accesses if b in tile.place),
        steps=_shared_steps(changed),
    )
    serial = {x.var for s in changed for x in s.loops}
    return _unsafe_access(statements, accesses, serial, tile) or result


def _windows(
    part: Part, lanes: Sequence[Loop], names: Mapping[str, Expr], tile: BlockCoordinates
) -> tuple[Window | None, Window | None, dict[str, Expr]]:
    """Return the rows and columns of a part's points, and what stands for its variables.

    The arguments are those of `read_point_part`; ``lanes`` are the loops over threads. A window is
    None where the loops differ, or where the number of rows or columns is not known.
    """
    axis, ends = lanes[0].var, [ends_of(x, names) for x in lanes]
    if any(e != ends[0] for e in ends) or any(x.var != axis or x.limit for x in lanes):
        return None, None, {}
    values = dict(names)
    rows: Window | Diagnostic = Window(ZERO, 1, None)
    if part.rows is not None:
        first, last = ends_of(part.rows, names)
        rows = tile.window(first, last)
        values[part.rows.var.name] = Binary("+", first, ROW, dt.int64)
    columns = tile.window(*ends[0])
    if isinstance(rows, Diagnostic) or isinstance(columns, Diagnostic):
        return None, None, {}
    if not tile.is_zero(columns.first):
        values[axis.name] = Binary("+", columns.first, axis, dt.int64)
    for let in part.row_lets:
        values[let.var.name] = with_literals(substitute(let.value, values))
    if not rows.rows or not columns.rows:
        return None, None, {}
    return rows, columns, values


def _shared_steps(stages: Sequence[Stage]) -> int:
    """Return the iterations of each stage's serial loop that threads may share out; 0 for none.

    Such loops are alike, of known length, and reduce. No output is read again: another thread of
    the point may have stored it.
    """
    statements = [s for x in stages for s in x.body]
    outputs = {s.buffer for s in statements if isinstance(s, Store) and s.buffer.startswith("y")}
    loops = [s.loops for s in stages if s.loops]
    has_stores = any(isinstance(s, Store) for x in stages if x.loops for s in x.body)
    if has_stores or any(len(x) > 1 for x in loops) or not outputs.isdisjoint(reads_of(statements)):
        return 0
    lengths = {_length(x) for (x,) in loops}
    return lengths.pop() if len(lengths) == 1 else 0


def _length(loop: Loop) -> int:
    """Return the number of iterations of a loop; 0 if it is not known."""
    is_known = isinstance(loop.start, Const) and isinstance(loop.stop, Const) and not loop.limit
    return int(loop.stop.value) - int(loop.start.value) if is_known else 0  # type: ignore[attr-defined]


def _without_lanes(stage: Stage) -> Stage:
    """Return a stage without its loop over threads."""
    return evolve(stage, loops=tuple(x for x in stage.loops if x.level is not Level.CTA))


def _unsafe_access(
    statements: Sequence[Statement],
    accesses: Sequence[tuple[str, Sum]],
    serial: Set[Var],
    tile: BlockCoordinates,
) -> Diagnostic | None:
    """Return a diagnostic of a buffer that threads would meet in; None if there is none.

    An array of the part itself has one element for each thread.

    Args:
        statements: the statements of the part.
        accesses: the buffers and indices of its accesses.
        serial: the variables of its serial loops.
        tile: the coordinates of the tile.
    """
    params = {b for b, _ in accesses if b[0] in "xy"}
    written: dict[str, set[Sum]] = {}
    own: dict[str, Sum] = {}
    for s in statements:
        if isinstance(s, Store) and s.buffer in tile.place:
            written.setdefault(s.buffer, set()).add(tile.sum(s.index))
    computed: set[Var] = {s.var for s in statements if isinstance(s, (Let, Fold))}
    for buffer, index in accesses:
        if buffer in tile.place:
            is_safe = is_of_its_thread(buffer, index, written, computed)
        else:
            is_one = not depends_on_data(index, serial | computed)
            is_one = is_one and own.setdefault(buffer, index) == index
            is_safe = buffer in params or is_one
        if not is_safe:
            return Diagnostic("block.access", {"buffer": buffer})
    return None
