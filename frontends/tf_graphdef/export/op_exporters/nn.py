"""Convolutions, pools, normalisation and images, where TensorFlow's operators mean the same."""

from __future__ import annotations

from typing import Any

from passkit.frontends.tf_graphdef.export.kernels import computed_as
from passkit.frontends.tf_graphdef.export.table import Call, Result, row
from passkit.frontends.tf_graphdef.export.writer import FLOAT32, INT32, Tensor
from passkit.graph.node import Node
from passkit.ops.convolution_gradients import window_products_as_matmul
from passkit.ops.convolutions import filter_window
from passkit.ops.window_geometry import WindowGeometry, per_axis, window_geometry
from passkit.values.size import Extent, Shape

_LAYOUT = {2: "NHWC", 3: "NDHWC"}


def _around(ones: tuple[int, ...]) -> list[int]:
    """A number for each spatial axis, with those for batch and channels."""
    return [1, *ones, 1]


def _padded(call: Call, x: Tensor) -> Tensor:
    """``x`` with the zeros around it that its padding says in numbers."""
    given, count = call.params["padding"], len(call.shape()) - 2
    many = given if isinstance(given, tuple) else (given,) * count
    pads = [(0, 0), *(p if isinstance(p, tuple) else (p, p) for p in many), (0, 0)]
    if not any(map(any, pads)):
        return x
    return call.op("PadV2", x, call.const(pads), call.const(0, x.dtype), Tpaddings=INT32)


@row("convolution")
def _convolution(call: Call, x: Tensor, filters: Tensor) -> Result:
    """One spatial axis is the second of two; padding in numbers is written before."""
    size = call.shape()[1:-1]
    window = filter_window(call.node, call.shape(1), len(size))
    found = window_geometry(call.node, size, window)
    given = call.params["padding"]
    padding = given if given in ("SAME", "VALID") else "VALID"
    whole = x if padding == given else _padded(call, x)
    if len(size) == 3:
        return _volume(call, whole, filters, found, padding)
    if len(size) == 2:
        return _plane(call, whole, filters, found, padding, last=True)
    one = call.const(1)
    row_ = call.op("ExpandDims", whole, one, Tdim=INT32)
    taps = call.op("ExpandDims", filters, call.const(0), Tdim=INT32)
    made = _plane(call, row_, taps, found, padding, last=False)
    return call.result("Squeeze", made, squeeze_dims=[1])


@row("window_products")
def _window_products(call: Call, x: Tensor, y: Tensor) -> Result:
    return call.expanded(lambda *operands: window_products_as_matmul(call.node, *operands), x, y)


def _plane(
    call: Call, x: Tensor, filters: Tensor, found: WindowGeometry, padding: str, last: bool
) -> Tensor:
    """In two spatial axes; a filter for each channel by itself is a depthwise convolution."""
    strides = (1,) * (2 - len(found.stride)) + found.stride
    dilations = (1,) * (2 - len(found.dilation)) + found.dilation
    *window, own, count = call.shape(1)
    attrs: dict[str, Any] = {
        **{"strides": _around(strides), "dilations": _around(dilations), "padding": padding},
        "data_format": "NHWC",
    }
    groups = call.params["groups"]
    if groups > 1 and own == 1 and strides[0] == strides[1] and dilations == (1, 1):
        whole: tuple[Extent, ...] = (1,) * (2 - len(window)) + tuple(window)
        shape: Shape = (*whole, groups, count // groups)
        taps = call.reshaped(filters, shape)
        return call.scope.op("DepthwiseConv2dNative", x, taps, last=last, **attrs)
    return call.scope.op("Conv2D", x, filters, last=last, use_cudnn_on_gpu=True, **attrs)


def _volume(call: Call, x: Tensor, filters: Tensor, found: WindowGeometry, padding: str) -> Result:
    if call.params["groups"] != 1 or found.dilation != (1, 1, 1):
        return None
    return call.result(
        "Conv3D", x, filters, strides=_around(found.stride), dilations=[1] * 5, padding=padding,
        data_format="NDHWC",
    )  # fmt: skip


def _pool(call: Call, x: Tensor, op: str) -> Result:
    """Over two spatial axes; channels that come second are moved to the end and back."""
    node, first = call.node, call.params["data_format"] in ("NCHW", "channels_first")
    shape = call.shape()
    size = shape[2:] if first else shape[1:-1]
    window = per_axis(node, "window", 2)
    strides = window if call.params["strides"] is None else per_axis(node, "strides", 2)
    padding = call.params["padding"]
    if computed_as(op, x.dtype) is None or per_axis(node, "dilations", 2) != (1, 1):
        return None
    if call.params.get("count_include_pad"):
        return None
    if padding not in ("SAME", "VALID"):
        if not window_geometry(node, size, window, strides).reads_no_padding:
            return None
        padding = "VALID"
    if padding == "SAME" and any(w < s for w, s in zip(window, strides, strict=True)):
        return None
    attrs = {"ksize": _around(window), "strides": _around(strides), "padding": padding}
    if first:
        x = call.op("Transpose", x, call.const([0, 2, 3, 1]), Tperm=INT32)
    narrow = op == "AvgPool" and x.dtype.nbytes == 2
    given = call.scope.cast(x, FLOAT32) if narrow else x
    last = not first and not narrow
    made = call.scope.op(op, given, data_format="NHWC", last=last, **attrs)
    if narrow:
        made = call.scope.cast(made, x.dtype, last=not first)
    if not first:
        return made
    return call.result("Transpose", made, call.const([0, 3, 1, 2]), Tperm=INT32)


@row("max_pool2d")
def _max_pool(call: Call, x: Tensor) -> Result:
    return _pool(call, x, "MaxPool")


@row("avg_pool2d")
def _avg_pool(call: Call, x: Tensor) -> Result:
    return _pool(call, x, "AvgPool")


def _is_plain(node: Node) -> bool:
    """Whether images NHWC of float32 are normalised by vectors of their channels."""
    shapes = [e.shape for e in node.inputs]
    first = shapes[0]
    if first is None or len(first) != 4 or node.inputs[0].dtype is not FLOAT32:
        return False
    return all(s == (first[-1],) for s in shapes[1:])


@row("batch_norm")
def _batch_norm(call: Call, x: Tensor, *rest: Tensor) -> Result:
    """Images are normalised by one operator, all else as it expands."""
    if not _is_plain(call.node) or call.params["axis"] not in (-1, 3):
        return None
    return _fused(call, x, *rest)[0]


def _fused(call: Call, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Of its six results the last three are for gradients."""
    attrs = {"T": FLOAT32, "U": FLOAT32, "epsilon": float(call.params["epsilon"])}
    return call.scope.nodes(
        "FusedBatchNormV3", inputs, [FLOAT32] * 3, True, **attrs, data_format="NHWC",
        is_training=False, exponential_avg_factor=1.0,
    )  # fmt: skip


@row("fused_batch_norm")
def _fused_batch_norm(call: Call, x: Tensor, *rest: Tensor) -> Result:
    """With the statistics given."""
    if not _is_plain(call.node) or call.params["is_training"]:
        return None
    if call.params["data_format"] != "NHWC":
        return None
    return _fused(call, x, *rest)


@row("resize_nearest", "resize_bilinear")
def _resize(call: Call, x: Tensor) -> Result:
    """TensorFlow gives float32 between pixels, so floats of other types are written out."""
    axes = tuple(a % len(call.out) for a in call.params["axes"])
    bilinear = call.name == "resize_bilinear"
    if len(call.out) != 4 or axes != (1, 2) or (bilinear and x.dtype is not FLOAT32):
        return None
    if not bilinear and computed_as("ResizeNearestNeighbor", x.dtype) is None:
        return None
    size = call.const(call.out[1:3])
    flags = {k: bool(call.params[k]) for k in ("align_corners", "half_pixel_centers")}
    op = "ResizeBilinear" if bilinear else "ResizeNearestNeighbor"
    return call.result(op, x, size, **flags)
