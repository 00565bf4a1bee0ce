"""Idle multiprocessors: kernels of few blocks take longer on a GPU, by instructions and bytes."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group, Kind
from passkit.fusion.score import modelled
from passkit.planner.multi_nest import first, multi_nest_schedules, plan_multi_nest
from passkit.planner.plan import plan_group
from passkit.schedule.cost import kernel_cost, schedule_cost
from passkit.schedule.idle import UNSURE_SHARE, Grid, Work, busy_seconds, grid_of, tile_grid
from passkit.schedule.lower_bound import LowerBound
from passkit.schedule.schedule import Schedule
from passkit.schedule.tile_loops import tiles_of
from passkit.target import Target, cpu
from tests.planned import plan, target
from tests.schedule.nests import CUDA
from tests.schedule.test_cost import group_of

o = pk.ops
UNSURE = UNSURE_SHARE * CUDA.launch


def crossing(rows: int, columns: int) -> list[pk.Entry]:
    """Return a layer norm along columns, a softmax along rows, and sums of its columns."""
    x = pk.var("x", (rows, columns))
    d = x - o.reduce_mean(x, axis=0, keepdims=True)
    y = d * o.rsqrt(o.reduce_mean(d * d, axis=0, keepdims=True) + 1e-5)
    e = o.exp(y - o.reduce_max(y, axis=1, keepdims=True))
    s = e / o.reduce_sum(e, axis=1, keepdims=True)
    return [s, o.reduce_sum(s, axis=0)]


def grids(outputs: list[pk.Entry]) -> list[int]:
    """Return the numbers of blocks of the kernels of a graph, fused for CUDA."""
    program = plan(pk.Graph(outputs), target="cuda")
    return [int(str(k.grid)) for k in program.attrs["kernel"].values()]


def test_what_would_be_one_block_is_several_kernels() -> None:
    """Eight MiB are not read by one block, while what takes less than launches is one kernel."""
    assert max(grids(crossing(2048, 512))) >= 64 and 1 not in grids(crossing(2048, 512))
    assert grids(crossing(32, 64)) == [1]


def test_one_block_takes_hundreds_of_microseconds() -> None:
    """By the bytes that it has in flight, whatever its multiprocessor could compute."""
    group = group_of(crossing(2048, 512))
    schedule = plan_group(group, CUDA)
    assert isinstance(schedule, Schedule) and schedule.multi_nest is not None
    assert schedule.multi_nest.tiles == 1

    in_flight = CUDA.block * CUDA.rules.loaded_bytes / CUDA.machine.in_flight_bytes
    least = CUDA.moving(2 * 2048 * 512 * 4 + 512 * 4) / in_flight
    assert 3e-4 < least < 5e-4
    for seconds in (schedule_cost(group, schedule, CUDA), kernel_cost(group, schedule, CUDA)):
        assert least - UNSURE <= seconds < 1.5 * least


@pytest.mark.parametrize(
    ("work", "moving", "blocks", "expected"),
    [
        (Work(1e-4), 0.0, 1, 132e-4 - UNSURE),
        (Work(1e-4), 0.0, 66, 2e-4 - UNSURE),
        (Work(1e-4), 0.0, 132, 1e-4),
        (Work(1e-4), 0.0, 10_000, 1e-4),
        (Work(1e-4, waiting=1e-4), 0.0, 1, 1e-4),
        (Work(1e-4, waiting=1e-4), 1e-4, 132, 1.995e-4 - UNSURE),
        (Work(1e-4, waiting=1e-4), 1e-4, 264, 1e-4),
        (Work(1e-9), 0.0, 1, 1e-9),
        (Work(1e-4), 1e-4, 0, 1e-4),
        (Work(1e-4), 1e-4, pk.Size.symbol("n"), 1e-4),
    ],
)
def test_shares(work: Work, moving: float, blocks: Any, expected: float) -> None:
    """Half of the multiprocessors take twice as long; bytes need two blocks on each."""
    seconds = busy_seconds(work, moving, tile_grid(blocks, CUDA), CUDA)
    assert seconds == pytest.approx(expected, rel=2e-3)


def test_processors_have_no_idle_multiprocessors() -> None:
    """On CPUs tiles count by other numbers."""
    assert busy_seconds(Work(1.0), 1.0, Grid(1, 1), cpu()) == 1.0
    assert busy_seconds(Work(1.0), 1.0, Grid(1, 1), target("opencl")) == 1.0


def programs(n: int) -> list[tuple[str, list[pk.Entry]]]:
    """Return groups whose blocks are as many for any ``n``, which is their work for each block."""
    x, w = pk.var("x", (64, n)), pk.var("w", (n, 16))
    rows = o.exp(x - o.reduce_max(x, axis=1, keepdims=True))
    y, z = pk.var("y", (n, 96)), pk.var("z", (n,))
    return [
        ("one block", crossing(n, 64)),
        ("rows", [rows / o.reduce_sum(rows, axis=1, keepdims=True)]),
        ("columns", [o.reduce_sum(y, axis=0)]),
        ("columns in passes", [y - o.reduce_mean(y, axis=0, keepdims=True)]),
        ("products", [o.matmul(rows / o.reduce_sum(rows, axis=1, keepdims=True), w)]),
        ("packed", [o.reduce_sum(y, axis=0), o.reduce_max(z)]),
    ]


@pytest.mark.parametrize("number", range(6), ids=[name for name, _ in programs(256)])
def test_more_work_costs_no_less(number: int) -> None:
    """The same blocks with more to do take as long at least."""
    groups = [group_of(programs(n)[number][1]) for n in (256, 512, 1024, 4096)]
    costs = [modelled(g, CUDA) for g in groups]

    assert costs[0] > 0 and all(less <= more for less, more in pairwise(costs))


def test_parts_of_a_pack_keep_a_gpu_busy_together() -> None:
    """A pack takes no less than its longest part, and less than all of them in turn."""
    columns = [pk.var(name, (4000, 96 * k)) for k, name in enumerate("abc", 1)]
    whole = group_of([o.reduce_sum(x, axis=0) for x in columns])
    alone = [modelled(group_of([o.reduce_sum(x, axis=0)]), CUDA) for x in columns]
    schedule = plan_group(whole, CUDA)
    assert isinstance(schedule, Schedule) and len(schedule.parts) == 3

    assert max(alone) <= schedule_cost(whole, schedule, CUDA) < 0.7 * sum(alone)


SINGLE = (
    "x: f32[200, 300]; return exp(x)",
    "x: f32[200, 300]; y: f32[200, 300]; return add(x, y)",
    "x: f32[4000]; return neg(x)",
    "x: f32[64, 16]; return softmax(x)",
    "x: f32[64, 512]; return softmax(x)",
    "x: f32[32, 1000]; return softmax(x)",
    "x: f32[16, 4096]; return softmax(x)",
    "x: f32[8, 20000]; return reduce_sum(x, axis=1)",
    "x: f32[300, 200]; return reduce_sum(x, axis=0)",
    "x: f32[300, 200]; return softmax(x, axis=0)",
    "x: f32[3, 70, 64]; return reduce_max(exp(x), axis=1)",
    "x: f32[50, 700, 6, 40]; return reduce_sum(exp(x), axis=(0, 2))",
)


@pytest.mark.parametrize("text", SINGLE)
def test_estimated_grids_are_near_those_of_schedules(text: str) -> None:
    """Blocks, and bytes that their threads load, are within a factor of four."""
    (schedule,) = plan(text, target="cuda").attrs["schedule"].values()
    (group,) = plan(text, target="cuda").attrs["subgraph"].values()
    estimate = grid_of(group, schedule, CUDA)
    assert schedule.nest is not None
    blocks = schedule.nest.blocks([a.extent for a in schedule.axes])

    assert estimate.blocks / 4 <= blocks <= 4 * estimate.blocks


def test_scans_have_the_tiles_of_their_schedule() -> None:
    """No rule of GPUs makes a loop nest of a scan."""
    group = group_of([o.cumsum(pk.var("x", (9, 300)), axis=1)])
    schedule = plan_group(group, CUDA)

    assert isinstance(schedule, Schedule)
    assert schedule.nest is None and schedule.no_nest is not None
    assert grid_of(group, schedule, CUDA) == tile_grid(tiles_of(schedule), CUDA)


def stitched(target: Target, outputs: list[pk.Entry]) -> list[Schedule]:
    """Return the schedules of a group of several loop nests."""
    results = multi_nest_schedules(group_of(outputs), target, first)
    return [s for s in results if isinstance(s, Schedule)]


def test_more_tiles_take_less() -> None:
    """A product of few rows has as many tiles as keep multiprocessors busy, and no more."""
    x, w = pk.var("x", (2048, 64)), pk.var("w", (64, 32))
    y = o.matmul(o.tanh(x - o.reduce_mean(x, axis=1, keepdims=True)), w)
    tiles = {s.multi_nest.tiles: s.seconds for s in stitched(CUDA, [y]) if s.multi_nest}
    best = min(tiles, key=lambda n: tiles[n])

    assert isinstance(best, int) and 64 <= best <= 512
    few = [n for n in sorted(tiles) if isinstance(n, int) and n <= 32]
    assert all(tiles[n] > tiles[best] for n in few)


@pytest.mark.parametrize("number", [0, 4])
def test_bounds_are_lower(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """No schedule takes less than the bound of its tiling."""
    bounds: dict[Any, float] = {}
    call = LowerBound.__call__

    def noted(self: LowerBound, maps: Any, tiles: Any) -> Any:
        bound = call(self, maps, tiles)
        if isinstance(bound, float):
            bounds[tiles] = min(bound, bounds.get(tiles, bound))
        return bound

    monkeypatch.setattr(LowerBound, "__call__", noted)
    schedules = stitched(CUDA, programs(256)[number][1])

    assert schedules and bounds
    assert all(s.seconds >= bounds[s.multi_nest.tiles] for s in schedules if s.multi_nest)


def test_the_fewest_tiles_are_tried_last() -> None:
    """A group has a schedule where none of the tilings that seem the quickest has one."""
    text = """x: f32[12, 45]; y = reshape(x, shape=(3, 4, 45)); z = flip(cumsum(y, axis=2), axis=2)
        return softmax(z, axis=1), reduce_sum(z, axis=0)"""
    group = Group(pk.ApplyPasses(pk.parse(text), ["Expand", "Complete"]), Kind.REDUCTION)
    one = evolve(CUDA, tiling=evolve(CUDA.tiling, ways=1), launch=0.0)

    assert isinstance(plan_multi_nest(group, one), Schedule)
