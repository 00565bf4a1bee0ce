"""Costs of kernels beside other kernels: what as one would take longer, or not."""

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
from passkit.schedule.schedule import least_bytes
from passkit.target import cpu

o = pk.ops
CPU = cpu()


def group_of(outputs: list[Entry]) -> Group:
    """All of it as one group, whatever Fusion would say."""
    graph = pk.ApplyPasses(pk.Graph(outputs), ["Expand", "Simplify", "Complete"])
    body = [n for n in graph.nodes if not is_leaf(n)]
    return Group(graph, kind_of(body), {n: graph.names[n] for n in body})


def test_rates_are_the_targets() -> None:
    """A machine whose points take twice as long has kernels of points that do."""
    one = group_of([o.exp(pk.var("x", (300, 64)))])
    slow = evolve(
        CPU,
        machine=evolve(
            CPU.machine, elementwise_factor=2 * CPU.machine.elementwise_factor, llc_bytes=1 << 60
        ),
    )

    assert modelled(one, slow) == 2 * modelled(one, CPU)


def test_few_tiles_leave_threads_without_work() -> None:
    """A long kernel whose rows are folded down its columns has one tile: that is no gain."""
    x = pk.var("x", (4000, 64))
    y = o.reduce_sum(x * 2, axis=1)
    one, both = group_of([y]), group_of([y, o.reduce_sum(o.exp(y - 1), axis=0)])
    plan = plan_group(both, CPU)
    assert not isinstance(plan, Diagnostic) and plan.multi_nest is not None
    assert plan.multi_nest.tiles == 1

    assert modelled(both, CPU) > 3 * modelled(one, CPU)


def test_what_is_gathered_is_all_that_is_read() -> None:
    """Of a large table, or of a value that is sliced; not of one that is read as well."""
    table, i = pk.var("t", (10_000, 8)), pk.var("i", (5,), "int64")
    rows = o.gather(table, i)

    assert least_bytes(pk.Graph([o.exp(rows)])) == 5 * 8 * 4 + 5 * 8 + 5 * 8 * 4
    whole = pk.Graph([o.exp(rows), o.exp(table)])
    assert least_bytes(whole) == 10_000 * 8 * 4 * 2 + 5 * 8 + 5 * 8 * 4


def test_a_head_of_attention_takes_as_long_beside_few_as_beside_many() -> None:
    """One thread's seconds are compared with those of libraries, whose tiles nobody counts."""
    each = []
    for heads in (16, 64):
        q, k, v = (pk.var(n, (heads, 94, 32)) for n in "qkv")
        s = o.matmul(q, k, transpose_b=True)
        e = o.exp(s - o.reduce_max(s, axis=-1, keepdims=True))
        found = group_of([o.matmul(e / o.reduce_sum(e, axis=-1, keepdims=True), v)])
        plan = plan_group(found, CPU)
        assert not isinstance(plan, Diagnostic) and plan.multi_nest is not None
        each.append((modelled(found, CPU) / heads, plan.seconds / heads))

    (few, planned_few), (many, planned_many) = each
    assert few == pytest.approx(many, rel=0.01) and planned_few > 1.02 * planned_many
