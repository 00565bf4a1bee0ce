"""Profiles: seconds and bytes of each step, together for each kernel, against a copy."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from tests.teams import team_of

TEXT = "x: f32[n, 8]; w: f32[8, 8]; return exp(matmul(neg(x), w)), x"


def test_each_step_has_a_row() -> None:
    """Rows have names, seconds and bytes of kernels, library calls and copies, and their nodes."""
    profile = pk.compile(pk.parse(TEXT)).profile(
        {"x": np.ones((100, 8), np.float32), "w": np.ones((8, 8), np.float32)}, runs=3
    )
    names = [r.step.split()[0] for r in profile.rows]

    assert sorted(names) == ["copy", "launch", "launch", "library"]
    assert all(r.seconds > 0 for r in profile.rows) and profile.seconds < 1
    assert {r.nbytes for r in profile.rows if r.step.startswith(("copy", "launch"))} == {6400}
    assert {r.flops for r in profile.rows} == {0, 2 * 100 * 8 * 8}
    assert set(profile.by_node) == {"neg", "matmul", "exp"}
    assert all(r.of_copy is not None and r.of_copy > 0 for r in profile.rows)


def test_default_feeds_have_the_last_shapes() -> None:
    """Without feeds, unknown sizes are those of the last call or 64; state is not changed."""
    exe = pk.compile(pk.parse("x: f32[n]; state w: f32[] = 3.0; return mul(x, w)"))
    assert exe.profile(runs=1, copies=False).rows[-1].nbytes == 4 * (64 + 64 + 1)
    exe(x=np.ones(7, np.float32))
    assert exe.profile(runs=1, copies=False).rows[-1].nbytes == 4 * (7 + 7 + 1)
    assert exe.state["w"] == 3


def test_feeds_by_keyword() -> None:
    """Inputs are fed as in a call; those named like an option are passed in a mapping."""
    text = "x: f32[n]; runs: f32[n]; copies: f32[n]; return fma(runs, copies, x)"
    exe = pk.compile(pk.parse(text))
    ones = np.ones(9, np.float32)
    options = {"runs": ones, "copies": ones}

    profile = exe.profile(options, 1, False, x=ones)
    assert profile.rows[-1].nbytes == exe.profile({"x": ones, **options}, 2).rows[-1].nbytes
    assert pk.compile(pk.parse("x: f32[n]; return exp(x)")).profile(x=ones, runs=1, copies=False)
    with pytest.raises(pk.FeedError, match=r"runs=an array float32\[9\] .*profile\(\{'runs': …"):
        exe.profile(x=ones, runs=ones, copies=ones)
    with pytest.raises(pk.FeedError, match="there is no input 'y'; known: copies, runs, x"):
        exe.profile(options, y=ones, runs=1, copies=False)


def test_random_feeds_are_fixed() -> None:
    """Random feeds are the same in every run, of the inputs' dtypes."""
    feeds: list[tuple[Any, ...]] = []
    op = pk.register_op("test_profile_recorded", num_inputs=3)
    op.set_attr("FInferShape", lambda node, x, k, b: x)
    op.set_attr("FInferType", lambda node, x, k, b: x)
    op.set_attr("FCompute", lambda node, *arrays: feeds.append(arrays) or arrays[0])
    inputs = pk.var("x", (3,)), pk.var("k", (4,), "int64"), pk.var("b", (5,), "bool")
    for _ in range(2):
        pk.compile(pk.Graph([op(*inputs)])).profile(runs=1, copies=False)
    first, *others = feeds

    assert [a.dtype.name for a in first] == ["float32", "int64", "bool"]
    assert len(others) > 0
    for arrays in others:
        assert all(a.tobytes() == b.tobytes() for a, b in zip(first, arrays, strict=True))


def profile_of(*steps: dict[str, Any]) -> Any:
    """Return a profile whose steps have these fields."""
    measured = pk.compile(pk.parse("x: f32[4]; return exp(x)")).profile(runs=1, copies=False)
    other = {"nbytes": 0, "node": "", "threads": 1, "copying": 0.0, "flops": 0}
    return evolve(
        measured, rows=tuple(evolve(measured.rows[0], **{**other, **step}) for step in steps)
    )


def test_a_profile_prints_one_line_per_kernel() -> None:
    """Lines have calls, time, share, bytes, rate and fraction of a copy, most time first."""
    profile = profile_of(
        {"step": "launch a", "seconds": 1e-6, "nbytes": 2000, "node": "x", "copying": 5e-7},
        {"step": "library b", "seconds": 6e-6, "nbytes": 6000, "flops": 12_000_000},
        {"step": "launch a", "seconds": 1e-6, "nbytes": 2000, "node": "y", "copying": 5e-7},
        {"step": "alias c", "seconds": 0.0},
    )
    lines = str(profile).splitlines()

    assert lines[0].split() == [
        "kernel",
        "calls",
        "time",
        "share",
        "bytes",
        "GB/s",
        "of",
        "copy",
        "speed",
        "GFLOP/s",
    ]
    assert " ".join(lines[1].split()) == "library b 1 6 µs 75.0 % 5.86 KiB 1.0 2000.0"
    assert " ".join(lines[2].split()) == "launch a 2 2 µs 25.0 % 3.91 KiB 2.0 50 %"
    assert lines[3].split()[:4] == ["sum", "3", "8", "µs"]
    assert len(lines) == 4


def test_as_dict_has_kernels_and_steps() -> None:
    """`as_dict` has the table's lines and the single steps."""
    data = profile_of(
        {
            "step": "launch a",
            "seconds": 1e-6,
            "nbytes": 2000,
            "node": "x",
            "threads": 2,
            "copying": 5e-7,
        }
    ).as_dict()

    assert json.loads(json.dumps(data)) == data
    assert data["kernels"] == [
        {
            "what": "launch a",
            "calls": 1,
            "seconds": 1e-6,
            "share": 1.0,
            "bytes": 2000,
            "of_copy": 0.5,
            "flops": 0,
        }
    ]
    assert data["steps"][0]["node"] == "x"
    assert data["steps"][0]["threads"] == 2


def test_large_steps_are_shared_by_the_team() -> None:
    """A large step is shared by the team of threads, a small one is not."""
    exe = pk.compile(pk.parse("x: f32[n]; return exp(x)"))
    with team_of(3):
        small, large = (
            exe.profile({"x": np.ones(n, np.float32)}, runs=1, copies=False).rows[0].threads
            for n in (100, 1 << 22)
        )

    assert (small, large) == (1, 3)


def test_flops_of_convolutions() -> None:
    """A convolution has two operations for each element of a window, for each result."""
    x, w = pk.var("x", ("n", 8, 8, 4)), pk.constant(np.ones((3, 3, 2, 6), np.float32))
    graph = pk.Graph([pk.ops.conv2d(x, w, padding="SAME", groups=2)])
    rows = pk.compile(graph).profile({"x": np.ones((5, 8, 8, 4), np.float32)}, 1, False).rows

    assert sum(r.flops for r in rows) == 2 * 5 * 8 * 8 * 6 * 3 * 3 * 2
