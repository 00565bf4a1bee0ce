"""Steps timed, alternating in one run: passkit, PyTorch, JAX and TensorFlow."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from attrs import Factory, define, frozen
from pipe import Pipe, PipeError

from training import Program, elsewhere, programs
from training.rivals import OWN, RIVALS, Rival


class Timed(Protocol):
    """Whoever takes steps, here or elsewhere: ``loss`` is that of the first."""

    loss: float

    def series(self, seconds: float) -> tuple[float, float]:
        """The median seconds of a step, and CPU seconds, of all threads, of one on average."""


class Entrant:
    """A rival with feeds of two draws, prepared; its first step is taken."""

    def __init__(self, rival: Rival, feeds: Sequence[Any]) -> None:
        self.rival, self.feeds = rival, [rival.prepare(one) for one in feeds]
        self.loss = rival.value(rival.step(self.feeds[0]))

    def series(self, seconds: float) -> tuple[float, float]:
        """As `Timed` says, after steps to warm up."""
        time.sleep(0.02)
        for k in range(3):
            self.rival.step(self.feeds[k % len(self.feeds)])
        times: list[int] = []
        cpu, end = time.process_time_ns(), time.perf_counter() + seconds
        while len(times) < 5 or time.perf_counter() < end:
            given = self.feeds[len(times) % len(self.feeds)]
            start = time.perf_counter_ns()
            self.rival.step(given)
            times.append(time.perf_counter_ns() - start)
        cpu = time.process_time_ns() - cpu
        return statistics.median(times) / 1e9, cpu / len(times) / 1e9


@define
class Times:
    """Seconds of a step in each round, and CPU seconds; the best round is what it can do."""

    wall: list[float] = Factory(list)
    cpu: list[float] = Factory(list)

    @property
    def best(self) -> float:
        """Of the least disturbed round."""
        return min(self.wall)


@frozen
class Result:
    """A row of the table: times by rival, and why others do not take part."""

    times: Mapping[str, Times]
    failed: Mapping[str, str]

    @property
    def speedup(self) -> float:
        """The best competitor's time over passkit's; NaN without one."""
        return self.over(name for name in self.times if name not in OWN)

    def over(self, names: Iterable[str]) -> float:
        """The best time of these over passkit's; NaN without any."""
        others = [self.times[name].best for name in names if name in self.times]
        return min(others) / self.times["passkit"].best if others else math.nan

    def as_json(self) -> dict[str, Any]:
        """Every round's figures."""
        found = {n: {"seconds": t.wall, "cpu": t.cpu} for n, t in self.times.items()}
        return {"times": found, "failed": dict(self.failed)}


def ready(program: Program, names: Iterable[str], there: Pipe | None = None
          ) -> tuple[dict[str, Timed], dict[str, str]]:
    """The rivals that are installed and whose first loss is passkit's; why others are not.

    Raises: AssertionError where a loss is another.
    """
    drawn = program.drawn()
    feeds = program.both_feeds(drawn)
    found: dict[str, Timed] = {}
    failed: dict[str, str] = {}
    first = None
    for name in names:
        try:
            if name not in RIVALS:
                if there is None:
                    continue
                entrant: Timed = elsewhere.enter(there, name, program.name, dict(program.sizes))
            else:
                rival = RIVALS[name](program, drawn)
                if rival is None:
                    continue
                entrant = Entrant(rival, feeds)
        except (ImportError, PipeError) as error:
            failed[name] = str(error)
            continue
        first = entrant.loss if first is None else first
        if not abs(entrant.loss / first - 1) <= 1e-4:
            raise AssertionError(
                f"{program.name}: the first loss of {name} is {entrant.loss}, not {first}")
        found[name] = entrant
        print(f"{programs.label(program)}: {name} is ready", file=sys.stderr, flush=True)
    return found, failed


def measured(entrants: Mapping[str, Timed], rounds: int = 5, seconds: float = 0.3
             ) -> dict[str, Times]:
    """Every rival's rounds, which alternate."""
    found = {name: Times() for name in entrants}
    for k in range(rounds):
        for name in (list(entrants), list(reversed(entrants)))[k % 2]:
            wall, cpu = entrants[name].series(seconds)
            found[name].wall.append(wall)
            found[name].cpu.append(cpu)
    return found
