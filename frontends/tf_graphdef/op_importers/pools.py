"""Pools, their gradients, dilations and patches: what is folded, or laid out, under windows.

The maximum of a window that holds NaN is NaN, as XLA has it; TensorFlow's own kernels on a CPU pass
over NaN there, and give the least finite number where all is -inf.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.back import flow_back
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.frontends.tf_graphdef.windows import (
    Windows,
    channels_first,
    inner_shape,
    spatial,
    windows_of,
)
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, constant
from passkit.ops.layouts import as_dtype, from_last, to_last, wide
from passkit.ops.reduce import lowest
from passkit.values.size import Shape, Size


def _axes(call: Call) -> int:
    return 3 if "3D" in call.node.op else 2


def _deep(call: Call, ksize: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The channels that a window takes together: 1, or all of a pool over depth.

    Raises: ModelError for a pool over depth and space, or one whose windows overlap.
    """
    count = _axes(call)
    channel = 1 if channels_first(call, count) else -1
    if len(ksize) != count + 2 or len(strides) != count + 2 or ksize[channel] == 1:
        return 1
    deep = ksize[channel]
    if any(n != 1 for k, n in enumerate(ksize) if k != channel % len(ksize)):
        raise ModelError(
            f"{call.where} needs a window over space or over channels, got ksize {list(ksize)}"
        )
    if strides[channel] != deep or any(
        n != 1 for k, n in enumerate(strides) if k != channel % len(ksize)
    ):
        raise ModelError(
            f"{call.where} needs strides equal to its ksize {list(ksize)} over channels, got "
            f"{list(strides)}"
        )
    return deep


def _pooled(call: Call, x: Entry, shape: Shape, windows: Windows, window: Any, mean: bool) -> Entry:
    """The fold over windows of ``x``, channels last."""
    count = len(windows.size)
    params = {"window": window, **windows.params, "name": call.name}
    if not mean:
        assert x.dtype is not None
        if x.dtype.kind not in "iuf":
            raise ModelError(f"{call.where} needs real numbers to choose from, got {x.dtype}")
        inner = windows.padded(x, lowest(x.dtype))
        made: Entry = getattr(ops, f"max_pool{count}d")(inner, **params)
        return made
    pool = getattr(ops, f"avg_pool{count}d")
    if windows.is_known:
        averaged: Entry = pool(x, **params)
        return averaged
    assert x.dtype is not None
    ones = ops.broadcast_to(constant(x.dtype.numpy.type(1)), shape=(1, *windows.size, 1))
    params["count_include_pad"] = True
    inside = pool(windows.padded(ones), **{**params, "name": ""})
    whole: Entry = pool(windows.padded(x), **params) / inside
    return whole


def _max_pool(call: Call, x: Value, ksize: tuple[int, ...], strides: tuple[int, ...]) -> Entry:
    count = _axes(call)
    shape = inner_shape(call, x, count)
    first = channels_first(call, count)
    deep = _deep(call, ksize, strides)
    inner = to_last(x.entry, first)
    if deep > 1:
        if isinstance(shape[-1], Size) or shape[-1] % deep:
            raise ModelError(
                f"{call.where} needs channels that its {deep} divide, got {shape[-1]}"
            )
        parts = ops.reshape(inner, shape=(*shape[:-1], shape[-1] // deep, deep))
        return from_last(ops.reduce_max(parts, axis=-1), first)
    window = spatial(call, "ksize", ksize, count)
    windows = windows_of(call, shape[1:-1], window, strides)
    return from_last(_pooled(call, inner, shape, windows, window, False), first)


def _avg_pool(call: Call, x: Value) -> Entry:
    count = _axes(call)
    shape = inner_shape(call, x, count)
    first = channels_first(call, count)
    window = spatial(call, "ksize", call.integers("ksize"), count)
    windows = windows_of(call, shape[1:-1], window)
    inner = wide(to_last(x.entry, first))
    return as_dtype(from_last(_pooled(call, inner, shape, windows, window, True), first), x.entry)


@row("MaxPool", "MaxPool3D")
def _max(call: Call, x: Value) -> Result:
    return _max_pool(call, x, call.integers("ksize"), call.integers("strides"))


@row("MaxPoolV2")
def _max_v2(call: Call, x: Value, ksize: Value, strides: Value) -> Result:
    return _max_pool(call, x, call.ints(ksize, "ksize"), call.ints(strides, "strides"))


@row("AvgPool", "AvgPool3D")
def _avg(call: Call, x: Value) -> Result:
    return _avg_pool(call, x)


# Gradients: of the pool, by what flows to its result


@row("MaxPoolGrad", "MaxPool3DGrad")
def _max_grad(call: Call, x: Value, y: Value, dy: Value) -> Result:
    """All of dy goes to the first maximum of each window."""
    pool = _max_pool(call, x, call.integers("ksize"), call.integers("strides"))
    return flow_back(pool, x.entry, dy.entry)


@row("MaxPoolGradV2")
def _max_grad_v2(
    call: Call, x: Value, y: Value, dy: Value, ksize: Value, strides: Value
) -> Result:
    pool = _max_pool(call, x, call.ints(ksize, "ksize"), call.ints(strides, "strides"))
    return flow_back(pool, x.entry, dy.entry)


@row("AvgPoolGrad", "AvgPool3DGrad")
def _avg_grad(call: Call, shape: Value, dy: Value) -> Result:
    """The gradient of a pool does not depend on what was pooled: zeros of its shape stand in."""
    size = tuple(call.extents(shape, "orig_input_shape"))
    zeros = ops.broadcast_to(constant(dy.dtype.numpy.type(0)), shape=size)
    x = Value(call.name, dy.dtype, made=zeros)
    return flow_back(_avg_pool(call, x), zeros, dy.entry)


@row("MaxPoolWithArgmax")
def _max_with_argmax(call: Call, x: Value) -> Result:
    """The places count pixels and channels of one image, or of all with include_batch_in_index."""
    shape = inner_shape(call, x, 2)
    window = spatial(call, "ksize", call.integers("ksize"), 2)
    windows = windows_of(call, shape[1:-1], window)
    if any(isinstance(n, Size) for n in shape[1:]):
        raise ModelError(
            f"{call.where} needs images of known size, got {show_shape(shape)}; give load the "
            f"whole shape of its input in shapes="
        )
    height, width, channels = (int(n) for n in shape[1:])
    view = ops.windows(x.entry, window=window, **windows.params, fill="least")
    top = ops.reduce_max(view, axis=(3, 4), keepdims=True)
    area = prod(window)
    number = constant(call.positions(area, np.int32).reshape(*window, 1))
    first = ops.where(ops.equal(view, top), number, np.int32(area))
    chosen = ops.equal(ops.reduce_min(first, axis=(3, 4), keepdims=True), number)
    pixel = constant(call.positions(height * width, np.int64).reshape(1, height, width, 1))
    under = ops.windows(pixel, window=window, **windows.params)
    at = ops.reduce_sum(ops.where(chosen, under, np.int64(0)), axis=(3, 4))
    at = at * np.int64(channels) + constant(call.positions(channels, np.int64))
    if call.attr("include_batch_in_index", "b", False):
        images = ops.arange(shape[0], dtype="int64") * np.int64(height * width * channels)
        at = at + ops.expand_dims(images, axis=(1, 2, 3))
    target = call.dtype("Targmax").name if "Targmax" in call.node.attr else "int64"
    return ops.squeeze(top, axis=(3, 4), name=call.name), ops.cast(at, dtype=target)


# Other folds and layouts of windows


@row("Dilation2D")
def _dilation(call: Call, x: Value, filters: Value) -> Result:
    """The largest sum of what a window covers and the filter."""
    shape, taps = call.shape(x), call.shape(filters)
    if len(shape) != 4 or len(taps) != 3 or any(isinstance(n, Size) for n in taps):
        raise ModelError(
            f"{call.where} needs images of rank 4 and a filter of rank 3 whose shape is known, "
            f"got {show_shape(shape)} and {show_shape(taps)}"
        )
    if not x.dtype.is_float:
        raise ModelError(f"{call.where} needs floats, got {x.dtype}; Cast them")
    window = tuple(int(n) for n in taps[:2])
    windows = _windows_at_rates(call, shape[1:-1], window)
    inner = windows.padded(wide(x.entry), lowest(x.dtype))
    view = ops.windows(inner, window=window, **windows.params, fill="least")
    return as_dtype(ops.reduce_max(view + wide(filters.entry), axis=(3, 4)), x.entry)


def _windows_at_rates(call: Call, size: Shape, window: tuple[int, ...]) -> Windows:
    """Windows whose dilations the model calls rates."""
    rates = spatial(call, "rates", call.integers("rates"), len(size))
    reach = tuple((w - 1) * r + 1 for w, r in zip(window, rates, strict=True))
    found = windows_of(call, size, reach)
    return Windows(found.size, found.strides, rates, found.around, found.same)


@row("ExtractImagePatches")
def _patches(call: Call, x: Value) -> Result:
    return _extracted(call, x, 2, _windows_at_rates)


@row("ExtractVolumePatches")
def _volume_patches(call: Call, x: Value) -> Result:
    return _extracted(call, x, 3, windows_of)


def _extracted(call: Call, x: Value, rank: int, find: Callable[..., Windows]) -> Entry:
    shape = inner_shape(call, x, rank)
    window = spatial(call, "ksizes", call.integers("ksizes"), rank)
    windows = find(call, shape[1:-1], window)
    made: Entry = ops.extract_patches(
        windows.padded(x.entry), window=window, **windows.params, name=call.name
    )
    return made


@row("LRN")
def _lrn(call: Call, x: Value) -> Result:
    return _normalised(call, x)


@row("LRNGrad")
def _lrn_grad(call: Call, dy: Value, x: Value, y: Value) -> Result:
    return flow_back(_normalised(call, x), x.entry, dy.entry)


def _normalised(call: Call, x: Value) -> Entry:
    if len(call.shape(x)) != 4:
        raise ModelError(
            f"{call.where} needs {short(x.name)} of rank 4, got {show_shape(call.shape(x))}"
        )
    made: Entry = ops.local_response_normalization(
        x.entry,
        depth_radius=call.attr("depth_radius", "i", 5),
        bias=call.attr("bias", "f", 1.0),
        alpha=call.attr("alpha", "f", 1.0),
        beta=call.attr("beta", "f", 0.5),
    )
    return made
