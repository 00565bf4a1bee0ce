"""Importers of gathers and scatters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from attrs import frozen

import passkit.ops as ops
from passkit.frontends.torch.dtypes import TORCH_DTYPES, passkit_dtype
from passkit.frontends.torch.errors import unsupported
from passkit.frontends.torch.op_importers.reductions import vector_norm
from passkit.frontends.torch.op_importers.registry import (
    BOOL,
    INT64,
    AtenCall,
    accumulated,
    aten,
    axis_of,
    cast,
    constant,
    dtype_name,
    imports,
    plain_extents,
)
from passkit.frontends.torch.sizes import size_value
from passkit.graph.node import Entry, known_shape
from passkit.values.dtype import dtype_of
from passkit.values.size import Extent


def _from_front(index: Entry, length: Extent) -> Entry:
    """Return positions from 0 on; negative ones count from the end of an axis."""
    end = length if isinstance(length, int) else size_value(length, INT64)
    wide = cast(index, INT64)
    return ops.where(ops.less(wide, 0), wide + end, wide)


@imports(aten.index_select.default)
def _index_select(call: AtenCall, x: Entry, axis: int, index: Entry) -> Entry:
    """Import the slices of an axis at positions."""
    if not known_shape(x):
        return ops.reshape(x, call.shape)
    positions = ops.reshape(index, (-1,)) if not known_shape(index) else index
    return ops.gather(x, positions, axis=axis_of(axis, x))


@imports(aten.gather.default)
def _gather(
    call: AtenCall, x: Entry, axis: int, index: Entry, *, sparse_grad: bool = False
) -> Entry:
    """Import the elements along an axis at positions of an index with as many axes."""
    if 0 in call.shape or not known_shape(x):
        return _without_elements(call, x)
    if not known_shape(index):
        return ops.reshape(ops.gather(x, ops.reshape(index, (1,)), axis=0), ())
    shape, extents = known_shape(x), known_shape(index)
    axis = axis_of(axis, x)
    size = [n if k == axis else m for k, (n, m) in enumerate(zip(shape, extents, strict=True))]
    part = x if list(shape) == size else ops.slice(x, begin=[0] * len(shape), size=size)
    return ops.take_along_axis(part, index, axis=axis)


def _without_elements(call: AtenCall, x: Entry) -> Entry:
    """Return what a call reads of a scalar, or a result without elements."""
    if 0 in call.shape:
        return ops.full(call.shape, 0, call.dtype.name)
    return ops.broadcast_to(x, call.shape)


@imports(aten.embedding.default)
def _embedding(
    call: AtenCall,
    weight: Entry,
    index: Entry,
    padding: int = -1,
    scale_by_frequency: bool = False,
    sparse: bool = False,
) -> Entry:
    """Import the rows of a matrix at positions."""
    return ops.gather(weight, index, axis=0)


def _is_mask(index: Entry) -> bool:
    """Return whether an index is a mask of truth values."""
    return index.dtype is not None and index.dtype.name in ("bool", "uint8")


def _broadcast_extents(points: Sequence[Entry]) -> tuple[Extent, ...]:
    """Return the shape that indices broadcast to."""
    extents: list[Extent] = [1] * max(len(known_shape(p)) for p in points)
    for p in points:
        own = known_shape(p)
        for k, n in enumerate(own, len(extents) - len(own)):
            extents[k] = n if n != 1 else extents[k]
    return tuple(extents)


@frozen(eq=False)
class IndexedAxes:
    """The axes that the indices of a call refer to.

    Attributes:
        axes: the axes with indices, in increasing order.
        points: their indices, from 0 on.
        extents: the shape that the indices broadcast to.
        rest: the other axes.
        first: the axis of the result at which the axes of the indices stand.
    """

    axes: tuple[int, ...]
    points: tuple[Entry, ...]
    extents: tuple[Extent, ...]
    rest: tuple[int, ...]
    first: int

    def axes_in_front(self, rank: int) -> tuple[int, ...]:
        """Return the order of the axes of a result with those of the indices in front."""
        own = range(self.first, self.first + len(self.extents))
        return (*own, *(k for k in range(rank) if k not in own))


def indexed_axes(x: Entry, indices: Sequence[Entry | None]) -> IndexedAxes:
    """Return the axes of ``x`` that integer indices refer to.

    Raises: UnsupportedNodeError for masks, and without indices.
    """
    shape = known_shape(x)
    axes = tuple(k for k, index in enumerate(indices) if index is not None)
    given = [index for index in indices if index is not None]
    if not axes or any(map(_is_mask, given)):
        unsupported("indices that are masks, whose elements decide the shape")
    are_neighbours = axes == tuple(range(axes[0], axes[-1] + 1))
    return IndexedAxes(
        axes=axes,
        points=tuple(_from_front(i, shape[k]) for k, i in zip(axes, given, strict=True)),
        extents=_broadcast_extents(given),
        rest=tuple(k for k in range(len(shape)) if k not in axes),
        first=axes[0] if are_neighbours else 0,
    )


@imports(aten.index.Tensor, aten._unsafe_index.Tensor)
def _index(call: AtenCall, x: Entry, indices: Sequence[Entry | None]) -> Entry:
    """Import indexing by integer tensors, which broadcast."""
    indexed = indexed_axes(x, indices)
    if 0 in call.shape:
        return _without_elements(call, x)
    shape, first = known_shape(x), indexed.first
    if indexed.axes[-1] - indexed.axes[0] >= len(indexed.axes):
        x = ops.transpose(x, axes=(*indexed.axes, *indexed.rest))
        first = 0
    position: Entry | None = None
    merged: Extent = 1
    for axis, point in zip(indexed.axes, indexed.points, strict=True):
        extent = shape[axis]
        merged = merged * extent
        factor = extent if isinstance(extent, int) else size_value(extent, INT64)
        position = point if position is None else position * factor + point
    assert position is not None
    last = first + len(indexed.axes)
    flat = ops.reshape(x, (*known_shape(x)[:first], merged, *known_shape(x)[last:]))
    gathered = ops.gather(flat, ops.broadcast_to(position, indexed.extents), axis=first)
    return ops.reshape(gathered, call.shape)


@imports(aten.index_put.default, aten._unsafe_index_put.default)
def _index_put(
    call: AtenCall,
    x: Entry,
    indices: Sequence[Entry | None],
    values: Entry,
    accumulate: bool = False,
) -> Entry:
    """Import the assignment to, or addition at, positions."""
    values = cast(values, call.dtype)
    given = [index for index in indices if index is not None]
    if given and all(map(_is_mask, given)):
        return _put_at_mask(call, x, indices, values, accumulate)
    indexed = indexed_axes(x, indices)
    rest = tuple(known_shape(x)[k] for k in indexed.rest)
    shape = (*rest[: indexed.first], *indexed.extents, *rest[indexed.first :])
    if 0 in shape:
        return x
    front = (*indexed.axes, *indexed.rest)
    updates = ops.broadcast_to(values, shape)
    if indexed.first:
        updates = ops.transpose(updates, axes=indexed.axes_in_front(len(shape)))
    points = (ops.broadcast_to(p, indexed.extents) for p in indexed.points)
    stacked = ops.stack(*points, axis=-1)
    function = ops.tensor_scatter_add if accumulate else ops.tensor_scatter_nd_update
    if call.dtype.name == "bool" and accumulate:
        function = ops.tensor_scatter_nd_max
    moved = ops.transpose(x, axes=front) if front != tuple(sorted(front)) else x
    result = _on_numbers(function, call, moved, stacked, updates)
    if moved is x:
        return result
    return ops.transpose(result, axes=tuple(front.index(k) for k in range(len(front))))


def _put_at_mask(
    call: AtenCall,
    x: Entry,
    indices: Sequence[Entry | None],
    values: Entry,
    accumulate: bool,
) -> Entry:
    """Return ``x`` with values put, in order, where a mask of its first axes is true.

    Raises: UnsupportedNodeError for several masks.
    """
    mask = indices[0]
    if len(indices) != 1 or mask is None or 0 in known_shape(x):
        unsupported("an assignment at several masks, or to no elements")
    lead = len(known_shape(mask))
    rest = known_shape(x)[lead:]
    condition = ops.reshape(cast(mask, BOOL), (*known_shape(mask), *(1,) * len(rest)))
    value = values
    if accumulate and call.dtype.name == "bool":
        unsupported("truth values added at a mask")
    if len(known_shape(values)) > len(rest):
        (count, *_) = known_shape(values)
        value = ops.reshape(values, known_shape(values)[1:]) if count == 1 else values
        if count == 0:
            return x
        if count != 1:
            flat = ops.reshape(ops.cast(cast(mask, BOOL), "int64"), (-1,))
            positions = ops.reshape(ops.cumsum(flat, axis=0) - 1, known_shape(mask))
            value = ops.gather(values, ops.maximum(positions, 0), axis=0)
    return ops.where(condition, x + value if accumulate else value, x)


def _on_numbers(function: Any, call: AtenCall, x: Entry, *operands: Entry) -> Entry:
    """Return a scatter of numbers; bools are computed as uint8."""
    if call.dtype.name != "bool":
        result: Entry = function(x, *operands)
        return result
    narrow = dtype_of("uint8")
    points, values = operands
    return cast(function(cast(x, narrow), points, cast(values, narrow)), call.dtype)


@imports(aten.masked_scatter.default)
def _masked_scatter(call: AtenCall, x: Entry, mask: Entry, source: Entry) -> Entry:
    """Import the elements of a source in order, where a mask is true."""
    if 0 in call.shape or 0 in known_shape(source):
        return ops.broadcast_to(x, call.shape)
    condition = ops.broadcast_to(cast(mask, BOOL), call.shape)
    flat = ops.reshape(ops.cast(condition, "int64"), (-1,))
    positions = ops.cumsum(flat, axis=0) - 1
    elements = ops.gather(ops.reshape(source, (-1,)), ops.maximum(positions, 0), axis=0)
    return ops.where(condition, ops.reshape(elements, call.shape), x)


@imports(aten.masked_scatter_backward.default)
def _masked_scatter_backward(call: AtenCall, dy: Entry, mask: Entry, size: Any) -> Entry:
    """Import the gradient of a source whose elements are put, in order, where a mask is true."""
    count = math.prod(plain_extents(call.shape))
    if 0 in known_shape(dy) or count == 0:
        return ops.full(call.shape, 0, call.dtype.name)
    condition = ops.reshape(ops.broadcast_to(cast(mask, BOOL), known_shape(dy)), (-1,))
    places = ops.cumsum(ops.cast(condition, "int64"), axis=0) - 1
    points = ops.reshape(ops.where(condition, places, count), (-1, 1))
    zeros = ops.full((count,), 0, call.dtype.name)
    total = ops.tensor_scatter_add(zeros, points, ops.reshape(dy, (-1,)), mode="zero")
    return ops.reshape(total, call.shape)


@imports(aten.put.default)
def _put(call: AtenCall, x: Entry, index: Entry, source: Entry, accumulate: bool = False) -> Entry:
    """Import the assignment to, or addition at, positions in row-major order."""
    if 0 in known_shape(index) or 0 in call.shape:
        return x
    flat = ops.reshape(x, (-1,))
    (length,) = known_shape(flat)
    points = _from_front(ops.reshape(index, (-1, 1)), length)
    function = ops.tensor_scatter_add if accumulate else ops.tensor_scatter_nd_update
    values = ops.reshape(source, (-1,))
    return ops.reshape(_on_numbers(function, call, flat, points, values), call.shape)


@imports(aten.scatter_add.default)
def _scatter_add(call: AtenCall, x: Entry, axis: int, index: Entry, source: Entry) -> Entry:
    """Import the addition at positions along an axis; a part of the source counts."""
    return scattered(call, ops.tensor_scatter_add, x, axis, index, source)


@imports(aten.scatter.src, aten.scatter.value)
def _scatter(call: AtenCall, x: Entry, axis: int, index: Entry, source: Any) -> Entry:
    """Import the assignment at positions along an axis."""
    return scattered(call, ops.tensor_scatter_nd_update, x, axis, index, source)


@imports(aten.scatter.reduce, aten.scatter.value_reduce)
def _scatter_with(
    call: AtenCall, x: Entry, axis: int, index: Entry, source: Any, *, reduce: str
) -> Entry:
    """Import the addition or multiplication at positions along an axis."""
    functions = {"add": ops.tensor_scatter_add, "multiply": ops.tensor_scatter_nd_mul}
    return scattered(call, functions[reduce], x, axis, index, source)


def scattered(
    call: AtenCall, function: Any, x: Entry, axis: int, index: Entry, source: Any
) -> Entry:
    """Return ``x`` with a source combined into the elements that an index along an axis names."""
    if not isinstance(source, Entry):
        source = ops.full(known_shape(index), source, call.dtype.name)
    if 0 in known_shape(index) or 0 in known_shape(x):
        return x
    if not known_shape(x):
        whole = ops.reshape(x, (1,))
        index, source = (v if known_shape(v) else ops.reshape(v, (1,)) for v in (index, source))
        return ops.reshape(scattered(call, function, whole, 0, index, source), ())
    if not known_shape(index):
        index = ops.reshape(index, (1,))
        source = source if known_shape(source) else ops.reshape(source, (1,))
    points, values = _points(x, axis, index, source)
    return _on_numbers(function, call, x, points, values)


REDUCTIONS: dict[str, tuple[Any, Any]] = {
    "sum": (ops.tensor_scatter_add, 0),
    "mean": (ops.tensor_scatter_add, 0),
    "prod": (ops.tensor_scatter_nd_mul, 1),
    "amax": (ops.tensor_scatter_nd_max, float("-inf")),
    "amin": (ops.tensor_scatter_nd_min, float("inf")),
}
"""For each reduction the scatter and the number that does not change its result."""


@imports(aten.scatter_reduce.two)
def _scatter_reduce(
    call: AtenCall,
    x: Entry,
    axis: int,
    index: Entry,
    source: Entry,
    reduce: str,
    *,
    include_self: bool = True,
) -> Entry:
    """Import a reduction of the elements of a source that an index along an axis sends to one."""
    return reduced_at(call, x, axis, index, source, reduce, include_self)


def reduced_at(
    call: AtenCall,
    x: Entry,
    axis: int,
    index: Entry,
    source: Entry,
    reduce: str,
    include_self: bool,
) -> Entry:
    """Return ``x`` with elements replaced by reductions of what an index sends to them."""
    function, neutral = REDUCTIONS[reduce]
    if not include_self:
        name = call.dtype.name
        if not call.dtype.is_float and name != "bool" and reduce in ("amax", "amin"):
            limits = np.iinfo(call.dtype.numpy)
            neutral = int(limits.min if reduce == "amax" else limits.max)
        elif name == "bool":
            neutral = reduce in ("amin", "prod")
        x_with_neutral = scattered(call, ops.tensor_scatter_nd_update, x, axis, index, neutral)
        result = scattered(call, function, x_with_neutral, axis, index, source)
    else:
        result = scattered(call, function, x, axis, index, source)
    if reduce != "mean":
        return result
    own_count = ops.ones_like(x) if include_self else ops.zeros_like(x)
    ones = ops.full(known_shape(index), 1, call.dtype.name)
    counts = ops.maximum(scattered(call, ops.tensor_scatter_add, own_count, axis, index, ones), 1)
    return result / counts if call.dtype.is_float else ops.floor_div(result, counts)


@imports(aten.index_reduce.default)
def _index_reduce(
    call: AtenCall,
    x: Entry,
    axis: int,
    index: Entry,
    source: Entry,
    reduce: str,
    *,
    include_self: bool = True,
) -> Entry:
    """Import a reduction of the slices of a source that an index sends to one."""
    axis = axis_of(axis, x)
    if 0 in known_shape(source) or 0 in known_shape(x):
        return x
    if not known_shape(x):
        index, source = ops.reshape(index, (-1,)), ops.reshape(source, (-1,))
        whole = ops.reshape(x, (1,))
        reduced = reduced_at(call, whole, 0, index, source, reduce, include_self)
        return ops.reshape(reduced, ())
    shape = tuple(-1 if k == axis else 1 for k in range(len(known_shape(x))))
    whole = ops.broadcast_to(ops.reshape(index, shape), known_shape(source))
    return reduced_at(call, x, axis, whole, source, reduce, include_self)


def _points(x: Entry, axis: int, index: Entry, source: Entry) -> tuple[Entry, Entry]:
    """Return the coordinates of elements that an index along an axis names, and their values."""
    shape = known_shape(index)
    axis = axis_of(axis, x)
    coordinates = []
    for k, n in enumerate(shape):
        if k == axis:
            coordinates.append(cast(index, INT64))
            continue
        counts = ops.cast(ops.range(0, n), "int64")
        along = ops.reshape(counts, tuple(n if j == k else 1 for j in range(len(shape))))
        coordinates.append(ops.broadcast_to(along, shape))
    values = source
    if known_shape(source) != shape:
        values = ops.slice(source, begin=[0] * len(shape), size=shape)
    return ops.stack(*coordinates, axis=-1), values


@imports(aten.topk.default)
def _topk(
    call: AtenCall,
    x: Entry,
    k: int,
    axis: int = -1,
    largest: bool = True,
    is_sorted: bool = True,
) -> list[Entry]:
    """Import the k largest or smallest elements of an axis, in order, and their positions."""
    if not known_shape(x):
        return [ops.reshape(x, call.shape), ops.full(call.shape, 0, "int64")]
    axis = axis_of(axis, x)
    if largest and call.dtype.kind != "b" and k:
        values, positions = ops.top_k(x, k=k, axis=axis)
        return [values, ops.cast(positions, "int64")]
    order = ops.cast(ops.argsort(x, axis=axis, descending=largest), "int64")
    first = ops.slice(order, begin=[0] * len(call.shape), size=call.shape)
    return [ops.take_along_axis(x, first, axis=axis), first]


@imports(aten.bucketize.Tensor)
def _bucketize(
    call: AtenCall,
    x: Entry,
    boundaries: Entry,
    *,
    out_int32: bool = False,
    right: bool = False,
) -> Entry:
    """Import the number of boundaries below each element, or up to it with ``right``."""
    return _insertion_points(call, boundaries, x, right)


@imports(aten.bucketize.Scalar, aten.searchsorted.Scalar)
def _bucketize_scalar(call: AtenCall, *args: Any, **kwargs: Any) -> Entry:
    """Import the number of boundaries below a number."""
    is_first = call.function is aten.searchsorted.Scalar
    boundaries, number = args[:2] if is_first else args[1::-1]
    right = bool(kwargs.get("right")) or kwargs.get("side") == "right"
    if kwargs.get("sorter") is not None:
        boundaries = ops.take_along_axis(boundaries, kwargs["sorter"], axis=-1)
    return _insertion_points(call, boundaries, constant(number, boundaries.dtype), right)


@imports(aten.searchsorted.Tensor)
def _searchsorted(
    call: AtenCall,
    boundaries: Entry,
    x: Entry,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Entry | None = None,
) -> Entry:
    """Import where elements are to be inserted into sorted rows."""
    if sorter is not None:
        boundaries = ops.take_along_axis(boundaries, sorter, axis=-1)
    return _insertion_points(call, boundaries, x, right or side == "right")


def _insertion_points(call: AtenCall, boundaries: Entry, x: Entry, right: bool) -> Entry:
    """Return how many boundaries, in rows along the last axis, are in front of each element."""
    if 0 in call.shape or 0 in known_shape(boundaries):
        return ops.full(call.shape, 0, call.dtype.name)
    if boundaries.dtype is not x.dtype:
        common = torch.promote_types(
            TORCH_DTYPES[dtype_name(boundaries)], TORCH_DTYPES[dtype_name(x)]
        )
        boundaries, x = (cast(v, passkit_dtype(common)) for v in (boundaries, x))
    if len(known_shape(boundaries)) == 1:
        points = ops.searchsorted(boundaries, x, side="right" if right else "left")
        return cast(points, call.dtype)
    rows, elements = ops.expand_dims(boundaries, axis=-2), ops.expand_dims(x, axis=-1)
    is_in_front = (ops.less_equal if right else ops.less)(rows, elements)
    return cast(ops.reduce_sum(ops.cast(is_in_front, "int64"), axis=-1), call.dtype)


@imports(aten.nonzero_static.default)
def _nonzero_static(call: AtenCall, x: Entry, *, size: int, fill_value: int = -1) -> Entry:
    """Import the coordinates of the first elements that are not 0, of a given number."""
    if 0 in call.shape or 0 in known_shape(x):
        return ops.full(call.shape, fill_value, "int64")
    return ops.argwhere(x, size=size, fill_value=fill_value)


@imports(aten._embedding_bag_forward_only.default)
def _embedding_bag(
    call: AtenCall,
    weight: Entry,
    indices: Entry,
    offsets: Entry,
    scale_by_frequency: bool = False,
    mode: int = 0,
    sparse: bool = False,
    sample_weights: Entry | None = None,
    include_last_offset: bool = False,
    padding: int = -1,
) -> list[Entry | None]:
    """Import the sums, means or maxima of the rows of bags, which begin at offsets."""
    if not call.reads_only((0,)):
        unsupported("the bags and sizes of an embedding")
    (count,) = plain_extents(known_shape(indices))
    bags, length = plain_extents(call.shape)
    if 0 in (count, bags, length):
        return [ops.full(call.shape, 0, call.dtype.name), None, None, None]
    begins = ops.slice(cast(offsets, INT64), begin=[0], size=[bags])
    places = ops.cast(ops.range(0, count), "int64")
    bag = ops.cast(ops.searchsorted(begins, places, side="right"), "int64") - 1
    if padding >= 0:
        bag = ops.where(ops.equal(cast(indices, INT64), padding), -1, bag)
    rows = cast(ops.gather(weight, indices, axis=0), accumulated(call.dtype))
    if sample_weights is not None:
        rows = rows * ops.expand_dims(cast(sample_weights, accumulated(call.dtype)), axis=-1)
    ones = ops.full((count, 1), 1, dtype_name(rows))
    sizes = ops.segment_sum(ones, bag, num_segments=bags)
    if mode == 2:
        largest = ops.segment_max(rows, bag, num_segments=bags)
        result = ops.where(ops.greater(sizes, 0), largest, 0)
    else:
        result = ops.segment_sum(rows, bag, num_segments=bags)
        result = result / ops.maximum(sizes, 1) if mode == 1 else result
    return [cast(result, call.dtype), None, None, None]


@imports(aten.embedding_renorm.default)
def _embedding_renorm(
    call: AtenCall, weight: Entry, indices: Entry, most: float, order: float
) -> Entry:
    """Import a matrix whose rows at positions are scaled down to a norm, where theirs is larger."""
    if 0 in known_shape(indices) or 0 in call.shape:
        return weight
    rows = known_shape(weight)[0]
    wide = cast(weight, accumulated(call.dtype))
    norm = vector_norm(wide, order, (1,), True)
    scaled = ops.where(ops.greater(norm, most), wide * (most / (norm + 1e-7)), wide)
    points = ops.reshape(cast(indices, INT64), (-1, 1))
    is_named = ops.tensor_scatter_nd_update(
        ops.full((rows,), 0, "int64"), points, ops.full((known_shape(points)[0],), 1, "int64")
    )
    condition = ops.reshape(ops.greater(is_named, 0), (rows, 1))
    return ops.where(condition, cast(scaled, call.dtype), weight)
