"""Conversions to arrays: of numbers, lists, NumPy arrays and arrays of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passkit.errors import ArgumentError, DTypeError, FeedError, ShapeError
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.devices import creation_device, device_argument
from passkit.frontends.xp.dtypes import checked_dtype
from passkit.frontends.xp.reductions import truth
from passkit.frontends.xp.runtime import OPERATIONS, apply, converted, from_numpy, operation
from passkit.streams.device import StreamDevice
from passkit.streams.operation import CPU, banded_type
from passkit.streams.recorder import Value
from passkit.streams.settings import settings
from passkit.values.arguments import shown
from passkit.values.dtype import DType

_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    """Return a new array, converted to a dtype.

    Floats are cut to integers, integers that are too large wrap around, and as bool all numbers but
    0 are true.

    Args:
        x: the array, or a number.
        dtype: the dtype.
        copy: whether an array that has this dtype and device already is copied; False returns ``x``
            itself.
        device: the name of the device of the result; None: that of ``x``.

    Raises:
        ArgumentError: ``x`` is no array or number.
        DTypeError: there is no such dtype (None is none), or complex numbers would become real.
        SettingError: there is no such device.
        DeviceError, MissingDependencyError: a driver or package for the device is missing.
        ConcretizationError: ``x`` depends on arguments of a function that is traced, and gets to
            another device, or from real numbers to complex ones.

    >>> from passkit import xp
    >>> xp.astype(xp.asarray([1.5, -2.5]), xp.int32)
    Array([ 1, -2], dtype=int32)
    """
    x = array_of(x)
    place = device_argument("astype", device, x._value.type.device)
    if place is not x._value.type.device:
        return astype(on_device(x, place), dtype, copy=False)
    target = checked_dtype("astype: dtype", dtype)
    if target.numpy == x.dtype:
        return duplicate(x) if truth("astype: copy", copy) else x
    if x.dtype.kind == "c" and target.kind not in "cb":
        raise DTypeError(f"astype of {x.dtype} to {target} loses imaginary parts; xp.real")
    return wrap(converted(x._value, target))


OPERATIONS.define("view", None, lambda x, dtype: np.array(np.asarray(x, order="C").view(dtype)))


def reinterpreted(x: Array, dtype: Any) -> Array:
    """Return the bytes of ``x`` as elements of another dtype, in a new array; None copies.

    The last axis becomes longer or shorter where elements have another size. What ``x`` needs is
    executed, unless the dtype is its own.

    Raises:
        DTypeError: There is no such dtype.
        ShapeError: The bytes of the last axis are no entire number of elements, or a 0-dimensional
            array would change its size.
        ConcretizationError: The dtype is another one, and ``x`` depends on arguments of a function
            that is traced.
    """
    target = x.dtype if dtype is None else checked_dtype("view: dtype", dtype).numpy
    if target == x.dtype:
        return duplicate(x)
    extents = x.shape[-1:] if x.shape else (1,)
    is_same_size = target.itemsize == x.itemsize
    if not is_same_size and (not x.shape or extents[0] * x.itemsize % target.itemsize):
        raise ShapeError(
            f"view: {extents[0]} elements of {x.dtype} are no entire number of {target} elements"
        )
    return wrap(apply(operation("view", dtype=target.name), x._value))


def on_device(x: Array, device: StreamDevice | None) -> Array:
    """Return an array on a device, None for the CPU: itself if it is there, else a copy.

    For a copy, what the array needs is executed. Raises: DeviceError if the device has no memory
    left; ConcretizationError if an array to be copied depends on arguments of a function that is
    traced.
    """
    type = x._value.type
    if type.device is device:
        return x
    value = from_numpy(x._numpy("copying to a device"), type.device is not None, device)
    value.type = banded_type(value.type, type.band)
    return wrap(value)


def duplicate(x: Array) -> Array:
    """Return a new array of the same value.

    A computed value is shared, so that nothing is stored over it any more; but its memory is copied
    if NumPy may write to that. Of a pending value a copy is queued.
    """
    value = x._value
    if value.operation is not None:
        return wrap(apply(operation("copy"), value))
    if value.is_exposed:
        return wrap(from_numpy(value.buffer.copy(), is_owned=True))
    value.is_owned = False
    return wrap(Value(value.type, value.buffer))


def asarray(
    obj: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None
) -> Array:
    """Return an array of numbers, of nested lists of them, or of an array of any library.

    Args:
        obj: an `Array`, which is returned as it is unless it must be converted; a NumPy array, or
            an object that has one of NumPy's protocols, the buffer protocol or DLPack; a Python
            number; or nested lists, tuples and ranges of numbers and arrays.
        dtype: the dtype; None: that of ``obj``, for numbers bool, int64 (uint64 if they need that),
            float64 or complex128, and float64 for an empty list. Floats are cut to integers;
            NumPy's arrays and scalars are cast as NumPy does, so that integers wrap around.
        device: the name of the device; None: that of an `Array` or of arrays in a sequence, if they
            are on a device, else the default one.
        copy: True and None copy memory of other libraries, since they may change it; True also
            copies an `Array`. False shares it; nothing may write to it while the array exists.

    Raises:
        ArgumentError: ``obj`` is nothing of these, such as a text or None.
        DTypeError: Elements are of no dtype of `passkit.xp`, Python numbers do not fit ``dtype``
            (integers beyond the limits of an integer dtype, NaN or too large floats for one,
            integers too large for a float), or complex numbers would become real.
        ShapeError: Nested sequences have different lengths.
        FeedError: ``copy`` is False, and a copy is needed.
        BufferError: ``obj`` has DLPack only, and cannot export its memory.
        SettingError: There is no such device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing; or
            arrays in a sequence are on several devices.
        ConcretizationError: An `Array` depends on arguments of a function that is traced, and gets
            to another device, or from real numbers to complex ones.

    >>> from passkit import xp
    >>> xp.asarray([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int64)
    """
    is_frequent = type(obj) is float and (dtype is _FLOAT32 or dtype is _FLOAT64)
    if is_frequent and device is None and copy is None and settings.device == CPU:
        return wrap(from_numpy(np.array(obj, dtype), is_owned=True))
    target = None if dtype is None else checked_dtype("asarray: dtype", dtype)
    if copy is not None:
        copy = truth("asarray: copy", copy)
    if isinstance(obj, Array):
        if device is not None and not (isinstance(device, str) and device == obj.device):
            return _moved(obj, device_argument("asarray", device, None), target, copy)
        return _from_array(obj, target, copy)
    place = creation_device("asarray", device)
    if place is not None and copy is False:
        raise FeedError(f"asarray: {shown(obj)} is not on {place}, got copy=False; leave that out")
    if isinstance(obj, (list, tuple, range)):
        if copy is False:
            raise FeedError("asarray: a sequence is no array, so copy=False cannot share it")
        array = _from_sequence(obj, target)
        stays = device is None and array._value.type.device is not None
        return array if stays else on_device(array, place)
    if place is not None:
        return on_device(asarray(obj, target, device=CPU), place)
    if isinstance(obj, np.generic):
        return _from_buffer(obj, target, copy)
    if isinstance(obj, (bool, int, float, complex)):
        if copy is False:
            raise FeedError(f"asarray: {shown(obj)} is no array, so copy=False cannot share it")
        return wrap(from_numpy(_numpy_of(obj, target), is_owned=True))
    if isinstance(obj, (np.ndarray, memoryview, bytearray)) or hasattr(obj, "__array__"):
        return _from_buffer(obj, target, copy)
    if hasattr(obj, "__dlpack__"):
        return asarray(np.from_dlpack(obj), dtype=dtype, device=CPU, copy=copy)
    if isinstance(obj, (str, bytes)) or not _has_buffer(obj):
        raise ArgumentError(
            f"asarray needs an array, numbers or nested lists of them, got {shown(obj)}"
        )
    return _from_buffer(obj, target, copy)


def _moved(x: Array, device: StreamDevice | None, dtype: DType | None, copy: bool | None) -> Array:
    """Return the array ``x`` on a device, None for the CPU, of a dtype, as `asarray` does.

    ``dtype`` None keeps its dtype; ``copy`` True copies it also if it stays on its device.

    Raises: FeedError if it is on another device or must be converted, and ``copy`` is False;
    DTypeError for complex to real; DeviceError if the device has no memory left;
    ConcretizationError if it depends on arguments of a function that is traced, and gets to another
    device or from real to complex numbers.
    """
    if copy is False and x._value.type.device is not device:
        raise FeedError(
            f"asarray: an array on {x.device} gets to {device or CPU} by a copy only, got "
            f"copy=False"
        )
    moved = on_device(x, device)
    return _from_array(moved, dtype, copy if moved is x else None)


def _has_buffer(obj: Any) -> bool:
    """Return whether an object has the buffer protocol or ``__array_interface__``."""
    if hasattr(obj, "__array_interface__"):
        return True
    try:
        memoryview(obj)
    except TypeError:
        return False
    return True


def _from_array(x: Array, dtype: DType | None, copy: bool | None) -> Array:
    """Return the array ``x`` as `asarray` does: itself unless it is converted or copied.

    ``dtype`` None keeps its dtype; ``copy`` True copies it. Raises: FeedError if it must be
    converted and ``copy`` is False; DTypeError for complex to real; ConcretizationError if it
    depends on arguments of a function that is traced, and real numbers become complex.
    """
    if dtype is not None and dtype.numpy != x.dtype:
        if copy is False:
            raise FeedError(f"asarray: {x.dtype} becomes {dtype} by a copy only, got copy=False")
        return astype(x, dtype)
    return duplicate(x) if copy else x


def _from_buffer(obj: Any, dtype: DType | None, copy: bool | None) -> Array:
    """Return an array of an object that NumPy takes as an array.

    ``dtype`` None keeps its dtype; ``copy`` False shares its memory, True and None copy it.

    Raises: DTypeError if `passkit.xp` has no such dtype, or complex numbers would become real;
    FeedError if it must be converted and ``copy`` is False.
    """
    array = np.asarray(obj)
    target = _supported(array.dtype if dtype is None else dtype.numpy)
    if copy is not False:
        if array.dtype.kind not in "biufc":
            _supported(array.dtype)
        if array.dtype.kind == "c" and target.kind not in "cb":
            raise DTypeError(
                f"asarray of {array.dtype} as {target} loses imaginary parts; take the real ones"
            )
        return wrap(from_numpy(np.array(array, target.numpy, order="C"), is_owned=True))
    if array.dtype != target.numpy or not array.dtype.isnative:
        raise FeedError(f"asarray: {array.dtype} becomes {target} by a copy only, got copy=False")
    return wrap(from_numpy(array))


def _supported(dtype: np.dtype[Any]) -> DType:
    """Return a dtype of NumPy as passkit's. Raises: DTypeError if passkit has none like it."""
    return checked_dtype("asarray", dtype)


def _numpy_of(obj: Any, dtype: DType | None) -> Any:
    """Return ``obj``, numbers or nested sequences of them, as a new NumPy array.

    ``dtype`` None is for that of the numbers.

    Raises:
        ShapeError: The sequences have different lengths.
        DTypeError: Elements are of no dtype of `passkit.xp`, such as texts, or do not fit
            ``dtype``, such as NaN among integers.
    """
    try:
        array = np.array(obj, None if dtype is None else dtype.numpy)
    except OverflowError as error:
        raise DTypeError(f"asarray: {shown(obj)} does not fit {dtype}: {error}") from None
    except TypeError as error:
        raise DTypeError(f"asarray: {shown(obj)} cannot become {dtype}: {error}") from None
    except ValueError as error:
        if _has_shape(obj):
            raise DTypeError(f"asarray: {shown(obj)} cannot become {dtype}: {error}") from None
        raise ShapeError(f"asarray: {shown(obj)} has no shape: {error}") from None
    if array.dtype.kind == "O" and isinstance(obj, int):
        raise DTypeError(f"asarray: {shown(obj)} fits no integer dtype; give xp.float64")
    _supported(array.dtype)
    return array


def _has_shape(obj: Any) -> bool:
    """Return whether sequences that are nested in each other have one length at each depth."""
    try:
        np.array(obj)
    except ValueError:
        return False
    return True


def _from_sequence(obj: Sequence[Any], dtype: DType | None) -> Array:
    """Return an array of ``obj``, a nested sequence, whose arrays may be pending.

    It is on the device of these arrays, else on the CPU. ``dtype`` is the dtype of the result; None
    for that of the elements.

    Raises:
        ShapeError: Lengths or shapes differ.
        DTypeError: Elements are of no dtype of `passkit.xp`, or do not fit ``dtype``.
        ArgumentError: There are other elements than numbers beside arrays.
        DeviceError: Arrays are on several devices.
    """
    if not _has_array(obj):
        return wrap(from_numpy(_numpy_of(obj, dtype), is_owned=True))
    parts = [
        _from_sequence(part, None)
        if isinstance(part, (list, tuple))
        else asarray(part, device=None if isinstance(part, Array) else CPU)
        for part in obj
    ]
    if any(part.shape != parts[0].shape for part in parts):
        shapes = ", ".join(str(part.shape) for part in parts[:8])
        raise ShapeError(f"asarray: arrays in a list need one shape, got {shapes}")
    stacked = wrap(apply(operation("stack", axis=0), *[p._value for p in parts]))
    return stacked if dtype is None else astype(stacked, dtype, copy=False)


def _has_array(obj: Any) -> bool:
    """Return whether an object is an `Array`, or a nested list or tuple that has one in it."""
    if isinstance(obj, (list, tuple)):
        return any(_has_array(item) for item in obj)
    return isinstance(obj, Array)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """Return an array that shares the memory of an array of another library, by DLPack.

    Args:
        x: an object with ``__dlpack__`` and ``__dlpack_device__``, in memory of the CPU. While the
            result exists, nothing may write to its memory. Of an `Array`, a new one of its value is
            returned, also if it is pending.
        device: the name of the device; None: that of ``x``. On another one, the result is a copy.
        copy: True copies the memory. None and False share it, and False refuses another device.

    Raises:
        ArgumentError: ``x`` has no ``__dlpack__``.
        DTypeError: Its elements are of no dtype of `passkit.xp`.
        BufferError: ``x`` cannot export its memory, or elements of its dtype.
        FeedError: ``copy`` is False, and ``device`` is another one than that of ``x``.
        SettingError: There is no such device.
        DeviceError, MissingDependencyError: A driver or package for the device is missing.
    """
    if copy is not None:
        copy = truth("from_dlpack: copy", copy)
    if isinstance(x, Array):
        place = device_argument("from_dlpack", device, x._value.type.device)
        return duplicate(_moved(x, place, None, copy))
    place = device_argument("from_dlpack", device, None)
    if not hasattr(x, "__dlpack__"):
        raise ArgumentError(f"from_dlpack needs an object with __dlpack__, got {shown(x)}")
    array = np.from_dlpack(x)
    _supported(array.dtype)
    if place is not None:
        return asarray(array, device=place.name, copy=copy)
    return wrap(
        from_numpy(np.array(array, order="C"), is_owned=True) if copy else from_numpy(array)
    )
