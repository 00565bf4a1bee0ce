"""Convolutions, pools and batch norms for each competitor: channels last, constant filters.

PyTorch gets its channels_last memory format, in which oneDNN is fastest. passkit and PyTorch are
imported where they are used: each may be missing in the Python that runs this.
"""

from functools import cache
from typing import Any

import numpy as np


@cache
def filters(*shape: int) -> np.ndarray:
    """Return a random filter of shape (*window, channels, filters), equal for all competitors."""
    rng = np.random.default_rng(shape)
    return (rng.standard_normal(shape) / np.sqrt(np.prod(shape[:3]))).astype(np.float32)


@cache
def statistics(channels: int) -> np.ndarray:
    """Return scale, offset, mean and variance of a batch norm, of shape (4, channels)."""
    return np.random.default_rng(channels).uniform(0.5, 2, (4, channels)).astype(np.float32)


EPSILON = 1e-3


class ReferenceLayers:
    """The layers in NumPy, window position by window position."""

    @staticmethod
    def taps(x: np.ndarray, window: int, stride: int, pad: int, fill: float) -> Any:
        """Yield (i, j, elements under position (i, j) of the window) for each position."""
        padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)), constant_values=fill)
        last = [n - window + 1 for n in padded.shape[1:3]]
        for i in range(window):
            for j in range(window):
                yield i, j, padded[:, i : i + last[0] : stride, j : j + last[1] : stride]

    @classmethod
    def conv(cls, x: Any, window: int, count: int, stride: int) -> Any:
        """Return a convolution, padded by half of its window."""
        w = filters(window, window, x.shape[-1], count).astype(np.float64)
        return sum(p @ w[i, j] for i, j, p in cls.taps(x, window, stride, window // 2, 0))

    @classmethod
    def depthwise(cls, x: Any, stride: int) -> Any:
        """Return a depthwise convolution of 3 x 3."""
        w = filters(3, 3, 1, x.shape[-1]).astype(np.float64)
        return sum(p * w[i, j, 0] for i, j, p in cls.taps(x, 3, stride, 1, 0))

    @classmethod
    def max_pool(cls, x: Any) -> Any:
        """Return the maxima of windows of 3 x 3, with stride 2."""
        return np.max([p for _, _, p in cls.taps(x, 3, 2, 1, -np.inf)], 0)

    @classmethod
    def avg_pool(cls, x: Any) -> Any:
        """Return the means of windows of 2 x 2."""
        return sum(p for _, _, p in cls.taps(x, 2, 2, 0, 0)) / 4

    @staticmethod
    def norm_relu(x: Any) -> Any:
        """Return the relu of a batch norm."""
        scale, offset, mean, variance = statistics(x.shape[-1]).astype(np.float64)
        return np.maximum((x - mean) / np.sqrt(variance + EPSILON) * scale + offset, 0)


def passkit_layers() -> type:
    """Return a class with passkit's operators under the names of `ReferenceLayers`."""
    import passkit as pk

    ops = pk.ops

    class Layers:
        """The layers in pk.ops."""

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
    """Return a class with PyTorch's functions on (batch, channels, height, width) views."""
    import torch

    functional = torch.nn.functional

    @cache
    def weight(*shape: int) -> Any:
        w = torch.from_numpy(filters(*shape)).permute(3, 2, 0, 1)
        return w.contiguous(memory_format=torch.channels_last)

    @cache
    def vectors(channels: int) -> Any:
        return [torch.from_numpy(v) for v in statistics(channels)]

    def to_channels_last(x: Any) -> Any:
        return x.permute(0, 2, 3, 1)

    def to_channels_first(x: Any) -> Any:
        return x.permute(0, 3, 1, 2)

    class Layers:
        """The layers in torch.nn.functional."""

        @staticmethod
        def conv(x: Any, window: int, count: int, stride: int) -> Any:
            w = weight(window, window, x.shape[-1], count)
            return to_channels_last(
                functional.conv2d(to_channels_first(x), w, None, stride, window // 2)
            )

        @staticmethod
        def depthwise(x: Any, stride: int) -> Any:
            n = x.shape[-1]
            return to_channels_last(
                functional.conv2d(to_channels_first(x), weight(3, 3, 1, n), None, stride, 1, 1, n)
            )

        @staticmethod
        def max_pool(x: Any) -> Any:
            return to_channels_last(functional.max_pool2d(to_channels_first(x), 3, 2, 1))

        @staticmethod
        def avg_pool(x: Any) -> Any:
            return to_channels_last(functional.avg_pool2d(to_channels_first(x), 2))

        @staticmethod
        def norm_relu(x: Any) -> Any:
            scale, offset, mean, variance = vectors(x.shape[-1])
            y = functional.batch_norm(
                to_channels_first(x), mean, variance, scale, offset, False, 0.0, EPSILON
            )
            return to_channels_last(functional.relu(y))

    return Layers
