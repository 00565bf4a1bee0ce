"""Samplers of other distributions: exponential, gamma, Poisson and their relatives.

Arguments and results are as those of the other samplers: a key, parameters, a shape and a dtype.
Arguments are checked at the call, but elements of arrays are not.
"""

from __future__ import annotations

from math import log1p
from typing import Any

import numpy as np

from passkit.errors import FeedError, ShapeError
from passkit.frontends.xp.array import Array, array_of
from passkit.frontends.xp.conversion import astype
from passkit.frontends.xp.creation import checked_shape
from passkit.frontends.xp.dtypes import checked_dtype
from passkit.frontends.xp.elementwise import add, divide, exp, log, multiply, sqrt, tan
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
)
from passkit.frontends.xp.random.keys import checked_key, split
from passkit.frontends.xp.random.samplers import uniform
from passkit.frontends.xp.special import expit
from passkit.frontends.xp.special import softmax as softmax_of
from passkit.values.dtype import float64

# Other distributions without parameters, up to location and scale.


def exponential(key: Array, shape: DrawShape = (), dtype: Any = None, scale: Any = 1.0) -> Array:
    """Return exponentially distributed numbers of mean ``scale``.

    ``scale`` is a number or an array that broadcasts with the draw, which has ``shape`` and
    ``dtype`` (None: float64). An array may widen both: drawn numbers are then repeated, and dtypes
    promoted.

    Raises:
        ArgumentError: the key is no `Array`, the scale no array or real number, or the shape
            neither an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, the dtype not of floats, or the scale complex or an int
            too large for a float64.
        ShapeError: the key is not 0-dimensional, an extent negative or too large, or the scale does
            not broadcast with the draw.
        DeviceError: the arrays are on several devices.
    """
    return scaled("exponential", draw_floats("exponential", key, shape, dtype), 0, scale)


def gumbel(
    key: Array, shape: DrawShape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return Gumbel-distributed numbers, scale * G + loc, where G is -log(E) for exponential E.

    ``loc`` and ``scale`` are numbers or arrays that broadcast with the draw, which has ``shape``
    and ``dtype`` (None: float64). An array may widen both: drawn numbers are then repeated, and
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
    return scaled("gumbel", draw_floats("gumbel", key, shape, dtype), loc, scale)


def laplace(
    key: Array, shape: DrawShape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return Laplace-distributed numbers: exponential ones of mean ``scale`` on both sides of loc.

    ``loc`` and ``scale`` are numbers or arrays that broadcast with the draw, which has ``shape``
    and ``dtype`` (None: float64). An array may widen both: drawn numbers are then repeated, and
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
    return scaled("laplace", draw_floats("laplace", key, shape, dtype), loc, scale)


def logistic(
    key: Array, shape: DrawShape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return logistically distributed numbers, scale * log(U / (1 - U)) + loc for uniform U.

    ``loc`` and ``scale`` are numbers or arrays that broadcast with the draw, which has ``shape``
    and ``dtype`` (None: float64). An array may widen both: drawn numbers are then repeated, and
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
    return scaled("logistic", draw_floats("logistic", key, shape, dtype), loc, scale)


def cauchy(
    key: Array, shape: DrawShape = (), dtype: Any = None, loc: Any = 0.0, scale: Any = 1.0
) -> Array:
    """Return Cauchy-distributed numbers of median ``loc``, which have no mean.

    ``loc`` and ``scale`` are numbers or arrays that broadcast with the draw, which has ``shape``
    and ``dtype`` (None: float64). An array may widen both: drawn numbers are then repeated, and
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
    checked_key("cauchy", key)
    extents = checked_shape("cauchy", shape)
    u = uniform(key, extents, float_dtype("cauchy", dtype).numpy, -0.5, 0.5)
    return scaled("cauchy", tan(u * np.pi), loc, scale)


def rayleigh(key: Array, scale: Any = 1.0, shape: DrawShape = (), dtype: Any = None) -> Array:
    """Return Rayleigh-distributed numbers: lengths of plane vectors with normal components.

    ``scale``, the deviation of the components, is a number or an array that broadcasts with the
    draw, which has ``shape`` and ``dtype`` (None: float64). An array may widen both: drawn numbers
    are then repeated, and dtypes promoted.

    Raises:
        ArgumentError: the key is no `Array`, the scale no array or real number, or the shape
            neither an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, the dtype not of floats, or the scale complex or an int
            too large for a float64.
        ShapeError: the key is not 0-dimensional, an extent negative or too large, or the scale does
            not broadcast with the draw.
        DeviceError: the arrays are on several devices.
    """
    lengths = sqrt(draw_floats("exponential", key, shape, dtype, "rayleigh") * 2.0)
    return scaled("rayleigh", lengths, 0, scale)


def weibull_min(
    key: Array, scale: Any, concentration: Any, shape: DrawShape = (), dtype: Any = None
) -> Array:
    """Return Weibull-distributed numbers: scale * E**(1 / concentration) for exponential E.

    The parameters are numbers or arrays that broadcast with the draw, which has ``shape`` and
    ``dtype`` (None: float64). An array may widen both: drawn numbers are then repeated, and dtypes
    promoted. Elements of arrays, and negative numbers, are not checked.

    Raises:
        ArgumentError: the key is no `Array`, a parameter no array or real number, or the shape
            neither an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, the dtype not of floats, a parameter complex, or the
            scale an int too large for a float64.
        FeedError: the concentration is the number 0.
        ShapeError: the key is not 0-dimensional, an extent negative or too large, or a parameter
            does not broadcast with the draw.
        DeviceError: the arrays are on several devices.
    """
    numbers = draw_floats("exponential", key, shape, dtype, "weibull_min")
    check_real("weibull_min", "concentration", concentration)
    if is_number(concentration) and not concentration:
        raise FeedError(f"weibull_min needs a concentration above 0, got {concentration}")
    is_python = isinstance(concentration, (int, float))
    power: Any = 1 / (concentration if is_python else array_of(concentration))
    return scaled("weibull_min", numbers**power, 0, scale)


def pareto(key: Array, b: Any, shape: DrawShape = (), dtype: Any = None) -> Array:
    """Return Pareto-distributed numbers from 1 on, exp(E / b) for exponential E.

    ``b``, the exponent of their tail, is a number or an array that broadcasts with the draw, which
    has ``shape`` and ``dtype`` (None: float64). An array may widen both: drawn numbers are then
    repeated, and dtypes promoted. ``b`` should be above 0, which is not checked.

    Raises:
        ArgumentError: the key is no `Array`, ``b`` no array or real number, or the shape neither an
            int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, the dtype not of floats, or ``b`` complex or an int too
            large for a float64.
        ShapeError: the key is not 0-dimensional, an extent negative or too large, or ``b`` does not
            broadcast with the draw.
        DeviceError: the arrays are on several devices.
    """
    check_real("pareto", "b", b)
    return exp(draw_floats("exponential", key, shape, dtype, "pareto") / b)


def geometric(key: Array, p: Any, shape: DrawShape = (), dtype: Any = np.int64) -> Array:
    """Return the numbers of tries until the first success, each with probability ``p``.

    ``p`` is a number, or an array that broadcasts with the draw of ``shape``; if it has more
    elements, drawn numbers are repeated. Its elements are not checked. ``dtype`` is one of
    integers; numbers that it cannot hold come out wrong.

    Raises:
        ArgumentError: the key is no `Array`, ``p`` no array or real number, or the shape neither an
            int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, the dtype not of integers, or ``p`` complex.
        FeedError: ``p`` is a number, but no array, that is not above 0 and up to 1.
        ShapeError: the key is not 0-dimensional, an extent negative or too large, or ``p`` does not
            broadcast with the draw.
        DeviceError: the arrays are on several devices.
    """
    target = integer_dtype("geometric", dtype)
    check_real("geometric", "p", p)
    check_number("geometric", "p", p, 0, 1)
    if is_number(p) and not p:
        raise FeedError(f"geometric: p must be above 0, got {p}")
    waiting = draw_floats("exponential", key, shape, None, "geometric")
    if isinstance(p, (int, float)):
        rate: Any = -log1p(-p) if p < 1 else np.inf
    else:
        rate = -log(1.0 - array_of(p))
    return add(astype(waiting / rate, target), 1)


# Gamma, beta, Poisson and their relatives.


def _log_gamma(where: str, name: str, key: Any, a: Any, shape: Any, dtype: Any) -> Array:
    """Return logarithms of gamma-distributed numbers of scale 1.

    ``where`` and ``name`` are the function and its parameter ``a``, for messages. ``shape`` is that
    of the result, to which ``a`` broadcasts, None for its own; ``dtype``, of floats, is None for
    that of ``a`` if it is an array of floats, else float64. NaN where an element of ``a`` is
    negative.

    Raises:
        ArgumentError: the key is no `Array`, ``a`` no array or real number, or the shape neither
            None nor an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, ``a`` complex or an int too large for a float64, or the
            dtype not of floats.
        FeedError: ``a`` is a negative number or NaN, but no array.
        ShapeError: the key is not 0-dimensional, ``a`` does not broadcast to the shape, or an
            extent is negative or too large.
        DeviceError: the key and ``a`` are on several devices.
    """
    value = checked_key(where, key)
    target = float_dtype(where, dtype, a)
    check_number(where, name, a, 0)
    params = [parameter(where, name, a, target)]
    return drawn("log_gamma", value, draw_shape(where, shape, params), target, params)


def gamma(key: Array, a: Any, shape: DrawShape | None = None, dtype: Any = None) -> Array:
    """Return gamma-distributed numbers of scale 1.

    Args:
        key: the key.
        a: the shape of the distribution, a number or array; not negative. Negative elements of
            arrays give NaN, and those above 2**60 (in float32 2**30) wrong numbers.
        shape: the shape of the result, to which ``a`` broadcasts; None: that of ``a``.
        dtype: the dtype of the result, of floats; None: that of ``a`` if it is an array of floats,
            else float64.

    Raises:
        ArgumentError: the key is no `Array`, ``a`` no array or real number, or the shape neither
            None nor an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, ``a`` complex or an int too large for a float64, or the
            dtype not of floats.
        FeedError: ``a`` is a negative number or NaN, but no array.
        ShapeError: the key is not 0-dimensional, ``a`` does not broadcast to the shape, or an
            extent is negative or too large.
        DeviceError: the key and ``a`` are on several devices.
    """
    return exp(_log_gamma("gamma", "a", key, a, shape, dtype))


def loggamma(key: Array, a: Any, shape: DrawShape | None = None, dtype: Any = None) -> Array:
    """Return logarithms of gamma-distributed numbers, which do not underflow for small ``a``.

    ``a``, a number or array, is the shape of the distribution, not negative; 0 gives minus
    infinity, and negative elements of arrays NaN. ``shape`` is that of the result, to which ``a``
    broadcasts, None for its own; ``dtype``, of floats, is None for that of ``a`` if it is an array
    of floats, else float64.

    Raises:
        ArgumentError: the key is no `Array`, ``a`` no array or real number, or the shape neither
            None nor an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, ``a`` complex or an int too large for a float64, or the
            dtype not of floats.
        FeedError: ``a`` is a negative number or NaN, but no array.
        ShapeError: the key is not 0-dimensional, ``a`` does not broadcast to the shape, or an
            extent is negative or too large.
        DeviceError: the key and ``a`` are on several devices.
    """
    return _log_gamma("loggamma", "a", key, a, shape, dtype)


def chisquare(key: Array, df: Any, shape: DrawShape | None = None, dtype: Any = None) -> Array:
    """Return sums of squares of ``df`` independent normal numbers.

    ``df`` is a number or array, which need not be whole; negative elements give NaN. ``shape`` is
    that of the result, to which ``df`` broadcasts, None for its own; ``dtype``, of floats, is None
    for that of ``df`` if it is an array of floats, else float64.

    Raises:
        ArgumentError: the key is no `Array`, ``df`` no array or real number, or the shape neither
            None nor an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, ``df`` complex or an int too large for a float64, or
            the dtype not of floats.
        FeedError: ``df`` is a negative number or NaN, but no array.
        ShapeError: the key is not 0-dimensional, ``df`` does not broadcast to the shape, or an
            extent is negative or too large.
        DeviceError: the key and ``df`` are on several devices.
    """
    return _chi_squares("chisquare", key, df, shape, dtype)


def _chi_squares(where: str, key: Any, df: Any, shape: Any, dtype: Any) -> Array:
    """Return what `chisquare` returns, with ``where`` as the function in messages.

    These are sums of squares of ``df`` independent normal numbers. ``shape`` is that of the result,
    to which ``df`` broadcasts, None for its own; ``dtype``, of floats, is None for that of ``df``
    if it is an array of floats, else float64.

    Raises:
        ArgumentError: the key is no `Array`, ``df`` no array or real number, or the shape neither
            None nor an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, ``df`` complex or an int too large for a float64, or
            the dtype not of floats.
        FeedError: ``df`` is a negative number or NaN, but no array.
        ShapeError: the key is not 0-dimensional, ``df`` does not broadcast to the shape, or an
            extent is negative or too large.
        DeviceError: the key and ``df`` are on several devices.
    """
    checked_key(where, key)
    target = float_dtype(where, dtype, df)
    check_number(where, "df", df, 0)
    parameter(where, "df", df, target)
    half = df * 0.5 if isinstance(df, (int, float)) else array_of(df) * 0.5
    return multiply(exp(_log_gamma(where, "df", key, half, shape, target.numpy)), 2.0)


def t(key: Array, df: Any, shape: DrawShape | None = None, dtype: Any = None) -> Array:
    """Return numbers of Student's distribution of ``df`` degrees of freedom.

    ``df`` is a number or array above 0; 0, and negative elements, give NaN. ``shape`` is that of
    the result, to which ``df`` broadcasts, None for its own; ``dtype``, of floats, is None for that
    of ``df`` if it is an array of floats, else float64.

    Raises:
        ArgumentError: the key is no `Array`, ``df`` no array or real number, or the shape neither
            None nor an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, ``df`` complex or an int too large for a float64, or
            the dtype not of floats.
        FeedError: ``df`` is a negative number or NaN, but no array.
        ShapeError: the key is not 0-dimensional, ``df`` does not broadcast to the shape, or an
            extent is negative or too large.
        DeviceError: the arrays are on several devices.
    """
    checked_key("t", key)
    first, second = split(key)
    squares = _chi_squares("t", second, df, shape, dtype)
    degrees = df if isinstance(df, (int, float)) else astype(df, squares.dtype, copy=False)
    normals = draw_floats("normal", first, squares.shape, squares.dtype)
    return divide(normals, sqrt(squares / degrees))


def beta(key: Array, a: Any, b: Any, shape: DrawShape | None = None, dtype: Any = None) -> Array:
    """Return beta-distributed numbers, from 0 to 1.

    Args:
        key: the key.
        a: the first parameter, a number or array; not negative.
        b: the second one. Negative elements of arrays, and two parameters 0, give NaN.
        shape: the shape of the result; None: the common one of the parameters.
        dtype: the dtype of the result, of floats; None: the common one of parameters which are
            arrays of floats, or float64.

    Raises:
        ArgumentError: the key is no `Array`, a parameter no array or real number, or the shape
            neither None nor an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, a parameter complex or an int too large for a float64,
            or the dtype not of floats.
        FeedError: a parameter is a negative number or NaN, but no array.
        ShapeError: the key is not 0-dimensional, the parameters do not broadcast to the shape or
            with each other, or an extent is negative or too large.
        DeviceError: the arrays are on several devices.
    """
    checked_key("beta", key)
    target = float_dtype("beta", dtype, a, b)
    params = [parameter("beta", name, x, target) for name, x in (("a", a), ("b", b))]
    extents = draw_shape("beta", shape, params)
    first, second = split(key)
    x = _log_gamma("beta", "a", first, a, extents, target.numpy)
    return expit(x - _log_gamma("beta", "b", second, b, extents, target.numpy))


def dirichlet(key: Array, alpha: Any, shape: DrawShape | None = None, dtype: Any = None) -> Array:
    """Return Dirichlet-distributed vectors: numbers from 0 to 1 whose sum is 1.

    Args:
        key: the key.
        alpha: the concentrations, an array of shape (…, n). One of 0 gives 0; vectors of which one
            is negative, or all are 0, are NaN.
        shape: the shape of the array of vectors, to which the other axes of ``alpha`` broadcast;
            None: these.
        dtype: the dtype of the result, of floats; None: that of ``alpha`` if it has floats, else
            float64.

    Returns: An array whose shape is ``shape`` followed by n.

    Raises:
        ArgumentError: the key is no `Array`, ``alpha`` no array, or the shape neither None nor an
            int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, ``alpha`` complex, or the dtype not of floats.
        ShapeError: ``alpha`` is 0-dimensional (or a number) or does not broadcast to the shape, an
            extent is negative or too large, or the key is not 0-dimensional.
        DeviceError: the key and ``alpha`` are on several devices.
    """
    concentrations = array_of(alpha)
    if not concentrations.ndim:
        raise ShapeError("dirichlet needs alpha of shape (…, n), got a 0-dimensional array")
    if shape is not None:
        shape = (*checked_shape("dirichlet", shape), concentrations.shape[-1])
    return softmax_of(_log_gamma("dirichlet", "alpha", key, concentrations, shape, dtype), axis=-1)


def poisson(key: Array, lam: Any, shape: DrawShape | None = None, dtype: Any = np.int64) -> Array:
    """Return Poisson-distributed numbers, which are whole.

    Args:
        key: the key.
        lam: the rate, a number or array, up to 2**40; not negative. Elements of arrays are not
            checked; those outside give wrong numbers.
        shape: the shape, to which ``lam`` broadcasts; None: that of ``lam``.
        dtype: the dtype that the numbers are converted to, any. Numbers beyond an integer dtype
            wrap.

    Raises:
        ArgumentError: the key is no `Array`, ``lam`` no array or real number, or the shape neither
            None nor an int nor a tuple of ints; or `vmap` vectorizes the draw.
        DTypeError: the key is not of int64, ``lam`` complex, or there is no such dtype; None is
            none.
        FeedError: ``lam`` is a number that is negative, NaN or too large, but no array.
        ShapeError: the key is not 0-dimensional, ``lam`` does not broadcast to the shape, or an
            extent is negative or too large.
        DeviceError: the key and ``lam`` are on several devices.
    """
    value = checked_key("poisson", key)
    target = checked_dtype("poisson: dtype", dtype)
    check_number("poisson", "lam", lam, 0, 2**40)
    params = [parameter("poisson", "lam", lam, float64)]
    return drawn("poisson", value, draw_shape("poisson", shape, params), target, params)
