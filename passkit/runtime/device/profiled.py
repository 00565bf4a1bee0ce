"""Profiles on a device: what its own clock says of each kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np

from passkit.runtime.device.memory import Memory
from passkit.runtime.device.run import Action, BoundProgram
from passkit.runtime.profile import Profile, Row, Span, row_of

TRANSFERS = "transfers"


def profile_on_device(
    made: BoundProgram,
    arrays: Sequence[Any],
    runs: int,
    copying: Callable[[int], float],
) -> Profile:
    """Run a program, its kernels timed by events. Units: seconds, medians over ``runs``.

    The first row after the steps is what went to the device and came back. ``copying`` says in how
    many seconds this machine copies so many bytes.
    """
    program, queue = made.program, made.measuring()
    inputs = [np.ascontiguousarray(a) for a in arrays]
    results = [np.empty(shape, dtype) for dtype, shape in made.results]
    spans: list[tuple[Span, ...]] = []
    moved, nbytes = [], 0
    for run in range(runs + 1):
        with made.running():
            memory = made.memory(inputs, results, queue)
            timed = [_timed(action, memory) for action in made.actions]
            memory.finish()
            if run:  # the first one makes buffers, and drivers finish kernels at their first launch
                spans.append(tuple(timed))
                moved.append(sum(map(queue.seconds, memory.moved)))
        nbytes = memory.uploaded + memory.downloaded
    rows = [
        row_of(step, [run[k] for run in spans], made.sizes, node, copying)
        for k, (step, node) in enumerate(zip(program.steps, program.names, strict=True))
    ]
    transfers = Row(TRANSFERS, float(np.median(moved or [0.0])), nbytes)
    return Profile((*rows, transfers), tuple(spans))


def _timed(action: Action | None, memory: Memory) -> Span:
    """What a step does, done; when it began, and how long the device, or else the host, took."""
    memory.queue.finish()
    first, begin = len(memory.launched), perf_counter_ns()
    if action is not None:
        action(memory)
    memory.queue.finish()
    events = memory.launched[first:]
    took = round(1e9 * sum(map(memory.queue.seconds, events)))
    return begin, took if events else perf_counter_ns() - begin
