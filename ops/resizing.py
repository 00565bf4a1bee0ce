"""Resizing of images: nearest, bilinear, bicubic and area, as TensorFlow's operators compute them.

Sizes are known when the graph is built, so positions of pixels and their weights are constants.
Source: TensorFlow's resize_nearest_neighbor, resize_bilinear, resize_bicubic and resize_area.
Positions of new pixels are computed in float32 as there.
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

RESIZE_PARAMS = {
    "size": REQUIRED,
    "align_corners": False,
    "half_pixel_centers": True,
    "axes": (1, 2),
}
"""The parameters of resize operators, with their defaults."""

LONGEST_RESULT = 2**24
"""The longest axis that an operator resizes to: float32 counts pixels up to here."""
CUBIC_STEPS = 1024
"""Bicubic weights are rounded to so many fractions of a pixel, as in TensorFlow's table of them."""


def _resized_axes(node: Node, x: Entry) -> list[tuple[int, int, int]]:
    """Return (axis, old length, new length) for each axis to resize, in increasing order.

    Sizes belong to the axes in that order, whatever that of ``axes``. ``node`` has the parameters
    ``align_corners``, ``axes`` (None for all), ``size`` and perhaps ``half_pixel_centers``.

    Raises:
        GraphError: If corners are aligned and centers are half pixels.
        ShapeError: If there is not a size for each axis, a length is symbolic, an old one 0, a new
            one negative or above 2**24, or an axis out of range or listed twice.
    """
    shape = known_shape(x)
    axes = normalize_axes(node, len(shape), node.params["axes"], "axes")
    size = parse_extents(node, node.params["size"], "size")
    if node.params["align_corners"] and node.params.get("half_pixel_centers"):
        raise GraphError(
            f"{node.where} cannot align corners and have half-pixel centers; set one to False"
        )
    if len(size) != len(axes):
        raise ShapeError(f"{node.where} needs a size for each of axes {axes}, got {size}")
    resized = []
    for axis, new in zip(axes, size, strict=True):
        old = shape[axis]
        if isinstance(new, int) and new > LONGEST_RESULT:
            raise ShapeError(
                f"{node.where} needs lengths of at most {LONGEST_RESULT}, got {new} at axis {axis}"
            )
        if not isinstance(old, int) or not isinstance(new, int) or old < 1 or new < 0:
            raise ShapeError(
                f"{node.where} needs known lengths, at least 1 to read from, got {old} and {new} "
                f"at axis {axis}"
            )
        resized.append((axis, old, new))
    return resized


def pixel_positions(old: int, new: int, align_corners: bool, half_pixel: bool) -> Any:
    """Return the positions of new pixels in the old axis, float32, in units of old pixels.

    Args:
        old: Old length of the axis, at least 1.
        new: New length of the axis; 0 gives no positions.
        align_corners: Whether the first and last pixels keep their positions; ignored for one
            pixel.
        half_pixel: Whether a pixel is at its center, half a pixel from its edge, else at its edge.

    Returns:
        A NumPy vector of ``new`` numbers.
    """
    aligned = align_corners and new > 1
    scale = np.float32((old - 1) / (new - 1) if aligned else old / max(new, 1))
    numbers = np.arange(new, dtype=np.float32)
    return (numbers + np.float32(0.5)) * scale if half_pixel else numbers * scale


def _interpolation_positions(node: Node, old: int, new: int) -> Any:
    """Return positions of ``new`` pixels between the centers of ``old`` ones, along one axis.

    They are float32; 0 is the center of the first pixel. ``node`` has the parameters
    ``align_corners`` and ``half_pixel_centers``.
    """
    align, half = node.params["align_corners"], node.params["half_pixel_centers"]
    return pixel_positions(old, new, align, half) - np.float32(0.5 if half else 0)


def _align_weights(weights: Any, x: Entry, axis: int) -> Any:
    """Return a vector of weights along ``axis``, reshaped to broadcast with ``x``.

    Raises: ShapeError if the rank of ``x`` is unknown.
    """
    trailing = (1,) * (x.ndim - axis - 1)
    return weights.reshape((len(weights), *trailing))


def _resize_nearest(node: Node, x: Entry) -> Entry:
    """Expand resize_nearest: gather the nearest pixel along each of the parameter ``axes``.

    ``node`` has the parameters ``align_corners``, ``axes``, ``half_pixel_centers`` and ``size``.
    Without axes it is ``x`` itself.

    Raises: ShapeError if ``size`` does not fit the axes, is negative or above 2**24, a length is
    symbolic or 0, an axis is out of range or listed twice, or the rank is unknown; GraphError for
    ``align_corners`` with ``half_pixel_centers``.
    """
    align, half = node.params["align_corners"], node.params["half_pixel_centers"]
    for axis, old, new in _resized_axes(node, x):
        positions = pixel_positions(old, new, align, half)
        rounded = np.floor(positions + np.float32(0.5)) if align else np.floor(positions)
        indices = np.minimum(rounded, old - 1).astype(np.int64)
        x = make("gather", x, constant(indices), axis=axis)
    return x


def _resize_bilinear(node: Node, x: Entry) -> Entry:
    """Expand resize_bilinear: columns, then rows, each interpolated between two neighbours.

    ``node`` has the parameters ``align_corners``, ``axes``, ``half_pixel_centers`` and ``size``.
    Without axes it is ``x`` itself.

    Raises: ShapeError if ``size`` does not fit the axes, is negative or above 2**24, a length is
    symbolic or 0, an axis is out of range or listed twice, or the rank is unknown; GraphError for
    ``align_corners`` with ``half_pixel_centers``.
    """
    dtype = x.dtype
    for axis, old, new in reversed(_resized_axes(node, x)):
        positions = _interpolation_positions(node, old, new)
        low = np.floor(positions)
        weights = _align_weights(positions - low, x, axis)
        first = constant(np.maximum(low, 0).astype(np.int64))
        second = constant(np.minimum(np.ceil(positions), old - 1).astype(np.int64))
        a, b = (make("gather", x, i, axis=axis) for i in (first, second))
        x = a + (b - a) * constant(weights, dtype)
    return x


def cubic_weights(positions: Any, old: int, half_pixel: bool) -> tuple[Any, Any]:
    """Return the four old pixels that each new one is a sum of, and their weights: (new, 4) each.

    Source: Keys 1981, Cubic Convolution Interpolation, with a = -1/2, and weights of pixels outside
    distributed to the others; without half-pixel centers a = -3/4, and the pixels at the edge are
    repeated.

    Args:
        positions: Positions of new pixels between the centers of old ones, in pixels.
        old: Old length of the axis.
        half_pixel: Whether pixels have half-pixel centers.

    Returns:
        The pixels, an int64 array, and the weights, a float64 array.
    """
    a = -0.5 if half_pixel else -0.75
    x = np.arange(CUBIC_STEPS + 1) / CUBIC_STEPS
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a
    low = np.floor(positions)
    step = np.rint((positions - low) * np.float32(CUBIC_STEPS)).astype(np.int64)
    pixels = low.astype(np.int64)[:, None] + np.arange(-1, 3)
    opposite = CUBIC_STEPS - step
    weights = np.stack([far[step], near[step], near[opposite], far[opposite]], 1)
    clipped = np.clip(pixels, 0, old - 1)
    if half_pixel:
        weights = np.where(clipped == pixels, weights, 0)
        weights = weights / weights.sum(1, keepdims=True)
    return clipped, weights


def _resize_bicubic(node: Node, x: Entry) -> Entry:
    """Expand resize_bicubic: columns, then rows, each a weighted sum of four neighbours.

    ``node`` has the parameters ``align_corners``, ``axes``, ``half_pixel_centers`` and ``size``.
    Without axes it is ``x`` itself.

    Raises: ShapeError if ``size`` does not fit the axes, is negative or above 2**24, a length is
    symbolic or 0, an axis is out of range or listed twice, or the rank is unknown; GraphError for
    ``align_corners`` with ``half_pixel_centers``.
    """
    half = node.params["half_pixel_centers"]
    dtype = x.dtype
    for axis, old, new in reversed(_resized_axes(node, x)):
        pixels, weights = cubic_weights(_interpolation_positions(node, old, new), old, half)
        terms = []
        for k in range(4):
            column = constant(np.ascontiguousarray(pixels[:, k]))
            neighbour = make("gather", x, column, axis=axis)
            terms.append(neighbour * constant(_align_weights(weights[:, k], x, axis), dtype))
        x = terms[0] + terms[1] + terms[2] + terms[3]
    return x


def area_weights(old: int, new: int, align_corners: bool) -> Any:
    """Return the share of each old pixel in the mean of each new one, a float64 array (new, old).

    Args:
        old: Old length of the axis.
        new: New length of the axis.
        align_corners: Whether the first and last pixels keep their positions; ignored for one
            pixel.

    Raises:
        MemoryError: If there is no memory for it.
    """
    aligned = align_corners and new > 1
    scale = (old - 1) / (new - 1) if aligned else old / max(new, 1)
    weights = np.zeros((new, old))
    if scale == 0:
        weights[:, 0] = 1
        return weights
    for k in range(new):
        low, high = k * scale, (k + 1) * scale
        for pixel in range(int(np.floor(low)), int(np.ceil(high))):
            overlap = min(pixel + 1, high) - max(pixel, low)
            weights[k, min(pixel, old - 1)] += overlap / scale
    return weights


def _resize_area(node: Node, x: Entry) -> Entry:
    """Expand resize_area: columns, then rows, each a product with the shares of old pixels.

    ``node`` has the parameters ``align_corners``, ``axes`` and ``size``. Without axes it is ``x``
    itself.

    Raises: ShapeError if ``size`` does not fit the axes, is negative or above 2**24, a length is
    symbolic or 0, an axis is out of range or listed twice, or the rank is unknown; MemoryError if
    there is no memory for the shares.
    """
    for axis, old, new in reversed(_resized_axes(node, x)):
        x = weigh_axis(x, axis, area_weights(old, new, node.params["align_corners"]))
    return x


def weigh_axis(x: Entry, axis: int, weights: Any) -> Entry:
    """Return ``x`` with each vector along an axis multiplied by a matrix.

    Args:
        x: An entry.
        axis: An axis of it.
        weights: An array (new length, old length), which is cast to the dtype of x.

    Raises:
        ShapeError: If the old length is not that of the axis.
    """
    moved = make("moveaxis", x, source=axis, destination=-1)
    out = make("matmul", moved, constant(weights, x.dtype), transpose_b=True)
    return make("moveaxis", out, source=-1, destination=axis)


composite(
    "resize_nearest",
    inputs=["x"],
    expand=_resize_nearest,
    doc="images of the new size along axes: each pixel is the nearest one",
    params=RESIZE_PARAMS,
    types=same_dtype_rule,
    aliases="resize_nearest_neighbor",
    TOpCost="light",
)
composite(
    "resize_bilinear",
    inputs=["x"],
    expand=_resize_bilinear,
    doc="images of the new size along axes: each pixel is interpolated between the 4 nearest",
    params=RESIZE_PARAMS,
    types=common_dtype("f"),
    TOpCost="light",
)
composite(
    "resize_bicubic",
    inputs=["x"],
    expand=_resize_bicubic,
    doc="images of the new size along axes: each pixel is interpolated between the 16 nearest",
    params=RESIZE_PARAMS,
    types=common_dtype("f"),
)
composite(
    "resize_area",
    inputs=["x"],
    expand=_resize_area,
    doc="images of the new size along axes: each pixel is the mean of the area that it covers",
    params={"size": REQUIRED, "align_corners": False, "axes": (1, 2)},
    types=common_dtype("f"),
)
