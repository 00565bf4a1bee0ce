"""compose: several schedules of loop nests become the schedule of one kernel."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from passkit.diagnostics import Diagnostic
from passkit.ir.loop import WARP, LaunchShape
from passkit.ir.pack import MAX_WORDS, blocks_side_by_side
from passkit.schedule.limits import resident_blocks, shared_nbytes
from passkit.schedule.loop_nest import LoopNest
from passkit.schedule.nest import NestSchedule
from passkit.schedule.pack import PackSchedule
from passkit.target.limits import GpuLimits
from passkit.values.size import Extent, symbols_of

PHASE_REGISTERS = 16
"""The registers of a thread for the loop over the blocks of a phase, about."""
SIZES_OF_PART = 3
"""The size arguments of a part besides those for symbols: its points, and two numbers of blocks."""


def compose(
    schedules: Sequence[NestSchedule], nests: Sequence[LoopNest]
) -> PackSchedule | Diagnostic:
    """Return the schedule of nests in one kernel, or the first reason why it is not legal.

    A multiprocessor has room for as many blocks as every nest counts on, so that none has fewer
    registers than by itself.

    Args:
        schedules: the schedule of each nest.
        nests: the nests, which have no data flow between them.
    """
    pack = PackSchedule(tuple(schedules), common_launch([s.launch for s in schedules]))
    return check_pack(pack, nests) or pack


def common_launch(launches: Sequence[LaunchShape]) -> LaunchShape:
    """Return the threads of a block of a kernel of several nests, which have these.

    They are those of the nest with the most. A multiprocessor has as many blocks as every nest
    counts on.
    """
    threads = max(launch.threads for launch in launches)
    shapes = {(launch.y, launch.x) for launch in launches}
    y, x = shapes.pop() if len(shapes) == 1 else (1, threads)
    blocks = min(launch.blocks * launch.threads // threads for launch in launches)
    return LaunchShape(y, x, max(1, blocks))


def phased_launch(launches: Sequence[LaunchShape], limits: GpuLimits) -> LaunchShape:
    """Return the threads of a block of a kernel whose phases have these.

    A thread has the registers of the phase that counts on the most, and some more for the loop over
    the blocks of a phase. ``limits`` are those of the GPU.
    """
    launch = common_launch(launches)
    most = max(limits.registers // (own.threads * own.blocks) for own in launches)
    registers = min(most + PHASE_REGISTERS, limits.thread_registers)
    blocks = resident_blocks(launch.threads, registers, limits)
    return evolve(launch, blocks=blocks)


def check_pack(pack: PackSchedule, nests: Sequence[LoopNest]) -> Diagnostic | None:
    """Return the first reason why a schedule of nests in one kernel is not legal; None if it is."""
    launch = pack.launch
    arguments = 0
    for part, (schedule, nest) in enumerate(zip(pack.parts, nests, strict=True)):
        own = schedule.launch
        is_apart = own.threads % WARP == 0 and launch.threads % own.threads == 0
        if own.threads != launch.threads and not is_apart:
            data = {"part": part, "threads": own.threads, "all": launch.threads}
            return Diagnostic("pack.threads", data)
        if own.threads * own.blocks < launch.threads * launch.blocks:
            needed, resident = own.threads * own.blocks, launch.threads * launch.blocks
            return Diagnostic("pack.registers", {"part": part, "own": needed, "all": resident})
        arguments += len(nest.graph.inputs) + len(nest.graph.outputs) + SIZES_OF_PART
        arguments += 2 * len(symbols_of(e.shape for e in nest.entries))
    if arguments > MAX_WORDS:
        data = {"parts": len(pack.parts), "count": arguments, "limit": MAX_WORDS}
        return Diagnostic("pack.arguments", data)
    return None


def side_by_side(pack: PackSchedule, nests: Sequence[LoopNest]) -> list[int]:
    """Return how many blocks of each nest a block of the kernel of a pack has."""
    return [
        blocks_side_by_side(pack.launch, own.launch, shared_nbytes(own, nest))
        for own, nest in zip(pack.parts, nests, strict=True)
    ]


def blocks_of_pack(pack: PackSchedule, nests: Sequence[LoopNest]) -> Extent:
    """Return the number of blocks of the grid of a pack."""
    total: Extent = 0
    for schedule, nest, together in zip(pack.parts, nests, side_by_side(pack, nests), strict=True):
        own = schedule.blocks([a.extent for a in nest.axes])
        total = total + (own + (together - 1)) // together
    return total
