"""Importers of pools: reductions of the elements under windows, and their gradients.

PyTorch has channels in front of the spatial axes, passkit behind; a missing batch axis is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import frozen

import passkit.ops as ops
from passkit.frontends.torch.op_importers.registry import (
    IMPORTERS,
    INT64,
    AtenCall,
    aten,
    cast,
    constant,
    dtype_name,
    imports,
    plain_extents,
)
from passkit.graph.node import Entry, known_shape
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import Size


@frozen
class PoolWindows:
    """The windows of a pool of plain sizes.

    Attributes:
        size: the spatial extents of the input.
        result: those of the result, the number of windows.
        window: the extents of a window.
        strides: the distances of windows.
        padding: the widths of padding in front and behind.
        dilations: the distances of elements of a window.
    """

    size: tuple[int, ...]
    result: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[int, ...]
    dilations: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Return the number of spatial axes."""
        return len(self.size)

    def options(self) -> dict[str, Any]:
        """Return the parameters of `ops.windows`; padding behind reaches the last window."""
        pairs = []
        for k in range(self.rank):
            last = (self.result[k] - 1) * self.strides[k]
            covered = last + self.dilations[k] * (self.window[k] - 1) + 1
            behind = max(0, covered - self.size[k] - self.padding[k])
            pairs.append((self.padding[k], behind))
        return {
            "strides": self.strides,
            "padding": tuple(pairs),
            "dilations": self.dilations,
        }

    def starts(self, axis: int) -> np.ndarray[Any, Any]:
        """Return where windows begin along an axis, in the input."""
        return np.arange(self.result[axis]) * self.strides[axis] - self.padding[axis]


def _for_each_axis(values: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return a number for each spatial axis; a single one is meant for all."""
    own = plain_extents(values)
    return own * rank if len(own) == 1 else own


def pool_windows(
    x: Entry,
    result: Sequence[Any],
    rank: int,
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    dilations: Sequence[int] = (1,),
) -> PoolWindows:
    """Return the windows of a pool over the last ``rank`` axes of ``x`` and of its result.

    Raises: UnsupportedNodeError for symbolic sizes.
    """
    extents = _for_each_axis(window, rank)
    return PoolWindows(
        size=plain_extents(known_shape(x)[-rank:]),
        result=plain_extents(tuple(result)[-rank:]),
        window=extents,
        strides=_for_each_axis(strides, rank) if strides else extents,
        padding=_for_each_axis(padding, rank),
        dilations=_for_each_axis(dilations, rank),
    )


def channels_last(x: Entry, rank: int) -> Entry:
    """Return (batch, *size, channels) of (batch, channels, *size), or without a batch axis."""
    if len(known_shape(x)) == rank + 1:
        x = ops.expand_dims(x, axis=0)
    return ops.transpose(x, axes=(0, *range(2, rank + 2), 1))


def channels_first(x: Entry, rank: int, shape: Sequence[Any]) -> Entry:
    """Return (batch, channels, *size) of (batch, *size, channels), in the shape of a result."""
    turned = ops.transpose(x, axes=(0, rank + 1, *range(1, rank + 1)))
    return ops.reshape(turned, tuple(shape))


def _lowest(dtype: DType) -> Any:
    """Return the lowest number of a dtype."""
    return float("-inf") if dtype.is_float else int(np.iinfo(dtype.numpy).min)


def _has_symbolic_sizes(x: Entry, rank: int) -> bool:
    """Return whether one of the last ``rank`` extents is symbolic."""
    return any(isinstance(n, Size) for n in known_shape(x)[-rank:])


def _symbolic_pool(
    kind: str,
    call: AtenCall,
    x: Entry,
    rank: int,
    window: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[int],
    options: dict[str, Any],
) -> Entry:
    """Return a pool of symbolic sizes, whose windows lie inside of the padding."""
    function = getattr(ops, f"{kind}_pool{rank}d")
    extents = _for_each_axis(window, rank)
    result = function(
        channels_last(x, rank),
        window=extents,
        strides=_for_each_axis(strides, rank) if strides else extents,
        padding=tuple((n, n) for n in _for_each_axis(padding, rank)),
        **options,
    )
    return channels_first(result, rank, call.shape)


# Largest elements.


def _max_pool(rank: int) -> Any:
    """Return the importer of a pool of the largest elements over ``rank`` axes."""

    def importer(
        call: AtenCall,
        x: Entry,
        window: Sequence[int],
        strides: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilations: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> list[Entry | None]:
        """Import the largest elements under windows, and their positions in the input."""
        if _has_symbolic_sizes(x, rank) and call.reads_only((0,)) and not ceil_mode:
            options = {"dilations": _for_each_axis(dilations, rank)}
            return [_symbolic_pool("max", call, x, rank, window, strides, padding, options), None]
        pool = pool_windows(x, call.shape, rank, window, strides, padding, dilations)
        last = channels_last(x, rank)
        under = ops.windows(last, window=pool.window, fill=_lowest(call.dtype), **pool.options())
        axes = tuple(range(rank + 1, 2 * rank + 1))
        largest = channels_first(ops.reduce_max(under, axis=axes), rank, call.shape)
        if call.reads_only((0,)):
            return [largest, None]
        return [largest, _max_positions(under, pool, call)]

    return importer


def _max_positions(under: Entry, pool: PoolWindows, call: AtenCall) -> Entry:
    """Return the positions of the largest elements under windows, in row-major order."""
    rank, shape = pool.rank, known_shape(under)
    flat = ops.reshape(under, (*shape[: rank + 1], int(np.prod(pool.window)), shape[-1]))
    rest = ops.argmax(flat, axis=rank + 1)
    position: Entry | None = None
    factor = 1
    for axis in reversed(range(rank)):
        extents = tuple(pool.result[axis] if k == axis + 1 else 1 for k in range(rank + 2))
        start = constant(pool.starts(axis).reshape(extents), INT64)
        own = start + ops.mod(rest, pool.window[axis]) * pool.dilations[axis]
        rest = ops.floor_div(rest, pool.window[axis])
        position = own * factor if position is None else position + own * factor
        factor *= pool.size[axis]
    assert position is not None
    return channels_first(position, rank, call.shape)


IMPORTERS[aten.max_pool2d_with_indices.default] = _max_pool(2)
IMPORTERS[aten.max_pool3d_with_indices.default] = _max_pool(3)


def _max_pool_backward(rank: int) -> Any:
    """Return the importer of the gradient of a pool of the largest elements."""

    def importer(call: AtenCall, dy: Entry, x: Entry, *args: Any) -> Entry:
        """Import the sum of gradients at the positions of the largest elements."""
        return add_at_positions(call, dy, args[-1], rank)

    return importer


def add_at_positions(call: AtenCall, dy: Entry, positions: Entry, rank: int) -> Entry:
    """Return zeros plus gradients at their positions among the last ``rank`` axes."""
    shape = plain_extents(call.shape)
    lead = int(np.prod(shape[:-rank], dtype=np.int64))
    count = int(np.prod(shape[-rank:], dtype=np.int64))
    if 0 in shape or 0 in known_shape(dy):
        return ops.full(shape, 0, call.dtype.name)
    zeros = ops.full((lead, count), 0, dtype_name(dy))
    flat = [ops.reshape(v, (lead, -1)) for v in (positions, dy)]
    return ops.reshape(ops.add_along_axis(zeros, flat[0], flat[1], axis=-1), shape)


IMPORTERS[aten.max_pool2d_with_indices_backward.default] = _max_pool_backward(2)
IMPORTERS[aten.max_pool3d_with_indices_backward.default] = _max_pool_backward(3)


# Means.


def _divisors(pool: PoolWindows, count_include_pad: bool, divisor: int | None) -> Any:
    """Return by what the sum under each window is divided: a number, or one for each window."""
    if divisor is not None:
        return divisor
    counts: Any = np.ones((), np.int64)
    for axis in range(pool.rank):
        start = pool.starts(axis)
        end = np.minimum(start + pool.window[axis], pool.size[axis] + pool.padding[axis])
        if not count_include_pad:
            start, end = np.maximum(start, 0), np.minimum(end, pool.size[axis])
        counts = np.multiply.outer(counts, end - start)
    if (counts == counts.flat[0]).all():
        return int(counts.flat[0])
    return counts.reshape(1, *pool.result, 1)


def _divided(x: Entry, divisors: Any, extra: int = 0) -> Entry:
    """Return ``x`` divided by a number or by one for each window; ``extra`` axes stand between."""
    if isinstance(divisors, int):
        return x / divisors
    shape = (*divisors.shape[:-1], *(1,) * extra, 1)
    return x / constant(divisors.reshape(shape), x.dtype or INT64)


def _computed(dtype: DType) -> DType:
    """Return the dtype that sums of elements of a dtype are computed in."""
    return dtype_of("float32") if dtype.name in ("float16", "bfloat16") else dtype


def _avg_pool(rank: int) -> Any:
    """Return the importer of a pool of means over ``rank`` axes."""

    def importer(
        call: AtenCall,
        x: Entry,
        window: Sequence[int],
        strides: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor: int | None = None,
    ) -> Entry:
        """Import the means under windows; a window counts up to the end of the padding."""
        if _has_symbolic_sizes(x, rank) and not ceil_mode and divisor is None:
            options = {"count_include_pad": count_include_pad}
            return _symbolic_pool("avg", call, x, rank, window, strides, padding, options)
        pool = pool_windows(x, call.shape, rank, window, strides, padding)
        last = channels_last(cast(x, _computed(call.dtype)), rank)
        under = ops.windows(last, window=pool.window, **pool.options())
        total = ops.reduce_sum(under, axis=tuple(range(rank + 1, 2 * rank + 1)))
        divisors = _divisors(pool, count_include_pad, divisor)
        if call.dtype.is_float:
            mean = _divided(total, divisors)
        else:
            by = divisors if isinstance(divisors, int) else constant(divisors, call.dtype)
            mean = ops.trunc_div(total, by)
        return channels_first(cast(mean, call.dtype), rank, call.shape)

    return importer


IMPORTERS[aten.avg_pool2d.default] = _avg_pool(2)
IMPORTERS[aten.avg_pool3d.default] = _avg_pool(3)


def _avg_pool_backward(rank: int) -> Any:
    """Return the importer of the gradient of a pool of means."""

    def importer(
        call: AtenCall,
        dy: Entry,
        x: Entry,
        window: Sequence[int],
        strides: Sequence[int],
        padding: Sequence[int],
        ceil_mode: bool,
        count_include_pad: bool,
        divisor: int | None,
    ) -> Entry:
        """Import the sum of the gradients of all windows that an element is under."""
        pool = pool_windows(x, known_shape(dy), rank, window, strides, padding)
        last = channels_last(cast(dy, _computed(call.dtype)), rank)
        last = _divided(last, _divisors(pool, count_include_pad, divisor))
        batch, channels = known_shape(last)[0], known_shape(last)[-1]
        parts = ops.reshape(last, (batch, *pool.result, *(1,) * rank, channels))
        parts = ops.broadcast_to(parts, (batch, *pool.result, *pool.window, channels))
        back = ops.windows_back(parts, size=pool.size, **pool.options())
        total = ops.reduce_sum(back, axis=tuple(range(rank + 1, 2 * rank + 1)))
        return channels_first(cast(total, call.dtype), rank, call.shape)

    return importer


IMPORTERS[aten.avg_pool2d_backward.default] = _avg_pool_backward(2)
IMPORTERS[aten.avg_pool3d_backward.default] = _avg_pool_backward(3)


# Adaptive means.


def _bounds(size: int, result: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return begin and end of the part of an axis that each of ``result`` means covers."""
    k = np.arange(result)
    return k * size // result, -((k + 1) * size // -result)


@imports(aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default)
def _adaptive_avg_pool(call: AtenCall, x: Entry, size: Sequence[int]) -> Entry:
    """Import means over parts of nearly equal size, one spatial axis after the other."""
    rank = len(size)
    wide = cast(x, _computed(call.dtype))
    for axis in range(len(call.shape) - rank, len(call.shape)):
        length, count = plain_extents((known_shape(x)[axis], call.shape[axis]))
        begin, end = _bounds(length, count)
        most = int((end - begin).max(initial=0))
        if most == 0:
            return ops.full(call.shape, 0, call.dtype.name)
        inside = begin[:, None] + np.arange(most)
        positions = np.minimum(inside, length - 1)
        parts = ops.gather(wide, constant(positions, INT64), axis=axis)
        behind = (1,) * (len(call.shape) - axis - 1)
        if (inside < end[:, None]).all():
            wide = ops.reduce_sum(parts, axis=axis + 1) / most
            continue
        is_inside = (inside < end[:, None]).reshape(count, most, *behind)
        parts = ops.where(constant(is_inside, dtype_of("bool")), parts, 0)
        lengths = constant((end - begin).reshape(count, *behind), wide.dtype or INT64)
        wide = ops.reduce_sum(parts, axis=axis + 1) / lengths
    return cast(wide, call.dtype)


@imports(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def _adaptive_max_pool(call: AtenCall, x: Entry, size: Sequence[int]) -> list[Entry]:
    """Import the largest elements of parts of nearly equal size, and their positions."""
    rank, lead = len(size), len(call.shape) - len(size)
    parts = x
    is_inside: Any = np.ones((), bool)
    numbers: Any = np.zeros((), np.int64)
    for k in range(rank):
        length, count = plain_extents((known_shape(x)[lead + k], call.shape[lead + k]))
        begin, end = _bounds(length, count)
        inside = begin[:, None] + np.arange(int((end - begin).max(initial=0)))
        positions = np.minimum(inside, length - 1)
        parts = ops.gather(parts, constant(positions, INT64), axis=lead + 2 * k)
        is_inside = np.logical_and.outer(is_inside, inside < end[:, None])
        numbers = np.add.outer(numbers * length, positions)
    if 0 in numbers.shape or 0 in call.shape:
        return [ops.full(call.shape, 0, name) for name in (call.dtype.name, "int64")]
    order = (*range(0, 2 * rank, 2), *range(1, 2 * rank, 2))
    own = (*call.shape[lead:], -1)
    parts = ops.transpose(parts, axes=(*range(lead), *(lead + k for k in order)))
    parts = ops.reshape(parts, (*call.shape, int(np.prod(numbers.shape[1::2]))))
    is_inside, numbers = (v.transpose(order).reshape(own) for v in (is_inside, numbers))
    lowest = constant(_lowest(call.dtype), call.dtype)
    parts = ops.where(constant(is_inside, dtype_of("bool")), parts, lowest)
    largest = ops.argmax(parts, axis=-1, keepdims=True)
    table = ops.broadcast_to(constant(numbers, INT64), known_shape(parts))
    position = ops.take_along_axis(table, largest, axis=-1)
    return [ops.reduce_max(parts, axis=-1), ops.reshape(position, call.shape)]


@imports(aten.adaptive_max_pool2d_backward.default, aten.adaptive_max_pool3d_backward.default)
def _adaptive_max_pool_backward(call: AtenCall, dy: Entry, x: Entry, positions: Entry) -> Entry:
    """Import the sum of gradients at the positions of the largest elements."""
    rank = 2 if call.function is aten.adaptive_max_pool2d_backward.default else 3
    return add_at_positions(call, dy, positions, rank)


@imports(aten._adaptive_avg_pool2d_backward.default, aten._adaptive_avg_pool3d_backward.default)
def _adaptive_avg_pool_backward(call: AtenCall, dy: Entry, x: Entry) -> Entry:
    """Import the gradient of adaptive means: each part gets an equal share."""
    shape = known_shape(x)
    rank = 2 if call.function is aten._adaptive_avg_pool2d_backward.default else 3
    wide = cast(dy, _computed(call.dtype))
    for axis in range(len(shape) - rank, len(shape)):
        length, count = plain_extents((shape[axis], known_shape(dy)[axis]))
        begin, end = _bounds(length, count)
        inside = np.arange(length)
        covers = (begin[:, None] <= inside) & (inside < end[:, None])
        weights = constant(covers / np.maximum(end - begin, 1)[:, None], wide.dtype or INT64)
        behind = (1,) * (len(shape) - axis - 1)
        weights = ops.reshape(weights, (count, length, *behind))
        wide = ops.reduce_sum(ops.expand_dims(wide, axis=axis + 1) * weights, axis=axis)
    return cast(wide, call.dtype)
