"""Convolution layers of ``tf.layers``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.frontends.tinyflow.argument_checks import require_int, require_ints
from passkit.frontends.tinyflow.layers.common import (
    ZEROS,
    VariableSpec,
    activate,
    add_bias,
    channel_axis,
    parse_layout,
    require_length,
)
from passkit.frontends.tinyflow.nn import convolutions
from passkit.frontends.tinyflow.scopes import variable_scope
from passkit.frontends.tinyflow.shapes import require_shape
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor
from passkit.values.size import Extent

SEQUENCE_LAYOUTS = {"NHWC": "NWC", "NCHW": "NCW"}
"""The layout of sequences for each layout of images."""


def conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = (1, 1),
    activation: Callable[[Tensor], Tensor] | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Compute activation(convolution of images + bias).

    Args:
        inputs: Images of shape (batch, height, width, channels), or (batch, channels, height,
            width).
        filters: The number of output channels.
        kernel_size: The size of the window, one int or (height, width).
        strides: The step of the window, one int or (height, width).
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        dilation_rate: The distance of the window's elements, one int or (height, width).
        activation: Applied to the result; None for none.
        use_bias: Whether there is a bias.
        kernel_initializer: The initial kernel, of shape (height, width, channels, filters).
        bias_initializer: The initial bias, of shape (filters).
        kernel_regularizer: Returns a loss for the kernel.
        bias_regularizer: Returns a loss for the bias.
        activity_regularizer: Returns a loss for the output.
        kernel_constraint: Applied to the kernel after each update.
        bias_constraint: Applied to the bias after each update.
        trainable: Whether optimizers change kernel and bias.
        name: The variable scope; "conv2d" by default.
        reuse: Whether to reuse the variables of an earlier call.

    Raises:
        ShapeError: If the number of channels is unknown.
        SettingError: For another padding or data_format.
    """
    x, layout = convert_to_tensor(inputs), parse_layout("conv2d", data_format)
    channels, filters = (
        require_length("conv2d", x, channel_axis(layout)),
        require_int("conv2d", "filters", filters),
    )
    window = convolutions.parse_spatial("conv2d", "kernel_size", kernel_size, layout)
    weights = VariableSpec(kernel_initializer, kernel_regularizer, kernel_constraint, trainable)
    biases = VariableSpec(bias_initializer, bias_regularizer, bias_constraint, trainable)
    with variable_scope(name, "conv2d", reuse=reuse):
        kernel = weights.get("kernel", [*window, channels, filters], x.dtype)
        output = convolutions.conv2d(
            x, kernel, strides, padding, data_format=layout, dilations=dilation_rate
        )
        output = add_bias(output, biases if use_bias else None, filters, layout)
        return activate(output, activation, activity_regularizer)


def conv1d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = 1,
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = 1,
    activation: Callable[[Tensor], Tensor] | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Compute activation(convolution of sequences + bias).

    Args:
        inputs: Sequences of shape (batch, steps, channels), or (batch, channels, steps).
        filters: The number of output channels.
        kernel_size: The length of the window.
        strides: The step of the window.
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        dilation_rate: The distance of the window's elements.
        activation: Applied to the result; None for none.
        use_bias: Whether there is a bias.
        kernel_initializer: The initial kernel, of shape (length, channels, filters).
        bias_initializer: The initial bias, of shape (filters).
        kernel_regularizer: Returns a loss for the kernel.
        bias_regularizer: Returns a loss for the bias.
        activity_regularizer: Returns a loss for the output.
        kernel_constraint: Applied to the kernel after each update.
        bias_constraint: Applied to the bias after each update.
        trainable: Whether optimizers change kernel and bias.
        name: The variable scope; "conv1d" by default.
        reuse: Whether to reuse the variables of an earlier call.

    Raises:
        ShapeError: If the number of channels is unknown.
        SettingError: For another padding or data_format.
    """
    x, layout = convert_to_tensor(inputs), parse_layout("conv1d", data_format)
    sequence_channel_axis = 1 if layout == "NCHW" else 2
    channels, filters = (
        require_length("conv1d", x, sequence_channel_axis),
        require_int("conv1d", "filters", filters),
    )
    (window,) = require_ints("conv1d", "kernel_size", kernel_size)
    weights = VariableSpec(kernel_initializer, kernel_regularizer, kernel_constraint, trainable)
    biases = VariableSpec(bias_initializer, bias_regularizer, bias_constraint, trainable)
    with variable_scope(name, "conv1d", reuse=reuse):
        kernel = weights.get("kernel", [window, channels, filters], x.dtype)
        output = convolutions.conv1d(
            x,
            kernel,
            strides,
            padding,
            data_format=SEQUENCE_LAYOUTS[layout],
            dilations=dilation_rate,
        )
        output = add_bias(output, biases if use_bias else None, filters, layout)
        return activate(output, activation, activity_regularizer)


def conv2d_transpose(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    activation: Callable[[Tensor], Tensor] | None = None,
    use_bias: bool = True,
    kernel_initializer: Any = None,
    bias_initializer: Any = ZEROS,
    kernel_regularizer: Any = None,
    bias_regularizer: Any = None,
    activity_regularizer: Any = None,
    kernel_constraint: Any = None,
    bias_constraint: Any = None,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
) -> Tensor:
    """Compute activation(transposed convolution of images + bias). Images grow by their strides.

    Args:
        inputs: Images of shape (batch, height, width, channels), or (batch, channels, height,
            width).
        filters: The number of output channels.
        kernel_size: The size of the window, one int or (height, width).
        strides: The step of the window, one int or (height, width).
        padding: "valid" or "same".
        data_format: "channels_last" or "channels_first".
        activation: Applied to the result; None for none.
        use_bias: Whether there is a bias.
        kernel_initializer: The initial kernel, of shape (height, width, filters, channels).
        bias_initializer: The initial bias, of shape (filters).
        kernel_regularizer: Returns a loss for the kernel.
        bias_regularizer: Returns a loss for the bias.
        activity_regularizer: Returns a loss for the output.
        kernel_constraint: Applied to the kernel after each update.
        bias_constraint: Applied to the bias after each update.
        trainable: Whether optimizers change kernel and bias.
        name: The variable scope; "conv2d_transpose" by default.
        reuse: Whether to reuse the variables of an earlier call.

    Raises:
        ShapeError: If the number of channels is unknown.
        SettingError: For another padding or data_format.
    """
    function = "conv2d_transpose"
    x, layout = convert_to_tensor(inputs), parse_layout(function, data_format)
    channels, filters = (
        require_length(function, x, channel_axis(layout)),
        require_int(function, "filters", filters),
    )
    window = convolutions.parse_spatial(function, "kernel_size", kernel_size, layout)
    stride = convolutions.parse_spatial(function, "strides", strides, layout)
    spatial_axes = (2, 3) if layout == "NCHW" else (1, 2)
    sizes = [
        _transposed_size(
            require_shape(x.entry)[a], s, k, convolutions.parse_padding(function, padding)
        )
        for a, s, k in zip(spatial_axes, stride, window, strict=True)
    ]
    weights = VariableSpec(kernel_initializer, kernel_regularizer, kernel_constraint, trainable)
    biases = VariableSpec(bias_initializer, bias_regularizer, bias_constraint, trainable)
    with variable_scope(name, function, reuse=reuse):
        kernel = weights.get("kernel", [*window, filters, channels], x.dtype)
        output = convolutions.conv2d_transpose(
            x, kernel, sizes, stride, padding, data_format=layout
        )
        output = add_bias(output, biases if use_bias else None, filters, layout)
        return activate(output, activation, activity_regularizer)


def _transposed_size(n: Extent, stride: int, window: int, padding: str) -> Extent:
    """Return the length of a transposed convolution's result, as TensorFlow's layers choose it.

    Args:
        n: Length of the input along one axis.
        stride: Stride of the convolution.
        window: Extent of the filter.
        padding: SAME or VALID.
    """
    return n * stride + (max(window - stride, 0) if padding == "VALID" else 0)
