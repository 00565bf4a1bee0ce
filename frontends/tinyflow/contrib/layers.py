"""``tf.contrib.layers``: layers with normalization and activation, and regularizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import sqrt
from typing import Any

from passkit.errors import SettingError
from passkit.frontends.tinyflow import arrays, elementwise, initializers, linear_algebra, random_ops
from passkit.frontends.tinyflow import layers as plain_layers
from passkit.frontends.tinyflow.argument_checks import reject_arguments, require_float, require_int
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.initializers import fans
from passkit.frontends.tinyflow.layers import common
from passkit.frontends.tinyflow.missing_names import missing_name_handler
from passkit.frontends.tinyflow.nn import convolutions, losses
from passkit.frontends.tinyflow.reductions import FUNCTIONS as REDUCTIONS
from passkit.frontends.tinyflow.scopes import get_variable, name_scope, variable_scope
from passkit.frontends.tinyflow.shapes import parse_shape, require_shape
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor

relu_ = elementwise.ACTIVATIONS["relu"]
ZEROS = initializers.zeros_initializer()
NO_COLLECTIONS = "tf.add_to_collection puts variables into others"
xavier_initializer = initializers.glorot_uniform_initializer
xavier_initializer_conv2d = initializers.glorot_uniform_initializer


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: Any = "float32",
) -> Callable[..., Tensor]:
    """Return an initializer of draws of the variance ``factor`` over a number of inputs or outputs.

    Args:
        factor: The variance times the number of inputs or outputs.
        mode: "FAN_IN" for the number of inputs, "FAN_OUT" for outputs, "FAN_AVG" for their mean.
        uniform: Whether to draw uniform, not truncated normal, numbers.
        seed: Makes the draws the same in every process, as `tf.set_random_seed` does.
        dtype: The default dtype.

    Raises:
        SettingError: For another mode.
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
    """Return a function that returns ``scale`` times the sum of absolute values.

    Args:
        scale: The factor; with 0 the function returns None.
        scope: The name scope of the loss.
    """
    reduce_sum = REDUCTIONS["reduce_sum"]
    return _regularizer("l1_regularizer", scale, scope, lambda w: reduce_sum(abs(w)))


def l2_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Tensor | None]:
    """Return a function that returns ``scale`` times half the sum of squares.

    Args:
        scale: The factor; with 0 the function returns None.
        scope: The name scope of the loss.
    """
    return _regularizer("l2_regularizer", scale, scope, losses.l2_loss)


def _regularizer(
    name: str, scale: float, scope: str | None, loss: Callable[[Tensor], Tensor]
) -> Callable[[Any], Tensor | None]:
    """Return a function that returns a loss of variables times a factor; None for the factor 0."""
    factor = require_float(name, "scale", scale)

    def regularize(weights: Any) -> Tensor | None:
        if not factor:
            return None
        with name_scope(scope, name):
            return loss(convert_to_tensor(weights)) * factor

    return regularize


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
    """Apply normalization or biases and the activation of a layer, and collect its output."""
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


@reject_arguments(NO_COLLECTIONS, "variables_collections")
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
    """Compute activation_fn(inputs @ weights + biases) over the last axis.

    Args:
        inputs: A tensor of shape (…, features) of known last extent.
        num_outputs: The number of outputs.
        activation_fn: Applied to the result; None for none.
        normalizer_fn: Normalizes the result; then there are no biases.
        normalizer_params: Further arguments of ``normalizer_fn``.
        weights_initializer: The initial weights.
        weights_regularizer: Returns a loss for the weights.
        biases_initializer: The initial biases; None for no biases.
        biases_regularizer: Returns a loss for the biases.
        reuse: Whether to reuse the variables of an earlier call.
        variables_collections: Unsupported; only the default is accepted.
        outputs_collections: The collections to add the result to.
        trainable: Whether optimizers change the variables.
        scope: The variable scope.

    Returns:
        A tensor of shape (…, num_outputs).

    Raises:
        ShapeError: If the last extent of ``inputs`` is unknown.
    """
    x = convert_to_tensor(inputs)
    width = common.require_length("fully_connected", x, -1)
    units = require_int("fully_connected", "num_outputs", num_outputs)
    with variable_scope(scope, "fully_connected", reuse=reuse):
        weights = get_variable(
            "weights", [width, units], x.dtype, weights_initializer, weights_regularizer, trainable
        )
        out = linear_algebra.matmul(common.flatten_to_matrix(x), weights)
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


@reject_arguments(NO_COLLECTIONS, "variables_collections")
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
    """Compute activation_fn(convolution of images + biases).

    Args:
        inputs: Images of shape (batch, height, width, channels), or as ``data_format`` says.
        num_outputs: The number of output channels.
        kernel_size: The size of the window, one int or (height, width).
        stride: The step of the window, one int or (height, width).
        padding: "SAME" or "VALID".
        data_format: "NHWC" or "NCHW".
        rate: The distance of the window's elements.
        activation_fn: Applied to the result; None for none.
        normalizer_fn: Normalizes the result; then there are no biases.
        normalizer_params: Further arguments of ``normalizer_fn``.
        weights_initializer: The initial weights.
        weights_regularizer: Returns a loss for the weights.
        biases_initializer: The initial biases; None for no biases.
        biases_regularizer: Returns a loss for the biases.
        reuse: Whether to reuse the variables of an earlier call.
        variables_collections: Unsupported; only the default is accepted.
        outputs_collections: The collections to add the result to.
        trainable: Whether optimizers change the variables.
        scope: The variable scope.

    Raises:
        ShapeError: If the number of channels is unknown.
        SettingError: For another padding or data_format.
    """
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
    """Create a pooling layer; ``default`` is the default name of the result."""

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

    function.__doc__ = f"""{(pool.__doc__ or "").partition(chr(10))[0]}

    Args:
        inputs: Images of shape (batch, height, width, channels), or as ``data_format`` says.
        kernel_size: The size of the window, one int or (height, width).
        stride: The step of the window, one int or (height, width).
        padding: "VALID" or "SAME".
        data_format: "NHWC" or "NCHW".
        outputs_collections: The collections to add the result to.
        scope: The name of the result.
    """
    return function


max_pool2d = _pooling_layer(convolutions.max_pool, "MaxPool2D")
avg_pool2d = _pooling_layer(convolutions.avg_pool, "AvgPool2D")


def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Tensor:
    """Reshape to (examples, elements of an example).

    Args:
        inputs: A tensor of shape (examples, …).
        outputs_collections: The collections to add the result to.
        scope: The name of the result.
    """
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
    """Apply `tf.nn.dropout` while ``is_training``.

    Args:
        inputs: A tensor.
        keep_prob: The probability of keeping an element.
        noise_shape: See `tf.nn.dropout`.
        is_training: A bool, or a scalar tensor of bools.
        outputs_collections: The collections to add the result to.
        scope: The name of the result.
        seed: Makes the draws the same in every process, as `tf.set_random_seed` does.
    """
    rate = 1.0 - keep_prob
    out = plain_layers.dropout(inputs, rate, noise_shape, seed, is_training, scope or "Dropout")
    return _finish_layer(out, None, None, None, None, True, None, outputs_collections)


@reject_arguments(NO_COLLECTIONS, "variables_collections", "updates_collections")
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
    """Apply `tf.layers.batch_normalization`, and ``activation_fn``.

    Args:
        inputs: A tensor of shape (…, channels).
        decay: The weight of the running statistics when they are moved.
        center: Whether there is a variable beta.
        scale: Whether there is a variable gamma.
        epsilon: Added to the variance.
        activation_fn: Applied to the result; None for none.
        param_initializers: Initializers of beta, gamma, moving_mean and moving_variance, by name.
        param_regularizers: Regularizers of beta and gamma, by name.
        updates_collections: Unsupported; only the default is accepted.
        is_training: A bool, or a scalar tensor of bools.
        reuse: Whether to reuse the variables of an earlier call.
        variables_collections: Unsupported; only the default is accepted.
        outputs_collections: The collections to add the result to.
        trainable: Whether optimizers change the variables.
        scope: The variable scope.
    """
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
    """Return vectors with ``on_value`` at each label and ``off_value`` elsewhere.

    Args:
        labels: Integers.
        num_classes: The length of the new last axis.
        on_value: The number at the label.
        off_value: The number elsewhere.
        outputs_collections: The collections to add the result to.
        scope: The name of the result.
    """
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
