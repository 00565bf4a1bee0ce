"""Convolutions and pools, by TensorFlow's arguments."""

from __future__ import annotations

from typing import Any

from passkit.errors import SettingError
from passkit.frontends.tinyflow.argument_checks import (
    reject_arguments,
    renamed_argument,
    require_float,
    require_int,
    require_int_rows,
    require_ints,
)
from passkit.frontends.tinyflow.deferred_calls import (
    defer_call,
    defer_if_unranked,
    is_unranked,
    runtime_size,
)
from passkit.frontends.tinyflow.shapes import parse_shape, require_shape
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    as_entry,
    call_operator,
    convert_to_tensor,
    unique_name,
)
from passkit.graph.op import get_op
from passkit.ops.helpers import make


def parse_spatial(function: str, argument: str, value: Any, data_format: str) -> tuple[int, int]:
    """The two spatial numbers of a window, stride or dilation: of one, two or four that are given.

    Four are in the order of ``data_format``; (1, height, width, 1) is TinyFlow's order for both.
    Raises: SettingError where those of batch and channels are not 1.
    """
    numbers = require_ints(function, argument, value)
    if len(numbers) == 1:
        return numbers[0], numbers[0]
    if len(numbers) == 2:
        return numbers[0], numbers[1]
    spatial_axes = (2, 3) if data_format == "NCHW" else (1, 2)
    if len(numbers) == 4 and spatial_axes == (2, 3) and numbers[1] != 1 and numbers[3] == 1:
        spatial_axes = (1, 2)
    others = [n for k, n in enumerate(numbers) if k not in spatial_axes]
    if len(numbers) != 4 or others != [1, 1]:
        raise SettingError(
            f"{function} needs 1, 2 or 4 numbers as {argument}, those of batch and channels 1, got "
            f"{value}"
        )
    return numbers[spatial_axes[0]], numbers[spatial_axes[1]]


def parse_padding(function: str, padding: Any, data_format: str = "NHWC") -> Any:
    """SAME, VALID, or (before, after) for each axis, as passkit has it."""
    if isinstance(padding, str):
        if padding.upper() not in ("SAME", "VALID"):
            raise SettingError(f"{function} needs 'SAME' or 'VALID' as padding, got {padding!r}")
        return padding.upper()
    pairs = () if padding is None else require_int_rows(function, "padding", padding)
    if len(pairs) != 4:
        raise SettingError(
            f"{function} needs 'SAME', 'VALID' or four pairs as padding, got {padding!r}"
        )
    return pairs[2:] if data_format == "NCHW" else pairs[1:3]


@reject_arguments("one library is chosen for all", "use_cudnn_on_gpu")
def conv1d(
    value: Any = None,
    filters: Any = None,
    stride: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The convolution of sequences with a filter (width, channels, filters)."""
    layout = data_format or "NWC"
    if layout not in ("NWC", "NHWC", "NCW", "NCHW"):
        raise SettingError(f"conv1d needs 'NWC' or 'NCW' as data_format, got {data_format!r}")
    channels_first = layout in ("NCW", "NCHW")
    axis = 2 if channels_first else 1
    (step,) = require_ints("conv1d", "stride", 1 if stride is None else stride)
    (dilation,) = require_ints("conv1d", "dilations", 1 if dilations is None else dilations)
    x = make(
        "expand_dims",
        as_entry(renamed_argument("conv1d", "value", value, "input", input)),
        axis=axis,
    )
    params = {
        "strides": (1, step),
        "padding": parse_padding("conv1d", padding),
        "dilations": (1, dilation),
        "data_format": "NCHW" if channels_first else "NHWC",
    }
    out = make("conv2d", x, make("expand_dims", as_entry(filters), axis=0), **params)
    return call_operator("squeeze", "conv1d", name, out, axis=axis)


@reject_arguments("one library is chosen for all", "use_cudnn_on_gpu")
def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = None,
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
    *,
    num_filter: int | None = None,
    ksize: Any = None,
    no_bias: bool = True,
) -> Tensor:
    """The convolution of images with a filter (height, width, channels, filters).

    With TinyFlow's ``num_filter`` and ``ksize`` it is `convolution_layer`, which makes its filter.
    """
    if num_filter is not None:
        from passkit.frontends.tinyflow.nn.tinyflow_layers import convolution_layer  # it calls this

        layer_arguments: Any = {
            "no_bias": no_bias,
            "name": name,
            "data_format": data_format or "NCHW",
        }
        steps = 1 if strides is None else strides
        return convolution_layer(
            input, num_filter, ksize, steps, padding or "VALID", **layer_arguments
        )
    data_format = data_format or "NHWC"
    filter_tensor = renamed_argument("conv2d", "filter", filter, "filters", filters)
    x = convert_to_tensor(input)
    if (
        is_unranked(x) and as_entry(filter_tensor).shape is not None
    ):  # a run tells all but the channels
        full_name, count = unique_name(name, "Conv2D"), require_shape(as_entry(filter_tensor))[-1]
        sizes: list[Any] = [runtime_size(full_name, k) for k in range(4)]
        sizes[1 if data_format == "NCHW" else 3] = count
        arguments = {
            "input": x,
            "filter": filter_tensor,
            "strides": strides,
            "padding": padding,
            "data_format": data_format,
            "dilations": dilations,
        }
        return defer_call(conv2d, arguments, [(tuple(sizes), x.dtype)], full_name)[0]
    params = {
        "strides": parse_spatial(
            "conv2d", "strides", 1 if strides is None else strides, data_format
        ),
        "padding": parse_padding("conv2d", padding, data_format),
        "dilations": parse_spatial("conv2d", "dilations", dilations, data_format),
        "data_format": data_format,
    }
    return call_operator("conv2d", "Conv2D", name, x.entry, as_entry(filter_tensor), **params)


def conv2d_transpose(
    value: Any = None,
    filter: Any = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
    filters: Any = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of `conv2d`; its filter is (height, width, result's channels, channels)."""
    function = "conv2d_transpose"
    x = renamed_argument(function, "value", value, "input", input)
    filter_tensor = renamed_argument(function, "filter", filter, "filters", filters)
    sizes = None if output_shape is None else parse_shape(output_shape, function)
    params = {
        "strides": parse_spatial(
            function, "strides", 1 if strides is None else strides, data_format
        ),
        "padding": parse_padding(function, padding, data_format),
        "dilations": parse_spatial(function, "dilations", dilations or 1, data_format),
        "data_format": data_format,
        "output_shape": _spatial_part(sizes, data_format),
    }
    return call_operator(function, function, name, as_entry(x), as_entry(filter_tensor), **params)


def _spatial_part(shape: Any, data_format: str) -> Any:
    """Of an output's shape the two that a transposed convolution may choose."""
    if shape is None or len(shape) == 2:
        return shape
    return shape[2:] if data_format == "NCHW" else shape[1:3]


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """The convolution of each channel with its own filters (height, width, channels, count)."""
    function, layout = "depthwise_conv2d", data_format or "NHWC"
    dilation = renamed_argument(function, "rate", rate, "dilations", dilations)
    params = {
        "strides": parse_spatial(function, "strides", strides, layout),
        "padding": parse_padding(function, padding, layout),
        "dilations": parse_spatial(function, "dilations", dilation or 1, layout),
        "data_format": layout,
    }
    return call_operator(function, "depthwise", name, as_entry(input), as_entry(filter), **params)


def _pool_function(op: str, default: str) -> Any:
    def function(
        value: Any,
        ksize: Any,
        strides: Any,
        padding: Any = None,
        data_format: str | None = None,
        name: str | None = None,
        input: Any = None,
    ) -> Tensor:
        if padding is None:  # TinyFlow's call
            padding, data_format = "VALID", data_format or "NCHW"
        data_format = data_format or "NHWC"
        x = renamed_argument(default, "value", value, "input", input)
        params = {
            "window": parse_spatial(default, "ksize", ksize, data_format),
            "strides": parse_spatial(default, "strides", strides, data_format),
            "padding": parse_padding(default, padding, data_format),
            "data_format": data_format,
        }
        return call_operator(op, default, name, as_entry(x), **params)

    return function


max_pool = _pool_function("max_pool2d", "MaxPool")
max_pool.__doc__ = "The largest element under each window; without padding, TinyFlow's call."
avg_pool = _pool_function("avg_pool2d", "AvgPool")
avg_pool.__doc__ = "The mean of the elements under each window; padding does not count."


@defer_if_unranked("BiasAdd")
def bias_add(
    value: Any, bias: Any, data_format: str | None = None, name: str | None = None
) -> Tensor:
    """``value`` plus a number for each channel, which come last, or second with "NCHW"."""
    x, b = as_entry(value), as_entry(bias)
    if data_format not in (None, "NHWC", "NCHW", "N...C", "NC..."):
        raise SettingError(f"bias_add needs 'NHWC' or 'NCHW' as data_format, got {data_format!r}")
    if data_format in ("NCHW", "NC..."):
        after = len(require_shape(x, "bias_add")) - 2
        b = get_op("reshape")(b, shape=(require_shape(b)[0], *(1,) * after))
    return call_operator("add", "BiasAdd", name, x, b)


def xw_plus_b(x: Any, weights: Any, biases: Any, name: str | None = None) -> Tensor:
    """x @ weights + biases."""
    return call_operator(
        "add", "xw_plus_b", name, get_op("matmul")(as_entry(x), as_entry(weights)), as_entry(biases)
    )


def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """x / (bias + alpha * the sum of squares of channels near by) ** beta."""
    function = "local_response_normalization"
    params = {
        "depth_radius": require_int(function, "depth_radius", depth_radius),
        "bias": require_float(function, "bias", bias),
        "alpha": require_float(function, "alpha", alpha),
        "beta": require_float(function, "beta", beta),
    }
    return call_operator(function, "LRN", name, as_entry(input), **params)
