"""Small programs for a CUDA device, and control over the device and the memory of their calls.

On which addresses a call runs decides whether its graph is replayed, and no public function tells
or changes them: tests take memory of the device's pool, and put arrays there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import passkit as pk
from passkit.runtime.cuda.arrays import new_array
from passkit.runtime.cuda.device import device, pool_of
from passkit.runtime.cuda.driver import DriverError
from passkit.runtime.cuda.graphs import MAX_GRAPHS, SegmentWorkspace
from passkit.runtime.device.dlpack import import_capsule
from passkit.runtime.device.plain_launcher import size_class
from passkit.runtime.device.pool import DevicePool

__all__ = [
    "MAX_GRAPHS",
    "DriverError",
    "SegmentWorkspace",
    "device",
    "device_pool",
    "fill_pool",
    "hold_memory",
    "import_capsule",
    "layer",
    "normal",
    "on_device",
    "size_class",
]
o = pk.ops


def normal(rng: Any, *shape: int) -> Any:
    """Return normally distributed float32 numbers."""
    return rng.standard_normal(shape).astype(np.float32)


def layer(width: int = 8) -> pk.Graph:
    """Return a graph of a kernel, a product and a kernel."""
    weights = normal(np.random.default_rng(7), 16, width)
    return pk.Graph([o.tanh(o.matmul(o.exp(pk.var("x", ("n", 16))), weights))])


def device_pool() -> DevicePool:
    """Return the memory pool of the device that target "cuda" runs on."""
    return pool_of(device())


def on_device(array: Any) -> Any:
    """Return a copy of an array on the device."""
    copy, own = new_array(array.dtype, array.shape), device()
    with own.active("a test"):
        own.queue.upload(copy.buffer, array.reshape(-1).view(np.uint8)).wait()
    return copy


def hold_memory(count: int = 1, nbytes: int = 200) -> list[Any]:
    """Take buffers from the device's pool, so that the next call gets other addresses."""
    with device().active("a test"):
        return [device_pool().take(nbytes) for _ in range(count)]


def fill_pool() -> None:
    """Put idle memory of all sizes into the pool: all calls that follow get equal addresses."""
    sizes = {size_class(n) for n in range(1, 20_000, 100)}
    buffers = [buffer for n in sizes for buffer in hold_memory(8, n)]
    del buffers[:]
