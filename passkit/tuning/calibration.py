"""Calibrate the cost model: measure the figures of this CPU that it uses.

Measurements use the launcher and the compiler of kernels, and take a few seconds in this process.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from passkit.library.cpu_profile import CpuProfile
from passkit.passes.rtcgen import FLAGS
from passkit.program.copying import copy_speed
from passkit.runtime.native.build import build
from passkit.runtime.native.launcher import MAX_THREADS, launcher, requested_threads
from passkit.runtime.native.units import KernelText

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
NUM_LAUNCHES = 100
"""The number of launches of a program."""
RUNS = 21
"""The number of runs of a program of launches."""
ITERATIONS = 2000
"""The iterations of the loop of a tile, which take some microseconds."""
LINE = 16
"""The elements of four bytes in a cache line."""
NUM_READS = 10_000
"""The dependent reads of a pointer chase."""
CHASE_RUNS = 5
"""The number of runs of a pointer chase."""
SIZES = tuple(1 << k for k in range(14, 26))
"""The bytes of the working sets of pointer chases: 16 KiB to 32 MiB."""
MIN_COPY_BYTES = 1 << 17
"""The bytes of the smallest copy that counts: smaller ones take little more than a measurement."""


def calibrate() -> CpuProfile:
    """Measure this CPU and return its profile; other work on the machine affects the result.

    Raises:
        CompilerError: If there is no C++ compiler, or it fails.
        SettingError: If PASSKIT_THREADS is not a number of threads.
        CacheError: If other users may write to the cache folder.
    """
    kernels = [_kernel("passkit_work", WORK), _kernel("passkit_chase", CHASE)]
    entries = build(kernels, FLAGS)
    work, threads = entries["passkit_work"], requested_threads()
    serial = _launch_seconds(work, ITERATIONS, 1, shared=False)
    return CpuProfile(
        curve=_curve(),
        launch=max(_launch_seconds(work, 0, 1, shared=False), 1e-9),
        meeting=max(_launch_seconds(work, ITERATIONS, threads, shared=True) - serial, 1e-9),
        latency=tuple(_latencies(entries["passkit_chase"])),
    )


def _kernel(name: str, body: str) -> KernelText:
    """Return the source of a kernel called ``name`` whose body is the C++ text ``body``."""
    source = SIGNATURE.format(name=name, body=body)
    return KernelText(name, name, f"#include <cstdint>\n{source}", ())


def _curve() -> tuple[tuple[int, float], ...]:
    """Return pairs of the bytes that one thread reads and writes and the bytes per second, by size.

    Sizes below `MIN_COPY_BYTES` are left out. The speed is made non-increasing: for each size, it
    is the lowest of that and all smaller sizes. Raises: CompilerError if there is no C++ compiler,
    SettingError if PASSKIT_THREADS is no number of threads, CacheError if other users may write to
    the cache folder.
    """
    curve: list[tuple[int, float]] = []
    best = float("inf")
    for nbytes, seconds in copy_speed(single_thread=True).points:
        if nbytes >= MIN_COPY_BYTES:
            best = min(best, nbytes / seconds)
            curve.append((nbytes, best))
    return tuple(curve)


def _launch_seconds(entry: int, iterations: int, tiles: int, shared: bool) -> float:
    """Return the seconds of a launch that follows others in a program, at least 0.

    Args:
        entry: The address of the kernel.
        iterations: Its size argument, the iterations of each tile.
        tiles: The number of tiles.
        shared: Whether threads share the tiles.
    """
    step = ("launch", entry, tiles, shared, [("input", 0), ("output", 0)], (iterations,))
    array = np.ones(4, np.int32)
    one = _seconds(array, [step], RUNS)
    many = _seconds(array, [step] * (NUM_LAUNCHES + 1), RUNS)
    return max(0.0, many - one) / NUM_LAUNCHES


def _latencies(entry: int) -> Iterator[tuple[int, float]]:
    """Yield, for each working set in `SIZES`, its bytes and the seconds of a dependent read.

    The address of such a read depends on the value of the read before. ``entry`` is the address of
    the pointer-chasing kernel.
    """
    rng = np.random.default_rng(0)
    for nbytes in SIZES:
        lines = nbytes // 4 // LINE
        order = rng.permutation(lines).astype(np.int32)
        chain = np.zeros(nbytes // 4, np.int32)
        chain[order * LINE] = np.roll(order, -1) * LINE
        step = ("launch", entry, 1, False, [("input", 0), ("output", 0)], (NUM_READS,))
        yield nbytes, _seconds(chain, [step], CHASE_RUNS) / NUM_READS


def _seconds(array: Any, steps: list[Any], runs: int) -> float:
    """Return the median seconds of a run of a program on an array, after one untimed run.

    Args:
        array: Its input; its output has a cache line for each thread.
        steps: The launcher's steps, as tuples.
        runs: The number of timed runs.
    """
    native, kind = launcher(), array.dtype.num
    bound = native.Bound((array.shape,), [(kind, (MAX_THREADS * LINE,))], 0, 0, steps, seconds=0.0)
    run = native.Program([("x", kind, 1)], 1, lambda _: bound)
    times = []
    for _ in range(runs + 1):
        begin = perf_counter()
        run((array,))
        times.append(perf_counter() - begin)
    return median(times[1:])
