"""Buffers of an OpenCL device, from pyopencl's pool."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from passkit.runtime.device import pool
from passkit.runtime.opencl.device import Device, pyopencl


@cache
def pool_of(device: Device) -> Pool:
    """The pool of a device."""
    return Pool(device)


class Pool(pool.Pool):
    """Buffers as pyopencl keeps them."""

    other = "PYOPENCL_CTX"

    def __init__(self, device: Device, allocator: Any = None) -> None:
        super().__init__(device)
        cl, tools = pyopencl(), import_module("pyopencl.tools")
        self.refusals = (cl.MemoryError, cl.LogicError, MemoryError)
        self.held = tools.MemoryPool(allocator or tools.ImmediateAllocator(device.queue.handle))

    def allocate(self, nbytes: int) -> Any:
        """A buffer of pyopencl's."""
        return self.held.allocate(nbytes)

    def free(self) -> None:
        """Give back to the device what nobody holds."""
        self.held.free_held()

    @property
    def active(self) -> int:
        """The bytes that somebody holds."""
        return int(self.held.active_bytes)
