"""Memory: planted faults are found, each with kernel, stage, buffer and index."""

from __future__ import annotations

import numpy as np
import pytest
from attrs import evolve

from passkit import ast
from passkit.ast import Load
from tests.runtime.blocks.by_hand import (
    F32,
    LANE,
    TILE,
    TURN,
    Buffer,
    KernelAST,
    Level,
    Place,
    Stage,
    Store,
    fault,
    kernel,
    load,
    loop,
    part,
    run,
    run_blocks,
    shared,
    stage,
    store,
)

INT64 = ast.dt.int64
LANES = loop(LANE, 8)
COPY = stage("copy", LANES, store("y0", LANE, load("x0", LANE)))


@pytest.mark.parametrize(
    "index, text",
    [
        (LANE + 1, r"stage copy of tile 0 loads x0\[8\], and the buffer has 8 elements"),
        (LANE - 1, r"stage copy of tile 0 loads x0\[-1\], and the buffer has 8 elements"),
    ],
)
def test_a_load_out_of_bounds_raises(index: object, text: str) -> None:
    """A load off by one raises, at either end."""
    with fault(f"kernel by_hand, {text}"):
        run(kernel(part(stage("copy", LANES, store("y0", LANE, load("x0", index))))))  # type: ignore


def test_a_store_out_of_bounds_raises() -> None:
    """A loop with one iteration too many raises."""
    built = kernel(part(stage("copy", loop(LANE, 9), store("y0", LANE, 0.0))))
    with fault(r"stage copy of tile 0 stores y0\[8\], and the buffer has 8"):
        run(built)


def test_an_operand_that_is_not_selected_loads_nothing() -> None:
    """A condition keeps a load in bounds."""
    value = ast.where(LANE < 7, load("x0", LANE + 1), 0.0)
    assert run(kernel(part(stage("a", LANES, store("y0", LANE, value))))).tolist() == [
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        0,
    ]


def test_loading_scratch_that_is_not_stored_raises() -> None:
    """The first such element is named; values of another tile do not count."""
    s0 = shared(16)
    write, read = stage("write", LANES, store("s0", LANE, 1.0)), loop(LANE, 9)
    late = stage("read", read, store("y0", LANE, load("s0", LANE)))
    with fault(r"stage read of tile 0 loads s0\[8\], where nothing is"):
        run(kernel(part(write, late), y=9, scratch=(s0,)))

    once = stage("write", loop(LANE, 8 - TILE * 8), store("s0", LANE, 1.0))
    every = stage("read", LANES, store("y0", LANE + TILE * 8, load("s0", LANE)))
    with fault(r"stage read of tile 1 loads s0\[0\], where nothing is"):
        run(kernel(part(once, every), tiles=2, y=16, scratch=(s0,)))


def test_a_result_that_is_not_stored_raises() -> None:
    """A loop that ends too early raises."""
    with fault(r"by_hand does not store y0\[7\]: 1 of 8 elements are missing"):
        run(kernel(part(stage("copy", loop(LANE, 7), store("y0", LANE, 0.0)))))


def test_a_store_to_an_input_raises() -> None:
    """A store to a buffer that is declared read-only raises."""
    with fault("stage a of tile 0 stores to x0, which the kernel decl"):
        run(kernel(part(COPY, stage("a", LANES, store("x0", LANE, 0.0)))))


def test_two_tiles_that_store_one_element_raise() -> None:
    """Overlapping tiles raise in any order."""
    lanes = loop(LANE, TILE * 4 + 5, start=TILE * 4)
    built = kernel(
        part(stage("copy", lanes, store("y0", LANE, load("x0", LANE)))), tiles=2, x=9, y=9
    )
    for seed in range(4):
        with fault(
            r"of tile [01] stores y0\[4\], which stage copy of an"
            "other tile stores, and tiles run in any order"
        ):
            run(built, seed=seed)


def test_a_load_of_another_tiles_store_raises() -> None:
    """A barrier does not order tiles of a phase."""
    write = stage("write", loop(LANE, TILE * 4 + 4, start=TILE * 4), store("y0", LANE, 1.0))
    read = stage("read", loop(LANE, 4), store("s0", LANE, load("y0", LANE)), barrier_before=True)
    built = kernel(part(write, read), tiles=2, scratch=(shared(),))
    with fault(
        r"tile . (loads|stores) y0\[.\], which stage \w+ of another "
        r"tile"
    ):
        run(built)


def test_two_threads_that_store_one_element_raise() -> None:
    """Threads that store to the same index raise."""
    with fault(r"stage a of tile 0: two threads store y0\[0\]"):
        run(kernel(part(stage("a", LANES, store("y0", LANE // 2, 1.0)))))


def test_rows_that_access_one_element_raise() -> None:
    """Rows of a tile run in any order, also between their stages."""
    rows = loop(TURN, 2, Level.WARP)
    first = stage("first", loop(LANE, 4), store("s0", LANE + TURN * 4, 1.0))
    other = stage(
        "other", loop(LANE, 4), store("y0", LANE + TURN * 4, load("s0", LANE + (1 - TURN) * 4))
    )
    with fault(
        r"stage other of tile 0 loads s0\[4\], which another thread "
        "stores in stage first"
    ):
        run(kernel(part(first, other, rows=rows), scratch=(shared(),)))


def test_registers_are_private() -> None:
    """A thread cannot load another thread's register, with or without a barrier."""
    keep = stage("keep", LANES, store("r0", LANE, load("x0", LANE)))
    take = stage("take", LANES, store("y0", LANE, load("r0", 7 - LANE)), barrier_before=True)
    own = stage("take", LANES, store("y0", LANE, load("r0", LANE)))
    r0 = Buffer("r0", F32, Place.LANES, 8)

    with fault(r"loads r0\[7\], which another thread stores in stage keep"):
        run(kernel(part(keep, take), scratch=(r0,)))
    assert run(kernel(part(keep, own), scratch=(r0,)))[0] == 1


def test_values_carried_between_serial_iterations_raise() -> None:
    """Only reductions and scans carry values from one serial iteration to the next."""
    turns = loop(TURN, 3, Level.THREAD, start=1)
    ahead = stage("ahead", (turns, loop(LANE, 1)), store("y0", TURN, load("y0", TURN - 1)))
    begin = stage("begin", loop(LANE, 8), store("y0", LANE, 1.0))
    with fault(
        r"stage ahead of tile 0 stores y0\[1\], which a later iteration "
        "of its serial loops loads"
    ):
        run(kernel(part(begin, ahead)))

    behind = stage(
        "behind",
        (turns, loop(LANE, 1)),
        store("y0", TURN, 2.0),
        store("y0", TURN + 3, load("y0", TURN + 1)),
    )
    with fault(r"stage behind of tile 0 loads y0\[2\], which a later iteration"):
        run(kernel(part(begin, behind)))


def test_in_place_results_are_checked() -> None:
    """With a result in place of an input, only the thread that loads an element may store it."""

    def in_place(index: object) -> object:
        x = np.arange(8, dtype=np.float32)
        built = kernel(part(stage("a", LANES, store("y0", LANE, load("x0", index)))))  # type: ignore
        run_blocks(built, [x, x], {}, name="by_hand")
        return x.tolist()

    assert in_place(LANE) == list(range(8))
    with fault(r"stores y0\[0\], which another thread loads in stage a"):
        in_place(7 - LANE)


def test_an_array_of_the_wrong_size_raises() -> None:
    """Arrays must have the sizes that the kernel declares."""
    x = np.zeros(7, np.float32)
    with fault("kernel by_hand needs 8 elements in x0, got 7"):
        run_blocks(kernel(part(COPY)), [x, x], {}, name="by_hand")


def test_scratch_arrays_may_share_memory_after_a_barrier() -> None:
    """An array may reuse memory only after all threads are done with the other array."""
    s0 = evolve(shared(), offset=0)
    s1 = Buffer("s1", INT64, Place.SHARED, 4, True, offset=0)
    s2 = Buffer("s2", INT64, Place.SHARED, 2, True, offset=16)
    write = stage("write", LANES, store("s0", LANE, load("x0", LANE)))
    read = stage("read", LANES, store("y0", LANE, load("s0", LANE)))
    over = stage("over", loop(LANE, 2), Store("s2", LANE, LANE))

    def kernel_of(*stages: Stage) -> KernelAST:
        return kernel(part(*stages), scratch=(s0, s1, s2))

    waits = [evolve(s, barrier_before=True) for s in (write, read, over)]
    assert run(kernel_of(*waits), "waits").tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    with fault(r"stage read of tile 0 loads s0\[4\], where another array's value is stored"):
        run(kernel_of(write, over, read))
    with fault(r"stage over of tile 0 stores s2\[0\], which another thread loads in stage read"):
        run(kernel_of(*waits[:2], over), "waits")
    with fault(r"loads s1\[2\], where another array's value is stored"):
        run(
            kernel_of(
                over,
                stage("a", loop(LANE, 2), Store("s2", LANE, Load("s1", LANE + 2, INT64))),
            )
        )


def test_one_thread_stores_for_all() -> None:
    """One thread makes the stores outside a thread loop: others need a barrier to load them."""
    once, all_of_them = stage("once", (), store("s0", 0, 2.0)), store("y0", 0, load("s0", 0))
    built = kernel(part(once, stage("all", (), all_of_them)), y=1, scratch=(shared(),))

    assert run(built).tolist() == [2]
    with fault(r"stage all of tile 0 loads s0\[0\], which another thread stores in stage once"):
        run(built, "waits")
