"""``tf.contrib.layers``: layers that end in an activation, and regularizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import sqrt
from typing import Any

from passkit.errors import SettingError
from passkit.frontends.tinyflow import arrays, draws, elementwise, initializers
from passkit.frontends.tinyflow import layers as plain
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.initializers import fans
from passkit.frontends.tinyflow.missing import lookup
from passkit.frontends.tinyflow.nn import convolutions, losses
from passkit.frontends.tinyflow.numbers import real, whole
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.reductions import FUNCTIONS as FOLDS
from passkit.frontends.tinyflow.refusals import refuses
from passkit.frontends.tinyflow.scopes import get_variable, name_scope, variable_scope
from passkit.frontends.tinyflow.shapes import extents_of
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

    def drawn(shape: Any, dtype: Any = dtype, partition_info: Any = None) -> Tensor:
        sizes = [int(n) for n in extents_of(shape, "an initializer") if n is not None]
        inside, outside = fans(sizes)
        count = parts[mode][0] * inside + parts[mode][1] * outside
        if uniform:
            limit = sqrt(3.0 * factor / count)
            return draws.random_uniform(sizes, -limit, limit, dtype, seed)
        return draws.truncated_normal(sizes, 0.0, sqrt(1.3 * factor / count), dtype, seed)

    return drawn


def l1_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Tensor | None]:
    """A loss of ``scale`` times the sum of distances from 0."""
    length = FOLDS["reduce_sum"]
    return _regularizer("l1_regularizer", scale, scope, lambda w: length(abs(w)))


def l2_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Tensor | None]:
    """A loss of ``scale`` times half the sum of squares."""
    return _regularizer("l2_regularizer", scale, scope, losses.l2_loss)


def _regularizer(
    where: str, scale: float, scope: str | None, loss: Callable[[Tensor], Tensor]
) -> Callable[[Any], Tensor | None]:
    """A function that weighs variables; of the scale 0 it gives None."""
    part = real(where, "scale", scale)

    def weigh(weights: Any) -> Tensor | None:
        if not part:
            return None
        with name_scope(scope, where):
            return loss(convert_to_tensor(weights)) * part

    return weigh


def _ended(
    out: Tensor,
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
        out = normalizer(out, **(params or {}))
    elif biases is not None:
        place = 1 if layout == "NCHW" else -1
        count = int(known_shape(out.entry)[place])
        bias = get_variable("biases", [count], out.dtype, biases, regularizer, trainable)
        out = convolutions.bias_add(out, bias, layout)
    out = out if activation is None else activation(out)
    for key in [collections] if isinstance(collections, str) else collections or ():
        get_default_graph().add_to_collection(key, out)
    return out


@refuses(IN_COLLECTIONS, "variables_collections")
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
    width = plain._known("fully_connected", x, -1)
    units = whole("fully_connected", "num_outputs", num_outputs)
    with variable_scope(scope, "fully_connected", reuse=reuse):
        weights = get_variable(
            "weights", [width, units], x.dtype, weights_initializer, weights_regularizer, trainable
        )
        out = arrays.matmul(plain._rows(x), weights)
        sizes = known_shape(x.entry)
        if len(sizes) != 2:
            out = arrays.reshape(out, [*sizes[:-1], units])
        return _ended(
            out, normalizer_fn, normalizer_params, biases_initializer, biases_regularizer,
            trainable, activation_fn, outputs_collections,
        )


@refuses(IN_COLLECTIONS, "variables_collections")
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
    channels = plain._known("conv2d", x, plain._channel(layout))
    count = whole("conv2d", "num_outputs", num_outputs)
    window = convolutions.spatial("conv2d", "kernel_size", kernel_size, layout)
    with variable_scope(scope, "Conv", reuse=reuse):
        weights = get_variable(
            "weights", [*window, channels, count], x.dtype, weights_initializer,
            weights_regularizer, trainable,
        )
        out = convolutions.conv2d(
            x, weights, stride, padding, data_format=layout, dilations=rate
        )
        return _ended(
            out, normalizer_fn, normalizer_params, biases_initializer, biases_regularizer,
            trainable, activation_fn, outputs_collections, layout,
        )


conv2d = convolution2d


def _pooled(pool: Callable[..., Tensor], default: str) -> Callable[..., Tensor]:
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
        return _ended(out, None, None, None, None, True, None, outputs_collections)

    function.__doc__ = pool.__doc__
    return function


max_pool2d = _pooled(convolutions.max_pool, "MaxPool2D")
avg_pool2d = _pooled(convolutions.avg_pool, "AvgPool2D")


def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Tensor:
    """(examples, the rest in one axis)."""
    out = plain.flatten(inputs, scope or "Flatten")
    return _ended(out, None, None, None, None, True, None, outputs_collections)


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
    out = plain.dropout(inputs, rate, noise_shape, seed, is_training, scope or "Dropout")
    return _ended(out, None, None, None, None, True, None, outputs_collections)


@refuses(IN_COLLECTIONS, "variables_collections", "updates_collections")
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
    first, weigh = dict(param_initializers or {}), dict(param_regularizers or {})
    names = ("beta", "gamma", "moving_mean", "moving_variance")
    own: dict[str, Any] = {f"{n}_initializer": first[n] for n in names if n in first}
    own |= {f"{n}_regularizer": weigh[n] for n in names[:2] if n in weigh}
    with variable_scope(scope, "BatchNorm", reuse=reuse) as found:
        own["name"] = found
        out = plain.batch_normalization(
            inputs, momentum=decay, epsilon=epsilon, center=center, scale=scale,
            training=is_training, trainable=trainable, **own,
        )
    return _ended(out, None, None, None, None, True, activation_fn, outputs_collections)


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
    return _ended(out, None, None, None, None, True, None, outputs_collections)


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
__getattr__ = lookup("tf.contrib.layers", lambda: dict.fromkeys(__all__))
