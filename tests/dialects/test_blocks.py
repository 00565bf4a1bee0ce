"""Stitched kernels on GPUs: results, and bits that depend on nothing but a row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group, Kind
from passkit.diagnostics import Diagnostic
from passkit.errors import CodeGenError
from passkit.graph.kernel import Kernel
from passkit.ir.loop import KernelIR
from passkit.ir.pack import STATIC_SHARED_NBYTES, PackIR
from passkit.planner.plan import plan_group, why_no_maps
from passkit.schedule.schedule import Schedule
from passkit.target import target_of
from passkit.transforms.block_parts import block_nest
from passkit.transforms.pipeline import lower_block
from tests.emulator import EmulatedDevice, LaunchOptions
from tests.emulator.programs import emulated
from tests.nest_kernels import attention
from tests.planned import agrees, plan

o = pk.ops


def together(graph: pk.Graph) -> dict[str, Any]:
    """Return the options that put all operators of a graph into one kernel for CUDA."""
    names = [graph.names[n] for n in graph.nodes if n.op is not None]
    return {"target": "cuda", "keep_together": [names]}


def planned_of(graph: pk.Graph) -> tuple[Schedule, Kernel]:
    """Return the schedule and the kernel of a graph that is one kernel."""
    planned = plan(graph, **together(graph))
    ((node, kernel),) = planned.attrs["kernel"].items()
    return planned.attrs["schedule"][node], kernel


def dense(rows: int, steps: int, columns: int) -> pk.Graph:
    """Return a product with a bias and GELU."""
    x, w = pk.var("x", (rows, steps)), pk.var("w", (steps, columns))
    return pk.Graph([o.gelu(o.matmul(x, w) + pk.var("b", (columns,)))])


def heads(*shape: int) -> pk.Graph:
    """Return attention over the last two axes of arrays of four."""
    q, k, v = (pk.var(name, shape) for name in "qkv")
    scores = o.matmul(q, o.transpose(k, (0, 1, 3, 2))) * 0.25
    return pk.Graph([o.matmul(o.softmax(scores), v)])


def log_sums(heads: int, rows: int, inner: int, value: int) -> pk.Graph:
    """Return what figure 1 of FusionStitching does: several results of a softmax between dots."""
    q, k = pk.var("q", (heads, rows, inner)), pk.var("k", (heads, inner, rows))
    v = pk.var("v", (heads, rows, value))
    scores = o.matmul(q, k) * 0.125 + pk.var("m", (rows,))
    largest = o.reduce_max(scores, axis=2, keepdims=True)
    powers = o.exp(scores - largest)
    total = o.reduce_sum(powers, axis=2, keepdims=True)
    share = 1 / total
    return pk.Graph(
        [share, o.matmul(powers * share, v) * pk.var("g", (value,)), largest + o.log(total)]
    )


GRAPHS = [
    *(pk.Graph([attention(*shape, value=7)]) for shape in ((5, 7, 7, 4), (2, 9, 33, 5))),
    pk.Graph([attention(1, 6, 300, 8, value=8)]),
    pk.Graph([attention(3, 50, 94, 32, value=32, is_transposed=True)]),
    *(dense(*shape) for shape in ((37, 13, 21), (64, 32, 40), (3, 1, 6))),
    heads(2, 3, 20, 8),
    pk.Graph([o.tanh(o.matmul(pk.var("a", (30, 12, 10)), pk.var("b", (30, 10, 14))))]),
    pk.Graph([o.matmul(o.exp(pk.var("a", (40, 12))), pk.var("b", (12, 25))) * 2.0]),
    log_sums(2, 94, 1, 8),
    log_sums(2, 47, 32, 32),
    pk.Graph([o.reduce_sum(o.matmul(pk.var("a", (30, 12)), pk.var("b", (12, 25))), axis=1)]),
    pk.Graph(
        [o.matmul(o.matmul(pk.var("a", (40, 70)), pk.var("b", (70, 25))), pk.var("c", (25, 30)))]
    ),
]


def feeds_of(graph: pk.Graph, rng: np.random.Generator) -> dict[str, Any]:
    """Return arrays for the inputs of a graph."""
    return {
        n.name: rng.standard_normal([int(s) for s in n.entries[0].shape]).astype(
            n.entries[0].dtype.numpy
        )  # type: ignore[union-attr, call-overload]
        for n in graph.inputs
    }


def check_results(graphs: list[pk.Graph], form: type[KernelIR | PackIR], rng: Any) -> None:
    """Check that graphs are one kernel each, of this form, whose results equal NumPy's."""
    with emulated(EmulatedDevice(rng=rng)) as device:
        executables = [pk.compile(graph, **together(graph)) for graph in graphs]
        device.prepare(k for exe in executables for k in exe.kernels)
        for graph, exe in zip(graphs, executables, strict=True):
            assert [isinstance(k.ast, form) for k in exe.kernels] == [True], graph
            feeds = feeds_of(graph, rng)
            agrees(graph, feeds, exe(feeds), rtol=2e-3)


def test_results(rng: Any) -> None:
    """Products with chains, reductions and other products around them equal NumPy's."""
    check_results(GRAPHS, KernelIR, rng)


def softmax_of_product(heads: int | str) -> pk.Graph:
    """Return softmaxes of products of small matrices, for so many heads."""
    return pk.Graph([o.softmax(o.matmul(pk.var("q", (heads, 5, 6)), pk.var("k", (heads, 6, 40))))])


def test_a_column_has_the_same_bits_in_any_batch(rng: Any) -> None:
    """As many threads share out the loop of a point, whether a tile has a part of a row or all."""
    x = rng.standard_normal((7, 256, 32)).astype(np.float32)
    results = []
    with emulated():
        for count in (1, 2, 7):
            sums = o.reduce_sum(pk.var("x", (count, 256, 32)), axis=1)
            graph = pk.Graph([o.softmax(o.reshape(sums, shape=(16 * count, 2)))])
            (result,) = pk.compile(graph, **together(graph))(x=x[:count])
            results.append(np.asarray(result)[:16].tobytes())

    assert len(set(results)) == 1


def test_a_head_has_the_same_bits_in_any_batch(rng: Any) -> None:
    """Of one head, of seven and of seventy, of known and of unknown number."""
    q = rng.standard_normal((70, 5, 6)).astype(np.float32)
    k = rng.standard_normal((70, 6, 40)).astype(np.float32)
    cases = [(softmax_of_product(n), n) for n in (1, 7, 70)]
    cases += [(softmax_of_product("n"), n) for n in (1, 7)]
    with emulated() as device:
        executables = [pk.compile(graph, **together(graph)) for graph, _ in cases]
        device.prepare(kernel for exe in executables for kernel in exe.kernels)
        pairs = zip(executables, cases, strict=True)
        results = [np.asarray(exe(q=q[:n], k=k[:n])[0])[0] for exe, (_, n) in pairs]

    assert len({r.tobytes() for r in results}) == 1


def test_no_heads() -> None:
    """A batch of unknown size may be empty."""
    graph = softmax_of_product("n")
    with emulated():
        exe = pk.compile(graph, **together(graph))
        empty = exe(q=np.zeros((0, 5, 6), np.float32), k=np.zeros((0, 6, 40), np.float32))

    assert np.asarray(empty[0]).shape == (0, 5, 40)


def at(array: Any, offset: int) -> Any:
    """Return a copy of an array at so many bytes behind a multiple of 16."""
    raw = np.zeros(array.nbytes + 32, np.uint8)
    start = -raw.ctypes.data % 16 + offset
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@pytest.mark.parametrize("graph", [log_sums(2, 94, 1, 8), dense(64, 32, 40), heads(1, 2, 33, 8)])
def test_bits_do_not_depend_on_addresses(graph: pk.Graph, rng: Any) -> None:
    """Arrays that are not aligned to vectors give the bits of those that are."""
    _, kernel = planned_of(graph)
    inputs = list(feeds_of(graph, rng).values())
    shapes = [tuple(map(int, e.shape or ())) for e in graph.outputs]  # type: ignore[call-overload]
    device = EmulatedDevice(LaunchOptions())
    results = []
    for offset in (0, 4):
        out = [at(np.full(s, 7, np.float32), offset) for s in shapes]
        device.launch(kernel, {}, [at(x, offset) for x in inputs], out)
        results.append([r.tobytes() for r in out])

    assert results[0] == results[1]


def test_sums_do_not_depend_on_the_map(rng: Any) -> None:
    """Each element of a product is a chain of fma in the order of its steps."""
    graph = dense(8, 70, 12)
    product = pk.Graph([o.matmul(pk.var("x", (8, 70)), pk.var("w", (70, 12))) * 2.0])
    feeds = {k: v for k, v in feeds_of(graph, rng).items() if k != "b"}
    with emulated():
        run = pk.compile(product, **together(product))
        (result,) = run(feeds)
    assert [kernel.ops for kernel in run.kernels] == [("matmul", "mul")]
    x, w = (feeds[n].astype(np.float64) for n in "xw")
    total = np.zeros((8, 12), np.float32)
    for step in range(70):  # products of float32 are exact in float64, and so is almost any sum
        total = (x[:, step, None] * w[None, step] + total).astype(np.float32)

    assert np.asarray(result).tobytes() == (total * 2).tobytes()


def test_nan_stays_in_its_row(rng: Any) -> None:
    """A maximum that leaves NaN out gives the row of a NaN, and no other, NaN in all results."""
    graph = log_sums(1, 24, 8, 8)
    _, kernel = planned_of(graph)
    feeds = feeds_of(graph, rng)
    feeds["q"][0, 5, 3] = np.nan
    with emulated():
        results = pk.compile(graph, **together(graph))(feeds)

    assert "maximum_number" in str(kernel.ast)
    for result in results:
        is_nan = np.isnan(np.asarray(result)).any(axis=(0, 2))
        assert is_nan.nonzero()[0].tolist() == [5]


def test_a_schedule_of_another_group_is_not_lowered() -> None:
    """The parts of a schedule are those of its group, or lowering says which pass makes one."""
    graph = dense(8, 4, 12)
    planned = plan(graph, "SchedulePlan", **together(graph))
    ((node, schedule),) = planned.attrs["schedule"].items()
    group, block = planned.attrs["subgraph"][node], schedule.block
    other = evolve(block, parts=block.parts[:1])

    with pytest.raises(CodeGenError, match=r"matmul.* has other parts than its schedule; run Sch"):
        lower_block(group, schedule, other, frozenset())


STRIDES = (
    "x: f32[4, n, 64, 1]; w: f32[5, 7]; s = reduce_sum(mul(w, w), axis=1); return sub(x, rsqrt(s))"
)
"""Rows of a value of which several axes are whole, and one has an unknown length."""


def test_operators_without_maps_are_not_kept_together() -> None:
    """Where one kernel has no maps of its parts, and no phases, the option is refused."""
    graph = pk.Graph([o.tanh(o.matmul(pk.var("a", (24, "k")), pk.var("b", ("k", 25))))])
    planned = plan(graph, **together(graph))
    (refused, *others) = [d for d in planned.attrs["fusion_log"] if d.code == "hint.keep_together"]

    assert (refused.producer, refused.consumer) == ("matmul", "tanh") and not refused.fused
    assert refused.diagnostic.data["reason"].code == "block.product"
    assert "keep_together names both, but the tile of dot0 is no matrix" in refused.reason
    assert [d.diagnostic.data["reason"].code for d in others] == ["op.library"]
    ((node, kernel),) = planned.attrs["kernel"].items()
    assert kernel.ops == ("tanh",) and isinstance(kernel.ast, KernelIR)
    assert planned.attrs["schedule"][node].no_nest is None


def in_phases() -> list[tuple[pk.Graph, str, str]]:
    """Return graphs that are a kernel in phases alone; code and text say why not in one."""
    long = o.matmul(pk.var("a", (2, 4)), pk.var("b", (4, 4000)))
    first = o.matmul(pk.var("a", (8, 20)), pk.var("b", (20, 30)))
    then = o.matmul(o.cast(first, dtype="float64"), pk.var("c", (30, 12), "float64"))
    wide = o.matmul(pk.var("a", (2, 8)), pk.var("b", (8, 3000)))
    rows = pk.var("a", (3, 17, 5))
    powers = o.exp(rows - o.reduce_max(rows, axis=(0, 2), keepdims=True))
    shares = powers / o.reduce_sum(powers, axis=(0, 2), keepdims=True)
    return [
        (pk.Graph([then]), "block.dtype", "is float64; blocks compute matrix products of one"),
        (pk.Graph([o.softmax(long)]), "block.registers", "no map of the parts fits"),
        (
            pk.Graph([wide - o.slice(wide, begin=(0, 0), size=(2, 1))]),
            "memory.shared",
            "exceed 49152",
        ),
        (
            pk.Graph([o.softmax(o.reduce_max(shares, axis=1))]),
            "block.order",
            "keeps points of rows along several axes",
        ),
    ]


@pytest.mark.parametrize("graph, code, text", in_phases())
def test_groups_without_maps_are_kernels_in_phases(graph: pk.Graph, code: str, text: str) -> None:
    """A group without maps of its parts in one phase has them in several."""
    planned = plan(graph, **together(graph))
    ((node, kernel),) = planned.attrs["kernel"].items()
    group, schedule = planned.attrs["subgraph"][node], planned.attrs["schedule"][node]

    assert group.kind is Kind.PHASED and schedule.no_nest is None
    assert isinstance(kernel.ast, PackIR)
    assert len(kernel.ast.phases) == len(kernel.phases) == len(schedule.parts) > 1
    assert all(part.is_mapped for part in schedule.parts)
    results = pk.Graph([group.graph.outputs[e.index] for e in planned.outputs])
    reason = why_no_maps(Group(results, Kind.GEMM), target_of("cuda"))
    assert reason is not None and reason.code == code and text in str(reason)


def test_results_in_phases(rng: Any) -> None:
    """Kernels of several phases, of which some are products and chains, equal NumPy's."""
    check_results([graph for graph, *_ in in_phases()], PackIR, rng)


def test_shared_memory_limits_the_blocks_side_by_side(rng: Any) -> None:
    """A block has threads for two blocks of products, and shared memory for one of them."""
    x, w = pk.var("x", (32, 400)), pk.var("w", (400, 40))
    rows = o.softmax(o.matmul(o.tanh(x), w))
    graph = pk.Graph([rows / (o.reduce_sum(o.abs(rows)) + 1.0)])
    with emulated(EmulatedDevice(rng=rng)):
        exe = pk.compile(graph, **together(graph))
        (kernel,) = exe.kernels
        assert isinstance(kernel.ast, PackIR)
        product, total = kernel.ast.nests
        own, block = product.kernel, kernel.ast.launch
        assert block.threads // own.launch.threads == 2
        assert own.shared_nbytes < STATIC_SHARED_NBYTES < 2 * own.shared_nbytes
        assert kernel.ast.side_by_side(product) == kernel.ast.side_by_side(total) == 1
        assert kernel.shared_nbytes == own.shared_nbytes
        feeds = feeds_of(graph, rng)
        agrees(graph, feeds, exe(feeds), rtol=2e-3)


def of_other_tilings() -> list[tuple[pk.Graph, str, str]]:
    """Return graphs whose tiling by the cost model has no maps, with the reason's code and text."""
    product = o.matmul(pk.var("a", (24, 12)), pk.var("b", (12, 25)))
    return [
        (pk.Graph([o.reduce_sum(o.exp(product), axis=0)]), "block.product", "dot0 is no matrix"),
        (pk.parse(STRIDES), "block.strides", "strides of y0 are not known"),
    ]


@pytest.mark.parametrize("graph, code, text", of_other_tilings())
def test_another_tiling_is_tried(graph: pk.Graph, code: str, text: str) -> None:
    """Where the model's tiling has no maps of the parts, one that takes little longer may."""
    (group,) = plan(graph, "Fusion", **together(graph)).attrs["subgraph"].values()
    outline = plan_group(group, target_of("cuda"))
    assert isinstance(outline, Schedule)
    reason = block_nest(group, outline)
    assert isinstance(reason, Diagnostic) and reason.code == code and text in str(reason)

    schedule, kernel = planned_of(graph)
    assert schedule.block is not None and isinstance(kernel.ast, KernelIR)
    assert schedule.multi_nest != outline.multi_nest
