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


def _softmax_function(op: str, default: str, summary: str) -> Any:
    """Create ``tf.nn.softmax`` or ``tf.nn.log_softmax``.

    Args:
        op: The name of the operator and of the function.
        default: The default name of the result.
        summary: The first line of the function's docstring.
    """

    def function(logits: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
        chosen_axis = renamed_argument(op, "axis", axis, "dim", dim)
        parsed_axis = -1 if chosen_axis is None else parse_axes(chosen_axis)
        return call_operator(op, default, name, as_entry(logits), axis=parsed_axis)

    function.__name__ = function.__qualname__ = op
    function.__doc__ = f"""{summary}

    Args:
        logits: A tensor of floats.
        axis: The axis or axes along which the probabilities add up to 1; the last by default.
        name: The name of the result; "{default}" by default.
        dim: The older name of ``axis``.

    Returns:
        A tensor of the shape and dtype of ``logits``.

    Raises:
        ShapeError: If the axis is no int or does not exist.
        DTypeError: If ``logits`` holds no floats.
        SettingError: If both ``axis`` and ``dim`` are passed.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    return function


softmax = _softmax_function(
    "softmax", "Softmax", "Return exp(logits) divided by its sum along an axis."
)
log_softmax = _softmax_function(
    "log_softmax", "LogSoftmax", "Return the logarithm of `softmax`, computed accurately."
)


def _labels_and_logits(function: str, labels: Any, logits: Any) -> list[Any]:
    """Convert labels and logits to a list of two entries, labels first.

    Numbers take the dtype of the first that is a tensor; see `as_operands`.

    Args:
        function: The function's name, for messages.
        labels: A tensor or numbers.
        logits: A tensor or numbers.

    Raises:
        SettingError: If one is None.
        ArgumentError: For a value that is neither a tensor nor numbers.
        DTypeError: For a tensor of text.
    """
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
        logits: A tensor of floats, of any shape with at least one axis.
        axis: The axis of the classes; the last by default.
        name: The name of the result; "softmax_cross_entropy_with_logits" by default.
        dim: The older name of ``axis``.

    Returns:
        A tensor of the shape of ``logits`` without the axis.

    Raises:
        SettingError: If labels or logits are missing, or an argument is passed under both of its
            names.
        ShapeError: If the shapes differ, or the axis is no int or does not exist.
        DTypeError: If the tensors hold no floats, or their dtypes differ.
        ArgumentError: For a value that is neither a tensor nor numbers.
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
        logits: A tensor of floats, of any shape with at least one axis.
        dim: The older name of ``axis``.
        name: The name of the result; "softmax_cross_entropy_with_logits" by default.
        axis: The axis of the classes; the last by default.

    Returns:
        A tensor of the shape of ``logits`` without the axis.

    Raises:
        SettingError: If labels or logits are missing, or both ``axis`` and another ``dim`` than -1
            are passed.
        ShapeError: If the shapes differ, or the axis is no int or does not exist.
        DTypeError: If the tensors hold no floats, or their dtypes differ.
        ArgumentError: For a value that is neither a tensor nor numbers.
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
        labels: Class numbers, integers of shape (…). One out of range has the loss 0.
        logits: A tensor of floats of shape (…, classes).
        name: The name of the result; the name of the function by default.

    Returns:
        A tensor of shape (…).

    Raises:
        SettingError: If labels or logits are missing.
        ShapeError: If the shapes do not fit.
        DTypeError: If the labels are no integers, or the logits no floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
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
        labels: Numbers from 0 to 1, of the shape of ``logits``.
        logits: A tensor of floats of any shape.
        name: The name of the result; "logistic_loss" by default.

    Returns:
        A tensor of the shape of ``logits``.

    Raises:
        SettingError: If labels or logits are missing.
        ShapeError: If the shapes differ.
        DTypeError: If the tensors hold no floats, or their dtypes differ.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    function = "sigmoid_cross_entropy_with_logits"
    return call_operator(
        function, "logistic_loss", name, *_labels_and_logits(function, labels, logits)
    )


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Return half the sum of squares.

    Args:
        t: A tensor of floats of any shape.
        name: The name of the result; "L2Loss" by default.

    Returns:
        A scalar tensor.

    Raises:
        DTypeError: If ``t`` holds no floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    entry = as_entry(t)
    return call_operator("mul", "L2Loss", name, get_op("reduce_sum")(get_op("square")(entry)), 0.5)


def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """Divide vectors by their L2 norm.

    Args:
        x: A tensor of floats.
        axis: The axis of the vectors, or several axes; by default the tensor is one vector.
        epsilon: The least square of a norm that is divided by; 1e-12 by default.
        name: The name of the result; "l2_normalize" by default.
        dim: The older name of ``axis``.

    Returns:
        A tensor of the shape and dtype of ``x``.

    Raises:
        ShapeError: If an axis is no int, does not exist or is named twice.
        DTypeError: If ``x`` holds no floats.
        SettingError: If ``epsilon`` is no number, or both ``axis`` and ``dim`` are passed.
        ArgumentError: For a value that is neither a tensor nor numbers.
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
        predictions: Scores of shape (examples, classes). No score is larger than a NaN, and a NaN
            is larger than none.
        targets: The class of each example, integers of shape (examples). Negative ones count from
            the end, and those that are still out of range are clipped.
        k: The number of largest scores, an int. Classes of equal scores are all among the largest.
        name: The name of the result; "in_top_k" by default.

    Returns:
        A bool for each example.

    Raises:
        ShapeError: If the shapes do not fit.
        SettingError: If ``k`` is no int.
        DTypeError: If ``targets`` are no integers, the scores complex numbers or text, or ``k`` is
            beyond 32 bits.
        ArgumentError: For a value that is neither a tensor nor numbers.
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
        input: A tensor of rank 1 or more.
        k: The number of elements, at most the length of the last axis; 1 by default.
        sorted: Must be True, the default.
        index_type: The dtype to which the indices are cast; int32 by default.
        name: The name of the results; "TopKV2" by default.

    Returns:
        The elements and their indices, two tensors of the shape of ``input`` whose last axis has
        length ``k``.

    Raises:
        SettingError: For ``sorted=False``, or if ``k`` is no int.
        ShapeError: If there are fewer than ``k`` elements, ``k`` is negative, or ``input`` is a
            scalar.
        DTypeError: If ``index_type`` is no element type, or complex; for a tensor of text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    if sorted is not True:
        raise SettingError(
            f"top_k returns the largest elements first, got sorted={sorted!r}; leave it out"
        )
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

    Called without ``mean`` and ``variance``, it is TinyFlow's layer, which creates scale and
    offset; all arguments but ``x`` and ``name`` are ignored then.

    Args:
        x: A tensor of floats, or of integers, for which the result is float64. Bools count as 0 and
            1.
        mean: The mean, of a shape that broadcasts with that of ``x``.
        variance: The variance, of such a shape.
        offset: A number or tensor that is added to the result; None (default) for none.
        scale: A number or tensor, the factor; None (default) for none.
        variance_epsilon: A number that is added to the variance; required unless the call is
            TinyFlow's.
        name: The name of the result; "batchnorm" by default.

    Returns:
        A tensor of the shape of ``x`` broadcast with those of the others. Of several dtypes it has
        NumPy's for all.

    Raises:
        SettingError: If ``variance_epsilon`` is no number, unless the call is TinyFlow's.
        ShapeError: If the shapes do not broadcast; in TinyFlow's call, if ``x`` is a vector or
            scalar or its number of channels is known only in a run.
        DTypeError: If ``variance`` or ``x`` holds complex numbers; in TinyFlow's call, if ``x``
            holds no floats.
        ArgumentError: For a value that is neither a tensor nor numbers, such as one of ``mean`` and
            ``variance`` that is None beside the other.
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
    """Return features where they are positive, else alpha * features.

    Args:
        features: A tensor of floats of any shape.
        alpha: The slope of negative numbers; 0.2 by default.
        name: The name of the result; "LeakyRelu" by default.

    Returns:
        A tensor of the shape and dtype of ``features``.

    Raises:
        SettingError: If ``alpha`` is no number.
        DTypeError: If ``features`` holds no floats.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    slope = require_float("leaky_relu", "alpha", alpha)
    return call_operator("leaky_relu", "LeakyRelu", name, as_entry(features), alpha=slope)
