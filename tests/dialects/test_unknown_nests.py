"""CUDA kernels of one loop nest whose sizes only a call knows, on the emulated device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.ir.loop import KernelIR
from passkit.planner.gpu import RULES
from passkit.values.size import evaluate
from tests.emulator.device import EmulatedDevice
from tests.emulator.graph_checks import failure_of
from tests.emulator.programs import emulated
from tests.planned import plan
from tests.random_graphs import Case
from tests.schedule.nests import CUDA, rule

o = pk.ops
Sizes = Mapping[str, int]
PAIRS = tuple({"n": n, "m": m} for n, m in ((1, 1), (7, 33), (33, 1000), (1000, 7), (64, 128)))
WITH_NONE = (*PAIRS, {"n": 0, "m": 5}, {"n": 5, "m": 0})
GRAPHS: dict[str, tuple[str, str, tuple[Sizes, ...]]] = {
    "points": ("elementwise", "x: f32[n, m]; b: f32[m]; return tanh(add(x, b))", WITH_NONE),
    "outer product": ("elementwise", "a: f32[n, 1]; b: f32[m]; return sub(a, b)", WITH_NONE),
    "vectors": (
        "elementwise",
        "x: f16[n, 8*m]; b: f16[8*m]; c: f16[n, 1]; return add(mul(x, b), c)",
        WITH_NONE,
    ),
    "three axes": (
        "elementwise",
        "x: f64[n, 5, m]; b: f64[5, 1]; c: f64[n, 1, m]; return mul(add(x, b), c)",
        WITH_NONE,
    ),
    "side by side": (
        "elementwise",
        "x: f32[n, m]; y: f32[n, 3]; return neg(pad(concat(x, y, axis=1), ((1, 2), (3, 4))))",
        PAIRS,
    ),
    "rows by number": (
        "elementwise",
        "x: f32[4, m]; i: i64[n]; return exp(take(x, i, axis=0))",
        WITH_NONE[:-1],
    ),
    "transpose": (
        "transpose",
        "x: f32[n, m]; y: f32[m, n]; return add(transpose(x, axes=(1, 0)), y)",
        WITH_NONE,
    ),
    "softmax": ("rows", "x: f32[n, 3, m]; return softmax(x, axis=-1)", WITH_NONE),
    "rows of vectors": ("rows", "x: f16[n, 8*m]; return softmax(x)", WITH_NONE),
    "norms": ("rows", "x: f32[n, m]; g: f32[m]; b: f32[m]; return layer_norm(x, g, b)", PAIRS),
    "few rows": ("rows_read_once", "x: f64[5, m]; return reduce_max(x, axis=1)", PAIRS),
    "all": ("rows_read_once", "x: f32[n, m]; return reduce_sum(exp(x))", WITH_NONE),
    "axes apart": (
        "rows",
        "x: f32[n, 5, m]; a = reduce_mean(x, axis=(0, 2), keepdims=true); return sub(x, a)",
        PAIRS,
    ),
    "axes apart in vectors": (
        "rows",
        "x: f32[n, 5, 4*m]; a = reduce_mean(x, axis=(0, 2), keepdims=true); return sub(x, a)",
        PAIRS,
    ),
    "columns": ("columns", "x: f32[n, m]; return reduce_sum(x, axis=0)", WITH_NONE),
    "columns of a batch": ("columns", "x: f16[3, n, m]; return reduce_max(x, axis=1)", PAIRS),
    "columns of vectors": ("columns", "x: f32[n, 4*m]; return reduce_sum(x, axis=0)", WITH_NONE),
    "columns of axes apart": ("columns", "x: f32[n, 3, m, 7]; return reduce_sum(x, (0, 2))", PAIRS),
    "passes over columns": ("columns_in_passes", "x: f32[n, m]; return softmax(x, axis=0)", PAIRS),
    "passes over axes apart": (
        "columns_in_passes",
        "x: f32[n, 3, m, 700]; r = reduce_max(x, axis=(0, 2), keepdims=true); return sub(x, r)",
        PAIRS[:2],
    ),
    "no rows": ("columns", "x: f32[n, 0, 3]; return reduce_sum(x, axis=1)", PAIRS),
    "rows of nothing": ("rows", "x: f32[n, 0]; return reduce_prod(x, axis=1)", PAIRS),
    "chunks of axes apart": (
        "rows_read_once",
        "x: f32[2, 3, 70001]; return reduce_sum(x, axis=(0, 2))",
        ({},),
    ),
    "unknown chunks of axes apart": (
        "rows_read_once",
        "x: f32[2, 3, n]; return reduce_sum(x, axis=(0, 2))",
        ({"n": 1}, {"n": 40001}),
    ),
    "chunks of columns": (
        "columns",
        "x: f32[2, 3, n, 5]; return reduce_sum(x, axis=(0, 2))",
        ({"n": 1}, {"n": 1001}),
    ),
    "chunks that are stored": (
        "columns",
        "x: f32[n, 3]; e = exp(x); return reduce_sum(e, axis=0), e",
        ({"n": 1}, {"n": 1001}),
    ),
}
"""The rule of the first kernel, the text, and sizes of calls, by name."""


def case(graph: pk.Graph, sizes: Iterable[Sizes]) -> Case:
    """Return a graph with feeds for each of some sizes."""
    feeds = []
    for numbers in sizes:
        rng, own = np.random.default_rng(0), {}
        for node in graph.inputs:
            entry = node.entries[0]
            assert entry.shape is not None and entry.dtype is not None
            shape = [evaluate(n, numbers) for n in entry.shape]
            kind = entry.dtype.numpy
            values = rng.integers(0, 4, shape) if kind.kind == "i" else rng.standard_normal(shape)
            own[graph.names[node]] = values.astype(kind)
        feeds.append(own)
    return Case(0, graph, tuple(feeds))


def rules_of(graph: pk.Graph, **options: Any) -> list[str]:
    """Return the rules of the kernels of a graph, in order."""
    passes = ("SplitReduce", "Expand", "Simplify", "Fusion", "SchedulePlan")
    planned = pk.ApplyPasses(graph, passes, target="cuda", **options)
    return [s.rule for s in planned.attrs["schedule"].values()]


def test_kernels_agree_with_the_interpreter() -> None:
    """One element, odd and even sizes, no rows, and rows of no elements."""
    graphs = {name: pk.parse(text) for name, (_, text, _) in GRAPHS.items()}
    with emulated(EmulatedDevice()) as device:
        executables = {name: pk.compile(g, target="cuda") for name, g in graphs.items()}
        device.prepare(k for exe in executables.values() for k in exe.kernels)
        for name, exe in executables.items():
            rule, _, sizes = GRAPHS[name]
            assert all(isinstance(k.ast, KernelIR) for k in exe.kernels), name
            assert rules_of(graphs[name])[0] == rule, name
            assert failure_of(exe, case(graphs[name], sizes)) is None, name


@pytest.mark.parametrize("length", [1, 33, 300])
@pytest.mark.parametrize("text", ["softmax(x)", "reduce_sum(x, axis=1)", "layer_norm(x, g, g)"])
def test_a_row_has_the_same_bits_in_any_batch(text: str, length: int) -> None:
    """The bits of a row depend on its length, and not on how many rows a call has."""
    g = "g: f32[m]; " if "g" in text else ""
    graph = pk.parse(f"x: f32[n, m]; {g}return {text}")
    rng = np.random.default_rng(1)
    x, scale = (rng.standard_normal(s).astype(np.float32) for s in ((9, length), (length,)))
    with emulated(EmulatedDevice()) as device:
        exe = pk.compile(graph, target="cuda")
        device.prepare(exe.kernels)
        feeds = {"g": scale} if g else {}
        whole, few, last = (exe(x=rows, **feeds)[0] for rows in (x, x[:3], x[8:]))

    assert few.tobytes() == whole[:3].tobytes()
    assert last.tobytes() == whole[8:].tobytes()


SOFTMAX_TEXT = """\
schedule div_1 for cuda threads 4x32 blocks 12 {
  nest n0 (i0:n, i1:m reduce): reduce_max_1, sub_1, exp_1, reduce_sum_1, div_1
  tile n0[i0/4 row] {
    map n0 i0 = thread_y_4; i1 = serial-unroll_8-thread_x_32
    cache_read x0 in register
    recompute exp_1
    stage n0: reduce reduce_max_1 rows reduce_max_1
    stage n0: reduce reduce_sum_1 rows reduce_sum_1
    stage n0: store div_1 -> y0
  }
}"""


def test_the_schedule_of_rows_of_unknown_length() -> None:
    """A warp goes through a row in steps, once for each stage."""
    graph = pk.parse("x: f32[n, m]; return softmax(x)")
    (report,) = pk.templates(graph, target="cuda")

    assert report.nest.text == SOFTMAX_TEXT


def test_a_nest_without_another_schedule_has_single_elements() -> None:
    """Where no other rule has a legal schedule, a thread has one element at a time."""
    shapes = ("f32[n, 64]", "f32[70, 64]", "f32[n, m]")
    calls = ("softmax(x)", "softmax(x, axis=0)", "tanh(x)", "reduce_sum(x)")
    graphs = [pk.parse(f"x: {s}; return {call}") for s in shapes for call in calls]
    sizes: tuple[Sizes, ...] = ({"n": 9, "m": 40}, {"n": 70, "m": 64})
    with ExitStack() as stack, emulated(EmulatedDevice()) as device:
        for name, _ in RULES[:-1]:
            stack.enter_context(rule(lambda nest, target: None, name))
        executables = [pk.compile(graph, target="cuda") for graph in graphs]
        device.prepare(k for exe in executables for k in exe.kernels)
        for graph, exe in zip(graphs, executables, strict=True):
            assert set(rules_of(graph)) == {"single_elements"}
            assert failure_of(exe, case(graph, sizes)) is None


def test_many_operators_have_single_elements() -> None:
    """A nest of more operators than are unrolled has a schedule, too."""
    tight = evolve(CUDA, rules=evolve(CUDA.rules, unrolled_ops=1))
    planned = plan(pk.parse("x: f32[n, m]; return exp(tanh(x))"), "SchedulePlan", target=tight)

    assert [s.rule for s in planned.attrs["schedule"].values()] == ["single_elements"]
