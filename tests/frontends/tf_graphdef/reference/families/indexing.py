"""Reads and writes at indices, diagonals, and arrays made of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Case
from tests.frontends.tf_graphdef.reference.drawing import draw

X = draw(1, (3, 4, 5))
ALIGNS = ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")


def cases(tf: Any) -> Iterator[Case]:
    """Gathers and scatters, diagonals, sources, shapes."""
    yield from _gathers(tf)
    yield from _scatters(tf)
    yield from _diagonals(tf)
    yield from _bands(tf)
    yield from _sources(tf)
    yield from _shapes(tf)


def _gathers(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    at = np.array([[2, 0], [1, 1], [0, 2]], "int32")
    for axis, shared in ((0, 0), (1, 0), (-1, 0), (1, 1), (2, 1), (-1, -1)):
        yield Case("GatherV2", f"axis={axis} batch_dims={shared}",
                   lambda x, i, a=axis, b=shared: raw.GatherV2(
                       params=x, indices=i, axis=a, batch_dims=b
                   ), {"x": X, "i": at})  # fmt: skip
    for dtype in ("int32", "bool", "bfloat16", "uint8"):
        yield Case("GatherV2", "embedding", lambda x, i: tf.gather(x, i),
                   {"x": draw(2, (6, 3), dtype), "i": at.astype("int64")})  # fmt: skip
    yield Case("GatherV2", "embedding_lookup", lambda i: tf.nn.embedding_lookup(draw(2, (6, 3)), i),
               {"i": at})  # fmt: skip
    yield Case("GatherV2", "of a shape", lambda x: tf.reshape(
        x, [-1, tf.gather(tf.shape(x), 2)]), {"x": X})  # fmt: skip
    yield Case("Gather", "", lambda x, i: raw.Gather(params=x, indices=i), {"x": X, "i": at[:, 0]})
    points = np.array([[[0, 1], [2, 3]], [[1, 1], [0, 0]]], "int32")
    yield Case("GatherNd", "points", lambda x, i: raw.GatherNd(params=x, indices=i),
               {"x": X[:, :, 0], "i": points})  # fmt: skip
    yield Case("GatherNd", "rows", lambda x, i: raw.GatherNd(params=x, indices=i),
               {"x": X, "i": points})  # fmt: skip
    yield Case("GatherNd", "batch_dims=1", lambda x, i: tf.gather_nd(x, i, batch_dims=1),
               {"x": X, "i": at}, free=False)  # fmt: skip
    yield Case("GatherV2", "boolean_mask of a constant", lambda x: tf.boolean_mask(
        x, [True, False, True, True], axis=1), {"x": X})  # fmt: skip
    yield Case("GatherV2", "max_pool-like argmax", lambda x: tf.gather(
        x, tf.argmax(x, 1), axis=1, batch_dims=1), {"x": X[:, :, 0]})  # fmt: skip


def _scatters(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    points = np.array([[0, 1], [2, 3], [0, 1], [1, 0]], "int32")
    rows = np.array([[2], [0], [2]], "int64")
    for op in ("Update", "Add", "Sub", "Min", "Max"):
        for dtype in ("float32", "int32"):
            distinct = points[[0, 1, 3]] if op == "Update" else points
            yield Case(
                f"TensorScatter{op}", "points",
                lambda x, i, u, op=op: getattr(raw, f"TensorScatter{op}")(
                    tensor=x, indices=i, updates=u
                ),
                {"x": draw(1, (3, 4), dtype), "i": distinct, "u": draw(2, (len(distinct),), dtype)},
                free=False,
            )  # fmt: skip
        yield Case(
            f"TensorScatter{op}", "rows",
            lambda x, i, u, op=op: getattr(raw, f"TensorScatter{op}")(
                tensor=x, indices=i, updates=u
            ),
            {"x": X, "i": rows[:2], "u": draw(2, (2, 4, 5))}, free=False,
        )  # fmt: skip
    for dtype in ("float32", "int64", "float16"):
        yield Case("ScatterNd", "points", lambda u, i: raw.ScatterNd(
            indices=i, updates=u, shape=[3, 4]), {"u": draw(2, (4,), dtype), "i": points})  # fmt: skip
    yield Case("ScatterNd", "rows", lambda i, u: raw.ScatterNd(
        indices=i, updates=u, shape=tf.constant([4, 2], tf.int64)),
        {"i": rows, "u": draw(2, (3, 2))})  # fmt: skip
    yield Case("InvertPermutation", "of data", lambda x: raw.InvertPermutation(x=x),
               {"x": np.array([2, 0, 3, 1], "int32")})  # fmt: skip


def _diagonals(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    yield Case("Diag", "of a matrix", lambda x: raw.Diag(diagonal=x), {"x": X[:, :2, 0]}, free=False)
    yield Case("Diag", "of a vector", lambda x: raw.Diag(diagonal=x), {"x": X[0, 0]})
    yield Case("DiagPart", "of rank 4", lambda x: raw.DiagPart(input=x),
               {"x": draw(1, (2, 3, 2, 3))}, free=False)  # fmt: skip
    yield Case("DiagPart", "of a matrix", lambda x: raw.DiagPart(input=x), {"x": X[0, :, :4]},
               free=False)  # fmt: skip
    yield Case("MatrixDiag", "", lambda x: raw.MatrixDiag(diagonal=x), {"x": X[:, 0]})
    for name, x in (("square", X[:, :4, :4]), ("wide", X), ("high", X[:, :, :2])):
        yield Case("MatrixDiagPart", name, lambda x: raw.MatrixDiagPart(input=x), {"x": x})
        length = min(x.shape[1:])
        yield Case("MatrixSetDiag", name, lambda x, d: raw.MatrixSetDiag(input=x, diagonal=d),
                   {"x": x, "d": draw(2, (3, length))}, free=False)  # fmt: skip
    for low, high in ((0, 0), (-1, -1), (1, 2), (2, 1), (-1, 0), (0, -1), (3, 5)):
        yield Case(
            "MatrixBandPart", f"{low} {high}",
            lambda x, a=low, b=high: raw.MatrixBandPart(input=x, num_lower=a, num_upper=b), {"x": X},
        )  # fmt: skip
    for dtype in ("int32", "bool", "float16"):
        yield Case("MatrixBandPart", "causal mask", lambda x: tf.linalg.band_part(x, -1, 0),
                   {"x": draw(1, (2, 4, 4), dtype)})  # fmt: skip


def _bands(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    matrix = draw(3, (2, 3, 4))
    for k in ((0, 0), (1, 1), (-2, -2)):
        rows = draw(4, (2, 3))
        yield Case("MatrixDiagV3", f"k={k[0]}", lambda x, k=k: raw.MatrixDiagV3(
            diagonal=x, k=k[0], num_rows=-1, num_cols=-1, padding_value=0.0, align="LEFT_RIGHT"),
            {"x": rows})  # fmt: skip
        yield Case("MatrixDiagPartV3", f"k={k[0]}", lambda x, k=k: raw.MatrixDiagPartV3(
            input=x, k=k[0], padding_value=0.0, align="LEFT_RIGHT"), {"x": matrix})  # fmt: skip
    for index, k in enumerate(((-1, 1), (-2, 0), (0, 2), (1, 3), (-2, 3))):
        count = k[1] - k[0] + 1
        longest = min(3 + min(k[1], 0), 4 - max(k[0], 0))
        band = draw(5, (2, count, longest))
        for align in ALIGNS if index == 4 else ALIGNS[index % 4 : index % 4 + 1]:
            mark = f"k={k[0]}..{k[1]} {align}"
            yield Case("MatrixDiagPartV3", mark, lambda x, k=k, a=align: raw.MatrixDiagPartV3(
                input=x, k=k, padding_value=9.0, align=a), {"x": matrix})  # fmt: skip
            yield Case("MatrixDiagV3", mark, lambda x, k=k, a=align: raw.MatrixDiagV3(
                diagonal=x, k=k, num_rows=3, num_cols=4, padding_value=7.0, align=a),
                {"x": band})  # fmt: skip
            yield Case("MatrixSetDiagV3", mark, lambda x, d, k=k, a=align: raw.MatrixSetDiagV3(
                input=x, diagonal=d, k=k, align=a), {"x": matrix, "d": band}, free=False)  # fmt: skip
        yield Case("MatrixDiagPartV2", f"k={k[0]}..{k[1]}", lambda x, k=k: raw.MatrixDiagPartV2(
            input=x, k=k, padding_value=9.0), {"x": matrix})  # fmt: skip
        yield Case("MatrixDiagV2", f"k={k[0]}..{k[1]}", lambda x, k=k: raw.MatrixDiagV2(
            diagonal=x, k=k, num_rows=3, num_cols=4, padding_value=7.0), {"x": band})  # fmt: skip
        yield Case("MatrixSetDiagV2", f"k={k[0]}..{k[1]}", lambda x, d, k=k: raw.MatrixSetDiagV2(
            input=x, diagonal=d, k=k), {"x": matrix, "d": band}, free=False)  # fmt: skip
    for rows, columns in ((-1, -1), (4, -1), (-1, 4), (3, 6)):
        yield Case("MatrixDiagV3", f"k=1 {rows}x{columns}", lambda x, r=rows, c=columns: (
            raw.MatrixDiagV3(diagonal=x, k=1, num_rows=r, num_cols=c, padding_value=0.0)),
            {"x": draw(4, (2, 3))})  # fmt: skip
    yield Case("MatrixSetDiagV3", "tf.linalg.set_diag", lambda x: tf.linalg.set_diag(
        x, tf.zeros(tf.shape(x)[:-1])), {"x": draw(3, (2, 3, 3))})  # fmt: skip
    yield Case("MatrixDiagPartV3", "tf.linalg.diag_part", lambda x: tf.linalg.diag_part(x),
               {"x": matrix})  # fmt: skip


def _sources(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    x = draw(1, (4, 6))
    index = np.array([[1, 0], [4, 2], [-1, 3]], "int32")
    for axis in (-1, 0, 1, 2):
        for dtype in ("float32", "int32") if axis == -1 else ("float32",):
            yield Case("OneHot", f"axis={axis} {dtype}", lambda i, a=axis, d=dtype: raw.OneHot(
                indices=i, depth=4, on_value=tf.constant(5, d), off_value=tf.constant(-1, d),
                axis=a), {"i": index})  # fmt: skip
    yield Case("OneHot", "values are data", lambda i, p, q: raw.OneHot(
        indices=i, depth=4, on_value=p, off_value=q),
        {"i": index, "p": np.array(2, "f"), "q": np.array(3, "f")})  # fmt: skip
    yield Case("OneHot", "bool of bytes", lambda i: tf.one_hot(i, 3, True, False, dtype=tf.bool),
               {"i": np.array([0, 2, 9], "uint8")})  # fmt: skip
    for start, limit, delta in ((0.0, 1.0, 0.25), (3.0, -1.0, -1.5), (0.5, 0.5, 1.0)):
        yield Case("Range", f"{start} {limit} {delta}",
                   lambda x, a=start, b=limit, d=delta: tf.reduce_sum(x) * 0 + tf.range(a, b, d),
                   {"x": x})  # fmt: skip
    yield Case("Range", "of a batch size",
               lambda x: x + tf.cast(tf.range(tf.shape(x)[0]), tf.float32)[:, None], {"x": x})  # fmt: skip
    yield Case("Range", "of a known size",
               lambda x: x + tf.cast(tf.range(1, 2 * tf.shape(x)[1], 2), tf.float32), {"x": x})  # fmt: skip
    yield Case("Range", "of floats made of sizes", lambda x: x[0] + tf.range(
        tf.cast(tf.shape(x)[1], tf.float32)), {"x": x})  # fmt: skip
    for num in (1, 5):
        yield Case("LinSpace", f"num={num}", lambda x, n=num: tf.reduce_sum(x) * 0 + raw.LinSpace(
            start=-1.0, stop=2.0, num=n), {"x": x})  # fmt: skip
        yield Case("LinSpace", f"num={num} of data", lambda a, b, n=num: raw.LinSpace(
            start=a, stop=b, num=n), {"a": np.array(-1, "f"), "b": np.array(3, "f")})  # fmt: skip
    yield Case("Fill", "tf.zeros", lambda x: tf.zeros([tf.shape(x)[0], 3]) + x[:, :3], {"x": x})
    yield Case("Fill", "by data", lambda v: raw.Fill(dims=[2, 3], value=v), {"v": np.array(7, "f")})
    yield Case("Empty", "init", lambda x: x + raw.Empty(shape=[4, 6], dtype=tf.float32, init=True),
               {"x": x}, free=False)  # fmt: skip
    for dtype in ("float32", "bool", "int8"):
        for op in ("ZerosLike", "OnesLike"):
            yield Case(op, "raw", lambda x, op=op: getattr(raw, op)(x=x),
                       {"x": draw(1, (2, 3), dtype)})  # fmt: skip
    yield Case("Less", "sequence_mask", lambda n: tf.sequence_mask(n, 5),
               {"n": np.array([1, 0, 5], "int32")})  # fmt: skip
    yield Case("Less", "sequence_mask as floats",
               lambda n: tf.sequence_mask(n, maxlen=4, dtype=tf.float32),
               {"n": np.array([[1, 0, 4]], "int64")})  # fmt: skip


def _shapes(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    x = draw(1, (4, 6))
    for op, name, function in (
        ("Shape", "as data, known", lambda x: tf.cast(tf.shape(x)[1], tf.float32) * x),
        ("Shape", "sqrt of a depth", lambda x: x / tf.sqrt(tf.cast(tf.shape(x)[-1], tf.float32))),
        ("Shape", "floats of sizes", lambda x: tf.reshape(
            x, [-1, tf.cast(tf.cast(tf.shape(x)[1], tf.float32) * 0.5, tf.int32)])),
        ("ShapeN", "", lambda x: tf.reshape(x * 2.0, raw.ShapeN(input=[x, x])[1])),
        ("Size", "", lambda x: x / tf.cast(raw.Size(input=x[0]), tf.float32)),
        ("Rank", "", lambda x: x * tf.cast(raw.Rank(input=x), tf.float32)),
        ("Maximum", "of sizes", lambda x: tf.reshape(x, [-1, tf.maximum(tf.shape(x)[1], 2)])),
        ("FloorMod", "of sizes", lambda x: tf.pad(x, [[0, 0], [0, (-tf.shape(x)[1]) % 4]])),
        ("BroadcastArgs", "", lambda x: tf.broadcast_to(
            x[:1] * 0.0 + 1.0, raw.BroadcastArgs(s0=tf.shape(x), s1=[6])) + x),
        ("BroadcastGradientArgs", "", lambda x: tf.reduce_sum(x, raw.BroadcastGradientArgs(
            s0=[1, 6], s1=tf.shape(x))[0])),
        ("ConcatOffset", "", lambda x: tf.concat([x, x], 1)[:, raw.ConcatOffset(
            concat_dim=1, shape=[[4, 6], [4, 6]])[1][1]:]),
        ("EnsureShape", "", lambda x: tf.ensure_shape(x, [None, 6]) * 2.0),
        ("EnsureShape", "of a batch", lambda x: tf.ensure_shape(x, [4, None]) * 2.0),
        ("Select", "of sizes", lambda x: tf.reshape(
            x, [-1, raw.Select(condition=tf.shape(x)[1] > 3, x=3, y=2)])),
    ):  # fmt: skip
        yield Case(op, name, function, {"x": x})
