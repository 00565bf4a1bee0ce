"""Importers of operators that move elements: views, slices, joins and their relatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import passkit.ops as ops
from passkit.frontends.torch.errors import UnsupportedNodeError
from passkit.frontends.torch.op_importers.registry import (
    AtenCall,
    aten,
    axes_of,
    axis_of,
    cast,
    imports,
    plain_extents,
)
from passkit.frontends.torch.symbols import extent_of
from passkit.graph.node import Entry, known_shape
from passkit.values.size import Extent


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
    aten._conj.default,
    aten.resolve_conj.default,
    aten.resolve_neg.default,
)
def _identity(call: AtenCall, x: Entry, **kwargs: Any) -> Entry:
    """Import an operator that keeps all elements of a real tensor."""
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
    axis = axis_of(axis, x)
    begin = [0] * len(known_shape(x))
    steps = [1] * len(begin)
    begin[axis], steps[axis] = _begin(start, known_shape(x)[axis]), step
    return ops.slice(x, begin=begin, size=call.shape, step=steps)


def _begin(start: Extent | None, length: Extent) -> Any:
    """Return the position where a slice begins, for a start that may be negative or too large."""
    if start is None:
        return 0
    if isinstance(start, int) and isinstance(length, int):
        start = start + length if start < 0 else start
        return min(max(start, 0), length)
    if isinstance(start, int) and start < 0:
        return length + start
    return start


@imports(aten.select.int)
def _select(call: AtenCall, x: Entry, axis: int, position: Extent) -> Entry:
    """Import the element at a position of an axis, which goes."""
    shape, axis = known_shape(x), axis_of(axis, x)
    begin: list[Any] = [0] * len(shape)
    begin[axis] = _begin(position, shape[axis])
    size = [1 if k == axis else n for k, n in enumerate(shape)]
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
    """Import a tensor with a slice replaced."""
    axis = axis_of(axis, x)
    begin: list[Any] = [0] * len(known_shape(x))
    steps = [1] * len(begin)
    begin[axis], steps[axis] = _begin(start, known_shape(x)[axis]), step
    value = cast(source, call.dtype)
    return ops.slice_assign(x, value, begin=begin, size=known_shape(source), step=steps)


@imports(aten.select_scatter.default)
def _select_scatter(
    call: AtenCall, x: Entry, source: Entry, axis: int, position: Extent
) -> Entry:
    """Import a tensor with the element of an axis replaced."""
    shape, axis = known_shape(x), axis_of(axis, x)
    begin: list[Any] = [0] * len(shape)
    begin[axis] = _begin(position, shape[axis])
    size = tuple(1 if k == axis else n for k, n in enumerate(shape))
    return ops.slice_assign(
        x, ops.reshape(cast(source, call.dtype), size), begin=begin, size=size
    )


@imports(aten.as_strided.default)
def _as_strided(
    call: AtenCall,
    x: Entry,
    shape: Sequence[int],
    strides: Sequence[int],
    offset: int | None = None,
) -> Entry:
    """Import a view by strides where it is a change of shape."""
    fake = call.args[0]
    is_same = call.first.is_contiguous() and fake.is_contiguous() and not offset
    if not is_same or call.first.numel() != fake.numel():
        raise UnsupportedNodeError(f"strides {tuple(strides)} of {tuple(shape)}")
    return ops.reshape(x, call.shape)
