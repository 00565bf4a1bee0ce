"""Unrolled reductions: no loop, no scratch memory, the same values; and which remain loops."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit import ops
from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.unrolled import MAX_LENGTH, UNROLLED_REDUCE, unrolled_graphs, unrolled_length
from passkit.ast import Chunks, Reduce, const, left, maximum, right
from passkit.graph.graph import Graph
from passkit.graph.node import known_shape
from passkit.program.planning import DEFAULT_PIPELINE
from passkit.target import cpu
from passkit.values.dtype import dtype_of, float32
from tests.teams import team_of
from tests.together import compiled

pytestmark = pytest.mark.usefixtures("quick_kernels")
CASES: list[tuple[str, tuple[int, ...], dict[str, Any]]] = [
    (pool, shape, {"window": window, **where})
    for pool in ("max_pool2d", "avg_pool2d")
    for shape, window, where in [
        ((2, 8, 6, 48), 2, {}),
        ((2, 9, 7, 33), 3, {"strides": 2, "padding": "SAME"}),
        ((1, 9, 8, 100), 3, {"strides": 1, "padding": "SAME"}),
        ((2, 9, 8, 5), (3, 2), {"strides": (1, 3), "padding": "VALID"}),
        ((1, 11, 12, 17), 3, {"strides": 1, "padding": ((2, 0), (1, 2)), "dilations": 2}),
        ((2, 3, 21, 18), 2, {"data_format": "NCHW"}),
        ((1, 5, 17, 20), 3, {"data_format": "NCHW", "strides": 2, "padding": 1}),
        ((1, 2, 9, 150), (2, 5), {"data_format": "NCHW", "strides": 1, "padding": "SAME"}),
    ]
]
KINDS = {
    "max_pool2d": ("float32", "float64", "float16", "bfloat16", "int8", "uint16", "int64"),
    "avg_pool2d": ("float32", "float64", "float16"),
}


def drawn(shape: tuple[int, ...], dtype: str) -> Any:
    """Return random numbers with a few infinities, NaNs and zeros."""
    rng = np.random.default_rng(len(shape) + sum(shape))
    x = (rng.normal(size=shape) * 50).astype(dtype_of(dtype).numpy)
    if dtype_of(dtype).is_float:
        flat = x.reshape(-1)
        flat[::97], flat[5::131], flat[7::89] = np.inf, np.nan, -0.0
    return x


def is_unrolled(graph: Graph) -> bool:
    """Return whether no kernel of a graph that reads an input has a reduction in a loop."""
    plan = pk.ApplyPasses(graph, DEFAULT_PIPELINE[: DEFAULT_PIPELINE.index("Fusion") + 1])
    layouts = [analyze_domain(g.graph) for g in plan.attrs["subgraph"].values() if g.graph.inputs]
    return bool(layouts) and all(
        isinstance(x, DomainInfo) and not x.domain.reduced for x in layouts
    )


def test_pools_equal_the_interpreter() -> None:
    """Pools of all windows and dtypes; maxima have the same bits."""
    graphs, feeds = [], []
    for name, shape, params in CASES:
        for dtype in KINDS[name] if params.get("strides") == 2 else ("float32",):
            x = pk.var("x", shape, dtype)
            graphs.append(Graph([getattr(ops, name)(x, **params)]))
            feeds.append({"x": drawn(shape, dtype)})
    assert all(map(is_unrolled, graphs))

    for exe, graph, feed in zip(compiled(graphs), graphs, feeds, strict=True):
        (actual,), (expected,) = exe(feed), pk.interpret(graph, feed)
        if expected.dtype == np.float16:
            np.testing.assert_allclose(actual.astype("f8"), expected.astype("f8"), rtol=2e-3)
        elif graph.outputs[0].node.op is ops.avg_pool2d:
            rtol = 1e-14 if expected.dtype == np.float64 else 1e-5
            np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol * 100)
        else:
            np.testing.assert_array_equal(actual.astype("f8"), expected.astype("f8"))


def test_a_pool_needs_neither_scratch_nor_a_loop() -> None:
    """A kernel of a pool has four loads and three additions."""
    exe = pk.compile(ops.avg_pool2d(pk.var("x", (2, 8, 6, 48)), window=2))
    (kernel,) = exe.kernels

    assert kernel.shared_nbytes == 0
    assert kernel.source.count("load(x0") == 4
    assert kernel.source.count("for (") == 2  # tiles, and their rows


@pytest.mark.parametrize(("rows", "window", "ahead"), [(16, 2, 4), (2, 2, 0), (16, 3, 0)])
def test_large_inputs_are_prefetched(rows: int, window: int, ahead: int) -> None:
    """Inputs are prefetched if each element is read once, not if windows overlap."""
    y = ops.max_pool2d(pk.var("x", (rows, 32, 32, 64)), window=window, strides=2)
    graph = pk.ApplyPasses(Graph([y]), DEFAULT_PIPELINE[: DEFAULT_PIPELINE.index("CodeGen") + 1])
    (kernel,) = graph.attrs["kernel"].values()

    assert kernel.source.count("prefetch(") == ahead


def test_reductions_of_a_few_rows() -> None:
    """Sums, products, extremes and composites of them, over axes that vectors run across."""
    x, n = pk.var("x", (5, 4, 70)), pk.var("n", (3, 2, 3, 40), "int32")
    wide = pk.var("x", (5, 4, 70), "bfloat16")
    mean = ops.reduce_mean(x, axis=1, keepdims=True)
    top = ops.reduce_max(x, axis=1, keepdims=True)
    graphs = [
        Graph([ops.reduce_sum(x, axis=1) * 2.0]),
        Graph([ops.reduce_mean((x - mean) ** 2.0, axis=1)]),
        Graph([ops.log(ops.reduce_sum(ops.exp(x - top), axis=1, keepdims=True)) + top]),
        Graph([ops.reduce_sum(x, axis=1), ops.reduce_min(x, axis=1)]),
        Graph([ops.reduce_prod(n, axis=(1, 2), keepdims=True)]),
        Graph([ops.reduce_any(n > 1, axis=(1, 2))]),
        Graph([ops.reduce_sum(wide, axis=1)]),
    ]
    assert all(map(is_unrolled, graphs))
    rng = np.random.default_rng(4)
    data = rng.normal(size=(5, 4, 70)).astype(np.float32)
    whole = rng.integers(-3, 4, size=(3, 2, 3, 40)).astype(np.int32)

    for exe, graph in zip(compiled(graphs), graphs, strict=True):
        (kind,) = {i.node.name: i for n in graph.inputs for i in n.entries}.values()
        assert kind.dtype is not None
        feed = {kind.node.name: whole if kind.node.name == "n" else data.astype(kind.dtype.numpy)}
        for actual, expected in zip(exe(feed), pk.interpret(graph, feed), strict=True):
            np.testing.assert_allclose(
                actual.astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=1e-5
            )


def test_zeros_of_either_sign_add_up_to_zero() -> None:
    """The sum of negative zeros is 0, as in a loop whose total begins with 0."""
    exe = pk.compile(ops.reduce_sum(pk.var("x", (4, 64)), axis=0))
    (actual,) = exe(x=np.full((4, 64), -0.0, np.float32))

    assert not np.signbit(actual).any()


def test_unknown_rows_and_none() -> None:
    """One kernel serves all numbers of rows."""
    graph = Graph([ops.avg_pool2d(pk.var("x", (None, None, 8, 20)), window=2)])
    exe = pk.compile(graph)
    assert is_unrolled(graph)
    for rows, height in ((3, 6), (1, 2), (0, 4)):
        feed = {"x": drawn((rows, height, 8, 20), "float64").astype(np.float32)}
        np.testing.assert_allclose(exe(feed)[0], pk.interpret(graph, feed)[0], 1e-5, 1e-4)


def test_bits_do_not_depend_on_threads_or_place() -> None:
    """A window has the same bits by itself as among others."""
    x = pk.var("x", (None, None, None, 40))
    target = evolve(cpu(), parallel=0.0)
    exe = pk.compile(ops.avg_pool2d(x, window=3, strides=1), target=target)
    data = drawn((6, 40, 40, 40), "float32")
    with team_of(1):
        (whole,) = exe(x=data)

    (part,) = exe(x=data[2:4, 3:30, 7:31])
    for threads in (2, 4):
        with team_of(threads):
            np.testing.assert_array_equal(exe(x=data)[0], whole)

    assert np.array_equal(part, whole[2:4, 3:28, 7:29], equal_nan=True)


@pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda: ops.softmax(pk.var("x", (8, 4, 64)), axis=1), id="spread again"),
        pytest.param(lambda: ops.reduce_sum(pk.var("x", (MAX_LENGTH + 1, 64)), axis=0), id="long"),
        pytest.param(lambda: ops.reduce_sum(pk.var("x", (None, 64)), axis=0), id="unknown"),
        pytest.param(lambda: ops.reduce_sum(pk.var("x", (4, 8)), axis=0), id="few results"),
        pytest.param(lambda: ops.reduce_sum(pk.var("x", (300, 40)), axis=1), id="along vectors"),
        pytest.param(lambda: ops.cumsum(pk.var("x", (4, 64)), axis=0), id="scan"),
    ],
)
def test_reductions_that_remain_loops(build: Any) -> None:
    """A reduction remains a loop if its operand is needed, too, or accesses would be strided."""
    assert not is_unrolled(Graph([build()]))


def test_a_combination_that_uses_its_total_twice_remains_a_loop() -> None:
    """Unrolled, its expression would double with every element."""
    op = pk.register_op("either_larger", num_inputs=1)

    def reduction(node: Any) -> Reduce:
        a, b = left(float32), right(float32)
        return Reduce((0,), False, const(-np.inf, float32), maximum(maximum(a, b), a))

    op.set_attr("FReduce", reduction)
    op.set_attr("FInferShape", lambda node, shape: shape[1:])
    op.set_attr("TOpPattern", pk.OpPattern.REDUCE)

    assert not list(unrolled_graphs(Graph([op(pk.var("x", (4, 64)))])))


def test_split_reductions_remain_loops() -> None:
    """Partial reductions and their combination are not unrolled."""
    op = pk.register_op("chunked_sum", num_inputs=1)
    a, b = left(float32), right(float32)
    cut = Chunks(0, 2)
    op.set_attr("FReduce", lambda n: Reduce((0,), False, const(0, float32), a + b, chunks=cut))
    op.set_attr("FInferShape", lambda node, shape: (shape[0] // 2, *shape[1:]))
    op.set_attr("TOpPattern", pk.OpPattern.REDUCE)

    assert not list(unrolled_graphs(Graph([op(pk.var("x", (4, 64)))])))


def test_length_of_an_unrolled_reduction() -> None:
    """An unrolled reduction has a length, by which tiles are smaller."""
    graph, *_ = unrolled_graphs(Graph([ops.reduce_mean(pk.var("x", (3, 4, 64)), axis=(0, 1))]))
    (unrolled,) = [n for n in graph.nodes if n.op is UNROLLED_REDUCE]

    assert unrolled_length(unrolled) == 12
    assert unrolled_length(graph.inputs[0]) == 1
    assert known_shape(unrolled.entries[0]) == (64,)


def pairs(weight: Any, size: int | None, count: int, dtype: str = "float32") -> Graph:
    """Return a sum over points of a function of their squared distances from other points."""
    x, y = pk.var("x", (size, count), dtype), pk.var("y", (300, count), dtype)
    d = ops.expand_dims(x, 1) - ops.expand_dims(y, 0)
    return Graph([ops.reduce_sum(weight(ops.reduce_sum(d * d, axis=2)), axis=1)])


def points(exe: Any) -> dict[str, Any]:
    """Return random points as inputs, seventy of them if the number is unknown."""
    rng = np.random.default_rng(7)
    shapes = {i.name: [n if isinstance(n, int) else 70 for n in i.shape] for i in exe.inputs}
    kinds = {i.name: i.dtype.numpy for i in exe.inputs}
    return {name: rng.normal(size=shape).astype(kinds[name]) for name, shape in shapes.items()}


def test_short_reductions_inside_long_ones() -> None:
    """A long reduction over results of short ones is one vectorized loop without an inner loop."""
    graphs = [
        *(pairs(lambda r: 1.0 / (r + 0.1), 70, count) for count in (2, 3, 4, 5, 8)),
        pairs(lambda r: ops.exp(-r), None, 3),
        pairs(lambda r: ops.sqrt(r) * r, 70, 3, "float64"),
        pairs(lambda r: ops.where(r < 1.0, r, 0.0 * r), 70, 3),
        pairs(lambda r: r, 70, 2),
    ]
    for exe, graph in zip(compiled(graphs), graphs, strict=True):
        (kernel,) = exe.kernels
        feed = points(exe)

        assert re.search("(fixed|paired)_lanes<", kernel.source) is None
        np.testing.assert_allclose(exe(feed)[0], pk.interpret(graph, feed)[0], rtol=2e-5)


def test_rows_of_points_are_loaded_whole() -> None:
    """Vectors across rows load all columns at once, unless they would read out of bounds."""
    x, y = pk.var("x", (300, 3)), pk.var("y", (70,))
    factor = ops.expand_dims(y, 1)
    cases = {
        pairs(lambda r: 1.0 / (r + 0.1), 70, 3): True,
        Graph([ops.reduce_sum(factor * x[:, 0] + x[:, 2], axis=1)]): True,
        Graph([ops.reduce_sum(factor * x[:, 0] + x[:, 1], axis=1)]): False,
        Graph([ops.reduce_sum(factor * x[:, 1], axis=1)]): False,
    }
    for exe, (graph, whole) in zip(compiled(list(cases)), cases.items(), strict=True):
        feed = points(exe)

        assert ("load_columns<3>" in exe.kernels[0].source) is whole
        np.testing.assert_allclose(exe(feed)[0], pk.interpret(graph, feed)[0], 2e-5, 1e-5)
