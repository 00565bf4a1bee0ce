"""transpose_tiles: inputs and outputs that lie across the vector loop are transposed by blocks.

An access whose elements follow each other along a serial loop, and not along the vector loop, would
be a gather or scatter in each iteration. A block of some iterations and of a vector's points is
loaded along the serial loop, transposed in registers or in a small array, and read as vectors.

Blocks are as many points wide as vectors, or much wider: memory and its caches are made for whole
rows. With wide blocks 25 MB of images transposed and added to others take a fifth less time, and
4096 x 4096 transposed a quarter less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from passkit.analysis.transposed_accesses import BLOCK, TILE_POINTS, TILE_WIDTHS
from passkit.ast import Const, Expr, Load, Select, Var, const
from passkit.ast.index import expression, normal
from passkit.ast.stage import Let, Loop, Stage, Statement, Store
from passkit.ast.tidy import replace_children
from passkit.ast.walk import variables
from passkit.ir.rewrite import substitute
from passkit.ir.strides import Stride, moves_with, stride_of
from passkit.ir.vector import MAX_COLUMNS, high, low
from passkit.transforms.interchange import StrideOf
from passkit.transforms.row_loads import certain_loads
from passkit.values import dtype as dt

MAX_WIDE_NBYTES = 65536
"""The most bytes of wide blocks, for which a second-level cache has room.

Blocks of sixteen iterations would read a line of each point, which would be evicted before the next
block where points are a power of two apart: 4096 x 4096 takes a fifth more time."""
MAX_WIDE_BLOCKS = 4
"""The most wide blocks of a stage."""


@frozen
class Block:
    """Some iterations of a serial loop, whose elements are transposed together.

    Attributes:
        serial: the loop.
        length: its length if it is known and at most a block, which then is the loop; else None.
        size: the iterations of a block.
    """

    serial: Loop
    length: int | None
    size: int

    @property
    def first(self) -> Expr:
        """Return the value of the loop's variable in the first iteration of a block."""
        return self.serial.start if self.length is not None else low(self.serial.var)

    @property
    def stop(self) -> Expr:
        """Return the end of a block."""
        return const(self.length, dt.int64) if self.length is not None else high(self.serial.var)

    @property
    def count(self) -> Expr:
        """Return the iterations of a block."""
        return self.stop if self.length is not None else self.stop - low(self.serial.var)

    @property
    def place(self) -> Expr:
        """Return the number of an iteration in its block."""
        var = self.serial.var
        return var if self.length is not None else var - low(var)

    def at_first(self, x: Expr) -> Expr:
        """Return an index in the first iteration of a block."""
        return substitute(x, {self.serial.var.name: self.first})

    def index(self, x: Expr) -> Expr:
        """Return an index in the first iteration, in normal form."""
        return expression(normal(self.at_first(x), {}))

    def transposes(self, stride: Stride) -> bool:
        """Return whether points with this distance are more than the block's few elements."""
        return not (stride == self.length and isinstance(stride, int) and stride <= MAX_COLUMNS)


def block_of(serial: Loop, size: int = BLOCK) -> Block:
    """Return the block of a serial loop, of ``size`` iterations if the loop is longer."""
    length = _length(serial)
    return Block(serial, length, length or size)


def _length(serial: Loop) -> int | None:
    """Return the length of a loop from 0 to a known number that is at most a block; else None."""
    stop = serial.stop
    if serial.start != const(0, dt.int64) or not isinstance(stop, Const):
        return None
    return int(stop.value) if stop.value <= BLOCK else None


def transposed_loads(stage: Stage, serial: Loop, stride: StrideOf) -> dict[Load, Stride]:
    """Return the loads that happen at every point and lie along ``serial``.

    Args:
        stage: the stage.
        serial: the innermost of the loops beside the vector loop.
        stride: returns how far an index moves from point to point of the vector loop.

    Returns:
        How far each moves from point to point.
    """
    inside = {s.var for s in stage.body if isinstance(s, Let)}
    strides: dict[Load, Stride] = {}
    for x in certain_loads(stage.body):
        distance = stride(x.index)
        if (
            distance not in (None, 0, 1, -1)
            and inside.isdisjoint(variables(x.index))
            and stride_of(x.index, serial.var, moves_with(serial.var)) == 1
        ):
            assert distance is not None
            strides[x] = distance
    return strides


def rows_ahead(stage: Stage, serial: Loop, stride: StrideOf) -> dict[Load, Stride]:
    """Return loads along the vector loop of another row in each iteration of ``serial``.

    A block reads so little of each row that processors do not prefetch what comes next: measured, a
    tenth of a large transposition's time is waiting for it. The result has the distances of rows.
    """
    rows: dict[Load, Stride] = {}
    for x in certain_loads(stage.body):
        distance = stride_of(x.index, serial.var, moves_with(serial.var))
        if stride(x.index) == 1 and distance not in (None, 0, 1):
            assert distance is not None
            rows[x] = distance
    return rows


def transposed_stores(stage: Stage, serial: Loop, stride: StrideOf) -> list[Store]:
    """Return the stores of rows that follow each other, each written along ``serial``."""
    length = _length(serial)
    if length is None or length < 2:
        return []
    return [
        s
        for s in stage.body
        if isinstance(s, Store)
        and stride_of(s.index, serial.var, moves_with(serial.var)) == 1
        and stride(s.index) == length
    ]


def wide_block(
    stage: Stage, lane: Loop, serial: Loop, loads: Mapping[Load, Stride], stride: StrideOf
) -> tuple[Block, int] | None:
    """Return the block and the points of wide blocks, None where narrow ones are quicker.

    What is streamed goes past the caches from registers. Where nothing else is read and points are
    near each other, at distances that are literals, an array is up to a tenth slower. The
    iterations are a multiple of sixteen, because squares of sixteen are written whole.

    Args:
        stage: the stage, without transposed stores.
        lane: its vector loop.
        serial: the innermost of the loops beside that.
        loads: the transposed loads.
        stride: returns how far an index moves from point to point of the vector loop.
    """
    if any(isinstance(s, Store) and s.stream for s in stage.body):
        return None
    if len(loads) > MAX_WIDE_BLOCKS or _length(serial) is not None:
        return None
    is_far = any(isinstance(distance, Expr) for distance in loads.values())
    if not is_far and not rows_ahead(stage, serial, stride):
        return None
    is_outside = stage.loops.index(serial) < stage.loops.index(lane)
    width = TILE_WIDTHS[-1] if is_outside else TILE_WIDTHS[lane.wide]
    points = min(TILE_POINTS, MAX_WIDE_NBYTES // len(loads) // max(x.dtype.nbytes for x in loads))
    return block_of(serial, max(BLOCK, points // width // BLOCK * BLOCK)), width


def with_values(x: Expr, values: Mapping[Load, Expr]) -> Expr:
    """Return an expression with values in the place of loads that happen at every point."""
    if isinstance(x, Load) and x in values:
        return values[x]
    if isinstance(x, Select):
        return evolve(x, condition=with_values(x.condition, values))
    return replace_children(x, lambda child: with_values(child, values))


def inner_variables(serial: Loop, statements: Sequence[Statement]) -> frozenset[Var]:
    """Return the variable of a loop and those that are defined in it."""
    return frozenset([serial.var, *(s.var for s in statements if isinstance(s, Let))])
