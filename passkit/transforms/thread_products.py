"""Products of matrices by threads, in languages that have no function for them.

Each thread has up to two rows and two columns of a block of four elements, so that it reads half as
much; where a block reaches beyond the last row or column, that thread computes an element twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product

from passkit.ast import Binary, Call, Cast, Const, Expr, Load, Select, Var, const
from passkit.ast.index import expression, normal
from passkit.ast.stage import Dot, Let, Level, Loop, Matrix, Store
from passkit.ir.loop import Assign, Declare
from passkit.ir.threads import Block, ExtentLet, SequentialFor, ThreadFor, ThreadStmt
from passkit.values import dtype as dt
from passkit.values.dtype import DType, is_narrow

BLOCK, STEP = Var("dot_block", dt.int64), Var("dot_k", dt.int64)
ZERO, ONE = const(0, dt.int64), const(1, dt.int64)


def product_by_threads(dot: Dot, dtypes: Mapping[str, DType]) -> Block:
    """Return a product as a loop over blocks of elements that all threads share out.

    ``dtypes`` are those of the kernel's buffers.
    """
    (tall, tall_lets), (wide, wide_lets) = (_half(f"dot_{n}", getattr(dot, n)) for n in "mn")
    rows, row_lets = _pair("dot_i", BLOCK // wide, tall, dot.m)
    columns, column_lets = _pair("dot_j", BLOCK % wide, wide, dot.n)
    dtype = dt.float32 if is_narrow(dot.dtype) else dot.dtype
    cells = list(product(range(len(rows)), range(len(columns))))
    totals = {(r, c): Var(f"dot_{r}{c}", dtype) for r, c in cells}
    a_lets = _lets("dot_a", (_element(dot.a, i, STEP, dtypes) for i in rows), dtype)
    b_lets = _lets("dot_b", (_element(dot.b, STEP, j, dtypes) for j in columns), dtype)
    steps = [
        Assign(total, _step(a_lets[r].var, b_lets[c].var, total))
        for (r, c), total in totals.items()
    ]
    inner = SequentialFor(
        Loop(STEP, ZERO, dot.k, Level.THREAD),
        (*a_lets, *b_lets, *steps),
    )
    stores = [
        Store(
            dot.c.buffer,
            _index(dot.c, rows[r], columns[c]),
            _converted(total, dtypes[dot.c.buffer]),
        )
        for (r, c), total in totals.items()
    ]
    body: list[ThreadStmt] = [
        *row_lets,
        *column_lets,
        *(Declare(total, const(0, dtype)) for total in totals.values()),
        inner,
        *stores,
    ]
    loop = Loop(BLOCK, ZERO, Binary("*", tall, wide, dt.int64), Level.CTA)
    return Block((*tall_lets, *wide_lets, ThreadFor(loop, tuple(body))))


def _half(name: str, extent: Expr) -> tuple[Expr, list[ExtentLet]]:
    """Return how many of so many rows or columns are the first ones of a block.

    The second value has its definition, if it is no literal. No block is left where it is 0.
    """
    if isinstance(extent, Const):
        return const(-(-int(extent.value) // 2), dt.int64), []
    half = Var(f"{name}_half", dt.int64)
    return half, [ExtentLet(half, (extent + 1) // 2)]


def _pair(name: str, first: Expr, half: Expr, extent: Expr) -> tuple[list[Expr], list[Let]]:
    """Return the rows or columns of a block, half of all apart, and their definitions.

    The second is the first once more if there is no other. So neighbouring threads read and write
    neighbouring elements.
    """
    one, other = Var(f"{name}0", dt.int64), Var(f"{name}1", dt.int64)
    if extent == ONE:
        return [one], [Let(one, first)]
    second: Expr = one + half
    if not (isinstance(extent, Const) and extent.value % 2 == 0):
        second = Select(second < extent, second, one, dt.int64)
    return [one, other], [Let(one, first), Let(other, second)]


def _lets(name: str, values: Iterable[Expr], dtype: DType) -> list[Let]:
    """Return locals for what a step reads, of the dtype that it computes in."""
    return [
        Let(Var(f"{name}{k}", dtype), _converted(value, dtype)) for k, value in enumerate(values)
    ]


def _step(x: Expr, y: Expr, total: Expr) -> Expr:
    """Return a total with one more product added; integers wrap."""
    if total.dtype.is_float:
        return Call("fma", (x, y, total), total.dtype)
    return total + x * y


def _converted(x: Expr, dtype: DType) -> Expr:
    return x if x.dtype is dtype else Cast(x, dtype)


def _element(x: Matrix, i: Expr, j: Expr, dtypes: Mapping[str, DType]) -> Load:
    return Load(x.buffer, _index(x, i, j), dtypes[x.buffer])


def _index(x: Matrix, i: Expr, j: Expr) -> Expr:
    return expression(normal(x.start + i * x.down + j * x.along, {}))
