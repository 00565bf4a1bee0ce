"""Samplers of classes, elements of arrays, and permutations."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from passkit.errors import FeedError, ShapeError
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.conversion import astype
from passkit.frontends.xp.creation import checked_shape
from passkit.frontends.xp.elementwise import log, minimum
from passkit.frontends.xp.extents import apply_typed, extents_input
from passkit.frontends.xp.indexing import take
from passkit.frontends.xp.manipulation import normalized_axis, reshape
from passkit.frontends.xp.random.drawing import (
    DrawShape,
    check_real,
    draw_floats,
    drawn,
    float_dtype,
    parameter,
    size_for,
)
from passkit.frontends.xp.random.keys import checked_key
from passkit.frontends.xp.random.operations import INT64
from passkit.frontends.xp.random.samplers import randint
from passkit.frontends.xp.reductions import truth
from passkit.frontends.xp.runtime import operation
from passkit.frontends.xp.searching import argmax, argsort, searchsorted
from passkit.frontends.xp.statistical import cumulative_sum
from passkit.streams.operation import array_type
from passkit.values.dtype import float64

# Classes, choices and permutations.


def categorical(key: Array, logits: Any, axis: int = -1, shape: DrawShape | None = None) -> Array:
    """Return classes, drawn with the probabilities softmax(logits) along an axis.

    Args:
        key: the key.
        logits: logarithms of probabilities up to a constant, an array of floats. Classes of minus
            infinity are not drawn, unless all are; then, and where there is NaN, it is the first
            such class.
        axis: the axis of the classes.
        shape: the shape of the result, to which that of the logits without ``axis`` broadcasts;
            None: the latter.

    Returns: Positions along the axis, as int64.

    Raises:
        ArgumentError: the key is no `Array`, the logits no array or number, the axis no int, or the
            shape neither an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, or the logits no real floats.
        ShapeError: the key is not 0-dimensional, there is no such axis or no class, the logits do
            not broadcast to the shape, or an extent is negative or too large.
        DeviceError: the arrays are on several devices.
    """
    checked_key("categorical", key)
    x = array_of(logits)
    target = float_dtype("categorical", x.dtype)
    k = normalized_axis("categorical: axis", axis, x.ndim)
    examples = x.shape[:k] + x.shape[k + 1 :]
    if shape is None:
        extents = x.shape
    else:
        result_shape = checked_shape("categorical", shape)
        size_for("categorical", result_shape, examples)
        behind = x.ndim - 1 - k
        cut = len(result_shape) - behind
        extents = (*result_shape[:cut], x.shape[k], *result_shape[cut:])
        k = cut
    return argmax(x + draw_floats("gumbel", key, extents, target.numpy, "categorical"), axis=k)


def permutation(key: Array, x: Any, axis: int = 0) -> Array:
    """Return the slices of an array in random order, or the integers below a number.

    Args:
        key: the key.
        x: an array of any dtype; or an int, which stands for the integers from 0 to below it.
        axis: the axis along which slices move together; it is not read if ``x`` is an int.

    Returns: A new array; of int64 for an int.

    Raises:
        ArgumentError: the key is no `Array`, ``x`` no array or number, or the axis no int; or
            `vmap` vectorizes the draw.
        DTypeError: the key is not of int64.
        ShapeError: the key is not 0-dimensional, ``x`` is a negative or too large int, an array
            without axes or a float, or there is no such axis.
        DeviceError: the key and ``x`` are on several devices.
    """
    value = checked_key("permutation", key)
    if isinstance(x, (int, np.integer)):
        shape = checked_shape("permutation", x)
        op = operation("random.permutation", shape=shape)
        return wrap(apply_typed(op, array_type(INT64, shape), value, extents_input(shape)))
    array = array_of(x)
    k = normalized_axis("permutation: axis", axis, array.ndim)
    return take(array, permutation(key, array.shape[k]), axis=k)


def choice(
    key: Array,
    a: Any,
    shape: DrawShape = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
) -> Array:
    """Return elements of an array, or slices along an axis, drawn at random.

    Args:
        key: the key.
        a: an array of any dtype; or an int, which stands for the integers from 0 to below it.
        shape: the shape of the array of draws; it replaces ``axis`` in the result.
        replace: whether an element may be drawn several times.
        p: the probability of each element, a vector of real numbers that are not negative, which
            is not checked; their sum need not be 1. None: equal ones. If all are 0, the last
            element is drawn. Without replacement, elements of probability 0 come last.
        axis: the axis of the elements; it is not read if ``a`` is an int.

    Raises:
        ArgumentError: the key is no `Array`, ``a`` or ``p`` no array or number, the axis no int, or
            the shape neither an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, or ``p`` is complex.
        FeedError: there are no elements, also if none is drawn, or fewer than are drawn without
            replacement, or ``a`` is an int above 2**63 - 1.
        ShapeError: the key is not 0-dimensional, ``a`` is an array without axes or a float, there
            is no such axis, ``p`` has another shape than the number of elements, or an extent is
            negative or too large.
        DeviceError: the arrays are on several devices.
    """
    checked_key("choice", key)
    extents = checked_shape("choice", shape)
    array = None if isinstance(a, (int, np.integer)) else array_of(a)
    k = 0 if array is None else normalized_axis("choice: axis", axis, array.ndim)
    count = operator.index(a) if array is None else array.shape[k]
    number = int(np.prod(extents, dtype=object))
    replace = truth("choice: replace", replace)
    if count < 1:
        raise FeedError(f"choice needs an element to draw, got {count} of them")
    if not replace and number > count:
        raise FeedError(
            f"choice draws at most {count} of {count} elements without replacement, got shape "
            f"{extents}"
        )
    weights = None if p is None else array_of(p)
    if weights is not None:
        check_real("choice", "p", weights)
    if weights is not None and weights.shape != (count,):
        raise ShapeError(f"choice needs p of shape {(count,)}, got {weights.shape}")
    if replace:
        positions = _with_replacement(key, count, extents, weights)
    elif weights is None:
        positions = reshape(permutation(key, count)[:number], extents)
    else:
        noisy = log(weights) + draw_floats("gumbel", key, (count,), None, "choice")
        positions = reshape(argsort(noisy, descending=True)[:number], extents)
    return positions if array is None else _slices(array, positions, k)


def _with_replacement(key: Array, count: int, shape: tuple[int, ...], p: Array | None) -> Array:
    """Return positions from 0 to below ``count`` of a shape, as int64.

    They are drawn with the probabilities ``p``, a vector of ``count`` real numbers whose sum need
    not be 1; None: with equal ones. If all are 0, the last position is drawn.

    Raises: FeedError if ``count`` is above 2**63 - 1 and ``p`` None; DeviceError if key and ``p``
    are on several devices; ArgumentError if `vmap` vectorizes the draw.
    """
    if p is None:
        return randint(key, shape, 0, count)
    total = cumulative_sum(astype(p, np.float64, copy=False))
    u = drawn(
        "uniform",
        checked_key("choice", key),
        shape,
        float64,
        [parameter("choice", "p", x, float64) for x in (0.0, 1.0)],
    )
    # u * total may be rounded up to the total.
    return minimum(searchsorted(total, u * total[-1], side="right"), count - 1)


def _slices(array: Array, positions: Array, axis: int) -> Array:
    """Return slices of an array along an axis, at positions of any shape that are in range.

    The shape of the positions replaces the axis, which is not negative.
    """
    taken = take(array, reshape(positions, (-1,)), axis=axis)
    return reshape(taken, (*array.shape[:axis], *positions.shape, *array.shape[axis + 1 :]))
