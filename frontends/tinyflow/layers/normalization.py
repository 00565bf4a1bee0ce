"""Batch normalization of ``tf.layers``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from passkit.frontends.tinyflow.argument_checks import (
    reject_arguments,
    require_float,
    require_int,
    require_truth,
)
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.layers.common import ONES, ZEROS, VariableSpec, require_length
from passkit.frontends.tinyflow.reductions import moments
from passkit.frontends.tinyflow.scopes import variable_scope
from passkit.frontends.tinyflow.shapes import require_shape
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    as_entry,
    as_tensor,
    convert_to_tensor,
    scalar_entry,
)
from passkit.frontends.tinyflow.variables import assign
from passkit.graph.node import Entry
from passkit.ops.helpers import make, size_as_entry
from passkit.values.size import numel


@reject_arguments("it is one fused program", "fused", "virtual_batch_size", "adjustment")
@reject_arguments(
    "tf.layers.dense and tf.nn.batch_normalization are there for other rules",
    "renorm",
    "renorm_clipping",
    "renorm_momentum",
)
def batch_normalization(
    inputs: Any,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = ZEROS,
    gamma_initializer: Any = ONES,
    moving_mean_initializer: Any = ZEROS,
    moving_variance_initializer: Any = ONES,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    renorm: bool = False,
    renorm_clipping: Any = None,
    renorm_momentum: float = 0.99,
    fused: bool | None = None,
    virtual_batch_size: int | None = None,
    adjustment: Any = None,
) -> Tensor:
    """Normalize each channel to mean 0 and variance 1, times gamma, plus beta.

    While ``training``, the statistics are those of the batch, and operations in the collection
    UPDATE_OPS move the running statistics towards them; a training step must run these operations.
    Otherwise the running statistics are used.

    Source: Ioffe and Szegedy, Batch Normalization.

    Args:
        inputs: A tensor of known length along ``axis``.
        axis: The axis of the channels; the last by default.
        momentum: The weight of the running statistics when they are moved; 0.99 by default.
        epsilon: A number that is added to the variance; 0.001 by default.
        center: Whether there is a variable beta, of shape (channels); True by default.
        scale: Whether there is a variable gamma, of shape (channels); True by default.
        beta_initializer: Creates the initial beta; zeros by default.
        gamma_initializer: Creates the initial gamma; ones by default.
        moving_mean_initializer: Creates the initial running mean; zeros by default.
        moving_variance_initializer: Creates the initial running variance; ones by default.
        beta_regularizer: A function that returns a loss for beta; None (default) for none.
        gamma_regularizer: A function that returns a loss for gamma; None (default) for none.
        beta_constraint: A function that is applied to beta after each update by an optimizer; None
            (default) for none.
        gamma_constraint: The same for gamma.
        training: Whether to use and record the statistics of the batch, a bool or a scalar tensor
            of bools; False by default.
        trainable: Whether optimizers change beta and gamma; True by default.
        name: The variable scope; "batch_normalization" by default.
        reuse: True to use the variables of an earlier call, tf.AUTO_REUSE to create missing ones;
            by default as the variable scope.
        renorm: Unsupported; only the default is accepted.
        renorm_clipping: Unsupported; only the default is accepted.
        renorm_momentum: Unsupported; only the default is accepted.
        fused: Unsupported; only the default is accepted.
        virtual_batch_size: Unsupported; only the default is accepted.
        adjustment: Unsupported; only the default is accepted.

    Returns:
        A tensor of the shape and dtype of ``inputs``; float64 for integers.

    Raises:
        ShapeError: If the axis does not exist, the length along it is unknown, a reused variable
            has another shape, or ``training`` is a tensor of several elements.
        SettingError: If ``axis`` is no int, such as a list, ``epsilon`` or ``momentum`` no number,
            an initializer, regularizer or constraint neither None nor a function, ``reuse`` another
            value, ``training``, ``center`` or ``scale`` an array of another number of elements than
            1, or an unsupported argument is set.
        GraphError: If the variables exist and ``reuse`` is not set, or they are to be reused and do
            not exist.
        DTypeError: If ``inputs`` holds bools or complex numbers, or integers unless ``training`` is
            False, or if ``training`` is a tensor of another dtype than bool.
        ArgumentError: If ``inputs`` is neither a tensor nor numbers.
    """
    x = convert_to_tensor(inputs)
    channels = require_length("batch_normalization", x, axis)
    momentum = require_float("batch_normalization", "momentum", momentum)
    rank = len(require_shape(x.entry))
    channel_axis = require_int("batch_normalization", "axis", axis) % rank
    reduced_axes = tuple(k for k in range(rank) if k != channel_axis)
    with variable_scope(name, "batch_normalization", reuse=reuse):
        gamma = beta = None
        if require_truth("batch_normalization", "scale", scale):
            spec = VariableSpec(gamma_initializer, gamma_regularizer, gamma_constraint, trainable)
            gamma = spec.get("gamma", [channels], x.dtype)
        if require_truth("batch_normalization", "center", center):
            spec = VariableSpec(beta_initializer, beta_regularizer, beta_constraint, trainable)
            beta = spec.get("beta", [channels], x.dtype)
        running = [
            VariableSpec(initializer, trainable=False).get(statistic, [channels], x.dtype)
            for statistic, initializer in (
                ("moving_mean", moving_mean_initializer),
                ("moving_variance", moving_variance_initializer),
            )
        ]
        shape = tuple(channels if k == channel_axis else 1 for k in range(rank))

        def along_channels(values: Any) -> Any:
            return make("reshape", as_entry(values), shape=shape)

        statistics = _select_statistics(x, reduced_axes, running, momentum, training)
        mean, variance = map(along_channels, statistics)
        factor = make("rsqrt", variance + require_float("batch_normalization", "epsilon", epsilon))
        factor = factor if gamma is None else factor * along_channels(gamma)
        normalized = (x.entry - mean) * factor
        normalized = normalized if beta is None else normalized + along_channels(beta)
        return as_tensor(normalized, get_default_graph().unique_name("batchnorm"))


def _select_statistics(
    x: Tensor,
    reduced_axes: tuple[int, ...],
    running: Sequence[Any],
    momentum: float,
    training: Any,
) -> Sequence[Any]:
    """Return the mean and variance to normalize with, and record those of the batch in training.

    Args:
        x: Input of the layer.
        reduced_axes: All axes but that of the channels.
        running: Variables of the running mean and variance.
        momentum: Weight of the old running statistics.
        training: Whether the batch's statistics are used: a bool, or a bool tensor.

    Returns:
        Mean and variance: the variables ``running`` themselves if ``training`` is false, else
        tensors.

    Raises:
        DTypeError: If ``x`` holds no floats in training, or ``training`` is a tensor of another
            dtype than bool.
        ShapeError: If ``training`` is a tensor that does not broadcast with the statistics.
        SettingError: If ``training`` is an array whose number of elements is not 1.
    """
    is_known = not isinstance(training, Tensor)
    if is_known and not require_truth("batch_normalization", "training", training):
        return running
    batch = moments(x, list(reduced_axes))
    _update_moving_statistics(running, batch, x, reduced_axes, momentum, training)
    if is_known:
        return batch
    is_training: Entry = scalar_entry(training)
    return [
        as_tensor(make("where", is_training, b.entry, r.entry), r._name)
        for b, r in zip(batch, running, strict=True)
    ]


def _update_moving_statistics(
    running: Sequence[Any],
    batch: Sequence[Tensor],
    x: Tensor,
    reduced_axes: tuple[int, ...],
    momentum: float,
    training: Any,
) -> None:
    """Put the operations that move the running statistics into the collection UPDATE_OPS.

    Args:
        running: Variables of the running mean and variance.
        batch: Mean and variance of the batch.
        x: Input of the layer.
        reduced_axes: Axes over which statistics are taken.
        momentum: Weight of the old running statistics.
        training: True, or a bool tensor; where it is false, nothing changes.

    Raises:
        DTypeError: If ``training`` is a tensor of another dtype than bool.
        ShapeError: If ``training`` is a tensor of several elements.
    """
    sizes = require_shape(x.entry)
    count = numel(sizes[k] for k in reduced_axes)
    mean, variance = (b.entry for b in batch)
    if len(sizes) == 4:  # TensorFlow's kernel for images takes the variance of a sample
        number = make("cast", size_as_entry(count), dtype=str(x.dtype))
        variance = variance * (number / make("maximum", number - 1.0, 1.0))
    for old, new in zip(running, (mean, variance), strict=True):
        value = old.state * momentum + new * (1 - momentum)
        if isinstance(training, Tensor):
            value = make("where", scalar_entry(training), value, old.state)
        write = assign(old, as_tensor(value, f"{old._name}/new"))
        get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, write.op)
