"""Figures of a launch in CUDA: its blocks, their threads, and their shared memory."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from passkit.ast.stage import Place
from passkit.dialects.row_lanes import WARP, has_rows, row_lanes, rows_at_once
from passkit.plan.kernel import Kernel
from passkit.plan.target import KIB
from passkit.sharing.shared import ALIGN
from passkit.sharing.sharing import aligned
from passkit.values.size import evaluate, known_or_zero

USUAL = 48 * KIB
"""Shared memory that every device gives a block; with more, few blocks are on a processor."""


@frozen
class Figures:
    """How a kernel is launched: blocks, the threads of each across and down, shared bytes."""

    grid: int
    block: tuple[int, int]
    shared: int

    @property
    def threads(self) -> int:
        """The threads of a block."""
        return self.block[0] * self.block[1]


def figures(
    kernel: Kernel,
    sizes: Mapping[str, int],
    *,
    blocks: int,
    threads: int,
    rows: int,
    usual: int = USUAL,
) -> Figures:
    """The figures of a kernel for values of the graph's sizes.

    A block has so many ``threads``, or where a tile has rows, so many ``rows`` of a warp each, or
    several times as many where short rows share one: fewer, down to those of a warp, while their
    scratch takes more than ``usual`` bytes, and less what would be idle in the last of a tile's
    turns. The tiles are shared out over at most so many ``blocks``.
    """
    values, lanes, many = values_of(kernel, sizes), threads, 1
    if has_rows(kernel.ast):
        lanes = row_lanes(kernel.ast, values)
        each = WARP // lanes  # of a warp: blocks have whole ones
        many = rows * each
        while shared_nbytes(kernel, values, many) > usual and many > each:
            many -= each
        many = -(-rows_at_once(kernel.ast, values, many) // each) * each
    shared = shared_nbytes(kernel, values, many)
    return Figures(min(evaluate(kernel.grid, sizes), blocks), (lanes, many), shared)


def numbers_of(kernel: Kernel, sizes: Mapping[str, int]) -> list[int]:
    """The numbers that a launch gives a kernel. A phase without work may lack some of them."""
    known = known_or_zero if kernel.phases else evaluate
    return [known(n, sizes) for n in kernel.sizes]


def values_of(kernel: Kernel, sizes: Mapping[str, int]) -> dict[str, int]:
    """The numbers of a kernel by the names that its AST has for them."""
    return dict(zip(kernel.ast.sizes, numbers_of(kernel, sizes), strict=True))


def shared_nbytes(kernel: Kernel, values: Mapping[str, int], rows: int) -> int:
    """The dynamic shared memory of a block: a tile's arrays, then those of each row."""
    ends = {False: 0, True: 0}
    for b in kernel.ast.scratch:
        if b.place is not Place.SHARED:
            continue
        nbytes = int(aligned(evaluate(b.extent, values) * b.dtype.nbytes, ALIGN))
        if b.offset is None:
            ends[b.of_row] += nbytes
        else:
            ends[b.of_row] = max(ends[b.of_row], evaluate(b.offset, values) + nbytes)
    return ends[False] + rows * ends[True]
