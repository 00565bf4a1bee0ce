"""Candidates: different templates of a group, ordered by the cost model."""

from __future__ import annotations

import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group
from passkit.library.candidates import candidates_of
from passkit.planner.plan import plan_group
from passkit.program.planning import planned
from passkit.schedule.cost import schedule_cost
from passkit.schedule.schedule import Schedule
from passkit.schedule.tile_loops import tiles_of
from passkit.schedule.tiling import Composition
from passkit.target import cpu
from tests.row_programs import SOFTMAX

CPU = cpu()


def group_of(text: str) -> Group:
    """Return the only group of a graph in text."""
    (group,) = planned(pk.parse(text), "Fusion").attrs["subgraph"].values()
    return group  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "text, compositions",
    [
        ("x: f32[100000]; return exp(x)", {Composition.THREAD}),
        ("x: f32[640, 480]; return transpose(x)", {Composition.BLOCK, Composition.THREAD}),
        (SOFTMAX.format("999, 70", 1), {Composition.SHORT, Composition.ROW}),
        (SOFTMAX.format("999, 700", 1), {Composition.ROW}),
        ("x: f32[400, 999]; return reduce_max(x, axis=0)", {Composition.COLUMN}),
        ("x: f32[n, m]; y: f32[n, 1]; return mul(x, y)", {Composition.THREAD}),
    ],
)
def test_candidates_differ_and_are_ordered(text: str, compositions: set[Composition]) -> None:
    """The default is first, others follow by their costs; all compositions occur."""
    group = group_of(text)
    first, *others = candidates_of(group, CPU)

    assert first.schedule == plan_group(group, CPU)
    assert 2 <= len(others) + 1 <= cpu().tiling.candidates
    assert [c.seconds for c in others] == sorted(c.seconds for c in others)
    assert len({first.template, *(c.template for c in others)}) == len(others) + 1
    assert {c.schedule.composition for c in (first, *others)} == compositions


def test_targets_without_vectors() -> None:
    """A target without vectors has no BLOCK and SHORT compositions."""
    single = evolve(CPU, lanes=1)

    for text in ("x: f32[640, 480]; return transpose(x)", SOFTMAX.format("999, 70", 1)):
        kinds = {c.schedule.composition for c in candidates_of(group_of(text), single)}
        assert kinds <= {Composition.THREAD, Composition.ROW}


def test_the_cost_of_tiles() -> None:
    """Tiles and rows have a cost, and one tile leaves threads idle."""
    group = group_of("x: f32[4096, 1024]; return reduce_sum(exp(x), axis=1)")
    plan = plan_group(group, CPU)
    assert isinstance(plan, Schedule)

    def seconds(chunk: int) -> float:
        return schedule_cost(group, evolve(plan, split=evolve(plan.split, chunk=chunk)), CPU)

    assert tiles_of(plan) == 512
    assert seconds(8) < seconds(1) and seconds(8) < seconds(4096) / 2
    assert seconds(8) > plan.seconds


def test_unknown_sizes_have_no_seconds() -> None:
    """Candidates of unknown sizes have no costs and keep the order of enumeration."""
    candidates = candidates_of(group_of("x: f32[n, m]; y: f32[n, 1]; return mul(x, y)"), CPU)

    assert {c.seconds for c in candidates} == {0.0} and len(candidates) > 1


def test_the_cost_of_parts_is_their_sum() -> None:
    """A packed group costs as much as its parts."""
    x, y = pk.var("x", (99, 7)), pk.var("y", (40, 300))
    graph = pk.Graph([pk.ops.reduce_sum(x, axis=1), pk.ops.reduce_sum(y, axis=1)])
    names = [[n for node, n in graph.names.items() if node.op is not None]]
    (group,) = planned(graph, "Fusion", keep_together=names).attrs["subgraph"].values()
    plan = plan_group(group, CPU)
    assert isinstance(plan, Schedule) and len(plan.parts) == 2

    parts = group.alone()
    each = [schedule_cost(g, s, CPU) for g, s in zip(parts, plan.parts, strict=True)]
    assert schedule_cost(group, plan, CPU) == pytest.approx(sum(each))
    assert len(candidates_of(group, CPU)) > 1
