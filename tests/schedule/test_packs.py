"""Schedules of several loop nests in one kernel: text, legality, and reasons why there is none."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

import passkit as pk
from passkit.diagnostics import Diagnostic
from passkit.ir.loop import LaunchShape
from passkit.schedule.actions import Bind, SplitAxis, Tile
from passkit.schedule.compose import check_pack, compose
from passkit.schedule.pack import PackSchedule
from passkit.schedule.parse_pack import parse_pack
from passkit.schedule.rules import remove_schedule_rule
from passkit.schedule.text import pack_text
from tests.packs import GRAPHS, chain, chains, o, program, program_of
from tests.planned import plan
from tests.schedule.nests import CUDA, rule

TEXT = """\
schedule reduce_sum_1 for cuda threads 1x256 blocks 6 {
  pack {
    nest n0 (i0:700), n1 (i0:2): add_1, mul_1, sub_1
    threads 1x256 blocks 8
    tile n0[i0/1024 row] {
      map n0 i0 = thread_x_256-vector_4
      cache_read x0 in register
      cache_read x1 in register
      stage n0: store sub_1 -> y0
    }
    nest n2 (i0:77, i1:64 reduce): reduce_sum_1
    threads 16x8 blocks 12
    tile n2[i0/16 row] {
      map n2 i0 = thread_y_16; i1 = unroll_2-thread_x_8-vector_4
      cache_read x0 in register
      stage n2: reduce reduce_sum_1 rows reduce_sum_1
    }
  }
}"""


def two_and_rows() -> Any:
    """Return the program of two chains and sums over rows."""
    rows = o.reduce_sum(pk.var("r", (77, 64)), axis=1)
    return program_of([*chains((700, 2)), rows])


def test_a_schedule_of_parts_is_printed() -> None:
    """Parts with equal tiles are listed together; each kind of tile is printed once."""
    own = two_and_rows()
    assert own.schedule.pack is not None

    assert pack_text(own.schedule.pack, own.nests, CUDA) == TEXT


@pytest.mark.parametrize("name", GRAPHS)
def test_a_text_is_read_as_the_schedule_that_it_is_of(name: str) -> None:
    """Reading a text gives the schedule again, in one line, too."""
    own = program(name)
    pack = own.schedule.pack
    assert pack is not None
    text = pack_text(pack, own.nests, CUDA)

    assert parse_pack(text, own.nests, CUDA) == pack
    assert parse_pack(" ".join(text.split()), own.nests, CUDA) == pack


def test_the_report_has_the_text_and_the_rules() -> None:
    """`pk.templates` shows the schedule of a pack, its threads and its blocks."""
    own = program("mixed")
    (report,) = pk.templates(pk.Graph(GRAPHS["mixed"]()), target="cuda")
    assert report.nest is not None and report.nest.resources is not None
    assert own.schedule.pack is not None

    assert report.nest.rule == "elementwise, short_rows, rows, columns"
    assert report.nest.text == pack_text(own.schedule.pack, own.nests, CUDA)
    resources = report.nest.resources
    assert (resources.threads, resources.blocks) == (256, own.kernel.grid)
    assert resources.shared_nbytes > 0 and "pack {" in str(report)


REFUSED = [
    ("pack {", "packs {", "line 2, column 3: 'pack' is needed, got 'packs'"),
    ("nest n0", "nest n9", "there is no nest 'n9'"),
    ("n1 (i0:2)", "n0 (i0:700)", "line 4, column 5: 'threads' is needed|no tile of n1"),
    (", n1 (i0:2)", "", "there is no tile of n1"),
    ("n1 (i0:2)", "n1 (i0:3)", r"the nest has the axes \(i0:2\); '2' is needed, got '3'"),
    ("add_1, mul_1", "mul_1, add_1", "the nest has the values add_1, mul_1, sub_1; 'add_1' is"),
    ("threads 1x256 blocks 8 {", "threads 1x128 blocks 8 {", "the nests have 1x256 threads, not"),
    ("threads 1x256 blocks 8 {", "threads 1x256 blocks 9 {", "part 0 counts on 2048 threads on a"),
    ("tile n0[", "tile n1[", "'n0' is needed, got 'n1'"),
    ("threads 1x256 blocks 8\n", "threads 1x64 blocks 8\n", "maps have 1x256 threads, not 1x64"),
    ("  }\n}", "  }\n} more", "the schedule ends before 'more'"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_texts_that_are_no_schedules_are_refused(old: str, new: str, message: str) -> None:
    """The error has line and column, and says what is needed."""
    own = program("two parts")
    assert own.schedule.pack is not None
    text = pack_text(own.schedule.pack, own.nests, CUDA)
    assert old in text
    with pytest.raises(pk.ScheduleError, match=message):
        parse_pack(text.replace(old, new, 1), own.nests, CUDA)


def test_a_nest_has_one_tile() -> None:
    """A second tile of a nest is refused."""
    own = program("two parts")
    assert own.schedule.pack is not None
    lines = pack_text(own.schedule.pack, own.nests, CUDA).splitlines()
    twice = "\n".join([*lines[:-2], *lines[2:]])
    with pytest.raises(pk.ScheduleError, match="nest n0 has a tile already"):
        parse_pack(twice, own.nests, CUDA)


def code_of(result: PackSchedule | Diagnostic | None) -> str:
    """Return the code of a diagnostic, "" for none."""
    return result.code if isinstance(result, Diagnostic) else ""


def test_what_is_not_legal_has_a_reason() -> None:
    """Threads that do not fit, registers and arguments are looked at."""
    own = program("mixed")
    pack, nests = own.schedule.pack, own.nests
    assert pack is not None
    assert compose(pack.parts, nests) == pack

    wide = evolve(pack, launch=LaunchShape(1, 384, 1))
    assert code_of(check_pack(wide, nests)) == "pack.threads"
    more = evolve(pack, launch=evolve(pack.launch, blocks=pack.launch.blocks + 1))
    assert code_of(check_pack(more, nests)) == "pack.registers"
    many = [*pack.parts, *pack.parts[:1] * 100]
    assert code_of(compose(many, [*nests, *nests[:1] * 100])) == "pack.arguments"


def test_rows_of_several_warps_have_a_block_of_their_own() -> None:
    """Their threads wait for each other, and other rows stand beside them in a wider block."""
    rows = pk.var("x", (30, 2000))
    graph = pk.Graph([rows - o.reduce_max(rows, axis=1, keepdims=True), o.exp(pk.var("y", (40,)))])
    names = [graph.names[e.node] for e in graph.outputs]
    planned = plan(graph, target="cuda", keep_together=[names])
    (schedule,) = planned.attrs["schedule"].values()
    assert schedule.pack is not None
    (threads,) = {s.launch.threads for s in schedule.pack.parts if s.reduced is not None}
    assert threads == schedule.pack.launch.threads

    longer = pk.var("z", (30, 9000))
    more = longer - o.reduce_max(longer, axis=1, keepdims=True)
    graph = pk.Graph([*graph.outputs, more])
    names = [graph.names[e.node] for e in graph.outputs]
    planned = plan(graph, target="cuda", keep_together=[names])
    (schedule,) = planned.attrs["schedule"].values()
    assert schedule.pack is not None
    wider = [s.launch.threads for s in schedule.pack.parts if s.reduced is not None]
    assert len(set(wider)) == 2 and schedule.pack.launch.threads == max(wider)
    (kernel,) = planned.attrs["kernel"].values()
    assert f"wait_of_group(pack_group, {min(wider)});" in kernel.source


def test_parts_without_a_nest_take_the_other_path() -> None:
    """If rules have no schedule of rows, the reason of the kernel names the part."""
    graph = pk.Graph([chain(0, 300), o.reduce_sum(pk.var("c", (40, "n")), axis=1)])
    names = [graph.names[e.node] for e in graph.outputs]

    def none(nest: Any, gpu: Any) -> Any:
        return Diagnostic("domain.axes")

    with rule(none, "rows_read_once"), rule(none, "rows"), rule(none, "single_elements"):
        (report,) = pk.templates(graph, target="cuda", keep_together=[names])

    assert report.nest is not None and report.nest.resources is None
    assert report.nest.diagnostic is not None and report.nest.diagnostic.code == "pack.part"
    reason = "part 1 has no schedule of a nest: it reduces other axes than its kernel"
    assert reason in str(report.nest)


def test_a_rule_of_the_user_applies_to_parts() -> None:
    """A rule makes the schedule of each part that it is for; one that is not legal is refused."""

    def rule(nest: Any, gpu: Any) -> Any:
        if nest.is_reduced or len(nest.axes) > 1:
            return None
        threads = 64 if nest.axes[0].extent != 13 else 96
        return [Tile("i0", threads), SplitAxis("i0", threads, Bind.THREAD_X)]

    try:
        pk.register_schedule_rule("cuda", "a test of packs", rule)
        own = program_of(chains((10, 700)))
        assert own.schedule.rule == "a test of packs"
        assert own.ir.launch.threads == 64
        with pytest.raises(pk.ScheduleError, match="thread_x has 96 threads"):
            program_of(chains((10, 13)))
    finally:
        remove_schedule_rule("cuda", "a test of packs")
