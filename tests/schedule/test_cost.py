"""The cost model: kernels compared with other kernels."""

from __future__ import annotations

import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.extract import kind_of
from passkit.analysis.group import Group
from passkit.diagnostics import Diagnostic
from passkit.fusion.score import modelled
from passkit.graph.node import Entry, is_leaf
from passkit.planner.plan import plan_group
from passkit.schedule.roofline import least_bytes
from passkit.target import cpu

o = pk.ops
CPU = cpu()


def group_of(outputs: list[Entry]) -> Group:
    """Return a graph as one group, without Fusion."""
    graph = pk.ApplyPasses(pk.Graph(outputs), ["Expand", "Simplify", "Complete"])
    body = [n for n in graph.nodes if not is_leaf(n)]
    return Group(graph, kind_of(body), {n: graph.names[n] for n in body})


def test_factors_of_the_machine_scale_costs() -> None:
    """Elementwise kernels take twice as long on a machine with twice the factor."""
    one = group_of([o.exp(pk.var("x", (300, 64)))])
    slow = evolve(
        CPU,
        machine=evolve(
            CPU.machine, elementwise_factor=2 * CPU.machine.elementwise_factor, llc_bytes=1 << 60
        ),
    )

    assert modelled(one, slow) == 2 * modelled(one, CPU)


def test_few_tiles_leave_threads_idle() -> None:
    """A kernel that reduces rows and then columns has one tile, and costs more than two."""
    x = pk.var("x", (4000, 64))
    y = o.reduce_sum(x * 2, axis=1)
    one, both = group_of([y]), group_of([y, o.reduce_sum(o.exp(y - 1), axis=0)])
    plan = plan_group(both, CPU)
    assert not isinstance(plan, Diagnostic) and plan.multi_nest is not None
    assert plan.multi_nest.tiles == 1

    assert modelled(both, CPU) > 3 * modelled(one, CPU)


def test_a_gathered_input_counts_the_gathered_bytes() -> None:
    """An input that is only gathered from counts the results; if it is also read, all of it."""
    table, i = pk.var("t", (10_000, 8)), pk.var("i", (5,), "int64")
    rows = o.gather(table, i)

    assert least_bytes(pk.Graph([o.exp(rows)])) == 5 * 8 * 4 + 5 * 8 + 5 * 8 * 4
    whole = pk.Graph([o.exp(rows), o.exp(table)])
    assert least_bytes(whole) == 10_000 * 8 * 4 * 2 + 5 * 8 + 5 * 8 * 4


def test_attention_costs_are_proportional_to_heads() -> None:
    """The cost of a head does not depend on the number of tiles, as that of a library call."""
    costs = []
    for heads in (16, 64):
        q, k, v = (pk.var(n, (heads, 94, 32)) for n in "qkv")
        s = o.matmul(q, k, transpose_b=True)
        e = o.exp(s - o.reduce_max(s, axis=-1, keepdims=True))
        group = group_of([o.matmul(e / o.reduce_sum(e, axis=-1, keepdims=True), v)])
        plan = plan_group(group, CPU)
        assert not isinstance(plan, Diagnostic) and plan.multi_nest is not None
        costs.append((modelled(group, CPU) / heads, plan.seconds / heads))

    (few, planned_few), (many, planned_many) = costs
    assert few == pytest.approx(many, rel=0.01) and planned_few > 1.02 * planned_many
