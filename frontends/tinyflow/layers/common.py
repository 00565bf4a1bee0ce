"""Helpers that the layers of ``tf.layers`` share: layouts, variables, biases and activations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from passkit.errors import SettingError, ShapeError
from passkit.frontends.tinyflow import arrays
from passkit.frontends.tinyflow.argument_checks import axis_length, require_function
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.initializers import ones_initializer, zeros_initializer
from passkit.frontends.tinyflow.nn import convolutions
from passkit.frontends.tinyflow.scopes import get_variable
from passkit.frontends.tinyflow.shapes import require_shape
from passkit.frontends.tinyflow.tensors import Tensor
from passkit.frontends.tinyflow.variables import Variable
from passkit.values.size import numel

ZEROS, ONES = zeros_initializer(), ones_initializer()
LAYOUTS = {"channels_last": "NHWC", "channels_first": "NCHW"}
"""The order of axes for each value of ``data_format``."""


LAYER_ARGUMENTS = {
    "strides": "The step of the window, one int or (height, width); 1 by default.",
    "padding": '"valid" (default), or "same" for outputs of the inputs\' size over the strides, '
    "rounded up.",
    "data_format": '"channels_last" (default) or "channels_first".',
    "activation": "A function that is applied to the result; None (default) for none.",
    "use_bias": "Whether a bias is added; True by default.",
    "kernel_initializer": "Creates the initial kernel; by default that of the variable scope.",
    "bias_initializer": "Creates the initial bias; zeros by default.",
    "kernel_regularizer": "A function that returns a loss for the kernel; None (default) for none.",
    "bias_regularizer": "A function that returns a loss for the bias; None (default) for none.",
    "activity_regularizer": "A function that returns a loss for the output, which is put into "
    "REGULARIZATION_LOSSES; None (default) for none.",
    "kernel_constraint": "A function that is applied to the kernel after each update by an "
    "optimizer; None (default) for none.",
    "bias_constraint": "The same for the bias.",
    "trainable": "Whether optimizers change the variables; True by default.",
    "name": "The variable scope; by default the name of the function, numbered if it is taken.",
    "reuse": "True to use the variables of an earlier call, tf.AUTO_REUSE to create missing ones; "
    "by default as the variable scope.",
}
"""The arguments that several layers share."""


@frozen
class VariableSpec:
    """The settings with which a layer creates one of its variables; see `tf.get_variable`.

    Args:
        initializer: Creates the initial value; None for the initializer of the variable scope.
        regularizer: Returns a loss for the variable, which is collected; None for none.
        constraint: Is applied to the variable after each update by an optimizer; None for none.
        trainable: Whether optimizers change the variable.
    """

    initializer: Any
    regularizer: Any = None
    constraint: Any = None
    trainable: bool = True

    def get(self, name: str, shape: Sequence[int], dtype: Any) -> Variable:
        """Create the variable, or return that of an earlier call where the scope is reused.

        Args:
            name: The name within the variable scope.
            shape: The extents.
            dtype: The dtype.

        Raises:
            GraphError: If it exists and the scope does not reuse variables, or the other way round.
            ShapeError: If an existing variable has another shape.
            SettingError: If the initializer, the regularizer or the constraint is neither None nor
                a function.
            ArgumentError: If it returns neither a tensor nor numbers.
            DTypeError: If the initializer returns a tensor of another dtype.
        """
        return get_variable(
            name,
            shape,
            dtype,
            self.initializer,
            self.regularizer,
            self.trainable,
            constraint=self.constraint,
        )


def parse_layout(function: str, data_format: str) -> str:
    """Convert "channels_last" or "channels_first" to "NHWC" or "NCHW".

    Args:
        function: The function's name, for the message.
        data_format: The argument.

    Raises:
        SettingError: For another value.
    """
    if not isinstance(data_format, str) or data_format not in LAYOUTS:
        raise SettingError(
            f"{function} needs {' or '.join(map(repr, LAYOUTS))} as data_format, got "
            f"{data_format!r}"
        )
    return LAYOUTS[data_format]


def require_padding(function: str, padding: Any) -> None:
    """Raise SettingError, which names ``function``, if the padding of a layer is no text.

    The functions of `tf.nn` also take pairs, and None as TinyFlow's call; they check the text.
    """
    if not isinstance(padding, str):
        raise SettingError(f"{function} needs 'VALID' or 'SAME' as padding, got {padding!r}")


def channel_axis(layout: str) -> int:
    """Return the axis of the channels of images: 1 for the layout "NCHW", 3 for any other."""
    return 1 if layout == "NCHW" else 3


def require_length(function: str, x: Tensor, axis: int) -> int:
    """Return the length of a tensor along an axis.

    Args:
        function: The function's name, for the message.
        x: The tensor.
        axis: The axis, which may be negative.

    Raises:
        ShapeError: If it or the rank is unknown, or there is no such axis.
        SettingError: If ``axis`` is no int.
    """
    n = axis_length(function, require_shape(x.entry, function), axis)
    if not isinstance(n, int):
        raise ShapeError(f"{function} needs inputs of known length along axis {axis}, got {x!r}")
    return n


def flatten_to_matrix(x: Tensor) -> Tensor:
    """Reshape a tensor to (product of all extents but the last, last extent).

    A matrix is returned as it is. ``x`` must have at least one axis.

    Raises:
        ShapeError: If the rank of ``x`` is unknown.
    """
    sizes = require_shape(x.entry)
    return x if len(sizes) == 2 else arrays.reshape(x, [numel(sizes[:-1]), sizes[-1]])


def add_bias(x: Tensor, bias: VariableSpec | None, count: int, layout: str = "NHWC") -> Tensor:
    """Add a new or reused variable called "bias", with a number for each channel.

    Args:
        x: The tensor.
        bias: How to create the variable; None to return ``x`` itself.
        count: The number of channels.
        layout: "NHWC", with the channels last, or "NCHW", with them on axis 1.

    Returns:
        The sum, a tensor of the shape of ``x``.

    Raises:
        GraphError: If the variable exists and the scope does not reuse variables, or the other way
            round.
        ShapeError: If a reused variable has another shape, or ``x`` another number of channels.
        SettingError: If the initializer, regularizer or constraint of the variable is neither None
            nor a function.
        ArgumentError: If it returns neither a tensor nor numbers.
        DTypeError: If the initializer returns a tensor of another dtype.
    """
    if bias is None:
        return x
    return convolutions.bias_add(x, bias.get("bias", [count], x.dtype), layout)


def activate(x: Tensor, activation: Any, activity_regularizer: Any) -> Tensor:
    """Apply the activation of a layer, and collect the loss of its activity regularizer.

    Args:
        x: The tensor.
        activation: A function of a tensor; None for none.
        activity_regularizer: Returns a loss for the result, which is added to the collection
            REGULARIZATION_LOSSES, or None for no loss; None for no regularizer.

    Returns:
        The result of the activation; ``x`` itself without one.

    Raises:
        SettingError: If ``activation`` or ``activity_regularizer`` is neither None nor a function.
    """
    output = x
    if activation is not None:
        output = require_function("a layer", "activation", activation)(x)
    if activity_regularizer is not None:
        loss = require_function("a layer", "activity_regularizer", activity_regularizer)(output)
        if loss is not None:
            get_default_graph().add_to_collection(GraphKeys.REGULARIZATION_LOSSES, loss)
    return output
