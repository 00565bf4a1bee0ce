"""Idle multiprocessors: what part of a GPU the blocks of a kernel keep busy.

A block runs on one multiprocessor, so that few blocks begin few instructions in a cycle. Memory is
as fast as it can be only if enough bytes are on their way: by Little's law those that it moves in
the time from a load to its value, ``machine.in_flight_bytes``. A block has as many on their way as
its threads load before they compute.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from passkit.analysis.domain import Domain
from passkit.analysis.group import Group
from passkit.graph.attribute_calls import scan_of
from passkit.schedule.roofline import least_bytes
from passkit.schedule.schedule import Schedule
from passkit.schedule.tile_loops import tiles_of
from passkit.target import Target
from passkit.values.size import Extent, numel

UNSURE_SHARE = 0.1
"""Share of a launch's seconds within which idle time is not counted: chosen, not measured."""
ROW_VECTORS = 4
"""Vectors of a row that a thread has in registers, about: the rules of rows give it 2 to 8."""
ROW_THREADS = 128
"""Threads of a block of rows, at least: as many rows as fit."""
WORD = 4
"""Bytes of an element, about: those of float32."""


@frozen
class Grid:
    """The blocks of a kernel.

    Attributes:
        blocks: their number.
        nbytes: bytes that the threads of all of them load before they compute.
    """

    blocks: Extent
    nbytes: Extent

    def __add__(self, other: Grid) -> Grid:
        """Return the blocks of two kernels that run side by side."""
        return Grid(self.blocks + other.blocks, self.nbytes + other.nbytes)


@frozen
class Work:
    """The work of a kernel, or of a part of it, where no part of the machine is idle.

    Attributes:
        seconds: its seconds.
        waiting: those of them in which all instructions wait for memory.
    """

    seconds: float
    waiting: float = 0.0

    def __add__(self, other: Work) -> Work:
        """Return the work of two, one after the other."""
        return Work(self.seconds + other.seconds, self.waiting + other.waiting)

    def times(self, factor: float) -> Work:
        """Return so many times the work."""
        return Work(self.seconds * factor, self.waiting * factor)


NO_WORK = Work(0.0)


def total_work(works: Iterable[Work]) -> Work:
    """Return the work of several, one after the other."""
    each = list(works)
    return Work(sum(w.seconds for w in each), sum(w.waiting for w in each))


def busy_seconds(work: Work, moving: float, grid: Grid, target: Target) -> float:
    """Return the seconds of a kernel whose blocks may leave multiprocessors of a GPU idle.

    Idle time below ``UNSURE_SHARE`` of a launch does not count, so that very short kernels have the
    schedule with the least work. A machine without ``in_flight_bytes`` has no idle time, and an
    unknown number of blocks is taken as enough.

    Args:
        work: what it does.
        moving: the seconds in which the bytes of its inputs and results are moved, with enough
            blocks.
        grid: its blocks.
        target: the machine.
    """
    machine = target.machine
    if not machine.in_flight_bytes:
        return work.seconds
    if not isinstance(grid.blocks, int) or not isinstance(grid.nbytes, int) or not grid.nbytes:
        return work.seconds
    issued = min(1.0, grid.blocks / machine.min_tiles)
    in_flight = min(1.0, grid.nbytes / machine.in_flight_bytes)
    idle = max((work.seconds - work.waiting) / issued, moving / in_flight)
    return max(work.seconds, idle - UNSURE_SHARE * target.launch)


def tile_grid(tiles: Extent, target: Target) -> Grid:
    """Return the grid of a kernel that has a block for each of so many tiles."""
    return Grid(tiles, tiles * (target.block * target.rules.loaded_bytes))


def grid_of(group: Group, schedule: Schedule, target: Target) -> Grid:
    """Return the grid of a kernel without parts.

    Threads without a loop load all that they read before they compute.

    That of a single loop nest is estimated from the lengths of its axes, about as the rules of GPUs
    (`passkit.planner.gpu`) choose it: fusion compares groups whose loop nests have no schedule yet.
    Scans have no such rule.

    Args:
        group: the group.
        schedule: its schedule.
        target: a GPU.
    """
    domain = schedule.domain
    if schedule.multi_nest is not None or any(map(scan_of, group.ops)):
        return tile_grid(tiles_of(schedule), target)
    if not domain.reduced:
        blocks = _ceil(domain.size, target.block * target.access // WORD)
        own = tile_grid(blocks, target).nbytes
        return Grid(blocks, max(own, least_bytes(group.graph)) if isinstance(own, int) else own)
    if domain.axes[-1].reduced:
        return _grid_of_rows(domain, target)
    return _grid_of_columns(schedule, target)


def _grid_of_rows(domain: Domain, target: Target) -> Grid:
    """Return the grid of rows, of one of which each thread has vectors."""
    rows = numel(a.extent for a in domain.kept)
    length = numel(a.length for a in domain.reduced)
    if not isinstance(length, int):
        return Grid(length, length)
    nbytes = ROW_VECTORS * target.access
    lanes = min(target.rules.column_threads, max(1, length * WORD // nbytes))
    threads = max(ROW_THREADS, lanes)
    blocks = _ceil(rows * lanes, threads)
    return Grid(blocks, blocks * (threads * nbytes))


def _grid_of_columns(schedule: Schedule, target: Target) -> Grid:
    """Return the grid of columns, of which a block has some side by side.

    The columns of a block that one stage reads are a vector for each thread of a warp; those that
    several read are ``column_bytes``.
    """
    rules, last = target.rules, schedule.domain.axes[-1]
    stages = [s for s in schedule.stages if s.reduces or s.staged or s.stores]
    is_read_once = len(stages) == 1 and not (stages[0].stores or stages[0].staged)
    nbytes = target.warp * target.access if is_read_once else rules.column_bytes
    others = numel(a.extent for a in schedule.domain.kept if a is not last)
    blocks = others * _ceil(last.extent, nbytes // WORD)
    return Grid(blocks, blocks * (rules.column_threads * rules.column_unroll * target.access))


def _ceil(count: Extent, step: int) -> Extent:
    """Return ``count / step``, rounded up."""
    return (count + (step - 1)) // step
