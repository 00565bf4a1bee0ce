"""Profiles: the time of each step of a program, and how fast it moves its bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np
from attrs import frozen

from passkit.dtype import DType
from passkit.runtime.native.launcher import launcher
from passkit.runtime.program import Program, Step
from passkit.size import evaluate


@frozen
class Row:
    """One step: what it is, median seconds, and bytes it reads and writes."""

    step: str
    seconds: float
    nbytes: int


@frozen
class Profile:
    """The steps of a program with their times; ``str`` is a table."""

    rows: tuple[Row, ...]

    @property
    def seconds(self) -> float:
        """The sum of all steps."""
        return sum(r.seconds for r in self.rows)

    def __str__(self) -> str:
        width = max([len(r.step) for r in self.rows] + [5])
        total = self.seconds or 1.0
        lines = [f"{'step':<{width}}  {'us':>10}  {'share':>6}  {'MB':>9}  {'GB/s':>7}"]
        for r in self.rows:
            rate = r.nbytes / r.seconds / 1e9 if r.seconds else 0.0
            lines.append(
                f"{r.step:<{width}}  {r.seconds * 1e6:10.1f}  {100 * r.seconds / total:5.1f}%  "
                f"{r.nbytes / 1e6:9.3f}  {rate:7.1f}"
            )
        lines.append(f"{'sum':<{width}}  {self.seconds * 1e6:10.1f}")
        return "\n".join(lines)


def profile_program(
    program: Program, sizes: Mapping[str, int], arrays: Sequence[Any], runs: int
) -> Profile:
    """Run a program with a clock between its steps. Units: seconds, medians over ``runs``."""
    times: list[list[int]] = [[] for _ in program.steps]
    last = 0

    def between(k: int) -> Callable[..., None]:
        def tick(*_: Any) -> None:
            nonlocal last
            now = perf_counter_ns()
            times[k].append(now - last)
            last = perf_counter_ns()

        return tick

    shapes = tuple(a.shape for a in arrays)
    bound = program.table.bind(shapes, sizes, between)
    inputs = [(name, dtype.numpy.num, len(shape)) for name, dtype, shape in program.inputs]
    run = launcher().Program(inputs, len(program.outputs), lambda _: bound)
    run(tuple(arrays))
    for samples in times:
        samples.clear()
    for _ in range(runs):
        last = perf_counter_ns()
        run(tuple(arrays))
    return Profile(
        tuple(
            Row(str(step), float(np.median(samples or [0])) / 1e9, _nbytes(step, sizes))
            for step, samples in zip(program.steps, times, strict=True)
        )
    )


def _nbytes(step: Step, sizes: Mapping[str, int]) -> int:
    return sum(evaluate(r.nbytes, sizes) for r in (*step.reads, *step.writes))


def random_feeds(
    inputs: Sequence[tuple[str, DType]], shapes: Sequence[tuple[int, ...]]
) -> dict[str, Any]:
    """Arrays of random numbers, the same in every run: normal for floats, small for integers."""
    rng = np.random.default_rng(0)
    feeds = {}
    for (name, dtype), shape in zip(inputs, shapes, strict=True):
        values = rng.standard_normal(shape) if dtype.is_float else rng.integers(0, 2, shape)
        feeds[name] = np.asarray(values).astype(dtype.numpy)
    return feeds
