"""How many threads of a GPU take a row together, and the blocks that come of it."""

from __future__ import annotations

import pytest

import passkit as pk
from passkit.graph.kernel import Kernel
from passkit.program.planning import planned
from passkit.runtime.cuda.launch_config import launch_config, values_of
from passkit.transforms.row_threads import has_rows, row_lanes, rows_at_once
from passkit.values.size import Size, symbols_of
from tests.planned import target

o = pk.ops
ROWS = target("cuda", nests=False)
"""The target whose kernels have as many threads for a row as a launch finds best."""


def kernel(*shape: int | None) -> Kernel:
    """Softmax over the last axis."""
    e = o.exp(pk.var("x", shape))
    (made,) = planned(
        pk.Graph([e / o.reduce_sum(e, axis=-1, keepdims=True)]), "CodeGen", target=ROWS
    ).attrs["kernel"].values()  # fmt: skip
    return made  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "length, lanes", [(1, 8), (40, 8), (64, 8), (65, 16), (128, 16), (129, 32), (5000, 32)]
)
def test_short_rows_share_a_warp(length: int, lanes: int) -> None:
    """A thread has eight elements at most before more of them share a row; blocks are as large."""
    found = kernel(1000, length)
    launch = launch_config(found, {}, blocks=1 << 20, threads=256, rows=8)

    values = values_of(found, {})
    assert has_rows(found.ast) and row_lanes(found.ast, values) == lanes
    assert launch.block[0] == lanes and launch.threads <= found.block
    assert launch.threads % 32 == 0


def test_a_launch_knows_lengths_that_a_plan_does_not() -> None:
    """One kernel for rows of any length has the threads that a call's rows need."""
    found = kernel(1000, None)
    (name,) = symbols_of(found.sizes)

    assert row_lanes(found.ast, dict(zip(found.ast.sizes, found.sizes, strict=True))) == 32
    for length, block in ((40, (8, 32)), (100, (16, 14)), (4000, (32, 3))):
        launch = launch_config(found, {name: length}, blocks=1 << 20, threads=256, rows=8)
        assert launch.block == block


@pytest.mark.parametrize("length, rows", [(768, 5), (1024, 8), (1300, 6), (2000, 4), (9000, 1)])
def test_no_warp_is_idle_in_the_last_turn(length: int, rows: int) -> None:
    """A tile of ten rows is taken five at a time, one of eight at once."""
    found = kernel(100_000, length)
    launch = launch_config(found, {}, blocks=1 << 20, threads=256, rows=8, shared_limit=1 << 20)

    assert launch.block == (32, rows)
    assert rows_at_once(found.ast, values_of(found, {}), 1) == 1
    unknown = {name: Size.symbol("n") for name in found.ast.sizes}
    assert rows_at_once(found.ast, unknown, 8) == 8


def test_rows_that_need_much_scratch_are_fewer() -> None:
    """Down to those of one warp."""
    found = kernel(1000, 60)
    launch = launch_config(found, {}, blocks=1, threads=256, rows=8)
    of_row = launch.shared // launch.block[1]

    assert of_row and launch.block == (8, 28)
    for rows in (16, 8, 4):
        launch = launch_config(found, {}, blocks=1, threads=256, rows=8, shared_limit=rows * of_row)
        assert launch.block == (8, rows)
    assert launch_config(found, {}, blocks=1, threads=256, rows=8, shared_limit=1).block == (8, 4)
