"""TensorFlow's kernels for images at any scale, as the weights of old pixels in new ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from passkit.frontends.tf_graphdef.value import Array


def _lanczos(radius: float) -> Callable[[Array], Array]:
    def kernel(x: Array) -> Array:
        at = np.maximum(x, 1e-3) * np.pi
        found = radius * np.sin(at) * np.sin(at / radius) / (at * at)
        return np.where(x <= 1e-3, 1.0, np.where(x > radius, 0.0, found))

    return kernel


def _keys(x: Array) -> Array:
    near, far = ((1.5 * x - 2.5) * x) * x + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x >= 2, 0.0, np.where(x >= 1, far, near))


def _mitchell(x: Array) -> Array:
    near = (((7 / 6) * x - 2.0) * x) * x + 8 / 9
    far = (((-7 / 18) * x + 2.0) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0.0, np.where(x >= 1, far, near))


def _box(x: Array) -> Array:
    return np.where(x < 0.5, 1.0, np.where(x == 0.5, 0.5, 0.0))


def _gaussian(x: Array) -> Array:
    return np.where(x >= 1.5, 0.0, np.exp(-x * x / 0.5))


KERNELS: dict[str, tuple[float, Callable[[Array], Array]]] = {
    "lanczos1": (1.0, _lanczos(1.0)),
    "lanczos3": (3.0, _lanczos(3.0)),
    "lanczos5": (5.0, _lanczos(5.0)),
    "gaussian": (1.5, _gaussian),
    "box": (1.0, _box),
    "triangle": (1.0, lambda x: np.maximum(1.0 - x, 0.0)),
    "keyscubic": (2.0, _keys),
    "mitchellcubic": (2.0, _mitchell),
}
"""How far each kernel reaches, and its weight at a distance."""


def weights_of(
    kernel: str, old: int, new: int, scale: float, translation: float, antialias: bool
) -> Array:
    """(new, old): rows of weights that add up to 1; zeros where a new pixel lies outside.

    Source: TensorFlow's scale_and_translate_op.cc.
    """
    radius, function = KERNELS[kernel]
    inverse = np.float32(1.0) / np.float32(scale)
    wide = max(inverse, np.float32(1.0)) if antialias else np.float32(1.0)
    out = np.zeros((new, old), np.float32)
    for k in range(new):
        at = np.float32(k + 0.5) * inverse - inverse * np.float32(translation)
        if not 0 <= at <= old:
            continue
        first = int(np.clip(np.ceil(at - radius * wide - 0.5), 0, old - 1))
        last = int(np.clip(np.floor(at + radius * wide - 0.5), 0, old - 1))
        distance = np.abs(np.arange(first, last + 1) + 0.5 - at) / wide
        row = function(distance).astype(np.float32)
        total = row.sum()
        out[k, first : last + 1] = row / total if abs(total) > 1e-35 else row
    return out
