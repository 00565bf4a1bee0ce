"""Stitched kernels made by hand: parts of a tile that hand values on through scratch."""

from __future__ import annotations

from passkit.ast import Const, Expr, Load, Var, const, exp, left, maximum, right, where
from passkit.ast.stage import (
    Buffer,
    Dot,
    Fold,
    KernelAST,
    Let,
    Level,
    Loop,
    Matrix,
    Part,
    Phase,
    Place,
    Stage,
    Store,
)
from passkit.transforms.insert_barriers import insert_barriers
from passkit.values import dtype as dt

F32 = dt.float32
TILE, ROW, COL, ITEM = (Var(n, dt.int64) for n in ("tile", "row", "col", "item"))
FIRST, LAST = Var("first", dt.int64), Var("last", dt.int64)
COUNT, TILES, LENGTH = (Var(n, dt.int64) for n in ("n0", "n1", "n2"))


def number(n: int) -> Const:
    """A literal index."""
    return const(n, dt.int64)


def lanes(var: Var, stop: Expr, start: Expr | None = None) -> Loop:
    """A loop over lanes."""
    return Loop(var, number(0) if start is None else start, stop, Level.CTA)


def load(buffer: str, index: Expr) -> Load:
    """An element of a float32 buffer."""
    return Load(buffer, index, F32)


def array(name: str, extent: int, of_row: bool = False, offset: int | None = None) -> Buffer:
    """Scratch of float32."""
    return Buffer(name, F32, Place.SHARED, extent, True, of_row, offset)


def kernel(parts: tuple[Part, ...], inputs: int, scratch: tuple[Buffer, ...]) -> KernelAST:
    """A kernel of one phase with float32 inputs and a result, and waits where it needs them."""
    params = [Buffer(f"x{k}", F32, Place.GLOBAL, 1 << 20) for k in range(inputs)]
    params.append(Buffer("y0", F32, Place.GLOBAL, 1 << 20, True))
    phase = Phase(Loop(TILE, number(0), TILES, Level.GRID), parts)
    return insert_barriers(KernelAST(tuple(params), ("n0", "n1", "n2"), scratch, (phase,)))


def rows_of_tile(count: int, stages: tuple[Stage | Dot, ...]) -> Part:
    """A part whose rows are the tile's, so many of them."""
    start = TILE * count
    return Part((), Loop(ROW, start, start + count, Level.WARP, COUNT), (), stages)


def fold(name: str, value: Expr, extreme: bool = False) -> Fold:
    """A sum or a maximum."""
    a, b = left(F32), right(F32)
    combine = maximum(a, b) if extreme else a + b
    return Fold(Var(name, F32), value, const(-float("inf") if extreme else 0, F32), combine)


def softmax_dot() -> KernelAST:
    """softmax(x0) @ x1 * 2: rows of 64 by warps into scratch, their product, what is left."""
    here, point = (ROW - TILE * 8) * 64 + COL, ROW * 64 + COL
    most, total = Var("most", F32), Var("total", F32)
    rows = (
        Stage("most", (lanes(COL, number(64)),), (fold("most", load("x0", point), True),)),
        Stage(
            "exp",
            (lanes(COL, number(64)),),
            (
                Let(Var("e", F32), exp(load("x0", point) - most)),
                Store("s0", here, Var("e", F32)),
                fold("total", Var("e", F32)),
            ),
        ),
        Stage("divide", (lanes(COL, number(64)),), (Store("s0", here, load("s0", here) / total),)),
    )
    one = number(1)
    a = Matrix("s0", number(0), number(64), one)
    b = Matrix("x1", number(0), number(16), one)
    c = Matrix("s1", number(0), number(16), one)
    dot = Dot("dot", (), a, b, c, number(8), number(16), number(64), F32)
    value = load("s1", ITEM) * const(2, F32)
    out = Stage("out", (lanes(ITEM, number(128)),), (Store("y0", TILE * 128 + ITEM, value),))
    parts = (rows_of_tile(8, rows), Part((), None, (), (dot,)), Part((), None, (), (out,)))
    return kernel(parts, 2, (array("s0", 512), array("s1", 128)))


def turned_rows() -> KernelAST:
    """Each row from its end, twice: the lanes of a row exchange through scratch of their own."""
    back = number(63) - COL
    stages = (
        Stage("put", (lanes(COL, number(64)),), (Store("s0", COL, load("x0", ROW * 64 + COL)),)),
        Stage("turn", (lanes(COL, number(64)),), (Store("s1", COL, load("s0", back)),)),
        Stage(
            "again",
            (lanes(COL, number(64)),),
            (Store("y0", ROW * 64 + COL, load("s1", back) + load("s0", COL)),),
        ),
    )
    part = rows_of_tile(4, stages)
    return kernel((part,), 1, (array("s0", 64, True), array("s1", 64, True)))


def short_rows() -> KernelAST:
    """x0 over the sums of its rows: stages over rows, then lanes that are rows, in one part."""
    step = TILE * 32
    lets = (Let(FIRST, step), Let(LAST, where(step + 32 < COUNT, step + 32, COUNT)))
    over = Loop(ROW, FIRST, LAST, Level.WARP), lanes(COL, LENGTH)
    value, point = load("x0", ROW * LENGTH + COL), ROW * LENGTH + COL
    sums = Stage(
        "sums", over, (fold("total", value),), after=(Store("s0", ROW - FIRST, Var("total", F32)),)
    )
    inverse = Stage(
        "inverse",
        (lanes(ROW, LAST, FIRST),),
        (Store("s1", ROW - FIRST, const(1, F32) / load("s0", ROW - FIRST)),),
    )
    out = Stage("out", over, (Store("y0", point, value * load("s1", ROW - FIRST)),))
    return kernel(
        (Part(lets, None, (), (sums, inverse, out)),), 1, (array("s0", 32), array("s1", 32))
    )


def column_means() -> KernelAST:
    """Rows less the means of their tile's columns: a part over columns between two over rows."""
    here, point = (ROW - TILE * 8) * 64 + COL, ROW * 64 + COL
    put = Stage("put", (lanes(COL, number(64)),), (Store("s0", here, load("x0", point)),))
    down = Loop(ITEM, number(0), number(8), Level.THREAD)
    a, b = left(F32), right(F32)
    sums = Stage(
        "sums",
        (down, lanes(COL, number(64))),
        (Fold(Var("sum", F32), load("s0", ITEM * 64 + COL), const(0, F32), a + b, "s1", COL),),
    )
    mean = load("s1", COL) / const(8, F32)
    less = Stage("less", (lanes(COL, number(64)),), (Store("y0", point, load("s0", here) - mean),))
    parts = (rows_of_tile(8, (put,)), Part((), None, (), (sums,)), rows_of_tile(8, (less,)))
    return kernel(parts, 1, (array("s0", 512), array("s1", 64)))


def one_place() -> KernelAST:
    """Each row from its end: it is turned three times, in arrays of which two share memory."""
    back = number(63) - COL
    stages = (
        Stage("put", (lanes(COL, number(64)),), (Store("s0", COL, load("x0", ROW * 64 + COL)),)),
        Stage("turn", (lanes(COL, number(64)),), (Store("s1", COL, load("s0", back)),)),
        Stage("again", (lanes(COL, number(64)),), (Store("s2", COL, load("s1", back)),)),
        Stage("out", (lanes(COL, number(64)),), (Store("y0", ROW * 64 + COL, load("s2", back)),)),
    )
    arrays = array("s0", 64, True, 0), array("s1", 64, True, 256), array("s2", 64, True, 0)
    return kernel((rows_of_tile(4, stages),), 1, arrays)


def whole_tile() -> KernelAST:
    """A tile over its greatest element: a fold of all its threads, and its result from memory."""
    point = TILE * 1000 + ITEM
    stages = (
        Stage("most", (lanes(ITEM, number(1000)),), (fold("most", load("x0", point), True),)),
        Stage("keep", (), (Store("s0", number(0), Var("most", F32)),)),
        Stage(
            "out",
            (lanes(ITEM, number(1000)),),
            (Store("y0", point, load("x0", point) / load("s0", number(0))),),
        ),
    )
    return kernel((Part((), None, (), stages),), 1, (array("s0", 1),))


STITCHED = {
    f.__name__: f
    for f in (softmax_dot, turned_rows, short_rows, column_means, one_place, whole_tile)
}
"""By name, what makes each."""
