"""Behaviours of NNVM's registry, graphs, passes and fusion, on graphs in text.

The numbers count the behaviours in the list that implementations of NNVM are compared by.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests.memory_plans import check_plan
from tests.planned import agrees, feeds_of, plan

TEXT = """x: f32[n, 4]; w: f32[4]
e = exp(x)
s = reduce_sum(e, axis=1, keepdims=true) after(w2)
y = add(div(e, s), w)
return y, e""".replace("s = ", "w2 = neg(w); s = ")


def test_behaviour_01_reopening_and_groups() -> None:
    """Registering twice is one operator; joining a group before or after is the same."""
    early = pk.register_op("test_b1_early", num_inputs=1).include("test_b1")
    pk.op_group("test_b1").set_attr("TestB1", "group")
    late = pk.register_op("test_b1_late", num_inputs=1).include("test_b1")

    assert pk.register_op("test_b1_early") is early
    assert early.get_attr("TestB1") == late.get_attr("TestB1") == "group"
    assert early.set_attr("TestB1", "own").get_attr("TestB1") == "own"


def test_behaviour_02_priority() -> None:
    """A higher level replaces, a lower is ignored, an equal one from another place raises."""
    op = pk.register_op("test_b2", num_inputs=1).set_attr("TestB2", "ten")
    op.set_attr("TestB2", "low", plevel=5)
    assert op.get_attr("TestB2") == "ten"
    with pytest.raises(pk.RegistryError, match="TestB2 of op test_b2 is set at plevel=10 from two"):
        op.set_attr("TestB2", "again")
    with pytest.raises(pk.RegistryError, match="greater than 0, got 0"):
        op.set_attr("TestB2", "zero", plevel=0)
    with pytest.raises(pk.RegistryError, match="of type str, got int"):
        op.set_attr("TestB2", 3, plevel=12)


def test_behaviour_03_strict_keywords() -> None:
    """An unknown parameter raises and offers the nearest; inputs are made only where named."""
    with pytest.raises(pk.PasskitError, match="no parameter 'axes'; did you mean 'axis'"):
        pk.parse("x: f32[4, 4]; y = reduce_sum(x, axes=1); return y")
    with pytest.raises(pk.PasskitError, match=r"add 'y' takes 2 input\(s\), got 1"):
        pk.parse("x: f32[4]; y = add(x); return y")
    x = pk.var("x", (3, 4), "float32")
    names = [n.name for n in pk.Graph([pk.ops.layer_norm(x, name="ln")]).inputs]
    assert names[0] == "x" and all(n.startswith("ln_") for n in names[1:])


def test_behaviour_04_post_order() -> None:
    """Nodes stand in depth-first post-order, inputs before control dependences, every time."""
    graph = pk.parse(TEXT)
    labels = [n.label for n in graph.nodes]

    assert labels == ["x", "e", "w", "w2", "s", "div", "y"]
    assert [n.label for n in pk.parse(TEXT).nodes] == labels
    y = pk.var("x", (4,), "float32")
    for _ in range(20_000):
        y = pk.ops.exp(y)
    assert len(pk.Graph([y]).nodes) == 20_001


def test_behaviour_05_json_round_trip() -> None:
    """JSON comes back byte for byte, control dependences included."""
    text = pk.to_json(pk.parse(TEXT))
    again = pk.from_json(text)

    assert pk.to_json(again) == text
    assert [len(n.control) for n in again.nodes] == [0, 0, 0, 0, 1, 0, 0]


def test_behaviour_06_dependency_errors() -> None:
    """A missing annotation is named with pass and provider; a wrong name fails first."""
    graph, ran = pk.parse(TEXT), []
    with pytest.raises(pk.PassError, match="CodeGen depends on .* 'subgraph', .* run Fusion first"):
        pk.ApplyPasses(graph, "CodeGen")

    @pk.register_pass("TestB6")
    def first(graph: pk.Graph) -> pk.Graph:
        """Notes that it ran."""
        ran.append(graph)
        return graph

    with pytest.raises(pk.RegistryError, match="'Fusio' is not registered; did you mean 'Fusion'"):
        pk.ApplyPasses(graph, ["TestB6", "Fusio"])
    assert not ran


def negates(graph: pk.Graph) -> pk.Graph:
    """Return the graph with its outputs negated, and with all annotations."""
    return pk.Graph([pk.ops.neg(e) for e in graph.outputs], graph.updates, graph.attrs)


def test_behaviour_07_invalidation() -> None:
    """After a change of the graph nothing of the old one can be read, nor by an old index."""
    graph = pk.ApplyPasses(pk.parse(TEXT), ["InferShape", "Fusion"])
    old = pk.parse(TEXT).nodes[1]

    assert "complete" not in graph.attrs
    with pytest.raises(pk.PassError, match="'subgraph' has no value for Node.exp 'e'"):
        graph.attrs["subgraph"][old]
    planned = plan(TEXT)
    negated = pk.ApplyPasses(planned, pk.register_pass("TestNegates", changes_graph=True)(negates))
    assert "kernel" not in negated.attrs and "schedule" not in negated.attrs
    same = pk.ApplyPasses(planned, "Simplify")
    assert same.outputs == planned.outputs and same.attrs["kernel"] is planned.attrs["kernel"]


@pytest.mark.parametrize("fusion", ["none", "nnvm", "stitch"])
def test_behaviour_08_the_graph_given_is_untouched(fusion: str) -> None:
    """Planning and compiling leave the source as it was, attributes included."""
    graph = pk.parse(TEXT)
    before, attrs = (pk.to_text(graph), graph.key), dict(graph.attrs)
    pk.compile(graph, fusion=fusion)

    assert (pk.to_text(graph), graph.key) == before
    assert dict(graph.attrs) == attrs


def test_behaviour_09_shapes_both_ways() -> None:
    """A result's shape tells an input's; a contradiction names node, operator and both shapes."""
    graph = pk.ApplyPasses(
        pk.parse("x: f32[...]; y: f32[3, 4]; z = add(exp(x), y); return z"), "InferShape"
    )
    assert graph.shape(graph.outputs[0]) == (3, 4)
    with pytest.raises(pk.PasskitError, match=r"(?s)'z'.*(3, 4).*(3, 5)"):
        pk.parse("x: f32[3, 4]; y: f32[3, 5]; z = add(x, y); return z")


def test_behaviour_11_fused_is_unfused(rng: Any) -> None:
    """Every strategy gives what the operators mean; tests/test_fuzz.py does it at random."""
    graph = pk.parse(TEXT)
    feeds = feeds_of(graph, rng, n=7)
    for fusion in ("none", "nnvm", "stitch"):
        agrees(graph, feeds, pk.compile(graph, fusion=fusion)(feeds))


def test_behaviour_12_fetched_intermediates() -> None:
    """``[exp(x) + 1, exp(x)]`` are two arrays from one kernel."""
    exe = pk.compile(pk.parse("x: f32[3]; e = exp(x); y = add(e, 1); return y, e"))
    y, e = exe(x=np.zeros(3, np.float32))

    assert len(exe.kernels) == 1
    assert y.tolist() == [2, 2, 2] and e.tolist() == [1, 1, 1]


def test_behaviour_13_order_and_side_effects() -> None:
    """A read before a write keeps the old value; what comes after it sees the new one."""
    text = """state a: f32[2] = [1, 2]; e = exp(a)
    s = assign(a, mul(a, 0.0)) after(e); z = add(e, 1) after(s); b = add(a, 5) after(s)
    return z, b"""
    exe = pk.compile(pk.parse(text))
    z, b = exe()

    np.testing.assert_allclose(z, np.exp([1, 2]) + 1, rtol=1e-6)
    assert b.tolist() == [5, 5] and exe.state["a"].tolist() == [0, 0]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_behaviour_14_literals(dtype: str) -> None:
    """Literals have the bits they were given, through the compiler."""
    numbers = [1e-8, 1e-7, 1e20, 0.1, -0.0, 1 / 3, 3.0, 1e-40, 5e-324, math.pi]
    texts = [repr(v) for v in numbers] + ["inf", "-inf"]
    lines = "".join(f"y{k} = where(c, {v}, x);" for k, v in enumerate(texts))
    names = ", ".join(f"y{k}" for k in range(len(texts)))
    exe = pk.compile(pk.parse(f"c: bool[2]; x: {dtype}[2]; {lines} return {names}"))
    kind = {"f32": np.float32, "f64": np.float64}[dtype]
    outs = exe(c=np.ones(2, bool), x=np.zeros(2, kind))

    for out, v in zip(outs, [*numbers, math.inf, -math.inf], strict=True):
        assert out.tobytes() == np.full(2, v, kind).tobytes(), v


@pytest.mark.parametrize("n", [0, 1, 15, 16, 17, 255, 256, 257, 8191, 8193])
def test_behaviour_15_safe_lengths(n: int, rng: Any) -> None:
    """Every length works; tests/dialects/test_bounds.py puts arrays at the end of a page."""
    graph = pk.parse("x: f32[n]; y = add(mul(x, x), 1); return y")
    feeds = feeds_of(graph, rng, n=n)

    agrees(graph, feeds, pk.compile(graph)(feeds))


@pytest.mark.optimized
def test_behaviour_15_indices_of_64_bits() -> None:
    """An index may pass 2³¹: the last of 2,147,549,953 elements is found."""
    text = "x: i32[65537, 1]; y = broadcast_to(x, shape=(65537, 32769)); return reduce_max(y)"
    exe, x = pk.compile(pk.parse(text)), np.zeros((65537, 1), np.int32)
    x[-1] = 7

    assert exe(x=x)[0] == 7


def test_behaviour_16_inputs_are_read_once() -> None:
    """``x*x + 1`` and a tanh of exponentials take one pointer; limits of groups are kept."""
    for y in ("add(mul(x, x), 1)", "div(sub(exp(x), exp(neg(x))), add(exp(x), exp(neg(x))))"):
        (kernel,) = plan(f"x: f32[9]; y = {y}; return y").attrs["kernel"].values()
        assert sum(not b.written for b in kernel.ast.params) == 1


def test_behaviour_19_memory_plan() -> None:
    """A chain takes one slot, a diamond two, float64 twice the bytes; the checker agrees."""
    chain = "x: {0}[256]; a = exp(x); b = exp(a); c = exp(b); d = exp(c); return d"
    diamond = "x: {0}[256]; a = exp(x); b = exp(a); c = neg(a); d = add(b, c); return exp(d)"
    for text, slots in ((chain, 1), (diamond, 2)):
        for dtype, nbytes in (("f32", 4), ("f64", 8)):
            graph = pk.ApplyPasses(
                plan(text.format(dtype), fusion="none"), ["RTCGen", "PlanMemory"]
            )
            storage = graph.attrs["storage"]
            assert storage.bind({})[1] <= slots * 256 * nbytes
            check_plan(graph, storage)
