"""Launch configuration of kernels in CUDA: blocks, the threads of a block, and shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from passkit.analysis.slots import aligned
from passkit.ast.stage import KernelAST, Place
from passkit.graph.kernel import Kernel
from passkit.schedule.shared_plan import ALIGN
from passkit.target import KIB
from passkit.transforms.row_threads import WARP, has_rows, row_lanes, rows_at_once
from passkit.values.size import evaluate, known_or_zero

DEFAULT_SHARED_NBYTES = 48 * KIB
"""Shared memory that every device gives a block; with more, few blocks fit on a multiprocessor."""


@frozen
class LaunchConfig:
    """How a kernel is launched.

    Attributes:
        grid: The number of blocks.
        block: The threads of a block along x and y.
        shared: Dynamic shared memory of a block in bytes.
    """

    grid: int
    block: tuple[int, int]
    shared: int

    @property
    def threads(self) -> int:
        """Return the number of threads of a block."""
        return self.block[0] * self.block[1]


def launch_config(
    kernel: Kernel,
    sizes: Mapping[str, int],
    *,
    blocks: int,
    threads: int,
    rows: int,
    shared_limit: int = DEFAULT_SHARED_NBYTES,
) -> LaunchConfig:
    """Choose the launch configuration of a kernel for values of the graph's sizes.

    The tiles of a kernel are distributed over its blocks. A kernel whose tiles have rows gives each
    row a warp, or part of one where rows are short. It has fewer rows at a time while their scratch
    exceeds ``shared_limit``, and no more than the last iteration over a tile's rows keeps busy. A
    kernel in loop IR has the threads of its schedule, and a block for each tile, unless it has
    phases.

    Args:
        kernel: The kernel.
        sizes: The value of each symbolic size of the graph.
        blocks: The most blocks of a grid.
        threads: The threads of a block, for kernels without rows.
        rows: The most warps of a block, for kernels with rows.
        shared_limit: Bytes of shared memory beyond which the number of rows is reduced.

    Raises:
        ShapeError: A size has no value in ``sizes``.
    """
    if not isinstance(kernel.ast, KernelAST):
        launch = kernel.ast.launch
        grid = evaluate(kernel.grid, sizes)
        if kernel.phases:  # a block goes through several blocks of a phase
            grid = min(grid, blocks)
        return LaunchConfig(grid, (launch.x, launch.y), 0)
    values = values_of(kernel, sizes)
    width, height = threads, 1
    if has_rows(kernel.ast):
        width = row_lanes(kernel.ast, values)
        rows_per_warp = WARP // width  # blocks consist of complete warps
        height = rows * rows_per_warp
        while shared_nbytes(kernel, values, height) > shared_limit and height > rows_per_warp:
            height -= rows_per_warp
        rows_needed = rows_at_once(kernel.ast, values, height)
        height = -(-rows_needed // rows_per_warp) * rows_per_warp
    shared = shared_nbytes(kernel, values, height)
    return LaunchConfig(min(evaluate(kernel.grid, sizes), blocks), (width, height), shared)


def size_arguments(kernel: Kernel, sizes: Mapping[str, int]) -> list[int]:
    """Return the values of a kernel's size arguments, in their order.

    In a kernel with phases, one that divides by zero is 0: the phase that uses it has no work.
    Raises: ShapeError where a size has no value in ``sizes``, or divides by zero in a kernel
    without phases.
    """
    value = known_or_zero if kernel.phases else evaluate
    return [value(n, sizes) for n in kernel.sizes]


def values_of(kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, int]:
    """Return the values of a kernel's size arguments by their names in its AST.

    One that divides by zero is 0 in a kernel with phases. Raises: ShapeError where a size of the
    graph has no value in ``sizes``, or divides by zero in a kernel without phases.
    """
    return dict(zip(kernel.ast.sizes, size_arguments(kernel, sizes), strict=True))


def shared_nbytes(kernel: Kernel, values: Mapping[str, int], rows: int) -> int:
    """Return the bytes of dynamic shared memory of a block: a tile's arrays, then each row's.

    ``kernel`` has the arrays; only those in shared memory count. ``values`` are those of the size
    arguments, ``rows`` the rows that a block computes at a time. Raises: ShapeError where a size
    argument has no value.
    """
    ends = {False: 0, True: 0}
    for buffer in kernel.ast.scratch:
        if buffer.place is not Place.SHARED:
            continue
        nbytes = int(aligned(evaluate(buffer.extent, values) * buffer.dtype.nbytes, ALIGN))
        if buffer.offset is None:
            ends[buffer.of_row] += nbytes
        else:
            end = evaluate(buffer.offset, values) + nbytes
            ends[buffer.of_row] = max(ends[buffer.of_row], end)
    return ends[False] + rows * ends[True]
