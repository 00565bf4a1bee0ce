"""Writing elements: ``x[key] = y`` gives the array ``x`` a new value; no other array changes.

A value that nothing else refers to is written in place where few elements change, as in NumPy.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from passkit.errors import DTypeError, ShapeError
from passkit.frontends.xp.aliases import aliased
from passkit.frontends.xp.array import Array, operand_value, wrap
from passkit.frontends.xp.conversion import asarray
from passkit.frontends.xp.indexing import (
    beside,
    broadcast_index_shape,
    check_mask,
    is_plain,
    moved,
    remember,
    slice_of,
    small_key,
    split_parts,
    with_integers,
)
from passkit.frontends.xp.manipulation import broadcast_on, moveaxis, reshape
from passkit.frontends.xp.runtime import apply, converted, from_numpy, operation
from passkit.frontends.xp.sharing import UNSHARED, references, share
from passkit.frontends.xp.subscripts import BasicIndex, basic_index, plain_index, subscript_parts
from passkit.streams.settings import settings
from passkit.values.dtype import dtype_of


def write(x: Array, key: Any, operand: Any) -> None:
    """Perform ``x[key] = operand``.

    Args:
        x: the array, which gets a new value of its shape and dtype.
        key: ints, slices, None, ``...``, bools, and arrays or lists of integers or bools; or a
            tuple of them. Indices in arrays that are pending or on a device write nothing if they
            are out of range.
        operand: an array or nested lists, which are broadcast to the selected part and converted
            to the dtype of ``x``, floats to integers, too; or a number. Integers in arrays and
            lists wrap around where they do not fit.

    Raises:
        SubscriptError: The key does not fit the array.
        ShapeError: The operand does not fit the selected part.
        DTypeError: The operand is complex, and the array is not; it has no dtype of `passkit.xp`;
            or a Python integer does not fit.
        DeviceError: Array and operand are on different devices, and the operand has axes.
        ArgumentError: The operand is neither an array nor numbers.
        ConcretizationError: A mask in the key depends on arguments of a function that is traced.
    """
    if _write_few(x, key, operand):
        return
    value = _converted(x, operand)
    index = plain_index(key, x.shape)
    if index is None and _write_small(x, key, value):
        return
    parts = [] if index is not None else subscript_parts(key, x.shape)
    if not any(isinstance(p, Array) for p in parts):
        if index is not None:
            remember(x, key, index)
        index = index or basic_index(parts, x.shape)
        if not _write_in_place(x, key, value, index):
            _rebind(x, _slice_assigned(x, index, value))
        return
    result = _masked(x, parts, value)
    _rebind(x, _assigned(x, parts, value) if result is None else result)


def view_of(x: Array, key: Any, part: Array) -> Array:
    """Return ``part``, which is ``x[key]``, noted as a view of ``x`` where NumPy has a view.

    It is not noted without the setting ``aliasing``, if it is 0-dimensional and the key has no
    ``...``, or if the key has other parts than ints, slices, None and ``...``. If NumPy may write
    to the memory of ``x``, the part gets its share of that.
    """
    listed = key if isinstance(key, tuple) else (key,)
    if not part.ndim and not any(p is Ellipsis for p in listed):
        return part  # NumPy has a scalar, which is no view
    plain_key = tuple(map(_plain_part, listed))
    index = plain_index(plain_key, x.shape)
    if index is None:
        return part
    plain: BasicIndex = index

    def assigned(base: Array, view: Array) -> Array:
        return _slice_assigned(base, plain, view)

    def read_memory(base: Any) -> Any:
        return base[plain_key]

    view = aliased(part, x, lambda base: slice_of(base, plain), assigned, read_memory)
    if x._value.is_exposed:
        share(x)
    return view


def _plain_part(part: Any) -> Any:
    """Return a part of a key, with Python ints in place of NumPy's integers and bounds of slices.

    Other parts are returned themselves.

    Raises: TypeError if a bound of a slice is no integer.
    """
    if isinstance(part, np.integer):
        return int(part)
    if type(part) is slice:
        bounds = part.start, part.stop, part.step
        return slice(*[None if b is None else operator.index(b) for b in bounds])
    return part


def _rebind(x: Array, result: Array) -> None:
    """Give the array ``x`` the value of another one, ``result``, which is not used any more."""
    x._value = result._value


def _converted(x: Array, operand: Any) -> Array:
    """Return ``operand``, which is assigned to ``x``, as an array of the dtype of ``x``.

    An `Array` of this dtype is returned itself.

    Raises: DTypeError if it is complex, and the array is not, its elements are of no dtype of
    `passkit.xp`, or a Python integer does not fit; ArgumentError if it is neither an array nor
    numbers; ShapeError for lists of different lengths.
    """
    if isinstance(operand, (list, tuple, range, np.ndarray)):
        operand = asarray(operand, device=x.device)
    value = operand_value(operand, x.dtype)
    if value.type.dtype != x.dtype:
        target = dtype_of(x.dtype)
        if value.type.dtype.kind == "c" and target.kind != "c":
            raise DTypeError(
                f"complex numbers cannot be stored in an array of {x.dtype}; take xp.real of them"
            )
        is_computed = value.operation is None and value.type.device is None
        if is_computed and value.type.size <= max(settings.small, 1):
            value = from_numpy(operation("astype", dtype=target.name).evaluate([value.buffer])[0])
        else:
            value = converted(value, target)
    return wrap(value) if value.array is None else value.array


def _fitted(value: Array, shape: tuple[int, ...]) -> Array:
    """Return a value without leading axes of length 1 that a part of ``shape`` lacks.

    It is not broadcast; without such axes the value itself is returned.

    Raises: ShapeError if it cannot be broadcast to the shape.
    """
    source = value.shape
    excess = max(len(source) - len(shape), 0)
    rest = source[excess:]
    pairs = zip(reversed(rest), reversed(shape), strict=False)
    if any(n != 1 for n in source[:excess]) or any(n not in (1, m) for n, m in pairs):
        raise ShapeError(f"a value of shape {source} does not fit the selected part {shape}")
    return reshape(value, rest) if excess else value


def _write_in_place(x: Array, key: Any, value: Array, index: BasicIndex) -> bool:
    """Write few computed elements into a computed array, and return whether that was possible.

    Few are as many as the setting ``small``, or any number of complex ones. It is not possible for
    a pending array, one on a device or one with a triangular view. An array whose value something
    else refers to gets a copy first.

    Args:
        x: the array.
        key: the key of the selected part, of ints, slices and None.
        value: what is written, of the dtype of ``x``.
        index: the same key as a `BasicIndex`.

    Raises: ShapeError if the value does not fit the part.
    """
    target = x._value
    if target.operation is not None or value._value.operation is not None:
        return False
    if target.type.device is not None or value._value.type.device is not None:
        return False
    if target.type.band is not None or value._value.type.band is not None:
        return False  # the view of the result is to be determined
    if target.type.dtype.kind != "c" and (
        np.prod(index.shape, dtype=object) > settings.small or not settings.small
    ):
        return False
    value = _fitted(value, index.shape)
    del target
    _separate(x)
    x._value.buffer[key] = value._value.buffer
    return True


def _write_small(x: Array, key: Any, value: Array) -> bool:
    """Write a computed value into a small computed array by NumPy, and return whether it could.

    The key may have arrays. It could not, and nothing is written, where `small_key` returns None,
    the value is pending, on a device or has a triangular view, or NumPy raises: the general way has
    the better messages. Then the buffer of ``x`` may be a copy of the one before.
    """
    if value._value.operation is not None or value._value.type.band is not None:
        return False
    if value._value.type.device is not None:
        return False
    numpy_key = small_key(x, key)
    if numpy_key is None:
        return False
    source = value._value.buffer
    del value
    _separate(x)
    try:
        x._value.buffer[numpy_key] = source
    except (IndexError, TypeError, ValueError):
        return False
    return True


def _separate(x: Array) -> None:
    """Replace the buffer of a computed array by a copy, in place, if anything else refers to it."""
    is_shared = not x._value.is_owned or references(x) != UNSHARED
    if is_shared or x._value.buffer.base is not None:
        _rebind(x, wrap(from_numpy(np.array(x._value.buffer, order="C"), is_owned=True)))


def _write_few(x: Array, key: Any, operand: Any) -> bool:
    """Write a number, or a computed array of the same dtype, into few elements by a plain key.

    This is a short path of ``x[key] = operand``. It returns False, and writes nothing, where the
    general one is needed, which also has the better messages.
    """
    if x._value.operation is not None or x._value.type.band is not None or not is_plain(key):
        return False
    if x._value.type.device is not None:
        return False
    dtype = x._value.type.dtype
    if type(operand) is Array:
        source = operand._value.buffer
        if operand._value.operation is not None or source.dtype != dtype:
            return False
        if operand._value.type.band is not None or operand._value.type.device is not None:
            return False
    elif (type(operand) is float and dtype.kind == "f") or (
        type(operand) is int and dtype.kind in "iuf"
    ):
        source = operand
    else:
        return False
    try:
        if x._value.buffer[key].size > settings.small:
            return False
        _separate(x)
        x._value.buffer[key] = source
    except (IndexError, TypeError, ValueError, OverflowError):
        return False
    return True


def _slice_assigned(x: Array, index: BasicIndex, value: Array) -> Array:
    """Return a new array, ``x`` with a part of ints, slices and new axes replaced by ``value``.

    ``index`` selects the part. If that is empty, ``x`` itself is returned. Raises: ShapeError if
    the value does not fit.
    """
    value = _fitted(value, index.shape)
    if 0 in index.shape:
        return x
    op = index.operation("slice_assign")
    return wrap(apply(op, x._value, value._value, *index.inputs))


def _masked(x: Array, parts: list[Any], value: Array) -> Array | None:
    """Return ``x`` with elements replaced by ``value`` where a mask, which may be pending, is true.

    ``parts`` are those of the subscript.

    Returns: A new array. None if the subscript has more than one mask and slices of entire axes, or
        if ``value`` has axes that stand for the true elements: then the mask must be executed.

    Raises: SubscriptError if the mask does not fit the axes; ShapeError if the value does not fit.
    """
    parts = [p for p in parts if p is not Ellipsis]
    masks = [k for k, p in enumerate(parts) if isinstance(p, Array)]
    if len(masks) != 1 or not all(p == slice(None) for k, p in enumerate(parts) if k != masks[0]):
        return None
    mask, axis = parts[masks[0]], masks[0]
    if mask.dtype.kind != "b" or not mask.ndim:
        return None
    check_mask(mask, x, axis)
    trailing = x.ndim - axis - mask.ndim
    if value.ndim > trailing:
        return None
    _fitted(value, x.shape[x.ndim - trailing :])
    op = operation("mask_assign", trailing=trailing)
    return wrap(apply(op, x._value, beside(x, mask)._value, value._value))


def _assigned(x: Array, parts: list[Any], value: Array) -> Array:
    """Return ``x`` with a part replaced by ``value`` that arrays of integers or masks select.

    ``parts`` are those of the subscript; masks are executed. The result is a new array.

    Raises: SubscriptError if a mask or a computed index does not fit; ShapeError if the value does
    not fit; DeviceError if it has axes and is on another device than ``x``; ConcretizationError if
    a mask depends on arguments of a function that is traced.
    """
    shape = x.shape
    x, parts = with_integers(x, parts)
    basic, axes, arrays, comes_first = split_parts(x, parts)
    index = basic_index(basic, x.shape)
    selected = slice_of(x, index)
    points = broadcast_index_shape(arrays)
    others = [n for k, n in enumerate(selected.shape) if k not in axes]
    target = 0 if comes_first else axes[0]
    value = _fitted(value, (*others[:target], *points, *others[target:]))
    place = value._value.type.device if value.ndim else x._value.type.device
    updates = broadcast_on(place, value, (*others[:target], *points, *others[target:]))
    if not updates.size:
        return reshape(x, shape)
    updated = _scattered(selected, axes, arrays, moved(updates, target, 0, len(points)))
    result = updated if index.is_everything else _slice_assigned(x, index, updated)
    return reshape(result, shape)


def _scattered(x: Array, axes: list[int], arrays: list[Array], updates: Array) -> Array:
    """Return a new array, ``x`` with its parts at ``arrays``, indices of ``axes``, replaced.

    ``updates`` replace them. They have the axes of the indices, which broadcast, first, then the
    other axes of the array. Indices out of range write nothing. Raises: DeviceError if the arrays
    are on several devices.
    """
    rank = len(broadcast_index_shape(arrays))
    if len(arrays) == 1:
        op = operation("scatter", axis=axes[0])
        updates = moved(updates, 0, axes[0], rank)
        return wrap(apply(op, x._value, arrays[0]._value, updates._value))
    firsts = tuple(range(len(axes)))
    front = moveaxis(x, tuple(axes), firsts)
    indices = [a._value for a in arrays]
    result = wrap(apply(operation("scatter_points"), front._value, updates._value, *indices))
    return moveaxis(result, firsts, tuple(axes))
