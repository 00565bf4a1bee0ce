"""Fusion strategies of users: look-up by name, and checks of the groups that they return."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from passkit.fusion.fusion_plan import FusionPlan

Groups = list[list[Any]]
TEXT = """x: f32[8, 16]; w: f32[16, 16]; a = neg(x); b = exp(a); p = matmul(b, w)
    c = add(softmax(p), 1.0); return c, sort(b)"""


def by_names(*groups: str) -> Any:
    """Register and return a strategy whose groups are given by names of nodes, such as "a b"."""

    @pk.register_fusion("test_strategies_named")
    def named(graph: pk.Graph) -> Groups:
        nodes = {name: node for node, name in graph.names.items()}
        return [[nodes[name] for name in names.split()] for names in groups]

    return named


def returning(value: Any) -> str:
    """Register a strategy that returns ``value``, and return its name."""

    @pk.register_fusion("test_strategies_fixed")
    def fixed(graph: pk.Graph, context: pk.PassContext) -> Any:
        return value

    return str(fixed.name)


def test_groups_become_kernels(rng: Any) -> None:
    """Each group is a kernel, other operators run by themselves, and each edge has a reason."""
    graph = pk.parse(TEXT)
    run = pk.compile(graph, fusion=by_names("a b", "reduce_max sub exp reduce_sum div c"))
    feeds = {k: rng.normal(size=s).astype(np.float32) for k, s in (("x", (8, 16)), ("w", (16, 16)))}
    for output, expected in zip(run(feeds), pk.interpret(graph, feeds), strict=True):
        np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-6)

    assert [len(k.ops) for k in run.kernels] == [2, 6]
    log = pk.explain(run.graph)
    assert {(d.producer, d.consumer): d.code for d in log}["a", "b"] == "fused.strategy"
    assert log.why("b", "p")[0].reason.startswith("a library call computes matmul, and the call")
    split = pk.compile(graph, fusion=by_names("a b", "reduce_max sub exp"))
    assert [len(k.ops) for k in split.kernels] == [2, 3, 1, 1, 1]
    assert "in two groups" in pk.explain(split.graph).why("exp", "div")[0].reason


def test_a_product_may_be_in_a_group() -> None:
    """A matrix product is one kernel with operators around it if a strategy groups them."""
    run = pk.compile(pk.parse(TEXT), fusion=by_names("a b p"))

    assert run.stats["library_calls"] == 0 and run.kernels[0].ops == ("neg", "exp", "matmul")


ELSEWHERE = pk.ops.exp(pk.var("elsewhere", (3,)))


@pytest.mark.parametrize(
    "value, message",
    [
        (None, r"it must return a list of groups, .* got NoneType; return \[\[node"),
        (["a"], "group 0 must be a list of nodes, got str"),
        ([[]], "group 0 is empty; leave it out"),
        ([["aa"]], "group 0 must hold nodes of the graph, got 'aa'.*; graph.nodes has them"),
        ([[ELSEWHERE]], "group 0 has .*which is not in the graph that it was given; take nodes"),
    ],
)
def test_results_other_than_groups_of_nodes_are_errors(value: Any, message: str) -> None:
    """The error has the result of the strategy, and what it must return."""
    with pytest.raises(pk.PassError, match=f"strategy 'test_strategies_fixed': {message}"):
        pk.ApplyPasses(pk.parse(TEXT), "Fusion", fusion=returning(value))


@pytest.mark.parametrize(
    "groups, options, message",
    [
        (["a b", "b"], {}, "'b' is in group 0 and in group 1; a node is in one group"),
        (["x a"], {}, "group 0 has the input or constant 'x'; leave it out"),
        (
            ["b sort"],
            {},
            "group 0 has 'sort', which no kernel computes: .*numpy computes it; leave",
        ),
        (["b c"], {}, "fusing would make a cycle: .*; take in what lies between, or split one"),
        (
            ["a b"],
            {"no_fuse": ["a"]},
            r"group 0 \(a, b\) cannot be one: the option no_fuse names one",
        ),
        (["a b"], {"keep_apart": [["a", "b"]]}, "group 0 .* cannot be one: the option keep"),
    ],
)
def test_invalid_groups_are_errors(groups: Any, options: Any, message: str) -> None:
    """Each group is checked against the other groups, the options and the target."""
    with pytest.raises(pk.PassError, match=f"strategy 'test_strategies_named': {message}"):
        pk.ApplyPasses(pk.parse(TEXT), "Fusion", fusion=by_names(*groups), **options)


BOTH_AXES = """x: f32[n, m]; t = reduce_sum(x, axis=0, keepdims=true); y = div(x, t)
    z = reduce_max(y, axis=1); return z, y"""


def test_groups_without_a_schedule_are_errors() -> None:
    """Reductions along both axes of unknown length are not one kernel on a GPU."""
    reason = r"group 0 \(t, y, z\) has no schedule on target opencl: .*; split it"
    with pytest.raises(pk.PassError, match=f"strategy 'test_strategies_named': {reason}"):
        pk.ApplyPasses(pk.parse(BOTH_AXES), "Fusion", fusion=by_names("t y z"), target="opencl")


def test_plans_are_checked_once_their_groups_are_formed() -> None:
    """A fusion plan with a group that no kernel can compute is an error, not a faulty kernel."""

    @pk.register_fusion("test_strategies_plan")
    def plan(graph: pk.Graph) -> FusionPlan:
        nodes = {name: node for node, name in graph.names.items()}
        return FusionPlan([[nodes[name] for name in "tyz"]])

    reason = "'test_strategies_plan' made .*reduce_max.*, which has no schedule on target opencl: "
    with pytest.raises(pk.PassError, match=f"{reason}.*; name one of its operators in no_fuse"):
        pk.ApplyPasses(pk.parse(BOTH_AXES), "Fusion", fusion=plan, target="opencl")


def test_strategies_are_looked_up_by_name() -> None:
    """Strategies of users are options beside passkit's own; the error for another name has all."""
    mine = by_names()
    names = "'none', 'nnvm', 'xla', 'deep', 'stitch', .*'test_strategies_named'"
    assert pk.PassContext(fusion=mine).fusion == mine.name == "test_strategies_named"
    with pytest.raises(pk.SettingError, match=f"one of {names}.*; did you mean 'stitch'"):
        pk.compile(pk.parse(TEXT), fusion="stich")
    with pytest.raises(pk.RegistryError, match="'deep' is registered at .*deep.py:.* and now at"):
        pk.register_fusion("deep")(lambda graph: [])
    with pytest.raises(pk.RegistryError, match="'test_strategies_none' must be a function .* None"):
        pk.register_fusion("test_strategies_none")(None)  # type: ignore[arg-type]


def test_composites_are_expanded_as_a_strategy_is_registered() -> None:
    """Strategies get expanded composites, or entire ones that run as a library call.

    A graph that was expanded for one strategy is refused for another.
    """
    operators: list[str] = []

    @pk.register_fusion("test_strategies_entire", expands=False)
    def entire(graph: pk.Graph) -> Groups:
        operators.extend(n.op.name for n in graph.nodes if n.op is not None)
        return []

    text = "x: f32[4, 4]; a: i32[4, 4]; return softmax(x), matmul(a, a)"
    pk.ApplyPasses(pk.parse(text), "Fusion", fusion="test_strategies_entire")
    assert "matmul" in operators and "softmax" not in operators
    expanded = pk.ApplyPasses(pk.parse(text), "Expand", fusion="nnvm")
    with pytest.raises(pk.PassError, match="plan by 'stitch', .* but for those that 'nnvm' keeps"):
        pk.ApplyPasses(expanded, "Fusion")
