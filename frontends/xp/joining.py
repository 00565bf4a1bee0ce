"""Joins and repetitions: `concat`, `stack`, `unstack`, `tile` and `repeat`."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from passkit.errors import ArgumentError, DTypeError, ShapeError
from passkit.frontends.xp.array import Array, call, wrap
from passkit.frontends.xp.conversion import asarray
from passkit.frontends.xp.manipulation import normalized_axis, reshape
from passkit.frontends.xp.runtime import apply, from_numpy, operation


def _joined(where: str, arrays: Any) -> list[Array]:
    """Return the arrays to join; numbers and lists among them are converted.

    ``where`` is the function, for messages. Raises: ArgumentError if there are none or one is no
    array; DTypeError or ShapeError as `asarray`.
    """
    listed = [a if isinstance(a, Array) else asarray(a) for a in arrays]
    if not listed:
        raise ArgumentError(f"{where} needs at least one array, got none")
    return listed


def concat(arrays: Sequence[Array], /, axis: int | None = 0) -> Array:
    """Return arrays joined along an axis.

    Args:
        arrays: the arrays; they are converted to their common dtype.
        axis: the axis; None joins their elements in row-major order.

    Raises:
        ArgumentError: There are no arrays.
        ShapeError: Their shapes differ along another axis, or the axis is out of range.
    """
    listed = _joined("concat", arrays)
    if axis is None:
        listed, axis = [reshape(a, (-1,)) for a in listed], 0
    first = listed[0].shape
    axis = normalized_axis("concat", axis, len(first))
    for a in listed:
        if a.ndim != len(first) or any(
            n != m for k, (n, m) in enumerate(zip(a.shape, first, strict=True)) if k != axis
        ):
            raise ShapeError(
                f"concat along axis {axis} needs equal extents along all others, got {first} and "
                f"{a.shape}"
            )
    return call("concat", *listed, axis=axis)


def stack(arrays: Sequence[Array], /, axis: int = 0) -> Array:
    """Return arrays joined along a new axis.

    Args:
        arrays: arrays of one shape; they are converted to their common dtype.
        axis: where the new axis stands in the result.

    Raises:
        ArgumentError: There are no arrays.
        ShapeError: Their shapes differ, or the axis is out of range.
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
    """Return the parts of an array along an axis, without that axis.

    Args:
        x: the array.
        axis: the axis.

    Raises: ShapeError if the axis is out of range.
    """
    axis = normalized_axis("unstack", axis, x.ndim)
    before = (slice(None),) * axis
    return tuple(x[(*before, k)] for k in range(x.shape[axis]))


def tile(x: Array, repetitions: tuple[int, ...], /) -> Array:
    """Return an array repeated as a whole.

    Args:
        x: the array.
        repetitions: how often it is repeated along each axis, aligned at the last.

    Raises: ShapeError if a number is negative; TypeError if it is no integer.
    """
    listed = repetitions if isinstance(repetitions, (tuple, list)) else (repetitions,)
    numbers = tuple([operator.index(r) for r in listed])
    if any(r < 0 for r in numbers):
        raise ShapeError(f"tile needs repetitions >= 0, got {numbers}")
    return call("tile", x, repetitions=numbers)


def repeat(x: Array, repeats: int | Array, /, axis: int | None = None) -> Array:
    """Return an array with its elements repeated.

    Args:
        x: the array.
        repeats: how often each element along the axis is repeated: one number, or an array of one
            for each, which is computed at once.
        axis: the axis; None: all elements in row-major order.

    Raises:
        ShapeError: The axis is out of range, or there is not a number for each element.
        DTypeError: ``repeats`` are no integers.
    """
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    axis = normalized_axis("repeat", axis, x.ndim)
    counts = np.asarray(repeats)
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
    indices = from_numpy(np.repeat(np.arange(n), counts), is_owned=True)
    return wrap(apply(operation("gather", axis=axis), x._value, indices))
