"""Blocks: phases, tiles, parts, waits, and the loops of stages, on kernels by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

from passkit import ast as pk_ast
from passkit.ast import Var, const
from passkit.errors import SettingError
from tests.runtime.blocks.by_hand import (
    F32,
    LANE,
    LARGEST,
    ROW,
    SUM,
    TILE,
    TURN,
    Buffer,
    Dot,
    KernelAST,
    Let,
    Level,
    Matrix,
    Phase,
    Place,
    Prefetch,
    Running,
    Stage,
    Store,
    fault,
    fold,
    kernel,
    load,
    loop,
    number,
    part,
    run,
    run_blocks,
    shared,
    stage,
    store,
)

LANES = loop(LANE, 8)
WRITE = stage("write", LANES, store("s0", LANE, load("x0", LANE)))
TURNED = stage("turned", LANES, store("y0", LANE, load("s0", 7 - LANE)))
SAME = stage("same", LANES, store("y0", LANE, load("s0", LANE)))


def waiting(stage: Stage) -> Stage:
    """Return the stage with a barrier before it."""
    return evolve(stage, barrier_before=True)


def test_barriers_are_needed_where_stages_are_no_loops() -> None:
    """Another thread's element can be loaded after a barrier, or after the end of a loop."""
    right = kernel(part(WRITE, waiting(TURNED)), scratch=(shared(),))
    wrong = kernel(part(WRITE, TURNED), scratch=(shared(),))

    assert run(right, "waits").tolist() == run(wrong, "loops").tolist() == [8, 7, 6, 5, 4, 3, 2, 1]
    with fault(
        r"stage turned of tile 0 loads s0\[7\], which another thre"
        "ad stores in stage write with no barrier between"
    ):
        run(wrong, "waits")


def test_a_thread_needs_no_barrier_for_its_own_stores() -> None:
    """Equal positions of two loops are the same thread."""
    assert run(kernel(part(WRITE, SAME), scratch=(shared(),)), "waits")[3] == 4


def test_a_part_with_a_barrier_is_ordered() -> None:
    """A part that waits orders what the one before did."""
    rows = loop(ROW, 4, Level.WARP)
    fill = stage("fill", loop(LANE, 2), store("s0", ROW * 2 + LANE, load("x0", ROW * 2 + LANE)))
    free = kernel(part(fill, rows=rows), part(TURNED), scratch=(shared(),))
    held = kernel(part(fill, rows=rows), part(TURNED, barrier_before=True), scratch=(shared(),))

    assert run(held, "waits")[0] == 8
    with fault(r"loads s0\[7\], which another thread stores in stage fill"):
        run(free, "waits")


def test_the_next_tile_needs_a_barrier() -> None:
    """Threads go on to the next tile and row in the same scratch memory."""
    tile = (
        stage("write", LANES, store("s0", LANE, load("x0", LANE)), barrier_before=False),
        stage(
            "turned", LANES, store("y0", LANE + TILE * 8, load("s0", 7 - LANE)), barrier_before=True
        ),
    )
    again = kernel(part(waiting(tile[0]), tile[1]), tiles=3, y=24, scratch=(shared(),))
    assert run(again, "waits").tolist() == [8, 7, 6, 5, 4, 3, 2, 1] * 3
    with fault(
        r"stage write of tile . stores s0\[0\], which another thread"
        " loads in stage turned"
    ):
        run(kernel(part(*tile), tiles=3, y=24, scratch=(shared(),)), "waits")

    row = loop(ROW, 3, Level.WARP)
    turned = stage(
        "turned", LANES, store("y0", LANE + ROW * 8, load("s0", 7 - LANE)), barrier_before=True
    )
    own = (shared(of_row=True),)
    assert run(kernel(part(waiting(tile[0]), turned, rows=row), y=24, scratch=own), "waits")[8] == 8
    with fault(
        r"stage write of tile 0 stores s0\[0\], which another thread"
        " loads in stage turned"
    ):
        run(kernel(part(tile[0], turned, rows=row), y=24, scratch=own), "waits")


def test_loads_before_the_thread_loop_are_made_by_all_threads() -> None:
    """They are ordered before the thread loop only where stages are loops."""
    early = Var("early", F32)
    body = stage("a", LANES, store("s0", LANE, early), before=(Let(early, load("s0", 0)),))
    built = kernel(part(WRITE, waiting(body), SAME), scratch=(shared(),))

    assert run(built).tolist() == [1] * 8
    with fault(r"stage a of tile 0 stores s0\[0\], which another thread loa"):
        run(built, "waits")


def test_phases_are_ordered() -> None:
    """A phase sees the stores of all tiles of the previous one."""
    lanes = loop(LANE, TILE * 4 + 4, start=TILE * 4)
    tiles = loop(TILE, 2, Level.GRID)
    one = Phase(tiles, (part(stage("one", lanes, store("y0", LANE, load("x0", LANE)))),))
    two = Phase(tiles, (part(stage("two", lanes, store("y1", LANE, load("y0", 7 - LANE)))),))
    first = kernel(part())
    y1 = evolve(first.params[1], name="y1")
    built = KernelAST((*first.params, y1), (), (), (one, two))
    arrays = [np.arange(8, dtype=np.float32), *np.zeros((2, 8), np.float32)]

    run_blocks(built, arrays, {})

    assert arrays[2].tolist() == [7, 6, 5, 4, 3, 2, 1, 0]


def test_packed_parts_count_their_own_tiles() -> None:
    """Packed parts count their own tiles from 0."""
    one = part(stage("one", loop(LANE, 1), store("y0", TILE, 1.0)), span=(number(0), number(3)))
    two = part(
        stage("two", loop(LANE, 1), store("y0", TILE + 3, load("x0", TILE))),
        span=(number(3), number(8)),
    )

    assert run(kernel(one, two, tiles=8)).tolist() == [1, 1, 1, 1, 2, 3, 4, 5]


def test_unknown_barriers_raise() -> None:
    """An unknown name of barriers raises with the most similar one."""
    with pytest.raises(SettingError, match="got 'loop'; did you mean 'loops'"):
        run(kernel(part(WRITE)), "loop")


# Stages.


def rows_of(count: int, width: int, **more: Any) -> Any:
    """A WARP loop over rows, lanes over the columns."""
    return loop(ROW, count, Level.WARP), loop(LANE, width, **more)


def test_reductions_of_rows() -> None:
    """Each row is reduced by itself; statements after the loop store its result."""
    total = Var("total", F32)
    folds = stage(
        "fold",
        rows_of(4, 2),
        fold("total", load("x0", ROW * 2 + LANE)),
        after=(store("s0", ROW, total),),
    )
    out = stage("out", LANES, store("y0", LANE, load("s0", LANE // 2)))

    assert run(kernel(part(folds, out), scratch=(shared(),))).tolist() == [
        3,
        3,
        7,
        7,
        11,
        11,
        15,
        15,
    ]


def test_later_stages_of_a_row_see_its_reduction() -> None:
    """Later stages of the row see the reduction, and the results of scalar stages."""
    twice = Var("twice", F32)
    stages = (
        stage("fold", loop(LANE, 4), fold("total", load("x0", ROW * 4 + LANE))),
        stage("scalar", (), Let(twice, Var("total", F32) * 2.0)),
        stage(
            "out", loop(LANE, 4), store("y0", ROW * 4 + LANE, twice + load("x0", ROW * 4 + LANE))
        ),
    )
    rows = loop(ROW, 9, Level.WARP, limit=number(2))

    for barriers in ("loops", "waits"):
        assert run(kernel(part(*stages, rows=rows)), barriers).tolist() == [
            21,
            22,
            23,
            24,
            57,
            58,
            59,
            60,
        ]


def test_reductions_of_columns() -> None:
    """A serial loop around threads, each with a total in scratch memory."""
    columns = stage(
        "fold",
        (loop(TURN, 4, Level.THREAD), loop(LANE, 2)),
        fold("total", load("x0", TURN * 2 + LANE), "s0", LANE),
    )
    out = stage("out", loop(LANE, 2), store("y0", LANE, load("s0", LANE)))

    assert run(kernel(part(columns, out), y=2, scratch=(shared(2),))).tolist() == [16, 20]


def test_empty_reductions_are_the_identity() -> None:
    """A loop without iterations reduces to the identity element."""
    folds = stage(
        "fold",
        rows_of(4, 0),
        fold("total", load("x0", LANE)),
        after=(store("y0", ROW, Var("total", F32)),),
    )
    columns = stage(
        "fold",
        (loop(TURN, 0, Level.THREAD), loop(LANE, 2)),
        fold("other", load("x0", TURN), "s0", LANE),
    )
    out = stage("out", loop(LANE, 2), store("y0", LANE + 4, load("s0", LANE)))

    assert (
        run(kernel(part(folds, columns, out), x=0, y=6, scratch=(shared(2),))).tolist() == [0] * 6
    )


def test_rows_of_different_lengths() -> None:
    """Rows may have different numbers of elements; each reduction is of its own."""
    folds = stage(
        "fold",
        (loop(ROW, 4, Level.WARP), loop(LANE, ROW)),
        fold("total", load("x0", ROW + LANE)),
        after=(store("y0", ROW, Var("total", F32)),),
    )

    assert run(kernel(part(folds), y=4)).tolist() == [0, 2, 3 + 4, 4 + 5 + 6]


@pytest.mark.parametrize(
    "down, exclusive, expected, other",
    [
        (False, False, [1, 3, 6, 10], [1, 4, 9, 16]),
        (True, False, [10, 9, 7, 4], [16, 15, 12, 7]),
        (False, True, [0, 1, 3, 6], [0, 1, 4, 9]),
        (True, True, [9, 7, 4, 0], [15, 12, 7, 0]),
    ],
)
def test_scans(down: bool, exclusive: bool, expected: list[float], other: list[float]) -> None:
    """Scans along threads and along a serial loop, forward and backward."""
    total = Var("total", F32)

    def scan(value: Any, *at: Any) -> Running:
        return Running(total, value, const(0, F32), SUM, exclusive, *at)

    lanes = stage(
        "scan",
        rows_of(2, 4, down=down),
        scan(load("x0", ROW * 4 + LANE)),
        store("y0", ROW * 4 + LANE, total),
    )
    serial = stage(
        "scan",
        (loop(TURN, 4, Level.THREAD, down=down), loop(LANE, 2)),
        scan(load("x0", TURN * 2 + LANE), "s0", LANE),
        store("y0", TURN * 2 + LANE, total),
    )
    columns = run(kernel(part(serial), scratch=(shared(2),)))

    assert run(kernel(part(lanes)))[:4].tolist() == expected
    assert columns[::2].tolist() == other


def test_reductions_without_ufunc() -> None:
    """Expressions without ufunc are combined pairwise; a prefetch out of bounds has no effect."""
    a, b = pk_ast.left(F32), pk_ast.right(F32)
    own = pk_ast.where(a > b, a, b)
    fold_own = evolve(fold("total", load("x0", LANE)), combine=own, identity=const(-1, F32))
    largest = evolve(fold_own, combine=LARGEST)
    for built in (fold_own, largest):
        out = stage("out", (), store("y0", 0, Var("total", F32)))
        ahead = Prefetch("x0", LANE + 99)
        assert run(kernel(part(stage("fold", LANES, built, ahead), out), y=1)).tolist() == [8]


def test_matrix_products_are_checked() -> None:
    """c = a @ b for each iteration of the loops around; operands must be stored and ordered."""

    def matrix(buffer: str, start: Any, down: int) -> Matrix:
        return Matrix(buffer, number(start), number(down), number(1))

    product = Dot(
        "dot",
        (loop(TURN, 2, Level.THREAD),),
        matrix("x0", TURN * 4, 2),
        matrix("s0", 0, 2),
        matrix("y0", TURN * 4, 2),
        *map(number, (2, 2, 2)),
        F32,
    )
    fill = stage("fill", loop(LANE, 4), store("s0", LANE, load("x0", LANE)))
    expected = (np.arange(1, 9).reshape(2, 2, 2) @ np.arange(1, 5).reshape(2, 2)).ravel()
    free = kernel(part(fill, product), scratch=(shared(4),))
    held = kernel(part(fill, evolve(product, barrier_before=True)), scratch=(shared(4),))

    assert run(free).tolist() == run(held, "waits").tolist() == expected.tolist()
    with fault(r"stage dot of tile 0 loads s0\[0\], which another thread"):
        run(free, "waits")
    with fault(r"stage dot of tile 0 loads s0\[2\], where nothing is"):
        run(kernel(part(evolve(fill, loops=(loop(LANE, 2),)), product), scratch=(shared(4),)))
    with fault(r"stage dot of tile 0 stores y0\[6\], and the buffer has 6"):
        run(kernel(part(fill, product), y=6, scratch=(shared(4),)))


def test_a_thread_loop_of_one_iteration_is_one_thread() -> None:
    """Other threads do not use what they would load before the loop."""
    early = Var("early", F32)
    body = stage("a", loop(LANE, 1), store("s0", LANE, early), before=(Let(early, load("s0", 0)),))
    out = stage("out", (), store("y0", 0, load("s0", 0)), barrier_before=True)
    first = stage("first", loop(LANE, 1), store("s0", LANE, load("x0", LANE)))

    assert run(kernel(part(first, body, out), y=1, scratch=(shared(1),)), "waits").tolist() == [1]


@pytest.mark.parametrize("dtype", [pk_ast.dt.float16, F32, pk_ast.dt.float64])
def test_matrix_products_of_each_dtype(dtype: Any) -> None:
    """Products of 1, 2 and 3 terms; those of 16 bits accumulate in float32."""
    turns = loop(TURN, 4, Level.THREAD, start=1)
    one = number(1)
    x0 = Buffer("x0", dtype, Place.GLOBAL, 6)
    y0 = Buffer("y0", dtype, Place.GLOBAL, 4, written=True)
    a, b = Matrix("x0", number(0), one, one), Matrix("x0", number(3), one, one)
    dot = Dot("dot", (turns,), a, b, Matrix("y0", TURN, one, one), one, one, TURN, dtype)
    begin = stage("begin", loop(LANE, 1), Store("y0", LANE, const(0, dtype)))
    ast = evolve(kernel(part(begin, dot)), params=(x0, y0))
    x = np.array([1, 2, 3, 1000, 1024, 0.5], dtype.numpy)
    y = np.ones(4, dtype.numpy)

    run_blocks(ast, [x, y], {})

    assert y.tolist() == np.array([0, 1000, 3048, 3049.5], dtype.numpy).tolist()
