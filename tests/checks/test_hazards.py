"""Hazards: the check over emitted kernels finds each wait that is taken away, and what is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
import passkit.passes.codegen as codegen
from passkit.ast import Load, Var, const, left, right
from passkit.ast.stage import Dot, Fold, KernelAST, Level, Loop, Matrix, Part, Phase, Stage, Store
from passkit.checks.hazards import check_hazards, hazards
from passkit.errors import BlocksError, CodeGenError
from passkit.runtime.blocks import run_blocks
from passkit.values import dtype as dt
from passkit.values.size import Size
from tests.dialects.test_printer import GOLDENS, kernel_of
from tests.planned import agrees, feeds_of, plan, target
from tests.random_stages import places, waiting, waits_at
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

OUT = Stage("out", (lanes(COL, number(8)),), (Store("y0", TILE * 8 + COL, load("s0", COL)),))


def said(ast: KernelAST) -> list[str]:
    """What the check says of an AST."""
    return [str(h) for h in hazards(ast)]


def flat(*stages: Stage | Dot) -> Part:
    """A part without rows."""
    return Part((), None, (), stages)


def store(buffer: str, index: Any, value: Any = None, name: str = "put") -> Stage:
    """A stage of eight lanes that writes one element each."""
    value = load("x0", COL) if value is None else value
    return Stage(name, (lanes(COL, number(8)),), (Store(buffer, index, value),))


@pytest.mark.parametrize("name", STITCHED)
def test_each_wait_is_missed(name: str) -> None:
    """Nothing is said of a stitched kernel, and something of it without any one of its waits."""
    ast = STITCHED[name]()
    found = [p for p in places(ast) if waits_at(ast, p)]

    assert said(ast) == [] and len(found) >= 2
    for place in found:
        with pytest.raises(CodeGenError, match=f"kernel {name} has a race: stage .* (s0|s1|s2)"):
            check_hazards(waiting(ast, place, False), name)


@pytest.mark.parametrize("name", GOLDENS)
def test_golden_kernels_have_none(name: str) -> None:
    """Nor of the kernels of programs, for any target, with more waits than they have."""
    for kind in ("cpu", "opencl", target("cuda", nests=False)):
        k = kernel_of(GOLDENS[name], kind)
        full = k.ast
        for place in places(k.ast):
            full = waiting(full, place, True)

        assert not list(hazards(k.ast, k.sizes)) and not list(hazards(full, k.sizes))
        assert said(k.ast) == []  # whatever the sizes are


def test_the_message() -> None:
    """It names the kernel, the buffer and both stages, and says what to do."""
    ast = waiting(STITCHED["softmax_dot"](), (2, 0), False)

    with pytest.raises(
        CodeGenError,
        match=(
            "kernel k has a race: stage exp writes s0, which dot reads in a tile before, by other "
            "threads, and not all of them wait in between; lowering.barriers.with_waits sets"
        ),
    ):
        check_hazards(ast, "k")


def test_codegen_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel of which a wait is lost on its way through CodeGen is not sent out."""
    pooled = codegen.pool_sizes

    def losing(ast: KernelAST) -> Any:
        found, sizes = pooled(ast)
        for place in places(found):
            found = waiting(found, place, False)
        return found, sizes

    monkeypatch.setattr(codegen, "pool_sizes", losing)
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
        ast = kernel((flat(*stages),), 1, (array("s0", 8, offset=0), array("s1", 8, offset=offset)))
        found = [h for h in said(ast) if h.startswith("stage out reads s0")]
        wanted = ["stage out reads s0, whose memory over writes before as s1"] * lost
        assert found == wanted
    unknown = evolve(array("s1", 8), offset=Size.symbol("n") * 4)
    ast = kernel((flat(*stages),), 1, (array("s0", 8, offset=0), unknown))
    assert "stage out reads s0, whose memory over writes before as s1" in said(ast)


@pytest.mark.parametrize("index, fine", [(COL, True), (number(7) - COL, False)])
def test_an_array_in_place_of_what_it_is_made_of(index: Any, fine: bool) -> None:
    """A value may take the place of one it is made of if each lane reads only what it writes."""
    ast = kernel(
        (flat(store("s0", COL), store("s1", COL, load("s0", index), "next")),),
        1,
        (array("s0", 8, offset=0), array("s1", 8, offset=0)),
    )

    assert (said(ast) == []) == fine


@pytest.mark.parametrize("of_row", [True, False])
@pytest.mark.parametrize("index", [COL, number(7) - COL])
def test_an_array_of_a_row_in_place_of_what_it_is_made_of(index: Any, of_row: bool) -> None:
    """So may one of a row, as other rows have theirs; one that rows share may not."""
    out = Stage("out", (lanes(COL, number(8)),), (Store("y0", ROW * 8 + COL, load("s1", COL)),))
    stages = store("s0", COL), store("s1", COL, load("s0", index), "next"), out
    arrays = (array("s0", 8, of_row=of_row, offset=0), array("s1", 8, of_row=of_row, offset=0))
    found = said(kernel((rows_of_tile(4, stages),), 1, arrays))
    wrong = "stage next writes s1, whose memory next reads in the same stage as s0"

    assert (wrong in found) == (index is not COL or not of_row), found


@pytest.mark.parametrize("shift", [0, 1])
def test_what_a_row_has_joined_in_over_what_it_was_made_with(shift: int) -> None:
    """All threads of a row have read before the fold is stored; those of the next row have not.

    So the check says, and so does the block interpreter.
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
    ast = kernel((flat(first, sums, back),), 1, arrays)
    params = tuple(evolve(b, extent=n) for b, n in zip(ast.params, (64, 8), strict=True))
    x, y = np.arange(64, dtype=np.float32), np.zeros(8, np.float32)

    def run() -> None:
        sizes = {"n0": 0, "n1": 1, "n2": 0}
        run_blocks(evolve(ast, params=params), [x, y], sizes, barriers="waits")

    if shift:
        assert "stage sums writes s1, whose memory sums reads in the same stage as s0" in said(ast)
        with pytest.raises(BlocksError, match=r"s\d\[\d\], (which another thread|where another)"):
            run()
    else:
        assert said(ast) == []
        run()
        assert (y == x.reshape(8, 8).sum(1) - 8 * x[:8]).all()


def test_a_fold_in_memory_begins_before_it_reads() -> None:
    """Its identity is stored in front of the first turn: it may not lie over what it folds."""
    down = Loop(ITEM, number(0), number(4), Level.THREAD)
    total = Fold(Var("sum", F32), load("s0", COL), const(0, F32), left(F32) + right(F32), "s1", COL)
    sums = Stage("sums", (down, lanes(COL, number(8))), (total,))
    out = store("y0", TILE * 8 + COL, load("s1", COL), "out")
    ast = kernel(
        (flat(store("s0", COL), sums, out),),
        1,
        (array("s0", 8, offset=0), array("s1", 8, offset=0)),
    )

    assert "stage sums reads s0, whose memory sums writes before as s1" in said(ast)


UNMENDED = {
    "lanes share an element": (
        flat(store("s0", number(0) * COL), OUT),
        "stage put writes s0, which put writes in the same stage",
    ),
    "lanes overlap": (
        flat(
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
    "a stage reads its neighbours": (
        flat(store("s0", COL, load("s0", COL + 1)), OUT),
        "stage put writes s0, which put reads in the same stage",
    ),
    "data says where": (
        flat(store("s0", Load("x1", COL, dt.int64)), OUT),
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
    "the row that is kept is all rows'": (
        rows_of_tile(4, (Stage("keep", (), (Store("s0", number(0), load("x0", ROW)),)),)),
        "stage keep writes s0, which keep writes in the same stage",
    ),
    "a product in its own place": (
        flat(
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


@pytest.mark.parametrize("what", UNMENDED)
def test_what_no_wait_mends(what: str) -> None:
    """Races in a stage, or between rows that run side by side, are reported however it waits."""
    part, wanted = UNMENDED[what]
    ast = kernel((part,), 2, (array("s0", 64),))
    for place in places(ast):
        ast = waiting(ast, place, True)

    assert wanted in said(ast)


def test_scratch_of_a_row_outside_its_rows() -> None:
    """What a row has of its own is not there for a part without rows."""
    put = store("s0", COL)
    ast = kernel((rows_of_tile(4, (put,)), flat(OUT)), 1, (array("s0", 8, of_row=True),))

    assert "stage out reads s0, which put writes before" in said(ast)


def test_disjoint_parts_of_an_array() -> None:
    """Two halves of an array may be read and written by one stage; with an overlap they may not."""
    for first, fine in ((8, True), (7, False)):
        stage = store("s0", COL + first, load("s0", COL), "copy")
        ast = kernel((flat(store("s0", COL), stage),), 1, (array("s0", 16),))
        assert any("in the same stage" in s for s in said(ast)) != fine


def test_sizes_decide() -> None:
    """Rows of n in places of m: only the values of both tell whether lanes of two rows meet."""
    here = (ROW - TILE * 4) * Var("n1", dt.int64)
    lane = lanes(COL, LENGTH)
    put = Stage("put", (lane,), (Store("s0", here + COL, load("x0", COL)),))
    back = Stage(
        "back", (lane,), (Store("y0", ROW * LENGTH + COL, load("s0", here + (LENGTH - 1 - COL))),)
    )
    ast = kernel((rows_of_tile(4, (put, back)),), 1, (array("s0", 256),))

    assert not list(hazards(ast, (64, 32, 20)))
    assert any("in a row before" in str(h) for h in hazards(ast, (64, 32, 40)))


def test_phases_wait_for_each_other() -> None:
    """What one phase writes another may read at once: all threads have come to its end."""
    ast = kernel((flat(store("s0", COL)),), 1, (array("s0", 8),))
    (phase,) = ast.phases
    other = Phase(phase.tile, (flat(store("y0", TILE * 8 + COL, load("s0", 7 - COL), "out")),))

    assert said(evolve(ast, phases=(phase, other))) == []
    both = Phase(phase.tile, (*phase.parts, *other.parts))
    assert said(evolve(ast, phases=(both,))) != []


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
def test_digits_of_a_row_tell_the_row(text: str, rng: Any) -> None:
    """Rows that are given by their coordinates, not by their number, are not taken for one."""
    graph = pk.parse(text)
    exe, feeds = pk.compile(graph, keep_together=[["w", "y"]]), feeds_of(graph, rng)

    agrees(graph, feeds, exe(feeds), 1e-5)
    assert exe.stats["kernels"] == 1
