"""Workers: a crash, hang or error affects its own call only."""

from __future__ import annotations

import math
import os
import time

import pytest

from passkit.tuning.workers import DeadError, HungError, WorkerError, Workers


def test_each_call_fails_alone() -> None:
    """Results, crashes, signals, errors and timeouts are those of their own call."""
    workers = Workers(limit=20.0)
    try:
        assert workers.submit(math.hypot, 3.0, 4.0).result() == 5.0
        (pid,) = workers.pids
        with pytest.raises(
            WorkerError, match="a worker process raised ValueError: math domain error"
        ):
            workers.submit(math.sqrt, -1.0).result()
        assert workers.pids == [pid]
        ends = [workers.submit(os._exit, 3), workers.submit(math.sqrt, 4.0)]
        with pytest.raises(DeadError, match="a worker process ended with code 3"):
            ends[0].result()
        assert ends[1].result() == 2.0 and workers.pids != [pid]
        os.kill(workers.pids[0], 9)
        workers.limit = 1.0
        with pytest.raises((DeadError, HungError), match="signal 9|no answer within 1 s"):
            workers.submit(time.sleep, 60).result()
        with pytest.raises(HungError, match="no answer within 1 s and was ended"):
            workers.submit(time.sleep, 60).result()
        with pytest.raises(TypeError, match="by position, got key"):
            workers.submit(sorted, [1], key=None)
    finally:
        workers.shutdown(wait=False)
    assert workers.pids == []
