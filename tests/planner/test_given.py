"""Schedules that the option templates takes as texts."""

from __future__ import annotations

import pytest

import passkit as pk
from passkit.errors import ScheduleError
from tests.emulator.test_kernels import failures_of
from tests.planned import plan

SOFTMAX = "x: f32[n, 1024]; y = softmax(x); return y"
ATTENTION = (
    "q: f32[4, 64, 64]; k: f32[4, 64, 64]; v: f32[4, 64, 64];"
    "s = matmul(q, k, transpose_b=true); return matmul(softmax(mul(s, 0.125)), v)"
)
TWO = "x: f32[300]; y: f32[70]; return exp(x), tanh(y)"
TOTAL = "x: f32[300, 512]; t = tanh(x); return div(t, add(reduce_sum(abs(t)), 1.0))"


def names_of(graph: pk.Graph) -> list[str]:
    """Return the names of the operators of a graph."""
    return [graph.names[n] for n in graph.nodes if n.op is not None]


def changed(text: str, *pairs: tuple[str, str]) -> str:
    """Return a text with replacements, each of which it has."""
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return text


def with_whole_blocks(text: str) -> str:
    """Return the schedule of a softmax with a block for each row, in place of a warp."""
    return changed(
        text,
        ("threads 4x32", "threads 1x128"),
        ("i0/4 row", "i0/1 row"),
        ("i0 = thread_y_4; ", ""),
        ("unroll_8-thread_x_32", "unroll_2-thread_x_128"),
    )


def test_a_kernel_of_one_nest_has_the_schedule_of_a_text() -> None:
    """The threads are those of the text, and the results are right."""
    graph = pk.parse(SOFTMAX)
    (group,) = pk.templates(graph, target="cuda")
    text = with_whole_blocks(group.template)

    (kernel,) = plan(graph, target="cuda", templates={"y": text}).attrs["kernel"].values()
    assert kernel.launch is not None and kernel.launch.threads == 128
    assert str(kernel.grid) == "n"
    assert not failures_of([("rows", graph, {"templates": {"y": text}}, ({"n": 7},))])
    (again,) = pk.templates(graph, target="cuda", keep_apart=())
    assert again.template == group.template


def test_the_given_schedule_is_reported() -> None:
    """The report names the option, and the rules whose schedules could be chosen instead."""
    graph = pk.parse(SOFTMAX)
    (group,) = pk.templates(graph, target="cuda")
    assert group.why == "each nest has the first legal schedule of the rules"
    (other,) = group.others
    assert other.schedule.rule == "single_elements"
    assert "by rule single_elements, for the option templates:" in str(group)

    planned = plan(graph, target="cuda", templates={"y": with_whole_blocks(group.template)})
    (given,) = pk.templates(planned)
    assert given.why == "it was specified in the option templates"
    assert "schedule of the option templates: 128 threads" in str(given)
    assert [c.schedule.rule for c in given.others] == ["rows", "single_elements"]
    chosen = plan(graph, target="cuda", templates={"y": str(other.template)})
    assert pk.templates(chosen)[0].template == str(other.template)


def test_packs_and_stitched_kernels_have_texts() -> None:
    """Blocks of a pack have the points of the text; products load operands when the text says."""
    pair = pk.parse(TWO)
    (pack,) = pk.templates(pair, target="cuda", keep_together=[names_of(pair)])
    more = plan(
        pair,
        target="cuda",
        keep_together=[names_of(pair)],
        templates={
            pack.name: changed(pack.template, ("unroll_2-", "unroll_4-"), ("i0/1024", "i0/2048"))
        },
    )
    (kernel,) = more.attrs["kernel"].values()
    assert "u < 4" in kernel.source and "u < 2" not in kernel.source

    graph = pk.parse(ATTENTION)
    options = {"target": "cuda", "keep_together": [names_of(graph)]}
    (group,) = pk.templates(graph, **options)
    early = changed(group.template, ("operands late", "operands early"))
    given = plan(graph, **options, templates={group.name: early})
    (kernel,) = given.attrs["kernel"].values()
    (usual,) = plan(graph, **options).attrs["kernel"].values()
    assert kernel.shared_nbytes > usual.shared_nbytes


def test_a_cpu_kernel_has_the_schedule_of_a_text() -> None:
    """The text form of schedules of tiles is accepted beside templates."""
    graph = pk.parse(SOFTMAX)
    (group,) = pk.templates(graph)
    assert group.nest is not None
    text = changed(group.nest.text, ("i0/8", "i0/2"))
    (schedule,) = plan(graph, templates={"y": text}).attrs["schedule"].values()
    assert schedule.split.chunk == 2


REFUSED = {
    "a template": (
        SOFTMAX,
        "exp_1[CTA];",
        "kernels on cuda are loop nests, which templates do not describe; give the text of a",
    ),
    "a text that ends": (
        SOFTMAX,
        "schedule y",
        "line 1, column 11: 'for' is needed, got 'the end'",
    ),
    "phases": (TOTAL, "schedule y for cuda", "of a kernel of this kind, phased: it has several"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_texts_are_refused(name: str) -> None:
    """The error names the kernel, what is wrong, and what is needed."""
    program, text, message = REFUSED[name]
    graph = pk.parse(program)
    (group,) = pk.templates(graph, target="cuda", keep_together=[names_of(graph)])
    with pytest.raises(ScheduleError, match=message):
        plan(
            graph,
            target="cuda",
            keep_together=[names_of(graph)],
            templates={group.name: text},
        )


def test_an_illegal_schedule_is_refused() -> None:
    """The error has the place, and the reason."""
    graph = pk.parse(SOFTMAX)
    (group,) = pk.templates(graph, target="cuda")
    text = changed(group.template, ("thread_x_32", "thread_x_31"))
    with pytest.raises(ScheduleError, match=r"templates\['y'\]: schedule: line \d+, column \d+: "):
        plan(graph, target="cuda", templates={"y": text})
