"""API cases of tf.losses and tf.metrics."""

from __future__ import annotations

import numpy as np

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.math_cases import X, Y
from tests.frontends.tinyflow.surface import CallCase, CombinedValue, values

SOME = np.array([[2.0], [0.0]], np.float32)
PART = 1 / (1 + np.exp(-X))
OTHER = 1 / (1 + np.exp(-Y))
CLASSES = np.array([0, 2], np.int32)


def _observe_loss(f, **k):
    """Return a loss, and the number of values in each collection."""
    out = f(**k)
    counts = {
        key: len(values_in_collection)
        for key, values_in_collection in tf.get_default_graph().collections.items()
    }
    return [values(out), counts]


def _observe_metric(f, **k):
    """Return a metric after two updates, its variables' names, and sizes of collections."""
    value, update = f(**k)
    with tf.Session(target="interpret") as session:
        session.run(tf.local_variables_initializer())
        updates = [float(session.run(update)) for _ in range(2)]
        last = float(session.run(value))
    return [
        updates,
        last,
        value.name,
        [v.name for v in tf.local_variables()],
        [len(tf.get_collection(key)) for key in ("mine", "yours")],
    ]


def _observe_total(f, **k):
    """Return a sum or list of collected losses, some of which are under a scope."""
    with tf.name_scope("s"):
        tf.losses.mean_squared_error(X, Y)
    tf.losses.absolute_difference(X, Y)
    for name in ("s/w", "w"):
        tf.get_variable(name, [2], initializer=tf.ones_initializer(), regularizer=tf.nn.l2_loss)
    losses = f(**k)
    return [t.name for t in losses] if isinstance(losses, list) else values(losses)


def _added(f, **k):
    f(**k)
    return {key: len(collected) for key, collected in tf.get_default_graph().collections.items()}


WEIGHTED = {
    "weights": SOME,
    "scope": "other",
    "loss_collection": "mine",
    "reduction": "weighted_sum",
}
PAIR = CallCase(
    {"labels": PART, "predictions": OTHER},
    {"labels": OTHER, "predictions": PART + 0.1, **WEIGHTED},
    _observe_loss,
)
METRIC = CallCase(
    {"labels": CLASSES, "predictions": np.array([0, 1], np.int32)},
    {
        "labels": CLASSES + 1,
        "predictions": CLASSES,
        "weights": np.array([1.0, 0.25], np.float32),
        "metrics_collections": "mine",
        "updates_collections": ["yours"],
    },
    _observe_metric,
)
POSITIVES = CallCase(
    {"labels": np.array([1, 0, 1]), "predictions": np.array([1, 1, 0])},
    {
        "labels": np.array([0, 0, 1]),
        "predictions": np.array([0, 0, 0]),
        "weights": np.array([1.0, 0.25, 0.5], np.float32),
        "metrics_collections": "mine",
        "updates_collections": ["yours"],
    },
    _observe_metric,
)
LOSSES = {
    **{f"losses.{n}": PAIR for n in ("absolute_difference", "mean_squared_error")},
    "losses.huber_loss": CallCase(PAIR.base, {**PAIR.other, "delta": 0.01}, _observe_loss),
    "losses.log_loss": CallCase(PAIR.base, {**PAIR.other, "epsilon": 0.1}, _observe_loss),
    "losses.cosine_distance": CallCase(
        {**PAIR.base, "axis": 1},
        {
            **PAIR.other,
            "axis": CombinedValue(0, {"weights": 1.0}),
            "dim": CombinedValue(1, {"axis": None}),
        },
        _observe_loss,
    ),
    "losses.hinge_loss": CallCase(
        {"labels": PART, "logits": X}, {"labels": OTHER, "logits": Y, **WEIGHTED}, _observe_loss
    ),
    "losses.mean_pairwise_squared_error": CallCase(
        PAIR.base, {k: v for k, v in PAIR.other.items() if k != "reduction"}, _observe_loss
    ),
    "losses.sigmoid_cross_entropy": CallCase(
        {"multi_class_labels": PART, "logits": X},
        {"multi_class_labels": OTHER, "logits": Y, "label_smoothing": 0.2, **WEIGHTED},
        _observe_loss,
    ),
    "losses.softmax_cross_entropy": CallCase(
        {"onehot_labels": PART, "logits": X},
        {
            "onehot_labels": OTHER,
            "logits": Y,
            "label_smoothing": 0.2,
            **WEIGHTED,
            "weights": SOME[:, 0],
        },
        _observe_loss,
    ),
    "losses.sparse_softmax_cross_entropy": CallCase(
        {"labels": CLASSES, "logits": X},
        {"labels": CLASSES[::-1].copy(), "logits": Y, **WEIGHTED, "weights": SOME[:, 0]},
        _observe_loss,
    ),
    "losses.compute_weighted_loss": CallCase(
        {"losses": X}, {"losses": Y, **WEIGHTED}, _observe_loss
    ),
    "losses.add_loss": CallCase(
        {"loss": 1.0},
        {"loss": CombinedValue(None, {"loss_collection": "x"}), "loss_collection": "y"},
        _added,
    ),
    "losses.get_losses": CallCase({}, {"scope": "s", "loss_collection": "none"}, _observe_total),
    "losses.get_regularization_losses": CallCase({}, {"scope": "nothing"}, _observe_total),
    "losses.get_regularization_loss": CallCase({}, {"scope": "nothing"}, _observe_total),
    "losses.get_total_loss": CallCase(
        {}, {"add_regularization_losses": False, "scope": "s"}, _observe_total
    ),
}
METRICS = {
    **{
        f"metrics.{n}": METRIC
        for n in (
            "accuracy",
            "mean_squared_error",
            "mean_absolute_error",
            "root_mean_squared_error",
        )
    },
    **{f"metrics.{n}": POSITIVES for n in ("precision", "recall")},
    "metrics.mean": CallCase(
        {"values": X},
        {
            "values": Y,
            "weights": SOME,
            "metrics_collections": "mine",
            "updates_collections": "yours",
        },
        _observe_metric,
    ),
}

CASES = {**LOSSES, **METRICS}
