"""API cases of layer objects, sequence layers and LSTMCell."""

from __future__ import annotations

import numpy as np

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.layer_cases import LAYER, train_once
from tests.frontends.tinyflow.math_cases import X
from tests.frontends.tinyflow.nn_cases import STEPS, observe_cell
from tests.frontends.tinyflow.surface import CallCase, CombinedValue, RejectedValue, values

STEP = STEPS.transpose(1, 0, 2)
LONG = np.concatenate([STEP, STEP + 1, STEP - 1], 1)


def _observe_layer_object(inputs, **call):
    """Return an observer of a layer object: its output, and its variables after a training step."""

    def observe(f, **k):
        layer = f(**k)
        return train_once(lambda: layer(inputs, **call))

    return observe


OBJECT = {k: v for k, v in LAYER.items() if k != "reuse"}
POOL = CallCase(
    {"pool_size": 2, "strides": 2},
    {
        "pool_size": 1,
        "strides": 1,
        "padding": CombinedValue("same", {"pool_size": 3}),
        "data_format": "channels_first",
    },
    lambda f, **k: values(f(**k)(STEP)),
)
SEQUENCE = {
    "kernel_size": 1,
    "strides": 2,
    "padding": "same",
    "dilation_rate": 2,
    "data_format": "channels_first",
}
CASES = {
    "layers.Dense": CallCase({"units": 2}, {"units": 3, **OBJECT}, _observe_layer_object(X)),
    "layers.Conv1D": CallCase(
        {"filters": 2, "kernel_size": 2},
        {"filters": 3, **SEQUENCE, **OBJECT},
        _observe_layer_object(LONG),
    ),
    "layers.conv1d": CallCase(
        {"inputs": LONG, "filters": 2, "kernel_size": 2},
        {"inputs": LONG + 1, "filters": 3, **SEQUENCE, **LAYER},
        train_once,
    ),
    **{
        f"layers.{n}": CallCase({"inputs": STEP, **POOL.base}, {"inputs": STEP + 1, **POOL.other})
        for n in ("max_pooling1d", "average_pooling1d")
    },
    **{f"layers.{n}": POOL for n in ("MaxPooling1D", "AveragePooling1D")},
    "nn.rnn_cell.LSTMCell": CallCase(
        {"num_units": 2},
        {
            "num_units": 3,
            "activation": tf.nn.relu,
            "reuse": RejectedValue(True),
            "dtype": tf.float64,
            "use_peepholes": True,
            "cell_clip": 0.01,
            "initializer": tf.ones_initializer(),
            "num_proj": 3,
            "proj_clip": CombinedValue(0.001, {"num_proj": 3}),
            "num_unit_shards": RejectedValue(2),
            "num_proj_shards": RejectedValue(2),
            "forget_bias": 0.0,
            "state_is_tuple": False,
        },
        observe_cell(lambda: tf.nn.rnn_cell.LSTMCell),
    ),
}
