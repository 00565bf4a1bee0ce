"""API cases of tf.layers and of initializers."""

from __future__ import annotations

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.math_cases import X, Y
from tests.frontends.tinyflow.nn_cases import FIRST, IMAGE, SECOND
from tests.frontends.tinyflow.surface import CallCase, CombinedValue, RejectedValue, values

LAYER = {
    "activation": tf.sigmoid,
    "use_bias": False,
    "kernel_initializer": tf.ones_initializer(),
    "bias_initializer": tf.ones_initializer(),
    "kernel_regularizer": tf.nn.l2_loss,
    "bias_regularizer": tf.nn.l2_loss,
    "activity_regularizer": tf.nn.l2_loss,
    "kernel_constraint": lambda v: v * 0.5,
    "bias_constraint": lambda v: v + 1.0,
    "trainable": False,
    "reuse": RejectedValue(True),
}


def train_once(f, **k):
    """Return the output of a layer, and its variables after a training step."""
    output = f(**k)
    variables = tf.trainable_variables() or tf.global_variables()
    step = tf.train.GradientDescentOptimizer(0.1).minimize(output, var_list=variables)
    return [values(output), values(step)]


def _observe_initializer(f, **k):
    """Return the tensor that an initializer creates."""
    shape_argument = {"shape": [4, 5]}
    dtype = k.get("dtype")
    if k.get("verify_shape"):
        shape_argument = {"shape": [9]}
    initializer = f(**k)
    return values(initializer(shape_argument["shape"], dtype=dtype))


def _observe_twice(f, **k):
    """Return a layer's output before and after its update operations ran."""
    out = f(**k)
    return [train_once(lambda: out), values(out)]


POOLED = CallCase(
    {"inputs": IMAGE, "pool_size": 2, "strides": 2},
    {
        "inputs": SECOND,
        "pool_size": 3,
        "strides": 1,
        "padding": CombinedValue("same", {"pool_size": 3}),
        "data_format": CombinedValue("channels_first", {"inputs": FIRST}),
    },
)
DTYPE = {"dtype": tf.float64}
DRAWN = {**DTYPE, "seed": 3}

CASES = {
    "layers.dense": CallCase(
        {"inputs": X, "units": 2}, {"inputs": Y, "units": 3, **LAYER}, train_once
    ),
    "layers.conv2d": CallCase(
        {"inputs": IMAGE, "filters": 2, "kernel_size": 3},
        {
            "inputs": SECOND,
            "filters": 3,
            "kernel_size": [2, 2],
            "strides": 2,
            "padding": "same",
            "data_format": CombinedValue("channels_first", {"inputs": FIRST}),
            "dilation_rate": 2,
            **LAYER,
        },
        train_once,
    ),
    "layers.conv2d_transpose": CallCase(
        {"inputs": IMAGE, "filters": 2, "kernel_size": 3},
        {
            "inputs": SECOND,
            "filters": 3,
            "kernel_size": [2, 2],
            "strides": 2,
            "padding": "same",
            "data_format": CombinedValue("channels_first", {"inputs": FIRST}),
            **LAYER,
        },
        train_once,
    ),
    "layers.max_pooling2d": POOLED,
    "layers.average_pooling2d": POOLED,
    "layers.flatten": CallCase(
        {"inputs": IMAGE}, {"inputs": SECOND, "data_format": "channels_first"}
    ),
    "contrib.layers.flatten": CallCase({"inputs": IMAGE}, {"inputs": SECOND}),
    "layers.dropout": CallCase(
        {"inputs": X, "training": True},
        {"inputs": Y, "rate": 0.1, "noise_shape": [2, 1], "seed": 4, "training": False},
    ),
    "layers.batch_normalization": CallCase(
        {"inputs": X, "training": True},
        {
            "inputs": Y,
            "axis": 0,
            "momentum": 0.5,
            "epsilon": 0.1,
            "center": False,
            "scale": False,
            "beta_initializer": tf.ones_initializer(),
            "gamma_initializer": tf.zeros_initializer(),
            "moving_mean_initializer": tf.ones_initializer(),
            "moving_variance_initializer": tf.zeros_initializer(),
            "beta_regularizer": tf.nn.l2_loss,
            "gamma_regularizer": tf.nn.l2_loss,
            "beta_constraint": lambda v: v + 1.0,
            "gamma_constraint": lambda v: v * 0.5,
            "training": False,
            "trainable": False,
            "reuse": RejectedValue(True),
            "renorm": RejectedValue(True),
            "renorm_clipping": RejectedValue({}),
            "renorm_momentum": RejectedValue(0.5),
            "fused": RejectedValue(True),
            "virtual_batch_size": RejectedValue(1),
            "adjustment": RejectedValue(max),
        },
        _observe_twice,
    ),
    "zeros_initializer": CallCase({}, DTYPE, _observe_initializer),
    "ones_initializer": CallCase({}, DTYPE, _observe_initializer),
    "constant_initializer": CallCase(
        {"value": [1.0, 2.0]},
        {**DTYPE, "value": 3.0, "verify_shape": RejectedValue(True)},
        _observe_initializer,
    ),
    "random_normal_initializer": CallCase(
        {}, {**DRAWN, "mean": 1.0, "stddev": 2.0}, _observe_initializer
    ),
    "truncated_normal_initializer": CallCase(
        {}, {**DRAWN, "mean": 1.0, "stddev": 2.0}, _observe_initializer
    ),
    "random_uniform_initializer": CallCase(
        {}, {**DRAWN, "minval": -1.0, "maxval": 2.0}, _observe_initializer
    ),
    "variance_scaling_initializer": CallCase(
        {},
        {**DRAWN, "scale": 2.0, "mode": "fan_out", "distribution": "uniform"},
        _observe_initializer,
    ),
    "glorot_uniform_initializer": CallCase({}, DRAWN, _observe_initializer),
    "glorot_normal_initializer": CallCase({}, DRAWN, _observe_initializer),
}
