"""Reductions and scans along axes: their operations, and how they are applied to values.

Floats of 16 bits are summed in float32. Sums and products of integers have the widest integer
type of their sign. NumPy's functions compute small arrays and complex numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from math import isfinite, prod
from operator import index
from typing import Any

import numpy as np

import passkit.ops as ops
from passkit.errors import ArgumentError, DTypeError, ShapeError
from passkit.frontends.xp.elementwise_operations import cast
from passkit.frontends.xp.runtime import OPERATIONS, apply, computed, from_numpy, operation
from passkit.graph.node import Entry
from passkit.streams.recorder import Value, unary_method, wrap
from passkit.values.arguments import refuse, shown
from passkit.values.dtype import DType, bool_, dtype_of, float64, int64, uint64

Axes = int | tuple[int, ...] | None
"""An axis, several, or all."""


# Axes and dtypes.


def one_axis(where: str, axis: Any, rank: int) -> int:
    """Return an axis counted from the front.

    Args:
        where: the function, for messages.
        axis: the axis; negative ones count from the end. A bool counts as an integer.
        rank: the number of axes of the array.

    Raises:
        ArgumentError: it is no integer, such as None or a float.
        ShapeError: there is no such axis.
    """
    try:
        number: int = index(axis)
    except TypeError:
        raise ArgumentError(f"{where}: axis must be an integer, got {shown(axis)}") from None
    if not -rank <= number < rank:
        raise ShapeError(
            f"{where}: there is no axis {number} in an array of {rank} axes; "
            f"they are {-rank} to {rank - 1}"
            if rank
            else f"{where}: there is no axis {number} in a 0-dimensional array"
        )
    return number % rank


def integer(where: str, x: Any) -> int:
    """Return an argument as an int; a bool, or an integer of NumPy, counts as one.

    ``where`` is the function and the argument, for the message.

    Raises: ArgumentError if it is no integer.
    """
    try:
        return index(x)
    except TypeError:
        raise ArgumentError(f"{where} must be an integer, got {shown(x)}") from None


def truth(where: str, x: Any) -> bool:
    """Return the truth value of an argument that says whether to do something.

    ``where`` is the function and the argument, for the message.

    Raises: ArgumentError if it has none, such as an array of several elements.
    """
    if x is True or x is False:
        return x
    try:
        return bool(x)
    except (TypeError, ValueError):
        refuse(where, x, "True or False")


def finite_number(where: str, x: Any) -> float:
    """Return an argument, a bool, int or float of Python, as a float.

    ``where`` is the function and the argument, for the message.

    Raises: ArgumentError if it is something else, NaN or infinite, or an int beyond float64.
    """
    try:
        if isinstance(x, (int, float)) and isfinite(x):
            return float(x)
    except OverflowError:
        pass
    raise ArgumentError(f"{where} must be a number, got {shown(x)}")


def several_axes(where: str, axis: Any, rank: int) -> tuple[int, ...] | None:
    """Return axes of an array of ``rank`` axes as a sorted tuple counted from the front.

    ``axis`` is an axis, a tuple or list of several, or None; ``where`` is the function, for
    messages.

    Returns: None for all axes, also if all are named; but () for no axes, also of a 0-dimensional
        array.

    Raises:
        ArgumentError: it is neither None nor an integer nor a tuple or list of integers.
        ShapeError: there is no such axis, or it is named twice.
    """
    if axis is None:
        return None
    items = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(sorted(one_axis(where, k, rank) for k in items))
    if len(set(axes)) < len(axes):
        raise ShapeError(f"{where}: an axis is named twice in {shown(axis)}")
    return None if axes and len(axes) == rank else axes


def accumulated(dtype: DType) -> DType:
    """Return the default dtype of sums of elements of a dtype.

    It is int64 for signed integers and booleans, uint64 for unsigned ones, else the dtype itself.
    """
    if dtype.kind in "bi":
        return int64
    return uint64 if dtype.kind == "u" else dtype


def in_float32(function: Callable[..., Any], x: Any, dtype: Any = None, **params: Any) -> Any:
    """Call a function of an array; with 16-bit floats in float32.

    Args:
        function: a reduction or scan of NumPy.
        x: its first argument.
        dtype: the NumPy dtype of the result, and the one to compute in unless it is a 16-bit float;
            None: the one that the function returns for ``x``, or that of ``x`` if it is such a
            float.
        **params: its further arguments.

    Returns: What the function returns; an array of ``dtype`` for 16-bit floats.
    """
    result_dtype = x.dtype if dtype is None else dtype
    if result_dtype.itemsize == 2 and result_dtype.kind in "fV":
        return np.asarray(function(x.astype(np.float32), **params)).astype(result_dtype)
    if dtype is None or dtype == x.dtype:
        return function(x, **params)
    return function(x.astype(dtype), **params)


def _result_dtype(x: DType, dtype: str | None) -> DType:
    """Return the dtype to sum elements of dtype ``x`` in: ``dtype`` by name, or `accumulated`."""
    return accumulated(x) if dtype is None else dtype_of(dtype)


# Sums and products.


def _define_sum(name: str, reduce: Callable[..., Entry], function: Callable[..., Any]) -> None:
    """Define the reduction ``name`` with a parameter ``dtype``: the dtype to convert to before it.

    ``reduce`` is the operator, ``function`` NumPy's function. Along no axes, (), it only converts.
    """

    def build(x: Entry, axis: Any, keepdims: bool, dtype: str | None) -> Entry:
        assert x.dtype is not None
        x = cast(x, _result_dtype(x.dtype, dtype))
        return ops.identity(x) if axis == () else reduce(x, axis=axis, keepdims=keepdims)

    def on_arrays(x: Any, axis: Any, keepdims: bool, dtype: str | None) -> Any:
        result_dtype = _result_dtype(dtype_of(x.dtype), dtype).numpy
        return in_float32(function, x, result_dtype, axis=axis, keepdims=keepdims)

    OPERATIONS.define(name, build, on_arrays)


_define_sum("sum", ops.reduce_sum, np.sum)
_define_sum("prod", ops.reduce_prod, np.prod)


def _define_scan(name: str, scan: Callable[..., Entry], function: Callable[..., Any]) -> None:
    """Define the scan ``name``; without an axis it is along the elements in row-major order.

    ``scan`` is the operator, ``function`` NumPy's function; a parameter ``dtype`` is the dtype to
    convert to before it, None for a default.
    """

    def build(x: Entry, axis: int | None, dtype: str | None, include_initial: bool) -> Entry:
        assert x.dtype is not None
        x = cast(x, _result_dtype(x.dtype, dtype))
        x = ops.reshape(x, shape=(-1,)) if axis is None and len(x.shape or ()) != 1 else x
        return scan(x, axis=0 if axis is None else axis, include_initial=include_initial)

    def on_arrays(x: Any, axis: int | None, dtype: str | None, include_initial: bool) -> Any:
        result_dtype = _result_dtype(dtype_of(x.dtype), dtype).numpy
        x = x.reshape(-1) if axis is None else x
        return in_float32(function, x, result_dtype, axis=axis, include_initial=include_initial)

    OPERATIONS.define(name, build, on_arrays)


_define_scan("cumulative_sum", ops.cumulative_sum, np.cumulative_sum)
_define_scan("cumulative_prod", ops.cumulative_prod, np.cumulative_prod)


# Extrema.


def _define_extremum(
    name: str,
    reduce: Callable[..., Entry],
    on_bools: Callable[..., Entry],
    function: Callable[..., Any],
) -> None:
    """Define the reduction ``name`` to the largest or smallest element.

    ``reduce`` is the operator for numbers, ``on_bools`` that for booleans, ``function`` NumPy's
    function.
    """

    def build(x: Entry, axis: Any, keepdims: bool) -> Entry:
        if axis == ():
            return ops.identity(x)
        return (on_bools if x.dtype is bool_ else reduce)(x, axis=axis, keepdims=keepdims)

    OPERATIONS.define(name, build, function)


def _check_extremum(where: str, x: Value, axes: tuple[int, ...] | None) -> None:
    """Raise a ShapeError if ``x`` has no elements along ``axes`` (None for all) to choose from.

    ``where`` is the function, for messages.
    """
    shape = x.type.shape
    if any(shape[k] == 0 for k in (range(len(shape)) if axes is None else axes)):
        raise ShapeError(f"{where}: there is no element to return in an array of shape {shape}")


_define_extremum("max", ops.reduce_max, ops.reduce_any, np.max)
_define_extremum("min", ops.reduce_min, ops.reduce_all, np.min)
OPERATIONS.define("argmax", ops.argmax, np.argmax)
OPERATIONS.define("argmin", ops.argmin, np.argmin)


# Truth values.


def _define_truth(name: str, reduce: Callable[..., Entry], function: Callable[..., Any]) -> None:
    """Define the reduction ``name`` of elements as truth values: all but 0 are true.

    ``reduce`` is the operator, ``function`` NumPy's function.
    """

    def build(x: Entry, axis: Any, keepdims: bool) -> Entry:
        x = cast(x, bool_)
        return ops.identity(x) if axis == () else reduce(x, axis=axis, keepdims=keepdims)

    OPERATIONS.define(name, build, function)


def _count_nonzero(x: Entry, axis: Any, keepdims: bool) -> Entry:
    """Build the number of elements that are not 0 along ``axis``, as int64; None for all axes.

    With ``keepdims`` the axes stay with extent 1. Along no axes, (), it is 0 or 1 of each element.
    """
    if axis == ():
        return ops.cast(cast(x, bool_), dtype=int64)
    return ops.count_nonzero(x, axis=axis, keepdims=keepdims)


_define_truth("all", ops.reduce_all, np.all)
_define_truth("any", ops.reduce_any, np.any)
OPERATIONS.define("count_nonzero", _count_nonzero, np.count_nonzero)


# Means and variances.


def _define_moment(name: str, function: Callable[..., Any], build: Callable[..., Entry]) -> None:
    """Define ``name``, a mean, variance or deviation, in float64 for integers and booleans.

    ``build`` takes floats; ``function`` is that of NumPy arrays.
    """

    def build_floats(x: Entry, **params: Any) -> Entry:
        assert x.dtype is not None
        return build(x if x.dtype.is_float else ops.cast(x, dtype=float64), **params)

    def on_arrays(x: Any, **params: Any) -> Any:
        return in_float32(function, x, np.dtype(float) if x.dtype.kind in "biu" else None, **params)

    OPERATIONS.define(name, build_floats, on_arrays)


def _mean(x: Entry, axis: Any, keepdims: bool) -> Entry:
    """Build the mean of floats along ``axis``; None for all axes.

    With ``keepdims`` they stay with extent 1. Along no axes, (), it is x itself.
    """
    return ops.identity(x) if axis == () else ops.reduce_mean(x, axis=axis, keepdims=keepdims)


def _variance(x: Entry, axis: Any, keepdims: bool, correction: float) -> Entry:
    """Build the variance of floats along ``axis``; None for all axes.

    With ``keepdims`` they stay with extent 1; ``correction`` is subtracted from the count. Along no
    axes, (), that of one element over 1 - correction is 0 or NaN.
    """
    if axis == ():
        return (x - x) / max(1.0 - correction, 0.0)
    return ops.var(x, axis=axis, keepdims=keepdims, correction=correction)


def _standard_deviation(x: Entry, axis: Any, keepdims: bool, correction: float) -> Entry:
    """Build the square root of the variance of floats along ``axis``; None for all axes.

    With ``keepdims`` they stay with extent 1; ``correction`` is subtracted from the count.
    """
    return ops.sqrt(_variance(x, axis, keepdims, correction))


def _count(x: Any, axis: Any) -> int:
    """Return the number of elements that are combined along ``axis``, a tuple; None for all."""
    return prod(x.shape if axis is None else [x.shape[k] for k in axis])


def _mean_of_array(x: Any, axis: Any, keepdims: bool) -> Any:
    """Compute the mean along ``axis`` in NumPy; of nothing it is NaN, without a warning.

    With ``keepdims`` the axes stay with extent 1.
    """
    if _count(x, axis):
        return np.mean(x, axis=axis, keepdims=keepdims)
    return np.sum(x, axis=axis, keepdims=keepdims) * np.nan


def _variance_of_array(x: Any, axis: Any, keepdims: bool, correction: float) -> Any:
    """Compute the variance along ``axis`` in NumPy; of too few elements infinite or NaN, unwarned.

    With ``keepdims`` the axes stay with extent 1; ``correction`` is subtracted from the count, and
    too few are those of which nothing is left.
    """
    if _count(x, axis) > correction:
        return np.var(x, axis=axis, keepdims=keepdims, correction=correction)
    distances = np.abs(x - _mean_of_array(x, axis, True))
    zero = distances.dtype.type(0)
    return np.sum(np.square(distances), axis=axis, keepdims=keepdims) / zero


def _deviation_of_array(x: Any, axis: Any, keepdims: bool, correction: float) -> Any:
    """Compute the standard deviation along ``axis`` in NumPy; of too few elements infinite or NaN.

    With ``keepdims`` the axes stay with extent 1; ``correction`` is subtracted from the count, and
    too few are those of which nothing is left.
    """
    return np.sqrt(_variance_of_array(x, axis, keepdims, correction))


_define_moment("mean", _mean_of_array, _mean)
_define_moment("var", _variance_of_array, _variance)
_define_moment("std", _deviation_of_array, _standard_deviation)


# Applied to values.


_quick: dict[tuple[str, int | None, bool, int], Callable[[Any], Any]] = {}


def reduced_array(name: str, x: Any, axis: Any, keepdims: Any) -> Any:
    """Apply a reduction without further parameters to an array, and return the array of its result.

    It does the same as `reduced` and `summed`, whose arguments these are, faster: it remembers
    which operation a name, an axis and a rank stand for.

    Raises: what these raise.
    """
    value = x._value
    is_frequent = (axis is None or type(axis) is int) and type(keepdims) is bool and value.type.size
    key = name, axis, keepdims, len(value.type.shape)
    method = _quick.get(key) if is_frequent else None
    if method is not None:
        return method(x)
    params = {"dtype": None} if name in ("sum", "prod") else {}
    result = reduced(name, value, axis, keepdims, **params)
    if is_frequent:
        axes = several_axes(name, axis, len(value.type.shape))
        _quick[key] = unary_method(operation(name, axis=axes, keepdims=keepdims, **params))
    return wrap(result)


def reduced(name: str, x: Value, axis: Any, keepdims: Any, **params: Hashable) -> Value:
    """Apply the reduction ``name`` along axes.

    ``axis`` is an axis, a tuple or list of several, or None for all; with ``keepdims`` they stay
    with extent 1; ``params`` are further parameters of the operation.

    Raises:
        ArgumentError: the axis is no integer, or ``keepdims`` has no truth value.
        ShapeError: there is no such axis, it is named twice, or ``name`` is "max" or "min" and
            there is no element along the axes.
        DTypeError: the operation does not take the dtype.
    """
    axes = several_axes(name, axis, len(x.type.shape))
    if name in ("max", "min"):
        _check_extremum(name, x, axes)
    keepdims = truth(f"{name}: keepdims", keepdims) if type(keepdims) is not bool else keepdims
    return apply(operation(name, axis=axes, keepdims=keepdims, **params), x)


def summed(name: str, x: Value, axis: Any, dtype: Any, keepdims: Any) -> Value:
    """Apply a sum or product, ``name``, along axes, of elements converted to ``dtype``.

    ``axis`` is an axis, several, or None for all; ``dtype`` None is for the default of
    `accumulated`; with ``keepdims`` they stay with extent 1.

    Raises:
        ArgumentError: an axis is no integer.
        ShapeError: there is no such axis, or it is named twice.
        DTypeError: there is no such dtype, it is bool, or complex numbers would become real.
    """
    x, dtype_name = converted_to(name, x, dtype)
    return reduced(name, x, axis, keepdims, dtype=dtype_name)


def scanned(name: str, x: Value, axis: Any, dtype: Any, include_initial: Any) -> Value:
    """Apply the scan ``name`` along an axis, or, for None, along all elements in row-major order.

    ``dtype`` is the dtype to convert to before, None for the default of `accumulated`; with
    ``include_initial`` the identity comes first.

    Raises:
        ArgumentError: the axis is no integer.
        ShapeError: there is no such axis.
        DTypeError: there is no such dtype, it is bool, or complex numbers would become real.
    """
    x, dtype_name = converted_to(name, x, dtype)
    if axis is not None:
        axis = one_axis(name, axis, len(x.type.shape))
    include_initial = truth(f"{name}: include_initial", include_initial)
    params = {"axis": axis, "dtype": dtype_name, "include_initial": include_initial}
    return apply(operation(name, **params), x)


def position(name: str, x: Value, axis: Any, keepdims: Any) -> Value:
    """Apply ``name``, argmax or argmin, along an axis, or, for None, over all elements.

    With ``keepdims`` the axes stay with extent 1. Raises: ArgumentError for an axis that is no
    integer, ShapeError for a wrong one or no element.
    """
    if axis is not None:
        axis = one_axis(name, axis, len(x.type.shape))
    _check_extremum(name, x, None if axis is None else (axis,))
    keepdims = truth(f"{name}: keepdims", keepdims) if type(keepdims) is not bool else keepdims
    return apply(operation(name, axis=axis, keepdims=keepdims), x)


def averaged(x: Value, axis: Any, dtype: Any, keepdims: Any) -> Value:
    """Apply a mean along axes, of elements converted to ``dtype``; None keeps theirs.

    ``axis`` is an axis, several, or None for all; with ``keepdims`` they stay with extent 1. The
    mean of integers and booleans is float64.

    Raises:
        ArgumentError: an axis is no integer.
        ShapeError: there is no such axis, or it is named twice.
        DTypeError: there is no such dtype, or complex numbers would become real.
    """
    x, dtype_name = converted_to("mean", x, dtype)
    if dtype_name is not None:
        x = apply(operation("astype", dtype=dtype_name), x)
    return reduced("mean", x, axis, keepdims)


def spread(name: str, x: Value, axis: Any, correction: Any, keepdims: Any) -> Value:
    """Apply a variance or standard deviation, ``name``, along axes.

    ``axis`` is an axis, several, or None for all; ``correction`` is subtracted from the count; with
    ``keepdims`` they stay with extent 1.

    Raises:
        ArgumentError: the correction is no finite int or float of Python (or NumPy's float64), or
            an axis no integer.
        ShapeError: there is no such axis, or it is named twice.
    """
    number = finite_number(f"{name}: correction", correction)
    return reduced(name, x, axis, keepdims, correction=number)


def converted_to(where: str, x: Value, dtype: Any) -> tuple[Value, str | None]:
    """Return a value to be summed and the name of the dtype to do it in, or None for a default.

    ``dtype`` is the dtype that a caller asks for, or None; ``where`` is the function, for messages.
    Real numbers that are summed as complex ones are executed and converted at once, as there is no
    kernel; otherwise the value is returned itself.

    Raises: DTypeError if ``dtype`` is no dtype, or if complex numbers are to become real;
    ConcretizationError for real numbers to be summed as complex ones that depend on arguments of a
    function that is traced.
    """
    if dtype is None:
        return x, None
    target = dtype_of(dtype)
    if target.kind == "c" and x.type.dtype.kind != "c":
        x = from_numpy(computed(x).astype(target.numpy), is_owned=True, device=x.type.device)
    if x.type.dtype.kind == "c" and target.kind != "c":
        raise DTypeError(
            f"{where}: {x.type.dtype} cannot be converted to {target}; take xp.real(x) first"
        )
    return x, target.name
