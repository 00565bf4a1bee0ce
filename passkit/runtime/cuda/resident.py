"""Arrays that PyTorch, JAX, CuPy and Numba have on the device, and where they are.

Source: Numba's documentation, CUDA Array Interface (version 3); else DLPack, by which who has the
array lets our stream wait for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.runtime.cuda.device import device
from passkit.runtime.device import dlpack
from passkit.runtime.device.resident import Resident

ATTRIBUTE = "__cuda_array_interface__"


def resident_of(value: Any) -> Resident | None:
    """Where a value is on the device; None for what is not there."""
    if isinstance(value, np.ndarray):
        return None
    told = getattr(value, ATTRIBUTE, None)
    if told is None:
        return _handed_over(value)
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


def _handed_over(value: Any) -> Resident | None:
    """Where a value is that only DLPack tells of. Raises: DeviceError."""
    where = getattr(value, "__dlpack_device__", None)
    if where is None or where()[0] not in (dlpack.CUDA, dlpack.CUDA_MANAGED):
        return None
    own = device()
    with own.used("taking an array"):
        given = dlpack.taken(value.__dlpack__(stream=own.driver.handle(own.queue.stream)))
    steps = given.strides and tuple(n * given.dtype.itemsize for n in given.strides)
    return Resident(
        owner=value,
        address=given.address,
        dtype=given.dtype,
        shape=given.shape,
        plain=steps is None or _follow(given.shape, steps, given.dtype.itemsize),
        writeable=True,
        held=given.held,
    )


def _follow(shape: tuple[int, ...], steps: tuple[int, ...], itemsize: int) -> bool:
    """Whether elements follow each other; an axis of one element may have any step."""
    own = _plain(shape, itemsize)
    return 0 in shape or all(n == 1 or a == b for n, a, b in zip(shape, steps, own, strict=True))


def _plain(shape: tuple[int, ...], step: int) -> tuple[int, ...]:
    """The strides of an array whose elements follow each other."""
    found: list[int] = []
    for n in reversed(shape):
        found.append(step)
        step *= n
    return tuple(reversed(found))
