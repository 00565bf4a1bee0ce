"""The number of threads of a row on a GPU, and the blocks that follow from it."""

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
"""The target whose kernels leave the number of threads of a row to the launch."""


def kernel(*shape: int | None) -> Kernel:
    """Return the kernel of a softmax over the last axis."""
    e = o.exp(pk.var("x", shape))
    (result,) = (
        planned(pk.Graph([e / o.reduce_sum(e, axis=-1, keepdims=True)]), "CodeGen", target=ROWS)
        .attrs["kernel"]
        .values()
    )
    return result  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    "length, lanes", [(1, 8), (40, 8), (64, 8), (65, 16), (128, 16), (129, 32), (5000, 32)]
)
def test_short_rows_share_a_warp(length: int, lanes: int) -> None:
    """A thread has at most eight elements before a row has more threads; blocks stay as large."""
    one_kernel = kernel(1000, length)
    launch = launch_config(one_kernel, {}, blocks=1 << 20, threads=256, rows=8)

    values = values_of(one_kernel, {})
    assert has_rows(one_kernel.ast) and row_lanes(one_kernel.ast, values) == lanes
    assert launch.block[0] == lanes and launch.threads <= one_kernel.block
    assert launch.threads % 32 == 0


def test_a_launch_knows_lengths_that_a_plan_does_not() -> None:
    """One kernel for rows of any length has as many threads as the rows of a call need."""
    one_kernel = kernel(1000, None)
    (name,) = symbols_of(one_kernel.sizes)

    assert (
        row_lanes(one_kernel.ast, dict(zip(one_kernel.ast.sizes, one_kernel.sizes, strict=True)))
        == 32
    )
    for length, block in ((40, (8, 32)), (100, (16, 14)), (4000, (32, 3))):
        launch = launch_config(one_kernel, {name: length}, blocks=1 << 20, threads=256, rows=8)
        assert launch.block == block


@pytest.mark.parametrize("length, rows", [(768, 5), (1024, 8), (1300, 6), (2000, 4), (9000, 1)])
def test_no_warp_is_idle_in_the_last_turn(length: int, rows: int) -> None:
    """A tile of ten rows is computed five at a time, one of eight at once."""
    one_kernel = kernel(100_000, length)
    launch = launch_config(
        one_kernel, {}, blocks=1 << 20, threads=256, rows=8, shared_limit=1 << 20
    )

    assert launch.block == (32, rows)
    assert rows_at_once(one_kernel.ast, values_of(one_kernel, {}), 1) == 1
    unknown = {name: Size.symbol("n") for name in one_kernel.ast.sizes}
    assert rows_at_once(one_kernel.ast, unknown, 8) == 8


def test_rows_that_need_much_scratch_are_fewer() -> None:
    """A small limit of shared memory leaves the rows of one warp."""
    one_kernel = kernel(1000, 60)
    launch = launch_config(one_kernel, {}, blocks=1, threads=256, rows=8)
    of_row = launch.shared // launch.block[1]

    assert of_row and launch.block == (8, 28)
    for rows in (16, 8, 4):
        launch = launch_config(
            one_kernel, {}, blocks=1, threads=256, rows=8, shared_limit=rows * of_row
        )
        assert launch.block == (8, rows)
    assert launch_config(one_kernel, {}, blocks=1, threads=256, rows=8, shared_limit=1).block == (
        8,
        4,
    )
