"""Rows of the surface: mathematics, arrays, draws."""

from __future__ import annotations

import numpy as np

from passkit.frontends import tinyflow as tf
from tests.frontends.tinyflow.surface import Also, Refused, Row, lazy

X = np.array([[0.5, -1.25, 2.0], [0.75, 0.25, -0.5]], np.float32)
Y = np.array([[1.5, 0.75, -1.0], [0.5, 2.25, 1.5]], np.float32)
POSITIVE = np.abs(X) / 3
TRUTHS = np.array([[True, False, True], [False, False, True]])
OTHER = np.array([[True, True, False], [False, True, True]])
CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

UNARY = (
    "abs negative square sqrt rsqrt exp expm1 log log1p sign floor ceil round sin cos tan tanh "
    "sigmoid erf reciprocal"
)
BINARY = (
    "add subtract multiply divide div truediv floordiv mod pow maximum minimum squared_difference "
    "equal not_equal less less_equal greater greater_equal"
)
FOLDS = "reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_logsumexp"
FOLDED = {"axis": 1, "keepdims": True, "reduction_indices": 0, "keep_dims": True}

ROWS = {
    "norm": Row({"tensor": X}, {"tensor": Y, "ord": 1, "axis": 1, "keepdims": True,
                                "keep_dims": True}),
    **{n: Row({"x": POSITIVE}, {"x": X}) for n in UNARY.split()},
    **{n: Row({"x": POSITIVE, "y": POSITIVE}, {"x": POSITIVE[:, ::-1], "y": POSITIVE[:, ::-1]})
       for n in BINARY.split()},
    **{n: Row({"x": np.array([1.0, 2.0])}, {"x": np.array([np.nan, np.inf])})
       for n in ("is_nan", "is_inf", "is_finite")},
    **{n: Row({"x": TRUTHS, "y": OTHER}, {"x": ~TRUTHS, "y": ~OTHER})
       for n in ("logical_and", "logical_or", "logical_xor")},
    "logical_not": Row({"x": TRUTHS}, {"x": OTHER}),
    **{n: Row({"input_tensor": X}, {"input_tensor": Y, **FOLDED}) for n in FOLDS.split()},
    **{n: Row({"input_tensor": TRUTHS}, {"input_tensor": v, **FOLDED})
       for n, v in (("reduce_all", ~TRUTHS | TRUTHS), ("reduce_any", TRUTHS & ~TRUTHS))},
    **{n: Row({"input": X}, {"input": Y, "axis": 1, "dimension": 1, "output_type": tf.int32})
       for n in ("argmax", "argmin")},
    **{n: Row({"input": X, "dimension": 0}, {"input": Y, "dimension": 1, "output_type": tf.int32})
       for n in ("arg_max", "arg_min")},
    "add_n": Row({"inputs": [X, Y]}, {"inputs": [X, Y, Y]}),
    "cast": Row({"x": X, "dtype": tf.int32}, {"x": Y, "dtype": tf.float64}),
    "to_float": Row({"x": np.array([1, 2])}, {"x": np.array([1, 3])}),
    "to_int32": Row({"x": X}, {"x": Y}),
    "identity": Row({"input": X}, {"input": Y}),
    "stop_gradient": Row(
        {"input": X}, {"input": Y},
        lambda f, input, name=None: [
            *(f(input, name=name).name, input.sum()),
            tf.gradients(f(tf.constant(input)), tf.constant(input))[0],
        ],
    ),
    "where": Row({"condition": TRUTHS, "x": X, "y": Y},
                 {"condition": OTHER, "x": X + 1, "y": Y + 1}),
    "check_numerics": Row({"tensor": X, "message": "no"},
                          {"tensor": Y,
                           "message": Also("why", {"tensor": np.full_like(X, np.nan)})},
                          lambda f, **k: _checked(f, **k)),
    "cumsum": Row({"x": X}, {"x": Y, "axis": 1, "exclusive": True, "reverse": True}),
    "cumprod": Row({"x": X}, {"x": Y, "axis": 1, "exclusive": True, "reverse": True}),
    "reshape": Row({"tensor": X, "shape": [3, 2]}, {"tensor": Y, "shape": [-1]}),
    "transpose": Row({"a": CUBE}, {"a": CUBE + 1, "perm": [0, 2, 1], "conjugate": Refused(True)}),
    "concat": Row({"values": [X, Y], "axis": 0}, {"values": [Y, X], "axis": 1}),
    "split": Row({"value": CUBE, "num_or_size_splits": 2, "axis": 0},
                 {"value": CUBE + 1, "num_or_size_splits": [1, 3], "axis": 2, "num": Refused(5)}
                 | {"num_or_size_splits": Also([1, 3], {"axis": 2})}),
    "stack": Row({"values": [X, Y]}, {"values": [Y, X], "axis": 1}),
    "unstack": Row({"value": X}, {"value": Y, "num": Refused(5), "axis": 1}),
    "slice": Row({"input_": X, "begin": [0, 1], "size": [2, 2]},
                 {"input_": Y, "begin": [0, 0], "size": [1, -1]}),
    "gather": Row({"params": CUBE, "indices": [0, 1]},
                  {"params": CUBE + 1, "indices": [1, 1], "axis": 1, "validate_indices":
                   Refused(True), "batch_dims": Also(1, {"indices": [[0], [1]]})}),
    "shape": Row({"input": X}, {"input": CUBE, "out_type": tf.int64}),
    "size": Row({"input": X}, {"input": CUBE, "out_type": tf.int64}),
    "rank": Row({"input": X}, {"input": CUBE}),
    "expand_dims": Row({"input": X, "axis": 0}, {"input": Y, "axis": 1, "dim": Refused(1)}),
    "squeeze": Row({"input": X[:1, :, None]},
                   {"input": Y[:1, :, None], "axis": 0, "squeeze_dims": 2}),
    "one_hot": Row({"indices": [0, 2], "depth": 3},
                   {"indices": [1, 1], "depth": 4, "on_value": 5.0, "off_value": -1.0, "axis": 0,
                    "dtype": tf.int32}),
    "pad": Row({"tensor": X, "paddings": [[1, 0], [0, 2]]},
               {"tensor": Y, "paddings": [[1, 1], [0, 1]], "constant_values": 3,
                "mode": "REFLECT"}),
    "tile": Row({"input": X, "multiples": [1, 2]}, {"input": Y, "multiples": [2, 1]}),
    "reverse": Row({"tensor": X, "axis": [0]}, {"tensor": Y, "axis": [1]}),
    "sequence_mask": Row({"lengths": [1, 3], "maxlen": 4},
                         {"lengths": [2, 3], "maxlen": 5, "dtype": tf.float32}),
    "zeros": Row({"shape": [2]}, {"shape": [3], "dtype": tf.int32, "layout": Refused("row")}),
    "ones": Row({"shape": [2]}, {"shape": [3], "dtype": tf.int32, "layout": Refused("row")}),
    "zeros_like": Row({"tensor": X}, {"tensor": CUBE, "dtype": tf.int32,
                                      "optimize": Refused(False)}),
    "ones_like": Row({"tensor": X}, {"tensor": CUBE, "dtype": tf.int32,
                                     "optimize": Refused(False)}),
    "fill": Row({"dims": [2], "value": 1.5},
                {"dims": [3], "value": 2.5, "layout": Refused("row")}),
    "range": Row({"start": 1, "limit": 7},
                 {"start": 2, "limit": 8, "delta": 2, "dtype": tf.float32}),
    "linspace": Row({"start": 0.0, "stop": 1.0, "num": 3},
                    {"start": 0.5, "stop": 2.0, "num": 4, "axis": Refused(1)}),
    "eye": Row({"num_rows": 2}, {"num_rows": 3, "num_columns": 4, "batch_shape": [2],
                                 "dtype": tf.float64}),
    "matmul": Row({"a": X[:, :2], "b": Y[:, :2]},
                  {"a": Y[:, :2], "b": X[:, :2], "transpose_a": True, "transpose_b": True}
                  | {n: Refused(True) for n in ("adjoint_a", "adjoint_b", "a_is_sparse",
                                                "b_is_sparse", "grad_a", "grad_b")}
                  | {"output_type": Refused(tf.int32)}),
    "tensordot": Row({"a": X, "b": Y.T, "axes": 1},
                     {"a": Y, "b": X.T, "axes": Also([[0, 1], [0, 1]], {"b": Y})}),
    "einsum": Row({"*": ("ij,ij->i", X, Y)},
                  {"equation": Also(None, {"*": ("ij,ij->j", X, Y)}),
                   "inputs": Also(None, {"*": ("ij,ij->i", Y, Y)}),
                   "kwargs": Also(None, {"name": "given"})},
                  lambda f, **k: _einsum(f, k)),
    "clip_by_value": Row({"t": X, "clip_value_min": -0.5, "clip_value_max": 0.6},
                         {"t": Y, "clip_value_min": 0.0, "clip_value_max": 0.1}),
    "clip_by_norm": Row({"t": X, "clip_norm": 1.0}, {"t": Y, "clip_norm": 0.5, "axes": [1]}),
    "global_norm": Row({"t_list": [X, Y]}, {"t_list": [X, None]}),
    "clip_by_global_norm": Row({"t_list": [X, Y], "clip_norm": 1.0},
                               {"t_list": [X, X], "clip_norm": 0.5, "use_norm": 9.0}),
    "random_normal": Row({"shape": [3]}, {"shape": [4], "mean": 1.0, "stddev": 2.0,
                                          "dtype": tf.float64, "seed": 4}),
    "truncated_normal": Row({"shape": [3]}, {"shape": [4], "mean": 1.0, "stddev": 2.0,
                                             "dtype": tf.float64, "seed": 4}),
    "random_uniform": Row({"shape": [3]}, {"shape": [4], "minval": -1, "maxval": 2, "seed": 4,
                                           "dtype": Also(tf.int32, {"maxval": 9})}),
    "random_shuffle": Row({"value": np.arange(30)}, {"value": np.arange(31), "seed": 4}),
    "placeholder": Row(
        {"dtype": tf.float32, "shape": [2]}, {"dtype": tf.int32, "shape": [None, 3]},
        lambda f, **k: repr(f(**k)),
    ),
    "placeholder_with_default": Row({"input": X, "shape": [2, 3]},
                                    {"input": Y, "shape": Refused([4])}),
    "constant": Row({"value": [1.0, 2.0]},
                    {"value": [1.0, 3.0], "dtype": tf.float64, "shape": [3],
                     "verify_shape": Also(Refused(True), {"shape": [3]})}),
    "gradients": Row(
        {"ys": lazy(lambda: _parabola()), "xs": lazy(lambda: _point())},
        {"ys": lazy(lambda: _parabola() * 2), "xs": lazy(lambda: [_point(), _parabola()]),
         "grad_ys": [np.array([2.0, 3.0], np.float32)],
         "colocate_gradients_with_ops": Refused(True), "gate_gradients": Refused(True),
         "aggregation_method": Refused(1), "stop_gradients": lazy(lambda: [_parabola()]),
         "unconnected_gradients": Also("zero", {"xs": lazy(lambda: tf.constant([1.0]))})},
        lambda f, ys, xs, **k: _gradients(f, ys, xs, **k),
    ),
}


def _einsum(f, arguments):
    from tests.frontends.tinyflow.surface import values

    positional = arguments.pop("*")
    return values(f(*positional, **{k: v for k, v in arguments.items() if k == "name"}))


def _checked(f, **k):
    from tests.frontends.tinyflow.surface import values

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


def _gradients(f, ys, xs, **more):
    from tests.frontends.tinyflow.surface import values

    found = f(ys, xs, **more)
    return [[g is None for g in found], values(found)]
