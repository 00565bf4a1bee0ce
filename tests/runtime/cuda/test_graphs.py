"""Graphs of kernels, products, convolutions and copies: when they are built, and what they do."""

from __future__ import annotations

import gc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

import passkit as pk
from tests.cuda import on_cuda
from tests.emulator.fake_driver import FakeDriver
from tests.emulator.fake_libraries import WORKSPACE
from tests.planned import agrees
from tests.runtime.cuda.small_programs import (
    MAX_GRAPHS,
    device,
    device_pool,
    fill_pool,
    hold_memory,
    layer,
    normal,
    on_device,
)

o = pk.ops


def test_steps_become_one_graph(equipped: Any, rng: Any) -> None:
    """The second call captures all three steps; later calls are one graph launch."""
    fill_pool()
    graph = layer()
    exe = on_cuda(graph, host=("library",))
    for _ in range(20):
        feeds = {"x": normal(rng, 30, 16)}
        agrees(graph, feeds, exe(feeds), rtol=1e-4)

    assert (exe.stats["graphs_made"], exe.stats["graph_replays"]) == (1, 19)
    assert len(equipped.calls("capture")) == 1 and not equipped.calls("graph")
    assert len(equipped.calls("launch")) == 2 * 2, "one by one, and recorded"
    with device().active("a test"):
        assert device().driver.supports_graphs


def test_each_set_of_addresses_has_a_graph(equipped: Any, rng: Any) -> None:
    """Each set of addresses has a graph; the least recently used one is dropped."""
    fill_pool()
    graph = layer()
    exe: Any = on_cuda(graph, host=("library",))
    arrays = [normal(rng, 30, 16) for _ in range(MAX_GRAPHS + 1)]
    feeds = [on_device(a) for a in arrays]
    expected = [pk.interpret(graph, {"x": a})[0] for a in arrays]

    def call(*which: int) -> tuple[int, int]:
        for k in which:
            (result,) = exe(x=feeds[k])
            np.testing.assert_allclose(result, expected[k], rtol=1e-4, atol=1e-4)
        return exe.stats["graphs_made"], exe.stats["graph_replays"]

    assert call(0, 1) == (0, 0)
    assert call(0, 1, 0, 1, 0, 1) == (2, 6)
    assert call(*range(2, MAX_GRAPHS)) == (2, 6) and not equipped.calls("drop")
    assert call(MAX_GRAPHS) == (2, 6) and len(equipped.calls("drop")) == 1
    assert call(0) == (2, 6), "it is the one that was dropped"
    assert call(MAX_GRAPHS, 0) == (4, 8)
    exe = None
    gc.collect()
    assert len(equipped.calls("drop")) == len(equipped.calls("capture"))


def test_a_graph_writes_to_no_foreign_memory(equipped: Any, rng: Any) -> None:
    """Where others hold the memory of the last call, nothing is written there."""
    fill_pool()
    graph = layer()
    exe = on_cuda(graph, host=("library",))
    taken: list[Any] = []
    for k in range(12):
        feeds = {"x": normal(rng, 30, 16)}
        agrees(graph, feeds, exe(feeds), rtol=1e-4)
        if k in (3, 7):
            sizes = (200, 1000, 2000, 4000, 8000)
            taken += [x for n in sizes for x in hold_memory(2, n)]
            retained = [on_device(np.full(n // 4, 7.0, np.float32)) for n in sizes]
    assert exe.stats["graphs_made"] == 3 and exe.stats["graph_replays"] == 12 - 3
    assert all((a.numpy() == 7).all() for a in retained)


def test_another_workspace_needs_another_graph(fake: FakeDriver, rng: Any) -> None:
    """Where others hold only the workspace of the last call, a new graph is captured."""
    fill_pool()
    graph = layer(24)
    exe = on_cuda(graph, host=("library",))
    retained: list[Any] = []
    for k in range(6):
        feeds = {"x": normal(rng, 30, 16)}
        agrees(graph, feeds, exe(feeds), rtol=1e-4)
        if k == 2:
            retained = [on_device(np.full(WORKSPACE // 4, 7.0, np.float32)) for _ in range(2)]
    assert (exe.stats["graphs_made"], exe.stats["graph_replays"]) == (2, 5)
    assert all((a.numpy() == 7).all() for a in retained)


def test_graphs_keep_results_of_other_programs(equipped: Any, rng: Any) -> None:
    """A graph writes to no memory that holds another program's outputs."""
    graphs = [layer(8), layer(24), pk.Graph([o.exp(layer(8).outputs[0])])]
    exes = [on_cuda(g, host=("library",)) for g in graphs]
    retained: list[tuple[Any, Any]] = []
    for k in range(18):
        feeds = {"x": normal(rng, 30, 16)}
        (result,) = exes[k % 3](feeds, out="device")
        retained.append((result, pk.interpret(graphs[k % 3], feeds)[0]))
        retained = retained[-5:]
        for array, expected in retained:
            np.testing.assert_allclose(array.numpy(), expected, rtol=1e-4, atol=1e-4)
    assert sum(e.stats["graph_replays"] for e in exes) > 0


def test_graphs_of_convolutions(equipped: Any, rng: Any) -> None:
    """Their workspace belongs to the call; constant filters are uploaded once."""
    fill_pool()
    x, w = pk.var("x", ("n", 6, 7, 2)), pk.var("w", (3, 2, 2, 5))
    fixed = normal(rng, 2, 2, 5, 3)
    y = o.conv2d(o.tanh(x), w, strides=(2, 2), padding="SAME")
    graph = pk.Graph([o.exp(o.conv2d(y, fixed, padding="VALID"))])
    exe = on_cuda(graph, host=("library",))
    moved = []
    for n in (3, 2, 3, 3, 2, 2, 3):
        feeds = {"x": normal(rng, n, 6, 7, 2), "w": normal(rng, 3, 2, 2, 5)}
        agrees(graph, feeds, exe(feeds), rtol=1e-3)
        moved.append(exe.stats["bytes_uploaded"])

    assert exe.stats["host_steps"] == 0 and moved[0] == moved[2] + fixed.nbytes
    assert (exe.stats["graphs_made"], exe.stats["graph_replays"]) == (2, 5)


def test_graphs_update_variables(equipped: Any, rng: Any) -> None:
    """New values are copied in the graph, and values that the host sets are used."""
    fill_pool()
    weights = pk.state("w", normal(rng, 16, 16))
    x = pk.var("x", (16, 16))
    y = o.matmul(o.tanh(x), weights)
    graph = pk.Graph([o.assign(weights, o.matmul(o.exp(y * 0.01), weights) * 0.1), y])
    exe, other = on_cuda(graph, host=("library",)), pk.compile(graph)
    for k in range(8):
        if k == 5:
            for each in (exe, other):
                each.state["w"] = np.eye(16, dtype=np.float32)
        feed = normal(rng, 16, 16)
        for result, expected in zip(exe(x=feed), other(x=feed), strict=True):
            np.testing.assert_allclose(result, expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(exe.state["w"], other.state["w"], rtol=1e-3, atol=1e-4)
    assert exe.stats["graph_replays"] == 7 and exe.stats["graphs_made"] == 1


def test_copies_on_the_device_join_graphs(equipped: Any, rng: Any) -> None:
    """Copies between device memory join the graph, others stay outside.

    Neither an input that is only stored nor an output that is returned twice is uploaded for it.
    """
    fill_pool()
    old, new = (pk.state(n, np.zeros((30, 16), np.float32)) for n in ("old", "new"))
    x, z = pk.var("x", (30, 16)), pk.var("z", (30, 16))
    y = o.matmul(o.exp(x), normal(rng, 16, 16))
    retained = pk.Graph([o.reduce_sum(y + new)], [(new.node, y), (old.node, z)])
    twice = pk.Graph([y, y])
    logs = []
    for graph in (retained, twice):
        exe, other = on_cuda(graph, host=("library",)), pk.compile(graph)
        copies = 0
        for _ in range(5):
            equipped.log.clear()
            feeds = {n.name: normal(rng, 30, 16) for n in graph.inputs}
            for result, expected in zip(exe(feeds), other(feeds), strict=True):
                np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-3)
            copies += len(equipped.calls("copy"))
        assert copies == (2 if graph is retained else 0), "one by one, and recorded"
        logs.append([n for n, _ in equipped.log if n != "allocate"])
        for state, _ in graph.updates:
            result, expected = (e.state[state.name] for e in (exe, other))
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)

    assert logs == [
        ["upload", "replay", "download", "finish"],
        ["upload", "replay", "download", "download", "finish"],
    ]


def test_host_steps_separate_graphs(equipped: Any, rng: Any) -> None:
    """A sort on the host gets and returns its arrays; each side of it is a graph."""
    fill_pool()
    y = o.matmul(o.exp(pk.var("x", ("n", 16))), normal(rng, 16, 8))
    z = o.sort(o.tanh(y), axis=1)
    graph = pk.Graph([o.relu(o.matmul(o.sin(z + y), normal(rng, 8, 8)))])
    exe = on_cuda(graph, host=("library", "python"))
    for _ in range(6):
        feeds = {"x": 0.1 * normal(rng, 30, 16)}
        agrees(graph, feeds, exe(feeds), rtol=1e-3)
    assert exe.stats["host_steps"] == 1 and exe.stats["graphs_made"] == 2
    assert exe.stats["graph_replays"] == 10


def test_concurrent_calls_have_graphs_of_their_own(equipped: Any, rng: Any) -> None:
    """Concurrent calls have their own memory, and graphs for it."""
    exe = on_cuda(layer(), host=("library",))
    feeds = [normal(rng, 30, 16) for _ in range(4)]
    expected = [exe(x=feed)[0].tobytes() for feed in feeds]

    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(exe, {"x": feeds[k % 4]}) for k in range(40)]
        assert [c.result()[0].tobytes() for c in calls] == expected * 10
    assert exe.stats["graph_replays"] > 0


def test_profiles_time_steps_one_by_one(equipped: Any, rng: Any) -> None:
    """A profile times each step, whatever graph exists."""
    fill_pool()
    exe = on_cuda(layer(), host=("library",))
    feeds = {"x": normal(rng, 30, 16)}
    before = [exe(feeds)[0].tobytes() for _ in range(3)]
    before_profile = exe.stats["graphs_made"], exe.stats["graph_replays"]
    profile = exe.profile(feeds, runs=2, copies=False)

    assert len(profile.rows) == 4 and all(r.seconds > 0 for r in profile.rows)
    assert (exe.stats["graphs_made"], exe.stats["graph_replays"]) == before_profile
    assert exe(feeds)[0].tobytes() == before[0] == before[2]


def test_graphs_hold_no_memory(equipped: Any, rng: Any) -> None:
    """A graph holds no memory between calls."""
    fill_pool()
    exe = on_cuda(layer(), host=("library",))
    pool = device_pool()
    active = []
    for _ in range(4):
        exe(x=normal(rng, 30, 16))
        active.append(pool.active_nbytes)
    before = len(equipped.calls("allocate"))
    for _ in range(4):
        exe(x=normal(rng, 30, 16))

    assert len(set(active)) == 1 and len(equipped.calls("allocate")) == before
    del exe
    gc.collect()
    assert pool.active_nbytes == 0
