"""API cases of branches, loops and functions along the first axis."""

from __future__ import annotations

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.math_cases import X, Y
from tests.frontends.tinyflow.surface import CallCase, CombinedValue, RejectedValue, lazy, values

YES = lazy(lambda: tf.random_uniform([]) >= 0.0)
NO = lazy(lambda: tf.random_uniform([]) < 0.0)
ROWS_OF_X = lazy(lambda: tf.constant(X))


def _observe_loop(f, **k):
    """Return the result of a loop, whether it is a list, and whether it has a gradient."""
    out = f(**k)
    end = out[0] if isinstance(out, list) else out
    return [isinstance(out, list), values(end), tf.gradients(end, k["loop_vars"])[0] is None]


def _observe_accumulation(f, **k):
    """Return the result of scan, foldl or map_fn, and whether it has a gradient."""
    out = f(**k)
    return [values(out), tf.gradients(out, k["elems"])[0] is None]


ACCUMULATION = {"fn": lambda a, b: a + b, "elems": ROWS_OF_X}
OTHER_ACCUMULATION = {
    "fn": lambda a, b: a - b,
    "elems": lazy(lambda: tf.constant(Y)),
    "initializer": lazy(lambda: tf.ones([3])),
    "parallel_iterations": RejectedValue(3),
    "back_prop": False,
    "swap_memory": RejectedValue(True),
}
CASES = {
    "cond": CallCase(
        {"pred": YES, "true_fn": lambda: tf.constant(1.0), "false_fn": lambda: tf.constant(2.0)},
        {
            "pred": NO,
            "true_fn": lambda: tf.constant(3.0),
            "false_fn": CombinedValue(lambda: tf.constant(4.0), {"pred": NO}),
            "strict": RejectedValue(True),
            "fn1": CombinedValue(lambda: tf.constant(5.0), {"true_fn": None}),
            "fn2": CombinedValue(lambda: tf.constant(6.0), {"false_fn": None}),
        },
    ),
    "case": CallCase(
        {
            "pred_fn_pairs": lazy(lambda: [(NO(), lambda: tf.constant(1.0))]),
            "default": lambda: tf.constant(2.0),
        },
        {
            "pred_fn_pairs": lazy(lambda: [(YES(), lambda: tf.constant(1.0))]),
            "default": lambda: tf.constant(3.0),
            "exclusive": RejectedValue(True),
            "strict": RejectedValue(True),
        },
    ),
    "while_loop": CallCase(
        {
            "cond": lambda a: tf.reduce_sum(a) < 10.0,
            "body": lambda a: a * a + 1.0,
            "maximum_iterations": 6,
            "loop_vars": lazy(lambda: [tf.constant(X[0])]),
        },
        {
            "cond": lambda a: tf.reduce_sum(a) < 50.0,
            "body": lambda a: a + 3.0,
            "loop_vars": lazy(lambda: [tf.constant(Y[0])]),
            "shape_invariants": RejectedValue([tf.TensorShape.of([4])]),
            "parallel_iterations": RejectedValue(3),
            "back_prop": False,
            "swap_memory": RejectedValue(True),
            "maximum_iterations": 1,
            "return_same_structure": True,
        },
        _observe_loop,
    ),
    "scan": CallCase(
        ACCUMULATION,
        {**OTHER_ACCUMULATION, "infer_shape": RejectedValue(False), "reverse": True},
        _observe_accumulation,
    ),
    "foldl": CallCase(ACCUMULATION, OTHER_ACCUMULATION, _observe_accumulation),
    "map_fn": CallCase(
        {"fn": lambda a: a * a, "elems": ROWS_OF_X},
        {
            "fn": lambda a: -a,
            "elems": lazy(lambda: tf.constant(Y)),
            "dtype": RejectedValue(tf.int32),
            "parallel_iterations": RejectedValue(3),
            "back_prop": False,
            "swap_memory": RejectedValue(True),
            "infer_shape": RejectedValue(False),
            "fn_output_signature": RejectedValue(tf.float32),
        },
        _observe_accumulation,
    ),
}
