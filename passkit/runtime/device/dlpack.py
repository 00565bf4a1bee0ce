"""DLPack: arrays handed over where they are, by the capsules of Python's array API standard.

Source: dlpack.h, DLManagedTensor; Python array API standard, ``__dlpack__``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np

from passkit.values.dtype import dtype_of

CPU, CUDA, CUDA_MANAGED = 1, 2, 13
"""DLDeviceType."""
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
"""DLDataTypeCode by NumPy's kinds."""
BFLOAT = 4
NEW, USED = b"dltensor", b"used_dltensor"


class Device(ctypes.Structure):
    """DLDevice."""

    _fields_ = (("kind", ctypes.c_int32), ("number", ctypes.c_int32))


class DataType(ctypes.Structure):
    """DLDataType."""

    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p), ("device", Device), ("rank", ctypes.c_int32),
        ("dtype", DataType), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64),
    )  # fmt: skip


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER))


class Given(NamedTuple):
    """An array that another library has handed over, which it keeps while ``held`` lives.

    Units of ``strides``: elements; None where the elements follow each other.
    """

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    device: tuple[int, int]
    held: Any


class Held:
    """What is given back to its library when nobody has it any more."""


_api = ctypes.pythonapi
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", _api)
)
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR)(
    ("PyCapsule_New", _api)
)
_is_new = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_address = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_given_away: dict[int, tuple[Any, ...]] = {}
"""What others have of ours, by the address of its `Managed`."""


def taken(capsule: Any) -> Given:
    """The array of a capsule, which is used up. Raises: ValueError where it was before."""
    where = _pointer(capsule, NEW)
    managed = Managed.from_address(where)
    _rename(capsule, USED)
    held = Held()
    if managed.deleter:
        finalize(held, managed.deleter, where).atexit = False
    t = managed.tensor
    rank = t.rank
    return Given(
        address=(t.data or 0) + t.offset,
        dtype=_numpy_of(t.dtype),
        shape=tuple(t.shape[:rank]),
        strides=tuple(t.strides[:rank]) if t.strides else None,
        device=(t.device.kind, t.device.number),
        held=held,
    )


def capsule_of(
    address: int, dtype: np.dtype[Any], shape: Sequence[int], device: tuple[int, int], owner: Any
) -> Any:
    """A capsule of an array whose elements follow each other; ``owner`` lives as long as it."""
    sizes = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    steps = (ctypes.c_int64 * max(1, len(shape)))()
    step = 1
    for k in reversed(range(len(shape))):
        steps[k], step = step, step * max(1, shape[k])
    code = BFLOAT if dtype.kind == "V" else CODES[dtype.kind]
    kind = DataType(code, 8 * dtype.itemsize, 1)
    pointers = (ctypes.cast(x, ctypes.POINTER(ctypes.c_int64)) for x in (sizes, steps))
    tensor = Tensor(address, Device(*device), len(shape), kind, *pointers, 0)
    managed = Managed(tensor, None, _delete)
    where = ctypes.addressof(managed)
    _given_away[where] = managed, sizes, steps, owner
    return _new(where, NEW, _destroy)


def _numpy_of(kind: DataType) -> np.dtype[Any]:
    """A dtype as NumPy has it. Raises: ValueError where it has none."""
    if kind.code == BFLOAT and kind.bits == 16 and kind.lanes == 1:
        return dtype_of("bfloat16").numpy
    names = {code: letter for letter, code in CODES.items()}
    if kind.code not in names or kind.lanes != 1 or kind.bits % 8:
        raise ValueError(f"DLPack's type {kind.code} of {kind.bits} bits x {kind.lanes}")
    return np.dtype(f"{names[kind.code]}{kind.bits // 8}")


def _deleted(where: int) -> None:
    """Somebody has done with what is ours."""
    _given_away.pop(where, None)


def _destroyed(capsule: int) -> None:
    """A capsule that nobody has taken goes with its array."""
    if _is_new(capsule, NEW):
        _given_away.pop(_address(capsule, NEW), None)


_delete, _destroy = DELETER(_deleted), _DESTRUCTOR(_destroyed)
