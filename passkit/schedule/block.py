"""The schedule of a stitched kernel on a GPU: how the threads of a block share out its parts.

A block has a tile of all values. The parts run one after the other, and what they pass on lies in
shared memory. Each part has a map of its own: a matrix product gives each thread a register block
of its result, any other part gives each row some threads.
"""

from __future__ import annotations

from attrs import frozen

from passkit.ir.loop import LaunchShape
from passkit.values.dtype import DType


@frozen
class ProductMap:
    """How the threads of a block share out the result of a matrix product.

    Thread t has the rows and columns of number ``t // across`` and ``t % across``.

    Attributes:
        rows: the rows of a thread.
        columns: the columns of a thread.
        down: the threads one below the other.
        across: the threads side by side.
        step: the products of an element that one iteration of the loop adds.
        chunk: the steps of which operands from device memory are in shared memory at a time; None
            if all are.
    """

    rows: int
    columns: int
    down: int
    across: int
    step: int
    chunk: int | None = None

    def __str__(self) -> str:
        """Return the map as text."""
        outer = "serial" if self.chunk is None else f"serial-chunk_{self.chunk}-serial"
        return (
            f"m = unroll_{self.rows}-thread_{self.down}; "
            f"n = unroll_{self.columns}-thread_{self.across}; k = {outer}-unroll_{self.step}"
        )


@frozen
class RowMap:
    """How the threads of a block share out the rows of a part.

    Attributes:
        lanes: the threads of a row.
        vector: the elements of an access.
        is_serial: whether a thread goes through its vectors in a loop, and has none in registers.
    """

    lanes: int
    vector: int
    is_serial: bool = False

    def __str__(self) -> str:
        """Return the map as text."""
        outer = "serial" if self.is_serial else "unroll"
        return f"row = serial-thread; column = {outer}-thread_{self.lanes}-vector_{self.vector}"


@frozen
class PointMap:
    """How the threads of a block share out points.

    Attributes:
        lanes: the threads of a point, which share out the iterations of its serial loops.
    """

    lanes: int

    def __str__(self) -> str:
        """Return the map as text."""
        return f"point = serial-thread; step = serial-thread_{self.lanes}"


BlockMap = ProductMap | RowMap | PointMap
"""The map of a part."""


@frozen
class BlockSchedule:
    """How a stitched kernel runs on a GPU.

    Attributes:
        threads: the threads of a block.
        blocks: the blocks that a multiprocessor should have at a time.
        parts: the map of each part, in order.
        pitches: for values in shared memory, by position in the group, the elements from one row
            to the next.
        homes: the array of each value in shared memory, in the order of the values.
        arrays: the arrays in shared memory, the dtypes of their elements, and how many they have.
        is_early: whether the operands of all products are loaded at the begin, each into memory of
            its own; else those of a product take the place of those of the one before.
        is_flat: whether no array has room for more rows and columns than there are.
    """

    threads: int
    blocks: int
    parts: tuple[BlockMap, ...]
    pitches: tuple[tuple[int, int], ...] = ()
    homes: tuple[str, ...] = ()
    arrays: tuple[tuple[str, DType, int], ...] = ()
    is_early: bool = False
    is_flat: bool = False

    @property
    def launch(self) -> LaunchShape:
        """Return the threads of a block."""
        return LaunchShape(1, self.threads, self.blocks)

    @property
    def shared_nbytes(self) -> int:
        """Return the bytes of shared memory of a block."""
        return sum(-(-n * dtype.nbytes // 16) * 16 for _, dtype, n in self.arrays)
