"""Networks with attention, and networks that mix tokens without it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.frontends.tf_graphdef.reference.networks.network import (
    Network,
    drawn,
    network,
    picked,
)


def networks(tf: Any) -> Iterator[Network]:
    """Yield all networks."""
    for make in (_encoder, _decoder, _cross, _vit, _swin, _mixer, _gmlp, _linear_attention):
        yield make(tf)


def _embedded(tf: Any, words: Any, count: int, length: int, wide: int) -> Any:
    """Embed words and positions."""
    layers, ops = tf.keras.layers, tf.keras.ops
    places = layers.Embedding(length, wide)(ops.arange(length))
    return layers.Embedding(count, wide)(words) + places


def _block(tf: Any, x: Any, heads: int, **how: Any) -> Any:
    """Apply attention and two dense layers, each after a norm."""
    layers = tf.keras.layers
    wide = x.shape[-1]
    y = layers.LayerNormalization(epsilon=1e-6)(x)
    x = layers.Add()([x, layers.MultiHeadAttention(heads, wide // heads)(y, y, **how)])
    y = layers.LayerNormalization(epsilon=1e-6)(x)
    y = layers.Dense(wide)(layers.Dense(2 * wide, activation="gelu")(y))
    return layers.Add()([x, y])


def _encoder(tf: Any) -> Network:
    """Return an encoder like BERT, in which words that are 0 are masked as padding."""
    layers = tf.keras.layers
    words = layers.Input((6,), dtype="int32")
    x = _embedded(tf, words, 24, 6, 8)
    mask = tf.keras.ops.expand_dims(tf.keras.ops.not_equal(words, 0), 1)
    for _ in range(2):
        y = layers.MultiHeadAttention(2, 4)(x, x, attention_mask=mask)
        x = layers.LayerNormalization(epsilon=1e-12)(layers.Add()([x, y]))
        y = layers.Dense(8)(layers.Dense(16, activation="gelu")(x))
        x = layers.LayerNormalization(epsilon=1e-12)(layers.Add()([x, y]))
    pooled = layers.Dense(8, activation="tanh")(x[:, 0])
    return network(tf, "encoder", words, [x, pooled], x=picked(5, 3, 6))


def _decoder(tf: Any) -> Network:
    """Return a decoder like GPT, with causal attention."""
    layers = tf.keras.layers
    words = layers.Input((7,), dtype="int32")
    x = _embedded(tf, words, 24, 7, 8)
    for _ in range(2):
        x = _block(tf, x, 2, use_causal_mask=True)
    x = layers.LayerNormalization()(x)
    return network(tf, "decoder", words, layers.Dense(24)(x), x=picked(24, 2, 7))


def _cross(tf: Any) -> Network:
    """Return learned queries that attend to an encoder's output, with fewer keys than heads."""
    layers = tf.keras.layers
    visited, asked = layers.Input((6, 8)), layers.Input((3, 8))
    x = layers.GroupQueryAttention(4, 4, 2)(asked, visited)
    x = layers.RMSNormalization()(layers.Add()([asked, x]))
    gate, up = layers.Dense(12, activation="silu")(x), layers.Dense(12)(x)
    x = layers.Add()([x, layers.Dense(8)(layers.Multiply()([gate, up]))])
    arrays = {"seen": drawn(2, 6, 8), "asked": drawn(2, 3, 8)}
    return network(tf, "cross_attention", [visited, asked], x, **arrays)


def _vit(tf: Any) -> Network:
    layers, ops = tf.keras.layers, tf.keras.ops
    image = layers.Input((8, 8, 3))
    x = layers.Reshape((4, 8))(layers.Conv2D(8, 4, 4)(image))
    token = layers.Dense(8, use_bias=False)(ops.ones_like(x[:, :1]))
    x = layers.Concatenate(axis=1)([token, x])
    x = x + layers.Embedding(5, 8)(ops.arange(5))
    for _ in range(2):
        x = _block(tf, x, 2)
    return network(tf, "vit", image, layers.Dense(4)(x[:, 0]), x=drawn(2, 8, 8, 3))


def _swin(tf: Any) -> Network:
    """Return attention inside windows, which are shifted by half in every second layer."""
    layers, ops = tf.keras.layers, tf.keras.ops
    image = layers.Input((8, 8, 8))

    def attended(x: Any, move: int) -> Any:
        y = layers.LayerNormalization()(x)
        y = ops.roll(y, (-move, -move), (1, 2)) if move else y
        y = ops.transpose(ops.reshape(y, (-1, 2, 4, 2, 4, 8)), (0, 1, 3, 2, 4, 5))
        y = ops.reshape(y, (-1, 16, 8))
        qkv = ops.transpose(ops.reshape(layers.Dense(24)(y), (-1, 16, 3, 2, 4)), (2, 0, 3, 1, 4))
        score = ops.matmul(qkv[0] * 0.5, ops.transpose(qkv[1], (0, 1, 3, 2)))
        y = ops.matmul(ops.softmax(score, axis=-1), qkv[2])
        y = layers.Dense(8)(ops.reshape(ops.transpose(y, (0, 2, 1, 3)), (-1, 16, 8)))
        y = ops.transpose(ops.reshape(y, (-1, 2, 2, 4, 4, 8)), (0, 1, 3, 2, 4, 5))
        y = ops.reshape(y, (-1, 8, 8, 8))
        return x + (ops.roll(y, (move, move), (1, 2)) if move else y)

    x = attended(attended(image, 0), 2)
    parts = [x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]]
    x = layers.LayerNormalization()(layers.Concatenate()(parts))
    return network(tf, "swin", image, layers.Dense(8, use_bias=False)(x), x=drawn(2, 8, 8, 8))


def _mixer(tf: Any) -> Network:
    layers = tf.keras.layers
    image = layers.Input((8, 8, 3))
    x = layers.Reshape((4, 8))(layers.Conv2D(8, 4, 4)(image))
    for _ in range(2):
        y = layers.Permute((2, 1))(layers.LayerNormalization()(x))
        y = layers.Dense(4)(layers.Dense(6, activation="gelu")(y))
        x = layers.Add()([x, layers.Permute((2, 1))(y)])
        y = layers.Dense(16, activation="gelu")(layers.LayerNormalization()(x))
        x = layers.Add()([x, layers.Dense(8)(y)])
    x = layers.GlobalAveragePooling1D()(layers.LayerNormalization()(x))
    return network(tf, "mixer", image, layers.Dense(4)(x), x=drawn(2, 8, 8, 3))


def _gmlp(tf: Any) -> Network:
    layers, ops = tf.keras.layers, tf.keras.ops
    tokens = layers.Input((6, 8))
    x = tokens
    for _ in range(2):
        y = layers.Dense(16, activation="gelu")(layers.LayerNormalization()(x))
        u, v = ops.split(y, 2, axis=-1)
        v = ops.transpose(layers.LayerNormalization()(v), (0, 2, 1))
        v = ops.transpose(layers.Dense(6)(v), (0, 2, 1))
        x = layers.Add()([x, layers.Dense(8)(u * v)])
    return network(tf, "gmlp", tokens, x, x=drawn(2, 6, 8))


def _linear_attention(tf: Any) -> Network:
    """Return attention as a running sum over the past, with rotary positions and no softmax."""
    layers, ops = tf.keras.layers, tf.keras.ops
    tokens = layers.Input((5, 8))
    q, k, v = (layers.Dense(8)(tokens) for _ in range(3))
    angle = ops.expand_dims(ops.arange(5, dtype="float32"), 1) * ops.convert_to_tensor(
        [1.0, 0.1, 0.01, 0.001]
    )

    def turned(x: Any) -> Any:
        a, b = x[..., :4], x[..., 4:]
        cos, sin = ops.cos(angle), ops.sin(angle)
        return ops.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)

    q, k = ops.elu(turned(q)) + 1.0, ops.elu(turned(k)) + 1.0
    past = ops.cumsum(ops.einsum("bti,btj->btij", k, v), axis=1)
    out = ops.einsum("bti,btij->btj", q, past)
    norm = ops.einsum("bti,bti->bt", q, ops.cumsum(k, axis=1))
    out = out / (ops.expand_dims(norm, -1) + 1e-6)
    return network(tf, "linear_attention", tokens, layers.Dense(8)(out), x=drawn(2, 5, 8))
