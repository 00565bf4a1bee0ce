"""Dense, flatten and dropout layers of ``tf.layers``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.frontends.tinyflow import arrays, linear_algebra
from passkit.frontends.tinyflow.argument_checks import axis_length, require_int
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.layers.common import (
    ZEROS,
    VariableSpec,
    activate,
    add_bias,
    flatten_to_matrix,
    parse_layout,
    require_length,
)
from passkit.frontends.tinyflow.nn import sampling
from passkit.frontends.tinyflow.scopes import variable_scope
from passkit.frontends.tinyflow.shapes import require_shape
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    as_tensor,
    convert_to_tensor,
    scalar_entry,
)
from passkit.ops.helpers import make
from passkit.values.size import numel


def dense(
    inputs: Any,
    units: int,
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
    """Compute activation(inputs @ kernel + bias) over the last axis.

    Args:
        inputs: A tensor of shape (…, features) of known last extent.
        units: The number of outputs.
        activation: Applied to the result; None for none.
        use_bias: Whether there is a bias.
        kernel_initializer: The initial kernel, of shape (features, units).
        bias_initializer: The initial bias, of shape (units).
        kernel_regularizer: Returns a loss for the kernel.
        bias_regularizer: Returns a loss for the bias.
        activity_regularizer: Returns a loss for the output.
        kernel_constraint: Applied to the kernel after each update.
        bias_constraint: Applied to the bias after each update.
        trainable: Whether optimizers change kernel and bias.
        name: The variable scope; "dense" by default.
        reuse: Whether to reuse the variables of an earlier call.

    Returns:
        A tensor of shape (…, units).

    Raises:
        ShapeError: If the last extent of ``inputs`` is unknown.

    >>> from passkit.frontends import tinyflow as tf
    >>> with tf.Graph().as_default():
    ...     tf.layers.dense(tf.zeros([2, 3]), 4, activation=tf.nn.relu).shape
    (2, 4)
    """
    x = convert_to_tensor(inputs)
    width, units = require_length("dense", x, -1), require_int("dense", "units", units)
    weights = VariableSpec(kernel_initializer, kernel_regularizer, kernel_constraint, trainable)
    biases = VariableSpec(bias_initializer, bias_regularizer, bias_constraint, trainable)
    with variable_scope(name, "dense", reuse=reuse):
        kernel = weights.get("kernel", [width, units], x.dtype)
        output = linear_algebra.matmul(flatten_to_matrix(x), kernel)
        output = add_bias(output, biases if use_bias else None, units)
        sizes = require_shape(x.entry)
        if len(sizes) != 2:
            output = arrays.reshape(output, [*sizes[:-1], units])
        return activate(output, activation, activity_regularizer)


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """Reshape to (examples, elements of an example).

    Args:
        inputs: A tensor of shape (examples, …).
        name: The name of the result.
        data_format: "channels_last" or "channels_first"; with the latter, channels are put last
            before.

    Raises:
        SettingError: For another data_format.
    """
    x, layout = convert_to_tensor(inputs), parse_layout("flatten", data_format)
    rank = len(require_shape(x.entry, "flatten"))
    if layout == "NCHW" and rank > 2:
        x = arrays.transpose(x, [0, *range(2, rank), 1])
    sizes = require_shape(x.entry)
    rows = axis_length("flatten", sizes, 0)
    return arrays.reshape(x, [rows, numel(sizes[1:])], name or "flatten")


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """Apply `tf.nn.dropout` while ``training``; return the inputs otherwise.

    Args:
        inputs: A tensor.
        rate: The probability that an element is set to 0.
        noise_shape: See `tf.nn.dropout`.
        seed: Makes the draws the same in every process, as `tf.set_random_seed` does.
        training: A bool, or a scalar tensor of bools.
        name: The name of the result.
    """
    x = convert_to_tensor(inputs)
    if not isinstance(training, Tensor) and not training:
        return as_tensor(
            make("identity", x.entry), get_default_graph().unique_name(name or "dropout")
        )
    output = sampling.dropout(x, noise_shape=noise_shape, seed=seed, name=name, rate=rate)
    if not isinstance(training, Tensor):
        return output
    return as_tensor(
        make("where", scalar_entry(training), output.entry, x.entry), f"{output._name}/chosen"
    )
