"""The schedule rule of GPUs for nests that read inputs along other axes than their last one."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod

from attrs import evolve

from passkit.ir.loop import Bind
from passkit.planner.gpu import in_registers
from passkit.schedule.actions import Action, CacheTile, LaunchBlocks
from passkit.schedule.apply import distribution
from passkit.schedule.limits import resident_blocks
from passkit.schedule.loop_nest import AxisRole, LoopNest
from passkit.schedule.nest import AxisPart
from passkit.schedule.tiles import NARROW_LANES, TileThreads
from passkit.target import Target
from passkit.target.heuristics import NestHeuristics
from passkit.values.size import Extent


def transpose(nest: LoopNest, target: Target) -> Sequence[Action] | None:
    """Return the schedule of a nest that reads inputs along other axes than its last one.

    A block has a tile, of a power of two of points along the last axis and along each axis of
    consecutive elements of an input. The tiles of these inputs are turned in shared memory.

    Args:
        nest: the nest; without such inputs, or with tiles of few points, the result is None.
        target: the GPU.
    """
    reads = nest.traffic.transposed
    if nest.is_reduced or not reads:
        return None
    axes = sorted({r.axis for r in reads})
    rules = target.rules
    sizes = _tile_sizes(nest, axes, rules)
    volume = prod(sizes)
    if volume < rules.min_tile_points or min(sizes[k] for k in (*axes, -1)) < 2:
        return None
    vector = _tile_vector(nest, axes, sizes, target)
    threads = min(rules.tile_threads, volume // vector)
    lanes = _tile_lanes(nest, vector, rules)
    pitch = _tile_pitch(nest, TileThreads(sizes, vector, lanes, threads), rules)
    inputs = tuple(dict.fromkeys((f"x{r.input}", nest.axes[r.axis].name) for r in reads))
    parts = [AxisPart(Bind.THREAD_X, threads)]
    if volume > threads * vector:
        parts.insert(0, AxisPart(Bind.UNROLL, volume // (threads * vector)))
    if vector > 1:
        parts.append(AxisPart(Bind.VECTOR, vector))
    nbytes = sum(r.nbytes for r in reads)
    held = -(-(nbytes + sum(nest.traffic.stream_nbytes)) * volume // (4 * threads))
    needed = max(32, nest.registers(rules) + held - 8)
    registers = min(target.limits.thread_registers, needed)
    blocks = resident_blocks(threads, registers, target.limits)
    shared = nbytes * prod(sizes[:-1]) * pitch + rules.reserved_tile_bytes
    return (
        *distribution(nest, AxisRole.KEPT, parts),
        *in_registers(nest),
        CacheTile(inputs, sizes, lanes, pitch),
        LaunchBlocks(max(1, min(blocks, rules.resident_tile_bytes // shared))),
    )


def _tile_sizes(nest: LoopNest, axes: Sequence[int], rules: NestHeuristics) -> tuple[int, ...]:
    """Return the points of a tile along each axis of a nest, which is turned along some axes.

    A tile has about ``tile_bytes`` of the widest array. Axes other than the last one and ``axes``
    have one point.
    """
    nbytes = _nbytes(nest)
    volume = rules.tile_bytes // max(nbytes)
    moved = (*axes, len(nest.axes) - 1)
    side = 1 << (volume.bit_length() - 1) // len(moved)
    sizes = [1] * len(nest.axes)
    for k in moved:
        least = min(side, rules.tile_row_bytes // min(nbytes))
        sizes[k] = _tile_size(nest.axes[k].extent, least, side, rules.tile_edge)
    for k in reversed(moved):  # short axes leave room along others
        extent = nest.axes[k].extent
        while prod(sizes) * 2 <= volume and _may_double(extent, sizes[k]):
            sizes[k] *= 2
    return tuple(sizes)


def _nbytes(nest: LoopNest) -> tuple[int, ...]:
    """Return the bytes of an element of each array that a nest reads or writes at each point."""
    traffic = nest.traffic
    turned = (r.nbytes for r in traffic.transposed)
    return (*traffic.stream_nbytes, *traffic.output_nbytes, *turned)


def _tile_size(extent: Extent, least: int, most: int, edge: int) -> int:
    """Return the number of points of a tile along an axis, a power of two.

    An axis of more than ``least`` points gets the size from ``least`` to ``most`` for which all its
    tiles cost least: a tile costs its points and ``edge`` more. A shorter axis gets the next power
    of two, so that it has one tile. A symbolic axis gets ``most``.

    Args:
        extent: the points of the axis, 1 or more.
        least: a power of two.
        most: a power of two, not below ``least``.
        edge: the cost of a tile besides its points.
    """
    if not isinstance(extent, int):
        return most
    if extent <= least:
        return 1 << (extent - 1).bit_length()
    sizes = [most]
    while sizes[-1] > least:
        sizes.append(sizes[-1] // 2)
    return min(sizes, key=lambda n: -(-extent // n) * n * (1 + edge / n))


def _may_double(extent: Extent, size: int) -> bool:
    """Return whether tiles of twice the points along an axis have about as many in all."""
    if not isinstance(extent, int):
        return True
    once, twice = (-(-extent // n) * n for n in (size, 2 * size))
    return twice <= extent * 9 // 8 or twice == once


def _tile_vector(nest: LoopNest, axes: Sequence[int], sizes: Sequence[int], target: Target) -> int:
    """Return the elements of a vector, which divide all rows of a tile that is turned."""
    traffic = nest.traffic
    vector = target.access // max(traffic.nbytes, *_nbytes(nest))
    steps = [nest.axes[-1].extent, *(sizes[k] for k in (*axes, -1))]
    for r in traffic.transposed:
        steps += [r.index.constant, *(c for k, c in enumerate(r.steps) if k != r.axis)]
    for step in steps:
        vector = gcd(vector, step) if isinstance(step, int) else 1
    pairs = zip(sizes, nest.axes, strict=True)
    fits = all(n <= a.extent for n, a in pairs if isinstance(a.extent, int))
    return vector if fits else 1


def _tile_lanes(nest: LoopNest, vector: int, rules: NestHeuristics) -> int:
    """Return how many threads load neighbouring vectors: they have a sector of each array."""
    if vector == 1:
        return NARROW_LANES
    return max(rules.tile_lanes, rules.sector_bytes // (vector * min(_nbytes(nest))))


def _tile_pitch(nest: LoopNest, tile: TileThreads, rules: NestHeuristics) -> int:
    """Return the distance of rows of a tile in shared memory that has the fewest conflicts."""
    last = len(tile.sizes) - 1
    reads = nest.traffic.transposed
    narrow = evolve(tile, vector=1, lanes=NARROW_LANES)

    def turns(pitch: int) -> list[int]:
        axes = [(axis, r.nbytes) for r in reads for axis in (last, r.axis)]
        return [sum(t.turns(axis, pitch, n) for axis, n in axes) for t in (tile, narrow)]

    return min((tile.sizes[-1] + n for n in rules.tile_paddings), key=turns)
