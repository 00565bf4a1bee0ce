"""Cases of segments, counts, sorting and searching."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Case
from tests.frontends.tf_graphdef.reference.drawing import draw, sweep

NONE = np.zeros(0, "f")
IDS = np.array([0, 0, 1, 3, 3, 3])


def cases(tf: Any) -> Iterator[Case]:
    """Yield segments, then counts and searches."""
    raw = tf.raw_ops
    for kind in ("Sum", "Prod", "Max", "Min"):
        for dtype, ids_type in (("float32", "int32"), ("int32", "int64"), ("float64", "int32")):
            ids = np.array([2, 0, 2, -1, 4, 0], ids_type)
            yield Case(
                f"UnsortedSegment{kind}",
                f"ids {ids_type}",
                lambda x, i, k=kind: getattr(raw, f"UnsortedSegment{k}")(
                    data=x, segment_ids=i, num_segments=5
                ),
                {"x": draw(1, (6, 3), dtype), "i": ids},
                free=dtype == "float32",
            )
        yield Case(
            f"UnsortedSegment{kind}",
            "ids of rank 2",
            lambda x, i, k=kind: getattr(raw, f"UnsortedSegment{k}")(
                data=x, segment_ids=i, num_segments=3
            ),
            {"x": draw(1, (2, 3, 2)), "i": np.array([[0, 2, 2], [1, 0, 1]])},
        )
    for kind in ("Sum", "Mean", "Prod", "Max", "Min"):
        for dtype in ("float32", "int32") if kind != "Mean" else ("float32", "float64"):
            yield Case(
                f"Segment{kind}",
                "known ids",
                lambda x, k=kind: getattr(raw, f"Segment{k}")(data=x, segment_ids=IDS),
                {"x": draw(2, (6, 3), dtype)},
                free=False,
            )
    for kind in ("Sum", "Mean", "SqrtN"):
        at = np.array([4, 0, 1, 1, 5, 2])
        yield Case(
            f"SparseSegment{kind}",
            "known ids",
            lambda x, i, k=kind: getattr(raw, f"SparseSegment{k}")(
                data=x, indices=i, segment_ids=IDS
            ),
            {"x": draw(3, (7, 3)), "i": at},
            free=False,
        )
        yield Case(
            f"SparseSegment{kind}WithNumSegments",
            "5 segments",
            lambda x, i, s, k=kind: getattr(raw, f"SparseSegment{k}WithNumSegments")(
                data=x, indices=i, segment_ids=s, num_segments=5
            ),
            {"x": draw(3, (7, 3)), "i": at, "s": IDS},
            free=False,
        )
    yield Case(
        "UnsortedSegmentSum",
        "unsorted_segment_mean",
        lambda x, i: tf.math.unsorted_segment_mean(x, i, 4),
        {"x": draw(1, (6, 3)), "i": np.array([3, 0, 3, 0, 1, 0])},
    )
    yield Case(
        "UnsortedSegmentSum",
        "unsorted_segment_sqrt_n",
        lambda x, i: tf.math.unsorted_segment_sqrt_n(x, i, 4),
        {"x": draw(1, (6, 3)), "i": np.array([3, 0, 3, 0, 1, 0])},
    )
    yield from _counts(tf)
    yield from _places(tf)
    yield from _orders(tf)


def _counts(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    rows = np.array([[1, 1, 4], [0, 9, 2]], "int32")
    weights = np.array([[0.5, 1.5, 2], [3, 1, -1]], "f")
    for mark, weigh in (("", False), ("weights", True)):
        inputs = {"x": rows[0], "w": weights[0]} if weigh else {"x": rows[0]}
        yield Case(
            "Bincount",
            f"size=6 {mark}".strip(),
            lambda x, *w: raw.Bincount(arr=x, size=6, weights=w[0] if w else NONE),
            inputs,
        )
        for binary in (False, True)[: 2 - weigh]:
            inputs = {"x": rows, "w": weights} if weigh else {"x": rows}
            yield Case(
                "DenseBincount",
                f"size=6 {mark} {'binary' if binary else ''}".strip(),
                lambda x, *w, b=binary: raw.DenseBincount(
                    input=x, size=6, weights=w[0] if w else NONE, binary_output=b
                ),
                inputs,
            )
    yield Case(
        "DenseBincount",
        "of a vector",
        lambda x: raw.DenseBincount(input=x, size=4, weights=np.zeros(0, "int32")),
        {"x": rows[0].astype("int64")},
    )


def _places(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    for op in ("ArgMax", "ArgMin"):
        for axis, out, dtype in (
            (0, "int64", "float32"),
            (-1, "int32", "float32"),
            (1, "int64", "int32"),
            (2, "int32", "uint8"),
            (1, "int64", "float16"),
            (1, "int64", "bool"),
        ):
            yield from sweep(
                tf,
                op,
                f"axis={axis} {out}",
                lambda x, op=op, a=axis, t=out: getattr(raw, op)(
                    input=x, dimension=a, output_type=t
                ),
                lambda d: {"x": draw(3, (3, 4, 5), d)},
                (dtype,),
            )
    for out in ("uint16", "int16"):
        yield from sweep(
            tf,
            "ArgMax",
            f"axis=0 {out}",
            lambda x, t=out: raw.ArgMax(input=x, dimension=0, output_type=t),
            lambda d: {"x": draw(3, (3, 4), d)},
            ("float32",),
        )
    rows = np.sort(draw(4, (2, 6)), axis=1)
    expected = np.concatenate([rows[:, 1:3], draw(5, (2, 2))], axis=1)
    for op in ("LowerBound", "UpperBound"):
        for out in ("int32", "int64"):
            yield Case(
                op,
                out,
                lambda s, v, op=op, t=out: getattr(raw, op)(sorted_inputs=s, values=v, out_type=t),
                {"s": rows, "v": expected},
            )
        side = "left" if op == "LowerBound" else "right"
        yield Case(
            op,
            "searchsorted of vectors",
            lambda s, v, side=side: tf.searchsorted(s, v, side=side),
            {"s": rows[0], "v": expected[0]},
            free=False,
        )
    for k in (1, 3):
        scores = np.array([[1, 2, 3, 3], [5, 5, 5, 5], [np.inf, 1, 0, 2], [1, np.nan, 0, 2]], "f")
        for dtype in ("int32", "int64"):
            yield Case(
                "InTopKV2",
                f"k={k} targets {dtype}",
                lambda x, t, k=k: raw.InTopKV2(predictions=x, targets=t, k=tf.constant(k, t.dtype)),
                {"x": scores, "t": np.array([2, 1, 3, 0], dtype)},
            )
    yield Case(
        "Where",
        "of a constant",
        lambda x: x + tf.cast(tf.reduce_sum(raw.Where(condition=[True, False, True])), x.dtype),
        {"x": draw(1, (2, 3))},
    )
    yield Case("Where", "of data", lambda x: raw.Where(condition=x), {"x": draw(1, (2, 3), "bool")})
    yield Case("Unique", "of data", lambda x: raw.Unique(x=x)[0], {"x": draw(1, (6,), "int32")})


def _orders(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    yield Case(
        "InTopK",
        "k=2",
        lambda x, t: raw.InTopK(predictions=x, targets=t, k=2),
        {"x": draw(1, (3, 5)), "t": np.array([0, 3, 1], "int32")},
    )
    yield Case(
        "AccumulateNV2",
        "two",
        lambda x, y: raw.AccumulateNV2(inputs=[x, y], shape=[3, 5]),
        {"x": draw(1, (3, 5)), "y": draw(2, (3, 5))},
        free=False,
    )
    ties = np.array([[3, 1, 3, 2, 3], [0, 0, 0, 0, 0], [5, 4, 3, 2, 1]], "int32")
    for dtype in ("float32", "int32", "float16", "bfloat16", "uint8", "int64", "float64"):
        yield from sweep(
            tf,
            "TopKV2",
            "k=3 with ties",
            lambda x: list(raw.TopKV2(input=x, k=3)),
            lambda d: {"x": ties.astype(d) if d != "bfloat16" else _half(ties)},
            (dtype,),
        )
    yield Case(
        "TopKV2",
        "k=all of rank 3",
        lambda x: list(raw.TopKV2(input=x, k=4)),
        {"x": draw(1, (2, 3, 4))},
    )
    yield Case("TopKV2", "k=0", lambda x: list(raw.TopKV2(input=x, k=0)), {"x": draw(1, (2, 3))})
    yield Case(
        "TopKV2",
        "index_type=int64",
        lambda x: list(raw.TopKV2(input=x, k=2, index_type=tf.int64)),
        {"x": draw(1, (2, 5))},
    )
    yield Case(
        "TopKV2",
        "not sorted",
        lambda x: tf.reduce_sum(raw.TopKV2(input=x, k=2, sorted=False)[0], 1),
        {"x": draw(1, (2, 5))},
    )
    for direction in ("ASCENDING", "DESCENDING"):
        for dtype in ("float32", "int32", "uint8"):
            yield Case(
                "TopKV2",
                f"sort {direction.lower()}",
                lambda x, d=direction: tf.sort(x, direction=d),
                {"x": draw(7, (3, 6), dtype)},
            )
        yield Case(
            "TopKV2",
            f"argsort {direction.lower()}",
            lambda x, d=direction: tf.argsort(x, direction=d, stable=True),
            {"x": draw(7, (3, 6))},
        )
        yield Case(
            "TopKV2",
            f"sort axis=0 {direction.lower()}",
            lambda x, d=direction: tf.sort(x, axis=0, direction=d),
            {"x": draw(7, (4, 3))},
            free=False,
        )


def _half(x: Any) -> Any:
    import ml_dtypes

    return x.astype(ml_dtypes.bfloat16)
