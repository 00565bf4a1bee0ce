"""The CUDA array interface: how PyTorch, JAX, CuPy and Numba say where an array is.

Source: Numba's documentation, CUDA Array Interface (version 3).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.runtime.device.resident import Resident

ATTRIBUTE = "__cuda_array_interface__"


def resident_of(value: Any) -> Resident | None:
    """Where a value is on the device; None for what is not there."""
    if isinstance(value, np.ndarray):
        return None
    told = getattr(value, ATTRIBUTE, None)
    if told is None:
        return None
    address, readonly = told["data"]
    dtype, shape = np.dtype(told["typestr"]), tuple(map(int, told["shape"]))
    strides = told.get("strides")
    return Resident(
        owner=value,
        address=address or 0,
        dtype=dtype,
        shape=shape,
        plain=strides is None or tuple(strides) == _plain(shape, dtype.itemsize) or 0 in shape,
        writeable=not readonly,
        stream=told.get("stream"),
    )


def _plain(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    """The strides of an array whose elements follow each other."""
    found: list[int] = []
    for n in reversed(shape):
        found.append(step)
        step *= n
    return tuple(reversed(found))
