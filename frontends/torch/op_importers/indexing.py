"""Importers of gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import passkit.ops as ops
from passkit.frontends.torch.errors import UnsupportedNodeError
from passkit.frontends.torch.op_importers.registry import AtenCall, aten, axis_of, cast, imports
from passkit.frontends.torch.sizes import size_value
from passkit.graph.node import Entry, known_shape
from passkit.values.dtype import dtype_of
from passkit.values.size import Extent

INT64 = dtype_of("int64")


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
    shape, wanted = known_shape(x), known_shape(index)
    if not shape or not wanted or 0 in wanted:
        raise UnsupportedNodeError("a gather of a scalar or of no elements")
    axis = axis_of(axis, x)
    size = [n if k == axis else m for k, (n, m) in enumerate(zip(shape, wanted, strict=True))]
    part = x if list(shape) == size else ops.slice(x, begin=[0] * len(shape), size=size)
    return ops.take_along_axis(part, index, axis=axis)


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


@imports(aten.index.Tensor, aten._unsafe_index.Tensor)
def _index(call: AtenCall, x: Entry, indices: Sequence[Entry | None]) -> Entry:
    """Import indexing by integer tensors on neighbouring axes, which broadcast."""
    given = [k for k, i in enumerate(indices) if i is not None]
    shape = known_shape(x)
    tensors = [i for i in indices if i is not None]
    is_truth = any(i.dtype.name in ("bool", "uint8") for i in tensors)  # type: ignore[union-attr]
    if is_truth or not given or given != list(range(given[0], given[-1] + 1)) or 0 in shape:
        raise UnsupportedNodeError("indexing by bools, or on axes that are no neighbours")
    first, last = given[0], given[-1] + 1
    result = call.shape[first : len(call.shape) - (len(shape) - last)]
    position: Entry | None = None
    for axis in given:
        index = indices[axis]
        assert index is not None
        own = _from_front(index, shape[axis])
        if position is None:
            position = own
        else:
            extent = shape[axis]
            factor = extent if isinstance(extent, int) else size_value(extent, INT64)
            position = position * factor + own
    assert position is not None
    merged: Extent = 1
    for n in shape[first:last]:
        merged = merged * n
    flat = ops.reshape(x, (*shape[:first], merged, *shape[last:]))
    gathered = ops.gather(flat, ops.broadcast_to(position, result), axis=first)
    return ops.reshape(gathered, call.shape)


@imports(aten.index_put.default, aten._unsafe_index_put.default)
def _index_put(
    call: AtenCall,
    x: Entry,
    indices: Sequence[Entry | None],
    values: Entry,
    accumulate: bool = False,
) -> Entry:
    """Import the assignment to, or addition at, positions of the first axes."""
    tensors = [i for i in indices if i is not None]
    is_truth = any(i.dtype.name in ("bool", "uint8") for i in tensors)  # type: ignore[union-attr]
    shape = known_shape(x)
    if is_truth or len(tensors) != len(indices) or not tensors or 0 in shape:
        raise UnsupportedNodeError("an assignment at bools, or not at the first axes")
    count = len(tensors)
    points = [_from_front(i, n) for i, n in zip(tensors, shape, strict=False)]
    rank = max(len(known_shape(p)) for p in points)
    extents: list[Extent] = [1] * rank
    for p in points:
        own = known_shape(p)
        for k, n in enumerate(own, rank - len(own)):
            extents[k] = n if n != 1 else extents[k]
    stacked = ops.stack(*(ops.broadcast_to(p, tuple(extents)) for p in points), axis=-1)
    updates = ops.broadcast_to(cast(values, call.dtype), (*extents, *shape[count:]))
    function = ops.tensor_scatter_add if accumulate else ops.tensor_scatter_nd_update
    return function(x, stacked, updates)


@imports(aten.scatter_add.default)
def _scatter_add(call: AtenCall, x: Entry, axis: int, index: Entry, source: Entry) -> Entry:
    """Import the addition at positions along an axis; a part of the source counts."""
    points, values = _points(x, axis, index, source)
    return ops.tensor_scatter_add(x, points, values)


@imports(aten.scatter.src, aten.scatter.value)
def _scatter(call: AtenCall, x: Entry, axis: int, index: Entry, source: Any) -> Entry:
    """Import the assignment at positions along an axis."""
    if not isinstance(source, Entry):
        source = ops.full(known_shape(index), source, call.dtype.name)
    points, values = _points(x, axis, index, source)
    return ops.tensor_scatter_nd_update(x, points, values)


def _points(x: Entry, axis: int, index: Entry, source: Entry) -> tuple[Entry, Entry]:
    """Return the coordinates of elements that an index along an axis names, and their values.

    Raises: UnsupportedNodeError for scalars and empty tensors.
    """
    shape = known_shape(index)
    if not shape or not known_shape(x) or 0 in shape or 0 in known_shape(x):
        raise UnsupportedNodeError("a scatter to a scalar, or of no elements")
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
    """Import the k largest elements of an axis, in order, and their positions."""
    if not largest or not known_shape(x) or call.dtype.kind == "b":
        raise UnsupportedNodeError("the smallest elements, or those of a scalar")
    values, positions = ops.top_k(x, k=k, axis=axis_of(axis, x))
    return [values, ops.cast(positions, "int64")]
