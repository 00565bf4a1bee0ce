"""SchedulePlan: the stages that CodeGen obeys; an entry that is changed changes the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve

import passkit as pk
from passkit.errors import ScheduleError
from tests.lowered import fused_by_hand, schedule_of
from tests.planned import agrees, feeds_of, plan, target
from tests.row_programs import SOFTMAX, VARIANCE

pytestmark = pytest.mark.usefixtures("quick_kernels")


def scheduled(text: str, **options: Any) -> pk.Graph:
    """The graph in text after SchedulePlan."""
    return plan(text, "SchedulePlan", **options)


def only(graph: pk.Graph) -> pk.Schedule:
    """The schedule of the only group."""
    (result,) = graph.attrs["schedule"].values()
    return result  # type: ignore[no-any-return]


def rescheduled(text: str, change: Callable[[pk.Schedule], pk.Schedule]) -> pk.Graph:
    """The graph with its schedules changed."""
    graph = scheduled(text)
    changed = {n: change(s) for n, s in graph.attrs["schedule"].items()}
    return graph.with_attrs(schedule=pk.Annotation("schedule", changed))


@pytest.mark.parametrize(
    "text, composition, stages",
    [
        ("x: f32[n]; return add(exp(x), x)", "thread", 1),
        ("x: f32[40, 50]; return transpose(neg(x))", "block", 1),
        (SOFTMAX.format("9, 300", 1), "row", 3),
        (SOFTMAX.format("9, 30", 1), "short", 3),
        (SOFTMAX.format("30, 9", 0), "column", 3),
        (SOFTMAX.format("5, 30, 9", 1), "column", 3),
        (SOFTMAX.format("n, m", 1), "row", 3),
        ("x: f32[9, 300]; return reduce_sum(exp(x), axis=1)", "row", 1),
    ],
)
def test_schedules_of_rows_and_columns(text: str, composition: str, stages: int) -> None:
    """Vector lanes run along a reduced row, else across rows; each reduction is a stage."""
    schedule = only(scheduled(text))

    assert (schedule.composition.value, len(schedule.stages)) == (composition, stages)
    assert schedule.source.value == "model"
    assert str(schedule).startswith(composition)


def test_expensive_values_are_kept_and_cheap_ones_recomputed() -> None:
    """A softmax keeps its exponential in the output's buffer; a difference is recomputed."""
    kept = only(scheduled(SOFTMAX.format("9, 300", 1))).staged
    cheap = only(
        scheduled(
            "x: f32[9, 300]; d = sub(x, reduce_mean(x, axis=1, keepdims=true));"
            "return div(d, reduce_max(d, axis=1, keepdims=true))"
        )
    ).staged

    assert [(k.place.value, k.output) for k in kept] == [("global", 0)]
    assert cheap == ()


def chunked(schedule: pk.Schedule) -> pk.Schedule:
    """Smaller tiles."""
    return evolve(schedule, split=evolve(schedule.split, chunk=2))  # type: ignore[arg-type]


def narrowed(schedule: pk.Schedule) -> pk.Schedule:
    """Tiles of fewer lanes."""
    return evolve(schedule, width=48)


def moved(schedule: pk.Schedule) -> pk.Schedule:
    """The schedule with values that are kept in an output's buffer kept in scratch."""
    kept = (evolve(k, place=type(k.place)("shared"), output=-1) for k in schedule.staged)
    return evolve(schedule, staged=tuple(kept))


def streaming(schedule: pk.Schedule) -> pk.Schedule:
    """The result goes past the caches."""
    return evolve(schedule, stream=(0,))


CHANGES: list[tuple[str, Callable[[pk.Schedule], pk.Schedule]]] = [
    (SOFTMAX.format("9, 300", 1), chunked),
    (SOFTMAX.format("9, 300", 1), moved),
    (SOFTMAX.format("30, 900", 0), narrowed),
    (SOFTMAX.format("30, 900", 0), moved),
    ("x: f32[9000]; return exp(x)", narrowed),
    ("x: f32[9000]; return exp(x)", streaming),
    (SOFTMAX.format("90, 7", 1), streaming),
    (SOFTMAX.format("300, 40", 1), streaming),
    (SOFTMAX.format("90, 32", 1), streaming),
    (SOFTMAX.format("9, 301", 1), streaming),
]


@pytest.mark.parametrize("text, change", CHANGES)
def test_codegen_uses_the_annotation(text: str, change: Any, rng: Any) -> None:
    """Another schedule gives another kernel or other numbers, and the same results."""
    graph = pk.parse(text)
    plain, changed = pk.compile(graph), pk.compile(rescheduled(text, change))
    (a,), (b,) = plain.kernels, changed.kernels
    feeds = feeds_of(graph, rng)

    assert (a.source, a.sizes, a.grid) != (b.source, b.sizes, b.grid)
    if change is not chunked:
        assert a.key != b.key
    assert plain(feeds)[0].tobytes() == changed(feeds)[0].tobytes()
    agrees(graph, feeds, changed(feeds))


def test_large_results_are_streamed() -> None:
    """From the target's number of bytes on, an output is written past the caches."""
    text, small = "x: f32[900]; return neg(x)", target(stream_bytes=3600)

    assert only(scheduled(text, target=small)).stream == (0,)
    assert only(scheduled(text)).stream == ()
    assert only(scheduled(text.replace("900", "n"), target=small)).stream == ()


def test_expensive_operators_cost_more() -> None:
    """Expensive operators cost more, and unknown sizes nothing."""
    light, heavy = (
        only(scheduled(f"x: f32[99999]; return {y}")) for y in ("neg(x)", "erf(exp(sin(x)))")
    )

    assert 0 < light.seconds < heavy.seconds
    assert only(scheduled("x: f32[n]; return neg(x)")).seconds == 0


def test_a_schedule_is_a_function_of_the_group() -> None:
    """Equal groups of other names, in other graphs, have equal schedules; planning is memoised."""
    texts = [f"{x}: f32[9]; {y} = exp({x}); return {y}" for x, y in ("ab", "cd")]
    schedules = [only(scheduled(text)) for text in texts]
    (group,) = plan(texts[0], "Fusion").attrs["subgraph"].values()

    assert schedules[0] == schedules[1]
    assert schedule_of(group) is schedule_of(group)


def impossible() -> pk.Graph:
    """Return a graph with a group that contains a convolution, which no kernel computes."""
    text = "x: f32[1, 4, 4, 2]; w: f32[3, 3, 2, 2]; a = exp(x);b = conv2d(a, w); return b"
    graph = plan(text, "Simplify")
    return fused_by_hand(graph, [[n for n in graph.nodes if n.op and n.op.name != "constant"]])


def test_a_group_without_a_schedule_is_an_error() -> None:
    """The error names the group, the reason and the way out."""
    with pytest.raises(
        ScheduleError, match="Group.* on cpu: a library call computes convolution, and .*; name"
    ):
        pk.ApplyPasses(impossible(), "SchedulePlan")
    with pytest.raises(
        ScheduleError, match="exp, .* no schedule on cpu: a library call computes conv"
    ):
        pk.ApplyPasses(impossible(), "CodeGen")


def test_a_schedule_of_another_group_is_refused() -> None:
    """CodeGen refuses a schedule that was made for other axes."""
    other = only(scheduled("x: f32[3, 40]; return transpose(x)"))
    graph = rescheduled("x: f32[9]; return exp(x)", lambda schedule: other)

    with pytest.raises(pk.CodeGenError, match="Group.*exp.* has axes .*, its schedule .*40"):
        pk.ApplyPasses(graph, "CodeGen")


def test_a_value_kept_for_a_second_reduction_is_in_scratch(rng: Any) -> None:
    """A value that a second reduction reads, and no output's buffer fits, is in scratch."""
    exe, graph = pk.compile(pk.parse(VARIANCE)), pk.parse(VARIANCE)
    feeds = feeds_of(graph, rng)

    assert len(exe.kernels) == 1
    assert exe.kernels[0].shared_nbytes == -(-300 * 4 // 64) * 64
    agrees(graph, feeds, exe(feeds), 1e-5)
    assert np.isfinite(exe(feeds)[0]).all()


# Templates that somebody gave.


def test_templates_are_obeyed_by_name(rng: Any) -> None:
    """A template applies by the group's or an operator's name; it changes tiles, not results."""
    text = "x: f32[64, 300]; e = exp(x); t = reduce_sum(e, axis=1); return t"
    graph, template = pk.parse(text), "reduce_sum_1[GRID_32-WARP_2,CTA];"
    feeds = feeds_of(graph, rng)
    plain = pk.compile(graph)
    for name in ("e", "t"):
        exe = pk.compile(graph, templates={name: template})
        assert only(exe.graph).source.value == "user"
        assert (exe.kernels[0].grid, plain.kernels[0].grid) == (32, 3)
        assert exe(feeds)[0].tobytes() == plain(feeds)[0].tobytes()
    assert only(scheduled(text, templates={graph.outputs[0]: template})).split.chunk == 2


TWO = "x: f32[64, 300]; a = reduce_sum(exp(x), axis=1); b = matmul(x, x, transpose_b=true); "
TWO += "c = reduce_max(b, axis=1); return a, c"


@pytest.mark.parametrize(
    "templates, message",
    [
        ({"e": "reduce_sum_1[GRID,CTA];"}, "no group has 'e'; known: a, "),
        ({"b": "reduce_sum_1[GRID,CTA];"}, "no group has 'b'; "),
        (
            {"a": "reduce_sum_1[GRID,CTA];", "exp": "reduce_sum_1[GRID,CTA];"},
            "'a' and 'exp' are in one group, a, which has one template",
        ),
        ({"a": "reduce_sum_1[GRID];"}, r"templates\['a'\]: reduce_sum_1 has 2 loops, \[64, 300\]"),
        (
            {"a": "reduce_sum_1[CTA,WARP];"},
            r"templates\['a'\]: .*a.* cannot have this template on cpu: no kernel",
        ),
    ],
)
def test_templates_that_do_not_fit_are_errors(templates: dict[str, str], message: str) -> None:
    """An unknown name, two for one group, other loops and impossible kernels are errors."""
    with pytest.raises(ScheduleError, match=message):
        scheduled(TWO, templates=templates)


def test_a_template_for_an_operator_in_several_groups_is_an_error() -> None:
    """The name of an operator that was copied into two groups is ambiguous."""
    text = "x: f32[64, 300]; s = neg(x); a = exp(s); b = tanh(s); return a, b"
    graph = plan(text, "Simplify")
    a, b = (e.node for e in graph.outputs)
    s = a.inputs[0].node
    fused = fused_by_hand(graph, [[a], [b]], copies=[[s], [s]])
    with pytest.raises(ScheduleError, match="'s' is in several groups; name one: a, b"):
        pk.ApplyPasses(fused, "SchedulePlan", templates={"s": "exp_1[CTA];"})


def test_templates_need_schedule_plan() -> None:
    """CodeGen alone refuses templates, instead of ignoring them."""
    fused = plan("x: f32[9]; y = exp(x); return y", "Fusion")
    with pytest.raises(ScheduleError, match="templates names y, and .*; run SchedulePlan before"):
        pk.ApplyPasses(fused, "CodeGen", templates={"y": "exp_1[CTA];"})
