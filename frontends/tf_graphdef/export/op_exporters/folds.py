"""Folds that TensorFlow has no operator for, by others."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.frontends.tf_graphdef.export.functions import truth
from passkit.frontends.tf_graphdef.export.table import Call, Result, row
from passkit.frontends.tf_graphdef.export.writer import BOOL, INT32, Tensor
from passkit.ops.helpers import make, normalize_axes, normalize_axis


@row("reduce_bitwise_and", "reduce_bitwise_or", "reduce_bitwise_xor")
def _bitwise(call: Call, x: Tensor) -> Result:
    """Bit by bit along a new last axis: whether all, any, or an odd number have it."""
    shape = call.shape()
    axes = call.const(list(normalize_axes(call.node, len(shape), call.params["axis"])))
    more = {"keep_dims": bool(call.params["keepdims"]), "Tidx": INT32}
    if x.dtype is BOOL:
        return _of_truths(call, x, axes, more)
    width = 8 * x.dtype.nbytes
    each = call.op("ExpandDims", x, call.const(-1), Tdim=INT32)
    places = call.const(np.arange(width), x.dtype)
    bits = call.op("BitwiseAnd", call.op("RightShift", each, places), call.const(1, x.dtype))
    held = truth(call.scope, "NotEqual", bits, 0)
    if call.name == "reduce_bitwise_xor":
        counts = call.op("Sum", call.scope.cast(held, INT32), axes, **more)
        found = call.op("BitwiseAnd", counts, call.const(1))
    else:
        op = "All" if call.name == "reduce_bitwise_and" else "Any"
        found = call.op(op, held, axes, **more)
    parts = call.op("LeftShift", call.scope.cast(found, x.dtype), places)
    return call.result("Sum", parts, call.const([-1]), keep_dims=False, Tidx=INT32)


def _of_truths(call: Call, x: Tensor, axes: Tensor, more: dict[str, Any]) -> Tensor:
    if call.name != "reduce_bitwise_xor":
        op = "All" if call.name == "reduce_bitwise_and" else "Any"
        return call.result(op, x, axes, **more)
    counts = call.op("Sum", call.scope.cast(x, INT32), axes, **more)
    return call.result("NotEqual", call.op("BitwiseAnd", counts, call.const(1)), call.const(0))


@row("cummax", "cummin")
def _running(call: Call, x: Tensor) -> Result:
    """By doubling: after k steps each element has seen 2^k; for a length that is known."""
    axis, shape = call.params["axis"], call.out
    at = normalize_axis(call.node, len(shape), 0 if axis is None else axis)
    length = shape[at]
    if not isinstance(length, int) or x.dtype.kind not in "iuf":
        return None
    join = "maximum" if call.name == "cummax" else "minimum"
    least = _least(x, call.name == "cummax")

    def shifted(e: Any, by: int) -> Any:
        """``e`` moved ``by`` places along the axis, with what changes nothing in front."""
        pads = tuple((by, 0) if k == at else (0, 0) for k in range(len(shape)))
        begin = (0,) * len(shape)
        kept = make("slice", e, begin=begin,
                    size=tuple(n - by if k == at else n for k, n in enumerate(shape)))  # fmt: skip
        return make("pad_with", kept, pad_width=pads, value=least)

    def running(e: Any) -> Any:
        e = make("reshape", e, shape=shape) if axis is None else e
        e = make("flip", e, axis=at) if call.params["reverse"] else e
        if call.params["exclusive"] and length:
            e = shifted(e, 1)
        step = 1
        while step < length:
            e = make(join, e, shifted(e, step))
            step *= 2
        e = make("flip", e, axis=at) if call.params["reverse"] else e
        return make("identity", e)

    return call.expanded(running, x)


def _least(x: Tensor, largest: bool) -> Any:
    """What a running maximum, or minimum, begins with."""
    if x.dtype.is_float:
        return -np.inf if largest else np.inf
    limits = np.iinfo(x.dtype.numpy)
    return int(limits.min if largest else limits.max)
