"""Rows of the surface: tf.nn and recurrent networks."""

from __future__ import annotations

import numpy as np

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.cases_math import X, Y
from tests.frontends.tinyflow.surface import Also, Refused, Row, lazy, values

IMAGE = np.random.default_rng(0).normal(size=(1, 6, 6, 2)).astype(np.float32)
SECOND = np.random.default_rng(1).normal(size=(1, 6, 6, 2)).astype(np.float32)
FILTER = np.random.default_rng(2).normal(size=(3, 3, 2, 4)).astype(np.float32)
UP = np.random.default_rng(3).normal(size=(3, 3, 5, 2)).astype(np.float32)
FIRST = IMAGE.transpose(0, 3, 1, 2)
LABELS = np.array([[0.2, 0.3, 0.5], [1, 0, 0]], np.float32)
TABLE = np.random.default_rng(4).normal(size=(40, 3)).astype(np.float32)
STEPS = np.random.default_rng(5).normal(size=(3, 2, 3)).astype(np.float32)
POOLED = {
    "value": SECOND, "ksize": [1, 3, 3, 1], "strides": [1, 1, 1, 1], "padding": "SAME",
    "data_format": Also("NCHW", {"value": FIRST, "ksize": 2, "strides": 2}),
    "input": Refused(SECOND),
}
POOL = Row({"value": IMAGE, "ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"},
           {**POOLED, "padding": Also("SAME", {"ksize": 3})})
SOFTMAX = Row({"logits": X}, {"logits": Y, "axis": 0, "dim": 0})


def _moving(f, **k):
    """The results of a function whose gradient by the labels may be of interest."""
    labels, logits = tf.constant(k.pop("labels")), tf.constant(k.pop("logits"))
    out = f(labels=labels, logits=logits, **k)
    return values([out, *tf.gradients(out, [labels, logits])])


def _cell(kind):
    def see(f, **k):
        reuse, size = k.pop("reuse", None), k.get("num_units", 2)
        if reuse:
            with tf.variable_scope(kind().default):
                pass
            k["reuse"] = reuse
        cell = f(**k)
        x, state = tf.constant(X), cell.zero_state(2, k.get("dtype") or tf.float32)
        if k.get("dtype") == tf.float64:
            x = tf.cast(x, tf.float64)
        first = cell(x, state)
        return [size, values(cell(x, first[1]))]

    return see


def _sampled(f, **k):
    return values(f(**k))


def _rnn(f, **k):
    cell = k.pop("cell")()
    outputs, state = f(cell=cell, **k)
    return values([outputs, state])


def _birnn(f, **k):
    return values(f(cell_fw=k.pop("cell_fw")(), cell_bw=k.pop("cell_bw")(), **k))


def _in_one(f, **k):
    return values(list(f(**k)))


LSTM = {"num_units": 3, "activation": tf.nn.relu, "reuse": Refused(True), "dtype": tf.float64}
ONES = lazy(lambda: tf.constant(np.ones((2, 2), np.float32)))
FORWARD = {
    "cell": lambda: tf.nn.rnn_cell.BasicRNNCell(3),
    "initial_state": ONES,
    "dtype": Refused(None),
    "sequence_length": np.array([1, 2], np.int32),
    "scope": "other",
}

SEQUENCE = STEPS.transpose(1, 0, 2)
ROWS = {
    "nn.conv1d": Row(
        {"value": SEQUENCE, "filters": np.ones((2, SEQUENCE.shape[2], 2), np.float32), "stride": 1,
         "padding": "VALID"},
        {"value": SEQUENCE + 1, "filters": np.ones((1, SEQUENCE.shape[2], 3), np.float32),
         "stride": 2, "padding": "SAME", "use_cudnn_on_gpu": Refused(False),
         "data_format": Also("NCW", {
             "filters": np.ones((1, SEQUENCE.shape[1], 2), np.float32)}),
         "input": Also(SEQUENCE + 1, {"value": None}), "dilations": Also(2, {"padding": "SAME"})}),
    "nn.bidirectional_dynamic_rnn": Row(
        {"cell_fw": lambda: tf.nn.rnn_cell.BasicRNNCell(2),
         "cell_bw": lambda: tf.nn.rnn_cell.BasicRNNCell(2), "inputs": SEQUENCE},
        {"cell_fw": lambda: tf.nn.rnn_cell.BasicRNNCell(3),
         "cell_bw": lambda: tf.nn.rnn_cell.GRUCell(2), "inputs": SEQUENCE + 1,
         "initial_state_fw": ONES, "initial_state_bw": ONES, "dtype": Refused(tf.float64),
         "sequence_length": np.array([1, 2], np.int32), "parallel_iterations": Refused(3),
         "swap_memory": Refused(True), "time_major": Also(True, {"inputs": STEPS}),
         "scope": "other"}, lambda f, **k: _birnn(f, **k)),
    **{f"nn.{n}": Row({"features": X}, {"features": Y})
       for n in ("relu", "relu6", "elu", "selu", "softplus", "softsign")},
    **{f"nn.{n}": Row({"x": X}, {"x": Y}) for n in ("sigmoid", "tanh")},
    "nn.leaky_relu": Row({"features": X}, {"features": Y, "alpha": 0.5}),
    "nn.softmax": SOFTMAX,
    "nn.log_softmax": SOFTMAX,
    "nn.conv2d": Row(
        {"input": IMAGE, "filter": FILTER, "padding": "VALID"},
        {"input": SECOND, "filter": FILTER + 1, "strides": [1, 2, 2, 1], "padding": "SAME",
         "use_cudnn_on_gpu": Refused(False), "dilations": [1, 2, 2, 1],
         "data_format": Also("NCHW", {"input": FIRST}), "filters": Refused(FILTER)},
    ),
    "nn.conv2d_transpose": Row(
        {"value": IMAGE, "filter": UP, "output_shape": [1, 12, 12, 5], "strides": [1, 2, 2, 1]},
        {"value": SECOND, "filter": UP + 1, "output_shape": [1, 11, 11, 5],
         "strides": Also([1, 1, 1, 1], {"output_shape": None}),
         "padding": Also("VALID", {"output_shape": None}),
         "data_format": Also("NCHW", {"value": FIRST, "strides": 2, "output_shape": None}),
         "input": Refused(SECOND), "filters": Refused(UP), "dilations": 2},
    ),
    "nn.depthwise_conv2d": Row(
        {"input": IMAGE, "filter": FILTER, "strides": [1, 1, 1, 1], "padding": "VALID"},
        {"input": SECOND, "filter": FILTER + 1, "strides": [1, 2, 2, 1], "padding": "SAME",
         "rate": [2, 2], "data_format": Also("NCHW", {"input": FIRST}), "dilations": [2, 2]},
    ),
    "nn.max_pool": POOL,
    "nn.avg_pool": POOL,
    "nn.dropout": Row({"x": X, "keep_prob": 0.5},
                      {"x": Y, "keep_prob": 0.9, "noise_shape": [2, 1], "seed": 9,
                       "rate": Refused(0.1)}),
    "nn.softmax_cross_entropy_with_logits": Row(
        {"labels": LABELS, "logits": X},
        {"labels": LABELS[::-1], "logits": Y, "dim": 0, "axis": 0}, _moving),
    "nn.softmax_cross_entropy_with_logits_v2": Row(
        {"labels": LABELS, "logits": X},
        {"labels": LABELS[::-1], "logits": Y, "axis": 0, "dim": 0}, _moving),
    "nn.sparse_softmax_cross_entropy_with_logits": Row(
        {"labels": [0, 2], "logits": X}, {"labels": [1, 1], "logits": Y}),
    "nn.sigmoid_cross_entropy_with_logits": Row(
        {"labels": LABELS, "logits": X}, {"labels": LABELS[::-1], "logits": Y}),
    "nn.bias_add": Row({"value": IMAGE, "bias": np.array([1, 2], np.float32)},
                       {"value": SECOND, "bias": np.array([3, 4], np.float32),
                        "data_format": Also("NCHW", {"value": FIRST})}),
    "nn.xw_plus_b": Row({"x": X, "weights": Y.T, "biases": X[0, :2]},
                        {"x": Y, "weights": X.T, "biases": X[1, :2]}),
    "nn.embedding_lookup": Row(
        {"params": TABLE, "ids": [1, 3]},
        {"params": TABLE + 1, "ids": [2, 3], "partition_strategy": Refused("div"),
         "validate_indices": Refused(False), "max_norm": 0.5}),
    "nn.nce_loss": Row(
        {"weights": TABLE, "biases": TABLE[:, 0], "labels": np.array([[1], [2]]), "inputs": X,
         "num_sampled": 5, "num_classes": 40},
        {"weights": TABLE + 1, "biases": TABLE[:, 1], "labels": np.array([[3], [2]]), "inputs": Y,
         "num_sampled": 6, "num_classes": 30,
         "num_true": Also(2, {"labels": np.array([[3, 1], [2, 1]])}),
         "sampled_values": (np.array([7, 8]), np.ones((2, 1), np.float32),
                            np.ones(2, np.float32)),
         "remove_accidental_hits": Also(True, {"labels": np.array([[0], [1]])}),
         "partition_strategy": Refused("div")}),
    "nn.log_uniform_candidate_sampler": Row(
        {"true_classes": np.array([[1], [2]]), "num_true": 1, "num_sampled": 5, "unique": True,
         "range_max": 40},
        {"true_classes": np.array([[1], [3]]), "num_true": Refused(2), "num_sampled": 6,
         "unique": False, "range_max": 30, "seed": 8}),
    "nn.batch_normalization": Row(
        {"x": X, "mean": X[0], "variance": Y[0] ** 2, "offset": X[1], "scale": Y[1],
         "variance_epsilon": 1e-3},
        {"x": Y, "mean": X[1], "variance": Y[1] ** 2, "offset": lazy(lambda: None),
         "scale": X[1], "variance_epsilon": 0.1}),
    "nn.l2_loss": Row({"t": X}, {"t": Y}),
    "nn.l2_normalize": Row({"x": X}, {"x": Y, "axis": 1, "epsilon": 100.0, "dim": 1}),
    "nn.moments": Row({"x": X, "axes": [0]},
                      {"x": Y, "axes": [1], "shift": Refused(1.0), "keep_dims": True,
                       "keepdims": True}),
    "nn.local_response_normalization": Row(
        {"input": IMAGE},
        {"input": SECOND, "depth_radius": 0, "bias": 2.0, "alpha": 0.5, "beta": 0.7}),
    "nn.in_top_k": Row({"predictions": X, "targets": [0, 1], "k": 1},
                       {"predictions": Y, "targets": [2, 0], "k": 2}),
    "nn.top_k": Row({"input": X}, {"input": Y, "k": 2, "sorted": Refused(False),
                                   "index_type": tf.int64}, _in_one),
    "nn.rnn_cell.BasicRNNCell": Row({"num_units": 2}, LSTM, _cell(lambda: tf.nn.rnn_cell.
                                                                  BasicRNNCell)),
    "nn.rnn_cell.BasicLSTMCell": Row(
        {"num_units": 2}, {**LSTM, "forget_bias": 0.0, "state_is_tuple": False},
        _cell(lambda: tf.nn.rnn_cell.BasicLSTMCell)),
    "nn.rnn_cell.GRUCell": Row(
        {"num_units": 2},
        {**LSTM, "kernel_initializer": tf.ones_initializer(),
         "bias_initializer": tf.zeros_initializer()},
        _cell(lambda: tf.nn.rnn_cell.GRUCell)),
    "nn.rnn_cell.MultiRNNCell": Row(
        {"cells": lazy(lambda: [tf.nn.rnn_cell.GRUCell(2)])},
        {"cells": lazy(lambda: [tf.nn.rnn_cell.GRUCell(2), tf.nn.rnn_cell.GRUCell(3)]),
         "state_is_tuple": Refused(False)},
        lambda f, **k: values(f(**k)(tf.constant(X), f(**k).zero_state(2, tf.float32)))),
    "nn.rnn_cell.LSTMStateTuple": Row({"c": 1, "h": 2}, {"c": 3, "h": 4},
                                      lambda f, **k: (f(**k).c, f(**k).h)),
    "nn.static_rnn": Row(
        {"cell": lambda: tf.nn.rnn_cell.BasicRNNCell(2), "inputs": list(STEPS),
         "dtype": tf.float32},
        {**FORWARD, "inputs": list(STEPS + 1)}, _rnn),
    "nn.dynamic_rnn": Row(
        {"cell": lambda: tf.nn.rnn_cell.BasicRNNCell(2), "inputs": STEPS.transpose(1, 0, 2)},
        {**FORWARD, "inputs": STEPS.transpose(1, 0, 2) + 1, "dtype": Refused(tf.float64),
         "parallel_iterations": Refused(32), "swap_memory": Refused(True),
         "time_major": Also(True, {"inputs": STEPS})}, _rnn),
    "nn.static_bidirectional_rnn": Row(
        {"cell_fw": lambda: tf.nn.rnn_cell.BasicRNNCell(2),
         "cell_bw": lambda: tf.nn.rnn_cell.BasicRNNCell(2), "inputs": list(STEPS),
         "dtype": tf.float32},
        {"cell_fw": lambda: tf.nn.rnn_cell.BasicRNNCell(3),
         "cell_bw": lambda: tf.nn.rnn_cell.GRUCell(2), "inputs": list(STEPS + 1),
         "initial_state_fw": ONES, "initial_state_bw": ONES, "dtype": Refused(None),
         "sequence_length": np.array([1, 2], np.int32), "scope": "other"}, _birnn),
}
