"""Random groups in phases have equal results interpreted, block by block and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import passkit as pk
from tests import test_random_stitches
from tests.memory_plans import check_plan
from tests.planned import target as target_of
from tests.planner.test_phases import agree, feeds_of
from tests.random_phases import UNKNOWN, random_phases, with_short_reductions_split
from tests.random_stitches import random_stitch
from tests.teams import team_of
from tests.together import prebuilt

pytestmark = pytest.mark.usefixtures("quick_kernels")
SMALL = {"scratch": 2048, "tile": 64, "short_tile": 64, "parallel": 1e-9}
"""Target numbers with which small groups need several phases."""
SIZES = (131, 1, 0)


def agrees(graph: pk.Graph, exe: Any) -> int:
    """Compare with the interpreter at all sizes, and return the largest number of phases."""
    unknown = any(UNKNOWN in map(str, n.entries[0].shape) for n in graph.inputs)
    for n in SIZES if unknown else (0,):
        agree(graph, exe, feeds_of(graph, **{UNKNOWN: n}))
        check_plan(exe.graph, exe.graph.attrs["storage"], {UNKNOWN: n})
    return max((len(k.phases) for k in exe.kernels), default=0)


def test_random_groups_in_phases_are_right_block_by_block() -> None:
    """Every load has a value, no two tiles of a phase meet in one place, the results are right."""
    target, phases = target_of("blocks", **SMALL), []
    for seed in range(20):
        graph, names = random_phases(seed)
        phases.append(agrees(graph, pk.compile(graph, target=target, keep_together=names)))

    assert sum(n > 1 for n in phases) > 5 and max(phases) > 2


@pytest.mark.parametrize("dialect, lanes", [("cxx", 16), ("opencl", 1)])
def test_split_reductions_are_phases_of_their_own(dialect: str, lanes: int) -> None:
    """The halves of split reductions are separate phases, for the CPU and as on a GPU.

    Rows that are split are never short.
    """
    target = target_of("blocks", dialect=dialect, lanes=lanes, short_row=1, **SMALL)
    target = with_short_reductions_split(target, row=64, column=16)
    phases = []
    for seed in range(200, 205):
        graph, names = random_phases(seed)
        phases.append(agrees(graph, pk.compile(graph, target=target, keep_together=names)))

    assert sum(n > 2 for n in phases) > 2


def test_groups_too_large_for_one_phase_take_several() -> None:
    """Random products, movement and reductions with little scratch are one kernel of phases."""
    target, phases = target_of("blocks", **SMALL | {"scratch": 512}), []
    for seed in range(20):
        graph, names = random_stitch(seed)
        exe = pk.compile(graph, target=target, keep_together=names)
        test_random_stitches.agree(graph, exe)
        phases.append(max((len(k.phases) for k in exe.kernels), default=0))

    assert sum(n > 1 for n in phases) > 2


def test_random_groups_in_phases_are_right_when_compiled() -> None:
    """Native code has the interpreter's results, with equal bits on 1, 2 and 4 threads."""
    target = target_of(**SMALL)
    cases = [random_phases(seed) for seed in range(300, 310)]
    options = [{"keep_together": names, "target": target} for _, names in cases]
    count = 0
    for (graph, _), ready, own in zip(
        cases, prebuilt([g for g, _ in cases], options), options, strict=True
    ):
        exe = pk.compile(ready, **own)
        count += agrees(graph, exe) > 1
        feeds, bits = feeds_of(graph, **{UNKNOWN: 131}), []
        for threads in (1, 2, 4):
            with team_of(threads):
                bits.append([np.asarray(x).tobytes() for x in exe(feeds)])
        assert bits[0] == bits[1] == bits[2]

    assert count > 2
