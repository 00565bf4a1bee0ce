"""Images resized: which pixels a new one is made of, as TensorFlow's resize operators have it.

Sizes are known when the graph is made, so rows and columns and their weights are constants.
Source: TensorFlow's resize_nearest_neighbor, resize_bilinear, resize_bicubic and resize_area; where
new pixels lie is computed in float32 as there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.errors import GraphError, ShapeError
from passkit.graph.infer import same_dtype_rule
from passkit.graph.node import Entry, Node, constant, known_shape
from passkit.graph.op import REQUIRED
from passkit.ops.composites import composite
from passkit.ops.helpers import common_dtype, make, normalize_axes, parse_extents
from passkit.values.dtype import DType

PARAMS = {
    "size": REQUIRED,
    "align_corners": False,
    "half_pixel_centers": True,
    "axes": (1, 2),
}


def _lengths(node: Node, x: Entry) -> list[tuple[int, int, int]]:
    """Each axis to resize, with its old and its new length. Raises: ShapeError."""
    shape = known_shape(x)
    axes = normalize_axes(node, len(shape), node.params["axes"], "axes")
    size = parse_extents(node, node.params["size"], "size")
    if node.params["align_corners"] and node.params.get("half_pixel_centers"):
        raise GraphError(
            f"{node.where} cannot align corners and have half-pixel centers; set one to False"
        )
    if len(size) != len(axes):
        raise ShapeError(f"{node.where} needs a size for each of axes {axes}, got {size}")
    found = []
    for axis, new in zip(axes, size, strict=True):
        old = shape[axis]
        if not isinstance(old, int) or not isinstance(new, int) or old < 1 or new < 0:
            raise ShapeError(
                f"{node.where} needs known lengths, at least 1 to read from, got {old} and {new} "
                f"at axis {axis}"
            )
        found.append((axis, old, new))
    return found


def centers(old: int, new: int, align_corners: bool, half_pixel: bool) -> Any:
    """Where the new pixels lie between the old ones, and the distance of two."""
    aligned = align_corners and new > 1
    scale = np.float32((old - 1) / (new - 1) if aligned else old / max(new, 1))
    at = np.arange(new, dtype=np.float32)
    return (at + np.float32(0.5)) * scale if half_pixel else at * scale


def _nearest(node: Node, x: Entry) -> Entry:
    align, half = node.params["align_corners"], node.params["half_pixel_centers"]
    for axis, old, new in _lengths(node, x):
        at = centers(old, new, align, half)
        near = np.floor(at + np.float32(0.5)) if align else np.floor(at)
        x = make("gather", x, constant(np.minimum(near, old - 1).astype(np.int64)), axis=axis)
    return x


def _bilinear(node: Node, x: Entry) -> Entry:
    """Columns first, then rows, each between two neighbours."""
    align, half = node.params["align_corners"], node.params["half_pixel_centers"]
    dtype = x.dtype
    for axis, old, new in reversed(_lengths(node, x)):
        at = centers(old, new, align, half) - np.float32(0.5 if half else 0)
        low = np.floor(at)
        weight = (at - low).reshape((new, *(1,) * (x.ndim - axis - 1)))
        first = constant(np.maximum(low, 0).astype(np.int64))
        second = constant(np.minimum(np.ceil(at), old - 1).astype(np.int64))
        a, b = (make("gather", x, i, axis=axis) for i in (first, second))
        x = a + (b - a) * constant(weight, dtype)
    return x


_STEPS = 1024
"""Distances to four pixels are rounded to so many steps, as in TensorFlow's table of weights."""


def cubic(old: int, new: int, align_corners: bool, half_pixel: bool) -> tuple[Any, Any]:
    """The four old pixels that each new one is made of, and their weights: (new, 4) each.

    Source: Keys 1981 with a = -1/2 and weights of pixels outside shared out among the others; the
    older kinds have a = -3/4 and repeat the pixels at the edge.
    """
    a = -0.5 if half_pixel else -0.75
    x = np.arange(_STEPS + 1) / _STEPS
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a
    at = centers(old, new, align_corners, half_pixel) - np.float32(0.5 if half_pixel else 0)
    low = np.floor(at)
    step = np.rint((at - low) * np.float32(_STEPS)).astype(np.int64)
    pixels = low.astype(np.int64)[:, None] + np.arange(-1, 3)
    weights = np.stack([far[step], near[step], near[_STEPS - step], far[_STEPS - step]], 1)
    inside = np.clip(pixels, 0, old - 1)
    if half_pixel:
        weights = np.where(inside == pixels, weights, 0)
        weights = weights / weights.sum(1, keepdims=True)
    return inside, weights


def _bicubic(node: Node, x: Entry) -> Entry:
    """Columns first, then rows, each of four neighbours."""
    align, half = node.params["align_corners"], node.params["half_pixel_centers"]
    dtype = x.dtype
    for axis, old, new in reversed(_lengths(node, x)):
        pixels, weights = cubic(old, new, align, half)
        parts = []
        for k in range(4):
            taken = make("gather", x, constant(np.ascontiguousarray(pixels[:, k])), axis=axis)
            weight = weights[:, k].reshape((new, *(1,) * (x.ndim - axis - 1)))
            parts.append(taken * constant(weight, dtype))
        x = parts[0] + parts[1] + parts[2] + parts[3]
    return x


def shares(old: int, new: int, align_corners: bool) -> Any:
    """(new, old): which part of each old pixel lies under each new one, as parts of the latter."""
    aligned = align_corners and new > 1
    scale = (old - 1) / (new - 1) if aligned else old / max(new, 1)
    out = np.zeros((new, old))
    if scale == 0:
        out[:, 0] = 1
        return out
    for k in range(new):
        low, high = k * scale, (k + 1) * scale
        for pixel in range(int(np.floor(low)), int(np.ceil(high))):
            part = min(pixel + 1, high) - max(pixel, low)
            out[k, min(pixel, old - 1)] += part / scale
    return out


def _area(node: Node, x: Entry) -> Entry:
    """Columns first, then rows: products with the shares of each old pixel."""
    for axis, old, new in reversed(_lengths(node, x)):
        x = weighed(x, axis, shares(old, new, node.params["align_corners"]))
    return x


def weighed(x: Entry, axis: int, weights: Any) -> Entry:
    """``x`` with new elements along axis, each a sum of the old ones by a row of ``weights``."""
    moved = make("moveaxis", x, source=axis, destination=-1)
    out = make("matmul", moved, constant(weights, x.dtype), transpose_b=True)
    return make("moveaxis", out, source=-1, destination=axis)


def _any(node: Node, x: DType) -> DType:
    return same_dtype_rule(node, x)


composite(
    "resize_nearest",
    ("x",),
    _nearest,
    "images, NHWC, of another size: the nearest pixel; the two flags as in TensorFlow",
    PARAMS,
    types=_any,
    aliases="resize_nearest_neighbor",
    TOpCost="light",
)
composite(
    "resize_bilinear",
    ("x",),
    _bilinear,
    "images, NHWC, of another size: between the four nearest pixels; flags as in TensorFlow",
    PARAMS,
    types=common_dtype("f"),
    TOpCost="light",
)
composite(
    "resize_bicubic",
    ("x",),
    _bicubic,
    "images, NHWC, of another size: between the sixteen nearest pixels; flags as in TensorFlow",
    PARAMS,
    types=common_dtype("f"),
)
composite(
    "resize_area",
    ("x",),
    _area,
    "images, NHWC, of another size: the mean of what lies under each new pixel",
    {"size": REQUIRED, "align_corners": False, "axes": (1, 2)},
    types=common_dtype("f"),
)
