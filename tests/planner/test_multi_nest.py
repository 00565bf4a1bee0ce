"""Stitched kernels: groups of several iteration domains and matrix products as one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group, Kind
from passkit.analysis.tile_layout import TileLayout
from passkit.analysis.tilemap import Split, SplitKind, whole_map
from passkit.ast import Var
from passkit.ast.index import Sum
from passkit.ast.stage import Dot
from passkit.diagnostics import Diagnostic
from passkit.errors import CodeGenError
from passkit.planner.plan import plan_group
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import plan_shared
from passkit.schedule.tiling import Composition
from passkit.target import cpu, target_of
from passkit.transforms.build_product import product_stages
from passkit.transforms.lower_group import lower
from passkit.values import dtype as dt
from tests.teams import team_of
from tests.together import prebuilt

o = pk.ops
EXTENTS = (1, 5, 17, 33, 128, 1000, 4097)
Program = Callable[[int], list[Any]]


def together(outputs: list[Any]) -> tuple[pk.Graph, list[list[str]]]:
    """Return a graph, and the names of all its operators as one list for `keep_together`."""
    graph = pk.Graph(outputs)
    nodes = [n for n in graph.nodes if n.op is not None and n.op.name != "constant"]
    return graph, [[graph.names[n] for n in nodes]]


def softmax_of(x: Any) -> Any:
    """Return a softmax over the last axis in primitive operators."""
    e = o.exp(x - o.reduce_max(x, axis=-1, keepdims=True))
    return e / o.reduce_sum(e, axis=-1, keepdims=True)


def softmax(n: int) -> list[Any]:
    """Return a softmax of rows of ``n`` elements."""
    return [softmax_of(pk.var("x", (5, n)))]


def log_softmax(n: int) -> list[Any]:
    """Return a log-softmax of rows of ``n`` elements."""
    x = pk.var("x", (5, n))
    d = x - o.reduce_max(x, axis=-1, keepdims=True)
    return [d - o.log(o.reduce_sum(o.exp(d), axis=-1, keepdims=True))]


def layer_norm(n: int) -> list[Any]:
    """Return a layer norm of rows of ``n`` elements, with a weight for each column."""
    x, g = pk.var("x", (5, n)), pk.var("g", (n,))
    d = x - o.reduce_mean(x, axis=-1, keepdims=True)
    return [d * o.rsqrt(o.reduce_mean(d * d, axis=-1, keepdims=True) + 1e-5) * g]


def batch_norm(n: int) -> list[Any]:
    """Return mean and variance of columns of ``n`` elements, and the normalized matrix."""
    x = pk.var("x", (n, 7))
    mean = o.reduce_mean(x, axis=0)
    d = x - mean
    variance = o.reduce_mean(d * d, axis=0)
    return [mean, variance, d * o.rsqrt(variance + 1e-5)]


def image_norm(n: int) -> list[Any]:
    """Return the same statistics over three axes of images."""
    x = pk.var("x", (3, n, 2, 20))
    mean = o.reduce_mean(x, axis=(0, 1, 2))
    d = x - mean
    variance = o.reduce_mean(d * d, axis=(0, 1, 2))
    return [mean, variance, d * o.rsqrt(variance + 1e-5)]


def into_product(n: int) -> list[Any]:
    """Return a product of rows minus their means, which reduces each row again."""
    x, w = pk.var("x", (9, n)), pk.var("w", (n, 6))
    return [o.tanh(x - o.reduce_mean(x, axis=-1, keepdims=True)) @ w]


def rows_into_product(n: int) -> list[Any]:
    """Return an elementwise function of the product of ``n`` softmax rows."""
    x, w = pk.var("x", (n, 24)), pk.var("w", (24, 6))
    return [o.relu(softmax_of(x) @ w + 1.0)]


def heads(n: int | str) -> int:
    """Return the number of heads: 1 for long rows, of which each head has ``n``, else 3."""
    return 1 if isinstance(n, int) and n > 1000 else 3


def queries(n: int | str) -> int | str:
    """Return the number of rows of ``n`` elements: as many, but fewer where these are long."""
    return 150 if isinstance(n, int) and n > 1000 else n


def attention(n: int) -> list[Any]:
    """Return attention: two products with softmax between them."""
    b, m = heads(n), (n,)
    q = pk.var("q", (b, queries(n), 8))
    k, v = (pk.var(name, (b, n, 8)) for name in "kv")
    return [softmax_of(o.matmul(q, k, transpose_b=True) * 0.3 + pk.var("m", m)) @ v]


def figure1(n: int) -> list[Any]:
    """Return two products and two reductions with four results."""
    b = heads(n)
    q, k, v = pk.var("q", (b, queries(n), 4)), pk.var("k", (b, 4, n)), pk.var("v", (b, n, 5))
    add = (q @ k) * 0.125 + pk.var("m", (n,))
    most = o.reduce_max(add, axis=-1, keepdims=True)
    e = o.exp(add - most)
    total = o.reduce_sum(e, axis=-1, keepdims=True)
    log, divide = o.log(total), 1 / total
    return [divide, log, ((e * divide) @ v) * pk.var("g", (5,)), most + log]


def rows_and_columns(n: int) -> list[Any]:
    """Return a reduction of columns of normalized rows, and these rows."""
    x = o.exp(pk.var("x", (6, n)))
    y = x / o.reduce_sum(x, axis=-1, keepdims=True)
    return [o.reduce_sum(y, axis=0), y]


def rows_of_rows(n: int) -> list[Any]:
    """Return a reduction of results of a reduction, and a function of these."""
    x = pk.var("x", (4, 3, n))
    r = o.reduce_sum(x * x, axis=-1)
    return [o.reduce_max(r, axis=-1), o.sqrt(r)]


def lstm_step(z: Any, c: Any) -> list[Any]:
    """Return the state and the output of an LSTM cell, for the products ``z`` of its gates."""
    i, j, f, out = o.split(z, 4, axis=1)
    state = c * o.sigmoid(f + 1.0) + o.sigmoid(i) * o.tanh(j)
    return [state, o.tanh(state) * o.sigmoid(out)]


def lstm_cell(n: int) -> list[Any]:
    """Return an LSTM cell after its product: slices, elementwise functions, two results."""
    return lstm_step(pk.var("z", (n, 64)), pk.var("c", (n, 16)))


PROGRAMS: tuple[Program, ...] = (
    softmax,
    log_softmax,
    layer_norm,
    batch_norm,
    image_norm,
    into_product,
    rows_into_product,
    attention,
    figure1,
    rows_and_columns,
    rows_of_rows,
    lstm_cell,
)


def feeds_of(graph: pk.Graph, rng: Any) -> dict[str, Any]:
    """Return normally distributed arrays for every input."""
    return {
        n.name: rng.standard_normal(n.entries[0].shape).astype(n.entries[0].dtype.numpy)
        for n in graph.inputs
    }


def agree(graph: pk.Graph, exe: Any, feeds: dict[str, Any]) -> None:
    """Compare an executable with the interpreter, to a few units of the largest value."""
    for result, expected in zip(exe(feeds), pk.interpret(graph, feeds), strict=True):
        scale = np.abs(expected).max(initial=1e-9)
        np.testing.assert_allclose(result, expected, atol=4e-6 * scale, rtol=0)


@pytest.mark.usefixtures("quick_kernels")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_one_kernel_each_at_every_extent(program: Program, rng: np.random.Generator) -> None:
    """Each program is one launch with right results, for any length of rows."""
    cases = [together(program(n)) for n in EXTENTS]
    options = [{"keep_together": names} for _, names in cases]
    ready = prebuilt([graph for graph, _ in cases], options)
    for (graph, _), plan, own in zip(cases, ready, options, strict=True):
        exe = pk.compile(plan, **own)
        assert len(exe.steps) == 1 and len(exe.kernels) == 1
        agree(graph, exe, feeds_of(graph, rng))


def test_windows_that_do_not_divide_the_rows_are_right(rng: np.random.Generator) -> None:
    """If tiles do not divide the rows, the last tile of each head has fewer."""
    graph, names = together(attention(211))
    exe = pk.compile(graph, keep_together=names, target=evolve(cpu(), scratch=32768))
    (plan,) = exe.graph.attrs["schedule"].values()
    maps = [layout.tile_map for _, layout in plan.multi_nest.layouts]
    windows = [m.part[m.window] for m in maps if m.window is not None]

    assert exe.kernels[0].grid > 3 and any(211 % chunk for chunk in windows)
    agree(graph, exe, feeds_of(graph, rng))


@pytest.mark.parametrize("begin", [0, 1, 6])
def test_elements_that_are_read_with_an_offset_are_of_another_tile(
    begin: int, rng: np.random.Generator
) -> None:
    """Tiles of rows do not have the rows that a slice of a concatenation reads."""
    x = pk.var("x", (5, 6, 512))
    d = o.sub(x, o.reduce_sum(x, axis=2, keepdims=True))
    graph = pk.Graph([o.slice(o.concat(d, d, axis=1), begin=(0, begin, 0), size=(-1, 6, -1))])

    agree(graph, pk.compile(graph), feeds_of(graph, rng))


def test_equal_bits_on_any_number_of_threads(rng: np.random.Generator) -> None:
    """Results have equal bits on 1, 2 and 4 threads."""
    graph, names = together(figure1(40))
    exe, feeds = pk.compile(graph, keep_together=names), feeds_of(graph, rng)
    result = []
    for threads in (1, 2, 4):
        with team_of(threads):
            result.append([x.tobytes() for x in exe(feeds)])

    assert result[0] == result[1] == result[2]


def test_parts_pass_values_through_scratch() -> None:
    """Values that one part passes to another are in the tile's scratch, which parts share."""
    graph, names = together(attention(94))
    planned = pk.ApplyPasses(
        graph, ["Fusion", "SchedulePlan", "SharedMemPlan", "CodeGen"], keep_together=names
    )
    (plan,) = planned.attrs["schedule"].values()
    (kernel,) = planned.attrs["kernel"].values()
    (phase,) = kernel.ast.phases

    assert plan.composition is Composition.MULTI_NEST
    assert [isinstance(p.stages[0], Dot) for p in phase.parts] == [True, False, True]
    assert [b.name for b in kernel.ast.params] == ["x0", "x1", "x2", "x3", "y0"]
    scores = plan.multi_nest.layouts[0][1]
    assert kernel.shared_nbytes == scores.size * 4 + 128
    places = {(b.extent, b.offset) for b in kernel.ast.scratch}
    assert sorted(extent for extent, _ in places) == [scores.extents[0], scores.size]


def test_transposed_operands_are_no_parts() -> None:
    """A product reads a transposed operand without a copy; the transpose has no schedule."""
    q, k = pk.var("q", (3, 20, 8)), pk.var("k", (20, 3, 8))
    graph, names = together([o.exp(q @ o.transpose(k, axes=(1, 2, 0)))])
    planned = pk.ApplyPasses(graph, ["Fusion", "SchedulePlan"], keep_together=names)
    (plan,) = planned.attrs["schedule"].values()

    assert [p.schedule is None for p in plan.multi_nest.nests] == [True, False]


def test_a_group_that_needs_several_phases_has_the_reason() -> None:
    """A group whose tiles cannot own all of their results takes several phases, with the reason."""
    x = pk.var("x", (3, 512, 512))
    y = o.tanh(x @ x)
    graph, names = together([y @ y])
    small = evolve(cpu(), scratch=1 << 18)  # of which a whole matrix takes four times as much
    fused = pk.ApplyPasses(graph, "Fusion", keep_together=names, target=small)
    (group,) = fused.attrs["subgraph"].values()
    whole = Group(pk.Graph(group.graph.outputs[:1]), Kind.GEMM)
    why, plan = plan_group(whole, small), plan_group(group, small)

    assert isinstance(why, Diagnostic)
    assert "a product is cut into rows, or into columns, not into both" in str(why)
    assert isinstance(plan, Schedule) and len(plan.phase_outputs) > 1


@pytest.mark.parametrize("target", ["blocks", "cpu"])
@pytest.mark.parametrize("shape", [(2, 128, 4, 32), (1, 33, 3, 5), (3, 17, 2, 16), (2, 1, 5, 1)])
def test_tiles_own_heads_that_are_interleaved(shape: tuple[int, ...], target: str) -> None:
    """Attention is one kernel if heads are interleaved in its result."""
    x = pk.var("x", shape)
    q = o.transpose(x, (0, 2, 1, 3))
    y = softmax_of(o.matmul(q, q, transpose_b=True)) @ q
    batch, length, heads, depth = shape
    joined = o.reshape(o.transpose(y, (0, 2, 1, 3)), (batch, length, heads * depth))
    graph, names = together([joined])
    exe = pk.compile(graph, target=target, keep_together=names)
    feeds = {"x": np.random.default_rng(0).standard_normal(shape).astype(np.float32)}
    (result,), (expected,) = exe(feeds), pk.interpret(graph, feeds)

    np.testing.assert_allclose(np.asarray(result), expected, rtol=0, atol=2e-5)
    assert exe.stats["kernels"] == 1


@pytest.mark.parametrize("target", ["blocks", "cpu"])
def test_batches_of_unknown_size_are_one_kernel(target: str) -> None:
    """Attention over a batch whose size only a call knows is one kernel."""
    x = pk.var("x", (None, 32, 2, 8))
    q = o.transpose(x, (0, 2, 1, 3))
    y = softmax_of(o.matmul(q, q, transpose_b=True)) @ q
    graph, names = together([o.reshape(o.transpose(y, (0, 2, 1, 3)), (-1, 32, 16))])
    exe = pk.compile(graph, target=target, keep_together=names)
    for batch in (3, 1, 0):
        feeds = {"x": np.random.default_rng(batch).standard_normal((batch, 32, 2, 8), np.float32)}
        (result,), (expected,) = exe(feeds), pk.interpret(graph, feeds)
        np.testing.assert_allclose(np.asarray(result), expected, rtol=0, atol=2e-5)
        assert exe.stats["kernels"] == 1


def test_tiles_have_a_head_where_several_exceed_scratch() -> None:
    """A tile has one head if several heads exceed its scratch."""
    x = pk.var("x", (2, 256, 4, 32))
    q = o.transpose(x, (0, 2, 1, 3))
    y = softmax_of(o.matmul(q, q, transpose_b=True)) @ q
    graph, names = together([o.reshape(o.transpose(y, (0, 2, 1, 3)), (2, 256, 128))])
    planned = pk.ApplyPasses(graph, ["Fusion", "SchedulePlan"], keep_together=names)
    (plan,) = planned.attrs["schedule"].values()

    assert plan.multi_nest.tiles % 8 == 0


def test_operators_with_a_dependency_between_them_stay_apart() -> None:
    """Two operators are not fused if a third depends on one and the other depends on it."""
    text = "x: f32[8]; a = exp(x); s = sort(x) after(a); b = neg(a) after(s); return b, s"
    graph = pk.parse(text)
    fused = pk.ApplyPasses(graph, "Fusion", keep_together=[["a", "b"]])
    reasons = [d.reason for d in fused.attrs["fusion_log"] if d.code == "hint.keep_together"]

    assert any("the TOpPattern of sort is OPAQUE" in reason for reason in reasons)


def test_operators_between_those_kept_together_are_fused_too(rng: np.random.Generator) -> None:
    """A product between two operators in `keep_together` is in their kernel."""
    graph = pk.parse("x: f32[40, 8]; w: f32[8, 8]; a = exp(x); b = tanh(matmul(a, w)); return b")
    exe = pk.compile(graph, keep_together=[["a", "b"]])

    assert [k.ops for k in exe.kernels] == [("exp", "matmul", "tanh")]
    agree(graph, exe, feeds_of(graph, rng))


def test_products_of_broadcast_numbers_are_right(rng: np.random.Generator) -> None:
    """A product of a broadcast number, which has no address, is one kernel with right results."""
    graph = pk.parse("""x: f32[1, 4]; c: f32[] = 1; ones = broadcast_to(c, shape=(2, 1))
        m = matmul(ones, x); return exp(m)""")
    exe = pk.compile(graph, keep_together=[["ones", "m", "exp"]])
    feeds = feeds_of(graph, rng)

    assert len(exe.kernels) == 1
    np.testing.assert_allclose(exe(feeds)[0], pk.interpret(graph, feeds)[0], rtol=1e-6)


def test_a_schedule_of_another_group_is_refused() -> None:
    """Lowering a group by the schedule of another group is an error."""
    plans = []
    for n in (5, 6):
        graph, names = together(attention(n))
        (group,) = pk.ApplyPasses(graph, "Fusion", keep_together=names).attrs["subgraph"].values()
        plan = plan_group(group, target_of("cpu"))
        assert not isinstance(plan, Diagnostic)
        plans.append((group, plan, plan_shared(group, plan)))
    with pytest.raises(CodeGenError, match=r"Group\(gemm.* has other parts than its schedule"):
        lower(plans[0][0], plans[1][1], plans[1][2])


def test_tile_maps_divide_dimensions() -> None:
    """A tile has one coordinate of outer dimensions, a window of one, and all of inner ones."""
    rows = Split(1, 40).tile_map((4, 94, 32))
    columns = Split(1, 4, SplitKind.COLUMN).tile_map((94, 8, 32))

    assert (rows.outer, rows.inner, rows.window, rows.dims[1].count) == ((0,), (1, 2), 1, 3)
    assert (columns.outer, columns.inner, columns.dims[1].count) == ((2,), (0, 1), 2)
    assert (rows.elements, TileLayout(columns).extents) == (40 * 32, (94, 4))
    assert TileLayout(Split(0, 1).tile_map((4, 5))).size == 5


def test_product_operands_must_have_regular_strides() -> None:
    """A product's rows and columns must be at even distances in memory."""
    a, b = pk.var("a", (4, 6)), pk.var("b", (6, 2))
    node = o.matmul(a, b, name="mm").node
    uneven = Sum(((Var("m", dt.int64) % 3, 2),))
    with pytest.raises(CodeGenError, match="matmul 'mm' reads an operand whose elements do not"):
        product_stages(
            node, lambda which, index, extents: ("x0", uneven), 1, whole_map((4, 2)), "dot"
        )
