"""Memory of a CUDA device: blocks of a few sizes, used again by who needs one next."""

from __future__ import annotations

from functools import cache
from heapq import heappop, heappush
from threading import RLock
from weakref import finalize

from passkit.runtime.cuda.device import Device
from passkit.runtime.cuda.driver import RoomError
from passkit.runtime.device import pool

SMALLEST = 512
"""Bytes: what a device's own allocator hands out."""


class Buffer:
    """Memory on the device, at an address. It goes back to its pool when nobody holds it."""

    __slots__ = ("__weakref__", "address", "size")

    def __init__(self, address: int, size: int) -> None:
        self.address, self.size = address, size


@cache
def pool_of(device: Device) -> Pool:
    """The pool of a device."""
    return Pool(device)


class Pool(pool.Pool):
    """Memory that calls of all executables share. All of them are in one stream, in order.

    Of what is free the lowest address comes first: calls that ask for the same have the same
    addresses, so that a graph of their launches fits as it is.
    """

    other = "CUDA_VISIBLE_DEVICES"
    refusals = (RoomError,)

    def __init__(self, device: Device) -> None:
        super().__init__(device)
        self.idle: dict[int, list[int]] = {}
        self.busy: dict[int, int] = {}
        self.lock = RLock()

    def allocate(self, nbytes: int) -> Buffer:
        """Memory of at least so many bytes. The context must be this thread's."""
        size = size_class(nbytes)
        with self.lock:
            idle = self.idle.get(size)
            address = heappop(idle) if idle else self.device.driver.allocate(size)
            self.busy[address] = size
        made = Buffer(address, size)
        finalize(made, self.back, address).atexit = False
        return made

    def back(self, address: int) -> None:
        """Take memory back, from whichever thread dropped it."""
        with self.lock:
            heappush(self.idle.setdefault(self.busy.pop(address), []), address)

    def free(self) -> None:
        """Give back to the device what nobody holds. The context must be this thread's."""
        with self.lock:
            while self.idle:
                _, addresses = self.idle.popitem()
                for address in addresses:
                    self.device.driver.free(address)

    @property
    def active(self) -> int:
        """The bytes that somebody holds."""
        with self.lock:
            return sum(self.busy.values())


def size_class(nbytes: int) -> int:
    """The size of a block for so many bytes: at most a quarter more than is asked for.

    >>> size_class(1), size_class(513), size_class(5000), size_class(1 << 20)
    (512, 640, 5120, 1048576)
    """
    if nbytes <= SMALLEST:
        return SMALLEST
    step = 1 << max(0, (nbytes - 1).bit_length() - 3)
    return -(-nbytes // step) * step
