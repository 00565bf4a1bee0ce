"""Packs: the parts of a group, their tiles, and schedules of several parts."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.components import (
    MAX_RESULTS,
    independent_components,
    seconds_per_tile,
    shared_tiles,
    tile_points,
)
from passkit.analysis.group import FUSED, Group, Kind, fused_node
from passkit.ast.stage import Place
from passkit.diagnostics import Diagnostic
from passkit.errors import CodeGenError
from passkit.planner.plan import inplace_pairs, plan_group
from passkit.program.planning import planned
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import largest, plan_shared
from passkit.schedule.tiling import Composition
from passkit.target import cpu
from passkit.transforms.lower_group import lower
from passkit.values.size import Size

MIXED = (
    "x: f32[40, 300]; y: f64[7, 1000]; z: f16[100, 33]; w: f32[300, 400]; v: f32[10]; u: f32[20]; "
    "return reduce_sum(x, axis=1), reduce_sum(y, axis=1), reduce_sum(z, axis=1), "
    "reduce_sum(w, axis=0), exp(v), exp(u)"
)


MANY = "; ".join([*(f"x{k}: f32[9]" for k in range(5)), "return "]) + ", ".join(
    f"exp(x{k})" for k in range(5)
)


def group_of(text: str) -> Group:
    """Return the graph of a text as a group."""
    return Group(planned(pk.parse(text), "Expand"), Kind.PACKED)


def schedule_of(group: Group) -> Schedule:
    """Return the schedule of a group on this machine."""
    plan = plan_group(group, cpu())
    assert isinstance(plan, Schedule)
    return plan


@pytest.mark.parametrize(
    "text, outputs",
    [
        ("x: f32[9]; y: f32[8]; return exp(x), exp(y)", [(0,), (1,)]),
        ("x: f32[9]; e = exp(x); return neg(e), sin(e)", [(0, 1)]),
        ("x: f32[9]; y: f32[8]; a = exp(x); return a, exp(y), neg(a)", [(0, 2), (1,)]),
        ("x: f32[9]; c: f32[]; y: f32[8]; return mul(x, c), mul(y, c)", [(0,), (1,)]),
        # Parts of one domain share a loop if they read the same input, or have few arrays.
        ("x: f32[9]; y: f32[8]; return exp(x), exp(y), neg(x)", [(0, 2), (1,)]),
        ("x: f32[9]; y: f32[9]; return exp(x), neg(y)", [(0, 1)]),
        (MANY, [(0, 1, 2, 3), (4,)]),
        (
            "x: f32[9, 8]; return exp(x), reduce_sum(x, axis=1), reduce_sum(x, axis=0)",
            [(0, 1), (2,)],
        ),
        ("x: f32[n, 4]; y: f32[m, 4]; return exp(x), exp(y)", [(0,), (1,)]),
    ],
)
def test_parts(text: str, outputs: list[tuple[int, ...]]) -> None:
    """Operators without a path between them are parts, unless one loop computes both."""
    parts = group_of(text).parts

    assert [p.outputs for p in parts] == outputs
    graph = group_of(text).graph
    for part in independent_components(graph):
        assert [graph.inputs[k] for k in part.inputs] == list(part.graph.inputs)
        assert [graph.outputs[k] for k in part.outputs] == list(part.graph.outputs)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: pk.ops.split(x, 40, axis=1),
        lambda x: pk.ops.unstack(x, axis=1),
        lambda x: [x * float(k + 2) for k in range(40)],
    ],
)
def test_many_readers_of_one_array(make: Any) -> None:
    """A loop computes at most RESULTS of the parts that read one array."""
    graph = planned(pk.Graph(list(make(pk.var("x", (8, 120))))), "CodeGen")
    (group,) = graph.attrs["subgraph"].values()
    (kernel,) = graph.attrs["kernel"].values()
    functions = kernel.source.split("static void")[1:]

    outputs = [k for part in group.parts for k in part.outputs]
    assert sorted(outputs) == list(range(len(group.graph.outputs)))
    assert {len(part.outputs) for part in group.parts} == {MAX_RESULTS}
    assert 1 < len(functions) <= len(group.parts)


def test_schedules_of_parts() -> None:
    """Parts have the schedules that they have alone, costs add up, and short parts share tiles."""
    group = group_of(MIXED)
    plan = schedule_of(group)
    alone = [schedule_of(Group(p.graph, Kind.ELEMWISE)) for p in group.parts]

    assert plan.composition is Composition.PACKED and str(plan).startswith("packed[row[")
    assert plan.seconds == sum(p.seconds for p in alone)
    assert [p.composition for p in plan.parts] == [p.composition for p in alone]
    assert [p.stages for p in plan.parts] == [p.stages for p in alone]
    assert (
        sorted(k for ks in plan.shared_tiles for k in ks) == list(range(6))
        and (4, 5) in plan.shared_tiles
    )
    assert hash(plan) == hash(schedule_of(group_of(MIXED)))


def test_scratch_of_parts_overlaps() -> None:
    """The scratch memory of parts overlaps; a kernel has that of the largest part."""
    group = group_of(MIXED)
    plan = schedule_of(group)
    shared = plan_shared(group, plan)
    ast, _ = lower(group, plan, shared)
    needs = [p.nbytes for p in shared.parts]

    assert shared.nbytes == max(needs) > 0 and needs.count(0) >= 4  # type: ignore[type-var]
    assert [b.offset for b in ast.scratch if b.place is Place.SHARED].count(0) == 2


def test_spans() -> None:
    """The spans of parts cover all tiles of the kernel."""
    group = group_of(
        "x: f32[n]; y: f32[m, 9]; z: f32[k, 700]; return exp(x), exp(transpose(y)), "
        "reduce_sum(z, axis=1)"
    )
    plan = schedule_of(group)
    ast, tiles = lower(group, plan, plan_shared(group, plan))
    spans = [p.span for p in ast.phases[0].parts if p.span is not None]

    assert len(spans) == 3 and isinstance(tiles, Size) and tiles.symbols == {"n", "m", "k"}
    assert all(a[1] == b[0] for a, b in pairwise(spans))
    assert plan.shared_tiles == ((0,), (1,), (2,)) and plan.seconds == 0.0


def test_a_part_without_a_domain() -> None:
    """A group has no schedule if one of its parts has none."""
    group = group_of("x: f32[9, 8]; y: f32[4]; return reduce_sum(exp(reduce_sum(x, axis=1))), y")

    assert isinstance(plan_group(group, cpu()), Diagnostic)


def test_a_multi_nest_part() -> None:
    """If one part is a multi-nest kernel, the group is one, and overwrites no inputs."""
    group = group_of(
        "x: f32[64, 30]; w: f32[30, 20]; y: f32[64, 20]; return exp(matmul(x, w)), exp(y)"
    )
    plan = plan_group(group, cpu())
    node = fused_node(group, tuple(n.entries[0] for n in group.inputs), "both")

    assert len(group.parts) == 2 and isinstance(plan, Schedule)
    assert plan.composition is Composition.MULTI_NEST and not plan.parts
    assert inplace_pairs(node) == []


def test_schedules_of_other_groups() -> None:
    """Lowering refuses the schedule of another group."""
    group, other = group_of(MIXED), group_of("x: f32[9]; y: f32[8]; return exp(x), exp(y)")
    plan = schedule_of(group)
    with pytest.raises(CodeGenError, match="has 2 parts, its schedule 6 and its scratch 6; run"):
        lower(other, plan, plan_shared(group, plan))


def test_in_place() -> None:
    """A part may overwrite inputs that it alone reads, at the points where it stores."""
    text = (
        "x: f32[9]; y: f32[8]; z: f32[8, 8]; c: f32[1]; a = mul(x, c); b = exp(y); "
        "d = add(z, y); e = reduce_sum(z, axis=0); return a, b, d, e"
    )
    names = ["a", "b", "d", "e"]
    graph = planned(pk.parse(text), "Fusion", keep_together=[names])
    (node,) = [n for n in graph.nodes if n.op is FUSED]
    feeds = [e.node.name for e in node.inputs]
    pairs = {(feeds[i], o) for i, o in inplace_pairs(node)}

    assert ("x", 0) in pairs and ("c", 0) not in pairs
    assert not {name for name, _ in pairs} & {"y", "z"}


def test_tiles_of_parts_take_equally_long() -> None:
    """Tiles have a share of the work, within the limits of the target."""
    target = evolve(cpu(), tile=8192)
    tiling = target.tiling
    assert seconds_per_tile([1.0, 0.0], tiling) == 0.0
    assert seconds_per_tile([3.2e-3, 3.2e-3], tiling) == 6.4e-3 / tiling.pack_tiles
    assert seconds_per_tile([1e-6, 1e-7], tiling) == tiling.pack_tile_seconds
    assert tile_points(1e-9, 1.0, target) == 8192
    assert tile_points(1e-9, 1e-6, target) == 512
    assert tile_points(1e-6, 1e-6, target) == tiling.pack_tile_points


def test_small_parts_share_tiles() -> None:
    """Small parts are grouped into tiles up to the time of a tile."""
    assert shared_tiles([1.0, 5.0, 2.0, 1.0, 2.0], [True, False, True, True, True], 4.0) == [
        [1],
        [0, 2, 3],
        [4],
    ]
    assert shared_tiles([1.0, 1.0], [False, False], 0.0) == [[0], [1]]


def test_the_larger_size() -> None:
    """The larger size is returned if it is certain, else the sum."""
    n, m = Size.symbol("n"), Size.symbol("m")

    assert (largest(3, 5), largest(n + 2, n), largest(n, n * 3)) == (5, n + 2, n * 3)
    assert largest(n, m) == n + m


def test_packs_of_few_tiles() -> None:
    """Tiles of a pack are small enough for all threads to have some."""
    group = group_of("x: f32[20000]; y: f32[30000]; return exp(x), sin(y)")
    plan = schedule_of(group)
    widths = {p.width for p in plan.parts}
    scalar = plan_group(group, evolve(cpu(), lanes=1))

    least = cpu().tiling.pack_tile_points
    assert all(isinstance(w, int) and least <= w < cpu().tile for w in widths)
    assert isinstance(scalar, Schedule) and {p.width for p in scalar.parts} == {cpu().tile}


def test_sums_of_empty_axes() -> None:
    """A part may have outputs without points."""
    group = group_of("x: f32[0, 9]; y: f32[50, 90]; return reduce_sum(x, axis=0), exp(y)")
    plan = schedule_of(group)

    assert len(plan.parts) == 2 and 0 in [p.domain.size for p in plan.parts]


def test_a_transposed_reader_has_a_loop_of_its_own() -> None:
    """Equal numbers of elements are no common domain: indices of one would need divisions."""
    graph = pk.parse("x: f32[80, 70]; return exp(transpose(x)), neg(reverse(x, axis=1))")

    assert len(independent_components(graph)) == 2
