"""Networks over tabular data: numbers and categories, pairs and experts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.frontends.tf_graphdef.reference.networks.network import (
    Network,
    drawn,
    network,
    picked,
    weigh,
)


def networks(tf: Any) -> Iterator[Network]:
    """Yield all networks."""
    for make in (
        _mlp,
        _embedding_bag,
        _cross,
        _wide_and_deep,
        _deepfm,
        _siamese,
        _capsules,
        _experts,
        _highway,
        _graph_convolution,
        _radial,
        _module,
    ):
        yield make(tf)


def _mlp(tf: Any) -> Network:
    layers = tf.keras.layers
    x = row = layers.Input((10,))
    for activation in ("relu", "elu", "selu", "softplus", "softsign", "swish", "gelu", "tanh"):
        x = layers.Dense(8, activation=activation)(x)
    return network(tf, "mlp", row, layers.Dense(3, activation="softmax")(x), x=drawn(5, 10))


def _embedding_bag(tf: Any) -> Network:
    layers, ops = tf.keras.layers, tf.keras.ops
    words, weights = layers.Input((8,), dtype="int32"), layers.Input((8,))
    results = layers.Embedding(20, 5)(words) * ops.expand_dims(weights, -1)
    there = ops.cast(ops.not_equal(words, 0), "float32")
    mean = ops.sum(results * ops.expand_dims(there, -1), 1) / (ops.sum(there, 1, keepdims=True) + 1)
    return network(
        tf,
        "embedding_bag",
        [words, weights],
        layers.Dense(2)(mean),
        words=picked(20, 4, 8),
        weights=drawn(4, 8),
    )


def _cross(tf: Any) -> Network:
    """Return a deep and cross network."""
    layers = tf.keras.layers
    row = layers.Input((6,))
    x = row
    for _ in range(3):
        x = layers.Add()([layers.Multiply()([row, layers.Dense(6)(x)]), x])
    deep = layers.Dense(8, activation="relu")(layers.Dense(8, activation="relu")(row))
    out = layers.Dense(1, activation="sigmoid")(layers.Concatenate()([x, deep]))
    return network(tf, "cross_network", row, out, x=drawn(5, 6))


def _wide_and_deep(tf: Any) -> Network:
    layers, ops = tf.keras.layers, tf.keras.ops
    kind, numbers = layers.Input((3,), dtype="int32"), layers.Input((4,))
    wide = ops.reshape(ops.one_hot(kind, 7), (-1, 21))
    crossed = ops.one_hot(ops.mod(kind[:, 0] * 7 + kind[:, 1], 11), 11)
    deep = layers.Concatenate()([layers.Flatten()(layers.Embedding(7, 3)(kind)), numbers])
    deep = layers.Dense(6, activation="relu")(layers.BatchNormalization()(deep))
    out = layers.Dense(1)(layers.Concatenate()([wide, crossed])) + layers.Dense(1)(deep)
    return network(
        tf,
        "wide_and_deep",
        [kind, numbers],
        ops.sigmoid(out),
        kind=picked(7, 4, 3),
        numbers=drawn(4, 4),
    )


def _deepfm(tf: Any) -> Network:
    layers, ops = tf.keras.layers, tf.keras.ops
    fields = layers.Input((5,), dtype="int32")
    first = ops.sum(layers.Embedding(30, 1)(fields), axis=(1, 2))
    results = layers.Embedding(30, 4)(fields)
    second = 0.5 * ops.sum(
        ops.square(ops.sum(results, 1)) - ops.sum(ops.square(results), 1), axis=1
    )
    deep = layers.Dense(1)(layers.Dense(8, activation="relu")(layers.Flatten()(results)))
    out = ops.sigmoid(first + second + ops.squeeze(deep, 1))
    return network(tf, "deepfm", fields, out, x=picked(30, 4, 5))


def _siamese(tf: Any) -> Network:
    layers, ops = tf.keras.layers, tf.keras.ops
    left, right = layers.Input((8, 8, 1)), layers.Input((8, 8, 1))
    image = layers.Input((8, 8, 1))
    x = layers.Conv2D(4, 3, activation="relu")(image)
    x = layers.Dense(6)(layers.Flatten()(layers.MaxPooling2D()(x)))
    tower = tf.keras.Model(image, layers.UnitNormalization()(x))
    a, b = tower(left), tower(right)
    distance = ops.sqrt(ops.maximum(ops.sum(ops.square(a - b), 1, keepdims=True), 1e-7))
    cosine = layers.Dot(axes=1, normalize=True)([a, b])
    return network(
        tf,
        "siamese",
        [left, right],
        [distance, cosine],
        left=drawn(3, 8, 8, 1),
        right=drawn(3, 8, 8, 1, seed=1),
    )


def _capsules(tf: Any) -> Network:
    """Return a capsule network with three routing iterations."""
    layers, ops = tf.keras.layers, tf.keras.ops
    image = layers.Input((9, 9, 1))

    def squash(s: Any) -> Any:
        square = ops.sum(ops.square(s), axis=-1, keepdims=True)
        return s * (square / (1 + square) / ops.sqrt(square + 1e-7))

    x = layers.Conv2D(8, 5, 2, activation="relu")(image)
    u = squash(ops.reshape(x, (-1, 9, 8)))
    votes = ops.reshape(layers.Dense(3 * 4)(u), (-1, 9, 3, 4))
    logits = ops.zeros_like(votes[..., 0])
    for turn in range(3):
        share = ops.expand_dims(ops.softmax(logits, axis=-1), -1)
        v = squash(ops.sum(share * votes, axis=1, keepdims=True))
        if turn < 2:
            logits = logits + ops.sum(votes * v, axis=-1)
    return network(tf, "capsules", image, ops.norm(v[:, 0], axis=-1), x=drawn(2, 9, 9, 1))


def _experts(tf: Any) -> Network:
    """Return a mixture of the two best of four experts."""
    layers, ops = tf.keras.layers, tf.keras.ops
    row = layers.Input((6,))
    gate = layers.Dense(4)(row)
    best, which = ops.top_k(gate, 2)
    answers = ops.stack([layers.Dense(5, activation="relu")(row) for _ in range(4)], axis=1)
    chosen = ops.take_along_axis(answers, ops.expand_dims(which, -1), axis=1)
    out = ops.sum(ops.expand_dims(ops.softmax(best), -1) * chosen, axis=1)
    return network(tf, "experts", row, [out, which], x=drawn(4, 6))


def _highway(tf: Any) -> Network:
    layers = tf.keras.layers
    x = row = layers.Input((7,))
    for _ in range(3):
        gate = layers.Dense(7, activation="sigmoid")(x)
        y = layers.PReLU()(layers.Dense(7)(x))
        x = gate * y + (1.0 - gate) * x
    return network(tf, "highway", row, x, x=drawn(4, 7))


def _graph_convolution(tf: Any) -> Network:
    layers, ops = tf.keras.layers, tf.keras.ops
    nodes, edges = layers.Input((5, 4)), layers.Input((5, 5))
    near = ops.abs(edges) + ops.eye(5)
    degree = ops.rsqrt(ops.sum(near, axis=-1))
    near = near * ops.expand_dims(degree, -1) * ops.expand_dims(degree, -2)
    x = ops.relu(ops.matmul(near, layers.Dense(6)(nodes)))
    x = ops.matmul(near, layers.Dense(3)(x))
    return network(
        tf,
        "graph_convolution",
        [nodes, edges],
        ops.log_softmax(x),
        nodes=drawn(2, 5, 4),
        edges=drawn(2, 5, 5),
    )


def _radial(tf: Any) -> Network:
    """Return radial basis functions, with distances computed by a product."""
    layers, ops = tf.keras.layers, tf.keras.ops
    row = layers.Input((4,))
    to = layers.Dense(6, use_bias=False)
    square = ops.sum(ops.square(row), 1, keepdims=True) - 2.0 * to(row) + 1.5
    return network(tf, "radial", row, layers.Dense(2)(ops.exp(-ops.abs(square))), x=drawn(4, 4))


def _module(tf: Any) -> Network:
    """Return a network of plain TensorFlow variables and products, without Keras."""
    sizes = ((6, 8), (8, 8), (8, 2))
    weights = [tf.Variable(tf.zeros(s), name=f"kernel{k}") for k, s in enumerate(sizes)]
    biases = [tf.Variable(tf.zeros(s[1:]), name=f"bias{k}") for k, s in enumerate(sizes)]
    weigh([*weights, *biases], "module")

    def function(x: Any) -> Any:
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            x = tf.nn.crelu(tf.matmul(x, w) + b)[:, ::2]
            x = tf.nn.l2_normalize(x, axis=-1) + tf.sin(x)
        logits = tf.nn.bias_add(tf.matmul(x, weights[-1]), biases[-1])
        return {"logits": logits, "class": tf.argmax(logits, -1)}

    return Network("module", function, {"x": drawn(4, 6)})
