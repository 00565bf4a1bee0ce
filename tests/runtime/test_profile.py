"""Profiles: seconds and bytes of each step."""

from __future__ import annotations

import numpy as np

import passkit as pk
from passkit.dtype import dtype_of
from passkit.runtime.profile import Profile, Row, random_feeds

TEXT = "x: f32[n, 8]; w: f32[8, 8]; return exp(matmul(neg(x), w)), x"


def test_a_row_for_each_step() -> None:
    """Names, seconds and bytes of kernels, library calls and copies."""
    profile = pk.compile(pk.parse(TEXT)).profile(
        {"x": np.ones((100, 8), np.float32), "w": np.ones((8, 8), np.float32)}, runs=3)
    names = [r.step.split()[0] for r in profile.rows]

    assert sorted(names) == ["copy", "launch", "launch", "library"]
    assert all(r.seconds > 0 for r in profile.rows) and profile.seconds < 1
    assert {r.nbytes for r in profile.rows if r.step.startswith(("copy", "launch"))} == {6400}


def test_random_feeds_of_the_last_shapes() -> None:
    """Without feeds, unknown sizes are 64, or what was called with; state is as it was."""
    exe = pk.compile(pk.parse("x: f32[n]; state w: f32[] = 3.0; return mul(x, w)"))
    assert exe.profile(runs=1).rows[-1].nbytes == 4 * (64 + 64 + 1)
    exe(x=np.ones(7, np.float32))
    assert exe.profile(runs=1).rows[-1].nbytes == 4 * (7 + 7 + 1)
    assert exe.state["w"] == 3


def test_random_feeds_are_fixed() -> None:
    """The same numbers in every run, of the inputs' dtypes."""
    inputs = [("x", dtype_of("float32")), ("k", dtype_of("int64")), ("b", dtype_of("bool"))]
    one, two = (random_feeds(inputs, [(3,), (4,), (5,)]) for _ in range(2))

    assert [a.dtype.name for a in one.values()] == ["float32", "int64", "bool"]
    assert all(one[k].tobytes() == two[k].tobytes() for k in one)


def test_the_table() -> None:
    """Microseconds, shares, megabytes and bandwidth, and the sum."""
    lines = str(Profile((Row("launch a", 3e-6, 6000), Row("copy", 0.0, 0)))).splitlines()

    assert lines[0].split() == ["step", "us", "share", "MB", "GB/s"]
    assert lines[1].split() == ["launch", "a", "3.0", "100.0%", "0.006", "2.0"]
    assert lines[-1].split() == ["sum", "3.0"]
