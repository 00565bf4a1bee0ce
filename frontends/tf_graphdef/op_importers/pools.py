"""Importers of pools, their gradients, dilations and patches.

The maximum of a window that contains NaN is NaN, as in XLA; TensorFlow's CPU kernels ignore NaN
there, and return the least finite number where all elements are -inf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from passkit.errors import ModelError, ShapeError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.input_gradient import input_gradient
from passkit.frontends.tf_graphdef.node_windows import (
    NodeWindows,
    channels_first,
    inner_shape,
    spatial,
    windows_of_node,
)
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, constant
from passkit.ops.layouts import as_dtype, from_last, to_last, widened
from passkit.ops.reduce import lowest
from passkit.values.size import Shape, Size


def _num_spatial_axes(call: ImportCall) -> int:
    """Return the number of spatial axes: 3 for operators with 3D in their name, else 2.

    ``call`` is the node.
    """
    return 3 if "3D" in call.node.op else 2


def _window(call: ImportCall, key: str, values: Sequence[int], count: int) -> tuple[int, ...]:
    """Return the extents of a window over the spatial axes.

    Args:
        call: The node, whose ``data_format`` says which axes are spatial.
        key: Name of the extents in errors, such as "ksize".
        values: The extents, one for each axis of the input.
        count: Number of spatial axes.

    Raises:
        ModelError: If there are none or another number of them, one is below 1, that of batch or
            channels is not 1, or the data format is unknown or of another kind.
    """
    if not values:
        raise ModelError(f"{call.where} needs {count + 2} {key} of at least 1, got none")
    return spatial(call, key, values, count)


def _num_pooled_channels(call: ImportCall, ksize: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """Return the number of channels that a window covers: 1 unless the pool is over channels.

    Lists of a wrong length give 1, too.

    Args:
        call: The node; its data format says which axis has the channels.
        ksize: Extents of a window, for all axes.
        strides: Steps between windows, for all axes.

    Raises:
        ModelError: If it pools over both channels and space, if windows over channels overlap or
            leave gaps, or if the data format is unknown or of another kind.
    """
    count = _num_spatial_axes(call)
    channel = 1 if channels_first(call, count) else -1
    if len(ksize) != count + 2 or len(strides) != count + 2 or ksize[channel] == 1:
        return 1
    num_channels = ksize[channel]
    if any(n != 1 for k, n in enumerate(ksize) if k != channel % len(ksize)):
        raise ModelError(
            f"{call.where} needs a window over spatial axes or over channels, got ksize "
            f"{list(ksize)}"
        )
    if strides[channel] != num_channels or any(
        n != 1 for k, n in enumerate(strides) if k != channel % len(ksize)
    ):
        raise ModelError(
            f"{call.where} needs strides equal to its ksize {list(ksize)} over channels, got "
            f"{list(strides)}"
        )
    return num_channels


def _pool_windows(
    call: ImportCall, x: Entry, shape: Shape, windows: NodeWindows, window: Any, is_mean: bool
) -> Entry:
    """Return a pool over windows of ``x``, channels last, including symbolic padding.

    Args:
        call: The node.
        x: Input (batch, *space, channels).
        shape: Its shape.
        windows: Strides and padding.
        window: Extents of a window.
        is_mean: Whether to average, without the padding; else take the maximum.

    Raises:
        ShapeError: If ``x`` is smaller than a window without padding.
        DTypeError: If an average is taken of other than floats.
    """
    count = len(windows.size)
    params = {"window": window, **windows.params, "name": call.name}
    if not is_mean:
        assert x.dtype is not None
        inner = windows.padded(x, lowest(x.dtype))
        pooled: Entry = getattr(ops, f"max_pool{count}d")(inner, **params)
        return pooled
    pool = getattr(ops, f"avg_pool{count}d")
    if windows.is_known:
        averages: Entry = pool(x, **params)
        return averages
    assert x.dtype is not None
    ones = ops.broadcast_to(constant(x.dtype.numpy.type(1)), shape=(1, *windows.size, 1))
    params["count_include_pad"] = True
    counts = pool(windows.padded(ones), **{**params, "name": ""})
    average: Entry = pool(windows.padded(x), **params) / counts
    return average


def _max_pool(
    call: ImportCall, x: ImportedValue, ksize: tuple[int, ...], strides: tuple[int, ...]
) -> Entry:
    """Return a maximum pool over space or channels, in the node's data format.

    Args:
        call: The node.
        x: Input of rank 4, or 5 for 3D.
        ksize: Extents of a window, for all axes.
        strides: Steps between windows, for all axes.

    Raises:
        ModelError: If the rank is unknown or wrong, ``ksize`` or ``strides`` is invalid, the window
            covers both space and channels or does not divide the channels, ``padding`` is missing
            or an attribute invalid, or ``x`` is not of real numbers.
        ShapeError: If ``x`` is smaller than a window without padding.
    """
    count = _num_spatial_axes(call)
    shape = inner_shape(call, x, count)
    first = channels_first(call, count)
    if x.dtype.kind not in "iuf":
        raise ModelError(f"{call.where} needs real numbers for a maximum, got {x.dtype}")
    num_channels = _num_pooled_channels(call, ksize, strides)
    inner = to_last(x.entry, first)
    if num_channels > 1:
        if isinstance(shape[-1], Size) or shape[-1] % num_channels:
            raise ModelError(
                f"{call.where} needs a known number of channels that is a multiple of "
                f"{num_channels}, got {shape[-1]}"
            )
        grouped = ops.reshape(inner, shape=(*shape[:-1], shape[-1] // num_channels, num_channels))
        return from_last(ops.reduce_max(grouped, axis=-1), first)
    window = _window(call, "ksize", ksize, count)
    windows = windows_of_node(call, shape[1:-1], window, strides)
    return from_last(_pool_windows(call, inner, shape, windows, window, False), first)


def _avg_pool(call: ImportCall, x: ImportedValue) -> Entry:
    """Return the average pool that a node describes, in its data format and the dtype of ``x``.

    Elements of the padding do not count in the averages. ``call`` is the node.

    Raises:
        ModelError: If the rank is unknown or not the operator's, or ``ksize`` or ``padding`` is
            missing or an attribute invalid.
        ShapeError: If ``x`` is smaller than a window without padding.
        DTypeError: If it is not of floats.
    """
    count = _num_spatial_axes(call)
    shape = inner_shape(call, x, count)
    first = channels_first(call, count)
    window = _window(call, "ksize", call.integers("ksize"), count)
    windows = windows_of_node(call, shape[1:-1], window)
    inner = widened(to_last(x.entry, first))
    return as_dtype(
        from_last(_pool_windows(call, inner, shape, windows, window, True), first), x.entry
    )


@op_importer("MaxPool", "MaxPool3D")
def _max(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import MaxPool and MaxPool3D, whose window and strides are attributes.

    The maximum is taken of each channel, or over channels if ``ksize`` says so. ``call`` is the
    node.

    Raises:
        ModelError: If ``x`` has another or unknown rank or is not of real numbers, or ``ksize`` or
            ``padding`` is missing or an attribute invalid.
        ShapeError: If ``x`` is smaller than a window without padding.
    """
    return _max_pool(call, x, call.integers("ksize"), call.integers("strides"))


@op_importer("MaxPoolV2")
def _max_v2(
    call: ImportCall, x: ImportedValue, ksize: ImportedValue, strides: ImportedValue
) -> ImportResult:
    """Import MaxPoolV2, whose window and strides are inputs known during import.

    ``ksize`` and ``strides`` have a number for each axis. ``call`` is the node.

    Raises:
        ModelError: If they are not known or invalid, ``x`` has another or unknown rank or is not of
            real numbers, or ``padding`` is missing or an attribute invalid.
        ShapeError: If ``x`` is smaller than a window without padding.
    """
    return _max_pool(call, x, call.ints(ksize, "ksize"), call.ints(strides, "strides"))


@op_importer("AvgPool", "AvgPool3D")
def _avg(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import AvgPool and AvgPool3D; padding does not count in the averages.

    ``call`` is the node.

    Raises:
        ModelError: If ``x`` has another or unknown rank, or ``ksize`` or ``padding`` is missing or
            an attribute invalid.
        ShapeError: If ``x`` is smaller than a window without padding.
        DTypeError: If ``x`` is not of floats.
    """
    return _avg_pool(call, x)


# Gradients of pools


@op_importer("MaxPoolGrad", "MaxPool3DGrad")
def _max_grad(
    call: ImportCall, x: ImportedValue, y: ImportedValue, dy: ImportedValue
) -> ImportResult:
    """Import the gradient of a maximum pool, which flows to the first maximum of each window.

    Args:
        call: The node.
        x: Input of the pool.
        y: Its result, which is computed again instead.
        dy: Gradient of the result.

    Raises:
        ModelError: If ``x`` has another or unknown rank or is not of real numbers, or ``ksize`` or
            ``padding`` is missing or an attribute invalid.
        ShapeError: If ``x`` is smaller than a window without padding, or the shape of ``dy`` is not
            that of the pool's result.
        DTypeError: If ``x`` is of integers, or ``dy`` has another dtype.
    """
    pool = _max_pool(call, x, call.integers("ksize"), call.integers("strides"))
    return input_gradient(pool, x.entry, dy.entry)


@op_importer("MaxPoolGradV2")
def _max_grad_v2(
    call: ImportCall,
    x: ImportedValue,
    y: ImportedValue,
    dy: ImportedValue,
    ksize: ImportedValue,
    strides: ImportedValue,
) -> ImportResult:
    """Import MaxPoolGradV2: the gradient of a maximum pool, with window and strides as inputs.

    Args:
        call: The node.
        x: Input of the pool.
        y: Its result, which is computed again instead.
        dy: Gradient of the result; it flows to the first maximum of each window.
        ksize: Extents of a window for all axes, known during import.
        strides: Steps between windows for all axes, known during import.

    Raises:
        ModelError: If ``ksize`` or ``strides`` is not known or invalid, ``x`` has another or
            unknown rank or is not of real numbers, or ``padding`` is missing or an attribute
            invalid.
        ShapeError: If ``x`` is smaller than a window without padding, or the shape of ``dy`` is not
            that of the pool's result.
        DTypeError: If ``x`` is of integers, or ``dy`` has another dtype.
    """
    pool = _max_pool(call, x, call.ints(ksize, "ksize"), call.ints(strides, "strides"))
    return input_gradient(pool, x.entry, dy.entry)


@op_importer("AvgPoolGrad", "AvgPool3DGrad")
def _avg_grad(call: ImportCall, shape: ImportedValue, dy: ImportedValue) -> ImportResult:
    """Import the gradient of an average pool.

    Args:
        call: The node.
        shape: Shape of the pool's input, known during import up to symbolic extents.
        dy: Gradient of its result.

    Raises:
        ModelError: If ``shape`` is not known or of another rank, or ``ksize`` or ``padding`` is
            missing or an attribute invalid.
        ShapeError: If ``shape`` is smaller than a window without padding or has a negative extent,
            or the shape of ``dy`` is not that of the pool's result.
        DTypeError: If ``dy`` is not of floats.
    """
    size = tuple(call.extents(shape, "orig_input_shape"))
    zeros = ops.broadcast_to(constant(dy.dtype.numpy.type(0)), shape=size)
    x = ImportedValue(call.name, dy.dtype, built_entry=zeros)
    return input_gradient(_avg_pool(call, x), zeros, dy.entry)


@op_importer("MaxPoolWithArgmax")
def _max_with_argmax(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import MaxPoolWithArgmax: a maximum pool, and the position of each first maximum.

    Positions are flat and counted within an image, or with the attribute ``include_batch_in_index``
    within the batch. They have the attribute ``Targmax`` as dtype, by default int64. ``call`` is
    the node.

    Returns:
        The maxima and the positions, both (batch, height, width, channels) of the windows.

    Raises:
        ModelError: If the rank of ``x`` is not 4, height, width or channels of the images are
            unknown, ``ksize`` or ``padding`` is missing or an attribute invalid, or positions
            exceed the memory budget of the import.
        ShapeError: If the images are smaller than a window without padding.
        DTypeError: If ``x`` is of bools or complex, or ``Targmax`` is complex.
    """
    shape = inner_shape(call, x, 2)
    window = _window(call, "ksize", call.integers("ksize"), 2)
    windows = windows_of_node(call, shape[1:-1], window)
    if any(isinstance(n, Size) for n in shape[1:]):
        raise ModelError(
            f"{call.where} needs images of known height, width and channels, got "
            f"{show_shape(shape)}; give load the full shape of its input in shapes="
        )
    height, width, channels = (int(n) for n in shape[1:])
    view = ops.windows(x.entry, window=window, **windows.params, fill="least")
    maximum = ops.reduce_max(view, axis=(3, 4), keepdims=True)
    area = prod(window)
    window_position = constant(call.positions(area, np.int32).reshape(*window, 1))
    first_position = ops.where(ops.equal(view, maximum), window_position, np.int32(area))
    is_first = ops.equal(
        ops.reduce_min(first_position, axis=(3, 4), keepdims=True), window_position
    )
    pixel = constant(call.positions(height * width, np.int64).reshape(1, height, width, 1))
    pixel_windows = ops.windows(pixel, window=window, **windows.params)
    positions = ops.reduce_sum(ops.where(is_first, pixel_windows, np.int64(0)), axis=(3, 4))
    positions = positions * np.int64(channels) + constant(call.positions(channels, np.int64))
    if call.attr("include_batch_in_index", "b", False):
        images = ops.arange(shape[0], dtype="int64") * np.int64(height * width * channels)
        positions = positions + ops.expand_dims(images, axis=(1, 2, 3))
    index_dtype = call.dtype("Targmax").name if "Targmax" in call.node.attr else "int64"
    return ops.squeeze(maximum, axis=(3, 4), name=call.name), ops.cast(positions, dtype=index_dtype)


# Other reductions and layouts of windows


@op_importer("Dilation2D")
def _dilation(call: ImportCall, x: ImportedValue, filters: ImportedValue) -> ImportResult:
    """Import Dilation2D: the maximum over windows of input plus filter.

    Args:
        call: The node.
        x: Images (batch, height, width, channels).
        filters: An array of known shape (height, width, channels).

    Raises:
        ModelError: If images do not have rank 4 or filters rank 3, the filter's shape is unknown,
            the images are not floats, or ``padding`` is missing or an attribute invalid.
        ShapeError: If the channels differ, the window is empty, or the images are smaller than it.
        DTypeError: If the filters are complex.
    """
    shape, taps = call.shape(x), call.shape(filters)
    if len(shape) != 4 or len(taps) != 3 or any(isinstance(n, Size) for n in taps):
        raise ModelError(
            f"{call.where} needs images of rank 4 and a filter of known shape and rank 3, got "
            f"{show_shape(shape)} and {show_shape(taps)}"
        )
    if not x.dtype.is_float:
        raise ModelError(f"{call.where} needs floats, got {x.dtype}; cast the images to floats")
    if isinstance(shape[3], int) and shape[3] != taps[2]:
        raise ShapeError(
            f"{call.where} needs a filter of as many channels as its images, got {taps[2]} and "
            f"{shape[3]}"
        )
    window = tuple(int(n) for n in taps[:2])
    windows = _windows_at_rates(call, shape[1:-1], window)
    inner = windows.padded(widened(x.entry), lowest(x.dtype))
    view = ops.windows(inner, window=window, **windows.params, fill="least")
    return as_dtype(ops.reduce_max(view + widened(filters.entry), axis=(3, 4)), x.entry)


def _windows_at_rates(call: ImportCall, size: Shape, window: tuple[int, ...]) -> NodeWindows:
    """Return the windows of a node whose dilations are the attribute ``rates``.

    Args:
        call: The node.
        size: Spatial size of the input.
        window: Taps of the window along each spatial axis.

    Raises:
        ModelError: If ``padding`` is missing or an attribute invalid; missing ``rates`` are 1.
    """
    rates = spatial(call, "rates", call.integers("rates"), len(size))
    extents = tuple((w - 1) * r + 1 for w, r in zip(window, rates, strict=True))
    windows = windows_of_node(call, size, extents)
    return NodeWindows(windows.size, windows.strides, rates, windows.padding, windows.same)


@op_importer("ExtractImagePatches")
def _patches(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import ExtractImagePatches: the pixels of each window as channels; ``rates`` dilate it.

    The result is (batch, *windows, elements of a window * channels). ``call`` is the node.

    Raises:
        ModelError: If ``x`` is not of rank 4, or ``ksizes`` or ``padding`` is missing or an
            attribute invalid.
        ShapeError: If ``x`` is smaller than a window without padding.
        DTypeError: If it is complex.
    """
    return _extract_patches(call, x, 2, _windows_at_rates)


@op_importer("ExtractVolumePatches")
def _volume_patches(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import ExtractVolumePatches: the elements of each window of volumes, as channels.

    The result is (batch, *windows, elements of a window * channels). ``call`` is the node.

    Raises:
        ModelError: If ``x`` is not of rank 5, or ``ksizes`` or ``padding`` is missing or an
            attribute invalid.
        ShapeError: If ``x`` is smaller than a window without padding.
        DTypeError: If it is complex.
    """
    return _extract_patches(call, x, 3, windows_of_node)


def _extract_patches(
    call: ImportCall, x: ImportedValue, rank: int, find_windows: Callable[..., NodeWindows]
) -> Entry:
    """Return the patches under the windows: (batch, *windows, elements of a window * channels).

    Args:
        call: The node.
        x: Input, channels last.
        rank: Number of spatial axes.
        find_windows: Takes the node, the spatial size and the window; returns strides and padding.

    Raises:
        ModelError: If ``x`` has another rank, or ``ksizes`` or ``padding`` is missing or an
            attribute invalid.
        ShapeError: If ``x`` is smaller than a window without padding.
        DTypeError: If it is complex.
    """
    shape = inner_shape(call, x, rank)
    window = _window(call, "ksizes", call.integers("ksizes"), rank)
    windows = find_windows(call, shape[1:-1], window)
    patches: Entry = ops.extract_patches(
        windows.padded(x.entry), window=window, **windows.params, name=call.name
    )
    return patches


@op_importer("LRN")
def _lrn(call: ImportCall, x: ImportedValue) -> ImportResult:
    """Import LRN: local response normalization across channels, the last axis of ``x``.

    ``call`` is the node.

    Raises:
        ModelError: If the rank is unknown or not 4, or an attribute is of another kind.
        ShapeError: If ``x`` has no channels, or ``depth_radius`` is negative.
        DTypeError: If it is not of floats.
    """
    return _local_response_norm(call, x)


@op_importer("LRNGrad")
def _lrn_grad(
    call: ImportCall, dy: ImportedValue, x: ImportedValue, y: ImportedValue
) -> ImportResult:
    """Import LRNGrad: the gradient of ``x``; the result ``y`` is computed again instead of read.

    ``dy`` is the gradient of the result. ``call`` is the node.

    Raises:
        ModelError: If the rank of ``x`` is unknown or not 4, or an attribute is of another kind.
        ShapeError: If the shape of ``dy`` is not that of ``x``, ``x`` has no channels, or
            ``depth_radius`` is negative.
        DTypeError: If ``x`` is not of floats, or ``dy`` of another dtype.
    """
    return input_gradient(_local_response_norm(call, x), x.entry, dy.entry)


def _local_response_norm(call: ImportCall, x: ImportedValue) -> Entry:
    """Return ``x`` divided by ``(bias + alpha * sum)**beta``.

    The sum is that of the squares in the nearest 2 * depth_radius + 1 channels. All four numbers
    are attributes of the node, by default a depth_radius of 5, bias 1, alpha 1 and beta 0.5.
    ``call`` is the node.

    Raises:
        ModelError: If the rank is unknown or not 4, or an attribute is of another kind.
        ShapeError: If ``x`` has no channels, or ``depth_radius`` is negative.
        DTypeError: If it is not of floats.
    """
    if len(call.shape(x)) != 4:
        raise ModelError(
            f"{call.where} needs {short(x.name)} of rank 4, got {show_shape(call.shape(x))}"
        )
    normalized: Entry = ops.local_response_normalization(
        x.entry,
        depth_radius=call.attr("depth_radius", "i", 5),
        bias=call.attr("bias", "f", 1.0),
        alpha=call.attr("alpha", "f", 1.0),
        beta=call.attr("beta", "f", 0.5),
    )
    return normalized
