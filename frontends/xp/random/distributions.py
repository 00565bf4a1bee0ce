"""Samplers of other distributions: exponential, gamma, Poisson and their relatives.

Arguments and results are as those of the other samplers: a key, parameters, a shape and a dtype.
"""

from __future__ import annotations

from math import log1p
from typing import Any

import numpy as np

from passkit.errors import ShapeError
from passkit.frontends.xp.array import Array, array_of
from passkit.frontends.xp.conversion import astype
from passkit.frontends.xp.creation import checked_shape
from passkit.frontends.xp.dtypes import checked_dtype
from passkit.frontends.xp.elementwise import add, divide, exp, log, multiply, sqrt, tan
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
from passkit.frontends.xp.random.keys import checked_key, split
from passkit.frontends.xp.random.samplers import uniform
from passkit.frontends.xp.special import expit
from passkit.frontends.xp.special import softmax as softmax_of
from passkit.values.dtype import float64

# Other distributions without parameters, up to location and scale.


def exponential(key: Array, shape: DrawShape = (), dtype: Any = None, scale: Any = 1.0) -> Array:
    """Return exponentially distributed numbers of mean ``scale``. Raises as `normal`."""
    return scaled(draw_floats("exponential", key, shape, dtype), 0, scale)


def gumbel(
    key: Array, shape: DrawShape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return Gumbel-distributed numbers: the largest of many. Arguments as of `normal`."""
    return scaled(draw_floats("gumbel", key, shape, dtype), loc, scale)


def laplace(
    key: Array, shape: DrawShape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return Laplace-distributed numbers: exponential on both sides. Arguments as of `normal`."""
    return scaled(draw_floats("laplace", key, shape, dtype), loc, scale)


def logistic(
    key: Array, shape: DrawShape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return logistically distributed numbers. Arguments as of `normal`."""
    return scaled(draw_floats("logistic", key, shape, dtype), loc, scale)


def cauchy(
    key: Array, shape: DrawShape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return Cauchy-distributed numbers, which have no mean. Arguments as of `normal`."""
    u = uniform(key, shape, float_dtype("cauchy", dtype).numpy, -0.5, 0.5)
    return scaled(tan(u * np.pi), loc, scale)


def rayleigh(key: Array, scale: Any = 1.0, shape: DrawShape = (), dtype: Any = None) -> Array:
    """Return lengths of plane vectors with normal components of a deviation ``scale``.

    Raises: ArgumentError, DTypeError, ShapeError as `normal`.
    """
    return scaled(sqrt(draw_floats("exponential", key, shape, dtype) * 2.0), 0, scale)


def weibull_min(
    key: Array, scale: Any, concentration: Any, shape: DrawShape = (), dtype: Any = None
) -> Array:
    """Return Weibull-distributed numbers: scale * E**(1 / concentration) for exponential E.

    Raises: ArgumentError, DTypeError, ShapeError as `normal`.
    """
    return scaled(draw_floats("exponential", key, shape, dtype) ** (1 / concentration), 0, scale)


def pareto(key: Array, b: Any, shape: DrawShape = (), dtype: Any = None) -> Array:
    """Return Pareto-distributed numbers from 1 on, with the exponent ``b`` of their tail.

    Raises: ArgumentError, DTypeError, ShapeError as `normal`.
    """
    return exp(draw_floats("exponential", key, shape, dtype) / b)


def geometric(key: Array, p: Any, shape: DrawShape = (), dtype: Any = np.int64) -> Array:
    """Return the numbers of tries until the first success, each with probability ``p``.

    Raises:
        ArgumentError, DTypeError, ShapeError: an argument is nothing of these.
        FeedError: ``p`` is a number that is not from 0 to 1.
    """
    target = integer_dtype("geometric", dtype)
    check_number("geometric", "p", p, 0, 1)
    waiting = draw_floats("exponential", key, shape, None)
    if isinstance(p, (int, float)):
        rate: Any = -log1p(-p) if p < 1 else np.inf
    else:
        rate = -log(1.0 - array_of(p))
    return add(astype(waiting / rate, target), 1)


# Gamma, beta, Poisson and their relatives.


def _log_gamma(where: str, key: Any, a: Any, shape: Any, dtype: Any) -> Array:
    """Return logarithms of gamma-distributed numbers of shape ``a``. Raises as `gamma`."""
    value = checked_key(where, key)
    target = float_dtype(where, dtype, a)
    check_number(where, "a", a, 0)
    params = [parameter(where, "a", a, target)]
    return drawn("log_gamma", value, draw_shape(where, shape, params), target, params)


def gamma(key: Array, a: Any, shape: DrawShape | None = None, dtype: Any = None) -> Array:
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


def loggamma(key: Array, a: Any, shape: DrawShape | None = None, dtype: Any = None) -> Array:
    """Return logarithms of gamma-distributed numbers, which do not underflow. See `gamma`."""
    return _log_gamma("loggamma", key, a, shape, dtype)


def chisquare(key: Array, df: Any, shape: DrawShape | None = None, dtype: Any = None) -> Array:
    """Return sums of squares of ``df`` independent normal numbers. Arguments as of `gamma`."""
    check_number("chisquare", "df", df, 0)
    half = df * 0.5 if isinstance(df, (int, float)) else array_of(df) * 0.5
    return multiply(exp(_log_gamma("chisquare", key, half, shape, dtype)), 2.0)


def t(key: Array, df: Any, shape: DrawShape | None = None, dtype: Any = None) -> Array:
    """Return numbers of Student's distribution of ``df`` degrees of freedom, as `gamma`."""
    first, second = split(key)
    squares = chisquare(second, df, shape, dtype)
    return divide(draw_floats("normal", first, squares.shape, squares.dtype), sqrt(squares / df))


def beta(key: Array, a: Any, b: Any, shape: DrawShape | None = None, dtype: Any = None) -> Array:
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
    target = float_dtype("beta", dtype, a, b)
    extents = draw_shape("beta", shape, [parameter("beta", "a", x, target) for x in (a, b)])
    first, second = split(key)
    x = _log_gamma("beta", first, a, extents, target.numpy)
    return expit(x - _log_gamma("beta", second, b, extents, target.numpy))


def dirichlet(key: Array, alpha: Any, shape: DrawShape | None = None, dtype: Any = None) -> Array:
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


def poisson(key: Array, lam: Any, shape: DrawShape | None = None, dtype: Any = np.int64) -> Array:
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
    check_number("poisson", "lam", lam, 0, 2**40)
    params = [parameter("poisson", "lam", lam, float64)]
    return drawn("poisson", value, draw_shape("poisson", shape, params), target, params)
