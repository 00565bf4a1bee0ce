"""API cases of tf.contrib.layers."""

from __future__ import annotations

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.layer_cases import train_once
from tests.frontends.tinyflow.math_cases import X, Y
from tests.frontends.tinyflow.nn_cases import FIRST, IMAGE, SECOND
from tests.frontends.tinyflow.surface import CallCase, CombinedValue, RejectedValue, values

CONTRIB_LAYER = {
    "activation_fn": tf.sigmoid,
    "normalizer_fn": tf.contrib.layers.batch_norm,
    "normalizer_params": CombinedValue(
        {"decay": 0.5}, {"normalizer_fn": tf.contrib.layers.batch_norm}
    ),
    "weights_initializer": tf.ones_initializer(),
    "weights_regularizer": tf.nn.l2_loss,
    "biases_initializer": tf.ones_initializer(),
    "biases_regularizer": tf.nn.l2_loss,
    "reuse": RejectedValue(True),
    "variables_collections": RejectedValue("mine"),
    "outputs_collections": "mine",
    "trainable": False,
    "scope": "other",
}


def _observe_contrib_layer(f, **k):
    """Return a layer's output, its variables after a training step, and collection sizes."""
    out = f(**k)
    collected = len(tf.get_collection("mine"))
    updates = len(tf.get_collection("update_ops"))
    return [
        values(out) if not tf.trainable_variables() else train_once(lambda: out),
        collected,
        updates,
    ]


def _observe_regularizer(f, **k):
    return values(f(**k)(tf.constant(X)))


POOLS = CallCase(
    {"inputs": IMAGE, "kernel_size": 2},
    {
        "inputs": SECOND,
        "kernel_size": 3,
        "stride": 1,
        "padding": CombinedValue("SAME", {"kernel_size": 3}),
        "data_format": CombinedValue("NCHW", {"inputs": FIRST}),
        "outputs_collections": "mine",
        "scope": "other",
    },
    _observe_contrib_layer,
)
CASES = {
    "contrib.layers.fully_connected": CallCase(
        {"inputs": X, "num_outputs": 2},
        {"inputs": Y, "num_outputs": 3, **CONTRIB_LAYER},
        _observe_contrib_layer,
    ),
    "contrib.layers.convolution2d": CallCase(
        {"inputs": IMAGE, "num_outputs": 2, "kernel_size": 3},
        {
            "inputs": SECOND,
            "num_outputs": 3,
            "kernel_size": 2,
            "stride": 2,
            "padding": "VALID",
            "data_format": CombinedValue("NCHW", {"inputs": FIRST}),
            "rate": 2,
            **CONTRIB_LAYER,
        },
        _observe_contrib_layer,
    ),
    "contrib.layers.max_pool2d": POOLS,
    "contrib.layers.avg_pool2d": POOLS,
    "contrib.layers.dropout": CallCase(
        {"inputs": X},
        {
            "inputs": Y,
            "keep_prob": 0.9,
            "noise_shape": [2, 1],
            "is_training": False,
            "outputs_collections": "mine",
            "scope": "other",
        },
        _observe_contrib_layer,
    ),
    "contrib.layers.one_hot_encoding": CallCase(
        {"labels": [1, 0], "num_classes": 3},
        {
            "labels": [1, 2],
            "num_classes": 4,
            "on_value": 2.0,
            "off_value": -1.0,
            "outputs_collections": "mine",
            "scope": "other",
        },
        _observe_contrib_layer,
    ),
    "contrib.layers.batch_norm": CallCase(
        {"inputs": X},
        {
            "inputs": Y,
            "decay": 0.5,
            "center": False,
            "scale": True,
            "epsilon": 0.5,
            "activation_fn": tf.nn.relu,
            "param_initializers": {"beta": tf.ones_initializer()},
            "param_regularizers": {"beta": tf.nn.l2_loss},
            "updates_collections": RejectedValue(None),
            "is_training": False,
            "reuse": RejectedValue(True),
            "variables_collections": RejectedValue("mine"),
            "outputs_collections": "mine",
            "trainable": False,
            "scope": "other",
        },
        _observe_contrib_layer,
    ),
    "contrib.layers.l1_regularizer": CallCase(
        {"scale": 0.5}, {"scale": 2.0, "scope": "s"}, _observe_regularizer
    ),
    "contrib.layers.l2_regularizer": CallCase(
        {"scale": 0.5}, {"scale": 2.0, "scope": "s"}, _observe_regularizer
    ),
}
