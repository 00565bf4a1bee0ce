"""Resources that many steps leave behind: memory, open files, cache files, compiled runs.

Every hundred steps the loss is evaluated alone, and before each snapshot the variables are saved
and loaded, as in a training that evaluates and keeps checkpoints. The variables' addresses must
stay.
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
from training import TrainingProgram
from training.tinyflow_training import TinyflowTraining, addresses

PAGE = os.sysconf("SC_PAGE_SIZE")
SLACK = 1 << 20
"""Bytes by which memory may differ, since allocators keep some."""


@frozen
class ResourceSnapshot:
    """Resources of a process after some steps.

    Attributes:
        steps: steps taken so far.
        resident: resident memory in bytes.
        files: open file descriptors.
        cached: files in the kernel cache.
        plans: compiled runs of the session.
        addresses: addresses of the variables.
    """

    steps: int
    resident: int
    files: int
    cached: int
    plans: int
    addresses: tuple[int, ...]

    def grown(self, before: ResourceSnapshot) -> list[str]:
        """Describe what has grown or moved since another snapshot."""
        changes = []
        if self.resident > before.resident + SLACK:
            changes.append(f"memory by {(self.resident - before.resident) / 1024:.0f} KiB")
        for name in ("files", "cached", "plans"):
            if getattr(self, name) > getattr(before, name):
                changes.append(f"{name} from {getattr(before, name)} to {getattr(self, name)}")
        if self.addresses != before.addresses:
            changes.append("variables have moved")
        return changes


def snapshot(trained: TinyflowTraining, steps: int) -> ResourceSnapshot:
    """Collect garbage and take a snapshot of this process."""
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * PAGE
    cached = sum(1 for p in cache_folder().rglob("*") if p.is_file())
    files = len(os.listdir("/proc/self/fd"))
    plans = len(trained.session._compiled_runs)
    return ResourceSnapshot(steps, resident, files, cached, plans, tuple(addresses(trained)))


def endured(
    program: TrainingProgram, steps: int = 10_000, small: bool = False, **options: Any
) -> list[ResourceSnapshot]:
    """Train, and take a snapshot after each tenth of the steps.

    Args:
        program: the program.
        steps: the number of steps.
        small: use its small sizes.
        options: those of `tf.Session`.

    Raises:
        ValueError: a loss is not finite.
    """
    trained = TinyflowTraining(program, program.drawn(small), **options)
    snapshots = []
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
                snapshots.append(snapshot(trained, k))
    return snapshots


def summary(snapshots: list[ResourceSnapshot]) -> tuple[str, bool]:
    """Return a line about the first and last snapshots, and whether nothing has grown."""
    grown = snapshots[-1].grown(snapshots[0])
    first, last = snapshots[0], snapshots[-1]
    text = (
        f"steps {first.steps:,} to {last.steps:,}: memory {first.resident / 2**20:.1f} to "
        f"{last.resident / 2**20:.1f} MiB, {last.files} open files, {last.cached} in the cache, "
        f"{last.plans} compiled runs"
    )
    return f"{text}; {', '.join(grown)} grew" if grown else text, not grown
