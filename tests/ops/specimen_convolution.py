"""Specimens of convolutions, their gradients and views of windows, against plain loops."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops import windowed
from tests.ops.specimens import call, calls

Array = Any

calls(
    "convolution",
    windowed.convolution,
    [
        call((2, 7, 6, 3), (3, 2, 3, 5), padding="SAME", strides=2),
        call((1, 8, 9, 4), (3, 3, 2, 6), groups=2, dilations=(2, 1), padding=1),
        call((2, 9, 3), (4, 3, 2), strides=3, padding=((2, 1),)),
        call((1, 4, 5, 6, 2), (2, 3, 1, 2, 3), strides=(1, 2, 1), padding="SAME"),
        call((2, 10, 11, 37), (3, 3, 1, 37), groups=37, padding="SAME"),
        call((1, 9, 10, 70), (3, 2, 1, 70), groups=70, strides=2, padding=((1, 0), (0, 1))),
        call((1, 5, 24, 16), (1, 1, 16, 33)),
        call((0, 5, 4, 2), (3, 3, 2, 2)),
    ],
    slack=8,
)


def transposed(
    x: Array,
    f: Array,
    strides: Any = 1,
    padding: Any = 0,
    output_shape: Any = None,
    output_padding: Any = 0,
    **more: Any,
) -> Array:
    """Return the transposed convolution, at the size that the parameters say."""
    count = x.ndim - 2
    window, dilations = f.shape[:-2], windowed.per_axis(more.get("dilations", 1), count)
    strides, extra = windowed.per_axis(strides, count), windowed.per_axis(output_padding, count)
    size = []
    for k in range(count):
        reach = (window[k] - 1) * dilations[k] + 1
        if output_shape is not None:
            size.append(output_shape[1 + k])
        elif padding == "SAME":
            size.append(x.shape[1 + k] * strides[k] + extra[k])
        else:
            low, high = (0, 0) if padding == "VALID" else (padding, padding)
            size.append((x.shape[1 + k] - 1) * strides[k] + reach - low - high + extra[k])
    return windowed.input_gradient(f, x, size, strides=strides, padding=padding, **more)


convolution = windowed.channels_last(windowed.convolution)
transposed_convolution = windowed.channels_last(transposed)
calls(
    "conv1d", convolution, [call((2, 3, 9), (4, 3, 2), padding="SAME", data_format="NCW")], slack=8
)
calls(
    "conv2d",
    convolution,
    [
        call((2, 7, 6, 3), (3, 3, 3, 5), padding="VALID"),
        call((2, 3, 7, 6), (3, 3, 3, 5), padding="SAME", strides=2, data_format="NCHW"),
    ],
    slack=8,
)
calls("conv3d", convolution, [call((1, 3, 5, 4, 2), (2, 2, 3, 2, 3), padding=1)], slack=8)
calls(
    "conv1d_transpose",
    transposed_convolution,
    [call((2, 5, 3), (3, 2, 3), strides=2, padding="SAME")],
    slack=8,
)
calls(
    "conv2d_transpose",
    transposed_convolution,
    [
        call((1, 4, 3, 2), (3, 3, 5, 2), strides=2, padding="SAME"),
        call((1, 4, 3, 2), (2, 3, 5, 2), strides=3, padding="VALID"),
        call((1, 4, 3, 2), (3, 3, 5, 2), strides=2, padding=1, output_padding=1),
        call((1, 4, 3, 2), (4, 1, 5, 2), strides=2, padding="SAME", output_shape=(1, 7, 6, 5)),
        call((1, 2, 4, 3), (3, 3, 5, 2), strides=(2, 1), padding="VALID", data_format="NCHW"),
    ],
    slack=8,
)
calls(
    "conv3d_transpose",
    transposed_convolution,
    [call((1, 2, 3, 2, 2), (2, 2, 1, 3, 2), strides=2)],
    slack=8,
)


def depthwise(x: Array, f: Array, **where: Any) -> Array:
    """Return the convolution of each channel with its filters."""
    parts = [
        windowed.convolution(x[..., c : c + 1], f[:, :, c : c + 1], **where)
        for c in range(x.shape[-1])
    ]
    return np.concatenate(parts, -1)


deep = windowed.channels_last(depthwise)
calls(
    "depthwise_conv2d",
    deep,
    [
        call((2, 6, 5, 3), (3, 3, 3, 2), padding="SAME"),
        call((2, 3, 6, 5), (3, 3, 3, 1), padding="SAME", strides=2, data_format="NCHW"),
    ],
    slack=8,
)
calls(
    "separable_conv2d",
    lambda x, d, p, **where: depthwise(x, d, **where) @ p[0, 0],
    [call((2, 6, 5, 3), (3, 3, 3, 2), (1, 1, 6, 4), padding="SAME")],
    slack=40,
)
GEOMETRIES = [
    {"strides": (2, 1), "padding": "SAME", "groups": 2},
    {"strides": 3, "padding": ((1, 0), (0, 2)), "dilations": (1, 2)},
    {"padding": 2},
]
calls(
    "convolution_backprop_input",
    windowed.input_gradient,
    [
        call((3, 2, 2, 6), (2, 4, 6, 6), size=(7, 6), **GEOMETRIES[0]),
        call((3, 2, 3, 2), (1, 3, 3, 2), size=(8, 7), **GEOMETRIES[1]),
        call((2, 2, 3, 2), (1, 8, 9, 2), size=(5, 6), **GEOMETRIES[2]),
    ],
    slack=8,
)
calls(
    "convolution_backprop_filter",
    windowed.filter_gradient,
    [
        call((2, 7, 6, 4), (2, 4, 6, 6), window=(3, 2), **GEOMETRIES[0]),
        call((1, 8, 7, 3), (1, 3, 3, 2), window=(3, 2), **GEOMETRIES[1]),
    ],
    slack=8,
)
calls(
    "window_products",
    windowed.filter_gradient,
    [
        call((2, 7, 6, 2), (2, 4, 6, 3), window=(3, 2), strides=(2, 1), padding="SAME"),
        call((1, 8, 7, 3), (1, 3, 3, 2), window=(3, 2), **GEOMETRIES[1]),
        call((9, 6, 2), (9, 4, 3), window=(3,)),
    ],
    slack=8,
)


def dilate(x: Array, factors: Any, padding: Any) -> Array:
    """Return the elements a factor apart, then padded; negative padding cuts."""
    size = [(n - 1) * f + 1 if n else 0 for n, f in zip(x.shape, factors, strict=True)]
    out = np.zeros(size, x.dtype)
    out[tuple(slice(None, None, f) for f in factors)] = x
    for k, (low, high) in enumerate(padding):
        out = np.pad(
            out, [(max(low, 0), max(high, 0)) if j == k else (0, 0) for j in range(x.ndim)]
        )
        cut = slice(max(-low, 0), out.shape[k] - max(-high, 0))
        out = out[(slice(None),) * k + (cut,)]
    return out


calls(
    "dilate",
    dilate,
    [
        call((3, 4), factors=(2, 3), padding=((1, 2), (0, 0))),
        call((3, 4), factors=(2, 1), padding=((-1, -2), (2, -3))),
    ],
    kinds="biuf",
)
calls(
    "filter_turned",
    lambda f, groups=1: np.concatenate(
        [np.swapaxes(part[::-1, ::-1], -1, -2) for part in np.split(f, groups, -1)], -1
    ),
    [call((3, 2, 4, 5)), call((3, 2, 4, 6), groups=3)],
    kinds="biuf",
)
calls(
    "windows",
    windowed.windows,
    [
        call((2, 6, 5, 3), window=(3, 2), strides=2, padding="SAME"),
        call((2, 6, 3), window=2, dilations=2, padding=((2, 0),), fill="least"),
        call((1, 4, 3, 5, 2), window=2),
    ],
    kinds="biuf",
)
calls(
    "windows_back",
    windowed.windows_back,
    [
        call((2, 3, 3, 3, 2, 2), size=(6, 5), strides=2, padding="SAME"),
        call((2, 5, 2, 3), size=(6,), padding=((1, 0),), dilations=2),
    ],
    kinds="biuf",
)
calls(
    "windows_taken",
    windowed.windows_taken,
    [call((2, 6, 5, 3, 2, 2), strides=2, padding="SAME")],
    kinds="biuf",
)


def patches(x: Array, window: Any, **where: Any) -> Array:
    """Return each window as one row."""
    view = windowed.windows(x, window, **where)
    return view.reshape(*view.shape[: x.ndim - 1], -1)


calls(
    "extract_patches",
    patches,
    [call((2, 6, 5, 3), window=3, strides=2, padding="SAME")],
    kinds="biuf",
)
