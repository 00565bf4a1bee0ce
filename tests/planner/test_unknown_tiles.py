"""Multi-nest kernels with tiles of unknown extents, and scratch memory of the size of a call."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.tilemap import guessed
from passkit.checks.stage_races import stage_races
from passkit.diagnostics import Diagnostic
from passkit.graph.node import known_shape
from passkit.planner.multi_nest import plan_multi_nest
from passkit.program.executable import Executable
from passkit.program.planning import planned
from passkit.schedule import lower_bound, nest_info, tile_costs
from passkit.schedule.schedule import Schedule
from passkit.schedule.tiling import Composition
from passkit.target import cpu, target_of
from passkit.values.size import Size
from tests.analysis.test_common_tilings import PROGRAMS as AGREED
from tests.planner.test_multi_nest import PROGRAMS, attention, softmax_of, together
from tests.together import compiled

pytestmark = pytest.mark.usefixtures("quick_kernels")
o = pk.ops
EXTENTS = 1, 17, 128, 1000
MULTI_NEST = [
    p
    for p in PROGRAMS
    if p.__name__
    in {"attention", "figure1", "into_product", "rows_into_product", "rows_and_columns"}
]
GROUPS = {p.__name__: p for p in MULTI_NEST}
GROUPS |= {f"rows of {p.__name__}": lambda n, p=p: p(n, 13) for p in AGREED}
GROUPS |= {f"columns of {p.__name__}": lambda n, p=p: p(13, n) for p in AGREED}


def agree(graph: pk.Graph, exe: Executable, extent: int) -> None:
    """Compare an executable with the interpreter where T has this extent."""
    rng = np.random.default_rng(extent)
    feeds = {
        n.name: rng.standard_normal(
            [k if isinstance(k, int) else extent for k in known_shape(n.entries[0])]
        ).astype(np.float32)
        for n in graph.inputs
    }
    for expected, result in zip(pk.interpret(graph, feeds), exe(feeds), strict=True):
        scale = np.abs(expected).max(initial=1)
        np.testing.assert_allclose(np.asarray(result), expected, rtol=0, atol=1e-5 * scale)


def plan_of(exe: Executable) -> Schedule:
    """Return the only schedule of an executable."""
    (result,) = exe.graph.attrs["schedule"].values()
    return result  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", GROUPS)
def test_one_kernel_block_by_block(name: str) -> None:
    """A group is one kernel for any T, without races between tiles."""
    graph, names = together(GROUPS[name]("T"))
    exe = pk.compile(graph, target="blocks", keep_together=names)

    assert len(exe.kernels) == 1
    for extent in (1, 17, 40):
        agree(graph, exe, extent)
    (kernel,) = exe.kernels
    assert list(stage_races(kernel.ast, kernel.sizes)) == []


@pytest.mark.parametrize("name", GROUPS)
def test_one_kernel_compiled(name: str) -> None:
    """A group is compiled once and is right for any T."""
    graph, names = together(GROUPS[name]("T"))
    (exe,) = compiled([graph], keep_together=names)

    assert len(exe.kernels) == 1 and len(exe.steps) == 1
    for extent in (*EXTENTS, 3):
        agree(graph, exe, extent)


def test_tiles_have_as_many_rows_as_there_is_room_for() -> None:
    """Tiles have at least four rows, and at most as many as fit into scratch for a typical T."""
    graph, names = together(attention("T"))  # type: ignore[arg-type]
    exe = pk.compile(graph, keep_together=names)
    (kernel,), multi_nest = exe.kernels, plan_of(exe).multi_nest
    assert multi_nest is not None
    maps = [layout.tile_map for _, layout in multi_nest.layouts]
    chunks = {m.part[m.window] for m in maps if m.window is not None}

    assert min(chunks) >= 4 and isinstance(kernel.shared_nbytes, Size)
    assert guessed(kernel.shared_nbytes) <= cpu().scratch
    assert plan_of(exe).seconds == 0 and kernel.seconds == 0
    little = evolve(cpu(), scratch=1 << 15)
    few = pk.compile(graph, keep_together=names, target=little)
    assert guessed(few.kernels[0].shared_nbytes) <= 1 << 15
    agree(graph, few, 1000)


def test_usual_extents_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """The larger the typical extent of T, the more rows tiles have."""
    result = []
    for usual in (16, 2048):
        for module in (lower_bound, tile_costs, nest_info):
            monkeypatch.setattr(module, "USUAL", usual)
        width = 8 + len(result)  # no plan is remembered
        graph, names = together([softmax_of(pk.var("x", ("T", width)) @ pk.var("w", (width, 24)))])
        planned = pk.ApplyPasses(graph, ["Fusion", "SchedulePlan"], keep_together=names)
        (plan,) = planned.attrs["schedule"].values()
        result.append(plan.split.chunk)

    assert result[0] < result[1]


def test_tiles_that_may_never_fit_are_phased_or_refused() -> None:
    """A reduction of columns needs all rows in a tile; a matrix of T by T needs phases.

    The scratch memory of a GPU kernel is a number in its text.
    """
    q = pk.var("q", (2, "T", 8))
    p = softmax_of(o.matmul(q, q, transpose_b=True))
    graph, names = together([p @ q, o.reduce_sum(p, axis=1)])
    (plan,) = planned(graph, "SchedulePlan", keep_together=names).attrs["schedule"].values()
    assert plan.composition is Composition.PHASED
    graph, names = together([p @ q])
    (group,) = planned(graph, "Fusion", keep_together=names).attrs["subgraph"].values()
    for target in (target_of("opencl"), evolve(cpu(), name="blocks", grows=False)):
        why = plan_multi_nest(group, target)
        assert isinstance(why, Diagnostic)
        reason = f"*T)//(128) bytes of scratch, and {target.name} has as much as its source says"
        assert reason in str(why) and "; give T a " in str(why)


def test_a_loaded_program_sizes_its_scratch_at_the_call(tmp_path: Path) -> None:
    """A loaded program has scratch whose size depends on the call."""
    graph, names = together(attention("T"))  # type: ignore[arg-type]
    pk.compile(graph, keep_together=names).save(tmp_path / "kept")
    loaded = pk.load(tmp_path / "kept")

    for extent in (17, 300):
        agree(graph, loaded, extent)
