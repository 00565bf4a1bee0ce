"""Random groups in phases: the block interpreter and native code find what NumPy finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.passes import split_reduce
from passkit.passes.check_storage import check_storage
from passkit.passes.fusion import phased
from passkit.plan.target import cpu, target_of
from tests import test_random_stitches
from tests.plan.test_phases import agree, feeds_of
from tests.random_phases import UNKNOWN, random_phases
from tests.random_stitches import random_stitch
from tests.teams import team_of
from tests.together import prebuilt

pytestmark = pytest.mark.usefixtures("quick_kernels")
SMALL = {"scratch": 2048, "tile": 64, "short_tile": 64, "parallel": 1e-9}
"""What makes small groups take phases."""
SIZES = (131, 1, 0)


@pytest.fixture
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Folds of a few dozen elements are long."""
    phased._recipe.cache_clear()
    for name, few in (("ROW", 64), ("COLUMN", 16)):
        monkeypatch.setattr(split_reduce, f"{name}_CHUNK", few // 2)
        monkeypatch.setattr(split_reduce, f"MIN_{name}_LENGTH", few)
        monkeypatch.setattr(split_reduce, f"MIN_FUSED_{name}_LENGTH", few)
    yield
    phased._recipe.cache_clear()


def agrees(graph: pk.Graph, exe: Any) -> int:
    """Compare with NumPy at all sizes; in how many phases the kernels run."""
    unknown = any(UNKNOWN in map(str, n.entries[0].shape) for n in graph.inputs)
    for n in SIZES if unknown else (0,):
        agree(graph, exe, feeds_of(graph, **{UNKNOWN: n}))
        check_storage(exe.graph, exe.graph.attrs["storage"], {UNKNOWN: n})
    return max((len(k.phases) for k in exe.kernels), default=0)


def test_block_by_block() -> None:
    """Every load has a value, no two tiles of a phase meet in one place, the results are right."""
    target, phases = evolve(target_of("blocks"), **SMALL), []
    for seed in range(20):
        graph, names = random_phases(seed)
        phases.append(agrees(graph, pk.compile(graph, target=target, keep_together=names)))

    assert sum(n > 1 for n in phases) > 5 and max(phases) > 2


@pytest.mark.parametrize("dialect, lanes", [("cxx", 16), ("opencl", 1)])
def test_with_short_chunks(short_chunks: None, dialect: str, lanes: int) -> None:
    """Halves of folds stand in phases of their own, for the CPU and as on a GPU.

    Rows that are split are never short.
    """
    target = evolve(target_of("blocks"), dialect=dialect, lanes=lanes, short_row=1, **SMALL)
    phases = []
    for seed in range(200, 210):
        graph, names = random_phases(seed)
        phases.append(agrees(graph, pk.compile(graph, target=target, keep_together=names)))

    assert sum(n > 2 for n in phases) > 2


def test_groups_that_were_refused() -> None:
    """Products, movement and folds at random, with little scratch: what is connected is one."""
    target, phases = evolve(target_of("blocks"), **{**SMALL, "scratch": 512}), []
    for seed in range(20):
        graph, names = random_stitch(seed)
        exe = pk.compile(graph, target=target, keep_together=names)
        test_random_stitches.agree(graph, exe)
        phases.append(max((len(k.phases) for k in exe.kernels), default=0))

    assert sum(n > 1 for n in phases) > 2


def test_native() -> None:
    """The same text compiled; equal bits on any number of threads."""
    target = evolve(cpu(), **SMALL)
    made = [random_phases(seed) for seed in range(300, 310)]
    options = [{"keep_together": names, "target": target} for _, names in made]
    count = 0
    for (graph, _), ready, own in zip(
        made, prebuilt([g for g, _ in made], options), options, strict=True
    ):
        exe = pk.compile(ready, **own)
        count += agrees(graph, exe) > 1
        feeds, found = feeds_of(graph, **{UNKNOWN: 131}), []
        for threads in (1, 2, 4):
            with team_of(threads):
                found.append([np.asarray(x).tobytes() for x in exe(feeds)])
        assert found[0] == found[1] == found[2]

    assert count > 2
