"""Importers of operators that move elements: views, slices, joins and their relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

import passkit.ops as ops
from passkit.frontends.torch.errors import unsupported
from passkit.frontends.torch.op_importers.registry import (
    INT64,
    AtenCall,
    aten,
    axes_of,
    axis_of,
    cast,
    constant,
    imports,
    plain_extents,
)
from passkit.frontends.torch.sizes import size_value
from passkit.frontends.torch.symbols import extent_of, hint_of, memory_order, stride_of
from passkit.graph.node import Entry, known_shape
from passkit.values.dtype import dtype_of
from passkit.values.size import Extent, Shape, Size, substitute


@imports(
    aten.view.default,
    aten._unsafe_view.default,
    aten.reshape.default,
    aten._reshape_alias.default,
    aten.squeeze.default,
    aten.squeeze.dim,
    aten.squeeze.dims,
    aten.unsqueeze.default,
    aten.flatten.using_ints,
    aten.unflatten.int,
)
def _reshape(call: AtenCall, x: Entry, *args: Any, **kwargs: Any) -> Entry:
    """Import a change of shape without a change of order."""
    return ops.reshape(x, call.shape)


@imports(
    aten.alias.default,
    aten.detach.default,
    aten.clone.default,
    aten.lift_fresh_copy.default,
    aten.contiguous.default,
    aten.resolve_conj.default,
    aten.resolve_neg.default,
)
def _identity(call: AtenCall, x: Entry, **kwargs: Any) -> Entry:
    """Import an operator that keeps all elements."""
    return x


@imports("prims::copy_strided")
def _copy_strided(call: AtenCall, x: Entry, strides: Sequence[Extent]) -> Entry:
    """Import a copy to strides, which AOTAutograd writes for inputs that are written."""
    return x


@imports(aten.permute.default)
def _permute(call: AtenCall, x: Entry, axes: Sequence[int]) -> Entry:
    """Import a permutation of axes."""
    return ops.transpose(x, axes=tuple(axis_of(k, x) for k in axes)) if axes else x


@imports(aten.transpose.int)
def _transpose(call: AtenCall, x: Entry, first: int, second: int) -> Entry:
    """Import an exchange of two axes."""
    axes = list(range(len(known_shape(x))))
    if not axes:
        return x
    a, b = axis_of(first, x), axis_of(second, x)
    axes[a], axes[b] = axes[b], axes[a]
    return ops.transpose(x, axes=tuple(axes))


@imports(aten.t.default)
def _t(call: AtenCall, x: Entry) -> Entry:
    """Import the transpose of a matrix; a vector stays."""
    return ops.transpose(x, axes=(1, 0)) if len(known_shape(x)) == 2 else x


@imports(aten.expand.default, aten.broadcast_to.default)
def _expand(call: AtenCall, x: Entry, *args: Any, **kwargs: Any) -> Entry:
    """Import a broadcast."""
    return ops.broadcast_to(x, call.shape)


@imports(aten.slice.Tensor)
def _slice(
    call: AtenCall,
    x: Entry,
    axis: int = 0,
    start: Extent | None = None,
    end: Extent | None = None,
    step: int = 1,
) -> Entry:
    """Import a slice along an axis; a begin outside of the axis is moved to its end."""
    begin, steps = _first_and_step(x, axis, start, step)
    return ops.slice(x, begin=begin, size=call.shape, step=steps)


def _first_and_step(
    x: Entry, axis: int, start: Extent | None, step: int = 1
) -> tuple[list[Any], list[int]]:
    """Return where a slice along one axis begins on each axis of ``x``, and its steps."""
    axis = axis_of(axis, x)
    begin: list[Any] = [0] * len(known_shape(x))
    steps = [1] * len(begin)
    begin[axis], steps[axis] = _begin(start, known_shape(x)[axis]), step
    return begin, steps


def _element_of_axis(x: Entry, axis: int, position: Extent) -> tuple[list[Any], tuple[Extent, ...]]:
    """Return where the slice of the element at a position of an axis begins, and its shape."""
    begin, _ = _first_and_step(x, axis, position)
    axis = axis_of(axis, x)
    return begin, tuple(1 if k == axis else n for k, n in enumerate(known_shape(x)))


def _begin(start: Extent | None, length: Extent) -> Any:
    """Return the position where a slice begins, for a start that may be negative or too large.

    Symbolic ones are compared as PyTorch did, which traces again where that comes out otherwise.

    Raises: UnsupportedNodeError for a start or length that only a call computes.
    """
    if start is None or start == 0:
        return 0
    if hint_of(start) < 0:
        start = length + start
    if hint_of(start) < 0:
        return 0
    return length if hint_of(start) > hint_of(length) else start


@imports(aten.select.int)
def _select(call: AtenCall, x: Entry, axis: int, position: Extent) -> Entry:
    """Import the element at a position of an axis, which goes."""
    begin, size = _element_of_axis(x, axis, position)
    return ops.reshape(ops.slice(x, begin=begin, size=size), call.shape)


@imports(aten.cat.default)
def _cat(call: AtenCall, tensors: Sequence[Entry], axis: int = 0) -> Entry:
    """Import a join of tensors along an axis; those of shape (0,) are left out."""
    rank = len(call.shape)
    kept = [x for x in tensors if len(known_shape(x)) == rank]
    if not kept:
        return ops.full(call.shape, 0, call.dtype.name)
    axis = axis + rank if axis < 0 else axis
    return ops.concat(*(cast(x, call.dtype) for x in kept), axis=axis)


@imports(aten.stack.default)
def _stack(call: AtenCall, tensors: Sequence[Entry], axis: int = 0) -> Entry:
    """Import a join of tensors along a new axis."""
    axis = axis + len(call.shape) if axis < 0 else axis
    return ops.stack(*(cast(x, call.dtype) for x in tensors), axis=axis)


@imports(
    aten.split.Tensor, aten.split_with_sizes.default, aten.unsafe_split.Tensor, aten.chunk.default
)
def _split(call: AtenCall, x: Entry, parts: Any, axis: int = 0) -> list[Entry]:
    """Import a division along an axis into parts, whose shapes the results have."""
    axis = axis_of(axis, x)
    begin: list[Any] = [0] * len(known_shape(x))
    results = []
    for part in call.result:
        shape = tuple(map(extent_of, part.shape))
        results.append(ops.slice(x, begin=list(begin), size=shape))
        begin[axis] = begin[axis] + shape[axis]
    return results


@imports(aten.unbind.int)
def _unbind(call: AtenCall, x: Entry, axis: int = 0) -> list[Entry]:
    """Import the elements of an axis as tensors of their own."""
    return [_select(call_of_part(call, k), x, axis, k) for k in range(len(call.result))]


def call_of_part(call: AtenCall, k: int) -> AtenCall:
    """Return a call with one of its results as the only one."""
    return AtenCall(call.function, call.args, call.kwargs, call.result[k])


@imports(aten.constant_pad_nd.default)
def _constant_pad(call: AtenCall, x: Entry, widths: Sequence[int], value: Any = 0) -> Entry:
    """Import padding by a number; PyTorch counts axes from the last one."""
    shape = known_shape(x)
    pairs: list[tuple[int, int]] = [(0, 0)] * len(shape)
    for k in range(len(widths) // 2):
        pairs[len(shape) - 1 - k] = int(widths[2 * k]), int(widths[2 * k + 1])
    return ops.pad_with(x, pad_width=pairs, value=value)


@imports(
    aten.replication_pad1d_backward.default,
    aten.replication_pad2d_backward.default,
    aten.replication_pad3d_backward.default,
)
def _replication_pad_backward(call: AtenCall, dy: Entry, x: Entry, widths: Sequence[int]) -> Entry:
    """Import the gradient of padding by the elements at the borders, which get its sum."""
    rank = len(known_shape(x))
    for k in range(len(widths) // 2):
        axis = rank - 1 - k
        length, count = plain_extents((known_shape(x)[axis], known_shape(dy)[axis]))
        numbers = np.clip(np.arange(count) - int(widths[2 * k]), 0, length - 1)
        shape = tuple(length if j == axis else n for j, n in enumerate(known_shape(dy)))
        zeros = ops.full(shape, 0, call.dtype.name)
        dy = ops.index_add(zeros, constant(numbers, dtype_of("int64")), dy, axis=axis)
    return dy


@imports(aten.flip.default)
def _flip(call: AtenCall, x: Entry, axes: Sequence[int]) -> Entry:
    """Import a reversal of axes."""
    own = axes_of(list(axes), x) if axes else ()
    return ops.reverse(x, axis=own) if own and known_shape(x) else x


@imports(aten.roll.default)
def _roll(call: AtenCall, x: Entry, shifts: Sequence[int], axes: Sequence[int] = ()) -> Entry:
    """Import a rotation along axes, or in row-major order."""
    if 0 in known_shape(x) or not known_shape(x):
        return x
    if not axes:
        flat = ops.reshape(x, (-1,))
        return ops.reshape(ops.roll(flat, shift=int(shifts[0]), axis=0), call.shape)
    own = tuple(axis_of(k, x) for k in axes)
    return ops.roll(x, shift=tuple(int(n) for n in shifts), axis=own)


@imports(aten.repeat.default)
def _repeat(call: AtenCall, x: Entry, counts: Sequence[int]) -> Entry:
    """Import repetitions along axes; more counts than axes add axes in front."""
    shape = known_shape(x)
    padded = ops.reshape(x, (*(1,) * (len(counts) - len(shape)), *shape))
    return ops.tile(padded, repetitions=plain_extents(counts))


@imports(aten.diagonal.default)
def _diagonal(call: AtenCall, x: Entry, offset: int = 0, first: int = 0, second: int = 1) -> Entry:
    """Import the diagonal of two axes, as the last axis."""
    return ops.diagonal(x, offset=offset, axis1=axis_of(first, x), axis2=axis_of(second, x))


@imports(aten.tril.default)
def _tril(call: AtenCall, x: Entry, diagonal: int = 0) -> Entry:
    """Import zeros above a diagonal."""
    return ops.tril(x, k=diagonal)


@imports(aten.triu.default)
def _triu(call: AtenCall, x: Entry, diagonal: int = 0) -> Entry:
    """Import zeros below a diagonal."""
    return ops.triu(x, k=diagonal)


@imports(aten.slice_scatter.default)
def _slice_scatter(
    call: AtenCall,
    x: Entry,
    source: Entry,
    axis: int = 0,
    start: Extent | None = None,
    end: Extent | None = None,
    step: int = 1,
) -> Entry:
    """Import a tensor with a slice replaced; a whole axis is the source."""
    value = cast(source, call.dtype)
    if known_shape(source) == known_shape(x):
        return value
    begin, steps = _first_and_step(x, axis, start, step)
    return ops.slice_assign(x, value, begin=begin, size=known_shape(source), step=steps)


@imports(aten.select_scatter.default)
def _select_scatter(call: AtenCall, x: Entry, source: Entry, axis: int, position: Extent) -> Entry:
    """Import a tensor with the element of an axis replaced."""
    begin, size = _element_of_axis(x, axis, position)
    return ops.slice_assign(x, ops.reshape(cast(source, call.dtype), size), begin=begin, size=size)


@imports(aten.as_strided.default)
def _as_strided(
    call: AtenCall,
    x: Entry,
    shape: Sequence[int],
    strides: Sequence[int],
    offset: int | None = None,
) -> Entry:
    """Import a view by strides: a change of shape, or a gather from the memory of the tensor."""
    fake = call.args[0]
    if 0 in call.shape:
        return ops.full(call.shape, 0, call.dtype.name)
    memory = _in_order_of_memory(x, fake)
    is_whole = not offset and call.first.numel() == fake.numel()
    if is_whole and _are_contiguous(call.shape, strides):
        return ops.reshape(memory, call.shape)
    positions = _strided_positions(fake, call.shape, strides, offset)
    return ops.gather(ops.reshape(memory, (-1,)), positions, axis=0)


def _are_contiguous(shape: Sequence[Extent], strides: Sequence[Extent]) -> bool:
    """Return whether strides are those of a tensor in row-major order."""
    count: Extent = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != count:
            return False
        count = count * extent
    return True


def _in_order_of_memory(x: Entry, fake: torch.Tensor) -> Entry:
    """Return a tensor with its axes in the order in which they lie in memory.

    Raises: UnsupportedNodeError for a tensor that has gaps, whose memory is not known.
    """
    order = memory_order(fake)
    shape = tuple(extent_of(fake.shape[k]) for k in order)
    strides = tuple(stride_of(fake.stride(k)) for k in order)
    if not _are_contiguous(shape, strides):
        unsupported(f"strides of a tensor with the strides {strides}")
    if extent_of(fake.storage_offset()) != 0:
        unsupported("strides of a tensor that is a part of another")
    return ops.transpose(x, axes=order) if order != tuple(range(len(order))) else x


def _strided_positions(
    fake: torch.Tensor, shape: Shape, strides: Sequence[Extent], offset: Extent | None
) -> Entry:
    """Return the positions of elements in memory, in the shape of a view.

    Raises: UnsupportedNodeError for elements outside of the tensor.
    """
    start = offset or 0
    last = start
    for n, step in zip(shape, strides, strict=True):
        last = last + (n - 1) * step
    if not _is_never_negative(extent_of(fake.numel()) - 1 - last):
        unsupported("strides to elements outside of the tensor")
    positions = ops.broadcast_to(_number(start), shape)
    for k, (n, step) in enumerate(zip(shape, strides, strict=True)):
        along = ops.cast(ops.range(0, n), "int64") * _number(step)
        axes = tuple(n if j == k else 1 for j in range(len(shape)))
        positions = positions + ops.reshape(along, axes)
    return positions


def _is_never_negative(extent: Extent) -> bool:
    """Return whether an extent is seen to be 0 or more, for all symbols of 1 or more."""
    if isinstance(extent, Size):
        extent = substitute(extent, {name: Size.symbol(name) + 1 for name in extent.symbols})
    if isinstance(extent, Size):
        return all(coefficient >= 0 for _, coefficient in extent.terms)
    return extent >= 0


def _number(extent: Extent) -> Entry:
    """Return an extent as an integer in the graph."""
    return size_value(extent, INT64) if isinstance(extent, Size) else constant(extent, INT64)


@imports(aten.as_strided_scatter.default)
def _as_strided_scatter(
    call: AtenCall,
    x: Entry,
    source: Entry,
    shape: Sequence[Extent],
    strides: Sequence[Extent],
    offset: Extent | None = None,
) -> Entry:
    """Import a tensor with the elements of a view by strides replaced."""
    fake = call.args[0]
    if 0 in known_shape(source):
        return x
    memory = _in_order_of_memory(x, fake)
    positions = _strided_positions(fake, known_shape(source), strides, offset)
    points, values = ops.reshape(positions, (-1, 1)), ops.reshape(source, (-1,))
    flat = ops.tensor_scatter_nd_update(ops.reshape(memory, (-1,)), points, values)
    order = memory_order(fake)
    inverse = tuple(order.index(k) for k in range(len(order)))
    return ops.transpose(ops.reshape(flat, known_shape(memory)), axes=inverse)


@imports(aten.diagonal_scatter.default)
def _diagonal_scatter(
    call: AtenCall, x: Entry, source: Entry, offset: int = 0, first: int = 0, second: int = 1
) -> Entry:
    """Import a tensor with the diagonal of two axes replaced."""
    shape = known_shape(x)
    rows, columns = axis_of(first, x), axis_of(second, x)
    rest = tuple(k for k in range(len(shape)) if k not in (rows, columns))
    order = (*rest, rows, columns)
    moved = ops.transpose(x, axes=order)
    n, m = plain_extents((shape[rows], shape[columns]))
    down = np.arange(n)[:, None]
    across = np.arange(m)[None, :]
    on_diagonal = constant(across - down == offset, dtype_of("bool"))
    count = known_shape(source)[-1]
    if count == 0:
        return x
    number = np.clip(np.minimum(down, across), 0, int(count) - 1) + 0 * across
    values = ops.gather(source, constant(number, dtype_of("int64")), axis=len(rest))
    result = ops.where(on_diagonal, values, moved)
    return ops.transpose(result, axes=tuple(order.index(k) for k in range(len(order))))


@imports(aten.unfold.default)
def _unfold(call: AtenCall, x: Entry, axis: int, size: int, step: int) -> Entry:
    """Import slices of an axis at equal distances, whose elements become the last axis."""
    if 0 in call.shape:
        return ops.full(call.shape, 0, call.dtype.name)
    if not known_shape(x):
        return ops.reshape(x, call.shape)
    axis = axis_of(axis, x)
    (count,) = plain_extents([call.shape[axis]])
    positions = np.arange(count)[:, None] * step + np.arange(size)
    gathered = ops.gather(x, constant(positions, dtype_of("int64")), axis=axis)
    return ops.moveaxis(gathered, source=axis + 1, destination=-1)


@imports(aten.resize.default)
def _resize(call: AtenCall, x: Entry, shape: Sequence[int], **kwargs: Any) -> Entry:
    """Import the first elements of a tensor in another shape; those beyond it are 0."""
    (count,), (length,) = (plain_extents([int(v.numel())]) for v in (call.first, call.args[0]))
    flat = ops.reshape(x, (-1,))
    return ops.reshape(ops.pad_with(flat, pad_width=[(0, count - length)]), call.shape)


@imports(aten.view.dtype)
def _view_dtype(call: AtenCall, x: Entry, dtype: Any) -> Entry:
    """Import the bits of elements as another dtype of the same size."""
    return x if x.dtype is call.dtype else ops.bitcast(x, dtype=call.dtype.name)


COPIES = {
    aten.alias_copy.default: aten.alias.default,
    aten.as_strided_copy.default: aten.as_strided.default,
    aten.detach_copy.default: aten.detach.default,
    aten.diagonal_copy.default: aten.diagonal.default,
    aten.expand_copy.default: aten.expand.default,
    aten.narrow_copy.default: aten.narrow.default,
    aten.permute_copy.default: aten.permute.default,
    aten.select_copy.int: aten.select.int,
    aten.slice_copy.Tensor: aten.slice.Tensor,
    aten.split_copy.Tensor: aten.split.Tensor,
    aten.split_with_sizes_copy.default: aten.split_with_sizes.default,
    aten.squeeze_copy.default: aten.squeeze.default,
    aten.squeeze_copy.dim: aten.squeeze.dim,
    aten.squeeze_copy.dims: aten.squeeze.dims,
    aten.t_copy.default: aten.t.default,
    aten.transpose_copy.int: aten.transpose.int,
    aten.unbind_copy.int: aten.unbind.int,
    aten.unfold_copy.default: aten.unfold.default,
    aten.unsqueeze_copy.default: aten.unsqueeze.default,
    aten.view_as_complex_copy.default: aten.view_as_complex.default,
    aten.view_as_real_copy.default: aten.view_as_real.default,
    aten.view_copy.default: aten.view.default,
    aten.view_copy.dtype: aten.view.dtype,
}
"""Operators that copy what others view; they have the same importers."""


@imports(aten.narrow.default)
def _narrow(call: AtenCall, x: Entry, axis: int, start: Extent, length: Extent) -> Entry:
    """Import a part of an axis that begins at a position."""
    return ops.slice(x, begin=_begins(x, axis, start), size=call.shape)


def _begins(x: Entry, axis: int, start: Extent) -> list[Any]:
    """Return where a part begins along all axes, for a start along one of them."""
    begin: list[Any] = [0] * len(known_shape(x))
    begin[axis_of(axis, x)] = _begin(start, known_shape(x)[axis_of(axis, x)])
    return begin
