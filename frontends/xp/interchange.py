"""Interchange: DLPack, the buffer protocol and pickles. All execute what the array needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.errors import FeedError, SettingError
from passkit.frontends.xp.array import Array, wrap
from passkit.frontends.xp.devices import check_device
from passkit.frontends.xp.runtime import from_numpy
from passkit.values.arguments import shown

CPU = (1, 0)
"""The device of DLPack: the kind kDLCPU, and the number 0."""
WRITABLE = 1
"""The flag PyBUF_WRITABLE of the buffer protocol."""


def dlpack(
    x: Array,
    max_version: tuple[int, int] | None,
    dl_device: tuple[Any, int] | None,
    copy: bool | None,
) -> Any:
    """Return a capsule of DLPack; see `Array.__dlpack__`."""
    if dl_device is not None and (int(dl_device[0]), dl_device[1]) != CPU:
        raise BufferError(f"an array of the CPU cannot be exported to the device {dl_device}")
    array = x._numpy()
    if max_version is None or max_version[0] < 1:
        # Only capsules of version 1 can say that the consumer must not write.
        if copy is not False:
            return array.copy().__dlpack__()
        x._value.is_owned = False
        if not array.flags.writeable:
            raise BufferError(
                "DLPack before version 1 cannot export read-only memory; pass max_version=(1, 0)"
            )
        return array.__dlpack__()
    if copy:
        return array.copy().__dlpack__(max_version=max_version)
    return shared_view(x).__dlpack__(max_version=max_version)


def shared_view(x: Array) -> Any:
    """Return a NumPy array of the value's memory, which must not be written by anybody."""
    view = x._numpy().view()
    x._value.is_owned = False
    view.flags.writeable = False
    return view


def buffer(x: Array, flags: int) -> memoryview:
    """Return a view of the value's memory; see `Array.__buffer__`."""
    if flags & WRITABLE:
        raise BufferError("the memory of an Array must not be written; x.numpy() is a copy")
    return memoryview(shared_view(x))


def from_pickle(array: Any) -> Array:
    """Return the array of a pickle."""
    return wrap(from_numpy(array, is_owned=True))


def reduced(x: Array) -> tuple[Any, ...]:
    """Return what pickles store: the elements, not the operations that compute them."""
    return from_pickle, (np.array(x._numpy(), order="C"),)


def numpy_array(x: Array, dtype: Any, copy: bool | None) -> Any:
    """Return a NumPy array of the value; it must not be written, unless it is a copy.

    Raises: FeedError if a copy is needed to convert the dtype, and ``copy`` is False.
    """
    array = x._numpy()
    if dtype is not None and np.dtype(dtype) != array.dtype:
        if copy is False:
            raise FeedError(
                f"{array.dtype} becomes {np.dtype(dtype)} by a copy only, got copy=False"
            )
        return array.astype(dtype)
    return array.copy() if copy else shared_view(x)


def to_device(x: Array, device: Any, stream: Any) -> Array:
    """Return an array on a device; see `Array.to_device`."""
    check_device("to_device", device)
    if stream is not None:
        raise SettingError(f"to_device: stream must be None on the CPU, got {shown(stream)}")
    return x
