"""Helpers that the layers of ``tf.layers`` share: layouts, variables, biases and activations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import frozen

from passkit.errors import SettingError, ShapeError
from passkit.frontends.tinyflow import arrays
from passkit.frontends.tinyflow.argument_checks import axis_length
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


@frozen
class VariableSpec:
    """How a layer creates one of its variables; the arguments are those of `tf.get_variable`."""

    initializer: Any
    regularizer: Any = None
    constraint: Any = None
    trainable: bool = True

    def get(self, name: str, shape: Sequence[int], dtype: Any) -> Variable:
        """Create the variable, or return that of an earlier call where the scope is reused."""
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

    Raises:
        SettingError: For another value.
    """
    if data_format not in LAYOUTS:
        raise SettingError(
            f"{function} needs {' or '.join(map(repr, LAYOUTS))} as data_format, got "
            f"{data_format!r}"
        )
    return LAYOUTS[data_format]


def channel_axis(layout: str) -> int:
    """Return the axis of the channels of images in the layout "NHWC" or "NCHW"."""
    return 1 if layout == "NCHW" else 3


def require_length(function: str, x: Tensor, axis: int) -> int:
    """Return the length of a tensor along an axis.

    Raises:
        ShapeError: If it is unknown, or there is no such axis.
    """
    n = axis_length(function, require_shape(x.entry, function), axis)
    if not isinstance(n, int):
        raise ShapeError(f"{function} needs inputs of known length along axis {axis}, got {x!r}")
    return n


def flatten_to_matrix(x: Tensor) -> Tensor:
    """Reshape to (rows, length of the last axis)."""
    sizes = require_shape(x.entry)
    return x if len(sizes) == 2 else arrays.reshape(x, [numel(sizes[:-1]), sizes[-1]])


def add_bias(x: Tensor, bias: VariableSpec | None, count: int, layout: str = "NHWC") -> Tensor:
    """Add a variable with a number for each of ``count`` channels; None adds nothing."""
    if bias is None:
        return x
    return convolutions.bias_add(x, bias.get("bias", [count], x.dtype), layout)


def activate(x: Tensor, activation: Any, activity_regularizer: Any) -> Tensor:
    """Apply the activation of a layer, and collect the loss of its activity regularizer."""
    output = x if activation is None else activation(x)
    if activity_regularizer is not None:
        graph = get_default_graph()
        graph.add_to_collection(GraphKeys.REGULARIZATION_LOSSES, activity_regularizer(output))
    return output
