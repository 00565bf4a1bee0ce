"""Profiles compare the time of kernels with that of copies, which are measured on this machine."""

from __future__ import annotations

import numpy as np

import passkit as pk

KIB, MIB = 1 << 10, 1 << 20


def copying(*sizes: int) -> list[float]:
    """Return the seconds of copies of as many bytes as kernels read, and as many that they write.

    Args:
        *sizes: The bytes that each kernel reads, multiples of 4.
    """
    run = pk.compile(pk.parse("x: f32[n]; return exp(x)"))
    seconds = []
    for size in sizes:
        (row,) = run.profile({"x": np.zeros(size // 4, np.float32)}, runs=1).rows
        assert row.nbytes == 2 * size
        seconds.append(row.copying)
    return seconds


def test_copies_are_measured_once() -> None:
    """More bytes take longer, at a plausible rate; the measurement is used for all profiles."""
    sizes = [4 << k for k in range(10, 25, 2)]
    seconds = copying(*sizes)

    assert (sizes[0], sizes[-1]) == (4 * KIB, 64 * MIB)
    assert seconds[-1] > seconds[0] > 0
    assert 1e8 < 2 * sizes[-1] / seconds[-1] < 1e13
    assert copying(*sizes) == seconds


def test_seconds_are_interpolated_between_measured_sizes() -> None:
    """A copy between two measured sizes takes no less than one and no more than the other."""
    for low, between, high in ((4, 6, 16), (1024, 2048, 4096), (16384, 40000, 65536)):
        seconds = copying(low * KIB, between * KIB, high * KIB)
        assert min(seconds) <= seconds[1] <= max(seconds)

    assert copying(16) == copying(4 * KIB)
