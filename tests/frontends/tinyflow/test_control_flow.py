"""Branches and loops: writes, shared variables, random draws, and errors."""

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
    """Return a session of the interpreter."""
    return tf.Session(target=target)


def test_runtime_loop_reads_values_from_outside():
    """A loop whose length a feed decides is one program, and reads values from outside of it."""
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [None])
    scale = tf.Variable(0.5)
    _, out = tf.while_loop(
        lambda i, a: i < n, lambda i, a: (i + 1, a * scale + x), [tf.constant(0), x]
    )
    with session("cpu") as s:
        s.run(scale.initializer)
        for iterations in (0, 1, 6):
            expected = np.array([1.0, 2.0], np.float32)
            for _ in range(iterations):
                expected = expected * 0.5 + [1, 2]
            np.testing.assert_allclose(s.run(out, {n: iterations, x: [1, 2]}), expected, rtol=1e-6)


def test_each_loop_iteration_draws_other_numbers():
    """Draws differ between iterations and runs, and repeat in another session."""
    n = tf.placeholder(tf.int32, [])

    def body(i, draws):
        position = tf.one_hot(i, 4)
        return i + 1, draws + position * tf.random_uniform([])

    _, out = tf.while_loop(lambda i, _: i < n, body, [tf.constant(0), tf.zeros([4])])
    draws_by_session = []
    for _ in range(2):
        with session() as s:
            draws_by_session.append([s.run(out, {n: 4}) for _ in range(2)])
    assert np.array_equal(draws_by_session[0], draws_by_session[1])
    assert len(set(np.ravel(draws_by_session[0]))) == 8


def test_loop_iterations_share_variables():
    """The body of an unrolled loop, and the function of map_fn, create their variables once."""

    def body(i, a):
        return i + 1, tf.layers.dense(a, 3, kernel_initializer=tf.ones_initializer())

    out = tf.while_loop(lambda i, _: i < 3, body, (0, tf.ones([2, 3])), return_same_structure=True)
    assert len(tf.global_variables()) == 2
    mapped = tf.map_fn(lambda row: tf.layers.dense(row, 1, name="mine"), tf.ones([2, 1, 3]))
    assert (len(tf.global_variables()), mapped.shape.as_list()) == (4, [2, 1, 1])
    with session() as s:
        s.run(tf.global_variables_initializer())
        assert s.run(out[1]).tolist() == [[27.0] * 3] * 2


def test_branch_with_known_condition_is_not_built():
    """If the condition is known while the graph is built, the other branch is not called."""

    def wrong():
        raise AssertionError

    assert tf.cond(True, lambda: 1, wrong) == 1
    assert tf.cond(tf.constant(2) > 3, wrong, lambda: None) is None
    assert tf.case({tf.constant(False): wrong}, default=lambda: 4) == 4


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_conditions_may_depend_on_sizes_of_a_run(target):
    """A condition on the size of a placeholder is decided by each run, in branches and loops."""
    x = tf.placeholder(tf.float32, [None])
    size = tf.shape(x)[0]
    chosen = tf.cond(size > 3, lambda: tf.constant(1), lambda: tf.constant(2))
    counted = tf.while_loop(lambda i: i < size, lambda i: i + 2, [tf.constant(0)])
    summed = tf.cond(tf.reduce_sum(tf.ones(tf.shape(x))) > 3.0, lambda: size, lambda: -size)

    with session(target) as s:
        assert s.run([chosen, counted, summed], {x: np.ones(5)}) == [1, 6, 5]
        assert s.run([chosen, counted, summed], {x: np.ones(2)}) == [2, 2, -2]


def test_only_the_chosen_branch_writes_variables():
    """An assignment in a branch happens in runs that choose the branch."""
    flag, x = tf.placeholder(tf.bool), tf.placeholder(tf.float32)
    v = tf.Variable([0.0, 0.0])
    write = tf.cond(flag, lambda: tf.assign(v, x).op, lambda: tf.no_op())
    nested = tf.cond(
        x[0] > 2, lambda: tf.cond(flag, lambda: tf.assign_add(v, x), lambda: v + 0), lambda: v + 0
    )
    with session() as s:
        s.run(v.initializer)
        for chosen, fed, expected in ((True, [1, 2], [1, 2]), (False, [3, 4], [1, 2])):
            assert s.run(write, {flag: chosen, x: fed}) is None
            assert s.run(v).tolist() == expected
        for chosen, fed, expected in (
            (False, [3, 1], [1, 2]),
            (True, [2, 1], [1, 2]),
            (True, [3, 1], [4, 3]),
        ):
            s.run(nested, {flag: chosen, x: fed})
            assert s.run(v).tolist() == expected


def grown(i, a):
    """Return the loop variables, the second twice as long: a body that changes a shape."""
    return i + 1, tf.concat([a, a], 0)


def test_invalid_branches_and_loops_raise():
    """Wrong functions, structures, shapes and writes raise errors that name them."""
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [2])
    open_, v = tf.placeholder(tf.float32, name="open"), tf.Variable(0.0)
    less = lambda i, *_: i < n  # noqa: E731
    zero = tf.constant(0)
    for build, message in (
        (lambda: tf.cond(n > 0, 3, x), "functions as true_fn and false_fn, got 3 and"),
        (
            lambda: tf.cond(n, lambda: x, lambda: x),
            "needs a single bool as pred, got <tf.Tensor 'Placeh",
        ),
        (lambda: tf.cond(n > 0, lambda: x, lambda: [x, x]), "return as many tensors, got 1 and 2"),
        (lambda: tf.cond(n > 0, lambda: x, lambda: n), "of one dtype and rank, got <tf.Tensor 'P"),
        (lambda: tf.cond(n > 0, lambda: x, lambda: x, strict=True), "takes no strict, got True"),
        (lambda: tf.case([]), "pairs of a condition and a function, got none"),
        (lambda: tf.while_loop(lambda i: i + 1, less, [zero]), "a single bool of its condition"),
        (lambda: tf.while_loop(less, lambda i: (i, i), [zero]), "has 1 variables, .* returns 2"),
        (lambda: tf.while_loop(less, lambda i, a: (i, i), [zero, x]), "as variable 1, .* returns"),
        (lambda: tf.while_loop(less, grown, [zero, x]), r"1 changes from \(2,\) to \(4,\)"),
        (
            lambda: tf.while_loop(less, lambda i, a: (i + 1, a), [zero, open_]),
            "while_loop needs an input of known rank, .*placeholder 'open'",
        ),
        (
            lambda: tf.while_loop(less, lambda i: i + tf.cast(v.assign_add(1.0), tf.int32), [zero]),
            "its body assigns to a variable",
        ),
        (
            lambda: tf.while_loop(less, lambda i: i + 1, [zero], maximum_iterations=n),
            "needs an int as maximum_iterations, got None",
        ),
        (
            lambda: tf.while_loop(less, grown, [zero, x], [zero.shape, free_shape()]),
            r"shape_invariants with \(\?\) for <tf.Tensor",
        ),
        (
            lambda: tf.scan(lambda a, r: a + r, tf.placeholder(tf.float32, [None, 2])),
            "scan needs elements of one known number, got .<tf",
        ),
        (lambda: tf.map_fn(lambda r: r, x, dtype=tf.int32), "results of its dtype int32, got <tf"),
    ):
        with pytest.raises(PasskitError, match=message) as caught:
            build()
        assert isinstance(caught.value, (GraphError, SettingError, ShapeError, PasskitError))


def free_shape():
    """Return a shape of one unknown dimension."""
    return tf.placeholder(tf.float32, [None]).shape


def test_back_prop_false_stops_gradients():
    """With back_prop=False there is no gradient; a loop that iterates in the run raises instead."""
    x, n = tf.placeholder(tf.float32, [2]), tf.placeholder(tf.int32, [])
    still = tf.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, a * x), [0, x], back_prop=False)
    assert tf.gradients(still[1], x) == [None]
    assert tf.gradients(tf.scan(lambda a, b: a * b, x, back_prop=False), x) == [None]
    running = tf.while_loop(lambda i, a: i < n, lambda i, a: (i + 1, a * x), [0, x])
    with pytest.raises(GraphError, match="while_loop"):
        tf.gradients(running[1], x)
