"""Products of matrices and vectors: sums of products, which are kernels that fuse."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from passkit.errors import ArgumentError, ShapeError
from passkit.frontends.xp.array import Array, array_of, call
from passkit.frontends.xp.linalg_operations import MATMUL
from passkit.frontends.xp.reductions import integer, one_axis
from passkit.values.arguments import shown


def matmul(x1: Any, x2: Any, /) -> Array:
    """Return the product of matrices, as the operator ``@``.

    Args:
        x1: an array of matrices (…, m, k), or a vector (k,).
        x2: an array of matrices (…, k, n), or a vector (k,); batches broadcast.

    Returns: An array (…, m, n) of the promoted dtype, in which integers wrap, without the axes of
        vectors. That of booleans is whether any product is true.

    Raises:
        ArgumentError: an operand is no array or number.
        ShapeError: an operand is 0-dimensional, or the shapes do not fit.
        DeviceError: the arrays are on several devices.
    """
    left, right = array_of(x1), array_of(x2)
    if not left.ndim or not right.ndim:
        raise ShapeError(
            f"matmul: operands need an axis, got shapes {left.shape} and {right.shape}; use *"
        )
    return call(MATMUL, left, right)


def tensordot(x1: Any, x2: Any, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Array:
    """Return sums of products over axes of two arrays.

    Args:
        x1: an array.
        x2: an array.
        axes: how many of the last axes of x1 and of the first of x2 are summed; or the axes of x1
            and as many of x2, of which negative ones count from the end.

    Returns: An array of the promoted dtype, with the other axes of x1, then those of x2. That of
        booleans is whether any product is true.

    Raises:
        ArgumentError: an operand is no array or number, or ``axes`` neither of these.
        ShapeError: there are not so many axes, or no such axis, one is named twice, or the extents
            differ.
        DeviceError: the arrays are on several devices.
    """
    if isinstance(axes, (int, np.integer)):
        return call("tensordot", array_of(x1), array_of(x2), axes=int(axes))
    try:
        left, right = (tuple(operator.index(k) for k in side) for side in axes)
        if len(left) != len(right):
            raise ValueError
    except (TypeError, ValueError):
        raise ArgumentError(
            f"tensordot: axes must be a number or two sequences of as many numbers, got "
            f"{shown(axes)}"
        ) from None
    return call("tensordot", array_of(x1), array_of(x2), axes=(left, right))


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Return the sum of products along an axis, of the conjugate of x1 where it is complex.

    Args:
        x1: an array.
        x2: an array; it broadcasts with x1, but has the same extent along the axis.
        axis: the axis, counted from the end: -1 is the last one.

    Returns: An array of the promoted dtype, without the axis; of booleans, whether any product is
        true.

    Raises:
        ArgumentError: an operand is no array or number, or the axis no integer.
        ShapeError: the extents of the axis differ, the others do not broadcast, or there is no such
            axis; numbers from 0 on are none.
        DeviceError: the arrays are on several devices.
    """
    number = integer("vecdot: axis", axis)
    left, right = array_of(x1), array_of(x2)
    if not -min(left.ndim, right.ndim) <= number < 0:
        raise ShapeError(
            f"vecdot needs an axis that both operands have, counted from the end, got "
            f"{shown(number)} for shapes {left.shape} and {right.shape}"
        )
    return call("vecdot", left, right, axis=number)


def outer(x1: Any, x2: Any, /) -> Array:
    """Return the products of every element of a vector and every one of another.

    Args:
        x1: a vector (m,).
        x2: a vector (n,).

    Returns: A matrix (m, n) of the promoted dtype.

    Raises:
        ArgumentError: an operand is no array or number.
        ShapeError: an operand is no vector, such as a number.
        DeviceError: the arrays are on several devices.
    """
    left, right = array_of(x1), array_of(x2)
    if left.ndim != 1 or right.ndim != 1:
        raise ShapeError(
            f"outer: operands must be vectors, got shapes {left.shape} and {right.shape}"
        )
    return call("outer", left, right)


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Return the vector products of vectors of three elements.

    Args:
        x1: an array with extent 3 along the axis.
        x2: the same; it broadcasts with x1.
        axis: the axis of the vectors; negative ones count from the end of each operand.

    Returns: An array of the promoted dtype, in which unsigned integers wrap.

    Raises:
        ShapeError: the extent is not 3, there is no such axis, or the shapes do not broadcast.
        DTypeError: both operands are booleans.
        ArgumentError: the axis is no integer, or an operand no array or number.
        DeviceError: the arrays are on several devices.
    """
    left, right = array_of(x1), array_of(x2)
    for x in (left, right):
        if x.shape[one_axis("cross", axis, x.ndim)] != 3:
            raise ShapeError(f"cross: axis {axis} must have extent 3, got shape {x.shape}")
    return call("cross", left, right, axis=axis)


def matrices(where: str, x: Any) -> Array:
    """Return ``x`` as an array of matrices, itself if it is an `Array`.

    ``where`` is the function, for messages.

    Raises:
        ArgumentError: It is neither an array nor a number.
        ShapeError: It has fewer than two axes, such as a number.
    """
    array = array_of(x)
    if array.ndim < 2:
        raise ShapeError(f"{where}: matrices need two axes, got shape {array.shape}")
    return array
