"""Traces: events that Perfetto takes, nested as they ran."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np

import passkit as pk
from passkit.reporting.trace import trace
from passkit.runtime.profile import Profile, Row


def test_steps_stand_in_their_runs() -> None:
    """Each step begins and ends within its run, one after the other, with what it moves."""
    text = "x: f32[n, 8]; w: f32[8, 8]; return exp(matmul(neg(x), w))"
    feeds = {"x": np.ones((100, 8), np.float32), "w": np.ones((8, 8), np.float32)}
    with pk.PassContext(timing=True):
        exe = pk.compile(pk.parse(text))
    found = trace(exe.profile(feeds, runs=3, copies=False), exe.context.times)
    events = [e for e in found["traceEvents"] if e["ph"] == "X" and e["pid"] == 1]
    runs = [e for e in events if e["cat"] == "run"]
    steps = [e for e in events if e["cat"] != "run"]

    assert json.loads(json.dumps(found)) == found
    assert [e["name"] for e in runs] == ["run 0", "run 1", "run 2"]
    assert [e["cat"] for e in steps] == ["kernel", "library", "kernel"] * 3
    ends = [(e["ts"], e["ts"] + e["dur"]) for e in steps]
    assert all(a[1] <= b[0] for a, b in pairwise(ends))
    assert all(any(r["ts"] <= a and b <= r["ts"] + r["dur"] + 1e-3 for r in runs) for a, b in ends)
    assert steps[0]["args"]["node"] == "neg" and steps[0]["args"]["bytes"] == 6400


def test_passes_stand_before_them() -> None:
    """The compilation is a process of its own, each pass within what called it."""
    with pk.PassContext(timing=True) as context:
        pk.ApplyPasses(pk.parse("x: f32[4]; return exp(x)"), ["Fusion", "CodeGen"])
    found = trace(Profile(()), context.times)["traceEvents"]
    passes = {e["name"]: e for e in found if e["ph"] == "X"}

    assert {"Fusion", "CodeGen"} <= set(passes)
    assert min(e["ts"] for e in passes.values()) == 0
    assert passes["Fusion"]["ts"] + passes["Fusion"]["dur"] <= passes["CodeGen"]["ts"]


def test_aliases_are_no_events() -> None:
    """What takes no time is left out."""
    rows = (Row("alias a", 0.0, 0), Row("launch b", 1e-6, 8, "b"))
    found = trace(Profile(rows, (((0, 10), (20, 1000)),)))["traceEvents"]

    assert [e["name"] for e in found if e["ph"] == "X"] == ["run 0", "b"]
