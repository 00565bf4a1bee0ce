"""Workers of a test run share the raise statements that they matched, and locks."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.raised import ROOT
from tests.workers import SHARED, WORKER, Board, alone


def test_workers_share_what_they_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two workers post after each of their tests; a third waits for both."""
    first, second = Board({("a.py", 1)}, tmp_path), Board({("b.py", 2)}, tmp_path)

    for board, worker in ((first, "gw0"), (first, "gw0"), (second, "gw1")):
        monkeypatch.setenv(WORKER, worker)
        board.post()

    assert first.gathered(3) == {("a.py", 1), ("b.py", 2)}
    with pytest.raises(TimeoutError, match="3 of 4 tests were done in 0 s"):
        second.gathered(4, patience=0)


def test_without_workers_nothing_is_written() -> None:
    """A run in one process knows what it met."""
    met = {("a.py", 1)}
    board = Board(met, None)
    board.post()

    assert board.gathered(5) is met


def test_one_worker_at_a_time() -> None:
    """The second worker waits for a lock until the first has released it."""
    order, waiting = [], Event()

    def second() -> None:
        waiting.set()
        with alone("a test of one worker at a time"):
            order.append("second")

    other = Thread(target=second)
    with alone("a test of one worker at a time"):
        other.start()
        waiting.wait()
        other.join(0.05)
        order.append("first")
    other.join()

    assert order == ["first", "second"]


def test_a_process_outside_of_a_run_holds_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that use helpers of tests, as `show.py` does, share no folder with anybody."""
    monkeypatch.delenv(SHARED)
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    with alone("a program"), alone("a program"):
        pass
    figure = importlib.import_module("shows.core").one_kernel("softmax keepdims -1")

    assert (figure.text, figure.met) == ("1 of 1 graphs", True)


def folders_of_a_run(cache: Path, **environ: str) -> list[str]:
    """Return whether a run has folders of its own, its kernel cache, and its shared folder."""
    program = (
        "import os; from tests import conftest, workers; "
        "print(conftest.IS_OUTER, os.environ['PASSKIT_CACHE_DIR'], workers.folder())"
    )
    outer = {k: v for k, v in os.environ.items() if k not in (WORKER, SHARED)}
    own = {"PASSKIT_CACHE_DIR": str(cache), "TMPDIR": str(cache.parent), "PYTHONPATH": str(ROOT)}
    process = subprocess.run(
        [sys.executable, "-c", program],
        env={**outer, **own, **environ},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return process.stdout.split()


def test_only_runs_that_others_start_keep_the_cache_they_are_given(tmp_path: Path) -> None:
    """An outer run has a new cache; a worker has one below it, and an inner run the given one."""
    given, shared = tmp_path / "given", tmp_path / "all" / "shared"
    given.mkdir()
    shared.parent.mkdir()

    is_outer, cache, folder = folders_of_a_run(given)
    assert is_outer == "True" and folder == f"{cache}/shared"
    assert cache.startswith(f"{tmp_path}/passkit-tests-")
    worker = folders_of_a_run(given, **{WORKER: "gw0"})
    assert worker == ["False", f"{given}/cache", f"{given}/shared"]
    inner = folders_of_a_run(given, **{SHARED: str(shared)})
    assert inner == ["False", str(given), str(shared)] and shared.is_dir()
