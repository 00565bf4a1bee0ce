"""The schedule of one loop nest on a GPU.

The axes of the nest are in one or two groups: those that are not reduced, and those that are. A
group counts its points in row-major order. Its parts, outer to inner, say how these are
distributed: ``grid-unroll_2-thread_x_256-vector_4`` gives a block 2048 consecutive points, in which
each thread has two vectors of four, 1024 points apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from attrs import frozen

from passkit.ir.loop import Bind, LaunchShape
from passkit.values.size import Extent, numel, quotient_above


@frozen
class AxisPart:
    """A part of an axis map.

    Attributes:
        bind: what its steps are executed by.
        size: the number of steps; None for the outermost part, which has as many as are needed.
    """

    bind: Bind
    size: int | None

    def __str__(self) -> str:
        return self.bind.value if self.size is None else f"{self.bind.value}_{self.size}"


@frozen
class AxisGroup:
    """Axes that are counted as one, and how their points are distributed.

    Attributes:
        axes: the numbers of the nest's axes, outermost first.
        parts: the parts, outer to inner. Only the first may have no size.
    """

    axes: tuple[int, ...]
    parts: tuple[AxisPart, ...]

    def size_of(self, bind: Bind) -> int:
        """Return the product of the sizes of the parts with this bind, 1 if there is none."""
        return prod(p.size or 1 for p in self.parts if p.bind is bind)

    @property
    def chunk(self) -> int:
        """Return the product of the sizes of all parts.

        It is the number of consecutive points that one step of a part without a size covers: in
        ``grid-unroll_2-thread_x_256-vector_4``, 2048 points of a block.
        """
        return prod(p.size or 1 for p in self.parts)

    @property
    def per_thread(self) -> int:
        """Return how many of the points one thread has, in loops and vectors."""
        own = (Bind.SERIAL, Bind.UNROLL, Bind.VECTOR)
        return prod(p.size or 1 for p in self.parts if p.bind in own)


@frozen
class WarpTile:
    """How a warp moves several short rows through shared memory.

    Attributes:
        vector: the elements of an access to global memory.
        elements: the elements of a thread: a row, or a part of one.
        pitch: the elements from one thread's part in shared memory to the next one's.
    """

    vector: int
    elements: int
    pitch: int


@frozen
class BlockTile:
    """How a block moves tiles of inputs through shared memory, which turns them.

    Such an input has its consecutive elements along another axis than the last one of the nest. It
    is loaded along that axis, and read along the last one.

    Attributes:
        sizes: the points of a tile along each kept axis, powers of two.
        inputs: by position, the inputs, with the numbers of the axes of their consecutive elements.
        lanes: the threads that load or store neighbouring vectors, at most.
        pitch: the elements from one row of a tile in shared memory to the next one.
    """

    sizes: tuple[int, ...]
    inputs: tuple[tuple[int, int], ...]
    lanes: int
    pitch: int

    @property
    def elements(self) -> int:
        """Return the elements of a tile in shared memory, with what lies between its rows."""
        return prod(self.sizes[:-1]) * self.pitch


@frozen
class NestSchedule:
    """How a loop nest runs on a GPU.

    Attributes:
        kept: the axes that are not reduced. Their first part is the grid.
        reduced: the reduced axes; None for a nest without reductions.
        cached: the inputs, by position, that each thread loads into registers before it computes.
        staged: the values, by position in the body, that stay in registers between stages.
        launch: the threads of a block.
        tile: for short rows, how they move through shared memory; else None.
        columns: for reductions of columns, the last axis, whose points a block's threads share;
            ``kept`` are the other axes then. Else None.
        transpose: for inputs that are read along another axis than the last one, how a block moves
            them through shared memory. A block has a tile of the kept axes then, of as many points
            as ``kept`` has in a chunk. Else None.
        recomputed: the values, by position, that are computed again where a later stage reads them.
    """

    kept: AxisGroup
    reduced: AxisGroup | None
    cached: tuple[int, ...]
    staged: tuple[int, ...]
    launch: LaunchShape
    tile: WarpTile | None = None
    columns: AxisGroup | None = None
    transpose: BlockTile | None = None
    recomputed: tuple[int, ...] = ()

    @property
    def groups(self) -> tuple[AxisGroup, ...]:
        """Return the groups, that of the kept axes first."""
        return (self.kept,) if self.reduced is None else (self.kept, self.reduced)

    def blocks(self, extents: Sequence[Extent]) -> Extent:
        """Return the number of blocks of the grid.

        Args:
            extents: the extents of the axes of the nest.
        """
        if self.transpose is not None:
            pairs = zip(self.kept.axes, self.transpose.sizes, strict=True)
            return numel((extents[k] + (size - 1)) // size for k, size in pairs)
        points = numel(extents[k] for k in self.kept.axes)
        blocks = (points + (self.kept.chunk - 1)) // self.kept.chunk
        if self.columns is None:
            return blocks
        (number,) = self.columns.axes
        return blocks * quotient_above(extents[number], self.columns.chunk)

    @property
    def vector(self) -> int:
        """Return the number of elements of a vector access."""
        return prod(g.size_of(Bind.VECTOR) for g in self.groups)

    @property
    def lanes(self) -> int:
        """Return the number of threads that share a row, or the points of a tile."""
        return (self.reduced or self.kept).size_of(Bind.THREAD_X)
