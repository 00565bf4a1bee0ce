"""Programs of TensorFlow 1, each a function of the module that is called ``tf``.

TensorFlow runs them to write ``fixtures/programs.npz``, tinyflow runs them in the tests. They begin
with given weights and keep every unit of a dropout, so that both give the same numbers. Each
returns arrays by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]


def drawn(seed: int, *shape: int) -> Any:
    """Normal numbers, the same wherever a program runs."""
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def linear_regression(tf: Any) -> Arrays:
    """The get-started program of tensorflow.org: W, b and x, y without shapes."""
    w = tf.Variable([0.3], dtype=tf.float32)
    b = tf.Variable([-0.3], dtype=tf.float32)
    x = tf.placeholder(tf.float32)
    y = tf.placeholder(tf.float32)
    model = w * x + b
    loss = tf.reduce_sum(tf.square(model - y))
    train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    feeds = {x: [1, 2, 3, 4], y: [0, -1, -2, -3]}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(60):
            session.run(train, feeds)
        found = session.run([w, b, loss], feeds)
        one = session.run(model, {x: 2.0})
    return {"w": found[0], "b": found[1], "loss": found[2], "one": one}


def softmax_regression(tf: Any) -> Arrays:
    """MNIST for beginners, of images, labels and a learning rate without shapes."""
    x, y, rate = (tf.placeholder(tf.float32) for _ in range(3))
    w, b = tf.Variable(tf.zeros([5, 3])), tf.Variable(tf.zeros([3]))
    logits = tf.matmul(x, w) + b
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train = tf.train.AdamOptimizer(rate).minimize(loss)
    right = tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1))
    accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
    images, labels = drawn(1, 20, 5), np.eye(3)[np.arange(20) % 3]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for at in (0, 4, 8, 12):
            part = slice(at, at + 4)
            session.run(train, {x: images[part], y: labels[part], rate: 0.1})
        found = session.run([w, b, loss, accuracy], {x: images, y: labels})
    return dict(zip(("w", "b", "loss", "accuracy"), found, strict=True))


def deep_mnist(tf: Any) -> Arrays:
    """MNIST for experts, small: reshaped images, a convolution, a pool, dropout by keep_prob."""
    x, y, keep = tf.placeholder(tf.float32), tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    filters = tf.Variable(0.5 * drawn(2, 3, 3, 1, 2))
    dense = tf.Variable(0.5 * drawn(3, 8, 3))
    image = tf.reshape(x, [-1, 4, 4, 1])
    hidden = tf.nn.relu(tf.nn.conv2d(image, filters, strides=[1, 1, 1, 1], padding="SAME"))
    pooled = tf.nn.max_pool(hidden, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")
    flat = tf.reshape(pooled, [-1, 2 * 2 * 2])
    logits = tf.matmul(tf.nn.dropout(flat, keep), dense)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
    train = tf.train.AdamOptimizer(1e-2).minimize(loss)
    slopes = tf.gradients(loss, [x, filters])
    shapes = [t.get_shape().as_list() for t in (image, pooled, flat, logits)]
    assert shapes == [[None, 4, 4, 1], [None, 2, 2, 2], [None, 8], [None, 3]]
    images, labels = drawn(4, 6, 16), np.eye(3)[np.arange(6) % 3]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for part in (slice(0, 4), slice(4, 6)):
            session.run(train, {x: images[part], y: labels[part], keep: 1.0})
        found = session.run([filters, dense, loss, *slopes], {x: images, y: labels, keep: 1.0})
    return dict(zip(("filters", "dense", "loss", "by_x", "by_filters"), found, strict=True))


def unknown_ranks(tf: Any) -> Arrays:
    """What is asked of a tensor whose rank only a run knows."""
    x = tf.placeholder(tf.float32)
    count = tf.shape(x)[0]
    mean, variance = tf.nn.moments(x, [0])
    first, second = tf.split(x, 2, axis=1)
    fetches = {
        "count": count,
        "rank": tf.rank(x),
        "size": tf.size(x),
        "rows": tf.reshape(x, [count, -1]),
        "doubled": tf.reshape(x, tf.stack([count * 2, -1])),
        "item": x[0],
        "columns": x[:, 1:],
        "positive": tf.where(x > 0, x, tf.zeros_like(x)),
        "first": first,
        "second": second,
        "sum": tf.add_n([x, x, x]),
        "mean": mean,
        "variance": variance,
        "stacked": tf.stack([x, x]),
        "turned": tf.transpose(x),
        "kept": tf.reduce_sum(x, 1, keepdims=True),
        "chosen": tf.gather(x, [1]),
        "product": tf.matmul(x, tf.ones([4, 2])),
        "stopped": tf.stop_gradient([x, 2 * x]),
    }
    fetches |= dict(zip(("upper", "lower"), tf.unstack(x, 2), strict=True))
    with tf.Session() as session:
        found = session.run(fetches, {x: [[1, 2, -3, 4], [5, -6, 7, 8]]})
    return {name: np.asarray(value) for name, value in found.items()}


def stated_shapes(tf: Any) -> Arrays:
    """set_shape after the fact, defaults of any shape, values assigned from a feed."""
    x = tf.placeholder(tf.float32)
    twice = 2 * x
    x.set_shape([None, 3])
    product = tf.matmul(x, tf.ones([int(x.shape[1]), 2]))
    twice.set_shape([2, 3])
    assert twice.get_shape().as_list() == [2, 3]
    assert tf.placeholder(tf.float32).get_shape().ndims is None
    default = tf.placeholder_with_default(drawn(5, 2), None)
    rows = tf.placeholder_with_default(drawn(5, 2, 3), [None, 3])
    assert rows.get_shape().as_list() == [None, 3]
    variable, given = tf.Variable(0.1), tf.placeholder(tf.float32)
    write = tf.assign(variable, given)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        sums = tf.reduce_sum(rows, 1)
        found = session.run([twice, product, default * 2, sums], {x: drawn(6, 2, 3)})
        fed = session.run([default * 2, sums], {default: 3, rows: drawn(7, 4, 3)})
        session.run(write, {given: 0.5})
        last = session.run(variable)
    names = ("twice", "product", "default", "rows", "fed_default", "fed_rows", "variable")
    return dict(zip(names, [*found, *fed, last], strict=True))


def second_derivatives(tf: Any) -> Arrays:
    """Gradients of gradients by a placeholder without a shape; None where nothing is joined."""
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    slope = tf.gradients(x * x * x, x)[0]
    bend = tf.gradients(slope, x)[0]
    assert tf.gradients(x * x, [y]) == [None]
    assert tf.gradients(tf.stop_gradient(x * x), [x]) == [None]
    weighed = tf.gradients([x * y], [x, y], grad_ys=[y])
    with tf.Session() as session:
        found = session.run([slope, bend], {x: [1, 2]})
        number = session.run(bend, {x: 3})
        both = session.run(weighed, {x: [1, 2], y: [3, 4]})
    return {"slope": found[0], "bend": found[1], "number": number, "x": both[0], "y": both[1]}


PROGRAMS = (
    linear_regression,
    softmax_regression,
    deep_mnist,
    unknown_ranks,
    stated_shapes,
    second_derivatives,
)
