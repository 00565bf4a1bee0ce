"""Ten whole networks for `models.py`, each written once over a namespace of layers.

They are of the families of `tests/frontends/tf_graphdef/reference/networks`, of sizes at which
their time is not that of calls. The namespace ``f`` is Keras, whose graph TensorFlow freezes
(`in_keras.py`), or PyTorch with the same weights (`in_torch.py`). A layer is called
``f.layer(x, name, …)``: by its name PyTorch finds the weights that Keras made. Channels are last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

Array = np.ndarray[Any, Any]


@frozen
class Written:
    """A network: its formula, the shape of an example, and how many are in a call.

    ``words``: the inputs are whole numbers below this, else floats of order 1.
    """

    formula: Callable[[Any, Any], Any]
    example: tuple[int, ...]
    batch: int
    words: int = 0

    @property
    def name(self) -> str:
        """The network's name."""
        return self.formula.__name__

    def inputs(self, batch: int = 0) -> Array:
        """What it is called with, by a seed."""
        rng = np.random.default_rng([ord(c) for c in self.name])
        shape = (batch or self.batch, *self.example)
        if self.words:
            return rng.integers(0, self.words, shape).astype(np.int32)
        return rng.standard_normal(shape).astype(np.float32)


def _classes(f: Any, x: Any, count: int = 10) -> Any:
    return f.softmax(f.dense(f.mean(x, (1, 2)), "classes", count))


def resnet_v2(f: Any, x: Any) -> Any:
    """Residual blocks with the norms in front."""
    x = f.conv(x, "stem", 32, 3)
    for k, (filters, stride) in enumerate(((32, 1), (64, 2), (64, 1), (128, 2), (128, 1))):
        y = f.relu(f.batch_norm(x, f"norm{k}a"))
        short = x if filters == x.shape[-1] else f.conv(y, f"short{k}", filters, 1, stride)
        y = f.conv(y, f"conv{k}a", filters, 3, stride)
        y = f.relu(f.batch_norm(y, f"norm{k}b"))
        x = short + f.conv(y, f"conv{k}b", filters, 3)
    return _classes(f, f.relu(f.batch_norm(x, "norm")))


def mobilenet_v2(f: Any, x: Any) -> Any:
    """Inverted residuals: wide inside, a filter for each channel there."""
    x = f.conv(x, "stem", 16, 3, 2, bias=False)
    for k, (filters, stride) in enumerate(((16, 1), (24, 2), (24, 1), (32, 2), (32, 1), (32, 1))):
        y = f.conv(x, f"widen{k}", 6 * x.shape[-1], 1, bias=False)
        y = f.relu6(f.batch_norm(y, f"norm{k}a"))
        y = f.depthwise(y, f"depthwise{k}", 3, stride)
        y = f.relu6(f.batch_norm(y, f"norm{k}b"))
        y = f.batch_norm(f.conv(y, f"project{k}", filters, 1, bias=False), f"norm{k}c")
        x = x + y if stride == 1 and filters == x.shape[-1] else y
    return _classes(f, x)


def unet(f: Any, x: Any) -> Any:
    """Down and up again, with what was seen on the way down at hand."""
    kept = []
    for k, filters in enumerate((16, 32)):
        x = f.relu(f.conv(x, f"down{k}", filters, 3))
        kept.append(x)
        x = f.max_pool(x)
    x = f.relu(f.conv(x, "bottom", 64, 3))
    for k, filters in enumerate((32, 16)):
        x = f.concat([kept.pop(), f.conv(f.upsample(x), f"widen{k}", filters, 3)], -1)
        x = f.relu(f.conv(x, f"up{k}", filters, 3))
    return f.sigmoid(f.conv(x, "mask", 1, 1))


def encoder(f: Any, words: Any) -> Any:
    """As in BERT, with two blocks."""
    x = f.embedding(words, "words", 1000, 128)
    for k in range(2):
        x = f.layer_norm(x + f.attention(x, f"attention{k}", 4), f"norm{k}a")
        y = f.dense(f.gelu(f.dense(x, f"wide{k}", 512)), f"narrow{k}", 128)
        x = f.layer_norm(x + y, f"norm{k}b")
    return f.tanh(f.dense(x[:, 0], "pooled", 128))


def wavenet(f: Any, x: Any) -> Any:
    """Gated convolutions in time, twice as far apart in each layer."""
    x = y = f.causal(x, "stem", 32, 2)
    skips = 0.0
    for k in range(6):
        x = x + f.causal(y, f"residual{k}", 32, 1) if k else x
        y = f.tanh(f.causal(x, f"filter{k}", 32, 2, 2**k))
        y = y * f.sigmoid(f.causal(x, f"gate{k}", 32, 2, 2**k))
        skips = f.causal(y, f"skip{k}", 32, 1) + skips
    x = f.relu(f.causal(f.relu(skips), "hidden", 32, 1))
    return f.softmax(f.causal(x, "levels", 64, 1))


def embedding_bag(f: Any, words: Any) -> Any:
    """The mean of the words that are there: 0 is padding."""
    there = f.number(words != 0)
    found = f.embedding(words, "words", 20000, 32) * f.reshape(there, (64, 1))
    mean = f.sum(found, (1,)) / (f.sum(there, (1,), keepdims=True) + 1.0)
    return f.dense(mean, "classes", 4)


def capsules(f: Any, image: Any) -> Any:
    """Capsules that agree are routed together, three times over."""

    def squash(s: Any) -> Any:
        square = f.sum(s * s, (-1,), keepdims=True)
        return s * (square / (1.0 + square) / f.sqrt(square + 1e-7))

    x = f.relu(f.conv(image, "stem", 16, 5, 2))
    x = f.relu(f.conv(x, "primary", 32, 3, 2))
    u = squash(f.reshape(x, (7 * 7 * 4, 8)))
    votes = f.reshape(f.dense(u, "votes", 160), (196, 10, 16))
    logits = f.sum(votes, (-1,)) * 0.0
    for turn in range(3):
        share = f.reshape(f.softmax(logits), (196, 10, 1))
        v = squash(f.sum(share * votes, (1,), keepdims=True))
        if turn < 2:
            logits = logits + f.sum(votes * v, (-1,))
    return f.reshape(v, (160,))


def lstm(f: Any, x: Any) -> Any:
    """A small recurrent layer over many short series."""
    return f.dense(f.lstm(x, "cell", 32), "levels", 8)


def linear_attention(f: Any, x: Any) -> Any:
    """Attention as a running sum over the past, without a softmax."""
    q, k = (f.elu(f.dense(x, name, 32)) + 1.0 for name in ("query", "key"))
    v = f.dense(x, "value", 32)
    past = f.cumsum(f.reshape(k, (128, 32, 1)) * f.reshape(v, (128, 1, 32)), 1)
    out = f.sum(f.reshape(q, (128, 32, 1)) * past, (2,))
    norm = f.sum(q * f.cumsum(k, 1), (2,), keepdims=True)
    return f.dense(out / (norm + 1e-6), "out", 32)


def quasi_recurrent(f: Any, x: Any) -> Any:
    """Gates from convolutions, and a running product in place of a cell."""
    z = f.tanh(f.causal(x, "candidate", 64, 2))
    keep = f.sigmoid(f.causal(x, "gate", 64, 2)) * 0.1 + 0.9
    decay = f.exp(f.cumsum(f.log(keep), 1))
    state = decay * f.cumsum((1.0 - keep) * z / decay, 1)
    return f.dense(state, "out", 4)


TEN = {
    written.name: written
    for written in (
        Written(capsules, (28, 28, 1), 16),
        Written(embedding_bag, (64,), 1024, 20000),
        Written(encoder, (64,), 8, 1000),
        Written(linear_attention, (128, 32), 8),
        Written(lstm, (32, 8), 64),
        Written(mobilenet_v2, (64, 64, 3), 8),
        Written(quasi_recurrent, (256, 8), 16),
        Written(resnet_v2, (32, 32, 3), 8),
        Written(unet, (64, 64, 2), 4),
        Written(wavenet, (512, 1), 8),
    )
}
"""The networks by name."""
