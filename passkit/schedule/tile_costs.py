"""What kernels take besides work, by the model: rows, parts and tiles that begin and end.

Extents that only a call knows are taken to be `USUAL`.
"""

from __future__ import annotations

from passkit.analysis.domain import ValueKind
from passkit.analysis.recompute import is_expensive
from passkit.analysis.tilemap import TileMap, guessed
from passkit.ast.folds import Contract
from passkit.graph.attribute_calls import reduce_of
from passkit.schedule.nest_info import USUAL, NestInfo
from passkit.schedule.schedule import Schedule
from passkit.schedule.tiling import Composition
from passkit.target import Target
from passkit.values.size import Extent, numel


def product_seconds(contract: Contract, tile_map: TileMap, target: Target) -> float:
    """Return the seconds of a product of matrices, of which each tile has a part.

    A processor takes some rows at a time, and turns a right operand anew for each tile.
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


def part_seconds(laid: NestInfo, plan: Schedule, tiles: Extent, target: Target) -> float:
    """Of a part with loops of its own: its points as often as tiles compute them, and its rows."""
    return plan.seconds * _repeated(laid, tiles) + _between(laid, plan, tiles, target)


def tile_seconds(
    seconds: float, tiles: Extent, parts: int, scratch: Extent, target: Target
) -> float:
    """Of the whole kernel, whose parts take ``seconds``; a tile has so many bytes of scratch."""
    many, nbytes = _usual(tiles), _usual(scratch)
    if nbytes > target.machine.scratch_bytes:
        seconds += many * nbytes * 2 * target.machine.scratch_byte_seconds
    seconds *= target.slowdown(target.tiling.free_registers, nbytes)
    return (seconds + many * parts * target.machine.tile_seconds) * imbalance(many)


def _usual(size: Extent) -> int:
    return guessed(size, USUAL)


def row_seconds(plan: Schedule, folds: bool, target: Target, curves: int = 0) -> float:
    """Of a row, besides its points: its passes, the ends of its folds, and its expensive values."""
    passes = [s for s in plan.stages if s.reduces or s.staged or s.stores]
    ends = sum(len(s.reduces) for s in passes) if folds else 0
    machine = target.machine
    each = (
        len(passes) * machine.row_pass_seconds
        + ends * machine.row_reduction_seconds
        + curves * machine.row_function_seconds
    )
    return each / (target.tiling.short_rows_at_once if plan.composition is Composition.SHORT else 1)


def imbalance(tiles: int) -> float:
    """How much longer threads take that have too few tiles to share them evenly."""
    return 1.0 + 2.0 / tiles


def _between(laid: NestInfo, plan: Schedule, tiles: Extent, target: Target) -> float:
    """Seconds between the passes over rows, and at the ends of their folds."""
    lane, rows = laid.info.domain.axes[-1], tiles
    if not lane.reduced:
        return 0.0
    for axis in laid.info.domain.kept:
        rows = rows * laid.domain_tile.length(axis)
    roles = laid.info.roles.items()
    curves = [n for n, r in roles if r is ValueKind.ROW and not reduce_of(n) and is_expensive(n)]
    return _usual(rows) * row_seconds(plan, True, target, len(curves))


def _repeated(laid: NestInfo, tiles: Extent) -> float:
    """How often the points of a part are computed, with lanes that stand idle."""
    domain = laid.info.domain
    points: Extent = tiles
    for axis in domain.axes:
        length = laid.domain_tile.length(axis)
        if axis is domain.axes[-1]:
            length = -(-_usual(length) // 16) * 16
        points = points * length
    return _usual(points) / max(1, _usual(domain.size))
