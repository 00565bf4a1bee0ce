"""Cases of pools over images and volumes, their gradients, and other windowed operators."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.frontends.tf_graphdef.reference.case import Array, Case
from tests.frontends.tf_graphdef.reference.families.convolutions import FLOATS, draw

PLACES = [
    ("SAME", 2, 2, (6, 8)),
    ("SAME", 3, 2, (7, 6)),
    ("SAME", 3, 1, (5, 4)),
    ("VALID", 2, 2, (7, 6)),
    ("VALID", 3, 1, (5, 4)),
    ("SAME", 1, 2, (7, 6)),
    ("SAME", 2, 3, (8, 7)),
]
"""Padding, window, stride and size of images."""


def cases(tf: Any) -> Iterator[Case]:
    """Yield all cases."""
    for op in ("MaxPool", "AvgPool"):
        yield from _pool(tf, op)
        yield from _pool_grad(tf, op)
        yield from _pool3d(tf, op)
    yield from _versions(tf)
    yield from _argmax(tf)
    yield from _others(tf)
    yield from _refused(tf)


def integers(*shape: int, dtype: str = "int32") -> Array:
    """Return small integers, some of them equal."""
    return np.random.default_rng([1, *shape]).integers(0, 60, shape).astype(dtype)


def _pool(tf: Any, op: str) -> Iterator[Case]:
    pool = getattr(tf.raw_ops, op)
    what = "value" if op == "AvgPool" else "input"
    for padding, window, stride, size in PLACES:
        params = {"ksize": [1, window, window, 1], "strides": [1, stride, stride, 1]}
        for dtype in FLOATS if (padding, window) == ("SAME", 3) and stride == 2 else FLOATS[:1]:
            for unknown in (False, True):
                if unknown and dtype != "float32":
                    continue
                yield Case(
                    op,
                    f"padding={padding} window={window} strides={stride}"
                    + " unknown size" * unknown,
                    lambda x, p=padding, a=params: pool(**{what: x}, padding=p, **a),
                    {"x": draw(2, *size, 3, dtype=dtype)},
                    free_size=unknown,
                )
    if op == "MaxPool":
        for dtype in ("int32", "int64", "uint8", "int8", "int16", "uint16"):
            yield Case(
                op,
                "padding=SAME window=3 strides=2",
                lambda x: pool(input=x, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME"),
                {"x": integers(2, 5, 4, 3, dtype=dtype)},
            )
        yield Case(
            op,
            "padding=EXPLICIT",
            lambda x: tf.nn.max_pool2d(x, 3, 2, [[0, 0], [1, 2], [0, 1], [0, 0]]),
            {"x": draw(2, 6, 5, 3)},
        )
        yield Case(
            op,
            "over channels",
            lambda x: tf.raw_ops.MaxPool(
                input=x, ksize=[1, 1, 1, 2], strides=[1, 1, 1, 2], padding="VALID"
            ),
            {"x": draw(2, 3, 2, 6)},
        )
    function = tf.nn.max_pool if op == "MaxPool" else tf.nn.avg_pool
    yield Case(
        op,
        "data_format=NCHW",
        lambda x: function(x, [3, 2], 2, "SAME", "NCHW"),
        {"x": draw(2, 3, 5, 4)},
        jit=True,
    )
    yield Case(
        op,
        "window=2,3 strides=1,2",
        lambda x: function(x, [2, 3], [1, 2], "VALID"),
        {"x": draw(2, 5, 6, 2)},
    )
    yield Case(
        op,
        "of one axis",
        lambda x: function(x, 3, 2, "SAME"),
        {"x": draw(2, 6, 3)},
    )
    yield Case(
        op,
        "no images",
        lambda x: function(x, 2, 2, "VALID"),
        {"x": draw(0, 4, 4, 3)},
    )


def _pool_grad(tf: Any, op: str) -> Iterator[Case]:
    function = tf.nn.max_pool if op == "MaxPool" else tf.nn.avg_pool
    raw = getattr(tf.raw_ops, f"{op}Grad")
    for padding, window, stride, size in PLACES[:5]:
        for dtype in FLOATS[:3] if window == 2 and padding == "SAME" else FLOATS[:1]:
            x = draw(2, *size, 3, dtype=dtype)
            y = np.asarray(function(tf.constant(x), window, stride, padding))
            dy = draw(*y.shape, seed=1).astype(x.dtype)
            params = {
                "ksize": [1, window, window, 1],
                "strides": [1, stride, stride, 1],
                "padding": padding,
            }
            variant = f"padding={padding} window={window} strides={stride}"
            if op == "MaxPool":
                yield Case(
                    "MaxPoolGrad",
                    variant,
                    lambda x, dy, a=params: raw(
                        orig_input=x, orig_output=tf.raw_ops.MaxPool(input=x, **a), grad=dy, **a
                    ),
                    {"x": x, "dy": dy},
                )
            else:
                yield Case(
                    "AvgPoolGrad",
                    variant,
                    lambda dy, a=params, s=size: raw(
                        orig_input_shape=tf.stack([tf.shape(dy)[0], *s, 3]), grad=dy, **a
                    ),
                    {"dy": dy},
                )
    x = draw(2, 6, 4, 3)
    yield Case(
        f"{op}Grad",
        "equal elements",
        lambda x: _slope(tf, function, x),
        {"x": np.round(x)},
    )


def _slope(tf: Any, function: Any, x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x, 2, 2, "SAME")
    return tape.gradient(y, x, output_gradients=y * y)


def _pool3d(tf: Any, op: str) -> Iterator[Case]:
    function = tf.nn.max_pool3d if op == "MaxPool" else tf.nn.avg_pool3d
    for padding, window, stride in (("SAME", 3, 2), ("VALID", 2, 2), ("SAME", 2, 1)):
        for dtype in ("float32", "bfloat16") if window == 3 else ("float32",):
            yield Case(
                f"{op}3D",
                f"padding={padding} window={window} strides={stride}",
                lambda x, p=padding, w=window, s=stride: function(x, w, s, p),
                {"x": draw(1, 4, 3, 5, 2, dtype=dtype)},
            )
        yield Case(
            f"{op}3DGrad",
            f"padding={padding} window={window} strides={stride}",
            lambda x, p=padding, w=window, s=stride: _slope3d(tf, function, x, w, s, p),
            {"x": draw(1, 4, 3, 5, 2, seed=2)},
        )
    yield Case(
        f"{op}3D",
        "data_format=NCDHW",
        lambda x: function(x, 2, 2, "SAME", "NCDHW"),
        {"x": draw(1, 2, 3, 4, 5)},
        jit=True,
    )


def _slope3d(tf: Any, function: Any, x: Any, window: int, stride: int, padding: str) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x, window, stride, padding)
    return tape.gradient(y, x, output_gradients=y * y)


def _versions(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    yield Case(
        "MaxPoolV2",
        "padding=SAME window=3 strides=2",
        lambda x: raw.MaxPoolV2(input=x, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME"),
        {"x": draw(2, 5, 6, 2)},
    )
    x = draw(2, 6, 4, 3)
    y = np.asarray(tf.nn.max_pool(x, 2, 2, "SAME"))
    yield Case(
        "MaxPoolGradV2",
        "padding=SAME window=2 strides=2",
        lambda x, dy: raw.MaxPoolGradV2(
            orig_input=x,
            orig_output=tf.nn.max_pool(x, 2, 2, "SAME"),
            grad=dy,
            ksize=[1, 2, 2, 1],
            strides=[1, 2, 2, 1],
            padding="SAME",
        ),
        {"x": x, "dy": y * y},
    )


def _argmax(tf: Any) -> Iterator[Case]:
    for padding, window, stride in (("SAME", 3, 2), ("VALID", 2, 2), ("SAME", 2, 1)):
        for batch in (False, True):
            yield Case(
                "MaxPoolWithArgmax",
                f"padding={padding} window={window} strides={stride}" + " of the batch" * batch,
                lambda x, p=padding, w=window, s=stride, b=batch: tf.nn.max_pool_with_argmax(
                    x, w, s, p, include_batch_in_index=b
                ),
                {"x": np.round(draw(2, 5, 4, 3))},
            )
    yield Case(
        "MaxPoolWithArgmax",
        "output_dtype=int32",
        lambda x: tf.nn.max_pool_with_argmax(x, 2, 2, "VALID", output_dtype=tf.int32),
        {"x": draw(1, 4, 4, 2, dtype="float64")},
    )


def _others(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    for padding, stride, rate in (("SAME", 1, 1), ("VALID", 2, 1), ("SAME", 2, 2), ("VALID", 1, 2)):
        for dtype in FLOATS[:3] if stride == rate == 1 else FLOATS[:1]:
            yield Case(
                "Dilation2D",
                f"padding={padding} strides={stride} rates={rate}",
                lambda x, p=padding, s=stride, r=rate: tf.nn.dilation2d(
                    x, tf.cast(draw(3, 2, 2), x.dtype), [1, s, s, 1], p, "NHWC", [1, r, r, 1]
                ),
                {"x": draw(2, 7, 6, 2, dtype=dtype)},
            )
        for dtype in ("float32", "int32", "uint8") if stride == rate == 1 else FLOATS[:1]:
            yield Case(
                "ExtractImagePatches",
                f"padding={padding} strides={stride} rates={rate}",
                lambda x, p=padding, s=stride, r=rate: tf.image.extract_patches(
                    x, [1, 2, 3, 1], [1, s, s, 1], [1, r, r, 1], p
                ),
                {"x": integers(2, 6, 7, 2, dtype=dtype)},
            )
    yield Case(
        "ExtractImagePatches",
        "padding=SAME strides=2 unknown size",
        lambda x: tf.image.extract_patches(x, [1, 3, 3, 1], [1, 2, 2, 1], [1, 1, 1, 1], "SAME"),
        {"x": draw(1, 6, 5, 2)},
        free_size=True,
    )
    for padding in ("SAME", "VALID"):
        yield Case(
            "ExtractVolumePatches",
            f"padding={padding}",
            lambda x, p=padding: tf.extract_volume_patches(x, [1, 2, 2, 2, 1], [1, 2, 1, 2, 1], p),
            {"x": draw(1, 4, 3, 4, 2)},
        )
    for radius, bias, alpha, beta in ((5, 1.0, 1.0, 0.5), (2, 1.5, 0.3, 0.75), (1, 2.0, 1e-4, 1.0)):
        variant = f"depth_radius={radius} bias={bias} alpha={alpha} beta={beta}"
        for dtype in ("float32", "float16") if radius == 2 else ("float32",):
            yield Case(
                "LRN",
                variant,
                lambda x, r=radius, b=bias, a=alpha, e=beta: tf.nn.local_response_normalization(
                    x, r, b, a, e
                ),
                {"x": draw(2, 2, 3, 7, dtype=dtype)},
            )
        yield Case(
            "LRNGrad",
            variant,
            lambda x, dy, r=radius, b=bias, a=alpha, e=beta: raw.LRNGrad(
                input_grads=dy,
                input_image=x,
                output_image=tf.nn.local_response_normalization(x, r, b, a, e),
                depth_radius=r,
                bias=b,
                alpha=a,
                beta=e,
            ),
            {"x": draw(2, 2, 3, 7), "dy": draw(2, 2, 3, 7, seed=1)},
        )


def _refused(tf: Any) -> Iterator[Case]:
    yield Case(
        "FractionalMaxPool",
        "ratio=1.5",
        lambda x: tf.raw_ops.FractionalMaxPool(
            value=x, pooling_ratio=[1.0, 1.5, 1.5, 1.0], deterministic=True, seed=1, seed2=2
        ),
        {"x": draw(1, 6, 6, 1)},
    )
    yield Case(
        "CTCGreedyDecoder",
        "",
        lambda x: tf.raw_ops.CTCGreedyDecoder(inputs=x, sequence_length=[4]),
        {"x": draw(4, 1, 3)},
        free=False,
    )
