"""Stages in C: their loops, and what stands around the lanes."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from passkit.ast import Var, where
from passkit.ast.renaming import names_in
from passkit.ast.stage import Dot, Fold, Let, Level, Loop, Part, Running, Stage
from passkit.dialects.body import Body
from passkit.dialects.dots import print_dot
from passkit.dialects.folded_lanes import folds_inside, print_folded
from passkit.dialects.lane_loop import LaneLoop
from passkit.dialects.pairs import Pairs, bundle_of, pairs_of
from passkit.dialects.rows import Rows
from passkit.dialects.vector_printer import VectorPrinter
from passkit.transforms.fuse_stages import fused_stages
from passkit.transforms.vector_stages import StageVectorizer, has_vector_form


def print_stage(stage: Stage | Dot, body: Body) -> None:
    """Add a stage to the body of its kernel."""
    if stage.waits:
        body.wait()
    if isinstance(stage, Dot):
        print_dot(stage, body)
        return
    if body.dialect.vectors is not None and has_vector_form(stage, body.scalars.registers):
        _print_vector_form(stage, body)
        return
    body.scalars.positions.update(x.var.name for x in stage.loops)
    loops = [x for x in stage.loops if x.level is Level.WARP]
    front, v = len(body.lines), body.dialect.vectors
    by_row, body.by_row = body.by_row, body.by_row or bool(loops)
    rows = Rows(loops[0], body.scalars, v.rows) if v is not None and loops else None
    pairs = None if v is None or rows is None else pairs_of(stage, rows, v.pairs)
    if pairs is not None:
        body.open(pairs.opening())
    else:
        for x in loops:  # a row takes its own rows one after the other
            body.loop(body.dialect.thread if by_row else body.dialect.warp, x)
    _print_body(stage, loops, front, body, rows, pairs)
    body.by_row = by_row


def _print_vector_form(stage: Stage, body: Body) -> None:
    """Print a stage by its statements in vector form."""
    vectors = body.dialect.vectors
    assert vectors is not None
    body.scalars.positions.update(x.var.name for x in stage.loops)
    vectorizer = StageVectorizer(body.num_divisors, bool(vectors.fixed), bool(vectors.columns))
    VectorPrinter(body).print(vectorizer.statements(stage))
    body.num_divisors = vectorizer.num_divisors


def print_fused(part: Part, parts: Sequence[Part], body: Body) -> bool:
    """Print the stages of a part as one vector loop; return False where they cannot be that.

    ``parts`` are all parts of its tile.
    """
    vectors = body.dialect.vectors
    if vectors is None or body.aliased:
        return False
    fused = fused_stages(part, parts, {b: body.dtypes[b] for b in body.scalars.scratch})
    if fused is None:
        return False
    vectorizer = StageVectorizer(body.num_divisors, bool(vectors.fixed), bool(vectors.columns))
    VectorPrinter(body).print(vectorizer.fused(fused))
    body.num_divisors = vectorizer.num_divisors
    return True


def print_bundles(part: Part, body: Body) -> bool:
    """Print the rows of a part, several at a time; False where they cannot be taken so."""
    v, loop = body.dialect.vectors, part.rows
    if v is None or loop is None or loop.limit is None or part.row_lets or len(part.stages) != 1:
        return False
    stage = part.stages[0]
    if isinstance(stage, Dot) or len(stage.loops) != 1 or stage.loops[0].level is not Level.CTA:
        return False
    names = set(names_in(stage))
    if not names.isdisjoint([*body.scalars.scratch, *body.scalars.registers]):
        return False
    end = Var(f"{loop.var.name}_end", loop.var.dtype)
    rows = Rows(evolve(loop, stop=end, limit=None), body.scalars, v.rows)
    whole = evolve(stage, loops=(rows.loop, *stage.loops))
    bundle = bundle_of(whole, rows, v.pairs)
    if bundle is None:
        return False
    body.let(Let(end, where(loop.stop < loop.limit, loop.stop, loop.limit)))
    body.scalars.positions.update((loop.var.name, stage.loops[0].var.name))
    front = len(body.lines)
    body.open(bundle.opening())
    _print_body(whole, [rows.loop], front, body, rows, bundle)
    return True


def _print_body(
    stage: Stage, loops: list[Loop], front: int, body: Body, rows: Rows | None, pairs: Pairs | None
) -> None:
    """A stage in its loops over rows, which begin at the line ``front``."""
    lane = next((x for x in stage.loops if x.level is Level.CTA), None)
    begin = len(body.lines)
    if body.aliased and lane is not None:  # what is loaded may be for one lane alone: see `varying`
        stage = evolve(stage, before=(), body=(*stage.before, *stage.body))
    for let in stage.before:
        body.let(let)
    if lane is None:
        for s in stage.body:
            body.statement(s)
        for _ in loops:
            body.close()
        return
    loop = LaneLoop(stage, lane, body, rows if pairs is None else pairs.rows, pairs)
    _print_lanes(stage, loop, body)
    if rows is not None:  # what its divisors fetched is already theirs
        unused = [s.var for s in stage.body if isinstance(s, Let)]
        unused += [] if pairs is None else [v for s in pairs.values for v in pairs.locals(s)]
        body.drop_unused(unused, begin)
    for _ in loops:
        body.close("}" if pairs is None else pairs.templates.end)
    body.insert(front, loop.in_front)
    for text in loop.behind:
        body.line(text)


def _print_lanes(stage: Stage, loop: LaneLoop, body: Body) -> None:
    """The loops of a stage, between the beginnings of its folds and their results."""
    folds = [s for s in stage.body if isinstance(s, Fold)]
    serial = [x for x in stage.loops if x.level is Level.THREAD]
    if folds_inside(loop, serial):
        print_folded(loop, serial)
        for store in stage.after:
            body.store_once(store)
        return
    for f in folds:
        loop.begin(f)
    scans = [s for s in stage.body if isinstance(s, Running)]
    for s in scans:
        loop.begin_scan(s)
    for x in serial:
        body.loop(body.dialect.thread_down if x.down else body.dialect.thread, x)
    loop.print(stage.body)
    for _ in serial:
        body.close()
    for f in folds:
        loop.finish(f)
    for store in stage.after:
        if store not in loop.totals.values():
            body.store_once(store)
