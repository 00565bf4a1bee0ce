"""The strategy "deep": groups grow from results by spans, up to limits."""

from __future__ import annotations

import random
from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from passkit.diagnostics import Diagnostic
from passkit.fusion.common_splits import CommonSplits
from passkit.fusion.strategies.deep import grow_from_root
from passkit.graph.merge_graph import MergeGraph
from passkit.target import cpu
from tests.fusion.test_fusion import fused, groups
from tests.planned import agrees, feeds_of

EXAMPLE = """x: f32[512, 512]; w: f32[512, 512]; a = exp(x)
b = reduce_sum(a, axis=1, keepdims=true); c = div(a, b); d = matmul(a, w); return add(c, d)"""
ATTENTION = """q: f32[8, 17, 32]; k: f32[8, 17, 32]; v: f32[8, 17, 32]
return matmul(softmax(matmul(q, k, transpose_b=true), axis=2), v)"""

GROUPS = [
    # a has a user that is a library's, which the group with c would have to wait for.
    (EXAMPLE, ["exp", "reduce_sum div add"]),
    (ATTENTION, ["matmul reduce_max sub exp reduce_sum div matmul"]),
    ("x: f32[6, 40]; return softmax(x, axis=1)", ["reduce_max sub exp reduce_sum div"]),
    ("x: f32[4, 5]; a = exp(x); return neg(a), reduce_sum(a, axis=1)", ["exp neg reduce_sum"]),
    # A product that is left alone is a library's, too.
    ("x: f32[4, 5]; w: f32[5, 6]; return matmul(x, w)", []),
    # Operators of one layer and shape, and those of other shapes.
    (
        "x: f32[6, 40]; y: f32[6, 40]; z: f32[6, 4]; return exp(x), exp(y), exp(z)",
        ["exp exp", "exp"],
    ),
]


@pytest.mark.parametrize("text, expected", GROUPS)
def test_groups_grow_from_results(text: str, expected: list[str]) -> None:
    """Operators are grouped as expected, given by their names in each group."""
    assert groups(text, fusion="deep") == expected


APART = [
    (EXAMPLE, "a", "c", "graph.cycle_through", "d lies between them and is not in the kernel"),
    (EXAMPLE, "d", "add", "op.large_product", "a product of 268435456 steps is left to a library"),
    ("x: f32[0, 4]; a = neg(x); return exp(a)", "a", "exp", "fusion.apart", "neither kernel can"),
]


@pytest.mark.parametrize("text, producer, consumer, code, reason", APART)
def test_edges_between_kernels_have_a_reason(
    text: str, producer: str, consumer: str, code: str, reason: str
) -> None:
    """The fusion log has the reason of an edge between two kernels."""
    log = fused(text, fusion="deep").attrs["fusion_log"]
    decision = {(d.producer, d.consumer): d for d in log}[producer, consumer]

    assert (decision.fused, decision.code) == (False, code)
    assert reason in decision.reason


def test_results_of_grown_groups_are_right(rng: Any) -> None:
    """The example and attention give the results of the interpreter."""
    for text in (EXAMPLE, ATTENTION):
        graph = pk.parse(text)
        feeds = feeds_of(graph, rng)
        agrees(graph, feeds, pk.compile(graph, fusion="deep")(feeds), 2e-4)


def test_groups_fit_into_scratch() -> None:
    """A group excludes operators whose arrays would not fit into scratch, with the reason."""
    small = evolve(cpu(), scratch=64)
    log = fused(ATTENTION, fusion="deep", target=small).attrs["fusion_log"]

    assert groups(ATTENTION, fusion="deep", target=small) == ["reduce_max sub exp reduce_sum div"]
    assert {d.reason for d in log if d.code == "memory.least"} == {
        "its arrays take at least 68 bytes of shared memory a tile, above 64"
    }


def test_fuel_targets_and_hints_limit_groups() -> None:
    """Fuel, limits of the target, and `keep_apart` end groups."""
    text = "x: f32[4, 5]; a = exp(x); b = tanh(a); return sqrt(b)"

    assert groups(text, fusion="deep", fuel=0) == ["exp", "tanh", "sqrt"]
    assert groups(text, fusion="deep", target=evolve(cpu(), max_ops=2)) == ["exp", "tanh sqrt"]
    assert groups(text, fusion="deep", keep_apart=[["a", "b"]]) == ["exp", "tanh sqrt"]


def test_units_that_depend_on_each_other_are_not_joined() -> None:
    """If two joins together would create a cycle, the second one is refused."""
    quotient = MergeGraph([(), (0,), (), (2,)])  # a1 -> b1, b2 -> a2
    a, b = (0, 3), (1, 2)

    assert quotient.can_merge(a) and quotient.can_merge(b)
    quotient.merge(a)
    assert not quotient.can_merge(b)
    with pytest.raises(ValueError, match="a path between them passes others"):
        quotient.merge(b)


def test_joined_units_stay_in_topological_order() -> None:
    """After any joins each unit follows those that it reads, and spans are longest paths."""
    draw = random.Random(0)
    for _ in range(400):
        count = draw.randint(2, 30)
        before = [draw.sample(range(k), min(k, draw.randint(0, 3))) for k in range(count)]
        quotient = MergeGraph(before)
        for _ in range(12):
            some = draw.sample(sorted(quotient.members), min(3, len(quotient.members)))
            if len(some) > 1 and quotient.can_merge(some):
                assert quotient.merge(some) in some
        order, spans = list(quotient.order), quotient.spans()
        place = {u: k for k, u in enumerate(order)}
        assert place.keys() == quotient.members.keys()
        assert sorted(k for own in quotient.members.values() for k in own) == list(range(count))
        for u in order:
            assert all(place[b] < place[u] for b in quotient.predecessors[u])
            assert all(u in quotient.successors[b] for b in quotient.predecessors[u])
            assert spans[u] == max((spans[a] + 1 for a in quotient.successors[u]), default=0)


def test_operators_keep_the_splits_that_all_allow() -> None:
    """Operators that are added keep the splits that they allow; refused ones change nothing."""
    graph = pk.parse(
        "x: f32[4, 6]; a = exp(x); b = transpose(a); e: f32[0, 6]; c = exp(e)\n"
        "return reduce_sum(b, axis=1), c"
    )
    nodes = {n.name or n.op.name: n for n in graph.nodes if n.op is not None}
    total, a, b, empty = nodes["reduce_sum"], nodes["a"], nodes["b"], nodes["c"]
    splits = CommonSplits(graph, cpu())
    assert splits.add([total]) is None
    before = [dict(states) for states in splits.allowed]
    refused = splits.add([b, empty])

    assert refused is not None and refused.code == "graph.empty_operand"
    assert (splits.nodes, splits.allowed) == ([total], before)
    assert splits.add([b, a]) is None and splits.nodes == [total, b, a]
    assert len(before) >= len(splits.allowed) > 0
    assert all(states.keys() == {total, b, a} for states in splits.allowed)


FIGURE = """x: f32[64, 8, 17, 17]; w: f32[64, 8, 17, 128]; entry = reshape(x, shape=(8704, 17))
other = exp(w); reduce1 = reduce_max(entry, axis=1)
broadcast1 = broadcast_to(reshape(reduce1, shape=(8704, 1)), shape=(8704, 17))
subtract = sub(entry, broadcast1); exp = exp(subtract); reduce2 = reduce_sum(exp, axis=1)
broadcast2 = broadcast_to(reshape(reduce2, shape=(8704, 1)), shape=(8704, 17))
divide = div(exp, broadcast2); bitcast = reshape(divide, shape=(64, 8, 17, 17))
dot = matmul(bitcast, other); return dot"""


def test_spans_of_the_figure() -> None:
    """Spans are longest paths in softmax times a matrix; reshapes of row values do not count."""
    graph = pk.parse(FIGURE)
    nodes = [n for n in graph.nodes if n.op is not None]
    number = {n: k for k, n in enumerate(nodes)}
    quotient = MergeGraph([{number[e.node] for e in n.inputs if e.node in number} for n in nodes])
    for n in nodes:  # each broadcast with the reshape of what it repeats
        first = n.inputs[0].node
        if graph.names[n].startswith("broadcast"):
            quotient.merge([number[first], number[n]])
    spans = {graph.names[nodes[u]]: s for u, s in quotient.spans().items()}

    first, last = ("dot", "bitcast", "divide", "reshape_1"), ("reshape", "reduce1", "entry")
    order = (*first, "reduce2", "exp", "subtract", *last)
    assert [spans[name] for name in order] == list(range(10))
    assert spans["other"] == 1
    inner = [number[n] for n in nodes if graph.names[n] in ("divide", "reduce2", "exp")]
    quotient.merge([*inner, *(u for u in quotient.order if graph.names[nodes[u]] == "reshape_1")])
    assert max(quotient.spans().values()) == 6


def random_units(draw: random.Random) -> MergeGraph:
    """Return a random graph of four to twelve operators."""
    count = draw.randint(4, 12)
    return MergeGraph([draw.sample(range(k), min(k, draw.randint(0, 2))) for k in range(count)])


def test_growing_makes_no_cycle() -> None:
    """Grown groups of 20,000 random graphs make no cycle; joining all candidates would."""
    draw, cycles = random.Random(1), 0
    refused = Diagnostic("fusion.taken")
    for _ in range(20_000):
        quotient = random_units(draw)
        spans = quotient.spans()
        outside = {u for u in spans if draw.random() < 0.3}
        root = draw.choice([*spans])
        why_not = {u: refused for u in outside}.get
        fused, left = grow_from_root(quotient, spans, root, lambda _, u, of=why_not: of(u), str)
        assert quotient.can_merge(fused) and outside.isdisjoint(fused[1:])

        rest = [u for u in left if u not in outside]
        cycles += not quotient.can_merge([*fused, *rest])
    assert cycles > 500


def test_sums_of_gradients_are_joined_by_their_shapes() -> None:
    """Twenty additions of five shapes in one layer are five kernels; large ones are more."""
    sums = "; ".join(
        f"a{k}: f32[{k % 5 + 2}, 7]; b{k}: f32[{k % 5 + 2}, 7]; s{k} = add(a{k}, b{k})"
        for k in range(20)
    )
    results = ", ".join(f"s{k}" for k in range(20))
    large = """a: f32[3000, 1000]; b: f32[3000, 1000]; c: f32[3000, 1000]; d: f32[3000, 1000]
    return add(a, b), sub(b, c), mul(c, d)"""

    assert groups(f"{sums}; return {results}", fusion="deep") == ["add add add add"] * 5
    assert groups(large, fusion="deep") == ["add sub", "mul"]
