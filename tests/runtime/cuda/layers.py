"""A program of a kernel, a product and a kernel, and memory that is there or not for its calls."""

from __future__ import annotations

from typing import Any

import numpy as np

import passkit as pk
from passkit.runtime.cuda.device import device, pool_of
from passkit.runtime.device.pool import size_class

o = pk.ops


def normal(rng: Any, *shape: int) -> Any:
    """Numbers of both signs."""
    return rng.standard_normal(shape).astype(np.float32)


def layer(width: int = 8) -> pk.Graph:
    """A kernel, a product, a kernel."""
    weights = normal(np.random.default_rng(7), 16, width)
    return pk.Graph([o.tanh(o.matmul(o.exp(pk.var("x", ("n", 16))), weights))])


def held(count: int = 1, nbytes: int = 200) -> list[Any]:
    """Memory that a call had, and cannot have again."""
    with device().active("a test"):
        return [pool_of(device()).take(nbytes) for _ in range(count)]


def settled() -> None:
    """Memory is there for what follows: the first call has the addresses of all others."""
    sizes = {size_class(n) for n in range(1, 20_000, 100)}
    del [x for n in sizes for x in held(8, n)][:]
