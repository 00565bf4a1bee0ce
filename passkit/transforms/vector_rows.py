"""Loops over rows of a tile around vector loops, with what is done for many rows at once.

`pack_rows` decides how many rows an iteration has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve

from passkit.ast import (
    Var,
    where,
)
from passkit.ast.renaming import names_in
from passkit.ast.stage import (
    Fold,
    Let,
    Level,
    Loop,
    Part,
    Running,
    Stage,
    Store,
)
from passkit.ir.loop import LetStmt, StoreStmt
from passkit.ir.vector import (
    Accumulator,
    BeginRow,
    EndRow,
    Finish,
    LoadRowValues,
    PrepareReciprocal,
    RowGroup,
    RowReciprocal,
    RowReciprocals,
    RowResults,
    RowsFor,
    RowValues,
    StoreRowResults,
    VectorFor,
    VectorLet,
    VectorStmt,
    used_names,
)
from passkit.transforms.pack_rows import (
    RowGroups,
    RowTile,
    pairs_of_rows,
    whole_vectors_of_rows,
)
from passkit.transforms.partial_results import partial_name
from passkit.transforms.vector_loop import LoopVectorizer, scalar_statement
from passkit.transforms.vector_shape import (
    loop_shape,
)


def rows_of_stage(loops: LoopVectorizer, stage: Stage) -> list[VectorStmt]:
    """Return the loop over the rows of a stage, with what is done for all of them together."""
    (loop,) = [x for x in stage.loops if x.level is Level.WARP]
    tile = RowTile(loop, loops.shared, loops.features.width)
    return _row_loop(loops, stage, tile, pairs_of_rows(stage, tile))


def rows_of_part(loops: LoopVectorizer, part: Part) -> list[VectorStmt] | None:
    """Return the rows of a part in groups of whole vectors; None where they cannot be that."""
    loop = part.rows
    if loop is None or loop.limit is None or part.row_lets or len(part.stages) != 1:
        return None
    (stage,) = part.stages
    if not isinstance(stage, Stage) or [x.level for x in stage.loops] != [Level.CTA]:
        return None
    if not set(names_in(stage)).isdisjoint([*loops.shared, *loops.registers]):
        return None
    end = Var(f"{loop.var.name}_end", loop.var.dtype)
    tile = RowTile(evolve(loop, stop=end, limit=None), loops.shared, loops.features.width)
    own = evolve(stage, loops=(tile.loop, *stage.loops))
    groups = whole_vectors_of_rows(own, tile)
    if groups is None:
        return None
    stop = LetStmt(end, where(loop.stop < loop.limit, loop.stop, loop.limit))
    return [stop, *_row_loop(loops, own, tile, groups)]


def _row_loop(
    loops: LoopVectorizer, stage: Stage, tile: RowTile, groups: RowGroups | None
) -> list[VectorStmt]:
    """Return the loop over the rows of a stage, in groups if there are any."""
    lane = next((x for x in stage.loops if x.level is Level.CTA), None)
    front: list[VectorStmt] = []
    behind: list[VectorStmt] = []
    body: list[VectorStmt] = [LetStmt(s.var, s.value) for s in stage.before]
    if lane is None:
        body += map(scalar_statement, stage.body)
    else:
        body += _row(loops, stage, lane, tile, groups, front, behind)
    body = without_unused(body, (s.var.name for s in stage.body if isinstance(s, Let)))
    group = RowGroup.ONE
    if groups is not None:
        group = RowGroup.ANY if groups.is_any_number else RowGroup.TWO
    loop = tile.loop
    rows = RowsFor(
        loop.var,
        loop.start,
        loop.stop,
        loop.limit,
        tile.count,
        group,
        0 if groups is None else groups.length,
        groups is not None and groups.is_even,
        tuple(body),
    )
    return [*front, rows, *behind]


def _row(
    loops: LoopVectorizer,
    stage: Stage,
    lane: Loop,
    tile: RowTile,
    groups: RowGroups | None,
    front: list[VectorStmt],
    behind: list[VectorStmt],
) -> list[VectorStmt]:
    """Return the statements of a row, or group of rows.

    What is done for all rows together is added to ``front``, what stands in front of their loop,
    and to ``behind``.
    """
    is_grouped, shape = groups is not None, loop_shape(stage, lane, loops.features)
    body: list[VectorStmt] = []
    ends: list[VectorStmt] = []
    results: list[Store] = []
    for s in stage.body:
        if isinstance(s, Running):
            body += loops.scan_beginning(s, stage, lane, shape)
        if not isinstance(s, Fold):
            continue
        beginning = loops.beginning(s, stage, lane, shape, sums_in_blocks=False)
        result = tile.result_of(s, stage.after)
        if result is None:
            body += beginning
            ends += [Finish(s.var, partial_name(s))] if s.buffer is None else []
            continue
        (accumulator,) = beginning
        assert isinstance(accumulator, Accumulator)
        max_rows, name = tile.places(result.buffer, result.index), s.var.name
        assert max_rows is not None
        results.append(result)
        front.append(RowResults(accumulator, name, max_rows, is_grouped))
        body.append(BeginRow(name, is_grouped))
        ends.append(EndRow(name, tile.row, is_grouped))
        behind.append(StoreRowResults(name, result.buffer, tile.count, is_grouped))
    points = loops.vector_loop(stage.body, stage, lane, shape, groups)
    body += _with_row_divisors(points, stage, tile, is_grouped, front)
    body += ends
    return [
        *body,
        *(StoreStmt(s.buffer, s.index, s.value) for s in stage.after if s not in results),
    ]


def _with_row_divisors(
    statements: Sequence[VectorStmt],
    stage: Stage,
    tile: RowTile,
    is_grouped: bool,
    front: list[VectorStmt],
) -> list[VectorStmt]:
    """Return statements in which divisors of rows are prepared for all rows in ``front``."""
    out: list[VectorStmt] = []
    for s in statements:
        load = None
        if isinstance(s, PrepareReciprocal):
            load = tile.prepared_load(s.value, stage.body)
        if load is None:
            out.append(s)
            continue
        assert isinstance(s, PrepareReciprocal)
        max_rows = tile.places(load.buffer, load.index)
        assert max_rows is not None
        front.append(
            RowReciprocals(s.name, load.dtype, max_rows, load.buffer, tile.count, is_grouped)
        )
        out.append(RowReciprocal(s.name, tile.row, is_grouped))
    return out


def without_unused(body: Sequence[VectorStmt], names: Iterable[str]) -> list[VectorStmt]:
    """Return the statements of a row without definitions of ``names`` that none of them uses.

    The loads of divisors that are prepared for all rows together are such.
    """
    unused = set(names) - set(used_names(body))
    out: list[VectorStmt] = []
    for s in body:
        if isinstance(s, VectorFor):
            inner = tuple(
                x
                for x in s.body
                if not isinstance(x, (VectorLet, RowValues)) or x.var.name not in unused
            )
            out.append(evolve(s, body=inner))
        elif not isinstance(s, (LetStmt, LoadRowValues)) or s.var.name not in unused:
            out.append(s)
    return out
