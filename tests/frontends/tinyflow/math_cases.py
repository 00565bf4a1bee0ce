"""API cases of mathematics, arrays and random tensors."""

from __future__ import annotations

import numpy as np

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.surface import CallCase, CombinedValue, RejectedValue, lazy, values

X = np.array([[0.5, -1.25, 2.0], [0.75, 0.25, -0.5]], np.float32)
Y = np.array([[1.5, 0.75, -1.0], [0.5, 2.25, 1.5]], np.float32)
POSITIVE = np.abs(X) / 3
TRUTHS = np.array([[True, False, True], [False, False, True]])
OTHER = np.array([[True, True, False], [False, True, True]])
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

UNARY = (
    "abs negative square sqrt rsqrt exp expm1 log log1p sign floor ceil round sin cos tan tanh "
    "asin acos atan sigmoid erf erfc lgamma reciprocal"
)
BINARY = (
    "add subtract multiply divide div truediv floordiv mod pow maximum minimum squared_difference "
    "equal not_equal less less_equal greater greater_equal"
)
REDUCTIONS = "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_logsumexp"
REDUCTION_ARGUMENTS = {"axis": 1, "keepdims": True, "reduction_indices": 0, "keep_dims": True}

CASES = {
    "norm": CallCase(
        {"tensor": X}, {"tensor": Y, "ord": 1, "axis": 1, "keepdims": True, "keep_dims": True}
    ),
    **{n: CallCase({"x": POSITIVE}, {"x": X}) for n in UNARY.split()},
    "atan2": CallCase({"y": X, "x": Y}, {"y": Y, "x": X}),
    **{
        n: CallCase(
            {"x": POSITIVE, "y": POSITIVE}, {"x": POSITIVE[:, ::-1], "y": POSITIVE[:, ::-1]}
        )
        for n in BINARY.split()
    },
    **{
        n: CallCase({"x": np.array([1.0, 2.0])}, {"x": np.array([np.nan, np.inf])})
        for n in ("is_nan", "is_inf", "is_finite")
    },
    **{
        n: CallCase({"x": TRUTHS, "y": OTHER}, {"x": ~TRUTHS, "y": ~OTHER})
        for n in ("logical_and", "logical_or", "logical_xor")
    },
    "logical_not": CallCase({"x": TRUTHS}, {"x": OTHER}),
    **{
        n: CallCase({"input_tensor": X}, {"input_tensor": Y, **REDUCTION_ARGUMENTS})
        for n in REDUCTIONS.split()
    },
    **{
        n: CallCase({"input_tensor": TRUTHS}, {"input_tensor": v, **REDUCTION_ARGUMENTS})
        for n, v in (("reduce_all", ~TRUTHS | TRUTHS), ("reduce_any", TRUTHS & ~TRUTHS))
    },
    **{
        n: CallCase({"input": X}, {"input": Y, "axis": 1, "dimension": 1, "output_type": tf.int32})
        for n in ("argmax", "argmin")
    },
    **{
        n: CallCase(
            {"input": X, "dimension": 0}, {"input": Y, "dimension": 1, "output_type": tf.int32}
        )
        for n in ("arg_max", "arg_min")
    },
    "add_n": CallCase({"inputs": [X, Y]}, {"inputs": [X, Y, Y]}),
    "cast": CallCase({"x": X, "dtype": tf.int32}, {"x": Y, "dtype": tf.float64}),
    "to_float": CallCase({"x": np.array([1, 2])}, {"x": np.array([1, 3])}),
    "to_int32": CallCase({"x": X}, {"x": Y}),
    "identity": CallCase({"input": X}, {"input": Y}),
    "stop_gradient": CallCase(
        {"input": X},
        {"input": Y},
        lambda f, input, name=None: [
            f(input, name=name).name,
            input.sum(),
            tf.gradients(f(tf.constant(input)), tf.constant(input))[0],
        ],
    ),
    "where": CallCase(
        {"condition": TRUTHS, "x": X, "y": Y}, {"condition": OTHER, "x": X + 1, "y": Y + 1}
    ),
    "check_numerics": CallCase(
        {"tensor": X, "message": "no"},
        {"tensor": Y, "message": CombinedValue("why", {"tensor": np.full_like(X, np.nan)})},
        lambda f, **k: _observe_check(f, **k),
    ),
    "cumsum": CallCase({"x": X}, {"x": Y, "axis": 1, "exclusive": True, "reverse": True}),
    "cumprod": CallCase({"x": X}, {"x": Y, "axis": 1, "exclusive": True, "reverse": True}),
    "reshape": CallCase({"tensor": X, "shape": [3, 2]}, {"tensor": Y, "shape": [-1]}),
    "transpose": CallCase(
        {"a": CUBE}, {"a": CUBE + 1, "perm": [0, 2, 1], "conjugate": RejectedValue(True)}
    ),
    "concat": CallCase({"values": [X, Y], "axis": 0}, {"values": [Y, X], "axis": 1}),
    "split": CallCase(
        {"value": CUBE, "num_or_size_splits": 2, "axis": 0},
        {"value": CUBE + 1, "num_or_size_splits": [1, 3], "axis": 2, "num": RejectedValue(5)}
        | {"num_or_size_splits": CombinedValue([1, 3], {"axis": 2})},
    ),
    "stack": CallCase({"values": [X, Y]}, {"values": [Y, X], "axis": 1}),
    "unstack": CallCase({"value": X}, {"value": Y, "num": RejectedValue(5), "axis": 1}),
    "slice": CallCase(
        {"input_": X, "begin": [0, 1], "size": [2, 2]},
        {"input_": Y, "begin": [0, 0], "size": [1, -1]},
    ),
    "gather": CallCase(
        {"params": CUBE, "indices": [0, 1]},
        {
            "params": CUBE + 1,
            "indices": [1, 1],
            "axis": 1,
            "validate_indices": RejectedValue(True),
            "batch_dims": CombinedValue(1, {"indices": [[0], [1]]}),
        },
    ),
    "shape": CallCase({"input": X}, {"input": CUBE, "out_type": tf.int64}),
    "size": CallCase({"input": X}, {"input": CUBE, "out_type": tf.int64}),
    "rank": CallCase({"input": X}, {"input": CUBE}),
    "expand_dims": CallCase(
        {"input": X, "axis": 0}, {"input": Y, "axis": 1, "dim": RejectedValue(1)}
    ),
    "squeeze": CallCase(
        {"input": X[:1, :, None]}, {"input": Y[:1, :, None], "axis": 0, "squeeze_dims": 2}
    ),
    "one_hot": CallCase(
        {"indices": [0, 2], "depth": 3},
        {
            "indices": [1, 1],
            "depth": 4,
            "on_value": 5.0,
            "off_value": -1.0,
            "axis": 0,
            "dtype": tf.int32,
        },
    ),
    "pad": CallCase(
        {"tensor": X, "paddings": [[1, 0], [0, 2]]},
        {"tensor": Y, "paddings": [[1, 1], [0, 1]], "constant_values": 3, "mode": "REFLECT"},
    ),
    "tile": CallCase({"input": X, "multiples": [1, 2]}, {"input": Y, "multiples": [2, 1]}),
    "reverse": CallCase({"tensor": X, "axis": [0]}, {"tensor": Y, "axis": [1]}),
    "sequence_mask": CallCase(
        {"lengths": [1, 3], "maxlen": 4}, {"lengths": [2, 3], "maxlen": 5, "dtype": tf.float32}
    ),
    "zeros": CallCase(
        {"shape": [2]}, {"shape": [3], "dtype": tf.int32, "layout": RejectedValue("row")}
    ),
    "ones": CallCase(
        {"shape": [2]}, {"shape": [3], "dtype": tf.int32, "layout": RejectedValue("row")}
    ),
    "zeros_like": CallCase(
        {"tensor": X}, {"tensor": CUBE, "dtype": tf.int32, "optimize": RejectedValue(False)}
    ),
    "ones_like": CallCase(
        {"tensor": X}, {"tensor": CUBE, "dtype": tf.int32, "optimize": RejectedValue(False)}
    ),
    "fill": CallCase(
        {"dims": [2], "value": 1.5}, {"dims": [3], "value": 2.5, "layout": RejectedValue("row")}
    ),
    "range": CallCase(
        {"start": 1, "limit": 7}, {"start": 2, "limit": 8, "delta": 2, "dtype": tf.float32}
    ),
    "linspace": CallCase(
        {"start": 0.0, "stop": 1.0, "num": 3},
        {"start": 0.5, "stop": 2.0, "num": 4, "axis": RejectedValue(1)},
    ),
    "eye": CallCase(
        {"num_rows": 2}, {"num_rows": 3, "num_columns": 4, "batch_shape": [2], "dtype": tf.float64}
    ),
    "matmul": CallCase(
        {"a": X[:, :2], "b": Y[:, :2]},
        {"a": Y[:, :2], "b": X[:, :2], "transpose_a": True, "transpose_b": True}
        | {
            n: RejectedValue(True)
            for n in ("adjoint_a", "adjoint_b", "a_is_sparse", "b_is_sparse", "grad_a", "grad_b")
        }
        | {"output_type": RejectedValue(tf.int32)},
    ),
    "tensordot": CallCase(
        {"a": X, "b": Y.T, "axes": 1},
        {"a": Y, "b": X.T, "axes": CombinedValue([[0, 1], [0, 1]], {"b": Y})},
    ),
    "einsum": CallCase(
        {"*": ("ij,ij->i", X, Y)},
        {
            "equation": CombinedValue(None, {"*": ("ij,ij->j", X, Y)}),
            "inputs": CombinedValue(None, {"*": ("ij,ij->i", Y, Y)}),
            "kwargs": CombinedValue(None, {"name": "given"}),
        },
        lambda f, **k: _observe_einsum(f, k),
    ),
    "clip_by_value": CallCase(
        {"t": X, "clip_value_min": -0.5, "clip_value_max": 0.6},
        {"t": Y, "clip_value_min": 0.0, "clip_value_max": 0.1},
    ),
    "clip_by_norm": CallCase({"t": X, "clip_norm": 1.0}, {"t": Y, "clip_norm": 0.5, "axes": [1]}),
    "global_norm": CallCase({"t_list": [X, Y]}, {"t_list": [X, None]}),
    "clip_by_global_norm": CallCase(
        {"t_list": [X, Y], "clip_norm": 1.0}, {"t_list": [X, X], "clip_norm": 0.5, "use_norm": 9.0}
    ),
    "random_normal": CallCase(
        {"shape": [3]}, {"shape": [4], "mean": 1.0, "stddev": 2.0, "dtype": tf.float64, "seed": 4}
    ),
    "truncated_normal": CallCase(
        {"shape": [3]}, {"shape": [4], "mean": 1.0, "stddev": 2.0, "dtype": tf.float64, "seed": 4}
    ),
    "random_uniform": CallCase(
        {"shape": [3]},
        {
            "shape": [4],
            "minval": -1,
            "maxval": 2,
            "seed": 4,
            "dtype": CombinedValue(tf.int32, {"maxval": 9}),
        },
    ),
    "random_shuffle": CallCase({"value": np.arange(30)}, {"value": np.arange(31), "seed": 4}),
    "placeholder": CallCase(
        {"dtype": tf.float32, "shape": [2]},
        {"dtype": tf.int32, "shape": [None, 3]},
        lambda f, **k: repr(f(**k)),
    ),
    "placeholder_with_default": CallCase(
        {"input": X, "shape": [2, 3]}, {"input": Y, "shape": RejectedValue([4])}
    ),
    "constant": CallCase(
        {"value": [1.0, 2.0]},
        {
            "value": [1.0, 3.0],
            "dtype": tf.float64,
            "shape": [3],
            "verify_shape": CombinedValue(RejectedValue(True), {"shape": [3]}),
        },
    ),
    "gradients": CallCase(
        {"ys": lazy(lambda: _parabola()), "xs": lazy(lambda: _point())},
        {
            "ys": lazy(lambda: _parabola() * 2),
            "xs": lazy(lambda: [_point(), _parabola()]),
            "grad_ys": [np.array([2.0, 3.0], np.float32)],
            "colocate_gradients_with_ops": RejectedValue(True),
            "gate_gradients": RejectedValue(True),
            "aggregation_method": RejectedValue(1),
            "stop_gradients": lazy(lambda: [_parabola()]),
            "unconnected_gradients": CombinedValue(
                "zero", {"xs": lazy(lambda: tf.constant([1.0]))}
            ),
        },
        lambda f, ys, xs, **k: _observe_gradients(f, ys, xs, **k),
    ),
}


def _observe_einsum(f, arguments):
    positional = arguments.pop("*")
    return values(f(*positional, **{k: v for k, v in arguments.items() if k == "name"}))


def _observe_check(f, **k):
    try:
        return values(f(**k))
    except tf.NumericsError as error:
        return str(error)


def _point():
    graph = tf.get_default_graph()
    if not graph.get_collection("point"):
        graph.add_to_collection("point", tf.constant([1.0, 2.0], name="point"))
    return graph.get_collection("point")[0]


def _parabola():
    graph = tf.get_default_graph()
    if not graph.get_collection("parabola"):
        graph.add_to_collection("parabola", _point() * _point())
    return graph.get_collection("parabola")[0]


def _observe_gradients(f, ys, xs, **more):
    gradients = f(ys, xs, **more)
    return [[g is None for g in gradients], values(gradients)]
