"""Batch normalisation with its gradients, and biases."""

from __future__ import annotations

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.table import Result, row
from passkit.frontends.tf_graphdef.value import Call, Value
from passkit.frontends.tf_graphdef.windows import channels_first
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, constant
from passkit.ops.layouts import as_dtype, wide
from passkit.values.size import Shape, numel

NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")


def _channel_axis(call: Call, shape: Shape) -> int:
    """Where the channels are. Raises: ModelError for another rank than 4 and 5."""
    if len(shape) not in (4, 5):
        raise ModelError(f"{call.where} needs data of rank 4 or 5, got {show_shape(shape)}")
    given = call.attr("data_format", "s", b"NHWC")
    if len(shape) == 5 and given == b"NHWC":
        return 4
    return 1 if channels_first(call, len(shape) - 2) else len(shape) - 1


def _none() -> Entry:
    """What TensorFlow returns on a CPU as space that only a GPU needs: no elements."""
    return constant(np.zeros(0, np.float32))


@row(*NORMS)
def _batch_norm(
    call: Call, x: Value, scale: Value, offset: Value, mean: Value, variance: Value
) -> Result:
    """y, mean and variance; those of the batch again, the variance as the gradient needs it."""
    vectors = [wide(v.entry) for v in (scale, offset)]
    axis = _channel_axis(call, call.shape(x))
    epsilon = call.attr("epsilon", "f", 1e-4)
    if call.attr("is_training", "b", True):
        results = _training(call, x, vectors, (mean, variance), axis, epsilon)
    else:
        data = (wide(x.entry), *vectors, wide(mean.entry), wide(variance.entry))
        y = ops.batch_norm(*data, epsilon=epsilon, axis=axis, name=call.name)
        results = (as_dtype(y, x.entry), *(mean.entry, variance.entry) * 2)
    return (*results, _none()) if call.node.op.endswith("V3") else results


def _training(
    call: Call,
    x: Value,
    vectors: list[Entry],
    running: tuple[Value, Value],
    axis: int,
    epsilon: float,
) -> tuple[Entry, ...]:
    factor = call.attr("exponential_avg_factor", "f", 1.0)
    shape = call.shape(x)
    given = [v.entry for v in running]
    if factor == 1:
        zeros = ops.zeros_like(vectors[0])
        given = [zeros, zeros]
    y, new_mean, new_variance = ops.batch_norm_training(
        wide(x.entry), *vectors, *given, epsilon=epsilon, axis=axis, momentum=1.0 - factor
    )
    mean, variance = _statistics(x, axis, len(shape))
    return as_dtype(y, x.entry), new_mean, new_variance, mean, variance


def _statistics(x: Value, axis: int, rank: int) -> tuple[Entry, Entry]:
    axes = tuple(k for k in range(rank) if k != axis)
    data = wide(x.entry)
    return ops.reduce_mean(data, axis=axes), ops.reduce_variance(data, axis=axes)


@row("_FusedBatchNormEx")
def _batch_norm_ex(call: Call, *values: Value) -> Result:
    """Grappler's: a sum with side inputs, and an activation, follow."""
    if len(values) < 5:
        raise ModelError(f"{call.where} needs at least 5 inputs, got {len(values)}")
    y, *rest = _batch_norm(call, *values[:5])
    for side in values[5:]:
        y = ops.add(y, side.entry)
    mode = call.attr("activation_mode", "s", b"Identity")
    if mode not in (b"Identity", b"Relu"):
        raise ModelError(f"{call.where} needs the activation_mode Identity or Relu, got {mode!r}")
    return (ops.relu(y) if mode == b"Relu" else y, *rest, _none())


def _along(v: Entry, rank: int, axis: int) -> Entry:
    made: Entry = ops.expand_dims(v, axis=tuple(k for k in range(rank) if k != axis))
    return made


@row("FusedBatchNormGrad", "FusedBatchNormGradV2")
def _batch_norm_grad(
    call: Call, dy: Value, x: Value, scale: Value, mean: Value, variance: Value
) -> Result:
    shape = call.shape(x)
    rank, axis = len(shape), _channel_axis(call, shape)
    axes = tuple(k for k in range(rank) if k != axis)
    flow, data = wide(dy.entry), wide(x.entry)
    factor = ops.rsqrt(wide(variance.entry) + call.attr("epsilon", "f", 1e-4))
    away = (data - _along(wide(mean.entry), rank, axis)) * _along(factor, rank, axis)
    to_offset = ops.reduce_sum(flow, axis=axes)
    to_scale = ops.reduce_sum(flow * away, axis=axes)
    if call.attr("is_training", "b", True):
        count = numel([shape[k] for k in axes])
        both = (ops.div_by_size(e, size=count) for e in (to_offset, to_scale))
        shift, slope = (_along(e, rank, axis) for e in both)
        flow = flow - shift - away * slope
    to_x = flow * _along(wide(scale.entry) * factor, rank, axis)
    return as_dtype(to_x, x.entry), to_scale, to_offset, _none(), _none()


@row("FusedBatchNormGradV3")
def _batch_norm_grad_v3(
    call: Call, dy: Value, x: Value, scale: Value, mean: Value, variance: Value, space: Value
) -> Result:
    return _batch_norm_grad(call, dy, x, scale, mean, variance)


@row("BiasAddV1")
def _bias_add(call: Call, x: Value, bias: Value) -> Result:
    return ops.add(x.entry, bias.entry, name=call.name)


@row("BiasAddGrad")
def _bias_add_grad(call: Call, dy: Value) -> Result:
    """What flows to all elements of a channel, summed."""
    shape = call.shape(dy)
    given = call.attr("data_format", "s", b"NHWC")
    if given not in (b"NHWC", b"NCHW") or len(shape) < 2:
        raise ModelError(
            f"{call.where} needs the data_format NHWC or NCHW and {short(dy.name)} of rank 2 at "
            f"least, got {given!r} and {show_shape(shape)}"
        )
    axis = 1 if given == b"NCHW" and len(shape) > 2 else len(shape) - 1
    axes = tuple(k for k in range(len(shape)) if k != axis)
    return ops.reduce_sum(dy.entry, axis=axes, name=call.name)
