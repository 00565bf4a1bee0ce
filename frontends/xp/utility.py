"""The utility functions of the array API: all, any, and differences."""

from __future__ import annotations

from typing import Any

import numpy as np

import passkit.ops as ops
from passkit.errors import ArgumentError
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.elementwise_operations import converted, promoted
from passkit.frontends.xp.joining import check_extents
from passkit.frontends.xp.reductions import Axes, one_axis
from passkit.frontends.xp.runtime import OPERATIONS, apply, operation
from passkit.graph.node import Entry
from passkit.values.arguments import shown
from passkit.values.dtype import bool_


def all(x: Any, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return whether all elements along axes are true; True of nothing.

    Args:
        x: an array, or a number; numbers, also NaN, are true unless they are 0.
        axis: an axis, or a tuple or list of several; None for all, () for none.
        keepdims: keep the reduced axes with extent 1.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no integer.
        ShapeError: there is no such axis, or it is named twice.
    """
    return array_of(x).all(axis, keepdims)


def any(x: Any, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return whether any element along axes is true; False of nothing.

    Args:
        x: an array, or a number; numbers, also NaN, are true unless they are 0.
        axis: an axis, or a tuple or list of several; None for all, () for none.
        keepdims: keep the reduced axes with extent 1.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no integer.
        ShapeError: there is no such axis, or it is named twice.
    """
    return array_of(x).any(axis, keepdims)


def diff(
    x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None
) -> Array:
    """Return each element along an axis less the one before it; of booleans, whether they differ.

    Args:
        x: an array of numbers or booleans.
        axis: the axis.
        n: how often differences are taken, an int of Python; 0 returns a copy, and from the extent
            on nothing is left.
        prepend: an array to put before x along the axis; None for nothing.
        append: an array to put behind x along the axis; None for nothing.

    Returns: A new array of the dtype that the arrays promote to, in which unsigned integers wrap.

    Raises:
        ArgumentError: n is no int from 0 on, or a bool; an operand is no array or number; or the
            axis is no integer.
        ShapeError: there is no such axis, or the arrays do not fit beside each other, such as a
            number.
        DeviceError: the arrays are on several devices.

    >>> from passkit import xp
    >>> xp.diff(xp.asarray([1, 4, 9])).numpy()
    array([3, 5])
    """
    array = array_of(x)
    axis = one_axis("diff", axis, array.ndim)
    if type(n) is not int or n < 0:
        raise ArgumentError(f"diff: n must be a natural number, got {shown(n)}")
    parts = [
        array if part is x else array_of(part) for part in (prepend, x, append) if part is not None
    ]
    check_extents("diff", parts, axis)
    n = min(n, sum(part.shape[axis] for part in parts))
    return wrap(apply(operation("diff", axis=axis, n=n), *[part._value for part in parts]))


def _diff(*parts: Entry, axis: int, n: int) -> Entry:
    """Build n differences along ``axis``, not negative, of arrays, ``parts``, beside each other.

    They are converted to a common dtype; those of booleans are whether they differ. The arrays
    fit beside each other.
    """
    entries = converted(parts)
    x = ops.concat(*entries, axis=axis) if len(entries) > 1 else entries[0]
    if x.dtype is not bool_:
        return ops.diff(x, n=n, axis=axis) if n else ops.identity(x)
    for _ in range(n):
        rank = len(x.shape or ())
        later = tuple(slice(1, None) if k == axis else slice(None) for k in range(rank))
        earlier = tuple(slice(None, -1) if k == axis else slice(None) for k in range(rank))
        x = ops.not_equal(x[later], x[earlier])
    return ops.identity(x)


def _diff_of_arrays(*parts: Any, axis: int, n: int) -> Any:
    """Compute n differences along ``axis`` of arrays beside each other in NumPy."""
    return np.array(np.diff(np.concatenate(promoted(*parts), axis=axis), n, axis=axis))


OPERATIONS.define("diff", _diff, _diff_of_arrays)
