"""Random programs equal NumPy, whatever is deferred, dropped, updated in place or evaluated."""

from __future__ import annotations

import gc

import pytest

from passkit import xp
from tests.streams.random_programs import RandomProgram


@pytest.mark.parametrize("materialize", ["demand", "live"])
def test_random_programs_equal_numpy(materialize: str) -> None:
    """200 programs of 64 steps, whose operations run one by one in NumPy."""
    with xp.config(materialize=materialize, max_explorations=0):
        for seed in range(200):
            RandomProgram(seed, 64).run()
    xp.eval()
    gc.collect()

    assert xp.pending_operations() == 0
    assert xp.stats()["unfused_runs"] > 1000


@pytest.mark.parametrize("materialize", ["demand", "live"])
def test_compiled_random_programs_equal_numpy(materialize: str) -> None:
    """Programs whose operations run as fused kernels, with results in place of dead operands."""
    with xp.config(materialize=materialize):
        for seed in range(1000, 1004):
            RandomProgram(seed, 24).run()

    assert xp.stats()["executed_plans"] > 4
    assert xp.stats()["unfused_runs"] == 0


def test_full_queues_equal_numpy() -> None:
    """Programs whose queue is full after a few operations, which no reader waits for."""
    with xp.config(max_ops=7, max_explorations=0):
        for seed in range(2000, 2100):
            RandomProgram(seed, 64).run()
