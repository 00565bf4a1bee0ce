"""The base classes of arrays, memory, variables and programs of devices, in Python.

`launcher.c` has the same in C, with the same names, and more: its `LauncherBase` repeats calls on
arrays of the device by itself. This is what runs where there is no compiler; `launcher` chooses
between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import prod
from threading import RLock
from typing import Any, Self
from weakref import finalize

import numpy as np

BLOCK_NBYTES = 512  # launcher.c has the same
"""The smallest block in bytes, the granularity of CUDA's own allocator."""


class PoolBlock:
    """Device memory of ``size`` bytes, which returns to its pool when nothing refers to it.

    Attributes:
        address: The address of its first byte, or the driver's handle of it.
        size: Its bytes.
        memory: The object that the pool's ``allocate`` returned with the address, or None.
        readers: The argument of the pool's ``wait`` before the next use; None for no wait.
    """

    __slots__ = ("__weakref__", "_idle", "address", "size")

    def __init__(self, address: int, size: int, idle: list[Any]) -> None:
        self.address, self.size, self._idle = address, size, idle

    @property
    def memory(self) -> Any:
        """The object that ``allocate`` returned with the address, or None."""
        return self._idle[1]

    @property
    def readers(self) -> Any:
        """The argument of ``wait`` before the block is used again, or None."""
        return self._idle[2]

    @readers.setter
    def readers(self, readers: Any) -> None:
        self._idle[2] = readers


class Pool:
    """An allocator with a free list for each size class.

    Of the free blocks the one at the lowest address is taken first: calls that request the same
    sizes get the same addresses, so that a graph of their launches can be replayed as is.

    Args:
        allocate: Returns the address of new memory by its bytes, or a pair of the address and an
            object that the memory lives with. It raises an error of the driver's own where memory
            is exhausted.
        free: Frees the memory at an address.
        wait: Called with the ``readers`` of a block before it is used again.
    """

    def __init__(
        self,
        allocate: Callable[[int], Any],
        free: Callable[[int], Any],
        wait: Callable[[Any], Any],
    ) -> None:
        self._allocate, self._free, self._wait = allocate, free, wait
        self._idle: dict[int, list[tuple[int, list[Any]]]] = {}
        self._sizes: dict[int, int] = {}
        self._lock = RLock()

    def allocate(self, nbytes: int) -> PoolBlock:
        """Return a block of at least ``nbytes`` bytes. The device's context must be current.

        Raises: what the driver raises where memory is exhausted.
        """
        size = size_class(nbytes)
        with self._lock:
            heap = self._idle.get(size)
            if heap:
                address, idle = heappop(heap)
                if idle[2] is not None:
                    self._wait(idle[2])
                    idle[2] = None
            else:
                given = self._allocate(size)
                address, memory = given if isinstance(given, tuple) else (given, None)
                idle = [address, memory, None]
            self._sizes[address] = size
        block = PoolBlock(address, size, idle)
        finalize(block, self._release, idle).atexit = False
        return block

    def _release(self, idle: list[Any]) -> None:
        """Put a block, given by its address, memory and readers, into its free list."""
        address = idle[0]
        with self._lock:
            heappush(self._idle.setdefault(self._sizes.pop(address), []), (address, idle))

    def free_idle(self) -> None:
        """Free all blocks that nothing refers to. The device's context must be current."""
        with self._lock:
            while self._idle:
                _, heap = self._idle.popitem()
                for address, _ in heap:
                    self._free(address)

    @property
    def active(self) -> dict[int, int]:
        """The size of each block in use by its address, as a new dict."""
        with self._lock:
            return dict(self._sizes)

    @property
    def active_nbytes(self) -> int:
        """Bytes of the blocks in use."""
        with self._lock:
            return sum(self._sizes.values())

    @property
    def idle_nbytes(self) -> int:
        """Bytes of the blocks that nothing refers to."""
        with self._lock:
            return sum(size * len(heap) for size, heap in self._idle.items())


def size_class(nbytes: int) -> int:
    """Return the block size for ``nbytes`` bytes: up to a quarter more, at least `BLOCK_NBYTES`.

    >>> size_class(1), size_class(513), size_class(5000), size_class(1 << 20)
    (512, 640, 5120, 1048576)
    """
    if nbytes <= BLOCK_NBYTES:
        return BLOCK_NBYTES
    step = 1 << max(0, (nbytes - 1).bit_length() - 3)
    return -(-nbytes // step) * step


class DeviceArrayBase:
    """A C-contiguous array on a device.

    Attributes:
        dtype: The type of an element.
        shape: The extents in elements.
        block: Its memory, which is reused when nothing refers to it.
        device: The device that it is on.
        address: The address of ``block``, or the driver's handle of it.
    """

    __slots__ = ("__weakref__", "address", "block", "device", "dtype", "shape")

    def __init__(
        self, dtype: np.dtype[Any], shape: tuple[int, ...], block: Any, device: Any
    ) -> None:
        self.dtype, self.shape, self.block, self.device = dtype, shape, block, device
        self.address: int = block.address

    @property
    def nbytes(self) -> int:
        """The size of the elements in bytes."""
        return prod(self.shape) * self.dtype.itemsize


class ChangesBase:
    """The base of the variables on a device: ``changes`` counts moves and discards of copies."""

    changes = 0


class LauncherBase:
    """The base of programs on a device; see `passkit.runtime.device.program.DeviceProgram`.

    Attributes:
        records: The records by which calls are repeated: none, as all calls are done in Python.
        fast_calls: Calls that ran no Python.
        replays: Launches of graphs in such calls.
        uploaded: The bytes that the last such call uploaded.
        downloaded: The bytes that the last such call downloaded.
        was_fast: Whether the last call ran no Python.
    """

    fast_calls = 0
    replays = 0
    was_fast = False
    uploaded = 0
    downloaded = 0
    call_slowly: Callable[..., list[Any]]
    run_slowly: Callable[..., Any]
    enqueue_slowly: Callable[..., list[Any]]

    records: list[Any]

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Return a program without records."""
        self = super().__new__(cls)
        self.records = []
        return self

    def describe(self, names: tuple[str, ...], dtypes: tuple[np.dtype[Any], ...]) -> None:
        """Set the names and dtypes of the inputs, which are of no use here."""

    def __call__(self, *feeds: Any, **named: Any) -> list[Any]:
        """Call the program on feeds; see `DeviceProgram.call_slowly`."""
        return self.call_slowly(*feeds, **named)

    def run_positional(self, *arrays: Any) -> Any:
        """Run the program on arrays of the host; see `DeviceProgram.run_slowly`."""
        return self.run_slowly(*arrays)

    def run_into(self, out: Any, *arrays: Any) -> list[Any]:
        """Enqueue the program; see `DeviceProgram.enqueue_slowly`."""
        return self.enqueue_slowly(out, *arrays)
