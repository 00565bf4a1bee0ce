"""Profiles of programs on a device: kernels and transfers are timed by the device's own clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np

from passkit.runtime.device.bound_program import BoundProgram, StepAction
from passkit.runtime.device.call_memory import CallMemory
from passkit.runtime.profile import ExecutionProfile, StepTime, TimeSpan, step_time

TRANSFERS = "transfers"


def profile_on_device(
    bound: BoundProgram,
    arrays: Sequence[Any],
    runs: int,
    copying: Callable[[int], float],
) -> ExecutionProfile:
    """Run a program ``runs`` + 1 times and time each step by events.

    A first, unmeasured run allocates buffers, and lets drivers finish kernels, which some do at the
    first launch. An alias takes 0 seconds. Every run updates the program's variables.

    Args:
        bound: The program.
        arrays: An array for each input.
        runs: The number of measured runs.
        copying: Returns the seconds that this machine needs to copy a number of bytes.

    Returns:
        A `StepTime` for each step, then one for all transfers, with medians of the seconds over
        the runs; and the time spans of each step in each run.

    Raises:
        DeviceError: where a step fails.
        ShapeError: where a symbolic size has no value.
    """
    program = bound.program
    with bound.running():
        bound.data.device.queue.finish()  # earlier calls may still run
    queue = bound.measuring_queue()
    inputs = [np.ascontiguousarray(a) for a in arrays]
    outputs = [np.empty(shape, dtype) for dtype, shape in bound.results]
    spans: list[tuple[TimeSpan, ...]] = []
    transfer_seconds: list[float] = []
    nbytes = 0
    for run in range(runs + 1):
        with bound.running():
            memory = bound.memory(inputs, outputs, queue)
            run_spans = tuple(_timed(action, memory) for action in bound.actions)
            memory.enqueue_results()
            queue.finish()
            if run:
                spans.append(run_spans)
                transfer_seconds.append(sum(map(queue.seconds, memory.transfer_events)))
        nbytes = memory.uploaded + memory.downloaded
    rows = [
        step_time(step, [run[k] for run in spans], bound.sizes, node, copying)
        for k, (step, node) in enumerate(zip(program.steps, program.names, strict=True))
    ]
    transfers = StepTime(TRANSFERS, float(np.median(transfer_seconds or [0.0])), nbytes)
    return ExecutionProfile((*rows, transfers), tuple(spans))


def _timed(action: StepAction | None, memory: CallMemory) -> TimeSpan:
    """Run one step alone on ``memory``, and wait for it; None is a step with nothing to do.

    Returns its start by the host's clock and its duration, in nanoseconds. The duration is that of
    its kernels by the device's clock, or the host's time where it enqueued none. Raises:
    DeviceError where the step fails.
    """
    memory.queue.finish()
    num_events_before = len(memory.kernel_events)
    start = perf_counter_ns()
    if action is not None:
        action(memory)
    memory.queue.finish()
    events = memory.kernel_events[num_events_before:]
    device_ns = round(1e9 * sum(map(memory.queue.seconds, events)))
    return start, device_ns if events else perf_counter_ns() - start
