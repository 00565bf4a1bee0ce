"""Six small training programs of many operators, after well-known TensorFlow scripts.

Source: aymericdamien/TensorFlow-Examples, tensorflow_v1: logistic_regression, word2vec,
bidirectional_rnn, dynamic_rnn, multilayer_perceptron, variational_autoencoder. FusionStitching
measured these six.

A loss takes the namespace ``f``, the variables ``p`` and the feeds ``x``; a function ``draw_…``
takes sizes and a generator.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from training import NamedValues, ProgramInputs, ProgramSizes, TrainingProgram

Generator = np.random.Generator


def one_hot(g: Generator, count: int, classes: int) -> np.ndarray:
    """Return random labels of shape (count, classes)."""
    return np.eye(classes)[g.integers(0, classes, count)]


# Regression and the perceptron without activations.


def logistic(f: Any, p: NamedValues, x: NamedValues) -> Any:
    """Return the loss of a logistic regression, with the cross entropy expressed by log."""
    predicted = f.softmax(f.matmul(x["x"], p["W"]) + p["b"])
    return f.mean(-f.sum(x["y"] * f.log(predicted), 1))


def draw_logistic(s: ProgramSizes, g: Generator) -> ProgramInputs:
    """Draw pixels from 0 to 1; weights begin at 0."""
    feeds = {"x": g.random((s["batch"], 784)), "y": one_hot(g, s["batch"], 10)}
    return ProgramInputs(feeds, {"W": np.zeros((784, 10)), "b": np.zeros(10)})


def perceptron(f: Any, p: NamedValues, x: NamedValues) -> Any:
    """Return the loss of three layers without activations."""
    h = x["x"]
    for k in "123":
        h = f.matmul(h, p[f"W{k}"]) + p[f"b{k}"]
    return f.mean(f.cross_entropy(x["y"], h))


def draw_perceptron(s: ProgramSizes, g: Generator) -> ProgramInputs:
    """Draw pixels; all variables begin normally distributed."""
    feeds = {"x": g.random((s["batch"], s["pixels"])), "y": one_hot(g, s["batch"], 10)}
    widths = (s["pixels"], s["hidden"], s["hidden"], 10)
    variables = {f"W{k}": g.normal(0, 1, widths[k - 1 : k + 1]) for k in (1, 2, 3)}
    return ProgramInputs(feeds, variables | {f"b{k}": g.normal(0, 1, widths[k]) for k in (1, 2, 3)})


# Recurrent networks.


def lstm(f: Any, x: Any, h: Any, c: Any, kernel: Any, bias: Any) -> tuple[Any, Any]:
    """Return the next h and c of TensorFlow's BasicLSTMCell with a forget bias of 1."""
    i, j, forget, o = f.split(f.matmul(f.concat([x, h], 1), kernel) + bias, 4, 1)
    c = c * f.sigmoid(forget + 1.0) + f.sigmoid(i) * f.tanh(j)
    return f.tanh(c) * f.sigmoid(o), c


def bi_rnn(f: Any, p: NamedValues, x: NamedValues) -> Any:
    """Return the loss on the last outputs of both directions.

    The last output of the backward direction is that of its first step.
    """
    batch, steps, _ = x["x"].shape
    zero = f.zeros((batch, p["bf"].shape[0] // 4))
    h = c = zero
    for t in range(steps):
        h, c = lstm(f, x["x"][:, t], h, c, p["Kf"], p["bf"])
    last, _ = lstm(f, x["x"][:, steps - 1], zero, zero, p["Kb"], p["bb"])
    logits = f.matmul(f.concat([h, last], 1), p["W"]) + p["b"]
    return f.mean(f.cross_entropy(x["y"], logits))


def glorot(g: Generator, rows: int, columns: int) -> np.ndarray:
    """Draw from Glorot and Bengio's uniform distribution."""
    return g.uniform(-1, 1, (rows, columns)) * math.sqrt(6 / (rows + columns))


def draw_bi_rnn(s: ProgramSizes, g: Generator) -> ProgramInputs:
    """Draw images, whose rows are time steps."""
    batch, units, inputs = s["batch"], s["units"], s["inputs"]
    feeds = {"x": g.random((batch, s["steps"], inputs)), "y": one_hot(g, batch, 10)}
    variables = {}
    for direction in "fb":
        variables[f"K{direction}"] = glorot(g, inputs + units, 4 * units)
        variables[f"b{direction}"] = np.zeros(4 * units)
    return ProgramInputs(
        feeds, variables | {"W": g.normal(0, 1, (2 * units, 10)), "b": g.normal(0, 1, 10)}
    )


def dyn_rnn(f: Any, p: NamedValues, x: NamedValues) -> Any:
    """Return the loss of sequences of several lengths; elements after the end change no state."""
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


def draw_dyn_rnn(s: ProgramSizes, g: Generator) -> ProgramInputs:
    """Draw sequences and their lengths, at least 3."""
    batch, steps, units = s["batch"], s["steps"], s["units"]
    feeds = {
        "x": g.random((batch, steps, 1)),
        "y": one_hot(g, batch, 2),
        "lengths": g.integers(3, steps + 1, batch),
    }
    return ProgramInputs(
        feeds,
        {
            "Kf": glorot(g, 1 + units, 4 * units),
            "bf": np.zeros(4 * units),
            "W": g.normal(0, 1, (units, 2)),
            "b": g.normal(0, 1, 2),
        },
    )


# A variational autoencoder.


def var_encoder(f: Any, p: NamedValues, x: NamedValues) -> Any:
    """Return reconstruction loss plus Kullback-Leibler divergence; the noise is a feed."""
    images = x["x"]
    h = f.tanh(f.matmul(images, p["We"]) + p["be"])
    mean, log_variance = (f.matmul(h, p[f"W{k}"]) + p[f"b{k}"] for k in "ms")
    z = mean + f.exp(log_variance / 2.0) * x["noise"]
    h = f.tanh(f.matmul(z, p["Wd"]) + p["bd"])
    reconstructed = f.sigmoid(f.matmul(h, p["Wo"]) + p["bo"])
    log_likelihood = images * f.log(1e-10 + reconstructed) + (1.0 - images) * f.log(
        1e-10 + 1.0 - reconstructed
    )
    divergence = -0.5 * f.sum(1.0 + log_variance - f.square(mean) - f.exp(log_variance), 1)
    return f.mean(-f.sum(log_likelihood, 1) + divergence)


def draw_var_encoder(s: ProgramSizes, g: Generator) -> ProgramInputs:
    """Draw images; weights and biases have deviations by the number of rows."""
    batch, pixels, hidden, latent = s["batch"], s["pixels"], s["hidden"], s["latent"]
    images = g.random((batch, pixels))
    shapes = {
        "e": (pixels, hidden),
        "m": (hidden, latent),
        "s": (hidden, latent),
        "d": (latent, hidden),
        "o": (hidden, pixels),
    }

    def normal(*shape: int) -> np.ndarray:
        return g.normal(0, 1 / math.sqrt(shape[0] / 2.0), shape)

    variables = {f"W{k}": normal(*shape) for k, shape in shapes.items()}
    variables |= {f"b{k}": normal(shape[1]) for k, shape in shapes.items()}
    return ProgramInputs({"x": images, "noise": g.normal(0, 1, (batch, latent))}, variables)


# Word vectors by noise-contrastive estimation.


def word2vec(f: Any, p: NamedValues, x: NamedValues) -> Any:
    """Return TensorFlow's nce_loss; sampled words and their expected counts are feeds."""
    words = p["word_rows"]
    count = words.shape[0]
    weights, biases = p["weight_rows"], p["bias_rows"]
    true = f.sum(words * weights[:count], 1)[:, None] + biases[:count][:, None]
    sampled = f.matmul(words, f.transpose(weights[count:], (1, 0))) + biases[count:]
    true, sampled = true - f.log(x["true_counts"]), sampled - f.log(x["sampled_counts"])
    logits = f.concat([true, sampled], 1)
    labels = f.concat([f.ones(tuple(true.shape)), f.zeros(tuple(sampled.shape))], 1)
    return f.mean(f.sum(f.sigmoid_cross_entropy(labels, logits), 1))


def draw_word2vec(s: ProgramSizes, g: Generator) -> ProgramInputs:
    """Draw pairs of words, and sampled words that belong to none."""
    batch, words, length, samples = s["batch"], s["words"], s["length"], s["samples"]
    feeds = {"x": g.integers(0, words, batch), "labels": g.integers(0, words, batch)}
    variables = {
        "word": g.normal(0, 1, (words, length)),
        "weight": g.normal(0, 1, (words, length)),
        "bias": np.zeros(words),
    }
    feeds["sampled"] = g.choice(words, samples, replace=False)
    feeds["true_counts"] = g.random((batch, 1)) + 0.01
    feeds["sampled_counts"] = g.random(samples) + 0.01
    return ProgramInputs(feeds, variables)


def both(f: Any, x: NamedValues) -> Any:
    """Return the labels followed by the sampled words."""
    return f.concat([x["labels"], x["sampled"]], 0)


PROGRAMS = (
    TrainingProgram("logistic", logistic, draw_logistic, "sgd", 0.01, {"batch": 100}, {"batch": 7}),
    TrainingProgram(
        "word2vec",
        word2vec,
        draw_word2vec,
        "sgd",
        0.1,
        {"batch": 128, "words": 47135, "length": 200, "samples": 64},
        {"batch": 6, "words": 50, "length": 8, "samples": 5},
        {"word": lambda f, x: x["x"], "weight": both, "bias": both},
    ),
    TrainingProgram(
        "bi-rnn",
        bi_rnn,
        draw_bi_rnn,
        "sgd",
        0.001,
        {"batch": 128, "steps": 28, "inputs": 28, "units": 128},
        {"batch": 3, "steps": 3, "inputs": 4, "units": 6},
    ),
    TrainingProgram(
        "dyn-rnn",
        dyn_rnn,
        draw_dyn_rnn,
        "sgd",
        0.01,
        {"batch": 128, "steps": 20, "units": 64},
        {"batch": 4, "steps": 5, "units": 5},
    ),
    TrainingProgram(
        "perceptron",
        perceptron,
        draw_perceptron,
        "adam",
        0.001,
        {"batch": 100, "pixels": 784, "hidden": 256},
        {"batch": 5, "pixels": 12, "hidden": 7},
    ),
    TrainingProgram(
        "var-encoder",
        var_encoder,
        draw_var_encoder,
        "rmsprop",
        0.001,
        {"batch": 64, "pixels": 784, "hidden": 512, "latent": 2},
        {"batch": 4, "pixels": 12, "hidden": 7},
    ),
)
