"""Images resized: which pixels a new one is made of, as TensorFlow's resize operators have it.

Sizes are known when the graph is made, so rows and columns and their weights are constants.
Source: TensorFlow's resize_nearest_neighbor and resize_bilinear, scaled in float32 as there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.dtype import DType
from passkit.errors import GraphError, ShapeError
from passkit.infer import same_dtype_rule
from passkit.node import Entry, Node, constant, known_shape
from passkit.op import REQUIRED
from passkit.ops.composites import composite
from passkit.ops.rules import axes_of, extents, make, takes

PARAMS = {
    "size": REQUIRED,
    "align_corners": False,
    "half_pixel_centers": True,
    "axes": (1, 2),
}


def _lengths(node: Node, x: Entry) -> list[tuple[int, int, int]]:
    """Each axis to resize, with its old and its new length. Raises: ShapeError."""
    shape = known_shape(x)
    axes = axes_of(node, len(shape), node.params["axes"], "axes")
    size = extents(node, node.params["size"], "size")
    if node.params["align_corners"] and node.params["half_pixel_centers"]:
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
    types=takes("f"),
    TOpCost="light",
)
