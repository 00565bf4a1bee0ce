"""Convolutions: ``convolution``, which libraries run, and composites with TensorFlow's names.

Channels are last: images are (batch, *size, channels) with one to three spatial axes, filters
(*window, channels / groups, filters), as in TensorFlow. The composites also take channels first.
The gradients are in `passkit.ops.convolution_gradients`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import OpPattern, register_op
from passkit.ops.composites import composite
from passkit.ops.helpers import common_dtype, make, parse_extents
from passkit.ops.layouts import LAST, channels_first, check_spatial_rank, from_last, to_last
from passkit.ops.window_geometry import (
    WINDOW_PARAMS,
    WindowGeometry,
    absorb_padding,
    dilated_lengths,
    pad_image,
    padding_pairs,
    per_axis,
    spatial_sizes,
    window_geometry,
)
from passkit.values.size import Extent, Shape

if TYPE_CHECKING:
    from passkit.ast import Convolution

CONVOLUTION_PARAMS = {**WINDOW_PARAMS, "groups": 1}
"""The parameters of all convolutions, with their defaults."""


def convolution_params(node: Node) -> dict[str, Any]:
    """Return the parameters of a node that all convolutions have, to pass on to another one.

    These are strides, dilations, padding and groups, by name.
    """
    return {k: node.params[k] for k in CONVOLUTION_PARAMS}


# convolution.


convolution = register_op(
    "convolution",
    num_inputs=2,
    params=CONVOLUTION_PARAMS,
    doc="the sums of products of the filter and the elements under each window: (batch, *size, "
    "channels), (*window, channels / groups, filters) -> (batch, *result, filters)",
)


def filter_window(node: Node, filters: Shape, count: int) -> tuple[int, ...]:
    """Return the window of a filter, its extents along the spatial axes.

    Args:
        node: The node to name in errors.
        filters: Shape of the filter, (*window, channels / groups, filters).
        count: Number of spatial axes.

    Raises:
        ShapeError: If the filter has another rank, or any of its extents is symbolic.
    """
    if len(filters) != count + 2:
        raise ShapeError(
            f"{node.where} needs a filter of rank {count + 2}, (*window, channels / groups, "
            f"filters), got {show_shape(filters)}"
        )
    if any(not isinstance(n, int) for n in filters):
        raise ShapeError(
            f"{node.where} needs a filter whose shape is known, got {show_shape(filters)}"
        )
    return tuple(int(n) for n in filters[:-2])


def group_count(node: Node, filters: Shape) -> int:
    """Return the parameter ``groups`` of a node.

    Args:
        node: A convolution.
        filters: A shape whose last extent is the number of filters.

    Raises:
        ShapeError: If ``groups`` is no int >= 1 (a bool is none) that divides the number of
            filters, or that number is symbolic.
    """
    groups = node.params["groups"]
    if type(groups) is not int or groups < 1 or int(filters[-1]) % groups:
        raise ShapeError(
            f"{node.where} needs groups that divide {filters[-1]} filters, got {groups!r}"
        )
    return groups


def _convolution_geometry(node: Node, x: Shape, filters: Shape) -> WindowGeometry:
    """Return the positions of windows of shape ``filters`` in an image of shape ``x``.

    Raises: ShapeError if image and filter do not fit, or a parameter of ``node`` is invalid.
    """
    size = spatial_sizes(node, x)
    window = filter_window(node, filters, len(size))
    groups = group_count(node, filters)
    in_groups = f", {filters[-2]} in each of {groups} groups," if groups > 1 else ""
    agree(node, x[-1], filters[-2] * groups, f"channels of input and filter{in_groups}")
    return window_geometry(node, size, window)


def _convolution_shape(node: Node, x: Shape, filters: Shape) -> Shape:
    """Infer the shape (batch, *result, filters) from ``x``, the image's, and ``filters``.

    Raises: ShapeError if they do not fit, or a parameter of ``node`` is invalid.
    """
    geometry = _convolution_geometry(node, x, filters)
    return (x[0], *geometry.result, filters[-1])


def _contract_of_node(node: Node) -> Convolution:
    """Return the description of a convolution for libraries (FContract).

    ``node`` has the parameters ``dilations``, ``groups``, ``padding`` and ``strides``.

    Raises: ShapeError if a rank is unknown, image and filter do not fit, or the number of channels
    is symbolic.
    """
    x, filters = (known_shape(e) for e in node.inputs)
    geometry = _convolution_geometry(node, x, filters)
    return convolution_contract(x, geometry, int(filters[-1]), node.params["groups"])


def convolution_contract(
    x: Shape, geometry: WindowGeometry, filters: int, groups: int
) -> Convolution:
    """Describe a convolution to the planner, always with three spatial axes.

    Missing axes have length 1. They are put in front of two axes and around a single one, which so
    takes the position of the rows, along which work is split.

    Args:
        x: Shape of the image, (batch, *size, channels); channels are a number.
        geometry: Positions of the windows.
        filters: Number of filters.
        groups: Number of groups.

    Raises:
        ShapeError: If the number of channels is symbolic.
    """
    missing = 3 - len(geometry.size)
    front, back = (1, 1) if missing == 2 else (missing, 0)

    def three_axes(values: tuple[Any, ...], filler: int) -> tuple[Any, ...]:
        """Return values of one to three axes for three axes, with ``filler`` for missing ones."""
        return ((filler,) * front) + values + ((filler,) * back)

    return ast.Convolution(
        batch=x[0],
        size=three_axes(geometry.size, 1),
        channels=int(x[-1]),
        filters=filters,
        window=three_axes(geometry.window, 1),
        result=three_axes(geometry.result, 1),
        stride=three_axes(geometry.stride, 1),
        before=three_axes(geometry.before, 0),
        dilation=three_axes(geometry.dilation, 1),
        groups=groups,
    )


def _compute_convolution(node: Node, x: Any, filters: Any) -> Any:
    """Compute a convolution with NumPy in float64, rounded once to the dtype of ``x``, the image.

    ``node`` has the parameters ``dilations``, ``groups``, ``padding`` and ``strides``. The result
    is a new array.

    Raises: ShapeError if image and filter do not fit, MemoryError if the padded image is too large.
    """
    geometry = _convolution_geometry(node, x.shape, filters.shape)
    groups = node.params["groups"]
    result = tuple(int(n) for n in geometry.result)
    padded = pad_image(x, geometry)
    out = np.zeros((x.shape[0], *result, filters.shape[-1]))
    group_channels, group_filters = filters.shape[-2], filters.shape[-1] // groups
    for tap in np.ndindex(*geometry.window):
        covered = padded[(slice(None), *window_slices(geometry, tap, result))]
        for g in range(groups):
            channels = slice(g * group_channels, (g + 1) * group_channels)
            outputs = slice(g * group_filters, (g + 1) * group_filters)
            out[..., outputs] += covered[..., channels] @ filters[tap][:, outputs].astype(
                np.float64
            )
    return out.astype(x.dtype)


def window_slices(
    geometry: WindowGeometry, tap: tuple[int, ...], result: tuple[int, ...]
) -> list[slice]:
    """Return slices of the padded spatial axes: the elements at one position of all windows.

    Args:
        geometry: Strides and dilations of the windows.
        tap: The position in a window.
        result: Number of windows along each axis.
    """
    return [
        slice(k * d, k * d + (o - 1) * s + 1 if o else 0, s)
        for k, d, o, s in zip(tap, geometry.dilation, result, geometry.stride, strict=True)
    ]


def _simplify_convolution(node: Node) -> Entry | None:
    """Return a convolution that absorbs zeros which the image is padded with, or None.

    None if nothing can be absorbed, such as padding by another value. ``node`` has the parameters
    ``dilations``, ``padding`` and ``strides``.

    Raises: ShapeError if the rank of an input is unknown or the filter has a symbolic extent.
    """
    filters = known_shape(node.inputs[1])
    return absorb_padding(node, filter_window(node, filters, len(filters) - 2))


def _convolution_gradient(node: Node, dy: Entry) -> list[Entry]:
    """Return the gradients by image and filter, as the operators that libraries have for them.

    ``node`` is the forward node; ``dy`` is the gradient of its output.

    Raises: ShapeError if the rank of an input is unknown.
    """
    x, filters = node.inputs
    params, shape = convolution_params(node), known_shape(x)
    size, (*window, group_channels, _) = shape[1:-1], known_shape(filters)
    if not isinstance(shape[-1], int):  # the number of channels is known by the filter
        x = make("reshape", x, shape=(*shape[:-1], group_channels * params["groups"]))
    return [
        make("convolution_backprop_input", filters, dy, size=size, **params),
        make("convolution_backprop_filter", x, dy, window=window, **params),
    ]


convolution.set_attr("FInferShape", _convolution_shape)
convolution.set_attr("FInferType", common_dtype("f"))
convolution.set_attr("FContract", _contract_of_node)
convolution.set_attr("FCompute", _compute_convolution)
convolution.set_attr("FSimplify", _simplify_convolution)
convolution.set_attr("FGradient", _convolution_gradient)
convolution.set_attr("TOpPattern", OpPattern.CONTRACT)
convolution.set_attr("TOpCost", "expensive")
convolution.set_attr("TLibraryCall", "convolution")


# conv1d, conv2d, conv3d and their transposes.


def _expand_conv(count: int) -> Callable[..., Entry]:
    """Return the FExpand of a convolution with ``count`` spatial axes and a data format."""

    def expand(node: Node, x: Entry, filters: Entry) -> Entry:
        """Expand to ``convolution``, channels last.

        ``node`` has the parameter ``data_format``.

        Raises: ShapeError for another rank of image or filter, or if they do not fit or a parameter
        is invalid; GraphError for an unknown ``data_format``; DTypeError if the dtypes differ.
        """
        check_spatial_rank(node, x, count)
        first = channels_first(node, count)
        out = make("convolution", to_last(x, first), filters, **convolution_params(node))
        return from_last(out, first)

    return expand


def _expand_conv_transpose(count: int) -> Callable[..., Entry]:
    """Return the FExpand of a transposed convolution: the gradient of one by its image.

    It has ``count`` spatial axes.
    """

    def expand(node: Node, x: Entry, filters: Entry) -> Entry:
        """Expand to ``convolution_backprop_input``, with the channels last; ``x`` is its dy.

        ``node`` has the parameters ``data_format``, ``dilations``, ``output_padding``,
        ``output_shape``, ``padding`` and ``strides``.

        Raises: ShapeError for another rank, an output size that does not fit, or another parameter
        that is invalid; GraphError for an unknown ``data_format``.
        """
        check_spatial_rank(node, x, count)
        first = channels_first(node, count)
        dy = to_last(x, first)
        window = filter_window(node, known_shape(filters), count)
        size = _transposed_size(node, known_shape(dy)[1:-1], window)
        params = convolution_params(node)
        out = make("convolution_backprop_input", filters, dy, size=size, **params)
        return from_last(out, first)

    return expand


def _transposed_size(
    node: Node, size: tuple[Extent, ...], window: tuple[int, ...]
) -> tuple[Extent, ...]:
    """Return the spatial extents of the image whose convolution has ``size``.

    Several may do: the parameter ``output_shape`` states them, with batch and channels or without,
    and is not checked here; if it is None, ``output_padding`` is added to the smallest.

    Args:
        node: The node, with these parameters and those of the windows.
        size: Spatial extents of the input.
        window: The extents of the filter's window.

    Raises:
        ShapeError: If ``output_padding`` is not below the strides, the padding cuts off more than
            there is, or a parameter is invalid.
    """
    output_shape = node.params["output_shape"]
    count = len(size)
    if output_shape is not None:
        extents = parse_extents(node, output_shape, "output_shape")
        return extents[1:-1] if len(extents) == count + 2 else extents
    stride, dilation = per_axis(node, "strides", count), per_axis(node, "dilations", count)
    extra = per_axis(node, "output_padding", count, 0)
    if any(e >= s for e, s in zip(extra, stride, strict=True)):
        raise ShapeError(
            f"{node.where} needs an output_padding below the strides {stride}, got {extra}: the "
            f"convolution of a size beyond that has more windows"
        )
    padding = node.params["padding"]
    if padding == "SAME":
        return tuple(n * s + e for n, s, e in zip(size, stride, extra, strict=True))
    pairs = padding_pairs(node, 0 if padding == "VALID" else padding, count)
    lengths = dilated_lengths(window, dilation)
    sizes = tuple(
        (n - 1) * s + r - sum(pair) + e
        for n, s, r, pair, e in zip(size, stride, lengths, pairs, extra, strict=True)
    )
    if any(isinstance(n, int) and n < 0 for n in sizes):
        raise ShapeError(
            f"{node.where} cuts the padding {padding!r} off a result that is smaller: its size "
            f"would be {show_shape(sizes)}; pad less"
        )
    return sizes


for _count in (1, 2, 3):
    _data_format = LAST[_count][0]
    composite(
        f"conv{_count}d",
        inputs=["input", "filter"],
        expand=_expand_conv(_count),
        doc=f"the convolution over {_count} spatial axes with a filter of shape (*window, "
        "channels / groups, filters), in the layout data_format",
        params={**CONVOLUTION_PARAMS, "data_format": _data_format},
    )
    composite(
        f"conv{_count}d_transpose",
        inputs=["input", "filter"],
        expand=_expand_conv_transpose(_count),
        doc=f"the transpose of conv{_count}d: (batch, *result, filters) and its filter -> (batch, "
        "*size, channels); output_shape or output_padding chooses among the sizes that fit",
        params={
            **CONVOLUTION_PARAMS,
            "data_format": _data_format,
            "output_shape": None,
            "output_padding": 0,
        },
    )


# Depthwise and separable convolutions.


def _depthwise_conv2d(node: Node, x: Entry, filters: Entry) -> Entry:
    """Expand depthwise_conv2d to a convolution with a group for each channel.

    Channel c and multiplier m give filter c * multipliers + m. Source: tf.nn.depthwise_conv2d.
    ``node`` has the parameter ``data_format``.

    Raises:
        ShapeError: If image or filter has not rank 4, they do not fit, an extent of the filter is
            symbolic, or a parameter is invalid.
        GraphError: If ``data_format`` is unknown.
    """
    check_spatial_rank(node, x, 2)
    first = channels_first(node, 2)
    image = to_last(x, first)
    shape = known_shape(filters)
    if len(shape) != 4:
        raise ShapeError(
            f"{node.where} needs a filter (height, width, channels, multiplier), got "
            f"{show_shape(shape)}"
        )
    window, count = filter_window(node, shape, 2), int(shape[2]) * int(shape[3])
    flat = make("reshape", filters, shape=(*window, 1, count))
    params = {k: node.params[k] for k in WINDOW_PARAMS}
    out = make("convolution", image, flat, groups=int(shape[2]), **params)
    return from_last(out, first)


def _separable_conv2d(node: Node, x: Entry, depthwise: Entry, pointwise: Entry) -> Entry:
    """Expand separable_conv2d to a depthwise and a pointwise convolution.

    ``node`` has the parameter ``data_format``.

    Raises: ShapeError if image and filters do not fit, an extent of a filter is symbolic, or a
    parameter is invalid; GraphError for an unknown ``data_format``.
    """
    params = {k: node.params[k] for k in (*WINDOW_PARAMS, "data_format")}
    channels = make("depthwise_conv2d", x, depthwise, **params)
    return make("conv2d", channels, pointwise, data_format=node.params["data_format"])


composite(
    "depthwise_conv2d",
    inputs=["input", "filter"],
    expand=_depthwise_conv2d,
    doc="the convolution of each channel with its own filters, which have the shape (height, "
    "width, channels, multiplier); there are channels * multiplier results",
    params={**WINDOW_PARAMS, "data_format": "NHWC"},
)
composite(
    "separable_conv2d",
    inputs=["input", "depthwise_filter", "pointwise_filter"],
    expand=_separable_conv2d,
    doc="depthwise_conv2d, then a 1 × 1 convolution with the filter (1, 1, channels * multiplier, "
    "filters)",
    params={**WINDOW_PARAMS, "data_format": "NHWC"},
)
