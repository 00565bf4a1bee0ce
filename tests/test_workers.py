"""Workers of a test run share the raise statements that they matched, and locks."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Thread

import pytest

from tests.workers import WORKER, Board, alone


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
