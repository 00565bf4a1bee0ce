"""Losses between predictions and labels, and the similarity of vectors.

Losses of elements, or of examples for cross entropies, are reduced by "mean" or "sum", or returned
with "none". Their forms neither overflow nor cancel.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import partial
from typing import Any

import numpy as np

import passkit.ops as ops
from passkit.errors import ArgumentError, DTypeError, FeedError, ShapeError
from passkit.frontends.xp.array import Array, array_of
from passkit.frontends.xp.conversion import astype
from passkit.frontends.xp.elementwise import divide, multiply, not_equal
from passkit.frontends.xp.manipulation import broadcast_shapes
from passkit.frontends.xp.nn.operands import (
    applied,
    define,
    positive_number,
    real_array,
    real_values,
)
from passkit.frontends.xp.reductions import integer, one_axis, truth
from passkit.frontends.xp.statistical import mean
from passkit.frontends.xp.statistical import sum as sum_of
from passkit.graph.node import Entry
from passkit.values.arguments import shown

REDUCTIONS = ("mean", "sum", "none")


def _reduced(where: str, loss: Array, reduction: Any) -> Array:
    """Return the mean or sum of losses, a 0-dimensional array; or ``loss`` itself for "none".

    Raises: ArgumentError for another ``reduction``.
    """
    if not isinstance(reduction, str) or reduction not in REDUCTIONS:
        raise ArgumentError(
            f"{where}: reduction must be 'mean', 'sum' or 'none', got {shown(reduction)}"
        )
    if reduction == "mean":
        return mean(loss)
    return sum_of(loss) if reduction == "sum" else loss


def _elementwise_loss(
    where: str, predictions: Any, labels: Any, reduction: Any, **params: Hashable
) -> Array:
    """Apply the operation of the loss function ``where``, with ``params``, and reduce its result.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, or there is no such
            reduction.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.
    """
    values = real_values(where, predictions=predictions, labels=labels)
    return _reduced(where, applied(where, *values, **params), reduction)


# Losses of numbers.


def _loss(call: Any, predictions: Entry, labels: Entry, **params: Any) -> Entry:
    """Build the losses of elements by an operator, called as ``call(labels, predictions)``.

    ``predictions`` and ``labels`` are floats of one dtype. Raises: ShapeError if they do not
    broadcast.
    """
    if predictions.shape != labels.shape:
        zero = ops.zeros_like(predictions) * ops.zeros_like(labels)
        predictions, labels = predictions + zero, labels + zero
    return call(labels, predictions, reduction="none", **params)  # type: ignore[no-any-return]


def _kl_div(predictions: Entry, labels: Entry, log_target: bool) -> Entry:
    """Build labels * (log(labels) - predictions), where predictions are logarithms.

    With ``log_target``, ``labels`` are logarithms of the labels. Labels 0 give 0.
    """
    if log_target:
        return ops.exp(labels) * (labels - predictions)
    return ops.xlogy(labels, labels) - labels * predictions


def _binary_cross_entropy_with_logits(logits: Entry, labels: Entry, *weight: Entry) -> Entry:
    """Build cross entropies of labels and sigmoid(logits), by element.

    ``weight`` is at most one entry, the weight of positive labels. Raises: ShapeError if they do
    not broadcast.
    """
    softplus = ops.log1p(ops.exp(-ops.abs(logits))) + ops.relu(-logits)
    if weight:
        return (1.0 - labels) * logits + (1.0 + (weight[0] - 1.0) * labels) * softplus
    return (1.0 - labels) * logits + softplus


for _name, _call in (
    ("mse_loss", ops.mean_squared_error),
    ("mae_loss", ops.mean_absolute_error),
    ("huber_loss", ops.huber_loss),
    ("smooth_l1_loss", ops.smooth_l1_loss),
    ("log_cosh_loss", ops.log_cosh_loss),
    ("hinge_loss", ops.hinge_loss),
    ("squared_hinge_loss", ops.squared_hinge_loss),
    ("poisson_nll_loss", ops.poisson_loss),
    ("binary_cross_entropy", ops.binary_cross_entropy),
):
    define(_name, partial(_loss, _call))
define("kl_div", _kl_div)
define("binary_cross_entropy_with_logits", _binary_cross_entropy_with_logits)


def mse_loss(predictions: Any, labels: Any, *, reduction: str = "mean") -> Array:
    """Return the squared errors (predictions - labels)**2; their mean unless ``reduction`` differs.

    Args:
        predictions: an array of real numbers; integers are computed in float64.
        labels: an array of real numbers, which broadcasts with it, or a number.
        reduction: "mean", "sum", or "none" for the loss of each element of the broadcast shape.
            The mean of nothing is NaN.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, or there is no such
            reduction.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.

    >>> from passkit import xp
    >>> float(xp.nn.mse_loss(xp.asarray([1.0, 2.0]), xp.asarray([1.0, 4.0])))
    2.0
    """
    return _elementwise_loss("mse_loss", predictions, labels, reduction)


def mae_loss(predictions: Any, labels: Any, *, reduction: str = "mean") -> Array:
    """Return abs(predictions - labels), reduced to the mean by default.

    Predictions and labels are arrays of real numbers, which broadcast, or numbers; ``reduction`` is
    "mean", "sum", or "none" for the loss of each element.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, or there is no such
            reduction.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.
    """
    return _elementwise_loss("mae_loss", predictions, labels, reduction)


def huber_loss(
    predictions: Any, labels: Any, *, delta: float = 1.0, reduction: str = "mean"
) -> Array:
    """Return d**2 / 2 for errors d up to ``delta``, and delta * (abs(d) - delta / 2) beyond.

    They are reduced to their mean by default. Predictions and labels are arrays of real numbers,
    which broadcast, or numbers; ``reduction`` is "mean", "sum", or "none" for the loss of each
    element.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, ``delta`` no number, or
            there is no such reduction.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        FeedError: ``delta`` is not above 0.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.
    """
    number = positive_number("huber_loss", "delta", delta)
    return _elementwise_loss("huber_loss", predictions, labels, reduction, delta=number)


def smooth_l1_loss(
    predictions: Any, labels: Any, *, beta: float = 1.0, reduction: str = "mean"
) -> Array:
    """Return `huber_loss` with ``delta`` = ``beta``, divided by ``beta``.

    The losses of elements are reduced to their mean by default. Predictions and labels are arrays
    of real numbers, which broadcast, or numbers; ``reduction`` is "mean", "sum", or "none" for the
    loss of each element.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, ``beta`` no number, or
            there is no such reduction.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        FeedError: ``beta`` is not above 0.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.
    """
    number = positive_number("smooth_l1_loss", "beta", beta)
    return _elementwise_loss("smooth_l1_loss", predictions, labels, reduction, beta=number)


def log_cosh_loss(predictions: Any, labels: Any, *, reduction: str = "mean") -> Array:
    """Return log(cosh(predictions - labels)), reduced to the mean by default, as `mse_loss`.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, or there is no such
            reduction.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.
    """
    return _elementwise_loss("log_cosh_loss", predictions, labels, reduction)


def hinge_loss(predictions: Any, labels: Any, *, reduction: str = "mean") -> Array:
    """Return max(0, 1 - labels * predictions) for labels -1 and 1, which are not checked.

    It is reduced to the mean by default. Predictions and labels are arrays of real numbers, which
    broadcast, or numbers; ``reduction`` is "mean", "sum", or "none" for the loss of each element.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, or there is no such
            reduction.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.
    """
    return _elementwise_loss("hinge_loss", predictions, labels, reduction)


def squared_hinge_loss(predictions: Any, labels: Any, *, reduction: str = "mean") -> Array:
    """Return max(0, 1 - labels * predictions)**2 for labels -1 and 1, which are not checked.

    It is reduced to the mean by default. Predictions and labels are arrays of real numbers, which
    broadcast, or numbers; ``reduction`` is "mean", "sum", or "none" for the loss of each element.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, or there is no such
            reduction.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.
    """
    return _elementwise_loss("squared_hinge_loss", predictions, labels, reduction)


def poisson_nll_loss(predictions: Any, labels: Any, *, reduction: str = "mean") -> Array:
    """Return exp(predictions) - labels * predictions, for counts and logarithms of their rates.

    It is reduced to the mean by default. Predictions and labels are arrays of real numbers, which
    broadcast, or numbers; ``reduction`` is "mean", "sum", or "none" for the loss of each element.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, or there is no such
            reduction.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.
    """
    return _elementwise_loss("poisson_nll_loss", predictions, labels, reduction)


def kl_div(
    predictions: Any, labels: Any, *, log_target: bool = False, reduction: str = "mean"
) -> Array:
    """Return labels * (log(labels) - predictions): the Kullback-Leibler divergence by element.

    Args:
        predictions: logarithms of probabilities.
        labels: probabilities, or their logarithms with ``log_target``; probabilities 0 give 0.
        log_target: whether labels are logarithms.
        reduction: "mean" over elements, "sum", or "none" for each element.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, or there is no such
            reduction.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.
    """
    log_target = truth("kl_div: log_target", log_target)
    return _elementwise_loss("kl_div", predictions, labels, reduction, log_target=log_target)


# Cross entropies.


def binary_cross_entropy(
    predictions: Any, labels: Any, *, eps: float = 1e-7, reduction: str = "mean"
) -> Array:
    """Return -labels * log(p) - (1 - labels) * log(1 - p) for probabilities p.

    The probabilities are the predictions, limited to ``eps`` from 0 and 1. The losses are reduced
    to their mean by default. Predictions and labels are arrays of real numbers, which broadcast, or
    numbers; ``reduction`` is "mean", "sum", or "none" for the loss of each element.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, ``eps`` no number, or there
            is no such reduction.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        FeedError: ``eps`` is not above 0.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.
    """
    number = positive_number("binary_cross_entropy", "eps", eps)
    return _elementwise_loss("binary_cross_entropy", predictions, labels, reduction, epsilon=number)


def binary_cross_entropy_with_logits(
    logits: Any, labels: Any, *, pos_weight: Any = None, reduction: str = "mean"
) -> Array:
    """Return the cross entropies of labels and sigmoid(logits), their mean by default.

    Args:
        logits: an array of real numbers.
        labels: an array of numbers from 0 to 1, which broadcasts with it.
        pos_weight: the weight of positive labels, a number or an array that broadcasts; None: 1.
        reduction: "mean", "sum", or "none" for each element.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, or there is no such
            reduction.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes do not broadcast, or to too many elements.
        DeviceError: the arrays are on several devices.
    """
    where = "binary_cross_entropy_with_logits"
    operands = {"logits": logits, "labels": labels, "pos_weight": pos_weight}
    values = real_values(where, optional=("pos_weight",), **operands)
    return _reduced(where, applied(where, *values), reduction)


def _cross_entropy(logits: Entry, labels: Entry, axis: int, smoothing: float) -> Entry:
    """Build the cross entropies of logits and label distributions of their shape and float dtype.

    ``smoothing`` is the part of each label that is spread over all classes.
    """
    if smoothing:
        labels = ops.label_smoothing(labels, smoothing=smoothing, axis=axis)
    return ops.softmax_cross_entropy_with_logits(labels, logits, axis=axis)


def _sparse_cross_entropy(logits: Entry, labels: Entry, axis: int, smoothing: float) -> Entry:
    """Build the cross entropies of logits and integer labels.

    ``smoothing`` is the part of each label that is spread over all classes. A label that is no
    class gives only this part, which is 0 without smoothing.
    """
    loss = ops.sparse_softmax_cross_entropy_with_logits(labels, logits, axis=axis)
    if not smoothing:
        return loss
    uniform = -ops.reduce_mean(ops.log_softmax(logits, axis=axis), axis=axis)
    return loss * (1.0 - smoothing) + uniform * smoothing


def _nll(log_probabilities: Entry, labels: Entry, axis: int) -> Entry:
    """Build minus the logarithm of the probability of each label, 0 where it is no class."""
    return -ops.reduce_sum(ops.pick_label(log_probabilities, labels, axis=axis), axis=axis)


define("cross_entropy", _cross_entropy)
define("sparse_cross_entropy", _sparse_cross_entropy, floats=1)
define("nll_loss", _nll, floats=1)


def _checked_labels(where: str, x: Array, labels: Array, axis: int) -> None:
    """Check the labels of a function ``where`` for an array of classes along an axis.

    Raises:
        DTypeError: the labels are no integers.
        ShapeError: their shape is not that of ``x`` without the axis, which is not negative.
    """
    examples = x.shape[:axis] + x.shape[axis + 1 :]
    if labels.dtype.kind not in "iu":
        raise DTypeError(f"{where} needs integer labels, got {labels.dtype}")
    if labels.shape != examples:
        raise ShapeError(f"{where} needs labels of shape {examples}, got {labels.shape}")


def _reduced_examples(
    where: str, loss: Array, labels: Array, ignore_index: int | None, reduction: Any
) -> Array:
    """Return losses of examples reduced.

    Examples whose label is ``ignore_index`` have the loss 0 and do not count in the mean, which is
    NaN if all are ignored. None: none is ignored.

    Raises: ArgumentError if there is no such ``reduction``, or ``ignore_index`` is no integer.
    """
    if ignore_index is None:
        return _reduced(where, loss, reduction)
    ignored, limits = integer(f"{where}: ignore_index", ignore_index), np.iinfo(labels.dtype)
    if not limits.min <= ignored <= limits.max:
        return _reduced(where, loss, reduction)
    counts = not_equal(labels, ignored)
    weights = astype(counts, loss.dtype)
    total = _reduced(where, multiply(loss, weights), "sum" if reduction == "mean" else reduction)
    return divide(total, sum_of(weights)) if reduction == "mean" else total


def cross_entropy(
    logits: Any,
    labels: Any,
    *,
    axis: int = -1,
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:
    """Return the cross entropies of labels and softmax(logits), their mean by default.

    Args:
        logits: an array of real numbers; integers are computed in float64.
        labels: integers, the classes, in the shape of the logits without ``axis``; or floats or
            booleans, the probabilities of classes, in the shape of the logits. An integer that is
            no class, also a negative one, counts in the mean; its loss is 0 without smoothing, and
            else the part that is spread over all classes.
        axis: the axis of the classes.
        label_smoothing: the part of each label that is spread over all classes, from 0 to 1.
        ignore_index: an int, the label whose examples have the loss 0 and do not count in the
            mean; None: there is none. It is not read if the labels are probabilities.
        reduction: "mean", "sum", or "none" for the loss of each example. The mean of no example is
            NaN.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, the axis or
            ``ignore_index`` no integer, or there is no such reduction.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes do not fit, or there is no such axis.
        FeedError: ``label_smoothing`` is no number from 0 to 1.
        DeviceError: the arrays are on several devices.
    """
    where = "cross_entropy"
    x = real_array(where, "logits", logits)
    is_class = isinstance(labels, int) and not isinstance(labels, bool)
    targets = array_of(labels) if is_class else real_array(where, "labels", labels)
    k = one_axis(where, axis, x.ndim)
    if not isinstance(label_smoothing, (int, float)) or not 0 <= label_smoothing <= 1:
        raise FeedError(
            f"cross_entropy needs label_smoothing from 0 to 1, got {shown(label_smoothing)}"
        )
    params = {"axis": k, "smoothing": float(label_smoothing)}
    if targets.dtype.kind not in "iu":
        if targets.shape != x.shape:
            raise ShapeError(
                f"cross_entropy needs probabilities in the shape of the logits {x.shape}, got "
                f"{targets.shape}"
            )
        return _reduced(where, applied(where, x._value, targets._value, **params), reduction)
    _checked_labels(where, x, targets, k)
    loss = applied("sparse_cross_entropy", x._value, targets._value, **params)
    return _reduced_examples(where, loss, targets, ignore_index, reduction)


def nll_loss(
    log_probabilities: Any,
    labels: Any,
    *,
    axis: int = -1,
    ignore_index: int | None = None,
    reduction: str = "mean",
) -> Array:
    """Return minus the logarithm of the probability of each integer label, the mean by default.

    Args:
        log_probabilities: logarithms of probabilities, such as those of `log_softmax`.
        labels: integers in their shape without ``axis``; one that is no class has the loss 0.
        axis: the axis of the classes.
        ignore_index: an int, the label whose examples have the loss 0 and do not count in the
            mean; None: there is none.
        reduction: "mean", "sum", or "none" for the loss of each example. The mean of no example is
            NaN.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, the axis or
            ``ignore_index`` no integer, or there is no such reduction.
        DTypeError: the logarithms are complex or of a dtype that passkit does not have, or the
            labels no integers.
        ShapeError: the shapes do not fit, or there is no such axis.
        DeviceError: the arrays are on several devices.
    """
    x = real_array("nll_loss", "log_probabilities", log_probabilities)
    targets = array_of(labels)
    k = one_axis("nll_loss", axis, x.ndim)
    _checked_labels("nll_loss", x, targets, k)
    loss = applied("nll_loss", x._value, targets._value, axis=k)
    return _reduced_examples("nll_loss", loss, targets, ignore_index, reduction)


# Similarity of vectors.

define("cosine_similarity", ops.cosine_similarity)


def cosine_similarity(x1: Any, x2: Any, *, axis: int = -1, eps: float = 1e-8) -> Array:
    """Return the cosines of the angles between vectors.

    Args:
        x1: an array of real numbers; integers are computed in float64.
        x2: an array of real numbers, which broadcasts with it, but has the same extent along the
            axis.
        axis: the axis of the vectors, which both have, counted from the front or the end of the
            broadcast shape.
        eps: the smallest length; shorter vectors count as if they had it.

    Raises:
        ArgumentError: an operand is neither an array nor a real number, ``eps`` no number, or the
            axis no integer.
        DTypeError: an operand is an array of complex numbers or of a dtype that passkit does not
            have, or an int too large for a float.
        ShapeError: the shapes do not broadcast, or to too many elements, an operand has no such
            axis, or their extents along it differ.
        FeedError: ``eps`` is not above 0.
        DeviceError: the arrays are on several devices.
    """
    values = real_values("cosine_similarity", x1=x1, x2=x2)
    shapes = [v.type.shape for v in values]
    rank = len(broadcast_shapes(*shapes))
    from_end = one_axis("cosine_similarity", axis, rank) - rank
    if -from_end > min(map(len, shapes)) or shapes[0][from_end] != shapes[1][from_end]:
        raise ShapeError(
            f"cosine_similarity needs vectors of one length along axis {axis}, got shapes "
            f"{shapes[0]} and {shapes[1]}"
        )
    number = positive_number("cosine_similarity", "eps", eps)
    return applied("cosine_similarity", *values, axis=from_end, epsilon=number)
