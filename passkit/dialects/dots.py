"""Products of matrices as stages of a kernel, in C.

A dialect may have a function for them. In the others each thread has up to two rows and two columns
of a block of four elements, so that it reads half as much; where a block reaches beyond the last
row or column, that thread finds the same element twice.
"""

from __future__ import annotations

from itertools import product

from passkit.ast import Binary, Call, Cast, Const, Expr, Load, Select, Var, const
from passkit.ast.index import expression, normal
from passkit.ast.stage import Dot, Let, Level, Loop, Matrix, Store
from passkit.dialects.body import Body
from passkit.values import dtype as dt
from passkit.values.dtype import DType, is_narrow

BLOCK, STEP = Var("dot_block", dt.int64), Var("dot_k", dt.int64)
ZERO, ONE = const(0, dt.int64), const(1, dt.int64)


def print_dot(dot: Dot, body: Body) -> None:
    """Add a product: a call, or a loop over blocks of elements that all threads share out."""
    for x in dot.loops:
        body.loop(body.dialect.thread, x)
    if body.dialect.product:
        matrices = {name: _spoken(getattr(dot, name), body) for name in "abc"}
        sizes = {name: body.scalars.expr(getattr(dot, name)) for name in "mnk"}
        body.line(body.dialect.product.format(**matrices, **sizes))
    else:
        _print_blocks(dot, body)
    for _ in dot.loops:
        body.close()


def _spoken(x: Matrix, body: Body) -> str:
    """Where a matrix begins, and its strides."""
    strides = ", ".join(map(body.scalars.expr, (x.down, x.along)))
    return f"{body.scalars.address(x.buffer, x.start)}, {strides}"


def _print_blocks(dot: Dot, body: Body) -> None:
    """Blocks of elements: those of a row's threads, or of all of the tile where it has no rows."""
    d = body.dialect
    body.scope()  # of its own: a tile may have many products
    tall, wide = (_half(f"dot_{name}", getattr(dot, name), body) for name in "mn")
    count = Binary("*", tall, wide, dt.int64)
    by_row = body.by_row or not d.loop_of_tile
    body.loop(d.lane if by_row else d.loop_of_tile, Loop(BLOCK, ZERO, count, Level.CTA))
    rows = _places("dot_i", BLOCK // wide, tall, dot.m, body)
    columns = _places("dot_j", BLOCK % wide, wide, dot.n, body)
    kind = dt.float32 if is_narrow(dot.dtype) else dot.dtype
    cells = list(product(range(len(rows)), range(len(columns))))
    totals = {(r, c): Var(f"dot_{r}{c}", kind) for r, c in cells}
    zero = body.scalars.expr(const(0, kind))
    for total in totals.values():
        body.line(f"{d.type_of(kind)} {total.name} = {zero};")
    body.loop(d.thread, Loop(STEP, ZERO, dot.k, Level.THREAD))
    x = _lets("dot_a", [_element(dot.a, i, STEP, body) for i in rows], kind, body)
    y = _lets("dot_b", [_element(dot.b, STEP, j, body) for j in columns], kind, body)
    for (r, c), total in totals.items():
        body.line(f"{total.name} = {body.scalars.expr(_step(x[r], y[c], total))};")
    body.close()
    for (r, c), total in totals.items():
        index = _index(dot.c, rows[r], columns[c])
        body.store(Store(dot.c.buffer, index, _as(total, body.dtypes[dot.c.buffer])))
    body.close()
    body.close()


def _half(name: str, extent: Expr, body: Body) -> Expr:
    """How many of so many rows or columns are the first ones of a block."""
    if isinstance(extent, Const):
        return const(-(-int(extent.value) // 2), dt.int64)
    half = Var(f"{name}_half", dt.int64)
    body.let(Let(half, (extent + 1) // 2))
    body.scalars.extents.add(half.name)  # no block is left where one of them is 0
    return half


def _places(name: str, first: Expr, half: Expr, extent: Expr, body: Body) -> list[Expr]:
    """The rows or columns of a block, half of all apart; the first once more if there is no other.

    So the threads next to each other read and write what lies next to each other.
    """
    one, other = Var(f"{name}0", dt.int64), Var(f"{name}1", dt.int64)
    body.let(Let(one, first))
    if extent == ONE:
        return [one]
    there: Expr = one + half
    if not (isinstance(extent, Const) and extent.value % 2 == 0):
        there = Select(there < extent, there, one, dt.int64)
    body.let(Let(other, there))
    return [one, other]


def _lets(name: str, values: list[Expr], kind: DType, body: Body) -> list[Expr]:
    """Locals for what a step reads, as the type that it computes in."""
    found: list[Expr] = []
    for k, value in enumerate(values):
        var = Var(f"{name}{k}", kind)
        body.let(Let(var, _as(value, kind)))
        found.append(var)
    return found


def _step(x: Expr, y: Expr, total: Expr) -> Expr:
    """What a total is after one more product: integers wrap."""
    if total.dtype.is_float:
        return Call("fma", (x, y, total), total.dtype)
    return total + x * y


def _as(x: Expr, dtype: DType) -> Expr:
    return x if x.dtype is dtype else Cast(x, dtype)


def _element(x: Matrix, i: Expr, j: Expr, body: Body) -> Load:
    return Load(x.buffer, _index(x, i, j), body.dtypes[x.buffer])


def _index(x: Matrix, i: Expr, j: Expr) -> Expr:
    return expression(normal(x.start + i * x.down + j * x.along, {}))
