"""Traces for Perfetto: events of runs, steps, passes and threads."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np

import passkit as pk
from passkit.reporting.trace import trace
from passkit.runtime.profile import ExecutionProfile, StepTime, ThreadShare
from tests.teams import team_of


def test_steps_are_inside_their_runs() -> None:
    """Each step is within its run, after the step before it, with its node and bytes."""
    text = "x: f32[n, 8]; w: f32[8, 8]; return exp(matmul(neg(x), w))"
    feeds = {"x": np.ones((100, 8), np.float32), "w": np.ones((8, 8), np.float32)}
    with pk.PassContext(timing=True):
        exe = pk.compile(pk.parse(text))
    result = trace(exe.profile(feeds, runs=3, copies=False), exe.context.times)
    events = [e for e in result["traceEvents"] if e["ph"] == "X" and e["pid"] == 1]
    runs = [e for e in events if e["cat"] == "run"]
    steps = [e for e in events if e["cat"] != "run"]

    assert json.loads(json.dumps(result)) == result
    assert [e["name"] for e in runs] == ["run 0", "run 1", "run 2"]
    assert [e["cat"] for e in steps] == ["kernel", "library", "kernel"] * 3
    ends = [(e["ts"], e["ts"] + e["dur"]) for e in steps]
    assert all(a[1] <= b[0] for a, b in pairwise(ends))
    assert all(any(r["ts"] <= a and b <= r["ts"] + r["dur"] + 1e-3 for r in runs) for a, b in ends)
    assert steps[0]["args"]["node"] == "neg" and steps[0]["args"]["bytes"] == 6400


def test_passes_are_a_process_of_their_own() -> None:
    """The compilation has an event for each pass, relative to the first."""
    with pk.PassContext(timing=True) as context:
        pk.ApplyPasses(pk.parse("x: f32[4]; return exp(x)"), ["Fusion", "CodeGen"])
    result = trace(ExecutionProfile(()), context.times)["traceEvents"]
    passes = {e["name"]: e for e in result if e["ph"] == "X"}

    assert {"Fusion", "CodeGen"} <= set(passes)
    assert min(e["ts"] for e in passes.values()) == 0
    assert passes["Fusion"]["ts"] + passes["Fusion"]["dur"] <= passes["CodeGen"]["ts"]


def test_aliases_have_no_events() -> None:
    """Steps that only alias memory are left out."""
    rows = (StepTime("alias a", 0.0, 0), StepTime("launch b", 1e-6, 8, "b"))
    result = trace(ExecutionProfile(rows, (((0, 10), (20, 1000)),)))["traceEvents"]

    assert [e["name"] for e in result if e["ph"] == "X"] == ["run 0", "b"]


def test_threads_have_rows_of_their_own() -> None:
    """The share of each thread in a step is on the thread's row, with its tiles."""
    rows = (StepTime("launch a", 1e-6, 8, "a", 2), StepTime("launch b", 1e-6, 8, "b", 2))
    spans = (((1000, 500), (1500, 900)),)
    shares = (ThreadShare(0, 1010, 400, (0, 3), 0, 0), ThreadShare(2, 1600, 700, (3, 8), 0, 1))
    result = trace(ExecutionProfile(rows, spans, shares))["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in result if e["name"] == "thread_name"}
    events = [e for e in result if e.get("cat") == "share"]

    assert names == {1: "the calling thread", 3: "worker 2"}
    assert [(e["name"], e["tid"], e["ts"], e["dur"], e["args"]) for e in events] == [
        ("a", 1, 0.01, 0.4, {"first": 0, "last": 3}),
        ("b", 3, 0.6, 0.7, {"first": 3, "last": 8}),
    ]


def test_shares_belong_to_steps() -> None:
    """Each step's tiles are covered once in each run, wherever a team ran it."""
    exe = pk.compile(pk.parse("x: f32[n, 512]; return exp(x), reduce_sum(mul(x, x), axis=1)"))
    feeds = {"x": np.ones((2000, 512), np.float32)}
    with team_of(2):
        profiles = [exe.profile(feeds, runs=4, copies=False) for _ in range(10)]
    shared = next(p for p in profiles if p.shares)
    steps: dict[tuple[int, int], list[ThreadShare]] = {}
    for s in shared.shares:
        steps.setdefault((s.run, s.step), []).append(s)

    for (run, row), each in steps.items():
        begin, took = shared.spans[run][row]
        assert all(begin <= s.begin and s.begin + s.nanoseconds <= begin + took for s in each)
        tiles = sorted(tile for s in each for tile in range(*s.tiles))
        assert tiles == list(range(len(tiles))) and len(tiles) > 1
