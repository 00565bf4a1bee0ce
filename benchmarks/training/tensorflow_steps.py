"""Training steps in TensorFlow 2: a graph of `tf.function`, and the same compiled by XLA."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from training import ProgramInputs, TrainingProgram
from training.entrants import StepImplementation
from training.tensorflow_op_counts import TensorFlowFunctions

raw = tf.raw_ops


class TensorFlowNetworkFunctions(TensorFlowFunctions):
    """tf under the names that the losses of networks use, too."""

    relu, pow, sqrt, rsqrt = tf.nn.relu, tf.pow, tf.sqrt, tf.math.rsqrt

    @staticmethod
    def mean_over(x: Any, axes: Any) -> Any:
        """Average over axes, which stay with length 1."""
        return tf.reduce_mean(x, axes, keepdims=True)

    @staticmethod
    def conv(x: Any, w: Any, padding: str) -> Any:
        """Convolve, channels last."""
        return tf.nn.conv2d(x, w, 1, padding)

    @staticmethod
    def max_pool(x: Any, window: int, stride: int) -> Any:
        """Return the maxima of windows inside the image."""
        return tf.nn.max_pool2d(x, window, stride, "VALID")

    @staticmethod
    def avg_pool(x: Any, window: int, stride: int) -> Any:
        """Return the means of windows around the image; outside pixels do not count."""
        return tf.nn.avg_pool2d(x, window, stride, "SAME")

    @staticmethod
    def sparse_cross_entropy(labels: Any, x: Any) -> Any:
        """Return cross entropies with labels as class numbers."""
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)


def threads(count: int) -> None:
    """Limit TensorFlow's threads; call it before TensorFlow computes anything."""
    tf.config.threading.set_intra_op_parallelism_threads(count)
    tf.config.threading.set_inter_op_parallelism_threads(count)


def _descent(program: TrainingProgram, variables: Mapping[str, Any]) -> Callable[[Any], None]:
    """Return a function that updates variables with the operators of `tf.compat.v1.train`."""
    rate = tf.constant(program.rate)
    if program.optimizer == "sgd":
        return _sgd(rate, variables)
    if program.optimizer == "rmsprop":
        return _rmsprop(rate, variables)
    return _adam(rate, variables, {"adam": 1e-8, "tinyflow_adam": 1e-4}[program.optimizer])


def _sgd(rate: Any, variables: Mapping[str, Any]) -> Callable[[Any], None]:
    """Return the update of gradient descent; sparse gradients change only their rows."""

    def sgd(gradients: Any) -> None:
        for name, variable in variables.items():
            gradient = gradients[name]
            if isinstance(gradient, tf.IndexedSlices):
                variable.scatter_sub(tf.IndexedSlices(rate * gradient.values, gradient.indices))
            else:
                raw.ResourceApplyGradientDescent(var=variable.handle, alpha=rate, delta=gradient)

    return sgd


def _rmsprop(rate: Any, variables: Mapping[str, Any]) -> Callable[[Any], None]:
    """Return the update of RMSProp."""
    squares = {n: tf.Variable(tf.ones_like(v)) for n, v in variables.items()}
    momenta = {n: tf.Variable(tf.zeros_like(v)) for n, v in variables.items()}

    def rmsprop(gradients: Any) -> None:
        for name, variable in variables.items():
            raw.ResourceApplyRMSProp(
                var=variable.handle,
                ms=squares[name].handle,
                mom=momenta[name].handle,
                lr=rate,
                rho=0.9,
                momentum=0.0,
                epsilon=1e-10,
                grad=gradients[name],
            )

    return rmsprop


def _adam(rate: Any, variables: Mapping[str, Any], epsilon: float) -> Callable[[Any], None]:
    """Return the update of Adam."""
    first = {n: tf.Variable(tf.zeros_like(v)) for n, v in variables.items()}
    second = {n: tf.Variable(tf.zeros_like(v)) for n, v in variables.items()}
    powers = [tf.Variable(0.9), tf.Variable(0.999)]

    def adam(gradients: Any) -> None:
        now = [p.read_value() for p in powers]
        for name, variable in variables.items():
            raw.ResourceApplyAdam(
                var=variable.handle,
                m=first[name].handle,
                v=second[name].handle,
                beta1_power=now[0],
                beta2_power=now[1],
                lr=rate,
                beta1=0.9,
                beta2=0.999,
                epsilon=epsilon,
                grad=gradients[name],
            )
        for power, beta in zip(powers, (0.9, 0.999), strict=True):
            power.assign(power * beta)

    return adam


def rival(program: TrainingProgram, drawn: ProgramInputs, xla: bool) -> StepImplementation:
    """Build the step as one function over TensorFlow's variables."""
    variables = {n: tf.Variable(a) for n, a in drawn.variables.items()}
    update = _descent(program, variables)

    @tf.function(jit_compile=xla)
    def step(feeds: Any) -> Any:
        with tf.GradientTape() as tape:
            values = dict(variables)
            for name, row_numbers in program.rows.items():
                values[f"{name}_rows"] = tf.gather(
                    variables[name], row_numbers(TensorFlowNetworkFunctions, feeds)
                )
            loss = program.loss(TensorFlowNetworkFunctions, values, feeds)
        update(tape.gradient(loss, variables))
        return loss

    def prepare(feeds: Mapping[str, np.ndarray]) -> Any:
        return {n: tf.constant(a) for n, a in feeds.items()}

    return StepImplementation(step, prepare)
