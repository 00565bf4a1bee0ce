"""Networks over sequences: temporal convolutions and recurrent cells."""

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
    for make in (
        _wavenet,
        _tcn,
        _text_cnn,
        _lstm,
        _gru,
        _bidirectional,
        _stacked,
        _attending,
        _sequence_to_sequence,
        _quasi_recurrent,
    ):
        yield make(tf)


def _wavenet(tf: Any) -> Network:
    layers = tf.keras.layers
    wave = layers.Input((20, 1))
    x, skips = layers.Conv1D(6, 2, padding="causal")(wave), []
    for rate in (1, 2, 4):
        tanh = layers.Conv1D(6, 2, padding="causal", dilation_rate=rate, activation="tanh")(x)
        gate = layers.Conv1D(6, 2, padding="causal", dilation_rate=rate, activation="sigmoid")(x)
        y = layers.Multiply()([tanh, gate])
        skips.append(layers.Conv1D(8, 1)(y))
        x = layers.Add()([x, layers.Conv1D(6, 1)(y)])
    x = layers.Conv1D(8, 1, activation="relu")(layers.ReLU()(layers.Add()(skips)))
    return network(tf, "wavenet", wave, layers.Softmax()(layers.Conv1D(8, 1)(x)), x=drawn(2, 20, 1))


def _tcn(tf: Any) -> Network:
    layers = tf.keras.layers
    series = layers.Input((16, 3))
    x = layers.Conv1D(6, 1)(series)
    for rate in (1, 2):
        y = x
        for _ in range(2):
            y = layers.Conv1D(6, 3, padding="causal", dilation_rate=rate)(y)
            y = layers.SpatialDropout1D(0.1)(layers.ReLU()(layers.LayerNormalization()(y)))
        x = layers.ReLU()(layers.Add()([x, y]))
    return network(tf, "tcn", series, layers.Dense(2)(x[:, -1]), x=drawn(2, 16, 3))


def _text_cnn(tf: Any) -> Network:
    layers = tf.keras.layers
    words = layers.Input((12,), dtype="int32")
    x = layers.Embedding(30, 6)(words)
    results = [
        layers.GlobalMaxPooling1D()(layers.Conv1D(5, window, activation="relu")(x))
        for window in (2, 3, 4)
    ]
    x = layers.Dense(3, activation="softmax")(layers.Concatenate()(results))
    return network(tf, "text_cnn", words, x, x=picked(30, 3, 12))


def _lstm(tf: Any) -> Network:
    layers = tf.keras.layers
    series = layers.Input((7, 3))
    x = layers.LSTM(5, unroll=True)(series)
    return network(tf, "lstm", series, layers.Dense(2)(x), x=drawn(3, 7, 3))


def _gru(tf: Any) -> Network:
    layers = tf.keras.layers
    series = layers.Input((6, 3))
    x = layers.GRU(5, unroll=True, return_sequences=True)(series)
    return network(tf, "gru", series, layers.Dense(2)(x), x=drawn(3, 6, 3))


def _bidirectional(tf: Any) -> Network:
    layers = tf.keras.layers
    words = layers.Input((6,), dtype="int32")
    x = layers.Embedding(20, 4)(words)
    x = layers.Bidirectional(layers.LSTM(4, unroll=True, return_sequences=True))(x)
    x = layers.Bidirectional(layers.GRU(3, unroll=True, reset_after=False), merge_mode="sum")(x)
    return network(tf, "bidirectional", words, layers.Dense(2)(x), x=picked(20, 3, 6))


def _stacked(tf: Any) -> Network:
    """Return two recurrent layers, of which the first passes on its states."""
    layers = tf.keras.layers
    series = layers.Input((5, 3))
    x, h, c = layers.LSTM(4, unroll=True, return_sequences=True, return_state=True)(series)
    x = layers.LSTM(4, unroll=True, go_backwards=True)(x, initial_state=[h, c])
    y = layers.SimpleRNN(3, unroll=True)(series)
    return network(tf, "stacked_rnn", series, [x, y], x=drawn(3, 5, 3))


def _attending(tf: Any) -> Network:
    """Return attention over the states of a recurrent layer."""
    layers = tf.keras.layers
    series = layers.Input((6, 3))
    x = layers.GRU(4, unroll=True, return_sequences=True)(series)
    score = layers.Dense(1, use_bias=False)(layers.Dense(4, activation="tanh")(x))
    weight = layers.Softmax(axis=1)(score)
    context = tf.keras.ops.sum(weight * x, axis=1)
    outputs = [layers.Dense(2)(context), weight]
    return network(tf, "attending_rnn", series, outputs, x=drawn(3, 6, 3))


def _sequence_to_sequence(tf: Any) -> Network:
    layers = tf.keras.layers
    source, target = layers.Input((5,), dtype="int32"), layers.Input((4,), dtype="int32")
    embed = layers.Embedding(16, 4)
    _, h, c = layers.LSTM(4, unroll=True, return_state=True)(embed(source))
    x = layers.LSTM(4, unroll=True, return_sequences=True)(embed(target), initial_state=[h, c])
    x = layers.Attention()([x, embed(source)])
    return network(
        tf,
        "sequence_to_sequence",
        [source, target],
        layers.Dense(16, activation="softmax")(x),
        source=picked(16, 2, 5),
        target=picked(16, 2, 4, seed=1),
    )


def _quasi_recurrent(tf: Any) -> Network:
    """Return a quasi-recurrent network: gates from convolutions, and a running product."""
    layers = tf.keras.layers
    series = layers.Input((8, 3))
    z = layers.Conv1D(4, 2, padding="causal", activation="tanh")(series)
    f = layers.Conv1D(4, 2, padding="causal", activation="sigmoid")(series)
    ops = tf.keras.ops
    decay = ops.cumprod(f * 0.5 + 0.5, axis=1)
    state = decay * ops.cumsum((1.0 - f) * z / decay, axis=1)
    return network(tf, "quasi_recurrent", series, layers.Dense(2)(state), x=drawn(2, 8, 3))
