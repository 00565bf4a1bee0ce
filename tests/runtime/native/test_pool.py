"""The memory pool of results: reused when there is no reference, bounded, aligned."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.runtime.native.sample import (
    launch,
    pool_limit,
    pool_stats,
    program,
    set_pool_limit,
)

KB, MB = 1 << 10, 1 << 20
U8 = np.dtype("uint8")


@pytest.fixture(autouse=True)
def _empty_pool() -> Iterator[None]:
    """Start and end with nothing idle."""
    set_pool_limit(0)
    set_pool_limit(64 * MB)
    yield
    set_pool_limit(pool_limit())


def results(nbytes: int, count: int = 1) -> Any:
    """A program that does nothing and returns arrays of that many bytes."""
    return program([launch("nothing", 1, [])], [(U8.num, (nbytes,))] * count)


def test_small_results_are_allocated_by_numpy() -> None:
    """Below 64 KB an array owns its memory."""
    (small,) = results(64 * KB - 1)()

    assert small.flags.owndata and small.base is None
    assert pool_stats()["live_slabs"] == 0


def test_large_results_are_reused_when_no_view_is_left() -> None:
    """A view keeps the memory; when the last one goes, the next result has it again."""
    run = results(5 * MB)
    (first,) = run()
    address = first.ctypes.data
    view = first[10:].reshape(-1, 2)[:, ::-1].T
    first[...] = 7

    del first
    (second,) = run()
    assert second.ctypes.data != address and (view == 7).all()
    assert pool_stats()["live_slabs"] == 2
    del view
    (third,) = run()

    assert third.ctypes.data == address
    assert address % (2 * MB) == 0
    assert third.flags.c_contiguous and third.flags.writeable and third.flags.aligned


def test_idle_memory_is_bounded() -> None:
    """Beyond the limit the slab idle longest is unmapped; live ones are never touched."""
    run = results(10 * MB, 10)
    arrays = run()
    for k, a in enumerate(arrays):
        a[...] = k

    kept = arrays[3]
    del arrays, a
    gc.collect()
    stats = pool_stats()

    assert (kept == 3).all()
    assert stats["live_slabs"] == 1
    assert stats["idle_bytes"] <= 64 * MB
    assert stats["idle_slabs"] == 6
    set_pool_limit(0)
    assert pool_stats()["idle_slabs"] == 0


def test_small_results_share_a_slab() -> None:
    """Pieces of one slab lie side by side; a free one is taken first, the last one frees it."""
    run = results(100 * KB)
    kept = [run()[0] for _ in range(20)]
    for k, a in enumerate(kept):
        a[...] = k

    starts = sorted(a.ctypes.data for a in kept)
    assert pool_stats()["live_slabs"] == 1
    assert len(set(starts)) == 20 and min(np.diff(starts)) >= 100 * KB
    assert all(start % 4096 == 0 for start in starts) and starts[-1] - starts[0] < 2 * MB
    assert all((a == k).all() for k, a in enumerate(kept))
    free = kept[7].ctypes.data
    del kept[7], a
    (again,) = run()
    assert again.ctypes.data == free
    more = run()
    assert pool_stats()["live_slabs"] == 2  # the first has no free piece
    del kept, again, more
    assert pool_stats()["live_slabs"] == 0
    assert pool_stats()["idle_slabs"] == 2


def test_pieces_of_other_sizes_have_slabs_of_their_own() -> None:
    """Pieces returned in any order are reused: none is lost or allocated twice."""
    sizes = [64 * KB, 65 * KB, 300 * KB, MB - 1, MB, MB + 1, 2 * MB, 3 * MB, 4 * MB]
    runs = [results(n) for n in sizes]
    rng = np.random.default_rng(3)
    held: list[tuple[int, Any]] = []
    for iteration in range(600):
        if held and rng.random() < 0.45:
            number, array = held.pop(rng.integers(len(held)))
            assert (array[:: array.size - 1] == number).all()
            del array
        (new,) = runs[rng.integers(len(runs))]()
        new[:: new.size - 1] = iteration % 251
        held.append((iteration % 251, new))
        if len(held) > 40:
            del held[rng.integers(len(held))]
    assert all((a[:: a.size - 1] == number).all() for number, a in held)
    assert pool_stats()["live_bytes"] < 400 * MB

    del held, new
    assert pool_stats()["live_slabs"] == 0


def test_size_classes_waste_little() -> None:
    """A slab is at most 2 MB or an eighth larger than requested, and is reused."""
    for nbytes in [4 * MB + 1, 15 * MB, 17 * MB, 33 * MB, 64 * MB - 1, 100 * MB]:
        set_pool_limit(0)
        set_pool_limit(200 * MB)
        before = pool_stats()
        run = results(nbytes)
        kept = run()
        slab = pool_stats()["live_bytes"] - before["live_bytes"]
        del kept

        assert nbytes <= slab <= max(nbytes + 2 * MB, nbytes * 9 // 8 + 1)
        run()
        assert pool_stats()["reused"] == before["reused"] + 1


def test_large_arenas_are_recycled() -> None:
    """Temporaries of 1 MB and more come from the pool and go back after each run."""
    step = launch("nothing", 1, [("arena", 0)])
    run = program([step], [], arena=3 * MB)
    before = pool_stats()

    for _ in range(5):
        run()

    after = pool_stats()
    assert after["live_slabs"] == before["live_slabs"]
    assert after["mapped"] == before["mapped"] + 1
    assert after["reused"] == before["reused"] + 4


def test_results_that_exceed_the_address_space_raise() -> None:
    """A result larger than the address space raises, and nothing leaks."""
    before = pool_stats()["live_slabs"]
    for nbytes in (1 << 50, 1 << 57):
        with pytest.raises(MemoryError, match=f"no memory for an array of {nbytes} bytes"):
            results(nbytes)()

    assert pool_stats()["live_slabs"] == before


def test_a_failed_run_returns_its_memory() -> None:
    """Results and temporaries of a run that raises are recycled."""

    def fail(ins: list[Any], outs: list[Any]) -> None:
        raise ValueError(f"after {len(ins)} inputs")

    run = program([("python", fail, [], [])], [(U8.num, (4 * MB,))], arena=2 * MB)
    before = pool_stats()["live_slabs"]
    for _ in range(3):
        with pytest.raises(ValueError, match="after 0 inputs"):
            run()
    gc.collect()

    assert pool_stats()["live_slabs"] == before


def test_a_negative_limit_raises() -> None:
    """A negative limit raises; the default is at most 4 GiB."""
    with pytest.raises(ValueError, match="at least 0 bytes, got -1"):
        set_pool_limit(-1)
    assert 0 < pool_limit() <= 1 << 32
