"""Keys of random numbers: int64 scalars, from which draws and further keys are computed.

A draw is a function of its key: the same key, distribution and shape give the same numbers, in
every process, on every target. Keys are inputs of plans, so that steps with different keys run one
plan. A key is for one draw; `split` and `fold_in` make others of it.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from passkit.errors import ArgumentError, DTypeError, FeedError, ShapeError
from passkit.frontends.xp.array import Array, call, wrap
from passkit.frontends.xp.creation import checked_shape
from passkit.frontends.xp.extents import apply_typed, extents_input
from passkit.frontends.xp.random.operations import INT64
from passkit.frontends.xp.runtime import from_numpy, operation
from passkit.streams.operation import array_type
from passkit.streams.recorder import Value
from passkit.values.arguments import refuse, shown


def checked_key(where: str, key: Any) -> Value:
    """Return the value of a key, a 0-dimensional `Array` of int64.

    ``where`` is the function, for messages.

    Raises:
        ArgumentError: It is no `Array`, such as an int or a NumPy array.
        DTypeError: It is not of int64.
        ShapeError: It is not 0-dimensional.
    """
    if not isinstance(key, Array):
        raise ArgumentError(
            f"{where} needs a key, got {shown(key)}; xp.random.key(seed) makes one of a seed"
        )
    if key.dtype != INT64:
        raise DTypeError(
            f"{where} needs a key of int64, got {key.dtype}; xp.random.key(seed) makes one"
        )
    if key.ndim:
        raise ShapeError(
            f"{where} needs one key, a 0-dimensional array, got shape {key.shape}; keys[0] is one "
            f"of several"
        )
    return key._value


def _integers(where: str, name: str, data: Any) -> Array:
    """Return integers as an array: an `Array` itself, an int as int64.

    Ints from 2**63 to below 2**64 wrap to negative numbers. ``where`` and ``name`` are the function
    and the parameter, for messages.

    Raises:
        ArgumentError: It is neither an int (of Python or NumPy) nor an `Array`.
        DTypeError: It is an `Array` of other elements than integers, such as booleans.
        FeedError: An int is below -2**63 or not below 2**64.
    """
    if isinstance(data, Array) and data.dtype.kind in "iu":
        return data
    if isinstance(data, Array):
        raise DTypeError(f"{where}: {name} must be integers, got {data.dtype}")
    try:
        number = operator.index(data)
    except TypeError:
        refuse(f"{where}: {name}", data, "an int or an array of integers")
    if not -(2**63) <= number < 2**64:
        raise FeedError(f"{where}: {name} must have at most 64 bits, got {shown(number)}")
    signed = number - 2**64 if number >= 2**63 else number
    return wrap(from_numpy(np.asarray(signed, INT64), is_owned=True))


def key(seed: Any) -> Array:
    """Return the key of a seed. Neighbouring seeds give unrelated keys.

    Args:
        seed: an int from -2**63 to below 2**64 (those from 2**63 on give the keys of negative
            ones), or an `Array` of integers, which gives a key for each.

    Returns: An int64 array: 0-dimensional for an int, else in the shape of the seeds.

    Raises:
        ArgumentError: The seed is neither an int nor an `Array`.
        DTypeError: The array is not of integers.
        FeedError: An int is out of range.

    >>> from passkit import xp
    >>> xp.random.uniform(xp.random.key(0), 2, dtype=xp.float32)
    Array([0.6514701 , 0.66856354], dtype=float32)
    """
    return call("random.key", _integers("key", "seed", seed))


def split(key: Array, num: int | tuple[int, ...] = 2) -> Array:
    """Return several independent keys made of one.

    Args:
        key: the key, which should not be used otherwise.
        num: how many; or the shape of the array of keys.

    Returns: An int64 array of shape ``(num,)``, or ``num``; iteration gives the keys.

    Raises:
        ArgumentError: ``key`` is no `Array`, or ``num`` neither an int nor a tuple of ints.
        DTypeError: ``key`` is not of int64.
        ShapeError: ``key`` is not 0-dimensional, or ``num`` is negative or too large.

    >>> from passkit import xp
    >>> first, second = xp.random.split(xp.random.key(0))
    >>> first.shape
    ()
    """
    value = checked_key("split", key)
    shape = checked_shape("split", num)
    op = operation("random.split", shape=shape)
    return wrap(apply_typed(op, array_type(INT64, shape), value, extents_input(shape)))


def fold_in(key: Array, data: Any) -> Array:
    """Return a key made of a key and an integer, such as the number of a step.

    Args:
        key: the key.
        data: an int from -2**63 to below 2**64, or an `Array` of integers, which gives a key for
            each.

    Returns: An int64 array of the shape of ``data``, 0-dimensional for an int.

    Raises:
        ArgumentError: ``key`` is no `Array`, or the data neither an int nor an `Array`.
        DTypeError: ``key`` is not of int64, or an array of data not of integers.
        ShapeError: ``key`` is not 0-dimensional.
        FeedError: An int is out of range.

    >>> from passkit import xp
    >>> key = xp.random.key(0)
    >>> bool(xp.random.fold_in(key, 1) == xp.random.fold_in(key, 2))
    False
    """
    checked_key("fold_in", key)
    return call("random.fold_in", key, _integers("fold_in", "data", data))
