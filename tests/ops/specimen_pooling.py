"""Specimens of pools and of batch normalization."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops import windowed
from tests.ops.specimens import call, calls, cast, positive

Array = Any


@windowed.channels_last
def max_pool(x: Array, window: Any, strides: Any = None, **where: Any) -> Array:
    """Return the maximum of each window."""
    strides = window if strides is None else strides
    view = windowed.windows(x, window, "least", strides=strides, **where)
    count = x.ndim - 2
    return view.max(tuple(range(1 + count, 1 + 2 * count)))


@windowed.channels_last
def avg_pool(
    x: Array, window: Any, strides: Any = None, count_include_pad: bool = False, **where: Any
) -> Array:
    """Return the mean of the elements of each window, with or without padding."""
    strides = window if strides is None else strides
    count = x.ndim - 2
    taps = tuple(range(1 + count, 1 + 2 * count))
    total = windowed.windows(x, window, strides=strides, **where).sum(taps)
    ones = windowed.windows(np.ones_like(x), window, count_include_pad, strides=strides, **where)
    return total / ones.sum(taps)


IMAGES = [
    call((2, 7, 6, 3), window=3, strides=2, padding="SAME"),
    call((2, 3, 7, 6), window=(3, 2), padding=1, data_format="NCHW"),
]
calls("max_pool1d", max_pool, [call((2, 9, 3), window=2)], kinds="iuf")
calls("max_pool2d", max_pool, [*IMAGES, call((1, 20, 20, 19), window=2)], kinds="iuf")
calls("max_pool3d", max_pool, [call((1, 4, 5, 4, 2), window=2, strides=1)], kinds="iuf")
calls("avg_pool1d", avg_pool, [call((2, 9, 3), window=2, padding=1)], slack=8)
padded = call((2, 7, 6, 3), window=3, padding=1, strides=2, count_include_pad=True)
calls("avg_pool2d", avg_pool, [*IMAGES, padded], slack=8)
calls("avg_pool3d", avg_pool, [call((1, 4, 5, 4, 2), window=(2, 1, 2))], slack=8)


def global_pool(reduction: Any) -> Any:
    """Return a reference that reduces the spatial axes."""

    def run(x: Array, data_format: str = "channels_last", keepdims: bool = False) -> Array:
        first = data_format == "NCHW"
        axes = tuple(range(2, x.ndim)) if first else tuple(range(1, x.ndim - 1))
        return reduction(x, axis=axes, keepdims=keepdims)

    return run


GLOBAL = [call((2, 4, 5, 3)), call((2, 3, 4, 5), data_format="NCHW", keepdims=True)]
calls("global_max_pool", global_pool(np.max), GLOBAL, kinds="iuf")
calls("global_avg_pool", global_pool(np.mean), GLOBAL, slack=8)


def local_response(
    x: Array, depth_radius: int = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5
) -> Array:
    """Return the value by definition, channel by channel."""
    out = np.empty_like(x)
    for c in range(x.shape[-1]):
        near = x[..., max(0, c - depth_radius) : c + depth_radius + 1]
        out[..., c] = x[..., c] / (bias + alpha * (near**2).sum(-1)) ** beta
    return out


calls(
    "local_response_normalization",
    local_response,
    [call((2, 3, 2, 7), depth_radius=2, alpha=0.5, beta=0.75)],
    slack=30,
)


def above_zero(*shape: int) -> Any:
    """Return a function that draws positive numbers, such as variances."""
    return lambda rng, dtype: cast(positive(rng, shape), dtype)


def along(v: Array, x: Array, axis: int) -> Array:
    """Return a vector, reshaped to broadcast along an axis of ``x``."""
    return v.reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])


def batch_norm(
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    epsilon: float = 1e-3,
    axis: int = -1,
) -> Array:
    """Return the value by definition."""
    scale, offset, mean, variance = (along(v, x, axis) for v in (scale, offset, mean, variance))
    return (x - mean) / np.sqrt(variance + epsilon) * scale + offset


def training(
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    epsilon: float = 1e-3,
    axis: int = -1,
    momentum: float = 0.99,
) -> tuple[Array, ...]:
    """Return y and updated running statistics; the variance for these is unbiased."""
    axes = tuple(k for k in range(x.ndim) if k != axis % x.ndim)
    batch_mean, batch_variance = x.mean(axes), x.var(axes)
    y = batch_norm(x, scale, offset, batch_mean, batch_variance, epsilon, axis)
    unbiased = x.var(axes, ddof=1)
    moved = (
        mean * momentum + batch_mean * (1 - momentum),
        variance * momentum + unbiased * (1 - momentum),
    )
    return y, *moved


def fused(
    x: Array,
    scale: Array,
    offset: Array,
    mean: Array,
    variance: Array,
    epsilon: float = 1e-3,
    data_format: str = "NHWC",
    is_training: bool = True,
    exponential_avg_factor: float = 1.0,
) -> tuple[Array, ...]:
    """Return the results of tf.nn.fused_batch_norm."""
    axis = 1 if data_format == "NCHW" else -1
    if not is_training:
        return batch_norm(x, scale, offset, mean, variance, epsilon, axis), mean, variance
    keep = 1 - exponential_avg_factor
    return training(x, scale, offset, mean, variance, epsilon, axis, keep)


def inputs(shape: tuple[int, ...], channels: int) -> tuple[Any, ...]:
    """Return data, scale, offset, mean and variance to call an operator with."""
    return shape, (channels,), (channels,), (channels,), above_zero(channels)


NORMALISED = [call(*inputs((3, 4, 2, 5), 5)), call(*inputs((3, 5, 4), 5), axis=1, epsilon=0.1)]
calls("batch_norm", batch_norm, NORMALISED, slack=30)
calls("batch_norm_training", training, NORMALISED, slack=60)
calls(
    "fused_batch_norm",
    fused,
    [
        call(*inputs((3, 4, 2, 5), 5)),
        call(*inputs((3, 5, 4, 2), 5), data_format="NCHW", is_training=False),
        call(*inputs((3, 4, 2, 5), 5), exponential_avg_factor=0.25),
    ],
    slack=60,
)
