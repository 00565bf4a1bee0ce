"""How many operators TensorFlow runs for a step, as its users write it for TensorFlow 1.

    python -m training.in_tensorflow > training/tensorflow_ops.json    # in benchmarks/

Graph mode, `tf.gradients` and the optimizers of `tf.compat.v1`, which apply a gradient by one
operator, with the rewrites of Grappler off. What counts is what the executor ran, by its own trace,
without what computes nothing: variables, constants, feeds, sizes, and what only renames bytes.
"""

from __future__ import annotations

import collections
import json
import os
import sys
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from training import Program
from training.micro import PROGRAMS

v1 = tf.compat.v1
NOTHING = {
    *("Const", "Placeholder", "VariableV2", "Identity", "NoOp", "Reshape", "Shape", "ExpandDims"),
    *("Squeeze", "Assign"),
}
"""Operators that hold or rename bytes; Adam's `Assign` writes two numbers."""


class Functions:
    """tf under the names that the losses use."""

    exp, log, tanh, sigmoid, square = tf.exp, tf.math.log, tf.tanh, tf.sigmoid, tf.square
    concat, where, stack, transpose = tf.concat, tf.where, tf.stack, tf.transpose
    reshape, zeros, ones, take = tf.reshape, tf.zeros, tf.ones, tf.gather
    softmax, split, matmul, mean = tf.nn.softmax, tf.split, tf.matmul, tf.reduce_mean
    sum = tf.reduce_sum

    @staticmethod
    def arange(count: int) -> Any:
        """Whole numbers from 0 on."""
        return tf.range(count, dtype=tf.int64)

    @staticmethod
    def cross_entropy(labels: Any, x: Any) -> Any:
        """One operator, which gives the gradient, too."""
        return tf.nn.softmax_cross_entropy_with_logits(labels, x)

    @staticmethod
    def sigmoid_cross_entropy(labels: Any, x: Any) -> Any:
        """TensorFlow writes it out."""
        return tf.nn.sigmoid_cross_entropy_with_logits(labels, x)


def optimizer_of(program: Program) -> Any:
    """The optimizer of `tf.compat.v1`."""
    made = {
        "sgd": v1.train.GradientDescentOptimizer, "adam": v1.train.AdamOptimizer,
        "rmsprop": lambda rate: v1.train.RMSPropOptimizer(rate, 0.9, 0.0, 1e-10),
    }[program.optimizer]
    return made(program.rate)


def ran(program: Program) -> dict[str, int]:
    """How often each operator ran in a step."""
    drawn = program.drawn()
    with tf.Graph().as_default():
        feeds = {n: v1.placeholder(a.dtype, a.shape, n) for n, a in drawn.feeds.items()}
        with v1.variable_scope("", use_resource=False):
            variables = {n: v1.get_variable(n, initializer=tf.zeros(a.shape))
                         for n, a in drawn.variables.items()}
        given = dict(variables)
        for name, at in program.rows.items():
            given[f"{name}_rows"] = tf.nn.embedding_lookup(variables[name], at(Functions, feeds))
        train = optimizer_of(program)
        loss = program.loss(Functions, given, feeds)
        step = train.apply_gradients(train.compute_gradients(loss, list(variables.values())))
        config = v1.ConfigProto()
        config.graph_options.rewrite_options.disable_meta_optimizer = True
        config.graph_options.optimizer_options.opt_level = -1
        options = v1.RunOptions(trace_level=v1.RunOptions.SOFTWARE_TRACE)
        with v1.Session(config=config) as session:
            session.run(v1.global_variables_initializer())
            found = v1.RunMetadata()
            fed = {feeds[n]: a for n, a in drawn.feeds.items()}
            session.run([loss, step], fed, options=options, run_metadata=found)
            operators = {o.name: o for o in session.graph.get_operations()}
    names = [n.node_name for d in found.step_stats.dev_stats for n in d.node_stats]
    known = [operators[name] for name in names if name in operators]  # feeds and results are not
    return dict(collections.Counter(o.type for o in known if not is_nothing(o)).most_common())


def is_nothing(operator: Any) -> bool:
    """Whether an operator computes nothing, or only sizes, which are of int32."""
    sizes = bool(operator.outputs) and all(o.dtype == tf.int32 for o in operator.outputs)
    return operator.type in NOTHING or sizes


def main() -> None:
    """Print the counts of every program."""
    report: dict[str, Any] = {"tensorflow": tf.__version__, "programs": {}}
    for program in PROGRAMS:
        counts = ran(program)
        report["programs"][program.name] = {"total": sum(counts.values()), "operators": counts}
        print(program.name, sum(counts.values()), file=sys.stderr)
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
