"""Pools and local response normalization: reductions over views of windows.

They fuse with their neighbours. Images are (batch, *size, channels); a ``data_format`` with
channels first puts them second. ``strides`` default to the window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from passkit.errors import ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, constant, known_dtype, known_shape
from passkit.graph.op import REQUIRED
from passkit.ops.composites import composite
from passkit.ops.helpers import common_dtype, make
from passkit.ops.layouts import (
    LAST,
    by_channel,
    channels_first,
    check_spatial_rank,
    from_last,
    to_last,
)
from passkit.ops.window_geometry import WindowGeometry, per_axis, window_geometry
from passkit.ops.window_views import sum_windows_back
from passkit.values.size import numel

POOL_PARAMS = {"window": REQUIRED, "strides": None, "padding": 0, "dilations": 1}
"""The parameters of a pool that position its windows, with their defaults."""


def _window_params(node: Node, count: int) -> dict[str, Any]:
    """Return the parameters of ``windows`` for a pool with ``count`` spatial axes, by name.

    Strides of None are those of the window. ``node`` has the parameter ``window``.

    Raises: ShapeError if ``window`` is neither an int >= 1 nor one for each axis.
    """
    params = {k: node.params[k] for k in POOL_PARAMS}
    params["window"] = per_axis(node, "window", count)
    if params["strides"] is None:
        params["strides"] = params["window"]
    return params


def _window_axes(count: int) -> tuple[int, ...]:
    """Return the axes of *window in (batch, *result, *window, channels): ``count`` of each."""
    return tuple(range(1 + count, 1 + 2 * count))


def _pool_geometry(node: Node, size: Any, count: int) -> WindowGeometry:
    """Return the positions of a pool's windows on spatial axes of extents ``size``.

    ``count`` is the number of these axes. ``node`` has the parameters ``dilations``, ``padding``,
    ``strides`` and ``window``.

    Raises: ShapeError if windows do not fit, or a parameter of them is invalid.
    """
    params = _window_params(node, count)
    return window_geometry(node, size, params["window"], params["strides"])


# Maximum and average of windows.


def _expand_max_pool(count: int) -> Callable[..., Entry]:
    """Return the FExpand of a max pool with ``count`` spatial axes."""

    def expand(node: Node, x: Entry) -> Entry:
        """Expand to a view of windows and a maximum over them, with the channels last.

        ``node`` has the parameters ``data_format`` and ``window``.

        Raises: ShapeError for another rank, windows that do not fit, or a parameter of them that is
        invalid; GraphError for an unknown ``data_format``.
        """
        check_spatial_rank(node, x, count)
        image, restore_format = by_channel(x, channels_first(node, count))
        view = make("windows", image, **_window_params(node, count), fill="least")
        return restore_format(make("reduce_max", view, axis=_window_axes(count)))

    return expand


def _max_pool_gradient(count: int) -> Callable[..., list[Entry]]:
    """Return the FGradient of a max pool with ``count`` spatial axes.

    All of dy goes to the first maximum of each window. A window with NaN has none: NaN equals
    nothing.
    """

    def gradient(node: Node, dy: Entry) -> list[Entry]:
        """Return the gradient of the input: dy at the first maximum of each window, summed.

        ``node`` is the forward node, with the parameters ``data_format`` and ``window``; ``dy`` is
        the gradient of its output.

        Raises: ShapeError if the rank of the input is unknown or another, GraphError for an unknown
        ``data_format``, DTypeError for integers.
        """
        check_spatial_rank(node, node.inputs[0], count)
        first = channels_first(node, count)
        image = to_last(node.inputs[0], first)
        params = _window_params(node, count)
        view = make("windows", image, **params, fill="least")
        largest = make("reduce_max", view, axis=_window_axes(count), keepdims=True)
        window = params["window"]
        area = int(np.prod(window))
        positions = np.arange(area, dtype=np.int32).reshape(*window, 1)
        candidates = make(
            "where", make("equal", view, largest), constant(positions), np.int32(area)
        )
        chosen = make("reduce_min", candidates, axis=_window_axes(count), keepdims=True)
        aligned_dy = make("reshape", to_last(dy, first), shape=known_shape(largest))
        is_chosen = make("equal", chosen, constant(positions))
        window_gradient = make("where", is_chosen, aligned_dy, 0.0)
        del params["window"]
        size = known_shape(image)[1:-1]
        return [from_last(sum_windows_back(window_gradient, size, **params), first)]

    return gradient


def _expand_avg_pool(count: int) -> Callable[..., Entry]:
    """Return the FExpand of an average pool with ``count`` spatial axes."""

    def expand(node: Node, x: Entry) -> Entry:
        """Expand to a view of windows, a sum over them, and a division by counts.

        ``node`` has the parameters ``count_include_pad``, ``data_format``, ``dilations``,
        ``padding``, ``strides`` and ``window``.

        Raises: ShapeError for another rank, windows that do not fit, or a parameter of them that is
        invalid; GraphError for an unknown ``data_format``; DTypeError if padding is not counted and
        the dtype of ``x`` is unknown.
        """
        check_spatial_rank(node, x, count)
        image, restore_format = by_channel(x, channels_first(node, count))
        view = make("windows", image, **_window_params(node, count))
        total = make("reduce_sum", view, axis=_window_axes(count))
        return restore_format(total / _element_counts(node, image, count))

    return expand


def _element_counts(node: Node, image: Entry, count: int) -> Any:
    """Return the divisor of an average: a float, or an entry with one for each window.

    The entry has the shape (1, *result, 1). With ``count_include_pad``, or where no window reads
    padding, the divisor is the number of elements of a window, else the number of those inside the
    image.

    Args:
        node: The pool.
        image: Its input, channels last.
        count: Number of spatial axes.

    Raises:
        ShapeError: If the windows do not fit.
        DTypeError: If the numbers are counted and the dtype of the image is unknown.
    """
    geometry = _pool_geometry(node, known_shape(image)[1:-1], count)
    area = int(np.prod(geometry.window))
    if node.params["count_include_pad"] or geometry.reads_no_padding:
        return float(area)
    one = constant(known_dtype(image).numpy.type(1))
    ones = make("broadcast_to", one, shape=(1, *geometry.size, 1))
    view = make("windows", ones, **_window_params(node, count))
    return make("reduce_sum", view, axis=_window_axes(count))


for _count in (1, 2, 3):
    _data_format = LAST[_count][0]
    composite(
        f"max_pool{_count}d",
        inputs=1,
        expand=_expand_max_pool(_count),
        doc="the largest element under each window, in the layout of x; NaN if there is one",
        params={**POOL_PARAMS, "data_format": _data_format},
        types=common_dtype("iuf"),
        aliases="max_pool" if _count == 2 else "",
        FGradient=_max_pool_gradient(_count),
    )
    composite(
        f"avg_pool{_count}d",
        inputs=1,
        expand=_expand_avg_pool(_count),
        doc="the mean under each window, in the layout of x; padding counts only with "
        "count_include_pad",
        params={**POOL_PARAMS, "count_include_pad": False, "data_format": _data_format},
        aliases="avg_pool" if _count == 2 else "",
    )


# Pools over the whole image.


def _expand_global_pool(reduction: str) -> Callable[..., Entry]:
    """Return the FExpand of a reduction over all spatial axes.

    ``reduction`` is the operator that reduces, such as "reduce_max".
    """

    def expand(node: Node, x: Entry) -> Entry:
        """Expand to a reduction over the spatial axes, which ``keepdims`` keeps with length 1.

        ``node`` has the parameters ``data_format`` and ``keepdims``.

        Raises: ShapeError for a rank below 3 or unknown, or a maximum of no elements; GraphError
        for an unknown ``data_format``.
        """
        shape = known_shape(x)
        if len(shape) < 3:
            raise ShapeError(
                f"{node.where} needs (batch, *size, channels), got {show_shape(shape)}"
            )
        first = channels_first(node, len(shape) - 2)
        axes = tuple(range(2, len(shape))) if first else tuple(range(1, len(shape) - 1))
        return make(reduction, x, axis=axes, keepdims=node.params["keepdims"])

    return expand


composite(
    "global_max_pool",
    inputs=1,
    expand=_expand_global_pool("reduce_max"),
    doc="the largest element of each channel over all spatial axes: (batch, …, channels) -> "
    "(batch, channels)",
    params={"data_format": "channels_last", "keepdims": False},
    types=common_dtype("iuf"),
)
composite(
    "global_avg_pool",
    inputs=1,
    expand=_expand_global_pool("reduce_mean"),
    doc="the mean of each channel over all spatial axes: (batch, …, channels) -> (batch, channels)",
    params={"data_format": "channels_last", "keepdims": False},
)


# Local response normalization.


def _local_response_normalization(node: Node, x: Entry) -> Entry:
    """Expand to windows over the channels, as in TensorFlow.

    ``node`` has the parameters ``alpha``, ``beta``, ``bias``, ``data_format`` and ``depth_radius``.

    Source: Krizhevsky et al. 2012, ImageNet Classification, section 3.3.

    Raises:
        ShapeError: If ``depth_radius`` is no int >= 0 (a bool is none), or the rank of ``x`` is
            below 2 or unknown.
        GraphError: If ``data_format`` is unknown.
    """
    radius = node.params["depth_radius"]
    if type(radius) is not int or radius < 0:
        raise ShapeError(f"{node.where} needs an int >= 0 as depth_radius, got {radius!r}")
    shape = known_shape(x)
    if len(shape) < 2:
        raise ShapeError(f"{node.where} needs (…, channels), got {show_shape(shape)}")
    first = channels_first(node, len(shape) - 2)
    image = to_last(x, first)
    rows = numel(known_shape(image)[:-1])
    channels = shape[1] if first else shape[-1]
    squares = make("reshape", image * image, shape=(rows, channels, 1))
    view = make("windows", squares, window=2 * radius + 1, padding=radius)
    total = make("reshape", make("reduce_sum", view, axis=2), shape=known_shape(image))
    base = total * node.params["alpha"] + node.params["bias"]
    return from_last(image / make("pow", base, node.params["beta"]), first)


composite(
    "local_response_normalization",
    inputs=1,
    expand=_local_response_normalization,
    doc="x / (bias + alpha * s) ** beta, where s is the sum of squares over channels up to "
    "depth_radius away",
    params={
        "depth_radius": 5,
        "bias": 1.0,
        "alpha": 1.0,
        "beta": 0.5,
        "data_format": "channels_last",
    },
    aliases="lrn",
)
