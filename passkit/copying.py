"""How fast this machine copies: what the speed of a kernel is measured by."""

from __future__ import annotations

from functools import cache
from math import exp, log

import numpy as np
from attrs import frozen

from passkit.compiler import compile
from passkit.graph import Graph
from passkit.node import var

SIZES = tuple(1 << k for k in range(12, 27, 2))
"""Bytes that are read in turn: 4 KiB to 64 MiB."""


@frozen
class CopySpeed:
    """What copies of several sizes took: pairs of bytes moved (read and written) and seconds."""

    points: tuple[tuple[int, float], ...]

    def seconds(self, nbytes: int) -> float:
        """The time in which so many bytes are moved; between sizes, by the nearest two.

        >>> speed = CopySpeed(((1000, 1e-6), (4000, 2e-6)))
        >>> [round(speed.seconds(n) * 1e9) for n in (500, 2000, 8000)]
        [1000, 1414, 4000]
        """
        (low, least), *_, (high, most) = self.points
        if nbytes <= low:
            return least
        if nbytes >= high:
            return most * nbytes / high
        sizes = np.log([n for n, _ in self.points])
        return exp(float(np.interp(log(nbytes), sizes, np.log([s for _, s in self.points]))))

    @property
    def bandwidth(self) -> float:
        """Bytes a second that go to memory and back, past the caches."""
        nbytes, seconds = self.points[-1]
        return nbytes / seconds


@cache
def copy_speed() -> CopySpeed:
    """This machine's, measured once in a process by a kernel that changes signs.

    It runs as every kernel does, on as many threads, and with the same clock around it.
    """
    x = var("x", ("n",))
    run = compile(Graph([-x]), target="cpu")
    points = []
    for size in SIZES:
        array = np.ones(size // 4, np.float32)
        row = run.profile({"x": array}, runs=max(5, min(30, (1 << 25) // size)), copies=False)
        points.append((2 * size, max(row.seconds, 1e-9)))
    return CopySpeed(tuple(points))
