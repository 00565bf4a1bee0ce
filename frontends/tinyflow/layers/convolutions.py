"""Convolution layers of ``tf.layers``.

Arguments that all layers share are described in `LAYER_ARGUMENTS` of `layers.common`, from which
`describe_arguments` completes the docstrings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.frontends.tinyflow.argument_checks import require_int, require_single_int
from passkit.frontends.tinyflow.docstrings import describe_arguments
from passkit.frontends.tinyflow.layers.common import (
    LAYER_ARGUMENTS,
    ZEROS,
    VariableSpec,
    activate,
    add_bias,
    channel_axis,
    parse_layout,
    require_length,
    require_padding,
)
from passkit.frontends.tinyflow.nn import convolutions
from passkit.frontends.tinyflow.scopes import variable_scope
from passkit.frontends.tinyflow.shapes import require_shape
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor
from passkit.values.size import Extent

SEQUENCE_LAYOUTS = {"NHWC": "NWC", "NCHW": "NCW"}
"""The layout of sequences for each layout of images."""


@describe_arguments(LAYER_ARGUMENTS)
def conv2d(  # noqa: D417 – describe_arguments adds the others
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
        filters: The number of output channels, an int.
        kernel_size: The size of the window, one int or (height, width).
        dilation_rate: The distance of the window's elements, one int or (height, width); 1 by
            default.
        kernel_initializer: Creates the initial kernel, of shape (height, width, channels, filters);
            by default that of the variable scope.
        others: Window steps and layout, ``activation`` (None for none), settings of the variables
            kernel and bias, ``trainable`` for optimizers, variable scope ``name``, ``reuse`` of
            variables; see `LAYER_ARGUMENTS`.

    Returns:
        Images with ``filters`` channels, in the layout of ``inputs``.

    Raises:
        ShapeError: If ``inputs`` has another rank, its number of channels is unknown, the window
            does not fit, a number is out of range, or a reused variable has another shape.
        SettingError: For another padding or data_format, numbers that are no ints, or an
            initializer, regularizer, constraint or activation that is neither None nor a function;
            for another value as ``reuse``.
        GraphError: For a tensor as size or step; if the variables exist and ``reuse`` is not set,
            or they are to be reused and do not exist.
        DTypeError: If ``inputs`` holds no floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x, layout = convert_to_tensor(inputs), parse_layout("conv2d", data_format)
    require_padding("conv2d", padding)
    channels, filters = (
        require_length("conv2d", x, channel_axis(layout)),
        require_int("conv2d", "filters", filters),
    )
    window = convolutions.parse_window("conv2d", "kernel_size", kernel_size, layout)
    weights = VariableSpec(kernel_initializer, kernel_regularizer, kernel_constraint, trainable)
    biases = VariableSpec(bias_initializer, bias_regularizer, bias_constraint, trainable)
    with variable_scope(name, "conv2d", reuse=reuse):
        kernel = weights.get("kernel", [*window, channels, filters], x.dtype)
        output = convolutions.conv2d(
            x, kernel, strides, padding, data_format=layout, dilations=dilation_rate
        )
        output = add_bias(output, biases if use_bias else None, filters, layout)
        return activate(output, activation, activity_regularizer)


@describe_arguments(LAYER_ARGUMENTS)
def conv1d(  # noqa: D417 – describe_arguments adds the others
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
        filters: The number of output channels, an int.
        kernel_size: The length of the window, an int.
        strides: The step of the window, an int; 1 by default.
        dilation_rate: The distance of the window's elements, an int; 1 by default.
        kernel_initializer: Creates the initial kernel, of shape (length, channels, filters); by
            default that of the variable scope.
        others: Window steps and layout, ``activation`` (None for none), settings of the variables
            kernel and bias, ``trainable`` for optimizers, variable scope ``name``, ``reuse`` of
            variables; see `LAYER_ARGUMENTS`.

    Returns:
        Sequences with ``filters`` channels, in the layout of ``inputs``.

    Raises:
        ShapeError: If ``inputs`` has another rank, its number of channels is unknown, the window
            does not fit, a number is out of range, or a reused variable has another shape.
        SettingError: For another padding or data_format, numbers that are no ints, or an
            initializer, regularizer, constraint or activation that is neither None nor a function;
            for another value as ``reuse``.
        GraphError: For a tensor as size or step; if the variables exist and ``reuse`` is not set,
            or they are to be reused and do not exist.
        DTypeError: If ``inputs`` holds no floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x, layout = convert_to_tensor(inputs), parse_layout("conv1d", data_format)
    require_padding("conv1d", padding)
    sequence_channel_axis = 1 if layout == "NCHW" else 2
    channels, filters = (
        require_length("conv1d", x, sequence_channel_axis),
        require_int("conv1d", "filters", filters),
    )
    length = require_single_int("conv1d", "kernel_size", kernel_size)
    window, _ = convolutions.parse_window("conv1d", "kernel_size", length, layout)
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


@describe_arguments(LAYER_ARGUMENTS)
def conv2d_transpose(  # noqa: D417 – describe_arguments adds the others
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
        filters: The number of output channels, an int.
        kernel_size: The size of the window, one int or (height, width).
        padding: "valid" (default) for n * stride + max(window - stride, 0) results along an axis of
            length n, or "same" for n * stride.
        kernel_initializer: Creates the initial kernel, of shape (height, width, filters, channels);
            by default that of the variable scope.
        others: Window steps and layout, ``activation`` (None for none), settings of the variables
            kernel and bias, ``trainable`` for optimizers, variable scope ``name``, ``reuse`` of
            variables; see `LAYER_ARGUMENTS`.

    Returns:
        Images with ``filters`` channels, in the layout of ``inputs``.

    Raises:
        ShapeError: If ``inputs`` has another rank, its number of channels is unknown, the window
            does not fit, a number is out of range, or a reused variable has another shape.
        SettingError: For another padding or data_format, numbers that are no ints, or an
            initializer, regularizer, constraint or activation that is neither None nor a function;
            for another value as ``reuse``.
        GraphError: For a tensor as size or step; if the variables exist and ``reuse`` is not set,
            or they are to be reused and do not exist.
        DTypeError: If ``inputs`` holds no floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    function = "conv2d_transpose"
    x, layout = convert_to_tensor(inputs), parse_layout(function, data_format)
    require_padding(function, padding)
    channels, filters = (
        require_length(function, x, channel_axis(layout)),
        require_int(function, "filters", filters),
    )
    window = convolutions.parse_window(function, "kernel_size", kernel_size, layout)
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
        n: Length of the input along one axis, a number or a size.
        stride: Stride of the convolution along it.
        window: Extent of the filter along it.
        padding: "VALID" for n * stride + max(window - stride, 0); anything else for n * stride.
    """
    return n * stride + (max(window - stride, 0) if padding == "VALID" else 0)
