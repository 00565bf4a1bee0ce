"""DLPack: exchange arrays without a copy, by the capsules of Python's array API standard.

Source: dlpack.h, DLManagedTensor; Python array API standard, ``__dlpack__``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import finalize

import numpy as np

from passkit.values.dtype import dtype_of

CPU = 1
CUDA = 2
OPENCL = 4
CUDA_MANAGED = 13
"""Values of DLDeviceType."""
TYPE_CODES = {
    "i": 0,
    "u": 1,
    "f": 2,
    "c": 5,
    "b": 6,
}
"""DLDataTypeCode by NumPy's kinds."""
BFLOAT = 4
"""DLDataTypeCode of bfloat16."""
FRESH_NAME = b"dltensor"
CONSUMED_NAME = b"used_dltensor"


class DLDevice(ctypes.Structure):
    """DLDevice: where memory is."""

    _fields_ = (
        ("kind", ctypes.c_int32),
        ("number", ctypes.c_int32),
    )


class DLDataType(ctypes.Structure):
    """DLDataType: the type of an element."""

    _fields_ = (
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


class DLTensor(ctypes.Structure):
    """DLTensor: a strided array."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("rank", ctypes.c_int32),
        ("dtype", DLDataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class DLManagedTensor(ctypes.Structure):
    """DLManagedTensor: an array with the function that releases it."""

    _fields_ = (
        ("tensor", DLTensor),
        ("context", ctypes.c_void_p),
        ("deleter", _DELETER),
    )


class DLPackOwner:
    """Keeps an imported array alive: its library's deleter runs when this object goes away."""


class DLPackArray(NamedTuple):
    """An array imported from another library, valid as long as ``owner`` lives.

    ``strides`` are in elements, None for C-contiguous arrays; ``device`` is (DLDeviceType, index).
    """

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    device: tuple[int, int]
    owner: DLPackOwner


_api = ctypes.pythonapi
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", _api)
)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, _DESTRUCTOR)(
    ("PyCapsule_New", _api)
)
# Destructors get a capsule without a reference, which must not become a Python object.
_borrowed_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", _api)
)
_borrowed_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api)
)
exported: dict[int, tuple[Any, ...]] = {}
"""Exported arrays that others still use, by the address of their `DLManagedTensor`."""


def import_capsule(capsule: Any) -> DLPackArray:
    """Return the array that a capsule describes, and rename the capsule as consumed.

    Raises:
        ValueError: for an object that is no capsule, a capsule that was consumed before, and for
            types that NumPy lacks.
        TypeError: for a number of bits that NumPy lacks, such as floats of 8 bits. The array is
            released in both cases if the capsule was valid.
    """
    address = _get_pointer(capsule, FRESH_NAME)
    managed = DLManagedTensor.from_address(address)
    _set_name(capsule, CONSUMED_NAME)
    owner = DLPackOwner()
    if managed.deleter:
        finalize(owner, managed.deleter, address).atexit = False
    tensor = managed.tensor
    rank = tensor.rank
    return DLPackArray(
        address=(tensor.data or 0) + tensor.offset,
        dtype=numpy_dtype(tensor.dtype),
        shape=tuple(tensor.shape[:rank]),
        strides=tuple(tensor.strides[:rank]) if tensor.strides else None,
        device=(tensor.device.kind, tensor.device.number),
        owner=owner,
    )


def export_capsule(
    address: int, dtype: np.dtype[Any], shape: Sequence[int], device: tuple[int, int], owner: Any
) -> Any:
    """Return a new DLPack capsule, called "dltensor", of a C-contiguous array.

    Args:
        address: The address of its first element.
        dtype: The type of an element; custom types of kind "V" are bfloat16.
        shape: The extents in elements.
        device: (DLDeviceType, index).
        owner: An object that is kept alive, in `exported`, until the consumer releases the array.

    Raises:
        KeyError: for a dtype that DLPack lacks, such as text.
    """
    extents = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    strides = (ctypes.c_int64 * max(1, len(shape)))()
    stride = 1
    for axis in reversed(range(len(shape))):
        strides[axis] = stride
        stride *= max(1, shape[axis])
    code = BFLOAT if dtype.kind == "V" else TYPE_CODES[dtype.kind]
    element_type = DLDataType(code, 8 * dtype.itemsize, 1)
    pointers = (ctypes.cast(x, ctypes.POINTER(ctypes.c_int64)) for x in (extents, strides))
    tensor = DLTensor(address, DLDevice(*device), len(shape), element_type, *pointers, 0)
    managed = DLManagedTensor(tensor, None, _delete)
    where = ctypes.addressof(managed)
    exported[where] = managed, extents, strides, owner
    return _new_capsule(where, FRESH_NAME, _destroy)


def numpy_dtype(element_type: DLDataType) -> np.dtype[Any]:
    """Return NumPy's dtype of a DLPack type, for bfloat16 the one of ml_dtypes.

    Raises: ValueError for vector types, types of incomplete bytes, and codes that NumPy lacks;
    TypeError for a number of bits that NumPy lacks, such as floats of 8 bits.
    """
    code, bits, lanes = element_type.code, element_type.bits, element_type.lanes
    if code == BFLOAT and bits == 16 and lanes == 1:
        return dtype_of("bfloat16").numpy
    kinds = {number: kind for kind, number in TYPE_CODES.items()}
    if code not in kinds or lanes != 1 or bits % 8:
        raise ValueError(
            f"NumPy has no dtype for elements with DLPack's type code {code}, {bits} bits and "
            f"{lanes} vector lanes; convert the array before it is passed"
        )
    return np.dtype(f"{kinds[code]}{bits // 8}")


def _on_delete(address: int, release: Any = exported.pop) -> None:
    """Release the exported array whose DLManagedTensor is at ``address``.

    Its consumer calls this as the deleter, by ``release``; an unknown address is ignored.
    """
    release(address, None)


def _on_destroy(
    capsule: int,
    is_valid: Any = _borrowed_is_valid,
    pointer_of: Any = _borrowed_get_pointer,
    release: Any = exported.pop,
    name: bytes = FRESH_NAME,
) -> None:
    """Release the exported array of a capsule, given by address, that was never consumed.

    All that it needs are defaults of its own: names of the module may be gone when Python ends.
    """
    if is_valid(capsule, name):
        release(pointer_of(capsule, name), None)


_delete = _DELETER(_on_delete)
_destroy = _DESTRUCTOR(_on_destroy)
for _callback in (_delete, _destroy):  # capsules may be released after this module is
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_callback))
