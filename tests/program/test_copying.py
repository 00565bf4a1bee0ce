"""The measured speed of copies on this machine."""

from __future__ import annotations

from itertools import pairwise

from passkit.program.copying import SIZES, CopySpeed, copy_speed


def test_copies_are_measured_once() -> None:
    """More bytes take longer, at a plausible rate; the result is cached."""
    speed = copy_speed()
    moved = [n for n, _ in speed.points]

    assert moved == [2 * n for n in SIZES]
    assert 1e8 < speed.bandwidth < 1e13
    assert speed.points[-1][1] > speed.points[0][1]
    assert copy_speed() is speed


def test_seconds_are_interpolated_between_sizes() -> None:
    """Seconds grow with bytes, and beyond the largest size in proportion."""
    speed = CopySpeed(((1000, 1e-6), (4000, 2e-6), (16000, 8e-6)))
    times = [speed.seconds(n) for n in (1, 1000, 1500, 4000, 9000, 16000, 32000)]

    assert all(a <= b for a, b in pairwise(times))
    assert times[-1] == 16e-6
    assert speed.seconds(0) == 1e-6
