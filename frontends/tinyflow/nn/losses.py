"""Softmax, cross entropies, normalization and rankings: functions of a network's last layers."""

from __future__ import annotations

from typing import Any

from passkit.errors import SettingError
from passkit.frontends.tinyflow.argument_checks import renamed_argument, require_float, require_int
from passkit.frontends.tinyflow.dtypes import as_dtype
from passkit.frontends.tinyflow.reductions import parse_axes
from passkit.frontends.tinyflow.tensors import (
    Tensor,
    as_entry,
    as_operands,
    as_tensor,
    call_operator,
    unique_name,
)
from passkit.graph.op import get_op


def _softmax_function(op: str, default: str) -> Any:
    """Create ``tf.nn.softmax`` or ``tf.nn.log_softmax``.

    Args:
        op: Name of the operator.
        default: Default name of the result.
    """

    def function(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
        chosen_axis = renamed_argument(default, "axis", axis, "dim", dim)
        parsed_axis = -1 if chosen_axis is None else parse_axes(chosen_axis)
        return call_operator(op, default, name, as_entry(logits), axis=parsed_axis)

    doc = get_op(op).doc
    function.__doc__ = f"""{doc[:1].upper()}{doc[1:]}.

    Args:
        logits: A tensor.
        axis: The axis; the last by default.
        name: The name of the result.
        dim: The older name of ``axis``.
    """
    return function


softmax = _softmax_function("softmax", "Softmax")
log_softmax = _softmax_function("log_softmax", "LogSoftmax")


def _labels_and_logits(function: str, labels: Any, logits: Any) -> list[Any]:
    """Convert labels and logits to operands. Raises: SettingError if one is missing."""
    for argument, value in (("labels", labels), ("logits", logits)):
        if value is None:
            raise SettingError(f"{function} needs labels= and logits= by name, got no {argument}")
    return [as_entry(v) if not hasattr(v, "dtype") else v for v in as_operands(labels, logits)]


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: Any = None, name: str | None = None, dim: Any = None
) -> Tensor:
    """Return the cross entropy of label distributions and softmax(logits).

    Gradients flow to the labels, too; `tf.stop_gradient` prevents that.

    Args:
        labels: Distributions over the classes, of the shape of ``logits``.
        logits: A tensor.
        axis: The axis of the classes; the last by default.
        name: The name of the result.
        dim: The older name of ``axis``.

    Returns:
        A tensor of the shape of ``logits`` without the axis.

    Raises:
        SettingError: If labels or logits are missing.
    """
    function = "softmax_cross_entropy_with_logits"
    chosen_axis = renamed_argument(function, "axis", axis, "dim", dim)
    operands = _labels_and_logits(function, labels, logits)
    return call_operator(
        function,
        function,
        name,
        *operands,
        axis=-1 if chosen_axis is None else parse_axes(chosen_axis),
    )


def softmax_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = None,
    axis: Any = None,
) -> Tensor:
    """Return the cross entropy of label distributions and softmax(logits). Labels get no gradient.

    Args:
        labels: Distributions over the classes, of the shape of ``logits``.
        logits: A tensor.
        dim: The older name of ``axis``.
        name: The name of the result.
        axis: The axis of the classes; the last by default.

    Returns:
        A tensor of the shape of ``logits`` without the axis.

    Raises:
        SettingError: If labels or logits are missing.
    """
    function = "softmax_cross_entropy_with_logits"
    y, x = _labels_and_logits(function, labels, logits)
    if axis is not None and dim != -1:
        raise SettingError(
            f"{function} needs axis or dim, its older name, got both: {axis} and {dim}"
        )
    chosen_axis = parse_axes(dim if axis is None else axis)
    return call_operator(function, function, name, get_op("stop_gradient")(y), x, axis=chosen_axis)


def sparse_softmax_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Return the cross entropy of class numbers and softmax(logits).

    Args:
        labels: Integers of shape (…).
        logits: A tensor of shape (…, classes).
        name: The name of the result.

    Returns:
        A tensor of shape (…).

    Raises:
        SettingError: If labels or logits are missing.
    """
    function = "sparse_softmax_cross_entropy_with_logits"
    for argument, value in (("labels", labels), ("logits", logits)):
        if value is None:
            raise SettingError(f"{function} needs labels= and logits= by name, got no {argument}")
    return call_operator(function, function, name, as_entry(labels), as_entry(logits))


def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """Return the cross entropy of labels and sigmoid(logits) for each element.

    Args:
        labels: From 0 to 1, of the shape of ``logits``.
        logits: A tensor.
        name: The name of the result.

    Raises:
        SettingError: If labels or logits are missing.
    """
    function = "sigmoid_cross_entropy_with_logits"
    return call_operator(
        function, "logistic_loss", name, *_labels_and_logits(function, labels, logits)
    )


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Return half the sum of squares.

    Args:
        t: A tensor.
        name: The name of the result.
    """
    entry = as_entry(t)
    return call_operator("mul", "L2Loss", name, get_op("reduce_sum")(get_op("square")(entry)), 0.5)


def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """Divide vectors by their L2 norm.

    Args:
        x: A tensor.
        axis: The axis of the vectors, or several axes; by default the tensor is one vector.
        epsilon: The least square of a norm.
        name: The name of the result.
        dim: The older name of ``axis``.
    """
    chosen_axis = renamed_argument("l2_normalize", "axis", axis, "dim", dim)
    entry = as_entry(x)
    square_sum = get_op("reduce_sum")(
        get_op("square")(entry), axis=parse_axes(chosen_axis), keepdims=True
    )
    scale = get_op("rsqrt")(
        get_op("maximum")(square_sum, require_float("l2_normalize", "epsilon", epsilon))
    )
    return call_operator("mul", "l2_normalize", name, entry, scale)


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Return whether the score of each target class is among the ``k`` largest.

    Args:
        predictions: Scores of shape (examples, classes).
        targets: The class of each example.
        k: An int. Classes of equal scores are all among the largest.
        name: The name of the result.
    """
    full_name, scores = unique_name(name, "in_top_k"), as_entry(predictions)
    target_indices = get_op("expand_dims")(as_entry(targets), axis=-1)
    target_scores = get_op("take_along_axis")(scores, target_indices, axis=-1)
    is_larger = get_op("cast")(get_op("greater")(scores, target_scores), dtype="int32")
    rank = get_op("reduce_sum")(is_larger, axis=-1)
    return as_tensor(get_op("less")(rank, require_int("in_top_k", "k", k)), full_name)


def top_k(
    input: Any, k: Any = 1, sorted: bool = True, index_type: Any = "int32", name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the largest elements along the last axis, and their indices, largest first.

    Args:
        input: A tensor.
        k: The number of elements.
        sorted: Must be True.
        index_type: The dtype of the indices.
        name: The name of the result.

    Raises:
        SettingError: For ``sorted=False``.
    """
    if sorted is not True:
        raise SettingError(f"top_k gives the largest first, got sorted={sorted!r}; leave it out")
    full_name = unique_name(name, "TopKV2")
    values, indices = get_op("top_k")(as_entry(input), k=require_int("top_k", "k", k))
    index_dtype = as_dtype(index_type)
    if index_dtype is not indices.dtype:
        indices = get_op("cast")(indices, dtype=index_dtype.name)
    return as_tensor(values, full_name), as_tensor(indices, full_name, index=1)


def batch_normalization(
    x: Any,
    mean: Any = None,
    variance: Any = None,
    offset: Any = None,
    scale: Any = None,
    variance_epsilon: float | None = None,
    name: str | None = None,
) -> Tensor:
    """Return (x - mean) / sqrt(variance + variance_epsilon) * scale + offset.

    Called with ``x`` only, it is TinyFlow's layer, which creates scale and offset.

    Args:
        x: A tensor.
        mean: The mean, of a shape that broadcasts with that of ``x``.
        variance: The variance, of such a shape.
        offset: Added to the result; None for none.
        scale: The factor; None for none.
        variance_epsilon: Added to the variance.
        name: The name of the result.
    """
    if mean is None and variance is None:
        from passkit.frontends.tinyflow.nn.tinyflow_layers import (
            batch_normalization_layer,  # it calls this
        )

        return batch_normalization_layer(x, name=name)
    full_name = unique_name(name, "batchnorm")
    epsilon = require_float("batch_normalization", "variance_epsilon", variance_epsilon)
    factor = get_op("rsqrt")(as_entry(variance) + epsilon)
    if scale is not None:
        factor = factor * as_entry(scale)
    shift = as_entry(mean) * factor
    normalized = (
        as_entry(x) * factor - shift
        if offset is None
        else as_entry(x) * factor + (as_entry(offset) - shift)
    )
    return as_tensor(normalized, full_name)


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """Return x where x is positive, else alpha * x.

    Args:
        features: A tensor.
        alpha: The slope of negative numbers.
        name: The name of the result.
    """
    slope = require_float("leaky_relu", "alpha", alpha)
    return call_operator("leaky_relu", "LeakyRelu", name, as_entry(features), alpha=slope)
