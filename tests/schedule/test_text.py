"""The text of schedules of loop nests: printed, read again, and refused with line and column."""

from __future__ import annotations

import pytest

import passkit as pk
from passkit.schedule.apply import actions_of, apply
from passkit.schedule.parse import parse_schedule
from passkit.schedule.text import schedule_text
from tests.schedule.nests import CUDA, GRAPHS, SOFTMAX, nest_of

TEXT = """\
schedule div_1 for cuda threads 4x32 blocks 8 {
  nest n0 (i0:65536, i1:1024 reduce): reduce_max_1, sub_1, exp_1, reduce_sum_1, div_1
  tile n0[i0/4 row] {
    map n0 i0 = thread_y_4; i1 = unroll_8-thread_x_32-vector_4
    cache_read x0 in register
    in register exp_1
    stage n0: reduce reduce_max_1 rows reduce_max_1
    stage n0: reduce reduce_sum_1 keep exp_1 rows reduce_sum_1
    stage n0: store div_1 -> y0
  }
}"""


def test_a_schedule_is_printed() -> None:
    """The text of a softmax has its axes, tile, map, caches and stages."""
    nest, schedule = nest_of(SOFTMAX)

    assert schedule_text(schedule, nest, CUDA) == TEXT


@pytest.mark.parametrize("graph", GRAPHS)
def test_a_text_is_read_as_the_schedule_that_it_is_of(graph: str) -> None:
    """Reading a text gives the schedule again, and so do the actions of a schedule."""
    nest, schedule = nest_of(graph)

    assert parse_schedule(schedule_text(schedule, nest, CUDA), nest, CUDA) == schedule
    assert apply(nest, CUDA, actions_of(nest, schedule)) == schedule


def test_a_text_may_leave_sizes_and_lines_open() -> None:
    """A part without a number takes what is left; comments and line ends do not matter."""
    nest, schedule = nest_of(SOFTMAX)
    text = TEXT.replace("unroll_8", "unroll").replace("thread_y_4;", "thread_y;  # rows\n")

    assert parse_schedule(text, nest, CUDA) == schedule
    assert parse_schedule(" ".join(TEXT.split()), nest, CUDA) == schedule


REFUSED = [
    ("schedule div", "plan div", r"line 1, column 1: 'schedule' is needed, got 'plan'"),
    ("for cuda", "for cudo", r"line 1, column 20: the target is cuda"),
    ("schedule div_1", "schedule 5", r"column 10: a name \(operator\) is needed, got '5'"),
    ("threads 4x32", "threads many", r"line 1, column 33: threads YxX are needed, got 'many'"),
    ("threads 4x32", "threads 2x64", r"the maps have 4x32 threads, not 2x64"),
    ("blocks 8", "blocks all", r"column 45: a number is needed, got 'all'"),
    ("blocks 8", "blocks 64", r"line 1, column 1: 64 blocks of 128 threads on a multiproc"),
    (
        "i1:1024",
        "i1:1000",
        r"line 2, column 25: the nest has the axes .*; '1024' is needed, got '1000'",
    ),
    ("exp_1, reduce_sum_1, div", "log_1, div", r"the nest has the values reduce_max_1, sub_1, exp"),
    ("[i0/4", "[i2/4", r"line 3, column 11: there is no axis 'i2'; known: i0, i1"),
    ("[i0/4", "[i1/4", r"line 3, column 11: axis i1 is reduced; a tile has all of it"),
    ("[i0/4", "[i0/8", r"line 1, column 1: a tile has 8 points of axis i0, and its parts 4"),
    ("vector_4", "vektor_4", r"line 4, column 55: there is no part 'vektor_4'; did you mean 'vec"),
    ("unroll_8", "unroll_4", r"the parts of axis i1 have 512 points together, of 1024"),
    ("cache_read x0", "cache_read x1", r"line 5, column 16: there is no input 'x1'; known: x0"),
    ("x0 in register", "x0 in register_", r"line 5, column 22: there is no scope 'register_'; did"),
    ("x0 in register", "x0 in shared", r"line 5, column 5: cache_read x0 shared: a nest keeps no"),
    ("in register exp_1", "in register sub_1", r"line 6, column 5: no later stage reads sub_1"),
    (
        "in register exp_1",
        "recompute exp",
        r"line 6, column 15: there is no value 'exp'; did you m",
    ),
    ("in register exp_1", "recompute", r"line 7, column 5: there is no value 'stage'; known: "),
    ("in register exp_1", "recompute 5", r"line 6, column 15: a name \(value\) is needed, got '5'"),
    ("in register exp_1", "recompute reduce_sum_1", r"reduce_sum_1 is no value of each point"),
    (
        "in register exp_1",
        "recompute exp_1",
        r"line 8, column 35: the nest has the stage .*; 'rows'",
    ),
    (
        "in register exp_1",
        "recompute exp_1\n    in register exp_1",
        r"line 7, column 5: no later stage reads exp_1",
    ),
    ("    in register exp_1\n", "", r"a later stage reads exp_1, which has no scope"),
    ("cache_read", "cash_read", r"line 5, column 5: there is no item 'cash_read'; did you mean 'c"),
    (
        "keep exp_1",
        "keep sub_1",
        r"line 8, column 40: the nest has the stage .*; 'exp_1' is needed",
    ),
    ("    stage n0: store div_1 -> y0\n", "", r"line 9, column 3: the nest has 3 stages, got 2"),
    ("  }\n}", "stage n0: store div_1 -> y0 } }", r"line 10, column 1: the nest has 3 stages only"),
    ("  }\n}", "  }\n} }", r"line 11, column 3: the schedule ends before '}'"),
    ("  }\n}", "", r"line 10, column 1: a name \(item\) is needed, got 'the end'"),
]


@pytest.mark.parametrize(("old", "new", "message"), REFUSED)
def test_a_wrong_text_is_refused_with_its_place(old: str, new: str, message: str) -> None:
    """The message has line and column, what is needed, and the nearest name."""
    nest, _ = nest_of(SOFTMAX)
    assert old in TEXT

    with pytest.raises(pk.ScheduleError, match=message):
        parse_schedule(TEXT.replace(old, new, 1), nest, CUDA)
