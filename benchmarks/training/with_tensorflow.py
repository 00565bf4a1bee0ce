"""TensorFlow 2 takes the steps: a graph of `tf.function`, and the same compiled by XLA."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from training import Drawn, Program
from training.in_tensorflow import Functions
from training.rivals import Rival

raw = tf.raw_ops


class Networks(Functions):
    """tf under the names that the losses of networks use, too."""

    relu, pow, sqrt, rsqrt = tf.nn.relu, tf.pow, tf.sqrt, tf.math.rsqrt

    @staticmethod
    def mean_over(x: Any, axes: Any) -> Any:
        """The axes stay, of length 1."""
        return tf.reduce_mean(x, axes, keepdims=True)

    @staticmethod
    def conv(x: Any, w: Any, padding: str) -> Any:
        """Channels last."""
        return tf.nn.conv2d(x, w, 1, padding)

    @staticmethod
    def max_pool(x: Any, window: int, stride: int) -> Any:
        """Windows that lie inside."""
        return tf.nn.max_pool2d(x, window, stride, "VALID")

    @staticmethod
    def avg_pool(x: Any, window: int, stride: int) -> Any:
        """Windows around the image, of which only the part inside counts."""
        return tf.nn.avg_pool2d(x, window, stride, "SAME")

    @staticmethod
    def sparse_cross_entropy(labels: Any, x: Any) -> Any:
        """Of the numbers of classes."""
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)


def threads(count: int) -> None:
    """How many TensorFlow may use; before it computes anything."""
    tf.config.threading.set_intra_op_parallelism_threads(count)
    tf.config.threading.set_inter_op_parallelism_threads(count)


def _descent(program: Program, variables: Mapping[str, Any]) -> Callable[[Any], None]:
    """What changes variables by gradients: the operators that `tf.compat.v1.train` applies."""
    rate = tf.constant(program.rate)
    zeros = {n: tf.Variable(tf.zeros_like(v)) for n, v in variables.items()}

    def sgd(gradients: Any) -> None:
        for name, variable in variables.items():
            given = gradients[name]
            if isinstance(given, tf.IndexedSlices):
                variable.scatter_sub(tf.IndexedSlices(rate * given.values, given.indices))
            else:
                raw.ResourceApplyGradientDescent(var=variable.handle, alpha=rate, delta=given)

    if program.optimizer == "sgd":
        return sgd
    if program.optimizer == "rmsprop":
        squares = {n: tf.Variable(tf.ones_like(v)) for n, v in variables.items()}

        def rmsprop(gradients: Any) -> None:
            for name, variable in variables.items():
                raw.ResourceApplyRMSProp(
                    var=variable.handle, ms=squares[name].handle, mom=zeros[name].handle, lr=rate,
                    rho=0.9, momentum=0.0, epsilon=1e-10, grad=gradients[name])

        return rmsprop
    epsilon = {"adam": 1e-8, "tinyflow_adam": 1e-4}[program.optimizer]
    second = {n: tf.Variable(tf.zeros_like(v)) for n, v in variables.items()}
    powers = [tf.Variable(0.9), tf.Variable(0.999)]

    def adam(gradients: Any) -> None:
        now = [p.read_value() for p in powers]
        for name, variable in variables.items():
            raw.ResourceApplyAdam(
                var=variable.handle, m=zeros[name].handle, v=second[name].handle,
                beta1_power=now[0], beta2_power=now[1], lr=rate, beta1=0.9, beta2=0.999,
                epsilon=epsilon, grad=gradients[name])
        for power, beta in zip(powers, (0.9, 0.999), strict=True):
            power.assign(power * beta)

    return adam


def rival(program: Program, drawn: Drawn, xla: bool) -> Rival:
    """The step as one function; variables are TensorFlow's."""
    variables = {n: tf.Variable(a) for n, a in drawn.variables.items()}
    move = _descent(program, variables)

    @tf.function(jit_compile=xla)
    def step(feeds: Any) -> Any:
        with tf.GradientTape() as tape:
            given = dict(variables)
            for name, at in program.rows.items():
                given[f"{name}_rows"] = tf.gather(variables[name], at(Networks, feeds))
            loss = program.loss(Networks, given, feeds)
        move(tape.gradient(loss, variables))
        return loss

    def prepare(feeds: Mapping[str, np.ndarray]) -> Any:
        return {n: tf.constant(a) for n, a in feeds.items()}

    return Rival(step, prepare)
