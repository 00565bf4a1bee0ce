"""Importers of batch normalization with its gradients, and of the gradient of a bias."""

from __future__ import annotations

import numpy as np

from passkit.errors import ModelError
from passkit.frontends.tf_graphdef.imported_value import ImportCall, ImportedValue
from passkit.frontends.tf_graphdef.node_windows import channels_first
from passkit.frontends.tf_graphdef.operators import ops
from passkit.frontends.tf_graphdef.proto import short
from passkit.frontends.tf_graphdef.registry import ImportResult, op_importer
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, constant
from passkit.ops.layouts import as_dtype, widened
from passkit.values.dtype import DType
from passkit.values.size import Shape, numel

NORMS = ("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")


def _channel_axis(call: ImportCall, shape: Shape) -> int:
    """Return the axis of the channels, by the attribute ``data_format``.

    The default is NHWC, which for rank 5 means channels last, too. ``call`` is the node.

    ``shape`` is that of the data.

    Raises:
        ModelError: If the rank is not 4 or 5, or the data format is unknown, or an attribute is of
            another kind.
    """
    if len(shape) not in (4, 5):
        raise ModelError(f"{call.where} needs data of rank 4 or 5, got {show_shape(shape)}")
    data_format = call.attr("data_format", "s", b"NHWC")
    if len(shape) == 5 and data_format == b"NHWC":
        return 4
    return 1 if channels_first(call, len(shape) - 2) else len(shape) - 1


def _empty_result() -> Entry:
    """Return an empty array, for results that TensorFlow fills only on a GPU."""
    return constant(np.zeros(0, np.float32))


@op_importer(*NORMS)
def _batch_norm(
    call: ImportCall,
    x: ImportedValue,
    scale: ImportedValue,
    offset: ImportedValue,
    mean: ImportedValue,
    variance: ImportedValue,
) -> ImportResult:
    """Import FusedBatchNorm and its later versions: normalize over batch and spatial axes.

    Args:
        call: The node; its attributes are ``is_training`` (True), ``epsilon`` (1e-4),
            ``exponential_avg_factor`` (1) and the data format.
        x: Input of rank 4 or 5.
        scale: Factor of each channel.
        offset: Summand of each channel.
        mean: Running mean, used if the node is not training or averages over batches.
        variance: Running variance, likewise.

    Returns:
        The normalized Y, new running mean and variance, and the mean and variance that the gradient
        needs; for V3 also an empty array. Not in training, both pairs are the inputs.

    Raises:
        ModelError: If the rank of ``x`` is unknown or not 4 or 5, or the data format is unknown, or
            an attribute is of another kind.
        ShapeError: If one of the other inputs that is used is no vector of one element for each
            channel, or, in training, an axis of ``x`` other than that of the channels is empty.
        DTypeError: If they are not floats of one dtype, where 16-bit floats count as float32.
    """
    vectors = [widened(v.entry) for v in (scale, offset)]
    axis = _channel_axis(call, call.shape(x))
    epsilon = call.attr("epsilon", "f", 1e-4)
    if call.attr("is_training", "b", True):
        results = _train_batch_norm(call, x, vectors, (mean, variance), axis, epsilon)
    else:
        data = (widened(x.entry), *vectors, widened(mean.entry), widened(variance.entry))
        y = ops.batch_norm(*data, epsilon=epsilon, axis=axis, name=call.name)
        results = (as_dtype(y, x.entry), *(mean.entry, variance.entry) * 2)
    return (*results, _empty_result()) if call.node.op.endswith("V3") else results


def _train_batch_norm(
    call: ImportCall,
    x: ImportedValue,
    vectors: list[Entry],
    running: tuple[ImportedValue, ImportedValue],
    axis: int,
    epsilon: float,
) -> tuple[Entry, ...]:
    """Return the results of a batch norm in training.

    ``exponential_avg_factor`` is the weight of this batch in the running values, by default 1.

    Args:
        call: The node.
        x: Input of rank 4 or 5.
        vectors: Scale and offset.
        running: Running mean and variance, not read if ``exponential_avg_factor`` is 1.
        axis: Axis of the channels.
        epsilon: Added to the variance.

    Returns:
        Y, new running mean and variance, and mean and variance of this batch.

    Raises:
        ModelError: If the rank of ``x`` is unknown, or an attribute is of another kind.
        ShapeError: If one of the other inputs that is read is no vector of one element for each
            channel, or an axis of ``x`` other than that of the channels is empty.
        DTypeError: If they are not floats of one dtype, where 16-bit floats count as float32.
    """
    average_factor = call.attr("exponential_avg_factor", "f", 1.0)
    shape = call.shape(x)
    running_statistics = [v.entry for v in running]
    if average_factor == 1:
        zeros = ops.zeros_like(vectors[0])
        running_statistics = [zeros, zeros]
    y, new_mean, new_variance = ops.batch_norm_training(
        widened(x.entry),
        *vectors,
        *running_statistics,
        epsilon=epsilon,
        axis=axis,
        momentum=1.0 - average_factor,
    )
    mean, variance = _statistics(x, axis, len(shape))
    return as_dtype(y, x.entry), new_mean, new_variance, mean, variance


def _statistics(x: ImportedValue, axis: int, rank: int) -> tuple[Entry, Entry]:
    """Return mean and variance of each channel of ``x``, as two vectors.

    Args:
        x: Input, of floats; 16-bit floats are computed in float32.
        axis: Axis of the channels.
        rank: Rank of ``x``.

    Raises:
        DTypeError: If ``x`` is not of floats.
    """
    axes = tuple(k for k in range(rank) if k != axis)
    data = widened(x.entry)
    return ops.reduce_mean(data, axis=axes), ops.reduce_variance(data, axis=axes)


@op_importer("_FusedBatchNormEx")
def _batch_norm_ex(call: ImportCall, *values: ImportedValue) -> ImportResult:
    """Import _FusedBatchNormEx: a batch norm whose Y is added to side inputs and activated.

    Args:
        call: The node.
        values: The five inputs of a batch norm, then side inputs that are added to Y.

    Returns:
        The results of the batch norm, and an empty array.

    Raises:
        ModelError: If inputs are missing, ``activation_mode`` is neither Identity nor Relu, the
            rank of the data is not 4 or 5, the data format is unknown, or an attribute is of
            another kind.
        ShapeError: If the vectors or side inputs do not fit.
        DTypeError: If the five inputs are not floats of one dtype, where 16-bit floats count as
            float32, or a side input has another dtype than Y.
    """
    if len(values) < 5:
        raise ModelError(f"{call.where} needs at least 5 inputs, got {len(values)}")
    y, *rest = _batch_norm(call, *values[:5])
    for side in values[5:]:
        y = ops.add(y, side.entry)
    mode = call.attr("activation_mode", "s", b"Identity")
    if mode not in (b"Identity", b"Relu"):
        raise ModelError(f"{call.where} needs the activation_mode Identity or Relu, got {mode!r}")
    return (ops.relu(y) if mode == b"Relu" else y, *rest, _empty_result())


def _expand_channels(v: Entry, rank: int, axis: int) -> Entry:
    """Expand a vector of channels so that it broadcasts over an image.

    Args:
        v: The vector.
        rank: Rank of the image.
        axis: Its axis of channels.
    """
    expanded: Entry = ops.expand_dims(v, axis=tuple(k for k in range(rank) if k != axis))
    return expanded


def _check_norm_input(
    call: ImportCall, value: ImportedValue, extents: Shape, dtype: DType | None
) -> None:
    """Check an input of the gradient of a batch norm.

    Args:
        call: The node.
        value: The input.
        extents: The shape that it must have; extents that are not both numbers are not compared.
        dtype: The dtype that it must have after 16-bit floats became float32; so no input fits a
            16-bit dtype here.

    Raises:
        ModelError: If it has another shape or dtype, its rank is unknown, or ``dtype`` is None or
            not one of floats.
    """
    shape = call.rank(value, len(extents))
    pairs = zip(shape, extents, strict=True)
    if any(isinstance(n, int) and isinstance(m, int) and n != m for n, m in pairs):
        raise ModelError(
            f"{call.where} needs {short(value.name)} of shape {show_shape(extents)}, got "
            f"{show_shape(shape)}"
        )
    actual = widened(value.entry).dtype
    if dtype is None or actual is not dtype or not dtype.is_float:
        needed = dtype if dtype is not None and dtype.is_float else "floats"
        raise ModelError(f"{call.where} needs {short(value.name)} of {needed}, got {actual}")


@op_importer("FusedBatchNormGrad", "FusedBatchNormGradV2")
def _batch_norm_grad(
    call: ImportCall,
    dy: ImportedValue,
    x: ImportedValue,
    scale: ImportedValue,
    mean: ImportedValue,
    variance: ImportedValue,
) -> ImportResult:
    """Import FusedBatchNormGrad and FusedBatchNormGradV2: the gradients of a batch norm.

    Args:
        call: The node.
        dy: Gradient of Y.
        x: Input of the batch norm.
        scale: Its scale.
        mean: Mean of the batch, or the running mean if not training.
        variance: Variance of the batch, or the running variance.

    Returns:
        Gradients of x, in its dtype, of scale and of offset, and two empty arrays.

    Raises:
        ModelError: If the rank of ``x`` is unknown or not 4 or 5, ``dy`` has another shape, another
            input is no vector of the channels, the inputs are not floats of one dtype, where 16-bit
            floats count as float32, the data format is unknown, or an attribute is of another kind.
    """
    shape = call.shape(x)
    rank, axis = len(shape), _channel_axis(call, shape)
    dtype = widened(x.entry).dtype
    for value, extents in (
        (x, shape),
        (dy, shape),
        *((vector, (shape[axis],)) for vector in (scale, mean, variance)),
    ):
        _check_norm_input(call, value, extents, dtype)
    axes = tuple(k for k in range(rank) if k != axis)
    gradient, data = widened(dy.entry), widened(x.entry)
    inverse_deviation = ops.rsqrt(widened(variance.entry) + call.attr("epsilon", "f", 1e-4))
    normalized = (data - _expand_channels(widened(mean.entry), rank, axis)) * _expand_channels(
        inverse_deviation, rank, axis
    )
    gradient_offset = ops.reduce_sum(gradient, axis=axes)
    gradient_scale = ops.reduce_sum(gradient * normalized, axis=axes)
    if call.attr("is_training", "b", True):
        count = numel([shape[k] for k in axes])
        means = (ops.div_by_size(e, size=count) for e in (gradient_offset, gradient_scale))
        shift, slope = (_expand_channels(e, rank, axis) for e in means)
        gradient = gradient - shift - normalized * slope
    gradient_x = gradient * _expand_channels(widened(scale.entry) * inverse_deviation, rank, axis)
    return (
        as_dtype(gradient_x, x.entry),
        gradient_scale,
        gradient_offset,
        _empty_result(),
        _empty_result(),
    )


@op_importer("FusedBatchNormGradV3")
def _batch_norm_grad_v3(
    call: ImportCall,
    dy: ImportedValue,
    x: ImportedValue,
    scale: ImportedValue,
    mean: ImportedValue,
    variance: ImportedValue,
    space: ImportedValue,
) -> ImportResult:
    """Import FusedBatchNormGradV3: the gradients of a batch norm.

    Args:
        call: The node.
        dy: Gradient of Y.
        x: Input of the batch norm, of rank 4 or 5.
        scale: Its scale.
        mean: Mean of the batch, or the running mean if not training.
        variance: Variance of the batch, or the running variance.
        space: For GPUs, and ignored.

    Returns:
        Gradients of x, scale and offset, and two empty arrays.

    Raises:
        ModelError: If the rank of ``x`` is unknown or not 4 or 5, ``dy`` has another shape, another
            input is no vector of the channels, the inputs are not floats of one dtype, where 16-bit
            floats count as float32, the data format is unknown, or an attribute is of another kind.
    """
    return _batch_norm_grad(call, dy, x, scale, mean, variance)


@op_importer("BiasAddGrad")
def _bias_add_grad(call: ImportCall, dy: ImportedValue) -> ImportResult:
    """Import BiasAddGrad: the sum of ``dy`` over all axes but the channels.

    Channels are the last axis, or axis 1 for the data format NCHW and more than two axes. ``call``
    is the node.

    Raises:
        ModelError: If the data format is unknown, or the rank unknown or less than 2, or an
            attribute is of another kind.
        DTypeError: If ``dy`` is of bools or complex.
    """
    shape = call.shape(dy)
    data_format = call.attr("data_format", "s", b"NHWC")
    if data_format not in (b"NHWC", b"NCHW") or len(shape) < 2:
        raise ModelError(
            f"{call.where} needs the data_format NHWC or NCHW and {short(dy.name)} of rank at "
            f"least 2, got {data_format!r} and {show_shape(shape)}"
        )
    axis = 1 if data_format == b"NCHW" and len(shape) > 2 else len(shape) - 1
    axes = tuple(k for k in range(len(shape)) if k != axis)
    return ops.reduce_sum(dy.entry, axis=axes, name=call.name)
