"""Stand-ins of four applications, with about as many operators as in FusionStitching's evaluation.

The originals are not public. The stand-ins are what their names say: a decoder of translations with
attention, a recommender with several interests by attention over behaviours, a recurrent network
for speech, and a dialogue generator that scores beams. They only infer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from attrs import frozen

import passkit as pk
from passkit.graph.node import Entry
from training.micro import lstm
from training.passkit_steps import PasskitFunctions

ops = pk.ops


@frozen
class Application:
    """A graph of repeated parts.

    Attributes:
        name: its name.
        operators: number of operators of TensorFlow's graph.
        build: number of repetitions -> results.
        repetitions: the number that gives about as many operators.
    """

    name: str
    operators: int
    build: Callable[[int], list[Entry]]
    repetitions: int

    def graph(self, repetitions: int | None = None) -> pk.Graph:
        """Build the graph, with its own or another number of repetitions."""
        return pk.Graph(self.build(repetitions or self.repetitions))


class Weights:
    """Inputs in place of trained weights, each created when it is first requested."""

    def __init__(self) -> None:
        self.variables: dict[str, Entry] = {}

    def __call__(self, name: str, *shape: int) -> Entry:
        """Return the weights of a name."""
        return self.variables.setdefault(name, pk.var(name, shape, "float32"))


def softmax(x: Entry) -> Entry:
    """Return a softmax over the last axis, by primitives."""
    e = ops.exp(x - ops.reduce_max(x, axis=-1, keepdims=True))
    return e / ops.reduce_sum(e, axis=-1, keepdims=True)


def attend(w: Weights, h: Entry, keys: Entry, values: Entry, units: int) -> Entry:
    """Return Bahdanau's attention of (batch, units) over (batch, time, units)."""
    query = ops.expand_dims(h @ w("query", units, units), axis=1)
    scores = ops.reduce_sum(ops.tanh(keys + query) * w("score", units), axis=-1)
    weights = ops.expand_dims(softmax(scores), axis=-1)
    return ops.reduce_sum(weights * values, axis=1)


def cell(w: Weights, name: str, x: Entry, h: Entry, c: Entry, units: int) -> tuple[Entry, Entry]:
    """Return the next h and c of an LSTM cell."""
    kernel = w(f"{name}/kernel", int((x.shape or ())[1]) + units, 4 * units)
    return lstm(PasskitFunctions, x, h, c, kernel, w(f"{name}/bias", 4 * units))


def zeros(*shape: int) -> Entry:
    """Return a constant of zeros, the initial state."""
    return pk.constant(np.zeros(shape, np.float32))


def translation(steps: int, batch: int = 16, source: int = 24, units: int = 128) -> list[Entry]:
    """Build two layers of LSTM cells, fed with their last word and their attention."""
    w = Weights()
    encoded, embeddings = pk.var("encoded", (batch, source, units)), w("words", 4000, units)
    keys = encoded @ w("keys", units, units)
    h1 = c1 = h2 = c2 = context = zeros(batch, units)
    word, outputs = pk.var("first", (batch,), "int64"), []
    for _ in range(steps):
        x = ops.concat([ops.gather(embeddings, word), context], axis=1)
        h1, c1 = cell(w, "low", x, h1, c1, units)
        h2, c2 = cell(w, "high", h1, h2, c2, units)
        context = attend(w, h2, keys, encoded, units)
        merged = ops.tanh(ops.concat([h2, context], axis=1) @ w("merge", 2 * units, units))
        logits = merged @ w("out", units, 4000) + w("out/bias", 4000)
        word = ops.argmax(logits, axis=-1)
        largest = ops.reduce_max(logits, axis=-1, keepdims=True)
        total = ops.log(ops.reduce_sum(ops.exp(logits - largest), axis=-1))
        outputs += [word, -total]
    return outputs


def recommendation(fields: int, batch: int = 64, history: int = 50, units: int = 32) -> list[Entry]:
    """Build interests routed from behaviours, weighted by the item, and normalised features."""
    w = Weights()
    item = ops.gather(w("items", 5000, units), pk.var("item", (batch,), "int64"))
    behaviours = ops.gather(w("items", 5000, units), pk.var("history", (batch, history), "int64"))
    mapped = behaviours @ w("map", units, units)
    routing = pk.var("routing", (batch, 4, history))
    for _ in range(3):
        weights = softmax(routing)
        raw = weights @ mapped
        square = ops.reduce_sum(raw * raw, axis=-1, keepdims=True)
        capsules = raw * (square / (1.0 + square) * ops.rsqrt(square + 1e-8))
        routing = routing + capsules @ ops.transpose(mapped, axes=(0, 2, 1))
    target = ops.expand_dims(item, axis=1)
    weights = softmax(ops.reduce_sum(capsules * target, axis=-1))
    user = ops.reduce_sum(ops.expand_dims(weights, axis=-1) * capsules, axis=1)
    features = [user, item]
    for k in range(fields):
        table = w(f"table{k}", 1000, 16)
        x = ops.gather(table, pk.var(f"field{k}", (batch,), "int64"))
        d = x - ops.reduce_mean(x, axis=0, keepdims=True)
        x = d * ops.rsqrt(ops.reduce_mean(d * d, axis=0, keepdims=True) + 1e-5)
        x = x * w(f"scale{k}", 16) + w(f"shift{k}", 16)
        gate = ops.sigmoid(x @ w(f"gate{k}", 16, 16) + w(f"gate{k}/bias", 16))
        features.append(ops.relu(x * gate) - 0.1 * ops.relu(-x))
    h = ops.concat(features, axis=1)
    for k, width in enumerate((256, 64)):
        h = h @ w(f"deep{k}", int((h.shape or ())[1]), width) + w(f"deep{k}/bias", width)
        d = h - ops.reduce_mean(h, axis=-1, keepdims=True)
        h = ops.relu(d * ops.rsqrt(ops.reduce_mean(d * d, axis=-1, keepdims=True) + 1e-5))
    return [ops.sigmoid(h @ w("last", 64, 1) + w("last/bias", 1))]


def speech(steps: int, batch: int = 8, inputs: int = 40, units: int = 96) -> list[Entry]:
    """Build normalised spectra, three layers of LSTM cells with norms, and scores of phones."""
    w = Weights()
    frames = ops.log(ops.abs(pk.var("spectra", (batch, steps, inputs))) + 1e-6)
    d = frames - ops.reduce_mean(frames, axis=1, keepdims=True)
    frames = d * ops.rsqrt(ops.reduce_mean(d * d, axis=1, keepdims=True) + 1e-5)
    layer = [frames[:, t] for t in range(steps)]
    for k in range(3):
        h = c = zeros(batch, units)
        outputs = []
        for x in layer:
            h, c = cell(w, f"layer{k}", x, h, c, units)
            d = h - ops.reduce_mean(h, axis=-1, keepdims=True)
            variance = ops.reduce_mean(d * d, axis=-1, keepdims=True)
            outputs.append(d * ops.rsqrt(variance + 1e-5) * w(f"norm{k}", units))
        layer = outputs
    scores = ops.stack(layer, axis=1) @ w("phones", units, 60) + w("phones/bias", 60)
    return [softmax(scores)]


def dialogue(steps: int, beams: int = 8, source: int = 20, units: int = 64) -> list[Entry]:
    """Build beams of an answer: each word's score is added to its beam's; finished beams stay."""
    w = Weights()
    encoded, embeddings = pk.var("encoded", (beams, source, units)), w("words", 500, units)
    keys = encoded @ w("keys", units, units)
    h = c = context = zeros(beams, units)
    word = pk.var("first", (beams,), "int64")
    score, length = zeros(beams), pk.constant(np.ones(beams, np.float32))
    done = ops.less(score, -1.0)
    for _ in range(steps):
        x = ops.concat([ops.gather(embeddings, word), context], axis=1)
        h, c = cell(w, "cell", x, h, c, units)
        context = attend(w, h, keys, encoded, units)
        merged = ops.tanh(ops.concat([h, context], axis=1) @ w("merge", 2 * units, units))
        logits = merged @ w("out", units, 500) + w("out/bias", 500)
        shifted = logits - ops.reduce_max(logits, axis=-1, keepdims=True)
        logp = shifted - ops.log(ops.reduce_sum(ops.exp(shifted), axis=-1, keepdims=True))
        word = ops.argmax(logp, axis=-1)
        best = ops.reduce_max(logp, axis=-1)
        score = score + ops.where(done, 0.0, best)
        length = length + ops.where(done, 0.0, ops.exp(best * 0.0))
        done = done | ops.equal(word, 0)
        penalty = ops.exp(ops.log((5.0 + length) / 6.0) * 0.6)
        rank = score / penalty - ops.reduce_max(score / penalty)
        context = context * ops.expand_dims(ops.sigmoid(rank), axis=-1)
    return [score, length, word]


APPLICATIONS = (
    Application("translation", 1532, translation, 25),
    Application("recommendation", 992, recommendation, 48),
    Application("speech", 3204, speech, 41),
    Application("dialogue", 27428, dialogue, 416),
)
