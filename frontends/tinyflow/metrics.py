"""``tf.metrics``: metrics accumulated over many runs in local variables.

Each returns a value and an operation that updates it. `tf.local_variables_initializer` resets them.
"""

from __future__ import annotations

from typing import Any

from passkit.frontends.tinyflow import creation, elementwise, losses
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.missing_names import missing_name_handler
from passkit.frontends.tinyflow.reductions import FUNCTIONS as REDUCTIONS
from passkit.frontends.tinyflow.scopes import variable_scope
from passkit.frontends.tinyflow.tensors import Tensor, as_tensor, convert_to_tensor, unique_name
from passkit.frontends.tinyflow.variables import Variable, assign_add
from passkit.ops.helpers import make

MATH = elementwise.FUNCTIONS
Metric = tuple[Tensor, Tensor]


def _create_counter(name: str) -> Variable:
    """Create a local variable that is initialized to 0."""
    keys = [GraphKeys.LOCAL_VARIABLES, "metric_variables"]
    return Variable(creation.constant(0.0), trainable=False, collections=keys, name=name)


def _add_to_collections(measure: Metric, metrics: Any, updates: Any) -> Metric:
    """Add the value and the update of a metric to collections, and return the metric.

    Args:
        measure: Value and update.
        metrics: Keys of collections for the value; None for none.
        updates: Keys of collections for the update; None for none.
    """
    for keys, tensor in ((metrics, measure[0]), (updates, measure[1])):
        for key in [keys] if isinstance(keys, str) else keys or ():
            get_default_graph().add_to_collection(key, tensor)
    return measure


def _divide_or_zero(above: Any, below: Any, name: str) -> Tensor:
    """Return numerator / denominator; 0 where the denominator is 0."""
    ratio = make("where", make("equal", below.entry, 0.0), 0.0, above.entry / below.entry)
    return as_tensor(ratio, unique_name(name, name))


def _weighted_sums(values: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
    """Return the sum of the values times their weights, and the sum of the weights."""
    ones = creation.ones_like(values)
    scale = ones if weights is None else ones * elementwise.to_float(convert_to_tensor(weights))
    return REDUCTIONS["reduce_sum"](values * scale), REDUCTIONS["reduce_sum"](scale)


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the weighted mean of all values so far.

    Args:
        values: A tensor.
        weights: The weight of each element, of a shape that broadcasts; 1 by default.
        metrics_collections: The collections to add the value to.
        updates_collections: The collections to add the update to.
        name: The variable scope of the metric.

    Returns:
        The value, and the update, which returns the new value.
    """
    with variable_scope(name, "mean"):
        total, count = _create_counter("total"), _create_counter("count")
        amount, number = _weighted_sums(elementwise.to_float(convert_to_tensor(values)), weights)
        update = _divide_or_zero(assign_add(total, amount), assign_add(count, number), "update_op")
        value = _divide_or_zero(total, count, "value")
        return _add_to_collections((value, update), metrics_collections, updates_collections)


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the fraction of predictions that equal their labels.

    Args:
        labels: A tensor of the shape of ``predictions``.
        predictions: A tensor.
        weights: The weight of each element, of a shape that broadcasts; 1 by default.
        metrics_collections: The collections to add the value to.
        updates_collections: The collections to add the update to.
        name: The variable scope of the metric.

    Returns:
        The value, and the update, which returns the new value.
    """
    x, y = convert_to_tensor(predictions), convert_to_tensor(labels)
    right = MATH["equal"](elementwise.cast(x, y.dtype), y)
    return mean(right, weights, metrics_collections, updates_collections, name or "accuracy")


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the mean squared error so far.

    Args:
        labels: A tensor of the shape of ``predictions``.
        predictions: A tensor.
        weights: The weight of each element, of a shape that broadcasts; 1 by default.
        metrics_collections: The collections to add the value to.
        updates_collections: The collections to add the update to.
        name: The variable scope of the metric.

    Returns:
        The value, and the update, which returns the new value.

    Raises:
        ShapeError: If the shapes of labels and predictions differ.
    """
    y, x = losses.labels_and_predictions("mean_squared_error", labels, predictions)
    each = MATH["squared_difference"](x, y)
    name = name or "mean_squared_error"
    return mean(each, weights, metrics_collections, updates_collections, name)


def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the mean absolute error so far.

    Args:
        labels: A tensor of the shape of ``predictions``.
        predictions: A tensor.
        weights: The weight of each element, of a shape that broadcasts; 1 by default.
        metrics_collections: The collections to add the value to.
        updates_collections: The collections to add the update to.
        name: The variable scope of the metric.

    Returns:
        The value, and the update, which returns the new value.

    Raises:
        ShapeError: If the shapes of labels and predictions differ.
    """
    y, x = losses.labels_and_predictions("mean_absolute_error", labels, predictions)
    name = name or "mean_absolute_error"
    return mean(abs(x - y), weights, metrics_collections, updates_collections, name)


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the root of the mean squared error so far.

    Args:
        labels: A tensor of the shape of ``predictions``.
        predictions: A tensor.
        weights: The weight of each element, of a shape that broadcasts; 1 by default.
        metrics_collections: The collections to add the value to.
        updates_collections: The collections to add the update to.
        name: The variable scope of the metric.

    Returns:
        The value, and the update, which returns the new value.

    Raises:
        ShapeError: If the shapes of labels and predictions differ.
    """
    mean_square = mean_squared_error(
        labels, predictions, weights, name=name or "root_mean_squared_error"
    )
    value, update = (MATH["sqrt"](part) for part in mean_square)
    return _add_to_collections((value, update), metrics_collections, updates_collections)


def _true_positive_ratio(
    labels: Any, predictions: Any, weights: Any, name: str, base: int
) -> Metric:
    """Return the fraction of true positives among true labels or positive predictions.

    Args:
        labels: Bools, or numbers that are converted.
        predictions: Bools, or numbers that are converted.
        weights: The weight of each element, of a shape that broadcasts; 1 by default.
        name: The variable scope.
        base: 0 for the fraction of true labels, 1 for that of positive predictions.
    """
    y, x = (elementwise.cast(convert_to_tensor(t), "bool") for t in (labels, predictions))
    both = elementwise.to_float(MATH["logical_and"](y, x))
    missed = elementwise.to_float(
        MATH["logical_and"](y, MATH["logical_not"](x))
        if base == 0
        else MATH["logical_and"](MATH["logical_not"](y), x)
    )
    with variable_scope(name, name):
        hits, others = _create_counter("true_positives"), _create_counter("others")
        hits_after = assign_add(hits, _weighted_sums(both, weights)[0])
        others_after = assign_add(others, _weighted_sums(missed, weights)[0])
        return (
            _divide_or_zero(hits, MATH["add"](hits, others), "value"),
            _divide_or_zero(hits_after, MATH["add"](hits_after, others_after), "update_op"),
        )


def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the fraction of positive predictions that were right.

    Args:
        labels: Bools, or numbers that are converted.
        predictions: Bools, or numbers that are converted.
        weights: The weight of each element, of a shape that broadcasts; 1 by default.
        metrics_collections: The collections to add the value to.
        updates_collections: The collections to add the update to.
        name: The variable scope of the metric.

    Returns:
        The value, and the update, which returns the new value.
    """
    metric = _true_positive_ratio(labels, predictions, weights, name or "precision", 1)
    return _add_to_collections(metric, metrics_collections, updates_collections)


def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the fraction of true labels that were predicted.

    Args:
        labels: Bools, or numbers that are converted.
        predictions: Bools, or numbers that are converted.
        weights: The weight of each element, of a shape that broadcasts; 1 by default.
        metrics_collections: The collections to add the value to.
        updates_collections: The collections to add the update to.
        name: The variable scope of the metric.

    Returns:
        The value, and the update, which returns the new value.
    """
    metric = _true_positive_ratio(labels, predictions, weights, name or "recall", 0)
    return _add_to_collections(metric, metrics_collections, updates_collections)


__all__ = [
    "accuracy",
    "mean",
    "mean_absolute_error",
    "mean_squared_error",
    "precision",
    "recall",
    "root_mean_squared_error",
]
__getattr__ = missing_name_handler("tf.metrics", lambda: dict.fromkeys(__all__))
