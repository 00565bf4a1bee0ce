"""Dense, flatten and dropout layers of ``tf.layers``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from passkit.frontends.tinyflow import arrays
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
    """activation(inputs @ kernel + bias), over the last axis of inputs."""
    x = convert_to_tensor(inputs)
    width, units = require_length("dense", x, -1), require_int("dense", "units", units)
    weights = VariableSpec(kernel_initializer, kernel_regularizer, kernel_constraint, trainable)
    biases = VariableSpec(bias_initializer, bias_regularizer, bias_constraint, trainable)
    with variable_scope(name, "dense", reuse=reuse):
        kernel = weights.get("kernel", [width, units], x.dtype)
        output = arrays.matmul(flatten_to_matrix(x), kernel)
        output = add_bias(output, biases if use_bias else None, units)
        sizes = require_shape(x.entry)
        if len(sizes) != 2:
            output = arrays.reshape(output, [*sizes[:-1], units])
        return activate(output, activation, activity_regularizer)


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """(examples, the rest in one axis); channels that come first are put last before."""
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
    """`tf.nn.dropout` while ``training``, which may be a tensor; else inputs as they are."""
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
