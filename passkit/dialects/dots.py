"""Products of matrices as stages of a kernel, in C."""

from __future__ import annotations

from passkit import dtype as dt
from passkit.ast import Binary, Call, Expr, Load, Var, const
from passkit.dialects.body import Body
from passkit.stage import Dot, Let, Level, Loop, Matrix, Store

ELEMENT, ROW, COLUMN = Var("element", dt.int64), Var("row", dt.int64), Var("column", dt.int64)
STEP, TOTAL = Var("step", dt.int64), "total"


def print_dot(dot: Dot, body: Body) -> None:
    """Add a product: its elements are shared out over the lanes, each of which folds its own."""
    for x in dot.loops:
        body.loop(body.dialect.thread, x)
    size = Binary("*", dot.m, dot.n, dt.int64)
    body.loop(body.dialect.lane, Loop(ELEMENT, const(0, dt.int64), size, Level.CTA))
    body.let(Let(ROW, ELEMENT // dot.n))
    body.let(Let(COLUMN, ELEMENT % dot.n))
    kind, total = body.dialect.type_of(dot.dtype), Var(TOTAL, dot.dtype)
    body.line(f"{kind} {TOTAL} = {body.scalars.expr(const(0, dot.dtype))};")
    body.loop(body.dialect.thread, Loop(STEP, const(0, dt.int64), dot.k, Level.THREAD))
    a, b = _element(dot.a, ROW, STEP, dot), _element(dot.b, STEP, COLUMN, dot)
    body.line(f"{TOTAL} = {body.scalars.expr(Call('fma', (a, b, total), dot.dtype))};")
    body.close()
    body.store(Store(dot.c.buffer, _element(dot.c, ROW, COLUMN, dot).index, total))
    for _ in (*dot.loops, dot.c):
        body.close()


def _element(x: Matrix, i: Expr, j: Expr, dot: Dot) -> Load:
    return Load(x.buffer, x.start + i * x.down + j * x.along, dot.dtype)
