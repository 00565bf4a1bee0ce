"""Invalid calls raise errors that name what was needed, what was given and the way out."""

from __future__ import annotations

import numpy as np
import pytest

from passkit.errors import DTypeError, PasskitError
from passkit.frontends import tinyflow as tf

X = np.ones((2, 3), np.float32)
IMAGE = np.ones((1, 4, 4, 2), np.float32)


@pytest.fixture(autouse=True)
def _own_graph():
    """Each test has a graph of its own."""
    with tf.Graph().as_default():
        yield


def free(*shape, dtype="float32"):
    """Return a placeholder called x."""
    return tf.placeholder(dtype, shape, name="x")


def scoped(reuse, *args, **kwargs):
    """Return the variable of get_variable in a scope with ``reuse``."""
    with tf.variable_scope("", reuse=reuse):
        return tf.get_variable(*args, **kwargs)


def create_variable(name="w", **kwargs):
    """Create a variable of two numbers."""
    return tf.Variable([1.0, 2.0], name=name, **kwargs)


def shared(*args, **kwargs):
    """Create a variable called w, and request it again in a scope."""
    tf.get_variable("w", [2])
    return scoped(*args, **kwargs)


ARRAYS = [
    (
        lambda: free(None, 3).set_shape([-1, 3]),
        r"set_shape of x:0 needs extents of 0 or more, .* got \(-1, 3\)",
    ),
    (lambda: tf.shape(free(2, 3))[True], "is indexed by ints, .* got bool"),
    (lambda: tf.shape(free(2, 3))[1.0:2], r"is sliced by ints, got 1\.0"),
    (lambda: tf.constant([1, 2], name="c")[::0], "step of an index of c must not be 0"),
    (
        lambda: tf.unstack(tf.placeholder(tf.float32), 0),
        "unstack of a tensor of unknown rank needs num from 1 on, got 0",
    ),
    (lambda: tf.split(tf.placeholder(tf.float32), -2), "split needs one part or more, got -2"),
    (lambda: tf.unstack(X, 5), r"unstack along axis 0 of \(2, 3\) needs .* num=5, got 2"),
    (lambda: tf.unstack(free(None, 3)), "needs a known length, got x.0"),
    (lambda: tf.split(X, 2, 1), "split needs a length that 2 divides, got 3 along axis 1"),
    (lambda: tf.split(X, [1, 1], 1), r"sizes that add up to 3, got \[1, 1\]"),
    (lambda: tf.pad(X, [[0, 0], [0, 0]], "WRAP"), "as mode, got 'WRAP'"),
    (lambda: tf.einsum("ij->i", X, axis=1), "einsum takes the keyword name, got 'axis'"),
    (lambda: tf.gradients(tf.constant(1.0), [3]), "tensors and variables as xs, got 3"),
    (lambda: tf.random_uniform([2], dtype=tf.int32), "random_uniform of int32 needs maxval"),
    (lambda: tf.where(X > 0), "where needs x and y, got neither"),
    (lambda: tf.where(X > 0, X), "where needs x and y, got one of them"),
    (lambda: tf.add_n([X, X[0]]), r"tensors of one shape, got \(2, 3\) and \(3,\)"),
    (lambda: tf.reduce_sum(X, 0, reduction_indices=1), "reduction_indices, .* got both: 0 and 1"),
    (lambda: tf.zeros([2.5]), r"zeros needs ints, .* got 2\.5"),
    (lambda: tf.reshape(X, [tf.placeholder(tf.int32, [])]), "reshape needs ints, .* got <tf"),
    (lambda: tf.placeholder_with_default(X, [3, 2]), r"default of shape \(3, 2\), got \(2, 3\)"),
    (lambda: tf.placeholder_with_default(X, [None, 2]), r"default of shape \(\?, 2\), got \(2, 3"),
    (lambda: tf.constant([1, 2, 3], shape=[2]), r"at most 2 numbers for shape \(2,\), got 3"),
    (lambda: tf.constant([1, 2], shape=[3], verify_shape=True), r"needs shape \(3,\), got \(2,\)"),
    (lambda: tf.linspace(0.0, 1.0, 3, axis=1), "linspace of numbers needs axis 0, got 1"),
    (lambda: free(None, 3).set_shape([2, 4]), r"fits \(\?, 3\), got \(2, 4\)"),
    (lambda: list(free(2)), "x:0 cannot be iterated before a run"),
    (lambda: bool(free(2)), "x:0 has no value before a run; tf.where"),
    (lambda: np.asarray(free(2)), "x:0 has no value before it runs; session.run"),
    (lambda: tf.constant("text", name="t") + 1, "t:0 is text, which only session.run can fetch"),
    (lambda: tf.convert_to_tensor(free(2), tf.int32), "x:0 needs to be int32 here, got float32"),
    (lambda: tf.control_dependencies([3]), "need operations and tensors, got 3"),
    (lambda: tf.group(nam="x"), "group takes the keyword name, got 'nam'"),
    (lambda: tf.device(lambda op: "/cpu:0").__enter__(), "got the function <function"),
    (lambda: tf.nn.__getattr__("__path"), "tf.nn has no attribute '__path'"),
    (
        lambda: tf.gradients(tf.constant(1.0), free(2), stop_gradients=[7]),
        "tensors as stop_gradients, got 7",
    ),
    (lambda: tf.name_scope(5).__enter__(), "name_scope: name must be a string, got 5"),
    (lambda: tf.zeros([tf.shape(X), 3]), "zeros needs ints, .* got <tf.Tensor 'Shape"),
    (lambda: tf.shape(X)[7], "index 7 is out of range for axis 0 of Shape, length 2"),
    (lambda: tf.constant([], shape=[3]), r"at most 3 numbers for shape \(3,\), got 0"),
    (lambda: tf.constant([1, 2]) + tf.constant([1, 2, 3]), r"\(2,\) and \(3,\)"),
    (lambda: tf.global_norm(None), "global_norm needs a list as t_list, got None"),
    (lambda: tf.clip_by_global_norm(5, 1), "clip_by_global_norm needs a list as t_list, got 5"),
    (lambda: tf.stack(7), "stack needs a list as values, got 7"),
    (lambda: tf.tuple(None), "tuple needs a list as tensors, got None"),
    (lambda: tf.tuple([X], control_inputs=3), "tuple needs a list as control_inputs, got 3"),
    (lambda: tf.case(5), "case needs a list as pred_fn_pairs, got 5"),
    (lambda: tf.case([(True, 5)]), r"case needs pairs of .* got \(True, 5\)"),
    (lambda: tf.case([7]), "case needs pairs of a condition and a function, got 7"),
    (
        lambda: tf.case([(True, lambda: 1)], default=3),
        "case needs a function as default, got 3",
    ),
    (
        lambda: tf.scan(lambda a, e: (a, e), tf.constant([1.0, 2.0])),
        r"scan needs a function that returns as many tensors each time, got \[1, 2\]",
    ),
    (lambda: tf.variables_initializer([5]), "variables_initializer needs a variable .* got 5"),
    (lambda: tf.train.Saver([5]), "Saver needs variables to save, got 5"),
    (
        lambda: tf.train.Saver(allow_empty=True).restore(None, 5),
        "Saver.restore: save_path must be a path, got 5",
    ),
    (lambda: tf.train.latest_checkpoint(5), "checkpoint_dir must be a path, got 5"),
    (lambda: tf.summary.FileWriter(5), "FileWriter: logdir must be a path, got 5"),
    (lambda: tf.summary.FileWriter("x", max_queue="a"), "an int as max_queue, got 'a'"),
    (
        lambda: tf.summary.FileWriter("x", filename_suffix=5),
        "filename_suffix must be a string, got 5",
    ),
    (lambda: tf.summary.scalar("s", 1.0, 5), "a summary needs names of collections, .* got 5"),
    (lambda: tf.metrics.mean([1.0], metrics_collections=5), "a metric needs names .* got 5"),
    (lambda: tf.Variable(1.0, collections=[5]), r"Variable needs names .* got \[5\]"),
    (lambda: tf.contrib.layers.flatten(X, 5), "a layer needs names of collections, .* got 5"),
    (lambda: tf.norm(X, 10**400), "norm needs a number as ord, got 1000"),
    (lambda: tf.nn.static_rnn(tf.nn.rnn_cell.GRUCell(2), 5), "static_rnn needs a list .* got 5"),
    (lambda: tf.device(5).__enter__(), "a name such as '/cpu:0', got 5"),
    (lambda: tf.control_dependencies(tf.no_op("o")), "needs a list .* got <tf.Operation 'o'>"),
    (lambda: tf.cond(tf.constant(1), int, int), "single bool as pred, got <tf.Tensor 'Const:0'"),
    (lambda: tf.cond(free(2, dtype="bool"), int, int), r"single bool as pred, got <tf.Tensor 'x:0"),
    (
        lambda: tf.while_loop(lambda i: i < 3, lambda i: i, [0], shape_invariants=5),
        "as shape_invariants, got 5",
    ),
    (
        lambda: tf.while_loop(lambda i: i < 3, lambda i: i, [0], shape_invariants=[]),
        "for each of 1 loop variables, got 0",
    ),
    (
        lambda: tf.while_loop(
            lambda i: i < 3, lambda i: i, [0], maximum_iterations=tf.shape(free(None))[0]
        ),
        "needs an int as maximum_iterations, got None",
    ),
    (lambda: tf.variable_scope(5), "variable_scope: name must be a string, got 5"),
    (lambda: tf.summary.scalar(5, 1.0), "summary: name must be a string, got 5"),
    (lambda: tf.summary.merge([free(2)]), "summary.merge needs summaries, got <tf.Tensor 'x:0'"),
    (lambda: tf.random_normal([2], seed="x"), "needs an int as seed, got 'x'"),
    (lambda: tf.random_normal([2], "x", free()), "random_normal needs a number as mean, got 'x'"),
    (lambda: tf.tensordot(X, X, 1.5), "axes, got 1.5"),
    (lambda: tf.matmul(free(), X, transpose_b="x"), "needs a bool as transpose_b, got 'x'"),
    (lambda: tf.image.resize_images(IMAGE, [2, 2], [1]), r"ResizeMethod, got \[1\]"),
    (
        lambda: tf.image.resize_images(
            np.ones((0, 2, 1), np.float32), [2, 2], preserve_aspect_ratio=True
        ),
        r"needs pixels to preserve the aspect ratio, got <tf.Tensor .* shape=\(0, 2, 1\)",
    ),
    (lambda: tf.Session(config=5), "needs a ConfigProto or .* as config, got 5"),
    (
        lambda: tf.gradients(tf.constant(1.0), free(2), unconnected_gradients="error"),
        "'none' or 'zero' as unconnected_gradients, got 'error'",
    ),
]
VARIABLES = [
    (
        lambda: create_variable(expected_shape=[3]),
        r"'w' needs an initial value of expected_shape \(3,\), got",
    ),
    (lambda: tf.Variable(free(None), name="v"), r"'v' needs an initial value of known .* \(\?,\)"),
    (lambda: tf.assign(free(2), X), "assign needs a variable to write, got <tf.Tensor 'x:0'"),
    (lambda: create_variable().assign(X), r"needs a value of shape \(2,\) for 'w:0', got \(2, 3\)"),
    (
        lambda: create_variable().assign(tf.constant([1, 2])),
        "needs a value of float32 for 'w:0', got int32",
    ),
    (lambda: tf.Variable(True, name="b").assign_add(True), "adds numbers, and 'b:0' holds bools"),
    (lambda: scoped(True, "w", [2]), "variable 'w' is to be reused and does not exist"),
    (lambda: shared(False, "w", [2]), "variable 'w' exists already; to share it"),
    (lambda: shared(True, "w", [3]), r"'w' is shared with shape \(2,\), and \(3,\) was requested"),
    (lambda: tf.get_variable("w"), "variable 'w' needs a shape, got None"),
    (lambda: tf.get_variable(5, [2]), "get_variable: name must be a string, got 5"),
    (lambda: tf.get_variable("w", [2], initializer=X), r"'w' needs a shape or .* got both: \[2\]"),
    (lambda: tf.variance_scaling_initializer(mode="fan"), "fan_avg as mode, got 'fan'"),
    (lambda: tf.variance_scaling_initializer(-1.0), "needs a scale above 0, got -1.0"),
    (lambda: tf.variance_scaling_initializer()([2], "int32"), "needs floats as dtype, got int32"),
    (lambda: tf.constant_initializer("a")([2]), "constant_initializer: value must .* got 'a'"),
    (lambda: tf.train.AdagradOptimizer(0.1, "x"), "number as initial_accumulator_value, got 'x'"),
    (
        lambda: tf.train.FtrlOptimizer(0.1, "x"),
        "Ftrl needs a number as learning_rate_power, got 'x'",
    ),
    (
        lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=-1.0),
        "an l1_regularization_strength of 0 or more, got -1.0",
    ),
    (
        lambda: tf.train.AdamOptimizer(beta1="x").minimize(create_variable() * 2.0),
        "Adam needs a number as beta1, got 'x'",
    ),
    (
        lambda: tf.train.GradientDescentOptimizer(0.1).apply_gradients([(free(2), free(2))]),
        "needs variables to train, got <tf.Tensor 'x",
    ),
    (
        lambda: tf.train.GradientDescentOptimizer(0.1).apply_gradients([create_variable()]),
        r"needs pairs \(gradient, variable\), got <tf.Variable 'w:0'",
    ),
    (lambda: tf.train.AdamOptimizer().minimize(tf.constant(1.0)), "Adam needs variables to train"),
    (
        lambda: tf.train.AdamOptimizer().minimize(tf.constant(1.0), var_list=[create_variable()]),
        "depends on none of them: w:0",
    ),
    (
        lambda: tf.train.GradientDescentOptimizer(0.1).minimize(tf.constant(1.0), var_list=3),
        "compute_gradients needs a list as var_list, got 3",
    ),
    (
        lambda: tf.train.GradientDescentOptimizer("fast").minimize(create_variable() * 2.0),
        "an optimizer needs a number as a hyperparameter, got 'fast'",
    ),
    (
        lambda: tf.train.GradientDescentOptimizer(free(1)).minimize(create_variable() * 2.0),
        r"needs a scalar as a hyperparameter, got 'x:0' of shape \(1\)",
    ),
    (
        lambda: tf.train.MomentumOptimizer(0.1, lambda: [0.9]).minimize(create_variable() * 2.0),
        "needs a scalar as a hyperparameter, got 'Momentum.*Const",
    ),
    (lambda: tf.train.AdagradOptimizer(0.1, -1.0), "accumulator_value above 0, got -1.0"),
    (lambda: tf.summary.scalar("s", X), "summary.scalar 's' needs a scalar, got <tf.Tensor"),
    (
        lambda: tf.summary.scalar("s", tf.constant(1j)),
        "a summary needs real numbers, got <tf.Tensor .* dtype=complex128",
    ),
    (
        lambda: tf.summary.histogram("s", free(3, dtype="complex64")),
        "a summary needs real numbers, got <tf.Tensor .* dtype=complex64",
    ),
]
NETWORKS = [
    (lambda: tf.layers.dense(free(2, None), 3), "dense needs inputs of known .* axis -1, got <tf"),
    (lambda: tf.layers.flatten(IMAGE, data_format="NCHW"), "as data_format, got 'NCHW'"),
    (lambda: tf.nn.conv2d(IMAGE, X, [2, 1, 1, 1], "SAME"), r"as strides, .* got \[2, 1, 1, 1\]"),
    (
        lambda: tf.nn.conv2d(free(1, 4, 4, 2), num_filter=2, ksize=3, dilations=2),
        "conv2d with num_filter creates its filter, and takes no dilations, got 2",
    ),
    (
        lambda: tf.nn.conv2d(IMAGE, X, 1, "SAME", ksize=3),
        "conv2d needs num_filter beside ksize and no_bias, got ksize=3",
    ),
    (
        lambda: tf.layers.conv2d(free(1, 4, 4, 2), 2, [3, 0]),
        r"conv2d needs a kernel_size of 1 or more, got \[3, 0\]",
    ),
    (
        lambda: tf.layers.conv1d(free(1, 4, 2), 2, 0),
        "conv1d needs a kernel_size of 1 or more, got 0",
    ),
    (
        lambda: tf.nn.conv2d(free(1, 4, 4, 2), num_filter=2, ksize=0),
        "conv2d needs a ksize of 1 or more, got 0",
    ),
    (lambda: tf.nn.conv2d(IMAGE, X, 1, "FULL"), "'SAME' or 'VALID' as padding, got 'FULL'"),
    (lambda: tf.nn.conv2d(IMAGE, X, 1, [[1, 1]]), r"four pairs as padding, got \[\[1, 1\]\]"),
    (lambda: tf.nn.bias_add(X, X[0], "NWHC"), "as data_format, got 'NWHC'"),
    (lambda: tf.nn.conv1d(X, X, 1, [[0, 0]]), r"conv1d needs .* as padding, got \[\[0, 0\]\]"),
    (
        lambda: tf.nn.conv2d_transpose(IMAGE, np.ones((2, 2, 3, 2), np.float32), [1, 8, 8]),
        r"two or four extents as output_shape, got \(1, 8, 8\)",
    ),
    (lambda: tf.layers.conv2d(IMAGE, 3, 2, padding=[[0, 0]]), r"as padding, got \[\[0, 0\]\]"),
    (lambda: tf.layers.flatten(IMAGE, data_format=[1]), r"as data_format, got \[1\]"),
    (lambda: tf.layers.batch_normalization(IMAGE, momentum="x"), "as momentum, got 'x'"),
    (lambda: tf.nn.rnn_cell.LSTMCell(2, cell_clip="x"), "LSTMCell needs a number as cell_clip"),
    (lambda: tf.nn.rnn_cell.MultiRNNCell(None), "list of cells, and states as tuples, got None"),
    (lambda: tf.nn.rnn_cell.MultiRNNCell(3), "MultiRNNCell needs a list of cells, .* got 3 and"),
    (lambda: tf.nn.leaky_relu(X, np.complex64(2j)), "needs a number as alpha, got np.complex64"),
    (lambda: tf.nn.leaky_relu(X, np.array("2")), r"needs a number as alpha, got array\('2'"),
    (
        lambda: tf.nn.nce_loss(X, X[0], np.zeros((2, 1), np.int32), X, 1, 2, sampled_values=[X]),
        r"nce_loss needs three tensors as sampled_values, got \[array\(\[\[1\., 1\., 1\.\],",
    ),
    (
        lambda: tf.nn.log_uniform_candidate_sampler([[1]], 1, 2, False, 2**70),
        "needs at least one draw, and one class to .*, got range_max=1180591620717411303424 and",
    ),
    (lambda: tf.while_loop(3, lambda i: i, [1]), "while_loop needs a function as cond, got 3"),
    (lambda: tf.while_loop(lambda i: i < 3, 4, [1]), "while_loop needs a function as body, got 4"),
    (
        lambda: tf.nn.nce_loss(X, X[0], np.zeros((2, 0), np.int32), X, 1, 2, 0),
        "nce_loss needs a num_true of at least 1, got 0",
    ),
    (
        lambda: tf.contrib.layers.variance_scaling_initializer(-1.0),
        "needs a factor above 0, got -1.0",
    ),
    (
        lambda: tf.contrib.layers.variance_scaling_initializer()([2], "int32"),
        "needs floats as dtype, got int32",
    ),
    (lambda: tf.nn.bias_add(X, [1.0]), r"a number for each channel .*got a bias of shape \(1,\)"),
    (lambda: tf.nn.softmax_cross_entropy_with_logits(X, X, dim=0, axis=1), "got both: 1 and 0"),
    (lambda: tf.nn.softmax_cross_entropy_with_logits(logits=X), "by name, got no labels"),
    (lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([1]), "by name, got no logits"),
    (lambda: tf.nn.top_k(X, sorted=False), "got sorted=False"),
    (
        lambda: tf.nn.dynamic_rnn(tf.nn.rnn_cell.GRUCell(2), free(2, None, 3)),
        "known number of steps, got <tf.Tensor 'x:0'",
    ),
    (lambda: tf.nn.rnn_cell.GRUCell(2)(free(2, None), X[:, :2]), "gru_cell needs .* got <tf"),
    (lambda: tf.nn.rnn_cell.MultiRNNCell([]), r"needs a list of cells, .* got \[\] and"),
    (lambda: tf.nn.rnn_cell.BasicLSTMCell(2)(X, None), "LSTMStateTuple.c=2, h=2., got None"),
    (lambda: tf.nn.rnn_cell.BasicLSTMCell(2)(X, X), "basic_lstm_cell needs a state .* got array"),
    (lambda: tf.nn.dropout(X), "rate or keep_prob, 1 - rate, got neither"),
    (lambda: tf.nn.dropout(X, 0.5, rate=0.5), "got both: 0.5 and 0.5"),
    (lambda: tf.nn.dropout(X, rate=1.0), "a rate from 0 to below 1, got 1.0"),
    (lambda: tf.nn.embedding_lookup([X, X], [0]), "takes one table as params, got 2"),
    (lambda: tf.nn.moments(X, [0], shift=1.0), "moments takes no shift, got 1.0"),
    (lambda: tf.nn.log_uniform_candidate_sampler([[1]], 2, 3, True, 9), "num_true=2 .* got 1"),
    (
        lambda: tf.nn.log_uniform_candidate_sampler([[1]], 1, 499, True, 500),
        "a sample of 499 of 500 classes",
    ),
    (
        lambda: tf.nn.conv2d(IMAGE, X, 1, [[3, 0], [0, 0], [0, 0], [0, 0]]),
        r"padding of batch and channels, got \[\[3, 0\]",
    ),
    (lambda: tf.nn.batch_normalization(X[0]), r"batch_normalization needs .* got \(3,\)"),
    (lambda: tf.nn.linear([[1, 2]], 3), "'linear_weight' needs inputs of floats, got <tf.*int32"),
    (lambda: tf.nn.linear(1.0, 3), r"linear needs a shape with an axis -1, got \(\)"),
    (lambda: tf.layers.max_pooling2d(IMAGE, 2, 2, padding=None), "as padding, got None"),
    (lambda: tf.layers.max_pooling1d(IMAGE[0], 2, 2, padding=None), "as padding, got None"),
    (lambda: tf.contrib.layers.avg_pool2d(IMAGE, 2, padding=None), "as padding, got None"),
    (lambda: tf.contrib.layers.dropout(X, "x"), "dropout needs a number as keep_prob, got 'x'"),
    (
        lambda: tf.glorot_uniform_initializer()([None, 3]),
        r"an initializer needs a known shape, got \(\?, 3\)",
    ),
    (
        lambda: tf.contrib.layers.variance_scaling_initializer()([3, -1]),
        r"an initializer needs a known shape, got \(3, -1\)",
    ),
    (
        lambda: tf.image.convert_image_dtype(X > 0, "float32"),
        "convert_image_dtype needs integers or floats, got bool",
    ),
    (
        lambda: tf.image.resize_image_with_crop_or_pad(IMAGE, 3, "x"),
        "resize_image_with_crop_or_pad needs an int as a size, got 'x'",
    ),
    (
        lambda: tf.image.resize_images(IMAGE, [3], preserve_aspect_ratio=True),
        r"two ints as size to preserve the aspect ratio, got \(3,\)",
    ),
    (lambda: tf.image.grayscale_to_rgb(IMAGE), r"images of one channel, got <tf.* 4, 2\)"),
]


@pytest.mark.parametrize("case", range(len(ARRAYS)))
def test_array_functions_name_values_that_do_not_fit(case):
    """Array functions raise errors that name shapes and values that do not fit."""
    build, message = ARRAYS[case]

    with pytest.raises(Exception, match=message) as caught:
        build()
    assert isinstance(caught.value, (PasskitError, AttributeError))


@pytest.mark.parametrize("case", range(len(VARIABLES)))
def test_variables_and_optimizers_name_values_that_do_not_fit(case):
    """Variables, scopes and optimizers raise errors that name shapes and values that do not fit."""
    build, message = VARIABLES[case]

    with pytest.raises(PasskitError, match=message):
        build()


@pytest.mark.parametrize("case", range(len(NETWORKS)))
def test_layers_and_losses_name_values_that_do_not_fit(case):
    """Layers, losses and cells raise errors that name shapes and values that do not fit."""
    build, message = NETWORKS[case]

    with pytest.raises(PasskitError, match=message):
        build()


def initialized(**kwargs):
    """Apply a dense layer of one unit with an argument of tf.contrib."""
    return tf.contrib.layers.fully_connected(X, 1, **kwargs)


FUNCTIONS = (
    (lambda: tf.layers.dense(X, 1, activation=3), "a layer needs a function as activation, got 3"),
    (
        lambda: tf.layers.dense(X, 1, activity_regularizer="l2"),
        "a layer needs a function as activity_regularizer, got 'l2'",
    ),
    (
        lambda: tf.layers.dense(X, 1, kernel_regularizer=0.1),
        "get_variable needs a function as regularizer, got 0.1",
    ),
    (
        lambda: tf.layers.dense(X, 1, kernel_constraint=X),
        r"Variable needs a function as constraint, got array\(\[\[1",
    ),
    (
        lambda: tf.layers.dense(X, 1, kernel_initializer=int),
        "variable 'dense/kernel' needs a function as initializer, got 0",
    ),
    (
        lambda: tf.variable_scope("s", regularizer=0.5),
        "variable_scope needs a function as regularizer, got 0.5",
    ),
    (
        lambda: tf.nn.rnn_cell.BasicLSTMCell(3, activation="tanh"),
        "BasicLSTMCell needs a function as activation, got 'tanh'",
    ),
    (lambda: initialized(normalizer_fn=7), "a layer needs a function as normalizer_fn, got 7"),
    (
        lambda: initialized(normalizer_fn=abs, normalizer_params=[1]),
        r"a layer needs a dict by name as normalizer_params, got \[1\]",
    ),
    (lambda: initialized(activation_fn=X > 0), r"function as activation_fn, got array\(\[\[ True"),
    (
        lambda: tf.contrib.layers.batch_norm(X, param_initializers={1: 2}),
        r"a layer needs a dict by name as param_initializers, got \{1: 2\}",
    ),
    (
        lambda: tf.layers.dropout(X, training=np.array([True, False])),
        r"dropout needs a bool as training, got array\(\[ True, False\]",
    ),
    (
        lambda: tf.cond(np.zeros(0), lambda: 1, lambda: 2),
        r"cond needs a bool as pred, got array\(\[\]",
    ),
    (
        lambda: tf.layers.batch_normalization(X, training=X),
        r"batch_normalization needs a bool as training, got array\(\[\[1",
    ),
    (lambda: tf.foldl(3, X), "foldl needs a function as fn, got 3"),
    (lambda: tf.scan(None, X), "scan needs a function as fn, got None"),
    (lambda: tf.map_fn("f", X), "map_fn needs a function as fn, got 'f'"),
    (
        lambda: tf.variable_scope("s", reuse=1),
        "variable_scope needs True, False, None or tf.AUTO_REUSE as reuse, got 1",
    ),
    (lambda: tf.add_to_collection([1], 2), r"name must be a string, got \[1\]"),
    (lambda: tf.get_collection(5), "get_collection: key must be a string, got 5"),
    (lambda: tf.global_variables(scope=3), "scope must be a string, got 3"),
    (
        lambda: tf.zeros_initializer()([2], dtype=np.array([1, 2])),
        r"an array int64\[2\]. is not an element type",
    ),
    (
        lambda: tf.clip_by_global_norm(np.array(2.0), 1.0),
        r"clip_by_global_norm needs a list as t_list, got array\(2",
    ),
)


@pytest.mark.parametrize("case", range(len(FUNCTIONS)))
def test_arguments_that_are_no_functions_or_flags_are_named(case):
    """An argument that is no function, flag or list where one is needed is named with its value."""
    build, message = FUNCTIONS[case]

    with pytest.raises(PasskitError, match=message):
        build()


NUMBERS = (
    (lambda: tf.layers.dense(X, 1.5), "dense needs an int as units, got 1.5"),
    (lambda: tf.nn.leaky_relu(X, "x"), "leaky_relu needs a number as alpha, got 'x'"),
    (lambda: tf.nn.leaky_relu(X, 10**400), "leaky_relu needs a number as alpha, got 1000000"),
    (lambda: tf.clip_by_norm(X, np.array("x")), r"number as clip_norm, got array\('x'"),
    (lambda: tf.random_normal([2], 0.0, 1j), "random_normal needs a number as stddev, got 1j"),
    (lambda: tf.pad(X, 1), "pad needs ints for each axis as paddings, got 1"),
    (lambda: tf.pad(X, [[1, None]]), "pad needs an int as paddings, got None"),
    (lambda: tf.pad(X, [[1, 1]], mode=0), "as mode, got 0"),
    (lambda: tf.reduce_sum(X, axis="x"), "needs an int as axis, got 'x'"),
    (lambda: tf.norm(X, 1, [0, 5]), "axis 5 is out of range"),
    (lambda: tf.norm(X, 1, [0, -2], keepdims=True), r"axis=\(0, -2\) has axis 0 twice"),
    (lambda: tf.norm(X, np.array([1, 2])), r"as ord, .* got array\(\[1, 2\]\)"),
    (lambda: tf.split(X, [-1, -1]), r"sizes that add up to 2, got \[-1, -1\]"),
    (lambda: tf.split(X, [3, -1]), r"sizes that add up to 2, got \[3, -1\]"),
    (lambda: tf.unstack(free(), 2.5), "unstack needs an int as num, got 2.5"),
    (lambda: tf.range(None), "range needs known bounds, got None"),
    (lambda: tf.constant(1.0, shape=[-2, -3]), r"extents >= 0, got \(-2, -3\)"),
    (lambda: tf.shape(X, out_type="uint8"), "shape needs int32 or int64 as out_type, got uint8"),
    (lambda: tf.unstack(X, axis=7), r"unstack needs a shape with an axis 7, got \("),
    (lambda: tf.split(X, 0), "needs a length that 0 divides"),
    (lambda: tf.split(X, "ab"), "split needs an int as num_or_size_splits, got 'ab'"),
    (lambda: tf.one_hot([1], ()), r"one_hot needs one number as depth, got \(\)"),
    (lambda: tf.add_n([]), "add_n needs at least one tensor, got none"),
    (lambda: tf.nn.dropout(X, 0.5, noise_shape=[1] * 5), r"noise_shape, got \(1, 1, 1, 1, 1\)"),
    (lambda: tf.nn.log_uniform_candidate_sampler([[1]], 1, 0, True, 5), "and num_sampled=0"),
    (lambda: tf.layers.conv1d(IMAGE[0], 2, (1, 2)), r"one int as kernel_size, got \(1, 2\)"),
    (lambda: tf.layers.max_pooling1d(IMAGE[0], 2, (1, 2)), r"one int as strides, got \(1, 2\)"),
    (lambda: tf.nn.conv1d(IMAGE[0], X, [1, 2], "SAME"), r"one int as stride, got \[1, 2\]"),
    (lambda: tf.nn.flatten_layer(1.0), r"flatten_layer needs a shape with an axis 0, got \(\)"),
    (lambda: tf.train.exponential_decay(0.1, 5, "x", 0.9), "number as decay_steps, got 'x'"),
    (lambda: tf.set_random_seed("x"), "set_random_seed needs an int as seed, got 'x'"),
    (lambda: tf.foldl(max, tf.zeros([0])), r"foldl needs .* along their first axis, got \[<tf"),
    (
        lambda: tf.image.pad_to_bounding_box(IMAGE, "x", 0, 5, 5),
        "pad_to_bounding_box needs an int as an offset or a size, got 'x'",
    ),
    (
        lambda: tf.image.pad_to_bounding_box(IMAGE, 2, 0, 5, 5),
        r"target that holds images \(4, 4\) at \(2, 0\), got \(5, 5\)",
    ),
)


@pytest.mark.parametrize("case", range(len(NUMBERS)))
def test_arguments_that_are_no_valid_numbers_are_named(case):
    """An argument that is no number, or one out of range, is named with its value."""
    build, message = NUMBERS[case]

    with pytest.raises(PasskitError, match=message):
        build()


def test_integral_floats_and_static_dimensions_are_accepted_as_ints():
    """Integer arguments accept floats without a fraction, known dimensions and NumPy integers."""
    x = tf.constant(np.ones((2, 3), np.float32))

    assert tf.layers.dense(x, 4.0).shape.as_list() == [2, 4]
    assert tf.layers.dense(x, x.shape[1], name="again").shape.as_list() == [2, 3]
    assert tf.layers.dense(x, np.int64(5), name="third").shape.as_list() == [2, 5]
    assert tf.layers.max_pooling2d(IMAGE, np.array(2), np.array([2, 2])).shape.as_list()[1] == 2


def test_arrays_without_elements_are_accepted():
    """Constants may be empty, and initializers create weights of units without inputs."""
    weights = tf.contrib.layers.variance_scaling_initializer()([0, 2])

    assert tf.constant([], shape=[2, 0]).shape.as_list() == [2, 0]
    assert weights.shape.as_list() == [0, 2]


def test_draws_around_a_tensor_have_the_requested_name():
    """Random tensors whose mean or deviation is a tensor have the requested name, too."""
    mean = tf.constant(1.0)

    assert tf.random_normal([2], mean, name="draws").name == "draws:0"
    assert tf.truncated_normal([2], 0.0, mean, name="others").name == "others:0"


def test_missing_arguments_are_named():
    """A call without a required argument, or without one of two, names it."""
    for build, message in (
        (lambda: tf.Variable(), "Variable needs an initial_value"),
        (lambda: tf.expand_dims(X), "expand_dims needs an axis"),
        (lambda: tf.sequence_mask([1]), "sequence_mask needs maxlen"),
        (lambda: tf.variable_scope(None), "needs a name or a default_name"),
        (lambda: tf.nn.static_rnn(tf.nn.rnn_cell.GRUCell(2), []), "at least one step"),
        (lambda: tf.nn.static_rnn(tf.nn.rnn_cell.GRUCell(2), [X]), "initial_state or its dtype"),
        (lambda: tf.train.Saver(), "Saver needs variables to save"),
    ):
        with pytest.raises(PasskitError, match=message):
            build()


def test_sizes_that_the_dtype_does_not_hold_are_refused_where_they_are_used():
    """An int32 of a known number beyond its limits names the dtype that holds it; int64 has it."""
    x = free(2**20, 2**20)

    for build, message in (
        (lambda: tf.size(x), "'Size.*' needs a dtype that holds 1099511627776, got int32; .*int64"),
        (lambda: tf.shape(free(7, 2**40)), "'Shape.*' needs .* holds 1099511627776, got int32"),
    ):
        small = build()
        with pytest.raises(DTypeError, match=message):
            small + 1
        with tf.Session() as session, pytest.raises(DTypeError, match=message):
            session.run(small)
    with tf.Session() as session:
        assert session.run(tf.size(x, out_type=tf.int64)) == 2**40


def test_dimensions_combine_with_numbers_and_tensors():
    """A dimension plus a tensor is a tensor; one plus a float, which is no extent, is refused."""
    width = free(None, 3).shape[1]

    assert (width + 2).value == 5
    for sum_of_both in (width + np.int64(2), np.int64(2) + width, tf.Dimension(np.int64(5))):
        assert sum_of_both.value == 5
        assert type(sum_of_both.value) is int
    assert isinstance(width - tf.constant(1), tf.Tensor)
    with pytest.raises(TypeError, match="'Dimension' and 'float'"):
        width + 1.5
