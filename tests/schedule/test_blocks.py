"""Schedules of stitched kernels: their text, what is legal, and why others are refused."""

from __future__ import annotations

from functools import cache

import pytest
from attrs import evolve

import passkit as pk
from passkit.errors import ScheduleError
from passkit.planner.blocks import dot_tile
from passkit.reasons.nest_report import nest_report
from passkit.schedule.block import BlockSchedule, ProductMap, RowMap
from passkit.schedule.block_legality import check_block
from passkit.schedule.block_nest import BlockNest
from passkit.schedule.block_text import block_text, parse_block
from passkit.transforms.block_parts import block_nest
from tests.nest_kernels import attention, stitched_graphs
from tests.planned import plan
from tests.schedule.nests import CUDA

TEXT = """\
schedule matmul_2 for cuda threads 1x64 blocks 9 {
  contract p0 4x20x8: m = unroll_1-thread_4; n = unroll_3-thread_7; k = serial-unroll_8
  rows p1 4x20: row = serial-thread; column = unroll-thread_1-vector_4
  contract p2 4x8x20: m = unroll_1-thread_4; n = unroll_1-thread_8; k = serial-unroll_20
  operands early
}"""


@cache
def block_of(name: str) -> tuple[BlockNest, BlockSchedule]:
    """Return the parts of a kernel of `tests.nest_kernels`, and their schedule for CUDA."""
    graph = pk.Graph(dict(stitched_graphs())[name])
    names = [graph.names[n] for n in graph.nodes if n.op is not None]
    planned = plan(graph, "SchedulePlan", target="cuda", keep_together=[names])
    ((node, schedule),) = planned.attrs["schedule"].items()
    nest = block_nest(planned.attrs["subgraph"][node], schedule)
    assert isinstance(nest, BlockNest) and schedule.block is not None
    return nest, schedule.block


ATTENTION = "attention2x7x20x8"


def test_a_schedule_is_printed() -> None:
    """The text of attention has a map for each product and for the rows between."""
    nest, schedule = block_of(ATTENTION)

    assert block_text(schedule, nest, "matmul_2", "cuda") == TEXT


@pytest.mark.parametrize("name", [name for name, _ in stitched_graphs()])
def test_a_text_is_read_as_the_schedule_that_it_is_of(name: str) -> None:
    """Reading a text gives the schedule again; it is the rule's, and legal."""
    nest, schedule = block_of(name)

    assert parse_block(block_text(schedule, nest, "y", "cuda"), nest, CUDA) == schedule
    assert dot_tile(nest, CUDA) == schedule
    assert check_block(schedule, nest, CUDA) is None


REFUSED = [
    ("schedule", "plan", r"line 1: .* is needed, got 'plan matmul_2 for cuda"),
    (TEXT, "", r"line 1: 'schedule NAME for cuda threads 1xN blocks N {' is needed, got ''"),
    ("for cuda", "for opencl", r"line 1: 'schedule NAME for cuda .* got 'schedule matmul_2 for op"),
    ("\n  operands early", "", r"the kernel has 3 parts, and the text 2"),
    ("contract p0", "rows p0", r"line 2: 'contract p0 4x20x8: …' is needed, got 'rows p0"),
    ("p1 4x20", "p1 4x21", r"line 3: 'rows p1 4x20: …' is needed"),
    (
        "early",
        "soon",
        r"line 5: 'operands early or operands late, .* is needed, got 'operands soon'",
    ),
    ("early\n}", "early\n{", r"line 6: '}' is needed, got '{'"),
    ("1x64", "1x2048", r"2048 threads in a block exceed 1024"),
    ("1x64", "1x48", r"a block of 48 threads has a part of a warp of 32"),
    ("blocks 9", "blocks 99", r"99 blocks of 64 threads on a multiprocessor; 1 to 32"),
    (
        "m = unroll_1-thread_4; n = unroll_3",
        "m = unroll_1-thread_3; n = unroll_3",
        r"the parts of axis p0\.m have 3 points together, of 4",
    ),
    ("n = unroll_3-thread_7", "n = unroll_1-thread_20", r"p0 needs 80 threads, and a block has 64"),
    ("serial-unroll_20", "serial-unroll_6", r"p2 adds 6 products .* a multiple of 4, are"),
    (
        "unroll_1-thread_8; k = serial-unroll_20",
        "unroll_999-thread_8; k = serial-unroll_20",
        r"19980 operations in an unrolled loop exceed 4096",
    ),
    ("unroll-thread_1-", "unroll-thread_3-", r"rows of p1 have 3 threads; .* of 32 is possible"),
    ("vector_4", "vector_2", r"rows of p1 have vectors of 2 elements; 4 are possible"),
    (
        "k = serial-unroll_20",
        "k = serial-chunk_6-serial-unroll_4",
        r"p2 copies 6 steps of its operands at a time; a multiple of 4 is possible, of a product",
    ),
    ("n = unroll_3-thread_7", "n = unroll_500-thread_7", r"bytes of shared memory .* exceed 49152"),
]


@pytest.mark.parametrize("old, new, message", REFUSED)
def test_other_texts_are_refused(old: str, new: str, message: str) -> None:
    """The line of a text, or the reason why its schedule is not legal, is named."""
    nest, _ = block_of(ATTENTION)
    assert old in TEXT

    with pytest.raises(ScheduleError, match=message):
        parse_block(TEXT.replace(old, new, 1), nest, CUDA)


@pytest.mark.parametrize(
    "lanes, message",
    [(3, "points of p1 have 3 threads; a divisor of 32 is"), (0, "points of p1 have 0 threads")],
)
def test_threads_of_points_divide_a_warp(lanes: int, message: str) -> None:
    """The threads of a point combine their totals inside a warp."""
    nest, schedule = block_of("forces90x3")
    text = block_text(schedule, nest, "y", "cuda")
    assert "points p1 1x3: point = serial-thread; step = serial-thread_8" in text

    with pytest.raises(ScheduleError, match=message):
        parse_block(
            text.replace("step = serial-thread_8", f"step = serial-thread_{lanes}"), nest, CUDA
        )


def test_the_report_shows_the_schedule() -> None:
    """`passkit show --schedule` prints rule, resources and text."""
    graph = pk.Graph([attention(2, 7, 20, 8, value=8)])
    names = [graph.names[n] for n in graph.nodes if n.op is not None]
    planned = plan(graph, "SchedulePlan", target="cuda", keep_together=[names])
    ((node, schedule),) = planned.attrs["schedule"].items()
    report = nest_report(planned.attrs["subgraph"][node], schedule, CUDA)

    assert report is not None and report.text == TEXT and report.rule == "dot_tile"
    assert report.resources is not None
    assert report.resources.as_dict()["shared_bytes"] == schedule.block.shared_nbytes
    assert "64 threads" in str(report)


def test_long_rows_are_serial() -> None:
    """Threads go through rows in a loop, unless they keep points of them in registers."""
    nest, schedule = block_of("dense_norm")
    text = block_text(schedule, nest, "y", "cuda").replace("= unroll-thread", "= serial-thread")
    serial = parse_block(text, nest, CUDA)

    assert [own.is_serial for own in serial.parts if isinstance(own, RowMap)] == [True]
    assert block_text(serial, nest, "y", "cuda") == text
    with pytest.raises(ScheduleError, match="p1 keeps points of a row in registers, and a serial"):
        parse_block(
            TEXT.replace("= unroll-thread", "= serial-thread"), block_of(ATTENTION)[0], CUDA
        )


def test_operands_are_copied_in_pieces() -> None:
    """The text says how many steps of the operands of a product are copied at a time."""
    nest, _ = block_of(ATTENTION)
    text = TEXT.replace("k = serial-unroll_20", "k = serial-chunk_8-serial-unroll_4")
    schedule = parse_block(text, nest, CUDA)

    assert [own.chunk for own in schedule.parts if isinstance(own, ProductMap)] == [None, 8]
    assert block_text(schedule, nest, "matmul_2", "cuda") == text
    assert dict((name, n) for name, _, n in schedule.arrays)["operand_b2"] == 64


def test_arrays_without_room() -> None:
    """The text says where arrays have no room for more rows and columns than there are."""
    nest, schedule = block_of(ATTENTION)
    text = TEXT.replace("early", "late flat")
    flat = parse_block(text, nest, CUDA)

    assert flat.is_flat and block_text(flat, nest, "matmul_2", "cuda") == text
    assert ("s0", 4 * 20) in [(name, n) for name, _, n in flat.arrays]
    assert ("s0", 4 * 20) not in [(name, n) for name, _, n in schedule.arrays]


def test_the_operands_of_large_products_take_turns() -> None:
    """Where operands of all products have no room, each takes the place of the one before."""
    nest, schedule = block_of(ATTENTION)
    late = parse_block(block_text(evolve(schedule, is_early=False), nest, "y", "cuda"), nest, CUDA)

    assert {name for name, _, _ in late.arrays} == {"s0", "operand_a", "operand_b"}
    assert late.shared_nbytes < schedule.shared_nbytes
    assert [type(x) for x in late.parts] == [ProductMap, RowMap, ProductMap]
