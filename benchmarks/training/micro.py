"""Six small training programs of many operators, after well-known TensorFlow scripts.

Source: aymericdamien/TensorFlow-Examples, tensorflow_v1: logistic_regression, word2vec,
bidirectional_rnn, dynamic_rnn, multilayer_perceptron, variational_autoencoder. FusionStitching
measured these six.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from training import Drawn, Program, Sizes

Named = Mapping[str, Any]
Generator = np.random.Generator


def one_hot(g: Generator, count: int, classes: int) -> np.ndarray:
    """Random labels."""
    return np.eye(classes)[g.integers(0, classes, count)]


# Regression and the perceptron without activations.


def logistic(f: Any, p: Named, x: Named) -> Any:
    """The cross entropy written out, as the script has it."""
    predicted = f.softmax(f.matmul(x["x"], p["W"]) + p["b"])
    return f.mean(-f.sum(x["y"] * f.log(predicted), 1))


def draw_logistic(s: Sizes, g: Generator) -> Drawn:
    """Pixels from 0 to 1; weights begin at 0."""
    feeds = {"x": g.random((s["batch"], 784)), "y": one_hot(g, s["batch"], 10)}
    return Drawn(feeds, {"W": np.zeros((784, 10)), "b": np.zeros(10)})


def perceptron(f: Any, p: Named, x: Named) -> Any:
    """Three layers, none of which has an activation."""
    h = x["x"]
    for k in "123":
        h = f.matmul(h, p[f"W{k}"]) + p[f"b{k}"]
    return f.mean(f.cross_entropy(x["y"], h))


def draw_perceptron(s: Sizes, g: Generator) -> Drawn:
    """Everything begins normally distributed."""
    feeds = {"x": g.random((s["batch"], s["pixels"])), "y": one_hot(g, s["batch"], 10)}
    widths = (s["pixels"], s["hidden"], s["hidden"], 10)
    variables = {f"W{k}": g.normal(0, 1, widths[k - 1 : k + 1]) for k in (1, 2, 3)}
    return Drawn(feeds, variables | {f"b{k}": g.normal(0, 1, widths[k]) for k in (1, 2, 3)})


# Recurrent networks.


def lstm(f: Any, x: Any, h: Any, c: Any, kernel: Any, bias: Any) -> tuple[Any, Any]:
    """TensorFlow's BasicLSTMCell with its forget bias of 1: the next h and c."""
    i, j, forget, o = f.split(f.matmul(f.concat([x, h], 1), kernel) + bias, 4, 1)
    c = c * f.sigmoid(forget + 1.0) + f.sigmoid(i) * f.tanh(j)
    return f.tanh(c) * f.sigmoid(o), c


def bi_rnn(f: Any, p: Named, x: Named) -> Any:
    """The last outputs of both directions: of the backward one that is its first step."""
    batch, steps, _ = x["x"].shape
    zero = f.zeros((batch, p["bf"].shape[0] // 4))
    h = c = zero
    for t in range(steps):
        h, c = lstm(f, x["x"][:, t], h, c, p["Kf"], p["bf"])
    last, _ = lstm(f, x["x"][:, steps - 1], zero, zero, p["Kb"], p["bb"])
    logits = f.matmul(f.concat([h, last], 1), p["W"]) + p["b"]
    return f.mean(f.cross_entropy(x["y"], logits))


def glorot(g: Generator, rows: int, columns: int) -> np.ndarray:
    """Glorot and Bengio's uniform distribution."""
    return g.uniform(-1, 1, (rows, columns)) * math.sqrt(6 / (rows + columns))


def draw_bi_rnn(s: Sizes, g: Generator) -> Drawn:
    """Rows of images as steps of time."""
    batch, units, inputs = s["batch"], s["units"], s["inputs"]
    feeds = {"x": g.random((batch, s["steps"], inputs)), "y": one_hot(g, batch, 10)}
    variables = {}
    for way in "fb":
        variables[f"K{way}"] = glorot(g, inputs + units, 4 * units)
        variables[f"b{way}"] = np.zeros(4 * units)
    return Drawn(feeds, variables | {"W": g.normal(0, 1, (2 * units, 10)),
                                     "b": g.normal(0, 1, 10)})


def dyn_rnn(f: Any, p: Named, x: Named) -> Any:
    """Sequences of several lengths: what lies behind an end is 0 and changes no state."""
    batch, steps, _ = x["x"].shape
    units = p["bf"].shape[0] // 4
    h = c = zero = f.zeros((batch, units))
    outputs = []
    for t in range(steps):
        done = (x["lengths"] <= t)[:, None]
        new_h, new_c = lstm(f, x["x"][:, t], h, c, p["Kf"], p["bf"])
        outputs.append(f.where(done, zero, new_h))
        h, c = f.where(done, h, new_h), f.where(done, c, new_c)
    rows = f.reshape(f.transpose(f.stack(outputs), (1, 0, 2)), (batch * steps, units))
    last = f.take(rows, f.arange(batch) * steps + (x["lengths"] - 1))
    return f.mean(f.cross_entropy(x["y"], f.matmul(last, p["W"]) + p["b"]))


def draw_dyn_rnn(s: Sizes, g: Generator) -> Drawn:
    """Lengths from 3 on."""
    batch, steps, units = s["batch"], s["steps"], s["units"]
    feeds = {"x": g.random((batch, steps, 1)), "y": one_hot(g, batch, 2),
             "lengths": g.integers(3, steps + 1, batch)}
    return Drawn(feeds, {"Kf": glorot(g, 1 + units, 4 * units), "bf": np.zeros(4 * units),
                         "W": g.normal(0, 1, (units, 2)), "b": g.normal(0, 1, 2)})


# A variational autoencoder.


def var_encoder(f: Any, p: Named, x: Named) -> Any:
    """Reconstruction and Kullback-Leibler divergence, the noise being an input."""
    images = x["x"]
    h = f.tanh(f.matmul(images, p["We"]) + p["be"])
    mean, log_variance = (f.matmul(h, p[f"W{k}"]) + p[f"b{k}"] for k in "ms")
    z = mean + f.exp(log_variance / 2.0) * x["noise"]
    h = f.tanh(f.matmul(z, p["Wd"]) + p["bd"])
    made = f.sigmoid(f.matmul(h, p["Wo"]) + p["bo"])
    here = images * f.log(1e-10 + made) + (1.0 - images) * f.log(1e-10 + 1.0 - made)
    divergence = -0.5 * f.sum(1.0 + log_variance - f.square(mean) - f.exp(log_variance), 1)
    return f.mean(-f.sum(here, 1) + divergence)


def draw_var_encoder(s: Sizes, g: Generator) -> Drawn:
    """Weights and biases normally distributed, by the number of rows."""
    batch, pixels, hidden, latent = s["batch"], s["pixels"], s["hidden"], s["latent"]
    images = g.random((batch, pixels))
    shapes = {"e": (pixels, hidden), "m": (hidden, latent), "s": (hidden, latent),
              "d": (latent, hidden), "o": (hidden, pixels)}

    def normal(*shape: int) -> np.ndarray:
        return g.normal(0, 1 / math.sqrt(shape[0] / 2.0), shape)

    variables = {f"W{k}": normal(*shape) for k, shape in shapes.items()}
    variables |= {f"b{k}": normal(shape[1]) for k, shape in shapes.items()}
    return Drawn({"x": images, "noise": g.normal(0, 1, (batch, latent))}, variables)


# Word vectors by noise-contrastive estimation.


def word2vec(f: Any, p: Named, x: Named) -> Any:
    """TensorFlow's nce_loss; who was sampled, and how often to expect that, are inputs."""
    words = p["word_rows"]
    count = words.shape[0]
    weights, biases = p["weight_rows"], p["bias_rows"]
    true = f.sum(words * weights[:count], 1)[:, None] + biases[:count][:, None]
    sampled = f.matmul(words, f.transpose(weights[count:], (1, 0))) + biases[count:]
    true, sampled = true - f.log(x["true_counts"]), sampled - f.log(x["sampled_counts"])
    logits = f.concat([true, sampled], 1)
    labels = f.concat([f.ones(tuple(true.shape)), f.zeros(tuple(sampled.shape))], 1)
    return f.mean(f.sum(f.sigmoid_cross_entropy(labels, logits), 1))


def draw_word2vec(s: Sizes, g: Generator) -> Drawn:
    """Pairs of words, and 64 others that go with none."""
    batch, words, length, samples = s["batch"], s["words"], s["length"], s["samples"]
    feeds = {"x": g.integers(0, words, batch), "labels": g.integers(0, words, batch)}
    variables = {"word": g.normal(0, 1, (words, length)), "weight": g.normal(0, 1, (words, length)),
                 "bias": np.zeros(words)}
    feeds["sampled"] = g.choice(words, samples, replace=False)
    feeds["true_counts"] = g.random((batch, 1)) + 0.01
    feeds["sampled_counts"] = g.random(samples) + 0.01
    return Drawn(feeds, variables)


def both(f: Any, x: Named) -> Any:
    """The labels, then who was sampled."""
    return f.concat([x["labels"], x["sampled"]], 0)


PROGRAMS = (
    Program("logistic", logistic, draw_logistic, "sgd", 0.01, {"batch": 100}, {"batch": 7}),
    Program("word2vec", word2vec, draw_word2vec, "sgd", 0.1,
            {"batch": 128, "words": 47135, "length": 200, "samples": 64},
            {"batch": 6, "words": 50, "length": 8, "samples": 5},
            {"word": lambda f, x: x["x"], "weight": both, "bias": both}),
    Program("bi-rnn", bi_rnn, draw_bi_rnn, "sgd", 0.001,
            {"batch": 128, "steps": 28, "inputs": 28, "units": 128},
            {"batch": 3, "steps": 3, "inputs": 4, "units": 6}),
    Program("dyn-rnn", dyn_rnn, draw_dyn_rnn, "sgd", 0.01,
            {"batch": 128, "steps": 20, "units": 64}, {"batch": 4, "steps": 5, "units": 5}),
    Program("perceptron", perceptron, draw_perceptron, "adam", 0.001,
            {"batch": 100, "pixels": 784, "hidden": 256}, {"batch": 5, "pixels": 12, "hidden": 7}),
    Program("var-encoder", var_encoder, draw_var_encoder, "rmsprop", 0.001,
            {"batch": 64, "pixels": 784, "hidden": 512, "latent": 2},
            {"batch": 4, "pixels": 12, "hidden": 7}),
)
