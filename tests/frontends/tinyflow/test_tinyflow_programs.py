"""TinyFlow's own programs run: its layers, shape inference and GPU configuration."""

from __future__ import annotations

import numpy as np
import pytest

import passkit as pk
from passkit.errors import DeviceError, FeedError, ShapeError
from passkit.frontends import tinyflow as tf


@pytest.fixture(autouse=True)
def _own_graph():
    """Each test has a graph of its own, with a seed."""
    with tf.Graph().as_default():
        tf.set_random_seed(2)
        yield


def lenet(x):
    """Return a small LeNet, built as TinyFlow's example builds it."""
    conv = tf.nn.convolution_layer(
        x, 4, [1, 3, 3, 1], no_bias=False, data_format="NCHW", name="conv1"
    )
    pool = tf.nn.max_pool(tf.tanh(conv), [1, 1, 2, 2], [1, 1, 2, 2], "VALID", "NCHW")
    hidden = tf.tanh(tf.nn.linear(tf.nn.flatten_layer(pool), 8, False, name="fc1"))
    return tf.nn.linear(hidden, 3, name="fc2")


def test_lenet_of_tinyflow_learns_with_inferred_weight_shapes():
    """Layers create weights, infer_variable_shapes returns their shapes, and Adam learns."""
    x = tf.placeholder(tf.float32, [None, 1, 8, 8])
    label = tf.placeholder(tf.float32, [None])
    net = lenet(x)
    loss = tf.nn.mean_sparse_softmax_cross_entropy_with_logits(net, label)
    step = tf.train.AdamOptimizer(0.01, epsilon=1e-4).minimize(loss)
    inferred = list(tf.infer_variable_shapes(net, {x: [10, 1, 8, 8]}))
    draws = [tf.assign(v, tf.normal(shape, 0.1)) for v, _, shape in inferred]

    assert [(n, s) for _, n, s in inferred] == [
        ("conv1_weight", [3, 3, 1, 4]),
        ("conv1_bias", [4]),
        ("fc1_weight", [8, 36]),
        ("fc1_bias", [8]),
        ("fc2_weight", [3, 8]),
    ]
    rng = np.random.default_rng(0)
    images = rng.normal(size=(12, 1, 8, 8)).astype(np.float32)
    with tf.Session(target="interpret") as session:
        session.run(tf.initialize_all_variables())
        session.run(draws)
        losses = [
            session.run([loss, step], {x: images, label: np.arange(12) % 3})[0] for _ in range(40)
        ]
    assert losses[-1] < 0.5 * losses[0]


def test_weight_shapes_are_inferred_for_placeholders_without_shape():
    """infer_variable_shapes sets the shapes of weights behind an input of unknown rank."""
    x, label = tf.placeholder(tf.float32, name="x"), tf.placeholder(tf.float32)
    conv = tf.nn.conv2d(x, num_filter=3, ksize=[1, 3, 3, 1], no_bias=False, name="conv")
    norm = tf.nn.batch_normalization(conv)
    pool = tf.nn.max_pool(tf.tanh(norm), ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1])
    mean = tf.nn.avg_pool(pool, [1, 2, 2, 1], [1, 1, 1, 1], "SAME", data_format="NCHW")
    net = tf.nn.linear(tf.nn.flatten_layer(mean), num_hidden=4, name="fc", no_bias=False)
    loss = tf.nn.mean_sparse_softmax_cross_entropy_with_logits(net, label)
    step = tf.train.AdamOptimizer(0.05).minimize(loss)
    accuracy = tf.reduce_mean(tf.equal(tf.argmax(net, 1), label))
    weight = tf.global_variables()[0]
    assert repr(weight) == "<tf.Variable 'conv_weight:0' shape=<unknown> dtype=float32>"
    with pytest.raises(
        ShapeError, match="variable 'conv_weight/Adam' needs a shape before it is init"
    ):
        tf.initialize_all_variables()
    with pytest.raises(ShapeError, match="variable 'conv_weight' has no initial value"):
        weight.initialized_value()

    with pytest.raises(ShapeError, match=r"'conv_weight' needs a known shape, got \(3, 3, \?, 3\)"):
        next(tf.infer_variable_shapes(loss, {x: [6, None, 6, 6], label: [6]}))
    init = []
    for v, name, shape in tf.infer_variable_shapes(loss, {x: [6, 2, 6, 6], label: [6]}):
        init.append((name, shape, tf.assign(v, tf.normal(shape, 0.3))))
    with pytest.raises(
        ShapeError,
        match=r"'conv_weight' has the shape \(3, 3, 2, 3\), and .* needs one of \(3, 3, 5, 3\)",
    ):
        next(tf.infer_variable_shapes(loss, {x: [6, 5, 6, 6], label: [6]}))
    assert [(n, s) for n, s, _ in init] == [
        ("conv_weight", [3, 3, 2, 3]),
        ("conv_bias", [3]),
        ("batch_normalization_gamma", [3]),
        ("batch_normalization_beta", [3]),
        ("fc_weight", [4, 12]),
        ("fc_bias", [4]),
    ]
    images = np.random.default_rng(0).normal(size=(6, 2, 6, 6)).astype(np.float32)
    with tf.Session("interpret") as session:
        feeds = {x: images, label: np.arange(6) % 4}
        with pytest.raises(FeedError, match=r"'conv_weight' has no value .*tf.assign\(variable"):
            session.run(loss, feeds)
        session.run([write for _, _, write in init])
        before = session.run(weight)
        session.run(tf.initialize_all_variables())
        assert np.array_equal(session.run(weight), before)
        losses = [session.run([loss, step], feeds)[0] for _ in range(15)]
        assert losses[-1] < 0.5 * losses[0]
        assert session.run(accuracy, {x: images[:5], label: np.arange(5) % 4}) > 0.5
        with pytest.raises(ShapeError, match=r"'conv_weight' has .*\(3, 3, 2, 3\).*\(3, 3, 1, 3\)"):
            session.run(net, {x: images[:, :1]})


@pytest.mark.parametrize("is_given", [True, False])
def test_weight_shapes_are_inferred_for_a_placeholder_refined_afterwards(is_given):
    """infer_variable_shapes uses the shape given, or that of set_shape, for layers from before."""
    x = tf.placeholder(tf.float32)
    net = tf.nn.linear(x, 3, name="late")
    x.set_shape([None, 4])
    inferred = tf.infer_variable_shapes(net, {x: [5, 4]} if is_given else {})
    assert [s for _, n, s in inferred if n == "late_weight"] == [[3, 4]]


def test_a_weight_is_no_feed():
    """A weight behind an input of unknown rank cannot be fed, as other variables cannot."""
    x = tf.placeholder(tf.float32)
    net = tf.nn.linear(x, 3, name="unfed")
    weight = next(v for v in tf.global_variables() if v.name == "unfed_weight:0")
    session = tf.Session("interpret")
    with pytest.raises(FeedError, match="feed_dict has the variable 'unfed_weight:0'"):
        session.run(net, {x: np.ones((2, 4)), weight: np.ones((3, 4))})


def test_gpu_configuration_falls_back_to_the_cpu_with_a_warning(monkeypatch):
    """The configuration 'gpu' warns once and runs on the CPU where there is no GPU."""

    def compile_without_gpu(graph, target="cpu", **options):
        if target == "cuda":
            raise DeviceError("target 'cuda' needs a driver")
        return pk.compile(graph, target="interpret", **options)

    monkeypatch.setattr("passkit.frontends.tinyflow.session.compile", compile_without_gpu)
    x = tf.placeholder(tf.float32, [])
    session = tf.Session(config="gpu")
    with pytest.warns(UserWarning, match="'gpu' runs on the CPU, .*target 'cuda' needs a driver"):
        assert session.run(2 * x, {x: 3}) == 6
    with pytest.raises(DeviceError, match="needs a driver"):
        tf.Session(target="cuda").run(3 * x, {x: 3})


def test_softmax_regression_equals_numpy():
    """Gradients and assign train the minimal example of TinyFlow as NumPy does."""
    x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.float32, [None, 3])
    w = tf.Variable(tf.zeros([5, 3]))
    out = tf.nn.softmax(tf.matmul(x, w))
    loss = tf.reduce_mean(-tf.reduce_sum(y * tf.log(out), reduction_indices=[1]))
    step = tf.assign(w, w - 0.5 * tf.gradients(loss, [w])[0])
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(9, 5)), np.eye(3)[rng.integers(0, 3, 9)]
    with tf.Session("interpret") as session:
        session.run(tf.initialize_all_variables())
        weights = [session.run(step, {x: a, y: b}) for _ in range(3)][-1]

    expected = np.zeros((5, 3))
    for _ in range(3):
        e = np.exp(a @ expected)
        expected -= 0.5 * a.T @ (e / e.sum(1, keepdims=True) - b) / 9
    np.testing.assert_allclose(weights, expected, atol=1e-6)


def test_weights_of_unknown_shape_raise():
    """A weight of a free size, and a shape that no feed could have, raise ShapeError."""
    x = tf.placeholder(tf.float32, [2, None], name="x")
    with pytest.raises(ShapeError, match="'linear_weight' needs inputs of known length, got <tf"):
        tf.nn.linear(x, 3)
    with pytest.raises(ShapeError, match=r"fits <tf.Tensor 'x:0'.*got \[3, 4\]"):
        next(tf.infer_variable_shapes(x, {x: [3, 4]}))


def test_optimizers_of_equal_name_have_separate_slots():
    """Two Adam optimizers of one name share no slots."""
    w = tf.Variable([1.0, 2.0])
    steps = [tf.train.AdamOptimizer(0.1, name="Adam").minimize(w * w) for _ in range(2)]

    names = [v.name for v in tf.global_variables()]
    assert len(set(names)) == len(names) == 9
    with tf.Session("interpret") as session:
        session.run(tf.global_variables_initializer())
        session.run(steps)
        assert (session.run(w) < [1.0, 2.0]).all()
