"""``tf.contrib.layers``: layers that end in an activation, and regularizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import sqrt
from typing import Any

from passkit.errors import SettingError
from passkit.frontends.tinyflow import arrays, elementwise, initializers, random_ops
from passkit.frontends.tinyflow import layers as plain_layers
from passkit.frontends.tinyflow.argument_checks import reject_arguments, require_float, require_int
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.initializers import fans
from passkit.frontends.tinyflow.layers import common
from passkit.frontends.tinyflow.missing_names import missing_name_handler
from passkit.frontends.tinyflow.nn import convolutions, losses
from passkit.frontends.tinyflow.reductions import FUNCTIONS as FOLDS
from passkit.frontends.tinyflow.scopes import get_variable, name_scope, variable_scope
from passkit.frontends.tinyflow.shapes import parse_shape, require_shape
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor

relu_ = elementwise.ACTIVATIONS["relu"]
ZEROS = initializers.zeros_initializer()
IN_COLLECTIONS = "tf.add_to_collection puts variables into others"
xavier_initializer = initializers.glorot_uniform_initializer
xavier_initializer_conv2d = initializers.glorot_uniform_initializer


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: Any = "float32",
) -> Callable[..., Tensor]:
    """Draws of the variance ``factor`` over the number of a layer's inputs, outputs or their mean.

    Raises: SettingError for an unknown ``mode``.
    """
    parts = {"FAN_IN": (1, 0), "FAN_OUT": (0, 1), "FAN_AVG": (0.5, 0.5)}
    if mode not in parts:
        raise SettingError(
            f"variance_scaling_initializer needs {', '.join(parts)} as mode, got {mode!r}"
        )

    def initialize(shape: Any, dtype: Any = dtype, partition_info: Any = None) -> Tensor:
        sizes = [int(n) for n in parse_shape(shape, "an initializer") if n is not None]
        fan_in, fan_out = fans(sizes)
        count = parts[mode][0] * fan_in + parts[mode][1] * fan_out
        if uniform:
            limit = sqrt(3.0 * factor / count)
            return random_ops.random_uniform(sizes, -limit, limit, dtype, seed)
        return random_ops.truncated_normal(sizes, 0.0, sqrt(1.3 * factor / count), dtype, seed)

    return initialize


def l1_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Tensor | None]:
    """A loss of ``scale`` times the sum of distances from 0."""
    length = FOLDS["reduce_sum"]
    return _regularizer("l1_regularizer", scale, scope, lambda w: length(abs(w)))


def l2_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Tensor | None]:
    """A loss of ``scale`` times half the sum of squares."""
    return _regularizer("l2_regularizer", scale, scope, losses.l2_loss)


def _regularizer(
    name: str, scale: float, scope: str | None, loss: Callable[[Tensor], Tensor]
) -> Callable[[Any], Tensor | None]:
    """A function that weighs variables; of the scale 0 it gives None."""
    factor = require_float(name, "scale", scale)

    def weigh(weights: Any) -> Tensor | None:
        if not factor:
            return None
        with name_scope(scope, name):
            return loss(convert_to_tensor(weights)) * factor

    return weigh


def _finish_layer(
    output: Tensor,
    normalizer: Callable[..., Tensor] | None,
    params: Mapping[str, Any] | None,
    biases: Any,
    regularizer: Any,
    trainable: bool,
    activation: Callable[[Tensor], Tensor] | None,
    collections: Any,
    layout: str = "NHWC",
) -> Tensor:
    """Apply the end of a layer: normalisation or biases, the activation, and collections."""
    if normalizer is not None:
        output = normalizer(output, **(params or {}))
    elif biases is not None:
        channel_axis = 1 if layout == "NCHW" else -1
        count = int(require_shape(output.entry)[channel_axis])
        bias = get_variable("biases", [count], output.dtype, biases, regularizer, trainable)
        output = convolutions.bias_add(output, bias, layout)
    output = output if activation is None else activation(output)
    for key in [collections] if isinstance(collections, str) else collections or ():
        get_default_graph().add_to_collection(key, output)
    return output


@reject_arguments(IN_COLLECTIONS, "variables_collections")
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Callable[[Tensor], Tensor] | None = relu_,
    normalizer_fn: Callable[..., Tensor] | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """activation_fn(inputs @ weights + biases), or normalised in place of the biases."""
    x = convert_to_tensor(inputs)
    width = common.require_length("fully_connected", x, -1)
    units = require_int("fully_connected", "num_outputs", num_outputs)
    with variable_scope(scope, "fully_connected", reuse=reuse):
        weights = get_variable(
            "weights", [width, units], x.dtype, weights_initializer, weights_regularizer, trainable
        )
        out = arrays.matmul(common.flatten_to_matrix(x), weights)
        sizes = require_shape(x.entry)
        if len(sizes) != 2:
            out = arrays.reshape(out, [*sizes[:-1], units])
        return _finish_layer(
            out,
            normalizer_fn,
            normalizer_params,
            biases_initializer,
            biases_regularizer,
            trainable,
            activation_fn,
            outputs_collections,
        )


@reject_arguments(IN_COLLECTIONS, "variables_collections")
def convolution2d(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Callable[[Tensor], Tensor] | None = relu_,
    normalizer_fn: Callable[..., Tensor] | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = ZEROS,
    biases_regularizer: Any = None,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """activation_fn(the convolution with so many filters + biases), or normalised instead."""
    x, layout = convert_to_tensor(inputs), data_format or "NHWC"
    channels = common.require_length("conv2d", x, common.channel_axis(layout))
    count = require_int("conv2d", "num_outputs", num_outputs)
    window = convolutions.parse_spatial("conv2d", "kernel_size", kernel_size, layout)
    with variable_scope(scope, "Conv", reuse=reuse):
        weights = get_variable(
            "weights",
            [*window, channels, count],
            x.dtype,
            weights_initializer,
            weights_regularizer,
            trainable,
        )
        out = convolutions.conv2d(x, weights, stride, padding, data_format=layout, dilations=rate)
        return _finish_layer(
            out,
            normalizer_fn,
            normalizer_params,
            biases_initializer,
            biases_regularizer,
            trainable,
            activation_fn,
            outputs_collections,
            layout,
        )


conv2d = convolution2d


def _pooling_layer(pool: Callable[..., Tensor], default: str) -> Callable[..., Tensor]:
    def function(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: str = "NHWC",
        outputs_collections: Any = None,
        scope: str | None = None,
    ) -> Tensor:
        out = pool(inputs, kernel_size, stride, padding, data_format, scope or default)
        return _finish_layer(out, None, None, None, None, True, None, outputs_collections)

    function.__doc__ = pool.__doc__
    return function


max_pool2d = _pooling_layer(convolutions.max_pool, "MaxPool2D")
avg_pool2d = _pooling_layer(convolutions.avg_pool, "AvgPool2D")


def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Tensor:
    """(examples, the rest in one axis)."""
    out = plain_layers.flatten(inputs, scope or "Flatten")
    return _finish_layer(out, None, None, None, None, True, None, outputs_collections)


def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: str | None = None,
    seed: int | None = None,
) -> Tensor:
    """`tf.nn.dropout` while ``is_training``, which may be a tensor."""
    rate = 1.0 - keep_prob
    out = plain_layers.dropout(inputs, rate, noise_shape, seed, is_training, scope or "Dropout")
    return _finish_layer(out, None, None, None, None, True, None, outputs_collections)


@reject_arguments(IN_COLLECTIONS, "variables_collections", "updates_collections")
def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Callable[[Tensor], Tensor] | None = None,
    param_initializers: Mapping[str, Any] | None = None,
    param_regularizers: Mapping[str, Any] | None = None,
    updates_collections: str = "update_ops",
    is_training: Any = True,
    reuse: Any = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: Any = None,
) -> Tensor:
    """`tf.layers.batch_normalization`, with its updates in the collection UPDATE_OPS."""
    initializers_by_name, regularizers_by_name = (
        dict(param_initializers or {}),
        dict(param_regularizers or {}),
    )
    names = ("beta", "gamma", "moving_mean", "moving_variance")
    arguments: dict[str, Any] = {
        f"{n}_initializer": initializers_by_name[n] for n in names if n in initializers_by_name
    }
    arguments |= {
        f"{n}_regularizer": regularizers_by_name[n] for n in names[:2] if n in regularizers_by_name
    }
    with variable_scope(scope, "BatchNorm", reuse=reuse) as inner_scope:
        arguments["name"] = inner_scope
        out = plain_layers.batch_normalization(
            inputs,
            momentum=decay,
            epsilon=epsilon,
            center=center,
            scale=scale,
            training=is_training,
            trainable=trainable,
            **arguments,
        )
    return _finish_layer(out, None, None, None, None, True, activation_fn, outputs_collections)


def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Tensor:
    """Rows with ``on_value`` at the place of each label."""
    out = arrays.one_hot(labels, num_classes, on_value, off_value, name=scope or "OneHotEncoding")
    return _finish_layer(out, None, None, None, None, True, None, outputs_collections)


linear = partial(fully_connected, activation_fn=None)
relu = partial(fully_connected, activation_fn=relu_)

__all__ = [
    "avg_pool2d",
    "batch_norm",
    "conv2d",
    "convolution2d",
    "dropout",
    "flatten",
    "fully_connected",
    "l1_regularizer",
    "l2_regularizer",
    "linear",
    "max_pool2d",
    "one_hot_encoding",
    "relu",
    "variance_scaling_initializer",
    "xavier_initializer",
    "xavier_initializer_conv2d",
]
__getattr__ = missing_name_handler("tf.contrib.layers", lambda: dict.fromkeys(__all__))
