"""Costs of tiles: matrix products, and the overhead of rows, nests and tiles.

Extents that only a call knows are taken to be `USUAL`.
"""

from __future__ import annotations

from passkit.analysis.domain import ValueKind
from passkit.analysis.recompute import is_expensive
from passkit.analysis.tilemap import TileMap, guessed
from passkit.ast.folds import Contract
from passkit.graph.attribute_calls import reduce_of
from passkit.schedule.idle import Work, busy_seconds, tile_grid
from passkit.schedule.nest_info import USUAL, NestInfo
from passkit.schedule.roofline import waiting_seconds
from passkit.schedule.schedule import Schedule
from passkit.schedule.tiling import Composition
from passkit.target import Target
from passkit.values.size import Extent, numel


def product_seconds(contract: Contract, tile_map: TileMap, target: Target) -> float:
    """Return the seconds of a matrix product, of which each tile has a part.

    A processor computes several rows at a time, and transposes a right operand for each tile.

    Args:
        contract: the product.
        tile_map: the part of its result that a tile has.
        target: the machine.
    """
    *batch, m, n = tile_map.part
    rows, columns, steps = (_usual(size) for size in (m, n, contract.k))
    products = _usual(tile_map.tiles * numel(batch))
    if target.lanes == 1:
        return products * rows * columns * steps / target.machine.kernel_steps
    lanes, machine = target.lanes, target.machine
    vectors = -(-columns // lanes)
    blocks = -(-vectors // target.tiling.product_vectors)
    height = next(n for n in target.tiling.product_heights if n <= max(1, rows))
    step = max(machine.chain_seconds, height * vectors / blocks * lanes / machine.kernel_steps)
    seconds = -(-rows // height) * blocks * steps * step
    if contract.transpose_b:
        each = (
            machine.transposed_block_seconds
            if min(columns, steps) >= lanes
            else machine.transposed_seconds
        )
        seconds += columns * steps * each
    return products * seconds


def nest_work(nest: NestInfo, schedule: Schedule, tiles: Extent, target: Target) -> Work:
    """Return the work of a nest: its points as often as tiles compute them, and its rows."""
    points = Work(schedule.seconds, waiting_seconds(nest.group.graph, target))
    rows = Work(_row_overhead(nest, schedule, tiles, target))
    return points.times(_repeated(nest, tiles)) + rows


def tile_seconds(
    work: Work, tiles: Extent, nests: int, scratch: Extent, moving: float, target: Target
) -> float:
    """Return the seconds of a kernel of several nests.

    Args:
        work: the work of the nests.
        tiles: the number of tiles.
        nests: the number of nests.
        scratch: the bytes of scratch of a tile.
        moving: the seconds of the bytes that the kernel reads and writes at least.
        target: the machine.
    """
    count, nbytes = _usual(tiles), _usual(scratch)
    if nbytes > target.machine.scratch_bytes:
        work += Work(count * nbytes * 2 * target.machine.scratch_byte_seconds)
    work = work.times(target.slowdown(target.tiling.free_registers, nbytes))
    work += Work(count * nests * target.machine.tile_seconds)
    busy = busy_seconds(work, moving, tile_grid(tiles, target), target)
    return max(work.seconds * imbalance(count), busy)


def _usual(size: Extent) -> int:
    """Return a size as if every extent that only a call knows were `USUAL`."""
    return guessed(size, USUAL)


def row_seconds(
    schedule: Schedule, has_reductions: bool, target: Target, functions: int = 0
) -> float:
    """Return the seconds of a row besides its points.

    These are the starts of its passes, the ends of its reductions and its expensive values.

    Args:
        schedule: the schedule of the nest.
        has_reductions: whether reductions run along rows.
        target: the machine.
        functions: the number of expensive values of a row.
    """
    passes = [s for s in schedule.stages if s.reduces or s.staged or s.stores]
    reductions = sum(len(s.reduces) for s in passes) if has_reductions else 0
    machine = target.machine
    seconds = (
        len(passes) * machine.row_pass_seconds
        + reductions * machine.row_reduction_seconds
        + functions * machine.row_function_seconds
    )
    is_short = schedule.composition is Composition.SHORT
    return seconds / (target.tiling.short_rows_at_once if is_short else 1)


def imbalance(tiles: int) -> float:
    """Return the factor of time where threads have too few tiles for an even load."""
    return 1.0 + 2.0 / tiles


def _row_overhead(nest: NestInfo, schedule: Schedule, tiles: Extent, target: Target) -> float:
    """Return the seconds of the rows of a nest that reduces along rows, besides its points."""
    if not nest.info.domain.axes[-1].reduced:
        return 0.0
    rows = tiles
    for axis in nest.info.domain.kept:
        rows = rows * nest.domain_tile.length(axis)
    functions = [
        n
        for n, kind in nest.info.kinds.items()
        if kind is ValueKind.REDUCED and not reduce_of(n) and is_expensive(n)
    ]
    return _usual(rows) * row_seconds(schedule, True, target, len(functions))


def _repeated(nest: NestInfo, tiles: Extent) -> float:
    """Return how often the points of a nest are computed, with the idle elements of vectors."""
    domain = nest.info.domain
    points: Extent = tiles
    for axis in domain.axes:
        length = nest.domain_tile.length(axis)
        if axis is domain.axes[-1]:
            length = -(-_usual(length) // 16) * 16
        points = points * length
    return _usual(points) / max(1, _usual(domain.size))
