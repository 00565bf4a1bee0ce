"""Importers of reductions and scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import passkit.ops as ops
from passkit.frontends.torch.op_importers.movement import call_of_part
from passkit.frontends.torch.op_importers.registry import (
    IMPORTERS,
    AtenCall,
    aten,
    axes_of,
    axis_of,
    cast,
    dtype_name,
    imports,
)
from passkit.frontends.torch.sizes import size_value
from passkit.graph.node import Entry, known_shape
from passkit.values.dtype import DType, dtype_of
from passkit.values.size import numel


def _accumulated(dtype: DType) -> DType:
    """Return the dtype that sums of elements of a dtype are computed in."""
    return dtype_of("float32") if dtype.name in ("float16", "bfloat16") else dtype


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
        wide = _accumulated(call.dtype)
        return cast(reduced(function, cast(x, wide), axes, keepdims, call), call.dtype)

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
        wide = _accumulated(call.dtype)
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
    wide = cast(x, _accumulated(call.dtype))
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
    """Import the norms of vectors of order 1, 2 and infinity, and others by powers."""
    wide = ops.abs(cast(x, _accumulated(call.dtype)))
    if order == float("inf"):
        result = reduced(ops.reduce_max, wide, axes, keepdims, call)
    elif order == float("-inf"):
        result = reduced(ops.reduce_min, wide, axes, keepdims, call)
    elif order == 0:
        counted = ops.cast(ops.not_equal(wide, 0), dtype_name(wide))
        result = reduced(ops.reduce_sum, counted, axes, keepdims, call)
    elif order == 1:
        result = reduced(ops.reduce_sum, wide, axes, keepdims, call)
    elif order == 2:
        result = ops.sqrt(reduced(ops.reduce_sum, wide * wide, axes, keepdims, call))
    else:
        powers = reduced(ops.reduce_sum, ops.pow(wide, order), axes, keepdims, call)
        result = ops.pow(powers, 1 / order)
    return cast(result, call.dtype)


