"""Importers of reductions and scans."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import passkit.ops as ops
from passkit.frontends.torch.errors import unsupported
from passkit.frontends.torch.op_importers.movement import call_of_part
from passkit.frontends.torch.op_importers.registry import (
    IMPORTERS,
    AtenCall,
    accumulated,
    aten,
    axes_of,
    axis_of,
    cast,
    constant,
    dtype_name,
    imports,
)
from passkit.frontends.torch.sizes import size_value
from passkit.graph.node import Entry, known_shape
from passkit.values.dtype import dtype_of
from passkit.values.size import numel


def reduced(
    function: Callable[..., Entry], x: Entry, axes: Any, keepdims: bool, call: AtenCall
) -> Entry:
    """Return a reduction of ``x`` in the shape of the call's result; a scalar is its own."""
    if not known_shape(x):
        return ops.reshape(function(ops.reshape(x, (1,)), axis=0), call.shape)
    return function(x, axis=axes_of(axes, x), keepdims=keepdims)


def _sum_like(function: Callable[..., Entry]) -> Callable[..., Entry]:
    """Return the importer of a reduction whose result is computed in a wider dtype."""

    def importer(
        call: AtenCall, x: Entry, axes: Any = None, keepdims: bool = False, *, dtype: Any = None
    ) -> Entry:
        wide = cast(x, accumulated(call.dtype))
        if call.dtype.kind == "c" and function is not ops.reduce_prod:
            parts = (ops.real(wide), ops.imag(wide))
            return ops.complex(*(reduced(function, v, axes, keepdims, call) for v in parts))
        return cast(reduced(function, wide, axes, keepdims, call), call.dtype)

    return importer


def _extremum(function: Callable[..., Entry]) -> Callable[..., Entry]:
    """Return the importer of a reduction whose result has the dtype of its operand."""

    def importer(call: AtenCall, x: Entry, axes: Any = None, keepdims: bool = False) -> Entry:
        if x.dtype is not None and x.dtype.name == "bool":
            wide = reduced(function, cast(x, dtype_of("uint8")), axes, keepdims, call)
            return cast(wide, call.dtype)
        return reduced(function, x, axes, keepdims, call)

    return importer


def _truth(function: Callable[..., Entry]) -> Callable[..., Entry]:
    """Return the importer of a reduction of truth values."""

    def importer(call: AtenCall, x: Entry, axes: Any = None, keepdims: bool = False) -> Entry:
        result = reduced(function, cast(x, dtype_of("bool")), axes, keepdims, call)
        return cast(result, call.dtype)

    return importer


def _whole(importer: Callable[..., Entry]) -> Callable[..., Entry]:
    """Return the importer of a reduction of all elements."""

    def whole(call: AtenCall, x: Entry, **kwargs: Any) -> Entry:
        return importer(call, x, None, False, **kwargs)

    return whole


_SUM, _MEAN, _PROD = (_sum_like(f) for f in (ops.reduce_sum, ops.reduce_mean, ops.reduce_prod))
IMPORTERS.update(
    {
        aten.sum.dim_IntList: _SUM,
        aten.sum.default: _whole(_SUM),
        aten.mean.dim: _MEAN,
        aten.mean.default: _whole(_MEAN),
        aten.prod.default: _whole(_PROD),
        aten.prod.dim_int: _PROD,
        aten.amax.default: _extremum(ops.reduce_max),
        aten.amin.default: _extremum(ops.reduce_min),
        aten.max.default: _whole(_extremum(ops.reduce_max)),
        aten.min.default: _whole(_extremum(ops.reduce_min)),
        aten.any.default: _whole(_truth(ops.reduce_any)),
        aten.any.dim: _truth(ops.reduce_any),
        aten.any.dims: _truth(ops.reduce_any),
        aten.all.default: _whole(_truth(ops.reduce_all)),
        aten.all.dim: _truth(ops.reduce_all),
        aten.all.dims: _truth(ops.reduce_all),
    }
)


def _position(function: Callable[..., Entry]) -> Callable[..., Entry]:
    """Return the importer of argmax or argmin."""

    def importer(call: AtenCall, x: Entry, axis: Any = None, keepdims: bool = False) -> Entry:
        if axis is None or not known_shape(x):
            return ops.reshape(function(ops.reshape(x, (-1,)), axis=0), call.shape)
        return function(x, axis=axis_of(axis, x), keepdims=keepdims)

    return importer


IMPORTERS[aten.argmax.default] = _position(ops.argmax)
IMPORTERS[aten.argmin.default] = _position(ops.argmin)


def _extremum_with_position(
    value: Callable[..., Entry], position: Callable[..., Entry]
) -> Callable[..., list[Entry]]:
    """Return the importer of max.dim or min.dim."""

    def importer(call: AtenCall, x: Entry, axis: int, keepdims: bool = False) -> list[Entry]:
        first, second = call_of_part(call, 0), call_of_part(call, 1)
        return [
            _extremum(value)(first, x, axis, keepdims),
            _position(position)(second, x, axis, keepdims),
        ]

    return importer


IMPORTERS[aten.max.dim] = _extremum_with_position(ops.reduce_max, ops.argmax)
IMPORTERS[aten.min.dim] = _extremum_with_position(ops.reduce_min, ops.argmin)


def _scan(function: Callable[..., Entry]) -> Callable[..., Entry]:
    """Return the importer of a scan along an axis; a scalar is its own."""

    def importer(call: AtenCall, x: Entry, axis: int, *, dtype: Any = None) -> Entry:
        wide = accumulated(call.dtype)
        if not known_shape(x):
            return cast(x, call.dtype)
        return cast(function(cast(x, wide), axis=axis_of(axis, x)), call.dtype)

    return importer


IMPORTERS[aten.cumsum.default] = _scan(ops.cumsum)
IMPORTERS[aten.cumprod.default] = _scan(ops.cumprod)
IMPORTERS[aten.logcumsumexp.default] = _scan(ops.logcumsumexp)


@imports(aten.var_mean.correction)
def _var_mean(
    call: AtenCall,
    x: Entry,
    axes: Sequence[int] | None = None,
    *,
    correction: Any = 1,
    keepdim: bool = False,
) -> list[Entry]:
    """Import variance and mean."""
    return [
        _var(call_of_part(call, 0), x, axes, correction=correction, keepdim=keepdim),
        _MEAN(call_of_part(call, 1), x, axes, keepdim),
    ]


@imports(aten.var.correction)
def _var(
    call: AtenCall,
    x: Entry,
    axes: Sequence[int] | None = None,
    *,
    correction: Any = 1,
    keepdim: bool = False,
) -> Entry:
    """Import the sum of squared distances from the mean, divided by a corrected count."""
    correction = 1 if correction is None else correction
    wide = cast(x, accumulated(call.dtype))
    own = axes_of(axes, x)
    if not known_shape(x):
        wide, own = ops.reshape(wide, (1,)), (0,)
    distance = wide - ops.reduce_mean(wide, axis=own, keepdims=True)
    total = ops.reduce_sum(distance * distance, axis=own, keepdims=keepdim)
    count = size_value(numel(known_shape(wide)[k] for k in own), dtype_of(dtype_name(wide)))
    result = total / ops.maximum(count - correction, 0)
    return cast(ops.reshape(result, call.shape), call.dtype)


@imports(aten.sort.default, aten.sort.stable)
def _sort(call: AtenCall, x: Entry, *args: Any, **kwargs: Any) -> list[Entry]:
    """Import a sort, by stable positions."""
    named = dict(zip(("dim", "descending"), [a for a in args if a is not None], strict=False))
    if call.function is aten.sort.stable:
        named = dict(zip(("stable", "dim", "descending"), args, strict=False))
    named.update(kwargs)
    axis, descending = axis_of(named.get("dim", -1), x), bool(named.get("descending", False))
    if not known_shape(x):
        return [x, ops.full((), 0, "int64")]
    positions = ops.cast(ops.argsort(x, axis=axis, descending=descending), "int64")
    return [ops.take_along_axis(x, positions, axis=axis), positions]


@imports(aten.linalg_vector_norm.default)
def _vector_norm(
    call: AtenCall,
    x: Entry,
    order: float = 2,
    axes: Any = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
) -> Entry:
    """Import the norms of vectors."""
    part = dtype_of("float64") if call.dtype.name == "float64" else dtype_of("float32")
    wide = x if x.dtype is not None and x.dtype.kind == "c" else cast(x, part)
    if not known_shape(x):
        wide, axes = ops.reshape(wide, (1,)), (0,)
    if 0 in known_shape(x) and math.isinf(order):
        unsupported("the largest of no elements")
    result = vector_norm(wide, order, axes_of(axes, wide), keepdims)
    return cast(ops.reshape(result, call.shape), call.dtype)


def vector_norm(x: Entry, order: float, axes: tuple[int, ...], keepdims: bool) -> Entry:
    """Return the norms of vectors of an order along axes: sums of powers, or extremes."""
    magnitude = ops.abs(x)
    if order == float("inf"):
        return ops.reduce_max(magnitude, axis=axes, keepdims=keepdims)
    if order == float("-inf"):
        return ops.reduce_min(magnitude, axis=axes, keepdims=keepdims)
    if order == 0:
        powers = ops.cast(ops.not_equal(magnitude, 0), dtype_name(magnitude))
    elif order == 1:
        powers = magnitude
    elif order == 2:
        powers = magnitude * magnitude
    else:
        powers = ops.pow(magnitude, order)
    total = ops.reduce_sum(powers, axis=axes, keepdims=keepdims)
    if order in (0, 1):
        return total
    return ops.sqrt(total) if order == 2 else ops.pow(total, 1 / order)


def _running_extremum(
    function: Callable[..., Entry], is_reached: Callable[..., Entry]
) -> Callable[..., list[Entry]]:
    """Return the importer of cummax or cummin, whose positions are those of the last equal ones."""

    def importer(call: AtenCall, x: Entry, axis: int) -> list[Entry]:
        if not known_shape(x) or 0 in known_shape(x):
            return [x, ops.full(known_shape(x), 0, "int64")]
        axis = axis_of(axis, x)
        numbers = cast(x, dtype_of("uint8")) if dtype_name(x) == "bool" else x
        values = function(numbers, axis=axis)
        is_new = ops.logical_or(is_reached(numbers, values), ops.not_equal(numbers, numbers))
        length = known_shape(x)[axis]
        shape = tuple(length if k == axis else 1 for k in range(len(known_shape(x))))
        along = ops.reshape(ops.cast(ops.range(0, length), "int64"), shape)
        positions = ops.cummax(ops.where(is_new, along, 0), axis=axis)
        return [cast(values, call.dtype), positions]

    return importer


IMPORTERS[aten.cummax.default] = _running_extremum(ops.cummax, ops.greater_equal)
IMPORTERS[aten.cummin.default] = _running_extremum(ops.cummin, ops.less_equal)


@imports(aten.kthvalue.default)
def _kthvalue(
    call: AtenCall, x: Entry, k: int, axis: int = -1, keepdims: bool = False
) -> list[Entry]:
    """Import the k-th smallest element along an axis, and its position."""
    return _of_order(call, x, k - 1, axis, keepdims)


def _of_order(call: AtenCall, x: Entry, rank: Any, axis: int, keepdims: bool) -> list[Entry]:
    """Return the elements of a rank in the order of an axis, and their positions."""
    if not known_shape(x):
        return [x, ops.full((), 0, "int64")]
    if 0 in known_shape(x):
        unsupported("an order of no elements")
    axis = axis_of(axis, x)
    order = ops.cast(ops.argsort(x, axis=axis), "int64")
    shape = tuple(1 if j == axis else n for j, n in enumerate(known_shape(x)))
    ranks = rank if isinstance(rank, Entry) else ops.full(shape, rank, "int64")
    positions = ops.take_along_axis(order, ops.broadcast_to(ranks, shape), axis=axis)
    values = ops.take_along_axis(x, positions, axis=axis)
    return [ops.reshape(v, call.shape) for v in (values, positions)]


def _median(skips_nan: bool) -> Callable[..., list[Entry]]:
    """Return the importer of the lower of the middle elements along an axis.

    NaN, of which the first is taken, is larger than all numbers, unless it is skipped.
    """

    def importer(call: AtenCall, x: Entry, axis: int = -1, keepdims: bool = False) -> list[Entry]:
        if not known_shape(x):
            return [x, ops.full((), 0, "int64")]
        axis = axis_of(axis, x)
        length = known_shape(x)[axis]
        if not isinstance(length, int) or length == 0:
            unsupported("the median of no elements, or of symbolic sizes")
        is_nan = ops.cast(ops.not_equal(x, x), "int64")
        nans = ops.reduce_sum(is_nan, axis=axis, keepdims=True)
        if skips_nan:
            rank = ops.floor_div(ops.maximum(length - nans - 1, 0), 2)
        else:
            rank = ops.where(ops.greater(nans, 0), length - nans, (length - 1) // 2)
        return _of_order(call, x, rank, axis, keepdims)

    return importer


IMPORTERS[aten.median.dim] = _median(False)
IMPORTERS[aten.nanmedian.dim] = _median(True)


@imports(aten.median.default, aten.nanmedian.default)
def _median_of_all(call: AtenCall, x: Entry) -> Entry:
    """Import the lower of the middle elements of a tensor."""
    skips_nan = call.function is aten.nanmedian.default
    return _median(skips_nan)(call, ops.reshape(x, (-1,)), 0)[0]


@imports(aten.mode.default)
def _mode(call: AtenCall, x: Entry, axis: int = -1, keepdims: bool = False) -> list[Entry]:
    """Import the smallest of the most frequent elements along an axis, and its last position."""
    if not known_shape(x):
        return [x, ops.full((), 0, "int64")]
    if 0 in known_shape(x):
        unsupported("the mode of no elements")
    axis = axis_of(axis, x)
    numbers = cast(x, dtype_of("uint8")) if dtype_name(x) == "bool" else x
    rows, columns = ops.expand_dims(numbers, axis=axis), ops.expand_dims(numbers, axis=axis + 1)
    counts = ops.reduce_sum(ops.cast(ops.equal(rows, columns), "int64"), axis=axis + 1)
    is_most = ops.equal(counts, ops.reduce_max(counts, axis=axis, keepdims=True))
    largest = ops.reduce_max(numbers, axis=axis, keepdims=True)
    value = ops.reduce_min(ops.where(is_most, numbers, largest), axis=axis, keepdims=True)
    length = known_shape(x)[axis]
    shape = tuple(length if k == axis else 1 for k in range(len(known_shape(x))))
    along = ops.reshape(ops.cast(ops.range(0, length), "int64"), shape)
    position = ops.reduce_max(ops.where(ops.equal(numbers, value), along, 0), axis=axis)
    return [
        cast(ops.reshape(value, call.shape), call.dtype),
        ops.reshape(position, call.shape),
    ]


@imports(aten.histc.default)
def _histc(call: AtenCall, x: Entry, bins: int = 100, low: Any = 0, high: Any = 0) -> Entry:
    """Import the number of elements in each of equal intervals; the last one has its end, too."""
    if 0 in known_shape(x):
        return ops.full(call.shape, 0, call.dtype.name)
    flat = ops.reshape(x, (-1,))
    first, last = (constant(v, call.dtype) for v in (low, high))
    if low == high:
        first, last = ops.reduce_min(flat), ops.reduce_max(flat)
        are_equal = ops.equal(first, last)
        first, last = ops.where(are_equal, first - 1, first), ops.where(are_equal, last + 1, last)
    inside = ops.logical_and(ops.greater_equal(flat, first), ops.less_equal(flat, last))
    if call.dtype.is_float:
        scaled = ops.floor((flat - first) * bins / (last - first))
    else:
        scaled = ops.floor_div((flat - first) * bins, last - first)
    number = ops.cast(ops.where(inside, scaled, -1), "int64")
    number = ops.minimum(number, bins - 1)
    return cast(ops.bincount(number, length=bins), call.dtype)
