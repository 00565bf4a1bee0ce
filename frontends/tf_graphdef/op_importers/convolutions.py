"""Convolutions, their transposes and gradients, and what grappler has fused to them."""

from __future__ import annotations

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.frontends.tf_graphdef.windows import (
    Windows,
    channels_first,
    inner_shape,
    windows_of,
)
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry
from passkit.ops.layouts import as_dtype, from_last, to_last, wide
from passkit.values.size import Extent, Shape

AXES = {
    "Conv2D": 2,
    "Conv2DBackpropInput": 2,
    "Conv2DBackpropFilter": 2,
    "DepthwiseConv2dNative": 2,
    "DepthwiseConv2dNativeBackpropInput": 2,
    "DepthwiseConv2dNativeBackpropFilter": 2,
    "Conv3D": 3,
    "Conv3DBackpropInputV2": 3,
    "Conv3DBackpropFilterV2": 3,
}
"""The spatial axes of each operator."""


def _float(call: Call, *values: Value) -> None:
    for v in values:
        if not v.dtype.is_float:
            raise ModelError(
                f"{call.where} needs floats, got {v.dtype} as {short(v.name)}; "
                f"convolve float64, which holds such sums exactly, and Cast them"
            )


def _filter_shape(call: Call, shape: Shape, count: int) -> tuple[int, ...]:
    """The shape of a filter. Raises: ModelError for another rank, or where it is not known."""
    known = tuple(n for n in shape if isinstance(n, int))
    if len(shape) != count + 2 or len(known) != len(shape):
        raise ModelError(
            f"{call.where} needs a filter of rank {count + 2} whose shape is known, got "
            f"{show_shape(shape)}"
        )
    return known


def _groups(call: Call, channels: Extent, filters: tuple[int, ...]) -> int:
    """How many groups there are: as often as the filter's channels go into the input's."""
    own, count = filters[-2:]
    if not isinstance(channels, int):
        return 1
    groups = channels // own if own else 1
    if groups * own != channels or (groups and count % groups):
        raise ModelError(
            f"{call.where} needs an input of the filter's {own} channels, or of a multiple that "
            f"divides its {count} filters, got {channels} channels"
        )
    return max(groups, 1)


@row("Conv2D", "Conv3D")
def _conv(call: Call, x: Value, filters: Value) -> Result:
    return convolved(call, x, filters, AXES[call.node.op])


def convolved(call: Call, x: Value, filters: Value, count: int) -> Entry:
    """The convolution that a node describes."""
    _float(call, x, filters)
    shape = inner_shape(call, x, count)
    taps = _filter_shape(call, call.shape(filters), count)
    groups = _groups(call, shape[-1], taps)
    return _applied(call, x, wide(filters.entry), windows_of(call, shape[1:-1], taps[:-2]), groups)


def _applied(call: Call, x: Value, filters: Entry, windows: Windows, groups: int) -> Entry:
    first = channels_first(call, len(windows.size))
    inner = windows.padded(to_last(wide(x.entry), first))
    out = ops.convolution(inner, filters, **windows.params, groups=groups, name=call.name)
    return as_dtype(from_last(out, first), x.entry)


@row("DepthwiseConv2dNative")
def _depthwise(call: Call, x: Value, filters: Value) -> Result:
    return depthwise_convolved(call, x, filters)


def depthwise_convolved(call: Call, x: Value, filters: Value) -> Entry:
    """The convolution of each channel by itself that a node describes."""
    _float(call, x, filters)
    shape = inner_shape(call, x, 2)
    taps = _filter_shape(call, call.shape(filters), 2)
    windows = windows_of(call, shape[1:-1], taps[:2])
    return _applied(call, x, _flat(filters, taps), windows, taps[2])


def _flat(filters: Value, taps: tuple[int, ...]) -> Entry:
    """A filter for each channel, (height, width, channels, multiplier), as one of groups."""
    made: Entry = ops.reshape(wide(filters.entry), shape=(*taps[:2], 1, taps[2] * taps[3]))
    return made


# Back to the input: transposed convolutions


def _sizes(call: Call, sizes: Value, count: int) -> Shape:
    """(*size, channels) of an input whose shape is given; channels are -1 where only sizes are."""
    given = tuple(call.extents(sizes, "input_sizes"))
    if len(given) == count:
        return (*given, -1)
    if len(given) != count + 2:
        raise ModelError(
            f"{call.where} needs {count} or {count + 2} input_sizes, got {show_shape(given)}"
        )
    return (*given[2:], given[1]) if channels_first(call, count) else given[1:]


@row("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def _back_to_input(call: Call, sizes: Value, filters: Value, dy: Value) -> Result:
    _float(call, filters, dy)
    count = AXES[call.node.op]
    *size, channels = _sizes(call, sizes, count)
    taps = _filter_shape(call, call.shape(filters), count)
    groups = 1 if channels == -1 else _groups(call, channels, taps)
    windows = windows_of(call, tuple(size), taps[:-2])
    return _input_of(call, wide(filters.entry), dy, windows, groups)


@row("DepthwiseConv2dNativeBackpropInput")
def _depthwise_back_to_input(call: Call, sizes: Value, filters: Value, dy: Value) -> Result:
    _float(call, filters, dy)
    *size, _ = _sizes(call, sizes, 2)
    taps = _filter_shape(call, call.shape(filters), 2)
    windows = windows_of(call, tuple(size), taps[:2])
    return _input_of(call, _flat(filters, taps), dy, windows, taps[2])


def _input_of(call: Call, filters: Entry, dy: Value, windows: Windows, groups: int) -> Entry:
    """What goes back to the input; to its padding too, where that is cut off afterwards."""
    count = len(windows.size)
    inner_shape(call, dy, count)
    first = channels_first(call, count)
    size = windows.size if windows.is_known else windows.padded_size
    out = ops.convolution_backprop_input(
        filters, to_last(wide(dy.entry), first), size=size, **windows.params, groups=groups
    )
    if not windows.is_known:
        begin = (0, *(low for low, _ in windows.around), 0)
        out = ops.slice(out, begin=begin, size=(out.shape[0], *windows.size, out.shape[-1]))
    return as_dtype(from_last(out, first), dy.entry)


# Back to the filter


@row("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")
def _back_to_filter(call: Call, x: Value, sizes: Value, dy: Value) -> Result:
    _float(call, x, dy)
    count = AXES[call.node.op]
    taps = _filter_shape(call, call.ints(sizes, "filter_sizes"), count)
    groups = _groups(call, inner_shape(call, x, count)[-1], taps)
    return as_dtype(_filter_of(call, x, dy, taps[:-2], groups), x.entry)


@row("DepthwiseConv2dNativeBackpropFilter")
def _depthwise_back_to_filter(call: Call, x: Value, sizes: Value, dy: Value) -> Result:
    _float(call, x, dy)
    taps = _filter_shape(call, call.ints(sizes, "filter_sizes"), 2)
    out = _filter_of(call, x, dy, taps[:2], taps[2])
    return as_dtype(ops.reshape(out, shape=taps), x.entry)


def _filter_of(call: Call, x: Value, dy: Value, window: tuple[int, ...], groups: int) -> Entry:
    count = len(window)
    windows = windows_of(call, inner_shape(call, x, count)[1:-1], window)
    inner_shape(call, dy, count)
    first = channels_first(call, count)
    made: Entry = ops.convolution_backprop_filter(
        windows.padded(to_last(wide(x.entry), first)),
        to_last(wide(dy.entry), first),
        window=window,
        **windows.params,
        groups=groups,
    )
    return made
