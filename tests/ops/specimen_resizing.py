"""Specimens of resized images, against definitions in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.specimen_movement import moves
from tests.ops.specimens import call, calls

Array = Any


def _centers(old: int, new: int, align_corners: bool, half_pixel_centers: bool) -> Array:
    scale = np.float32((old - 1) / (new - 1) if align_corners and new > 1 else old / new)
    at = np.arange(new, dtype=np.float32)
    return (at + np.float32(0.5)) * scale if half_pixel_centers else at * scale


def _nearest(
    x: Array, size: Any, align_corners: bool = False, half_pixel_centers: bool = True
) -> Array:
    rows, columns = (
        np.minimum(
            np.floor(
                _centers(o, n, align_corners, half_pixel_centers) + np.float32(0.5 * align_corners)
            ),
            o - 1,
        ).astype(int)
        for o, n in zip(x.shape[1:3], size, strict=True)
    )
    return x[:, rows][:, :, columns]


def _bilinear(
    x: Array, size: Any, align_corners: bool = False, half_pixel_centers: bool = True
) -> Array:
    for axis, (o, n) in enumerate(zip(x.shape[1:3], size, strict=True), 1):
        at = _centers(o, n, align_corners, half_pixel_centers) - np.float32(
            0.5 * half_pixel_centers
        )
        low = np.floor(at)
        weight = (at - low).astype(np.float64).reshape(-1, *(1,) * (x.ndim - axis - 1))
        a = np.take(x, np.maximum(low, 0).astype(int), axis)
        b = np.take(x, np.minimum(np.ceil(at), o - 1).astype(int), axis)
        x = (a + (b - a) * weight).astype(x.dtype)
    return x


_SIZES = [
    call((2, 3, 4, 5), size=(6, 7)),
    call((1, 5, 6, 2), size=(2, 3)),
    call((1, 3, 4, 20), size=(5, 1), align_corners=True, half_pixel_centers=False),
    call((1, 4, 3, 2), size=(6, 6), half_pixel_centers=False),
]
moves("resize_nearest", _nearest, _SIZES)
calls("resize_bilinear", _bilinear, _SIZES, slack=8)


def _weigh_axes(x: Array, size: Any, weights_of: Any) -> Array:
    """Return ``x`` times a matrix along each of two axes, rounded after each to its dtype."""
    for axis, (o, n) in ((2, (x.shape[2], size[1])), (1, (x.shape[1], size[0]))):
        weights = np.array([weights_of(k, o, n) for k in range(n)], np.float64).reshape(n, o)
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ weights.T, -1, axis)
    return x


def _bicubic(
    x: Array, size: Any, align_corners: bool = False, half_pixel_centers: bool = True
) -> Array:
    a = -0.5 if half_pixel_centers else -0.75

    def kernel(d: float) -> float:
        if d < 1:
            return ((a + 2) * d - (a + 3)) * d * d + 1
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a if d < 2 else 0.0

    def weights(k: int, old: int, new: int) -> Array:
        at = _centers(old, new, align_corners, half_pixel_centers)[k]
        at = np.float32(at - np.float32(0.5 * half_pixel_centers))
        low = int(np.floor(at))
        part = float(np.rint((at - low) * np.float32(1024))) / 1024
        out = np.zeros(old)
        for pixel in range(low - 1, low + 3):
            if half_pixel_centers and not 0 <= pixel < old:
                continue
            out[min(max(pixel, 0), old - 1)] += kernel(abs(low + part - pixel))
        return out / out.sum()

    return _weigh_axes(x, size, weights)


def _area(x: Array, size: Any, align_corners: bool = False) -> Array:
    def weights(k: int, old: int, new: int) -> Array:
        wide = (old - 1) / (new - 1) if align_corners and new > 1 else old / new
        ends = np.clip([k * wide, (k + 1) * wide], 0, None)
        edges = np.arange(old + 1.0)
        edges[-1] = np.inf
        under = np.minimum(edges[1:], ends[1]) - np.maximum(edges[:-1], ends[0])
        return np.maximum(under, 0) / wide

    return _weigh_axes(x, size, weights)


calls("resize_bicubic", _bicubic, _SIZES, slack=40)
calls(
    "resize_area",
    _area,
    [
        call((2, 3, 4, 5), size=(6, 7)),
        call((1, 5, 6, 2), size=(2, 3)),
        call((1, 3, 4, 20), size=(5, 1), align_corners=True),
    ],
    slack=40,
)
