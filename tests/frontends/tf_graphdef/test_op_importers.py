"""Imported TensorFlow operators equal reference results in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import passkit as pk
from passkit.frontends import tf_graphdef
from tests.frontends.tf_graphdef.models import (
    OP_IMPORTERS,
    GraphDef,
    const,
    model,
    node,
    placeholder,
)
from tests.frontends.tf_graphdef.reference.case import FIXTURES, stored

Array = np.ndarray[Any, Any]

X = np.random.default_rng(1).normal(size=(4, 3, 5)).astype(np.float32)
Y = np.random.default_rng(2).normal(size=(3, 5)).astype(np.float32)
P = np.abs(X) + np.float32(0.1)
A, B = np.ascontiguousarray(X[:, 0]), np.ascontiguousarray(Y.T)
ROW, FEW = np.ascontiguousarray(X[0]), np.ascontiguousarray(Y[:, 0])
I = np.arange(-6, 6, dtype=np.int32).reshape(4, 3)  # noqa: E741 - integers, beside X and Y
C = np.arange(12).reshape(4, 3) % 5 < 2
HALVES = np.array([-2.5, -0.5, 0.5, 1.5, np.nan, np.inf], np.float32)


def run(*nodes: Any, **feeds: Array) -> list[Array]:
    """Return the results of a model for inputs with a free batch size."""
    inputs = [
        placeholder(k, *((None, *v.shape[1:]) if v.ndim else ()), dtype=v.dtype.name)
        for k, v in feeds.items()
    ]
    graph = tf_graphdef.load(model(*inputs, *nodes))
    return pk.interpret(graph, feeds)


def erf(x: Array) -> Array:
    """Return the error function by Python's math module."""
    from math import erf as one

    return np.vectorize(one)(x).astype(x.dtype)


UNARY: dict[str, tuple[Callable[[Array], Array], Array]] = {
    "Abs": (np.abs, X),
    "Ceil": (np.ceil, HALVES),
    "Cos": (np.cos, X),
    "Erf": (erf, X),
    "Exp": (np.exp, X),
    "Expm1": (np.expm1, X),
    "Floor": (np.floor, HALVES),
    "Log": (np.log, P),
    "Log1p": (np.log1p, P),
    "LogicalNot": (np.logical_not, C),
    "Neg": (np.negative, I),
    "OnesLike": (np.ones_like, I),
    "Reciprocal": (np.reciprocal, P),
    "Relu": (lambda x: np.maximum(x, 0), HALVES),
    "Relu6": (lambda x: np.clip(x, 0, 6), X * 10),
    "Rint": (np.rint, HALVES),
    "Rsqrt": (lambda x: 1 / np.sqrt(x), P),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), X),
    "Sign": (np.sign, I),
    "Sin": (np.sin, X),
    "Sqrt": (np.sqrt, P),
    "Square": (np.square, I),
    "Tanh": (np.tanh, X),
    "ZerosLike": (np.zeros_like, X),
    "Softmax": (lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True), X),
    "LogSoftmax": (lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True)), X),
    "Identity": (lambda x: x, X),
    "StopGradient": (lambda x: x, X),
    "PreventGradient": (lambda x: x, X),
    "Snapshot": (lambda x: x, X),
}

BINARY: dict[str, tuple[Callable[[Array, Array], Array], Array, Array]] = {
    "Add": (np.add, X, Y),
    "AddV2": (np.add, I, I),
    "Div": (np.divide, X, Y),
    "Equal": (np.equal, C, C[0]),
    "FloorDiv": (np.floor_divide, I, I + 20),
    "Greater": (np.greater, X, Y),
    "GreaterEqual": (np.greater_equal, I, -I),
    "Less": (np.less, X, Y),
    "LessEqual": (np.less_equal, I, -I),
    "LogicalAnd": (np.logical_and, C, C[0]),
    "LogicalOr": (np.logical_or, C, C[0]),
    "Maximum": (np.maximum, HALVES, -HALVES),
    "Minimum": (np.minimum, X, Y),
    "Mul": (np.multiply, X, Y),
    "NotEqual": (np.not_equal, I, -I),
    "Pow": (np.power, P, Y),
    "RealDiv": (np.divide, X, Y),
    "SquaredDifference": (lambda x, y: (x - y) ** 2, X, Y),
    "Sub": (np.subtract, X, Y),
    "BatchMatMul": (np.matmul, X, X.transpose(0, 2, 1)),
    "BatchMatMulV2": (np.matmul, X, B),
    "BiasAdd": (np.add, X, Y[0]),
    "MatMul": (np.matmul, A, B),
}

MORE: dict[str, tuple[list[Any], dict[str, Array], Any]] = {
    "Cast to int": ([node("Cast", "y", "x", DstT=np.dtype("int32"))], {"x": X}, X.astype("int32")),
    "Cast to bool": ([node("Cast", "y", "x", DstT=np.dtype("bool"))], {"x": I}, I != 0),
    "Select": ([node("Select", "y", "c", "a", "b")], {"c": C, "a": I, "b": -I}, np.where(C, I, -I)),
    "Select rows": (
        [node("Select", "y", "c", "a", "b")],
        {"c": C[:, 0].copy(), "a": I, "b": -I},
        np.where(C[:, :1], I, -I),
    ),
    "SelectV2": (
        [node("SelectV2", "y", "c", "a", "b")],
        {"c": C[0], "a": I, "b": -I},
        np.where(C[0], I, -I),
    ),
    "FloorDiv of floats": (
        [node("FloorDiv", "y", "a", "b")],
        {"a": X, "b": Y},
        np.floor(X / Y),
    ),
    "MatMul transposed": (
        [node("MatMul", "y", "a", "b", transpose_b=True, transpose_a=False)],
        {"a": A, "b": Y},
        A @ B,
    ),
    "BatchMatMulV2 adjoint": (
        [node("BatchMatMulV2", "y", "a", "b", adj_y=True)],
        {"a": X, "b": X},
        X @ X.transpose(0, 2, 1),
    ),
    "BiasAdd NCHW": (
        [node("BiasAdd", "y", "a", "b", data_format="NCHW")],
        {"a": X, "b": FEW},
        X + FEW[:, None],
    ),
    "Reshape": ([const("s", [-1, 15]), node("Reshape", "y", "x", "s")], {"x": X}, X.reshape(4, 15)),
    "Transpose": (
        [const("p", [2, 0, 1]), node("Transpose", "y", "x", "p")],
        {"x": X},
        X.transpose(2, 0, 1),
    ),
    "BroadcastTo": (
        [const("s", [4, 3, 5]), node("BroadcastTo", "y", "x", "s")],
        {"x": Y[0]},
        np.broadcast_to(Y[0], (4, 3, 5)),
    ),
    "Fill": (
        [const("s", [2, 3]), node("Fill", "y", "s", "x")],
        {"x": np.array(7.0, "float32")},
        np.full((2, 3), 7, "float32"),
    ),
    "ExpandDims": ([const("k", -2), node("ExpandDims", "y", "x", "k")], {"x": I}, I[:, None]),
    "Squeeze": ([node("Squeeze", "y", "x", squeeze_dims=[1])], {"x": I[:, :1]}, I[:, 0]),
    "Squeeze all": ([const("c", Y[:, None]), node("Squeeze", "y", "c")], {}, Y),
    "ConcatV2": (
        [const("k", -1), node("ConcatV2", "y", "x", "x", "k")],
        {"x": I},
        np.concatenate([I, I], -1),
    ),
    "Concat": (
        [const("k", 1), node("Concat", "y", "k", "x", "x")],
        {"x": I},
        np.concatenate([I, I], 1),
    ),
    "Pack": ([node("Pack", "y", "x", "x", axis=-1)], {"x": I}, np.stack([I, I], -1)),
    "Slice": (
        [const("b", [0, 1, 2]), const("s", [-1, 2, -1]), node("Slice", "y", "x", "b", "s")],
        {"x": X},
        X[:, 1:3, 2:],
    ),
    "Split": (
        [const("k", 2), node("Split", "s", "k", "x", num_split=5), node("Neg", "y", "s:3")],
        {"x": X},
        -X[:, :, 3:4],
    ),
    "Unpack": (
        [node("Unpack", "u", "x", num=3, axis=1), node("Sub", "y", "u:2", "u")],
        {"x": X},
        X[:, 2] - X[:, 0],
    ),
    "TopK": (
        [node("TopK", "t", "x", k=2), node("Neg", "y", "t")],
        {"x": X},
        -np.sort(X, axis=-1)[..., :2:-1],
    ),
    "IdentityN": (
        [node("IdentityN", "n", "x", "z"), node("Sub", "y", "n:1", "n:0")],
        {"x": X, "z": P},
        P - X,
    ),
    "PlaceholderWithDefault": (
        [const("d", 2.0), node("PlaceholderWithDefault", "p", "d"), node("Mul", "y", "p", "x")],
        {"x": X},
        2 * X,
    ),
}


def close(got: Array, want: Array) -> None:
    """Check dtype, shape and values; integers and booleans must be equal."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("op", UNARY)
def test_operators_of_one_input(op: str) -> None:
    """Operators of one input equal NumPy."""
    want, x = UNARY[op]
    with np.errstate(all="ignore"):
        close(run(node(op, "y", "x"), x=x)[0], want(x))


@pytest.mark.parametrize("op", BINARY)
def test_operators_of_two_inputs_broadcast(op: str) -> None:
    """Operators of two inputs equal NumPy and broadcast."""
    want, a, b = BINARY[op]

    close(run(node(op, "y", "a", "b"), a=a, b=b)[0], want(a, b))


@pytest.mark.parametrize("case", MORE)
def test_operators_with_attributes_or_known_inputs(case: str) -> None:
    """Operators with attributes, known inputs or several outputs equal NumPy."""
    nodes, feeds, want = MORE[case]
    close(run(*nodes, **feeds)[0], want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("target", ["interpret", "blocks"])
def test_argmax_ignores_nan_as_tensorflow_does(dtype: str, target: str) -> None:
    """ArgMax and ArgMin equal TensorFlow 2.21's, which ignore NaN and start with element 0."""
    nan, inf = np.nan, np.inf
    kind = pk.ast.dt.dtype_of(dtype).numpy
    most = float(ml_dtypes.finfo(kind).max)
    rows: list[tuple[list[float], int, int]] = [
        ([1, nan, 3], 2, 0),
        ([nan, 1, 3], 2, 1),
        ([1, 2, nan], 1, 0),
        ([nan, nan, nan], 0, 0),
        ([nan, -inf, nan], 0, 1),
        ([nan, inf, nan], 1, 0),
        ([-inf, -most, nan], 0, 0),
        ([-inf, -most, -1], 2, 0),
        ([nan, -inf, -most], 0, 1),
        ([inf, most, nan], 0, 0),
        ([nan, most, inf], 2, 0),
        ([inf, most, 1], 0, 2),
        ([-0.0, 0.0, -0.0], 0, 0),
    ]
    x = np.array([row for row, _, _ in rows], kind)
    nodes = [
        const("axis", 1),
        node("ArgMax", "most", "x", "axis"),
        node("ArgMin", "least", "x", "axis"),
    ]
    inputs = placeholder("x", None, 3, dtype=dtype)
    graph = tf_graphdef.load(model(inputs, *nodes), outputs=["most", "least"])
    results = pk.compile(graph, target=target)({"x": x})

    assert results[0].tolist() == [largest for _, largest, _ in rows]
    assert results[1].tolist() == [smallest for _, _, smallest in rows]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("sign", ["", "u"])
def test_shift_counts_are_clamped_as_in_tensorflow(sign: str, bits: int) -> None:
    """Shift counts are clamped to the range from 0 to the width minus 1, as in TensorFlow 2.21."""
    kind = np.dtype(f"{sign}int{bits}")
    counts = [0, 1, bits - 1, bits, bits + 1, 100, int(np.iinfo(kind).max)]
    counts += [] if sign else [-1, -bits, int(np.iinfo(kind).min)]
    n = np.array(counts, kind)
    x = np.full(len(counts), np.array(-5).astype(kind))
    nodes = [node("LeftShift", "left", "x", "n"), node("RightShift", "right", "x", "n")]
    inputs = [placeholder(name, None, dtype=kind.name) for name in ("x", "n")]
    graph = tf_graphdef.load(model(*inputs, *nodes), outputs=["left", "right"])
    left, right = pk.interpret(graph, {"x": x, "n": n})

    near = [min(max(count, 0), bits - 1) for count in counts]
    assert left.tolist() == np.left_shift(x, np.array(near, kind)).tolist()
    assert right.tolist() == np.right_shift(x, np.array(near, kind)).tolist()


REDUCTIONS = ("Sum", "Mean", "Max", "Min", "Prod", "Any", "All")


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize("axes", [[0], [-1], [0, 2], [], 1])
def test_reductions_over_any_axes(op: str, axes: Any) -> None:
    """Reductions work for all axes; without axes they return the input."""
    numpy = getattr(np, op.lower())
    x = X > 0 if op in ("Any", "All") else X
    nodes = [const("k", np.array(axes, np.int32)), node(op, "y", "x", "k", keep_dims=axes == [-1])]

    want = numpy(x, axis=tuple(np.ravel(axes).astype(int)), keepdims=axes == [-1])

    close(run(*nodes, x=x)[0], np.asarray(want))


SLICES: dict[str, tuple[Any, dict[str, int]]] = {
    "[:, 1]": (([0, 1], [0, 2], [1, 1]), {"begin_mask": 1, "end_mask": 1, "shrink_axis_mask": 2}),
    "[:, 1:, ::2]": (([0, 1, 0], [0, 0, 0], [1, 1, 2]), {"begin_mask": 5, "end_mask": 7}),
    "[..., -1]": (([0, -1], [0, 0], [1, 1]), {"ellipsis_mask": 1, "shrink_axis_mask": 2}),
    "[:, None, 0:2, ...]": (
        ([0, 0, 0, 0], [0, 0, 2, 0], [1, 1, 1, 1]),
        {"begin_mask": 1, "end_mask": 1, "new_axis_mask": 2, "ellipsis_mask": 8},
    ),
    "[:, ::-1]": (([0, 0], [0, 0], [1, -1]), {"begin_mask": 3, "end_mask": 3}),
    "[:, :100]": (([0, 0], [0, 100], [1, 1]), {"begin_mask": 3, "end_mask": 1}),
    "[1:-1]": (([1], [-1], [1]), {}),
}


@pytest.mark.parametrize("index", SLICES)
def test_strided_slices_equal_python_indices(index: str) -> None:
    """Masks of StridedSlice equal Python's indices."""
    (begin, end, strides), masks = SLICES[index]
    parts = [const("b", begin), const("e", end), const("s", strides)]

    got = run(*parts, node("StridedSlice", "y", "x", "b", "e", "s", **masks), x=X)[0]

    close(got, eval(f"X{index}"))


def test_every_op_importer_has_a_case() -> None:
    """Every registered operator is covered by a test."""
    with_cases = {*UNARY, *BINARY, *REDUCTIONS, *(case.split()[0] for case in MORE)}
    elsewhere = {"Const"}
    by_tensorflow = {
        node.op
        for path in FIXTURES.glob("*.npz")
        for case in stored(path)
        for node in GraphDef.FromString(case.model).node
    }

    assert not {*OP_IMPORTERS} - with_cases - elsewhere - by_tensorflow


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([node("Relu", "y", "x", "x")], r"Relu 'y' needs 1 input\(s\), got 2"),
        ([node("Pack", "y")], r"Pack 'y' needs at least 1 input\(s\), got 0"),
        ([node("BiasAdd", "y", "x", "x", data_format="NC")], "NHWC or NCHW, got b'NC'"),
        ([node("Squeeze", "y", "x")], r"axis 0 of 'x' has the unknown size x\.0"),
        (
            [const("k", 1), node("Split", "y", "k", "x", num_split=7)],
            r"an axis 1.*that has 7 part\(s\), got 'x' of shape \(x\.0, 3, 5\)",
        ),
        (
            [const("k", 0), node("Split", "y", "k", "x", num_split=2)],
            "'y' needs an axis 0 of known length that has 2",
        ),
        ([node("Neg", "y", "x:1")], r"'x' of the GraphDef has 1 output\(s\), and output 1 is"),
        (
            [
                const("i", np.ones((1, 4, 4, 3), np.float32)),
                const("f", np.ones((2, 2, 1), np.float32)),
                node("Dilation2D", "y", "i", "f", padding="SAME"),
            ],
            "as many channels as its images, got 1 and 3",
        ),
        (
            [
                const("i", np.ones((2, 4, 3), np.float32)),
                const("d", [1.0, 2.0]),
                node("AdjustHue", "y", "i", "d"),
            ],
            r"AdjustHue 'y' needs a scalar as 'd', got \(2,\)",
        ),
        (
            [const("b", [1.0]), node("BiasAdd", "y", "x", "b")],
            r"an element for each channel, got \(1,\) for \(x\.0, 3, 5\)",
        ),
        (
            [
                const("m", np.ones((3, 3), np.float32)),
                node("_FusedMatMul", "y", "m", "m", "m", fused_ops={"list": {"s": [b"BiasAdd"]}}),
            ],
            r"an element for each channel, got \(3, 3\) for \(3, 3\)",
        ),
        (
            [const("b", [[1.0]]), node("BiasAddV1", "y", "x", "b")],
            r"needs 'b' of rank 1, got \(1, 1\)",
        ),
        (
            [
                const("i", np.ones((1, 4, 4, 3), np.float32)),
                const("t", np.ones((1, 8), np.float32)),
                const("s", np.array([2, 2], np.int32)),
                const("f", [1.0, 2.0]),
                node("ImageProjectiveTransformV3", "y", "i", "t", "s", "f"),
            ],
            r"needs a scalar as 'f', got \(2,\)",
        ),
        (
            [
                const("i", np.ones((1, 4, 4, 3), np.float32)),
                const("b", np.ones((2, 4), np.float32)),
                const("n", np.zeros((2, 1), np.int32)),
                const("s", np.array([2, 2], np.int32)),
                node("CropAndResize", "y", "i", "b", "n", "s"),
            ],
            r"needs 'n' of rank 1, got \(2, 1\)",
        ),
        (
            [
                const("i", np.ones((2, 3), np.int32)),
                const("h", np.ones((2, 4), np.float32)),
                const("v", np.ones((7, 8), np.float32)),
                const("w", np.ones((7, 4), np.float32)),
                const("b", np.ones(8, np.float32)),
                const("c", np.ones(4, np.float32)),
                node("GRUBlockCell", "y", "i", "h", "v", "w", "b", "c"),
            ],
            "needs 'i' of floats, got int32",
        ),
        (
            [
                const("i", np.ones((1, 4, 4, 3), np.float32)),
                const("s", np.array([2, 2], np.int32)),
                const("f", np.array([1, 2], np.complex64)),
                const("t", np.zeros(2, np.float32)),
                node("ScaleAndTranslate", "y", "i", "s", "f", "t"),
            ],
            "needs two known positive numbers as its scale, got",
        ),
        (
            [
                const("a", np.float32(0)),
                const("b", np.float32(1)),
                node("QuantizeAndDequantizeV2", "y", "x", "a", "b", axis=3),
            ],
            "needs an axis from -1 to 2, got 3",
        ),
        (
            [
                const("d", np.ones(4, np.float32)),
                const("p", np.array([[1, 2]], np.int32)),
                node("MirrorPadGrad", "y", "d", "p", mode="SYMMETRIC"),
            ],
            r"needs 2 inner element\(s\) or more along axis 0, got 1 for a padding of 1 and 2",
        ),
    ],
)
def test_invalid_inputs_and_attributes_are_refused(nodes: list[Any], message: str) -> None:
    """Errors say which input or attribute was found."""
    with pytest.raises(pk.PasskitError, match=message):
        tf_graphdef.load(model(placeholder("x", None, 3, 5), *nodes))


def test_operator_errors_name_the_node_of_the_model() -> None:
    """An error of a passkit operator carries the model's node as a note."""
    with pytest.raises(pk.ShapeError, match="'y' needs inputs that broadcast") as caught:
        run(const("c", [1.0, 2.0]), node("Add", "y", "x", "c"), x=X)

    assert caught.value.__notes__ == ["in Add 'y' of the GraphDef"]


def test_attributes_that_an_operator_refuses_are_model_errors() -> None:
    """An equation that passkit's operator cannot read is an error of the model."""
    with pytest.raises(pk.ModelError, match="cannot read the equation 'ab->c'") as caught:
        run(node("Einsum", "y", "x", equation="ab->c"), x=X)

    assert caught.value.__notes__ == ["in Einsum 'y' of the GraphDef"]


def test_sixteen_bit_floats_are_rounded_once() -> None:
    """Compositions compute in float32 and round once; FloorDiv rounds its quotient."""
    x = np.array([200, -200, 0.5, 3], np.float16)
    y = np.array([2048, 1, 1, 1], np.float16)
    loss, slope, total, whole = run(
        node("L2Loss", "loss", "x"),
        node("ReciprocalGrad", "slope", "x", "y"),
        node("AddN", "total", "y", *["one"] * 4),
        node("FloorDiv", "whole", "y", "third"),
        const("one", np.ones(4, np.float16)),
        const("third", np.float16(1 / 3)),
        x=x,
        y=y,
    )

    assert loss == np.float16(40000) and loss.dtype == np.float16
    np.testing.assert_array_equal(slope, [-np.inf, -40000, -0.25, -9])
    np.testing.assert_array_equal(total, [2052, 5, 5, 5])
    np.testing.assert_array_equal(whole, np.floor(y / np.float16(1 / 3)))


def test_rows_are_counted_up_to_a_size_known_at_run_time() -> None:
    """DenseBincount counts the numbers of each row below the length of another input."""
    first, one = const("z", [0]), const("o", [1])
    length = node("StridedSlice", "n", "s", "z", "o", "o", shrink_axis_mask=1)
    counts = node("DenseBincount", "y", "i", "n", "w")
    numbers = np.array([[0, 2, 2], [1, 7, -1]], np.int32)

    nodes = (first, one, node("Shape", "s", "x"), length, const("w", np.zeros(0, np.float32)))
    result, _ = run(*nodes, counts, node("Neg", "m", "x"), i=numbers, x=np.zeros(3, np.float32))

    np.testing.assert_array_equal(result, [[1, 0, 2], [0, 1, 0]])
