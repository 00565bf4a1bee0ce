"""Schedules: splits, staged values, streamed outputs, and outputs in place of inputs."""

from __future__ import annotations

import pytest
from attrs import evolve

import passkit as pk
from passkit.analysis.group import FUSED
from passkit.analysis.recompute import is_expensive
from passkit.analysis.tilemap import Split, SplitKind
from passkit.ast.stage import Place
from passkit.planner.plan import inplace_pairs, inplace_rows
from passkit.program.planning import planned
from passkit.schedule.stages import stream_outputs
from passkit.target import cpu
from passkit.values.size import Size
from tests.passes.test_schedule_plan import only, scheduled
from tests.row_programs import SOFTMAX


def test_splits() -> None:
    """A split is the 2018 triple of dimension, chunk and kind; sword is the number of chunks."""
    split = Split(1, 8, SplitKind.COLUMN)

    assert (split.sword(17), split.sword(16), str(split)) == (3, 2, "(1, 8, Column)")
    assert str(split.sword(Size.symbol("n"))) == "(7 + n)//(8)"


def test_tiles_have_the_points_of_the_target() -> None:
    """Tiles of short rows have the target's number of points; a long row is a tile."""
    chunks = [only(scheduled(SOFTMAX.format(f"99999, {m}", 1))).split.chunk for m in (512, 1 << 17)]

    assert chunks == [cpu().tile // 512, 1]


def test_expensive_operators() -> None:
    """Transcendental functions cost more than arithmetic and movement."""
    for text, costly in (("exp(x)", True), ("neg(x)", False), ("transpose(x)", False)):
        assert is_expensive(pk.parse(f"x: f32[3, 3]; return {text}").outputs[0].node) is costly


def test_streamed_outputs_stage_no_values() -> None:
    """A value staged in a streamed output moves to scratch memory if a row fits there."""
    plan = only(scheduled(SOFTMAX.format("9, 300", 1)))
    moved = stream_outputs(plan, (0,), cpu())
    tight = stream_outputs(plan, (0,), evolve(cpu(), scratch=64))

    assert [k.place for k in moved.staged] == [Place.SHARED] and moved.stream == (0,)
    assert tight.staged == plan.staged and tight.stream == ()


def test_in_place() -> None:
    """A result may overwrite an input that is read at the same point only."""

    def pairs(text: str) -> list[tuple[int, int]]:
        graph = planned(pk.parse(text), "Fusion")
        (node,) = [n for n in graph.nodes if n.op is FUSED]
        return inplace_pairs(node)

    assert pairs("x: f32[8, 8]; y: f32[8, 8]; return sub(exp(x), y)") == [(0, 0), (1, 0)]
    assert pairs("x: f32[8, 8]; y: f32[8]; return sub(exp(x), y)") == [(0, 0)]
    assert pairs("x: f32[8, 8]; return neg(transpose(x))") == []
    assert pairs("x: f32[8, 8]; return reduce_sum(x, axis=1)") == []


@pytest.mark.parametrize(
    "text, allowed",
    [
        ("return add(reduce_sum(x, axis=0), w)", ["w"]),
        ("s = reduce_sum(x, axis=0); return add(s, w), mul(s, v)", ["w", "w", "v", "v"]),
        ("y = exp(x); return mul(reduce_sum(y, axis=0), w), y", ["w"]),  # y is no row value
        ("return reduce_sum(add(x, w), axis=0)", []),  # w is read again for each row
        ("return add(reduce_sum(mul(x, w), axis=0), w)", []),
        ("s = add(reduce_sum(x, axis=0), w); return s, reduce_sum(exp(sub(x, s)), axis=0)", []),
        ("m = add(reduce_max(x, axis=1), w); return m, sub(x, reshape(m, shape=(8, 1)))", ["w"]),
        ("return add(reduce_max(x, axis=1), slice(w, begin=(7,), size=(8,), step=(-1,)))", []),
    ],
)
def test_in_place_of_rows(text: str, allowed: list[str]) -> None:
    """A row value may overwrite an input that is read only after the reduction."""
    given = "x: f32[8, 8]; w: f32[8]; v: f32[8]; "
    (node,) = [n for n in planned(pk.parse(given + text), "Fusion").nodes if n.op is FUSED]

    assert [node.inputs[i].name for i, _ in inplace_rows(node)] == allowed
    assert inplace_pairs(node) == []


@pytest.mark.parametrize("target, places", [("cpu", 1), ("cuda", 0), ("opencl", 0), ("blocks", 0)])
def test_rows_in_place_need_one_thread_per_row(target: str, places: int) -> None:
    """On GPUs other threads of a block may read an element after one of them stores it."""
    graph = pk.parse(
        "x: f32[8, 8]; w: f32[8]; y = exp(w); s = add(reduce_sum(x, axis=1), y); "
        "return relu(reshape(s, shape=(2, 4)))"
    )
    given = {"target": target, "keep_apart": [["y", "reduce_sum"], ["relu", "reduce_sum"]]}
    storage = planned(graph, "CodeGen", **given)
    plan = pk.ApplyPasses(storage, ["PlanMemory"]).attrs["storage"]

    assert len(plan.inplace) == places
