"""Streams stay usable after signals at any moment, and after finalizers that record operations."""

from __future__ import annotations

import signal
from types import FrameType

import numpy as np
import pytest

from passkit import xp
from passkit.streams import recorder
from passkit.streams.settings import settings


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queue all operations, and compile nothing."""
    monkeypatch.setattr(settings, "small", 0)
    monkeypatch.setattr(settings, "max_explorations", 0)


@pytest.mark.skipif(not recorder.IS_NATIVE, reason="only the recorder in C records at once")
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


@pytest.mark.usefixtures("interpreted")
def test_operations_that_are_recorded_during_an_execution_stay_pending() -> None:
    """What a finalizer records while the stream is executed can be read afterwards."""
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
