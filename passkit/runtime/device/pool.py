"""The memory pool of a device: buffers are reused by later calls instead of being freed.

A `DevicePool` checks sizes, retries after freeing idle memory and reports what is in use. Memory
itself comes from a `BufferAllocator`: pyopencl's own pool on OpenCL, a `FreeListAllocator` on CUDA.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from threading import RLock
from typing import Any, Protocol, TypeVar
from weakref import finalize

from passkit.errors import DeviceError
from passkit.values.units import bytes_text

CallResult = TypeVar("CallResult")
MIN_NBYTES = 64
"""Size of the smallest buffer in bytes: devices have no empty buffers."""
BLOCK_NBYTES = 512
"""Smallest block of a `FreeListAllocator` in bytes, the granularity of CUDA's own allocator."""


class BufferAllocator(Protocol):
    """Where a pool gets buffers from. A buffer's memory is reused when nothing refers to it."""

    def allocate(self, nbytes: int) -> Any:
        """Return a buffer of at least ``nbytes`` bytes.

        Raises: an error of the allocator's own where memory is exhausted.
        """
        ...

    def free_idle(self) -> None:
        """Give memory that no buffer uses back to the device."""
        ...

    @property
    def active_nbytes(self) -> int:
        """Bytes of the buffers in use."""
        ...


class DevicePool:
    """The buffers of a device. Returned memory serves later calls, as the queue is in order.

    Args:
        device: The device; its ``limits`` say how much memory there is.
        allocator: What allocates buffers.
        refusals: The exceptions by which the allocator reports that memory is exhausted.
        device_setting: The environment variable that selects another device, for error messages.
    """

    def __init__(
        self,
        device: Any,
        allocator: BufferAllocator,
        refusals: tuple[type[Exception], ...],
        device_setting: str,
    ) -> None:
        self.device = device
        self.allocator = allocator
        self.refusals = refusals
        self.device_setting = device_setting

    @property
    def active_nbytes(self) -> int:
        """Bytes of the buffers in use."""
        return self.allocator.active_nbytes

    def take(self, nbytes: int) -> Any:
        """Return a buffer of at least ``nbytes`` bytes.

        When the device's memory is exhausted, idle memory is freed and the allocation retried.

        Raises:
            DeviceError: for a buffer larger than the device allows, and where the retry is refused.
        """
        limit = self.device.limits.largest_nbytes
        if nbytes > limit:
            raise DeviceError(
                f"a call needs a buffer of {bytes_text(nbytes)}, and {self.device} has buffers of "
                f"at most {bytes_text(limit)}; split the array, or choose another device by "
                f"{self.device_setting}"
            )
        try:
            return self.retry(
                lambda: self.allocator.allocate(max(MIN_NBYTES, nbytes)), self.refusals
            )
        except self.refusals as error:
            raise DeviceError(
                f"a call needs {bytes_text(nbytes)} more, and {self.device} has no memory left: "
                f"{self.usage()}; call with smaller arrays, or delete other executables"
            ) from error

    def retry(
        self, call: Callable[[], CallResult], refusals: tuple[type[Exception], ...]
    ) -> CallResult:
        """Return ``call()``; after one of ``refusals`` free idle memory and call it once more.

        Raises: what the second call, or the first one other than ``refusals``, raises.
        """
        try:
            return call()
        except refusals:
            self.allocator.free_idle()
            return call()

    def free_idle(self) -> None:
        """Give memory that no buffer uses back to the device."""
        self.allocator.free_idle()

    def usage(self) -> str:
        """Return how much of the device's memory is in use, as a clause for error messages."""
        total = self.device.limits.global_nbytes
        used = bytes_text(self.active_nbytes)
        return f"{used} of its {bytes_text(total)} are in use by this process"


class MemoryDriver(Protocol):
    """A driver that allocates memory by address."""

    def allocate(self, nbytes: int) -> int:
        """Return the address of ``nbytes`` bytes of new memory.

        Raises: an error of the driver's own where memory is exhausted.
        """
        ...

    def free(self, address: int) -> None:
        """Free the memory at an address that `allocate` returned."""
        ...


class DeviceBuffer:
    """Device memory of ``size`` bytes at an address.

    It returns to its allocator when nothing refers to it.
    """

    __slots__ = ("__weakref__", "address", "size")

    def __init__(self, address: int, size: int) -> None:
        self.address = address
        self.size = size


class FreeListAllocator:
    """An allocator with a free list for each size class, for drivers that give out addresses.

    Of the free blocks the one at the lowest address is taken first: calls that request the same
    sizes get the same addresses, so that a captured graph of their launches can be replayed as is.

    Args:
        driver: The driver that memory comes from.

    Attributes:
        idle: The addresses of free blocks by size, as heaps.
        active: The size of each block in use by its address.
    """

    def __init__(self, driver: MemoryDriver) -> None:
        self.driver = driver
        self.idle: dict[int, list[int]] = {}
        self.active: dict[int, int] = {}
        self.lock = RLock()

    def allocate(self, nbytes: int) -> DeviceBuffer:
        """Return a buffer of at least ``nbytes`` bytes. The device's context must be current.

        Raises: what the driver raises where memory is exhausted.
        """
        size = size_class(nbytes)
        with self.lock:
            idle = self.idle.get(size)
            address = heappop(idle) if idle else self.driver.allocate(size)
            self.active[address] = size
        buffer = DeviceBuffer(address, size)
        finalize(buffer, self.release, address).atexit = False
        return buffer

    def release(self, address: int) -> None:
        """Put the block at ``address`` into the free list of its size class, in any thread.

        Raises: KeyError where no block in use begins there.
        """
        with self.lock:
            heappush(self.idle.setdefault(self.active.pop(address), []), address)

    def free_idle(self) -> None:
        """Free all blocks that no buffer uses. The device's context must be current."""
        with self.lock:
            while self.idle:
                _, addresses = self.idle.popitem()
                for address in addresses:
                    self.driver.free(address)

    @property
    def active_nbytes(self) -> int:
        """Bytes of the blocks in use."""
        with self.lock:
            return sum(self.active.values())


def size_class(nbytes: int) -> int:
    """Return the block size for ``nbytes`` bytes: up to a quarter more, at least `BLOCK_NBYTES`.

    >>> size_class(1), size_class(513), size_class(5000), size_class(1 << 20)
    (512, 640, 5120, 1048576)
    """
    if nbytes <= BLOCK_NBYTES:
        return BLOCK_NBYTES
    step = 1 << max(0, (nbytes - 1).bit_length() - 3)
    return -(-nbytes // step) * step


def align_block(nbytes: int) -> int:
    """Round bytes up to the next offset at which an array may begin inside a block.

    >>> align_block(0), align_block(1), align_block(512)
    (0, 512, 512)
    """
    return -(-nbytes // BLOCK_NBYTES) * BLOCK_NBYTES
