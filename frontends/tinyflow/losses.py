"""``tf.losses``: weighted losses, which are collected so that a program can add them up.

Each function returns one loss and adds it to the collection ``losses``. `get_total_loss` adds those
of the collection and the regularization losses. `LOSS_ARGUMENTS` describes the arguments that all
losses share.
"""

from __future__ import annotations

from typing import Any

from passkit.errors import SettingError, ShapeError
from passkit.frontends.tinyflow import arrays, creation, elementwise
from passkit.frontends.tinyflow.argument_checks import renamed_argument, require_float
from passkit.frontends.tinyflow.deferred_calls import is_unranked
from passkit.frontends.tinyflow.docstrings import describe_arguments
from passkit.frontends.tinyflow.graphs import GraphKeys, get_default_graph
from passkit.frontends.tinyflow.missing_names import missing_name_handler
from passkit.frontends.tinyflow.nn import losses as entropies
from passkit.frontends.tinyflow.reductions import FUNCTIONS as REDUCTIONS
from passkit.frontends.tinyflow.scopes import name_scope
from passkit.frontends.tinyflow.shapes import format_shape, require_shape
from passkit.frontends.tinyflow.tensors import Tensor, convert_to_tensor

MATH = elementwise.FUNCTIONS
LOSS_ARGUMENTS = {
    "weights": "A number, or a tensor of the rank of the losses whose axes have their lengths or "
    "1; 1 by default.",
    "scope": "The name scope of the loss; by default the name of the function.",
    "loss_collection": 'The collection to add the loss to, "losses" by default; None for none.',
    "reduction": "How losses are reduced to one, an attribute of `Reduction`; by default their "
    "sum over the number of weights that are not 0.",
}
"""The arguments that all losses share."""
DEFAULT_REDUCTION = "weighted_sum_by_nonzero_weights"
"""The default reduction: the sum, divided by the number of elements whose weight is not 0."""


class Reduction:
    """The values of ``reduction``: how the weighted losses of all elements become one."""

    NONE = "none"
    SUM = "weighted_sum"
    SUM_OVER_BATCH_SIZE = "weighted_sum_over_batch_size"
    MEAN = "weighted_mean"
    SUM_BY_NONZERO_WEIGHTS = DEFAULT_REDUCTION
    SUM_OVER_NONZERO_WEIGHTS = DEFAULT_REDUCTION

    @classmethod
    def all(cls) -> tuple[str, ...]:
        """Return the names of all reductions, each once."""
        return (cls.NONE, cls.SUM, cls.MEAN, cls.SUM_OVER_BATCH_SIZE, DEFAULT_REDUCTION)

    @classmethod
    def validate(cls, key: str) -> None:
        """Raise SettingError if ``key`` is the name of no reduction, such as None."""
        if key not in cls.all():
            raise SettingError(
                f"losses need one of {', '.join(cls.all())} as reduction, got {key!r}"
            )


def _reduce_sum(x: Any) -> Tensor:
    """Return the sum of all elements of integers or floats ``x``, a scalar tensor."""
    return REDUCTIONS["reduce_sum"](x)


def _divide_or_zero(total: Tensor, count: Tensor) -> Tensor:
    """Return total / count, elementwise; 0 where the count is 0.

    Args:
        total: The numerator, a tensor of floats.
        count: The denominator, a tensor of floats whose shape broadcasts.
    """
    one = creation.ones_like(count)
    safe = elementwise.where(MATH["equal"](count, 0), one, count)
    return elementwise.where(
        MATH["equal"](count, 0), creation.zeros_like(total), MATH["multiply"](total, 1.0) / safe
    )


@describe_arguments(LOSS_ARGUMENTS)
def compute_weighted_loss(  # noqa: D417 – describe_arguments adds the others
    losses: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = DEFAULT_REDUCTION,
) -> Tensor:
    """Multiply losses by their weights, and reduce them.

    Args:
        losses: The losses of the elements, a tensor of floats of any shape; integers are converted
            to float32.
        others: ``weights`` of the losses, name ``scope``, ``loss_collection`` that the loss is
            added to, ``reduction`` of the losses to one; see `LOSS_ARGUMENTS`.

    Returns:
        A scalar tensor; for `Reduction.NONE` a tensor of the shape of ``losses``. It is added to
        the collection, unless that is None.

    Raises:
        ShapeError: If the weights are no scalar and have another rank than the losses, or along an
            axis a length that is neither theirs nor 1.
        SettingError: For an unknown reduction.
        DTypeError: If the losses are bools, or a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    Reduction.validate(reduction)
    with name_scope(scope, "weighted_loss"):
        element_losses = convert_to_tensor(losses)
        if element_losses.dtype.is_integer:
            element_losses = elementwise.to_float(element_losses)
        scale = elementwise.cast(convert_to_tensor(weights), element_losses.dtype)
        _check_weights(element_losses, scale)
        weighted = element_losses * scale
        if reduction == Reduction.NONE:
            loss = weighted
        else:
            weights_of_all = creation.ones_like(element_losses) * scale
            has_weight = elementwise.cast(
                MATH["not_equal"](weights_of_all, 0), element_losses.dtype
            )
            counts = {
                Reduction.MEAN: weights_of_all,
                Reduction.SUM_OVER_BATCH_SIZE: creation.ones_like(element_losses),
                DEFAULT_REDUCTION: has_weight,
            }
            loss = _reduce_sum(weighted)
            if reduction in counts:
                loss = _divide_or_zero(loss, _reduce_sum(counts[reduction]))
        add_loss(loss, loss_collection)
        return loss


def _check_weights(losses: Tensor, weights: Tensor) -> None:
    """Raise ShapeError for weights that are no scalar and do not broadcast to the losses.

    They need the rank of the losses, and each axis their length or 1. Unknown ranks and lengths
    pass.
    """
    if is_unranked(losses) or is_unranked(weights):
        return
    losses_shape, weights_shape = require_shape(losses.entry), require_shape(weights.entry)
    fits = len(losses_shape) == len(weights_shape) and all(
        n == 1 or not isinstance(n, int) or not isinstance(m, int) or n == m
        for n, m in zip(weights_shape, losses_shape, strict=True)
    )
    if weights_shape and not fits:
        raise ShapeError(
            f"losses of shape {format_shape(losses_shape)} need a number as weights, or weights of "
            f"these sizes or 1, got {format_shape(weights_shape)}"
        )


def labels_and_predictions(function: str, labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Convert labels and predictions to float tensors of one shape.

    Args:
        function: The function's name, for the messages.
        labels: A tensor or numbers.
        predictions: A tensor or numbers.

    Returns:
        The labels and the predictions, in the dtype of the predictions if they are floats, else
        both in float32.

    Raises:
        ShapeError: If the shapes differ; unknown ranks and lengths pass.
        SettingError: If one of them is None.
        DTypeError: If one of them holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    if labels is None or predictions is None:
        raise SettingError(f"{function} needs labels and predictions, got None")
    x = _as_float(predictions)
    y = elementwise.cast(convert_to_tensor(labels), x.dtype)
    if not (is_unranked(x) or is_unranked(y)):
        a, b = require_shape(x.entry), require_shape(y.entry)
        sizes = list(zip(a, b, strict=False))
        if len(a) != len(b) or any(
            isinstance(n, int) and isinstance(m, int) and n != m for n, m in sizes
        ):
            raise ShapeError(
                f"{function} needs labels and predictions of one shape, got {format_shape(b)} and "
                f"{format_shape(a)}"
            )
    return y, x


def _as_float(x: Any) -> Tensor:
    """Convert a value to a tensor of floats: integers and bools to float32.

    Raises:
        DTypeError: If ``x`` holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    tensor = convert_to_tensor(x)
    return tensor if tensor.dtype.is_float else elementwise.to_float(tensor)


@describe_arguments(LOSS_ARGUMENTS)
def absolute_difference(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = DEFAULT_REDUCTION,
) -> Tensor:
    r"""Return the mean absolute error, \|predictions - labels\|.

    Args:
        labels: A tensor or numbers, of the shape of ``predictions``.
        predictions: A tensor or numbers of any shape.
        others: ``weights`` of the losses, name ``scope``, ``loss_collection`` that the loss is
            added to, ``reduction`` of the losses to one; see `LOSS_ARGUMENTS`.

    Returns:
        A scalar tensor; for `Reduction.NONE` the weighted loss of each element.

    Raises:
        ShapeError: If the shapes of labels and predictions differ, or the weights are no scalar and
            have another rank than the losses, or along an axis a length that is neither theirs nor
            1.
        SettingError: For an unknown reduction, or if labels or predictions are None.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    with name_scope(scope, "absolute_difference"):
        y, x = labels_and_predictions("absolute_difference", labels, predictions)
        return compute_weighted_loss(abs(x - y), weights, None, loss_collection, reduction)


@describe_arguments(LOSS_ARGUMENTS)
def mean_squared_error(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = DEFAULT_REDUCTION,
) -> Tensor:
    """Return the mean squared error, (predictions - labels)^2.

    Args:
        labels: A tensor or numbers, of the shape of ``predictions``.
        predictions: A tensor or numbers of any shape.
        others: ``weights`` of the losses, name ``scope``, ``loss_collection`` that the loss is
            added to, ``reduction`` of the losses to one; see `LOSS_ARGUMENTS`.

    Returns:
        A scalar tensor; for `Reduction.NONE` the weighted loss of each element.

    Raises:
        ShapeError: If the shapes of labels and predictions differ, or the weights are no scalar and
            have another rank than the losses, or along an axis a length that is neither theirs nor
            1.
        SettingError: For an unknown reduction, or if labels or predictions are None.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    with name_scope(scope, "mean_squared_error"):
        y, x = labels_and_predictions("mean_squared_error", labels, predictions)
        each = MATH["squared_difference"](x, y)
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


@describe_arguments(LOSS_ARGUMENTS)
def huber_loss(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    delta: float = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = DEFAULT_REDUCTION,
) -> Tensor:
    """Return the Huber loss: squared for errors up to ``delta``, linear beyond.

    It is e^2 / 2 for absolute errors e up to ``delta``, and delta * e - delta^2 / 2 beyond. Source:
    Huber, Robust Estimation of a Location Parameter, 1964.

    Args:
        labels: A tensor or numbers, of the shape of ``predictions``.
        predictions: A tensor or numbers of any shape.
        delta: The error from which the loss is linear, a number; 1 by default.
        others: ``weights`` of the losses, name ``scope``, ``loss_collection`` that the loss is
            added to, ``reduction`` of the losses to one; see `LOSS_ARGUMENTS`.

    Returns:
        A scalar tensor; for `Reduction.NONE` the weighted loss of each element.

    Raises:
        ShapeError: If the shapes of labels and predictions differ, or the weights are no scalar and
            have another rank than the losses, or along an axis a length that is neither theirs nor
            1.
        SettingError: For an unknown reduction, a ``delta`` that is no number, or if labels or
            predictions are None.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    with name_scope(scope, "huber_loss"):
        y, x = labels_and_predictions("huber_loss", labels, predictions)
        far, most = abs(x - y), require_float("huber_loss", "delta", delta)
        near = MATH["minimum"](far, most)
        each = near * near * 0.5 + (far - near) * most
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


@describe_arguments(LOSS_ARGUMENTS)
def hinge_loss(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = DEFAULT_REDUCTION,
) -> Tensor:
    """Return the hinge loss: max(0, 1 - logits) for labels 1, max(0, 1 + logits) for labels 0.

    Args:
        labels: Numbers 0 or 1, of the shape of ``logits``.
        logits: A tensor or numbers of any shape.
        others: ``weights`` of the losses, name ``scope``, ``loss_collection`` that the loss is
            added to, ``reduction`` of the losses to one; see `LOSS_ARGUMENTS`.

    Returns:
        A scalar tensor; for `Reduction.NONE` the weighted loss of each element.

    Raises:
        ShapeError: If the shapes of labels and logits differ, or the weights are no scalar and have
            another rank than the losses, or along an axis a length that is neither theirs nor 1.
        SettingError: For an unknown reduction, or if labels or logits are None.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    with name_scope(scope, "hinge_loss"):
        y, x = labels_and_predictions("hinge_loss", labels, logits)
        each = elementwise.ACTIVATIONS["relu"](1.0 - (2.0 * y - 1.0) * x)
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


@describe_arguments(LOSS_ARGUMENTS)
def log_loss(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    epsilon: float = 1e-7,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = DEFAULT_REDUCTION,
) -> Tensor:
    """Return the cross entropy of labels and predicted probabilities.

    Args:
        labels: Numbers from 0 to 1, of the shape of ``predictions``.
        predictions: Probabilities, a tensor of any shape.
        epsilon: A number that is added to the arguments of logarithms; 1e-7 by default.
        others: ``weights`` of the losses, name ``scope``, ``loss_collection`` that the loss is
            added to, ``reduction`` of the losses to one; see `LOSS_ARGUMENTS`.

    Returns:
        A scalar tensor; for `Reduction.NONE` the weighted loss of each element.

    Raises:
        ShapeError: If the shapes of labels and predictions differ, or the weights are no scalar and
            have another rank than the losses, or along an axis a length that is neither theirs nor
            1.
        SettingError: For an unknown reduction, an ``epsilon`` that is no number, or if labels or
            predictions are None.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    with name_scope(scope, "log_loss"):
        y, x = labels_and_predictions("log_loss", labels, predictions)
        least = require_float("log_loss", "epsilon", epsilon)
        each = -(y * MATH["log"](x + least)) - (1.0 - y) * MATH["log"](1.0 - x + least)
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


@describe_arguments(LOSS_ARGUMENTS)
def cosine_distance(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    predictions: Any,
    axis: int | None = None,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = DEFAULT_REDUCTION,
    dim: int | None = None,
) -> Tensor:
    """Return 1 minus the cosine of the angle between unit vectors.

    Args:
        labels: Vectors of length 1, a tensor of the shape of ``predictions``.
        predictions: Vectors of length 1, a tensor.
        axis: The axis of the vectors; required.
        dim: The older name of ``axis``.
        others: ``weights`` of the losses, name ``scope``, ``loss_collection`` that the loss is
            added to, ``reduction`` of the losses to one; see `LOSS_ARGUMENTS`.

    Returns:
        A scalar tensor; for `Reduction.NONE` the weighted loss of each vector, with an axis of
        length 1.

    Raises:
        SettingError: Without an axis, or with both ``axis`` and ``dim``; for an unknown reduction,
            or if labels or predictions are None.
        ShapeError: If the axis is no int or does not exist, the shapes of labels and predictions
            differ, or the weights are no scalar and have another rank than the losses, or along an
            axis a length that is neither theirs nor 1.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    along = renamed_argument("cosine_distance", "axis", axis, "dim", dim)
    if along is None:
        raise SettingError("cosine_distance needs an axis along which vectors lie, got None")
    with name_scope(scope, "cosine_distance_loss"):
        y, x = labels_and_predictions("cosine_distance", labels, predictions)
        each = 1.0 - REDUCTIONS["reduce_sum"](x * y, along, True)
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


@describe_arguments(LOSS_ARGUMENTS)
def mean_pairwise_squared_error(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    predictions: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
) -> Tensor:
    """Return the mean squared difference between all pairs of errors in an example, summed.

    Args:
        labels: A tensor of shape (examples, …).
        predictions: A tensor of the same shape.
        weights: A number, or a tensor that broadcasts with the loss of each example, which has the
            rank of ``labels`` and length 1 along all axes but the first; 1 by default. Elements of
            weight 0 are left out of the pairs.
        others: Name ``scope``, ``loss_collection`` that the loss is added to; see `LOSS_ARGUMENTS`.

    Returns:
        A scalar tensor.

    Raises:
        ShapeError: If the shapes of labels and predictions differ, the rank of the predictions is
            unknown, or the weights are no scalar and have another rank than the losses, or along an
            axis a length that is neither theirs nor 1.
        SettingError: If labels or predictions are None.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    with name_scope(scope, "mean_pairwise_squared_error"):
        y, x = labels_and_predictions("mean_pairwise_squared_error", labels, predictions)
        axes = list(range(1, len(require_shape(x.entry, "mean_pairwise_squared_error"))))
        scale = elementwise.cast(convert_to_tensor(weights), x.dtype)
        error = x - y
        present = elementwise.cast(MATH["not_equal"](creation.ones_like(error) * scale, 0), x.dtype)
        count = REDUCTIONS["reduce_sum"](present, axes, True)
        squares = REDUCTIONS["reduce_sum"](error * error, axes, True)
        total = REDUCTIONS["reduce_sum"](error, axes, True)
        pairs = MATH["maximum"](count - 1.0, 0.0)
        example_losses = 2.0 * _divide_or_zero(squares, pairs) - 2.0 * _divide_or_zero(
            total * total, count * pairs
        )
        loss = _reduce_sum(example_losses * scale)
        add_loss(loss, loss_collection)
        return loss


@describe_arguments(LOSS_ARGUMENTS)
def sigmoid_cross_entropy(  # noqa: D417 – describe_arguments adds the others
    multi_class_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = DEFAULT_REDUCTION,
) -> Tensor:
    """Return the cross entropy of independent labels and sigmoid(logits).

    Args:
        multi_class_labels: Numbers from 0 to 1, of the shape of ``logits``.
        logits: A tensor of any shape.
        label_smoothing: The fraction by which labels are moved towards 0.5; 0 by default.
        others: ``weights`` of the losses, name ``scope``, ``loss_collection`` that the loss is
            added to, ``reduction`` of the losses to one; see `LOSS_ARGUMENTS`.

    Returns:
        A scalar tensor; for `Reduction.NONE` the weighted loss of each element.

    Raises:
        ShapeError: If the shapes of labels and logits differ, or the weights are no scalar and have
            another rank than the losses, or along an axis a length that is neither theirs nor 1.
        SettingError: For an unknown reduction, a ``label_smoothing`` that is no number, or if
            labels or logits are None.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    with name_scope(scope, "sigmoid_cross_entropy_loss"):
        y, x = labels_and_predictions("sigmoid_cross_entropy", multi_class_labels, logits)
        part = require_float("sigmoid_cross_entropy", "label_smoothing", label_smoothing)
        y = y * (1 - part) + 0.5 * part if part else y
        each = entropies.sigmoid_cross_entropy_with_logits(labels=y, logits=x)
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


@describe_arguments(LOSS_ARGUMENTS)
def softmax_cross_entropy(  # noqa: D417 – describe_arguments adds the others
    onehot_labels: Any,
    logits: Any,
    weights: Any = 1.0,
    label_smoothing: float = 0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = DEFAULT_REDUCTION,
) -> Tensor:
    """Return the cross entropy of label distributions and softmax(logits). Labels get no gradient.

    Args:
        onehot_labels: Distributions, a tensor of shape (…, classes).
        logits: A tensor of the same shape.
        weights: A number, or a tensor of shape (…), whose axes may have length 1; 1 by default.
        label_smoothing: The fraction by which labels are moved towards 1 / classes; 0 by default.
        others: ``weights`` of the losses, name ``scope``, ``loss_collection`` that the loss is
            added to, ``reduction`` of the losses to one; see `LOSS_ARGUMENTS`.

    Returns:
        A scalar tensor; for `Reduction.NONE` the weighted loss of each distribution.

    Raises:
        ShapeError: If the shapes of labels and logits differ or are those of scalars, or the
            weights are no scalar and have another rank than the losses, or along an axis a length
            that is neither theirs nor 1.
        SettingError: For an unknown reduction, a ``label_smoothing`` that is no number, or if
            labels or logits are None.
        DTypeError: If a tensor holds complex numbers or text.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    with name_scope(scope, "softmax_cross_entropy_loss"):
        y, x = labels_and_predictions("softmax_cross_entropy", onehot_labels, logits)
        part = require_float("softmax_cross_entropy", "label_smoothing", label_smoothing)
        if part:
            classes = elementwise.cast(creation.shape(y)[-1], x.dtype)
            y = y * (1 - part) + part / classes
        each = entropies.softmax_cross_entropy_with_logits_v2(
            labels=elementwise.stop_gradient(y), logits=x
        )
        return compute_weighted_loss(each, weights, None, loss_collection, reduction)


@describe_arguments(LOSS_ARGUMENTS)
def sparse_softmax_cross_entropy(  # noqa: D417 – describe_arguments adds the others
    labels: Any,
    logits: Any,
    weights: Any = 1.0,
    scope: str | None = None,
    loss_collection: str | None = GraphKeys.LOSSES,
    reduction: str = DEFAULT_REDUCTION,
) -> Tensor:
    """Return the cross entropy of class numbers and softmax(logits).

    Args:
        labels: Class numbers, integers of shape (…) or (…, 1).
        logits: A tensor of shape (…, classes).
        weights: A number, or a tensor of shape (…) or (…, 1), whose axes may have length 1; 1 by
            default.
        others: ``weights`` of the losses, name ``scope``, ``loss_collection`` that the loss is
            added to, ``reduction`` of the losses to one; see `LOSS_ARGUMENTS`.

    Returns:
        A scalar tensor; for `Reduction.NONE` the weighted loss of each label.

    Raises:
        ShapeError: If the shape of labels does not fit that of logits, or the weights are no scalar
            and have another rank than the losses, or along an axis a length that is neither theirs
            nor 1.
        DTypeError: If the labels are no integers, the logits no floats, or the weights complex
            numbers or text.
        SettingError: For an unknown reduction, or if labels or logits are None.
        ArgumentError: For a value that is neither a tensor nor numbers.
    """
    with name_scope(scope, "sparse_softmax_cross_entropy_loss"):
        y, x = convert_to_tensor(labels), convert_to_tensor(logits)
        scale = convert_to_tensor(weights)
        if not (is_unranked(y) or is_unranked(x)):
            rank = len(require_shape(x.entry))
            y, scale = (
                arrays.squeeze(t, -1)
                if not is_unranked(t) and 1 < len(require_shape(t.entry)) == rank
                else t
                for t in (y, scale)
            )
        each = entropies.sparse_softmax_cross_entropy_with_logits(labels=y, logits=x)
        return compute_weighted_loss(each, scale, None, loss_collection, reduction)


def add_loss(loss: Any, loss_collection: str | None = GraphKeys.LOSSES) -> None:
    """Add a loss to a collection of the default graph.

    Args:
        loss: A tensor; it is not checked.
        loss_collection: The collection, "losses" by default; None or empty to do nothing.

    Raises:
        ArgumentError: If ``loss_collection`` is something else than a text.
    """
    if loss_collection:
        get_default_graph().add_to_collection(loss_collection, loss)


def get_losses(scope: str | None = None, loss_collection: str = GraphKeys.LOSSES) -> list[Any]:
    """Return the losses in a collection of the default graph.

    Args:
        scope: If given, only losses whose names begin with it are returned; all by default.
        loss_collection: The collection; "losses" by default.

    Returns:
        A new list of tensors, in the order in which they were added.

    Raises:
        ArgumentError: If ``loss_collection`` is no text, or ``scope`` neither a text nor None.
    """
    return get_default_graph().get_collection(loss_collection, scope)


def get_regularization_losses(scope: str | None = None) -> list[Any]:
    """Return the losses of the regularizers of variables and layers.

    Args:
        scope: If given, only losses whose names begin with it are returned; all by default.

    Returns:
        A new list of tensors, in the order in which they were added.

    Raises:
        ArgumentError: If ``scope`` is neither a text nor None.
    """
    return get_default_graph().get_collection(GraphKeys.REGULARIZATION_LOSSES, scope)


def get_regularization_loss(
    scope: str | None = None, name: str = "total_regularization_loss"
) -> Tensor:
    """Return the sum of the regularization losses.

    Args:
        scope: If given, only losses whose names begin with it are added; all by default.
        name: The name of the result; "total_regularization_loss" by default.

    Returns:
        A tensor of the losses' shape, usually a scalar; 0 in float32 if there are no such losses.

    Raises:
        ShapeError: If losses differ in shape.
        DTypeError: If losses differ in dtype.
        ArgumentError: If ``scope`` or ``name`` is no text, or a loss neither a tensor nor numbers.
    """
    collected = get_regularization_losses(scope)
    return elementwise.add_n(collected, name) if collected else creation.constant(0.0, name=name)


def get_total_loss(
    add_regularization_losses: bool = True, name: str = "total_loss", scope: str | None = None
) -> Tensor:
    """Return the sum of all collected losses.

    Args:
        add_regularization_losses: Whether to add the losses of regularizers; True by default.
        name: The name of the result; "total_loss" by default.
        scope: If given, only losses whose names begin with it are added; all by default.

    Returns:
        A tensor of the losses' shape, usually a scalar.

    Raises:
        SettingError: If there are no losses.
        ShapeError: If losses differ in shape.
        DTypeError: If losses differ in dtype.
        ArgumentError: If ``scope`` or ``name`` is no text, or a loss neither a tensor nor numbers.
    """
    collected = get_losses(scope)
    if add_regularization_losses:
        collected += get_regularization_losses(scope)
    if not collected:
        raise SettingError(
            f"get_total_loss needs losses in the collection, got none of scope {scope!r}; "
            f"the functions of tf.losses add theirs"
        )
    return elementwise.add_n(collected, name)


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
__getattr__ = missing_name_handler("tf.losses", lambda: dict.fromkeys(__all__))
