"""What many steps leave behind: memory, open files, files in the cache, compiled runs, addresses.

Every hundred steps the loss is evaluated alone, and before each look the variables are saved and
loaded, as in a training that evaluates and keeps checkpoints.
"""

from __future__ import annotations

import gc
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

from passkit.runtime.native.cache import cache_folder
from training import Program
from training.in_tinyflow import Trained, addresses

PAGE = os.sysconf("SC_PAGE_SIZE")
SLACK = 1 << 20
"""Bytes by which memory may differ: allocators keep what they like."""


@frozen
class Left:
    """What a process holds after so many steps."""

    steps: int
    resident: int
    files: int
    cached: int
    plans: int
    addresses: tuple[int, ...]

    def grown(self, before: Left) -> list[str]:
        """What has grown or moved since."""
        found = []
        if self.resident > before.resident + SLACK:
            found.append(f"memory by {(self.resident - before.resident) / 1024:.0f} KiB")
        for what in ("files", "cached", "plans"):
            if getattr(self, what) > getattr(before, what):
                found.append(f"{what} from {getattr(before, what)} to {getattr(self, what)}")
        if self.addresses != before.addresses:
            found.append("variables have moved")
        return found


def left(trained: Trained, steps: int) -> Left:
    """What is held now."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
    cached = sum(1 for p in cache_folder().rglob("*") if p.is_file())
    files = len(os.listdir("/proc/self/fd"))
    plans = len(trained.session._plans)
    return Left(steps, resident, files, cached, plans, tuple(addresses(trained)))


def endured(
    program: Program, steps: int = 10_000, small: bool = False, **options: Any
) -> list[Left]:
    """What is held after a tenth of the steps, and after each further tenth.

    ``options`` are those of `tf.Session`.
    """
    trained = Trained(program, program.drawn(small), **options)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "variables.npz"
        for k in range(1, steps + 1):
            loss = trained.step()
            if k % 100 == 0:
                trained.session.run(trained.loss, trained.feeds)
            if k % max(steps // 10, 1) == 0:
                if not np.isfinite(loss):
                    raise ValueError(f"{program.name}: the loss of step {k} is {loss}")
                trained.session.state.save(file)
                trained.session.state.load(file)
                found.append(left(trained, k))
    return found


def summary(found: list[Left]) -> tuple[str, bool]:
    """One line: how little changes from the first look to the last, and whether that is nothing."""
    grown = found[-1].grown(found[0])
    first, last = found[0], found[-1]
    text = (
        f"steps {first.steps:,} to {last.steps:,}: memory {first.resident / 2**20:.1f} to "
        f"{last.resident / 2**20:.1f} MiB, {last.files} open files, {last.cached} in the cache, "
        f"{last.plans} compiled runs"
    )
    return f"{text}; {', '.join(grown)} grew" if grown else text, not grown
