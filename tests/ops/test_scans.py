"""Scans fuse with their neighbours, run in either direction, and have the same bits anywhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.ast import dt
from passkit.errors import CodeGenError, ShapeError
from tests.ops.central import differences
from tests.planned import agrees, feeds_of, plan, prebuild
from tests.teams import team_of

pytestmark = pytest.mark.usefixtures("quick_kernels")

ops = pk.ops

TOGETHER = [
    "x: f32[4, 300]; y = exp(cumsum(mul(x, 2.0), axis=1)); return y",
    "x: f32[300, 4]; y = cumsum(x, axis=0); return y, reduce_max(y, axis=0)",
    "x: f32[300, 40]; return cumsum(softmax(x, axis=0), axis=0)",
    "x: f32[30, 90]; return softmax(cumsum(x, axis=1))",
    "x: f32[3, 5, 40]; y = cumsum(x, axis=2, reverse=true); return cummax(y, axis=2, reverse=true)",
    "x: f32[3, 5, 40]; s = reduce_sum(x, axis=2, keepdims=true); return div(cumsum(x, axis=2), s)",
    "x: f32[2, 3, 50, 7]; return cumprod(cumsum(x, axis=2), axis=2, exclusive=true)",
    "x: f32[70, 33]; a = cumsum(x, axis=1, exclusive=true); return mul(a, cumsum(x, axis=1))",
    "x: f32[2, 3, 60]; y = cumsum(x, axis=2, reverse=true); return softmax(y)",
    "x: f16[5, 70]; return add(cumsum(x, axis=1), cummax(x, axis=1, reverse=false))",
    "x: f32[70, 5]; return cumsum(x, axis=0, reverse=true, exclusive=true)",
]


def test_they_fuse_with_their_neighbours() -> None:
    """Producers, consumers, folds and other scans along the axis are one kernel, and right."""
    rng = np.random.default_rng(3)
    graphs = [pk.parse(text) for text in TOGETHER]
    prebuild(graphs)
    for graph in graphs:
        exe, feeds = pk.compile(graph), feeds_of(graph, rng)
        assert len(exe.kernels) == 1
        narrow = any(n.entries[0].dtype is dt.float16 for n in graph.inputs)
        agrees(graph, feeds, exe(feeds), rtol=2e-3 if narrow else 1e-5)


def test_large_results_are_streamed() -> None:
    """Past the caches too, a scan down the columns stores row after row in its lanes."""
    rng = np.random.default_rng(4)
    past = evolve(pk.PassContext(target="cpu").target, stream_bytes=0)
    for text in TOGETHER[:3]:
        graph = pk.parse(text)
        exe, feeds = pk.compile(graph, target=past), feeds_of(graph, rng)
        assert "stream(" in exe.source
        agrees(graph, feeds, exe(feeds), rtol=1e-5)


def test_equal_bits_wherever_results_lie() -> None:
    """A scan along a row takes whole vectors from its first element on, streamed or not."""
    x = np.random.default_rng(5).standard_normal((4, 300))
    exe = pk.compile(
        pk.parse("x: f64[4, 300]; return cumsum(x, axis=1)"),
        target=evolve(pk.PassContext(target="cpu").target, stream_bytes=0),
    )
    room = np.zeros(4 * 300 + 16)
    bits = set()
    for first in range(9):
        out = room[first : first + 1200].reshape(4, 300)
        bits.add(exe({"x": x}, out=[out])[0].tobytes())

    assert len(bits) == 1


APART = [
    ("x: f32[9, 9]; return add(cumsum(x, axis=0), cumsum(x, axis=1))", "domain.axes"),
    (
        "x: f32[9, 9]; y = cumsum(x, axis=0); return add(y, cumsum(y, axis=0, reverse=true))",
        "domain.scan_direction",
    ),
    ("x: f32[9, 9]; y = cumsum(x, axis=0); return transpose(y)", "domain.index"),
    (
        "x: f32[9, 9]; y = reduce_sum(exp(x), axis=0); return cumsum(y, axis=0)",
        "domain.nested_scan",
    ),
]


@pytest.mark.parametrize("text, code", APART)
def test_scans_that_do_not_fuse(text: str, code: str) -> None:
    """Scans along other axes or in the other direction, or read at another index, stay apart."""
    decisions = pk.explain(pk.parse(text))

    assert code in {d.code for d in decisions if not d.fused}


@pk.register_fusion("test_scans_together")
def together(graph: pk.Graph) -> list[list[pk.Node]]:
    """Fuse all operators into one group."""
    return [[node for node in graph.nodes if node.op is not None]]


def test_opposite_scans_cannot_share_a_loop() -> None:
    """Scans in opposite directions stay apart; forced into one kernel, one goes through scratch."""
    text = "x: f32[9]; return add(cumsum(x, axis=0), cumsum(x, axis=0{}))"
    graph = pk.parse(text.format(", reverse=true"))
    same_direction = pk.parse(text.format(", exclusive=true"))
    apart = next(d for d in pk.explain(graph) if not d.fused)
    assert (apart.code, apart.reason) == (
        "domain.scan_directions",
        "their scans run in different directions",
    )

    feeds = {"x": np.arange(9, dtype=np.float32)}
    exe = pk.compile(graph, fusion="test_scans_together")
    (kernel,) = exe.kernels
    assert kernel.shared_nbytes >= 9 * 4
    agrees(graph, feeds, exe(feeds))
    (kernel,) = pk.compile(same_direction, fusion="test_scans_together").kernels
    assert kernel.shared_nbytes == 0


@pytest.mark.parametrize(
    "target, reason", [("opencl", "has no scans"), ("cuda", "has kernels of loop nests only")]
)
def test_gpu_targets_have_no_scan_kernels(target: str, reason: str) -> None:
    """On GPU targets a scan does not fuse, and a kernel planned for the CPU is not printed."""
    (decision,) = pk.explain(pk.parse("x: f32[9]; return cumsum(exp(x))"), target=target)
    assert f"kernels of target {target} have no scans" in decision.reason

    mixed = evolve(pk.PassContext(target="cpu").target, dialect=target)
    with pytest.raises(CodeGenError, match=f"dialect {target} {reason}"):
        plan("x: f32[9]; return cumsum(x, axis=0)", target=mixed)


def test_same_bits_for_any_threads_and_rows() -> None:
    """Reductions and scans have the same bits at 1, 2 and 4 threads, and for fewer rows."""
    rng = np.random.default_rng(4)
    x, y = pk.var("x", ("n", 1500)), pk.var("y", (1500, "m"))
    reductions = ("sum", "prod", "mean", "max", "min", "l1", "l2", "std")
    outs: list[Any] = []
    for e, axis in ((x, 1), (y, 0)):
        outs += [getattr(ops, f"reduce_{f}")(e, axis=axis, keepdims=True) for f in reductions]
        outs += [ops.argmax(e, axis=axis, keepdims=True)]
        outs += [getattr(ops, f)(e, axis=axis) for f in ("cumsum", "cumprod", "cummax")]
        outs += [ops.cumsum(e, axis=axis, reverse=True), ops.logcumsumexp(e, axis=axis)]
    whole = [ops.reduce_sum(x), ops.reduce_l2(y)]
    exe = pk.compile(pk.Graph([*outs, *whole]))
    a = rng.normal(size=(70, 1500)).astype("float32")
    b = rng.normal(size=(1500, 90)).astype("float32")
    results = []
    for threads in (1, 2, 4):
        with team_of(threads):
            results.append(exe(x=a, y=b))
    few = exe(x=a[:3], y=b[:, :3])

    for other in results[1:]:
        assert all(map(np.array_equal, results[0], other))
    half = len(outs) // 2
    for k, (many, some) in enumerate(zip(results[0][: len(outs)], few, strict=False)):
        assert np.array_equal(many[:3] if k < half else many[:, :3], some)


def test_gradients_at_zeros_ties_and_infinities() -> None:
    """Products with zeros in them, running extremes, logarithms of nothing, second derivatives."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(3, 5))
    zeros = x * np.array([[1, 1, 0, 1, 1], [1, 0, 1, 0, 1], [0, 1, 1, 1, 1]])
    for down in (False, True):
        for exclusive in (False, True):
            flags = {"axis": 1, "exclusive": exclusive, "reverse": down}
            assert not differences(lambda v, k=flags: ops.cumprod(v, **k), zeros)
        assert not differences(lambda v, d=down: ops.cummax(v, axis=0, reverse=d), x)
    for name in ("cumprod", "logcumsumexp"):
        assert not differences(
            lambda v, n=name: pk.gradients([ops.sum(getattr(ops, n)(v, axis=1))], [v])[0], x
        )
    v = pk.var("v", (2, 3), "float64")
    ties = pk.gradients([ops.cummin(v, axis=1)], [v])
    assert pk.interpret(pk.Graph(ties), {"v": np.array([[2, 1, 1], [1, 1, 0.0]])})[0].tolist() == [
        [1, 2, 0],
        [2, 0, 1],
    ]


def test_zeros_have_one_sign() -> None:
    """The first element is combined with the identity element on every target."""
    graph = pk.Graph([ops.logcumsumexp(pk.var("x", (3,), "float64"), axis=0)])
    x = np.array([-0.0, -1.0, -2.0])
    (expected,) = pk.interpret(graph, {"x": x})
    (result,) = pk.compile(graph, target="blocks")(x=x)

    assert not np.signbit(expected[0]) and not np.signbit(result[0])
    np.testing.assert_allclose(result, expected, rtol=1e-15)


def test_axis_may_be_left_out_for_vectors_only() -> None:
    """A scan of a matrix without an axis is refused."""
    with pytest.raises(ShapeError, match="needs an axis for an input of rank 2"):
        ops.cumsum(pk.var("x", (3, 4)))
