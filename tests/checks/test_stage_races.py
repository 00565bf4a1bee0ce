"""Races in kernel ASTs are reported: missing barriers, and values that another array overwrites."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
import passkit.passes.codegen as codegen
from passkit.ast import Load, Var, const, left, right
from passkit.ast.stage import Dot, Fold, KernelAST, Level, Loop, Matrix, Part, Phase, Stage, Store
from passkit.checks.stage_races import check_stage_races, stage_races
from passkit.errors import BlocksError, CodeGenError
from passkit.runtime.blocks import run_blocks
from passkit.values import dtype as dt
from passkit.values.size import Size
from tests.dialects.test_printer import GOLDENS, kernel_of
from tests.opencl import BLOCKS, target_with_block
from tests.planned import agrees, feeds_of, plan
from tests.random_stages import barrier_places, has_barrier, with_barrier
from tests.stitched import (
    COL,
    F32,
    ITEM,
    LENGTH,
    ROW,
    STITCHED,
    TILE,
    array,
    fold,
    kernel,
    lanes,
    load,
    number,
    rows_of_tile,
)
from tests.threads import has_race

OUT = Stage("out", (lanes(COL, number(8)),), (Store("y0", TILE * 8 + COL, load("s0", COL)),))


def messages(ast: KernelAST) -> list[str]:
    """Return the messages of the check for an AST."""
    return [str(race) for race in stage_races(ast)]


def without_rows(*stages: Stage | Dot) -> Part:
    """Return a part without rows."""
    return Part((), None, (), stages)


def store(buffer: str, index: Any, value: Any = None, name: str = "put") -> Stage:
    """Return a stage of eight threads that store one element each."""
    value = load("x0", COL) if value is None else value
    return Stage(name, (lanes(COL, number(8)),), (Store(buffer, index, value),))


@pytest.mark.parametrize("name", STITCHED)
def test_each_missing_barrier_is_reported(name: str) -> None:
    """A stitched kernel has no race, and one without any one of its barriers."""
    ast = STITCHED[name]()
    present = [p for p in barrier_places(ast) if has_barrier(ast, p)]

    assert messages(ast) == [] and len(present) >= 2
    for place in present:
        with pytest.raises(CodeGenError, match=f"kernel {name} has a race: stage .* (s0|s1|s2)"):
            check_stage_races(with_barrier(ast, place, False), name)


@pytest.mark.parametrize("name", GOLDENS)
def test_golden_kernels_have_no_races(name: str) -> None:
    """Kernels of programs have no race on any target, also with more barriers than they have."""
    for kind in ("cpu", *map(target_with_block, BLOCKS)):
        k = kernel_of(GOLDENS[name], kind)
        full = k.ast
        for place in barrier_places(k.ast):
            full = with_barrier(full, place, True)

        assert not list(stage_races(k.ast, k.sizes)) and not list(stage_races(full, k.sizes))
        assert messages(k.ast) == []  # whatever the sizes are


def test_the_message() -> None:
    """The error names the kernel, the buffer and both stages, and says what to do."""
    ast = with_barrier(STITCHED["softmax_dot"](), (2, 0), False)
    message = (
        "kernel k has a race: stage exp writes s0, which dot reads in a tile before, by another "
        "thread, without a barrier between them; transforms.insert_barriers inserts the barriers"
    )

    with pytest.raises(CodeGenError, match=message):
        check_stage_races(ast, "k")


def test_codegen_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """CodeGen refuses a kernel that has lost its barriers."""
    pooled = codegen.pool_sizes

    def without_barriers(ast: KernelAST) -> Any:
        bare, sizes = pooled(ast)
        for place in barrier_places(bare):
            bare = with_barrier(bare, place, False)
        return bare, sizes

    monkeypatch.setattr(codegen, "pool_sizes", without_barriers)
    text = "x: f32[4096, 9]; return div(x, reduce_sum(x, axis=1, keepdims=true))"
    with pytest.raises(CodeGenError, match=r"kernel div_\w+ has a race: stage .* s0, which stage0"):
        plan(text)


def test_arrays_that_share_memory() -> None:
    """Planted: an array lies over the end of another that is read after it is written."""
    stages = (
        store("s0", COL),
        store("s1", COL, name="over"),
        Stage(
            "out",
            (lanes(COL, number(8)),),
            (Store("y0", TILE * 8 + COL, load("s0", COL) + load("s1", COL)),),
        ),
    )
    for offset, lost in ((32, False), (28, True), (0, True)):
        ast = kernel(
            (without_rows(*stages),), 1, (array("s0", 8, offset=0), array("s1", 8, offset=offset))
        )
        reported = [h for h in messages(ast) if h.startswith("stage out reads s0")]
        expected = ["stage out reads s0, whose memory over writes before as s1"] * lost
        assert reported == expected
    unknown = evolve(array("s1", 8), offset=Size.symbol("n") * 4)
    ast = kernel((without_rows(*stages),), 1, (array("s0", 8, offset=0), unknown))
    assert "stage out reads s0, whose memory over writes before as s1" in messages(ast)


@pytest.mark.parametrize("index, is_free", [(COL, True), (number(7) - COL, False)])
def test_an_array_in_place_of_its_operand(index: Any, is_free: bool) -> None:
    """A value may overwrite its operand if each thread loads only elements that it stores."""
    ast = kernel(
        (without_rows(store("s0", COL), store("s1", COL, load("s0", index), "next")),),
        1,
        (array("s0", 8, offset=0), array("s1", 8, offset=0)),
    )

    assert (messages(ast) == []) == is_free


@pytest.mark.parametrize("first, then, is_free", [(8, 8, True), (8, 6, False)])
@pytest.mark.parametrize("down", [True, False])
def test_loops_that_run_backwards(first: int, then: int, is_free: bool, down: bool) -> None:
    """Planted: two loops from the last element on begin at different ones, so threads do, too.

    From the first element on each thread has the same ones. Barriers, check and threads agree.
    """
    loops = [evolve(lanes(COL, number(n)), down=down) for n in (first, then)]
    put = Stage("put", loops[:1], (Store("s0", COL, load("x0", COL)),))
    out = Stage("out", loops[1:], (Store("y0", TILE * 8 + COL, load("s0", COL)),))
    ast = kernel((without_rows(put, out),), 1, (array("s0", 8),))
    place, expected = (0, 1), "stage out reads s0, which put writes before"
    is_racing = down and not is_free

    assert messages(ast) == [] and has_barrier(ast, place) == is_racing
    bare = with_barrier(ast, place, False)
    assert (expected in messages(bare)) == is_racing
    assert has_race(bare, {"n0": 1, "n1": 1, "n2": 1}) == is_racing


@pytest.mark.parametrize("of_row", [True, False])
@pytest.mark.parametrize("index", [COL, number(7) - COL])
def test_an_array_of_a_row_in_place_of_its_operand(index: Any, of_row: bool) -> None:
    """So may a value of a row if each row has its own array; not if rows share the array."""
    out = Stage("out", (lanes(COL, number(8)),), (Store("y0", ROW * 8 + COL, load("s1", COL)),))
    stages = store("s0", COL), store("s1", COL, load("s0", index), "next"), out
    arrays = (array("s0", 8, of_row=of_row, offset=0), array("s1", 8, of_row=of_row, offset=0))
    reported = messages(kernel((rows_of_tile(4, stages),), 1, arrays))
    wrong = "stage next writes s1, whose memory next reads in the same stage as s0"

    assert (wrong in reported) == (index is not COL or not of_row), reported


@pytest.mark.parametrize("shift", [0, 1])
def test_a_reduction_over_its_operand(shift: int) -> None:
    """All threads of a row have loaded before the result is stored; those of the next have not.

    The check and the block interpreter agree.
    """
    first = Stage("first", (lanes(ROW, number(8)),), (Store("s0", ROW, load("x0", ROW)),))
    over = Loop(ROW, number(0), number(8), Level.WARP), lanes(COL, number(8))
    sums = Stage(
        "sums",
        over,
        (fold("total", load("x0", ROW * 8 + COL) - load("s0", ROW)),),
        after=(Store("s1", ROW + shift, Var("total", F32)),),
    )
    back = Stage(
        "back", (lanes(ROW, number(8)),), (Store("y0", TILE * 8 + ROW, load("s1", ROW + shift)),)
    )
    arrays = array("s0", 8, offset=0), array("s1", 9, offset=0)
    ast = kernel((without_rows(first, sums, back),), 1, arrays)
    params = tuple(evolve(b, extent=n) for b, n in zip(ast.params, (64, 8), strict=True))
    x, y = np.arange(64, dtype=np.float32), np.zeros(8, np.float32)

    def run() -> None:
        sizes = {"n0": 0, "n1": 1, "n2": 0}
        run_blocks(evolve(ast, params=params), [x, y], sizes, barriers="waits")

    if shift:
        assert "stage sums writes s1, whose memory sums reads in the same stage as s0" in messages(
            ast
        )
        with pytest.raises(BlocksError, match=r"s\d\[\d\], (which another thread|where another)"):
            run()
    else:
        assert messages(ast) == []
        run()
        assert (y == x.reshape(8, 8).sum(1) - 8 * x[:8]).all()


def test_a_reduction_in_memory_stores_its_identity_first() -> None:
    """The identity is stored before the first iteration: it may not overwrite the operand."""
    down = Loop(ITEM, number(0), number(4), Level.THREAD)
    total = Fold(Var("sum", F32), load("s0", COL), const(0, F32), left(F32) + right(F32), "s1", COL)
    sums = Stage("sums", (down, lanes(COL, number(8))), (total,))
    out = store("y0", TILE * 8 + COL, load("s1", COL), "out")
    ast = kernel(
        (without_rows(store("s0", COL), sums, out),),
        1,
        (array("s0", 8, offset=0), array("s1", 8, offset=0)),
    )

    assert "stage sums reads s0, whose memory sums writes before as s1" in messages(ast)


WITHOUT_REMEDY = {
    "threads share an element": (
        without_rows(store("s0", number(0) * COL), OUT),
        "stage put writes s0, which put writes in the same stage",
    ),
    "threads overlap": (
        without_rows(
            Stage(
                "put",
                (
                    Loop(Var("k", dt.int64), number(0), number(2), Level.THREAD),
                    lanes(COL, number(8)),
                ),
                (Store("s0", COL + Var("k", dt.int64), load("x0", COL)),),
            ),
            OUT,
        ),
        "stage put writes s0, which put writes in the same stage",
    ),
    "threads load elements of their neighbours": (
        without_rows(store("s0", COL, load("s0", COL + 1)), OUT),
        "stage put writes s0, which put reads in the same stage",
    ),
    "the index is loaded": (
        without_rows(store("s0", Load("x1", COL, dt.int64)), OUT),
        "stage put writes s0, which put writes in the same stage",
    ),
    "rows share an element": (
        rows_of_tile(4, (store("s0", COL),)),
        "stage put writes s0, which put writes in the same stage",
    ),
    "rows read other rows": (
        rows_of_tile(
            4,
            (
                store("s0", (ROW - TILE * 4) * 8 + COL),
                store("y0", ROW * 8 + COL, load("s0", COL), "out"),
            ),
        ),
        "stage out reads s0, which put writes in a row before",
    ),
    "rows read the result of another row": (
        rows_of_tile(
            4,
            (
                store("y0", ROW * 8 + COL),
                store("s0", (ROW - TILE * 4) * 8 + COL, load("y0", COL), "again"),
            ),
        ),
        "stage again reads y0, which put writes in a row before",
    ),
    "rows store to one element": (
        rows_of_tile(4, (Stage("keep", (), (Store("s0", number(0), load("x0", ROW)),)),)),
        "stage keep writes s0, which keep writes in the same stage",
    ),
    "a product over its own operands": (
        without_rows(
            Dot(
                "dot",
                (),
                *[Matrix("s0", number(0), number(2), number(1))] * 3,
                number(2),
                number(2),
                number(2),
                F32,
            )
        ),
        "stage dot writes s0, which dot reads in the same stage",
    ),
}


@pytest.mark.parametrize("name", WITHOUT_REMEDY)
def test_races_that_no_barrier_prevents(name: str) -> None:
    """Races in a stage, or between rows of different threads, are reported despite barriers."""
    part, expected = WITHOUT_REMEDY[name]
    ast = kernel((part,), 2, (array("s0", 64),))
    for place in barrier_places(ast):
        ast = with_barrier(ast, place, True)

    assert expected in messages(ast)


def test_scratch_of_a_row_outside_its_rows() -> None:
    """A part without rows cannot load from an array that each row has for itself."""
    put = store("s0", COL)
    ast = kernel((rows_of_tile(4, (put,)), without_rows(OUT)), 1, (array("s0", 8, of_row=True),))

    assert "stage out reads s0, which put writes before" in messages(ast)


def test_disjoint_parts_of_an_array() -> None:
    """A stage may load one half of an array and store the other one, without an overlap."""
    for first, is_free in ((8, True), (7, False)):
        stage = store("s0", COL + first, load("s0", COL), "copy")
        ast = kernel((without_rows(store("s0", COL), stage),), 1, (array("s0", 16),))
        assert any("in the same stage" in s for s in messages(ast)) != is_free


def test_sizes_decide() -> None:
    """Rows of n elements at a distance of m: their values decide whether two rows overlap."""
    here = (ROW - TILE * 4) * Var("n1", dt.int64)
    lane = lanes(COL, LENGTH)
    put = Stage("put", (lane,), (Store("s0", here + COL, load("x0", COL)),))
    back = Stage(
        "back", (lane,), (Store("y0", ROW * LENGTH + COL, load("s0", here + (LENGTH - 1 - COL))),)
    )
    ast = kernel((rows_of_tile(4, (put, back)),), 1, (array("s0", 256),))

    assert not list(stage_races(ast, (64, 32, 20)))
    assert any("in a row before" in str(race) for race in stage_races(ast, (64, 32, 40)))


def test_no_races_between_phases() -> None:
    """A phase may load anything that an earlier one stored: all threads have finished that."""
    ast = kernel((without_rows(store("s0", COL)),), 1, (array("s0", 8),))
    (phase,) = ast.phases
    other = Phase(
        phase.tile, (without_rows(store("y0", TILE * 8 + COL, load("s0", 7 - COL), "out")),)
    )

    assert messages(evolve(ast, phases=(phase, other))) == []
    both = Phase(phase.tile, (*phase.parts, *other.parts))
    assert messages(evolve(ast, phases=(both,))) != []


DIGITS = [
    """x: f32[2, 7, 6, 3]; v: f32[2, 4, 3, 5]
    w = windows(x, window=(3, 2), strides=2, padding="SAME")
    p = matmul(reshape(w, shape=(24, 18)), reshape(v, shape=(24, 5)), transpose_a=true)
    y = reshape(p, shape=(3, 2, 3, 5)); return y""",
    """v: f32[2, 3, 5, 3, 2]; u: f32[2, 3, 5, 6]
    w = reduce_mean(v, axis=(1, 2, 4), keepdims=true)
    r = reshape(sub(v, w), shape=(2, 3, 5, 6))
    y = sum_like(r, slice(reshape(u, shape=(-1,)), begin=(0,), size=(6,))); return y""",
]


@pytest.mark.parametrize("text", DIGITS)
def test_digits_of_a_row_determine_the_row(text: str, rng: Any) -> None:
    """Rows that are given by coordinates in place of their number are different rows."""
    graph = pk.parse(text)
    exe, feeds = pk.compile(graph, keep_together=[["w", "y"]]), feeds_of(graph, rng)

    agrees(graph, feeds, exe(feeds), 1e-5)
    assert exe.stats["kernels"] == 1
