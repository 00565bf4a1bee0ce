"""Sessions: reads and writes of variables, feeds, fetches, compiled programs and errors."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from passkit.errors import ArgumentError, FeedError, GraphError, SettingError, ShapeError
from passkit.frontends import tinyflow as tf


@pytest.fixture(autouse=True)
def _own_graph():
    """Each test has a graph of its own, with a seed."""
    with tf.Graph().as_default():
        tf.set_random_seed(7)
        yield


def session(**options):
    """Return a session of the interpreter."""
    return tf.Session(target="interpret", **options)


def test_reads_see_only_writes_they_depend_on():
    """Operators read the old value, and a fetched variable has the new one, in any order."""
    v = tf.Variable(1.0, name="v")
    double, write = v * 2, v.assign(5.0)
    with tf.control_dependencies([write]):
        late = v * 2
    with session() as s:
        s.run(tf.global_variables_initializer())

        assert s.run([double, write, v, late]) == [2, 5, 5, 10]
        s.run(v.initializer)
        assert s.run([v, late, double]) == [5, 10, 2]
        s.run(v.initializer)
        assert s.run([double, v]) == [2, 1]


def test_writes_of_one_run_add_up():
    """assign_add adds to the last write of the run, and each write runs once."""
    v = tf.Variable(1.0)
    add, more = v.assign_add(2.0), v.assign_sub(0.5)
    with session() as s:
        s.run(tf.global_variables_initializer())

        assert s.run([add, more, v, add]) == [3, 2.5, 2.5, 3]
        assert s.run(tf.group(add, more)) is None
        assert v.eval() == 4


def test_a_step_computes_all_gradients_from_the_old_values():
    """A step of two variables that depend on each other equals NumPy's simultaneous update."""
    a, b = tf.Variable([1.0, 2.0], name="a"), tf.Variable([3.0, -1.0], name="b")
    loss = tf.reduce_sum(a * b * b)
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with session() as s:
        s.run(tf.global_variables_initializer())
        x, y = np.array([1.0, 2.0]), np.array([3.0, -1.0])
        for _ in range(3):
            value = s.run([step, loss])[1]
            np.testing.assert_allclose(value, (x * y * y).sum(), rtol=1e-5)
            x, y = x - 0.1 * y * y, y - 0.1 * 2 * x * y

        np.testing.assert_allclose(s.run([a, b]), [x, y], rtol=1e-5)


def test_pairs_of_gradients_and_variables_may_be_zipped():
    """apply_gradients takes the pairs from an iterator, such as zip, which it reads once."""
    v = tf.Variable([1.0, 2.0])
    (gradient,) = tf.gradients(tf.reduce_sum(v * v), [v])
    step = tf.train.GradientDescentOptimizer(0.25).apply_gradients(
        zip([gradient], [v], strict=True)
    )
    with session() as s:
        s.run(tf.global_variables_initializer())
        s.run(step)

        np.testing.assert_array_equal(s.run(v), [0.5, 1.0])


def test_gradient_descent_updates_only_rows_that_were_read():
    """Rows that were read twice add up, and no others are computed."""
    table = tf.Variable(np.arange(20, dtype=np.float32).reshape(10, 2))
    rows = tf.nn.embedding_lookup(table, [3, 1, 3]) * tf.nn.embedding_lookup(table, [1, 1, 4])
    rate = tf.placeholder(tf.float32, [])
    tables = []
    for learning_rate in (0.5, rate):
        step = tf.train.GradientDescentOptimizer(learning_rate).minimize(tf.reduce_sum(rows))
        with session() as s:
            s.run(table.initializer)
            s.run(step, {rate: 0.5})
            tables.append(s.run(table))
            ops = [n.op.name for n in s.executable(step, {rate: 0.5}).graph.nodes if n.op]

    expected, first = np.arange(20.0).reshape(10, 2), np.arange(20.0).reshape(10, 2)
    for a, b in ((3, 1), (1, 1), (3, 4)):
        expected[a] -= 0.5 * first[b]
        expected[b] -= 0.5 * first[a]
    assert ops.count("index_add") == 2 and "sub" not in ops
    np.testing.assert_array_equal(tables, [expected, expected])


def test_no_gradient_flows_through_stop_gradients():
    """Gradients end in stop_gradients, and flow along other paths."""
    a, w = tf.constant(2.0), tf.Variable(3.0)
    b = a * w
    out = b * b + a * w
    cases = ([], [b], [w], [a, b])
    gradients = [tf.gradients(out, [a, b, w], stop_gradients=stops) for stops in cases]
    with session() as s:
        s.run(w.initializer)

        assert s.run(gradients[0]) == [3 * 12 + 3, 12, 2 * 12 + 2]
        assert s.run(gradients[1]) == [3, 12, 2]
        assert s.run(gradients[2]) == [3 * 12 + 3, 12, 2 * 12 + 2]
        assert s.run(gradients[3]) == [3, 12, 2]


def test_dropout_wrapper_drops_inputs_outputs_and_state_separately():
    """Inputs, outputs and state have separate probabilities; kept elements are scaled up."""
    x = np.ones((2, 400), np.float32)

    def run(**keep):
        with tf.variable_scope("shared", reuse=tf.AUTO_REUSE):
            cell = tf.nn.rnn_cell.BasicRNNCell(300, activation=lambda v: v, name="cell")
            wrapped = tf.nn.rnn_cell.DropoutWrapper(cell, seed=3, **keep)
            outs = wrapped(x, wrapped.zero_state(2, tf.float32))
        assert (wrapped.state_size, wrapped.output_size) == (300, 300)
        with session() as s:
            s.run(tf.global_variables_initializer())
            return s.run(outs)

    out, state = run()
    dropped_output, full_state = run(output_keep_prob=0.5)
    output_of_dropped_input, _ = run(input_keep_prob=0.5)
    _, dropped_state = run(state_keep_prob=0.5)

    assert np.array_equal(out, state) and np.array_equal(full_state, state)
    is_kept = dropped_output != 0
    assert 0.4 < is_kept.mean() < 0.6 and np.allclose(dropped_output[is_kept], 2 * out[is_kept])
    assert 0.4 < (dropped_state != 0).mean() < 0.6 and not np.allclose(output_of_dropped_input, out)


def test_update_operations_move_the_running_statistics():
    """A step with UPDATE_OPS normalizes by the batch and moves the running statistics."""
    x = tf.placeholder(tf.float32, [None, 2])
    training = tf.placeholder(tf.bool, [])
    out = tf.layers.batch_normalization(x, momentum=0.5, training=training, name="bn")
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(out * out))
    data = np.array([[1, 2], [3, 8]], np.float32)
    with session() as s:
        s.run(tf.global_variables_initializer())
        s.run(step, {x: data, training: True})
        moving = {v.name: s.run(v).tolist() for v in tf.global_variables()[2:]}
        later = s.run(out, {x: data, training: False})

    assert moving == {"bn/moving_mean:0": [1, 2.5], "bn/moving_variance:0": [1, 5]}
    gamma = 1 - 0.1 * 2 * 2  # d sum(out^2) / d gamma is twice the number of examples
    expected = (data - [1, 2.5]) / np.sqrt(np.array([1, 5]) + 1e-3) * gamma
    np.testing.assert_allclose(later, expected, atol=2e-3)


def test_contrib_and_math_are_aliases():
    """tf.contrib and tf.math have the same functions as tf and tf.nn."""
    assert tf.contrib.rnn.BasicLSTMCell is tf.nn.rnn_cell.BasicLSTMCell
    assert tf.contrib.rnn.static_rnn is tf.nn.static_rnn
    assert tf.math.exp is tf.exp and tf.math.reduce_sum is tf.reduce_sum


def test_variables_keep_their_memory_address():
    """A write leaves earlier results as they are, and the variable at its address."""
    v = tf.Variable([1.0, 2.0])
    add = v.assign_add([1.0, 1.0])
    with session() as s:
        s.run(v.initializer)
        address, before = s.address(v), s.run(v)
        s.run(add)

        assert s.run(v).tolist() == [2, 3] and before.tolist() == [1, 2]
        assert s.address(v) == address
        with pytest.raises(GraphError, match="<tf.Operation 'Variable/Assign'> is not compiled"):
            s.executable(v.initializer)


def test_fetches_keep_their_structure():
    """Nested lists, tuples, dicts and named tuples, names of variables, and text can be fetched."""
    v = tf.Variable(2.0, name="v")
    pair = tf.nn.rnn_cell.LSTMStateTuple(v + 1, [v * 3])
    with session() as s:
        s.run(v.initializer)

        assert s.run({"a": (v, pair), "b": "v:0"}) == {"a": (2, (3, [6])), "b": 2}
        assert type(s.run(pair)) is tf.nn.rnn_cell.LSTMStateTuple
        assert s.run(tf.constant("hello")) == b"hello"


def test_fed_tensors_are_not_computed():
    """Neither a fed tensor nor placeholders and writes that only it needs are computed."""
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    v = tf.Variable(1.0)
    hidden = x * v.assign_add(1.0)
    out = hidden + 1
    default = tf.placeholder_with_default(np.float32(4), [])
    with session() as s:
        s.run(v.initializer)

        assert s.run(out, {hidden: [[1, 2]]}).tolist() == [[2, 3]]
        assert s.run([v, default, default + 1]) == [1, 4, 5]
        assert s.run([default, default + 1], {default: 7}) == [7, 8]


def test_shape_arithmetic_uses_free_sizes():
    """tf.shape and arithmetic on it give shapes of sizes that each run determines."""
    x = tf.placeholder(tf.float32, [None, 6], name="x")
    rows = tf.shape(x)[0]
    halves = tf.reshape(x, [rows * 2, 3])
    index = tf.range(0, rows) * 2 + 1
    picked = tf.gather(halves, index)
    with session() as s:
        feeds = {x: np.arange(12).reshape(2, 6)}
        results = s.run([picked, rows, tf.shape(halves), tf.size(x)], feeds)

    assert results[0].tolist() == [[3, 4, 5], [9, 10, 11]]
    assert [np.array(f).tolist() for f in results[1:]] == [2, [4, 3], 12]
    assert picked.shape.as_list() == [None, 3]
    assert halves.get_shape()[1] == 3
    with pytest.raises(ValueError, match="known only in a run"):
        int(x.shape[0])


def test_arithmetic_of_constants_wraps_and_divides_by_zero_as_in_a_run():
    """Integers beyond int32 wrap, a divisor 0 gives 0, and the results are as those of feeds."""
    x = tf.placeholder(tf.int32, [])
    largest = tf.constant(2**31 - 1)
    with session() as s:
        assert s.run(largest + 1) == s.run(x + 1, {x: 2**31 - 1}) == -(2**31)
        assert s.run(tf.constant(7) // 0) == s.run(x // 0, {x: 7}) == 0


def test_stacks_of_numbers_have_the_dtype_of_a_constant():
    """Numbers have one dtype, that of a list of them, and small integer tensors keep theirs."""
    u = tf.placeholder(tf.float32)
    with session() as s:
        for numbers in ([1.5, 2], [True, False], [2**40, 1], [3, 4]):
            expected = s.run(tf.constant(numbers))
            result = s.run(tf.stack(numbers))
            assert result.dtype == expected.dtype
            np.testing.assert_array_equal(result, expected)
        assert tf.stack([tf.constant(3, tf.uint8), tf.constant(4, tf.uint8)]).dtype is tf.uint8
        wide = tf.shape(u, out_type=tf.int64)
        assert wide.dtype is tf.int64
        assert s.run(wide, {u: [[1.0]]}).dtype == np.int64


def test_the_rest_of_a_split_may_be_of_unknown_length():
    """The part of size -1 has what the others leave, also before them and of a free size."""
    x = tf.placeholder(tf.float32, [None, 2])
    with session() as s:
        first, last = s.run(tf.split(x, [-1, 2]), {x: np.arange(10).reshape(5, 2)})

    np.testing.assert_array_equal(first, np.arange(6).reshape(3, 2))
    np.testing.assert_array_equal(last, np.arange(6, 10).reshape(2, 2))


def test_moments_take_axes_as_an_array():
    """Axes may be an array, and an empty list reduces none."""
    x = tf.constant([[1.0, 3.0]])
    with session() as s:
        assert s.run(tf.nn.moments(x, np.array([0, 1]))) == (2, 1)
        assert s.run(tf.nn.moments(x, []))[0].shape == (1, 2)


def test_dropout_of_integers_scales_by_the_probability():
    """Integers are float64 in dropout, by which the elements that stay are divided by it."""
    x = tf.constant([1, 2, 3, 4])
    training = tf.placeholder(tf.bool, [])
    with session() as s:
        draws = [s.run(tf.nn.dropout(x, 0.5)), s.run(tf.layers.dropout(x, training=True))]
        layer = tf.layers.dropout(x, training=training)
        draws.append(s.run(layer, {training: True}))
        np.testing.assert_array_equal(s.run(layer, {training: False}), [1, 2, 3, 4])

    for draw in draws:
        assert draw.dtype == np.float64
        assert all(a in (0, 2 * b) for a, b in zip(draw, [1, 2, 3, 4], strict=True))


def test_slots_are_found_by_their_short_and_long_names():
    """get_slot takes a name with and without that of the optimizer."""
    v = tf.Variable([1.0, 2.0], name="v")
    optimizer = tf.train.AdadeltaOptimizer()
    optimizer.minimize(tf.reduce_sum(v * v))

    assert optimizer.get_slot(v, "1") is optimizer.get_slot(v, "Adadelta_1")
    assert optimizer.get_slot(v, "1").name == "v/Adadelta_1:0"
    assert optimizer.get_slot(v, "2") is None


def test_a_learning_rate_that_is_an_integer_decays():
    """exponential_decay of an integer is computed in float32, and not with a truncated factor."""
    rate = tf.train.exponential_decay(1, 3, 1, 0.5)
    with session() as s:
        assert s.run(rate) == np.float32(0.125)


def test_loops_take_shapes_of_unknown_rank_as_invariants():
    """A shape of unknown rank among shape_invariants says nothing about its loop variable."""
    unknown = tf.placeholder(tf.float32).shape
    loop = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [0], shape_invariants=[unknown])
    with session() as s:
        assert s.run(loop) == 3


def test_integers_that_do_not_fit_int32_are_int64():
    """Python's ints are int32, but int64 in a constant that has a larger one."""
    assert tf.range(2**40, 2**40 + 2).dtype is tf.int64
    assert tf.constant([1, 2**31 - 1]).dtype is tf.int32
    large = tf.constant([1, 2**31])
    assert large.dtype is tf.int64
    with session() as s:
        np.testing.assert_array_equal(s.run(large), [1, 2**31])


def test_an_unknown_shape_changes_no_static_shape():
    """set_shape without a shape, or with one of unknown rank, leaves the tensor as it is."""
    x, y = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32)
    for shape in (None, y.shape):
        x.set_shape(shape)
        y.set_shape(shape)

    assert x.shape.as_list() == [None, 3]
    assert y.shape.ndims is None


@pytest.mark.parametrize("shape", [None, [None, None]])
def test_a_refined_placeholder_also_feeds_nodes_created_before(shape):
    """After set_shape, of unknown rank or extents, one feed serves nodes from before and after."""
    x = tf.placeholder(tf.float32, shape, name="x")
    columns = tf.shape(x)[1]
    computed = [2 * x, tf.reshape(x, [columns, -1])]
    for stated in ([None, None], [2, None], [None, 3]):
        x.set_shape(stated)
        computed.append(x + 1)
    value = np.arange(6.0).reshape(2, 3)
    with session() as s:
        for fetches in ([t] for t in (x, *computed)):
            s.run(fetches, {x: value})
        twice, flipped, *rest = s.run(computed, {x: value})
        np.testing.assert_array_equal(twice, 2 * value)
        np.testing.assert_array_equal(flipped, value.reshape(3, 2))
        for result in rest:
            np.testing.assert_array_equal(result, value + 1)
        for fetch in computed:
            with pytest.raises(FeedError, match=r"'x:0' needs .* shape \(2, 3\), got \(2, 4"):
                s.run(fetch, {x: np.ones((2, 4))})


@pytest.mark.parametrize("shape", [None, [None, None]])
def test_a_refined_result_is_fed_to_nodes_created_before(shape):
    """A fed tensor that set_shape refined is not computed, not even for nodes from before."""
    y = tf.placeholder(tf.float32, shape) + 1
    before = 2 * y
    y.set_shape([2, 3])
    with session() as s:
        results = s.run([before, y, 3 * y], {y: np.ones((2, 3))})
    assert [r.tolist() for r in results] == [[[k] * 3] * 2 for k in (2.0, 1.0, 3.0)]


def test_values_that_cannot_be_loaded_are_refused():
    """Texts, tensors and numbers that the variable's dtype cannot hold are named."""
    v = tf.Variable([1, 2], dtype=tf.uint8, name="v")
    with session() as s:
        for value, shown in (("a", "'a'"), ([300, 1], r"\[300, 1\]"), (tf.constant(1), "Const")):
            with pytest.raises(
                ArgumentError, match=rf"load: value of 'v:0' must be .* got .*{shown}"
            ):
                v.load(value, s)
        with pytest.raises(FeedError, match=r"variable 'v' needs uint8\[2\], got uint8\[3\]"):
            v.load([1, 2, 3], s)


def test_lists_of_different_lengths_are_refused_as_feeds_of_any_rank():
    """A feed that is no array is refused by the tensor's name, also if its rank is unknown."""
    for shape in ([None, 2], None):
        x = tf.placeholder(tf.float32, shape, name="x")
        with session() as s, pytest.raises(FeedError, match="'x.*:0' needs an array .* got a list"):
            s.run(x + 1, {x: [[1], [2, 3]]})


def test_a_closed_session_gives_no_executable():
    """Neither runs nor executables can be had from a closed session."""
    v = tf.Variable([1.0])
    s = session()
    s.close()

    for call in (s.run, s.executable):
        with pytest.raises(GraphError, match="this session is closed"):
            call(v * 2)


def test_check_numerics_reads_bfloat16_and_complex_numbers():
    """A NaN is found in bfloat16, and the ranges of complex operands are magnitudes."""
    x = tf.placeholder(tf.float32, [2], name="x")
    narrow = tf.check_numerics(tf.cast(x, tf.bfloat16) / 0.0, "look here")
    wide = tf.placeholder(tf.complex64, [2], name="z")
    with session(check_numerics=True) as s:
        with pytest.raises(tf.NumericsError, match="1 NaN and 1 infinite"):
            s.run(narrow, {x: [0.0, 1.0]})
        with pytest.raises(tf.NumericsError, match="add from 10 to 10"):
            s.run((wide + wide) / 0.0, {wide: [3 + 4j, 3 - 4j]})


def test_seeded_draws_repeat_in_another_session():
    """With a seed, sessions draw the same numbers, and runs and operators different ones."""
    a, b = tf.random_normal([4]), tf.random_normal([4])
    with session() as s, session() as t:
        first, second = s.run([a, b]), s.run([a, b])
        again = t.run([a, b])

    assert np.array_equal(first, again)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first[0], first[1])


def test_placeholders_without_shape_accept_any_rank():
    """Results, gradients and training steps work for each rank that is fed."""
    x = tf.placeholder(tf.float32, name="x")
    w = tf.Variable(2.0)
    out = x * w
    step = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(out))
    with session() as s:
        s.run(w.initializer)

        assert s.run(out, {x: 3}) == 6
        assert s.run(out, {x: [[1, 2]]}).tolist() == [[2, 4]]
        s.run(step, {x: 3})
        assert s.run(w) == 0.5
        s.run(step, {x: [1, 2]})
        assert s.run(w) == -1.0
        with pytest.raises(FeedError, match="placeholder 'x' needs a value in feed_dict, got none"):
            s.run(step)


def test_feeds_of_one_rank_share_a_compiled_program():
    """The second length of an axis frees it; another rank, or length 1, is compiled separately."""
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    out, halves = tf.reduce_sum(x * y), tf.split(x, 2)
    with session() as s:
        programs = set()
        for n in (2, 3, 4, 5, 4):
            feeds = {x: np.ones((n, 3)), y: np.ones(n)[:, None]}
            assert s.run(out, feeds) == 3 * n
            programs.add(s.executable(out, feeds))
        assert len(programs) == 2
        feeds = {x: np.ones((1, 3)), y: np.ones((1, 1))}
        assert s.run(out, feeds) == 3
        assert s.executable(out, feeds) not in programs
        for n in (2, 4, 6, 4):  # half a length is no symbol, so each length is compiled separately
            assert [h.shape for h in s.run(halves, {x: np.ones((n, 3))})] == [(n // 2, 3)] * 2
        with pytest.raises(ShapeError, match="needs a length that 2 divides, got 3"):
            s.run(halves, {x: np.ones((3, 3))})


def test_errors_name_the_placeholder_without_shape():
    """An error about an unknown rank names the placeholder from which the tensor is computed."""
    with tf.name_scope("in"):
        x = tf.placeholder(tf.float32, name="images")
    h = tf.nn.relu(2 * x)
    assert repr(h.shape) == "<unknown>"
    assert (h.shape.ndims, h.shape[0].value, h.shape.is_fully_defined()) == (None, None, False)
    assert (h.shape.num_elements(), h.shape[1:] == tf.placeholder(tf.int32).shape) == (None, True)
    for build in (
        lambda: tf.layers.dense(h, 3),
        lambda: tf.layers.flatten(h),
        lambda: tf.unstack(h),
        lambda: tf.layers.batch_normalization(h),
        lambda: tf.nn.rnn_cell.GRUCell(2)(h, h),
        lambda: tf.Variable(h),
    ):
        with pytest.raises(ShapeError, match="of known rank, .*placeholder 'in/images' has no sh"):
            build()
    for ask in (list, len, lambda shape: shape.as_list()):
        with pytest.raises(ShapeError, match="the rank of 'Relu:0' is unknown"):
            ask(h.shape)
    v = tf.Variable([1.0, 2.0], name="v")
    h.set_shape([2])
    write = v.assign(2 * x)
    with session() as s:
        s.run(v.initializer)
        for fetch, message in (
            (h, r"Relu:0 needs a value of shape \(2,\), got 'Relu:0' of shape \(3,\)"),
            (write, r"to 'v:0' needs a value of shape \(2,\), got .* \(3,\) in"),
        ):
            with pytest.raises(ShapeError, match=message):
                s.run(fetch, {x: [1, 2, 3]})
        assert s.run(write, {x: [3, 4]}).tolist() == [6, 8]


def test_draws_of_unknown_rank_repeat_in_another_session():
    """Random tensors of deferred shape draw the same numbers again in another session."""
    x, keep = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    out = tf.nn.dropout(x, keep)
    drawn = tf.random_normal(tf.shape(x), 5.0), tf.random_uniform([tf.shape(x)[0], 3], -2, 1)
    with session() as s, session() as again:
        feeds = {x: np.ones((50, 2))}
        normal, even = s.run(drawn, feeds)
        assert (normal.shape, even.shape) == ((50, 2), (50, 3))
        assert abs(normal.mean() - 5) < 1
        assert (even.min() >= -2) & (even.max() < 1)
        assert np.array_equal(again.run(drawn, feeds)[0], normal)
        assert not np.array_equal(s.run(drawn, feeds)[0], normal)
    dropped = []
    for _ in range(2):
        with session() as s:
            dropped.append([s.run(out, {x: np.ones(64), keep: 0.5}) for _ in range(2)])
            assert s.run(out, {x: np.ones((3, 2)), keep: 1.0}).tolist() == [[1, 1]] * 3
    assert np.array_equal(dropped[0], dropped[1])
    assert not np.array_equal(dropped[0][0], dropped[0][1])
    assert set(np.unique(dropped)) == {0.0, 2.0}


def test_invalid_feeds_and_fetches_are_named():
    """Missing, unknown, misshapen and mistyped feeds, and unset variables, raise FeedError."""
    x = tf.placeholder(tf.int32, [None, 3], name="images")
    v = tf.Variable([1.0], name="weights")
    with tf.Graph().as_default():
        foreign = tf.constant(1.0, name="other")
    good = np.zeros((2, 3))
    with session() as s:
        for fetch, feeds, message in (
            (x + 1, {}, "placeholder 'images' needs a value in feed_dict, got none"),
            (x + 1, {x: good[0]}, r"'images:0' needs a feed of shape \(\?, 3\), got \(3,\)"),
            (x + 1, {x: good + 0.5}, "'images:0' needs a feed of int32, got float64"),
            (x + 1, {x: [[1, 2, 3], [4]]}, "'images:0' needs an array of int32"),
            (x + 1, {x: x}, "'images:0' needs numbers as a feed, got <tf.Tensor 'images:0'"),
            (x + 1, {"images": good}, "feed_dict needs placeholders .* got 'images'"),
            (x + 1, {foreign: 1}, "feed_dict has <tf.Tensor 'other:0'.*not an element"),
            (x + 1, {v: [1]}, "feed_dict has the variable 'weights:0'"),
            (v + 1, {}, "variable 'weights' has no value in this session"),
            (foreign, {}, "<tf.Tensor 'other:0'.*not an element of this session's graph"),
            ([3], {}, "session.run needs tensors and operations to fetch, got 3"),
            ("weight:0", {}, r"finds variables by name, got 'weight:0'; did you mean 'weights:0'"),
        ):
            with pytest.raises(FeedError, match=message):
                s.run(fetch, feeds)
        assert s.run(x + 1, {x: good}).tolist() == [[1, 1, 1]] * 2


def test_invalid_sessions_raise():
    """A closed session, a missing default, an unknown configuration and another device raise."""
    with tf.device("/gpu:0"):
        far = tf.add(1.0, 2.0, name="far")
    with session() as s, pytest.raises(SettingError, match="'far:0' was placed on '/gpu:0'"):
        s.run(far)
    with pytest.raises(GraphError, match="this session is closed"):
        s.run(far)
    with pytest.raises(GraphError, match="tensor 'far:0' needs a session"):
        far.eval()
    with pytest.raises(SettingError, match="'gpu', or|or 'gpu fusion' as config, got 'fpga'"):
        tf.Session(config="fpga")
    with pytest.raises(GraphError, match=r"called outside of .* got 1 such blocks"):
        tf.reset_default_graph()
    assert tf.Session("gpu fusion").options == {"target": "cuda", "fusion": "stitch"}
    assert far.device == "/gpu:0"


def test_check_numerics_restores_variables_that_are_only_assigned():
    """A variable that the run does not read has its old value after a NumericsError, too."""
    v = tf.Variable(1.0, name="v")
    x = tf.placeholder(tf.float32, ())
    update = tf.assign(v, tf.log(x))
    with tf.Session(check_numerics=True) as session:
        session.run(tf.global_variables_initializer())
        with pytest.raises(tf.NumericsError, match="(?i)log"):
            session.run(update, {x: -1.0})
        assert session.run(v) == 1.0


def test_check_numerics_names_the_operator_of_the_first_nan():
    """NumericsError names the operator, and the variables keep the values from before the run."""
    x = tf.placeholder(tf.float32, [2], name="x")
    w = tf.Variable([1.0, 1.0], name="w")
    loss = tf.reduce_sum(tf.log(x * w, name="entropy"))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with session(check_numerics=True) as s:
        s.run(w.initializer)
        s.run([step, loss], {x: [1, 2]})
        before = s.run(w)
        with pytest.raises(tf.NumericsError, match="log 'entropy' computed 1 NaN from finite"):
            s.run([step, loss], {x: [1, -2]})
        with pytest.raises(tf.NumericsError, match="the feed of 'x' holds numbers"):
            s.run(loss, {x: [1, np.nan]})

        assert np.array_equal(s.run(w), before)
    checked = tf.check_numerics(tf.log(x), "look here", name="checked")
    with session() as s, pytest.raises(tf.NumericsError, match="checked: look here: 1 infinite"):
        s.run(checked + 1, {x: [0, 1]})


def test_nested_default_graphs_and_sessions_are_restored():
    """Leaving an inner block restores the default of the block around it."""
    outer, between = tf.Graph(), tf.Graph()
    with outer.as_default(), between.as_default():
        with outer.as_default():
            assert tf.get_default_graph() is outer
        assert tf.get_default_graph() is between
    first, second = tf.Session(), tf.Session()
    with first.as_default(), second.as_default():
        with first.as_default():
            pass
        assert tf.get_default_session() is second


def test_interactive_session_is_the_default_until_closed():
    """eval uses an InteractiveSession until it is closed."""
    s = tf.InteractiveSession("interpret")

    assert tf.add(1.0, 2.0).eval() == 3
    assert tf.get_default_session() is s
    s.close()
    assert tf.get_default_session() is None


def trained(steps=12):
    """Return placeholder, loss and step of a network with dropout, and the number of steps."""
    x = tf.placeholder(tf.float32, [None, 8], name="x")
    hidden = tf.layers.dense(x, 16, tf.nn.relu)
    out = tf.layers.dense(tf.nn.dropout(hidden, 0.9), 1)
    loss = tf.reduce_mean(tf.square(out - tf.reduce_sum(x, 1, keepdims=True)))
    step = tf.train.AdamOptimizer(0.01).minimize(loss)
    return x, loss, step, steps


def losses(graph, network):
    """Return the losses of the training steps in a new session."""
    x, loss, step, steps = network
    data = np.random.default_rng(0).normal(size=(steps, 32, 8)).astype(np.float32)
    with tf.Session(graph=graph) as s:
        s.run(tf.global_variables_initializer())
        first = [s.address(v) for v in tf.global_variables()]
        values = [s.run([step, loss], {x: rows})[1] for rows in data]
        assert [s.address(v) for v in tf.global_variables()] == first
        exe = s.executable([step, loss], {x: data[0]})
        assert exe.stats["native_calls"] == steps
    return values


def test_sessions_in_two_threads_equal_one_session():
    """Two sessions that train one graph in two threads compute the losses of a single one."""
    graph = tf.get_default_graph()
    network = trained()
    single = losses(graph, network)
    results = [None, None]

    def work(k):
        results[k] = losses(graph, network)

    threads = [threading.Thread(target=work, args=(k,)) for k in (0, 1)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()

    assert results == [single, single]
    assert single[-1] < single[0]


@pytest.mark.parametrize("function", [tf.add, tf.maximum, tf.atan2, tf.pow, tf.divide])
def test_lists_of_numbers_have_default_dtypes(function: Callable[..., tf.Tensor]) -> None:
    """Lists of Python's floats are float32, of its ints int32; arrays keep their dtype."""
    doubles = np.array([1.0])

    assert function([1.0], [2.0]).dtype == tf.float32
    assert tf.add([1], [2]).dtype == tf.int32
    assert function(doubles, doubles).dtype == tf.float64


def test_fetches_that_have_no_identity_are_refused() -> None:
    """A set is no tensor, operation or container of them."""
    with pytest.raises(FeedError, match=r"needs tensors and operations to fetch, got \{1\}"):
        tf.Session().run({1})
