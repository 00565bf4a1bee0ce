"""Stages in C: vector loops in languages that have vectors, other loops elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import evolve

from passkit.ast.stage import Dot, Fold, Level, Part, Stage
from passkit.dialects.body import Body
from passkit.dialects.dots import print_dot
from passkit.dialects.folded_lanes import folds_inside, print_folded
from passkit.dialects.inner_loop import InnerLoop
from passkit.dialects.vector_printer import VectorPrinter
from passkit.errors import CodeGenError
from passkit.ir.vector import VectorStmt
from passkit.transforms.fuse_stages import fused_stages
from passkit.transforms.vector_rows import rows_of_part
from passkit.transforms.vector_stages import StageVectorizer


def print_stage(stage: Stage | Dot, body: Body) -> None:
    """Add a stage to the body of its kernel.

    Raises: CodeGenError for a dialect that has vectors and marks aliased buffers.
    """
    if stage.waits:
        body.wait()
    if isinstance(stage, Dot):
        print_dot(stage, body)
        return
    if body.dialect.vectors is not None:
        body.scalars.positions.update(x.var.name for x in stage.loops)
        _print_vectors(body, lambda loops: loops.statements(stage))
        return
    body.scalars.positions.update(x.var.name for x in stage.loops)
    rows = [x for x in stage.loops if x.level is Level.WARP]
    by_row, body.by_row = body.by_row, body.by_row or bool(rows)
    for x in rows:  # the threads of a row take its rows one after the other
        body.loop(body.dialect.thread if by_row else body.dialect.warp, x)
    _print_body(stage, body)
    for _ in rows:
        body.close()
    body.by_row = by_row


def print_fused(part: Part, parts: Sequence[Part], body: Body) -> bool:
    """Print the stages of a part as one vector loop; return False where they cannot be that.

    ``parts`` are all parts of its tile.

    Raises: CodeGenError for a dialect that has vectors and marks aliased buffers.
    """
    if body.dialect.vectors is None:
        return False
    fused = fused_stages(part, parts, {b: body.dtypes[b] for b in body.scalars.scratch})
    return fused is not None and _print_vectors(body, lambda loops: loops.fused(fused))


def print_row_groups(part: Part, body: Body) -> bool:
    """Print the rows of a part in groups; return False where they cannot be taken so.

    Raises: CodeGenError for a dialect that has vectors and marks aliased buffers.
    """
    if body.dialect.vectors is None:
        return False
    return _print_vectors(body, lambda loops: rows_of_part(loops, part))


def _print_vectors(
    body: Body, form: Callable[[StageVectorizer], Sequence[VectorStmt] | None]
) -> bool:
    """Print statements in vector form; return False where ``form`` returns None for them.

    Raises: CodeGenError for a dialect that has vectors and marks aliased buffers, whose loads would
    have to stay with the points that store there.
    """
    vectors = body.dialect.vectors
    assert vectors is not None
    if body.aliased:
        raise CodeGenError(
            f"dialect {body.dialect.name} has both vectors and a spelling of aliased buffers, "
            f"{body.dialect.aliased!r}; leave out one of the two"
        )
    loops = StageVectorizer(
        body.num_divisors,
        bool(vectors.fixed),
        bool(vectors.columns),
        body.scalars.registers,
        body.scalars.scratch,
    )
    statements = form(loops)
    if statements is None:
        return False
    VectorPrinter(body).print(statements)
    body.num_divisors = loops.num_divisors
    return True


def _print_body(stage: Stage, body: Body) -> None:
    """Print a stage inside its loops over rows."""
    loop = next((x for x in stage.loops if x.level is Level.CTA), None)
    if body.aliased and loop is not None:  # only the point that stores an element may load it
        stage = evolve(stage, before=(), body=(*stage.before, *stage.body))
    for let in stage.before:
        body.let(let)
    if loop is None:
        for s in stage.body:
            body.statement(s)
    else:
        _print_loops(stage, InnerLoop(stage, loop, body), body)


def _print_loops(stage: Stage, loop: InnerLoop, body: Body) -> None:
    """Print the loops of a stage between the beginnings and the ends of its reductions."""
    reductions = [s for s in stage.body if isinstance(s, Fold)]
    serial = [x for x in stage.loops if x.level is Level.THREAD]
    if folds_inside(loop, serial):
        print_folded(loop, serial)
    else:
        for f in reductions:
            loop.begin(f)
        for x in serial:
            body.loop(body.dialect.thread_down if x.down else body.dialect.thread, x)
        loop.print(stage.body)
        for _ in serial:
            body.close()
        for f in reductions:
            loop.finish(f)
    for store in stage.after:
        body.store_once(store)
