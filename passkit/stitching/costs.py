"""What kernels take besides work, by the model: rows, parts and tiles that begin and end.

Extents that only a call knows are taken to be `USUAL`.
"""

from __future__ import annotations

from passkit.ast.folds import Contract
from passkit.plan.schedule import Schedule, is_expensive
from passkit.plan.target import Target
from passkit.space.space import Role, reduce_of
from passkit.space.tiling import Composition
from passkit.splits.split import guessed
from passkit.stitching.parts import USUAL, LaidPart
from passkit.stitching.regions import Region
from passkit.values.size import Extent, numel

FLOPS = 6e10
"""Steps of products of matrices that a core takes in a second, from its caches."""
LANES, VECTORS, HEIGHTS = 16, 3, (8, 4, 1)
"""Lanes of a vector, and how many vectors of how many rows are summed side by side, at most."""
CHAIN = 1.2e-9
"""Seconds from one step of a sum to the next: fewer sums side by side than it takes do not pay."""
COPIED, TURNED = 6e-10, 1e-10
"""Seconds for each element of a right operand that has to be turned, one by one or in squares."""
TURN = 4e-8
"""Seconds that a part of a tile takes besides its work: a handful of loops begin and end."""
PASS, FOLD, CURVE = 4e-9, 8e-9, 1e-8
"""Seconds that a pass over a row, the end of a fold, and an expensive value of a row take."""
TOGETHER = 4
"""How many short rows are folded in the time of one, as none waits for another."""
NEAR = 32 * 1024
"""Bytes of scratch that stay in a core's first cache, beside what is read."""
FAR = 5e-12
"""Seconds that a byte takes more which has to come from the second one."""


def product_seconds(contract: Contract, region: Region, tiles: Extent, target: Target) -> float:
    """Of a product of matrices, of which each tile has a region.

    A processor takes some rows at a time, and turns a right operand anew for each tile.
    """
    last = len(region.shape) - 1
    rows, columns, steps = (
        _usual(n) for n in (region.length(last - 1), region.length(last), contract.k)
    )
    products = _usual(tiles * numel(region.length(k) for k in range(last - 1)))
    if target.lanes == 1:
        return products * rows * columns * steps / FLOPS
    vectors = -(-columns // LANES)
    blocks = -(-vectors // VECTORS)
    height = next(n for n in HEIGHTS if n <= max(1, rows))
    step = max(CHAIN, height * vectors / blocks * LANES / FLOPS)
    seconds = -(-rows // height) * blocks * steps * step
    if contract.transpose_b:
        seconds += columns * steps * (TURNED if min(columns, steps) >= LANES else COPIED)
    return products * seconds


def part_seconds(laid: LaidPart, plan: Schedule, tiles: Extent) -> float:
    """Of a part with loops of its own: its points as often as tiles compute them, and its rows."""
    return plan.seconds * _repeated(laid, tiles) + _between(laid, plan, tiles)


def tile_seconds(seconds: float, tiles: Extent, parts: int, scratch: Extent) -> float:
    """Of the whole kernel, whose parts take ``seconds``; a tile has so many bytes of scratch."""
    many, nbytes = _usual(tiles), _usual(scratch)
    if nbytes > NEAR:
        seconds += many * nbytes * 2 * FAR
    return (seconds + many * parts * TURN) * imbalance(many)


def _usual(size: Extent) -> int:
    return guessed(size, USUAL)


def row_seconds(plan: Schedule, folds: bool, curves: int = 0) -> float:
    """Of a row, besides its points: its passes, the ends of its folds, and its expensive values."""
    passes = [s for s in plan.stages if s.folds or s.keeps or s.stores]
    ends = sum(len(s.folds) for s in passes) if folds else 0
    each = len(passes) * PASS + ends * FOLD + curves * CURVE
    return each / (TOGETHER if plan.composition is Composition.SHORT else 1)


def imbalance(tiles: int) -> float:
    """How much longer threads take that have too few tiles to share them evenly."""
    return 1.0 + 2.0 / tiles


def _between(laid: LaidPart, plan: Schedule, tiles: Extent) -> float:
    """Seconds between the passes over rows, and at the ends of their folds."""
    lane, rows = laid.layout.space.axes[-1], tiles
    if not lane.reduced:
        return 0.0
    for axis in laid.layout.space.kept:
        rows = rows * laid.tract.length(axis)
    roles = laid.layout.roles.items()
    curves = [n for n, r in roles if r is Role.ROW and not reduce_of(n) and is_expensive(n)]
    return _usual(rows) * row_seconds(plan, True, len(curves))


def _repeated(laid: LaidPart, tiles: Extent) -> float:
    """How often the points of a part are computed, with lanes that stand idle."""
    space = laid.layout.space
    points: Extent = tiles
    for axis in space.axes:
        length = laid.tract.length(axis)
        if axis is space.axes[-1]:
            length = -(-_usual(length) // 16) * 16
        points = points * length
    return _usual(points) / max(1, _usual(space.size))
