"""Count the operators that TensorFlow runs for a step, as users write it for TensorFlow 1.

    python -m training.tensorflow_op_counts > training/tensorflow_ops.json    # in benchmarks/

Graph mode, `tf.gradients` and the optimizers of `tf.compat.v1`, which apply a gradient by one
operator, with Grappler's rewrites off. The executor's own trace counts, without operators that
compute nothing: variables, constants, feeds, sizes, and reshapes.
"""

from __future__ import annotations

import collections
import json
import os
import sys
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from training import TrainingProgram
from training.micro import PROGRAMS

v1 = tf.compat.v1
NO_COMPUTATION = {
    "Const",
    "Placeholder",
    "VariableV2",
    "Identity",
    "NoOp",
    "Reshape",
    "Shape",
    "ExpandDims",
    "Squeeze",
    "Assign",
}
"""Operators that hold or rename bytes; Adam's `Assign` writes two numbers."""


class TensorFlowFunctions:
    """tf under the names that the losses use."""

    exp, log, tanh, sigmoid, square = tf.exp, tf.math.log, tf.tanh, tf.sigmoid, tf.square
    concat, where, stack, transpose = tf.concat, tf.where, tf.stack, tf.transpose
    reshape, zeros, ones, take = tf.reshape, tf.zeros, tf.ones, tf.gather
    softmax, split, matmul, mean = tf.nn.softmax, tf.split, tf.matmul, tf.reduce_mean
    sum = tf.reduce_sum

    @staticmethod
    def arange(count: int) -> Any:
        """Return the integers below ``count``."""
        return tf.range(count, dtype=tf.int64)

    @staticmethod
    def cross_entropy(labels: Any, x: Any) -> Any:
        """Return cross entropies by one operator, which gives the gradient, too."""
        return tf.nn.softmax_cross_entropy_with_logits(labels, x)

    @staticmethod
    def sigmoid_cross_entropy(labels: Any, x: Any) -> Any:
        """Return cross entropies by several operators."""
        return tf.nn.sigmoid_cross_entropy_with_logits(labels, x)


def optimizer_of(program: TrainingProgram) -> Any:
    """Return the optimizer of `tf.compat.v1`."""
    builder = {
        "sgd": v1.train.GradientDescentOptimizer,
        "adam": v1.train.AdamOptimizer,
        "rmsprop": lambda rate: v1.train.RMSPropOptimizer(rate, 0.9, 0.0, 1e-10),
    }[program.optimizer]
    return builder(program.rate)


def operator_counts(program: TrainingProgram) -> dict[str, int]:
    """Run a step and count its operators by type."""
    drawn = program.drawn()
    with tf.Graph().as_default():
        feeds = {n: v1.placeholder(a.dtype, a.shape, n) for n, a in drawn.feeds.items()}
        with v1.variable_scope("", use_resource=False):
            variables = {
                n: v1.get_variable(n, initializer=tf.zeros(a.shape))
                for n, a in drawn.variables.items()
            }
        values = dict(variables)
        for name, row_numbers in program.rows.items():
            values[f"{name}_rows"] = tf.nn.embedding_lookup(
                variables[name], row_numbers(TensorFlowFunctions, feeds)
            )
        train = optimizer_of(program)
        loss = program.loss(TensorFlowFunctions, values, feeds)
        step = train.apply_gradients(train.compute_gradients(loss, list(variables.values())))
        config = v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        options = v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE)
        with v1.Session(config=config) as session:
            session.run(v1.global_variables_initializer())
            metadata = v1.RunMetadata()
            session_feeds = {feeds[n]: a for n, a in drawn.feeds.items()}
            session.run([loss, step], session_feeds, options=options, run_metadata=metadata)
            operators = {o.name: o for o in session.graph.get_operations()}
    names = [n.node_name for d in metadata.step_stats.dev_stats for n in d.node_stats]
    executed = [
        operators[name] for name in names if name in operators
    ]  # feeds and results are not operators
    return dict(collections.Counter(o.type for o in executed if not is_nothing(o)).most_common())


def is_nothing(operator: Any) -> bool:
    """Return whether an operator computes nothing, or only sizes, which are of int32."""
    sizes = bool(operator.outputs) and all(o.dtype == tf.int32 for o in operator.outputs)
    return operator.type in NO_COMPUTATION or sizes


def main() -> None:
    """Print the counts of every program as JSON."""
    report: dict[str, Any] = {"tensorflow": tf.__version__, "programs": {}}
    for program in PROGRAMS:
        counts = operator_counts(program)
        report["programs"][program.name] = {"total": sum(counts.values()), "operators": counts}
        print(program.name, sum(counts.values()), file=sys.stderr)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
