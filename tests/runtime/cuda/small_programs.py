"""A program of a kernel, a product and a kernel, and control over the memory of its calls."""

from __future__ import annotations

from typing import Any

import numpy as np

import passkit as pk
from passkit.runtime.cuda.device import device, pool_of
from passkit.runtime.device.pool import size_class

o = pk.ops


def normal(rng: Any, *shape: int) -> Any:
    """Return normally distributed float32 numbers."""
    return rng.standard_normal(shape).astype(np.float32)


def layer(width: int = 8) -> pk.Graph:
    """Return a graph of a kernel, a product and a kernel."""
    weights = normal(np.random.default_rng(7), 16, width)
    return pk.Graph([o.tanh(o.matmul(o.exp(pk.var("x", ("n", 16))), weights))])


def hold_memory(count: int = 1, nbytes: int = 200) -> list[Any]:
    """Take buffers from the device's pool, so that the next call gets other addresses."""
    with device().active("a test"):
        return [pool_of(device()).take(nbytes) for _ in range(count)]


def fill_pool() -> None:
    """Put idle memory of all sizes into the pool: all calls that follow get equal addresses."""
    sizes = {size_class(n) for n in range(1, 20_000, 100)}
    buffers = [buffer for n in sizes for buffer in hold_memory(8, n)]
    del buffers[:]
