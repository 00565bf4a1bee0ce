"""Joins and repetitions: `concat`, `stack`, `unstack`, `tile` and `repeat`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from passkit.errors import ArgumentError, DTypeError, ShapeError
from passkit.frontends.xp.array import Array, array_of, call, wrap
from passkit.frontends.xp.conversion import asarray
from passkit.frontends.xp.manipulation import normalized_axis, reshape
from passkit.frontends.xp.reductions import integer
from passkit.frontends.xp.runtime import apply, from_numpy, operation
from passkit.values.arguments import numbers, refuse, shown


def _joined(where: str, arrays: Any) -> list[Array]:
    """Return the arrays to join as a list: an `Array` itself, anything else as `asarray` has it.

    ``where`` is the function, for messages.

    Raises:
        ArgumentError: There are none, ``arrays`` cannot be iterated over, or one cannot be
            converted, such as a text.
        DTypeError: A NumPy array has no dtype of `passkit.xp`.
    """
    try:
        items = list(arrays)
    except TypeError:
        refuse(f"{where}: arrays", arrays, "a sequence of arrays")
    listed = [a if isinstance(a, Array) else asarray(a) for a in items]
    if not listed:
        raise ArgumentError(f"{where} needs at least one array, got none")
    return listed


def concat(arrays: Sequence[Array], /, axis: int | None = 0) -> Array:
    """Return a new array, arrays joined along an axis.

    Args:
        arrays: a sequence of arrays, numbers or lists of numbers; they are converted to the dtype
            that elementwise operations promote theirs to. An `Array` is a sequence of its slices.
        axis: the axis, an int; None joins their elements in row-major order, as a vector.

    Raises:
        ArgumentError: It is no sequence, there are no arrays, one cannot be converted, or the axis
            is no int.
        DTypeError: A NumPy array has no dtype of `passkit.xp`.
        ShapeError: Their numbers of axes differ, or their extents along another axis, or the axis
            is out of range.
        DeviceError: They are on several devices.
    """
    listed = _joined("concat", arrays)
    if axis is None:
        listed, axis = [reshape(a, (-1,)) for a in listed], 0
    axis = normalized_axis("concat", axis, listed[0].ndim)
    check_extents("concat", listed, axis)
    return call("concat", *listed, axis=axis)


def check_extents(name: str, arrays: Sequence[Array], axis: int) -> None:
    """Check that arrays, at least one, fit beside each other along ``axis``, from 0 on.

    Raises: ShapeError naming the function ``name`` if their numbers of axes differ, or their
    extents along another axis.
    """
    first = arrays[0].shape
    for a in arrays:
        if a.ndim != len(first) or any(
            n != m for k, (n, m) in enumerate(zip(a.shape, first, strict=True)) if k != axis
        ):
            raise ShapeError(
                f"{name} along axis {axis} needs equal extents along all others, got {first} and "
                f"{a.shape}"
            )


def stack(arrays: Sequence[Array], /, axis: int = 0) -> Array:
    """Return a new array, arrays joined along a new axis.

    Args:
        arrays: a sequence of arrays of one shape, numbers or lists of numbers; they are converted
            to the dtype that elementwise operations promote theirs to. An `Array` is a sequence of
            its slices.
        axis: where the new axis stands in the result; a negative one counts from its end.

    Raises:
        ArgumentError: It is no sequence, there are no arrays, one cannot be converted, or the axis
            is no int.
        DTypeError: A NumPy array has no dtype of `passkit.xp`.
        ShapeError: Their shapes differ, or the axis is out of range.
        DeviceError: They are on several devices.
    """
    listed = _joined("stack", arrays)
    for a in listed:
        if a.shape != listed[0].shape:
            raise ShapeError(
                f"stack needs arrays of one shape, got {listed[0].shape} and {a.shape}"
            )
    axis = normalized_axis("stack", axis, listed[0].ndim + 1)
    return call("stack", *listed, axis=axis)


def unstack(x: Array, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Return a tuple of the parts of an array along an axis, without that axis: new arrays.

    Args:
        x: the array.
        axis: the axis, an int; of extent 0, it gives an empty tuple.

    Raises:
        ArgumentError: ``x`` is no array or number, or the axis no int.
        ShapeError: The axis is out of range.
    """
    x = array_of(x)
    axis = normalized_axis("unstack", axis, x.ndim)
    before = (slice(None),) * axis
    return tuple(x[(*before, k)] for k in range(x.shape[axis]))


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """Return a new array, the entire array repeated along its axes.

    Args:
        x: the array, or a number.
        repetitions: how often it is repeated along each axis, aligned at the last: an int, or a
            tuple or list of them. More of them than axes give new axes in front; axes without one
            are not repeated.

    Raises:
        ArgumentError: ``x`` is no array or number, or a number no int.
        ShapeError: A number is negative, or the result has too many elements.
    """
    listed = repetitions if isinstance(repetitions, (tuple, list)) else (repetitions,)
    counts = tuple([integer("tile: repetitions", r) for r in listed])
    if any(r < 0 for r in counts):
        raise ShapeError(f"tile needs repetitions >= 0, got {shown(counts)}")
    return call("tile", array_of(x), repetitions=counts)


def repeat(x: Array, repeats: int | Array, /, axis: int | None = None) -> Array:
    """Return a new array with each element repeated.

    Args:
        x: the array, or a number.
        repeats: how often each element along the axis is repeated: an int, or an array or list of
            one for all elements or one for each. Of a pending array, what it needs is executed.
        axis: the axis, an int; None: all elements in row-major order, as a vector.

    Raises:
        ArgumentError: ``x`` is no array or number, ``repeats`` are none, or the axis is no int.
        ShapeError: The axis is out of range, a number is negative, or there is not one for each
            element, or the result has too many elements.
        DTypeError: ``repeats`` are no integers, such as booleans.
        ConcretizationError: ``repeats`` depend on arguments of a function that is traced.
    """
    x = array_of(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = normalized_axis("repeat", axis, x.ndim)
    counts = numbers("repeat: repeats", repeats)
    if not counts.size:
        counts = counts.astype(np.int64)
    if counts.dtype.kind not in "iu":
        raise DTypeError(f"repeat needs integers as repeats, got {counts.dtype}")
    n = x.shape[axis]
    if counts.ndim > 1 or counts.shape not in ((), (1,), (n,)):
        raise ShapeError(
            f"repeat needs one number, or one for each of {n} elements, got shape {counts.shape}"
        )
    if np.any(counts < 0):
        raise ShapeError(f"repeat needs repeats >= 0, got {counts.min()}")
    if counts.size == 1:
        return call("repeat", x, repeats=int(counts.reshape(())), axis=axis)
    device = x._value.type.device
    indices = from_numpy(np.repeat(np.arange(n), counts), is_owned=True, device=device)
    return wrap(apply(operation("gather", axis=axis), x._value, indices))
