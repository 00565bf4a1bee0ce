"""The defects of nnvm-fusion, D1 to D10, as graphs in text: here they do not occur."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.planned import agrees, feeds_of, plan

pytestmark = pytest.mark.usefixtures("quick_kernels")

BOTH = pytest.mark.parametrize("fusion", ["nnvm", "stitch"])


def run(text: str, rng: Any, fusion: str, **sizes: int) -> tuple[pk.Executable, list[Any]]:
    """Compile a graph in text, run it on random arrays, and compare with what it means."""
    graph = pk.parse(text)
    exe, feeds = pk.compile(graph, fusion=fusion), feeds_of(graph, rng, **sizes)
    outs = exe(feeds)
    agrees(graph, feeds, outs)
    return exe, outs


def test_the_running_example() -> None:
    """``x0 * x1 + x2`` is one kernel with three inputs."""
    graph = plan(
        "x0: f32[n]; x1: f32[n]; x2: f32[n]; y = add(mul(x0, x1), x2); return y", fusion="nnvm"
    )
    (kernel,) = graph.attrs["kernel"].values()

    assert kernel.ops == ("mul", "add")
    assert [b.name for b in kernel.ast.params] == ["x0", "x1", "x2", "y0"]


@BOTH
def test_d1_fetched_intermediates_keep_their_value(fusion: str, rng: Any) -> None:
    """Fetching an absorbed intermediate gives its own value."""
    _, (y, e) = run("x: f32[5]; e = exp(x); y = add(e, 1); return y, e", rng, fusion)

    np.testing.assert_array_equal(y, e + np.float32(1))


@BOTH
def test_d2_one_element_behind_an_operator_of_two_results(fusion: str, rng: Any) -> None:
    """A ``[1]`` input is read at 0, also behind an operator with several results."""
    op = pk.register_op("test_nnvm_halves", num_inputs=1, num_outputs=2)
    op.set_attr("FInferShape", lambda node, s: ((s[0] // 2, s[1]),) * 2)
    op.set_attr("FCompute", lambda node, x: (x[: len(x) // 2], x[len(x) // 2 :]))
    text = """x: f32[6, 40]; s: f32[1]; parts = test_nnvm_halves(x)
    y = add(mul(parts:1, s), parts:0); return y"""
    exe, _ = run(text, rng, fusion)

    assert sum(s.name == "parts" for s in exe.steps if hasattr(s, "name")) == 1


@BOTH
def test_d3_control_dependences_are_kept(fusion: str) -> None:
    """A write that a consumer waits for happens, and a value read before it keeps its bits."""
    text = """state a: f32[3] = [0, 1, 2]; zero: f32[3] = [0, 0, 0]
    e = exp(a); s = assign(a, zero) after(e); y = add(e, 1) after(s); return y"""
    exe = pk.compile(pk.parse(text), fusion=fusion)

    np.testing.assert_allclose(exe()[0], np.exp([0, 1, 2]) + 1, rtol=1e-6)
    np.testing.assert_array_equal(exe.state["a"], 0)
    np.testing.assert_array_equal(exe()[0], 2)


@BOTH
def test_d3_a_control_dependency_between_operators_keeps_them_apart(fusion: str) -> None:
    """A value that another operator waits for is not taken into a group that reads that one."""
    text = """x: f32[4]; e = exp(x); f = isfinite(x) after(e); y = where(f, e, x); return y, f"""
    graph = pk.parse(text)
    feeds = {"x": np.arange(4, dtype=np.float32)}
    exe = pk.compile(graph, fusion=fusion)

    for result, expected in zip(exe(feeds), pk.interpret(graph, feeds), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6)
    if fusion == "nnvm":
        decisions = {d.producer: d for d in exe.graph.attrs["fusion_log"] if d.consumer == "y"}
        assert decisions["e"].reason == "e has control dependences"


@BOTH
def test_d4_literals_are_exact(fusion: str) -> None:
    """1e-7, Adam's 1e-8 and 1e20 are not printed with six digits."""
    numbers = (1e-7, 1e-8, 1e20, 0.1)
    lines = "".join(f"y{k} = add(mul(x, {v!r}), 0.0);" for k, v in enumerate(numbers))
    exe = pk.compile(pk.parse(f"x: f32[4]; {lines} return y0, y1, y2, y3"), fusion=fusion)

    for out, v in zip(exe(x=np.ones(4, np.float32)), numbers, strict=True):
        np.testing.assert_array_equal(out, np.float32(v))


@BOTH
def test_d5_nothing_is_read_past_the_end(fusion: str) -> None:
    """Every access of an array's element stands under the mask of the lanes that exist."""
    kernels = plan("x: f32[n]; y = add(exp(x), x); return y", fusion=fusion).attrs["kernel"]
    for kernel in kernels.values():
        accesses = re.findall(r"(?:load|store)\([^;]*", kernel.source)
        assert accesses and all("m)" in a for a in accesses)
        assert not re.search(r"\bx0\[", kernel.source)


def test_d6_equal_structures_compile_once(rng: Any) -> None:
    """Names are not part of a kernel's key: three equal groups are compiled once, then never."""
    text = "".join(
        f"a{k}: f32[{n}]; b{k}: f32[{n}]; y{k} = sub(mul(a{k}, b{k}), 0.375);"
        for k, n in enumerate((70, 80, 90))
    )
    graph = pk.parse(f"{text} return y0, y1, y2")
    exe = pk.compile(graph, fusion="nnvm")
    again = pk.compile(graph, fusion="nnvm")

    assert (len(exe.kernels), len({k.key for k in exe.kernels})) == (3, 1)
    assert exe.stats["compiled"] == 1
    assert again.stats["compiled"] == 0
    feeds = feeds_of(graph, rng)
    agrees(graph, feeds, exe(feeds))


@BOTH
def test_d7_passes_applied_to_a_fused_graph(fusion: str, rng: Any) -> None:
    """The passes open a fused graph, and give the same kernels."""
    passes = ["Fusion", "CodeGen", "RTCGen"]
    graph = pk.parse("x: f32[n, 4]; y = add(mul(x, x), 1); z = sub(exp(y), y); return z")
    once = pk.ApplyPasses(graph, passes, fusion=fusion)
    twice = pk.ApplyPasses(once, passes, fusion=fusion)
    keys = [[k.key for k in g.attrs["kernel"].values()] for g in (once, twice)]

    assert keys[0] == keys[1] != []
    feeds = feeds_of(graph, rng, n=3)
    agrees(graph, feeds, pk.compile(twice)(feeds))
    agrees(graph, feeds, pk.interpret(once, feeds))


@BOTH
def test_d8_equal_inputs_are_one_pointer(fusion: str) -> None:
    """``x*x + 1`` and a tanh written with four exponentials read x once."""
    for y in ("add(mul(x, x), 1)", "div(sub(exp(x), exp(neg(x))), add(exp(x), exp(neg(x))))"):
        text = f"x: f32[9]; y = {y}; return y"
        nodes = [k for k in plan(text, fusion="stitch").attrs["kernel"].values()]
        assert [b.name for b in nodes[0].ast.params] == ["x0", "y0"]
    (kernel,) = (
        plan("x: f32[9]; y = add(mul(x, x), 1); return y", fusion=fusion).attrs["kernel"].values()
    )
    assert kernel.source.count("load(") == 1


def test_d8_groups_have_limits(rng: Any) -> None:
    """200 sums split into kernels of bounded size, the same in every run, and stay right."""
    inputs = "".join(f"x{k}: f32[3];" for k in range(200))
    sums = "".join(f"s{k} = add({'s' if k > 1 else 'x'}{k - 1}, x{k});" for k in range(1, 200))
    exe, _ = run(f"{inputs}{sums}return s199", rng, "stitch")
    most = exe.target.max_buffers

    assert all(
        len(k.ast.params) <= most + 1 and len(k.ops) <= exe.target.max_ops for k in exe.kernels
    )
    assert 200 / most <= len(exe.kernels) <= 200 / most + 2
    again = plan(pk.parse(f"{inputs}{sums}return s199"))
    assert [k.key for k in again.attrs["kernel"].values()] == [k.key for k in exe.kernels]


def test_d9_diamonds_and_equal_values(rng: Any) -> None:
    """Shared producers fuse, several results come from one kernel, equal values are one."""
    exe, _ = run("x: f32[9]; e = exp(x); a = add(e, 1); b = mul(e, a); return a, b", rng, "stitch")
    assert (len(exe.kernels), exe.kernels[0].source.count("exp(")) == (1, 1)
    (kernel,) = (
        plan(
            "x: f32[9]; e = exp(x); a = add(e, 1); b = add(e, 1); return mul(a, b)", fusion="stitch"
        )
        .attrs["kernel"]
        .values()
    )
    assert kernel.ops == ("exp", "add", "mul")


@BOTH
@pytest.mark.parametrize("dtype", ["f64", "i32", "i64"])
def test_d10_other_dtypes(fusion: str, dtype: str, rng: Any) -> None:
    """Kernels are not of float32 only."""
    text = f"x: {dtype}[17]; y: {dtype}[17]; z = maximum(add(mul(x, y), 3), x); return z"
    exe, (out,) = run(text, rng, fusion)

    assert (len(exe.kernels), out.dtype.kind) == (1, dtype[0])


def test_d10_fused_nodes_work_in_place() -> None:
    """A fused node may overwrite an intermediate that nobody reads again."""
    text = "x: f32[n, 4]; a = matmul(x, w); y = add(exp(a), 1); z = matmul(y, w); return z"
    exe = pk.compile(pk.parse(f"w: f32[4, 4]; {text}"))
    (launch,) = [s for s in exe.steps if hasattr(s, "kernel")]

    assert launch.refs[0].kind == launch.refs[1].kind == "arena"
    assert launch.refs[0].index == launch.refs[1].index


def test_d10_an_opaque_pattern_is_obeyed(rng: Any) -> None:
    """An operator that is marked opaque stays out of kernels, although it has code."""
    op = pk.register_op("test_nnvm_opaque", num_inputs=1)
    op.set_attr("FCodeGen", lambda node, x: x + 1.0)
    op.set_attr("TOpPattern", pk.OpPattern.OPAQUE)
    op.set_attr("FInferShape", lambda node, s: (s,))
    for fusion in ("nnvm", "stitch"):
        exe, _ = run("x: f32[5]; y = exp(test_nnvm_opaque(exp(x))); return y", rng, fusion)
        assert [k.ops for k in exe.kernels] == [("exp",), ("exp",)]
        assert {d.code for d in pk.explain(exe.graph)} <= {"op.marked", "op.library"}


@pytest.mark.parametrize("n", [16_777_215 + 3])
def test_d10_many_elements(n: int) -> None:
    """More elements than a grid of 65,535 blocks of 256 threads has."""
    exe = pk.compile(pk.parse("x: u8[n]; y = add(mul(x, 3), 1); return y"), fusion="nnvm")
    x = np.arange(n, dtype=np.uint8)

    np.testing.assert_array_equal(exe(x=x)[0], x * np.uint8(3) + np.uint8(1))
