"""How draws are made: their arguments, checked, and the operation that is queued."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from passkit.errors import DTypeError, FeedError, ShapeError
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.creation import checked_shape
from passkit.frontends.xp.devices import creation_device
from passkit.frontends.xp.dtypes import checked_dtype
from passkit.frontends.xp.elementwise import add, multiply
from passkit.frontends.xp.extents import apply_typed, extents_input
from passkit.frontends.xp.manipulation import (
    broadcast_shapes,
)
from passkit.frontends.xp.random.keys import checked_key
from passkit.frontends.xp.runtime import operation, scalar
from passkit.streams.device import StreamDevice
from passkit.streams.operation import Operation, array_type, common_device
from passkit.streams.recorder import Value
from passkit.values.arguments import refuse, shown
from passkit.values.dtype import DType, dtype_of, float64, promote

DrawShape = int | tuple[int, ...]
"""A shape, or the extent of a vector."""


def float_dtype(where: str, dtype: Any, *params: Any) -> DType:
    """Return the dtype of a draw of floats.

    Args:
        where: the function, for messages.
        dtype: a dtype of real floats; None: the common one of the parameters that are arrays of
            floats (not NumPy scalars), or float64 if none is.
        *params: the parameters of the distribution, of which others have no effect.

    Raises: DTypeError if ``dtype`` is no dtype, or not of real floats.
    """
    if dtype is None:
        dtypes = [dtype_of(p.dtype) for p in params if isinstance(p, (Array, np.ndarray))]
        floats = [d for d in dtypes if d.is_float]
        return reduce(promote, floats) if floats else float64
    target = checked_dtype(f"{where}: dtype", dtype)
    if not target.is_float:
        raise DTypeError(f"{where} draws floats, got dtype {target}; xp.float32 is one")
    return target


def integer_dtype(where: str, dtype: Any) -> DType:
    """Return ``dtype``, a dtype of integers in any form, as the object of passkit.

    Raises: DTypeError, which names the function ``where``, if it is none, such as bool or None.
    """
    target = checked_dtype(f"{where}: dtype", dtype)
    if not target.is_integer:
        raise DTypeError(f"{where} draws integers, got dtype {target}; xp.int32 is one")
    return target


def is_number(x: Any) -> bool:
    """Return whether a parameter is a real number: a Python bool, int or float, or a NumPy scalar.

    Arrays without axes are none.
    """
    if isinstance(x, np.generic):
        return x.dtype.kind in "biuf" or x.dtype.name == "bfloat16"
    return isinstance(x, (int, float))


def check_real(where: str, name: str, x: Any) -> None:
    """Check a parameter of a distribution: a Python bool, int or float, an array or NumPy scalar.

    ``where`` and ``name`` are the function and the parameter, for messages.

    Raises:
        ArgumentError: it is nothing of these, such as a list or a Python complex.
        DTypeError: it is an array or NumPy scalar of complex numbers.
    """
    if isinstance(x, (bool, int, float)):
        return
    if not isinstance(x, (Array, np.ndarray, np.generic)):
        refuse(f"{where}: {name}", x, "a real number or an array")
    if np.dtype(x.dtype).kind == "c":
        raise DTypeError(f"{where}: {name} must be real, got {x.dtype}")


def parameter(where: str, name: str, x: Any, dtype: DType) -> Value:
    """Return the value of a parameter of a distribution, for an operation.

    Args:
        where: the function, for messages.
        name: the parameter, for messages.
        x: a Python bool, int or float; or an array or NumPy scalar, which keeps its dtype.
        dtype: the dtype of the draw: a Python number becomes float64 for float64, else float32.

    Raises:
        ArgumentError: it is nothing of these, such as a list or a Python complex.
        DTypeError: it is an array or NumPy scalar of complex numbers, or an int too large for a
            float64.
    """
    check_real(where, name, x)
    if isinstance(x, (bool, int, float)) and not isinstance(x, np.generic):
        try:
            number = float(x)
        except OverflowError:
            raise DTypeError(f"{where}: {name} is too large for a float: {shown(x)}") from None
        return scalar(number, np.dtype(np.float64 if dtype is float64 else np.float32))
    return array_of(x)._value


def draw_shape(where: str, shape: Any, params: list[Value]) -> tuple[int, ...]:
    """Return the shape of a draw, to which its parameters broadcast.

    Args:
        where: the function, for messages.
        shape: an int, or a tuple or list of ints; None: the common shape of the parameters.
        params: the values of the parameters.

    Raises:
        ArgumentError: the shape is something else.
        ShapeError: the parameters do not broadcast to it or with each other, or an extent is
            negative or too large.
    """
    common = broadcast_shapes(*[p.type.shape for p in params])
    return common if shape is None else size_for(where, checked_shape(where, shape), common)


def size_for(where: str, extents: tuple[int, ...], common: tuple[int, ...]) -> tuple[int, ...]:
    """Return ``extents``, the shape of a draw, if parameters of shape ``common`` broadcast to it.

    Raises: ShapeError, which names the function ``where``, if they do not.
    """
    aligned = zip(reversed(common), reversed(extents), strict=False)
    if len(common) > len(extents) or any(n not in (1, m) for n, m in aligned):
        raise ShapeError(f"{where}: parameters of shape {common} do not broadcast to {extents}")
    return extents


def drawn(
    name: str, key: Value, shape: tuple[int, ...], dtype: DType, params: list[Value]
) -> Array:
    """Apply the operation ``random.`` + ``name`` to a key and parameters; return the draw.

    The draw has this shape, to which the parameters broadcast, and this dtype. It is pending, or
    computed at once if it is small and the operands are computed.

    Raises: DeviceError if the operands are on several devices; ArgumentError in a function that is
    vectorized, which a draw cannot be.
    """
    op = operation(f"random.{name}", dtype=dtype.name, shape=shape)
    device = place_of(op, key, params)
    type = array_type(dtype.numpy, shape, device)
    return wrap(apply_typed(op, type, key, *params, extents_input(shape, device)))


def place_of(op: Operation, key: Value, params: list[Value]) -> StreamDevice | None:
    """Return the device of a draw, None for the CPU: that of its key and parameters.

    An array of the CPU with axes counts: the draw is on the CPU, or there is an error beside arrays
    of a device. Keys and parameters of the CPU without axes are read anywhere; alone they give the
    default device of `xp.config`.

    Raises: DeviceError if they are on several devices.
    """
    device: StreamDevice | None = common_device(op, [key.type, *[p.type for p in params]])
    has_axes = any(p.type.shape for p in params)
    return device if device is not None or has_axes else creation_device(op.name, None)


def draw_floats(distribution: str, key: Any, shape: Any, dtype: Any, where: str = "") -> Array:
    """Return a draw of floats from a distribution without parameters, such as "normal".

    A ``dtype`` of None is float64. ``where`` is the function, for messages; "": the distribution.

    Raises:
        ArgumentError: ``key`` is no `Array`, or the shape neither an int nor a tuple of ints; or
            `vmap` vectorizes the draw.
        DTypeError: ``key`` is not of int64, or ``dtype`` not of floats.
        ShapeError: ``key`` is not 0-dimensional, or an extent is negative or too large.
    """
    where = where or distribution
    value = checked_key(where, key)
    return drawn(distribution, value, checked_shape(where, shape), float_dtype(where, dtype), [])


def scaled(where: str, x: Array, loc: Any, scale: Any) -> Array:
    """Return x * scale + loc; x itself if they are the Python numbers 1 and 0.

    Dtypes and shapes are those of the elementwise operations: Python numbers keep the dtype of
    ``x``, an array promotes it and broadcasts with ``x``. ``where`` is the function, for messages.

    Raises:
        ArgumentError: ``loc`` or ``scale`` is neither an array nor a real number.
        DTypeError: one is complex, or an int too large for a float64.
        ShapeError: they do not broadcast with ``x``.
        DeviceError: they are on another device than ``x``.
    """
    check_real(where, "loc", loc)
    check_real(where, "scale", scale)
    if not (type(scale) in (int, float) and scale == 1):
        x = multiply(x, scale)
    return x if type(loc) in (int, float) and loc == 0 else add(x, loc)


def check_number(where: str, name: str, x: Any, low: float, high: float = np.inf) -> None:
    """Raise a FeedError if a number, see `is_number`, is not from ``low`` to ``high``, included.

    Anything else, such as an array, is not checked. NaN is refused. ``where`` and ``name`` are the
    function and the parameter, for messages.
    """
    if is_number(x) and not low <= x <= high:
        raise FeedError(f"{where}: {name} must be from {low:g} to {high:g}, got {shown(x)}")
