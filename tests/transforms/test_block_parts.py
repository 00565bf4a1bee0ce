"""The parts of a stitched kernel, read from the stages that nests are lowered to."""

from __future__ import annotations

import pytest

from passkit.ast.stage import Buffer, Level, Loop, Part, Place, Stage, Store
from passkit.diagnostics import Diagnostic
from passkit.transforms.block_coordinates import BlockCoordinates
from passkit.transforms.read_point_part import read_point_part
from passkit.transforms.read_row_part import read_row_part
from tests.stitched import COL, F32, ITEM, fold, lanes, load, number


def coordinates() -> BlockCoordinates:
    """The coordinates of a tile with an array of 16 rows of 8 elements."""
    return BlockCoordinates([Buffer("s0", F32, Place.SHARED, 128, True, offset=0)], [8])


def test_rows_that_read_what_others_write() -> None:
    """No thread reads an element of a row that another thread writes in the same part."""
    row = Loop(ITEM, number(0), number(16), Level.WARP)
    own, last = ITEM * 8 + COL, ITEM * 8 + (number(7) - COL)
    stages = (
        Stage("put", (lanes(COL, number(8)),), (Store("s0", own, load("x0", own)),)),
        Stage("turn", (lanes(COL, number(8)),), (Store("y0", own, load("s0", last)),)),
    )
    part = read_row_part(0, Part((), row, (), stages), stages, {}, coordinates())

    assert isinstance(part, Diagnostic)
    assert str(part) == "threads meet in s0, or data says which of its elements they write"


@pytest.mark.parametrize("index", ["shared", "own"])
def test_points_that_read_what_others_write(index: str) -> None:
    """Neither does a thread that goes down a column, in a shared array or in one of the part."""
    down = Loop(ITEM, number(0), number(16), Level.THREAD)
    total = fold("sum", load("x0", ITEM * 8 + COL), False)
    buffer, at = ("s0", number(7) - COL) if index == "shared" else ("s9", ITEM)
    stages = (
        Stage("put", (down, lanes(COL, number(8))), (Store(buffer, COL, total.value),)),
        Stage("turn", (lanes(COL, number(8)),), (Store("y0", COL, load(buffer, at)),)),
    )
    part = read_point_part(
        0, Part((), None, (), stages), stages, {}, coordinates(), {COL.name: 8, ITEM.name: 16}
    )

    assert isinstance(part, Diagnostic)
    assert str(part) == f"threads meet in {buffer}, or data says which of its elements they write"
