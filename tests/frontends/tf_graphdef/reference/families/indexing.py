"""Cases of gathers, scatters, array creation and shapes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Case
from tests.frontends.tf_graphdef.reference.drawing import draw

X = draw(1, (3, 4, 5))


def cases(tf: Any) -> Iterator[Case]:
    """Yield gathers and scatters, array creation, and shapes."""
    yield from _gathers(tf)
    yield from _scatters(tf)
    yield from _sources(tf)
    yield from _shapes(tf)


def _variable(tf: Any, x: Any) -> Any:
    """Return the handle of a variable that holds ``x``."""
    handle = tf.raw_ops.VarHandleOp(dtype=x.dtype, shape=x.shape, shared_name="held")
    tf.raw_ops.AssignVariableOp(resource=handle, value=x)
    return handle


def _gathers(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    at = np.array([[2, 0], [1, 1], [0, 2]], "int32")
    for axis, shared in ((0, 0), (1, 0), (-1, 0), (1, 1), (2, 1), (-1, -1)):
        yield Case(
            "GatherV2",
            f"axis={axis} batch_dims={shared}",
            lambda x, i, a=axis, b=shared: raw.GatherV2(params=x, indices=i, axis=a, batch_dims=b),
            {"x": X, "i": at},
        )
    for dtype in ("int32", "bool", "bfloat16", "uint8"):
        yield Case(
            "GatherV2",
            "embedding",
            lambda x, i: tf.gather(x, i),
            {"x": draw(2, (6, 3), dtype), "i": at.astype("int64")},
        )
    yield Case(
        "GatherV2",
        "embedding_lookup",
        lambda i: tf.nn.embedding_lookup(draw(2, (6, 3)), i),
        {"i": at},
    )
    yield Case(
        "GatherV2", "of a shape", lambda x: tf.reshape(x, [-1, tf.gather(tf.shape(x), 2)]), {"x": X}
    )
    yield Case("Gather", "", lambda x, i: raw.Gather(params=x, indices=i), {"x": X, "i": at[:, 0]})
    points = np.array([[[0, 1], [2, 3]], [[1, 1], [0, 0]]], "int32")
    yield Case(
        "GatherNd",
        "points",
        lambda x, i: raw.GatherNd(params=x, indices=i),
        {"x": X[:, :, 0], "i": points},
    )
    yield Case(
        "GatherNd", "rows", lambda x, i: raw.GatherNd(params=x, indices=i), {"x": X, "i": points}
    )
    for shared in (0, 1, 2):
        yield Case(
            "ResourceGather",
            f"batch_dims={shared}",
            lambda x, i, b=shared: raw.ResourceGather(
                resource=_variable(tf, x), indices=i, batch_dims=b, dtype=x.dtype
            ),
            {"x": X, "i": np.resize(at, (3, 4))},
            free=False,
        )
    for name, x in (("points", X[:, :, 0]), ("rows", X)):
        yield Case(
            "ResourceGatherNd",
            name,
            lambda x, i: raw.ResourceGatherNd(resource=_variable(tf, x), indices=i, dtype=x.dtype),
            {"x": x, "i": points},
            free=False,
        )
    yield Case(
        "GatherNd",
        "batch_dims=1",
        lambda x, i: tf.gather_nd(x, i, batch_dims=1),
        {"x": X, "i": at},
        free=False,
    )
    yield Case(
        "GatherV2",
        "boolean_mask of a constant",
        lambda x: tf.boolean_mask(x, [True, False, True, True], axis=1),
        {"x": X},
    )
    yield Case(
        "GatherV2",
        "max_pool-like argmax",
        lambda x: tf.gather(x, tf.argmax(x, 1), axis=1, batch_dims=1),
        {"x": X[:, :, 0]},
    )


def _scatters(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    points = np.array([[0, 1], [2, 3], [0, 1], [1, 0]], "int32")
    rows = np.array([[2], [0], [2]], "int64")
    for op in ("Update", "Add", "Sub", "Min", "Max"):
        for dtype in ("float32", "int32"):
            distinct = points[[0, 1, 3]] if op == "Update" else points
            yield Case(
                f"TensorScatter{op}",
                "points",
                lambda x, i, u, op=op: getattr(raw, f"TensorScatter{op}")(
                    tensor=x, indices=i, updates=u
                ),
                {"x": draw(1, (3, 4), dtype), "i": distinct, "u": draw(2, (len(distinct),), dtype)},
                free=False,
            )
        yield Case(
            f"TensorScatter{op}",
            "rows",
            lambda x, i, u, op=op: getattr(raw, f"TensorScatter{op}")(
                tensor=x, indices=i, updates=u
            ),
            {"x": X, "i": rows[:2], "u": draw(2, (2, 4, 5))},
            free=False,
        )
    for dtype in ("float32", "int64", "float16"):
        yield Case(
            "ScatterNd",
            "points",
            lambda u, i: raw.ScatterNd(indices=i, updates=u, shape=[3, 4]),
            {"u": draw(2, (4,), dtype), "i": points},
        )
    yield Case(
        "ScatterNd",
        "rows",
        lambda i, u: raw.ScatterNd(indices=i, updates=u, shape=tf.constant([4, 2], tf.int64)),
        {"i": rows, "u": draw(2, (3, 2))},
    )
    yield Case(
        "InvertPermutation",
        "of data",
        lambda x: raw.InvertPermutation(x=x),
        {"x": np.array([2, 0, 3, 1], "int32")},
    )


def _sources(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    x = draw(1, (4, 6))
    index = np.array([[1, 0], [4, 2], [-1, 3]], "int32")
    for axis in (-1, 0, 1, 2):
        for dtype in ("float32", "int32") if axis == -1 else ("float32",):
            yield Case(
                "OneHot",
                f"axis={axis} {dtype}",
                lambda i, a=axis, d=dtype: raw.OneHot(
                    indices=i,
                    depth=4,
                    on_value=tf.constant(5, d),
                    off_value=tf.constant(-1, d),
                    axis=a,
                ),
                {"i": index},
            )
    yield Case(
        "OneHot",
        "values are data",
        lambda i, p, q: raw.OneHot(indices=i, depth=4, on_value=p, off_value=q),
        {"i": index, "p": np.array(2, "f"), "q": np.array(3, "f")},
    )
    yield Case(
        "OneHot",
        "bool of bytes",
        lambda i: tf.one_hot(i, 3, True, False, dtype=tf.bool),
        {"i": np.array([0, 2, 9], "uint8")},
    )
    for start, limit, delta in ((0.0, 1.0, 0.25), (3.0, -1.0, -1.5), (0.5, 0.5, 1.0)):
        yield Case(
            "Range",
            f"{start} {limit} {delta}",
            lambda x, a=start, b=limit, d=delta: tf.reduce_sum(x) * 0 + tf.range(a, b, d),
            {"x": x},
        )
    yield Case(
        "Range",
        "of a batch size",
        lambda x: x + tf.cast(tf.range(tf.shape(x)[0]), tf.float32)[:, None],
        {"x": x},
    )
    yield Case(
        "Range",
        "of a known size",
        lambda x: x + tf.cast(tf.range(1, 2 * tf.shape(x)[1], 2), tf.float32),
        {"x": x},
    )
    yield Case(
        "Range",
        "of floats made of sizes",
        lambda x: x[0] + tf.range(tf.cast(tf.shape(x)[1], tf.float32)),
        {"x": x},
    )
    for num in (1, 5):
        yield Case(
            "LinSpace",
            f"num={num}",
            lambda x, n=num: tf.reduce_sum(x) * 0 + raw.LinSpace(start=-1.0, stop=2.0, num=n),
            {"x": x},
        )
        yield Case(
            "LinSpace",
            f"num={num} of data",
            lambda a, b, n=num: raw.LinSpace(start=a, stop=b, num=n),
            {"a": np.array(-1, "f"), "b": np.array(3, "f")},
        )
    yield Case("Fill", "tf.zeros", lambda x: tf.zeros([tf.shape(x)[0], 3]) + x[:, :3], {"x": x})
    yield Case("Fill", "by data", lambda v: raw.Fill(dims=[2, 3], value=v), {"v": np.array(7, "f")})
    yield Case(
        "Empty",
        "init",
        lambda x: x + raw.Empty(shape=[4, 6], dtype=tf.float32, init=True),
        {"x": x},
        free=False,
    )
    for dtype in ("float32", "bool", "int8"):
        for op in ("ZerosLike", "OnesLike"):
            yield Case(
                op, "raw", lambda x, op=op: getattr(raw, op)(x=x), {"x": draw(1, (2, 3), dtype)}
            )
    yield Case(
        "Less",
        "sequence_mask",
        lambda n: tf.sequence_mask(n, 5),
        {"n": np.array([1, 0, 5], "int32")},
    )
    yield Case(
        "Less",
        "sequence_mask as floats",
        lambda n: tf.sequence_mask(n, maxlen=4, dtype=tf.float32),
        {"n": np.array([[1, 0, 4]], "int64")},
    )


def _shapes(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    x = draw(1, (4, 6))
    for op, name, function in (
        ("Shape", "as data, known", lambda x: tf.cast(tf.shape(x)[1], tf.float32) * x),
        ("Shape", "sqrt of a depth", lambda x: x / tf.sqrt(tf.cast(tf.shape(x)[-1], tf.float32))),
        (
            "Shape",
            "floats of sizes",
            lambda x: tf.reshape(
                x, [-1, tf.cast(tf.cast(tf.shape(x)[1], tf.float32) * 0.5, tf.int32)]
            ),
        ),
        ("ShapeN", "", lambda x: tf.reshape(x * 2.0, raw.ShapeN(input=[x, x])[1])),
        ("Size", "", lambda x: x / tf.cast(raw.Size(input=x[0]), tf.float32)),
        ("Rank", "", lambda x: x * tf.cast(raw.Rank(input=x), tf.float32)),
        ("Maximum", "of sizes", lambda x: tf.reshape(x, [-1, tf.maximum(tf.shape(x)[1], 2)])),
        ("FloorMod", "of sizes", lambda x: tf.pad(x, [[0, 0], [0, (-tf.shape(x)[1]) % 4]])),
        (
            "BroadcastArgs",
            "",
            lambda x: (
                tf.broadcast_to(x[:1] * 0.0 + 1.0, raw.BroadcastArgs(s0=tf.shape(x), s1=[6])) + x
            ),
        ),
        (
            "BroadcastGradientArgs",
            "",
            lambda x: tf.reduce_sum(x, raw.BroadcastGradientArgs(s0=[1, 6], s1=tf.shape(x))[0]),
        ),
        (
            "ConcatOffset",
            "",
            lambda x: tf.concat([x, x], 1)[
                :, raw.ConcatOffset(concat_dim=1, shape=[[4, 6], [4, 6]])[1][1] :
            ],
        ),
        ("EnsureShape", "", lambda x: tf.ensure_shape(x, [None, 6]) * 2.0),
        ("EnsureShape", "of a batch", lambda x: tf.ensure_shape(x, [4, None]) * 2.0),
        (
            "Select",
            "of sizes",
            lambda x: tf.reshape(x, [-1, raw.Select(condition=tf.shape(x)[1] > 3, x=3, y=2)]),
        ),
    ):
        yield Case(op, name, function, {"x": x})
