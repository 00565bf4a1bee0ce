"""Cases of elementwise operators for every dtype of TensorFlow, with special numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Array, Case
from tests.frontends.tf_graphdef.reference.drawing import (
    EVERY,
    FLOATS,
    delicate,
    draw,
    numpy_type,
    sweep,
)

ONE = (
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Ceil",
    "Cos",
    "Cosh",
    "Digamma",
    "Elu",
    "Erf",
    "Erfc",
    "Erfinv",
    "Exp",
    "Expm1",
    "Floor",
    "Inv",
    "Invert",
    "IsFinite",
    "IsInf",
    "IsNan",
    "Lgamma",
    "Log",
    "Log1p",
    "LogicalNot",
    "Ndtri",
    "Neg",
    "OnesLike",
    "PopulationCount",
    "Reciprocal",
    "Relu",
    "Relu6",
    "Rint",
    "Round",
    "Rsqrt",
    "Selu",
    "Sigmoid",
    "Sign",
    "Sin",
    "Sinh",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Square",
    "Tan",
    "Tanh",
    "ZerosLike",
    "BesselI0",
    "BesselI0e",
    "BesselI1",
    "BesselI1e",
)
TWO = (
    "Add",
    "AddV2",
    "Atan2",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "DivNoNan",
    "Equal",
    "FloorDiv",
    "FloorMod",
    "Greater",
    "GreaterEqual",
    "LeftShift",
    "Less",
    "LessEqual",
    "LogicalAnd",
    "LogicalOr",
    "Maximum",
    "Minimum",
    "Mod",
    "Mul",
    "MulNoNan",
    "NextAfter",
    "NotEqual",
    "Pow",
    "RealDiv",
    "RightShift",
    "SquaredDifference",
    "Sub",
    "TruncateDiv",
    "TruncateMod",
    "Xdivy",
    "Xlog1py",
    "Xlogy",
)
SLOPES = {
    "dy x": ("EluGrad", "Relu6Grad", "ReluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad"),
    "y dy": ("InvGrad", "ReciprocalGrad", "RsqrtGrad", "SigmoidGrad", "SqrtGrad", "TanhGrad"),
}
DIVISORS = ("Div", "FloorDiv", "FloorMod", "Mod", "TruncateDiv", "TruncateMod")


WRONG_IN_TENSORFLOW = {
    "Round": FLOATS,  # all integers become 0
    "Erf": ("float32", "float16", "bfloat16"),  # NaN at infinity in float64
}
"""Types for which TensorFlow 2.21 is right on a CPU; for others it gives wrong results."""


def _types(k: int, names: tuple[str, ...] = EVERY) -> tuple[str, ...]:
    """Return float32 and int32, and three other dtypes in turn."""
    others = [n for n in names if n not in ("float32", "int32")]
    turn = [others[(3 * k + j * 5) % len(others)] for j in range(3)]
    first = [n for n in ("float32", "int32", "bool") if n in names]
    return tuple(dict.fromkeys([*first, *turn]))


def _pair(op: str, dtype: str) -> dict[str, Array]:
    """Return two inputs that broadcast."""
    kind = numpy_type(dtype)
    x, y = delicate(1, dtype), draw(2, (9,), dtype)
    if kind.kind in "iu":
        if op in DIVISORS:
            y = np.where(y == 0, np.array(3, kind), y)
            x[x == np.iinfo(kind).min] = 1
        if "Shift" in op:
            y = (np.arange(9) % 8).astype(kind)
        if op == "Pow":
            x, y = draw(1, (3, 9), dtype, low=-3), np.abs(draw(2, (9,), dtype, low=0)) % 5
            y = y.astype(kind)
    elif kind.kind != "c" and dtype != "bool":
        y[:4] = np.array([0.0, 1.0, -2.0, 0.5]).astype(kind)
    return {"x": x, "y": y}


def cases(tf: Any) -> Iterator[Case]:
    """Yield operators of one, two and three inputs, and some gradients."""
    for k, op in enumerate(ONE):
        raw = getattr(tf.raw_ops, op)

        def one(x: Any, raw: Any = raw) -> Any:
            return raw(**{next(iter(_names(raw))): x})

        dtypes = _types(k, WRONG_IN_TENSORFLOW.get(op, EVERY))
        yield from sweep(tf, op, "", one, lambda d: {"x": delicate(1, d)}, dtypes)
    for k, op in enumerate(TWO):
        raw = getattr(tf.raw_ops, op)

        def two(x: Any, y: Any, raw: Any = raw) -> Any:
            a, b = list(_names(raw))[:2]
            return raw(**{a: x, b: y})

        yield from sweep(tf, op, "", two, lambda d, op=op: _pair(op, d), _types(k))
    for order, ops in SLOPES.items():
        for op in ops:
            raw = getattr(tf.raw_ops, op)

            def slope(x: Any, y: Any, raw: Any = raw) -> Any:
                a, b = list(_names(raw))[:2]
                return raw(**{a: x, b: y})

            def inputs(dtype: str, first: bool = order == "dy x") -> Mapping[str, Array]:
                dy, x = draw(3, (3, 9), dtype), delicate(4, dtype)
                return {"dy": dy, "x": x} if first else {"y": x, "dy": dy}

            yield from sweep(tf, op, "", slope, inputs, ("float32", "float16"))
    yield from _with_attributes(tf)
    yield from _of_three(tf)
    yield from _spelled(tf)


def _names(raw: Any) -> list[str]:
    import inspect

    return [n for n in inspect.signature(raw).parameters if n != "name"]


def _with_attributes(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    for alpha in (0.2, 0.0, 1.5):
        yield from sweep(
            tf,
            "LeakyRelu",
            f"alpha={alpha}",
            lambda x, a=alpha: raw.LeakyRelu(features=x, alpha=a),
            lambda d: {"x": delicate(1, d)},
            FLOATS[:3] if alpha == 0.2 else FLOATS[:1],
        )
    yield from sweep(
        tf,
        "LeakyReluGrad",
        "alpha=0.3",
        lambda dy, x: raw.LeakyReluGrad(gradients=dy, features=x, alpha=0.3),
        lambda d: {"dy": draw(3, (3, 9), d), "x": delicate(4, d)},
        FLOATS[:2],
    )
    for tolerance in (1e-5, 0.7):
        yield from sweep(
            tf,
            "ApproximateEqual",
            f"tolerance={tolerance}",
            lambda x, y, t=tolerance: raw.ApproximateEqual(x=x, y=y, tolerance=t),
            lambda d: {"x": delicate(1, d), "y": draw(2, (3, 9), d)},
            ("float32", "int32"),
        )
    for order in (0, 1, 3):
        yield from sweep(
            tf,
            "Polygamma",
            f"a={order}",
            lambda x, n=order: tf.math.polygamma(tf.cast(n, x.dtype), x),
            lambda d: {"x": np.abs(draw(5, (3, 9), d)) + numpy_type(d).type(0.1)},
            FLOATS[:2],
        )
    yield from _gammas(tf)
    bounds = [-2.0, 0.0, 0.5, 3.25]
    yield from sweep(
        tf,
        "Bucketize",
        "boundaries of 4",
        lambda x: raw.Bucketize(input=x, boundaries=bounds),
        lambda d: {"x": _no_nan(delicate(1, d))},
        ("float32", "float64", "int32", "int64"),
    )
    for width in ("int32", "float32", "uint32", "int16", "bfloat16", "float64", "int64"):
        source = {"int16": "float16", "bfloat16": "uint16", "float64": "int64", "int64": "float64"}
        inputs = source.get(width, "int32" if width != "int32" else "float32")
        yield Case(
            "Bitcast",
            f"to {width}",
            lambda x, w=width: raw.Bitcast(input=x, type=w),
            {"x": draw(6, (3, 5), inputs)},
        )
    for inputs in EVERY[:-1]:
        for to in EVERY[:-1]:
            if (EVERY.index(inputs) + 2 * EVERY.index(to)) % 5 == 0 or "bool" in (inputs, to):
                x = draw(7, (3, 5), inputs) if inputs == "bool" else draw(7, (3, 5), inputs, low=0)
                x = np.abs(x) * 3 if numpy_type(inputs).kind not in "iub" else x
                yield Case(
                    "Cast",
                    f"to {to}",
                    lambda x, t=to: tf.raw_ops.Cast(x=x, DstT=t),
                    {"x": x.astype(numpy_type(inputs))},
                )
    for inputs, to in (
        ("complex64", "float32"),
        ("float32", "complex64"),
        ("int32", "complex128"),
        ("complex64", "complex128"),
        ("complex128", "int32"),
    ):
        yield Case(
            "Cast",
            f"to {to}",
            lambda x, t=to: tf.raw_ops.Cast(x=x, DstT=t),
            {"x": draw(7, (3, 5), inputs) * (1 if inputs == "int32" else 3)},
        )


WIDE = FLOATS[:2]


def _gammas(tf: Any) -> Iterator[Case]:
    """Yield incomplete gamma functions, zeta and polygamma of array inputs.

    TensorFlow computes them in the dtype of the inputs, so large arguments are used for float64.
    """

    def positive(d: str, seed: int, high: float = 9.0, low: float = 0.1) -> Array:
        out = np.random.default_rng(seed).uniform(low, high, (3, 9)).astype(numpy_type(d))
        return np.asarray(out)

    def corners(d: str) -> dict[str, Array]:
        inputs = np.array([-1.5, -1, 0, 0.5, 1, 2, 3, 40, np.inf]).astype(numpy_type(d))
        a, x = np.meshgrid(inputs, inputs)
        keep = ~(np.isinf(a) & np.isinf(x))
        return {"a": a[keep], "x": x[keep]}

    of_two = {"Igamma": tf.math.igamma, "Igammac": tf.math.igammac, "Zeta": tf.math.zeta}
    orders = np.array([0, 1, 2, 3, 4, 7, 1.5, -1, 0])
    for op, f in of_two.items():
        yield from sweep(
            tf,
            op,
            "arrays",
            f,
            lambda d: {"a": positive(d, 1, low=1.1), "x": positive(d, 2, low=1.1)},
            WIDE,
        )
        yield from sweep(tf, op, "corners", f, corners, WIDE)
        yield from sweep(
            tf,
            op,
            "broadcast",
            f,
            lambda d: {"a": positive(d, 3, 60.0, 2.0)[0], "x": positive(d, 4, 60.0)},
            WIDE[:1],
        )
    of_three, of_order = tf.math.betainc, tf.math.polygamma
    yield from sweep(
        tf,
        "Betainc",
        "arrays",
        of_three,
        lambda d: {"a": positive(d, 1), "b": positive(d, 2), "x": positive(d, 3, 1.0, 0.0)},
        WIDE,
    )
    yield from sweep(
        tf,
        "Betainc",
        "ends",
        of_three,
        lambda d: {
            "a": positive(d, 1),
            "b": positive(d, 2),
            "x": np.resize([0, 1, 2, -1], (3, 9)).astype(d),
        },
        WIDE,
    )
    yield from sweep(
        tf,
        "Betainc",
        "large",
        of_three,
        lambda d: {
            "a": positive(d, 1, 300.0),
            "b": positive(d, 2, 300.0),
            "x": positive(d, 3, 0.8, 0.2),
        },
        WIDE[1:],
    )
    yield from sweep(
        tf,
        "Polygamma",
        "orders that are data",
        of_order,
        lambda d: {"a": np.resize(orders, (3, 9)).astype(d), "x": positive(d, 5, 4.0)},
        WIDE,
    )
    yield from sweep(
        tf,
        "Polygamma",
        "a=25",
        lambda x: of_order(tf.constant(25, x.dtype), x),
        lambda d: {"x": positive(d, 5, 4.0, 1.0)},
        WIDE[1:],
    )
    yield from sweep(
        tf,
        "Polygamma",
        "below 0",
        of_order,
        lambda d: {
            "a": np.resize([1, 2, 3], (3, 9)).astype(d),
            "x": positive(d, 6, 0.7, 0.3) - np.floor(positive(d, 5, 4.0)),
        },
        WIDE,
    )
    for op in ("CheckNumerics", "CheckNumericsV2"):
        check = getattr(tf.raw_ops, op)
        yield from sweep(
            tf,
            op,
            "finite",
            lambda x, f=check: f(tensor=x, message="bad") * 2,
            lambda d: {"x": draw(1, (3, 4), d)},
        )


def _no_nan(x: Array) -> Array:
    return np.where(np.isnan(x), x.dtype.type(7), x) if x.dtype.kind == "f" else x


def _of_three(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    for name, shapes in {
        "all of one shape": ((3, 4), (3, 4), (3, 4)),
        "scalar condition": ((), (3, 4), (3, 4)),
        "a condition for each row": ((3,), (3, 4), (3, 4)),
        "vectors": ((3,), (3,), (3,)),
    }.items():
        for dtype in ("float32", "int64", "bool"):
            values = {"x": draw(2, shapes[1], dtype), "y": draw(3, shapes[2], dtype)}
            inputs = {**values, "c": draw(1, shapes[0], "bool")}
            yield Case("Select", name, lambda x, y, c: raw.Select(condition=c, x=x, y=y), inputs)
    for name, shapes in {
        "broadcast": ((3, 1), (1, 4), (2, 3, 4)),
        "scalars": ((), (2, 3), ()),
        "empty": ((2, 0), (2, 0), (1,)),
    }.items():
        for dtype in ("float32", "uint8", "complex64"):
            values = {"x": draw(2, shapes[1], dtype), "y": draw(3, shapes[2], dtype)}
            inputs = {**values, "c": draw(1, shapes[0], "bool")}
            yield Case(
                "SelectV2",
                name,
                lambda x, y, c: raw.SelectV2(condition=c, t=x, e=y),
                inputs,
                free=name == "scalars",
            )
    for dtype in ("float32", "int32", "float16"):
        low, high = np.array(-1, numpy_type(dtype)), np.array(2, numpy_type(dtype))
        yield Case(
            "ClipByValue",
            "scalars",
            lambda x, a, b: raw.ClipByValue(t=x, clip_value_min=a, clip_value_max=b),
            {"x": _no_nan(delicate(1, dtype)), "a": low, "b": high},
        )
        yield Case(
            "AddN",
            "three",
            lambda x, y, z: raw.AddN(inputs=[x, y, z]),
            {k: draw(9, (3, 4), dtype) for k in "xyz"},
        )
    yield Case("AddN", "one", lambda x: tf.raw_ops.AddN(inputs=[x]), {"x": draw(1, (2, 3))})


def _spelled(tf: Any) -> Iterator[Case]:
    """Yield functions that TensorFlow expresses in other operators."""
    x = draw(1, (3, 8))
    spelled = {
        ("Minimum", "clip_by_value"): lambda x: tf.clip_by_value(x, -0.5, 0.7),
        ("LogicalAnd", "logical_xor"): lambda x: tf.math.logical_xor(x > 0, x > 1),
        ("Erfc", "gelu"): lambda x: tf.nn.gelu(x),
        ("Tanh", "gelu approximate"): lambda x: tf.nn.gelu(x, approximate=True),
        ("Sigmoid", "silu"): lambda x: tf.nn.silu(x),
        ("Softplus", "mish"): lambda x: x * tf.tanh(tf.nn.softplus(x)),
        ("Relu6", "hard_sigmoid"): lambda x: tf.nn.relu6(x + 3) / 6,
        ("Relu", "crelu"): lambda x: tf.nn.crelu(x),
        ("Sub", "sigmoid_cross_entropy"): lambda x: tf.nn.sigmoid_cross_entropy_with_logits(
            tf.abs(x), x
        ),
        ("Rsqrt", "batch_normalization"): lambda x: tf.nn.batch_normalization(
            x, 0.5, 2.0, 0.1, 1.5, 1e-3
        ),
        ("Rsqrt", "l2_normalize"): lambda x: tf.math.l2_normalize(x, -1),
        ("Softplus", "log_sigmoid"): lambda x: tf.math.log_sigmoid(x),
        ("SelectV2", "where with constants"): lambda x: tf.where(x > 0, 1.0, x),
        ("Sign", "huber-like"): lambda x: tf.sign(x) * tf.minimum(tf.abs(x), 1.0),
        ("Cast", "to half and back"): lambda x: tf.cast(tf.cast(x, tf.float16), tf.float32),
        ("Complex", "parts"): lambda x: tf.complex(x, x * 2),
        ("ComplexAbs", "magnitude"): lambda x: tf.abs(tf.complex(x, x * 2)),
        ("Angle", "angle"): lambda x: tf.math.angle(tf.complex(x, x * 2)),
        ("Real", "real of a product"): lambda x: tf.math.real(
            tf.complex(x, x * 2) * tf.complex(x, x)
        ),
        ("Imag", "imag"): lambda x: tf.math.imag(tf.complex(x, x * 2)),
        ("Conj", "conj"): lambda x: tf.math.conj(tf.complex(x, x * 2)),
        ("DivNoNan", "divide_no_nan"): lambda x: tf.math.divide_no_nan(x, tf.nn.relu(x)),
        ("Floor", "floordiv"): lambda x: tf.floor(x * 3.3),
    }
    for (op, name), function in spelled.items():
        yield Case(op, name, function, {"x": x})
