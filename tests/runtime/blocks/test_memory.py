"""Memory: planted faults are found, each with kernel, stage, buffer and index."""

from __future__ import annotations

import numpy as np
import pytest

from passkit.errors import BlocksError
from passkit.runtime.blocks import run_blocks
from passkit.stage import Level, Place
from tests.runtime.blocks.by_hand import I, J, TILE, kernel, load, loop, part, run, shared, stage, store

LANES = loop(I, 8)
COPY = stage("copy", LANES, store("y0", I, load("x0", I)))


@pytest.mark.parametrize("index, text", [
    (I + 1, r"stage copy of tile 0 loads x0\[8\], outside of its 8 elements"),
    (I - 1, r"stage copy of tile 0 loads x0\[-1\], outside of its 8 elements"),
])
def test_a_load_outside(index: object, text: str) -> None:
    """Off by one, at either end."""
    with pytest.raises(BlocksError, match=f"kernel by_hand, {text}"):
        run(kernel(part(stage("copy", LANES, store("y0", I, load("x0", index))))))  # type: ignore


def test_a_store_outside() -> None:
    """A loop that goes on for too long."""
    ast = kernel(part(stage("copy", loop(I, 9), store("y0", I, 0.0))))
    with pytest.raises(BlocksError, match=r"stage copy of tile 0 stores y0\[8\], outside of its 8"):
        run(ast)


def test_an_arm_that_is_not_taken_loads_nothing() -> None:
    """A bound that a condition keeps."""
    from passkit import ast

    value = ast.where(I < 7, load("x0", I + 1), 0.0)
    assert run(kernel(part(stage("a", LANES, store("y0", I, value))))).tolist() == [
        2, 3, 4, 5, 6, 7, 8, 0,
    ]  # fmt: skip


def test_scratch_that_nothing_stored() -> None:
    """The first element that is loaded too much; a tile sees nothing of the one before."""
    s0 = shared(16)
    write, read = stage("write", LANES, store("s0", I, 1.0)), loop(I, 9)
    late = stage("read", read, store("y0", I, load("s0", I)))
    with pytest.raises(BlocksError, match=r"stage read of tile 0 loads s0\[8\], which nothing has"):
        run(kernel(part(write, late), y=9, scratch=(s0,)))

    once = stage("write", loop(I, 8 - TILE * 8), store("s0", I, 1.0))
    every = stage("read", LANES, store("y0", I + TILE * 8, load("s0", I)))
    with pytest.raises(BlocksError, match=r"stage read of tile 1 loads s0\[0\], which nothing has"):
        run(kernel(part(once, every), tiles=2, y=16, scratch=(s0,)))


def test_a_result_that_is_not_stored() -> None:
    """A loop that ends too early."""
    with pytest.raises(BlocksError, match=r"by_hand leaves y0\[7\] as it was, one of 1 of its 8 el"):
        run(kernel(part(stage("copy", loop(I, 7), store("y0", I, 0.0)))))


def test_a_store_to_an_input() -> None:
    """What is declared to be read only."""
    with pytest.raises(BlocksError, match="stage a of tile 0 stores to x0, which the kernel decl"):
        run(kernel(part(COPY, stage("a", LANES, store("x0", I, 0.0)))))


def test_two_tiles_store_one_element() -> None:
    """Tiles that overlap, and a wrong index: in whatever order they run."""
    lanes = loop(I, TILE * 4 + 5, start=TILE * 4)
    ast = kernel(part(stage("copy", lanes, store("y0", I, load("x0", I)))), tiles=2, x=9, y=9)
    for seed in range(4):
        with pytest.raises(BlocksError, match=r"of tile [01] stores y0\[4\], which stage copy of an"
                           "other tile stores, and tiles run in any order"):
            run(ast, seed=seed)


def test_a_tile_loads_what_another_stores() -> None:
    """Not even the order of a wait helps."""
    write = stage("write", loop(I, TILE * 4 + 4, start=TILE * 4), store("y0", I, 1.0))
    read = stage("read", loop(I, 4), store("s0", I, load("y0", I)), waits=True)
    ast = kernel(part(write, read), tiles=2, scratch=(shared(),))
    with pytest.raises(BlocksError, match=r"tile . (loads|stores) y0\[.\], which stage \w+ of another "
                       r"tile"):
        run(ast)


def test_two_threads_store_one_element() -> None:
    """Lanes that meet."""
    with pytest.raises(BlocksError, match=r"stage a of tile 0: two threads store y0\[0\]"):
        run(kernel(part(stage("a", LANES, store("y0", I // 2, 1.0)))))


def test_rows_that_meet() -> None:
    """Rows of a tile run in any order, through their stages too."""
    rows = loop(J, 2, Level.WARP)
    first = stage("first", loop(I, 4), store("s0", I + J * 4, 1.0))
    other = stage("other", loop(I, 4), store("y0", I + J * 4, load("s0", I + (1 - J) * 4)))
    with pytest.raises(BlocksError, match=r"stage other of tile 0 loads s0\[4\], which another thread "
                       "stores in stage first"):
        run(kernel(part(first, other, rows=rows), scratch=(shared(),)))


def test_registers_are_private() -> None:
    """A lane cannot reach what another lane keeps, wait or not."""
    keep = stage("keep", LANES, store("r0", I, load("x0", I)))
    take = stage("take", LANES, store("y0", I, load("r0", 7 - I)), waits=True)
    own = stage("take", LANES, store("y0", I, load("r0", I)))
    r0 = shared(name="r0", place=Place.LANES)

    with pytest.raises(BlocksError, match=r"loads r0\[7\], which another thread stores in stage keep"):
        run(kernel(part(keep, take), scratch=(r0,)))
    assert run(kernel(part(keep, own), scratch=(r0,)))[0] == 1


def test_a_turn_that_needs_another() -> None:
    """Only folds and scans go from turn to turn of a serial loop."""
    turns = loop(J, 3, Level.THREAD, start=1)
    ahead = stage("ahead", (turns, loop(I, 1)), store("y0", J, load("y0", J - 1)))
    begin = stage("begin", loop(I, 8), store("y0", I, 1.0))
    with pytest.raises(BlocksError, match=r"stage ahead of tile 0 stores y0\[1\], which a later turn "
                       "of its serial loops loads"):
        run(kernel(part(begin, ahead)))

    behind = stage("behind", (turns, loop(I, 1)), store("y0", J, 2.0),
                   store("y0", J + 3, load("y0", J + 1)))
    with pytest.raises(BlocksError, match=r"stage behind of tile 0 loads y0\[2\], which a later turn"):
        run(kernel(part(begin, behind)))


def test_what_lies_in_one_place_is_one() -> None:
    """A result in the place of an input: its own lane may, another's may not."""
    def in_place(index: object) -> object:
        x = np.arange(8, dtype=np.float32)
        ast = kernel(part(stage("a", LANES, store("y0", I, load("x0", index)))))  # type: ignore
        run_blocks(ast, [x, x], {}, name="by_hand")
        return x.tolist()

    assert in_place(I) == list(range(8))
    with pytest.raises(BlocksError, match=r"stores y0\[0\], which another thread loads in stage a"):
        in_place(7 - I)


def test_an_array_of_another_size() -> None:
    """What is passed must be what the kernel was made for."""
    x = np.zeros(7, np.float32)
    with pytest.raises(BlocksError, match="kernel by_hand needs 8 elements in x0, got 7"):
        run_blocks(kernel(part(COPY)), [x, x], {}, name="by_hand")
