"""Sums whose last block joins partial results: launches, counters and graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.cuda import on_cuda
from tests.planned import agrees, use_cached_plans
from tests.runtime.cuda.small_programs import fill_pool, normal, on_device

o = pk.ops


def columns() -> pk.Graph:
    """Return sums over the first axis."""
    return pk.Graph([o.reduce_sum(pk.var("x", (900, 40)), axis=0)])


def two_sums() -> pk.Graph:
    """Return what is computed of two long sums, in other kernels."""
    total = o.reduce_sum(pk.var("x", (900, 40)), axis=0)
    other = o.reduce_sum(pk.var("y", (70_000,)))
    rows = o.softmax(pk.var("z", (50, 40)) + total * 0.01)
    return pk.Graph([rows, o.tanh(pk.var("v", (3000,)) + other * 0.001)])


def test_a_sum_is_one_launch(equipped: Any, rng: Any) -> None:
    """Each call launches one kernel, whose counters were set to 0 once, and are 0 again."""
    fill_pool()
    graph = columns()
    exe = on_cuda(graph)
    before = len(equipped.calls("fill"))
    for _ in range(3):
        feeds = {"x": normal(rng, 900, 40)}
        agrees(graph, feeds, exe(feeds), rtol=1e-4)

    assert len(equipped.calls("launch")) == 3 and len(equipped.calls("fill")) == before + 1


def test_programs_have_counters_of_their_own(equipped: Any, rng: Any) -> None:
    """The kernels of two programs count at different addresses."""
    fill_pool()
    graph = columns()
    programs = [on_cuda(graph), on_cuda(graph)]
    feeds = {"x": normal(rng, 900, 40)}
    for exe in programs:
        agrees(graph, feeds, exe(feeds), rtol=1e-4)

    assert len({launch.arguments[3] for launch in equipped.calls("launch")}) == 2


def test_a_plan_from_the_cache_has_counters(
    equipped: Any, rng: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compilation that starts from a plan on disk launches the same kernel."""
    graph = columns()
    on_cuda(graph)
    use_cached_plans(monkeypatch)
    exe = on_cuda(graph)
    feeds = {"x": normal(rng, 900, 40)}
    agrees(graph, feeds, exe(feeds), rtol=1e-4)

    assert len(equipped.calls("launch")) == 1


def test_graphs_are_replayed(equipped: Any, rng: Any) -> None:
    """Graphs that contain such kernels give the right sums each time."""
    fill_pool()
    graph = two_sums()
    exe: Any = on_cuda(graph)
    arrays = {"x": normal(rng, 900, 40), "y": normal(rng, 70_000), "z": normal(rng, 50, 40)}
    arrays["v"] = normal(rng, 3000)
    expected = pk.interpret(graph, arrays)
    feeds = {name: on_device(a) for name, a in arrays.items()}
    for _ in range(5):
        for result, value in zip(exe(feeds), expected, strict=True):
            np.testing.assert_allclose(result, value, rtol=1e-4, atol=1e-4)

    assert exe.stats["graph_replays"] > 0
