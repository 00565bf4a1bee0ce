"""The maps of the parts of stitched kernels on GPUs, each with its instructions."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from passkit.ir.loop import WARP
from passkit.schedule.block import BlockMap, PointMap, ProductMap, RowMap
from passkit.schedule.block_memory import vector_of
from passkit.schedule.block_nest import (
    MOST_VECTORS,
    VECTOR,
    BlockPart,
    PointPart,
    ProductPart,
    RowPart,
)

REGISTERS = 112
"""The registers of a thread for the elements of a product and its operands, at most."""
STEP_PRODUCTS = 128
"""The fused multiply-adds of a thread in an iteration of the loop, at least."""
ROW_VECTORS = 6
"""The vectors of a row that a thread has, if more threads can share it."""
SIDES = (1, 2, 3, 4, 6, 8, 12)
"""The rows, or columns, of a register block."""
POINT = 64
"""The instructions, and the registers, of a thread for one point of its own, about."""
STEP = 8
"""The instructions of an iteration of a point's serial loop, about."""
MOST_POINTS = 4096
"""The points of a tile that threads compute one by one, at most."""
LATENCY = 256
"""The instructions in the time of which the accesses of a point's values return, about."""
POINT_STEPS = 8
"""The iterations of such a loop that a thread has at least."""
UNROLL = 4
"""The vectors that a thread of such a row loads at a time."""
IDLE = 8
"""An idle thread counts as this fraction of one that computes."""


def map_of(
    part: BlockPart, threads: int, may_be_serial: bool = False
) -> tuple[float, BlockMap] | None:
    """Return the map of a part for so many threads, and its instructions; None if it has none.

    ``may_be_serial`` says whether threads may go through long rows in serial loops.
    """
    if isinstance(part, ProductPart):
        return _product_map(part, threads)
    if isinstance(part, RowPart):
        return _row_map(part, threads, may_be_serial)
    return _point_map(part, threads)


def _point_map(part: PointPart, threads: int) -> tuple[float, PointMap] | None:
    """Return the map of a part whose points belong to threads, and its instructions.

    None if there are so many points that accesses of single elements would take long. The threads
    of a point, at most a warp for rows of few points, are as many in any tile: they follow from the
    length of a whole row.
    """
    if part.rows * part.columns > MOST_POINTS:
        return None
    lanes = 1
    length = part.length if isinstance(part.length, int) else WARP
    most = min(WARP // length, part.steps // POINT_STEPS)
    while lanes * 2 <= most:
        lanes *= 2
    passes = -(-part.rows * part.columns * lanes // threads)
    each = threads / WARP * (POINT + part.steps // lanes * STEP)
    return passes * (each + LATENCY), PointMap(lanes)


# Products.


@frozen
class _Side:
    """The rows or columns of a register block: how many, and the loads for one step."""

    size: int
    loads: float
    registers: int


def _sides(is_along: bool, steps: int) -> Iterator[_Side]:
    """Yield the sides of a register block for an operand.

    ``is_along`` says that its elements follow each other along ``steps``.
    """
    for size in SIDES:
        if is_along:
            at_once = min(VECTOR, steps)
            yield _Side(size, size / at_once if steps >= VECTOR else size, size * at_once)
        else:
            yield _Side(size, size / vector_of(size), size)


def _product_map(part: ProductPart, threads: int) -> tuple[float, ProductMap] | None:
    """Return the map of a product with the fewest instructions, and their number."""
    best: tuple[float, ProductMap] | None = None
    steps = part.steps
    for rows in _sides(part.a.is_along, steps):
        for columns in _sides(part.b.is_along, steps):
            down, across = -(-part.rows // rows.size), -(-part.columns // columns.size)
            products = rows.size * columns.size
            if products + rows.registers + columns.registers > REGISTERS:
                continue
            used_threads = part.heads * down * across
            if used_threads > threads:
                continue
            step = min(steps, max(VECTOR, -(-STEP_PRODUCTS // products // VECTOR) * VECTOR))
            warps = -(-used_threads // WARP)
            used = warps + (threads / WARP - warps) / IDLE
            each = steps * (products + rows.loads + columns.loads) + 6 * steps / step
            cost = used * (each + products / vector_of(columns.size) + 25)
            if best is None or cost < best[0]:
                best = cost, ProductMap(rows.size, columns.size, down, across, step)
    return best


# Rows.


def _row_map(part: RowPart, threads: int, may_be_serial: bool) -> tuple[float, RowMap] | None:
    """Return the map of a part with rows and its instructions; None if rows are too long.

    A row that is reduced has as many threads in any tile. A longer one has a warp, whose threads go
    through it in serial loops, if they may: ``may_be_serial``.
    """
    vector = part.vector
    vectors = -(-part.length // vector)
    if part.is_long and may_be_serial:
        used = min(threads, part.rows * WARP)
        passes = -(-part.rows * WARP // used)
        each = -(-vectors // WARP) * (vector * 16 + LATENCY / UNROLL)
        return passes * used / WARP * each, RowMap(WARP, vector, is_serial=True)
    counts = [n for n in (1, 2, 4, 8, 16, WARP) if n < 2 * vectors]
    if part.is_reduced:
        lanes = next((n for n in counts if vectors <= n * ROW_VECTORS), WARP)
        if vectors > lanes * MOST_VECTORS:
            return None
        counts = [lanes]
    costs = []
    for lanes in counts:
        used = min(threads, -(-part.rows * lanes // WARP) * WARP)
        own, passes = -(-vectors // lanes), -(-part.rows * lanes // used)
        each = own * vector * 16 + 70 if part.is_reduced else own * 14
        if own <= 4 * MOST_VECTORS:
            costs.append((passes * used / WARP * each, -lanes))  # side by side, if it may be
    if not costs:
        return None
    cost, lanes = min(costs)
    return cost, RowMap(-lanes, vector)
