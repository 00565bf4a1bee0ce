"""The same programs written with tinyflow: its layers of names, optimizers and sessions.

A loss is the text that passkit's own graphs and the peers trace; the optimizer is `tf.train`'s.
So what differs from `steps` is the frontend, and the losses must not.
"""

from __future__ import annotations

from typing import Any

import passkit as pk
from passkit.frontends import tinyflow as tf
from training import Drawn, Program
from training.agreement import STEPS
from training.steps import training_step


class Functions:
    """tinyflow under the names that the losses use."""

    exp, log, tanh, sigmoid, square = tf.exp, tf.log, tf.tanh, tf.sigmoid, tf.square
    sqrt, rsqrt, pow, relu = tf.sqrt, tf.rsqrt, tf.pow, tf.nn.relu
    concat, where, stack, transpose = tf.concat, tf.where, tf.stack, tf.transpose
    reshape, zeros, ones, take = tf.reshape, tf.zeros, tf.ones, tf.gather
    softmax, split, matmul, mean = tf.nn.softmax, tf.split, tf.matmul, tf.reduce_mean
    sum = tf.reduce_sum

    @staticmethod
    def mean_over(x: Any, axes: tuple[int, ...]) -> Any:
        """The axes stay, of length 1."""
        return tf.reduce_mean(x, axes, keepdims=True)

    @staticmethod
    def conv(x: Any, w: Any, padding: str) -> Any:
        """Channels last."""
        return tf.nn.conv2d(x, w, [1, 1, 1, 1], padding)

    @staticmethod
    def max_pool(x: Any, window: int, stride: int) -> Any:
        """Windows that lie inside."""
        return tf.nn.max_pool(x, [1, window, window, 1], [1, stride, stride, 1], "VALID")

    @staticmethod
    def avg_pool(x: Any, window: int, stride: int) -> Any:
        """Windows around the image, of which only the part inside counts."""
        return tf.nn.avg_pool(x, [1, window, window, 1], [1, stride, stride, 1], "SAME")

    @staticmethod
    def arange(count: int) -> Any:
        """Whole numbers from 0 on."""
        return tf.range(count, dtype="int64")

    @staticmethod
    def cross_entropy(labels: Any, x: Any) -> Any:
        """Of distributions."""
        return tf.nn.softmax_cross_entropy_with_logits(labels=labels, logits=x)

    @staticmethod
    def sparse_cross_entropy(labels: Any, x: Any) -> Any:
        """Of the numbers of classes."""
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x)

    @staticmethod
    def sigmoid_cross_entropy(labels: Any, x: Any) -> Any:
        """Of probabilities."""
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=x)


def optimizer_of(program: Program) -> Any:
    """The optimizer, with TinyFlow's epsilon where that is meant."""
    match program.optimizer:
        case "sgd":
            return tf.train.GradientDescentOptimizer(program.rate)
        case "rmsprop":
            return tf.train.RMSPropOptimizer(program.rate, 0.9, 0.0, 1e-10)
        case "tinyflow_adam":
            return tf.train.AdamOptimizer(program.rate, epsilon=1e-4)
    return tf.train.AdamOptimizer(program.rate)


class Trained:
    """A program in a session of its own, with its variables at their first values.

    ``options`` are those of `tf.Session`.
    """

    def __init__(self, program: Program, drawn: Drawn, **options: Any) -> None:
        with tf.Graph().as_default() as graph:
            kinds = {"i": "int64", "f": "float32"}
            feeds = {n: tf.placeholder(kinds[a.dtype.kind], a.shape)
                     for n, a in drawn.feeds.items()}
            self.variables = {n: tf.Variable(a, name=n) for n, a in drawn.variables.items()}
            given: dict[str, Any] = dict(self.variables)
            for name, at in program.rows.items():
                rows = at(Functions, feeds)
                given[f"{name}_rows"] = tf.nn.embedding_lookup(self.variables[name], rows)
            self.loss = program.loss(Functions, given, feeds)
            self.train = optimizer_of(program).minimize(self.loss)
            self.session = tf.Session(graph=graph, **options)
            self.session.run(tf.global_variables_initializer())
        self.feeds = {feeds[n]: a for n, a in drawn.feeds.items() if self._reads(feeds[n])}

    def _reads(self, placeholder: Any) -> bool:
        from passkit.graph.graph import Graph

        return placeholder.entry.node in Graph([self.loss.entry]).nodes

    def step(self) -> float:
        """One step; its loss."""
        return float(self.session.run([self.loss, self.train], self.feeds)[0])


def errors(program: Program, small: bool = False, **options: Any) -> dict[str, float]:
    """By name the difference of each loss of three steps from the benchmark's graph.

    It is relative to the first loss: what is left of it after three steps of Adam may be a few
    units in the last place of the logits that it is made of.
    """
    drawn = program.drawn(small)
    trained = Trained(program, drawn, **options)
    exe = pk.compile(training_step(program, drawn).graph, **options)
    wanted = [float(exe(dict(drawn.feeds))[0]) for _ in range(STEPS)]
    return {f"loss {k + 1}": abs(trained.step() - wanted[k]) / wanted[0] for k in range(STEPS)}


def addresses(trained: Trained) -> list[int]:
    """Where the variables lie."""
    return [trained.session.address(v) for v in trained.variables.values()]
