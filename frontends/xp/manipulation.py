"""Manipulation functions: shapes, the order of axes and elements, joins and repetitions."""

from __future__ import annotations

import operator
from math import prod
from typing import Any

import numpy as np

from passkit.errors import AxisError, ShapeError
from passkit.frontends.xp.aliases import aliased
from passkit.frontends.xp.array import Array, array_of, call, wrap
from passkit.frontends.xp.conversion import duplicate
from passkit.frontends.xp.extents import (
    apply_typed,
    check_axes,
    extents_input,
    position_inputs,
)
from passkit.frontends.xp.movement_operations import JoinedAxes
from passkit.frontends.xp.reductions import integer
from passkit.frontends.xp.runtime import apply, from_numpy, operation
from passkit.graph.node import MOST_ELEMENTS
from passkit.streams.device import StreamDevice
from passkit.streams.operation import MAX_MEMO, Operation, array_type
from passkit.streams.recorder import ArrayType, Value
from passkit.streams.settings import settings
from passkit.values.arguments import refuse, shown


def normalized_axis(where: str, axis: Any, rank: int) -> int:
    """Return an axis as an int from 0 to below ``rank``; negative ones count from the end.

    ``where`` is the function, for messages.

    Raises:
        ArgumentError: It is no int; a bool, or an integer of NumPy, counts as one.
        AxisError: It is out of range; this is a ShapeError and an IndexError.
    """
    try:
        index = operator.index(axis)
    except TypeError:
        refuse(f"{where}: axis", axis, "an int")
    if not -rank <= index < rank:
        raise AxisError(f"{where}: axis {index} is out of range for an array of {rank} axes")
    return index % rank


def normalized_axes(where: str, axes: Any, rank: int) -> tuple[int, ...]:
    """Return an axis, or a tuple or list of several, as a tuple of ints from 0 to below ``rank``.

    ``axes`` may count from the end; their order stays. ``where`` is the function, for messages.

    Raises:
        ArgumentError: An axis is no int.
        AxisError: An axis is out of range.
        ShapeError: An axis is named twice.
    """
    listed = axes if isinstance(axes, (tuple, list)) else (axes,)
    normalized = tuple([normalized_axis(where, a, rank) for a in listed])
    if len(set(normalized)) != len(normalized):
        raise ShapeError(f"{where}: axes must differ, got {tuple(listed)}")
    return normalized


def _extents(where: str, shape: Any) -> tuple[int, ...]:
    """Return an int, or a tuple or list of them, as a tuple of ints, which may be negative.

    A bool counts as an int. ``where`` is the function, for messages. Raises: ArgumentError if it is
    something else; ShapeError if there are more ints than an array has axes.
    """
    listed = shape if isinstance(shape, (tuple, list)) else (shape,)
    try:
        extents = tuple([operator.index(n) for n in listed])
    except TypeError:
        refuse(f"{where}: shape", shape, "an int or a tuple of ints")
    check_axes(where, extents)
    return extents


# Shapes


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which arrays of these shapes are broadcast; () for none.

    A shape is a tuple or list of ints, or an int.

    Raises:
        ArgumentError: One is nothing of these; a bool is no int.
        ShapeError: They do not fit together, an extent is negative or too large, or there are more
            than 64 axes.

    >>> from passkit import xp
    >>> xp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = ", ".join(map(shown, shapes))
        raise ShapeError(f"the shapes {listed} cannot be broadcast together") from None
    except TypeError:
        refuse("broadcast_shapes: shapes", shapes, "tuples of ints")


def broadcast_arrays(*arrays: Array) -> list[Array]:
    """Return a list of new arrays: these arrays, or numbers, broadcast to their common shape.

    Each keeps its dtype. Without arrays the list is empty.

    Raises:
        ArgumentError: One is no array or number.
        ShapeError: Their shapes do not fit together.
    """
    listed = list(map(array_of, arrays))
    shape = broadcast_shapes(*[a.shape for a in listed])
    return [broadcast_to(a, shape) for a in listed]


def broadcast_to(x: Array, /, shape: tuple[int, ...]) -> Array:
    """Return a new array, ``x`` broadcast to a shape.

    Args:
        x: the array, or a number.
        shape: the shape, a tuple or list of ints or an int; its last axes are equal to those of
            ``x``, where these are not 1.

    Raises:
        ArgumentError: ``x`` is no array or number, or the shape nothing of these.
        ShapeError: the array does not fit the shape, or that has too many elements or axes.
    """
    x = array_of(x)
    return broadcast_on(x._value.type.device, x, shape)


def broadcast_on(device: StreamDevice | None, x: Array, shape: tuple[int, ...]) -> Array:
    """Return an array broadcast to a shape on a device, None for the CPU.

    The array is on the same device, or on the CPU and has no axes.

    Raises: ArgumentError if the shape is no int and no tuple of ints; ShapeError if the array does
    not broadcast to it, or it has too many elements or axes.
    """
    target = _extents("broadcast_to", shape)
    source = x.shape
    pairs = zip(reversed(source), reversed(target), strict=False)
    if (
        len(source) > len(target)
        or any(n not in (1, m) for n, m in pairs)
        or min(target, default=0) < 0
        or prod([n or 1 for n in target]) > MOST_ELEMENTS
    ):
        raise ShapeError(f"an array of shape {source} does not broadcast to {shown(target)}")
    if source == target and x._value.type.device is device:
        return duplicate(x)
    op = operation("broadcast_to", shape=target)
    type = array_type(x.dtype, target, device)
    return wrap(apply_typed(op, type, x._value, extents_input(target, device)))


def _same_order(view: Array, x: Array) -> Array:
    """Return ``view``, a new array with the elements of ``x`` in row-major order in another shape.

    With the setting ``aliasing`` it is noted as a view of ``x``.
    """
    if not settings.aliasing:
        return view
    shape = view.shape
    return aliased(
        view,
        x,
        lambda base: _reshaped(base, shape),
        lambda base, v: _reshaped(v, base.shape),
        lambda base: base.reshape(shape),
    )


def reshape(x: Array, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Array:
    """Return a new array of the same elements in row-major order with another shape.

    Args:
        x: the array, or a number.
        shape: the shape, a tuple or list of ints or an int; one extent may be -1, which is filled
            in.
        copy: whether memory is copied, or None. No array ever changes with another, so it makes no
            difference and is not checked.

    Raises:
        ArgumentError: ``x`` is no array or number, or the shape nothing of these.
        ShapeError: the number of elements differs, an extent is below -1, there are several -1, the
            -1 cannot be filled in, as beside an extent 0, or the shape has more than 64 axes or
            too large extents beside a 0.

    >>> from passkit import xp
    >>> xp.reshape(xp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int64)
    """
    x = array_of(x)
    return _same_order(_reshaped(x, shape), x)


def _reshaped(x: Array, shape: Any) -> Array:
    """Return what `reshape` returns for an `Array`, without noting it as a view.

    Raises: ArgumentError or ShapeError for a wrong shape.
    """
    value = x._value
    key = None
    is_plain = type(shape) is tuple and all([type(n) is int for n in shape])
    if is_plain and value.operation is not None:
        key = value.type, shape
        if (repeated := _reshapes.get(key)) is not None:
            return wrap(apply(repeated, value))
    target = _filled_shape(x, _extents("reshape", shape))
    if target == x.shape:
        return duplicate(x)
    if value.is_exposed:
        value = duplicate(x)._value
    if value.operation is None and value.type.device is not None:
        value.is_owned = False
        target_type = array_type(value.type.dtype, target, value.type.device)
        return wrap(Value(target_type, value.buffer.reshaped(target)))
    if value.operation is None and value.buffer.flags.c_contiguous and not value.is_scalar:
        value.is_owned = False
        return wrap(from_numpy(value.buffer.reshape(target)))
    groups, given = _axis_groups(x.shape, target)
    op = operation("reshape", groups=groups, shape=given)
    if key is not None:
        if len(_reshapes) >= MAX_MEMO:
            _reshapes.clear()
        _reshapes[key] = op
    return wrap(apply(op, value))


_reshapes: dict[tuple[ArrayType, tuple[int, ...]], Operation] = {}
"""The operations that reshape pending arrays, by the type of the array and the shape as given."""


def _filled_shape(x: Array, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a reshape of ``x``, with the extent -1 filled in, if there is one.

    Raises: ShapeError if the number of elements differs, an extent is below -1, there are several
    -1 or one that cannot be filled in, as in an array without elements, or the extents other than 0
    multiply to more than `MOST_ELEMENTS`.
    """
    rest = prod(n for n in shape if n != -1)
    is_valid = shape.count(-1) <= 1 and all(n >= -1 for n in shape)
    if is_valid and -1 in shape and rest > 0 and x.size % rest == 0:
        shape = tuple(x.size // rest if n == -1 else n for n in shape)
    is_valid &= prod([n or 1 for n in shape]) <= MOST_ELEMENTS
    if not is_valid or -1 in shape or prod(shape) != x.size:
        raise ShapeError(f"an array of shape {x.shape} cannot be reshaped to {shown(shape)}")
    return shape


def _axis_groups(
    shape: tuple[int, ...], target: tuple[int, ...]
) -> tuple[tuple[JoinedAxes, ...], tuple[int, ...]]:
    """Return the smallest groups of axes that a reshape of ``shape`` to ``target`` joins or splits.

    Returns: The groups, and the extents of the result that are not filled in. Of each group, the
    largest extent is filled in. An array without elements is one group, of which none is.
    """
    if 0 in shape:
        return ((len(shape), len(target), -1),), target
    groups: list[JoinedAxes] = []
    given: list[int] = []
    a = b = 0
    while a < len(shape) or b < len(target):
        start, new_start = a, b
        left = right = 1
        if a < len(shape):
            left, a = shape[a], a + 1
        if b < len(target):
            right, b = target[b], b + 1
        while left != right:
            if left < right and a < len(shape):
                left, a = left * shape[a], a + 1
            else:
                right, b = right * target[b], b + 1
        if b == len(target):
            a = len(shape)  # axes of length 1 are left over
        extents = target[new_start:b]
        largest = extents.index(max(extents)) if extents else -1
        groups.append((a - start, b - new_start, largest))
        given += [n for k, n in enumerate(extents) if k != largest]
    return tuple(groups), tuple(given)


def expand_dims(x: Array, /, axis: int | tuple[int, ...] = 0) -> Array:
    """Return a new array with more axes, of length 1.

    Args:
        x: the array, or a number.
        axis: where the new axes stand in the result: an int, or a tuple or list of them. Negative
            ones count from the end of the result.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no int.
        ShapeError: An axis is out of range or named twice.
    """
    x = array_of(x)
    count = len(axis) if isinstance(axis, (tuple, list)) else 1
    axes = normalized_axes("expand_dims", axis, x.ndim + count)
    return _same_order(call("expand_dims", x, axis=axes), x)


def squeeze(x: Array, /, axis: int | tuple[int, ...]) -> Array:
    """Return a new array without some axes of length 1.

    Args:
        x: the array, or a number.
        axis: the axes to remove: an int, or a tuple or list of them, which may be empty. Negative
            ones count from the end.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no int, such as None.
        ShapeError: An axis is out of range, named twice, or its length is not 1.
    """
    x = array_of(x)
    axes = normalized_axes("squeeze", axis, x.ndim)
    for k in axes:
        if x.shape[k] != 1:
            raise ShapeError(f"squeeze: axis {k} of shape {x.shape} has length {x.shape[k]}, not 1")
    return _same_order(call("squeeze", x, axis=axes) if axes else duplicate(x), x)


# The order of axes and elements


def permute_dims(x: Array, /, axes: tuple[int, ...]) -> Array:
    """Return a new array with the axes in another order.

    Args:
        x: the array, or a number.
        axes: for each axis of the result, the axis of ``x``, which may count from the end: a tuple
            or list of ints, or an int for a vector.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no int.
        ShapeError: The axes do not name each axis once, or one is out of range.

    >>> from passkit import xp
    >>> xp.permute_dims(xp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = array_of(x)
    order = normalized_axes("permute_dims", axes, x.ndim)
    if len(order) != x.ndim:
        raise ShapeError(f"permute_dims needs {x.ndim} axes, got {shown(axes)}")
    if order == tuple(range(x.ndim)):
        return _same_order(duplicate(x), x)
    result = call("permute_dims", x, axes=order)
    if not settings.aliasing:
        return result
    inverse = tuple(order.index(k) for k in range(x.ndim))
    return aliased(
        result,
        x,
        lambda base: permute_dims(base, order),
        lambda base, view: permute_dims(view, inverse),
        lambda base: base.transpose(order),
    )


def matrix_transpose(x: Array, /) -> Array:
    """Return a new array of matrices, in the last two axes, transposed.

    Raises:
        ArgumentError: ``x`` is no array or number.
        ShapeError: It has fewer than two axes.
    """
    x = array_of(x)
    if x.ndim < 2:
        raise ShapeError(f"matrix_transpose needs at least two axes, got shape {x.shape}")
    return permute_dims(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def moveaxis(
    x: Array, source: int | tuple[int, ...], destination: int | tuple[int, ...], /
) -> Array:
    """Return a new array with some axes at other places; the others keep their order.

    Args:
        x: the array.
        source: the axes to move: an int, or a tuple or list of them, which may be empty.
        destination: where each of them goes in the result. Negative axes count from the end.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no int.
        ShapeError: An axis is out of range or named twice, or their numbers differ.
    """
    x = array_of(x)
    sources = normalized_axes("moveaxis: source", source, x.ndim)
    targets = normalized_axes("moveaxis: destination", destination, x.ndim)
    if len(sources) != len(targets):
        raise ShapeError(
            f"moveaxis needs as many sources as destinations, got {len(sources)} and {len(targets)}"
        )
    order = [k for k in range(x.ndim) if k not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return permute_dims(x, tuple(order))


def flip(x: Array, /, axis: int | tuple[int, ...] | None = None) -> Array:
    """Return a new array with the elements along axes in reverse order.

    Args:
        x: the array.
        axis: the axes: an int, or a tuple or list of them; None: all.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis no int.
        ShapeError: An axis is out of range or named twice.
    """
    x = array_of(x)
    axes = tuple(range(x.ndim)) if axis is None else normalized_axes("flip", axis, x.ndim)
    if not axes:
        return _same_order(duplicate(x), x)
    result = call("flip", x, axis=axes)
    return aliased(
        result,
        x,
        lambda base: flip(base, axes),
        lambda base, view: flip(view, axes),
        lambda base: np.flip(base, axes),
    )


def roll(
    x: Array,
    /,
    shift: int | tuple[int, ...],
    axis: int | tuple[int, ...] | None = None,
) -> Array:
    """Return a new array with the elements shifted; those that leave at the end enter at the front.

    Args:
        x: the array.
        shift: the number of positions, any int; negative ones shift to the front. All shifts use
            one plan. One int is for all axes; a tuple or list has one for each.
        axis: an axis or a tuple or list of them, one for each shift; one that is named twice is
            shifted twice. None: the elements in row-major order, by one int.

    Raises:
        ArgumentError: ``x`` is no array or number, or an axis or a shift no int.
        ShapeError: An axis is out of range, there is not a shift for each axis, or there are
            several shifts and no axes.

    >>> from passkit import xp
    >>> xp.roll(xp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int64)
    """
    x = array_of(x)
    if axis is None:
        if isinstance(shift, (tuple, list)):
            raise ShapeError(f"roll: several shifts need several axes, got {tuple(shift)} alone")
        integer("roll: shift", shift)
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape) if x.size else duplicate(x)
    listed = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [normalized_axis("roll", a, x.ndim) for a in listed]
    shifts = list(shift) if isinstance(shift, (tuple, list)) else [shift] * len(axes)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll needs a shift for each of {len(axes)} axes, got {len(shifts)}")
    totals = dict.fromkeys(axes, 0)
    for a, s in zip(axes, shifts, strict=True):
        totals[a] += integer("roll: shift", s)
    cuts = {a: -s % x.shape[a] for a, s in totals.items() if x.shape[a] and -s % x.shape[a]}
    if not cuts:
        return duplicate(x)
    op = operation("roll", axes=tuple(cuts))
    return wrap(apply_typed(op, x._value.type, x._value, *position_inputs([*cuts.values()])))
