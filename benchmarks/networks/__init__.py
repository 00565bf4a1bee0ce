"""Ten networks for `models.py`, each written once over a namespace of layers.

They belong to the families of `tests/frontends/tf_graphdef/reference/networks`, at sizes at which
the time of a call does not matter. The namespace ``f`` is Keras, whose graph TensorFlow freezes
(`in_keras.py`), or PyTorch with the same weights (`in_torch.py`). A layer is called ``f.layer(x,
name, …)``: PyTorch finds the weights that Keras initialised by that name. Channels are last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from attrs import frozen

NetworkArray = np.ndarray[Any, Any]


@frozen
class NetworkDefinition:
    """A network.

    Attributes:
        formula: (namespace of layers, input) -> output.
        example: shape of one example.
        batch: default number of examples in a call.
        words: inputs are integers below this number; 0 means floats of order 1.
    """

    formula: Callable[[Any, Any], Any]
    example: tuple[int, ...]
    batch: int
    words: int = 0

    @property
    def name(self) -> str:
        """The name of the formula."""
        return self.formula.__name__

    def inputs(self, batch: int = 0) -> NetworkArray:
        """Draw an input by a fixed seed; a batch of 0 means the network's own."""
        rng = np.random.default_rng([ord(c) for c in self.name])
        shape = (batch or self.batch, *self.example)
        if self.words:
            return rng.integers(0, self.words, shape).astype(np.int32)
        return rng.standard_normal(shape).astype(np.float32)


def _classes(f: Any, x: Any, count: int = 10) -> Any:
    """Return class probabilities of the pixels' mean."""
    return f.softmax(f.dense(f.mean(x, (1, 2)), "classes", count))


def resnet_v2(f: Any, x: Any) -> Any:
    """Return class probabilities by residual blocks with norms in front."""
    x = f.conv(x, "stem", 32, 3)
    for k, (filters, stride) in enumerate(((32, 1), (64, 2), (64, 1), (128, 2), (128, 1))):
        y = f.relu(f.batch_norm(x, f"norm{k}a"))
        short = x if filters == x.shape[-1] else f.conv(y, f"short{k}", filters, 1, stride)
        y = f.conv(y, f"conv{k}a", filters, 3, stride)
        y = f.relu(f.batch_norm(y, f"norm{k}b"))
        x = short + f.conv(y, f"conv{k}b", filters, 3)
    return _classes(f, f.relu(f.batch_norm(x, "norm")))


def mobilenet_v2(f: Any, x: Any) -> Any:
    """Return class probabilities by inverted residuals with depthwise convolutions inside."""
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
    """Return a mask by convolutions down and up; each level up also reads the level down."""
    skips = []
    for k, filters in enumerate((16, 32)):
        x = f.relu(f.conv(x, f"down{k}", filters, 3))
        skips.append(x)
        x = f.max_pool(x)
    x = f.relu(f.conv(x, "bottom", 64, 3))
    for k, filters in enumerate((32, 16)):
        x = f.concat([skips.pop(), f.conv(f.upsample(x), f"widen{k}", filters, 3)], -1)
        x = f.relu(f.conv(x, f"up{k}", filters, 3))
    return f.sigmoid(f.conv(x, "mask", 1, 1))


def encoder(f: Any, words: Any) -> Any:
    """Return the pooled output of two encoder blocks as in BERT."""
    x = f.embedding(words, "words", 1000, 128)
    for k in range(2):
        x = f.layer_norm(x + f.attention(x, f"attention{k}", 4), f"norm{k}a")
        y = f.dense(f.gelu(f.dense(x, f"wide{k}", 512)), f"narrow{k}", 128)
        x = f.layer_norm(x + y, f"norm{k}b")
    return f.tanh(f.dense(x[:, 0], "pooled", 128))


def wavenet(f: Any, x: Any) -> Any:
    """Return level probabilities by gated causal convolutions with growing dilation."""
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
    """Return class scores of the mean embedding of the words; word 0 is padding."""
    mask = f.number(words != 0)
    vectors = f.embedding(words, "words", 20000, 32) * f.reshape(mask, (64, 1))
    mean = f.sum(vectors, (1,)) / (f.sum(mask, (1,), keepdims=True) + 1.0)
    return f.dense(mean, "classes", 4)


def capsules(f: Any, image: Any) -> Any:
    """Return capsules by three iterations of routing by agreement."""

    def squash(vectors: Any) -> Any:
        """Scale vectors to a length below 1."""
        square = f.sum(vectors * vectors, (-1,), keepdims=True)
        return vectors * (square / (1.0 + square) / f.sqrt(square + 1e-7))

    x = f.relu(f.conv(image, "stem", 16, 5, 2))
    x = f.relu(f.conv(x, "primary", 32, 3, 2))
    predictions = squash(f.reshape(x, (7 * 7 * 4, 8)))
    votes = f.reshape(f.dense(predictions, "votes", 160), (196, 10, 16))
    logits = f.sum(votes, (-1,)) * 0.0
    for iteration in range(3):
        share = f.reshape(f.softmax(logits), (196, 10, 1))
        routed = squash(f.sum(share * votes, (1,), keepdims=True))
        if iteration < 2:
            logits = logits + f.sum(votes * routed, (-1,))
    return f.reshape(routed, (160,))


def lstm(f: Any, x: Any) -> Any:
    """Return levels by a small LSTM over many short series."""
    return f.dense(f.lstm(x, "cell", 32), "levels", 8)


def linear_attention(f: Any, x: Any) -> Any:
    """Return attention as a running sum over the past, without a softmax."""
    q, k = (f.elu(f.dense(x, name, 32)) + 1.0 for name in ("query", "key"))
    v = f.dense(x, "value", 32)
    past = f.cumsum(f.reshape(k, (128, 32, 1)) * f.reshape(v, (128, 1, 32)), 1)
    out = f.sum(f.reshape(q, (128, 32, 1)) * past, (2,))
    norm = f.sum(q * f.cumsum(k, 1), (2,), keepdims=True)
    return f.dense(out / (norm + 1e-6), "out", 32)


def quasi_recurrent(f: Any, x: Any) -> Any:
    """Return gates from convolutions with a running product in place of a cell."""
    z = f.tanh(f.causal(x, "candidate", 64, 2))
    keep = f.sigmoid(f.causal(x, "gate", 64, 2)) * 0.1 + 0.9
    decay = f.exp(f.cumsum(f.log(keep), 1))
    state = decay * f.cumsum((1.0 - keep) * z / decay, 1)
    return f.dense(state, "out", 4)


TEN = {
    definition.name: definition
    for definition in (
        NetworkDefinition(capsules, (28, 28, 1), 16),
        NetworkDefinition(embedding_bag, (64,), 1024, 20000),
        NetworkDefinition(encoder, (64,), 8, 1000),
        NetworkDefinition(linear_attention, (128, 32), 8),
        NetworkDefinition(lstm, (32, 8), 64),
        NetworkDefinition(mobilenet_v2, (64, 64, 3), 8),
        NetworkDefinition(quasi_recurrent, (256, 8), 16),
        NetworkDefinition(resnet_v2, (32, 32, 3), 8),
        NetworkDefinition(unet, (64, 64, 2), 4),
        NetworkDefinition(wavenet, (512, 1), 8),
    )
}
"""The networks by name."""
