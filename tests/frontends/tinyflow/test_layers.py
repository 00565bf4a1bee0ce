"""Layer objects, layers of tf.contrib, LSTM cells by their formulas, and errors."""

from __future__ import annotations

import numpy as np
import pytest

from passkit.errors import PasskitError
from passkit.frontends import tinyflow as tf

X = np.random.default_rng(0).normal(size=(2, 6, 3)).astype(np.float32)
IMAGE = np.random.default_rng(1).normal(size=(2, 4, 4, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def _own_graph():
    """Each test has a graph of its own, with a seed."""
    with tf.Graph().as_default():
        tf.set_random_seed(3)
        yield


def run(fetches):
    """Return the values of fetches after initializing all variables."""
    with tf.Session(target="interpret") as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return session.run(fetches)


def names():
    """Return the names of all variables."""
    return [v.name for v in tf.global_variables()]


def test_layer_objects_equal_layer_functions_and_share_variables():
    """Each class computes what its function does, and calls of an object share variables."""
    dense = tf.layers.Dense(2, activation=tf.nn.relu, name="d")
    with pytest.raises(AttributeError, match="Dense has no 'kernel'; the variables of a layer"):
        _ = dense.kernel
    first, again = dense(X), dense.apply(2 * X)
    other = tf.layers.Dense(2)(X)
    assert names() == ["d/kernel:0", "d/bias:0", "dense/kernel:0", "dense/bias:0"]
    assert dense.trainable_weights == [dense.kernel, dense.bias] == dense.weights
    same = tf.nn.relu(tf.tensordot(tf.constant(X), dense.kernel, 1))
    values = run([first, again, same, other])
    np.testing.assert_allclose(values[0], values[2], rtol=1e-5)
    np.testing.assert_allclose(values[1], 2 * values[0], rtol=1e-5)
    calls = [
        (tf.layers.Conv1D(4, 3), tf.layers.conv1d, X, (4, 3)),
        (tf.layers.Conv2D(4, 3), tf.layers.conv2d, IMAGE, (4, 3)),
        (tf.layers.Conv2DTranspose(4, 3), tf.layers.conv2d_transpose, IMAGE, (4, 3)),
        (tf.layers.MaxPooling1D(2, 2), tf.layers.max_pooling1d, X, (2, 2)),
        (tf.layers.MaxPooling2D(2, 2), tf.layers.max_pooling2d, IMAGE, (2, 2)),
        (tf.layers.AveragePooling1D(2, 2), tf.layers.average_pooling1d, X, (2, 2)),
        (tf.layers.AveragePooling2D(2, 2), tf.layers.average_pooling2d, IMAGE, (2, 2)),
        (tf.layers.Flatten(), tf.layers.flatten, IMAGE, ()),
        (tf.layers.BatchNormalization(), tf.layers.batch_normalization, X, ()),
    ]
    for layer, function, x, arguments in calls:
        a = layer(x)
        with tf.variable_scope(tf.get_variable_scope(), reuse=bool(layer.variables)):
            b = function(x, *arguments, **({"name": layer.name} if layer.variables else {}))
        np.testing.assert_array_equal(*run([a, b]))
    drop = tf.layers.Dropout(0.5)
    kept, dropped = run([drop(tf.ones([50])), drop(tf.ones([50]), training=True)])
    assert set(kept) == {1.0}
    assert set(dropped) == {0.0, 2.0}
    with pytest.raises(PasskitError, match="a Dense is called with inputs, got 'training'"):
        dense(X, training=True)


def test_sequence_layers_equal_numpy():
    """conv1d and its pooling layers equal NumPy, with channels last and first."""
    ones = {"kernel_initializer": tf.ones_initializer()}
    out = tf.layers.conv1d(X, 2, 3, strides=2, padding="same", **ones)
    channels_first = tf.layers.conv1d(
        X.transpose(0, 2, 1), 2, 3, 2, "same", "channels_first", **ones
    )
    pools = tf.layers.max_pooling1d(X, 2, 2), tf.layers.average_pooling1d(X, 2, 2)
    first = tf.layers.max_pooling1d(X.transpose(0, 2, 1), 2, 2, data_format="channels_first")
    values = run([out, channels_first, *pools, first])
    padded = np.pad(X, ((0, 0), (0, 1), (0, 0))).sum(2)
    expected = np.stack([padded[:, k : k + 3].sum(1) for k in (0, 2, 4)], 1)
    np.testing.assert_allclose(
        values[0], np.repeat(expected[:, :, None], 2, 2), rtol=1e-4, atol=1e-5
    )
    np.testing.assert_allclose(values[1], values[0].transpose(0, 2, 1), rtol=1e-5)
    pairs = X.reshape(2, 3, 2, 3)
    np.testing.assert_allclose(values[2], pairs.max(2))
    np.testing.assert_allclose(values[3], pairs.mean(2), rtol=1e-5)
    np.testing.assert_allclose(values[4], pairs.max(2).transpose(0, 2, 1))


def test_contrib_layers_apply_activation_and_normalization():
    """Layers of tf.contrib apply activations and normalization, and collect outputs and losses."""
    layers = tf.contrib.layers
    out = layers.fully_connected(
        X,
        4,
        weights_regularizer=layers.l2_regularizer(0.5),
        weights_initializer=tf.ones_initializer(),
        biases_initializer=tf.ones_initializer(),
        outputs_collections="outs",
        scope="fc",
    )
    raw = layers.linear(X[0], 2, biases_initializer=None)
    convolved = layers.conv2d(
        IMAGE,
        2,
        3,
        normalizer_fn=layers.batch_norm,
        normalizer_params={"is_training": True, "scale": True},
    )
    pooled, mean = layers.max_pool2d(IMAGE, 2), layers.avg_pool2d(IMAGE, 2)
    rest = (
        layers.dropout(tf.ones([9]), is_training=False),
        layers.one_hot_encoding([1], 3),
        layers.flatten(IMAGE),
        layers.relu(X[0], 1, scope="r"),
    )
    assert names()[:3] == ["fc/weights:0", "fc/biases:0", "fully_connected/weights:0"]
    assert "Conv/BatchNorm/gamma:0" in names()
    assert tf.get_collection("outs") == [out]
    values = run([out, tf.losses.get_regularization_loss(), pooled, mean, convolved, *rest, raw])
    np.testing.assert_allclose(
        values[0], np.repeat(np.maximum(X.sum(2) + 1, 0)[..., None], 4, 2), rtol=1e-5, atol=1e-6
    )
    assert values[1] == 0.25 * 12
    windows = IMAGE.reshape(2, 2, 2, 2, 2, 3)
    np.testing.assert_allclose(values[2], windows.max((2, 4)))
    np.testing.assert_allclose(values[3], windows.mean((2, 4)), rtol=1e-4, atol=1e-6)
    assert values[4].min() == 0
    assert (set(values[5]), values[6].tolist()) == ({1.0}, [[0, 1, 0]])
    assert (values[7].shape, values[8].shape, values[9].shape) == ((2, 48), (6, 1), (6, 2))
    weigh = layers.l1_regularizer(2.0)(tf.constant([-1.0, 2.0]))
    assert run(weigh) == 6.0
    assert layers.l1_regularizer(0.0)(X) is None
    drawn = layers.variance_scaling_initializer(1.0, "FAN_AVG", uniform=True)([200, 100])
    assert 0.95 < np.abs(run(drawn)).max() / np.sqrt(3.0 / 150) <= 1


def lstm(x, c, h, kernel, bias, peep, down):
    """Compute one step of an LSTM with peepholes and a projection in NumPy."""

    def sigmoid(v):
        return 1 / (1 + np.exp(-v))

    i, j, f, o = np.split(np.concatenate([x, h], 1) @ kernel + bias, 4, 1)
    new = sigmoid(f + 1 + peep[0] * c) * c + sigmoid(i + peep[1] * c) * np.tanh(j)
    new = np.clip(new, -0.4, 0.4)
    out = sigmoid(o + peep[2] * new) * np.tanh(new) @ down
    return new, np.clip(out, -0.1, 0.1)


@pytest.mark.parametrize("tuples", [True, False])
def test_lstm_with_peepholes_projection_and_clipping_equals_numpy(tuples):
    """LSTMCell computes its formulas, with states as tuples or as one tensor."""
    cell = tf.nn.rnn_cell.LSTMCell(
        4,
        use_peepholes=True,
        num_proj=2,
        cell_clip=0.4,
        proj_clip=0.1,
        state_is_tuple=tuples,
        initializer=tf.random_uniform_initializer(-1.0, 1.0),
    )
    outputs, state = tf.nn.dynamic_rnn(cell, X, dtype=tf.float32)
    assert [n.split("lstm_cell/")[1] for n in names()] == [
        "kernel:0",
        "bias:0",
        "w_f_diag:0",
        "w_i_diag:0",
        "w_o_diag:0",
        "projection/kernel:0",
    ]
    assert (cell.output_size, cell.state_size) == (2, (4, 2) if tuples else 6)
    output_values, last, weights = run([outputs, state, tf.global_variables()])
    c, h = np.zeros((2, 4)), np.zeros((2, 2))
    for k in range(6):
        c, h = lstm(X[:, k], c, h, weights[0], weights[1], weights[2:5], weights[5])
        np.testing.assert_allclose(output_values[:, k], h, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(
        np.concatenate(last, 1) if tuples else last, np.concatenate([c, h], 1), rtol=1e-4, atol=1e-6
    )


def test_invalid_layer_loss_and_image_arguments_raise():
    """Shapes and settings of losses, layers, norms and images that do not fit raise."""
    x, free = tf.constant(X), tf.placeholder(tf.float32, [None, None, 3], name="free")
    losses, image = tf.losses, tf.image
    for build, message in (
        (lambda: losses.mean_squared_error(X, X[0]), r"of one shape, got \(2, 6, 3\) and \(6, 3\)"),
        (lambda: losses.huber_loss(None, X), "huber_loss needs labels and predictions, got None"),
        (lambda: losses.compute_weighted_loss(X, X[:, 0]), r"6, 3\) need a number .*got \(2, 3\)"),
        (lambda: losses.compute_weighted_loss(X, reduction="sum"), "as reduction, got 'sum'"),
        (lambda: losses.cosine_distance(X, X), "needs an axis along which vectors lie, got None"),
        (lambda: losses.get_total_loss(scope="s"), "got none of scope 's'"),
        (lambda: tf.norm(x, -1), "norm needs 'euclidean', .* got -1"),
        (lambda: tf.norm(x, 3, axis=[0, 1]), "of matrices 'fro', 1 or inf, got 3"),
        (lambda: tf.nn.conv1d(X, X, 1, "SAME", data_format="WNC"), "as data_format, got 'WNC'"),
        (lambda: tf.contrib.layers.variance_scaling_initializer(mode="FAN"), "mode, got 'FAN'"),
        (lambda: tf.train.FtrlOptimizer(0.1, 0.5), "learning_rate_power of 0 or less, got 0.5"),
        (lambda: image.flip_left_right(X[0]), "needs images of rank 3 or 4, got <tf.Tensor"),
        (lambda: image.central_crop(X, 1.5), "above 0 and up to 1, got 1.5"),
        (lambda: image.crop_to_bounding_box(free, 0, 0, 1, 1), "known height and width, got <tf"),
        (lambda: image.crop_to_bounding_box(X, 1, 2, 2, 3), r"\(2, 6\), got \(2, 3\) at \(1, 2\)"),
        (lambda: image.pad_to_bounding_box(X, 1, 0, 2, 6), r"\(2, 6\) at \(1, 0\), got \(2, 6\)"),
        (lambda: image.resize_images(X, [2, 2], method=7), "tf.image.ResizeMethod, got 7"),
        (lambda: image.convert_image_dtype(np.ones(3, np.int32), tf.uint8), "got int32 and uint8"),
    ):
        with pytest.raises(PasskitError, match=message):
            build()


def test_missing_names_suggest_the_module_or_spelling():
    """A name of another module, a misspelled one, or an unknown one raises with a suggestion."""
    for ask, message in (
        (lambda: tf.relu, "no tf.relu; it is tf.nn.relu"),
        (lambda: tf.losses.mean_square_error, "did you mean 'mean_squared_error'"),
        (lambda: tf.layers.dens, "did you mean 'dense'"),
        (lambda: tf.layers.Densse, "did you mean"),
        (lambda: tf.contrib.layers.embed_sequence, "no tf.contrib.layers.embed_sequence; docs/tin"),
        (lambda: tf.norma, "did you mean 'norm"),
        (lambda: tf.unsorted_segment_sum, "no tf.unsorted_segment_sum; docs/tinyflow.md"),
        (lambda: tf.contrib.rnn.LSTMBlockCell, "tinyflow has no tf.contrib.rnn.LSTMBlockCell"),
    ):
        with pytest.raises(AttributeError, match=message):
            ask()


def test_random_flip_flips_about_half_of_the_images():
    """Each run flips other images, about half of them."""
    columns = np.tile(np.arange(4.0)[:, None], (64, 4, 1, 1))
    many = tf.image.random_flip_left_right(tf.constant(columns))
    one = tf.image.random_flip_left_right(tf.constant(IMAGE[0]), seed=1)
    with tf.Session(target="interpret") as session:
        first, second = session.run(many), session.run(many)
        assert 10 < (first[:, 0, 0, 0] == 0).sum() <= 64
        first_pixels = [session.run(one)[0, 0, 0] for _ in range(8)]
    assert first.shape == second.shape
    assert {float(v) for v in first_pixels} == {float(IMAGE[0, 0, 0, 0]), float(IMAGE[0, 0, 3, 0])}


def test_regularizers_that_return_none_add_no_loss():
    """An L2 regularizer of scale 0 has no loss, so that the losses can be added."""
    with tf.Graph().as_default():
        none = tf.contrib.layers.l2_regularizer(0.0)
        tf.layers.dense(np.ones((2, 3), np.float32), 1, kernel_regularizer=none)
        tf.layers.dense(np.ones((2, 3), np.float32), 1, activity_regularizer=none)

        assert tf.losses.get_regularization_losses() == []
        assert tf.losses.get_regularization_loss().dtype.name == "float32"
