"""Layers of vectors: linear maps, embeddings, one-hot vectors and dropout."""

from __future__ import annotations

import operator
from typing import Any

import passkit.ops as ops
from passkit.errors import DTypeError, FeedError, ShapeError
from passkit.frontends.xp.array import Array, array_of
from passkit.frontends.xp.dtypes import checked_dtype
from passkit.frontends.xp.elementwise import multiply
from passkit.frontends.xp.nn import array_functions
from passkit.frontends.xp.nn.operands import (
    applied,
    define,
    real_array,
    real_number,
    real_values,
)
from passkit.frontends.xp.random.samplers import bernoulli
from passkit.frontends.xp.reductions import integer, several_axes
from passkit.frontends.xp.runtime import OPERATIONS
from passkit.frontends.xp.searching import where
from passkit.graph.node import Entry, known_shape
from passkit.values.arguments import refuse

# Linear maps, embeddings and one-hot vectors.


def _linear(x: Entry, weight: Entry, *bias: Entry) -> Entry:
    """Build x @ transpose(weight) + bias, for x of one axis or more; at most one bias."""
    is_vector = len(known_shape(x)) == 1
    rows = ops.expand_dims(x, axis=0) if is_vector else x
    product = ops.matmul(rows, weight, transpose_b=True)
    product = ops.squeeze(product, axis=0) if is_vector else product
    return product + bias[0] if bias else product


def _embedding(indices: Entry, weight: Entry) -> Entry:
    """Build the rows of a table at integer indices, of which negative ones count from the end."""
    positions = ops.cast(indices, dtype="int64")
    count: Any = known_shape(weight)[0]  # an int or a Size
    last = ops.arange(count, count + 1, 1, dtype="int64")
    shifted = positions + ops.reshape(last, shape=())
    return ops.gather(weight, ops.where(ops.less(positions, 0), shifted, positions), axis=0)


define("linear", _linear, on_arrays=array_functions.linear)
OPERATIONS.define("nn.embedding", _embedding)
OPERATIONS.define("nn.one_hot", ops.one_hot)


def linear(x: Any, weight: Any, bias: Any = None) -> Array:
    """Return x @ transpose(weight) + bias.

    Args:
        x: an array of shape (…, n) of real numbers, with one axis at least. Operands are converted
            to their common float dtype; if none has floats, to float64.
        weight: a matrix (m, n).
        bias: a vector (m,), or None.

    Returns: An array of shape (…, m).

    Raises:
        ArgumentError: an operand is neither an array nor a real number.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes do not fit.
        DeviceError: the arrays are on several devices.
    """
    values = real_values("linear", optional=("bias",), x=x, weight=weight, bias=bias)
    shapes = [v.type.shape for v in values]
    fits = len(shapes[0]) >= 1 and len(shapes[1]) == 2 and shapes[0][-1] == shapes[1][1]
    if not fits or (bias is not None and shapes[2] != shapes[1][:1]):
        raise ShapeError(
            f"linear needs x (…, n), weight (m, n) and bias (m,), got shapes "
            f"{', '.join(map(str, shapes))}"
        )
    return applied("linear", *values)


def embedding(indices: Any, weight: Any) -> Array:
    """Return the rows of a table at indices.

    Args:
        indices: an array of integers, or an integer; negative ones count from the end. Those out of
            range give the first or last row.
        weight: the table, an array of any dtype whose first axis is indexed.

    Returns: An array whose shape is that of the indices followed by that of a row.

    Raises:
        ArgumentError: an operand is no array or number.
        DTypeError: the indices are no integers, such as booleans.
        ShapeError: the table has no rows, or is a scalar.
        DeviceError: the arrays are on several devices.
    """
    positions, table = array_of(indices), array_of(weight)
    if positions.dtype.kind not in "iu":
        raise DTypeError(f"embedding needs integer indices, got {positions.dtype}")
    if not table.ndim or not table.shape[0]:
        raise ShapeError(f"embedding needs a table with rows, got shape {table.shape}")
    return applied("embedding", positions._value, table._value)


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1) -> Array:
    """Return vectors with 1 at the position of a class and 0 elsewhere.

    Args:
        x: an array of integers, or an integer; those that are no class, also negative ones, give
            zeros.
        num_classes: the number of classes, the extent of the new axis.
        dtype: the dtype, any; None: float64.
        axis: the place of the new axis in the result; negative ones count from its end.

    Raises:
        ArgumentError: ``x`` is no array or number, or the number of classes or the axis no
            integer.
        DTypeError: ``x`` is not of integers, or there is no such dtype.
        ShapeError: there is no such axis, or the number of classes is negative or too large.

    >>> from passkit import xp
    >>> xp.nn.one_hot(xp.asarray([0, 2]), 3, dtype=xp.int8)
    Array([[1, 0, 0],
           [0, 0, 1]], dtype=int8)
    """
    array = array_of(x)
    if array.dtype.kind not in "iu":
        raise DTypeError(f"one_hot needs integers, got {array.dtype}")
    try:
        depth = operator.index(num_classes)
    except TypeError:
        refuse("one_hot: num_classes", num_classes, "an int")
    name = checked_dtype("one_hot: dtype", "float64" if dtype is None else dtype).name
    place = integer("one_hot: axis", axis)
    return applied("one_hot", array._value, depth=depth, axis=place, dtype=name)


def dropout(
    x: Any, key: Array, rate: float = 0.5, *, shared_axes: int | tuple[int, ...] = ()
) -> Array:
    """Return x with elements set to 0 with a probability, and the others divided by 1 - rate.

    Args:
        x: an array of real numbers; integers become float64.
        key: a key of `passkit.xp.random`, another one for each call.
        rate: the probability, a number from 0 to below 1, which is an input of plans.
        shared_axes: axes along which all elements are kept or dropped together; None: all.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, the key is no `Array`, the rate
            no number, or an axis no integer.
        DTypeError: ``x`` is an array of complex numbers or an int too large for a float, or the key
            is not of int64.
        FeedError: the rate is out of range, or NaN.
        ShapeError: the key is not 0-dimensional, there is no such axis, or it is named twice.
        DeviceError: x and the key are on different devices.
    """
    array = real_array("dropout", "x", x)
    rate = real_number("dropout", "rate", rate)
    if not 0 <= rate < 1:
        raise FeedError(f"dropout needs a rate from 0 to below 1, got {rate}")
    shape = array.shape
    axes = several_axes("dropout", shared_axes, len(shape))
    shape = tuple(1 if axes is None or k in axes else n for k, n in enumerate(shape))
    is_kept = bernoulli(key, 1.0 - rate, shape)
    return where(is_kept, multiply(array, 1.0 / (1.0 - rate)), 0.0)
