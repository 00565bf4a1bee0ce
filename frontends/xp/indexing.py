"""Reading elements: ``x[key]``, `take` and `take_along_axis`.

Nothing but a mask is computed at once, since its values decide about the shape of the result. Ints
and bounds of slices are run-time inputs of plans. Index arrays that are computed are checked;
indices of pending ones that are out of range read the nearest element, and write nothing.
"""

from __future__ import annotations

from types import EllipsisType
from typing import Any

import numpy as np

from passkit.errors import DTypeError, ShapeError, SubscriptError
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.conversion import duplicate, on_device
from passkit.frontends.xp.extents import apply_typed
from passkit.frontends.xp.manipulation import (
    broadcast_shapes,
    expand_dims,
    moveaxis,
    normalized_axis,
    reshape,
)
from passkit.frontends.xp.runtime import apply, from_numpy, operation
from passkit.frontends.xp.subscripts import (
    ALL,
    BasicIndex,
    basic_index,
    plain_index,
    subscript_parts,
)
from passkit.streams.operation import array_type
from passkit.streams.recorder import remember_subscript
from passkit.streams.settings import settings
from passkit.values.arguments import shown

_PLAIN_KEYS = (int, slice, EllipsisType, type(None))


def is_plain(key: Any) -> bool:
    """Return whether a key has only ints, slices, ``...`` and None.

    Such a key selects a view in NumPy. Subclasses of int, such as bools, do not count; bounds of
    slices are not looked at.
    """
    if type(key) is tuple:
        return all([type(k) in _PLAIN_KEYS for k in key])
    return type(key) in _PLAIN_KEYS


def read(x: Array, key: Any) -> Array:
    """Return ``x[key]``, as NumPy does, in a new array.

    Args:
        x: the array.
        key: ints, slices, None, ``...``, bools, and arrays or lists of integers or bools; or a
            tuple of them. Indices in arrays that are pending or on a device read the nearest
            element if they are out of range.

    Raises: SubscriptError if the key does not fit the array: too many parts, an int or an index in
        a computed array out of range, any index of an axis without elements, a mask of another
        shape, index arrays that do not broadcast, or a part that is nothing of these;
        ConcretizationError if a mask depends on arguments of a function that is traced; DeviceError
        if an array of indices with axes is on another device.
    """
    value = x._value
    if value.operation is None and is_plain(key) and value.type.device is None:
        try:
            part = value.buffer[key]
        except (IndexError, TypeError, ValueError):
            basic_index(subscript_parts(key, x.shape), x.shape)  # it has a better message
            raise
        # An operation would read a copy of all memory that NumPy may write to.
        is_copied = part.size <= settings.small or value.is_exposed
        if is_copied and (part.ndim < 2 or value.type.band is None):
            return wrap(from_numpy(np.array(part, order="C"), is_owned=True))
    index = plain_index(key, value.type.shape)
    if index is None:
        if (small := _read_small(x, key)) is not None:
            return small
        parts = subscript_parts(key, x.shape)
        if any(isinstance(p, Array) for p in parts):
            return _read_advanced(x, parts)
        index = basic_index(parts, x.shape)
    else:
        remember(x, key, index)
    return slice_of(x, index)


def remember(x: Array, key: Any, index: BasicIndex) -> None:
    """Let the recorder read and write the part of arrays of the type of ``x`` that a key selects.

    ``index`` is the key as a `BasicIndex`. Arrays with a view, on a device or of complex numbers
    stay with the functions here.
    """
    type = x._value.type
    if type.band is None and type.device is None and type.dtype.kind != "c":
        part = array_type(type.dtype, index.shape)
        reading = operation("copy") if index.is_everything else index.operation("slice")
        assigning = index.operation("slice_assign")
        remember_subscript(type, key, part, reading, assigning, index.inputs, index.is_everything)


def small_key(x: Array, key: Any) -> Any:
    """Return a key for ``x`` as a tuple for NumPy, with NumPy arrays in place of arrays.

    Returns: None if ``x`` is not small, is pending, on a device or has a triangular view; if an
        array of the key is pending, on a device or of floats or complex numbers; or if the key has
        parts that need the general way, such as lists and bools.
    """
    value = x._value
    if value.operation is not None or value.type.size > settings.small:
        return None
    if value.type.band is not None or value.type.device is not None:
        return None
    items: list[Any] = []
    for part in key if type(key) is tuple else (key,):
        if isinstance(part, Array):
            if part._value.operation is not None or part.dtype.kind not in "iub":
                return None
            if part._value.type.device is not None:
                return None
            items.append(part._value.buffer)
        elif part is None or part is Ellipsis or type(part) in (int, slice, np.ndarray):
            items.append(part)
        else:
            return None
    return tuple(items)


def _read_small(x: Array, key: Any) -> Array | None:
    """Return ``x[key]`` for small computed arrays by NumPy.

    Returns: None where the general way is needed, see `small_key`; or NumPy raises, as that has the
        better messages; or the result is not small.
    """
    numpy_key = small_key(x, key)
    if numpy_key is None:
        return None
    try:
        part = x._value.buffer[numpy_key]
    except (IndexError, TypeError, ValueError):
        return None
    if part.size > settings.small:
        return None
    return wrap(from_numpy(np.array(part, order="C"), is_owned=True))


def slice_of(x: Array, index: BasicIndex) -> Array:
    """Return the part of an array that an index of ints, slices and new axes selects.

    The result is queued, or computed at once if it is small; it is a new array also where
    everything is selected.
    """
    if index.is_everything:
        return duplicate(x)
    type = array_type(x.dtype, index.shape)
    return wrap(apply_typed(index.operation("slice"), type, x._value, *index.inputs))


def with_integers(x: Array, parts: list[Any]) -> tuple[Array, list[Any]]:
    """Return an array and parts of a subscript in which integer arrays replace masks.

    The masks are executed. A mask without axes becomes an index of a new axis of length 1, which
    the returned array has; otherwise that is ``x`` itself.

    Raises: SubscriptError if a mask differs in shape from the axes that it stands for;
    ConcretizationError if one depends on arguments of a function that is traced.
    """
    result: list[Any] = []
    axis = 0
    for part in parts:
        if part is None or part is Ellipsis:
            result.append(part)
            continue
        if not isinstance(part, Array) or part.dtype.kind != "b":
            result.append(part)
            axis += 1
            continue
        if part.ndim == 0:
            x = expand_dims(x, axis)
            result.append(wrap(from_numpy(np.zeros(int(bool(part)), np.int64))))
            axis += 1
            continue
        check_mask(part, x, axis)
        result += [wrap(from_numpy(i)) for i in np.nonzero(part._numpy())]
        axis += part.ndim
    return x, result


def check_mask(mask: Array, x: Array, axis: int) -> None:
    """Check that a mask has the extents of the axes of ``x`` from ``axis`` on.

    Raises: SubscriptError if it does not.
    """
    expected = x.shape[axis : axis + mask.ndim]
    if mask.shape != expected:
        raise SubscriptError(
            f"a mask of the axes from {axis} on needs shape {expected}, got {mask.shape}"
        )


def check_bounds(indices: Array, n: int, axis: int) -> None:
    """Check indices of an axis of length n, if they are computed and on the CPU; -n is the least.

    ``axis`` is the number of the axis, for the message.

    Raises: SubscriptError for an index that is out of range, and for any index, also a pending
    one, if n is 0.
    """
    if not indices.size:
        return
    if n == 0:
        raise SubscriptError(f"axis {axis} of length 0 has no elements to index")
    if indices._value.operation is not None:
        return
    if indices._value.type.device is not None:  # they are not copied for that
        return
    array = indices._value.buffer
    low, high = int(array.min()), int(array.max())
    if low < -n or high >= n:
        number = low if low < -n else high
        raise SubscriptError(f"index {number} is out of range for axis {axis} of length {n}")


def split_parts(x: Array, parts: list[Any]) -> tuple[list[Any], list[int], list[Array], bool]:
    """Separate a subscript into its basic part and the arrays that index what that selects.

    Args:
        x: the array.
        parts: the parts, whose arrays are integers.

    Returns: The basic parts, with slices in place of arrays; for each array, the axis that it
        indexes of what they select; the arrays; and whether the axes of the arrays come first in
        the result, because a slice or None separates them.

    Raises: SubscriptError if a computed index is out of range, or an axis without elements is
    indexed.
    """
    basic: list[Any] = []
    axes: list[int] = []
    arrays: list[Array] = []
    axis = result_axis = 0
    advanced = [k for k, p in enumerate(parts) if isinstance(p, Array) or type(p) is int]
    for part in parts:
        if part is Ellipsis:
            continue
        if isinstance(part, Array):
            check_bounds(part, x.shape[axis], axis)
            axes.append(result_axis)
            arrays.append(beside(x, part))
            part = ALL
        basic.append(part)
        axis += part is not None
        result_axis += type(part) is not int
    is_separated = advanced[-1] - advanced[0] >= len(advanced)
    return basic, axes, arrays, is_separated and any(a.ndim for a in arrays)


def beside(x: Array, indices: Array) -> Array:
    """Return an array of indices, copied to the device of ``x`` if it is on the CPU.

    Otherwise it is returned itself, also if it is on another device.
    """
    device = x._value.type.device
    if device is None or indices._value.type.device is not None:
        return indices
    return on_device(indices, device)


def _read_advanced(x: Array, parts: list[Any]) -> Array:
    """Return ``x[…]`` for the parts of a subscript, with arrays among them. Masks are computed.

    Raises: SubscriptError if a mask or a computed index does not fit, or the shapes of index arrays
    do not broadcast; ConcretizationError if a mask depends on arguments of a function that is
    traced; DeviceError if an array of indices with axes is on another device than ``x``.
    """
    x, parts = with_integers(x, parts)
    basic, axes, arrays, comes_first = split_parts(x, parts)
    selected = slice_of(x, basic_index(basic, x.shape))
    rank = len(broadcast_index_shape(arrays))
    if len(arrays) == 1:
        result = gather(selected, arrays[0], axes[0])
        position = axes[0]
    else:
        result = _gather_points(moveaxis(selected, tuple(axes), tuple(range(len(axes)))), arrays)
        position = 0
    target = 0 if comes_first else axes[0]
    return moved(result, position, target, rank)


def broadcast_index_shape(arrays: list[Array]) -> tuple[int, ...]:
    """Return the common shape of index arrays. Raises: SubscriptError if they do not broadcast."""
    try:
        return broadcast_shapes(*[a.shape for a in arrays])
    except ShapeError as error:
        raise SubscriptError(f"index arrays do not fit together: {error}") from None


def moved(x: Array, position: int, target: int, count: int) -> Array:
    """Return an array with ``count`` neighbouring axes moved from ``position`` to ``target``.

    Both are the number of the first of them. The array itself is returned if nothing moves.
    """
    if position == target or not count:
        return x
    axes = range(count)
    return moveaxis(x, tuple(position + k for k in axes), tuple(target + k for k in axes))


def gather(x: Array, indices: Array, axis: int) -> Array:
    """Return the parts of an array along an axis, not negative, at indices, whose axes replace it.

    Indices may be negative; those out of range read the nearest element: call `check_bounds`.

    Raises: DeviceError if the indices are on another device.
    """
    shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    op = operation("gather", axis=axis)
    return wrap(apply_typed(op, array_type(x.dtype, shape), x._value, indices._value))


def _gather_points(x: Array, indices: list[Array]) -> Array:
    """Return the parts of an array at indices of its first axes.

    The axes of the indices, which broadcast, replace these axes. Indices out of range read the
    nearest element. Raises: SubscriptError if they do not broadcast; DeviceError if one with axes
    is on another device.
    """
    shape = (*broadcast_index_shape(indices), *x.shape[len(indices) :])
    op = operation("gather_points")
    type = array_type(x.dtype, shape)
    return wrap(apply_typed(op, type, x._value, *[i._value for i in indices]))


def take(x: Array, indices: Array, /, axis: int | None = None) -> Array:
    """Return the parts of an array along an axis at indices.

    Args:
        x: the array.
        indices: an array, a list or a number of integers, which may be negative. Those that are out
            of range are refused if they are computed and on the CPU, and else read the nearest
            element.
        axis: the axis; None: the elements in row-major order.

    Returns: A new array, in which the axes of the indices replace the axis; a number removes it.

    Raises:
        DTypeError: ``indices`` are no integers, as an empty list has none.
        ArgumentError: ``x`` is no array or number, or the axis no int.
        ShapeError: The axis is out of range, or lists of indices have different lengths.
        SubscriptError: A computed index on the CPU is out of range, or the axis has no elements.
        DeviceError: The arrays are on several devices.

    >>> from passkit import xp
    >>> xp.take(xp.asarray([10, 20, 30]), xp.asarray([2, 0]))
    Array([30, 10], dtype=int64)
    """
    x, listed = array_of(x), _indices("take", indices)
    if axis is None:
        x, axis = x if x.ndim == 1 else reshape(x, (-1,)), 0
    axis = normalized_axis("take", axis, x.ndim)
    check_bounds(listed, x.shape[axis], axis)
    return gather(x, beside(x, listed), axis)


def _indices(where: str, indices: Any) -> Array:
    """Return indices as an array; an `Array` is returned itself, anything else becomes one.

    ``where`` is the function, for messages. Raises: DTypeError if they are no integers; ShapeError
    for lists of different lengths.
    """
    try:
        listed = indices if isinstance(indices, Array) else wrap(from_numpy(np.array(indices)))
    except ValueError as error:
        raise ShapeError(f"{where}: indices {shown(indices)} have no shape: {error}") from None
    if listed.dtype.kind not in "iu":
        raise DTypeError(f"{where} needs integers as indices, got {listed.dtype}")
    return listed


def take_along_axis(x: Array, indices: Array, /, axis: int = -1) -> Array:
    """Return for each index the element of an array at this position of an axis.

    Args:
        x: the array.
        indices: an array or nested lists of integers with as many axes as ``x``, broadcast with it
            along the others. They may be negative; those that are out of range are refused if they
            are computed and on the CPU, and else read the nearest element.
        axis: the axis.

    Raises:
        DTypeError: ``indices`` are no integers.
        ArgumentError: ``x`` is no array or number, or the axis no int.
        ShapeError: The shapes do not fit together, or the axis is out of range.
        SubscriptError: A computed index on the CPU is out of range, or the axis has no elements.
        DeviceError: The arrays are on several devices.

    >>> from passkit import xp
    >>> xp.take_along_axis(xp.asarray([[1, 2], [3, 4]]), xp.asarray([[1], [0]]))
    Array([[2],
           [3]], dtype=int64)
    """
    x, listed = array_of(x), _indices("take_along_axis", indices)
    axis = normalized_axis("take_along_axis", axis, x.ndim)
    if listed.ndim != x.ndim:
        raise ShapeError(
            f"take_along_axis needs indices of {x.ndim} axes, as the array has, got {listed.ndim}"
        )
    check_bounds(listed, x.shape[axis], axis)
    op = operation("take_along_axis", axis=axis)
    return wrap(apply(op, x._value, beside(x, listed)._value))
