"""Sums in one launch: the last block of a reduction's chunks joins their partial results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.ir.loop import KernelIR, LastBlock, walk_statements
from tests.emulator import EmulatedDevice, LaunchOptions
from tests.emulator.programs import emulated
from tests.planned import agrees, plan

o = pk.ops


def summed(shape: tuple[Any, ...], axis: Any = None, dtype: str = "float32") -> pk.Graph:
    """Return the sum of an array over axes."""
    return pk.Graph([o.reduce_sum(pk.var("x", shape, dtype), axis=axis)])


def columns(rows: int, count: int) -> pk.Graph:
    """Return sums of products, and maxima, over the first axis."""
    x, y = pk.var("x", (rows, count)), pk.var("y", (rows, count))
    return pk.Graph([o.reduce_sum(x * y, axis=0), o.reduce_max(x, axis=0)])


def moments(rows: int, count: int) -> pk.Graph:
    """Return means, and roots of means of squares, over the first axis."""
    x = pk.var("x", (rows, count))
    return pk.Graph([o.reduce_mean(x, axis=0), o.sqrt(o.reduce_mean(x * x, axis=0))])


def step(rows: int, count: int) -> pk.Graph:
    """Return weights less a part of a gradient, which is a sum over rows."""
    x, y, w = pk.var("x", (rows, count)), pk.var("y", (rows, count)), pk.var("w", (count,))
    return pk.Graph([w - o.reduce_sum(x * y, axis=0) * 0.1])


def norm(count: int) -> pk.Graph:
    """Return the norm of a vector."""
    x = pk.var("x", (count,))
    return pk.Graph([o.sqrt(o.reduce_sum(x * x))])


GRAPHS = {
    "scalar": summed((1_000_000,)),
    "odd scalar": pk.Graph([o.reduce_mean(pk.var("x", (700_001,)))]),
    "least": pk.Graph([o.reduce_min(pk.var("x", (300, 1000)))]),
    "norm": norm(200_000),
    "columns": columns(1500, 256),
    "odd columns": columns(777, 130),
    "few columns": summed((70_000, 3), 0),
    "one column": summed((70_000, 1), 0),
    "many chunks": summed((20_000, 40), 0),
    "moments": moments(600, 96),
    "step": step(5000, 64),
    "batch": summed((3, 5000, 64), 1),
    "doubles": summed((1000, 70), 0, "float64"),
    "halves": summed((9000, 24), 0, "float16"),
    "bytes": pk.Graph([o.reduce_max(pk.var("x", (1000, 70), "int8"), axis=0)]),
    "integers": summed((1000, 36), 0, "int32"),
}


def feeds_of(graph: pk.Graph, rng: Any) -> dict[str, Any]:
    """Return arrays for the inputs of a graph."""
    feeds = {}
    for node in graph.inputs:
        entry = node.entries[0]
        values = rng.standard_normal([int(n) for n in entry.shape or ()]) * 3  # type: ignore[call-overload]
        feeds[node.name] = values.astype(entry.dtype.numpy)  # type: ignore[union-attr]
    return feeds


def kernels_of(graph: pk.Graph, **options: Any) -> list[pk.Kernel]:
    """Return the kernels of a graph."""
    return list(plan(graph, target="cuda", **options).attrs["kernel"].values())


def test_results() -> None:
    """One kernel computes each reduction, with the same bits for any order of the blocks."""
    rng = np.random.default_rng(0)
    bits: dict[str, set[bytes]] = {name: set() for name in GRAPHS}
    feeds = {name: feeds_of(graph, rng) for name, graph in GRAPHS.items()}
    with emulated(EmulatedDevice(rng=rng)) as device:  # which draws the order of each launch
        compiled = {name: pk.compile(graph, target="cuda") for name, graph in GRAPHS.items()}
        device.prepare(k for exe in compiled.values() for k in exe.kernels)
        for name, graph in GRAPHS.items():
            assert len(compiled[name].kernels) == 1, name
            for _ in range(3):
                results = compiled[name](feeds[name])
                bits[name].add(b"".join(np.asarray(x).tobytes() for x in results))
            agrees(graph, feeds[name], results, rtol=2e-3)

    assert {name: len(each) for name, each in bits.items()} == dict.fromkeys(GRAPHS, 1)


@pytest.mark.parametrize("name", ["scalar", "odd columns"])
def test_bits_do_not_depend_on_addresses(name: str) -> None:
    """Arrays that are not aligned to vectors give the bits of those that are."""
    (kernel,) = kernels_of(GRAPHS[name])
    inputs = list(feeds_of(GRAPHS[name], np.random.default_rng(1)).values())
    assert isinstance(kernel.ast, KernelIR)
    outputs = kernel.ast.params[len(inputs) :]
    results = []
    for offset in (0, 4):
        placed = [_at(x, offset) for x in inputs]
        out = [np.zeros(int(b.extent), b.dtype.numpy) for b in outputs]  # type: ignore[call-overload]
        EmulatedDevice(LaunchOptions(order=5)).launch(kernel, {}, placed, out)
        results.append([x.tobytes() for x in out])

    assert results[0] == results[1]


def _at(array: Any, offset: int) -> Any:
    """Return a copy of an array at so many bytes behind a multiple of 16."""
    raw = np.zeros(array.nbytes + 32, np.uint8)
    start = -raw.ctypes.data % 16 + offset
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def test_counters() -> None:
    """There is a counter for each block of columns, which counts the chunks."""
    (kernel,) = kernels_of(columns(1500, 256))
    assert isinstance(kernel.ast, KernelIR)
    counts = [s.count for s in walk_statements(kernel.ast.body) if isinstance(s, LastBlock)]

    assert (kernel.ast.counters, set(counts), kernel.grid) == (2, {12}, 24)


@pytest.mark.parametrize(
    "graph",
    [
        summed(("n", 64), 0),
        summed(("n",)),
        pk.Graph([pk.var("x", (100_000,)) / o.reduce_max(pk.var("x", (100_000,)))]),
    ],
)
def test_other_reductions_take_two_launches(graph: pk.Graph) -> None:
    """Where sizes are unknown, or all elements are read again, another kernel joins the chunks."""
    kernels = kernels_of(graph)

    assert len(kernels) == 2
    assert all(not isinstance(k.ast, KernelIR) or not k.ast.counters for k in kernels)


def test_options_keep_the_join_apart() -> None:
    """The options no_fuse and keep_apart, and the end of the fuel, leave two kernels."""
    x = pk.var("x", (2000, 64))
    graph = pk.Graph([o.reduce_sum(x, axis=0, name="total")])
    apart: list[dict[str, Any]] = [
        {"no_fuse": ["total"]},
        {"keep_apart": [["total_part", "total"]]},
        {"fuel": 1},
    ]

    assert [len(kernels_of(graph, **options)) for options in ({}, *apart)] == [1, 2, 2, 2]


def test_opencl_joins_in_a_second_launch() -> None:
    """Its memory model orders nothing among work-groups of one launch."""
    assert len(plan(summed((1_000_000,)), target="opencl").attrs["kernel"]) == 2


def test_the_decision_is_explained() -> None:
    """The edge between chunks and join is fused, by the last block."""
    planned = plan(pk.Graph([o.reduce_sum(pk.var("x", (2000, 64)), axis=0)]), target="cuda")
    decisions = [d for d in planned.attrs["fusion_log"] if d.code == "fused.joined"]

    assert [d.fused for d in decisions] == [True]
    assert "last block" in decisions[0].reason
    (schedule,) = planned.attrs["schedule"].values()
    assert schedule.is_joined and schedule.rule == "last_block"
