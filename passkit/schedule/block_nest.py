"""The parts of a stitched kernel, as far as GPUs have schedules of them."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from passkit.ast import Expr, Var
from passkit.ast.stage import Buffer, Let, Stage
from passkit.ir.loop import ACCESS_NBYTES, WARP
from passkit.values import dtype as dt
from passkit.values.dtype import DType
from passkit.values.size import Extent

VECTOR = 4
"""The elements of an access to float32; the steps of a product that are loaded together."""
MOST_VECTORS = 8
"""The vectors of a reduced row that a thread has in registers, at most."""
ROW = Var("own_row", dt.int64)
"""The row of a tile that a statement is executed for, counted from the tile's first."""


@frozen(eq=False)
class Operand:
    """A matrix of a product, of each head of a tile.

    Attributes:
        buffer: the buffer.
        start: its first element, of the tile's first head.
        down: the distance from one row to the next.
        along: the distance from one column to the next.
        head: the distance from one head to the next.
        is_along: whether its elements follow each other along the steps of the product.
    """

    buffer: str
    start: Expr
    down: int
    along: int
    head: int
    is_along: bool


@frozen(eq=False)
class ProductPart:
    """A matrix product, of each of some heads.

    Attributes:
        a, b, c: the operands and the result.
        heads: the heads of a tile, at most.
        head_bound: the heads that are left for the last tile; None if all tiles have as many.
        rows: the rows of the result that a tile has, at most, of a head.
        bound: the rows that are left for the last tile; None if all tiles have as many.
        columns: its columns.
        steps: the products that are added to an element.
        dtype: the dtype of its operands and of its result.
    """

    a: Operand
    b: Operand
    c: Operand
    heads: int
    head_bound: Expr | None
    rows: int
    bound: Expr | None
    columns: int
    steps: int
    dtype: DType

    @property
    def access(self) -> int:
        """Return the elements of the widest access."""
        return ACCESS_NBYTES // self.dtype.nbytes

    @property
    def reads(self) -> frozenset[str]:
        """Return the buffers that it reads."""
        return frozenset((self.a.buffer, self.b.buffer))

    @property
    def writes(self) -> frozenset[str]:
        """Return the buffer that it writes."""
        return frozenset((self.c.buffer,))


@frozen(eq=False)
class RowPart:
    """A part that goes through rows one by one; indices of rows are those of `ROW`.

    Attributes:
        stages: the passes over a row, and what is computed once per row.
        rows: the rows of a tile, at most.
        bound: the rows that are left for the last tile; None if all tiles have as many.
        axis: the variable along a row.
        length: the elements of a row.
        is_reduced: whether a row is reduced.
        vector: the elements of its accesses, as many of its widest dtype as an access has.
        reads: the buffers that it reads.
        writes: those that it writes.
        wide: those of them in shared memory that it goes through along a row.
        reach: for arrays in shared memory, the elements of a row up to the last one that it reads.
        partial: those that it writes from another than the first element of a row on.
        scattered: those in shared memory that it accesses at other points than of the own row.
        has_kept: whether it keeps points of a row in registers, from one stage to the next.
    """

    stages: tuple[Stage, ...]
    rows: int
    bound: Expr | None
    axis: Var
    length: int
    is_reduced: bool
    vector: int
    reads: frozenset[str]
    writes: frozenset[str]
    wide: frozenset[str]
    reach: Mapping[str, int]
    partial: frozenset[str]
    scattered: frozenset[str]
    has_kept: bool = False

    @property
    def is_long(self) -> bool:
        """Return whether a row has more vectors than the threads of a warp have room for."""
        most = MOST_VECTORS if self.is_reduced else 4 * MOST_VECTORS
        return -(-self.length // self.vector) > WARP * most


@frozen(eq=False)
class PointPart:
    """A part whose points are computed one by one; indices of rows are those of `ROW`.

    Attributes:
        stages: the stages, each with the serial loops of a point.
        rows: the rows of a tile, at most.
        bound: the rows that are left for the last tile; None if all tiles have as many.
        axis: the variable along a row, along which threads lie.
        columns: the points of a row of a tile, at most.
        column_bound: those that are left for the last tile; None if all tiles have as many.
        length: the points of a whole row, of which a tile may have some.
        reads: the buffers that it reads.
        writes: those that it writes.
        scattered: those of them in shared memory, of which it computes indices as of a plain array.
        steps: the iterations of the serial loop of each stage that has one, if they are as many and
            threads may share them out; else 0.
    """

    stages: tuple[Stage, ...]
    rows: int
    bound: Expr | None
    axis: Var
    columns: int
    column_bound: Expr | None
    length: Extent
    reads: frozenset[str]
    writes: frozenset[str]
    scattered: frozenset[str]
    steps: int


BlockPart = ProductPart | RowPart | PointPart
"""A part of a stitched kernel."""


@frozen(eq=False)
class BlockNest:
    """A stitched kernel.

    Attributes:
        params: its parameters.
        shared: its arrays in shared memory.
        values: the positions in the group of the values that lie in them, in their order.
        lengths: the elements of a row of each of these values; 0 for a value of each row.
        lets: the definitions of a tile's coordinates.
        parts: the parts, in order.
        tiles: the number of tiles.
        flat: the arrays whose rows follow each other without a gap, as parts compute the index of
            an element of any row.
    """

    params: tuple[Buffer, ...]
    shared: tuple[Buffer, ...]
    values: tuple[int, ...]
    lengths: tuple[int, ...]
    lets: tuple[Let, ...]
    parts: tuple[BlockPart, ...]
    tiles: Extent
    flat: frozenset[str] = frozenset()

    def with_flat_arrays(self) -> BlockNest:
        """Return the kernel with all arrays flat."""
        return evolve(self, flat=frozenset(b.name for b in self.shared))
