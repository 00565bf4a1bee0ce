"""Cases of reductions, softmax and cross entropies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Array, Case
from tests.frontends.tf_graphdef.reference.drawing import FLOATS, SIGNED, draw, sweep

FOLDS = ("Sum", "Mean", "Max", "Min", "Prod", "EuclideanNorm")
TYPES = ("float32", "int32", "bfloat16", "uint8", "float64", "int64", "float16")


def cases(tf: Any) -> Iterator[Case]:
    """Yield reductions over all axes for every dtype, then operators composed of them."""
    axes: tuple[Any, ...] = (0, [-1], [0, 2], [], [0, 1, 2])
    for op in (*FOLDS, "Any", "All"):
        for k, axis in enumerate(axes):
            keep = k % 2 == 1
            mark = f"axis={axis}{' keep_dims' if keep else ''}".replace("|", "")

            def fold(x: Any, op: str = op, axis: Any = axis, keep: bool = keep) -> Any:
                at = tf.constant(axis, tf.int32)
                return getattr(tf.raw_ops, op)(input=x, axis=at, keep_dims=keep)

            dtypes = ("bool",) if op in ("Any", "All") else ("float32", TYPES[1 + k])
            yield from sweep(
                tf, op, mark, fold, lambda d: {"x": _values(d)}, dtypes, free=op != "Mean"
            )
    for op in ("Sum", "Prod", "Max", "Min", "Mean"):
        yield Case(
            op,
            "of nothing",
            lambda x, op=op: getattr(tf.raw_ops, op)(input=x, axis=[1]),
            {"x": np.zeros((2, 0, 3), "f")},
        )
        yield Case(
            op,
            "with NaN",
            lambda x, op=op: getattr(tf.raw_ops, op)(input=x, axis=[1]),
            {"x": np.array([[1, np.nan, 2], [np.inf, 1, -3], [-np.inf, 1, 2]], "f")},
        )
    for op in ("Softmax", "LogSoftmax"):
        for shape in ((3, 5), (2, 3, 4), (6,)):
            yield from sweep(
                tf,
                op,
                f"rank {len(shape)}",
                lambda x, op=op: getattr(tf.raw_ops, op)(logits=x),
                lambda d, s=shape: {"x": draw(1, s, d)},
                FLOATS if len(shape) == 2 else FLOATS[:1],
            )
        yield Case(
            op,
            "axis=1 of rank 3",
            lambda x, op=op: (
                tf.nn.softmax(x, axis=1) if op == "Softmax" else tf.nn.log_softmax(x, axis=1)
            ),
            {"x": draw(1, (2, 3, 4))},
        )
    yield from sweep(
        tf, "L2Loss", "", lambda x: tf.raw_ops.L2Loss(t=x), lambda d: {"x": draw(1, (3, 5), d)}
    )
    yield from _entropies(tf)
    yield from _spelled(tf)


def _values(dtype: str) -> Array:
    x = draw(1, (3, 4, 5), dtype, low=-3)
    return x


def _entropies(tf: Any) -> Iterator[Case]:
    labels = np.abs(draw(2, (4, 5)))
    labels /= labels.sum(1, keepdims=True)
    for dtype in ("float32", "float64"):
        values = {"x": draw(1, (4, 5), dtype), "y": labels.astype(dtype)}
        yield Case(
            "SoftmaxCrossEntropyWithLogits",
            "loss and gradient",
            lambda x, y: list(tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=x, labels=y)),
            values,
        )
    yield Case(
        "SoftmaxCrossEntropyWithLogits",
        "one row of labels",
        lambda x, y: list(tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=x, labels=y)),
        {"x": draw(1, (4, 5)), "y": labels[:1]},
        free=False,
    )
    yield Case(
        "SoftmaxCrossEntropyWithLogits",
        "rank 3, tf.nn",
        lambda x, y: tf.nn.softmax_cross_entropy_with_logits(y, x),
        {"x": draw(1, (2, 4, 5)), "y": np.stack([labels, labels])},
    )
    for dtype in ("int32", "int64"):
        picked = np.array([0, 4, 2, 2], dtype)
        yield Case(
            "SparseSoftmaxCrossEntropyWithLogits",
            f"loss and gradient, {dtype}",
            lambda x, y: list(tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=x, labels=y)),
            {"x": draw(1, (4, 5)), "y": picked},
        )
    yield Case(
        "SparseSoftmaxCrossEntropyWithLogits",
        "rank 3, tf.nn",
        lambda x, y: tf.nn.sparse_softmax_cross_entropy_with_logits(y, x),
        {"x": draw(1, (2, 3, 5)), "y": np.array([[0, 4, 1], [2, 2, 3]])},
        free=False,
    )


def _spelled(tf: Any) -> Iterator[Case]:
    x = draw(1, (3, 4, 5))
    for op, name, function in (
        ("Max", "reduce_logsumexp", lambda x: tf.reduce_logsumexp(x, axis=1)),
        ("Max", "reduce_logsumexp of all", lambda x: tf.reduce_logsumexp(x)),
        ("Mean", "reduce_variance", lambda x: tf.math.reduce_variance(x, axis=[1, 2])),
        ("Mean", "reduce_std", lambda x: tf.math.reduce_std(x, axis=-1, keepdims=True)),
        ("Mean", "moments", lambda x: list(tf.nn.moments(x, [1]))),
        (
            "Sum",
            "weighted_moments",
            lambda x: list(tf.nn.weighted_moments(x, [1], tf.abs(x) + 1.0)),
        ),
        ("Sum", "count_nonzero", lambda x: tf.math.count_nonzero(x > 0, axis=1)),
        ("Sum", "norm", lambda x: tf.norm(x, axis=-1)),
        ("Sum", "norm ord=1", lambda x: tf.norm(x, ord=1, axis=1)),
        ("Max", "norm ord=inf", lambda x: tf.norm(x, ord=np.inf, axis=-1)),
        ("Max", "norm of matrices ord=1", lambda x: tf.norm(x, ord=1, axis=[1, 2])),
        ("Sum", "norm fro", lambda x: tf.norm(x, ord="fro", axis=[1, 2])),
        ("Sum", "clip_by_norm", lambda x: tf.clip_by_norm(x, 2.0, axes=[1])),
        ("L2Loss", "global_norm", lambda x: tf.linalg.global_norm([x, x * 2])),
        ("Prod", "of a shape", lambda x: tf.reshape(x, [-1, tf.reduce_prod(tf.shape(x)[1:])])),
        (
            "Mean",
            "layer norm by hand",
            lambda x: (
                (x - tf.reduce_mean(x, -1, keepdims=True))
                * tf.math.rsqrt(tf.math.reduce_variance(x, -1, keepdims=True) + 1e-3)
            ),
        ),
    ):
        yield Case(op, name, function, {"x": x})
    for dtype in SIGNED[:2]:
        yield Case(
            "Mean",
            "of integers",
            lambda x: tf.reduce_mean(x, axis=1),
            {"x": draw(1, (3, 5), dtype)},
        )
