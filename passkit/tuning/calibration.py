"""Calibration: measures the numbers of this CPU that the planner's model uses.

By the launcher and the compiler that kernels have. A few seconds, in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from passkit.library.profile import Profile
from passkit.passes.rtcgen import FLAGS
from passkit.program.copying import copy_speed
from passkit.runtime.native.build import KernelText, build
from passkit.runtime.native.launcher import MOST_THREADS, launcher, num_threads_wanted

SIGNATURE = """extern "C" void {name}(
    void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {{
{body}}}
"""
CHASE = """  const int32_t *const next = (const int32_t *)buf[0];
  int32_t at = 0;
  for (int64_t k = 0; k < size[0]; ++k) at = next[at];
  ((int32_t *)buf[1])[0] = at;
"""
WORK = """  for (int64_t tile = begin; tile < end; ++tile) {
    uint32_t x = uint32_t(tile);
    for (int64_t k = 0; k < size[0]; ++k) x = x * 1664525u + 1013904223u;
    ((uint32_t *)buf[1])[16 * tile] = x;
  }
"""
STEPS, RUNS = 100, 21
"""Launches in a program, and how often it runs."""
TURNS = 2000
"""Of the loop of a tile that works: some microseconds."""
LINE = 16
"""Elements of four bytes in a cache line."""
HOPS, CHASES = 10_000, 5
"""Reads of a chase, and how often it runs."""
SIZES = tuple(1 << k for k in range(14, 26))
"""Bytes that are chased through: 16 KiB to 32 MiB."""
LEAST = 1 << 17
"""Bytes of the shortest copy that counts: others take little more than being measured."""


def calibrate() -> Profile:
    """The profile of this CPU, as it is now: other work on the machine shows in it.

    Raises: CompilerError when nothing here compiles.
    """
    kernels = [_kernel("passkit_work", WORK), _kernel("passkit_chase", CHASE)]
    entries = build(kernels, FLAGS)
    work, threads = entries["passkit_work"], num_threads_wanted()
    alone = _step(work, TURNS, 1, shared=False)
    return Profile(
        curve=_curve(),
        launch=max(_step(work, 0, 1, shared=False), 1e-9),
        meeting=max(_step(work, TURNS, threads, shared=True) - alone, 1e-9),
        latency=tuple(_latencies(entries["passkit_chase"])),
    )


def _kernel(name: str, body: str) -> KernelText:
    source = SIGNATURE.format(name=name, body=body)
    return KernelText(name, name, f"#include <cstdint>\n{source}", ())


def _curve() -> tuple[tuple[int, float], ...]:
    """What one thread moves, in bytes and bytes a second, never faster with more of them."""
    found: list[tuple[int, float]] = []
    best = float("inf")
    for nbytes, seconds in copy_speed(alone=True).points:
        if nbytes >= LEAST:
            best = min(best, nbytes / seconds)
            found.append((nbytes, best))
    return tuple(found)


def _step(entry: int, turns: int, tiles: int, shared: bool) -> float:
    """The seconds of one more step of a program."""
    row = ("launch", entry, tiles, shared, [("input", 0), ("output", 0)], (turns,))
    array = np.ones(4, np.int32)
    one, many = ([row] * count for count in (1, STEPS + 1))
    return max(0.0, _seconds(array, many, RUNS) - _seconds(array, one, RUNS)) / STEPS


def _latencies(entry: int) -> Iterator[tuple[int, float]]:
    """For each size the seconds of a read that needs the one before."""
    rng = np.random.default_rng(0)
    for nbytes in SIZES:
        lines = nbytes // 4 // LINE
        order = rng.permutation(lines).astype(np.int32)
        chain = np.zeros(nbytes // 4, np.int32)
        chain[order * LINE] = np.roll(order, -1) * LINE
        row = ("launch", entry, 1, False, [("input", 0), ("output", 0)], (HOPS,))
        yield nbytes, _seconds(chain, [row], CHASES) / HOPS


def _seconds(array: Any, rows: list[Any], runs: int) -> float:
    """The median seconds of a run of a program on an array, with a line of result a thread."""
    made, kind = launcher(), array.dtype.num
    bound = made.Bound((array.shape,), [(kind, (MOST_THREADS * LINE,))], 0, 0, rows, seconds=0.0)
    run = made.Program([("x", kind, 1)], 1, lambda _: bound)
    times = []
    for _ in range(runs + 1):
        begin = perf_counter()
        run((array,))
        times.append(perf_counter() - begin)
    return median(times[1:])
