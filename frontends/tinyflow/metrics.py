"""``tf.metrics``: metrics accumulated over many runs in local variables.

Each function returns two tensors. The first one is the value of the metric so far. The second one
adds the data of the run to the local variables when it is run, and is the value after that.
`tf.local_variables_initializer` resets them. `METRIC_ARGUMENTS` describes the arguments that all
metrics share.
"""

from __future__ import annotations

from typing import Any

from passkit.frontends.tinyflow import creation, elementwise, losses
from passkit.frontends.tinyflow.argument_checks import collection_names
from passkit.frontends.tinyflow.docstrings import describe_arguments
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.missing_names import missing_name_handler
from passkit.frontends.tinyflow.reductions import FUNCTIONS as REDUCTIONS
from passkit.frontends.tinyflow.scopes import variable_scope
from passkit.frontends.tinyflow.tensors import Tensor, as_tensor, convert_to_tensor, unique_name
from passkit.frontends.tinyflow.variables import Variable, assign_add
from passkit.ops.helpers import make

MATH = elementwise.FUNCTIONS
Metric = tuple[Tensor, Tensor]
"""The value of a metric, and its update, which is its value after the run's data are added."""
METRIC_ARGUMENTS = {
    "weights": "The weight of each element, of a shape that broadcasts; 1 by default.",
    "metrics_collections": "The name of a collection, or a list of names, to add the value to; "
    "none by default.",
    "updates_collections": "The same for the update.",
    "name": "The variable scope of the metric; by default the name of the function.",
}
"""The arguments that all metrics share."""


def _create_counter(name: str) -> Variable:
    """Create a float32 scalar variable of value 0, which is not trainable.

    It is in the collections of `tf.local_variables` and "metric_variables", not among the global
    variables.
    """
    keys = [GraphKeys.LOCAL_VARIABLES, "metric_variables"]
    return Variable(creation.constant(0.0), trainable=False, collections=keys, name=name)


def _add_to_collections(measure: Metric, metrics: Any, updates: Any) -> Metric:
    """Add the value and the update of a metric to collections, and return the metric.

    Args:
        measure: Value and update.
        metrics: Name or names of collections for the value; None for none.
        updates: Name or names of collections for the update; None for none.

    Returns:
        ``measure`` itself.

    Raises:
        SettingError: If one of them holds no names.
    """
    for keys, tensor in ((metrics, measure[0]), (updates, measure[1])):
        for key in collection_names("a metric", keys):
            get_default_graph().add_to_collection(key, tensor)
    return measure


def _divide_or_zero(above: Any, below: Any, name: str) -> Tensor:
    """Return numerator / denominator; 0 where the denominator is 0.

    Args:
        above: The numerator, a float32 tensor.
        below: The denominator, a float32 tensor.
        name: The name of the result.
    """
    ratio = make("where", make("equal", below.entry, 0.0), 0.0, above.entry / below.entry)
    return as_tensor(ratio, unique_name(name, name))


def _weighted_sums(values: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
    """Weigh values, and sum them.

    Args:
        values: A float32 tensor.
        weights: Weights that broadcast with the values; None for 1.

    Returns:
        The sum of the values times their weights, and the sum of the weights.

    Raises:
        ShapeError: If the weights do not broadcast with the values.
        DTypeError: If the weights are complex numbers or text.
        ArgumentError: If the weights are neither a tensor nor numbers.
    """
    ones = creation.ones_like(values)
    scale = ones if weights is None else ones * elementwise.to_float(convert_to_tensor(weights))
    return REDUCTIONS["reduce_sum"](values * scale), REDUCTIONS["reduce_sum"](scale)


@describe_arguments(METRIC_ARGUMENTS)
def mean(  # noqa: D417 – describe_arguments adds the others
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the weighted mean of the values of all runs.

    Args:
        values: A tensor or numbers of any shape, which are converted to float32.
        others: ``weights`` of the elements, names of the collections that value and update are
            added to, variable scope ``name``; see `METRIC_ARGUMENTS`.

    Returns:
        The value so far, and the update: a tensor that adds the run's data, and is the new value.
        Both are float32 scalars.

    Raises:
        ShapeError: If the weights do not broadcast with the values.
        SettingError: If an argument for collections holds no names.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    with variable_scope(name, "mean"):
        total, count = _create_counter("total"), _create_counter("count")
        amount, number = _weighted_sums(elementwise.to_float(convert_to_tensor(values)), weights)
        update = _divide_or_zero(assign_add(total, amount), assign_add(count, number), "update_op")
        value = _divide_or_zero(total, count, "value")
        return _add_to_collections((value, update), metrics_collections, updates_collections)


@describe_arguments(METRIC_ARGUMENTS)
def accuracy(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the weighted fraction of predictions that equal their labels, over all runs.

    Args:
        labels: A tensor or numbers, of a shape that broadcasts with that of ``predictions``.
        predictions: A tensor or numbers, which are converted to the dtype of ``labels``.
        others: ``weights`` of the elements, names of the collections that value and update are
            added to, variable scope ``name``; see `METRIC_ARGUMENTS`.

    Returns:
        The value so far, and the update: a tensor that adds the run's data, and is the new value.
        Both are float32 scalars.

    Raises:
        ShapeError: If the shapes of the arguments do not broadcast.
        SettingError: If an argument for collections holds no names.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    x, y = convert_to_tensor(predictions), convert_to_tensor(labels)
    right = MATH["equal"](elementwise.cast(x, y.dtype), y)
    return mean(right, weights, metrics_collections, updates_collections, name or "accuracy")


@describe_arguments(METRIC_ARGUMENTS)
def mean_squared_error(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the weighted mean of (predictions - labels)^2 over all runs.

    Args:
        labels: A tensor or numbers, of the shape of ``predictions``.
        predictions: A tensor or numbers of any shape.
        others: ``weights`` of the elements, names of the collections that value and update are
            added to, variable scope ``name``; see `METRIC_ARGUMENTS`.

    Returns:
        The value so far, and the update: a tensor that adds the run's data, and is the new value.
        Both are float32 scalars.

    Raises:
        ShapeError: If the shapes of labels and predictions differ, or the weights do not broadcast.
        SettingError: If labels or predictions are None, or an argument for collections holds no
            names.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    y, x = losses.labels_and_predictions("mean_squared_error", labels, predictions)
    each = MATH["squared_difference"](x, y)
    name = name or "mean_squared_error"
    return mean(each, weights, metrics_collections, updates_collections, name)


@describe_arguments(METRIC_ARGUMENTS)
def mean_absolute_error(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the weighted mean of abs(predictions - labels) over all runs.

    Args:
        labels: A tensor or numbers, of the shape of ``predictions``.
        predictions: A tensor or numbers of any shape.
        others: ``weights`` of the elements, names of the collections that value and update are
            added to, variable scope ``name``; see `METRIC_ARGUMENTS`.

    Returns:
        The value so far, and the update: a tensor that adds the run's data, and is the new value.
        Both are float32 scalars.

    Raises:
        ShapeError: If the shapes of labels and predictions differ, or the weights do not broadcast.
        SettingError: If labels or predictions are None, or an argument for collections holds no
            names.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    y, x = losses.labels_and_predictions("mean_absolute_error", labels, predictions)
    name = name or "mean_absolute_error"
    return mean(abs(x - y), weights, metrics_collections, updates_collections, name)


@describe_arguments(METRIC_ARGUMENTS)
def root_mean_squared_error(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the square root of the weighted mean squared error over all runs.

    Args:
        labels: A tensor or numbers, of the shape of ``predictions``.
        predictions: A tensor or numbers of any shape.
        others: ``weights`` of the elements, names of the collections that value and update are
            added to, variable scope ``name``; see `METRIC_ARGUMENTS`.

    Returns:
        The value so far, and the update: a tensor that adds the run's data, and is the new value.
        Both are float32 scalars.

    Raises:
        ShapeError: If the shapes of labels and predictions differ, or the weights do not broadcast.
        SettingError: If labels or predictions are None, or an argument for collections holds no
            names.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
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
        labels: Bools, or numbers, which are true if they are not 0.
        predictions: Bools, or numbers, which are true if they are not 0.
        weights: The weight of each element, of a shape that broadcasts; 1 by default.
        name: The variable scope.
        base: 0 to divide by the true labels (recall), 1 by the positive predictions (precision).

    Returns:
        The value and the update; see `Metric`.

    Raises:
        ShapeError: If the shapes of the arguments do not broadcast.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
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


@describe_arguments(METRIC_ARGUMENTS)
def precision(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the fraction of positive predictions whose labels are true, over all runs.

    Args:
        labels: Bools, or numbers, which are true if they are not 0.
        predictions: Bools, or numbers, which are true if they are not 0.
        others: ``weights`` of the elements, names of the collections that value and update are
            added to, variable scope ``name``; see `METRIC_ARGUMENTS`.

    Returns:
        The value so far, and the update: a tensor that adds the run's data, and is the new value.
        Both are float32 scalars. They are 0 as long as there is no such element.

    Raises:
        ShapeError: If the shapes of the arguments do not broadcast.
        SettingError: If an argument for collections holds no names.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    metric = _true_positive_ratio(labels, predictions, weights, name or "precision", 1)
    return _add_to_collections(metric, metrics_collections, updates_collections)


@describe_arguments(METRIC_ARGUMENTS)
def recall(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """Return the fraction of true labels whose predictions are positive, over all runs.

    Args:
        labels: Bools, or numbers, which are true if they are not 0.
        predictions: Bools, or numbers, which are true if they are not 0.
        others: ``weights`` of the elements, names of the collections that value and update are
            added to, variable scope ``name``; see `METRIC_ARGUMENTS`.

    Returns:
        The value so far, and the update: a tensor that adds the run's data, and is the new value.
        Both are float32 scalars. They are 0 as long as there is no such element.

    Raises:
        ShapeError: If the shapes of the arguments do not broadcast.
        SettingError: If an argument for collections holds no names.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
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
