"""Samplers: functions of a key and a shape that return random numbers.

They queue an operation. Its numbers are computed where they are read, in the same kernel as what
reads them: noise that is added to an array is never stored. Parameters of distributions are numbers
or arrays that broadcast to the shape.
"""

from __future__ import annotations

import operator
from math import erfc
from typing import Any

import numpy as np

from passkit.errors import DTypeError, FeedError, ShapeError
from passkit.frontends.xp.array import Array, array_of
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
    draw_floats,
    draw_shape,
    drawn,
    float_dtype,
    integer_dtype,
    parameter,
    scaled,
)
from passkit.frontends.xp.random.keys import checked_key
from passkit.frontends.xp.random.operations import INT64
from passkit.frontends.xp.runtime import scalar
from passkit.frontends.xp.searching import where
from passkit.frontends.xp.special import ndtr
from passkit.values.arguments import refuse
from passkit.values.dtype import dtype_of

# Uniform numbers, integers and bits.


def bits(key: Array, shape: DrawShape = (), dtype: Any = np.uint32) -> Array:
    """Return random bits, as integers.

    Args:
        key: the key.
        shape: the shape.
        dtype: a dtype of integers, all of whose bits are random.

    Raises:
        ArgumentError: the key is no `Array`, or the shape neither an int nor a tuple of ints.
        DTypeError: the key is no key, or the dtype not of integers, such as bool.
        ShapeError: the key is not 0-dimensional, or an extent is negative.
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
        shape: the shape; None: the common one of the limits.
        dtype: a dtype of floats; None: that of limits which are arrays of floats, or float64.
        minval: the lower limit, a number or array.
        maxval: the upper limit, which does not occur. Limits of which one is an array are not
            compared.

    Returns: Numbers in equal steps, as many as the significand of the dtype tells apart.

    Raises:
        ArgumentError: the key is no `Array`, a limit no array or real number, or the shape neither
            None nor an int nor a tuple of ints.
        DTypeError: the key is no key, a limit complex, or the dtype not of floats.
        FeedError: both limits are numbers and ``minval`` is not below ``maxval``.
        ShapeError: the limits do not broadcast to the shape, or an extent is negative.

    >>> from passkit import xp
    >>> xp.random.uniform(xp.random.key(7), (2, 2), dtype=xp.float32)
    Array([[0.71913594, 0.32338822],
           [0.6209354 , 0.37146097]], dtype=float32)
    """
    value = checked_key("uniform", key)
    target = float_dtype("uniform", dtype, minval, maxval)
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)) and minval >= maxval:
        raise FeedError(f"uniform needs minval < maxval, got {minval} and {maxval}")
    names = ("minval", minval), ("maxval", maxval)
    params = [parameter("uniform", name, x, target) for name, x in names]
    return drawn("uniform", value, draw_shape("uniform", shape, params), target, params)


def randint(
    key: Array, shape: DrawShape | None, minval: Any, maxval: Any, dtype: Any = np.int64
) -> Array:
    """Return uniformly distributed integers from ``minval`` to below ``maxval``.

    Each is 63 random bits modulo the length of the range, whose bias is below 2**-31 for ranges of
    32 bits.

    Args:
        key: the key.
        shape: the shape; None: that of the limits.
        minval: the smallest integer, an int or an array of integers.
        maxval: the integer after the largest. Limits of which one is an array are not compared.
        dtype: a dtype of integers.

    Raises:
        ArgumentError: the key is no `Array`, a limit neither an array nor an int, or the shape
            neither None nor an int nor a tuple of ints.
        DTypeError: the key is no key, an array of limits or the dtype not of integers.
        FeedError: the limits are ints that are not in order, do not fit the dtype, or have more
            than 2**63 - 1 integers between them.
        ShapeError: the limits do not broadcast to the shape, or an extent is negative.
    """
    value = checked_key("randint", key)
    target = integer_dtype("randint", dtype)
    params = []
    for name, x in (("minval", minval), ("maxval", maxval)):
        if isinstance(x, (Array, np.ndarray)):
            if np.dtype(x.dtype).kind not in "iu":
                raise DTypeError(f"randint: {name} must be integers, got {x.dtype}")
            params.append(array_of(x)._value)
            continue
        try:
            number = operator.index(x)
        except TypeError:
            refuse(f"randint: {name}", x, "an int or an array of integers")
        params.append(scalar((number + 2**63) % 2**64 - 2**63, INT64))
    if not isinstance(minval, (Array, np.ndarray)) and not isinstance(maxval, (Array, np.ndarray)):
        limits = np.iinfo(target.numpy)
        if not limits.min <= minval < maxval <= limits.max + 1:
            raise FeedError(
                f"randint needs minval < maxval within {target}, got {minval} and {maxval}"
            )
        if maxval - minval >= 2**63:
            raise FeedError(f"randint draws from at most 2**63 - 1 integers, got {maxval - minval}")
    return drawn("integers", value, draw_shape("randint", shape, params), target, params)


def bernoulli(key: Array, p: Any = 0.5, shape: DrawShape | None = None) -> Array:
    """Return booleans that are True with probability ``p``.

    Args:
        key: the key.
        p: the probability, a number or array. It is compared with numbers of 24 bits; elements of
            arrays need not be from 0 to 1.
        shape: the shape; None: that of ``p``.

    Raises:
        ArgumentError: the key is no `Array`, ``p`` no array or real number, or the shape neither
            None nor an int nor a tuple of ints.
        DTypeError: the key is no key, or ``p`` complex.
        FeedError: ``p`` is a number that is not from 0 to 1.
        ShapeError: ``p`` does not broadcast to the shape, or an extent is negative.
    """
    value = checked_key("bernoulli", key)
    check_number("bernoulli", "p", p, 0, 1)
    params = [parameter("bernoulli", "p", p, dtype_of("float32"))]
    extents = draw_shape("bernoulli", shape, params)
    return drawn("bernoulli", value, extents, dtype_of("bool"), params)


def rademacher(key: Array, shape: DrawShape = (), dtype: Any = np.int64) -> Array:
    """Return -1 or 1 with equal probability, converted to a dtype.

    Raises:
        ArgumentError: the key is no `Array`, or the shape neither an int nor a tuple of ints.
        DTypeError: the key is no key, or there is no such dtype.
        ShapeError: the key is not 0-dimensional, or an extent is negative.
    """
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
        shape: the shape.
        dtype: a dtype of floats; None: float64.
        loc: the mean, a number or an array that broadcasts with the draw.
        scale: the standard deviation, the same.

    Returns: Numbers none of which is more than 6.7 deviations from the mean, in float64 8.6. If an
        array of ``loc`` or ``scale`` has a wider dtype, or more elements, so has the result.

    Raises:
        ArgumentError: the key is no `Array`, a parameter no array or real number, or the shape
            neither an int nor a tuple of ints.
        DTypeError: the key is no key, the dtype not of floats, or a parameter complex.
        ShapeError: an extent is negative, or a parameter does not broadcast with the draw.
    """
    return scaled("normal", draw_floats("normal", key, shape, dtype), loc, scale)


def lognormal(key: Array, sigma: Any = 1.0, shape: DrawShape = (), dtype: Any = None) -> Array:
    """Return numbers whose logarithm is normally distributed with standard deviation ``sigma``.

    The mean of the logarithm is 0. ``sigma`` is a number or an array that broadcasts with the draw;
    a ``dtype`` of None is float64.

    Raises:
        ArgumentError: the key is no `Array`, sigma no array or real number, or the shape neither
            an int nor a tuple of ints.
        DTypeError: the key is no key, the dtype not of floats, or sigma complex.
        ShapeError: an extent is negative, or sigma does not broadcast with the draw.
    """
    return exp(scaled("lognormal", draw_floats("normal", key, shape, dtype), 0, sigma))


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
        lower: the lower limit, a number or array.
        upper: the upper limit. Limits of which one is an array are not compared.
        shape: the shape; None: the common one of the limits.
        dtype: a dtype of floats; None: that of limits which are arrays of floats, or float64.

    Raises:
        ArgumentError: the key is no `Array`, a limit no array or real number, or the shape neither
            None nor an int nor a tuple of ints.
        DTypeError: the key is no key, a limit complex, or the dtype not of floats.
        FeedError: both limits are numbers and ``lower`` is not below ``upper``.
        ShapeError: the limits do not broadcast to the shape, or an extent is negative.
    """
    value = checked_key("truncated_normal", key)
    target = float_dtype("truncated_normal", dtype, lower, upper)
    numbers = [x for x in (lower, upper) if isinstance(x, (int, float))]
    if len(numbers) == 2 and lower >= upper:
        raise FeedError(f"truncated_normal needs lower < upper, got {lower} and {upper}")
    params = []
    for name, x in (("lower", lower), ("upper", upper)):
        if isinstance(x, (int, float)):
            p: Any = 0.5 * erfc(-x / 2**0.5)
        else:
            parameter("truncated_normal", name, x, target)
            p = ndtr(x)
        params.append(parameter("truncated_normal", name, p, target))
    shape = draw_shape("truncated_normal", shape, params)
    result = drawn("truncated_normal", value, shape, target, params)
    return where(result < lower, lower, where(result > upper, upper, result))


def multivariate_normal(
    key: Array, mean: Array, cov: Array, shape: DrawShape | None = None, dtype: Any = None
) -> Array:
    """Return normally distributed vectors.

    Args:
        key: the key.
        mean: the mean vectors, (…, n).
        cov: the covariance matrices, (…, n, n), positive definite.
        shape: the shape of the array of vectors, to which the other axes of mean and covariance
            broadcast; None: theirs.
        dtype: a dtype of floats; None: the common one of ``mean`` and ``cov`` as far as they have
            floats, or float64.

    Returns: An array whose shape is ``shape`` followed by n.

    Raises:
        ArgumentError: the key is no `Array`, mean or covariance no array, or the shape neither None
            nor an int nor a tuple of ints.
        DTypeError: the key is no key, mean or covariance complex, or the dtype not of floats.
        FeedError: a covariance is not positive definite; raised when it is decomposed, at once.
        ShapeError: the shapes do not fit.
    """
    center, spread = array_of(mean), array_of(cov)
    if center.ndim < 1 or spread.ndim < 2 or spread.shape[-2:] != center.shape[-1:] * 2:
        raise ShapeError(
            f"multivariate_normal needs mean (…, n) and cov (…, n, n), got shapes {center.shape} "
            f"and {spread.shape}"
        )
    target = float_dtype("multivariate_normal", dtype, center, spread)
    leading = broadcast_shapes(center.shape[:-1], spread.shape[:-2])
    extents = leading if shape is None else checked_shape("multivariate_normal", shape)
    noise = draw_floats("normal", key, (*extents, center.shape[-1]), target.numpy)
    factor = cholesky(astype(spread, target.numpy, copy=False))
    turned = matmul(factor, expand_dims(noise, axis=-1))
    return add(reshape(turned, noise.shape), astype(center, target.numpy, copy=False))
