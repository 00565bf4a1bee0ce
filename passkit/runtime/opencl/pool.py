"""Buffers of a device: taken from a pool, and given back when nobody holds them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from passkit.errors import DeviceError
from passkit.runtime.opencl.device import Device, pyopencl
from passkit.values.units import bytes_text

LEAST = 64
"""The bytes of the smallest buffer: a device has none of no bytes."""


@cache
def pool_of(device: Device) -> Pool:
    """The pool of a device."""
    return Pool(device)


class Pool:
    """Buffers of a device. What is given back serves the next call, as the queue is in order."""

    def __init__(self, device: Device, allocator: Any = None) -> None:
        self.device = device
        cl, tools = pyopencl(), import_module("pyopencl.tools")
        self.errors = (cl.MemoryError, cl.LogicError, MemoryError)
        self.held = tools.MemoryPool(allocator or tools.ImmediateAllocator(device.queue))

    def take(self, nbytes: int) -> Any:
        """A buffer of at least so many bytes.

        When the device has no room left, what the pool holds is freed and it is asked once more.

        Raises: DeviceError with the sizes when there is still no room.
        """
        limit = self.device.limits.largest_nbytes
        if nbytes > limit:
            raise DeviceError(
                f"a buffer of {bytes_text(nbytes)} is more than {self.device} gives at once, "
                f"{bytes_text(limit)}; split the array, or choose another device by PYOPENCL_CTX"
            )
        for last in (False, True):
            try:
                return self.held.allocate(max(LEAST, nbytes))
            except self.errors as error:
                if last:
                    raise DeviceError(self.full(nbytes)) from error
                self.free()
        return None

    def free(self) -> None:
        """Give back to the device what nobody holds."""
        self.held.free_held()

    def full(self, nbytes: int) -> str:
        """What is said when there is no room."""
        return (
            f"{self.device} has no room for {bytes_text(nbytes)} more: {self.state()}; call with "
            "smaller arrays, or drop other executables"
        )

    def state(self) -> str:
        """How much memory is in use here."""
        live, whole = self.held.active_bytes, self.device.limits.global_nbytes
        return f"{bytes_text(live)} of its {bytes_text(whole)} are in use here"
