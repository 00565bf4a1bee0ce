"""Programs of TensorFlow 1, each a function of the module that is called ``tf``.

TensorFlow runs them to write ``fixtures/programs.npz``, and tinyflow runs them in the tests. They
begin with given weights and keep every unit of a dropout, so that both compute the same numbers.
Each returns arrays by name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Arrays = dict[str, Any]


def drawn(seed: int, *shape: int) -> Any:
    """Return normal numbers that are equal in all programs."""
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def linear_regression(tf: Any) -> Arrays:
    """Train the get-started program of tensorflow.org: W, b, and placeholders without shapes."""
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
        results = session.run([w, b, loss], feeds)
        prediction = session.run(model, {x: 2.0})
    return {"w": results[0], "b": results[1], "loss": results[2], "one": prediction}


def softmax_regression(tf: Any) -> Arrays:
    """Train MNIST for beginners with images, labels and a learning rate without shapes."""
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
        results = session.run([w, b, loss, accuracy], {x: images, y: labels})
    return dict(zip(("w", "b", "loss", "accuracy"), results, strict=True))


def deep_mnist(tf: Any) -> Arrays:
    """Train a small MNIST for experts: reshape, convolution, pooling, dropout by keep_prob."""
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
        results = session.run([filters, dense, loss, *slopes], {x: images, y: labels, keep: 1.0})
    return dict(zip(("filters", "dense", "loss", "by_x", "by_filters"), results, strict=True))


def unknown_ranks(tf: Any) -> Arrays:
    """Call functions with a tensor whose rank only a run determines."""
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
        "zeros": tf.zeros(tf.shape(x)),
        "ones": tf.ones([count, 2], tf.int32),
        "filled": tf.fill(tf.shape(x)[:1], 3.5),
        "stopped": tf.stop_gradient([x, 2 * x]),
    }
    fetches |= dict(zip(("upper", "lower"), tf.unstack(x, 2), strict=True))
    with tf.Session() as session:
        results = session.run(fetches, {x: [[1, 2, -3, 4], [5, -6, 7, 8]]})
    return {name: np.asarray(value) for name, value in results.items()}


def stated_shapes(tf: Any) -> Arrays:
    """Use set_shape, defaults of any shape, and values assigned from a feed."""
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
        results = session.run([twice, product, default * 2, sums], {x: drawn(6, 2, 3)})
        fed = session.run([default * 2, sums], {default: 3, rows: drawn(7, 4, 3)})
        session.run(write, {given: 0.5})
        last = session.run(variable)
    names = ("twice", "product", "default", "rows", "fed_default", "fed_rows", "variable")
    return dict(zip(names, [*results, *fed, last], strict=True))


def second_derivatives(tf: Any) -> Arrays:
    """Take gradients of gradients with respect to a placeholder without a shape."""
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    slope = tf.gradients(x * x * x, x)[0]
    bend = tf.gradients(slope, x)[0]
    assert tf.gradients(x * x, [y]) == [None]
    assert tf.gradients(tf.stop_gradient(x * x), [x]) == [None]
    weighed = tf.gradients([x * y], [x, y], grad_ys=[y])
    with tf.Session() as session:
        results = session.run([slope, bend], {x: [1, 2]})
        number = session.run(bend, {x: 3})
        both = session.run(weighed, {x: [1, 2], y: [3, 4]})
    return {"slope": results[0], "bend": results[1], "number": number, "x": both[0], "y": both[1]}


def weighed_losses(tf: Any) -> Arrays:
    """Call every function of tf.losses with weights and reductions, and take gradients."""
    x = tf.Variable(drawn(11, 4, 3))
    labels = (drawn(12, 4, 3) > 0).astype(np.float32)
    rows, each = np.array([[1.0], [0.0], [2.0], [0.5]], np.float32), drawn(13, 4, 3) ** 2
    likely, classes = tf.sigmoid(x), np.array([0, 2, 1, 1], np.int32)
    lengths = tf.nn.l2_normalize(x, 1)
    kinds = {
        "absolute_difference": lambda **k: tf.losses.absolute_difference(labels, x, **k),
        "mean_squared_error": lambda **k: tf.losses.mean_squared_error(labels, x, **k),
        "huber_loss": lambda **k: tf.losses.huber_loss(labels, x, delta=0.5, **k),
        "hinge_loss": lambda **k: tf.losses.hinge_loss(labels, x, **k),
        "log_loss": lambda **k: tf.losses.log_loss(labels, likely, **k),
        "cosine": lambda **k: tf.losses.cosine_distance(labels, lengths, axis=1, **k),
        "sigmoid": lambda **k: tf.losses.sigmoid_cross_entropy(labels, x, label_smoothing=0.1, **k),
    }
    fetches = {}
    for name, loss in kinds.items():
        fetches[name] = loss()
        fetches[f"{name}_rows"] = loss(weights=rows)
        fetches[f"{name}_by_x"] = tf.gradients(fetches[f"{name}_rows"], x)[0]
    for reduction in ("none", "weighted_sum", "weighted_mean", "weighted_sum_over_batch_size"):
        fetches[reduction] = tf.losses.mean_squared_error(
            labels, x, weights=each, reduction=reduction
        )
    fetches["softmax"] = tf.losses.softmax_cross_entropy(
        np.eye(3, dtype=np.float32)[classes], x, weights=rows[:, 0], label_smoothing=0.2
    )
    fetches["sparse"] = tf.losses.sparse_softmax_cross_entropy(classes[:, None], x, weights=rows)
    fetches["pairs"] = tf.losses.mean_pairwise_squared_error(labels, x, weights=rows)
    fetches["nothing"] = tf.losses.absolute_difference(labels, x, weights=0.0)
    fetches["computed"] = tf.losses.compute_weighted_loss(x, rows)
    tf.losses.add_loss(tf.constant(2.0), "mine")
    fetches["mine"] = tf.losses.get_losses(loss_collection="mine")
    fetches["count"] = len(tf.losses.get_losses()) * tf.constant(1)
    fetches["regular"] = tf.losses.get_regularization_loss()
    scalars = [t for t in tf.losses.get_losses() if not t.get_shape().as_list()]
    fetches["total"] = tf.add_n(scalars)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return dict(session.run(fetches))


def more_optimizers(tf: Any) -> Arrays:
    """Train with Adadelta and Ftrl, with all their settings."""
    rules = {
        "adadelta": tf.train.AdadeltaOptimizer(0.5, rho=0.8, epsilon=1e-3),
        "adadelta_default": tf.train.AdadeltaOptimizer(),
        "ftrl": tf.train.FtrlOptimizer(0.3),
        "ftrl_regular": tf.train.FtrlOptimizer(
            0.3, -0.4, 0.2, l1_regularization_strength=0.3, l2_regularization_strength=0.1
        ),
        "ftrl_shrunk": tf.train.FtrlOptimizer(0.3, l2_shrinkage_regularization_strength=0.2),
    }
    results = {}
    for name, rule in rules.items():
        with tf.variable_scope(name):
            w = tf.Variable([1.0, -2.0, 0.1])
            step = rule.minimize(tf.reduce_sum(w * w + 0.5 * w))
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            for _ in range(4):
                session.run(step)
            results[name] = session.run(w)
    return results


def control_flow(tf: Any) -> Arrays:
    """Use branches, loops of known and of fed length, and accumulations, with gradients."""
    x = tf.placeholder(tf.float32, [3])
    flag, count = tf.placeholder(tf.bool), tf.placeholder(tf.int32, [])
    chosen = tf.cond(flag, lambda: x * 2, lambda: x - 1)
    by_x = tf.gradients(chosen, x)[0]
    case = tf.case(
        [(x[0] > 0, lambda: tf.constant(1)), (x[1] > 0, lambda: tf.constant(2))],
        default=lambda: tf.constant(3),
    )
    v = tf.Variable(0.0)
    counted = tf.cond(flag, lambda: tf.assign_add(v, 1.0), lambda: tf.assign_sub(v, 10.0))
    five = tf.while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * x), [0, x])
    power = tf.gradients(five[1], x)[0]
    i, product = tf.while_loop(
        lambda i, a: tf.less(i, count),
        lambda i, a: [tf.add(i, 1), a * x + 1],
        [tf.constant(0), tf.ones([3])],
    )
    halves = tf.while_loop(
        lambda a: tf.reduce_sum(a) > 1, lambda a: a / 2, [x * x], maximum_iterations=40
    )
    bounded = tf.while_loop(
        lambda a: tf.reduce_sum(a) < 30, lambda a: a * 2 + 1, [x * x], maximum_iterations=5
    )
    bounded_slope = tf.gradients(bounded, x)[0]
    rows = tf.constant(drawn(21, 4, 3))
    sums = tf.scan(lambda a, row: a * 0.5 + row, rows)
    pairs = tf.scan(
        lambda a, row: (a[0] + row[0], a[1] * row[1]),
        (rows, rows),
        initializer=(tf.zeros([3]), tf.ones([3])),
        reverse=True,
    )
    squares = tf.map_fn(lambda row: tf.reduce_sum(row * row), rows)
    last = tf.foldl(lambda a, row: a - row, rows)
    by_rows = tf.gradients(sums, rows)[0]
    fetches = [
        chosen,
        by_x,
        case,
        five[0],
        five[1],
        power,
        i,
        product,
        halves,
        bounded,
        bounded_slope,
        sums,
        pairs[0],
        pairs[1],
        squares,
        last,
        by_rows,
    ]
    names = (
        "chosen",
        "by_x",
        "case",
        "rounds",
        "five",
        "power",
        "i",
        "product",
        "halves",
        "bounded",
        "bounded_slope",
        "sums",
        "added",
        "multiplied",
        "squares",
        "last",
        "by_rows",
    )
    results = {}
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for k, feeds in enumerate(
            (
                {x: [1.5, -2.0, 0.5], flag: True, count: 3},
                {x: [-1.0, -2.0, 3.0], flag: False, count: 0},
            )
        ):
            values = session.run(fetches, feeds)
            results.update({f"{n}_{k}": value for n, value in zip(names, values, strict=True)})
            session.run(counted, {flag: k == 0})
            results[f"v_{k}"] = session.run(v)
    return results


def measures(tf: Any) -> Arrays:
    """Update tf.metrics over two batches."""
    labels, guesses = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None])
    weights = tf.placeholder(tf.float32, [None])
    x, y = (tf.cast(t, tf.float32) for t in (guesses, labels))
    results = {
        "accuracy": tf.metrics.accuracy(labels, guesses),
        "weighed": tf.metrics.accuracy(labels, guesses, weights),
        "mean": tf.metrics.mean(x),
        "squared": tf.metrics.mean_squared_error(y, x, weights),
        "root": tf.metrics.root_mean_squared_error(y, x),
        "absolute": tf.metrics.mean_absolute_error(y, x),
        "precision": tf.metrics.precision(labels, guesses),
        "recall": tf.metrics.recall(labels, guesses, weights),
    }
    out = {}
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        out["none"] = session.run(results["mean"][0])
        for k, batch in enumerate(([1, 0, 1, 1], [0, 1])):
            feeds = {
                labels: batch,
                guesses: [1, 1, 0, 1][: len(batch)],
                weights: [1.0, 0.5, 2.0, 0.0][: len(batch)],
            }
            updated = session.run({n: u for n, (_, u) in results.items()}, feeds)
            out.update({f"{n}_update_{k}": u for n, u in updated.items()})
        values = session.run({n: v for n, (v, _) in results.items()})
    return {**out, **values, "variables": np.array(len(tf.local_variables()) > 0)}


def pictures(tf: Any) -> Arrays:
    """Call tf.image with one image, with a batch, and with bytes."""
    one = tf.constant(np.abs(drawn(31, 5, 6, 3)) * 0.3)
    many = tf.constant(drawn(32, 2, 4, 5, 3))
    byte_image = tf.constant((np.abs(drawn(33, 5, 6, 3)) * 80).astype(np.uint8))
    image = tf.image
    fetches = {
        "left": image.flip_left_right(one),
        "up": image.flip_up_down(many),
        "turned": image.transpose_image(one),
        "grey": image.rgb_to_grayscale(many),
        "three": image.grayscale_to_rgb(one[:, :, :1]),
        "brighter": image.adjust_brightness(one, 0.2),
        "contrast": image.adjust_contrast(many, 1.5),
        "standard": image.per_image_standardization(one),
        "crop": image.crop_to_bounding_box(many, 1, 2, 2, 3),
        "pad": image.pad_to_bounding_box(one, 1, 2, 8, 9),
        "middle": image.central_crop(one, 0.5),
        "boxed": image.resize_image_with_crop_or_pad(one, 3, 9),
        "bilinear": image.resize_bilinear(many, [7, 3]),
        "aligned": image.resize_bilinear(many, [7, 3], align_corners=True),
        "nearest": image.resize_nearest_neighbor(many, [3, 8]),
        "resized": image.resize_images(one, [8, 4]),
        "shaped": image.resize_images(one, [10, 9], preserve_aspect_ratio=True),
        "area": image.resize_images(many, [2, 2], method=image.ResizeMethod.AREA),
        "floats": image.convert_image_dtype(byte_image, tf.float32),
        "bytes": image.convert_image_dtype(one, tf.uint8, saturate=True),
        "bright_bytes": image.adjust_brightness(byte_image, 0.1),
    }
    with tf.Session() as session:
        return dict(session.run(fetches))


def norms_and_sequences(tf: Any) -> Arrays:
    """Call tf.norm with all its orders, tf.nn.conv1d, and tf.split of a multiple of a free size."""
    x, n = tf.constant(drawn(41, 2, 3, 4)), tf.placeholder(tf.float32, [None, 2])
    fetches = {f"norm_{o}": tf.norm(x, o, axis=1) for o in ("euclidean", 1, 2, 3.5, np.inf)}
    fetches |= {f"matrix_{o}": tf.norm(x, o, axis=[0, 2]) for o in ("fro", 1, np.inf)}
    fetches["all"] = tf.norm(x)
    fetches["kept"] = tf.norm(x, axis=-1, keepdims=True)
    fetches["slope"] = tf.gradients(tf.norm(x, axis=1), x)[0]
    sequence, taps = tf.constant(drawn(42, 2, 7, 3)), tf.constant(drawn(43, 3, 3, 4))
    fetches["conv1d"] = tf.nn.conv1d(sequence, taps, 2, "SAME")
    first, second = tf.split(tf.concat([n, 2 * n], 0), 2)
    fetches |= {"first": first, "second": second}
    with tf.Session() as session:
        return dict(session.run(fetches, {n: drawn(44, 3, 2)}))


class Cell:
    """A recurrent cell as TensorFlow's networks take them, with given weights."""

    def __init__(self, tf: Any, seed: int) -> None:
        self.tf, self.kernel = tf, tf.constant(drawn(seed, 5, 3))
        self.state_size = self.output_size = 3

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Zeros."""
        return self.tf.zeros([batch_size, 3], dtype)

    def __call__(self, x: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """One step."""
        new = self.tf.tanh(self.tf.matmul(self.tf.concat([x, state], 1), self.kernel))
        return new, new


def both_directions(tf: Any) -> Arrays:
    """Run bidirectional_dynamic_rnn on ragged sequences, and with steps first."""
    x, lengths = tf.constant(drawn(51, 3, 5, 2)), np.array([5, 2, 0], np.int32)
    cells = Cell(tf, 52), Cell(tf, 53)
    outputs, states = tf.nn.bidirectional_dynamic_rnn(*cells, x, lengths, dtype=tf.float32)
    turned, ends = tf.nn.bidirectional_dynamic_rnn(
        *cells, tf.transpose(x, [1, 0, 2]), dtype=tf.float32, time_major=True
    )
    with tf.Session() as session:
        results = session.run([*outputs, *states, *turned, *ends])
    return {f"result_{k}": value for k, value in enumerate(results)}


PROGRAMS = (
    linear_regression,
    softmax_regression,
    deep_mnist,
    unknown_ranks,
    stated_shapes,
    second_derivatives,
    weighed_losses,
    more_optimizers,
    control_flow,
    measures,
    pictures,
    norms_and_sequences,
    both_directions,
)
