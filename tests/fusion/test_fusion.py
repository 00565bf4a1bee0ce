"""Fusion: which operators share a group, and the reason of each edge."""

from __future__ import annotations

import re
import time
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.errors import GraphError
from passkit.fusion.contract import contract
from passkit.fusion.fusion_plan import FusionPlan
from passkit.graph.node import is_leaf
from passkit.program import planning
from passkit.program.planning import DEFAULT_PIPELINE
from passkit.target import cpu
from tests.planned import agrees, feeds_of
from tests.random_graphs import random_case

BEFORE = DEFAULT_PIPELINE[: DEFAULT_PIPELINE.index("Fusion")]


def fused(text: str, **options: Any) -> pk.Graph:
    """Return the graph in ``text`` after Fusion."""
    return pk.ApplyPasses(pk.parse(text), [*BEFORE, "Fusion"], **options)


def groups(text: str, **options: Any) -> list[str]:
    """Return the operators of each group, as text."""
    subgraphs = fused(text, **options).attrs["subgraph"].values()
    return [" ".join(n.op.name for n in g.ops) for g in subgraphs]


TOGETHER = [
    ("x: f32[4]; e = exp(x); y = mul(add(e, 1), e); return y, e", "exp add mul"),
    ("x: f32[4, 5]; y = transpose(neg(x)); return sub(y, 1)", "neg transpose sub"),
    ("x: f32[4, 5]; y = reshape(exp(x), shape=(20,)); return neg(y)", "exp reshape neg"),
    ("x: f32[4, 5]; b: f32[5]; return exp(add(x, reshape(b, shape=(1, 5))))", "reshape add exp"),
    ("x: f32[4, 5]; s = reduce_sum(exp(x), axis=1); return log(s)", "exp reduce_sum log"),
    (
        "x: f32[4, 5]; a = reduce_sum(x, axis=1); b = reduce_max(x, axis=1); return sub(a, b)",
        "reduce_sum reduce_max sub",
    ),
    ("x: f32[4, 5]; s = reduce_sum(x, axis=0, keepdims=true); return div(x, s)", "reduce_sum div"),
    ("x: f32[3]; y: f32[3]; return exp(concat(neg(x), neg(y), axis=0))", "neg neg concat exp"),
    (
        "x: f32[4, 5]; w: f32[5, 5]; a = neg(x); b = exp(matmul(x, w)); return a, add(a, b)",
        "neg exp add",
    ),
]


@pytest.mark.parametrize("text, ops", TOGETHER)
def test_operators_of_one_iteration_domain_share_a_group(text: str, ops: str) -> None:
    """Elementwise, broadcast and movement operators and reductions of one space are one group."""
    (operators,) = groups(text)

    assert sorted(operators.split()) == sorted(ops.split())


APART = [
    (
        "x: f32[4, 5]; y: f32[5, 6]; return matmul(exp(x), y)",
        "op.library",
        "a library call computes matmul",
    ),
    (
        "x: f32[4, 5]; return transpose(erf(x))",
        "domain.index",
        "reads erf at another index than that of the element it computes",
    ),
    (
        "x: f32[4, 5]; s = reduce_sum(x, axis=1); return reduce_sum(s, axis=0)",
        "domain.nested_reduction",
        "its input is already reduced over this axis",
    ),
    (
        "x: f32[4, 5]; a = exp(x); s = reduce_sum(a, axis=1); return s, reduce_sum(a, axis=0)",
        "domain.axes",
        "other axes than its kernel",
    ),
    ("x: f32[0, 4]; return exp(neg(x))", "graph.empty", "it has no elements"),
    (
        "x: f32[4, 5]; w: f32[5, 5]; a = exp(x); b = matmul(a, w); return add(a, b)",
        "graph.cycle",
        "a path through another kernel connects them",
    ),
    (
        "x: f32[4, 5]; w: f32[5, 5]; return add(exp(x), reduce_sum(exp(w)))",
        "domain.spaces",
        r"domains \(5, 5\) and \(4, 5\) differ",
    ),
    (
        "x: f32[3]; y: f32[4]; return concat(exp(x), exp(y), axis=0)",
        "domain.shape",
        r"its shape \(7,\) does not fit the iteration domain \([34],\)",
    ),
]


@pytest.mark.parametrize("text, code, reason", APART)
def test_edges_between_kernels_have_a_reason(text: str, code: str, reason: str) -> None:
    """An edge between two kernels has the reason, on a target where launches cost nothing."""
    target = evolve(cpu(), launch=0.0)
    reasons = {d.code: d.reason for d in pk.explain(pk.parse(text), target=target).apart}

    assert re.search(reason, reasons[code])


def test_strategies_give_their_reasons() -> None:
    """Pairwise strategies have reasons, too, and name the strategy that would fuse the edge."""
    text = "x: f32[4, 5]; e = exp(x); s = reduce_sum(e, axis=1); return s, neg(e)"
    for fusion, code, count in (("none", "fusion.off", 3), ("nnvm", "op.pattern", 3)):
        log = fused(text, fusion=fusion).attrs["fusion_log"]
        assert len(groups(text, fusion=fusion)) == count
        assert {(d.code, d.way_out) for d in log if d.consumer == "s"} == {
            (code, "fusion='stitch'")
        }
    uses = {
        d.code
        for d in fused("x: f32[4]; e = exp(x); return neg(e), abs(e)", fusion="nnvm").attrs[
            "fusion_log"
        ]
    }
    assert uses == {"graph.multiple_uses"}


@pytest.mark.parametrize(("operator", "kernels"), [("maximum", 1), ("tanh", 2)])
def test_light_operators_are_many_in_a_group(operator: str, kernels: int) -> None:
    """Hundreds of unrolled iterations are one kernel, unless they call functions."""
    x = pk.var("x", (64, 64))
    y = x
    for _ in range(100):
        y = (pk.ops.tanh(y) if operator == "tanh" else pk.ops.maximum(y, x)) * 0.5 + x
    graph = pk.ApplyPasses(pk.Graph([y]), ["Fusion"])

    assert len(graph.attrs["subgraph"]) == kernels


@pytest.mark.parametrize(
    "limit, code, message",
    [
        ({"max_ops": 2}, "limit.light_ops", "a group has at most 2 operators, or 16 light ones"),
        ({"max_ops": 2, "light_ops": 1}, "limit.ops", "a group has at most 2 operators"),
        ({"max_buffers": 1}, "limit.buffers", "a kernel has at most 1 inputs"),
    ],
)
def test_groups_obey_limits_of_the_target(
    limit: dict[str, int], code: str, message: str, rng: Any
) -> None:
    """A group holds no more operators and inputs than the target allows."""
    text = "x: f32[4]; y: f32[4]; return sqrt(abs(add(exp(x), y)))"
    target = evolve(cpu(), **limit)
    reasons = {d.code: d.reason for d in fused(text, target=target).attrs["fusion_log"]}

    assert len(groups(text)) == 1 < len(groups(text, target=target))
    assert reasons[code] == message


def test_scalars_count_little_among_the_inputs_of_a_group() -> None:
    """A chain that reads 100 scalars is one kernel, one that reads 100 arrays is not."""
    count, kernels = 100, {}
    for kind, shape in (("scalars", ()), ("arrays", (64,))):
        y = pk.var("x", (64,), "float32")
        for k in range(count):
            y = y * pk.var(f"a{k}", shape, "float32") + 1.0
        graph = pk.ApplyPasses(pk.Graph([y]), ["Fusion"])
        kernels[kind] = len(graph.attrs["subgraph"])

    assert kernels["scalars"] == 1 < kernels["arrays"]


@pytest.mark.parametrize("order", ["r b c d", "b r d c", "b r c d", "r b d c"])
@pytest.mark.parametrize("results", ["c, d", "d, c"])
def test_groups_that_would_depend_on_each_other_are_joined(order: str, results: str) -> None:
    """Groups that would depend on each other become one, in any order of the operators."""
    lines = {
        "r": "r = reduce_sum(a, axis=0)",
        "b": "b = exp(z)",
        "c": "c = add(a, b)",
        "d": "d = add(b, r)",
    }
    body = "; ".join(lines[k] for k in order.split())

    assert len(groups(f"x: f32[4, 6]; z: f32[6]; a = exp(x); {body}; return {results}")) == 1


def test_groups_that_cannot_be_joined_are_put_in_order() -> None:
    """Groups of two domains that read each other's values are kernels in an order."""
    text = """x: f32[3, 9]; t = transpose(x); m = reduce_mean(x, axis=0)
    v = reduce_mean(mul(t, t), axis=1)
    return div(sub(x, m), sqrt(sub(v, mul(m, m))))"""

    assert 2 <= len(groups(text, disabled=["MoveTransposes"])) <= 3
    assert len(groups(text)) == 1


def test_groups_of_any_depth_are_merged() -> None:
    """A producer that a library reads early is merged with one behind two library calls."""
    text = """x: f32[8, 8]; y: f32[8, 8]; w: f32[8, 8]; a = exp(x); u = matmul(a, w)
    b = tanh(matmul(matmul(y, w), w)); c = add(a, b); return u, c"""
    log = fused(text).attrs["fusion_log"]

    assert groups(text) == ["exp tanh add"]
    assert {d.code for d in log if d.consumer == "c"} == {"fused.domain"}


TEXT = "x: f32[8]; a = exp(x); b = neg(a); c = sqrt(floor(b)); return c"


def test_keep_apart_separates_nodes() -> None:
    """Nodes that keep_apart names are in different groups; the edge says so."""
    assert groups(TEXT, keep_apart=[["a", "b"]]) == ["exp", "neg floor sqrt"]
    (d,) = [d for d in fused(TEXT, keep_apart=[["a", "b"]]).attrs["fusion_log"] if not d.fused]
    assert (d.code, d.way_out) == ("hint.keep_apart", "take them out of keep_apart")


def test_no_fuse_isolates_a_node() -> None:
    """A node that no_fuse names is alone."""
    assert groups(TEXT, no_fuse=["b"]) == ["exp", "neg", "floor sqrt"]
    assert {d.code for d in fused(TEXT, no_fuse=["b"]).attrs["fusion_log"]} == {
        "hint.no_fuse",
        "fused.domain",
    }


def test_fuel_limits_the_number_of_fusions() -> None:
    """Each fusion takes one unit of fuel, in a fixed order; without fuel nothing is fused."""
    counts = [len(groups(TEXT, fuel=k)) for k in range(5)]

    assert counts == [4, 3, 2, 1, 1]
    assert {d.code for d in fused(TEXT, fuel=0).attrs["fusion_log"]} == {"fuel"}
    assert groups(TEXT, fusion="nnvm", fuel=1) != groups(TEXT, fusion="nnvm")


def test_keep_together_joins_independent_nodes() -> None:
    """Independent nodes of one iteration domain are joined on request only."""
    text = "x: f32[80000]; y: f32[80000]; a = exp(x); b = neg(y); return a, b"

    assert groups(text) == ["exp", "neg"]
    assert groups(text, keep_together=[["a", "b"]]) == ["exp neg"]


@pytest.mark.parametrize(
    "operand",
    [
        "reduce_sum(x, axis=0)",
        "reduce_sum(x, axis=0, keepdims=true)",
        "reshape(reduce_max(x, axis=(0, 1)), shape=(1, 33))",
        "reshape(cumsum(x, axis=2), shape=(80, 33))",
    ],
)
def test_products_of_reductions_share_their_kernel(operand: str, rng: Any) -> None:
    """A product reads the result of a reduction or a scan in one kernel, of whatever rank."""
    graph = pk.parse(f"x: f32[2, 40, 33]; w: f32[33, 8]; s = {operand}; return matmul(s, w)")
    exe = pk.compile(graph, keep_together=[["s", "matmul"]])
    feeds = feeds_of(graph, rng)

    assert len(exe.steps) == 1
    agrees(graph, feeds, exe(feeds), 2e-4)


@pytest.mark.parametrize(
    "text, options, reason",
    [
        (
            "x: f32[8]; y: f32[9]; a = exp(x); b = neg(y); return a, b",
            {"fuel": 0},
            "the limit on fusion decisions",
        ),
        (
            "x: f32[8]; y: f32[8]; a = exp(x); b = neg(y); return a, b",
            {"keep_apart": [["a", "b"]]},
            "the option keep_apart names both",
        ),
        (
            "x: f32[8]; y: f32[8]; a = exp(x); b = neg(y); return a, b",
            {"no_fuse": ["b"]},
            "no_fuse",
        ),
        (
            "x: f32[4, 4]; a = exp(x); b = exp(sort(a)); return b",
            {},
            "TOpPattern of sort is OPAQUE",
        ),
        ("x: f32[4, 4]; a = exp(x); b = matmul(a, a); return b", {"no_fuse": ["b"]}, "no_fuse"),
        (
            "x: f32[4, 4]; a = exp(x); b = matmul(a, a); return b",
            {"keep_apart": [["a", "b"]]},
            "the option keep_apart names both",
        ),
        (
            "x: f32[0, 4]; a = exp(x); b = matmul(a, x, transpose_b=true); return b",
            {},
            "no elements",
        ),
        (
            "x: f32[4, 4]; a = exp(x); b = matmul(a, a); return b",
            {"fuel": 0},
            "the limit on fusion decisions",
        ),
        (
            "x: f32[1, 4, 4, 2]; w: f32[3, 3, 2, 2]; a = exp(x); b = conv2d(a, w); return b",
            {},
            "a library call computes convolution",
        ),
        (
            "x: f32[8]; y: f32[0]; a = exp(x); b = neg(y); return a, b",
            {},
            "it has no elements",
        ),
        (
            "x: f32[4, 4]; a = exp(x); b = exp(x); c = neg(a); return c, b",
            {},
            "passes .* took it away",
        ),
    ],
)
def test_requests_that_cannot_be_met_have_a_reason(text: str, options: Any, reason: str) -> None:
    """The log has the reason why nodes in `keep_together` are not joined."""
    log = fused(text, keep_together=[["a", "b"]], **options).attrs["fusion_log"]

    assert any(re.search(f"keep_together names .*{reason}", d.reason) for d in log), log


def test_disabled_passes_do_not_run() -> None:
    """With Simplify disabled, equal values are computed twice."""
    text = "x: f32[8]; return mul(exp(x), exp(x))"

    assert groups(text) == ["exp mul"]
    assert groups(text, disabled=["Simplify"]) == ["exp exp mul"]


@pytest.mark.parametrize("fusion", ["stitch", "nnvm", "none"])
def test_every_edge_is_explained(fusion: str) -> None:
    """On random graphs each edge between operators has one entry, which is true."""
    for seed in range(20):
        graph = pk.ApplyPasses(random_case(seed).graph, BEFORE)
        planned = pk.ApplyPasses(graph, "Fusion", fusion=fusion)
        edges = {
            (graph.names[e.node], graph.names[n])
            for n in graph.nodes
            for e in n.inputs
            if not is_leaf(e.node)
        }
        log = {(d.producer, d.consumer): d for d in planned.attrs["fusion_log"]}
        homes = [set(g.origin.values()) for g in planned.attrs["subgraph"].values()]
        assert log.keys() - edges == {k for k, d in log.items() if d.code == "fused.packed"}
        for (a, b), d in log.items():
            assert d.reason
            assert d.fused == any(a in h and b in h for h in homes), (seed, d)


def test_a_partition_with_a_cycle_is_refused() -> None:
    """The error has two groups that depend on each other."""
    graph = pk.ApplyPasses(
        pk.parse("x: f32[4]; a = exp(x); b = neg(a); c = exp(b); return c"), BEFORE
    )
    a, b, c = (n for n in graph.nodes if not is_leaf(n))

    with pytest.raises(GraphError, match="cycle: '[abc]' and '[abc]' depend on each other"):
        contract(graph, FusionPlan(groups=[[a, c], [b]]))


@pytest.mark.parametrize("text", [t for t, *_ in (*TOGETHER, *APART)])
def test_fused_graphs_keep_their_results(text: str, rng: Any) -> None:
    """The interpreter returns the same for the graph before and after Fusion."""
    graph = pk.parse(text)
    feeds = feeds_of(graph, rng)

    agrees(graph, feeds, pk.interpret(fused(text), feeds))


def test_control_dependencies_stay_when_a_plan_is_fused_again() -> None:
    """The control dependencies of a fused node stay when its operators are fused again."""
    x, n = pk.var("x", (8,)), pk.var("n", (3,))
    waiting = pk.ops.exp(x).node.replaced((x,), (n.node,)).entries[0]
    once = pk.ApplyPasses(pk.Graph([pk.ops.tanh(waiting + 1.0)]), [*BEFORE, "Fusion"])
    again = pk.ApplyPasses(once, "Fusion")

    for graph in (once, again):
        assert {c.name for node in graph.nodes for c in node.control} == {"n"}
        assert [v.name for v in graph.inputs] == ["x", "n"]


COPIED = """x: f64[100, 1, 3]; w: f64[3, 3]; c = cast(x, dtype="bool"); a = sinc(x) after(c)
b = log_inv_logit(reshape(a, shape=(100, 1, 1, 1, 3))); d = log1m(a); e = logaddexp(d, d)
r = reshape(e, shape=(-1,)); s = slice(r, begin=(0,), size=(60,))
t = reshape(s, shape=(2, 5, 2, 3)); u = windows_back(t, size=(6,), padding=((1, 0),), dilations=2)
return b, u, d, celu(e), linear(a, w, no_bias=true)"""


def test_a_group_with_repeated_operators_has_others_that_are_repeated() -> None:
    """Zeros are stored by no kernel, though the first one with them repeats a condition."""
    text = """
    x: f32[8, 64]; l: i64[8]; w: f32[64, 64]
    d = expand_dims(less_equal(l, 2), axis=1)
    z = zeros(shape=(8, 64))
    a = where(d, z, tanh(x))
    return where(d, z, matmul(a, w)), a
    """
    subgraphs = pk.ApplyPasses(pk.parse(text), ["Fusion"]).attrs["subgraph"].values()

    assert [" ".join(n.op.name for n in g.ops) for g in subgraphs] == [
        "less_equal expand_dims zeros tanh where",
        "less_equal expand_dims zeros where",
    ]


def test_operators_repeated_in_all_users_are_no_results() -> None:
    """A group does not store an operator that all kernels that read it compute themselves."""
    graph = planning.planned(pk.parse(COPIED), "SchedulePlan", target="cuda")
    groups = graph.attrs["subgraph"].values()
    (group,) = [g for g in groups if any(n.op.name == "windows_back" for n in g.ops)]

    assert "reshape" not in [e.node.op.name for e in group.graph.outputs]


COMPOSITES = """x: f32[8, 64]; g: f32[64]; b: f32[64]; w: f32[64, 64]
    n = layer_norm(gelu(x), g, b); y = softmax(matmul(n, w)); return y, silu(y)"""


@pytest.mark.parametrize("fusion", ["stitch", "deep", "xla", "none"])
def test_fusion_by_itself_expands_composites(fusion: str) -> None:
    """Fusion, CodeGen and RTCGen give the kernels of `compile` without its optional passes."""
    optional = ["Simplify", "MatchLibrary", "FuseMatmulSums", "SplitReduce"]
    alone = pk.ApplyPasses(pk.parse(COMPOSITES), ["Fusion", "CodeGen", "RTCGen"], fusion=fusion)
    run = pk.compile(pk.parse(COMPOSITES), fusion=fusion, disabled=optional)

    assert [k.source for k in alone.attrs["kernel"].values()] == [k.source for k in run.kernels]
    assert not pk.compile(alone).stats["python_calls"]
    assert {d.way_out for d in pk.explain(alone) if d.code.startswith("op.")} <= {
        "",
        "fusion='stitch'",
    }


def test_fusion_by_itself_functionalizes() -> None:
    """Assignments become updates before Fusion, even if Functionalize is not requested."""
    text = "state s: f32[4]; x: f32[4]; y = softmax(add(x, s)); return y, assign(s, add(s, x))"
    run = pk.compile(pk.ApplyPasses(pk.parse(text), "Fusion"))
    x = np.arange(4, dtype=np.float32)

    assert [run(x=x)[1].tolist() for _ in range(2)] == [[0, 1, 2, 3], [0, 2, 4, 6]]


def test_planning_time_is_polynomial_in_the_rank() -> None:
    """A reduction of rows over 24 axes of one unknown size is planned in seconds."""
    x = pk.var("x", ("n",) * 24 + (3,))
    begin = time.process_time()

    graph = pk.ApplyPasses(pk.Graph([pk.ops.softmax(x * 2)]), ["Fusion"])

    assert len(graph.attrs["subgraph"]) == 1
    assert time.process_time() - begin < 30
