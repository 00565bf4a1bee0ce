"""Branches and loops: what is written, shared and drawn in them, and what cannot be built."""

from __future__ import annotations

import numpy as np
import pytest

from passkit.errors import GraphError, PasskitError, SettingError, ShapeError
from passkit.frontends import tinyflow as tf


@pytest.fixture(autouse=True)
def _own_graph():
    """Each test has a graph of its own, with a seed."""
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        yield


def session(target="interpret"):
    """A session that compiles nothing."""
    return tf.Session(target=target)


def test_a_compiled_loop_counts_in_the_run():
    """A loop whose rounds a feed decides is one program; it reads what stands around it."""
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [None])
    scale = tf.Variable(0.5)
    _, out = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * scale + x),
                           [tf.constant(0), x])
    with session("cpu") as s:
        s.run(scale.initializer)
        for rounds in (0, 1, 6):
            wanted = np.array([1.0, 2.0], np.float32)
            for _ in range(rounds):
                wanted = wanted * 0.5 + [1, 2]
            np.testing.assert_allclose(s.run(out, {n: rounds, x: [1, 2]}), wanted, rtol=1e-6)


def test_every_round_draws_anew():
    """Draws of a loop differ from round to round and from run to run, and repeat in a session."""
    n = tf.placeholder(tf.int32, [])

    def body(i, seen):
        place = tf.one_hot(i, 4)
        return i + 1, seen + place * tf.random_uniform([])

    _, out = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), tf.zeros([4])])
    found = []
    for _ in range(2):
        with session() as s:
            found.append([s.run(out, {n: 4}) for _ in range(2)])
    assert np.array_equal(found[0], found[1])
    assert len(set(np.ravel(found[0]))) == 8


def test_the_rounds_of_a_body_share_its_variables():
    """An unrolled body makes its variables once, and so do the functions of folds."""
    def body(i, a):
        return i + 1, tf.layers.dense(a, 3, kernel_initializer=tf.ones_initializer())

    out = tf.while_loop(lambda i, _: i < 3, body, (0, tf.ones([2, 3])), return_same_structure=True)
    assert len(tf.global_variables()) == 2
    mapped = tf.map_fn(lambda row: tf.layers.dense(row, 1, name="mine"), tf.ones([2, 1, 3]))
    assert (len(tf.global_variables()), mapped.shape.as_list()) == (4, [2, 1, 1])
    with session() as s:
        s.run(tf.global_variables_initializer())
        assert s.run(out[1]).tolist() == [[27.0] * 3] * 2


def test_a_known_branch_is_the_only_one():
    """Nothing of the other is made."""
    def wrong():
        raise AssertionError

    assert tf.cond(True, lambda: 1, wrong) == 1
    assert tf.cond(tf.constant(2) > 3, wrong, lambda: None) is None
    assert tf.case({tf.constant(False): wrong}, default=lambda: 4) == 4


def test_branches_without_shapes_write_what_was_chosen():
    """Assignments in branches of placeholders without shapes, and operations as results."""
    flag, x = tf.placeholder(tf.bool), tf.placeholder(tf.float32)
    v = tf.Variable([0.0, 0.0])
    write = tf.cond(flag, lambda: tf.assign(v, x).op, lambda: tf.no_op())
    nested = tf.cond(x[0] > 2, lambda: tf.cond(flag, lambda: tf.assign_add(v, x), lambda: v + 0),
                     lambda: v + 0)
    with session() as s:
        s.run(v.initializer)
        for chosen, given, wanted in ((True, [1, 2], [1, 2]), (False, [3, 4], [1, 2])):
            assert s.run(write, {flag: chosen, x: given}) is None
            assert s.run(v).tolist() == wanted
        for chosen, given, wanted in ((False, [3, 1], [1, 2]), (True, [2, 1], [1, 2]),
                                      (True, [3, 1], [4, 3])):
            s.run(nested, {flag: chosen, x: given})
            assert s.run(v).tolist() == wanted


def grown(i, a):
    """A body whose second variable grows."""
    return i + 1, tf.concat([a, a], 0)


def test_what_cannot_be_built_is_named():
    """Wrong functions, structures, shapes and writes."""
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [2])
    open_, v = tf.placeholder(tf.float32, name="open"), tf.Variable(0.0)
    less = lambda i, *_: i < n  # noqa: E731
    zero = tf.constant(0)
    for build, wanted in (
        (lambda: tf.cond(n > 0, 3, x), "functions as true_fn and false_fn, got 3 and"),
        (lambda: tf.cond(n, lambda: x, lambda: x), "needs a bool as pred, got <tf.Tensor 'Placeh"),
        (lambda: tf.cond(n > 0, lambda: x, lambda: [x, x]), "return as many tensors, got 1 and 2"),
        (lambda: tf.cond(n > 0, lambda: x, lambda: n), "of one dtype and rank, got <tf.Tensor 'P"),
        (lambda: tf.cond(n > 0, lambda: x, lambda: x, strict=True), "takes no strict, got True"),
        (lambda: tf.case([]), "pairs of a condition and a function, got none"),
        (lambda: tf.while_loop(lambda i: i + 1, less, [zero]), "a single bool of its condition"),
        (lambda: tf.while_loop(less, lambda i: (i, i), [zero]), "has 1 variables, .* returns 2"),
        (lambda: tf.while_loop(less, lambda i, a: (i, i), [zero, x]), "as variable 1, .* returns"),
        (lambda: tf.while_loop(less, grown, [zero, x]), r"1 changes from \(2,\) to \(4,\)"),
        (lambda: tf.while_loop(less, lambda i, a: (i + 1, a), [zero, open_]),
         "while_loop needs an input of known rank, .*placeholder 'open'"),
        (lambda: tf.while_loop(less, lambda i: i + tf.cast(v.assign_add(1.0), tf.int32), [zero]),
         "its body assigns to a variable"),
        (lambda: tf.while_loop(less, lambda i: i + 1, [zero], maximum_iterations=n),
         "needs an int as maximum_iterations, got None"),
        (lambda: tf.while_loop(less, grown, [zero, x], [zero.shape, free_shape()]),
         r"shape_invariants with \(\?\) for <tf.Tensor"),
        (lambda: tf.scan(lambda a, r: a + r, tf.placeholder(tf.float32, [None, 2])),
         "scan needs elements of one known number, got .<tf"),
        (lambda: tf.map_fn(lambda r: r, x, dtype=tf.int32), "results of its dtype int32, got <tf"),
    ):
        with pytest.raises(PasskitError, match=wanted) as caught:
            build()
        assert isinstance(caught.value, (GraphError, SettingError, ShapeError, PasskitError))


def free_shape():
    """A shape of one unknown dimension."""
    return tf.placeholder(tf.float32, [None]).shape


def test_settings_of_loops_that_hold_gradients_back():
    """back_prop=False stops gradients; without it a loop in the run has none, and says so."""
    x, n = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [])
    still = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * x), [0, x], back_prop=False)
    assert tf.gradients(still[1], x) == [None]
    assert tf.gradients(tf.scan(lambda a, b: a * b, x, back_prop=False), x) == [None]
    running = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * x), [0, x])
    with pytest.raises(GraphError, match="while_loop"):
        tf.gradients(running[1], x)
