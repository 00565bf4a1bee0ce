"""``tf.losses``: losses with weights, which are collected so that a program can add them up.

Each function returns one loss and puts it into the collection ``losses``; `get_total_loss` adds
those of the collection and the regularization losses.
"""

from __future__ import annotations

from typing import Any

from passkit.errors import SettingError, ShapeError
from passkit.frontends.tinyflow import arrays, elementwise, sources
from passkit.frontends.tinyflow.deferring import is_unranked
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.missing import lookup
from passkit.frontends.tinyflow.nn import losses as entropies
from passkit.frontends.tinyflow.numbers import real
from passkit.frontends.tinyflow.ranks import known_shape
from passkit.frontends.tinyflow.reductions import FUNCTIONS as FOLDS
from passkit.frontends.tinyflow.refusals import either
from passkit.frontends.tinyflow.scopes import name_scope
from passkit.frontends.tinyflow.shapes import shown
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor

OF = elementwise.FUNCTIONS
WEIGHED = "weighted_sum_by_nonzero_weights"
"""The default reduction: the sum over the number of elements whose weight is not 0."""


class Reduction:
    """How the weighed losses of all elements become one."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = WEIGHED
    SUM_OVER_NONZERO_WEIGHTS = WEIGHED

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """All of them."""
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, WEIGHED)

    @classmethod
    def validate(cls, key: str) -> None:
        """Raises: SettingError for an unknown one."""
        if key not in cls.all():
            raise SettingError(
                f"losses need one of {', '.join(cls.all())} as reduction, got {key!r}"
            )


def _sum(x: Any) -> Tensor:
    return FOLDS["reduce_sum"](x)


def _ratio(total: Tensor, count: Tensor) -> Tensor:
    """total / count, or 0 where nothing counts."""
    one = sources.ones_like(count)
    safe = elementwise.where(OF["equal"](count, 0), one, count)
    return elementwise.where(
        OF["equal"](count, 0), sources.zeros_like(total), OF["multiply"](total, 1.0) / safe
    )


def compute_weighted_loss(
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = WEIGHED,
) -> Tensor:
    """The losses times their weights, reduced.

    ``weights`` are a number, or of the rank of the losses with their sizes or 1.
    """
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss"):
        each = convert_to_tensor(losses)
        if each.dtype.is_integer:
            each = elementwise.to_float(each)
        scale = elementwise.cast(convert_to_tensor(weights), each.dtype)
        _check_weights(each, scale)
        weighed = each * scale
        if reduction == Reduction.NONE:
            loss = weighed
        else:
            spread = sources.ones_like(each) * scale
            present = elementwise.cast(OF["not_equal"](spread, 0), each.dtype)
            counts = {
                Reduction.MEAN: spread,
                Reduction.SUM_OVER_BATCH_SIZE: sources.ones_like(each),
                WEIGHED: present,
            }
            loss = _sum(weighed)
            if reduction in counts:
                loss = _ratio(loss, _sum(counts[reduction]))
        add_loss(loss, loss_collection)
        return loss


def _check_weights(losses: Tensor, weights: Tensor) -> None:
    """Raises: ShapeError for weights that do not stretch to the losses."""
    if is_unranked(losses) or is_unranked(weights):
        return
    wanted, found = known_shape(losses.entry), known_shape(weights.entry)
    fits = len(wanted) == len(found) and all(
        n == 1 or not isinstance(n, int) or not isinstance(m, int) or n == m
        for n, m in zip(found, wanted, strict=True)
    )
    if found and not fits:
        raise ShapeError(
            f"losses of shape {shown(wanted)} need a number as weights, or weights of these sizes "
            f"or 1, got {shown(found)}"
        )


def _pair(where: str, labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Labels and predictions as floats of one shape. Raises: ShapeError where they differ."""
    if labels is None or predictions is None:
        raise SettingError(f"{where} needs labels and predictions, got None")
    x = _float(predictions)
    y = elementwise.cast(convert_to_tensor(labels), x.dtype)
    if not (is_unranked(x) or is_unranked(y)):
        a, b = known_shape(x.entry), known_shape(y.entry)
        sizes = list(zip(a, b, strict=False))
        if len(a) != len(b) or any(
            isinstance(n, int) and isinstance(m, int) and n != m for n, m in sizes
        ):
            raise ShapeError(
                f"{where} needs labels and predictions of one shape, got {shown(b)} and {shown(a)}"
            )
    return y, x


def _float(x: Any) -> Tensor:
    tensor = convert_to_tensor(x)
    return tensor if tensor.dtype.is_float else elementwise.to_float(tensor)


def absolute_difference(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = WEIGHED,
) -> Tensor:
    """The mean distance of predictions from labels."""
    with name_scope(scope, "absolute_difference"):
        y, x = _pair("absolute_difference", labels, predictions)
        return compute_weighted_loss(abs(x - y), weights, None, loss_collection, reduction)


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = WEIGHED,
) -> Tensor:
    """The mean square of the differences of predictions from labels."""
    with name_scope(scope, "mean_squared_error"):
        y, x = _pair("mean_squared_error", labels, predictions)
        each = OF["squared_difference"](x, y)
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


def huber_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = WEIGHED,
) -> Tensor:
    """d * d / 2 for distances d up to ``delta``, and beyond linear. Source: Huber, 1964."""
    with name_scope(scope, "huber_loss"):
        y, x = _pair("huber_loss", labels, predictions)
        far, most = abs(x - y), real("huber_loss", "delta", delta)
        near = OF["minimum"](far, most)
        each = near * near * 0.5 + (far - near) * most
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


def hinge_loss(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = WEIGHED,
) -> Tensor:
    """max(0, 1 - logits), of labels 1, or 1 + logits of labels 0."""
    with name_scope(scope, "hinge_loss"):
        y, x = _pair("hinge_loss", labels, logits)
        each = elementwise.ACTIVATIONS["relu"](1.0 - (2.0 * y - 1.0) * x)
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


def log_loss(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = WEIGHED,
) -> Tensor:
    """The cross entropy of labels and predicted probabilities, ``epsilon`` under the logarithm."""
    with name_scope(scope, "log_loss"):
        y, x = _pair("log_loss", labels, predictions)
        least = real("log_loss", "epsilon", epsilon)
        each = -(y * OF["log"](x + least)) - (1.0 - y) * OF["log"](1.0 - x + least)
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


def cosine_distance(
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = WEIGHED,
    dim: int | None = None,
) -> Tensor:
    """1 - the sum of products along ``axis``, of vectors of length 1.

    Raises: SettingError without ``axis``.
    """
    along = either("cosine_distance", "axis", axis, "dim", dim)
    if along is None:
        raise SettingError("cosine_distance needs an axis along which vectors lie, got None")
    with name_scope(scope, "cosine_distance_loss"):
        y, x = _pair("cosine_distance", labels, predictions)
        each = 1.0 - FOLDS["reduce_sum"](x * y, along, True)
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


def mean_pairwise_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Tensor:
    """The mean square of the differences between all pairs of errors in an example, summed."""
    with name_scope(scope, "mean_pairwise_squared_error"):
        y, x = _pair("mean_pairwise_squared_error", labels, predictions)
        axes = list(range(1, len(known_shape(x.entry, "mean_pairwise_squared_error"))))
        scale = elementwise.cast(convert_to_tensor(weights), x.dtype)
        error = x - y
        present = elementwise.cast(OF["not_equal"](sources.ones_like(error) * scale, 0), x.dtype)
        count = FOLDS["reduce_sum"](present, axes, True)
        squares = FOLDS["reduce_sum"](error * error, axes, True)
        total = FOLDS["reduce_sum"](error, axes, True)
        pairs = OF["maximum"](count - 1.0, 0.0)
        own = 2.0 * _ratio(squares, pairs) - 2.0 * _ratio(total * total, count * pairs)
        loss = _sum(own * scale)
        add_loss(loss, loss_collection)
        return loss


def sigmoid_cross_entropy(
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = WEIGHED,
) -> Tensor:
    """The cross entropy of labels, of which many may hold, and sigmoid(logits)."""
    with name_scope(scope, "sigmoid_cross_entropy_loss"):
        y, x = _pair("sigmoid_cross_entropy", multi_class_labels, logits)
        part = real("sigmoid_cross_entropy", "label_smoothing", label_smoothing)
        y = y * (1 - part) + 0.5 * part if part else y
        each = entropies.sigmoid_cross_entropy_with_logits(labels=y, logits=x)
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


def softmax_cross_entropy(
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = WEIGHED,
) -> Tensor:
    """The cross entropy of label distributions and softmax(logits); labels get no gradient."""
    with name_scope(scope, "softmax_cross_entropy_loss"):
        y, x = _pair("softmax_cross_entropy", onehot_labels, logits)
        part = real("softmax_cross_entropy", "label_smoothing", label_smoothing)
        if part:
            classes = elementwise.cast(sources.shape(y)[-1], x.dtype)
            y = y * (1 - part) + part / classes
        each = entropies.softmax_cross_entropy_with_logits_v2(
            labels=elementwise.stop_gradient(y), logits=x
        )
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


def sparse_softmax_cross_entropy(
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = WEIGHED,
) -> Tensor:
    """The cross entropy of whole-number labels, also in a column, and softmax(logits)."""
    with name_scope(scope, "sparse_softmax_cross_entropy_loss"):
        y, x = convert_to_tensor(labels), convert_to_tensor(logits)
        scale = convert_to_tensor(weights)
        if not (is_unranked(y) or is_unranked(x)):
            rank = len(known_shape(x.entry))
            y, scale = (
                arrays.squeeze(t, -1)
                if not is_unranked(t) and 1 < len(known_shape(t.entry)) == rank else t
                for t in (y, scale)
            )
        each = entropies.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x)
        return compute_weighted_loss(each, scale, None, loss_collection, reduction)


def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Put a loss into a collection; None into no one."""
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """The losses of a collection, those whose names begin with ``scope``."""
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """The losses that regularizers of variables and layers made."""
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(
    scope: str | None = None, name: str = "total_regularization_loss"
) -> Tensor:
    """Their sum; 0 if there are none."""
    found = get_regularization_losses(scope)
    return elementwise.add_n(found, name) if found else sources.constant(0.0, name=name)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """The sum of all collected losses. Raises: SettingError when there are none."""
    found = get_losses(scope)
    if add_regularization_losses:
        found += get_regularization_losses(scope)
    if not found:
        raise SettingError(
            f"get_total_loss needs losses in the collection, got none of scope {scope!r}; "
            f"functions of tf.losses put theirs there"
        )
    return elementwise.add_n(found, name)


__all__ = [
    "Reduction",
    "absolute_difference",
    "add_loss",
    "compute_weighted_loss",
    "cosine_distance",
    "get_losses",
    "get_regularization_loss",
    "get_regularization_losses",
    "get_total_loss",
    "hinge_loss",
    "huber_loss",
    "log_loss",
    "mean_pairwise_squared_error",
    "mean_squared_error",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]
__getattr__ = lookup("tf.losses", lambda: dict.fromkeys(__all__))
