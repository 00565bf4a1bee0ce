"""Memory, plans and files stay flat, however long a program runs."""

from __future__ import annotations

import gc
import os
import random
import resource

import numpy as np
import pytest

from passkit import xp
from passkit.streams import plan_store
from passkit.streams.settings import settings

OPERATIONS = int(os.environ.get("PASSKIT_LONG_LOOP", "40000"))
"""How many operations the loop records; `show.py streams` runs a million."""


def number_of(name: str) -> int:
    """Return the number of objects of a class."""
    gc.collect()
    return sum(type(each).__name__ == name for each in gc.get_objects())


def open_files() -> int:
    """Return the number of open files of this process."""
    return len(os.listdir("/proc/self/fd"))


def test_a_long_loop_takes_no_more_memory() -> None:
    """In a loop with reads, new numbers and results that stay pending, nothing accumulates."""
    x = xp.asarray(np.ones((40, 40)))
    y = x
    measured = []
    for k in range(OPERATIONS // 10):
        step = y * (0.5 + 1e-9 * k) + x
        pending = step - x
        y = (step + 1) / 3 * (step - 0.25) - xp.abs(x)
        total = xp.sum(y)
        if k % 10 == 9:
            assert np.isfinite(float(total))
            del pending
        if k * 100 // OPERATIONS in (1, 9) and k % 50 == 49:
            plans = xp.stats()["explorations"] + xp.stats()["disk_hits"]
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            measured.append((plans, open_files(), memory))

    (plans, files, memory), (last_plans, last_files, last_memory) = measured[0], measured[-1]
    assert last_plans == plans and last_files == files
    assert last_memory - memory < 4 << 10, "KiB"


def test_programs_that_never_repeat_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequences that were run once are forgotten, and results stay right."""
    monkeypatch.setattr(plan_store, "MAX_PLANS", 50)
    monkeypatch.setattr(settings, "max_explorations", 0)
    chance = random.Random(1)
    x = xp.asarray(np.full((20, 20), 0.5))
    counts = []
    for _ in range(5):
        for _ in range(60):
            y, expected = x, 0.5
            for _ in range(12):
                number = chance.choice([0.5, 2.0])
                if chance.random() < 0.5:
                    y, expected = y * number, expected * number
                else:
                    y, expected = number - y, number - expected
            assert float(y[1, 2]) == expected
        counts.append(number_of("TrieNode"))

    assert max(counts) < 2 * 60 * 13


def test_plans_that_were_dropped_come_from_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled plans are loaded again after others took their room, without being explored."""
    x = xp.asarray(np.ones((600, 600)))
    np.asarray(x * 3 + 1)
    np.asarray(x * 3 + 1)
    explorations = xp.stats()["explorations"]
    monkeypatch.setattr(settings, "max_explorations", explorations)
    monkeypatch.setattr(plan_store, "MAX_PLANS", 20)
    small = xp.asarray(np.ones((20, 20)))
    for k in range(60):
        y = small
        for bit in range(6):
            y = y + small if k >> bit & 1 else y - small
        np.asarray(y)

    result = np.asarray(x * 3 + 1)

    assert (result == 4).all() and xp.stats()["explorations"] == explorations
