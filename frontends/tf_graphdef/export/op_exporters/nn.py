"""Exporters of convolutions, pools, normalization and image resizing."""

from __future__ import annotations

from typing import Any

from passkit.frontends.tf_graphdef.export.graphdef_writer import FLOAT32, INT32, NodeOutput
from passkit.frontends.tf_graphdef.export.kernel_types import kernel_dtype
from passkit.frontends.tf_graphdef.export.registry import ExportCall, ExportResult, op_exporter
from passkit.graph.node import Node
from passkit.ops.convolution_gradients import window_products_as_matmul
from passkit.ops.convolutions import filter_window
from passkit.ops.window_geometry import WindowGeometry, per_axis, window_geometry
from passkit.values.size import Extent, Shape

_LAYOUT = {2: "NHWC", 3: "NDHWC"}


def _for_all_axes(ones: tuple[int, ...]) -> list[int]:
    """Return ``ones``, numbers for the spatial axes, with a 1 before them and behind them.

    These are the numbers for batch and channels.
    """
    return [1, *ones, 1]


def _padded(call: ExportCall, x: NodeOutput) -> NodeOutput:
    """Write ``x`` with the node's explicit zero padding; unchanged if that is 0.

    The parameter ``padding`` must be a number or a tuple of numbers or pairs, not a text. ``call``
    is the node to write.
    """
    padding, count = call.params["padding"], len(call.shape()) - 2
    paddings = padding if isinstance(padding, tuple) else (padding,) * count
    pads = [(0, 0), *(p if isinstance(p, tuple) else (p, p) for p in paddings), (0, 0)]
    if not any(map(any, pads)):
        return x
    return call.op("PadV2", x, call.const(pads), call.const(0, x.dtype), Tpaddings=INT32)


@op_exporter("convolution")
def _convolution(call: ExportCall, x: NodeOutput, filters: NodeOutput) -> ExportResult:
    """Write `convolution` of ``x`` with ``filters`` as Conv2D or Conv3D.

    One spatial axis becomes two. Explicit padding is written as PadV2 before it. For filters of one
    channel see `_convolve_2d`. None for Conv3D with groups or dilations. ``call`` is the node to
    write, of floats.

    Raises:
        ShapeError: If a rank or an extent of the filter is unknown.
    """
    size = call.shape()[1:-1]
    window = filter_window(call.node, call.shape(1), len(size))
    windows = window_geometry(call.node, size, window)
    padding_param = call.params["padding"]
    padding = padding_param if padding_param in ("SAME", "VALID") else "VALID"
    padded_input = x if padding == padding_param else _padded(call, x)
    if len(size) == 3:
        return _convolve_3d(call, padded_input, filters, windows, padding)
    if len(size) == 2:
        return _convolve_2d(call, padded_input, filters, windows, padding, is_result=True)
    one = call.const(1)
    rows = call.op("ExpandDims", padded_input, one, Tdim=INT32)
    taps = call.op("ExpandDims", filters, call.const(0), Tdim=INT32)
    plane = _convolve_2d(call, rows, taps, windows, padding, is_result=False)
    return call.result("Squeeze", plane, squeeze_dims=[1])


@op_exporter("window_products")
def _window_products(call: ExportCall, x: NodeOutput, y: NodeOutput) -> ExportResult:
    """Write `window_products` as a matrix product of the windows of ``x`` with ``y``.

    ``call`` is the node to write, ``x`` the tensor of the images, ``y`` one of the gradient.

    Raises:
        ModelError: If an operator of the product has no equivalent in TensorFlow.
        ShapeError: If the rank of an input is unknown.
    """
    return call.expanded(lambda *operands: window_products_as_matmul(call.node, *operands), x, y)


def _convolve_2d(
    call: ExportCall,
    x: NodeOutput,
    filters: NodeOutput,
    windows: WindowGeometry,
    padding: str,
    is_result: bool,
) -> NodeOutput:
    """Write a convolution over two axes as Conv2D.

    If each filter reads one of several channels, the strides are equal and nothing is dilated, it
    becomes DepthwiseConv2dNative.

    Args:
        call: The node, over one or two spatial axes.
        x: Images (batch, height, width, channels), padded unless ``padding`` is SAME.
        filters: Filter (height, width, channels per group, filters).
        windows: Strides and dilations.
        padding: SAME or VALID.
        is_result: Whether the node gets the operator's name.

    Returns:
        The images (batch, height, width, filters).
    """
    strides = (1,) * (2 - len(windows.stride)) + windows.stride
    dilations = (1,) * (2 - len(windows.dilation)) + windows.dilation
    *window, group_channels, count = call.shape(1)
    attrs: dict[str, Any] = {
        "strides": _for_all_axes(strides),
        "dilations": _for_all_axes(dilations),
        "padding": padding,
        "data_format": "NHWC",
    }
    groups = call.params["groups"]
    if groups > 1 and group_channels == 1 and strides[0] == strides[1] and dilations == (1, 1):
        leading: tuple[Extent, ...] = (1,) * (2 - len(window)) + tuple(window)
        shape: Shape = (*leading, groups, count // groups)
        taps = call.reshaped(filters, shape)
        return call.scope.op("DepthwiseConv2dNative", x, taps, is_result=is_result, **attrs)
    return call.scope.op("Conv2D", x, filters, is_result=is_result, use_cudnn_on_gpu=True, **attrs)


def _convolve_3d(
    call: ExportCall, x: NodeOutput, filters: NodeOutput, windows: WindowGeometry, padding: str
) -> ExportResult:
    """Write a convolution over three axes as Conv3D; None for groups or dilations.

    Args:
        call: The node.
        x: Volumes (batch, depth, height, width, channels), padded unless ``padding`` is SAME.
        filters: Filter (depth, height, width, channels, filters).
        windows: Strides and dilations.
        padding: SAME or VALID.
    """
    if call.params["groups"] != 1 or windows.dilation != (1, 1, 1):
        return None
    return call.result(
        "Conv3D",
        x,
        filters,
        strides=_for_all_axes(windows.stride),
        dilations=[1] * 5,
        padding=padding,
        data_format="NDHWC",
    )


def _pool(call: ExportCall, x: NodeOutput, op: str) -> ExportResult:
    """Write a pool over two axes; channels that are second are moved to the end and back.

    Averages of 16-bit floats are computed in float32.

    Args:
        call: The node.
        x: Images.
        op: MaxPool or AvgPool.

    Returns:
        The result. None for dilations, ``count_include_pad``, explicit padding that windows read,
        padding SAME with a stride larger than the window, and dtypes without a kernel.

    Raises:
        ShapeError: If the rank of the input is unknown.
    """
    node, channels_first = call.node, call.params["data_format"] in ("NCHW", "channels_first")
    shape = call.shape()
    size = shape[2:] if channels_first else shape[1:-1]
    window = per_axis(node, "window", 2)
    strides = window if call.params["strides"] is None else per_axis(node, "strides", 2)
    padding = call.params["padding"]
    if kernel_dtype(op, x.dtype) is None or per_axis(node, "dilations", 2) != (1, 1):
        return None
    if call.params.get("count_include_pad"):
        return None
    if padding not in ("SAME", "VALID"):
        if not window_geometry(node, size, window, strides).reads_no_padding:
            return None
        padding = "VALID"
    if padding == "SAME" and any(w < s for w, s in zip(window, strides, strict=True)):
        return None
    attrs = {"ksize": _for_all_axes(window), "strides": _for_all_axes(strides), "padding": padding}
    if channels_first:
        x = call.op("Transpose", x, call.const([0, 2, 3, 1]), Tperm=INT32)
    is_narrow = op == "AvgPool" and x.dtype.nbytes == 2
    operand = call.scope.cast(x, FLOAT32) if is_narrow else x
    is_result = not channels_first and not is_narrow
    pooled = call.scope.op(op, operand, data_format="NHWC", is_result=is_result, **attrs)
    if is_narrow:
        pooled = call.scope.cast(pooled, x.dtype, is_result=not channels_first)
    if not channels_first:
        return pooled
    return call.result("Transpose", pooled, call.const([0, 3, 1, 2]), Tperm=INT32)


@op_exporter("max_pool2d")
def _max_pool(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `max_pool2d` as MaxPool; see `_pool`.

    ``call`` is the node to write, ``x`` the tensor of its input.

    Returns:
        The result; None for dilations, explicit padding that windows read, padding SAME with a
        stride larger than the window, and dtypes without a kernel.

    Raises:
        ShapeError: If the rank of the input is unknown.
    """
    return _pool(call, x, "MaxPool")


@op_exporter("avg_pool2d")
def _avg_pool(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write `avg_pool2d` as AvgPool; see `_pool`.

    ``call`` is the node to write, ``x`` the tensor of its input.

    Returns:
        The result; None for dilations, ``count_include_pad``, explicit padding that windows read,
        padding SAME with a stride larger than the window, and dtypes without a kernel.

    Raises:
        ShapeError: If the rank of the input is unknown.
    """
    return _pool(call, x, "AvgPool")


def _is_plain(node: Node) -> bool:
    """Return whether the inputs of ``node`` are float32 images, and vectors of their last axis.

    The images have rank 4. The vectors, all inputs but the first, must have an element for each
    channel; their dtype is not checked.
    """
    shapes = [e.shape for e in node.inputs]
    first = shapes[0]
    if first is None or len(first) != 4 or node.inputs[0].dtype is not FLOAT32:
        return False
    return all(s == (first[-1],) for s in shapes[1:])


@op_exporter("batch_norm")
def _batch_norm(call: ExportCall, x: NodeOutput, *rest: NodeOutput) -> ExportResult:
    """Write `batch_norm` of float32 images, channels last, as FusedBatchNormV3; None for others.

    ``call`` is the node to write, ``x`` the tensor of the images, and ``rest`` are those of scale,
    offset, mean and variance.
    """
    if not _is_plain(call.node) or call.params["axis"] not in (-1, 3):
        return None
    return _fused(call, x, *rest)[0]


def _fused(call: ExportCall, *inputs: NodeOutput) -> tuple[NodeOutput, ...]:
    """Write FusedBatchNormV3 for inference and return its first three results.

    These are the normalized images, the mean and the variance. ``call`` is the node to write.
    """
    attrs = {"T": FLOAT32, "U": FLOAT32, "epsilon": float(call.params["epsilon"])}
    return call.scope.nodes(
        "FusedBatchNormV3",
        inputs,
        [FLOAT32] * 3,
        True,
        **attrs,
        data_format="NHWC",
        is_training=False,
        exponential_avg_factor=1.0,
    )


@op_exporter("fused_batch_norm")
def _fused_batch_norm(call: ExportCall, x: NodeOutput, *rest: NodeOutput) -> ExportResult:
    """Write `fused_batch_norm` as FusedBatchNormV3; return images, mean and variance.

    None in training, and for other than float32 NHWC images. ``call`` is the node to write, ``x``
    the tensor of the images, and ``rest`` are those of scale, offset, mean and variance.
    """
    if not _is_plain(call.node) or call.params["is_training"]:
        return None
    if call.params["data_format"] != "NHWC":
        return None
    return _fused(call, x, *rest)


@op_exporter("resize_nearest", "resize_bilinear")
def _resize(call: ExportCall, x: NodeOutput) -> ExportResult:
    """Write a resize of NHWC images as ResizeNearestNeighbor or ResizeBilinear.

    None for other ranks and axes, for dtypes other than float32 if bilinear, since TensorFlow
    interpolates in float32, and for dtypes without a kernel if nearest. The size is a constant.
    ``call`` is the node to write, ``x`` the tensor of its input.

    Raises:
        ShapeError: If the rank of the result is unknown.
    """
    axes = tuple(a % len(call.out) for a in call.params["axes"])
    bilinear = call.name == "resize_bilinear"
    if len(call.out) != 4 or axes != (1, 2) or (bilinear and x.dtype is not FLOAT32):
        return None
    if not bilinear and kernel_dtype("ResizeNearestNeighbor", x.dtype) is None:
        return None
    size = call.const(call.out[1:3])
    flags = {k: bool(call.params[k]) for k in ("align_corners", "half_pixel_centers")}
    op = "ResizeBilinear" if bilinear else "ResizeNearestNeighbor"
    return call.result(op, x, size, **flags)
