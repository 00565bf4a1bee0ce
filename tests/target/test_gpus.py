"""Profiles of GPUs: what fits on a multiprocessor, and targets with their numbers."""

from __future__ import annotations

import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import Group, Kind
from passkit.analysis.register_pressure import BASE_REGISTERS, register_pressure
from passkit.planner.plan import plan_group
from passkit.schedule.cost import kernel_cost, schedule_cost
from passkit.schedule.schedule import Schedule
from passkit.target import KIB, MIB, Target, target_of
from passkit.target.gpus import SHIPPED, gpu_of
from passkit.target.limits import GpuLimits
from passkit.target.machine import ZEN4
from tests.planned import plan


def test_occupancy() -> None:
    """Registers, shared memory, threads and blocks each limit it; newer ones reserve 1 KiB."""
    volta, hopper = SHIPPED["V100"], SHIPPED["H100"]

    assert volta.occupancy(32, 0, 256) == 1.0
    assert volta.occupancy(255, 0, 256) == 0.125
    assert volta.occupancy(32, 36 * KIB, 256) == 0.25
    assert hopper.occupancy(32, 227 * KIB, 1024) == 0.5
    assert hopper.occupancy(32, 228 * KIB, 1024) == 0.0
    assert hopper.occupancy(16, 0, 32) == 0.5, "32 blocks of one warp"


def test_few_threads_wait_for_memory() -> None:
    """Below a quarter of a multiprocessor's threads; values that are alive are counted in words."""
    volta = SHIPPED["V100"].limits
    assert [volta.slowdown(r, 0, 256) for r in (32, 128, 255)] == [1.0, 1.0, 2.0]
    assert volta.slowdown(32, 60 * KIB, 256) == 2.0 and volta.slowdown(32, 97 * KIB, 256) == 16.0
    assert target_of("cpu").slowdown(255, 0) == 1.0

    def needed(text: str) -> int:
        graph = pk.parse(text)
        return register_pressure(graph)

    assert needed("x: f32[9]; a = exp(x); return neg(a)") == BASE_REGISTERS + 2
    assert needed("x: f64[9]; a = exp(x); return neg(a)") == BASE_REGISTERS + 4
    ways = [
        f"a{k} = mul(x, {k + 2.0}); s{k} = exp({f'mul(s{k - 1}, a{k})' if k else 'a0'})"
        for k in range(60)
    ]
    again = [f"t{k} = mul({f't{k - 1}' if k else 's59'}, a{k})" for k in range(60)]
    assert needed(f"x: f32[9]; {'; '.join([*ways, *again])}; return t59") >= BASE_REGISTERS + 60


def test_occupancy_decides_what_is_one_kernel() -> None:
    """Two rows of a group in shared memory leave room for few blocks: on such a device it waits.

    The group has many tiles, so that no multiprocessor is idle.
    """
    text = """x: f32[4096, 512]; e = exp(sub(x, reduce_max(x, axis=1, keepdims=true)))
        pairs = reshape(e, shape=(4096, 2, 256))
        return div(e, reduce_sum(e, axis=1, keepdims=true)), reduce_sum(pairs, axis=1)"""
    graph = pk.parse(text)
    small = GpuLimits(shared=1 << 30)
    group = Group(pk.ApplyPasses(graph, ["Complete"]), Kind.REDUCTION)
    target = evolve(target_of("cuda"), limits=small)
    found = plan_group(group, target)
    assert isinstance(found, Schedule) and found.multi_nest is not None
    scratch, tiles = found.multi_nest.scratch, found.multi_nest.tiles
    assert isinstance(scratch, int) and scratch > 0
    assert isinstance(tiles, int) and tiles > target.machine.min_tiles / 2
    tight = evolve(target, limits=evolve(small, shared=scratch + 256))

    waits, runs = (kernel_cost(group, found, t) for t in (tight, target))
    assert waits == pytest.approx(2 * runs, rel=0.01)


def test_targets() -> None:
    """Seconds are those of the whole device: of what it reads in its cache, and beyond."""
    hopper = SHIPPED["H200"].numbers(target_of("cuda"))
    near, far = hopper.moving(8 * MIB), hopper.moving(1024 * MIB)

    assert near < 8 * MIB / 4.8e12 and 1024 * MIB / 4.8e12 < far < 1.1 * 1024 * MIB / 4.8e12
    assert 1 / hopper.light > 3.3e13 and hopper.expensive > hopper.light
    assert target_of("cuda").light == SHIPPED["H100"].numbers(target_of("cuda")).light
    names = [SHIPPED[n].numbers(target_of("cuda")).moving(1024 * MIB) for n in SHIPPED]
    assert names == sorted(names, reverse=True)


def test_the_model_of_a_group() -> None:
    """A group that reads 256 MiB takes what memory takes, and tiles little besides."""
    made = plan("x: f32[32768, 1024]; return softmax(x)", target="cuda")
    ((node, group),) = made.attrs["subgraph"].items()
    schedule = made.attrs["schedule"][node]
    assert isinstance(group, Group) and isinstance(schedule, Schedule)

    def seconds(target: Target) -> float:
        again = evolve(schedule, seconds=target.moving(256 * MIB))
        return schedule_cost(group, again, target)

    h100, v100 = (SHIPPED[n].numbers(target_of("cuda")) for n in ("H100", "V100"))
    assert 8e-5 < seconds(h100) < 2e-4 < seconds(v100) < 6e-4
    assert seconds(evolve(h100, machine=ZEN4)) > 3 * seconds(h100)


def test_by_name_and_kind() -> None:
    """Known ones by their names; others are like the newest that is not newer, by their size."""
    assert gpu_of("NVIDIA H200 NVL", (9, 0), 132) is SHIPPED["H200"]
    assert gpu_of("Tesla V100-SXM2-16GB", (7, 0), 80) is SHIPPED["V100"]
    ampere = gpu_of("NVIDIA GeForce RTX 3070", (8, 6), 46)
    assert (ampere.units, ampere.threads, ampere.shared) == (46, 1536, 100 * KIB)
    assert ampere.memory < SHIPPED["A100"].memory / 2
    assert gpu_of("NVIDIA B200", (10, 0), 148).memory > SHIPPED["H200"].memory
    assert gpu_of("Tesla P100", (6, 0), 56).units == 56
