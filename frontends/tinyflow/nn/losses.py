"""Softmax, cross entropies, and other functions of a network's end."""

from __future__ import annotations

from typing import Any

from passkit.errors import SettingError
from passkit.frontends.tinyflow.numbers import real, whole
from passkit.frontends.tinyflow.reductions import axes_of
from passkit.frontends.tinyflow.refusals import either
from passkit.frontends.tinyflow.tensors import Tensor, both, made, named, read, wrapped
from passkit.frontends.tinyflow.types import as_dtype
from passkit.graph.op import get_op


def _normalised(op: str, default: str) -> Any:
    def function(
        logits: Any, axis: Any = None, name: str | None = None, dim: Any = None
    ) -> Tensor:
        found = either(default, "axis", axis, "dim", dim)
        return made(op, default, name, read(logits), axis=-1 if found is None else axes_of(found))

    function.__doc__ = f"{get_op(op).doc[:1].upper()}{get_op(op).doc[1:]}; by default the last one."
    return function


softmax = _normalised("softmax", "Softmax")
log_softmax = _normalised("log_softmax", "LogSoftmax")


def _given(where: str, labels: Any, logits: Any) -> list[Any]:
    """Labels and logits. Raises: SettingError when one is missing: their order is easily mixed."""
    for what, value in (("labels", labels), ("logits", logits)):
        if value is None:
            raise SettingError(f"{where} needs labels= and logits= by name, got no {what}")
    return [read(v) if not hasattr(v, "dtype") else v for v in both(labels, logits)]


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: Any, axis: Any = None, name: str | None = None, dim: Any = None
) -> Tensor:
    """The cross entropy of label distributions and softmax(logits) along an axis.

    Gradients flow to labels, too; tf.stop_gradient keeps them off.
    """
    where = "softmax_cross_entropy_with_logits"
    found = either(where, "axis", axis, "dim", dim)
    sides = _given(where, labels, logits)
    return made(where, where, name, *sides, axis=-1 if found is None else axes_of(found))


def softmax_cross_entropy_with_logits(
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = None,
    axis: Any = None,
) -> Tensor:
    """The cross entropy of label distributions and softmax(logits); labels get no gradient."""
    where = "softmax_cross_entropy_with_logits"
    y, x = _given(where, labels, logits)
    if axis is not None and dim != -1:
        raise SettingError(f"{where} needs axis or dim, its older name, got both: {axis} and {dim}")
    along = axes_of(dim if axis is None else axis)
    return made(where, where, name, get_op("stop_gradient")(y), x, axis=along)


def sparse_softmax_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """The cross entropy of whole-number labels and softmax(logits) along the last axis."""
    where = "sparse_softmax_cross_entropy_with_logits"
    for what, value in (("labels", labels), ("logits", logits)):
        if value is None:
            raise SettingError(f"{where} needs labels= and logits= by name, got no {what}")
    return made(where, where, name, read(labels), read(logits))


def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """The cross entropy of labels and sigmoid(logits), element by element."""
    where = "sigmoid_cross_entropy_with_logits"
    return made(where, "logistic_loss", name, *_given(where, labels, logits))


def l2_loss(t: Any, name: str | None = None) -> Tensor:
    """Half the sum of squares."""
    entry = read(t)
    return made("mul", "L2Loss", name, get_op("reduce_sum")(get_op("square")(entry)), 0.5)


def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """``x`` divided by its length along ``axis``, of which the square is ``epsilon`` at least."""
    found = either("l2_normalize", "axis", axis, "dim", dim)
    entry = read(x)
    square = get_op("reduce_sum")(get_op("square")(entry), axis=axes_of(found), keepdims=True)
    scale = get_op("rsqrt")(get_op("maximum")(square, real("l2_normalize", "epsilon", epsilon)))
    return made("mul", "l2_normalize", name, entry, scale)


def in_top_k(predictions: Any, targets: Any, k: Any, name: str | None = None) -> Tensor:
    """Whether the score of the target is among the ``k`` largest; equal scores all are."""
    full, scores = named(name, "in_top_k"), read(predictions)
    places = get_op("expand_dims")(read(targets), axis=-1)
    own = get_op("take_along_axis")(scores, places, axis=-1)
    ahead = get_op("cast")(get_op("greater")(scores, own), dtype="int32")
    before = get_op("reduce_sum")(ahead, axis=-1)
    return wrapped(get_op("less")(before, whole("in_top_k", "k", k)), full)


def top_k(
    input: Any, k: Any = 1, sorted: bool = True, index_type: Any = "int32", name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The ``k`` largest elements along the last axis and their places, largest first.

    Raises: SettingError for ``sorted=False``: they are in order whatever one asks for.
    """
    if sorted is not True:
        raise SettingError(f"top_k gives the largest first, got sorted={sorted!r}; leave it out")
    full = named(name, "TopKV2")
    values, places = get_op("top_k")(read(input), k=whole("top_k", "k", k))
    wanted = as_dtype(index_type)
    if wanted is not places.dtype:
        places = get_op("cast")(places, dtype=wanted.name)
    return wrapped(values, full), wrapped(places, full, index=1)


def batch_normalization(
    x: Any,
    mean: Any = None,
    variance: Any = None,
    offset: Any = None,
    scale: Any = None,
    variance_epsilon: float | None = None,
    name: str | None = None,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset; None leaves out offset or scale.

    Called with ``x`` alone it is TinyFlow's layer, which makes scale and offset.
    """
    if mean is None and variance is None:
        from passkit.frontends.tinyflow.nn.classic import batch_normalization_layer  # it calls this

        return batch_normalization_layer(x, name=name)
    full = named(name, "batchnorm")
    epsilon = real("batch_normalization", "variance_epsilon", variance_epsilon)
    factor = get_op("rsqrt")(read(variance) + epsilon)
    if scale is not None:
        factor = factor * read(scale)
    rest = read(mean) * factor
    found = read(x) * factor - rest if offset is None else read(x) * factor + (read(offset) - rest)
    return wrapped(found, full)


def leaky_relu(features: Any, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """x if positive, else alpha * x."""
    slope = real("leaky_relu", "alpha", alpha)
    return made("leaky_relu", "LeakyRelu", name, read(features), alpha=slope)
