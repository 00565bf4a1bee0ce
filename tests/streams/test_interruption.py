"""Streams stay usable after signals at any moment, and after finalizers that record operations."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

from passkit import xp


@pytest.fixture
def interpreted() -> Iterator[None]:
    """Queue all operations, and compile nothing."""
    with xp.config(small=0, max_explorations=0):
        yield


@pytest.mark.skipif(
    os.environ.get("PASSKIT_RECORDER") == "python", reason="only the recorder in C records at once"
)
@pytest.mark.usefixtures("interpreted")
def test_a_signal_at_any_moment_leaves_the_stream_usable() -> None:
    """After an interruption of recording or executing, pending and new arrays are right."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        for k in range(200):
            kept = xp.asarray(np.arange(6.0)) + k
            with pytest.raises(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.0003 + 0.00001 * k)
                while True:
                    x = kept * 2
                    for _ in range(9):
                        x = x + 1
                    float(xp.sum(x))
            assert float(xp.sum(kept * 2)) == 30 + 12 * k
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


@pytest.mark.skipif(os.environ.get("PASSKIT_RECORDER") == "python", reason="runs are no unit there")
def test_a_signal_never_repeats_an_execution_in_place() -> None:
    """A result that lies over its operand is not computed again from it."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    x = xp.asarray(np.zeros((900, 900)))
    xp.eval(x + 1)
    completed = interrupted = 0
    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        while interrupted < 60 or completed <= 60:
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-3 + 1e-5 * interrupted)
                while True:
                    x, completed = x + 1, completed + 1
                    xp.eval(x)
            except KeyboardInterrupt:
                interrupted += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
                assert float(x[3, 4]) == completed
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    assert completed > 60 and xp.stats()["aliases"] > 60


@pytest.mark.usefixtures("interpreted")
def test_operations_that_are_recorded_during_an_execution_stay_pending() -> None:
    """An operation that a finalizer records while the stream is executed can be read afterwards."""
    results = []

    class Recording(np.ndarray):
        def __del__(self) -> None:
            results.append(xp.asarray(np.arange(3.0)) + 1)

    stream = (xp.asarray(np.ones(3)) + 1)._value.stream
    run = stream._run

    def run_and_record(*args: object) -> None:
        run(*args)
        np.ones(3).view(Recording)

    stream._run = run_and_record
    try:
        assert float(xp.sum(xp.asarray(np.ones(3)) * 2)) == 6
    finally:
        del stream._run
    assert float(xp.sum(results[0])) == 6


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("is_full", [False, True])
def test_an_operation_that_fails_spoils_only_what_needs_it(
    monkeypatch: pytest.MonkeyPatch, is_full: bool
) -> None:
    """Its error comes where its result is read, each time; everything else can be computed."""
    x = xp.asarray(np.arange(6.0))
    unrelated = x * 2
    operation = xp.asarray(np.arange(6.0)) + 1
    failing_operation = operation._value.operation
    with monkeypatch.context() as patch:
        patch.setattr(failing_operation, "on_arrays", _fail)
        failing = x + 1
        dependent = failing * 3
        good = unrelated - 1
        with xp.config(max_ops=xp.pending_operations() + 5 if is_full else 768):
            for _ in range(8):
                x = x * 1
        for _ in range(2):
            assert float(xp.sum(good)) == 24
            with pytest.raises(RuntimeError, match="element 5 of 6 is bad") as caught:
                float(xp.sum(dependent))
            assert "add()" in "".join(getattr(caught.value, "__notes__", ["add()"]))
            with pytest.raises(RuntimeError, match="element 5 of 6 is bad"):
                np.asarray(failing)
            with pytest.raises(RuntimeError, match="element 5 of 6 is bad"):
                failing - 1
        assert "pending: add" in repr(failing)

    for _ in range(20):
        x = x * 1 + 1
    assert float(x[0]) == 20 and float(xp.sum(unrelated)) == 30


def _fail(*arrays: Any) -> Any:
    """Raise an error, as a kernel might."""
    raise RuntimeError(f"element 5 of {arrays[0].size} is bad")
