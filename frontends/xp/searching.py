"""The searching and sorting functions of the array API, and its sets."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

import passkit.ops as ops
from passkit.errors import ArgumentError, DTypeError, ShapeError, SubscriptError
from passkit.frontends.xp import reductions
from passkit.frontends.xp.array import Array, array_of, operand_value, wrap
from passkit.frontends.xp.conversion import asarray
from passkit.frontends.xp.elementwise import operand_values
from passkit.frontends.xp.elementwise_operations import cast, common_dtype, converted, promoted
from passkit.frontends.xp.reductions import Axes, one_axis, truth
from passkit.frontends.xp.runtime import OPERATIONS, apply, apply_several, operation
from passkit.graph.node import Entry
from passkit.values.arguments import shown
from passkit.values.dtype import bool_

# Operations.


def _where(condition: Entry, x1: Entry, x2: Entry) -> Entry:
    """Build a choice: ``x1`` where the condition is true, else ``x2``, of their common dtype."""
    return ops.where(cast(condition, bool_), *converted([x1, x2]))


def _searchsorted(x1: Entry, x2: Entry, *sorter: Entry, side: Literal["left", "right"]) -> Entry:
    """Build a search for ``x2`` in sorted numbers ``x1``, or those that ``sorter`` puts in order.

    There is at most one sorter, of integers; ``side`` is "left" or "right" of equal numbers.
    """
    dtype = common_dtype([e.dtype for e in (x1, x2) if e.dtype is not None], "number")
    numbers = ops.take(x1, sorter[0], axis=0) if sorter else x1
    return ops.searchsorted(cast(numbers, dtype), cast(x2, dtype), side=side)


def _searchsorted_of_arrays(x1: Any, x2: Any, *sorter: Any, side: Any) -> Any:
    """Compute a search for ``x2`` in sorted numbers ``x1`` by NumPy.

    ``side`` is "left" or "right" of equal numbers; a ``sorter``, at most one, puts x1 in order.
    Raises: SubscriptError for a sorter with an index out of range.
    """
    try:
        return np.searchsorted(x1, x2, side, sorter[0] if sorter else None)
    except ValueError as error:
        raise SubscriptError(f"searchsorted: {error}") from None


def _sort_array(x: Any, axis: int, descending: bool) -> Any:
    """Compute the elements along ``axis`` in order by NumPy.

    NaN counts as the largest: it is last, or first if ``descending``.
    """
    result = np.sort(x, axis=axis, kind="stable")
    return np.flip(result, axis).copy() if descending else result


def _argsort_array(x: Any, axis: int, descending: bool) -> Any:
    """Compute the positions of elements along ``axis`` in their order by NumPy.

    Equal ones stay in theirs, also where ``descending`` puts the largest first.
    """
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    positions = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(positions, axis)


def _nonzero(x: Any) -> tuple[Any, ...]:
    """Compute the coordinates of the elements that are not 0 by NumPy."""
    return tuple(np.ascontiguousarray(k) for k in np.nonzero(x))


def _unique(x: Any) -> tuple[Any, ...]:
    """Compute the four results of `unique_all` by NumPy: values, indices, inverse, counts."""
    return tuple(
        np.unique(x, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)
    )


OPERATIONS.define("where", _where, lambda c, x1, x2: np.where(c, *promoted(x1, x2)))
OPERATIONS.define("searchsorted", _searchsorted, _searchsorted_of_arrays)
OPERATIONS.define("sort", ops.sort, _sort_array)
OPERATIONS.define("argsort", ops.argsort, _argsort_array)
OPERATIONS.define("nonzero", None, _nonzero)
OPERATIONS.define("unique", None, _unique)
OPERATIONS.define("unique_values", None, lambda x: np.unique(x, equal_nan=False))


# Searching.


def argmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Return where the largest element is, as int64: the first of equal ones, or the first NaN.

    Args:
        x: an array of real numbers or booleans; complex ones are compared as by `max`.
        axis: the axis, an int; None for the position among all elements in row-major order.
        keepdims: keep the reduced axes with extent 1; for None, all.

    Raises:
        ArgumentError: ``x`` is no array or number, or the axis no integer.
        ShapeError: there is no such axis, or it has no element.
    """
    return array_of(x).argmax(axis, keepdims)


def argmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Return where the smallest element is, as int64: the first of equal ones, or the first NaN.

    Args:
        x: an array of real numbers or booleans.
        axis: the axis, an int; None for the position among all elements in row-major order.
        keepdims: keep the reduced axes with extent 1; for None, all.

    Raises:
        ArgumentError: ``x`` is no array or number, or the axis no integer.
        ShapeError: there is no such axis, or it has no element.
    """
    return array_of(x).argmin(axis, keepdims)


def count_nonzero(x: Any, /, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Return the number of elements that are not 0 along axes, as int64.

    Args:
        x: an array, or a number.
        axis: an axis, or a tuple or list of several; None for all, () for none.
        keepdims: keep the reduced axes with extent 1.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no integer.
        ShapeError: there is no such axis, or it is named twice.
    """
    return wrap(reductions.reduced("count_nonzero", array_of(x)._value, axis, keepdims))


def nonzero(x: Any, /) -> tuple[Array, ...]:
    """Return the coordinates of the elements that are not 0: a tuple of an int64 vector per axis.

    They are in row-major order, and NaN is not 0. Their number depends on the values, so what the
    array needs is executed.

    Args:
        x: an array of one axis or more.

    Raises:
        ArgumentError: ``x`` is no array or number.
        ShapeError: It has no axes.
        PasskitError: An operation fails that is executed.
        ConcretizationError: ``x`` depends on arguments of a function that is traced.
    """
    array = array_of(x)
    if not array.ndim:
        raise ShapeError("nonzero: a 0-dimensional array has no coordinates; use xp.reshape first")
    return tuple(map(wrap, apply_several(operation("nonzero"), array._value)))


def searchsorted(
    x1: Any,
    x2: Any,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Any = None,
) -> Array:
    """Return where numbers would be put into sorted ones, as int64.

    Args:
        x1: a vector of rising numbers, which is not checked.
        x2: an array of numbers to find a place for, a list of them, or a Python number.
        side: before equal numbers, "left", or behind them, "right".
        sorter: an array of integers that put x1 in order, as `argsort` returns; None if it is.

    Returns: A new array of the shape of x2. NaN counts as the largest number.

    Raises:
        ArgumentError: the side is neither, or an operand is neither an array nor a number.
        DTypeError: the sorter has other elements than integers, or a Python integer as x2 does not
            fit the dtype of x1.
        ShapeError: x1 has not one axis, the sorter another shape, or a list as x2 is ragged.
        SubscriptError: the search in a small array meets an index of the sorter that is out of
            range. Others are not checked, and the result is then any position.
        DeviceError: the arrays are on several devices.

    >>> from passkit import xp
    >>> xp.searchsorted(xp.asarray([1, 3, 5]), xp.asarray([3, 4]), side="right").numpy()
    array([2, 2])
    """
    if not isinstance(side, str) or side not in ("left", "right"):
        raise ArgumentError(f"searchsorted: side must be 'left' or 'right', got {shown(side)}")
    numbers = array_of(x1)
    if numbers.ndim != 1:
        raise ShapeError(f"searchsorted: x1 must have one axis, got shape {numbers.shape}")
    x2 = asarray(x2) if isinstance(x2, (list, tuple)) else x2
    operands = [numbers._value, operand_value(x2, numbers.dtype)]
    if sorter is not None:
        order = array_of(sorter)
        if order.dtype.kind not in "iu":
            raise DTypeError(f"searchsorted: sorter must have integers, got {order.dtype}")
        if order.shape != numbers.shape:
            raise ShapeError(
                f"searchsorted: sorter must have shape {numbers.shape}, got {order.shape}"
            )
        operands.append(order._value)
    return wrap(apply(operation("searchsorted", side=side), *operands))


_WHERE = operation("where")


def where(condition: Any, x1: Any, x2: Any, /) -> Array:
    """Return the elements of x1 where a condition holds, else those of x2, in a new array.

    Its dtype is the promoted one of x1 and x2, its shape the common one of all three.

    Args:
        condition: an array of booleans or numbers, or a number; all but 0 are true.
        x1: an array or a Python number; it broadcasts with the others.
        x2: the same.

    Raises:
        ArgumentError: an operand is neither an array nor a number.
        DTypeError: a Python integer as x1 or x2 does not fit the dtype of the other, a Python
            integer as the condition fits no integer dtype, or a NumPy array has a dtype that
            passkit does not have.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.
    """
    if type(condition) is type(x1) is type(x2) is Array:
        return wrap(apply(_WHERE, condition._value, x1._value, x2._value))
    left, right = operand_values(x1, x2)
    return wrap(apply(_WHERE, array_of(condition)._value, left, right))


# Sorting.


def _sorted(name: str, x: Any, axis: int, descending: bool) -> Array:
    """Apply ``name``, "sort" or "argsort", along an axis.

    With ``descending`` the largest is first.

    Raises:
        ArgumentError: ``x`` is no array or number, or the axis no integer.
        ShapeError: there is no such axis.
    """
    array = array_of(x)
    axis = one_axis(name, axis, array.ndim)
    descending = truth(f"{name}: descending", descending)
    return wrap(apply(operation(name, axis=axis, descending=descending), array._value))


def sort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """Return a new array with the elements along an axis in order. NaN counts as the largest.

    Args:
        x: an array of real numbers or booleans; NumPy sorts complex ones by their real parts first.
        axis: the axis, an int.
        descending: the largest first.
        stable: keep equal elements in their order; it always is so.

    Raises:
        ArgumentError: ``x`` is no array or number, or the axis no integer, such as None.
        ShapeError: there is no such axis.
    """
    return _sorted("sort", x, axis, descending)


def argsort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Array:
    """Return the positions of the elements along an axis in their order, as int64.

    NaN counts as the largest.

    Args:
        x: an array of real numbers or booleans; NumPy sorts complex ones by their real parts first.
        axis: the axis, an int.
        descending: that of the largest first.
        stable: keep equal elements in their order; it always is so.

    Raises:
        ArgumentError: ``x`` is no array or number, or the axis no integer, such as None.
        ShapeError: there is no such axis.
    """
    return _sorted("argsort", x, axis, descending)


# Sets.


class UniqueAllResult(NamedTuple):
    """The result of `unique_all`.

    Attributes:
        values: the different elements, in order.
        indices: where each occurs first, in row-major order.
        inverse_indices: for each element of the array its position in ``values``.
        counts: how often each occurs.
    """

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """The result of `unique_counts`: the different elements, and how often each occurs."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """The result of `unique_inverse`: the different elements, and their positions."""

    values: Array
    inverse_indices: Array


def unique_all(x: Any, /) -> UniqueAllResult:
    """Return the different elements in order, where they are, and how often each occurs.

    Every NaN is different. Pending operands are executed.

    Args:
        x: an array, or a number, whose elements are taken in row-major order.

    Returns: The vectors ``values``, ``indices`` (where each occurs first) and ``counts``, and
        ``inverse_indices``, the position in ``values`` of each element, in the shape of x.

    Raises: ArgumentError if x is no array or number; PasskitError if an operation fails that is
        executed; ConcretizationError if x depends on arguments of a function that is traced.
    """
    return UniqueAllResult(*map(wrap, apply_several(operation("unique"), array_of(x)._value)))


def unique_counts(x: Any, /) -> UniqueCountsResult:
    """Return the different elements in order, and how often each occurs.

    Every NaN is different. Pending operands are executed.

    Args:
        x: an array, or a number.

    Returns: The vectors ``values`` and ``counts``.

    Raises: ArgumentError if x is no array or number; PasskitError if an operation fails that is
        executed; ConcretizationError if x depends on arguments of a function that is traced.
    """
    result = unique_all(x)
    return UniqueCountsResult(result.values, result.counts)


def unique_inverse(x: Any, /) -> UniqueInverseResult:
    """Return the different elements in order, and the position among them of each element.

    Every NaN is different. Pending operands are executed.

    Args:
        x: an array, or a number.

    Returns: The vector ``values``, and ``inverse_indices``, which has the shape of x.

    Raises: ArgumentError if x is no array or number; PasskitError if an operation fails that is
        executed; ConcretizationError if x depends on arguments of a function that is traced.
    """
    result = unique_all(x)
    return UniqueInverseResult(result.values, result.inverse_indices)


def unique_values(x: Any, /) -> Array:
    """Return the different elements in order, as a vector, where every NaN is different.

    A pending operand is executed.

    Args:
        x: an array, or a number.

    Raises: ArgumentError if x is no array or number; PasskitError if an operation fails that is
        executed; ConcretizationError if x depends on arguments of a function that is traced.
    """
    return wrap(apply(operation("unique_values"), array_of(x)._value))
