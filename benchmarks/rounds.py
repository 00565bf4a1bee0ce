"""Rounds of competitors that alternate, for calls of a millisecond or so."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter, sleep
from typing import Any

SECONDS = 1.5
"""About how long all rounds of a competitor take, at most."""
MIN_ROUNDS = 5
SPINNING = 0.003
"""The seconds after which the threads of a competitor sleep. OpenMP's spin for a millisecond after
a loop, and would take a core from the competitor that comes next."""
BLAS_SPINNING = 0.03
"""Those for competitors that call OpenBLAS: its threads spin for 2^26 cycles, about 20 ms."""
WARM_CALLS = 3
"""The untimed calls before a timed one, which wake the competitor's own threads."""


def times_of(
    runs: Mapping[str, Callable[[], Any]], rounds: int, pause: float = SPINNING
) -> dict[str, dict[str, float]]:
    """Return the median and the least seconds of each function, all of which run in each round.

    The order changes with each round. Before a timed call the threads of others go to sleep, and
    untimed calls wake those of the function and bring its arrays to the caches. Slow functions have
    fewer rounds.

    Args:
        runs: the functions by name.
        rounds: the most rounds.
        pause: the seconds in which the threads of others go to sleep.
    """
    slowest = 0.0
    for run in runs.values():
        run()
        begin = perf_counter()
        run()
        slowest = max(slowest, perf_counter() - begin)
    rounds = max(MIN_ROUNDS, min(rounds, int(SECONDS / max(slowest, 1e-9) / (1 + WARM_CALLS))))
    times: dict[str, list[float]] = {name: [] for name in runs}
    order, rng = list(runs), random.Random(0)
    for _ in range(rounds):
        rng.shuffle(order)
        for name in order:
            run = runs[name]
            sleep(pause)
            for _ in range(WARM_CALLS):
                run()
            begin = perf_counter()
            run()
            times[name].append(perf_counter() - begin)
    return {name: {"median": median(t), "least": min(t)} for name, t in times.items()}
