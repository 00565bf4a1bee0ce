"""The rules of legality for schedules of single loop nests on GPUs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import prod

from passkit.diagnostics import Diagnostic
from passkit.ir.loop import Bind
from passkit.schedule.limits import held_registers, shared_nbytes
from passkit.schedule.loop_nest import ONE_ROW, LoopNest
from passkit.schedule.nest import AxisGroup, BlockTile, NestSchedule
from passkit.target import Target

_LOOPS = (Bind.SERIAL, Bind.UNROLL, Bind.VECTOR)
_THREADS = (Bind.THREAD_X, Bind.THREAD_Y)


def check_schedule(schedule: NestSchedule, nest: LoopNest, target: Target) -> Diagnostic | None:
    """Return the first reason why a schedule of a nest is not legal; None if it is.

    Args:
        schedule: the schedule, whose groups cover the axes of the nest.
        nest: the nest.
        target: the GPU.
    """
    checks: tuple[Callable[[NestSchedule, LoopNest, Target], Diagnostic | None], ...] = (
        _check_binds,
        _check_threads,
        _check_vector,
        _check_rows,
        _check_tile,
        _check_memory,
        _check_launch,
    )
    for check in checks:
        problem = check(schedule, nest, target)
        if problem is not None:
            return problem
    return None


def axis_name(nest: LoopNest, group: AxisGroup) -> str:
    """Return the names of the axes of a group, joined by ``*``."""
    return "*".join(nest.axes[k].name for k in group.axes) or ONE_ROW


def _check_binds(schedule: NestSchedule, nest: LoopNest, target: Target) -> Diagnostic | None:
    """Return a part that the lowering has no loop for, as a diagnostic."""
    kept, reduced, columns = schedule.kept, schedule.reduced, schedule.columns
    if reduced is None:
        return _refused("bind.points", kept, nest, (Bind.THREAD_Y,))
    is_serial = any(p.bind is Bind.SERIAL for p in reduced.parts)
    if is_serial and schedule.staged:
        value = nest.value_names[schedule.staged[0]]
        return Diagnostic("bind.serial_rows", {"axis": axis_name(nest, reduced), "value": value})
    if columns is not None:
        return (
            _refused("bind.outer", kept, nest, _LOOPS + _THREADS)
            or _refused("bind.column_rows", reduced, nest, (Bind.THREAD_X, Bind.VECTOR))
            or _refused("bind.columns", columns, nest, (Bind.UNROLL, Bind.THREAD_Y))
            or _check_order(reduced, nest)
        )
    is_short = schedule.tile is not None
    if nest.is_chunked and not (is_serial and schedule.launch.y == 1):
        return Diagnostic("bind.chunks", {"axis": axis_name(nest, reduced)})
    along = _LOOPS if is_short else (*_LOOPS, Bind.THREAD_X)
    across = (Bind.THREAD_Y, Bind.SERIAL) if is_short else (Bind.THREAD_Y,)
    return _refused("bind.rows", kept, nest, along) or _refused(
        "bind.reduced", reduced, nest, across
    )


def _check_order(reduced: AxisGroup, nest: LoopNest) -> Diagnostic | None:
    """Return a diagnostic if the parts of rows in columns stand in another order."""
    order = (Bind.SERIAL, Bind.UNROLL, Bind.THREAD_Y)
    ranks = [order.index(p.bind) for p in reduced.parts]
    if not ranks or ranks[0] != 0 or ranks != sorted(ranks):
        parts = "-".join(map(str, reduced.parts)) or "no part"
        return Diagnostic("bind.order", {"axis": axis_name(nest, reduced), "parts": parts})
    return None


def _refused(
    code: str, group: AxisGroup, nest: LoopNest, binds: Collection[Bind]
) -> Diagnostic | None:
    """Return a diagnostic of a part of the group with one of some binds, None if there is none."""
    for part in group.parts:
        if part.bind in binds:
            return Diagnostic(code, {"axis": axis_name(nest, group), "part": part})
    return None


def _check_threads(schedule: NestSchedule, nest: LoopNest, target: Target) -> Diagnostic | None:
    """Return what is wrong with the threads of a block."""
    launch, warp = schedule.launch, target.warp
    if launch.x & (launch.x - 1):
        return Diagnostic("bind.power_of_two", {"size": launch.x})
    most = target.limits.block_threads
    if launch.threads > most:
        return Diagnostic("bind.threads", {"threads": launch.threads, "limit": most})
    if launch.threads % warp:
        return Diagnostic("bind.partial_warp", {"threads": launch.threads, "warp": warp})
    if not nest.is_column and nest.is_reduced and schedule.lanes > warp and launch.y > 1:
        data = {"rows": launch.y, "threads": schedule.lanes, "warp": warp}
        return Diagnostic("bind.several_rows", data)
    return None


def _check_vector(schedule: NestSchedule, nest: LoopNest, target: Target) -> Diagnostic | None:
    """Return what is wrong with the vector accesses."""
    width, nbytes = schedule.vector, nest.traffic.nbytes
    if schedule.columns is not None:
        width = schedule.columns.size_of(Bind.VECTOR)
        nbytes = max(nbytes, *nest.total_nbytes)
    if width == 1:
        return None
    if width & (width - 1) or width * nbytes > target.access:
        data = {"width": width, "nbytes": nbytes, "limit": target.access}
        return Diagnostic("bind.vector_width", data)
    if nest.is_reduced and nest.vector_length % width:
        last = nest.axes[-1]
        return Diagnostic(
            "bind.vector_length",
            {"width": width, "axis": last.name, "extent": nest.vector_length},
        )
    return None


def _check_rows(schedule: NestSchedule, nest: LoopNest, target: Target) -> Diagnostic | None:
    """Return what is wrong with short rows that move through shared memory."""
    tile, reduced = schedule.tile, schedule.reduced
    if tile is None:
        return None
    if reduced is None:
        return Diagnostic("rows.none")
    if any(k > reduced.axes[0] for k in schedule.kept.axes):
        return Diagnostic("rows.apart", {"axes": " ".join(map(str, nest.axes))})
    length = nest.row_length
    width, inner = tile.vector, reduced.size_of(Bind.VECTOR)
    if reduced.chunk != length or tile.elements * schedule.lanes != length:
        data = {"length": length, "lanes": schedule.lanes, "elements": tile.elements}
        return Diagnostic("rows.parts", data)
    if any(p.bind is Bind.THREAD_X for p in reduced.parts[1:]):
        return Diagnostic("rows.order", {"axis": axis_name(nest, reduced)})
    if schedule.launch.x != target.warp:
        return Diagnostic("rows.warp", {"threads": schedule.launch.x, "warp": target.warp})
    if width < 1 or width & (width - 1) or width * nest.traffic.nbytes > target.access:
        data = {"width": width, "nbytes": nest.traffic.nbytes, "limit": target.access}
        return Diagnostic("bind.vector_width", data)
    if length % width:
        return Diagnostic("rows.vector", {"width": width, "length": length})
    if tile.pitch < tile.elements or tile.pitch % inner:
        data = {"pitch": tile.pitch, "elements": tile.elements, "inner": inner}
        return Diagnostic("rows.pitch", data)
    return None


def _check_tile(schedule: NestSchedule, nest: LoopNest, target: Target) -> Diagnostic | None:
    """Return what is wrong with a tile that moves through shared memory."""
    tile, kept, width = schedule.transpose, schedule.kept, schedule.vector
    if tile is None:
        return None
    if schedule.reduced is not None:
        return Diagnostic("tile.rows", {"axis": axis_name(nest, schedule.reduced)})
    sizes = " x ".join(map(str, tile.sizes))
    points, names = prod(tile.sizes), axis_name(nest, kept)
    are_powers = all(n > 0 and not n & (n - 1) for n in tile.sizes)
    if len(tile.sizes) != len(kept.axes) or not are_powers or points != kept.chunk:
        data = {"sizes": sizes, "axes": names, "points": kept.chunk, "chunk": points}
        return Diagnostic("tile.axes", data)
    moved = {len(tile.sizes) - 1, *(axis for _, axis in tile.inputs)}
    lanes = tile.lanes
    if lanes < 1 or lanes & (lanes - 1) or any(tile.sizes[k] % width for k in moved):
        return Diagnostic("tile.vector", {"width": width, "lanes": lanes, "sizes": sizes})
    if tile.pitch < tile.sizes[-1]:
        return Diagnostic("tile.pitch", {"size": tile.sizes[-1], "pitch": tile.pitch})
    return _check_steps(tile, nest, width, target)


def _check_steps(tile: BlockTile, nest: LoopNest, width: int, target: Target) -> Diagnostic | None:
    """Return which array of a tile has vectors that are not aligned to ``width`` elements."""
    if width == 1:
        return None
    last = nest.axes[-1]
    own = ("outputs", last.name, last.extent)
    steps = [own] if len(nest.axes) > 1 else []
    for read in nest.traffic.transposed:
        if (read.input, read.axis) in tile.inputs:
            if width * read.nbytes > target.access:
                access = {"width": width, "nbytes": read.nbytes, "limit": target.access}
                return Diagnostic("bind.vector_width", access)
            pairs = enumerate(zip(nest.axes, read.steps, strict=True))
            steps += [(f"x{read.input}", a.name, c) for k, (a, c) in pairs if k != read.axis]
            steps.append((f"x{read.input}", nest.axes[read.axis].name, read.index.constant))
    for array, axis, step in steps:
        if not isinstance(step, int) or step % width:
            where = {"width": width, "array": array, "step": step, "axis": axis}
            return Diagnostic("tile.vector_steps", where)
    return None


def _check_memory(schedule: NestSchedule, nest: LoopNest, target: Target) -> Diagnostic | None:
    """Return a diagnostic if a block or thread would hold or repeat too much."""
    group = schedule.reduced or schedule.kept
    held = held_registers(schedule, nest)
    limit = target.limits.thread_registers - target.rules.base_registers
    if held > limit:
        return Diagnostic("limit.registers", {"count": held, "limit": limit})
    nbytes = shared_nbytes(schedule, nest)
    if nbytes > target.scratch:
        return Diagnostic("memory.shared", {"nbytes": nbytes, "limit": target.scratch})
    copies = group.size_of(Bind.UNROLL) * group.size_of(Bind.VECTOR)
    count = nest.operations * copies
    if copies > 1 and count > target.rules.unrolled_ops:
        return Diagnostic("limit.unroll", {"count": count, "limit": target.rules.unrolled_ops})
    return None


def _check_launch(schedule: NestSchedule, nest: LoopNest, target: Target) -> Diagnostic | None:
    """Return a diagnostic if a multiprocessor has no room for its blocks."""
    blocks, threads = schedule.launch.blocks, schedule.launch.threads
    limits = target.limits
    most = min(limits.blocks, limits.threads // threads)
    if not 1 <= blocks <= most:
        return Diagnostic("launch.blocks", {"blocks": blocks, "threads": threads, "limit": most})
    needed = target.rules.min_registers + held_registers(schedule, nest)
    limit = limits.registers // (blocks * threads)
    if limit < needed:
        data = {"blocks": blocks, "threads": threads, "registers": limit, "needed": needed}
        return Diagnostic("launch.registers", data)
    return None
