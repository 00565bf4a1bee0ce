"""Importers of the operators that layers of networks consist of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import passkit.ops as ops
from passkit.frontends.torch.dtypes import passkit_dtype
from passkit.frontends.torch.op_importers.registry import (
    AtenCall,
    accumulated,
    aten,
    axis_of,
    cast,
    imports,
)
from passkit.graph.node import Entry, known_shape


@imports(aten._softmax.default)
def _softmax(call: AtenCall, x: Entry, axis: int, half_to_float: bool) -> Entry:
    """Import softmax; of a scalar it is 1."""
    return _along(ops.softmax, call, x, axis)


@imports(aten._log_softmax.default)
def _log_softmax(call: AtenCall, x: Entry, axis: int, half_to_float: bool) -> Entry:
    """Import the logarithm of softmax; of a scalar it is 0."""
    return _along(ops.log_softmax, call, x, axis)


def _along(function: Any, call: AtenCall, x: Entry, axis: int) -> Entry:
    """Return a function along an axis, computed in at least float32."""
    wide = cast(x, accumulated(call.dtype))
    if not known_shape(x):
        return cast(ops.reshape(function(ops.reshape(wide, (1,)), axis=0), ()), call.dtype)
    return cast(function(wide, axis=axis_of(axis, x)), call.dtype)


@imports(aten.native_layer_norm.default)
def _layer_norm(
    call: AtenCall,
    x: Entry,
    shape: Sequence[int],
    weight: Entry | None,
    bias: Entry | None,
    epsilon: float,
) -> list[Entry]:
    """Import a layer norm with the mean and the inverse deviation of each row."""
    computed = accumulated(call.dtype)
    wide = cast(x, computed)
    rank = len(known_shape(x))
    axes = tuple(range(rank - len(shape), rank))
    mean = ops.reduce_mean(wide, axis=axes, keepdims=True)
    distance = wide - mean
    variance = ops.reduce_mean(distance * distance, axis=axes, keepdims=True)
    scale = ops.rsqrt(variance + epsilon)
    result = distance * scale
    if weight is not None:
        result = result * cast(weight, computed)
    if bias is not None:
        result = result + cast(bias, computed)
    statistics = [
        cast(v, passkit_dtype(part.dtype))
        for v, part in zip((mean, scale), call.result[1:], strict=True)
    ]
    return [cast(result, call.dtype), *statistics]
