"""Fusion strategies of a user's: how they are found, and how their partitions are checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.plan.strategy import BUILT_IN, Strategy, find_fusion, list_fusions

Groups = list[list[Any]]
TEXT = """x: f32[8, 16]; w: f32[16, 16]; a = neg(x); b = exp(a); p = matmul(b, w)
    c = add(softmax(p), 1.0); return c, sort(b)"""


def by_names(*groups: str) -> Strategy:
    """A strategy that groups nodes by names in texts, such as "a b"."""

    @pk.register_fusion("test_strategies_named")
    def named(graph: pk.Graph) -> Groups:
        nodes = {name: node for node, name in graph.names.items()}
        return [[nodes[name] for name in names.split()] for names in groups]

    return named


def returning(value: Any) -> str:
    """The name of a strategy that returns ``value``."""

    @pk.register_fusion("test_strategies_fixed")
    def fixed(graph: pk.Graph, context: pk.PassContext) -> Any:
        return value

    return fixed.name


def test_a_partition_is_what_runs(rng: Any) -> None:
    """Groups become kernels, what is in none runs alone, and each edge says why."""
    graph = pk.parse(TEXT)
    run = pk.compile(graph, fusion=by_names("a b", "reduce_max sub exp reduce_sum div c"))
    feeds = {k: rng.normal(size=s).astype(np.float32) for k, s in (("x", (8, 16)), ("w", (16, 16)))}
    for found, wanted in zip(run(feeds), pk.interpret(graph, feeds), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6)

    assert [len(k.ops) for k in run.kernels] == [2, 6]
    log = pk.explain(run.graph)
    assert {(d.producer, d.consumer): d.code for d in log}["a", "b"] == "fused"
    assert log.why("b", "p")[0].reason == "a library computes matmul"
    split = pk.compile(graph, fusion=by_names("a b", "reduce_max sub exp"))
    assert [len(k.ops) for k in split.kernels] == [2, 3, 1, 1, 1]
    assert "in two groups" in pk.explain(split.graph).why("exp", "div")[0].reason


def test_a_product_may_be_in_a_group() -> None:
    """A matrix product between operators is one kernel with them, if a strategy says so."""
    run = pk.compile(pk.parse(TEXT), fusion=by_names("a b p"))

    assert run.stats["library_calls"] == 0 and run.kernels[0].ops == ("neg", "exp", "matmul")


ELSEWHERE = pk.ops.exp(pk.var("elsewhere", (3,)))


@pytest.mark.parametrize("value, message", [
    (None, r"it must return a list of groups, .* got NoneType; return \[\[node"),
    (["a"], "group 0 must be a list of nodes, got str"),
    ([[]], "group 0 is empty; leave it out"),
    ([["aa"]], "group 0 must hold nodes of the graph, got 'aa'.*; graph.nodes has them"),
    ([[ELSEWHERE]], "group 0 has .*which is not in the graph that it was given; take nodes"),
])  # fmt: skip
def test_what_is_no_partition_is_refused(value: Any, message: str) -> None:
    """A strategy that returns something else is told what, and what was needed."""
    with pytest.raises(pk.PassError, match=f"strategy 'test_strategies_fixed': {message}"):
        pk.ApplyPasses(pk.parse(TEXT), "Fusion", fusion=returning(value))


@pytest.mark.parametrize("groups, options, message", [
    (["a b", "b"], {}, "'b' is in group 0 and in group 1; a node is in one group"),
    (["x a"], {}, "group 0 has the input or constant 'x'; leave it out"),
    (["b sort"], {}, "group 0 has 'sort', which no kernel computes: .*numpy computes it; leave"),
    (["b c"], {}, "fusing would make a cycle: .*; take in what lies between, or split one"),
    (["a b"], {"no_fuse": ["a"]}, r"group 0 \(a, b\) cannot be one: the option no_fuse names one"),
    (["a b"], {"keep_apart": [["a", "b"]]}, "group 0 .* cannot be one: the option keep"),
])  # fmt: skip
def test_groups_that_cannot_be_are_refused(groups: Any, options: Any, message: str) -> None:
    """Each group is checked against the others, the hints of the caller, and the target."""
    with pytest.raises(pk.PassError, match=f"strategy 'test_strategies_named': {message}"):
        pk.ApplyPasses(pk.parse(TEXT), "Fusion", fusion=by_names(*groups), **options)


def test_groups_without_a_schedule_are_refused() -> None:
    """Sums along both axes of unknown length are not one kernel on a GPU: it is said why."""
    text = """x: f32[n, m]; t = reduce_sum(x, axis=0, keepdims=true); y = div(x, t)
        z = reduce_max(y, axis=1); return z, y"""
    reason = r"group 0 \(t, y, z\) has no schedule on target opencl: .*; split it"
    with pytest.raises(pk.PassError, match=f"strategy 'test_strategies_named': {reason}"):
        pk.ApplyPasses(pk.parse(text), "Fusion", fusion=by_names("t y z"), target="opencl")


def test_strategies_by_name() -> None:
    """Passkit's own are registered as a user's are; messages and options list them all."""
    mine = by_names()
    assert list_fusions()[:5] == ["none", "nnvm", "xla", "deep", "stitch"] == list(BUILT_IN)
    assert all(find_fusion(name).doc for name in BUILT_IN)
    assert pk.PassContext(fusion=mine).fusion == "test_strategies_named" in list_fusions()
    with pytest.raises(pk.SettingError, match="one of 'none', .*'test_strategies_named'.*; did"):
        pk.compile(pk.parse(TEXT), fusion="stich")
    with pytest.raises(pk.RegistryError, match="'deep' is registered at .*deep.py:.* and now at"):
        pk.register_fusion("deep")(lambda graph: [])
    with pytest.raises(pk.RegistryError, match="'test_strategies_none' must be a function .* None"):
        pk.register_fusion("test_strategies_none")(None)  # type: ignore[arg-type]


def test_composites_are_seen_as_a_strategy_wants_them() -> None:
    """Expanded, unless it is registered without; what was expanded for one is not for another."""
    seen: list[str] = []

    @pk.register_fusion("test_strategies_whole", expands=False)
    def whole(graph: pk.Graph) -> Groups:
        seen.extend(n.op.name for n in graph.nodes if n.op is not None)
        return []

    text = "x: f32[4, 4]; a: i32[4, 4]; return softmax(x), matmul(a, a)"
    pk.ApplyPasses(pk.parse(text), "Fusion", fusion="test_strategies_whole")
    assert "matmul" in seen and "softmax" not in seen, "only what runs as a whole stays whole"
    kept = pk.ApplyPasses(pk.parse(text), "Expand", fusion="nnvm")
    with pytest.raises(pk.PassError, match="plan by 'stitch', .* but for those that 'nnvm' keeps"):
        pk.ApplyPasses(kept, "Fusion")
