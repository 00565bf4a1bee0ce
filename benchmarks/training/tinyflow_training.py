"""The training programs written with tinyflow: variables, optimizers and sessions.

The loss has the same text as for passkit's graphs and the peers; the optimizer is `tf.train`'s.
Only the frontend differs from `passkit_steps`, so the losses must be equal.
"""

from __future__ import annotations

from typing import Any

import passkit as pk
from passkit.frontends import tinyflow as tf
from training import ProgramInputs, TrainingProgram
from training.agreement import STEPS
from training.passkit_steps import training_step


class TinyflowFunctions:
    """tinyflow under the names that the losses use."""

    exp, log, tanh, sigmoid, square = tf.exp, tf.log, tf.tanh, tf.sigmoid, tf.square
    sqrt, rsqrt, pow, relu = tf.sqrt, tf.rsqrt, tf.pow, tf.nn.relu
    concat, where, stack, transpose = tf.concat, tf.where, tf.stack, tf.transpose
    reshape, zeros, ones, take = tf.reshape, tf.zeros, tf.ones, tf.gather
    softmax, split, matmul, mean = tf.nn.softmax, tf.split, tf.matmul, tf.reduce_mean
    sum = tf.reduce_sum

    @staticmethod
    def mean_over(x: Any, axes: tuple[int, ...]) -> Any:
        """Average over axes, which stay with length 1."""
        return tf.reduce_mean(x, axes, keepdims=True)

    @staticmethod
    def conv(x: Any, w: Any, padding: str) -> Any:
        """Convolve, channels last."""
        return tf.nn.conv2d(x, w, [1, 1, 1, 1], padding)

    @staticmethod
    def max_pool(x: Any, window: int, stride: int) -> Any:
        """Return the maxima of windows inside the image."""
        return tf.nn.max_pool(x, [1, window, window, 1], [1, stride, stride, 1], "VALID")

    @staticmethod
    def avg_pool(x: Any, window: int, stride: int) -> Any:
        """Return the means of windows around the image; pixels outside do not count."""
        return tf.nn.avg_pool(x, [1, window, window, 1], [1, stride, stride, 1], "SAME")

    @staticmethod
    def arange(count: int) -> Any:
        """Return the integers below ``count``."""
        return tf.range(count, dtype="int64")

    @staticmethod
    def cross_entropy(labels: Any, x: Any) -> Any:
        """Return cross entropies with labels as distributions."""
        return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=x)

    @staticmethod
    def sparse_cross_entropy(labels: Any, x: Any) -> Any:
        """Return cross entropies with labels as class numbers."""
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)

    @staticmethod
    def sigmoid_cross_entropy(labels: Any, x: Any) -> Any:
        """Return cross entropies with labels as probabilities."""
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=x)


def optimizer_of(program: TrainingProgram) -> Any:
    """Return the optimizer, for "tinyflow_adam" with TinyFlow's epsilon."""
    match program.optimizer:
        case "sgd":
            return tf.train.GradientDescentOptimizer(program.rate)
        case "rmsprop":
            return tf.train.RMSPropOptimizer(program.rate, 0.9, 0.0, 1e-10)
        case "tinyflow_adam":
            return tf.train.AdamOptimizer(program.rate, epsilon=1e-4)
    return tf.train.AdamOptimizer(program.rate)


class TinyflowTraining:
    """A program in a session of its own, with its variables at their first values.

    ``options`` are those of `tf.Session`.
    """

    def __init__(self, program: TrainingProgram, drawn: ProgramInputs, **options: Any) -> None:
        with tf.Graph().as_default() as graph:
            kinds = {"i": "int64", "f": "float32"}
            feeds = {
                n: tf.placeholder(kinds[a.dtype.kind], a.shape) for n, a in drawn.feeds.items()
            }
            self.variables = {n: tf.Variable(a, name=n) for n, a in drawn.variables.items()}
            values: dict[str, Any] = dict(self.variables)
            for name, row_numbers in program.rows.items():
                rows = row_numbers(TinyflowFunctions, feeds)
                values[f"{name}_rows"] = tf.nn.embedding_lookup(self.variables[name], rows)
            self.loss = program.loss(TinyflowFunctions, values, feeds)
            self.train = optimizer_of(program).minimize(self.loss)
            self.session = tf.Session(graph=graph, **options)
            self.session.run(tf.global_variables_initializer())
        self.feeds = {feeds[n]: a for n, a in drawn.feeds.items() if self._reads(feeds[n])}

    def _reads(self, placeholder: Any) -> bool:
        """Return whether the loss depends on a placeholder."""
        return placeholder.entry.node in pk.Graph([self.loss.entry]).nodes

    def step(self) -> float:
        """Take a step and return its loss."""
        return float(self.session.run([self.loss, self.train], self.feeds)[0])


def errors(program: TrainingProgram, small: bool = False, **options: Any) -> dict[str, float]:
    """Compute the difference of each loss of three steps from the benchmark's graph, by name.

    It is relative to the first loss: after three steps of Adam the loss may be a few ulps of the
    logits that it is computed from.
    """
    drawn = program.drawn(small)
    trained = TinyflowTraining(program, drawn, **options)
    exe = pk.compile(training_step(program, drawn).graph, **options)
    expected = [float(exe(dict(drawn.feeds))[0]) for _ in range(STEPS)]
    return {f"loss {k + 1}": abs(trained.step() - expected[k]) / expected[0] for k in range(STEPS)}


def addresses(trained: TinyflowTraining) -> list[int]:
    """Return the addresses of the variables."""
    return [trained.session.address(v) for v in trained.variables.values()]
