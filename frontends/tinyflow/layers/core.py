"""Dense, flatten and dropout layers of ``tf.layers``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.frontends.tinyflow import arrays, linear_algebra
from passkit.frontends.tinyflow.argument_checks import axis_length, require_int, require_truth
from passkit.frontends.tinyflow.docstrings import describe_arguments
from passkit.frontends.tinyflow.graphs import get_default_graph
from passkit.frontends.tinyflow.layers.common import (
    LAYER_ARGUMENTS,
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


@describe_arguments(LAYER_ARGUMENTS)
def dense(  # noqa: D417 – describe_arguments adds the others
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
        inputs: A tensor of floats or integers, of shape (…, features) of known last extent.
        units: The number of outputs, an int.
        kernel_initializer: Creates the initial kernel, of shape (features, units); by default that
            of the variable scope.
        others: ``activation`` (None for none), settings of the variables kernel and bias,
            ``trainable`` for optimizers, variable scope ``name``, ``reuse`` of variables; see
            `LAYER_ARGUMENTS`.

    Returns:
        A tensor of shape (…, units).

    Raises:
        ShapeError: If the rank or the last extent of ``inputs`` is unknown, ``units`` is negative,
            or a reused variable has another shape.
        SettingError: If ``units`` is no int, or an initializer, regularizer, constraint or
            activation is neither None nor a function, or ``reuse`` is another value.
        GraphError: If the variables exist and ``reuse`` is not set, or they are to be reused and do
            not exist.
        DTypeError: If ``inputs`` holds bools or complex numbers.
        ArgumentError: For a value that is neither a tensor nor numbers.

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
        inputs: A tensor of shape (examples, …); a vector has one element for each example.
        name: The name of the result; "flatten" by default.
        data_format: "channels_last" (default); with "channels_first", axis 1 is moved to the end
            first.

    Returns:
        A matrix of shape (examples, elements of an example).

    Raises:
        SettingError: For another data_format.
        ShapeError: If ``inputs`` is a scalar, or its rank is unknown.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
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
        inputs: A tensor of any shape.
        rate: The probability that an element is set to 0, a number or a scalar tensor; 0.5 by
            default. Other elements are divided by 1 - rate.
        noise_shape: For each axis its length for separate draws, 1 to share draws along it, or None
            for its length; by default all draws are separate.
        seed: An int makes the draws the same in every process, as `tf.set_random_seed` does; None
            by default.
        training: Whether to drop elements, a bool or a scalar tensor of bools; False by default.
        name: The name of the result; "dropout" by default.

    Returns:
        A tensor of the shape and dtype of ``inputs``; float64 for integers and bools unless
        ``training`` is False.

    Raises:
        SettingError: Unless ``training`` is False, for a rate that is neither a tensor nor a number
            from 0 to below 1, and for a seed that is no int. For an array as ``training`` whose
            number of elements is not 1.
        ShapeError: Unless ``training`` is False, if ``noise_shape`` has another length than the
            rank or does not broadcast, or a tensor ``rate`` has several elements; if a tensor
            ``training`` does not broadcast.
        DTypeError: If ``training`` is a tensor of another dtype than bool, or ``inputs`` holds
            complex numbers that elements are dropped of.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x = convert_to_tensor(inputs)
    if not isinstance(training, Tensor) and not require_truth("dropout", "training", training):
        return as_tensor(
            make("identity", x.entry), get_default_graph().unique_name(name or "dropout")
        )
    output = sampling.dropout(x, noise_shape=noise_shape, seed=seed, name=name, rate=rate)
    if not isinstance(training, Tensor):
        return output
    unchanged = x.entry if x.dtype is output.dtype else make("cast", x.entry, dtype="float64")
    return as_tensor(
        make("where", scalar_entry(training), output.entry, unchanged), f"{output._name}/chosen"
    )
