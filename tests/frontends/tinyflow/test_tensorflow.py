"""What TensorFlow gave, tinyflow gives: rules, recurrent networks on ragged sequences, samples."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.calls import calls, leaves
from tests.frontends.tinyflow.surface import find

WANTED = np.load(Path(__file__).with_name("fixtures") / "tensorflow.npz")
CELLS = {"lstm": tf.nn.rnn_cell.BasicLSTMCell, "gru": tf.nn.rnn_cell.GRUCell}


@pytest.fixture(autouse=True)
def _own_graph():
    """Each test has a graph of its own."""
    with tf.Graph().as_default():
        yield


def run(fetches, weights=()):
    """The values of fetches, with variables set to weights in the order they were made."""
    with tf.Session(target="interpret") as session:
        session.run(tf.global_variables_initializer())
        for variable, value in zip(tf.global_variables(), weights, strict=bool(weights)):
            variable.load(value, session)
        return session.run(fetches)


def weights(kind):
    """The weights of a cell."""
    return [WANTED[f"{kind}_{k}"] for k in range({"lstm": 2, "gru": 4}[kind])]


@pytest.mark.parametrize("kind", CELLS)
def test_dynamic_rnn_on_ragged_sequences(kind):
    """Outputs past the end are 0 and states stay, one of length 0 included."""
    cell = CELLS[kind](3)
    found = tf.nn.dynamic_rnn(cell, WANTED["rnn_x"], WANTED["rnn_lengths"], dtype=tf.float32)
    outputs, state = run(found, weights(kind))

    np.testing.assert_allclose(outputs, WANTED[f"{kind}_outputs"], atol=1e-6)
    np.testing.assert_allclose(np.stack(state) if kind == "lstm" else state,
                               WANTED[f"{kind}_state"], atol=1e-6)


def test_both_directions_on_ragged_sequences():
    """The backward cell begins at the end of each sequence."""
    steps = tf.unstack(tf.constant(WANTED["rnn_x"]), axis=1)
    outputs, _, _ = tf.nn.static_bidirectional_rnn(
        CELLS["lstm"](3), CELLS["gru"](3), steps, dtype=tf.float32,
        sequence_length=WANTED["rnn_lengths"],
    )
    found = run(tf.stack(outputs), [*weights("lstm"), *weights("gru")])

    np.testing.assert_allclose(found, WANTED["both_outputs"], atol=1e-6)


@pytest.mark.parametrize("hits", [False, True])
def test_nce_loss_of_given_samples(hits):
    """Losses are TensorFlow's, with accidental hits and without."""
    drawn = tuple(WANTED[f"nce_drawn_{k}"] for k in range(3))
    table = [WANTED[f"nce_{n}"] for n in ("weights", "biases", "labels", "inputs")]
    loss = run(tf.nn.nce_loss(*table, 4, 30, sampled_values=drawn, remove_accidental_hits=hits))

    np.testing.assert_allclose(loss, WANTED[f"nce_loss_{hits}"], rtol=1e-5)


@pytest.mark.parametrize("unique", [False, True])
def test_samples_are_as_frequent_as_tensorflow_s(unique):
    """150 samples of 8 draw each class as often, and expect that; unique ones do not repeat."""
    tf.set_random_seed(3)
    found = tf.nn.log_uniform_candidate_sampler([[2]], 1, 8, unique, 30)
    counts, expected = np.zeros(30), []
    with tf.Session(target="interpret") as session:
        for _ in range(150):
            classes, true, _ = session.run(found)
            np.add.at(counts, classes, 1)
            expected.append(true[0, 0])
            assert not unique or len(set(classes)) == 8
    wanted = WANTED[f"sampler_{unique}"]

    spread = np.sqrt(np.maximum(wanted, 0.02) / 150)
    assert (np.abs(counts / 150 - wanted) < 5 * spread).all()
    assert abs(np.mean(expected) - wanted[2]) < 0.05


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
def test_three_steps_of_a_rule(name):
    """Variables after three steps are TensorFlow's."""
    w = tf.Variable([1.0, -2.0, 0.5])
    step = RULES[name]().minimize(tf.reduce_sum(w * w * w + w))
    with tf.Session(target="interpret") as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(step)

        np.testing.assert_allclose(session.run(w), WANTED[f"rule_{name}"], rtol=2e-6)


def test_calls_of_the_surface_give_what_tensorflow_gives():
    """Values, shapes and dtypes of every call that needs no draw."""
    wanted = np.load(Path(__file__).with_name("fixtures") / "surface.npz")
    places, fetches = [], []
    for name, argument, arguments in calls():
        if f"{name}|{argument}|0" in wanted:
            positional = arguments.pop("*", ())
            made = leaves(find(name)(*positional, **arguments))
            places += [f"{name}|{argument}|{k}" for k in range(len(made))]
            fetches += made
    found = dict(zip(places, run(fetches), strict=True))

    assert found.keys() == set(wanted.files)
    assert len(found) > 400
    for key, value in found.items():
        assert (value.dtype, value.shape) == (wanted[key].dtype, wanted[key].shape), key
        np.testing.assert_allclose(value, wanted[key], rtol=1e-4, atol=1e-5, err_msg=key)
