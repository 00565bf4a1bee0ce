"""Cases of convolutions, transposed convolutions and gradients, with all paddings and formats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from tests.frontends.tf_graphdef.reference.case import Array, Case

FLOATS = ("float32", "float64", "float16", "bfloat16")


def draw(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    """Return numbers of both signs, determined by shape and seed."""
    rng = np.random.default_rng([seed, *shape])
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    return (rng.integers(-64, 64, shape) / 32).astype(kind)


EXPLICIT = [[0, 0], [1, 2], [0, 1], [0, 0]]


def cases(tf: Any) -> Iterator[Case]:
    """Yield all cases."""
    yield from _conv2d(tf)
    yield from _spelled(tf)
    yield from _back(tf)
    yield from _depthwise(tf)
    yield from _conv3d(tf)


def _conv2d(tf: Any) -> Iterator[Case]:
    conv = tf.raw_ops.Conv2D
    filters = draw(3, 3, 4, 6)
    for dtype in FLOATS:
        x = {"x": draw(2, 7, 6, 4, dtype=dtype)}
        f = filters.astype(x["x"].dtype)
        yield Case(
            "Conv2D",
            "padding=SAME",
            lambda x, f=f: conv(input=x, filter=f, strides=[1, 1, 1, 1], padding="SAME"),
            x,
        )
    for name, stride, size in [
        ("SAME strides=2 even", (2, 2), (8, 6)),
        ("SAME strides=2 odd", (2, 2), (7, 5)),
        ("SAME strides=2,3", (2, 3), (9, 10)),
        ("VALID strides=2", (2, 2), (8, 7)),
        ("VALID strides=3,1", (3, 1), (8, 7)),
    ]:
        padding = name.split()[0]
        strides = [1, *stride, 1]
        for unknown in (False, True):
            yield Case(
                "Conv2D",
                f"padding={name}" + " unknown size" * unknown,
                lambda x, s=strides, p=padding: conv(input=x, filter=filters, strides=s, padding=p),
                {"x": draw(2, *size, 4)},
                free_size=unknown,
            )
    for k, s in ((1, 2), (2, 3), (2, 2), (5, 3)):
        yield Case(
            "Conv2D",
            f"padding=SAME window={k} strides={s} unknown size",
            lambda x, k=k, s=s: conv(
                input=x, filter=draw(k, k, 2, 3), strides=[1, s, s, 1], padding="SAME"
            ),
            {"x": draw(2, 8, 7, 2)},
            free_size=True,
        )
    for padding in ("SAME", "VALID"):
        yield Case(
            "Conv2D",
            f"padding={padding} dilations=2,3",
            lambda x, p=padding: conv(
                input=x, filter=filters, strides=[1, 1, 1, 1], padding=p, dilations=[1, 2, 3, 1]
            ),
            {"x": draw(1, 9, 10, 4)},
        )
    yield Case(
        "Conv2D",
        "padding=EXPLICIT strides=2,1",
        lambda x: tf.nn.conv2d(x, filters, [2, 1], EXPLICIT),
        {"x": draw(2, 6, 5, 4)},
    )
    yield Case(
        "Conv2D",
        "padding=SAME groups=2",
        lambda x: tf.nn.conv2d(x, filters, 1, "SAME"),
        {"x": draw(2, 6, 5, 8)},
    )
    yield Case(
        "Conv2D",
        "padding=VALID groups=4 strides=2",
        lambda x: tf.nn.conv2d(x, draw(3, 3, 1, 8), 2, "VALID"),
        {"x": draw(2, 6, 5, 4)},
    )
    yield Case(
        "Conv2D",
        "no images",
        lambda x: tf.nn.conv2d(x, filters, 1, "SAME"),
        {"x": draw(0, 6, 5, 4)},
        jit=True,
    )
    yield Case(
        "Conv2D",
        "no rows padding=SAME",
        lambda x: tf.nn.conv2d(x, filters, 2, "SAME"),
        {"x": draw(2, 0, 5, 4)},
        jit=True,
    )
    for padding in ("SAME", "VALID"):
        yield Case(
            "Conv2D",
            f"data_format=NCHW padding={padding} strides=2",
            lambda x, p=padding: conv(
                input=x, filter=filters, strides=[1, 1, 2, 2], padding=p, data_format="NCHW"
            ),
            {"x": draw(2, 4, 7, 6)},
            jit=True,
        )
    yield Case(
        "Conv2D",
        "data_format=NCHW padding=EXPLICIT",
        lambda x: tf.nn.conv2d(x, filters, 1, [[0, 0], [0, 0], [1, 2], [0, 1]], data_format="NCHW"),
        {"x": draw(2, 4, 7, 6)},
        jit=True,
    )
    yield Case(
        "Conv2D",
        "integers",
        lambda x: conv(
            input=x, filter=draw(2, 2, 3, 4, dtype="int32"), strides=[1, 1, 1, 1], padding="SAME"
        ),
        {"x": np.arange(48, dtype=np.int32).reshape(1, 4, 4, 3)},
    )


def _spelled(tf: Any) -> Iterator[Case]:
    filters = draw(3, 4, 6)
    for padding, stride, dilation in [
        ("SAME", 1, 1),
        ("SAME", 2, 1),
        ("VALID", 3, 1),
        ("SAME", 1, 2),
        ("VALID", 1, 3),
    ]:
        yield Case(
            "Conv2D",
            f"tf.nn.conv1d {padding} stride={stride} dilations={dilation}",
            lambda x, p=padding, s=stride, d=dilation: tf.nn.conv1d(x, filters, s, p, dilations=d),
            {"x": draw(2, 9, 4)},
        )
    for padding, dilation in (("SAME", 2), ("VALID", 2), ("SAME", 3)):
        yield Case(
            "Conv2D",
            f"tf.nn.atrous_conv2d {padding} rate={dilation}",
            lambda x, p=padding, d=dilation: tf.nn.atrous_conv2d(x, draw(3, 3, 2, 3), d, p),
            {"x": draw(2, 8, 7, 2)},
        )
        yield Case(
            "Conv2D",
            f"tf.nn.convolution {padding} dilations={dilation}",
            lambda x, p=padding, d=dilation: tf.nn.convolution(
                x, draw(3, 3, 2, 3), padding=p, dilations=d
            ),
            {"x": draw(2, 8, 7, 2)},
        )
    yield Case(
        "Conv2D",
        "tf.nn.separable_conv2d",
        lambda x: tf.nn.separable_conv2d(
            x, draw(3, 3, 2, 2), draw(1, 1, 4, 5), [1, 2, 2, 1], "SAME"
        ),
        {"x": draw(2, 8, 7, 2)},
    )
    yield Case(
        "Conv2D",
        "tf.nn.conv2d rank=5",
        lambda x: tf.nn.conv2d(x, draw(3, 3, 2, 3), 1, "SAME"),
        {"x": draw(2, 2, 5, 4, 2)},
    )
    for rank in (1, 2, 3):
        size = (4, 3, 2)[:rank]
        window = (3, 2, 2)[:rank]
        for padding, stride in (("SAME", 2), ("VALID", 2), ("SAME", 1), ("VALID", 3)):
            op = {1: "Conv2DBackpropInput", 2: "Conv2DBackpropInput", 3: "Conv3DBackpropInputV2"}
            grown = [
                n * stride if padding == "SAME" else (n - 1) * stride + w
                for n, w in zip(size, window, strict=True)
            ]
            yield Case(
                op[rank],
                f"tf.nn.conv_transpose rank={rank} {padding} stride={stride}",
                lambda x, p=padding, s=stride, g=grown, w=window: tf.nn.conv_transpose(
                    x, draw(*w, 3, 2), tf.stack([tf.shape(x)[0], *g, 3]), s, p
                ),
                {"x": draw(2, *size, 2)},
            )


def _back(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    for dtype in FLOATS[:3]:
        for padding, stride, size, dilation in [
            ("SAME", 2, (7, 6), 1),
            ("VALID", 2, (8, 7), 1),
            ("SAME", 1, (6, 5), 1),
            ("VALID", 1, (9, 8), 2),
            ("SAME", 3, (7, 8), 1),
            ("VALID", 3, (9, 8), 1),
        ]:
            if dtype != "float32" and stride != 2:
                continue
            f = draw(3, 3, 4, 6, dtype=dtype)
            params = {
                "strides": [1, stride, stride, 1],
                "padding": padding,
                "dilations": [1, dilation, dilation, 1],
            }
            variant = f"padding={padding} strides={stride} dilations={dilation}"
            x = draw(2, *size, 4, dtype=dtype)
            dy = np.asarray(tf.nn.conv2d(x, f, stride, padding, dilations=dilation))
            dy = (draw(*dy.shape, seed=1) / 4).astype(dy.dtype)
            yield Case(
                "Conv2DBackpropInput",
                variant,
                lambda dy, p=params, f=f, s=size: raw.Conv2DBackpropInput(
                    input_sizes=tf.stack([tf.shape(dy)[0], *s, 4]), filter=f, out_backprop=dy, **p
                ),
                {"dy": dy},
            )
            yield Case(
                "Conv2DBackpropFilter",
                variant,
                lambda x, dy, p=params: raw.Conv2DBackpropFilter(
                    input=x, filter_sizes=[3, 3, 4, 6], out_backprop=dy, **p
                ),
                {"x": x, "dy": dy},
            )
    yield Case(
        "Conv2DBackpropInput",
        "tf.nn.conv2d_transpose unknown size",
        lambda x: tf.nn.conv2d_transpose(
            x,
            draw(3, 3, 5, 4),
            tf.stack([tf.shape(x)[0], tf.shape(x)[1] * 2, tf.shape(x)[2] * 2, 5]),
            2,
            "SAME",
        ),
        {"x": draw(2, 4, 3, 4)},
        free_size=True,
    )
    yield Case(
        "Conv2DBackpropInput",
        "tf.nn.conv2d_transpose odd unknown size",
        lambda x: tf.nn.conv2d_transpose(
            x,
            draw(3, 3, 5, 4),
            tf.stack([tf.shape(x)[0], tf.shape(x)[1] * 2 - 1, tf.shape(x)[2] * 3 - 1, 5]),
            [2, 3],
            "SAME",
        ),
        {"x": draw(2, 4, 3, 4)},
        free_size=True,
    )
    yield Case(
        "Conv2DBackpropInput",
        "explicit padding",
        lambda x: tf.nn.conv2d_transpose(
            x, draw(3, 3, 5, 4), tf.stack([tf.shape(x)[0], 6, 6, 5]), 2, EXPLICIT
        ),
        {"x": draw(2, 4, 3, 4)},
    )
    yield Case(
        "Conv2DBackpropInput",
        "data_format=NCHW padding=SAME strides=2",
        lambda x: tf.nn.conv2d_transpose(
            x, draw(3, 3, 5, 4), tf.stack([tf.shape(x)[0], 5, 8, 6]), 2, "SAME", "NCHW"
        ),
        {"x": draw(2, 4, 4, 3)},
        jit=True,
    )
    yield Case(
        "Conv2DBackpropFilter",
        "gradient of tf.nn.conv2d unknown size",
        lambda x: _slope(tf, x),
        {"x": draw(2, 7, 6, 3)},
        free_size=True,
    )


def _slope(tf: Any, x: Any) -> Any:
    filters = tf.constant(draw(3, 3, 3, 4))
    with tf.GradientTape() as tape:
        tape.watch([x, filters])
        loss = tf.reduce_sum(tf.nn.conv2d(x, filters, 2, "SAME") ** 2)
    return tape.gradient(loss, [x, filters])


def _depthwise(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    for dtype in FLOATS:
        f = draw(3, 3, 4, 2, dtype=dtype)
        for padding, stride, size in (
            ("SAME", 1, (6, 5)),
            ("SAME", 2, (7, 6)),
            ("VALID", 2, (7, 6)),
        ):
            if dtype != "float32" and stride == 1:
                continue
            variant = f"padding={padding} strides={stride}"
            params = {"strides": [1, stride, stride, 1], "padding": padding}
            x = draw(2, *size, 4, dtype=dtype)
            yield Case(
                "DepthwiseConv2dNative",
                variant,
                lambda x, f=f, p=params: raw.DepthwiseConv2dNative(input=x, filter=f, **p),
                {"x": x},
            )
            if dtype == "bfloat16":
                continue
            dy = np.asarray(raw.DepthwiseConv2dNative(input=x, filter=f, **params))
            dy = (draw(*dy.shape, seed=1) / 4).astype(dy.dtype)
            yield Case(
                "DepthwiseConv2dNativeBackpropInput",
                variant,
                lambda dy, f=f, p=params, s=size: raw.DepthwiseConv2dNativeBackpropInput(
                    input_sizes=tf.stack([tf.shape(dy)[0], *s, 4]), filter=f, out_backprop=dy, **p
                ),
                {"dy": dy},
            )
            yield Case(
                "DepthwiseConv2dNativeBackpropFilter",
                variant,
                lambda x, dy, p=params: raw.DepthwiseConv2dNativeBackpropFilter(
                    input=x, filter_sizes=[3, 3, 4, 2], out_backprop=dy, **p
                ),
                {"x": x, "dy": dy},
            )
    yield Case(
        "DepthwiseConv2dNative",
        "padding=SAME strides=2 unknown size",
        lambda x: tf.nn.depthwise_conv2d(x, draw(3, 3, 4, 1), [1, 2, 2, 1], "SAME"),
        {"x": draw(2, 8, 7, 4)},
        free_size=True,
    )
    yield Case(
        "DepthwiseConv2dNative",
        "padding=EXPLICIT",
        lambda x: tf.nn.depthwise_conv2d(x, draw(3, 3, 4, 2), [1, 1, 1, 1], EXPLICIT),
        {"x": draw(2, 8, 7, 4)},
    )
    yield Case(
        "DepthwiseConv2dNative",
        "tf.nn.depthwise_conv2d dilations=2",
        lambda x: tf.nn.depthwise_conv2d(
            x, draw(3, 3, 4, 2), [1, 1, 1, 1], "SAME", dilations=[2, 2]
        ),
        {"x": draw(2, 8, 7, 4)},
    )
    yield Case(
        "DepthwiseConv2dNative",
        "data_format=NCHW",
        lambda x: tf.nn.depthwise_conv2d(
            x, draw(3, 3, 4, 2), [1, 1, 2, 2], "SAME", data_format="NCHW"
        ),
        {"x": draw(2, 4, 8, 7)},
        jit=True,
    )


def _conv3d(tf: Any) -> Iterator[Case]:
    raw = tf.raw_ops
    for dtype in FLOATS[:3]:
        for padding, stride in (("SAME", 2), ("VALID", 1), ("SAME", 1)):
            if dtype != "float32" and stride == 1:
                continue
            f = draw(3, 2, 3, 2, 4, dtype=dtype)
            params = {"strides": [1, stride, stride, stride, 1], "padding": padding}
            variant = f"padding={padding} strides={stride}"
            x = draw(1, 5, 4, 6, 2, dtype=dtype)
            yield Case(
                "Conv3D",
                variant,
                lambda x, f=f, p=params: raw.Conv3D(input=x, filter=f, **p),
                {"x": x},
            )
            if dtype != "float32":
                continue
            dy = np.asarray(raw.Conv3D(input=x, filter=f, **params))
            dy = (draw(*dy.shape, seed=1) / 4).astype(dy.dtype)
            yield Case(
                "Conv3DBackpropInputV2",
                variant,
                lambda dy, f=f, p=params: raw.Conv3DBackpropInputV2(
                    input_sizes=tf.stack([tf.shape(dy)[0], 5, 4, 6, 2]),
                    filter=f,
                    out_backprop=dy,
                    **p,
                ),
                {"dy": dy},
            )
            yield Case(
                "Conv3DBackpropFilterV2",
                variant,
                lambda x, dy, p=params: raw.Conv3DBackpropFilterV2(
                    input=x, filter_sizes=[3, 2, 3, 2, 4], out_backprop=dy, **p
                ),
                {"x": x, "dy": dy},
            )
    yield Case(
        "Conv3D",
        "data_format=NCDHW",
        lambda x: raw.Conv3D(
            input=x,
            filter=draw(3, 2, 3, 2, 4),
            strides=[1, 1, 2, 2, 2],
            padding="SAME",
            data_format="NCDHW",
        ),
        {"x": draw(1, 2, 5, 4, 6)},
        jit=True,
    )
    yield Case(
        "Conv3D",
        "dilations=2",
        lambda x: raw.Conv3D(
            input=x,
            filter=draw(2, 2, 2, 2, 3),
            strides=[1, 1, 1, 1, 1],
            padding="SAME",
            dilations=[1, 2, 2, 2, 1],
        ),
        {"x": draw(1, 5, 4, 6, 2)},
        jit=True,
    )
