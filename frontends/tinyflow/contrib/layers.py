"""``tf.contrib.layers``: layers with normalization and activation, and regularizers.

`LAYER_ARGUMENTS` describes the arguments that several layers share.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from math import sqrt
from typing import Any

from passkit.errors import DTypeError, SettingError
from passkit.frontends.tinyflow import arrays, elementwise, initializers, linear_algebra, random_ops
from passkit.frontends.tinyflow import layers as plain_layers
from passkit.frontends.tinyflow.argument_checks import (
    collection_names,
    reject_arguments,
    require_float,
    require_function,
    require_int,
)
from passkit.frontends.tinyflow.docstrings import describe_arguments, named_alias
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.initializers import fans
from passkit.frontends.tinyflow.layers import common
from passkit.frontends.tinyflow.missing_names import missing_name_handler
from passkit.frontends.tinyflow.nn import convolutions, losses
from passkit.frontends.tinyflow.reductions import FUNCTIONS as REDUCTIONS
from passkit.frontends.tinyflow.scopes import get_variable, name_scope, variable_scope
from passkit.frontends.tinyflow.shapes import require_shape
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor

relu_ = elementwise.ACTIVATIONS["relu"]
ZEROS = initializers.zeros_initializer()
NO_COLLECTIONS = "tf.add_to_collection puts variables into others"
LAYER_ARGUMENTS = {
    "activation_fn": "A function that is applied to the result; relu by default, None for none.",
    "normalizer_fn": "A function that normalizes the result, in place of biases; None (default) "
    "for none.",
    "normalizer_params": "Further arguments of ``normalizer_fn`` by name; none by default.",
    "weights_regularizer": "A function that returns a loss for the weights; None (default) for "
    "none.",
    "biases_initializer": "Creates the initial biases; zeros by default, None for no biases.",
    "biases_regularizer": "A function that returns a loss for the biases; None (default) for none.",
    "reuse": "True to use the variables of an earlier call, tf.AUTO_REUSE to create missing ones; "
    "by default as the variable scope.",
    "variables_collections": "Unsupported; only the default is accepted.",
    "outputs_collections": "The name of a collection, or a list of names, to add the result to; "
    "none by default.",
    "trainable": "Whether optimizers change the variables; True by default.",
}
"""The arguments that several layers share."""
xavier_initializer = named_alias(initializers.glorot_uniform_initializer, "xavier_initializer")
xavier_initializer_conv2d = named_alias(
    initializers.glorot_uniform_initializer, "xavier_initializer_conv2d"
)


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: Any = "float32",
) -> Callable[..., Tensor]:
    """Create an initializer of draws of the variance factor / (number of inputs or outputs).

    Args:
        factor: The variance times the number of inputs or outputs; 2 by default.
        mode: "FAN_IN" (default) for the number of inputs of a unit, "FAN_OUT" for that of outputs,
            "FAN_AVG" for their mean.
        uniform: Whether to draw uniform, not truncated normal, numbers; False by default.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        dtype: The dtype of tensors where none is requested; float32 by default.

    Returns:
        A function of a shape and a dtype, which returns a tensor. It raises ShapeError for a shape
        that is not made of ints from 0 on, DTypeError for a dtype that is no float, and
        SettingError for a ``seed`` that is no int.

    Raises:
        SettingError: For another mode, or a ``factor`` that is no number above 0.
    """
    if not require_float("variance_scaling_initializer", "factor", factor) > 0:
        raise SettingError(f"variance_scaling_initializer needs a factor above 0, got {factor!r}")
    parts = {"FAN_IN": (1, 0), "FAN_OUT": (0, 1), "FAN_AVG": (0.5, 0.5)}
    if mode not in parts:
        raise SettingError(
            f"variance_scaling_initializer needs {', '.join(parts)} as mode, got {mode!r}"
        )

    def initialize(shape: Any, dtype: Any = dtype, partition_info: Any = None) -> Tensor:
        if not as_dtype(dtype).is_float:
            raise DTypeError(f"variance_scaling_initializer needs floats as dtype, got {dtype}")
        sizes = initializers.require_known_extents(shape)
        fan_in, fan_out = fans(sizes)
        count = parts[mode][0] * fan_in + parts[mode][1] * fan_out or 1.0
        if uniform:
            limit = sqrt(3.0 * factor / count)
            return random_ops.random_uniform(sizes, -limit, limit, dtype, seed)
        return random_ops.truncated_normal(sizes, 0.0, sqrt(1.3 * factor / count), dtype, seed)

    return initialize


def l1_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Tensor | None]:
    """Create a function that returns ``scale`` times the sum of absolute values of weights.

    Args:
        scale: The factor, a number.
        scope: The name scope of the loss; "l1_regularizer" by default.

    Returns:
        A function of a tensor of numbers, which returns a scalar tensor; None if ``scale`` is 0.

    Raises:
        SettingError: If ``scale`` is no number.
    """
    reduce_sum = REDUCTIONS["reduce_sum"]
    return _regularizer("l1_regularizer", scale, scope, lambda w: reduce_sum(abs(w)))


def l2_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Tensor | None]:
    """Create a function that returns ``scale`` times half the sum of squares of weights.

    Args:
        scale: The factor, a number.
        scope: The name scope of the loss; "l2_regularizer" by default.

    Returns:
        A function of a tensor of floats, which returns a scalar tensor; None if ``scale`` is 0.

    Raises:
        SettingError: If ``scale`` is no number.
    """
    return _regularizer("l2_regularizer", scale, scope, losses.l2_loss)


def _regularizer(
    name: str, scale: float, scope: str | None, loss: Callable[[Tensor], Tensor]
) -> Callable[[Any], Tensor | None]:
    """Create a function that returns a loss of weights times a factor.

    Args:
        name: The name of the regularizer, for its scope and for messages.
        scale: The factor.
        scope: The name scope of the loss; None for ``name``.
        loss: Returns the loss of a tensor.

    Returns:
        A function of a tensor; it returns None if the factor is 0.

    Raises:
        SettingError: If ``scale`` is no number.
    """
    factor = require_float(name, "scale", scale)

    def regularize(weights: Any) -> Tensor | None:
        if not factor:
            return None
        with name_scope(scope, name):
            return loss(convert_to_tensor(weights)) * factor

    return regularize


def _arguments_by_name(argument: str, value: Any) -> dict[str, Any]:
    """Return an argument that holds arguments by name as a dict; None and {} are an empty one.

    Args:
        argument: The argument's name, for the message.
        value: The argument.

    Raises:
        SettingError: If it is neither None nor a dict whose keys are texts.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise SettingError(f"a layer needs a dict by name as {argument}, got {value!r}")
    return dict(value)


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
    """Apply normalization or biases and the activation of a layer, and collect its output.

    Args:
        output: The result of the layer so far.
        normalizer: Applied instead of biases; None for none.
        params: Arguments of ``normalizer`` by name; None for none.
        biases: The initializer of the biases; None for no biases.
        regularizer: The regularizer of the biases; None for none.
        trainable: Whether optimizers change the biases.
        activation: Applied last; None for none.
        collections: The name or names of the collections to add the result to; None for none.
        layout: "NHWC" or "NCHW": whether channels are on the last axis or on axis 1.

    Returns:
        The result of the activation, or of the step before without one.

    Raises:
        GraphError: If the biases exist and the scope does not reuse variables, or the other way
            round.
        SettingError: If ``collections`` holds no names, ``params`` is no dict, or ``normalizer``,
            ``activation``, ``biases`` or ``regularizer`` is neither None nor a function.
        ShapeError: If the output has a single axis, or existing biases have another shape.
    """
    if normalizer is not None:
        normalize = require_function("a layer", "normalizer_fn", normalizer)
        output = normalize(output, **_arguments_by_name("normalizer_params", params))
    elif biases is not None:
        channel_axis = 1 if layout == "NCHW" else -1
        count = int(require_shape(output.entry)[channel_axis])
        bias = get_variable("biases", [count], output.dtype, biases, regularizer, trainable)
        output = convolutions.bias_add(output, bias, layout)
    if activation is not None:
        output = require_function("a layer", "activation_fn", activation)(output)
    for key in collection_names("a layer", collections):
        get_default_graph().add_to_collection(key, output)
    return output


@describe_arguments(LAYER_ARGUMENTS)
@reject_arguments(NO_COLLECTIONS, "variables_collections")
def fully_connected(  # noqa: D417 – describe_arguments adds the others
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
        num_outputs: The number of outputs, an int.
        weights_initializer: Creates the initial weights, of shape (features, num_outputs); by
            default that of the variable scope.
        scope: The variable scope; "fully_connected" by default.
        others: Activation, normalizer and its arguments by name, settings of the variables,
            ``reuse`` of variables, names of the collections that the result is added to,
            ``trainable`` for optimizers; see `LAYER_ARGUMENTS`.

    Returns:
        A tensor of shape (…, num_outputs).

    Raises:
        ShapeError: If the rank or the last extent of ``inputs`` is unknown, ``num_outputs`` is
            negative, or a reused variable has another shape.
        SettingError: If ``num_outputs`` is no int, ``outputs_collections`` holds no names, an
            initializer, regularizer, normalizer or activation is neither None nor a function,
            ``normalizer_params`` is no dict, ``reuse`` is another value than those of the variable
            scope, or an unsupported argument is set.
        GraphError: If the variables exist and ``reuse`` is not set, or they are to be reused and do
            not exist.
        DTypeError: If ``inputs`` holds bools or complex numbers.
        ArgumentError: For a value that is neither a tensor nor numbers.
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


@describe_arguments(LAYER_ARGUMENTS)
@reject_arguments(NO_COLLECTIONS, "variables_collections")
def convolution2d(  # noqa: D417 – describe_arguments adds the others
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
        inputs: Images of shape (batch, height, width, channels), or (batch, channels, height,
            width).
        num_outputs: The number of output channels, an int.
        kernel_size: The size of the window, one int or (height, width).
        stride: The step of the window, one int or (height, width); 1 by default.
        padding: "SAME" (default) or "VALID".
        data_format: "NHWC" (default) or "NCHW".
        rate: The distance of the window's elements, one int or (height, width); 1 by default.
        weights_initializer: Creates the initial weights, of shape (height, width, channels,
            num_outputs); by default that of the variable scope.
        scope: The variable scope; "Conv" by default.
        others: Activation, normalizer and its arguments by name, settings of the variables,
            ``reuse`` of variables, names of the collections that the result is added to,
            ``trainable`` for optimizers; see `LAYER_ARGUMENTS`.

    Returns:
        Images with ``num_outputs`` channels, in the layout of ``inputs``.

    Raises:
        ShapeError: If ``inputs`` has another rank, its number of channels is unknown, the window
            does not fit, a number is out of range, or a reused variable has another shape.
        SettingError: For another padding, numbers that are no ints, ``outputs_collections`` that
            hold no names, an initializer, regularizer, normalizer or activation that is neither
            None nor a function, ``normalizer_params`` that are no dict, another value as ``reuse``,
            or an unsupported argument.
        GraphError: For another data_format, or a tensor as size or step; if the variables exist and
            ``reuse`` is not set, or they are to be reused and do not exist.
        DTypeError: If ``inputs`` holds no floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x, layout = convert_to_tensor(inputs), data_format or "NHWC"
    common.require_padding("conv2d", padding)
    channels = common.require_length("conv2d", x, common.channel_axis(layout))
    count = require_int("conv2d", "num_outputs", num_outputs)
    window = convolutions.parse_window("conv2d", "kernel_size", kernel_size, layout)
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


conv2d = named_alias(convolution2d, "conv2d")


def _pooling_layer(name: str, pool: Callable[..., Tensor], default: str) -> Callable[..., Tensor]:
    """Create a pooling layer.

    Args:
        name: The name of the function.
        pool: The function of `tf.nn` that it calls, of which it has the first line of the
            docstring.
        default: The default name of the result.

    Returns:
        The function, with a docstring of its own.
    """

    def function(
        inputs: Any,
        kernel_size: Any,
        stride: Any = 2,
        padding: str = "VALID",
        data_format: str = "NHWC",
        outputs_collections: Any = None,
        scope: str | None = None,
    ) -> Tensor:
        common.require_padding(name, padding)
        out = pool(inputs, kernel_size, stride, padding, data_format, scope or default)
        return _finish_layer(out, None, None, None, None, True, None, outputs_collections)

    refused = "bools or complex numbers" if pool is convolutions.max_pool else "no floats"
    function.__doc__ = f"""{(pool.__doc__ or "").partition(chr(10))[0]}

    Args:
        inputs: Images of shape (batch, height, width, channels), or as ``data_format`` says.
        kernel_size: The size of the window, one int or (height, width).
        stride: The step of the window, one int or (height, width); 2 by default.
        padding: "VALID" (default) or "SAME".
        data_format: "NHWC" (default) or "NCHW".
        outputs_collections: {LAYER_ARGUMENTS["outputs_collections"]}
        scope: The name of the result; "{default}" by default.

    Returns:
        Images with a result for each position of the window, in the layout of ``inputs``.

    Raises:
        SettingError: For another padding, a window or stride of another number of ints, or
            ``outputs_collections`` that hold no names.
        GraphError: For another data_format, and for a tensor as window or stride.
        ShapeError: If ``inputs`` has another rank than 4, the window does not fit, or a window or
            stride is below 1.
        DTypeError: If ``inputs`` holds {refused}.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    function.__name__ = function.__qualname__ = name
    return function


max_pool2d = _pooling_layer("max_pool2d", convolutions.max_pool, "MaxPool2D")
avg_pool2d = _pooling_layer("avg_pool2d", convolutions.avg_pool, "AvgPool2D")


def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Tensor:
    """Reshape to (examples, elements of an example).

    Args:
        inputs: A tensor of shape (examples, …).
        outputs_collections: The name of a collection, or a list of names, to add the result to;
            none by default.
        scope: The name of the result; "Flatten" by default.

    Returns:
        A matrix; of a vector one with one element for each example.

    Raises:
        ShapeError: If ``inputs`` is a scalar, or its rank is unknown.
        SettingError: If ``outputs_collections`` holds no names.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
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
    """Set elements to 0 at random while ``is_training``, as `tf.nn.dropout`.

    Args:
        inputs: A tensor of any shape.
        keep_prob: The probability of keeping an element, a number or a scalar tensor; 0.5 by
            default.
        noise_shape: For each axis its length for separate draws, 1 to share draws along it, or None
            for its length; by default all draws are separate.
        is_training: Whether to drop elements, a bool or a scalar tensor of bools; True by default.
        outputs_collections: The name of a collection, or a list of names, to add the result to;
            none by default.
        scope: The name of the result; "Dropout" by default.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.

    Returns:
        A tensor of the shape and dtype of ``inputs``; float64 for integers and bools unless
        ``is_training`` is False.

    Raises:
        SettingError: If ``keep_prob`` is neither a number nor a tensor, or ``outputs_collections``
            holds no names; unless ``is_training`` is False, if ``keep_prob`` is not above 0 and up
            to 1, or ``seed`` is no int.
        ShapeError: Unless ``is_training`` is False, if ``noise_shape`` has another length than the
            rank or does not broadcast, or a tensor ``keep_prob`` has several elements; if a tensor
            ``is_training`` does not broadcast.
        DTypeError: If ``is_training`` is a tensor of another dtype than bool, or ``inputs`` holds
            complex numbers that elements are dropped of.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    is_tensor = isinstance(keep_prob, Tensor)
    rate = 1.0 - (keep_prob if is_tensor else require_float("dropout", "keep_prob", keep_prob))
    out = plain_layers.dropout(inputs, rate, noise_shape, seed, is_training, scope or "Dropout")
    return _finish_layer(out, None, None, None, None, True, None, outputs_collections)


@describe_arguments(LAYER_ARGUMENTS)
@reject_arguments(NO_COLLECTIONS, "variables_collections", "updates_collections")
def batch_norm(  # noqa: D417 – describe_arguments adds the others
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
    """Normalize each channel, as `tf.layers.batch_normalization`, and apply ``activation_fn``.

    Args:
        inputs: A tensor of shape (…, channels), of a known number of channels.
        decay: The weight of the running statistics when they are moved; 0.999 by default.
        center: Whether there is a variable beta; True by default.
        scale: Whether there is a variable gamma; False by default.
        epsilon: A number that is added to the variance; 0.001 by default.
        activation_fn: A function that is applied to the result; None (default) for none.
        param_initializers: Initializers of beta, gamma, moving_mean and moving_variance, by name;
            those of `tf.layers.batch_normalization` by default. Other names are ignored.
        param_regularizers: Regularizers of beta and gamma, by name; none by default. Other names
            are ignored.
        updates_collections: Unsupported; only the default is accepted.
        is_training: Whether to use and record the statistics of the batch, a bool or a scalar
            tensor of bools; True by default.
        scope: The variable scope; "BatchNorm" by default.
        others: ``reuse`` of variables, names of the collections that the result is added to,
            ``trainable`` for optimizers; see `LAYER_ARGUMENTS`.

    Returns:
        A tensor of the shape and dtype of ``inputs``; float64 for integers.

    Raises:
        ShapeError: If the number of channels is unknown, ``inputs`` is a scalar, a reused variable
            has another shape, or ``is_training`` is a tensor of several elements.
        SettingError: If ``epsilon`` or ``decay`` is no number, ``outputs_collections`` holds no
            names, an initializer, regularizer or activation is neither None nor a function,
            ``param_initializers`` or ``param_regularizers`` is no dict, ``is_training`` is an array
            of another number of elements than 1, ``reuse`` is another value, or an unsupported
            argument is set.
        DTypeError: If ``inputs`` holds bools or complex numbers, or integers unless ``is_training``
            is False, or if ``is_training`` is a tensor of another dtype than bool.
        GraphError: If the variables exist and ``reuse`` is not set, or they are to be reused and do
            not exist.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    initializers_by_name = _arguments_by_name("param_initializers", param_initializers)
    regularizers_by_name = _arguments_by_name("param_regularizers", param_regularizers)
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
        labels: Integers of any shape.
        num_classes: The length of the new last axis, an int.
        on_value: The number at the label, no tensor; 1 by default.
        off_value: The number elsewhere, no tensor; 0 by default.
        outputs_collections: The name of a collection, or a list of names, to add the result to;
            none by default.
        scope: The name of the result; "OneHotEncoding" by default.

    Returns:
        A float32 tensor of the shape of ``labels`` with an axis of length ``num_classes`` more.

    Raises:
        DTypeError: If ``labels`` are no integers, or a value is no real number.
        ShapeError: If ``num_classes`` is not one number of at least 0.
        SettingError: If ``outputs_collections`` holds no names.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    out = arrays.one_hot(labels, num_classes, on_value, off_value, name=scope or "OneHotEncoding")
    return _finish_layer(out, None, None, None, None, True, None, outputs_collections)


def _layer_with_activation(name: str, activation: Any, summary: str) -> Callable[..., Tensor]:
    """Create `fully_connected` with another default of ``activation_fn``.

    The function takes ``activation_fn`` and the arguments after it by name only.

    Args:
        name: The name of the function.
        activation: The default activation.
        summary: The first line of the function's docstring.

    Returns:
        The function, with the docstring of `fully_connected` behind ``summary``.
    """
    layer = named_alias(partial(fully_connected, activation_fn=activation), name)
    if fully_connected.__doc__ is not None:
        layer.__doc__ = summary + fully_connected.__doc__[fully_connected.__doc__.index("\n") :]
    return layer


linear = _layer_with_activation(
    "linear",
    None,
    "Compute inputs @ weights + biases: `fully_connected` without activation by default.",
)
relu = _layer_with_activation(
    "relu", relu_, "Compute relu(inputs @ weights + biases) over the last axis."
)

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
