"""``tf.metrics``: measures over many runs, kept in local variables.

Each gives a value and an operation that updates it; `tf.local_variables_initializer` starts anew.
"""

from __future__ import annotations

from typing import Any

from passkit.frontends.tinyflow import elementwise, losses, sources
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.missing import lookup
from passkit.frontends.tinyflow.reductions import FUNCTIONS as FOLDS
from passkit.frontends.tinyflow.scopes import variable_scope
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor, named, wrapped
from passkit.frontends.tinyflow.variables import Variable, assign_add
from passkit.ops.helpers import make

OF = elementwise.FUNCTIONS
Measure = tuple[Tensor, Tensor]


def _counter(name: str) -> Variable:
    """A local variable that counts from 0."""
    keys = [GraphKeys.LOCAL_VARIABLES, "metric_variables"]
    return Variable(sources.constant(0.0), trainable=False, collections=keys, name=name)


def _collected(measure: Measure, metrics: Any, updates: Any) -> Measure:
    """A measure whose parts were put into collections."""
    for keys, tensor in ((metrics, measure[0]), (updates, measure[1])):
        for key in [keys] if isinstance(keys, str) else keys or ():
            get_default_graph().add_to_collection(key, tensor)
    return measure


def _quotient(above: Any, below: Any, name: str) -> Tensor:
    """above / below, or 0 where nothing was counted."""
    ratio = make("where", make("equal", below.entry, 0.0), 0.0, above.entry / below.entry)
    return wrapped(ratio, named(name, name))


def _weighed(values: Tensor, weights: Any) -> tuple[Tensor, Tensor]:
    """The sum of weighed values, and that of the weights."""
    ones = sources.ones_like(values)
    scale = ones if weights is None else ones * elementwise.to_float(convert_to_tensor(weights))
    return FOLDS["reduce_sum"](values * scale), FOLDS["reduce_sum"](scale)


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Measure:
    """The mean of all values so far, weighed by ``weights``."""
    with variable_scope(name, "mean"):
        total, count = _counter("total"), _counter("count")
        amount, number = _weighed(elementwise.to_float(convert_to_tensor(values)), weights)
        update = _quotient(assign_add(total, amount), assign_add(count, number), "update_op")
        value = _quotient(total, count, "value")
        return _collected((value, update), metrics_collections, updates_collections)


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Measure:
    """How often predictions were equal to labels."""
    x, y = convert_to_tensor(predictions), convert_to_tensor(labels)
    right = OF["equal"](elementwise.cast(x, y.dtype), y)
    return mean(right, weights, metrics_collections, updates_collections, name or "accuracy")


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Measure:
    """The mean square of the differences so far."""
    y, x = losses._pair("mean_squared_error", labels, predictions)
    each = OF["squared_difference"](x, y)
    name = name or "mean_squared_error"
    return mean(each, weights, metrics_collections, updates_collections, name)


def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Measure:
    """The mean distance of predictions from labels so far."""
    y, x = losses._pair("mean_absolute_error", labels, predictions)
    name = name or "mean_absolute_error"
    return mean(abs(x - y), weights, metrics_collections, updates_collections, name)


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Measure:
    """The root of the mean square of the differences so far."""
    found = mean_squared_error(
        labels, predictions, weights, name=name or "root_mean_squared_error"
    )
    value, update = (OF["sqrt"](part) for part in found)
    return _collected((value, update), metrics_collections, updates_collections)


def _of_positives(
    labels: Any, predictions: Any, weights: Any, name: str, base: int
) -> Measure:
    """How many of the true labels (0) or predictions (1) are true positives."""
    y, x = (elementwise.cast(convert_to_tensor(t), "bool") for t in (labels, predictions))
    both = elementwise.to_float(OF["logical_and"](y, x))
    missed = elementwise.to_float(
        OF["logical_and"](y, OF["logical_not"](x)) if base == 0
        else OF["logical_and"](OF["logical_not"](y), x)
    )
    with variable_scope(name, name):
        hits, others = _counter("true_positives"), _counter("others")
        found = assign_add(hits, _weighed(both, weights)[0])
        rest = assign_add(others, _weighed(missed, weights)[0])
        return (
            _quotient(hits, OF["add"](hits, others), "value"),
            _quotient(found, OF["add"](found, rest), "update_op"),
        )


def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Measure:
    """The part of the predictions that were right, of all that said yes so far."""
    found = _of_positives(labels, predictions, weights, name or "precision", 1)
    return _collected(found, metrics_collections, updates_collections)


def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Measure:
    """The part of the true labels that predictions found so far."""
    found = _of_positives(labels, predictions, weights, name or "recall", 0)
    return _collected(found, metrics_collections, updates_collections)


__all__ = [
    "accuracy",
    "mean",
    "mean_absolute_error",
    "mean_squared_error",
    "precision",
    "recall",
    "root_mean_squared_error",
]
__getattr__ = lookup("tf.metrics", lambda: dict.fromkeys(__all__))
