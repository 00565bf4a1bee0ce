"""Samplers: functions of a key and a shape that return random numbers.

They queue an operation. Its numbers are computed where they are read, in the same kernel as what
reads them: noise that is added to an array is never stored. Parameters of distributions are numbers
or arrays that broadcast to the shape.
"""

from __future__ import annotations

import operator
from functools import reduce
from math import erfc, log1p
from typing import Any

import numpy as np

from passkit.errors import DTypeError, FeedError, ShapeError
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.conversion import astype
from passkit.frontends.xp.creation import checked_shape
from passkit.frontends.xp.dtypes import checked_dtype
from passkit.frontends.xp.elementwise import add, divide, exp, log, multiply, sqrt, tan
from passkit.frontends.xp.extents import apply_typed, extents_input
from passkit.frontends.xp.indexing import take
from passkit.frontends.xp.linalg import cholesky
from passkit.frontends.xp.manipulation import (
    broadcast_shapes,
    expand_dims,
    normalized_axis,
    reshape,
)
from passkit.frontends.xp.products import matmul
from passkit.frontends.xp.random.keys import checked_key, split
from passkit.frontends.xp.random.operations import INT64
from passkit.frontends.xp.runtime import operation, scalar
from passkit.frontends.xp.searching import argmax, argsort, searchsorted, where
from passkit.frontends.xp.special import expit, ndtr
from passkit.frontends.xp.special import softmax as softmax_of
from passkit.frontends.xp.statistical import cumulative_sum
from passkit.streams.operation import array_type
from passkit.streams.recorder import Value
from passkit.values.arguments import refuse
from passkit.values.dtype import DType, dtype_of, float64, promote

Shape = int | tuple[int, ...]


# Arguments.


def _float_dtype(where: str, dtype: Any, *params: Any) -> DType:
    """Return the dtype of a draw of floats.

    None stands for that of the parameters which are arrays of floats, or float64.

    Raises: DTypeError if it is no float.
    """
    if dtype is None:
        dtypes = [dtype_of(p.dtype) for p in params if isinstance(p, (Array, np.ndarray))]
        floats = [d for d in dtypes if d.is_float]
        return reduce(promote, floats) if floats else float64
    target = checked_dtype(f"{where}: dtype", dtype)
    if not target.is_float:
        raise DTypeError(f"{where} draws floats, got dtype {target}; xp.float32 is one")
    return target


def _integer_dtype(where: str, dtype: Any) -> DType:
    """Return the dtype of a draw of integers. Raises: DTypeError if it is none."""
    target = checked_dtype(f"{where}: dtype", dtype)
    if not target.is_integer:
        raise DTypeError(f"{where} draws integers, got dtype {target}; xp.int32 is one")
    return target


def _parameter(where: str, name: str, x: Any, dtype: DType) -> Value:
    """Return the value of a parameter of a distribution; numbers are scalars of plans.

    Raises:
        ArgumentError: it is neither an array nor a real number.
        DTypeError: it is complex.
    """
    if isinstance(x, (bool, int, float)) and not isinstance(x, np.generic):
        return scalar(float(x), np.dtype(np.float64 if dtype is float64 else np.float32))
    if not isinstance(x, (Array, np.ndarray, np.generic)):
        refuse(f"{where}: {name}", x, "a real number or an array")
    if np.dtype(x.dtype).kind == "c":
        raise DTypeError(f"{where}: {name} must be real, got {x.dtype}")
    return array_of(x)._value


def _shape(where: str, shape: Any, params: list[Value]) -> tuple[int, ...]:
    """Return the shape of a draw, to which its parameters broadcast; None: their common shape.

    Raises: ShapeError if they do not broadcast to it, or an extent is negative.
    """
    common = broadcast_shapes(*[p.type.shape for p in params])
    if shape is None:
        return common
    extents = checked_shape(where, shape)
    if common and broadcast_shapes(common, extents) != extents:
        raise ShapeError(f"{where}: parameters of shape {common} do not broadcast to {extents}")
    return extents


def _drawn(
    name: str, key: Value, shape: tuple[int, ...], dtype: DType, params: list[Value]
) -> Array:
    """Return the array of a draw."""
    op = operation(f"random.{name}", dtype=dtype.name, shape=shape)
    type = array_type(dtype.numpy, shape)
    return wrap(apply_typed(op, type, key, *params, extents_input(shape)))


def _floats(where: str, key: Any, shape: Any, dtype: Any) -> Array:
    """Return a draw of floats from a distribution without parameters, named as the function."""
    value = checked_key(where, key)
    return _drawn(where, value, checked_shape(where, shape), _float_dtype(where, dtype), [])


def _scaled(x: Array, loc: Any, scale: Any) -> Array:
    """Return x * scale + loc, without what changes nothing."""
    if not (type(scale) in (int, float) and scale == 1):
        x = multiply(x, scale)
    return x if type(loc) in (int, float) and loc == 0 else add(x, loc)


def _check_number(where: str, name: str, x: Any, low: float, high: float = np.inf) -> None:
    """Raise a FeedError if a Python number is not from ``low`` to ``high``; arrays may be."""
    if isinstance(x, (int, float)) and not low <= x <= high:
        raise FeedError(f"{where}: {name} must be from {low:g} to {high:g}, got {x}")


# Uniform numbers, integers and bits.


def bits(key: Array, shape: Shape = (), dtype: Any = np.uint32) -> Array:
    """Return random bits, as integers.

    Args:
        key: the key.
        shape: the shape.
        dtype: a dtype of integers, all of whose bits are random.

    Raises: ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
    """
    value = checked_key("bits", key)
    target = _integer_dtype("bits", dtype)
    return _drawn("bits", value, checked_shape("bits", shape), target, [])


def uniform(
    key: Array,
    shape: Shape | None = None,
    dtype: Any = None,
    minval: Any = 0.0,
    maxval: Any = 1.0,
) -> Array:
    """Return uniformly distributed numbers from ``minval`` to below ``maxval``.

    Args:
        key: the key.
        shape: the shape; None: that of the limits.
        dtype: a dtype of floats; None: that of limits which are arrays, or float64.
        minval: the lower limit, a number or array.
        maxval: the upper limit, which does not occur.

    Returns: Numbers in equal steps, as many as the significand of the dtype tells apart.

    Raises:
        ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
        FeedError: the limits are numbers that are not in order.

    >>> from passkit import xp
    >>> xp.random.uniform(xp.random.key(7), (2, 2), dtype=xp.float32)
    Array([[0.71913594, 0.32338822],
           [0.6209354 , 0.37146097]], dtype=float32)
    """
    value = checked_key("uniform", key)
    target = _float_dtype("uniform", dtype, minval, maxval)
    if isinstance(minval, (int, float)) and isinstance(maxval, (int, float)) and minval >= maxval:
        raise FeedError(f"uniform needs minval < maxval, got {minval} and {maxval}")
    names = ("minval", minval), ("maxval", maxval)
    params = [_parameter("uniform", name, x, target) for name, x in names]
    return _drawn("uniform", value, _shape("uniform", shape, params), target, params)


def randint(
    key: Array, shape: Shape | None, minval: Any, maxval: Any, dtype: Any = np.int64
) -> Array:
    """Return uniformly distributed integers from ``minval`` to below ``maxval``.

    Each is 63 random bits modulo the length of the range, whose bias is below 2**-31 for ranges of
    32 bits.

    Args:
        key: the key.
        shape: the shape; None: that of the limits.
        minval: the smallest integer, an int or an array of integers.
        maxval: the integer after the largest.
        dtype: a dtype of integers.

    Raises:
        ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
        FeedError: the limits are ints that are not in order, do not fit the dtype, or have more
            than 2**63 - 1 integers between them.
    """
    value = checked_key("randint", key)
    target = _integer_dtype("randint", dtype)
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
    return _drawn("integers", value, _shape("randint", shape, params), target, params)


def bernoulli(key: Array, p: Any = 0.5, shape: Shape | None = None) -> Array:
    """Return booleans that are True with probability ``p``.

    Args:
        key: the key.
        p: the probability, a number or array. It is compared with numbers of 24 bits.
        shape: the shape; None: that of ``p``.

    Raises:
        ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
        FeedError: ``p`` is a number that is not from 0 to 1.
    """
    value = checked_key("bernoulli", key)
    _check_number("bernoulli", "p", p, 0, 1)
    params = [_parameter("bernoulli", "p", p, dtype_of("float32"))]
    extents = _shape("bernoulli", shape, params)
    return _drawn("bernoulli", value, extents, dtype_of("bool"), params)


def rademacher(key: Array, shape: Shape = (), dtype: Any = np.int64) -> Array:
    """Return -1 or 1 with equal probability, of a dtype.

    Raises: ArgumentError, DTypeError, ShapeError: an argument is none of a key, a shape, a dtype.
    """
    target = checked_dtype("rademacher: dtype", dtype)
    return astype(randint(key, shape, 0, 2) * 2 - 1, target)


# The normal distribution and its relatives.


def normal(
    key: Array, shape: Shape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return normally distributed numbers.

    Args:
        key: the key.
        shape: the shape.
        dtype: a dtype of floats; None: float64.
        loc: the mean, a number or an array that broadcasts with the draw.
        scale: the standard deviation, the same.

    Returns: Numbers none of which is more than 6.7 deviations from the mean, in float64 8.6.

    Raises: ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
    """
    return _scaled(_floats("normal", key, shape, dtype), loc, scale)


def lognormal(key: Array, sigma: Any = 1.0, shape: Shape = (), dtype: Any = None) -> Array:
    """Return numbers whose logarithm is normally distributed with standard deviation ``sigma``.

    Raises: ArgumentError, DTypeError, ShapeError as `normal`.
    """
    return exp(_scaled(_floats("normal", key, shape, dtype), 0, sigma))


def truncated_normal(
    key: Array,
    lower: Any = -2.0,
    upper: Any = 2.0,
    shape: Shape | None = None,
    dtype: Any = None,
) -> Array:
    """Return normally distributed numbers of mean 0 and variance 1 between two limits.

    Args:
        key: the key.
        lower: the lower limit, a number or array.
        upper: the upper limit.
        shape: the shape; None: that of the limits.
        dtype: a dtype of floats; None: that of limits which are arrays, or float64.

    Raises:
        ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
        FeedError: the limits are numbers that are not in order.
    """
    value = checked_key("truncated_normal", key)
    target = _float_dtype("truncated_normal", dtype, lower, upper)
    numbers = [x for x in (lower, upper) if isinstance(x, (int, float))]
    if len(numbers) == 2 and lower >= upper:
        raise FeedError(f"truncated_normal needs lower < upper, got {lower} and {upper}")
    params = []
    for name, x in (("lower", lower), ("upper", upper)):
        if isinstance(x, (int, float)):
            p: Any = 0.5 * erfc(-x / 2**0.5)
        else:
            _parameter("truncated_normal", name, x, target)
            p = ndtr(x)
        params.append(_parameter("truncated_normal", name, p, target))
    shape = _shape("truncated_normal", shape, params)
    result = _drawn("truncated_normal", value, shape, target, params)
    return where(result < lower, lower, where(result > upper, upper, result))


def multivariate_normal(
    key: Array, mean: Array, cov: Array, shape: Shape | None = None, dtype: Any = None
) -> Array:
    """Return normally distributed vectors.

    Args:
        key: the key.
        mean: the mean vectors, (…, n).
        cov: the covariance matrices, (…, n, n), positive definite.
        shape: the shape of the array of vectors, to which the other axes of mean and covariance
            broadcast; None: theirs.
        dtype: a dtype of floats; None: that of ``mean`` and ``cov``.

    Returns: An array whose shape is ``shape`` followed by n.

    Raises:
        ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
        FeedError: a covariance is not positive definite.
    """
    center, spread = array_of(mean), array_of(cov)
    if center.ndim < 1 or spread.ndim < 2 or spread.shape[-2:] != center.shape[-1:] * 2:
        raise ShapeError(
            f"multivariate_normal needs mean (…, n) and cov (…, n, n), got shapes {center.shape} "
            f"and {spread.shape}"
        )
    target = _float_dtype("multivariate_normal", dtype, center, spread)
    leading = broadcast_shapes(center.shape[:-1], spread.shape[:-2])
    extents = leading if shape is None else checked_shape("multivariate_normal", shape)
    noise = _floats("normal", key, (*extents, center.shape[-1]), target.numpy)
    factor = cholesky(astype(spread, target.numpy, copy=False))
    turned = matmul(factor, expand_dims(noise, axis=-1))
    return add(reshape(turned, noise.shape), astype(center, target.numpy, copy=False))


# Other distributions without parameters, up to location and scale.


def exponential(key: Array, shape: Shape = (), dtype: Any = None, scale: Any = 1.0) -> Array:
    """Return exponentially distributed numbers of mean ``scale``. Raises as `normal`."""
    return _scaled(_floats("exponential", key, shape, dtype), 0, scale)


def gumbel(
    key: Array, shape: Shape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return Gumbel-distributed numbers: the largest of many. Arguments as of `normal`."""
    return _scaled(_floats("gumbel", key, shape, dtype), loc, scale)


def laplace(
    key: Array, shape: Shape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return Laplace-distributed numbers: exponential on both sides. Arguments as of `normal`."""
    return _scaled(_floats("laplace", key, shape, dtype), loc, scale)


def logistic(
    key: Array, shape: Shape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return logistically distributed numbers. Arguments as of `normal`."""
    return _scaled(_floats("logistic", key, shape, dtype), loc, scale)


def cauchy(
    key: Array, shape: Shape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return Cauchy-distributed numbers, which have no mean. Arguments as of `normal`."""
    u = uniform(key, shape, _float_dtype("cauchy", dtype).numpy, -0.5, 0.5)
    return _scaled(tan(u * np.pi), loc, scale)


def rayleigh(key: Array, scale: Any = 1.0, shape: Shape = (), dtype: Any = None) -> Array:
    """Return lengths of plane vectors with normal components of a deviation ``scale``.

    Raises: ArgumentError, DTypeError, ShapeError as `normal`.
    """
    return _scaled(sqrt(_floats("exponential", key, shape, dtype) * 2.0), 0, scale)


def weibull_min(
    key: Array, scale: Any, concentration: Any, shape: Shape = (), dtype: Any = None
) -> Array:
    """Return Weibull-distributed numbers: scale * E**(1 / concentration) for exponential E.

    Raises: ArgumentError, DTypeError, ShapeError as `normal`.
    """
    return _scaled(_floats("exponential", key, shape, dtype) ** (1 / concentration), 0, scale)


def pareto(key: Array, b: Any, shape: Shape = (), dtype: Any = None) -> Array:
    """Return Pareto-distributed numbers from 1 on, with the exponent ``b`` of their tail.

    Raises: ArgumentError, DTypeError, ShapeError as `normal`.
    """
    return exp(_floats("exponential", key, shape, dtype) / b)


def geometric(key: Array, p: Any, shape: Shape = (), dtype: Any = np.int64) -> Array:
    """Return the numbers of tries until the first success, each with probability ``p``.

    Raises:
        ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
        FeedError: ``p`` is a number that is not from 0 to 1.
    """
    target = _integer_dtype("geometric", dtype)
    _check_number("geometric", "p", p, 0, 1)
    waiting = _floats("exponential", key, shape, None)
    if isinstance(p, (int, float)):
        rate: Any = -log1p(-p) if p < 1 else np.inf
    else:
        rate = -log(1.0 - array_of(p))
    return add(astype(waiting / rate, target), 1)


# Gamma, beta, Poisson and their relatives.


def _log_gamma(where: str, key: Any, a: Any, shape: Any, dtype: Any) -> Array:
    """Return logarithms of gamma-distributed numbers of shape ``a``. Raises as `gamma`."""
    value = checked_key(where, key)
    target = _float_dtype(where, dtype, a)
    _check_number(where, "a", a, 0)
    params = [_parameter(where, "a", a, target)]
    return _drawn("log_gamma", value, _shape(where, shape, params), target, params)


def gamma(key: Array, a: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Return gamma-distributed numbers of scale 1.

    Args:
        key: the key.
        a: the shape of the distribution, a number or array; not negative.
        shape: the shape of the result; None: that of ``a``.
        dtype: a dtype of floats; None: that of ``a``, or float64.

    Raises:
        ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
        FeedError: ``a`` is a negative number.
    """
    return exp(_log_gamma("gamma", key, a, shape, dtype))


def loggamma(key: Array, a: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Return logarithms of gamma-distributed numbers, which do not underflow. See `gamma`."""
    return _log_gamma("loggamma", key, a, shape, dtype)


def chisquare(key: Array, df: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Return sums of squares of ``df`` independent normal numbers. Arguments as of `gamma`."""
    _check_number("chisquare", "df", df, 0)
    half = df * 0.5 if isinstance(df, (int, float)) else array_of(df) * 0.5
    return multiply(exp(_log_gamma("chisquare", key, half, shape, dtype)), 2.0)


def t(key: Array, df: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Return numbers of Student's distribution of ``df`` degrees of freedom, as `gamma`."""
    first, second = split(key)
    squares = chisquare(second, df, shape, dtype)
    return divide(_floats("normal", first, squares.shape, squares.dtype), sqrt(squares / df))


def beta(key: Array, a: Any, b: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Return beta-distributed numbers, from 0 to 1.

    Args:
        key: the key.
        a: the first parameter, a number or array; not negative.
        b: the second one.
        shape: the shape of the result; None: that of the parameters.
        dtype: a dtype of floats; None: that of the parameters, or float64.

    Raises:
        ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
        FeedError: a parameter is a negative number.
    """
    checked_key("beta", key)
    target = _float_dtype("beta", dtype, a, b)
    extents = _shape("beta", shape, [_parameter("beta", "a", x, target) for x in (a, b)])
    first, second = split(key)
    x = _log_gamma("beta", first, a, extents, target.numpy)
    return expit(x - _log_gamma("beta", second, b, extents, target.numpy))


def dirichlet(key: Array, alpha: Any, shape: Shape | None = None, dtype: Any = None) -> Array:
    """Return vectors of positive numbers whose sum is 1.

    Args:
        key: the key.
        alpha: the concentrations, an array of shape (…, n).
        shape: the shape of the array of vectors, to which the other axes of ``alpha`` broadcast;
            None: these.
        dtype: a dtype of floats; None: that of ``alpha``, or float64.

    Returns: An array whose shape is ``shape`` followed by n.

    Raises: ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
    """
    concentrations = array_of(alpha)
    if not concentrations.ndim:
        raise ShapeError("dirichlet needs alpha of shape (…, n), got a 0-dimensional array")
    if shape is not None:
        shape = (*checked_shape("dirichlet", shape), concentrations.shape[-1])
    return softmax_of(_log_gamma("dirichlet", key, concentrations, shape, dtype), axis=-1)


def poisson(key: Array, lam: Any, shape: Shape | None = None, dtype: Any = np.int64) -> Array:
    """Return Poisson-distributed integers.

    Args:
        key: the key.
        lam: the rate, a number or array, up to 2**40; not negative.
        shape: the shape; None: that of ``lam``.
        dtype: a dtype of integers or floats.

    Raises:
        ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
        FeedError: ``lam`` is a number that is negative or too large.
    """
    value = checked_key("poisson", key)
    target = checked_dtype("poisson: dtype", dtype)
    _check_number("poisson", "lam", lam, 0, 2**40)
    params = [_parameter("poisson", "lam", lam, float64)]
    return _drawn("poisson", value, _shape("poisson", shape, params), target, params)


# Classes, choices and permutations.


def categorical(key: Array, logits: Any, axis: int = -1, shape: Shape | None = None) -> Array:
    """Return classes, drawn with the probabilities softmax(logits).

    Args:
        key: the key.
        logits: logarithms of probabilities up to a constant, an array of floats.
        axis: the axis of the classes.
        shape: the shape of the result, to which that of the logits without ``axis`` broadcasts;
            None: the latter.

    Returns: Positions along the axis, as int64.

    Raises: ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
    """
    checked_key("categorical", key)
    x = array_of(logits)
    target = _float_dtype("categorical", x.dtype)
    k = normalized_axis("categorical: axis", axis, x.ndim)
    examples = x.shape[:k] + x.shape[k + 1 :]
    if shape is None:
        extents = x.shape
    else:
        result_shape = checked_shape("categorical", shape)
        if broadcast_shapes(examples, result_shape) != result_shape:
            raise ShapeError(
                f"categorical: logits for examples of shape {examples} do not broadcast to "
                f"{result_shape}"
            )
        behind = x.ndim - 1 - k
        cut = len(result_shape) - behind
        extents = (*result_shape[:cut], x.shape[k], *result_shape[cut:])
        k = cut
    return argmax(x + _floats("gumbel", key, extents, target.numpy), axis=k)


def permutation(key: Array, x: Any, axis: int = 0) -> Array:
    """Return the slices of an array in random order, or the integers below a number.

    Args:
        key: the key.
        x: an array; or an int, which stands for the integers from 0 to below it.
        axis: the axis along which slices move together.

    Raises: ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
    """
    value = checked_key("permutation", key)
    if isinstance(x, int):
        shape = checked_shape("permutation", x)
        op = operation("random.permutation", shape=shape)
        return wrap(apply_typed(op, array_type(INT64, shape), value, extents_input(shape)))
    array = array_of(x)
    k = normalized_axis("permutation: axis", axis, array.ndim)
    return take(array, permutation(key, array.shape[k]), axis=k)


def choice(
    key: Array,
    a: Any,
    shape: Shape = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
) -> Array:
    """Return elements of an array, or slices along an axis, drawn at random.

    Args:
        key: the key.
        a: an array; or an int, which stands for the integers from 0 to below it.
        shape: the shape of the array of draws; it replaces ``axis`` in the result.
        replace: whether an element may be drawn several times.
        p: the probability of each element, a vector whose sum need not be 1; None: equal ones.
        axis: the axis of the elements.

    Raises:
        ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
        FeedError: there are no elements, or fewer than are drawn without replacement.
    """
    checked_key("choice", key)
    extents = checked_shape("choice", shape)
    array = None if isinstance(a, int) else array_of(a)
    k = 0 if array is None else normalized_axis("choice: axis", axis, array.ndim)
    count = operator.index(a) if array is None else array.shape[k]
    number = int(np.prod(extents, dtype=object))
    if count < 1 and number:
        raise FeedError(f"choice needs an element to draw, got {count} of them")
    if not replace and number > count:
        raise FeedError(
            f"choice draws at most {count} of {count} elements without replacement, got shape "
            f"{extents}"
        )
    weights = None if p is None else array_of(p)
    if weights is not None and weights.shape != (count,):
        raise ShapeError(f"choice needs p of shape {(count,)}, got {weights.shape}")
    if replace:
        positions = _with_replacement(key, count, extents, weights)
    elif weights is None:
        positions = reshape(permutation(key, count)[:number], extents)
    else:
        noisy = log(weights) + _floats("gumbel", key, (count,), None)
        positions = reshape(argsort(noisy, descending=True)[:number], extents)
    return positions if array is None else _slices(array, positions, k)


def _with_replacement(key: Array, count: int, shape: tuple[int, ...], p: Array | None) -> Array:
    """Return positions below ``count``, drawn with equal probabilities or with those of ``p``."""
    if p is None:
        return randint(key, shape, 0, count)
    total = cumulative_sum(astype(p, np.float64, copy=False))
    u = _drawn(
        "uniform",
        checked_key("choice", key),
        shape,
        float64,
        [_parameter("choice", "p", x, float64) for x in (0.0, 1.0)],
    )
    return searchsorted(total, u * total[-1], side="right")


def _slices(array: Array, positions: Array, axis: int) -> Array:
    """Return slices along an axis at positions of any shape, which replaces the axis."""
    taken = take(array, reshape(positions, (-1,)), axis=axis)
    return reshape(taken, (*array.shape[:axis], *positions.shape, *array.shape[axis + 1 :]))
