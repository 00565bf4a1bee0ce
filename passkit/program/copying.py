"""Measure how fast this machine copies memory, to which profiles compare the speed of kernels.

Each size is copied as kernels write: through the caches and past them, on one thread and on all.
The fastest of these counts, so that no kernel is compared with less than the machine can do.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import product
from math import exp, log
from statistics import median
from time import perf_counter_ns
from typing import Any

import numpy as np
from attrs import frozen

from passkit.passes.rtcgen import FLAGS, sections_of
from passkit.runtime.native.build import build
from passkit.runtime.native.launcher import launcher
from passkit.runtime.native.units import KernelText

SIZES = tuple(1 << k for k in range(12, 27, 2))
"""The bytes that the measured copies read: 4 KiB to 64 MiB."""
TILE = 8192
"""The floats of a tile, as in most kernels."""
SOURCE = """extern "C" void {name}(
    void *const *buf, const int64_t *size, int64_t begin, int64_t end, unsigned char *scratch) {{
  const float *const x = (const float *)buf[0];
  float *const y = (float *)buf[1];
  for (int64_t tile = begin; tile < end; ++tile) {{
    const int64_t low = tile * {tile};
    const int64_t high = low + {tile} < size[0] ? low + {tile} : size[0];
    aligned_lanes<16>(y + low, low, high, [&](int64_t i, auto m) PK_INLINE {{
      {store}(y + i, load(x + i, m), m);
    }});
  }}
  {after}
}}
"""


@frozen
class CopySpeed:
    """Seconds of copies of several sizes.

    ``points`` are two or more pairs of bytes moved (read and written) and seconds, by increasing
    bytes.
    """

    points: tuple[tuple[int, float], ...]

    def seconds(self, nbytes: int) -> float:
        """Return the seconds in which ``nbytes`` are moved, interpolated between sizes.

        The interpolation is linear in the logarithms of both. Fewer bytes than the smallest copy
        take as long as that; more than the largest in proportion to it.

        >>> speed = CopySpeed(((1000, 1e-6), (4000, 2e-6)))
        >>> [round(speed.seconds(n) * 1e9) for n in (500, 2000, 8000)]
        [1000, 1414, 4000]
        """
        (smallest, shortest), *_, (largest, longest) = self.points
        if nbytes <= smallest:
            return shortest
        if nbytes >= largest:
            return longest * nbytes / largest
        sizes = np.log([n for n, _ in self.points])
        return exp(float(np.interp(log(nbytes), sizes, np.log([s for _, s in self.points]))))

    @property
    def bandwidth(self) -> float:
        """The bytes per second, read and written, of the largest copy, beyond the caches."""
        nbytes, seconds = self.points[-1]
        return nbytes / seconds


@cache
def copy_speed(single_thread: bool = False) -> CopySpeed:
    """Measure copies on this machine, once in a process, with the launcher and clock of kernels.

    It takes a while; the result is cached for each value of ``single_thread``.

    Args:
        single_thread: Whether to use one thread only; by default one or all, whichever copies
            faster.

    Raises: CompilerError if there is no C++ compiler, CacheError if others may write to the cache
    folder, SettingError if PASSKIT_THREADS is no number of threads.
    """
    kernels = [
        _kernel("copy_through", "store", ""),
        _kernel("copy_past", "stream", "stream_fence();"),
    ]
    entries = build(kernels, FLAGS).values()
    return CopySpeed(tuple((2 * size, _best(entries, size, single_thread)) for size in SIZES))


def _kernel(name: str, store: str, after: str) -> KernelText:
    """Return the text of a copy kernel.

    Args:
        name: the function's name.
        store: the C++ function that stores a vector.
        after: C++ that runs after the loop, such as a fence.
    """
    source = SOURCE.format(name=name, tile=TILE, store=store, after=after)
    return KernelText(name, name, f"namespace pk {{\n{source}}}\n", sections_of(source))


def _best(entries: Iterable[int], size: int, single_thread: bool) -> float:
    """Return the least seconds of a copy of ``size`` bytes, over kernels and one thread or all.

    ``entries`` are the addresses of the kernels. With ``single_thread``, or for no more than one
    tile, only one thread is tried.

    Raises: CompilerError if the launcher cannot be compiled.
    """
    array = np.ones(size // 4, np.float32)
    sharing = (False, True) if size > 4 * TILE and not single_thread else (False,)
    return min(_timed(array, entry, shared) for entry, shared in product(entries, sharing))


def _timed(array: Any, entry: int, shared: bool) -> float:
    """Return the median seconds of a copy of ``array``, of float32, by the kernel at ``entry``.

    ``entry`` is its address, ``shared`` tells whether all threads copy. The first run, which maps
    the pages, does not count.

    Raises: CompilerError if the launcher cannot be compiled.
    """
    times: list[int] = []
    last = 0

    def begin(*_: Any) -> None:
        """Note when a copy begins."""
        nonlocal last
        last = perf_counter_ns()

    def end(*_: Any) -> None:
        """Append the nanoseconds of a copy to ``times``."""
        times.append(perf_counter_ns() - last)

    native, kind = launcher(), array.dtype.num
    refs, tiles = [("input", 0), ("output", 0)], -(-array.size // TILE)
    rows = [
        ("python", begin, [], []),
        ("launch", entry, tiles, shared, refs, (array.size,)),
        ("python", end, [], []),
    ]
    bound = native.Bound((array.shape,), [(kind, array.shape)], 0, 0, rows, seconds=0.0)
    run = native.Program([("x", kind, 1)], 1, lambda _: bound)
    for _ in range(max(4, min(30, (1 << 24) // array.nbytes))):
        run((array,))
    return max(median(times[1:]), 1) / 1e9
