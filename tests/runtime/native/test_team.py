"""The team of threads: every tile once, the same bits for every size, asleep, forked, contended."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.runtime.native.sample import (
    F32,
    InputSpec,
    binary_program,
    launch,
    note_shares,
    program,
)
from tests.teams import num_threads, set_num_threads

I64 = np.dtype("int64")


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """Give every test the team that the next test expects."""
    before = num_threads()
    yield
    set_num_threads(before)


def counting(tiles: int, spins: int, steps: int = 1) -> tuple[Any, Any]:
    """A program whose kernels add one to a cell for each tile, and the cells."""
    cells = np.zeros(tiles, np.int64)
    ref = [("address", cells.ctypes.data, cells)]
    step = launch("spend", tiles, ref, spins, parallel=True)
    return program([step] * steps, [], seconds=1.0), cells


@pytest.mark.parametrize("threads", [1, 2, 4, 7])
@pytest.mark.parametrize("tiles", [0, 1, 2, 3, 64, 1000])
def test_every_tile_runs_once(threads: int, tiles: int) -> None:
    """However many threads and tiles there are, each tile of each step runs exactly once a call."""
    set_num_threads(threads)
    run, cells = counting(tiles, 20, steps=5)

    for _ in range(20):
        run()

    assert (cells == 100).all()


def test_bits_do_not_depend_on_threads(rng: np.random.Generator) -> None:
    """1, 2 and 4 threads give the same bits, on fewer CPUs too."""
    x, y = rng.random(100_003, np.float32), rng.random(100_003, np.float32)
    p, results = binary_program(parallel=True), []
    for threads in (1, 2, 4):
        set_num_threads(threads)
        results += [p(x=x, y=y)[0].tobytes() for _ in range(20)]

    assert len(set(results)) == 1 and num_threads() == 4


def test_there_is_a_barrier_between_steps() -> None:
    """A parallel step sees the results of the step before it, also with serial steps between."""
    n, rounds = 20_000, 30
    refs = [("arena", 0), ("input", 0), ("arena", 0)]
    add = launch("axpy", -(-n // 256), refs, n, parallel=True)  # t = 2 t + x
    serial = launch("axpy", -(-n // 256), refs, n)
    steps = [
        ("copy", ("input", 0), ("arena", 0), 4 * n),
        *[add, add, serial] * rounds,
        ("copy", ("arena", 0), ("output", 0), 4 * n),
    ]
    p = program(steps, [(F32.num, (n,))], [InputSpec("x", F32, (n,))], arena=4 * n)
    x = np.zeros(n, "f4")
    x[::7] = 1e-25
    expected = x.copy()
    for _ in range(3 * rounds):
        expected = 2 * expected + x

    for threads in (2, 4):
        set_num_threads(threads)
        for _ in range(10):
            assert np.array_equal(p(x=x)[0], expected)
    assert p.native_calls == 20 and p.launches == 20 * 3 * rounds


def test_a_sleeping_team_wakes() -> None:
    """After a pause the team still runs everything, and shares large work."""
    set_num_threads(2)
    run, cells = counting(64, 20_000)

    for _ in range(5):
        time.sleep(0.005)
        run()

    assert (cells == 5).all()


def test_the_team_serves_one_thread_at_a_time() -> None:
    """A Python thread that finds the team busy runs alone; all results are right."""
    set_num_threads(2)
    programs = [counting(100, 200) for _ in range(4)]

    def work(run: Any) -> None:
        for _ in range(100):
            run()

    threads = [threading.Thread(target=work, args=(run,)) for run, _ in programs]
    for t in threads:
        t.start()
    for k in (1, 3, 2):
        set_num_threads(k)
    for t in threads:
        t.join()

    assert all((cells == 100).all() for _, cells in programs)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_has_a_team_of_its_own() -> None:
    """The child of a fork, even of a busy process, runs programs in parallel and exits."""
    set_num_threads(3)
    run, cells = counting(64, 2_000)
    run()
    stop = threading.Event()

    def keep_busy() -> None:
        other, _ = counting(64, 2_000)
        while not stop.is_set():
            other()

    busy = threading.Thread(target=keep_busy)
    busy.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                cells[:] = 0
                run()
                run()
                os._exit(0 if (cells == 2).all() else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        busy.join()
    run()

    assert (cells == 2).all()


def test_workers_leave_signals_to_python() -> None:
    """A process that ends while workers sleep or spin ends at once."""
    code = (
        "import sys, time; sys.path.insert(0, '.')\n"
        "from tests.runtime.native.test_team import counting\n"
        "from tests.teams import set_num_threads\n"
        "set_num_threads(4); run, cells = counting(64, 1000); run(); time.sleep(0.01); run()\n"
        "print(int(cells.sum()))"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)

    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "128", "")


def test_shares_are_logged_on_request() -> None:
    """A log has every tile of each step once, within the time of the call."""
    set_num_threads(2)
    run, _ = counting(640, 2000, steps=2)
    note_shares(0)
    run()
    assert note_shares(1000) == []

    deadline, threads = time.monotonic() + 20, set()
    while threads != {0, 1} and time.monotonic() < deadline:
        note_shares(1000)
        before = time.perf_counter_ns()
        run()
        after = time.perf_counter_ns()
        noted = note_shares(0)
        if not noted:  # the team was busy: its last worker was preempted
            continue
        threads = {thread for thread, *_ in noted}
        assert all(before <= begin <= end <= after for _, begin, end, _, _ in noted)
        tiles = sorted(tile for *_, first, last in noted for tile in range(first, last))
        assert tiles == sorted([*range(640)] * 2)
    assert threads == {0, 1}


def test_a_full_log_keeps_the_first_shares() -> None:
    """Nothing is written beyond its capacity, which has limits."""
    set_num_threads(2)
    run, cells = counting(640, 20, steps=4)
    deadline, calls, actual = time.monotonic() + 20, 0, list[Any]()
    while not actual and time.monotonic() < deadline:  # the team may be busy at first
        note_shares(3)
        for _ in range(10):
            run()
        calls, actual = calls + 10, note_shares(0)

    assert len(actual) == 3 and (cells == 4 * calls).all()
    for wrong in (-2, 1 << 21):
        with pytest.raises(ValueError, match=f"capacity from 0 to 1048576, got {wrong}"):
            note_shares(wrong)
