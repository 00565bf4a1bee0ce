"""Convolutions, pools and batch norms of each competitor: channels last, filters constant.

PyTorch is given its channels_last memory format, in which oneDNN is fastest.
"""

from functools import cache
from typing import Any

import numpy as np


@cache
def filters(*shape: int) -> np.ndarray:
    """A filter (*window, channels, filters), the same for everybody."""
    rng = np.random.default_rng(shape)
    return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:3]))).astype(np.float32)


@cache
def statistics(channels: int) -> np.ndarray:
    """Scale, offset, mean and variance."""
    return np.random.default_rng(channels).uniform(0.5, 2, (4, channels)).astype(np.float32)


EPSILON = 1e-3


class ReferenceLayers:
    """In NumPy, tap by tap."""

    @staticmethod
    def taps(x: np.ndarray, window: int, stride: int, pad: int, fill: float) -> Any:
        """What lies under each place of the window, in turn."""
        wide = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)), constant_values=fill)
        last = [n - window + 1 for n in wide.shape[1:3]]
        for i in range(window):
            for j in range(window):
                yield i, j, wide[:, i : i + last[0] : stride, j : j + last[1] : stride]

    @classmethod
    def conv(cls, x: Any, window: int, count: int, stride: int) -> Any:
        """A convolution, padded by half of its window."""
        w = filters(window, window, x.shape[-1], count).astype(np.float64)
        return sum(p @ w[i, j] for i, j, p in cls.taps(x, window, stride, window // 2, 0))

    @classmethod
    def depthwise(cls, x: Any, stride: int) -> Any:
        """A filter for each channel."""
        w = filters(3, 3, 1, x.shape[-1]).astype(np.float64)
        return sum(p * w[i, j, 0] for i, j, p in cls.taps(x, 3, stride, 1, 0))

    @classmethod
    def max_pool(cls, x: Any) -> Any:
        """The largest of 3 x 3."""
        return np.max([p for _, _, p in cls.taps(x, 3, 2, 1, -np.inf)], 0)

    @classmethod
    def avg_pool(cls, x: Any) -> Any:
        """The mean of 2 x 2."""
        return sum(p for _, _, p in cls.taps(x, 2, 2, 0, 0)) / 4

    @staticmethod
    def norm_relu(x: Any) -> Any:
        """Batch norm, then relu."""
        scale, offset, mean, variance = statistics(x.shape[-1]).astype(np.float64)
        return np.maximum((x - mean) / np.sqrt(variance + EPSILON) * scale + offset, 0)


def passkit_layers() -> type:
    """passkit's operators."""
    import passkit as pk

    ops = pk.ops

    class Layers:
        """pk.ops."""

        @staticmethod
        def conv(x: Any, window: int, count: int, stride: int) -> Any:
            w = filters(window, window, x.shape[-1], count)
            return ops.conv2d(x, w, strides=stride, padding=window // 2)

        @staticmethod
        def depthwise(x: Any, stride: int) -> Any:
            w = filters(3, 3, 1, x.shape[-1]).reshape(3, 3, -1, 1)
            return ops.depthwise_conv2d(x, w, strides=stride, padding=1)

        @staticmethod
        def max_pool(x: Any) -> Any:
            return ops.max_pool2d(x, window=3, strides=2, padding=1)

        @staticmethod
        def avg_pool(x: Any) -> Any:
            return ops.avg_pool2d(x, window=2)

        @staticmethod
        def norm_relu(x: Any) -> Any:
            return ops.relu(ops.batch_norm(x, *statistics(x.shape[-1]), epsilon=EPSILON))

    return Layers


def torch_layers() -> type:
    """PyTorch's functions on views that are (batch, channels, height, width)."""
    import torch

    f = torch.nn.functional

    @cache
    def weight(*shape: int) -> Any:
        w = torch.from_numpy(filters(*shape)).permute(3, 2, 0, 1)
        return w.contiguous(memory_format=torch.channels_last)

    @cache
    def vectors(channels: int) -> Any:
        return [torch.from_numpy(v) for v in statistics(channels)]

    def last(x: Any) -> Any:
        return x.permute(0, 2, 3, 1)

    def first(x: Any) -> Any:
        return x.permute(0, 3, 1, 2)

    class Layers:
        """torch.nn.functional."""

        @staticmethod
        def conv(x: Any, window: int, count: int, stride: int) -> Any:
            w = weight(window, window, x.shape[-1], count)
            return last(f.conv2d(first(x), w, None, stride, window // 2))

        @staticmethod
        def depthwise(x: Any, stride: int) -> Any:
            n = x.shape[-1]
            return last(f.conv2d(first(x), weight(3, 3, 1, n), None, stride, 1, 1, n))

        @staticmethod
        def max_pool(x: Any) -> Any:
            return last(f.max_pool2d(first(x), 3, 2, 1))

        @staticmethod
        def avg_pool(x: Any) -> Any:
            return last(f.avg_pool2d(first(x), 2))

        @staticmethod
        def norm_relu(x: Any) -> Any:
            scale, offset, mean, variance = vectors(x.shape[-1])
            y = f.batch_norm(first(x), mean, variance, scale, offset, False, 0.0, EPSILON)
            return last(f.relu(y))

    return Layers
