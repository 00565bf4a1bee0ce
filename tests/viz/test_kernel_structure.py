"""The structure of kernels in pictures and reports: parts, stages, and regions of tiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.program.planning import planned
from passkit.reporting.step_facts import step_facts
from passkit.target import Target
from passkit.values.size import evaluate
from passkit.viz.kernel_structure import KernelStructure
from passkit.viz.labels import counted, extent_text, size_text
from passkit.viz.plan import RECOMPUTED
from passkit.viz.plan_view import PlanView
from passkit.viz.scene import Scene
from tests.fusion.test_pack import adam
from tests.packs import GRAPHS
from tests.planner.test_multi_nest import PROGRAMS, attention, figure1, softmax_of, together
from tests.random_stitches import random_stitch

JOINED = "x: f32[9000, 40]; return reduce_sum(x, axis=0)"
SMALL = Target("cpu", "cxx", lanes=16, scratch=32768)
"""A target whose scratch is smaller than one head."""


def structure_of(graph: pk.Graph, last: str = "SharedMemPlan", **options: Any) -> KernelStructure:
    """Return the structure of the only kernel of a graph."""
    graph = planned(graph, last, **options)
    (node,) = graph.attrs["subgraph"]
    structure = PlanView(graph, {}).kernel_structure(node)
    assert structure is not None
    return structure


def stitched(outputs: list[Any], **options: Any) -> KernelStructure:
    """Return the structure of a kernel of all operators that the outputs need."""
    graph, names = together(outputs)
    return structure_of(graph, keep_together=names, **options)


def updates(sizes: list[int]) -> KernelStructure:
    """Return the structure of a packed step of Adam for tensors of these sizes."""
    return stitched(list(adam(sizes)[0].outputs))


def test_a_part_that_moves_elements_has_no_region() -> None:
    """The output of a transpose has no region; a transposed operand belongs to no part."""
    x = pk.var("x", (2, 16, 3, 4))
    q = pk.ops.transpose(x, (0, 2, 1, 3))
    y = pk.ops.transpose(pk.ops.exp(q @ pk.ops.transpose(q, (0, 1, 3, 2))) @ q, (0, 2, 1, 3))
    structure = stitched([y], target=evolve(SMALL, scratch=2048))
    value = structure.parts()[-1].outputs[0]

    assert (value.region, value.location, value.nbytes) == ("the elements it moves", "memory", "")
    assert set(structure.regions_in_scratch()) <= {
        n for body in structure.part_operators for n in body
    }


def test_attention_has_three_parts_with_regions() -> None:
    """Parts have kinds, operators and stages; outputs have types, locations, regions and bytes."""
    structure = stitched(attention(211), target=SMALL)
    scores, softmax, result = structure.parts()
    chunk = structure.schedule.multi_nest.nests[0].results[0]  # type: ignore[union-attr]
    layout = structure.schedule.multi_nest.layout(chunk)  # type: ignore[union-attr]
    window = layout.extents[0]

    assert [p.kind for p in structure.parts()] == ["gemm", "reduction", "gemm"]
    assert [p.composition for p in structure.parts()] == ["", "short", ""]
    assert [p.operators for p in (scores, result)] == [("matmul",), ("matmul_1",)]
    assert softmax.operators[-1] == "div" and "exp" in softmax.operators
    (value,) = scores.outputs
    assert (value.type, value.location) == ("f32[3, 211, 211]", "scratch")
    assert value.region == f"[1 of 3, {window} of 211, 211]"
    assert value.nbytes == f"{layout.size * 4 / 1024:.3g} KiB"
    (value,) = result.outputs
    assert (value.name, value.location) == ("matmul_1", "memory")
    assert value.region == f"[1 of 3, {window} of 211, 8]"
    assert any(s.startswith("stage 0: reduces reduce_max") for s in softmax.stages)
    assert any("reduces reduce_sum" in s for s in softmax.stages)
    assert any("stores div" in s for s in softmax.stages)
    assert structure.composition == "stitched, 3 parts" and not scores.stages


def test_outputs_of_parts_are_in_scratch_or_memory() -> None:
    """Values for other parts are in scratch, outputs of the graph in memory."""
    x, w = pk.var("x", (40, 24)), pk.var("w", (24, 6))
    y = softmax_of(x)
    first, _ = stitched([y, pk.ops.tanh(y) @ w]).parts()
    places = {v.name: v.location for v in first.outputs}

    assert places["div"] == "memory" and places["tanh"] == "scratch"
    four = {v.name: v.location for p in stitched(figure1(30)).parts() for v in p.outputs}
    assert sorted(four.values()).count("memory") == 4


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_tiles_and_scratch_are_those_of_the_kernel(program: Any) -> None:
    """Tiles and scratch of the structure are those of the compiled kernel."""
    graph, names = together(program(33))
    graph = planned(graph, "CodeGen", keep_together=names)
    (node,) = graph.attrs["subgraph"]
    structure, kernel = PlanView(graph, {}).kernel_structure(node), graph.attrs["kernel"][node]

    assert structure is not None and structure.tiles == kernel.grid
    assert structure.shared.nbytes == kernel.shared_nbytes
    assert bool(structure.scratch) == bool(kernel.shared_nbytes)
    assert all(p.operators and p.outputs for p in structure.parts())


NESTS: dict[str, Callable[[], pk.Entry]] = {
    "chain": lambda: pk.ops.tanh(pk.var("x", (300, 70))) + 1.0,
    "rows": lambda: pk.ops.softmax(pk.var("x", (300, 1024))),
    "short rows": lambda: pk.ops.softmax(pk.var("x", ("n", 10))),
    "columns": lambda: pk.ops.reduce_sum(pk.var("x", (500, 300)), axis=0),
}


@pytest.mark.parametrize("name", NESTS)
def test_blocks_threads_and_shared_memory_are_those_of_a_loop_nest(name: str) -> None:
    """On a GPU, pictures and reports show the launch of the kernel that is printed."""
    graph = planned(pk.Graph([NESTS[name]()]), "CodeGen", target="cuda")
    nests = 0
    for node, kernel in graph.attrs["kernel"].items():
        structure = PlanView(graph, {}).kernel_structure(node)
        assert structure is not None and structure.tiles == kernel.grid
        if structure.nest is None:
            continue
        nests += 1
        blocks = f"{counted(kernel.grid, 'block')} of {kernel.block} threads"
        assert structure.lines()[0].startswith("loop nest by rule ")
        assert structure.lines()[1].startswith(blocks)
        number = f"{size_text(kernel.grid)} of {kernel.block} threads"
        assert dict(structure.properties())["blocks"] == number
        rows_or_sums = extent_text(kernel.shared_nbytes)
        assert structure.scratch in ("", rows_or_sums)
        assert bool(structure.scratch) or name != "short rows"
        assert any("thread_x" in line for line in structure.schedule_lines())
        labels = [f.label for f in pk.viz.plan(graph).scene.frames.values()]
        assert any(blocks in label for label in labels)
    assert nests


def test_packed_loop_nests_show_their_launch_and_parts() -> None:
    """A pack has the blocks of all nests; each part shows its own, with the lines of its tile."""
    graph = planned(pk.Graph(GRAPHS["mixed"]()), "CodeGen", target="cuda")
    ((node, kernel),) = graph.attrs["kernel"].items()
    structure = PlanView(graph, {}).kernel_structure(node)
    assert structure is not None and structure.tiles == kernel.grid
    parts = structure.parts()
    rules = "elementwise, short_rows, rows, columns"
    assert structure.lines()[0] == f"{len(parts)} loop nests by rule {rules}"
    assert structure.lines()[1].startswith(f"{kernel.grid} blocks of 256 threads · ")
    assert structure.scratch == extent_text(kernel.shared_nbytes)
    assert all(p.composition == "loop nest" and p.tiles and p.stages for p in parts)
    assert any("thread_x" in line for p in parts for line in p.stages)
    assert "10 loop nests" in str([f.label for f in pk.viz.plan(graph).scene.frames.values()])


def test_random_groups_have_complete_parts() -> None:
    """Parts of random groups have stages, and outputs have a region or the part has tiles."""
    part_count = 0
    for seed in range(40):
        graph, names = random_stitch(seed)
        graph = planned(graph, "CodeGen", keep_together=names)
        for node, kernel in graph.attrs["kernel"].items():
            structure = PlanView(graph, {}).kernel_structure(node)
            assert structure is not None and structure.tiles == kernel.grid
            parts = structure.parts()
            part_count += len(parts)
            assert all(not p.composition or p.stages for p in parts)
            for part in parts:
                assert all(bool(v.region) == bool(v.location) for v in part.outputs)
                assert all(bool(v.region) != bool(part.tiles) for v in part.outputs)
    assert part_count > 60


def test_packed_parts_have_tiles_of_their_own() -> None:
    """The tiles of packed parts add up to the kernel's, and small parts share one tile."""
    structure = updates([3000000, 70, 900000, 50, 60])
    parts = structure.parts()
    counts = {numbers: parts[numbers[0]].tiles for numbers in structure.schedule.shared_tiles}

    assert structure.composition == "packed, 5 parts" and not structure.scratch
    assert [p.outputs[0].type for p in parts] == [
        "f32[3000000]",
        "f32[70]",
        "f32[900000]",
        "f32[50]",
        "f32[60]",
    ]
    assert {p.composition for p in parts} == {"thread"}
    assert len(parts[1].outputs) == 3 and not any(v.region for v in parts[1].outputs)
    assert len(parts[1].operators) == 12 and parts[1].operators[-1] in parts[1].stages[0]
    assert (
        parts[1].tiles == "1, shared with parts 3, 4"
        and parts[3].tiles == "1, shared with parts 1, 4"
    )
    assert sum(int(text.partition(",")[0]) for text in counts.values()) == structure.tiles


def test_parts_in_a_row_are_listed_by_their_ends() -> None:
    """Many consecutive part numbers are shown as a range."""
    structure = updates([10 + k for k in range(9)])

    assert structure.parts()[0].tiles == "1, shared with parts 1 to 8"


def test_unknown_sizes_are_symbols_until_a_call() -> None:
    """Symbolic sizes are shown as symbols, and as numbers once they are known."""
    n = pk.var("x", ("n", 24, 16))
    y = softmax_of(pk.ops.matmul(n, n, transpose_b=True)) @ n
    graph, names = together([y])
    run = pk.compile(graph, keep_together=names)
    (node,) = run.graph.attrs["subgraph"]
    structure = PlanView(run.graph, {}).kernel_structure(node)
    assert structure is not None
    (facts,) = step_facts(run, None, {})
    (facts_of_run,) = step_facts(run, None, {"n": 7})

    assert structure.lines()[1].startswith(f"{size_text(structure.tiles)} tiles · ")
    assert evaluate(structure.tiles, {"n": 7}) > 1
    (value,) = structure.parts()[0].outputs
    assert value.region == "[2 of n, 24, 24]" and value.type == "f32[n, 24, 24]"
    assert facts["parts"][0]["outputs"][0]["region"] == value.region
    assert facts_of_run["parts"][0]["outputs"][0]["region"] == "[2 of 7, 24, 24]"
    assert facts_of_run["parts"][0]["outputs"][0]["type"] == "f32[7, 24, 24]"
    assert dict(facts_of_run["properties"])["tiles"] == str(evaluate(structure.tiles, {"n": 7}))


def test_stages_name_their_operators() -> None:
    """Each stage lists what it reduces, keeps, computes and stores, by names of the model."""
    structure = structure_of(
        pk.Graph([pk.ops.softmax(pk.var("x", (8, 1000)), name="probabilities")])
    )
    lines = structure.stages()

    assert structure.composition == f"row, {len(lines)} stages" and not structure.parts()
    assert lines[0].startswith("stage 0: reduces ") and lines[-1].endswith("stores probabilities")
    assert any("keeps" in line and "in the memory of probabilities" in line for line in lines)
    structure = structure_of(pk.Graph([pk.ops.softmax(pk.var("x", (4096, 40)))]))
    assert any("in scratch" in line for line in structure.stages()) and structure.scratch.endswith(
        "B"
    )
    structure = structure_of(pk.Graph([pk.var("x", (1 << 30,)) + 1.0]))
    assert structure.stages()[-1] == "stores that bypass the caches: add"


def test_frames_and_boxes_show_the_structure() -> None:
    """The frame of a group, or its box, has two lines about the structure of the kernel."""
    graph, names = together(attention(94))
    graph = planned(graph, "SharedMemPlan", keep_together=names)
    structure = structure_of(graph)
    frame = next(f for f in pk.viz.plan(graph).scene.frames.values())
    box = next(iter(pk.viz.plan(graph, detail=False).scene.boxes.values()))

    assert structure.lines() == (
        "stitched, 3 parts",
        f"{structure.tiles} tiles · {structure.scratch} of scratch",
    )
    assert set(structure.lines()) <= set(frame.label.split("\n")) & set(box.lines)
    assert "100 %" in pk.viz.plan(graph, profile={"matmul_1": 1e-3}).scene.frames["g0"].label
    structure = structure_of(pk.Graph([pk.ops.exp(pk.var("x", (8,)))]))
    assert structure.lines() == ("thread, 1 stage", "1 tile")


def test_a_picture_shows_parts() -> None:
    """Each part has a frame in the kernel's; arrows between parts have the region of a tile."""
    graph, names = together(attention(94))
    graph = planned(graph, "SharedMemPlan", keep_together=names)
    structure, scene = structure_of(graph), pk.viz.plan(graph).scene
    inner = [f for f in scene.frames.values() if f.parent == "g0"]
    labels_of_arrows = tile_labels(scene)
    homes = {b.frame: b.lines for b in scene.boxes.values() if b.frame}

    labels = [f.label for f in inner]
    assert labels == ["part 0 · gemm", "part 1 · reduction, short", "part 2 · gemm"]
    assert set(homes) == {f.key for f in inner}
    assert labels_of_arrows == {
        f"per tile: {v.region}" for p in structure.parts() for v in p.outputs[:1]
    } - {f"per tile: {structure.parts()[2].outputs[0].region}"}
    graph, names = together(list(adam([70000, 90])[0].outputs))
    scene = pk.viz.plan(planned(graph, "SharedMemPlan", keep_together=names)).scene
    first, second = (f.label for f in scene.frames.values() if f.parent == "g0")
    assert first.startswith("part 0 · elementwise, thread\ntiles: ") and second.endswith(": 1")
    assert not tile_labels(scene)


def tile_labels(scene: Scene) -> set[str]:
    """Return the labels of arrows about regions of tiles."""
    return {line for a in scene.arrows for line in a.lines if line.startswith("per tile: ")}


def test_recomputed_operators_are_drawn_in_each_phase() -> None:
    """Operators that a phase recomputes are drawn in it; arrows between phases are in memory."""
    x = pk.var("x", (4096, 256))
    d = x - pk.ops.reduce_mean(x, axis=0)
    variance = pk.ops.reduce_mean(d * d, axis=0)
    graph, names = together([softmax_of(d * pk.ops.rsqrt(variance + 1e-5))])
    scene = pk.viz.plan(planned(graph, "SharedMemPlan", keep_together=names)).scene
    again = [b for b in scene.boxes.values() if RECOMPUTED in b.lines]
    frames = {key: b.frame for key, b in scene.boxes.items()}
    crossing = [a for a in scene.arrows if frames[a.tail] != frames[a.head]]

    assert [b.lines for b in again] == [("sub", RECOMPUTED)]
    assert "x" in {scene.boxes[a.tail].lines[0] for a in scene.arrows if a.head == again[0].key}
    assert len(crossing) >= 7 and all(a.kind == "memory" and len(a.lines) == 2 for a in crossing)
    assert all(a.kind == "inner" and len(a.lines) == 1 for a in scene.arrows if a not in crossing)
    lines = {b.lines for b in scene.boxes.values()}
    assert ("reduce_mean", "combine_partials of reduce_mean(axis=0)") in lines
    assert ("reduce_mean_part", "partial_reduce of reduce_mean(axis=0)", "128 at a time") in lines


def test_a_value_read_twice_has_one_arrow_with_the_count() -> None:
    """The label of the arrow has the number of reads."""
    x = pk.var("x", (8, 4))
    y = pk.ops.tanh(x)
    scene = pk.viz.plan(planned(pk.Graph([y * y + x * x]), "SharedMemPlan")).scene
    labels = sorted(a.lines for a in scene.arrows)

    assert labels.count(("f32[8, 4] ×2",)) == 1 and labels.count(("f32[8, 4] ×2", "128 B")) == 1
    assert len({(a.tail, a.head) for a in scene.arrows}) == len(scene.arrows)


def test_long_calls_take_several_lines() -> None:
    """No line of a box is much wider than others."""
    x = pk.var("x", (30, 40, 50, 60))
    y = pk.ops.slice(x, begin=(1, 2, 3, 4), size=(10, 20, 30, 40))
    scene = pk.viz.plan(planned(pk.Graph([pk.ops.tanh(y)]), "SharedMemPlan")).scene
    (lines,) = [b.lines for b in scene.boxes.values() if b.lines[0].startswith("slice")]

    assert lines == ("slice(", "begin=(1, 2, 3, 4), size=(10, 20, 30, 40))")


def test_arrows_between_phases_are_values_in_memory() -> None:
    """Values between phases have dark arrows; values inside a phase have grey ones."""
    x = pk.var("x", (20011, 37))
    mean = pk.ops.reduce_mean(x, axis=0)
    distance = x - mean
    y = distance / pk.ops.reduce_max(pk.ops.abs(distance), axis=1, keepdims=True)
    graph = planned(pk.Graph([y]), "SharedMemPlan", keep_together=[[mean, y]])
    scene = pk.viz.plan(graph).scene
    frames = [f.label for f in scene.frames.values() if f.parent == "g0"]
    kinds = {
        (scene.boxes[a.tail].lines[0], scene.boxes[a.head].lines[0]): a.kind for a in scene.arrows
    }

    assert all(label.startswith("phase ") for label in frames) and len(frames) == 3
    assert kinds["reduce_mean_part", "reduce_mean"] == kinds["reduce_mean", "sub"] == "memory"
    assert kinds["sub", "abs"] == "inner"


def test_an_unscheduled_plan_shows_no_structure() -> None:
    """After Fusion, frames have a title without stages."""
    graph, names = together(attention(94))
    scene = pk.viz.plan(planned(graph, "Fusion", keep_together=names)).scene

    assert [f.label.count("\n") for f in scene.frames.values()] == [0]


def test_kernels_of_operators_have_tiles_only() -> None:
    """A kernel that an operator defines itself has tiles, and neither parts nor stages."""
    x, at = pk.var("x", (1, 1, 100, 8)), pk.var("at", (1, 20), "int64")
    rows = pk.ops.scatter_rows(x, at, pk.var("rows", (1, 1, 20, 8)))
    run = pk.compile(pk.Graph([rows, pk.ops.exp(x)]))
    facts = next(f for f in step_facts(run, None, {}) if "kernel" in f)

    assert [name for name, _ in facts["properties"]] == ["tiles"] and facts["parts"] == []
    assert facts["kind"] == "own" and "own kernel" in pk.viz.plan(run.graph).source
    assert run.kernels and np.isfinite(float(dict(facts["properties"])["tiles"]))


def test_calls_in_reports_take_one_line() -> None:
    """Partial reductions and joins, which take two lines in pictures, take one in reports."""
    x = pk.var("x", (4096, 256))
    exe = pk.compile(pk.Graph([pk.ops.reduce_mean(x, axis=0)]), target="blocks")
    calls = [c["call"] for step in step_facts(exe, None, {}) for c in step["operators"]]

    assert calls == [
        "partial_reduce of reduce_mean(axis=0), 128 at a time",
        "combine_partials of reduce_mean(axis=0)",
    ]


def test_sums_in_one_launch_are_shown_by_the_blocks_of_their_chunks() -> None:
    """The picture has the rule, both phases, and blocks and threads of the chunks."""
    graph = planned(pk.parse(JOINED), "CodeGen", target="cuda")
    ((node, kernel),) = graph.attrs["kernel"].items()
    structure = PlanView(graph, {}).kernel_structure(node)
    assert structure is not None and structure.tiles == kernel.grid
    first, second = structure.lines()

    assert first == "loop nests by rule last_block, 2 phases"
    assert second == f"71 blocks of 256 threads · {structure.scratch} of scratch"
    assert structure.scratch == extent_text(kernel.shared_nbytes)
