"""Optimizers, recurrent networks, samples and all calls give the results of TensorFlow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.comparable_calls import calls, leaves
from tests.frontends.tinyflow.surface import resolve_name

EXPECTED = np.load(Path(__file__).with_name("fixtures") / "tensorflow.npz")
CELLS = {"lstm": tf.nn.rnn_cell.BasicLSTMCell, "gru": tf.nn.rnn_cell.GRUCell}


@pytest.fixture(autouse=True)
def _own_graph():
    """Each test has a graph of its own."""
    with tf.Graph().as_default():
        yield


def run(fetches, weights=()):
    """Set the variables, in creation order, to ``weights``, and return values of fetches."""
    with tf.Session(target="interpret") as session:
        session.run(tf.global_variables_initializer())
        for variable, value in zip(tf.global_variables(), weights, strict=bool(weights)):
            variable.load(value, session)
        return session.run(fetches)


def weights(kind):
    """Return the weights of a cell."""
    return [EXPECTED[f"{kind}_{k}"] for k in range({"lstm": 2, "gru": 4}[kind])]


@pytest.mark.parametrize("kind", CELLS)
def test_dynamic_rnn_on_ragged_sequences_equals_tensorflow(kind):
    """Outputs past the end are 0 and states stay, also for a sequence of length 0."""
    cell = CELLS[kind](3)
    fetches = tf.nn.dynamic_rnn(cell, EXPECTED["rnn_x"], EXPECTED["rnn_lengths"], dtype=tf.float32)
    outputs, state = run(fetches, weights(kind))

    np.testing.assert_allclose(outputs, EXPECTED[f"{kind}_outputs"], atol=1e-6)
    np.testing.assert_allclose(
        np.stack(state) if kind == "lstm" else state, EXPECTED[f"{kind}_state"], atol=1e-6
    )


def test_bidirectional_rnn_on_ragged_sequences_equals_tensorflow():
    """The backward cell begins at the end of each sequence."""
    steps = tf.unstack(tf.constant(EXPECTED["rnn_x"]), axis=1)
    outputs, _, _ = tf.nn.static_bidirectional_rnn(
        CELLS["lstm"](3),
        CELLS["gru"](3),
        steps,
        dtype=tf.float32,
        sequence_length=EXPECTED["rnn_lengths"],
    )
    stacked = run(tf.stack(outputs), [*weights("lstm"), *weights("gru")])

    np.testing.assert_allclose(stacked, EXPECTED["both_outputs"], atol=1e-6)


@pytest.mark.parametrize("hits", [False, True])
def test_nce_loss_of_given_samples_equals_tensorflow(hits):
    """Losses equal TensorFlow's, with and without accidental hits."""
    drawn = tuple(EXPECTED[f"nce_drawn_{k}"] for k in range(3))
    table = [EXPECTED[f"nce_{n}"] for n in ("weights", "biases", "labels", "inputs")]
    loss = run(tf.nn.nce_loss(*table, 4, 30, sampled_values=drawn, remove_accidental_hits=hits))

    np.testing.assert_allclose(loss, EXPECTED[f"nce_loss_{hits}"], rtol=1e-5)


@pytest.mark.parametrize("unique", [False, True])
def test_sampled_class_frequencies_equal_tensorflow(unique):
    """150 samples draw each class as often as TensorFlow does, and unique ones do not repeat."""
    tf.set_random_seed(3)
    sample = tf.nn.log_uniform_candidate_sampler([[2]], 1, 8, unique, 30)
    counts, expected = np.zeros(30), []
    with tf.Session(target="interpret") as session:
        for _ in range(150):
            classes, true, _ = session.run(sample)
            np.add.at(counts, classes, 1)
            expected.append(true[0, 0])
            assert not unique or len(set(classes)) == 8
    frequencies = EXPECTED[f"sampler_{unique}"]

    spread = np.sqrt(np.maximum(frequencies, 0.02) / 150)
    assert (np.abs(counts / 150 - frequencies) < 5 * spread).all()
    assert abs(np.mean(expected) - frequencies[2]) < 0.05


RULES = {
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.1),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Nesterov": lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.1),
    "RMSProp": lambda: tf.train.RMSPropOptimizer(0.1, momentum=0.5),
    "Centered": lambda: tf.train.RMSPropOptimizer(0.1, centered=True),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
}


@pytest.mark.parametrize("name", RULES)
def test_three_optimizer_steps_equal_tensorflow(name):
    """Variables after three steps equal TensorFlow's."""
    w = tf.Variable([1.0, -2.0, 0.5])
    step = RULES[name]().minimize(tf.reduce_sum(w * w * w + w))
    with tf.Session(target="interpret") as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step)

        np.testing.assert_allclose(session.run(w), EXPECTED[f"rule_{name}"], rtol=2e-6)


def test_call_results_equal_tensorflow():
    """Values, shapes and dtypes of every call without random draws equal TensorFlow's."""
    expected = np.load(Path(__file__).with_name("fixtures") / "surface.npz")
    keys, fetches = [], []
    for name, argument, arguments in calls():
        if f"{name}|{argument}|0" in expected:
            positional = arguments.pop("*", ())
            tensors = leaves(resolve_name(name)(*positional, **arguments))
            keys += [f"{name}|{argument}|{k}" for k in range(len(tensors))]
            fetches += tensors
    results = dict(zip(keys, run(fetches), strict=True))

    assert results.keys() == set(expected.files)
    assert len(results) > 400
    for key, value in results.items():
        assert (value.dtype, value.shape) == (expected[key].dtype, expected[key].shape), key
        np.testing.assert_allclose(value, expected[key], rtol=1e-4, atol=1e-5, err_msg=key)
