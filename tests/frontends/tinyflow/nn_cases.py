"""API cases of tf.nn: activations, convolutions, losses and recurrent networks."""

from __future__ import annotations

import numpy as np

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.math_cases import X, Y
from tests.frontends.tinyflow.surface import CallCase, CombinedValue, RejectedValue, lazy, values

IMAGE = np.random.default_rng(0).normal(size=(1, 6, 6, 2)).astype(np.float32)
SECOND = np.random.default_rng(1).normal(size=(1, 6, 6, 2)).astype(np.float32)
FILTER = np.random.default_rng(2).normal(size=(3, 3, 2, 4)).astype(np.float32)
UP = np.random.default_rng(3).normal(size=(3, 3, 5, 2)).astype(np.float32)
FIRST = IMAGE.transpose(0, 3, 1, 2)
LABELS = np.array([[0.2, 0.3, 0.5], [1, 0, 0]], np.float32)
TABLE = np.random.default_rng(4).normal(size=(40, 3)).astype(np.float32)
STEPS = np.random.default_rng(5).normal(size=(3, 2, 3)).astype(np.float32)
POOLED = {
    "value": SECOND,
    "ksize": [1, 3, 3, 1],
    "strides": [1, 1, 1, 1],
    "padding": "SAME",
    "data_format": CombinedValue("NCHW", {"value": FIRST, "ksize": 2, "strides": 2}),
    "input": RejectedValue(SECOND),
}
POOL = CallCase(
    {"value": IMAGE, "ksize": [1, 2, 2, 1], "strides": [1, 2, 2, 1], "padding": "VALID"},
    {**POOLED, "padding": CombinedValue("SAME", {"ksize": 3})},
)
SOFTMAX = CallCase({"logits": X}, {"logits": Y, "axis": 0, "dim": 0})


def observe_gradients(f, **k):
    """Return the result of a loss, and its gradients with respect to labels and logits."""
    labels, logits = tf.constant(k.pop("labels")), tf.constant(k.pop("logits"))
    out = f(labels=labels, logits=logits, **k)
    return values([out, *tf.gradients(out, [labels, logits])])


def observe_cell(kind):
    """Return an observer that applies a recurrent cell twice."""

    def observe(f, **k):
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

    return observe


def _sampled(f, **k):
    return values(f(**k))


def _observe_rnn(f, **k):
    """Return the outputs and the last state of a network."""
    cell = k.pop("cell")()
    outputs, state = f(cell=cell, **k)
    return values([outputs, state])


def _observe_bidirectional_rnn(f, **k):
    """Return the results of a network of two cells."""
    return values(f(cell_fw=k.pop("cell_fw")(), cell_bw=k.pop("cell_bw")(), **k))


def observe_results(f, **k):
    """Return the values of several results."""
    return values(list(f(**k)))


LSTM = {"num_units": 3, "activation": tf.nn.relu, "reuse": RejectedValue(True), "dtype": tf.float64}
ONES = lazy(lambda: tf.constant(np.ones((2, 2), np.float32)))
FORWARD = {
    "cell": lambda: tf.nn.rnn_cell.BasicRNNCell(3),
    "initial_state": ONES,
    "dtype": RejectedValue(None),
    "sequence_length": np.array([1, 2], np.int32),
    "scope": "other",
}

SEQUENCE = STEPS.transpose(1, 0, 2)
CASES = {
    "nn.conv1d": CallCase(
        {
            "value": SEQUENCE,
            "filters": np.ones((2, SEQUENCE.shape[2], 2), np.float32),
            "stride": 1,
            "padding": "VALID",
        },
        {
            "value": SEQUENCE + 1,
            "filters": np.ones((1, SEQUENCE.shape[2], 3), np.float32),
            "stride": 2,
            "padding": "SAME",
            "use_cudnn_on_gpu": RejectedValue(False),
            "data_format": CombinedValue(
                "NCW", {"filters": np.ones((1, SEQUENCE.shape[1], 2), np.float32)}
            ),
            "input": CombinedValue(SEQUENCE + 1, {"value": None}),
            "dilations": CombinedValue(2, {"padding": "SAME"}),
        },
    ),
    "nn.bidirectional_dynamic_rnn": CallCase(
        {
            "cell_fw": lambda: tf.nn.rnn_cell.BasicRNNCell(2),
            "cell_bw": lambda: tf.nn.rnn_cell.BasicRNNCell(2),
            "inputs": SEQUENCE,
        },
        {
            "cell_fw": lambda: tf.nn.rnn_cell.BasicRNNCell(3),
            "cell_bw": lambda: tf.nn.rnn_cell.GRUCell(2),
            "inputs": SEQUENCE + 1,
            "initial_state_fw": ONES,
            "initial_state_bw": ONES,
            "dtype": RejectedValue(tf.float64),
            "sequence_length": np.array([1, 2], np.int32),
            "parallel_iterations": RejectedValue(3),
            "swap_memory": RejectedValue(True),
            "time_major": CombinedValue(True, {"inputs": STEPS}),
            "scope": "other",
        },
        lambda f, **k: _observe_bidirectional_rnn(f, **k),
    ),
    **{
        f"nn.{n}": CallCase({"features": X}, {"features": Y})
        for n in ("relu", "relu6", "elu", "selu", "softplus", "softsign")
    },
    **{f"nn.{n}": CallCase({"x": X}, {"x": Y}) for n in ("sigmoid", "tanh")},
    "nn.leaky_relu": CallCase({"features": X}, {"features": Y, "alpha": 0.5}),
    "nn.softmax": SOFTMAX,
    "nn.log_softmax": SOFTMAX,
    "nn.conv2d": CallCase(
        {"input": IMAGE, "filter": FILTER, "padding": "VALID"},
        {
            "input": SECOND,
            "filter": FILTER + 1,
            "strides": [1, 2, 2, 1],
            "padding": "SAME",
            "use_cudnn_on_gpu": RejectedValue(False),
            "dilations": [1, 2, 2, 1],
            "data_format": CombinedValue("NCHW", {"input": FIRST}),
            "filters": RejectedValue(FILTER),
        },
    ),
    "nn.conv2d_transpose": CallCase(
        {"value": IMAGE, "filter": UP, "output_shape": [1, 12, 12, 5], "strides": [1, 2, 2, 1]},
        {
            "value": SECOND,
            "filter": UP + 1,
            "output_shape": [1, 11, 11, 5],
            "strides": CombinedValue([1, 1, 1, 1], {"output_shape": None}),
            "padding": CombinedValue("VALID", {"output_shape": None}),
            "data_format": CombinedValue(
                "NCHW", {"value": FIRST, "strides": 2, "output_shape": None}
            ),
            "input": RejectedValue(SECOND),
            "filters": RejectedValue(UP),
            "dilations": 2,
        },
    ),
    "nn.depthwise_conv2d": CallCase(
        {"input": IMAGE, "filter": FILTER, "strides": [1, 1, 1, 1], "padding": "VALID"},
        {
            "input": SECOND,
            "filter": FILTER + 1,
            "strides": [1, 2, 2, 1],
            "padding": "SAME",
            "rate": [2, 2],
            "data_format": CombinedValue("NCHW", {"input": FIRST}),
            "dilations": [2, 2],
        },
    ),
    "nn.max_pool": POOL,
    "nn.avg_pool": POOL,
    "nn.dropout": CallCase(
        {"x": X, "keep_prob": 0.5},
        {"x": Y, "keep_prob": 0.9, "noise_shape": [2, 1], "seed": 9, "rate": RejectedValue(0.1)},
    ),
    "nn.softmax_cross_entropy_with_logits": CallCase(
        {"labels": LABELS, "logits": X},
        {"labels": LABELS[::-1], "logits": Y, "dim": 0, "axis": 0},
        observe_gradients,
    ),
    "nn.softmax_cross_entropy_with_logits_v2": CallCase(
        {"labels": LABELS, "logits": X},
        {"labels": LABELS[::-1], "logits": Y, "axis": 0, "dim": 0},
        observe_gradients,
    ),
    "nn.sparse_softmax_cross_entropy_with_logits": CallCase(
        {"labels": [0, 2], "logits": X}, {"labels": [1, 1], "logits": Y}
    ),
    "nn.sigmoid_cross_entropy_with_logits": CallCase(
        {"labels": LABELS, "logits": X}, {"labels": LABELS[::-1], "logits": Y}
    ),
    "nn.bias_add": CallCase(
        {"value": IMAGE, "bias": np.array([1, 2], np.float32)},
        {
            "value": SECOND,
            "bias": np.array([3, 4], np.float32),
            "data_format": CombinedValue("NCHW", {"value": FIRST}),
        },
    ),
    "nn.xw_plus_b": CallCase(
        {"x": X, "weights": Y.T, "biases": X[0, :2]}, {"x": Y, "weights": X.T, "biases": X[1, :2]}
    ),
    "nn.embedding_lookup": CallCase(
        {"params": TABLE, "ids": [1, 3]},
        {
            "params": TABLE + 1,
            "ids": [2, 3],
            "partition_strategy": RejectedValue("div"),
            "validate_indices": RejectedValue(False),
            "max_norm": 0.5,
        },
    ),
    "nn.nce_loss": CallCase(
        {
            "weights": TABLE,
            "biases": TABLE[:, 0],
            "labels": np.array([[1], [2]]),
            "inputs": X,
            "num_sampled": 5,
            "num_classes": 40,
        },
        {
            "weights": TABLE + 1,
            "biases": TABLE[:, 1],
            "labels": np.array([[3], [2]]),
            "inputs": Y,
            "num_sampled": 6,
            "num_classes": 30,
            "num_true": CombinedValue(2, {"labels": np.array([[3, 1], [2, 1]])}),
            "sampled_values": (
                np.array([7, 8]),
                np.ones((2, 1), np.float32),
                np.ones(2, np.float32),
            ),
            "remove_accidental_hits": CombinedValue(True, {"labels": np.array([[0], [1]])}),
            "partition_strategy": RejectedValue("div"),
        },
    ),
    "nn.log_uniform_candidate_sampler": CallCase(
        {
            "true_classes": np.array([[1], [2]]),
            "num_true": 1,
            "num_sampled": 5,
            "unique": True,
            "range_max": 40,
        },
        {
            "true_classes": np.array([[1], [3]]),
            "num_true": RejectedValue(2),
            "num_sampled": 6,
            "unique": False,
            "range_max": 30,
            "seed": 8,
        },
    ),
    "nn.batch_normalization": CallCase(
        {
            "x": X,
            "mean": X[0],
            "variance": Y[0] ** 2,
            "offset": X[1],
            "scale": Y[1],
            "variance_epsilon": 1e-3,
        },
        {
            "x": Y,
            "mean": X[1],
            "variance": Y[1] ** 2,
            "offset": lazy(lambda: None),
            "scale": X[1],
            "variance_epsilon": 0.1,
        },
    ),
    "nn.l2_loss": CallCase({"t": X}, {"t": Y}),
    "nn.l2_normalize": CallCase({"x": X}, {"x": Y, "axis": 1, "epsilon": 100.0, "dim": 1}),
    "nn.moments": CallCase(
        {"x": X, "axes": [0]},
        {"x": Y, "axes": [1], "shift": RejectedValue(1.0), "keep_dims": True, "keepdims": True},
    ),
    "nn.local_response_normalization": CallCase(
        {"input": IMAGE},
        {"input": SECOND, "depth_radius": 0, "bias": 2.0, "alpha": 0.5, "beta": 0.7},
    ),
    "nn.in_top_k": CallCase(
        {"predictions": X, "targets": [0, 1], "k": 1}, {"predictions": Y, "targets": [2, 0], "k": 2}
    ),
    "nn.top_k": CallCase(
        {"input": X},
        {"input": Y, "k": 2, "sorted": RejectedValue(False), "index_type": tf.int64},
        observe_results,
    ),
    "nn.rnn_cell.BasicRNNCell": CallCase(
        {"num_units": 2}, LSTM, observe_cell(lambda: tf.nn.rnn_cell.BasicRNNCell)
    ),
    "nn.rnn_cell.BasicLSTMCell": CallCase(
        {"num_units": 2},
        {**LSTM, "forget_bias": 0.0, "state_is_tuple": False},
        observe_cell(lambda: tf.nn.rnn_cell.BasicLSTMCell),
    ),
    "nn.rnn_cell.GRUCell": CallCase(
        {"num_units": 2},
        {
            **LSTM,
            "kernel_initializer": tf.ones_initializer(),
            "bias_initializer": tf.zeros_initializer(),
        },
        observe_cell(lambda: tf.nn.rnn_cell.GRUCell),
    ),
    "nn.rnn_cell.MultiRNNCell": CallCase(
        {"cells": lazy(lambda: [tf.nn.rnn_cell.GRUCell(2)])},
        {
            "cells": lazy(lambda: [tf.nn.rnn_cell.GRUCell(2), tf.nn.rnn_cell.GRUCell(3)]),
            "state_is_tuple": RejectedValue(False),
        },
        lambda f, **k: values(f(**k)(tf.constant(X), f(**k).zero_state(2, tf.float32))),
    ),
    "nn.rnn_cell.LSTMStateTuple": CallCase(
        {"c": 1, "h": 2}, {"c": 3, "h": 4}, lambda f, **k: (f(**k).c, f(**k).h)
    ),
    "nn.static_rnn": CallCase(
        {
            "cell": lambda: tf.nn.rnn_cell.BasicRNNCell(2),
            "inputs": list(STEPS),
            "dtype": tf.float32,
        },
        {**FORWARD, "inputs": list(STEPS + 1)},
        _observe_rnn,
    ),
    "nn.dynamic_rnn": CallCase(
        {"cell": lambda: tf.nn.rnn_cell.BasicRNNCell(2), "inputs": STEPS.transpose(1, 0, 2)},
        {
            **FORWARD,
            "inputs": STEPS.transpose(1, 0, 2) + 1,
            "dtype": RejectedValue(tf.float64),
            "parallel_iterations": RejectedValue(32),
            "swap_memory": RejectedValue(True),
            "time_major": CombinedValue(True, {"inputs": STEPS}),
        },
        _observe_rnn,
    ),
    "nn.static_bidirectional_rnn": CallCase(
        {
            "cell_fw": lambda: tf.nn.rnn_cell.BasicRNNCell(2),
            "cell_bw": lambda: tf.nn.rnn_cell.BasicRNNCell(2),
            "inputs": list(STEPS),
            "dtype": tf.float32,
        },
        {
            "cell_fw": lambda: tf.nn.rnn_cell.BasicRNNCell(3),
            "cell_bw": lambda: tf.nn.rnn_cell.GRUCell(2),
            "inputs": list(STEPS + 1),
            "initial_state_fw": ONES,
            "initial_state_bw": ONES,
            "dtype": RejectedValue(None),
            "sequence_length": np.array([1, 2], np.int32),
            "scope": "other",
        },
        _observe_bidirectional_rnn,
    ),
}
