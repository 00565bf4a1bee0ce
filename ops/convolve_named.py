"""Convolutions by the names of TensorFlow and others: so many axes, either order of channels.

A filter is (*window, channels / groups, filters) in each of them.
"""

from __future__ import annotations

from typing import Any

from passkit.errors import ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.composites import composite
from passkit.ops.convolve import CONVOLVED, passed, window_of
from passkit.ops.helpers import make, parse_extents
from passkit.ops.layouts import LAST, channels_first, from_last, ranked, to_last
from passkit.ops.window_padding import each, explicit_pairs
from passkit.ops.windowed import WINDOWED
from passkit.values.size import Extent


def _named(count: int) -> Any:
    def expand(node: Node, x: Entry, filters: Entry) -> Entry:
        ranked(node, x, count)
        first = channels_first(node, count)
        inner = to_last(x, first)
        out = make("convolution", inner, filters, **passed(node))
        return from_last(out, first)

    return expand


def _transposed(count: int) -> Any:
    """Source: the gradient of a convolution with respect to its input."""

    def expand(node: Node, x: Entry, filters: Entry) -> Entry:
        ranked(node, x, count)
        first = channels_first(node, count)
        inner = to_last(x, first)
        window = window_of(node, known_shape(filters), count)
        size = _grown(node, known_shape(inner)[1:-1], window)
        out = make("convolution_backprop_input", filters, inner, size=size, **passed(node))
        return from_last(out, first)

    return expand


def _grown(node: Node, size: tuple[Extent, ...], window: tuple[int, ...]) -> tuple[Extent, ...]:
    """The size of the input whose convolution has ``size``: the output_shape, if it is given."""
    given = node.params["output_shape"]
    count = len(size)
    if given is not None:
        found = parse_extents(node, given, "output_shape")
        return found[1:-1] if len(found) == count + 2 else found
    stride, dilation = each(node, "strides", count), each(node, "dilations", count)
    extra = each(node, "output_padding", count, 0)
    if any(e >= s for e, s in zip(extra, stride, strict=True)):
        raise ShapeError(
            f"{node.where} needs an output_padding below the strides {stride}, got {extra}: the "
            f"convolution of a size beyond that has more windows"
        )
    padding = node.params["padding"]
    if padding == "SAME":
        return tuple(n * s + e for n, s, e in zip(size, stride, extra, strict=True))
    pairs = explicit_pairs(node, 0 if padding == "VALID" else padding, count)
    reach = [(w - 1) * d + 1 for w, d in zip(window, dilation, strict=True)]
    return tuple(
        (n - 1) * s + r - sum(pair) + e
        for n, s, r, pair, e in zip(size, stride, reach, pairs, extra, strict=True)
    )


for _count in (1, 2, 3):
    _layout = LAST[_count][0]
    composite(
        f"conv{_count}d",
        ["input", "filter"],
        _named(_count),
        f"the convolution over {_count} spatial axes",
        {**CONVOLVED, "data_format": _layout},
    )
    composite(
        f"conv{_count}d_transpose",
        ["input", "filter"],
        _transposed(_count),
        f"the transpose of conv{_count}d: (batch, *result, filters) and its filter -> (batch, "
        "*size, channels); output_shape or output_padding chooses among the sizes that fit",
        {**CONVOLVED, "data_format": _layout, "output_shape": None, "output_padding": 0},
    )


def _depthwise(node: Node, x: Entry, filters: Entry) -> Entry:
    """Source: tf.nn.depthwise_conv2d: channel c and multiplier m give filter c * M + m."""
    ranked(node, x, 2)
    first = channels_first(node, 2)
    inner = to_last(x, first)
    shape = known_shape(filters)
    if len(shape) != 4:
        raise ShapeError(
            f"{node.where} needs a filter (height, width, channels, multiplier), got "
            f"{show_shape(shape)}"
        )
    window, count = window_of(node, shape, 2), int(shape[2]) * int(shape[3])
    flat = make("reshape", filters, shape=(*window, 1, count))
    params = {k: node.params[k] for k in WINDOWED}
    out = make("convolution", inner, flat, groups=int(shape[2]), **params)
    return from_last(out, first)


composite(
    "depthwise_conv2d",
    ["input", "filter"],
    _depthwise,
    "a convolution of each channel by itself; the filter is (height, width, channels, multiplier)",
    {**WINDOWED, "data_format": "NHWC"},
)


def _separable(node: Node, x: Entry, depthwise: Entry, pointwise: Entry) -> Entry:
    passed_on = {k: node.params[k] for k in (*WINDOWED, "data_format")}
    deep = make("depthwise_conv2d", x, depthwise, **passed_on)
    return make("conv2d", deep, pointwise, data_format=node.params["data_format"])


composite(
    "separable_conv2d",
    ["input", "depthwise_filter", "pointwise_filter"],
    _separable,
    "depthwise_conv2d, then a convolution of 1 x 1",
    {**WINDOWED, "data_format": "NHWC"},
)
