"""Stitched groups with several results: splits that all results share, so that tiles are small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group
from passkit.analysis.nest_partitions import nest_partitions
from passkit.analysis.tilemap import Split
from passkit.diagnostics import Diagnostic
from passkit.planner import multi_nest as planner
from passkit.planner.multi_nest import first, multi_nest_schedules, plan_multi_nest
from passkit.schedule.schedule import Schedule
from passkit.target import Target, cpu
from tests.planner.test_multi_nest import softmax_of, together
from tests.random_stitches import random_stitch
from tests.test_random_stitches import agree
from tests.together import compiled

pytestmark = pytest.mark.usefixtures("quick_kernels")
o = pk.ops
Program = Callable[[int, int], list[Any]]
EXTENTS = ((1, 1), (2, 5), (7, 1), (17, 13), (53, 37), (101, 64))
"""Rows and columns: one, few, odd, prime."""
SMALL = 1 << 13
"""Bytes of scratch: too few for a whole product of the larger ones."""


def scores(n: int, m: int) -> Any:
    """Return a product of two inputs, which is expensive to compute twice."""
    return pk.var("x", (n, 31)) @ pk.var("w", (31, m))


def two_softmaxes(n: int, m: int) -> list[Any]:
    """Return a softmax of rows of a product, and a function of its transpose."""
    y = scores(n, m)
    return [softmax_of(y), o.sigmoid(o.transpose(y))]


def turned_too(n: int, m: int) -> list[Any]:
    """Return a matrix, its transpose, and a reduction of its rows."""
    y = o.tanh(scores(n, m))
    return [y, o.transpose(y) + 1.0, o.log(o.reduce_sum(y * y, axis=1))]


def columns_and_turned(n: int, m: int) -> list[Any]:
    """Return reductions of columns, and the transpose, which need tiles of columns."""
    y = scores(n, m)
    return [o.reduce_sum(y * y, axis=0), o.transpose(y), o.reduce_max(y, axis=0) * 2.0]


def of_a_batch(n: int, m: int) -> list[Any]:
    """Return the transpose of each matrix of a batch, a softmax, and a reduction."""
    y = pk.var("x", (n, 5, 31)) @ pk.var("w", (31, m))
    return [o.transpose(y, (0, 2, 1)), softmax_of(y), o.reduce_sum(y, axis=(1, 2))]


PROGRAMS: tuple[Program, ...] = (two_softmaxes, turned_too, columns_and_turned, of_a_batch)


def plan_of(exe: Any) -> Schedule:
    """Return the only schedule of an executable."""
    (result,) = exe.graph.attrs["schedule"].values()
    return result  # type: ignore[no-any-return]


def group_of(outputs: list[Any]) -> Group:
    """Return the group of all operators that the outputs need."""
    graph, names = together(outputs)
    (result,) = pk.ApplyPasses(graph, "Fusion", keep_together=names).attrs["subgraph"].values()
    return result  # type: ignore[no-any-return]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_several_results_are_one_kernel_block_by_block(program: Program) -> None:
    """Groups with several results are one launch, with right results block by block."""
    target = evolve(cpu(), name="blocks", scratch=SMALL)
    for n, m in EXTENTS:
        graph, names = together(program(n, m))
        exe = pk.compile(graph, target=target, keep_together=names)
        assert len(exe.kernels) == 1
        agree(graph, exe)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_several_results_are_one_compiled_kernel(program: Program) -> None:
    """Groups with several results are one launch of native code, with right results."""
    graphs, options = [], {"target": evolve(cpu(), scratch=SMALL)}
    for n, m in EXTENTS:
        graph, names = together(program(n, m))
        graphs.append((graph, names))
    for graph, names in graphs:
        (exe,) = compiled([graph], keep_together=names, **options)
        assert len(exe.steps) == 1 and len(exe.kernels) == 1
        agree(graph, exe)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_tiles_divide_the_shared_product(program: Program) -> None:
    """Each of many tiles computes its rows or columns of the product that all results use."""
    group = group_of(program(499, 61))
    plan = plan_multi_nest(group, cpu())
    assert isinstance(plan, Schedule) and plan.multi_nest is not None
    layouts = {group.graph.nodes[k]: x for k, x in plan.multi_nest.layouts}
    (product,) = [n for n in layouts if n.op is not None and n.op.name == "matmul"]

    assert isinstance(plan.multi_nest.tiles, int) and plan.multi_nest.tiles >= 4
    owned, size = layouts[product].size, int(np.prod(product.entries[0].shape))
    assert isinstance(owned, int) and size <= owned * plan.multi_nest.tiles < 1.2 * size


def test_a_result_that_is_read_in_two_orders_is_of_one_tile_or_refused() -> None:
    """Without the finer cut into parts, one tile computes all, or nothing fits into scratch."""
    group = group_of(two_softmaxes(101, 37))
    finer, coarse = nest_partitions(group.graph)
    assert len(finer) == len(coarse) + 1
    owned = [{n for p in pieces for n in p.owns} for pieces in (finer, coarse)]
    assert owned[0] == owned[1] and sum(len(p.owns) for p in finer) == len(owned[0])

    one = alone(group, coarse, cpu())
    assert isinstance(one, Schedule) and one.multi_nest is not None and one.multi_nest.tiles == 1
    assert isinstance(alone(group, coarse, evolve(cpu(), scratch=SMALL)), Diagnostic)
    best = plan_multi_nest(group, cpu())
    assert isinstance(best, Schedule) and best.seconds < one.seconds / 1.5


def alone(group: Group, pieces: Any, target: Target) -> Schedule | Diagnostic:
    """Return the best schedule with these parts, or why there is none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "nest_partitions", lambda graph: [pieces])
        return plan_multi_nest(group, target)


def test_parts_are_cut_where_that_is_worth_it() -> None:
    """Small tiles have fewer parts than large ones; templates of both can be specified."""
    small, large = (plan_multi_nest(group_of(two_softmaxes(n, 13)), cpu()) for n in (5, 500))
    assert isinstance(small, Schedule) and small.multi_nest is not None
    assert isinstance(large, Schedule) and large.multi_nest is not None
    assert (len(small.multi_nest.nests), len(large.multi_nest.nests)) == (2, 3)

    for n in (5, 500):
        graph, names = together(two_softmaxes(n, 13))
        ranked = pk.templates(graph, keep_together=names)[0]
        for text in (ranked.template, *(v.template for v in ranked.others[:3])):
            exe = pk.compile(
                graph, target="blocks", keep_together=names, templates={ranked.name: str(text)}
            )
            agree(graph, exe)


def test_a_result_that_reads_a_value_in_two_orders_is_one_part() -> None:
    """An operator that reads a value in two orders is one part with the operators beside it."""
    y = scores(9, 8)
    turned = o.concat(y[:, 4:], -y[:, :4], axis=1)
    group = group_of([y * 2.0 + turned, o.tanh(y)])

    assert len(nest_partitions(group.graph)) == 1


def test_users_of_a_transposed_result_are_in_later_parts() -> None:
    """A user of a transposed result is in a later part than the transpose."""
    for n in (1, 9, 33):
        y = scores(n, 8)
        turned = o.transpose(y)
        outputs = [o.tanh(y), turned, o.transpose(o.sin(turned))]
        graph, names = together(outputs)
        finer = nest_partitions(group_of(outputs).graph)[0]
        assert all(p.nodes and p.owns for p in finer)
        exe = pk.compile(graph, target="blocks", keep_together=names)
        agree(graph, exe)
        assert len(exe.kernels) == 1
    assert len(finer) == 4


# The search and the model


def test_bounds_are_below_the_seconds_of_schedules_and_the_best_is_chosen() -> None:
    """No schedule takes less than its lower bound, and the fastest schedule is chosen."""
    groups = [group_of(p(53, 37)) for p in PROGRAMS]
    for seed in (1, 5, 28, 81, 86, 170, 226):
        graph, names = random_stitch(seed)
        result = pk.ApplyPasses(graph, "Fusion", keep_together=names).attrs["subgraph"].values()
        groups += [g for g in result if not isinstance(plan_multi_nest(g, cpu()), Diagnostic)]
    target = cpu()
    all_ways = evolve(target.tiling, ways=1 << 20, ways_of_a_count=1 << 20)
    target = evolve(target, tiling=all_ways)
    assert len(groups) > len(PROGRAMS) + 5
    for group in groups:
        seconds = []
        for least, result in planner._schedules(group, target, first):
            if isinstance(result, Schedule):
                assert least <= result.seconds * (1 + 1e-9)
                seconds.append(result.seconds)
        best = plan_multi_nest(group, target)
        assert isinstance(best, Schedule) and best.seconds == min(seconds)


def test_bounds_leave_few_splits_to_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower bounds exclude most splits, however many results a group has."""
    ways: list[Any] = []
    schedule = planner._Planner.schedule

    def noted(self: Any, result: Any) -> Any:
        ways.append(result)
        return schedule(self, result)

    monkeypatch.setattr(planner._Planner, "schedule", noted)
    y = scores(210, 96)
    group = group_of([o.tanh(y * k) for k in range(1, 9)] + [o.transpose(y), softmax_of(y)])
    ways.clear()
    assert isinstance(plan_multi_nest(group, cpu()), Schedule)
    assert 0 < len(ways) <= 40
    ways.clear()
    assert (
        40 < len(list(multi_nest_schedules(group, cpu(), first))) == len(ways) <= cpu().tiling.ways
    )


def test_the_schedule_names_the_split_of_the_largest_result() -> None:
    """The split of a schedule is that of the largest result, even if it follows from another."""
    y = o.tanh(scores(40, 24))
    plan = plan_multi_nest(group_of([y, softmax_of(y) @ pk.var("v", (24, 3))]), cpu())

    assert isinstance(plan, Schedule) and isinstance(plan.split, Split)
    assert plan.split.tile_map((40, 24)).tiles == (plan.multi_nest and plan.multi_nest.tiles)
