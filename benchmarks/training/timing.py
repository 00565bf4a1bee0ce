"""Time training steps, alternating in one run: passkit, PyTorch, JAX and TensorFlow."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from attrs import Factory, define, frozen
from pipe import Pipe, PipeError

from training import TrainingProgram, programs, tensorflow_process
from training.entrants import LocalEntrant, StepTimer
from training.rivals import OWN, RIVALS


@define
class RoundTimes:
    """Seconds of a step in each round, and CPU seconds."""

    wall: list[float] = Factory(list)
    cpu: list[float] = Factory(list)

    @property
    def best(self) -> float:
        """Seconds of the least disturbed round."""
        return min(self.wall)


@frozen
class ProgramTimes:
    """A row of the table: times by implementation, and the reasons of missing ones."""

    times: Mapping[str, RoundTimes]
    failed: Mapping[str, str]

    @property
    def speedup(self) -> float:
        """The best competitor's time over passkit's; NaN without a competitor."""
        return self.over(name for name in self.times if name not in OWN)

    def over(self, names: Iterable[str]) -> float:
        """Return the best time of these over passkit's; NaN without any."""
        others = [self.times[name].best for name in names if name in self.times]
        return min(others) / self.times["passkit"].best if others else math.nan

    def as_json(self) -> dict[str, Any]:
        """Return every round's figures."""
        times = {n: {"seconds": t.wall, "cpu": t.cpu} for n, t in self.times.items()}
        return {"times": times, "failed": dict(self.failed)}


def ready(
    program: TrainingProgram, names: Iterable[str], tensorflow: Pipe | None = None
) -> tuple[dict[str, StepTimer], dict[str, str]]:
    """Build the implementations of a program and take their first steps.

    Args:
        program: the program.
        names: the implementations.
        tensorflow: the process of TensorFlow, if there is one.

    Returns:
        The implementations that are installed, and the reasons of missing ones by name.

    Raises:
        AssertionError: a first loss differs from the first one's.
    """
    drawn = program.drawn()
    feeds = program.both_feeds(drawn)
    entrants: dict[str, StepTimer] = {}
    failed: dict[str, str] = {}
    first = None
    for name in names:
        try:
            if name not in RIVALS:
                if tensorflow is None:
                    continue
                entrant: StepTimer = tensorflow_process.enter(
                    tensorflow, name, program.name, dict(program.sizes)
                )
            else:
                rival = RIVALS[name](program, drawn)
                if rival is None:
                    continue
                entrant = LocalEntrant(rival, feeds)
        except (ImportError, PipeError) as error:
            failed[name] = str(error)
            continue
        first = entrant.loss if first is None else first
        if not abs(entrant.loss / first - 1) <= 1e-4:
            raise AssertionError(
                f"{program.name}: the first loss of {name} is {entrant.loss}, not {first}"
            )
        entrants[name] = entrant
        print(f"{programs.label(program)}: {name} is ready", file=sys.stderr, flush=True)
    return entrants, failed


def measured(
    entrants: Mapping[str, StepTimer], rounds: int = 5, seconds: float = 0.3
) -> dict[str, RoundTimes]:
    """Time every implementation in alternating rounds of ``seconds``."""
    times = {name: RoundTimes() for name in entrants}
    for k in range(rounds):
        for name in (list(entrants), list(reversed(entrants)))[k % 2]:
            wall, cpu = entrants[name].series(seconds)
            times[name].wall.append(wall)
            times[name].cpu.append(cpu)
    return times
