"""Profiles of GPUs: what fits on a multiprocessor, and targets with their numbers."""

from __future__ import annotations

from attrs import evolve

from passkit.plan.costs import model_seconds
from passkit.plan.gpus import SHIPPED, gpu_of
from passkit.plan.group import Group
from passkit.plan.rates import ZEN4
from passkit.plan.schedule import Schedule
from passkit.plan.target import KIB, MIB, Target, target_of
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
        return model_seconds(group, again, target)

    h100, v100 = (SHIPPED[n].numbers(target_of("cuda")) for n in ("H100", "V100"))
    assert 8e-5 < seconds(h100) < 2e-4 < seconds(v100) < 6e-4
    assert seconds(evolve(h100, rates=ZEN4)) > 3 * seconds(h100)


def test_by_name_and_kind() -> None:
    """Known ones by their names; others are like the newest that is not newer, by their size."""
    assert gpu_of("NVIDIA H200 NVL", (9, 0), 132) is SHIPPED["H200"]
    assert gpu_of("Tesla V100-SXM2-16GB", (7, 0), 80) is SHIPPED["V100"]
    ampere = gpu_of("NVIDIA GeForce RTX 3070", (8, 6), 46)
    assert (ampere.units, ampere.threads, ampere.shared) == (46, 1536, 100 * KIB)
    assert ampere.memory < SHIPPED["A100"].memory / 2
    assert gpu_of("NVIDIA B200", (10, 0), 148).memory > SHIPPED["H200"].memory
    assert gpu_of("Tesla P100", (6, 0), 56).units == 56
