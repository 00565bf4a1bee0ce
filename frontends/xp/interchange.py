"""Interchange: DLPack, the buffer protocol and pickles. All execute what the array needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.errors import FeedError, SettingError
from passkit.frontends.xp import runtime
from passkit.frontends.xp.array import Array, wrap
from passkit.frontends.xp.conversion import on_device
from passkit.frontends.xp.devices import device_argument
from passkit.frontends.xp.runtime import from_numpy
from passkit.frontends.xp.sharing import expose, expose_views
from passkit.streams.device import StreamDevice
from passkit.streams.settings import settings
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
    stream: int | None = None,
) -> Any:
    """Return a capsule of DLPack that shares the memory of ``x`` or a copy; see `Array.__dlpack__`.

    Args:
        x: the array; its memory is not reused from now on if it is shared.
        max_version: the newest version that the consumer reads; None: one before 1. Before 1, a
            copy is exported unless ``copy`` is False.
        dl_device: the kind and number of the device that the memory must be on; None: that of
            ``x``. Memory of a device is copied for the CPU.
        copy: True copies the memory; False refuses to.
        stream: on CUDA, the handle of the consumer's stream, which waits for the array; None for
            the legacy default stream, -1 for no wait.

    Raises: BufferError for a device that is neither that of ``x`` nor the CPU, for elements that
        NumPy's DLPack does not have, or for a copy that is refused: from a device to the CPU, or of
        read-only memory before version 1. PasskitError if an operation fails that ``x`` needs;
        ConcretizationError for an array that depends on arguments of a function that is traced.
    """
    place = x._value.type.device
    if place is not None:
        return _device_dlpack(x, place, max_version, dl_device, copy, stream)
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


def _device_dlpack(
    x: Array,
    place: StreamDevice,
    max_version: tuple[int, int] | None,
    dl_device: tuple[Any, int] | None,
    copy: bool | None,
    stream: int | None,
) -> Any:
    """Return a capsule of DLPack of an array that is on ``place``.

    For the CPU it has a copy. For the device itself it has the memory, which is not reused from now
    on, or a copy if ``copy`` is true, and is unversioned. On CUDA the consumer's stream waits for
    whatever writes it; on OpenCL, whose DLPack has no streams, it is done.

    Raises: BufferError for a third device, or for the CPU where a copy is refused;
    ConcretizationError if it depends on arguments of a function that is traced.

    ``max_version`` is the newest version that a consumer on the CPU reads, None for one before 1;
    ``dl_device`` is the kind and number of the device that the memory must be on, None for its own;
    ``copy`` True copies, False refuses to; ``stream`` is the handle of the consumer's stream, None
    for the default one.
    """
    target = place.dlpack if dl_device is None else (int(dl_device[0]), dl_device[1])
    if target == CPU:
        if copy is False:
            raise BufferError(f"an array on {place} gets to the CPU by a copy only, got copy=False")
        versions = {} if max_version is None or max_version[0] < 1 else {"max_version": max_version}
        return x._numpy().__dlpack__(**versions)
    if target != place.dlpack:
        raise BufferError(f"an array on {place} cannot be exported to the device {dl_device}")
    source = on_device(on_device(x, None), place) if copy else x
    runtime.current_stream().sync((source._value,), "numpy")
    source._value.is_owned = False
    return place.capsule(source._value.buffer, stream)


def cuda_interface(x: Array) -> dict[str, Any]:
    """Return the dict of the CUDA array interface of ``x``; its memory is not reused from now on.

    What the array needs is enqueued in the stream that the dict names.

    Raises: AttributeError if it is on no CUDA device.
    """
    interface: dict[str, Any] = _exported(x, "cuda").__cuda_array_interface__
    return interface


def opencl_array(x: Array) -> Any:
    """Return the array of the run time that has the memory of ``x``.

    The memory is not reused from now on. What the array needs is enqueued in the queue of its
    device. Raises: AttributeError if it is on no OpenCL device.
    """
    return _exported(x, "opencl")


def _exported(x: Array, target: str) -> Any:
    """Return the array of the run time of ``x``, whose memory is not reused from now on.

    What the array needs is enqueued in the device's queue. Raises: AttributeError if it is not on a
    device of ``target``, "cuda" or "opencl"; ConcretizationError if it depends on arguments of a
    function that is traced.
    """
    device = x._value.type.device
    if device is None or device.target != target:
        raise AttributeError(f"an array on {x.device} has no memory of a device of {target}")
    runtime.current_stream().sync((x._value,), "numpy")
    x._value.is_owned = False
    return x._value.buffer


def shared_view(x: Array) -> Any:
    """Return a read-only NumPy array of the memory of ``x``, which nobody may write.

    The memory is not reused from now on. What the array needs is executed. From a device it is a
    copy.

    Raises: PasskitError if an operation that it needs fails; ConcretizationError if it depends on
    arguments of a function that is traced.
    """
    view = x._numpy().view()
    x._value.is_owned = False
    view.flags.writeable = False
    return view


def buffer(x: Array, flags: int) -> memoryview:
    """Return a read-only view of the memory of ``x``; see `Array.__buffer__`.

    ``flags`` are those of the buffer protocol. Raises: BufferError if they ask to write, or if the
    array is on a device; ConcretizationError if it depends on arguments of a function that is
    traced.
    """
    if x._value.type.device is not None:
        raise BufferError(f"an array on {x.device} has no memory of the host; x.numpy() is a copy")
    if flags & WRITABLE:
        raise BufferError("the memory of an Array must not be written; x.numpy() is a copy")
    return memoryview(shared_view(x))


def from_pickle(array: Any, device: str = "cpu") -> Array:
    """Return an array of a NumPy array from a pickle.

    ``device`` is the name of its device. On the CPU it takes over the memory of the NumPy array, to
    another device the elements are copied.

    Raises: SettingError if this machine has no such device; MissingDependencyError or DeviceError
    if its package or driver is missing.
    """
    place = device_argument("unpickling", device, None)
    return wrap(from_numpy(array, is_owned=True, device=place))


def reduced(x: Array) -> tuple[Any, ...]:
    """Return what pickles store: the elements, not the operations that compute them.

    It is the function `from_pickle` and a tuple of a copy of the elements and the device.

    Raises: PasskitError if an operation that the elements need fails; ConcretizationError if they
    depend on arguments of a function that is traced.
    """
    return from_pickle, (np.array(x._numpy(), order="C"), x.device)


def numpy_array(x: Array, dtype: Any, copy: bool | None) -> Any:
    """Return a NumPy array of the value of ``x``.

    What ``x`` needs is executed. The NumPy array has the memory of ``x``. If nothing else refers to
    this, NumPy may write to it, and so change ``x``, until ``x`` is assigned to; else it is
    read-only. With the setting ``aliasing``, the memory of a view is a part of its base's, and what
    others refer to is copied. Operations that are recorded meanwhile read a copy, so that results
    are those of the elements at that moment.

    It is a copy if ``copy`` is true or ``dtype`` (None for its own) is another one, and always from
    a device. That of a 0-dimensional array is a copy unless ``copy`` is False, as NumPy's scalars
    are. Conversions are those of `numpy.ndarray.astype`.

    Raises: FeedError if a copy is needed to convert the dtype, or from a device, and ``copy`` is
    False; TypeError if NumPy has no such dtype; PasskitError if an operation fails that ``x``
    needs; ConcretizationError for an array that depends on arguments of a function that is traced.
    """
    if x._value.type.device is not None:
        if copy is False:
            raise FeedError(f"an array on {x.device} gets to NumPy by a copy only, got copy=False")
        return x._numpy().astype(x.dtype if dtype is None else dtype, copy=False)
    if dtype is not None and np.dtype(dtype) != x.dtype:
        if copy is False:
            raise FeedError(f"{x.dtype} becomes {np.dtype(dtype)} by a copy only, got copy=False")
        return x._numpy().astype(dtype)
    if copy or (copy is None and not x.ndim):
        return x._numpy().copy()
    if settings.aliasing and expose_views(x):
        return x._value.buffer.view()
    x._numpy()
    if not expose(x):
        return shared_view(x)
    x._value.is_owned = False
    return x._value.buffer.view()


def to_device(x: Array, device: Any, stream: Any) -> Array:
    """Return the array ``x`` on a device: itself if it is there, else a copy of what it needs.

    ``device`` is its name; None: that of ``x``. ``stream`` must be None. For a copy, what the array
    needs is executed.

    Raises: SettingError if there is no such device, or if ``stream`` is not None;
    MissingDependencyError or DeviceError if its package or driver is missing; DeviceError if it has
    no memory left; for a copy, ConcretizationError if it depends on arguments of a function that is
    traced.
    """
    place = device_argument("to_device", device, x._value.type.device)
    if stream is not None:
        raise SettingError(
            f"to_device: stream must be None, as each device has one queue, got {shown(stream)}"
        )
    return on_device(x, place)
