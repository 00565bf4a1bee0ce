"""Actions: the steps that make a schedule of a loop nest.

`passkit.schedule.apply` carries them out for GPUs, `passkit.schedule.apply_tiles` for CPUs. Axes,
values and inputs are called as in `passkit.schedule.loop_nest`. The parts of an axis are split off
from inside out: the last part that is split off becomes the outermost loop.

>>> for action in (Fuse("i0", "i1"), Tile("i0*i1", 2048), SplitAxis("i0*i1", 4, Bind.VECTOR)):
...     print(action)
fuse i0 i1
tile i0*i1 2048
split i0*i1 4 vector
"""

from __future__ import annotations

from attrs import frozen

from passkit.ir.loop import Bind, StorageScope
from passkit.values.size import Extent

__all__ = [
    "Action",
    "Bind",
    "CacheRead",
    "CacheRows",
    "CacheTile",
    "Fuse",
    "LaunchBlocks",
    "Recompute",
    "SetScope",
    "SplitAxis",
    "StorageScope",
    "Tile",
]


@frozen
class Fuse:
    """Count the points of two axes as one axis, ``outer*inner``.

    Both are reduced, or neither is, and ``inner`` is the next axis of its kind. All axes of one
    kind are fused into one before it is tiled and split.
    """

    outer: str
    inner: str

    def __str__(self) -> str:
        """Return the action as text."""
        return f"fuse {self.outer} {self.inner}"


@frozen
class Tile:
    """Give each tile ``chunk`` consecutive points of an axis, which is not reduced.

    A tile is computed by a block of threads of a GPU, or by one thread of a CPU.
    """

    axis: str
    chunk: Extent

    def __str__(self) -> str:
        """Return the action as text."""
        return f"tile {self.axis} {self.chunk}"


@frozen
class SplitAxis:
    """Split an inner part of ``size`` steps off an axis; bind it to threads, a loop or a vector.

    A size of None takes what is left: of the chunk of a tile, or of a reduced axis.
    """

    axis: str
    size: int | None
    bind: Bind

    def __str__(self) -> str:
        """Return the action as text."""
        return f"split {self.axis} {'rest' if self.size is None else self.size} {self.bind.value}"


@frozen
class SetScope:
    """Keep a value between stages in a scope.

    REGISTER: each thread reads what it wrote. SHARED, on CPUs: scratch memory of a tile.
    """

    value: str
    scope: StorageScope

    def __str__(self) -> str:
        """Return the action as text."""
        return f"set_scope {self.value} {self.scope.value}"


@frozen
class Recompute:
    """Compute a value again wherever a later stage reads it."""

    value: str

    def __str__(self) -> str:
        """Return the action as text."""
        return f"recompute {self.value}"


@frozen
class CacheRead:
    """Load the thread's part of an input once, before the first stage, into a scope: REGISTER."""

    input: str
    scope: StorageScope

    def __str__(self) -> str:
        """Return the action as text."""
        return f"cache_read {self.input} {self.scope.value}"


@frozen
class CacheRows:
    """Move the rows of a warp through shared memory, in accesses of ``vector`` elements in order.

    It is for short rows, of which a thread has a part, or one. These parts are ``pitch`` elements
    apart in shared memory.
    """

    vector: int
    pitch: int

    def __str__(self) -> str:
        """Return the action as text."""
        return f"cache_rows {self.vector} {self.pitch}"


@frozen
class CacheTile:
    """Load tiles of inputs along their own innermost axes, and read them along the last axis.

    Attributes:
        inputs: the inputs, each with the axis along which its elements are consecutive.
        sizes: the points of a tile along each axis that is not reduced.
        lanes: the threads that load or store neighbouring vectors, at most.
        pitch: the elements from one row of a tile in shared memory to the next one.
    """

    inputs: tuple[tuple[str, str], ...]
    sizes: tuple[int, ...]
    lanes: int
    pitch: int

    def __str__(self) -> str:
        """Return the action as text."""
        inputs = " ".join(f"{name} along {axis}" for name, axis in self.inputs)
        sizes = " ".join(map(str, self.sizes))
        return f"cache_tile {sizes} lanes {self.lanes} pitch {self.pitch} {inputs}"


@frozen
class LaunchBlocks:
    """Make room for ``count`` blocks on a multiprocessor, which limits the registers of a thread.

    Without this action the number follows from the registers that the schedule holds.
    """

    count: int

    def __str__(self) -> str:
        """Return the action as text."""
        return f"launch_blocks {self.count}"


Action = (
    Fuse
    | Tile
    | SplitAxis
    | SetScope
    | Recompute
    | CacheRead
    | CacheRows
    | CacheTile
    | LaunchBlocks
)
"""Any action."""
