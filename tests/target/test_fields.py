"""Fields of targets: each is documented, and a changed one changes plans."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from attrs import evolve, fields

import passkit as pk
from passkit.target import Target, cpu, target_of
from passkit.target.gpus import Gpu
from passkit.target.heuristics import FusionHeuristics, NestHeuristics, TilingHeuristics
from passkit.target.limits import GpuLimits
from passkit.target.machine import MachineModel
from tests.planned import plan

PARTS: tuple[type[Any], ...] = (
    Target,
    GpuLimits,
    MachineModel,
    FusionHeuristics,
    TilingHeuristics,
    NestHeuristics,
    Gpu,
)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_each_field_is_documented(part: type[Any]) -> None:
    """The docstring of a part of a target says what each of its fields is, in their order."""
    attributes = inspect.cleandoc(str(part.__doc__)).partition("Attributes:")[2]
    documented = re.findall(r"^    (\w+): ", attributes, re.M)

    assert documented == [f.name for f in fields(part)]


def kernels(text: str, target: Target, fusion: str = "stitch") -> int:
    """Return the number of groups of a graph, planned for a target."""
    return len(
        pk.ApplyPasses(pk.parse(text), ["Fusion"], target=target, fusion=fusion).attrs["subgraph"]
    )


def test_a_threshold_of_fusion_is_changed() -> None:
    """Products of more steps than the target allows are left to a library."""
    text = "x: f32[8, 8]; return exp(matmul(exp(x), x))"
    small = evolve(cpu(), fusion=evolve(cpu().fusion, product_steps=100))

    assert kernels(text, cpu(), "deep") == 1 and kernels(text, small, "deep") == 2


def test_a_threshold_of_tiles_is_changed() -> None:
    """Reductions are split where the target says."""
    text = "x: f32[2048]; return reduce_sum(x)"
    short = evolve(cpu(), tiling=evolve(cpu().tiling, min_row=1024, row_chunk=512))

    def ops(target: Target) -> list[str]:
        graph = pk.ApplyPasses(pk.parse(text), ["Complete", "SplitReduce"], target=target)
        return [n.op.name for n in graph.nodes if n.op is not None]

    assert ops(cpu()) == ["reduce_sum"] and ops(short) == ["partial_reduce", "combine_partials"]


def test_a_threshold_of_a_nest_rule_is_changed() -> None:
    """A thread of an elementwise kernel loads as many bytes as the target says."""
    cuda = target_of("cuda")
    more = evolve(cuda, rules=evolve(cuda.rules, loaded_bytes=64))

    def unrolled(target: Target) -> str:
        (schedule,) = (
            plan("x: f32[1048576]; return exp(x)", target=target).attrs["schedule"].values()
        )
        return str(schedule.nest)

    assert unrolled(cuda) != unrolled(more)


def test_a_limit_of_a_gpu_is_changed() -> None:
    """Rows that need more threads than a block may have are read in steps by as many as it has."""
    cuda = target_of("cuda")
    small = evolve(cuda, limits=evolve(cuda.limits, block_threads=128))
    text = "x: f32[64, 8192]; return softmax(x)"

    (schedule,) = plan(text, target=cuda).attrs["schedule"].values()
    (in_steps,) = plan(text, target=small).attrs["schedule"].values()
    assert schedule.nest is not None and in_steps.nest is not None
    assert (schedule.nest.launch.x, in_steps.nest.launch.x) == (256, 128)
    assert in_steps.nest.recomputed and not schedule.nest.recomputed
