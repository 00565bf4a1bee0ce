"""Batch normalisation: inference as one product and sum, training with its statistics."""

from __future__ import annotations

from typing import Any

from passkit.errors import ShapeError
from passkit.graph.infer import agree, show_shape
from passkit.graph.node import Entry, Node, known_shape
from passkit.ops.composites import composite
from passkit.ops.helpers import make, normalize_axis
from passkit.ops.layouts import as_dtype, wide
from passkit.values.size import Extent, Shape, numel

NORMALISED = {"epsilon": 1e-3, "axis": -1}


def _checked(node: Node, x: Shape, *vectors: Shape) -> int:
    """The axis of channels. Raises: ShapeError where a vector does not have their length."""
    axis = normalize_axis(node, len(x), node.params["axis"])
    for k, shape in enumerate(vectors):
        if len(shape) != 1:
            raise ShapeError(
                f"{node.where} needs a vector with an element for each channel as input {k + 1}, "
                f"got {show_shape(shape)}"
            )
        agree(node, x[axis], shape[0], "channels of the data and of its statistics")
    return axis


def _along(v: Entry, rank: int, axis: int) -> Entry:
    """A vector as it broadcasts along an axis."""
    shape = tuple(known_shape(v)[0] if k == axis else 1 for k in range(rank))
    return make("reshape", v, shape=shape)


def _scaled(x: Entry, mean: Entry, factor: Entry, offset: Entry, axis: int) -> Entry:
    """Distances to the mean first: much cancels there where the mean is large."""
    m, f, o = (_along(v, len(known_shape(x)), axis) for v in (mean, factor, offset))
    return (x - m) * f + o


def _inference(node: Node, *given: Entry) -> Entry:
    """Source: (x - mean) * s + offset with s = scale / sqrt(variance + epsilon), a vector."""
    shapes = [known_shape(e) for e in given]
    axis = _checked(node, shapes[0], *shapes[1:])
    x, scale, offset, mean, variance = map(wide, given)
    factor = scale * make("rsqrt", variance + node.params["epsilon"])
    return as_dtype(_scaled(x, mean, factor, offset, axis), given[0])


def _training(node: Node, *given: Entry) -> tuple[Entry, ...]:
    """Source: Ioffe and Szegedy 2015. The variance that is returned is that of a sample.

    Running statistics move by ``momentum``: ``running * momentum + batch * (1 - momentum)``.
    """
    shapes = [known_shape(e) for e in given]
    axis = _checked(node, shapes[0], *shapes[1:])
    x, scale, offset, *running = map(wide, given)
    mean, variance = _statistics(given[0], axis)
    factor = scale * make("rsqrt", variance + node.params["epsilon"])
    y = as_dtype(_scaled(x, mean, factor, offset, axis), given[0])
    rest = [n for k, n in enumerate(shapes[0]) if k != axis]
    sample = variance * _bessel(numel(rest), variance)
    kept = float(node.params["momentum"])
    pairs = zip(running, (mean, sample), strict=True)
    moved = [old * kept + new * (1.0 - kept) if kept else new for old, new in pairs]
    return y, *(as_dtype(e, given[3]) for e in moved)


def _statistics(data: Entry, axis: int) -> tuple[Entry, Entry]:
    """Mean and variance of each channel in one pass over the data.

    Distances are taken to the channel's first element, so that little cancels.
    """
    shape = known_shape(data)
    axes = tuple(k for k in range(len(shape)) if k != axis)
    size = tuple(n if k == axis else 1 for k, n in enumerate(shape))
    first = wide(make("slice", data, begin=(0,) * len(shape), size=size))
    away = wide(data) - first
    near = make("reduce_mean", away, axis=axes)
    variance = make("reduce_mean", away * away, axis=axes) - near * near
    mean = near + make("reshape", first, shape=(shape[axis],))
    return mean, make("maximum", variance, 0.0)


def _bessel(count: Extent, like: Entry) -> Any:
    """n / (n - 1), by which the variance of a sample is larger; 1 for a single element."""
    if isinstance(count, int):
        return count / max(count - 1, 1)
    share = make("div_by_size", make("ones_like", like), size=count)
    return make("where", share < 1.0, 1.0 / (1.0 - share), 1.0)


composite(
    "batch_norm",
    ["input", "scale", "offset", "mean", "variance"],
    _inference,
    "(input - mean) / sqrt(variance + epsilon) * scale + offset, for each channel",
    NORMALISED,
    aliases="batch_normalization_inference",
)
composite(
    "batch_norm_training",
    ["input", "scale", "offset", "running_mean", "running_variance"],
    _training,
    "batch_norm with the statistics of the batch; results: y, and the running statistics moved",
    {**NORMALISED, "momentum": 0.99},
    results=3,
)


def _fused(node: Node, *given: Entry) -> tuple[Entry, ...]:
    """Source: tf.nn.fused_batch_norm: y, and the batch's statistics, or those given."""
    axis = 1 if node.params["data_format"] == "NCHW" else len(known_shape(given[0])) - 1
    epsilon = node.params["epsilon"]
    if not node.params["is_training"]:
        y = make("batch_norm", *given, epsilon=epsilon, axis=axis)
        return y, make("identity", given[3]), make("identity", given[4])
    factor = 1.0 - node.params["exponential_avg_factor"]
    return tuple(
        make("batch_norm_training", *given, epsilon=epsilon, axis=axis, momentum=factor)
    )


composite(
    "fused_batch_norm",
    ["x", "scale", "offset", "mean", "variance"],
    _fused,
    "batch_norm with the parameters of TensorFlow; results: y, mean, variance",
    {
        "epsilon": 1e-3,
        "data_format": "NHWC",
        "is_training": True,
        "exponential_avg_factor": 1.0,
    },
    results=3,
)
