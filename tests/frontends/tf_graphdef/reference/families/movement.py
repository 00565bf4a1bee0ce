"""Cases of operators that move elements: slices, axes, concatenation, padding, blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Case
from tests.frontends.tf_graphdef.reference.drawing import draw

X = draw(1, (3, 4, 5))
MASKS = ("begin", "end", "ellipsis", "new_axis", "shrink_axis")
SLICES: dict[str, tuple[list[int], list[int], list[int], dict[str, int]]] = {
    "[:, 1]": ([0, 1], [0, 2], [1, 1], {"begin": 1, "end": 1, "shrink_axis": 2}),
    "[:, 1:3, ::2]": ([0, 1, 0], [0, 3, 0], [1, 1, 2], {"begin": 5, "end": 5}),
    "[..., -1]": ([0, -1], [0, 0], [1, 1], {"ellipsis": 1, "shrink_axis": 2}),
    "[:, None, 0:2, ...]": (
        [0] * 4,
        [0, 0, 2, 0],
        [1] * 4,
        {"begin": 1, "end": 1, "new_axis": 2, "ellipsis": 8},
    ),
    "[::-1]": ([0], [0], [-1], {"begin": 1, "end": 1}),
    "[::-2, 3:0:-1]": ([0, 3], [0, 0], [-2, -1], {"begin": 1, "end": 1}),
    "[-1]": ([-1], [0], [1], {"shrink_axis": 1}),
    "[-2:]": ([-2], [0], [1], {"end": 1}),
    "[:-1, -3:-1]": ([0, -3], [-1, -1], [1, 1], {"begin": 1}),
    "[:, :, ::-1]": ([0] * 3, [0] * 3, [1, 1, -1], {"begin": 7, "end": 7}),
    "[:, 9:2]": ([0, 9], [0, 2], [1, 1], {"begin": 1, "end": 1}),
    "[:, 2:100]": ([0, 2], [0, 100], [1, 1], {"begin": 1, "end": 1}),
    "[None, ..., None]": ([0] * 3, [0] * 3, [1] * 3, {"new_axis": 5, "ellipsis": 2}),
    "[...]": ([0], [0], [1], {"ellipsis": 1}),
    "[:, 0, 0, None]": (
        [0] * 4,
        [0, 1, 1, 0],
        [1] * 4,
        {"begin": 1, "end": 1, "shrink_axis": 6, "new_axis": 8},
    ),
}
"""Begin, end, strides and masks of each index."""


def cases(tf: Any) -> Iterator[Case]:
    """Yield slices, axes, concatenations, paddings and blocks."""
    yield from _slices(tf)
    yield from _axes(tf)
    yield from _joins(tf)
    yield from _repeats(tf)
    yield from _paddings(tf)
    yield from _blocks(tf)


def _slices(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    for name, (begin, end, strides, masks) in SLICES.items():
        inputs = {f"{m}_mask": masks.get(m, 0) for m in MASKS}
        place = {"begin": begin, "end": end, "strides": strides, **inputs}
        yield Case(
            "StridedSlice", name, lambda x, p=place: raw.StridedSlice(input=x, **p), {"x": X}
        )
        taken = eval(f"X{name}")
        yield Case(
            "StridedSliceGrad",
            name,
            lambda dy, p=place: raw.StridedSliceGrad(shape=[3, 4, 5], dy=dy, **p),
            {"dy": taken},
            free=False,
        )
        if "None" not in name:
            yield Case(
                "TensorStridedSliceUpdate",
                name,
                lambda x, v, p=place: raw.TensorStridedSliceUpdate(input=x, value=v, **p),
                {"x": X, "v": taken},
                free=False,
            )
    for dtype in ("int32", "bool", "float16", "complex64", "uint8"):
        yield Case(
            "StridedSlice", "[:, 1:, -1]", lambda x: x[:, 1:, -1], {"x": draw(1, (3, 4, 5), dtype)}
        )
    yield Case("StridedSlice", "by its own shape", lambda x: x[:, : tf.shape(x)[1] // 2], {"x": X})
    yield Case(
        "StridedSlice",
        "of a shape",
        lambda x: tf.reshape(x, tf.concat([tf.shape(x)[:1], [-1]], 0)),
        {"x": X},
    )
    for begin, size in (
        ([0, 1, 2], [-1, 2, -1]),
        ([0, 0, 0], [-1, -1, -1]),
        ([0, 3, 1], [-1, 1, 0]),
    ):
        yield Case(
            "Slice",
            f"{begin} {size}",
            lambda x, b=begin, s=size: raw.Slice(input=x, begin=b, size=s),
            {"x": X},
        )
    yield Case(
        "Slice",
        "of a known batch",
        lambda x: raw.Slice(input=x, begin=[1, 0], size=[2, 2]),
        {"x": X[:, :, 0]},
        free=False,
    )


def _axes(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    for axes in ([2, 0, 1], [0, 2, 1], [0, 1, 2]):
        yield Case(
            "Transpose", f"perm={axes}", lambda x, p=axes: raw.Transpose(x=x, perm=p), {"x": X}
        )
    yield Case("Transpose", "perm=None", lambda x: tf.transpose(x), {"x": X})
    yield Case(
        "ConjugateTranspose",
        "",
        lambda x: raw.ConjugateTranspose(x=x, perm=[1, 0]),
        {"x": draw(1, (3, 4), "complex64")},
    )
    for shape in ([-1, 20], [15, -1], [-1], [-1, 5, 2, 2]):
        yield Case(
            "Reshape", f"shape={shape}", lambda x, s=shape: raw.Reshape(tensor=x, shape=s), {"x": X}
        )
    yield Case(
        "Reshape",
        "of its own sizes",
        lambda x: tf.reshape(x, [tf.shape(x)[0], tf.shape(x)[1] * tf.shape(x)[2]]),
        {"x": X},
    )
    for axis in (0, 1, -1, -4, 3):
        yield Case(
            "ExpandDims",
            f"axis={axis}",
            lambda x, a=axis: raw.ExpandDims(input=x, axis=a),
            {"x": X},
        )
    for squeezed in ([1], [-1], [1, 3]):
        yield Case(
            "Squeeze",
            f"axis={squeezed}",
            lambda x, a=squeezed: raw.Squeeze(input=x, axis=a),
            {"x": X[:, :1, :, None]},
        )
    yield Case(
        "Squeeze", "all", lambda x: raw.Squeeze(input=x), {"x": X[:, :1, :, None]}, free=False
    )
    for axes in ([0], [-1], [0, 2], []):
        yield Case(
            "ReverseV2",
            f"axis={axes}",
            lambda x, a=axes: raw.ReverseV2(tensor=x, axis=tf.constant(a, tf.int32)),
            {"x": X},
        )
    yield Case("Reverse", "", lambda x: raw.Reverse(tensor=x, dims=[True, False, True]), {"x": X})
    for seq, batch in ((1, 0), (2, 0), (0, 1), (2, 1)):
        lengths = np.array([2, 0, 3, 1][: X.shape[batch]], "int64")
        yield Case(
            "ReverseSequence",
            f"seq_dim={seq} batch_dim={batch}",
            lambda x, n, s=seq, b=batch: raw.ReverseSequence(
                input=x, seq_lengths=n, seq_dim=s, batch_dim=b
            ),
            {"x": X, "n": lengths},
            free=batch == 0,
        )
    for shift, axes in (([1], [0]), ([-2, 1], [1, 2]), ([7], [-1]), ([1, 1], [1, 1])):
        yield Case(
            "Roll",
            f"shift={shift} axis={axes}",
            lambda x, s=shift, a=axes: raw.Roll(input=x, shift=s, axis=a),
            {"x": X},
        )
    yield Case("Transpose", "Keras Permute", lambda x: tf.transpose(x, [0, 2, 1]) * 2.0, {"x": X})


def _joins(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    y = draw(2, (3, 4, 2))
    for axis in (-1, 2):
        yield Case(
            "ConcatV2",
            f"axis={axis}",
            lambda x, y, a=axis: raw.ConcatV2(values=[x, y], axis=a),
            {"x": X, "y": y},
        )
        yield Case(
            "Concat",
            f"axis={axis}",
            lambda x, y, a=axis: raw.Concat(concat_dim=a, values=[x, y]),
            {"x": X, "y": y},
        )
    yield Case("ConcatV2", "axis=0", lambda x: tf.concat([x, x, x * 2], 0), {"x": X})
    yield Case(
        "ParallelConcat",
        "",
        lambda x, y: raw.ParallelConcat(values=[x, y], shape=[2, 4]),
        {"x": X[:1, :, 0], "y": X[1:2, :, 0]},
        free=False,
    )
    for axis in (0, 1, -1, 3):
        yield Case(
            "Pack",
            f"axis={axis}",
            lambda x, y, a=axis: raw.Pack(values=[x, y], axis=a),
            {"x": X, "y": X * 2},
        )
    for axis, count in ((1, 4), (-1, 5), (2, 5)):
        yield Case(
            "Unpack",
            f"axis={axis}",
            lambda x, a=axis, n=count: raw.Unpack(value=x, num=n, axis=a)[::2],
            {"x": X},
        )
    yield Case(
        "Unpack", "axis=0", lambda x: raw.Unpack(value=x, num=3, axis=0), {"x": X}, free=False
    )
    for axis, count in ((1, 2), (-1, 5), (1, 4), (2, 1)):
        yield Case(
            "Split",
            f"axis={axis} num_split={count}",
            lambda x, a=axis, n=count: raw.Split(axis=a, value=x, num_split=n),
            {"x": X},
        )
    for sizes in ([2, 3], [1, -1, 2], [5], [0, 5]):
        yield Case(
            "SplitV",
            f"axis=2 sizes={sizes}",
            lambda x, s=sizes: raw.SplitV(value=x, size_splits=s, axis=2, num_split=len(s)),
            {"x": X},
        )


def _repeats(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    for many in ([1, 2, 1], [2, 1, 3], [1, 1, 1], [1, 0, 1]):
        yield Case(
            "Tile", f"multiples={many}", lambda x, m=many: raw.Tile(input=x, multiples=m), {"x": X}
        )
    yield Case(
        "Tile",
        "by a batch size",
        lambda x: tf.tile(tf.constant([[1.0, 2.0, 3.0, 4.0]]), [tf.shape(x)[0], 1]) + x[:, :, 0],
        {"x": X},
    )
    yield Case(
        "BroadcastTo",
        "known",
        lambda x: raw.BroadcastTo(input=x, shape=[2, 3, 4]),
        {"x": draw(1, (3, 1))},
        free=False,
    )
    yield Case(
        "BroadcastTo",
        "to its own sizes",
        lambda x: tf.broadcast_to(tf.constant([1.0, 2.0, 3.0, 4.0, 5.0]), tf.shape(x)) - x,
        {"x": X},
    )
    yield Case("Reshape", "tf.repeat", lambda x: tf.repeat(x, 2, axis=1), {"x": X})
    yield Case(
        "Pack",
        "meshgrid",
        lambda x: tf.stack(tf.meshgrid(x[0], x[1]), -1),
        {"x": draw(1, (2, 4))},
        free=False,
    )


def _paddings(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    for widths in ([[0, 0], [1, 2], [0, 3]], [[1, 0], [0, 0], [2, 2]], [[0, 0], [0, 0], [0, 0]]):
        mark = str(widths).replace(" ", "")
        yield Case("Pad", mark, lambda x, w=widths: raw.Pad(input=x, paddings=w), {"x": X})
        yield Case(
            "PadV2",
            f"{mark} 2.5",
            lambda x, w=widths: raw.PadV2(input=x, paddings=w, constant_values=2.5),
            {"x": X},
        )
        yield Case(
            "PadV2",
            f"{mark} by data",
            lambda x, v, w=widths: raw.PadV2(input=x, paddings=w, constant_values=v),
            {"x": X, "v": np.array(7, "f")},
        )
        for mode in ("REFLECT", "SYMMETRIC"):
            yield Case(
                "MirrorPad",
                f"{mark} {mode}",
                lambda x, w=widths, m=mode: raw.MirrorPad(input=x, paddings=w, mode=m),
                {"x": X},
            )
            yield Case(
                "MirrorPadGrad",
                f"{mark} {mode}",
                lambda x, w=widths, m=mode: raw.MirrorPadGrad(input=x, paddings=w, mode=m),
                {"x": draw(1, (5, 8, 9))},
                free=False,
            )
    for dtype in ("int32", "bool", "bfloat16", "uint8"):
        yield Case(
            "Pad",
            "of a matrix",
            lambda x: tf.pad(x, [[0, 0], [1, 2]]),
            {"x": draw(1, (3, 4), dtype)},
        )


def _blocks(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    image = draw(1, (2, 4, 6, 8))
    for size in (2,):
        for op in ("SpaceToDepth", "DepthToSpace"):
            yield Case(
                op,
                f"block_size={size}",
                lambda x, op=op, n=size: getattr(raw, op)(input=x, block_size=n),
                {"x": image},
            )
            yield Case(
                op,
                f"block_size={size}",
                lambda x, op=op, n=size: getattr(raw, op)(input=x, block_size=n),
                {"x": draw(1, (2, 4, 6, 8), "uint8")},
            )
    for block, paddings in (
        ([2, 3], [[0, 0], [0, 0]]),
        ([2, 2], [[1, 1], [2, 0]]),
        ([3], [[1, 1]]),
    ):
        yield Case(
            "SpaceToBatchND",
            f"{block} {paddings}".replace(", ", ","),
            lambda x, b=block, p=paddings: raw.SpaceToBatchND(input=x, block_shape=b, paddings=p),
            {"x": image},
        )
    for block, crops in (([2, 3], [[0, 0], [0, 0]]), ([2, 2], [[1, 0], [0, 2]]), ([4], [[1, 1]])):
        yield Case(
            "BatchToSpaceND",
            f"{block} {crops}".replace(", ", ","),
            lambda x, b=block, c=crops: raw.BatchToSpaceND(input=x, block_shape=b, crops=c),
            {"x": draw(1, (12, 4, 3, 2))},
            free=False,
        )
    yield Case(
        "BatchToSpaceND",
        "what SpaceToBatchND made",
        lambda x: raw.BatchToSpaceND(
            input=raw.SpaceToBatchND(input=x, block_shape=[2], paddings=[[1, 3]]) * 2.0,
            block_shape=[2],
            crops=[[1, 3]],
        ),
        {"x": image},
    )
    yield Case(
        "SpaceToBatch",
        "",
        lambda x: raw.SpaceToBatch(input=x, paddings=[[0, 0], [1, 1]], block_size=2),
        {"x": image},
    )
    yield Case(
        "BatchToSpace",
        "",
        lambda x: raw.BatchToSpace(input=x, crops=[[0, 1], [1, 0]], block_size=2),
        {"x": draw(1, (8, 2, 3, 1))},
        free=False,
    )
