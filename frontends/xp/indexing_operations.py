"""The operations of indexing: slices, gathers and their assignments.

Positions where slices begin, and the extents of slices, are run-time inputs; see `extents`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import passkit.ops as ops
from passkit.frontends.xp.extents import position_of, with_inputs
from passkit.frontends.xp.runtime import OPERATIONS
from passkit.graph.node import Entry, known_shape
from passkit.values.size import Extent, Shape

SlicedAxis = tuple[str, int]
"""The part of an axis that a basic index selects, and its step: "all"; "from" a position, which is
a run-time input; from the "first" or "last" element; or the element "at" a position, whose axis
goes. Of last axes with few elements, it is the element "in" a position that stands here in place of
the step."""

ELEMENTS = ("at", "in")
"""The kinds of `SlicedAxis` that select one element."""


def _ranges(
    x: Any, axes: Sequence[SlicedAxis], shape: Sequence[Any], inputs: Sequence[Any]
) -> Iterator[tuple[Any, Any, int]]:
    """Yield begin, extent and step of what a slice selects of each axis of ``x``.

    Args:
        x: an entry or an array.
        axes: the part of each axis, see `SlicedAxis`.
        shape: the extents of those that are not "all" or elements, in order.
        inputs: the position inputs of those that are "from" or "at", in order.
    """
    extents = iter(shape)
    number = 0
    for n, (kind, step) in zip(x.shape, axes, strict=True):
        if kind == "all":
            yield 0, n, 1
            continue
        if kind == "in":
            yield step, 1, 1
            continue
        begin = 0 if kind == "first" else n - 1
        if kind in ("from", "at"):
            begin = position_of(inputs[number], number)
            number += 1
        yield begin, 1 if kind == "at" else next(extents), step


def _dropped(axes: Sequence[SlicedAxis]) -> tuple[int, ...]:
    """Return the numbers of the axes of which one element is taken, by a position."""
    return tuple([k for k, (kind, _) in enumerate(axes) if kind in ELEMENTS])


def _positions(inputs: Sequence[Any], shape: Sequence[Any]) -> Sequence[Any]:
    """Return the position inputs: all but the first, which gives extents if there are any.

    ``shape`` has these extents, ``inputs`` are the run-time inputs of the operation.
    """
    return inputs[1:] if shape else inputs


def _build_slice(
    x: Entry, *inputs: Entry, axes: Sequence[SlicedAxis], new_axes: tuple[int, ...], shape: Shape
) -> Entry:
    """Build a slice, then remove and insert axes.

    Args:
        x: the operand.
        *inputs: run-time inputs: extents, if ``shape`` has any, then positions.
        axes: the part of each axis, see `SlicedAxis`; those of elements are removed.
        new_axes: where axes of length 1 are inserted, in the result.
        shape: the extents that are no extents of entire axes.
    """
    ranges = [*_ranges(x, axes, shape, _positions(inputs, shape))]
    begin, size, step = zip(*ranges, strict=True) if ranges else ((), (), ())
    result = ops.slice(x, begin=begin, size=size, step=step) if ranges else x
    dropped = _dropped(axes)
    result = ops.squeeze(result, axis=dropped) if dropped else result
    result = ops.expand_dims(result, axis=new_axes) if new_axes else result
    return with_inputs(result, inputs) if inputs else ops.identity(result)


def _numpy_key(
    x: Any, inputs: Sequence[Any], axes: Sequence[SlicedAxis], shape: Sequence[Any]
) -> Any:
    """Return NumPy's key of a slice of ``x`` that keeps all axes: a tuple of slices.

    ``inputs`` are extents, if ``shape`` has any, then positions; ``axes`` says which part of each
    axis is meant, see `SlicedAxis`.
    """
    key = []
    for begin, extent, step in _ranges(x, axes, shape, _positions(inputs, shape)):
        end = begin + extent * step
        key.append(slice(begin, None if end < 0 else end, step))
    return tuple(key)


def _slice(
    x: Any, *inputs: Any, axes: Sequence[SlicedAxis], new_axes: tuple[int, ...], shape: Any
) -> Any:
    """Return a copy of a slice of the NumPy array ``x``, with axes removed and inserted.

    ``inputs`` are extents, if ``shape`` has any, then positions; ``axes`` says which part of each
    axis is meant, see `SlicedAxis`; axes of elements are removed. ``new_axes`` are where axes of
    length 1 are inserted, in the result.
    """
    result = x[_numpy_key(x, inputs, axes, shape)]
    result = np.squeeze(result, _dropped(axes))
    return np.array(np.expand_dims(result, new_axes), order="C")


def _build_slice_assign(
    x: Entry,
    value: Entry,
    *inputs: Entry,
    axes: Sequence[SlicedAxis],
    new_axes: tuple[int, ...],
    shape: Shape,
) -> Entry:
    """Build a copy of x with a slice replaced by ``value``, which is broadcast to the slice.

    Args:
        x: the operand.
        value: what replaces the slice, of its dtype.
        *inputs: run-time inputs: extents, if ``shape`` has any, then positions.
        axes: the part of each axis, see `SlicedAxis`; ``value`` lacks those of elements.
        new_axes: where ``value`` has axes of length 1 that x lacks.
        shape: the extents that are no extents of entire axes.
    """
    ranges = [*_ranges(x, axes, shape, _positions(inputs, shape))]
    begin, size, step = zip(*ranges, strict=True) if ranges else ((), (), ())
    dropped = _dropped(axes)
    extents: list[Extent] = [n for k, n in enumerate(size) if k not in dropped]
    for k in new_axes:
        extents.insert(k, 1)
    value = ops.broadcast_to(value, shape=tuple(extents))
    value = ops.squeeze(value, axis=new_axes) if new_axes else value
    value = ops.expand_dims(value, axis=dropped) if dropped else value
    if ranges:
        value = _replaced(x, value, begin, size, step, _num_joined(x, axes))
    return with_inputs(ops.identity(value), inputs)


def _num_joined(x: Entry, axes: Sequence[SlicedAxis]) -> int:
    """Return how many last axes of known extents have the kind "in"; 0 for a single one.

    An axis of another kind, or of an unknown extent, ends the count.
    """
    count = 0
    for n, (kind, _) in zip(reversed(known_shape(x)), reversed(axes), strict=True):
        if kind != "in" or not isinstance(n, int):
            break
        count += 1
    return count if count > 1 else 0


def _replaced(
    x: Entry,
    value: Entry,
    begin: tuple[Extent, ...],
    size: tuple[Extent, ...],
    step: tuple[int, ...],
    num_joined: int,
) -> Entry:
    """Return x with a slice replaced by ``value``, which has its axes.

    ``begin``, ``size`` and ``step`` are those of the slice. The last ``num_joined`` axes, of which
    it selects one element, are one axis meanwhile, as kernels unroll one.
    """
    if not num_joined:
        return ops.slice_assign(x, value, begin=begin, size=size, step=step)
    shape = known_shape(x)
    front = len(shape) - num_joined
    position, extent = 0, 1
    for k in range(front, len(shape)):
        position = position * shape[k] + begin[k]  # type: ignore[assignment]
        extent *= shape[k]  # type: ignore[assignment]
    result = ops.slice_assign(
        ops.reshape(x, shape=(*shape[:front], extent)),
        ops.reshape(value, shape=(*size[:front], 1)),
        begin=(*begin[:front], position),
        size=(*size[:front], 1),
        step=step[: front + 1],
    )
    return ops.reshape(result, shape=shape)


def _slice_assign(
    x: Any,
    value: Any,
    *inputs: Any,
    axes: Sequence[SlicedAxis],
    new_axes: tuple[int, ...],
    shape: Any,
) -> Any:
    """Return a copy of the NumPy array x with a slice replaced by ``value``.

    ``inputs`` are extents, if ``shape`` has any, then positions; ``axes`` says which part of each
    axis is meant, see `SlicedAxis`; ``value`` lacks those of elements. ``new_axes`` are where it
    has axes of length 1 that x lacks.
    """
    result = np.array(x, order="C")
    target = result[(*_numpy_key(x, inputs, axes, shape), ...)]  # a view also without axes
    target = np.expand_dims(np.squeeze(target, _dropped(axes)), new_axes)
    target[...] = value
    return result


def _stacked(indices: Sequence[Entry]) -> Entry:
    """Build one entry of int64 whose last axis has the index arrays, broadcast together."""
    return ops.stack(*ops.broadcast_arrays(*[ops.cast(i, dtype="int64") for i in indices]), axis=-1)


def _gather(x: Any, indices: Any, axis: int) -> Any:
    """Return the parts of x along an axis at indices, by NumPy; the axes of these replace the axis.

    Negative ones count from the end; those out of range read the nearest element.

    Raises: IndexError if the axis has no elements and there are indices.
    """
    n = x.shape[axis]
    indices = np.where(indices < 0, indices + n, indices) if indices.dtype.kind == "i" else indices
    return np.take(x, indices, axis, mode="clip")


def _from_front(x: Any, indices: Sequence[Any]) -> tuple[Any, ...]:
    """Return indices of the first axes of x as int64, counted from the front.

    ``indices`` are a NumPy array for each of these axes. Those out of range become the nearest
    valid ones.
    """
    positions = []
    for n, i in zip(x.shape, indices, strict=False):
        signed = i.astype(np.int64)
        positions.append(np.clip(np.where(signed < 0, signed + n, signed), 0, max(n - 1, 0)))
    return tuple(positions)


def _scatter(x: Any, indices: Any, updates: Any, axis: int) -> Any:
    """Return a copy of x with its parts along an axis at indices replaced by updates.

    The axes of ``indices`` stand in ``updates`` where the axis is in x. Negative indices count from
    the end; those out of range write nothing, as in kernels.
    """
    result = np.array(x, order="C")
    n, before = x.shape[axis], (slice(None),) * axis
    is_valid = (indices >= -n) & (indices < n)
    if not is_valid.all():
        flat_shape = (*x.shape[:axis], indices.size, *x.shape[axis + 1 :])
        updates = updates.reshape(flat_shape)[(*before, is_valid.reshape(-1))]
        indices = indices[is_valid]
    result[(*before, indices)] = updates
    return result


def _scatter_points(x: Any, updates: Any, *indices: Any) -> Any:
    """Return a copy of x with its parts at indices of its first axes replaced by updates.

    ``updates`` have the axes of the indices, which broadcast, first. Negative indices count from
    the end; tuples of indices with one out of range write nothing, as in kernels.
    """
    result = np.array(x, order="C")
    points = tuple(np.broadcast_arrays(*indices))
    is_valid = np.ones(points[0].shape, bool)
    for n, index in zip(x.shape, points, strict=False):
        is_valid &= (index >= -n) & (index < n)
    if not is_valid.all():
        points = tuple([index[is_valid] for index in points])
        updates = updates[is_valid]
    result[points] = updates
    return result


def _take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    """Return for each index the element of x at this position of an axis, by NumPy.

    Negative ones count from the end; those out of range read the nearest element, as in kernels.
    The shapes broadcast along the other axes.
    """
    n = x.shape[axis]
    positions = indices.astype(np.int64)
    positions = np.clip(np.where(positions < 0, positions + n, positions), 0, max(n - 1, 0))
    return np.take_along_axis(x, positions, axis)


def _build_mask_assign(x: Entry, mask: Entry, value: Entry, trailing: int) -> Entry:
    """Build x with elements replaced by ``value``, of its dtype, where a mask of bools is true.

    The mask has all axes of x but the last ``trailing`` ones; ``value`` broadcasts to x.
    """
    rank = mask.ndim
    mask = ops.expand_dims(mask, axis=tuple(range(rank, rank + trailing))) if trailing else mask
    return ops.where(mask, ops.broadcast_to(value, shape=known_shape(x)), x)


def _mask_assign(x: Any, mask: Any, value: Any, trailing: int) -> Any:
    """Return a new NumPy array, x with elements replaced by ``value`` where a mask is true.

    The mask has all axes of x but the last ``trailing`` ones; ``value`` broadcasts to x.
    """
    return np.where(mask.reshape(mask.shape + (1,) * trailing), value, x)


OPERATIONS.define("slice", _build_slice, _slice)
OPERATIONS.define("slice_assign", _build_slice_assign, _slice_assign)
OPERATIONS.define("gather", lambda x, indices, axis: ops.gather(x, indices, axis=axis), _gather)
OPERATIONS.define(
    "gather_points",
    lambda x, *indices: ops.gather_nd(x, _stacked(indices)),
    lambda x, *indices: x[_from_front(x, indices)],
)
OPERATIONS.define(
    "scatter",
    lambda x, indices, updates, axis: ops.index_update(x, indices, updates, axis=axis),
    _scatter,
)
OPERATIONS.define(
    "scatter_points",
    lambda x, updates, *indices: ops.tensor_scatter_nd_update(x, _stacked(indices), updates),
    _scatter_points,
)
OPERATIONS.define("mask_assign", _build_mask_assign, _mask_assign)
OPERATIONS.define(
    "take_along_axis",
    lambda x, indices, axis: ops.take_along_axis(x, indices, axis=axis),
    _take_along_axis,
)
