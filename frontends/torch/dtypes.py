"""The dtypes of PyTorch and of passkit, and arrays that share the memory of CPU tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from passkit.errors import DTypeError
from passkit.values.dtype import DType, dtype_of

NAMES: dict[torch.dtype, str] = {
    torch.bool: "bool",
    torch.uint8: "uint8",
    torch.uint16: "uint16",
    torch.uint32: "uint32",
    torch.uint64: "uint64",
    torch.int8: "int8",
    torch.int16: "int16",
    torch.int32: "int32",
    torch.int64: "int64",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.float64: "float64",
    torch.complex64: "complex64",
    torch.complex128: "complex128",
}
"""The name in passkit of each dtype of PyTorch that passkit has."""
TORCH_DTYPES: dict[str, torch.dtype] = {name: dtype for dtype, name in NAMES.items()}
"""The dtype of PyTorch by its name in passkit."""
_BFLOAT16 = dtype_of("bfloat16").numpy


def passkit_dtype(dtype: torch.dtype) -> DType:
    """Return passkit's dtype for one of PyTorch.

    Raises: DTypeError for a dtype that passkit does not have, such as float8_e4m3fn.
    """
    name = NAMES.get(dtype)
    if name is None:
        raise DTypeError(f"passkit has no dtype for {dtype}; it has {', '.join(TORCH_DTYPES)}")
    return dtype_of(name)


def torch_dtype(dtype: DType) -> torch.dtype:
    """Return PyTorch's dtype for one of passkit."""
    return TORCH_DTYPES[dtype.name]


def array_of(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    """Return a NumPy array that shares the memory of a CPU tensor, with its strides.

    A tensor whose conjugation or negation is pending is copied, and so is one on another device.
    One without memory, which stands for zeros, is created.
    """
    tensor = tensor.detach().cpu()
    if tensor._is_zerotensor():
        tensor = torch.zeros(tensor.shape, dtype=tensor.dtype)
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    if tensor.dtype is torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(_BFLOAT16)  # type: ignore[no-any-return]
    return tensor.numpy()  # type: ignore[no-any-return]


def tensor_of(array: np.ndarray[Any, Any]) -> torch.Tensor:
    """Return a CPU tensor that shares the memory of a NumPy array, and is no view of another.

    An array that may not be written, or with negative strides, is copied.
    """
    if not array.flags.writeable or any(n < 0 for n in array.strides):
        array = array.copy()
    if array.dtype == _BFLOAT16:
        bits = torch.from_numpy(array.view(np.int16))
        return owning_tensor(bits, torch.bfloat16, bits.shape, bits.stride())
    return torch.from_numpy(array)


def owning_tensor(
    tensor: torch.Tensor,
    dtype: torch.dtype,
    shape: Sequence[int],
    strides: Sequence[int],
    offset: int = 0,
) -> torch.Tensor:
    """Return the memory of a tensor as another tensor, which is no view of it for autograd.

    Autograd forbids writes to views that a function with several results returns.
    """
    storage = tensor.untyped_storage()
    empty = torch.empty(0, dtype=dtype, device=tensor.device)
    return empty.set_(storage, offset, tuple(shape), tuple(strides))
