"""Implementations of a training step that are ready to be timed, in this process or another."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from attrs import frozen


@frozen
class StepImplementation:
    """A training step in one library.

    Attributes:
        step: takes feeds from ``prepare`` and returns the loss as the library's scalar.
        prepare: converts NumPy feeds.
        value: converts the loss to a float.
    """

    step: Callable[[Any], Any]
    prepare: Callable[[Mapping[str, np.ndarray]], Any]
    value: Callable[[Any], float] = float


class StepTimer(Protocol):
    """An implementation that takes steps, here or in another process.

    Attributes:
        loss: the loss of the first step.
    """

    loss: float

    def series(self, seconds: float) -> tuple[float, float]:
        """Return the median seconds of a step, and its mean CPU seconds of all threads."""


class LocalEntrant:
    """An implementation in this process, with prepared feeds; its first step is taken."""

    def __init__(self, rival: StepImplementation, feeds: Sequence[Any]) -> None:
        self.rival, self.feeds = rival, [rival.prepare(arrays) for arrays in feeds]
        self.loss = rival.value(rival.step(self.feeds[0]))

    def series(self, seconds: float) -> tuple[float, float]:
        """Take three steps to warm up, then time steps for ``seconds``.

        Returns:
            The median seconds of a step, and its mean CPU seconds of all threads.
        """
        time.sleep(0.02)
        for k in range(3):
            self.rival.step(self.feeds[k % len(self.feeds)])
        times: list[int] = []
        cpu, end = time.process_time_ns(), time.perf_counter() + seconds
        while len(times) < 5 or time.perf_counter() < end:
            feeds = self.feeds[len(times) % len(self.feeds)]
            start = time.perf_counter_ns()
            self.rival.step(feeds)
            times.append(time.perf_counter_ns() - start)
        cpu = time.process_time_ns() - cpu
        return statistics.median(times) / 1e9, cpu / len(times) / 1e9
