"""Normalization: layer, RMS, batch, group and instance norms.

Weights and biases are optional vectors along the normalized axes or channels. In layers with
channels, these are axis 1, as in PyTorch, unless ``axis`` says otherwise.
"""

from __future__ import annotations

from typing import Any

import passkit.ops as ops
from passkit.errors import ArgumentError
from passkit.frontends.xp.array import Array, array_of, wrap
from passkit.frontends.xp.creation import ones, zeros
from passkit.frontends.xp.elementwise import clip, divide
from passkit.frontends.xp.linalg import vector_norm
from passkit.frontends.xp.nn import array_functions
from passkit.frontends.xp.nn.operands import (
    applied,
    define,
    real_array,
    real_number,
    real_values,
)
from passkit.frontends.xp.reductions import Axes, one_axis, several_axes
from passkit.frontends.xp.runtime import apply_several, operation
from passkit.values.arguments import shown

VECTORS = ("weight", "bias")
"""The operands that may be None."""

define("batch_norm", ops.batch_norm)
define("batch_norm_training", ops.batch_norm_training)
define("group_norm", ops.group_norm)
define("instance_norm", ops.instance_norm)
define("layer_norm", ops.layer_norm, on_arrays=array_functions.layer_norm)
define("rms_norm", ops.rms_norm, on_arrays=array_functions.rms_norm)


def _normalized_axes(where: str, axis: Axes, rank: int) -> tuple[int, ...]:
    """Return axes as a sorted tuple, counted from the front; None for all of ``rank`` axes.

    Raises:
        ArgumentError: an axis is no integer.
        ShapeError: there is no such axis, or it is named twice.
    """
    axes = several_axes(where, axis, rank)
    return tuple(range(rank)) if axes is None else axes


def layer_norm(
    x: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    axis: int | tuple[int, ...] = -1,
    eps: float = 1e-5,
) -> Array:
    """Return x with mean 0 and variance 1 along axes, times a weight, plus a bias.

    Args:
        x: an array of real numbers; integers are computed in float64.
        weight: an array of the extents of these axes, or None.
        bias: the same.
        axis: the axis or axes; None for all.
        eps: a number that is added to the variance.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, ``eps`` no number, or an
            axis no integer.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: an axis does not exist or is named twice, or the shape of weight or bias is
            wrong.
        DeviceError: the arrays are on several devices.
    """
    values = real_values("layer_norm", optional=VECTORS, x=x, weight=weight, bias=bias)
    axes = _normalized_axes("layer_norm", axis, len(values[0].type.shape))
    params = {"axis": axes, "epsilon": real_number("layer_norm", "eps", eps)}
    flags = {"scale": weight is not None, "center": bias is not None}
    return applied("layer_norm", *values, **params, **flags)


def rms_norm(
    x: Any, weight: Any = None, *, axis: int | tuple[int, ...] = -1, eps: float = 1e-6
) -> Array:
    """Return x divided by the root of its mean square along axes, times a weight.

    ``weight`` has the extents of these axes, or is None; ``axis`` is one, several or None for all;
    ``eps`` is added to the mean square. Integers are computed in float64.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, ``eps`` no number, or an
            axis no integer.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: an axis does not exist or is named twice, or the shape of the weight is wrong.
        DeviceError: the arrays are on several devices.
    """
    values = real_values("rms_norm", optional=VECTORS, x=x, weight=weight)
    axes = _normalized_axes("rms_norm", axis, len(values[0].type.shape))
    number = real_number("rms_norm", "eps", eps)
    return applied("rms_norm", *values, axis=axes, epsilon=number, scale=weight is not None)


def group_norm(
    x: Any,
    num_groups: int,
    weight: Any = None,
    bias: Any = None,
    *,
    axis: int = 1,
    eps: float = 1e-5,
) -> Array:
    """Return x with mean 0 and variance 1 in each group of channels of each example.

    Args:
        x: an array of real numbers, (batch, channels, …); integers are computed in float64.
        num_groups: the number of groups, which divides the channels.
        weight: a vector with a factor for each channel, or None.
        bias: a vector with a summand for each channel, or None.
        axis: the axis of the channels, any but the first.
        eps: a number that is added to the variance.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, ``eps`` no number, or the
            axis or the number of groups no int.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the groups do not divide the channels; or the axis, or the shape of weight or
            bias, is wrong.
        DeviceError: the arrays are on several devices.
    """
    values = real_values("group_norm", optional=VECTORS, x=x, weight=weight, bias=bias)
    channel = one_axis("group_norm", axis, len(values[0].type.shape))
    if not isinstance(num_groups, int):
        raise ArgumentError(f"group_norm: num_groups must be an int, got {shown(num_groups)}")
    number = real_number("group_norm", "eps", eps)
    params = {"groups": num_groups, "channel_axis": channel, "epsilon": number}
    flags = {"scale": weight is not None, "center": bias is not None}
    return applied("group_norm", *values, **params, **flags)


def instance_norm(
    x: Any, weight: Any = None, bias: Any = None, *, axis: int = 1, eps: float = 1e-5
) -> Array:
    """Return x with mean 0 and variance 1 in each channel of each example.

    ``weight`` and ``bias`` are vectors with a number for each channel, or None; ``axis`` is that of
    the channels, any but the first; ``eps`` is added to the variance. Integers are computed in
    float64.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, ``eps`` no number, or the
            axis no integer.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the axis, or the shape of weight or bias, is wrong.
        DeviceError: the arrays are on several devices.
    """
    values = real_values("instance_norm", optional=VECTORS, x=x, weight=weight, bias=bias)
    channel = one_axis("instance_norm", axis, len(values[0].type.shape))
    params = {"channel_axis": channel, "epsilon": real_number("instance_norm", "eps", eps)}
    flags = {"scale": weight is not None, "center": bias is not None}
    return applied("instance_norm", *values, **params, **flags)


def _batch_norm_values(where: str, x: Any, mean: Any, var: Any, weight: Any, bias: Any) -> Any:
    """Return the values of x, weight, bias, mean and variance, in this order.

    A weight or bias of None becomes ones or zeros in the shape and dtype of the mean, on its
    device. Raises ArgumentError if another operand is no array or number, and DTypeError if one is
    complex.
    """
    array = array_of(x)
    center = array_of(mean)
    shape, like = center.shape, {"dtype": center.dtype, "device": center.device}
    weight = ones(shape, **like) if weight is None else weight
    bias = zeros(shape, **like) if bias is None else bias
    return real_values(where, x=array, weight=weight, bias=bias, running_mean=mean, running_var=var)


def batch_norm(
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    axis: int = 1,
    eps: float = 1e-5,
) -> Array:
    """Return (x - mean) / sqrt(variance + eps) * weight + bias, with a number for each channel.

    Args:
        x: an array of real numbers, (batch, channels, …); integers are computed in float64.
        running_mean: a vector with the mean of each channel.
        running_var: a vector with the variance of each channel.
        weight: a vector of factors, or None.
        bias: a vector of summands, or None.
        axis: the axis of the channels.
        eps: a number that is added to the variance.

    Raises:
        ArgumentError: an operand is no array or number, ``eps`` no number, or the axis no integer.
        DTypeError: an operand is complex, or an int too large for a float.
        ShapeError: the axis, or the shape of a vector, is wrong.
        DeviceError: the arrays are on several devices.
    """
    values = _batch_norm_values("batch_norm", x, running_mean, running_var, weight, bias)
    channel = one_axis("batch_norm", axis, len(values[0].type.shape))
    number = real_number("batch_norm", "eps", eps)
    return applied("batch_norm", *values, axis=channel, epsilon=number)


def batch_norm_training(
    x: Any,
    running_mean: Any,
    running_var: Any,
    weight: Any = None,
    bias: Any = None,
    *,
    momentum: float = 0.1,
    axis: int = 1,
    eps: float = 1e-5,
) -> tuple[Array, Array, Array]:
    """Return `batch_norm` by the statistics of the batch, and the new running ones.

    No argument is changed. Integers are computed in float64.

    Args:
        x: an array of real numbers, (batch, channels, …).
        running_mean: a vector with the mean of each channel so far.
        running_var: a vector with the variance of each channel so far.
        weight: a vector of factors, or None.
        bias: a vector of summands, or None.
        momentum: the part of the new statistics that is of this batch, which is not checked; their
            variance is the unbiased one, or 0 of one element.
        axis: the axis of the channels.
        eps: a number that is added to the variance.

    Returns: The result; the new running means; the new running variances.

    Raises:
        ArgumentError: an operand is no array or number, ``momentum`` or ``eps`` no number, or the
            axis no integer.
        DTypeError: an operand is complex, or an int too large for a float.
        ShapeError: the axis, or the shape of a vector, is wrong, or ``x`` has no elements.
        DeviceError: the arrays are on several devices.
    """
    where = "batch_norm_training"
    values = _batch_norm_values(where, x, running_mean, running_var, weight, bias)
    channel = one_axis(where, axis, len(values[0].type.shape))
    rest = 1.0 - real_number(where, "momentum", momentum)
    params = {"axis": channel, "epsilon": real_number(where, "eps", eps), "momentum": rest}
    y, mean, var = apply_several(operation(f"nn.{where}", **params), *values)
    return wrap(y), wrap(mean), wrap(var)


def normalize(x: Any, *, ord: float = 2, axis: int = -1, eps: float = 1e-12) -> Array:
    """Return vectors divided by their norm along an axis, or by ``eps`` if that is larger.

    Args:
        x: an array of real numbers; integers are computed in float64.
        ord: the order of the norm, a number, as of `linalg.vector_norm`.
        axis: the axis; a tuple of axes, or None for all, takes the norm along all of these.
        eps: the smallest divisor; with one up to 0, vectors of norm 0 give NaN.

    Raises:
        ArgumentError: ``x`` is neither an array nor a real number, ``ord`` or ``eps`` no number, or
            the axis no integer.
        DTypeError: ``x`` is an array of complex numbers or of a dtype that passkit does not have,
            or an int too large for a float.
        ShapeError: there is no such axis, it is named twice, or it is empty and ``ord`` infinite.
    """
    array = real_array("normalize", "x", x)
    norm = vector_norm(array, axis=axis, keepdims=True, ord=ord)
    return divide(array, clip(norm, real_number("normalize", "eps", eps)))
