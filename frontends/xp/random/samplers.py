"""Samplers: functions of a key and a shape that return random numbers.

They queue an operation. Its numbers are computed where they are read, in the same kernel as what
reads them: noise that is added to an array is never stored. Parameters of distributions are numbers
or arrays that broadcast to the shape. Arguments are checked at the call, but elements of arrays are
not.
"""

from __future__ import annotations

import operator
from math import erfc
from typing import Any

import numpy as np

from passkit.errors import DTypeError, FeedError, ShapeError
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.conversion import astype
from passkit.frontends.xp.creation import checked_shape
from passkit.frontends.xp.dtypes import checked_dtype
from passkit.frontends.xp.elementwise import add, exp
from passkit.frontends.xp.linalg import cholesky
from passkit.frontends.xp.manipulation import (
    broadcast_shapes,
    expand_dims,
    reshape,
)
from passkit.frontends.xp.products import matmul
from passkit.frontends.xp.random.drawing import (
    DrawShape,
    check_number,
    check_real,
    draw_floats,
    draw_shape,
    drawn,
    float_dtype,
    integer_dtype,
    is_number,
    parameter,
    scaled,
    size_for,
)
from passkit.frontends.xp.random.keys import checked_key
from passkit.frontends.xp.random.operations import INT64
from passkit.frontends.xp.runtime import scalar
from passkit.frontends.xp.searching import where
from passkit.frontends.xp.special import ndtr
from passkit.values.arguments import refuse, shown
from passkit.values.dtype import dtype_of

# Uniform numbers, integers and bits.


def bits(key: Array, shape: DrawShape = (), dtype: Any = np.uint32) -> Array:
    """Return random bits, as integers.

    Args:
        key: the key.
        shape: the shape.
        dtype: a dtype of integers, all of whose bits are random; signed ones may be negative.

    Raises:
        ArgumentError: the key is no `Array`, or the shape neither an int nor a tuple of ints; or
            `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, or the dtype not of integers, such as bool.
        ShapeError: the key is not 0-dimensional, or an extent is negative or too large.
    """
    value = checked_key("bits", key)
    target = integer_dtype("bits", dtype)
    return drawn("bits", value, checked_shape("bits", shape), target, [])


def uniform(
    key: Array,
    shape: DrawShape | None = None,
    dtype: Any = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
) -> Array:
    """Return uniformly distributed numbers from ``minval`` to below ``maxval``.

    Args:
        key: the key.
        shape: the shape, to which the limits broadcast; None: their common one.
        dtype: the dtype of the result, of floats; None: the common one of limits which are arrays
            of floats, or float64.
        minval: the lower limit, a finite number or array.
        maxval: the upper limit, which does not occur unless it is equal to ``minval``. Limits of
            which one is an array are not compared.

    Returns: Numbers in equal steps, as many as the significand of the dtype tells apart.

    Raises:
        ArgumentError: the key is no `Array`, a limit no array or real number, or the shape neither
            None nor an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, a limit complex or an int too large for a float64, or
            the dtype not of floats.
        FeedError: both limits are numbers and ``minval`` is not below ``maxval``, or one is NaN.
        ShapeError: the key is not 0-dimensional, the limits do not broadcast to the shape or with
            each other, or an extent is negative or too large.
        DeviceError: the key and the limits are on several devices.

    >>> from passkit import xp
    >>> xp.random.uniform(xp.random.key(7), (2, 2), dtype=xp.float32)
    Array([[0.71913594, 0.32338822],
           [0.6209354 , 0.37146097]], dtype=float32)
    """
    value = checked_key("uniform", key)
    target = float_dtype("uniform", dtype, minval, maxval)
    names = ("minval", minval), ("maxval", maxval)
    params = [parameter("uniform", name, x, target) for name, x in names]
    if is_number(minval) and is_number(maxval) and not minval < maxval:
        raise FeedError(f"uniform needs minval < maxval, got {minval} and {maxval}")
    return drawn("uniform", value, draw_shape("uniform", shape, params), target, params)


def randint(
    key: Array, shape: DrawShape | None, minval: Any, maxval: Any, dtype: Any = np.int64
) -> Array:
    """Return uniformly distributed integers from ``minval`` to below ``maxval``.

    Each is 63 random bits modulo the length of the range, whose bias is below 2**-31 for ranges of
    32 bits.

    Args:
        key: the key.
        shape: the shape, to which the limits broadcast; None: their common one.
        minval: the smallest integer, an int or an array of integers.
        maxval: the integer after the largest. Limits of which one is an array are not compared.
        dtype: a dtype of integers. Elements of arrays that it cannot hold wrap.

    Raises:
        ArgumentError: the key is no `Array`, a limit neither an array nor an int, or the shape
            neither None nor an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, an array of limits or the dtype not of integers.
        FeedError: a limit is an int that does not fit the dtype (``maxval`` may be one more); or
            both are ints and not in order, or more than 2**63 - 1 apart.
        ShapeError: the key is not 0-dimensional, the limits do not broadcast to the shape or with
            each other, or an extent is negative or too large.
        DeviceError: the key and the limits are on several devices.
    """
    value = checked_key("randint", key)
    target = integer_dtype("randint", dtype)
    limits = np.iinfo(target.numpy)
    params, numbers = [], []
    for name, x, beyond in (("minval", minval, 0), ("maxval", maxval, 1)):
        if isinstance(x, (Array, np.ndarray)):
            if np.dtype(x.dtype).kind not in "iu":
                raise DTypeError(f"randint: {name} must be integers, got {x.dtype}")
            params.append(array_of(x)._value)
            continue
        try:
            number = operator.index(x)
        except TypeError:
            refuse(f"randint: {name}", x, "an int or an array of integers")
        if not limits.min <= number <= limits.max + beyond:
            raise FeedError(
                f"randint: {name} must be from {limits.min} to {limits.max + beyond} for {target}, "
                f"got {shown(number)}"
            )
        numbers.append(number)
        params.append(scalar((number + 2**63) % 2**64 - 2**63, INT64))
    if len(numbers) == 2:
        low, high = numbers
        if low >= high:
            raise FeedError(f"randint needs minval < maxval, got {low} and {high}")
        if high - low >= 2**63:
            raise FeedError(f"randint draws from at most 2**63 - 1 integers, got {high - low}")
    return drawn("integers", value, draw_shape("randint", shape, params), target, params)


def bernoulli(key: Array, p: Any = 0.5, shape: DrawShape | None = None) -> Array:
    """Return booleans that are True with probability ``p``.

    Args:
        key: the key.
        p: the probability, a number or array. It is compared with numbers of 24 bits; elements of
            arrays need not be from 0 to 1: those from 1 on give True, NaN and those up to 0 False.
        shape: the shape, to which ``p`` broadcasts; None: that of ``p``.

    Raises:
        ArgumentError: the key is no `Array`, ``p`` no array or real number, or the shape neither
            None nor an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, or ``p`` complex.
        FeedError: ``p`` is a number, but no array, that is not from 0 to 1.
        ShapeError: the key is not 0-dimensional, ``p`` does not broadcast to the shape, or an
            extent is negative or too large.
        DeviceError: the key and ``p`` are on several devices.
    """
    value = checked_key("bernoulli", key)
    check_number("bernoulli", "p", p, 0, 1)
    params = [parameter("bernoulli", "p", p, dtype_of("float32"))]
    extents = draw_shape("bernoulli", shape, params)
    return drawn("bernoulli", value, extents, dtype_of("bool"), params)


def rademacher(key: Array, shape: DrawShape = (), dtype: Any = np.int64) -> Array:
    """Return -1 or 1 with equal probability, converted to a dtype.

    It may be any: -1 wraps in unsigned ones, and both are true in bool.

    Raises:
        ArgumentError: the key is no `Array`, or the shape neither an int nor a tuple of ints; or
            `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, or there is no such dtype; None is none.
        ShapeError: the key is not 0-dimensional, or an extent is negative or too large.
    """
    checked_key("rademacher", key)
    target = checked_dtype("rademacher: dtype", dtype)
    extents = checked_shape("rademacher", shape)
    return astype(randint(key, extents, 0, 2) * 2 - 1, target)


# The normal distribution and its relatives.


def normal(
    key: Array, shape: DrawShape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return normally distributed numbers.

    Args:
        key: the key.
        shape: the shape of the draw.
        dtype: the dtype of the draw, of floats; None: float64.
        loc: the mean, a number or an array that broadcasts with the draw.
        scale: the standard deviation, the same; its sign is not checked.

    Returns: Numbers none of which is more than 6.7 deviations from the mean, in float64 8.6. An
        array as ``loc`` or ``scale`` may widen the draw: drawn numbers are then repeated, and
        dtypes promoted.

    Raises:
        ArgumentError: the key is no `Array`, a parameter no array or real number, or the shape
            neither an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, the dtype not of floats, or a parameter complex or an
            int too large for a float64.
        ShapeError: the key is not 0-dimensional, an extent negative or too large, or a parameter
            does not broadcast with the draw.
        DeviceError: the arrays are on several devices.
    """
    return scaled("normal", draw_floats("normal", key, shape, dtype), loc, scale)


def lognormal(key: Array, sigma: Any = 1.0, shape: DrawShape = (), dtype: Any = None) -> Array:
    """Return numbers whose logarithm is normally distributed with standard deviation ``sigma``.

    The mean of the logarithm is 0. ``sigma`` is a number or an array that broadcasts with the draw,
    which has ``shape`` and ``dtype`` (None: float64). An array may widen both: drawn numbers are
    then repeated, and dtypes promoted.

    Raises:
        ArgumentError: the key is no `Array`, sigma no array or real number, or the shape neither an
            int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, the dtype not of floats, or sigma complex or an int too
            large for a float64.
        ShapeError: the key is not 0-dimensional, an extent negative or too large, or sigma does not
            broadcast with the draw.
        DeviceError: the arrays are on several devices.
    """
    return exp(scaled("lognormal", draw_floats("normal", key, shape, dtype, "lognormal"), 0, sigma))


def truncated_normal(
    key: Array,
    lower: Any = -2.0,
    upper: Any = 2.0,
    shape: DrawShape | None = None,
    dtype: Any = None,
) -> Array:
    """Return normally distributed numbers of mean 0 and variance 1 between two limits.

    Args:
        key: the key.
        lower: the lower limit, a number or array; it may be infinite.
        upper: the upper limit. Limits of which one is an array are not compared.
        shape: the shape, to which the limits broadcast; None: their common one.
        dtype: the dtype of the result, of floats; None: the common one of limits which are arrays
            of floats, or float64.

    Returns: Numbers from ``lower`` to ``upper``. Where both limits are more than 8 deviations (5 in
        float32) from 0 on one side, they take few values.

    Raises:
        ArgumentError: the key is no `Array`, a limit no array or real number, or the shape neither
            None nor an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, a limit complex or an int too large for a float64, or
            the dtype not of floats.
        FeedError: both limits are numbers and ``lower`` is not below ``upper``, or one is NaN.
        ShapeError: the key is not 0-dimensional, the limits do not broadcast to the shape or with
            each other, or an extent is negative or too large.
        DeviceError: the key and the limits are on several devices.
    """
    value = checked_key("truncated_normal", key)
    target = float_dtype("truncated_normal", dtype, lower, upper)
    names = ("lower", lower), ("upper", upper)
    limits = [wrap(parameter("truncated_normal", name, x, target)) for name, x in names]
    if is_number(lower) and is_number(upper) and not lower < upper:
        raise FeedError(f"truncated_normal needs lower < upper, got {lower} and {upper}")
    params = []
    for x, limit in ((lower, limits[0]), (upper, limits[1])):
        p = 0.5 * erfc(-x / 2**0.5) if isinstance(x, (int, float)) else ndtr(limit)
        params.append(parameter("truncated_normal", "", p, target))
    shape = draw_shape("truncated_normal", shape, params)
    result = drawn("truncated_normal", value, shape, target, params)
    low, high = (
        x if isinstance(x, (int, float)) else astype(limit, target.numpy, copy=False)
        for x, limit in ((lower, limits[0]), (upper, limits[1]))
    )
    return where(result < low, low, where(result > high, high, result))


def multivariate_normal(
    key: Array, mean: Array, cov: Array, shape: DrawShape | None = None, dtype: Any = None
) -> Array:
    """Return normally distributed vectors.

    Args:
        key: the key.
        mean: the mean vectors, (…, n).
        cov: the covariance matrices, (…, n, n), positive definite. Only the lower triangles are
            read.
        shape: the shape of the array of vectors, to which the other axes of mean and covariance
            broadcast; None: their common one.
        dtype: the dtype of the result, of floats; None: the common one of ``mean`` and ``cov`` as
            far as they have floats, or float64.

    Returns: An array whose shape is ``shape`` followed by n.

    Raises:
        ArgumentError: the key is no `Array`, mean or covariance neither an array nor a number, or
            the shape neither None nor an int nor a tuple or list of ints; or `vmap` vectorizes the
            draw.
        DTypeError: the key is not of int64, mean or covariance complex, or the dtype not of floats.
        FeedError: a covariance is not positive definite; NaNs in one are not refused. It is raised
            at the call for computed covariances of at most `xp.config.small` elements, else when
            the result is computed.
        ShapeError: the key is not 0-dimensional, ``mean`` has no axis, such as a number, or ``cov``
            fewer than two,
            their extents n differ, their other axes do not broadcast to the shape or with each
            other, or an extent is negative or too large.
        DeviceError: the arrays are on several devices.
    """
    function = "multivariate_normal"
    center, spread = array_of(mean), array_of(cov)
    check_real(function, "mean", center)
    check_real(function, "cov", spread)
    if center.ndim < 1 or spread.ndim < 2 or spread.shape[-2:] != center.shape[-1:] * 2:
        raise ShapeError(
            f"multivariate_normal needs mean (…, n) and cov (…, n, n), got shapes {center.shape} "
            f"and {spread.shape}"
        )
    target = float_dtype(function, dtype, center, spread)
    leading = broadcast_shapes(center.shape[:-1], spread.shape[:-2])
    extents = leading
    if shape is not None:
        extents = size_for(function, checked_shape(function, shape), leading)
    noise = draw_floats("normal", key, (*extents, center.shape[-1]), target.numpy, function)
    factor = cholesky(astype(spread, target.numpy, copy=False))
    turned = matmul(factor, expand_dims(noise, axis=-1))
    return add(reshape(turned, noise.shape), astype(center, target.numpy, copy=False))
