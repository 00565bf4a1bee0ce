"""Conversion of TensorFlow's TensorProto and TensorShapeProto to arrays and shapes."""

from __future__ import annotations

import sys
from math import prod
from typing import Any

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.proto import Budget, dtype_name
from passkit.values.dtype import DType, dtype_of

# DataType number, passkit's name, the field that holds elements one by one
_TABLE = (
    (1, "float32", "float_val"),
    (2, "float64", "double_val"),
    (3, "int32", "int_val"),
    (4, "uint8", "int_val"),
    (5, "int16", "int_val"),
    (6, "int8", "int_val"),
    (8, "complex64", "scomplex_val"),
    (9, "int64", "int64_val"),
    (10, "bool", "bool_val"),
    (14, "bfloat16", "half_val"),
    (17, "uint16", "int_val"),
    (18, "complex128", "dcomplex_val"),
    (19, "float16", "half_val"),
    (22, "uint32", "uint32_val"),
    (23, "uint64", "uint64_val"),
)
_NAMES = {number: name for number, name, _ in _TABLE}
_FIELDS = {number: field for number, _, field in _TABLE}
NUMBERS = {name: number for number, name, _ in _TABLE}
"""TensorFlow's DataType number of each dtype name."""
_MAX_RANK = 64  # NumPy's


def parse_dtype(number: int, where: str) -> DType:
    """Return the dtype with TensorFlow's DataType number; ``where`` names its owner in errors.

    Raises:
        ModelError: If passkit does not have it, such as strings and resources.
    """
    if number not in _NAMES:
        raise ModelError(
            f"{where} has the element type {dtype_name(number)}, which passkit does not have; "
            f"supported are {', '.join(sorted(_NAMES.values()))}"
        )
    return dtype_of(_NAMES[number])


def parse_shape(shape: Any, where: str) -> tuple[int | None, ...] | None:
    """Return the dimensions of the TensorShapeProto ``shape``, None where unknown.

    ``where`` names its owner in errors.

    The result is None for an unknown rank.

    Raises:
        ModelError: If it has more than 64 dimensions, or one below -1 or of 2**48 or more.
    """
    if shape.unknown_rank:
        return None
    if len(shape.dim) > _MAX_RANK:
        raise ModelError(f"{where} needs a rank of at most {_MAX_RANK}, got {len(shape.dim)}")
    sizes = tuple(d.size for d in shape.dim)
    if any(not -1 <= size < 1 << 48 for size in sizes):
        raise ModelError(f"{where} needs dimensions from -1 (unknown) to 2**48 - 1, got {sizes}")
    return tuple(None if size == -1 else size for size in sizes)


def parse_tensor(tensor: Any, where: str, budget: Budget) -> np.ndarray[Any, Any]:
    """Return the array of a TensorProto, read-only; its size is checked before allocation.

    As in TensorFlow, missing elements repeat the last one, and a tensor without any is zero.

    Args:
        tensor: TensorProto.
        where: Name of the tensor in errors.
        budget: Memory budget, from which the size of the array is taken.

    Raises:
        ModelError: If the dtype is not supported, the shape is unknown or out of range, the size
            does not fit the data, values do not fit the dtype, or the budget is exceeded.
    """
    dtype = parse_dtype(tensor.dtype, where)
    sizes = parse_shape(tensor.tensor_shape, where)
    if sizes is None or None in sizes:
        raise ModelError(f"{where} needs a known shape, got {_shown(sizes)}")
    shape = tuple(size for size in sizes if size is not None)
    if prod(size or 1 for size in shape) >= 1 << 59:
        raise ModelError(
            f"{where} needs a shape of fewer than 2**59 elements, got {shape}; the file is damaged"
        )
    nbytes = prod(shape) * dtype.nbytes
    budget.take(nbytes, f"{where} of shape {shape}")
    if tensor.tensor_content:
        array = _from_content(tensor.tensor_content, dtype, nbytes, f"{where} of shape {shape}")
    else:
        array = _from_values(tensor, dtype, prod(shape), f"{where} of shape {shape}")
    array.flags.writeable = False
    return array.reshape(shape)


def _shown(sizes: tuple[int | None, ...] | None) -> str:
    """Format the dimensions ``sizes`` for a message, with ``?`` for unknown ones.

    None, an unknown rank, gives a text.
    """
    return "an unknown rank" if sizes is None else str(sizes).replace("None", "?")


def _from_content(content: bytes, dtype: DType, nbytes: int, where: str) -> np.ndarray[Any, Any]:
    """Return the array in ``tensor_content``, in little-endian bytes.

    Args:
        content: The bytes.
        dtype: Dtype of the tensor.
        nbytes: Number of bytes that its shape needs.
        where: The tensor, for errors.

    Raises:
        ModelError: If the number of bytes differs.
    """
    if len(content) != nbytes:
        raise ModelError(f"{where} needs {nbytes} bytes of {dtype}, got {len(content)}")
    if dtype.kind == "b":
        content = (np.frombuffer(content, np.uint8) != 0).tobytes()  # a bool is 0 or 1
    array = np.frombuffer(content, dtype.numpy)
    return array.byteswap() if sys.byteorder == "big" else array


def _from_values(tensor: Any, dtype: DType, count: int, where: str) -> np.ndarray[Any, Any]:
    """Return a vector of ``count`` elements from the typed list of values, such as ``float_val``.

    The last value is repeated; an empty list gives zeros. ``where`` names the tensor in errors.

    Raises:
        ModelError: If there are more values than elements, or a value does not fit the dtype.
    """
    name = _FIELDS[tensor.dtype]
    values = getattr(tensor, name)
    num_stored = len(values)
    if dtype.kind == "c":
        if num_stored % 2:
            raise ModelError(f"{where} needs pairs of numbers in {name}, got {num_stored} numbers")
        num_stored //= 2
    if num_stored > count:
        raise ModelError(f"{where} needs {count} elements, got {num_stored} in {name}")
    if not num_stored:
        return np.zeros(count, dtype.numpy)
    stored = np.fromiter(values, _raw_type(dtype, name), len(values))
    array = np.empty(count, dtype.numpy)
    array[:num_stored] = _narrowed(stored, dtype, name, where)
    array[num_stored:] = array[num_stored - 1]
    return array


def _raw_type(dtype: DType, name: str) -> np.dtype[Any]:
    """Return the dtype in which the message's field ``name`` stores values of ``dtype``.

    Complex numbers are stored as pairs of the returned floats, 16-bit floats as int32 of their
    bits.
    """
    if name in ("int_val", "half_val"):
        return np.dtype(np.int32)
    if dtype.kind == "c":
        return np.dtype(np.float32 if dtype.nbytes == 8 else np.float64)
    return dtype.numpy


def _narrowed(
    stored: np.ndarray[Any, Any], dtype: DType, name: str, where: str
) -> np.ndarray[Any, Any]:
    """Return stored values in the dtype; 16-bit floats are stored as their bits.

    Values of a field that has the dtype are returned themselves, those of a complex one as a view.

    Args:
        stored: The values of the message's field.
        dtype: Dtype of the tensor.
        name: Name of the field.
        where: The tensor, for errors.

    Raises:
        ModelError: If a value is out of range.
    """
    if dtype.kind == "c":
        return stored.view(dtype.numpy)
    if name not in ("int_val", "half_val"):
        return stored
    storage_type = np.dtype(np.uint16) if name == "half_val" else dtype.numpy
    limits = np.iinfo(storage_type)
    out_of_range = (stored < limits.min) | (stored > limits.max)
    if out_of_range.any():
        raise ModelError(
            f"{where} needs values of {dtype} in {name}, got {int(stored[out_of_range][0])}"
        )
    return stored.astype(storage_type).view(dtype.numpy)
