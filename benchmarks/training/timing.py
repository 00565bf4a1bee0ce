"""Steps timed, alternating in one run: passkit, PyTorch and JAX."""

from __future__ import annotations

import math
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

from training import Program
from training.rivals import RIVALS, Rival


def series(rival: Rival, feeds: Sequence[Any], seconds: float = 0.3) -> float:
    """The median seconds of a step, after steps to warm up."""
    time.sleep(0.02)
    times: list[int] = []
    end = time.perf_counter() + seconds
    while len(times) < 8 or time.perf_counter() < end:
        given = feeds[len(times) % len(feeds)]
        start = time.perf_counter_ns()
        rival.step(given)
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times[3:]) / 1e9


def ready(program: Program, names: Iterable[str]) -> dict[str, tuple[Rival, list[Any]]]:
    """The rivals that are installed and whose first loss is passkit's, with feeds of two draws."""
    drawn = program.drawn()
    feeds = [drawn.feeds, program.drawn(seed=1).feeds]
    found: dict[str, tuple[Rival, list[Any]]] = {}
    first = None
    for name in names:
        try:
            rival = RIVALS[name](program, drawn)
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        if rival is None:
            continue
        prepared = [rival.prepare(one) for one in feeds]
        loss = rival.value(rival.step(prepared[0]))
        first = loss if first is None else first
        if abs(loss / first - 1) > 1e-4:
            raise AssertionError(f"{program.name}: the first loss of {name} is {loss}, not {first}")
        found[name] = rival, prepared
    return found


def measured(program: Program, rivals: dict[str, tuple[Rival, list[Any]]], rounds: int = 5,
             seconds: float = 0.3) -> dict[str, float]:
    """Seconds of a step: the best round's median for each rival."""
    best = dict.fromkeys(rivals, math.inf)
    for k in range(rounds):
        for name in (list(rivals), list(reversed(rivals)))[k % 2]:
            best[name] = min(best[name], series(*rivals[name], seconds))
    return best


def speedup(times: dict[str, float]) -> float:
    """The best competitor's time over passkit's; NaN without one."""
    others = [s for name, s in times.items() if name != "passkit"]
    return min(others) / times["passkit"] if others else math.nan
