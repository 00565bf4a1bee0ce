"""Specimens of recurrent cells, against definitions in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from tests.ops.specimens import call, calls

Array = Any

sigmoid = special.expit


def simple_rnn(x: Array, h: Array, w: Array, u: Array, b: Array, activation: str = "tanh") -> Array:
    """Return the next state of a simple cell."""
    z = x @ w + h @ u + b
    return np.tanh(z) if activation == "tanh" else np.maximum(z, 0)


def lstm(
    x: Array, h: Array, c: Array, w: Array, u: Array, b: Array, forget_bias: float = 0.0
) -> tuple[Array, Array]:
    """Return the next h and c, with the gates in the order i, f, c, o."""
    i, f, g, o = np.split(x @ w + h @ u + b, 4, 1)
    next_c = sigmoid(f + forget_bias) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(next_c), next_c


def lstm_block(
    x: Array,
    c: Array,
    h: Array,
    w: Array,
    b: Array,
    forget_bias: float = 1.0,
    cell_clip: float = -1.0,
) -> tuple[Array, ...]:
    """Return the results of TensorFlow's LSTMBlockCell, with the gates in the order i, c, f, o."""
    i, ci, f, o = np.split(np.concatenate([x, h], 1) @ w + b, 4, 1)
    i, ci, f, o = sigmoid(i), np.tanh(ci), sigmoid(f + forget_bias), sigmoid(o)
    cs = ci * i + c * f
    cs = np.clip(cs, -cell_clip, cell_clip) if cell_clip > 0 else cs
    return i, cs, f, o, ci, np.tanh(cs), np.tanh(cs) * o


def gru(x: Array, h: Array, w: Array, u: Array, b: Array, reset_after: bool = True) -> Array:
    """Return the next state, with the gates in the order z, r, h."""
    n = h.shape[1]
    a = x @ w + (b[0] if reset_after else b)
    r = h @ u + (b[1] if reset_after else 0)
    z, reset = sigmoid(a[:, :n] + r[:, :n]), sigmoid(a[:, n : 2 * n] + r[:, n : 2 * n])
    last = reset * r[:, 2 * n :] if reset_after else (reset * h) @ u[:, 2 * n :]
    return z * h + (1 - z) * np.tanh(a[:, 2 * n :] + last)


calls(
    "simple_rnn_cell",
    simple_rnn,
    [
        call((3, 4), (3, 5), (4, 5), (5, 5), (5,)),
        call((3, 4), (3, 5), (4, 5), (5, 5), (5,), activation="relu"),
    ],
    slack=60,
)
calls(
    "lstm_cell",
    lstm,
    [
        call((3, 4), (3, 5), (3, 5), (4, 20), (5, 20), (20,)),
        call((3, 4), (3, 5), (3, 5), (4, 20), (5, 20), (20,), forget_bias=1.0),
    ],
    slack=60,
)
calls(
    "lstm_block_cell",
    lstm_block,
    [
        call((3, 4), (3, 5), (3, 5), (9, 20), (20,)),
        call((3, 4), (3, 5), (3, 5), (9, 20), (20,), forget_bias=0.0, cell_clip=0.8),
    ],
    slack=60,
)
calls(
    "gru_cell",
    gru,
    [
        call((3, 4), (3, 5), (4, 15), (5, 15), (2, 15)),
        call((3, 4), (3, 5), (4, 15), (5, 15), (15,), reset_after=False),
    ],
    slack=60,
)
