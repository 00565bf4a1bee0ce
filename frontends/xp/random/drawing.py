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
            floats, or float64 if none is.
        *params: the parameters of the distribution.

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
    """Return ``dtype`` as one of integers.

    Raises: DTypeError, which names the function ``where``, if it is no dtype of integers, such as
    bool.
    """
    target = checked_dtype(f"{where}: dtype", dtype)
    if not target.is_integer:
        raise DTypeError(f"{where} draws integers, got dtype {target}; xp.int32 is one")
    return target


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
    """Return the value of a parameter of a distribution; Python numbers are scalars of plans.

    Args:
        where: the function, for messages.
        name: the parameter, for messages.
        x: a Python bool, int or float; or an array or NumPy scalar, which keeps its dtype.
        dtype: the dtype of the draw: a Python number is a float64 for float64, else a float32.

    Raises:
        ArgumentError: it is nothing of these, such as a list or a Python complex.
        DTypeError: it is an array of complex numbers, or an int too large for a float.
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
        shape: an int or a tuple of ints; None: the common shape of the parameters.
        params: the values of the parameters.

    Raises:
        ArgumentError: the shape is something else.
        ShapeError: the parameters do not broadcast to it, or an extent is negative.
    """
    common = broadcast_shapes(*[p.type.shape for p in params])
    if shape is None:
        return common
    extents = checked_shape(where, shape)
    if common and broadcast_shapes(common, extents) != extents:
        raise ShapeError(f"{where}: parameters of shape {common} do not broadcast to {extents}")
    return extents


def drawn(
    name: str, key: Value, shape: tuple[int, ...], dtype: DType, params: list[Value]
) -> Array:
    """Apply the operation ``random.`` + ``name`` to a key and parameters; return the draw.

    It has this shape, to which the parameters broadcast, and this dtype.
    """
    op = operation(f"random.{name}", dtype=dtype.name, shape=shape)
    device = place_of(op, key, params)
    type = array_type(dtype.numpy, shape, device)
    return wrap(apply_typed(op, type, key, *params, extents_input(shape, device)))


def place_of(op: Operation, key: Value, params: list[Value]) -> StreamDevice | None:
    """Return the device of a draw, None for the CPU: that of its operands, else the default one.

    Raises: DeviceError if they are on several.
    """
    device: StreamDevice | None = common_device(op, [key.type, *[p.type for p in params]])
    has_axes = any(p.type.shape for p in params)
    return device if device is not None or has_axes else creation_device(op.name, None)


def draw_floats(where: str, key: Any, shape: Any, dtype: Any) -> Array:
    """Return a draw of floats from a distribution without parameters, which ``where`` names.

    A ``dtype`` of None is float64.

    Raises:
        ArgumentError: ``key`` is no `Array`, or the shape neither an int nor a tuple of ints.
        DTypeError: ``key`` is no key, or ``dtype`` not of floats.
        ShapeError: ``key`` is not 0-dimensional, or an extent is negative.
    """
    value = checked_key(where, key)
    return drawn(where, value, checked_shape(where, shape), float_dtype(where, dtype), [])


def scaled(where: str, x: Array, loc: Any, scale: Any) -> Array:
    """Return x * scale + loc; x itself for the Python numbers 1 and 0.

    An array of a wider dtype than ``x``, or one of more elements, widens the result. ``where`` is
    the function, for messages.

    Raises:
        ArgumentError: ``loc`` or ``scale`` is neither an array nor a real number.
        DTypeError: one is complex.
        ShapeError: they do not broadcast with ``x``.
    """
    check_real(where, "loc", loc)
    check_real(where, "scale", scale)
    if not (type(scale) in (int, float) and scale == 1):
        x = multiply(x, scale)
    return x if type(loc) in (int, float) and loc == 0 else add(x, loc)


def check_number(where: str, name: str, x: Any, low: float, high: float = np.inf) -> None:
    """Raise a FeedError if a Python number is not from ``low`` to ``high``, both included.

    Anything but a Python number, such as an array, is not checked. NaN is refused. ``where`` and
    ``name`` are the function and the parameter, for messages.
    """
    if isinstance(x, (int, float)) and not low <= x <= high:
        raise FeedError(f"{where}: {name} must be from {low:g} to {high:g}, got {x}")
