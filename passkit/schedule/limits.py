"""Blocks, registers and shared memory that schedules of single loop nests take of a GPU."""

from __future__ import annotations

from passkit.ir.loop import WARP
from passkit.schedule.loop_nest import LoopNest
from passkit.schedule.nest import NestSchedule
from passkit.target.limits import GpuLimits


def resident_blocks(threads: int, registers: int, limits: GpuLimits) -> int:
    """Return how many blocks a multiprocessor should have, for threads with so many registers."""
    rounded = -(-registers // 8) * 8
    most = min(limits.blocks, limits.threads // threads, limits.registers // (threads * rounded))
    return max(1, most)


def held_registers(schedule: NestSchedule, nest: LoopNest) -> int:
    """Return the registers of a thread for cached inputs or staged values, and sums of columns.

    A staged value takes the place of the input that it is computed from, as a rule, so that the
    larger of the two counts.
    """
    traffic = nest.traffic
    nbytes = dict(zip(traffic.streams, traffic.stream_nbytes, strict=True))
    own = (schedule.reduced or schedule.kept).per_thread
    if schedule.transpose is not None:
        turned = {k for k, _ in schedule.transpose.inputs}
        loaded = [r.nbytes for r in traffic.transposed if r.input in turned]
        loaded += [nbytes[k] for k in schedule.cached]
        return sum(-(-n * own // 4) for n in loaded)
    sums = 0
    if schedule.columns is not None:
        own *= schedule.columns.per_thread
        sums = sum(-(-n * schedule.columns.per_thread // 4) for n in nest.total_nbytes)
    cached = sum(-(-nbytes[k] * own // 4) for k in schedule.cached)
    kept = sum(-(-nest.register_nbytes(k) * own // 4) for k in schedule.staged)
    return max(cached, kept) + sums


def shared_nbytes(schedule: NestSchedule, nest: LoopNest) -> int:
    """Return the bytes of shared memory of a block for short rows, sums of columns, or tiles.

    An output of short rows takes the place of an input whose elements have as many bytes.
    """
    launch, columns = schedule.launch, schedule.columns
    if columns is not None:
        return sum(nest.total_nbytes) * columns.chunk * launch.y if launch.y > 1 else 0
    if schedule.transpose is not None:
        turned = {k for k, _ in schedule.transpose.inputs}
        loaded = [r.nbytes for r in nest.traffic.transposed if r.input in turned]
        return sum(loaded) * schedule.transpose.elements
    if schedule.tile is None:
        return 0
    nbytes = dict(zip(nest.traffic.streams, nest.traffic.stream_nbytes, strict=True))
    inputs = [nbytes[k] for k in schedule.cached]
    arrays = list(inputs)
    for n in nest.traffic.output_nbytes:
        if n in inputs:
            inputs.remove(n)
        else:
            arrays.append(n)
    return sum(arrays) * schedule.tile.pitch * WARP * launch.y
