"""Rows of the surface: tf.layers, and initial values."""

from __future__ import annotations

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.cases_math import X, Y
from tests.frontends.tinyflow.cases_nn import FIRST, IMAGE, SECOND
from tests.frontends.tinyflow.surface import Also, Refused, Row, values

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
    "reuse": Refused(True),
}


def _trained(f, **k):
    """What a layer gives, and its variables after a step of training."""
    out = f(**k)
    inside = tf.trainable_variables() or tf.global_variables()
    step = tf.train.GradientDescentOptimizer(0.1).minimize(out, var_list=inside)
    return [values(out), values(step)]


def _initial(f, **k):
    seen = {"shape": [4, 5]}
    dtype = k.get("dtype")
    if k.get("verify_shape"):
        seen = {"shape": [9]}
    made = f(**k)
    return values(made(seen["shape"], dtype=dtype))


def _twice(f, **k):
    """A layer with a state that its update operations move."""
    out = f(**k)
    return [_trained(lambda: out), values(out)]


POOLED = Row({"inputs": IMAGE, "pool_size": 2, "strides": 2},
             {"inputs": SECOND, "pool_size": 3, "strides": 1,
              "padding": Also("same", {"pool_size": 3}),
              "data_format": Also("channels_first", {"inputs": FIRST})})
DTYPE = {"dtype": tf.float64}
DRAWN = {**DTYPE, "seed": 3}

ROWS = {
    "layers.dense": Row({"inputs": X, "units": 2}, {"inputs": Y, "units": 3, **LAYER}, _trained),
    "layers.conv2d": Row(
        {"inputs": IMAGE, "filters": 2, "kernel_size": 3},
        {"inputs": SECOND, "filters": 3, "kernel_size": [2, 2], "strides": 2, "padding": "same",
         "data_format": Also("channels_first", {"inputs": FIRST}), "dilation_rate": 2, **LAYER},
        _trained),
    "layers.conv2d_transpose": Row(
        {"inputs": IMAGE, "filters": 2, "kernel_size": 3},
        {"inputs": SECOND, "filters": 3, "kernel_size": [2, 2], "strides": 2, "padding": "same",
         "data_format": Also("channels_first", {"inputs": FIRST}), **LAYER}, _trained),
    "layers.max_pooling2d": POOLED,
    "layers.average_pooling2d": POOLED,
    "layers.flatten": Row({"inputs": IMAGE},
                          {"inputs": SECOND, "data_format": "channels_first"}),
    "contrib.layers.flatten": Row({"inputs": IMAGE}, {"inputs": SECOND}),
    "layers.dropout": Row({"inputs": X, "training": True},
                          {"inputs": Y, "rate": 0.1, "noise_shape": [2, 1], "seed": 4,
                           "training": False}),
    "layers.batch_normalization": Row(
        {"inputs": X, "training": True},
        {"inputs": Y, "axis": 0, "momentum": 0.5, "epsilon": 0.1, "center": False,
         "scale": False, "beta_initializer": tf.ones_initializer(),
         "gamma_initializer": tf.zeros_initializer(),
         "moving_mean_initializer": tf.ones_initializer(),
         "moving_variance_initializer": tf.zeros_initializer(),
         "beta_regularizer": tf.nn.l2_loss, "gamma_regularizer": tf.nn.l2_loss,
         "beta_constraint": lambda v: v + 1.0, "gamma_constraint": lambda v: v * 0.5,
         "training": False, "trainable": False, "reuse": Refused(True), "renorm": Refused(True),
         "renorm_clipping": Refused({}), "renorm_momentum": Refused(0.5), "fused": Refused(True),
         "virtual_batch_size": Refused(1), "adjustment": Refused(max)}, _twice),
    "zeros_initializer": Row({}, DTYPE, _initial),
    "ones_initializer": Row({}, DTYPE, _initial),
    "constant_initializer": Row({"value": [1.0, 2.0]},
                                {**DTYPE, "value": 3.0, "verify_shape": Refused(True)}, _initial),
    "random_normal_initializer": Row({}, {**DRAWN, "mean": 1.0, "stddev": 2.0}, _initial),
    "truncated_normal_initializer": Row({}, {**DRAWN, "mean": 1.0, "stddev": 2.0}, _initial),
    "random_uniform_initializer": Row({}, {**DRAWN, "minval": -1.0, "maxval": 2.0}, _initial),
    "variance_scaling_initializer": Row(
        {}, {**DRAWN, "scale": 2.0, "mode": "fan_out", "distribution": "uniform"}, _initial),
    "glorot_uniform_initializer": Row({}, DRAWN, _initial),
    "glorot_normal_initializer": Row({}, DRAWN, _initial),
}
