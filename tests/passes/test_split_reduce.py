"""SplitReduce: long reductions are split; results have the same bits in any batch."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.opencl import target_with_block
from tests.planned import agrees, plan, prebuild
from tests.teams import team_of

pytestmark = pytest.mark.usefixtures("quick_kernels")

ops = pk.ops


def names(text: str, **options: Any) -> str:
    """The operators of a graph behind the pass."""
    graph = pk.ApplyPasses(pk.parse(text), ["Expand", "Simplify", "SplitReduce"], **options)
    return " ".join(n.op.name for n in graph.nodes if n.op and n.op.name != "constant")


SPLIT = [
    ("x: f32[1000000]; return reduce_sum(x)", "partial_reduce combine_partials"),
    ("x: f32[4096, 1024]; return reduce_max(x, axis=0)", "partial_reduce combine_partials"),
    ("x: f32[n, 7]; return reduce_mean(exp(x), axis=0)", "exp partial_reduce combine_partials"),
    (
        "x: f32[2, 500000]; return reduce_any(less(x, 0), axis=(0, 1))",
        "less partial_reduce combine_partials",
    ),
    (
        "x: f32[8, 9000, 4]; return reduce_variance(x, axis=(0, 1))",
        "partial_reduce combine_partials sub mul partial_reduce combine_partials",
    ),
]
WHOLE = [
    ("x: f32[60000]; return reduce_sum(x)", "reduce_sum"),
    ("x: f32[500, 1024]; return reduce_sum(x, axis=0)", "reduce_sum"),
    ("x: f32[4, 100000]; return softmax(x)", "reduce_max sub exp reduce_sum div"),
    ("x: f32[4, n]; return reduce_variance(x, axis=1)", "reduce_mean sub mul reduce_mean"),
    ("x: f32[1000, 64]; return softmax(x, axis=0)", "reduce_max sub exp reduce_sum div"),
    ("x: f32[0, 100000]; return reduce_sum(x)", "reduce_sum"),
    ("x: f32[n, m]; return reduce_sum(x)", "reduce_sum"),
]


@pytest.mark.parametrize("text, expected", [*SPLIT, *WHOLE])
def test_long_reductions_are_split(text: str, expected: str) -> None:
    """Long reductions are split, except those of rows that are read again and fit the caches."""
    assert names(text) == expected


@pytest.mark.parametrize(
    "text, on_cpu, on_device, on_cuda",
    [
        ("x: f32[1000000]; return reduce_sum(x)", 31, 123, 123),
        ("x: f32[20000000]; return reduce_sum(x)", 611, 2442, 611),
        ("x: f32[32, 56, 56, 64]; return reduce_sum(x, axis=(0, 1, 2))", 32, 784, 784),
        ("x: f32[1024, 8, 64]; return reduce_sum(x, axis=(0, 1))", 64, 64, 64),
        ("x: f32[8, 200000]; return reduce_sum(x)", 8, 196, 196),
        ("x: f32[32, 64, 112, 112]; return reduce_max(x, axis=(0, 2, 3))", 16, 32, 32),
    ],
)
def test_devices_have_more_chunks(text: str, on_cpu: int, on_device: int, on_cuda: int) -> None:
    """There are enough for all multiprocessors, whatever the number and the order of axes."""
    passes = ["Expand", "Simplify", "SplitReduce"]
    for target, count in (("cpu", on_cpu), (target_with_block(64), on_device), ("cuda", on_cuda)):
        graph = pk.ApplyPasses(pk.parse(text), passes, target=target)
        (partial,) = [n for n in graph.nodes if n.op is not None and n.op.name == "partial_reduce"]
        assert graph.shape(partial.entries[0])[0] == count


def test_partial_reductions_are_not_split_again() -> None:
    """Partial reductions are not split; the pass can be disabled, and needs fuel."""
    text = SPLIT[0][0]
    once = pk.ApplyPasses(pk.parse(text), "SplitReduce")

    assert pk.ApplyPasses(once, "SplitReduce").key == once.key
    assert names(text, fuel=0) == "reduce_sum"
    kernels = plan(text).attrs["kernel"].values()
    assert [k.ops for k in kernels] == [("partial_reduce",), ("combine_partials",)]
    assert len(plan(text, disabled=["SplitReduce"]).attrs["kernel"]) == 1


def test_split_reductions_can_be_serialized() -> None:
    """Text and JSON hold the reduction that was split; the interpreter runs it."""
    graph = pk.ApplyPasses(pk.parse("x: f32[n, 3]; return reduce_mean(x, axis=0)"), "SplitReduce")
    x = np.random.default_rng(0).normal(size=(700, 3)).astype("float32")
    (expected,) = pk.interpret(graph, {"x": x})

    np.testing.assert_allclose(expected, x.mean(0, dtype="float64"), rtol=1e-6)
    for again in (pk.from_json(pk.to_json(graph)), pk.parse(pk.to_text(graph))):
        assert (pk.interpret(again, {"x": x})[0] == expected).all()


def test_producers_and_readers_fuse() -> None:
    """Producers are computed in the first kernel, users of the result in the second."""
    text = (
        "x: f32[5000, 40]; b: f32[40]; y = mul(add(x, b), x); s = reduce_sum(y, axis=0);"
        "t = reduce_sum(x, axis=0); return sqrt(add(mul(s, s), t))"
    )
    kernels = plan(text).attrs["kernel"].values()

    assert [sorted(k.ops) for k in kernels] == [
        ["add", "mul", "partial_reduce", "partial_reduce"],
        ["add", "combine_partials", "combine_partials", "mul", "sqrt"],
    ]


CASES: list[tuple[str, dict[str, int]]] = [
    ("x: f32[n]; return reduce_sum(x), reduce_min(x), reduce_mean(x)", {"n": 1}),
    ("x: f32[n]; return reduce_sum(x), reduce_min(x), reduce_mean(x)", {"n": 32768}),
    ("x: f32[n]; return reduce_sum(x), reduce_min(x), reduce_mean(x)", {"n": 100003}),
    ("x: f32[1111, 90]; b: f32[90]; return reduce_sum(add(x, b))", {}),
    ("x: f32[1111, 90]; return reduce_mean(x, axis=0, keepdims=true)", {}),
    ("x: f32[2, 40000, 3]; b: f32[3]; return reduce_max(add(x, b), axis=(0, 1))", {}),
    ("x: f32[3, 70000]; return exp(reduce_mean(x, axis=1, keepdims=true))", {}),
    ("x: f32[600, 5, 40]; b: f32[5, 1]; return reduce_sum(mul(x, b), axis=(0, 2))", {}),
    ("x: f64[600, 7]; return reduce_prod(mul(x, 1.5), axis=0)", {}),
    (
        """x: f32[600, 7]; a = reduce_all(less(x, 9.0), axis=0)
        return a, reduce_any(less(x, -4.0), axis=0)""",
        {},
    ),
]


def test_split_reductions_have_the_same_values() -> None:
    """Values equal those of one reduction, whatever the length of the last chunk."""
    rng = np.random.default_rng(1)
    graphs = [pk.parse(text) for text, _ in CASES]
    prebuild(graphs)
    for graph, (_, sizes) in zip(graphs, CASES, strict=True):
        shapes = {n: tuple(sizes.get(str(d), d) for d in n.entries[0].shape) for n in graph.inputs}
        feeds = {
            graph.names[n]: rng.uniform(0.5, 1.5, s).astype(n.entries[0].dtype.numpy)
            for n, s in shapes.items()
        }
        agrees(graph, feeds, pk.compile(graph)(feeds))


def test_empty_reductions() -> None:
    """No chunk is empty; an empty reduction without an identity element is an error."""
    x = pk.var("x", ("n",))
    exe = pk.compile(pk.Graph([ops.reduce_sum(x), ops.reduce_mean(x)]))

    assert exe(x=np.zeros(0, "float32"))[0] == 0
    with pytest.raises(pk.PasskitError, match="axis 0 must not be empty"):
        pk.compile(pk.Graph([ops.reduce_max(x)]))(x=np.zeros(0, "float32"))


def test_sums_are_accurate() -> None:
    """The error of a long sum of equal numbers stays that of a short one."""
    x, y = pk.var("x", (1 << 22,)), pk.var("y", (1 << 16, 8))
    exe = pk.compile(pk.Graph([ops.reduce_sum(x), ops.reduce_sum(y, axis=0)]))
    tenth = np.float32(0.1)
    one, many = exe(x=np.full(1 << 22, tenth), y=np.full((1 << 16, 8), tenth))

    assert abs(one / (float(tenth) * (1 << 22)) - 1) < 5e-7
    assert np.abs(many / (float(tenth) * (1 << 16)) - 1).max() < 5e-7


def test_bits_do_not_depend_on_threads_or_batch() -> None:
    """Neither threads nor the number of rows or columns change a bit of a result."""
    rng = np.random.default_rng(2)
    rows, columns = rng.normal(size=(9, 70001)), rng.normal(size=(3001, 530))
    a = pk.var("a", ("r", rows.shape[1]))
    b = pk.var("b", (columns.shape[0], "c"))
    exe = pk.compile(
        pk.Graph(
            [
                ops.reduce_sum(a, axis=1),
                ops.reduce_mean(ops.exp(b), axis=0),
                ops.softmax(b, axis=0),
                ops.reduce_sum(a),
            ]
        )
    )
    result = []
    for threads in (1, 2, 4):
        with team_of(threads):
            result.append(exe(a=rows.astype("float32"), b=columns.astype("float32")))
    few = exe(a=rows[:2].astype("float32"), b=columns[:, :19].astype("float32"))

    for other in result[1:]:
        assert all(map(np.array_equal, result[0], other))
    assert (result[0][0][:2] == few[0]).all()
    assert (result[0][1][:19] == few[1]).all() and (result[0][2][:, :19] == few[2]).all()


@pytest.mark.parametrize(
    "value, turns, asked",
    [
        ("exp(x)", ["4"], 1),
        ("add(x, b)", ["4"], 1),
        ("mul(x, r)", ["4"], 1),
        ("mul(x, y)", [], 0),
    ],
)
def test_long_columns_are_read_row_by_row(value: str, turns: list[str], asked: int) -> None:
    """A few rows of one array at a time, the next of which are asked for; several row by row.

    What each row, or each column, has once counts for nothing.
    """
    inputs = "x: f32[4096, 1024]; y: f32[4096, 1024]; b: f32[1024]; r: f32[4096, 1]"
    partial, *_ = pk.compile(pk.parse(f"{inputs}; return reduce_sum({value}, axis=0)")).kernels

    assert re.findall(r"_low \+= (\d+)", partial.source) == turns
    assert partial.source.count("prefetch(") == asked


@pytest.mark.parametrize(
    "given, results, width, tiles",
    [
        ("f32[8192, 2048]", "reduce_sum(x, axis=0)", 2048, 64),  # all of a row
        ("f32[4096, 9000]", "reduce_sum(x, axis=0)", 4096, 96),
        ("f64[4096, 9000]", "reduce_sum(x, axis=0)", 2048, 160),  # as many bytes
        ("f32[1024, 4096]", "reduce_sum(x, axis=0)", 1024, 32),  # tiles enough for many threads
        ("f32[4096, 4096]", "reduce_sum(x, axis=0), reduce_max(x, axis=0)", 2048, 64),  # for both
        ("f32[n, 4096]", "reduce_sum(x, axis=0)", 2048, None),
    ],
)
def test_tiles_of_rows_fit_the_first_cache(
    given: str, results: str, width: int, tiles: int | None
) -> None:
    """As much as a core's first cache has sums of, if there are tiles enough; to the same bits."""
    graph = pk.parse(f"x: {given}; return {results}")
    partial = next(k for k in pk.compile(graph).kernels if k.name.startswith("partial_reduce"))

    assert f"low + {width} <" in partial.source or f"* {width};" in partial.source
    assert tiles is None or partial.grid == tiles
