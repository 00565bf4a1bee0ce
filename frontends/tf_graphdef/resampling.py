"""TensorFlow's resampling kernels for images, as matrices of weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def _lanczos(radius: float) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Return the Lanczos kernel of a radius in pixels: weights as a function of distances >= 0.

    The weight is 1 up to a distance of 0.001 and 0 beyond the radius.
    """

    def kernel(x: NDArray[Any]) -> NDArray[Any]:
        angle = np.maximum(x, 1e-3) * np.pi
        weight = radius * np.sin(angle) * np.sin(angle / radius) / (angle * angle)
        return np.where(x <= 1e-3, 1.0, np.where(x > radius, 0.0, weight))

    return kernel


def _keys(x: NDArray[Any]) -> NDArray[Any]:
    """Return the weights of Keys' cubic kernel (a = -0.5) at distances ``x`` >= 0, in pixels."""
    near, far = ((1.5 * x - 2.5) * x) * x + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x >= 2, 0.0, np.where(x >= 1, far, near))


def _mitchell(x: NDArray[Any]) -> NDArray[Any]:
    """Return the weights of the Mitchell-Netravali kernel at distances ``x`` >= 0, in pixels."""
    near = (((7 / 6) * x - 2.0) * x) * x + 8 / 9
    far = (((-7 / 18) * x + 2.0) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0.0, np.where(x >= 1, far, near))


def _box(x: NDArray[Any]) -> NDArray[Any]:
    """Return the weights of the box kernel at distances ``x`` >= 0: 1 below half a pixel, else 0.

    At half a pixel the weight is 0.5.
    """
    return np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0.0))


def _gaussian(x: NDArray[Any]) -> NDArray[Any]:
    """Return the weights of a Gaussian (deviation 0.5, cut off at 1.5) at distances ``x`` >= 0."""
    return np.where(x >= 1.5, 0.0, np.exp(-x * x / 0.5))


KERNELS: dict[str, tuple[float, Callable[[NDArray[Any]], NDArray[Any]]]] = {
    "lanczos1": (1.0, _lanczos(1.0)),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "gaussian": (1.5, _gaussian),
    "box": (1.0, _box),
    "triangle": (1.0, lambda x: np.maximum(1.0 - x, 0.0)),
    "keyscubic": (2.0, _keys),
    "mitchellcubic": (2.0, _mitchell),
}
"""For each kernel, its radius and its weight as a function of the distance."""


def resampling_weights(
    kernel: str, old: int, new: int, scale: float, translation: float, antialias: bool
) -> NDArray[Any]:
    """Return the weights of old pixels for each new pixel along one axis.

    Source: TensorFlow's scale_and_translate_op.cc.

    Args:
        kernel: lanczos1, lanczos3, lanczos5, gaussian, box, triangle, keyscubic or mitchellcubic.
        old: Number of old pixels.
        new: Number of new pixels.
        scale: New size of one old pixel, in new pixels; not 0.
        translation: Shift of the image, in new pixels.
        antialias: Whether the kernel widens when the image shrinks.

    Returns:
        A float32 matrix (new, old). Rows add up to 1, unless their weights add up to 1e-35 or less,
        by magnitude; a row is zero if its pixel lies outside the image.

    Raises:
        KeyError: If the kernel is unknown.
    """
    radius, function = KERNELS[kernel]
    inverse = np.float32(1.0) / np.float32(scale)
    width = max(inverse, np.float32(1.0)) if antialias else np.float32(1.0)
    out = np.zeros((new, old), np.float32)
    for k in range(new):
        center = np.float32(k + 0.5) * inverse - inverse * np.float32(translation)
        if not 0 <= center <= old:
            continue
        first = int(np.clip(np.ceil(center - radius * width - 0.5), 0, old - 1))
        last = int(np.clip(np.floor(center + radius * width - 0.5), 0, old - 1))
        distance = np.abs(np.arange(first, last + 1) + 0.5 - center) / width
        row_weights = function(distance).astype(np.float32)
        total = row_weights.sum()
        out[k, first : last + 1] = row_weights / total if abs(total) > 1e-35 else row_weights
    return out
