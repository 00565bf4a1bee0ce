"""Pools: folds over windows, so that what stands before and after them fuses.

Shapes are (batch, *size, channels); with a ``data_format`` of channels first the channels come
second. ``strides`` are the window's unless given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.errors import ShapeError
from passkit.graph.infer import show_shape
from passkit.graph.node import Entry, Node, constant, known_shape
from passkit.graph.op import REQUIRED
from passkit.ops.composites import composite
from passkit.ops.helpers import common_dtype, make
from passkit.ops.layouts import LAST, by_channel, channels_first, from_last, ranked, to_last
from passkit.ops.window_padding import each
from passkit.ops.windowed import Windows, scattered, windows_of
from passkit.values.size import numel

POOLED = {"window": REQUIRED, "strides": None, "padding": 0, "dilations": 1}


def _resolved(node: Node, count: int) -> dict[str, Any]:
    """The parameters of the windows, strides filled in."""
    found = {k: node.params[k] for k in POOLED}
    found["window"] = each(node, "window", count)
    if found["strides"] is None:
        found["strides"] = found["window"]
    return found


def _taps(count: int) -> tuple[int, ...]:
    return tuple(range(1 + count, 1 + 2 * count))


def _max(count: int) -> Any:
    def expand(node: Node, x: Entry) -> Entry:
        ranked(node, x, count)
        inner, back = by_channel(x, channels_first(node, count))
        view = make("windows", inner, **_resolved(node, count), fill="least")
        return back(make("reduce_max", view, axis=_taps(count)))

    return expand


def _places(node: Node, size: Any, count: int) -> Windows:
    params = _resolved(node, count)
    return windows_of(node, size, params["window"], params["strides"])


def _counts(node: Node, inner: Entry, count: int) -> Any:
    """What an average divides by: the elements of each window, or those of them that are inside."""
    found = _places(node, known_shape(inner)[1:-1], count)
    area = int(np.prod(found.window))
    if node.params["count_include_pad"] or found.inside:
        return float(area)
    assert inner.dtype is not None
    one = constant(inner.dtype.numpy.type(1))
    ones = make("broadcast_to", one, shape=(1, *found.size, 1))
    view = make("windows", ones, **_resolved(node, count))
    return make("reduce_sum", view, axis=_taps(count))


def _average(count: int) -> Any:
    def expand(node: Node, x: Entry) -> Entry:
        ranked(node, x, count)
        inner, back = by_channel(x, channels_first(node, count))
        view = make("windows", inner, **_resolved(node, count))
        total = make("reduce_sum", view, axis=_taps(count))
        return back(total / _counts(node, inner, count))

    return expand


def _max_gradient(count: int) -> Any:
    """Source: all of dy goes to the first maximum of each window; to none where that is NaN."""

    def gradient(node: Node, dy: Entry) -> list[Entry]:
        ranked(node, node.inputs[0], count)
        first = channels_first(node, count)
        inner = to_last(node.inputs[0], first)
        params = _resolved(node, count)
        view = make("windows", inner, **params, fill="least")
        top = make("reduce_max", view, axis=_taps(count), keepdims=True)
        window = params["window"]
        area = int(np.prod(window))
        number = np.arange(area, dtype=np.int32).reshape(*window, 1)
        place = make("where", make("equal", view, top), constant(number), np.int32(area))
        chosen = make("reduce_min", place, axis=_taps(count), keepdims=True)
        back = make("reshape", to_last(dy, first), shape=known_shape(top))
        spread = make("where", make("equal", chosen, constant(number)), back, 0.0)
        del params["window"]
        return [from_last(scattered(spread, known_shape(inner)[1:-1], **params), first)]

    return gradient


for _count in (1, 2, 3):
    _layout = {"data_format": LAST[_count][0]}
    composite(
        f"max_pool{_count}d",
        1,
        _max(_count),
        "the largest element under each window; NaN if there is one",
        {**POOLED, **_layout},
        types=common_dtype("iuf"),
        aliases="max_pool" * (_count == 2),
        FGradient=_max_gradient(_count),
    )
    composite(
        f"avg_pool{_count}d",
        1,
        _average(_count),
        "the mean of each window; padding counts only if count_include_pad says so",
        {**POOLED, "count_include_pad": False, **_layout},
        aliases="avg_pool" * (_count == 2),
    )


def _global(fold: str) -> Any:
    def expand(node: Node, x: Entry) -> Entry:
        shape = known_shape(x)
        if len(shape) < 3:
            raise ShapeError(
                f"{node.where} needs (batch, *size, channels), got {show_shape(shape)}"
            )
        given = node.params["data_format"]
        count = len(shape) - 2
        first = count <= 3 and channels_first(node, count) if given != "channels_last" else False
        axes = tuple(range(2, len(shape))) if first else tuple(range(1, len(shape) - 1))
        return make(fold, x, axis=axes, keepdims=node.params["keepdims"])

    return expand


GLOBAL = {"data_format": "channels_last", "keepdims": False}
composite(
    "global_max_pool", 1, _global("reduce_max"), "the largest element of each channel", GLOBAL,
    types=common_dtype("iuf"),
)  # fmt: skip
composite("global_avg_pool", 1, _global("reduce_mean"), "the mean of each channel", GLOBAL)


def _local_response(node: Node, x: Entry) -> Entry:
    """Source: Krizhevsky et al. 2012, section 3.3; a window over channels, as in TensorFlow."""
    radius = node.params["depth_radius"]
    if type(radius) is not int or radius < 0:
        raise ShapeError(f"{node.where} needs an int >= 0 as depth_radius, got {radius!r}")
    shape = known_shape(x)
    if len(shape) < 2:
        raise ShapeError(f"{node.where} needs (…, channels), got {show_shape(shape)}")
    first = len(shape) in (3, 4, 5) and channels_first(node, len(shape) - 2)
    inner = to_last(x, first)
    rows = numel(known_shape(inner)[:-1])
    square = make("reshape", inner * inner, shape=(rows, shape[1] if first else shape[-1], 1))
    view = make("windows", square, window=2 * radius + 1, padding=radius)
    total = make("reshape", make("reduce_sum", view, axis=2), shape=known_shape(inner))
    base = total * node.params["alpha"] + node.params["bias"]
    return from_last(inner / make("pow", base, node.params["beta"]), first)


composite(
    "local_response_normalization",
    1,
    _local_response,
    "x / (bias + alpha * sum of squares of the channels within depth_radius) ** beta",
    {"depth_radius": 5, "bias": 1.0, "alpha": 1.0, "beta": 0.5, "data_format": "channels_last"},
    aliases="lrn",
)
