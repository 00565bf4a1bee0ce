"""The statistical functions of the array API: reductions and cumulative sums along axes.

``axis`` is an integer, a tuple or list of integers or None for all axes; negative integers count
from the end. With ``keepdims``, reduced axes stay with extent 1. Integers are summed in the widest
integer type of their sign; means and variances of integers are float64.
"""

from __future__ import annotations

from typing import Any

from passkit.errors import ShapeError
from passkit.frontends.xp import reductions
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.reductions import Axes


def sum(x: Any, /, axis: Axes = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """Return the sum along axes; 0 of nothing.

    Args:
        x: an array of numbers or booleans. Floats of 16 bits are summed in float32.
        axis: an axis, or a tuple or list of several; None for all, () for none.
        dtype: the dtype to convert to before summing, and of the result, in which integers wrap;
            None for that of floats and complex numbers, int64 for signed integers and booleans,
            uint64 for unsigned ones.
        keepdims: keep the reduced axes with extent 1.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no integer.
        ShapeError: there is no such axis, or it is named twice.
        DTypeError: there is no such dtype, it is bool, or complex numbers would become real.
    """
    if dtype is None and type(x) is Array:
        return reductions.reduced_array("sum", x, axis, keepdims)  # type: ignore[no-any-return]
    return array_of(x).sum(axis, dtype, keepdims)


def prod(x: Any, /, axis: Axes = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """Return the product along axes; 1 of nothing.

    Args:
        x: an array of numbers or booleans. Floats of 16 bits are multiplied in float32.
        axis: an axis, or a tuple or list of several; None for all, () for none.
        dtype: the dtype to convert to before multiplying, and of the result, in which integers
            wrap; None for that of floats and complex numbers, int64 for signed integers and
            booleans, uint64 for unsigned ones.
        keepdims: keep the reduced axes with extent 1.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no integer.
        ShapeError: there is no such axis, or it is named twice.
        DTypeError: there is no such dtype, it is bool, or complex numbers would become real.
    """
    if dtype is None and type(x) is Array:
        return reductions.reduced_array("prod", x, axis, keepdims)  # type: ignore[no-any-return]
    return array_of(x).prod(axis, dtype, keepdims)


def mean(x: Any, /, axis: Axes = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """Return the mean along axes; NaN of nothing.

    Args:
        x: an array of numbers or booleans; the mean of these and of integers is float64.
        axis: an axis, or a tuple or list of several; None for all, () for none.
        dtype: the dtype to convert to before summing, and of the result unless it is one of
            integers or bool, whose mean is float64; None to keep that of ``x``.
        keepdims: keep the reduced axes with extent 1.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no integer.
        ShapeError: there is no such axis, or it is named twice.
        DTypeError: there is no such dtype, or complex numbers would become real.
    """
    if dtype is None and type(x) is Array:
        return reductions.reduced_array("mean", x, axis, keepdims)  # type: ignore[no-any-return]
    return array_of(x).mean(axis, dtype, keepdims)


def max(x: Any, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the largest element along axes; NaN if one is NaN.

    Args:
        x: an array of real numbers or booleans, whose dtype the result has. Complex numbers are
            compared as NumPy does, by their real parts first.
        axis: an axis, or a tuple or list of several; None for all, () for none.
        keepdims: keep the reduced axes with extent 1.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no integer.
        ShapeError: there is no such axis, it is named twice, or it is reduced and has no element.
    """
    return reductions.reduced_array("max", array_of(x), axis, keepdims)  # type: ignore[no-any-return]


def min(x: Any, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the smallest element along axes; NaN if one is NaN.

    Args:
        x: an array of real numbers or booleans, whose dtype the result has. Complex numbers are
            compared as NumPy does, by their real parts first.
        axis: an axis, or a tuple or list of several; None for all, () for none.
        keepdims: keep the reduced axes with extent 1.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no integer.
        ShapeError: there is no such axis, it is named twice, or it is reduced and has no element.
    """
    return reductions.reduced_array("min", array_of(x), axis, keepdims)  # type: ignore[no-any-return]


def var(x: Any, /, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Return the variance along axes: the sum of squared distances to the mean over the count.

    Args:
        x: an array of numbers or booleans; the variance of these and of integers is float64, that
            of complex numbers real.
        axis: an axis, or a tuple or list of several; None for all, () for none.
        correction: what is subtracted from the count; 1 estimates the variance of a population
            from a sample. If nothing or less is left, the result is infinite, or NaN where all
            elements are equal.
        keepdims: keep the reduced axes with extent 1.

    Raises:
        ArgumentError: ``x`` is no array or number, the correction no finite number of Python, or an
            axis no integer.
        ShapeError: there is no such axis, or it is named twice.
    """
    return array_of(x).var(axis, correction=correction, keepdims=keepdims)


def std(x: Any, /, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Return the standard deviation along axes, the square root of `var`.

    Args:
        x: an array of numbers or booleans; the deviation of these and of integers is float64, that
            of complex numbers real.
        axis: an axis, or a tuple or list of several; None for all, () for none.
        correction: what is subtracted from the count, as for `var`.
        keepdims: keep the reduced axes with extent 1.

    Raises:
        ArgumentError: ``x`` is no array or number, the correction no finite number of Python, or an
            axis no integer.
        ShapeError: there is no such axis, or it is named twice.
    """
    return array_of(x).std(axis, correction=correction, keepdims=keepdims)


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Return the sums so far along an axis.

    Args:
        x: an array of numbers or booleans.
        axis: the axis, an int. None is for vectors, and for 0-dimensional arrays, which give a
            vector of one element.
        dtype: the dtype to convert to before summing, as for `sum`.
        include_initial: begin with 0, so that the axis is longer by one.

    Raises:
        ArgumentError: ``x`` is no array or number, or the axis no integer.
        ShapeError: there is no such axis, or it is left out for an array of several axes.
        DTypeError: there is no such dtype, it is bool, or complex numbers would become real.

    >>> from passkit import xp
    >>> xp.cumulative_sum(xp.asarray([1, 2, 3]), include_initial=True).numpy()
    array([0, 1, 3, 6])
    """
    return _scan("cumulative_sum", x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """Return the products so far along an axis.

    Args:
        x: an array of numbers or booleans.
        axis: the axis, an int. None is for vectors, and for 0-dimensional arrays, which give a
            vector of one element.
        dtype: the dtype to convert to before multiplying, as for `prod`.
        include_initial: begin with 1, so that the axis is longer by one.

    Raises:
        ArgumentError: ``x`` is no array or number, or the axis no integer.
        ShapeError: there is no such axis, or it is left out for an array of several axes.
        DTypeError: there is no such dtype, it is bool, or complex numbers would become real.
    """
    return _scan("cumulative_prod", x, axis, dtype, include_initial)


def _scan(name: str, x: Any, axis: int | None, dtype: Any, include_initial: bool) -> Array:
    """Return the scan ``name`` along an axis, which may be None for at most one axis.

    ``dtype`` is the dtype to convert to before, or None; with ``include_initial`` the identity
    comes first.

    Raises:
        ArgumentError: ``x`` is no array or number, or the axis no integer.
        ShapeError: there is no such axis, or it is None for an array of several axes.
        DTypeError: there is no such dtype, it is bool, or complex numbers would become real.
    """
    array = array_of(x)
    if axis is None and array.ndim > 1:
        raise ShapeError(f"{name}: an array of {array.ndim} axes needs an axis")
    return wrap(reductions.scanned(name, array._value, axis, dtype, include_initial))
