"""Whether a schedule of a stitched kernel is legal: what its maps must have."""

from __future__ import annotations

from passkit.diagnostics import Diagnostic
from passkit.ir.loop import WARP
from passkit.ir.pack import STATIC_SHARED_NBYTES
from passkit.schedule.block import BlockSchedule, PointMap, ProductMap, RowMap
from passkit.schedule.block_memory import with_arrays
from passkit.schedule.block_nest import (
    VECTOR,
    BlockNest,
    PointPart,
    ProductPart,
    RowPart,
)
from passkit.target import Target


def check_block(schedule: BlockSchedule, nest: BlockNest, target: Target) -> Diagnostic | None:
    """Return the first reason why a schedule is not legal, or None.

    Args:
        schedule: the schedule; its arrays are not looked at, they follow from the maps.
        nest: the parts of the kernel.
        target: the GPU.
    """
    threads, limits = schedule.threads, target.limits
    if not 0 < threads <= limits.block_threads:
        return Diagnostic("bind.threads", {"threads": threads, "limit": limits.block_threads})
    if threads % WARP:
        return Diagnostic("bind.partial_warp", {"threads": threads, "warp": WARP})
    most = min(limits.blocks, limits.threads // threads)
    if not 1 <= schedule.blocks <= most:
        data = {"blocks": schedule.blocks, "threads": threads, "limit": most}
        return Diagnostic("launch.blocks", data)
    for number, (part, own) in enumerate(zip(nest.parts, schedule.parts, strict=True)):
        if isinstance(part, ProductPart):
            assert isinstance(own, ProductMap)
            problem = _check_product(number, part, own, threads, target.rules.unrolled_ops)
        elif isinstance(part, RowPart):
            assert isinstance(own, RowMap)
            problem = _check_rows(number, part, own)
        else:
            assert isinstance(own, PointMap)
            problem = _check_points(number, part, own)
        if problem is not None:
            return problem
    nbytes, limit = (
        with_arrays(nest, schedule).shared_nbytes,
        min(STATIC_SHARED_NBYTES, target.scratch),
    )
    if nbytes > limit:
        return Diagnostic("memory.shared", {"nbytes": nbytes, "limit": limit})
    return None


def _check_product(
    number: int, part: ProductPart, own: ProductMap, threads: int, most_unrolled: int
) -> Diagnostic | None:
    """Return why the map of a product is not legal: it covers the result, and steps are whole."""
    sides = (
        ("m", own.rows, own.down, part.rows),
        ("n", own.columns, own.across, part.columns),
    )
    for axis, size, count, extent in sides:
        if size < 1 or count < 1 or size * count < extent:
            data = {"axis": f"p{number}.{axis}", "count": size * count, "extent": extent}
            return Diagnostic("axis.uncovered", data)
    needed = part.heads * own.down * own.across
    if needed > threads:
        data = {"part": f"p{number}", "needed": needed, "threads": threads}
        return Diagnostic("block.threads", data)
    if own.step < 1 or (own.step % VECTOR and own.step != part.steps):
        return Diagnostic("block.step", {"part": f"p{number}", "step": own.step, "width": VECTOR})
    if own.chunk is not None and (part.heads > 1 or own.chunk < 1 or own.chunk % VECTOR):
        data = {"part": f"p{number}", "chunk": own.chunk, "width": VECTOR}
        return Diagnostic("block.chunk", data)
    count = own.rows * own.columns * own.step
    if count > most_unrolled:
        return Diagnostic("limit.unroll", {"count": count, "limit": most_unrolled})
    return None


def _check_points(number: int, part: PointPart, own: PointMap) -> Diagnostic | None:
    """Return why the map of points is not legal: threads share out a loop if they may."""
    most = WARP if part.steps else 1
    if not 1 <= own.lanes <= most or most % own.lanes:
        data = {"part": f"p{number}", "lanes": own.lanes, "most": most}
        return Diagnostic("block.points", data)
    return None


def _check_rows(number: int, part: RowPart, own: RowMap) -> Diagnostic | None:
    """Return why the map of rows is not legal: a row has a part of a warp, and whole vectors."""
    lanes = own.lanes
    if lanes < 1 or WARP % lanes:
        return Diagnostic("block.lanes", {"part": f"p{number}", "lanes": lanes, "warp": WARP})
    if own.vector != part.vector:
        data = {"part": f"p{number}", "width": own.vector, "vector": part.vector}
        return Diagnostic("block.vector", data)
    if own.is_serial and part.has_kept:
        return Diagnostic("block.serial", {"part": f"p{number}"})
    return None
