"""Threads, forks and interruptions."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from passkit import xp
from tests.streams.random_programs import RandomProgram


def test_threads_record_independently() -> None:
    """Random programs in four threads at once equal NumPy."""
    with xp.config(max_explorations=0), ThreadPoolExecutor(4) as pool:
        for result in [pool.submit(RandomProgram(seed, 64).run) for seed in range(40)]:
            result.result()


def test_plans_are_shared_between_threads() -> None:
    """A program that one thread ran is not compiled again in another one."""
    x = xp.asarray(np.ones((40, 40), np.float32))

    def run() -> Any:
        return np.asarray(x * 2 + x)

    with ThreadPoolExecutor(1) as pool:
        first, second = run(), pool.submit(run).result()

    np.testing.assert_array_equal(first, second)
    assert xp.stats()["explorations"] == 1
    assert xp.stats()["cache_hits"] == 1


def test_an_array_of_another_thread_is_executed_where_it_is_pending() -> None:
    """Reading an array that another thread left pending executes that thread's queue only."""
    x = xp.asarray(np.ones((40, 40), np.float32))
    with ThreadPoolExecutor(1) as pool:
        theirs = pool.submit(lambda: x + 1).result()
        mine = x * 3
        total = theirs * 2

        assert "pending" in repr(mine)
        np.testing.assert_array_equal(np.asarray(total), 4)
        assert "pending" in repr(mine)
        np.testing.assert_array_equal(np.asarray(mine), 3)


def test_streams_that_read_each_other_do_not_deadlock() -> None:
    """Two threads that exchange pending arrays both finish."""
    x = xp.asarray(np.ones((40, 40), np.float32))
    mailbox: dict[str, Any] = {"a": x, "b": x}

    def exchange(own: str, other: str) -> None:
        for _ in range(200):
            mailbox[own] = mailbox[other] * 1 + 0

    with xp.config(max_explorations=0):
        threads = [threading.Thread(target=exchange, args=pair) for pair in ("ab", "ba")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)

        assert not any(thread.is_alive() for thread in threads)
        np.testing.assert_array_equal(np.asarray(mailbox["a"]), 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_pending_arrays_work_in_a_forked_process() -> None:
    """A child computes what was pending when it was forked, and so does the parent."""
    x = xp.asarray(np.ones((40, 40), np.float32))
    y = x + 1
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if np.asarray(y * 2).sum() == 6400 else 2
        finally:
            os._exit(status)

    assert os.waitpid(child, 0)[1] == 0
    assert np.asarray(y).sum() == 3200


def test_an_interrupted_run_can_be_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """After Ctrl-C in a run, the same arrays are computed by the next attempt."""
    x = xp.asarray(np.ones((40, 40), np.float32))
    y = x + 1
    with monkeypatch.context() as patch:
        patch.setattr("passkit.streams.plan.Executable", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            np.asarray(y)

    np.testing.assert_array_equal(np.asarray(y + y), 4)
    np.testing.assert_array_equal(np.asarray(y), 2)


def _interrupted(*args: Any, **options: Any) -> Any:
    """Stand for a compilation during which the user presses Ctrl-C."""
    raise KeyboardInterrupt


def test_without_a_compiler_programs_run_unfused(tmp_path: Path) -> None:
    """Where there is no C++ compiler, results are right, and one warning says what to install."""
    program = (
        "import numpy as np; from passkit import xp; x = xp.asarray(np.ones((600, 600), 'f'))\n"
        "for k in range(3): print(float(xp.sum(x * k + 1)), xp.stats()['unfused_runs'])"
    )
    environ = {
        **os.environ,
        "PASSKIT_CXX": "/nonexistent",
        "PASSKIT_CACHE_DIR": str(tmp_path),
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
    }
    process = subprocess.run(
        [sys.executable, "-c", program], env=environ, capture_output=True, text=True, check=True
    )

    assert process.stdout.split() == ["360000.0", "1", "720000.0", "2", "1080000.0", "3"]
    assert process.stderr.count("no C++ compiler was found") == 1


def test_a_program_that_cannot_be_compiled_runs_unfused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compilation that fails is warned of once, not repeated, and costs no result."""
    from passkit.errors import CompilerError

    attempts = []

    def fail(*args: Any, **options: Any) -> Any:
        attempts.append(args)
        raise CompilerError("the compiler ran out of memory")

    monkeypatch.setattr("passkit.streams.plan.Executable", fail)
    x = xp.asarray(np.ones((40, 40), np.float32))
    with pytest.warns(UserWarning, match="1 operations one by one .*ran out of memory"):
        np.testing.assert_array_equal(np.asarray(x + 1), 2)
    count = len(attempts)

    np.testing.assert_array_equal(np.asarray(x + 1), 2)
    assert len(attempts) == count
    assert xp.stats()["failed_plans"] == 1
