"""Reference implementations of convolutions and windows: a loop over positions in the window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

Array = Any


def per_axis(value: Any, count: int) -> tuple[Any, ...]:
    """Return a parameter as a tuple with a number for each axis."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * count


def pads(padding: Any, size: Any, window: Any, strides: Any, dilations: Any) -> list[Any]:
    """Return the padding before and after each axis; "SAME" is TensorFlow's."""
    pairs = []
    for k, n in enumerate(size):
        reach = (window[k] - 1) * dilations[k] + 1
        if padding == "SAME":
            total = max((-(-n // strides[k]) - 1) * strides[k] + reach - n, 0)
            pairs.append((total // 2, total - total // 2))
        elif padding == "VALID":
            pairs.append((0, 0))
        else:
            pair = per_axis(padding, len(size))[k]
            pairs.append(pair if isinstance(pair, tuple) else (pair, pair))
    return pairs


def covered_elements(
    size: Any, window: Any, strides: Any = 1, padding: Any = 0, dilations: Any = 1
) -> tuple[tuple[int, ...], Iterator[tuple[Any, Any, Any]]]:
    """Return the number of windows along each axis, and what each position in them covers.

    The second result yields (windows, position in the window, elements): the windows that cover an
    element of the array there, not padding, and those elements, as slices of all axes.
    """
    count = len(size)
    window, strides, dilations = (per_axis(v, count) for v in (window, strides, dilations))
    around = pads(padding, size, window, strides, dilations)
    result = tuple(
        (n + low + high - (w - 1) * d - 1) // s + 1
        for n, (low, high), w, d, s in zip(size, around, window, dilations, strides, strict=True)
    )

    def walk() -> Iterator[tuple[Any, Any, Any]]:
        for tap in np.ndindex(*window):
            windows, elements = list[slice](), list[slice]()
            for n, o, s, k, d, (low, _) in zip(
                size, result, strides, tap, dilations, around, strict=True
            ):
                inside = [i for i in range(o) if 0 <= i * s + k * d - low < n]
                first, last = (inside[0], inside[-1]) if inside else (0, -1)
                start = max(first * s + k * d - low, 0)
                windows.append(slice(first, last + 1))
                elements.append(
                    slice(start, start + (last - first) * s + 1 if inside else start, s)
                )
            yield tuple(windows), tap, tuple(elements)

    return result, walk()


def convolution(x: Array, f: Array, groups: int = 1, **where: Any) -> Array:
    """Return a convolution, one position of the filter at a time, summed in float64."""
    result, walk = covered_elements(x.shape[1:-1], f.shape[:-2], **where)
    out = np.zeros((x.shape[0], *result, f.shape[-1]))
    own, each = f.shape[-2], f.shape[-1] // groups
    for at, tap, place in walk:
        for g in range(groups):
            covered = x[(slice(None), *place, slice(g * own, (g + 1) * own))]
            out[(slice(None), *at, slice(g * each, (g + 1) * each))] += (
                covered @ f[tap][:, g * each : (g + 1) * each]
            )
    return out


def input_gradient(f: Array, dy: Array, size: Any, groups: int = 1, **where: Any) -> Array:
    """Return the gradient by the image: each product goes back to the element of its image."""
    _, walk = covered_elements(size, f.shape[:-2], **where)
    own, each = f.shape[-2], f.shape[-1] // groups
    out = np.zeros((dy.shape[0], *size, own * groups))
    for at, tap, place in walk:
        for g in range(groups):
            part = dy[(slice(None), *at, slice(g * each, (g + 1) * each))]
            out[(slice(None), *place, slice(g * own, (g + 1) * own))] += (
                part @ f[tap][:, g * each : (g + 1) * each].T
            )
    return out


def filter_gradient(x: Array, dy: Array, window: Any, groups: int = 1, **where: Any) -> Array:
    """Return the gradient by the filter: each product goes back to the element of its filter."""
    _, walk = covered_elements(x.shape[1:-1], window, **where)
    own, each = x.shape[-1] // groups, dy.shape[-1] // groups
    out = np.zeros((*per_axis(window, x.ndim - 2), own, each * groups))
    for at, tap, place in walk:
        for g in range(groups):
            covered = x[(slice(None), *place, slice(g * own, (g + 1) * own))].astype(np.float64)
            part = dy[(slice(None), *at, slice(g * each, (g + 1) * each))].astype(np.float64)
            out[tap][:, g * each : (g + 1) * each] += covered.reshape(-1, own).T @ part.reshape(
                -1, each
            )
    return out


def windows(x: Array, window: Any, fill: Any = 0, **where: Any) -> Array:
    """Return the elements that windows cover, (batch, *result, *window, channels)."""
    window = per_axis(window, x.ndim - 2)
    result, walk = covered_elements(x.shape[1:-1], window, **where)
    least = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min if x.dtype.kind != "b" else 0
    empty = least if fill == "least" else fill
    out = np.full((x.shape[0], *result, *window, x.shape[-1]), empty, x.dtype)
    for at, tap, place in walk:
        out[(slice(None), *at, *tap)] = x[(slice(None), *place)]
    return out


def windows_back(w: Array, size: Any, **where: Any) -> Array:
    """Return windows at the elements they cover, (batch, *size, *window, channels)."""
    count = len(size)
    window = w.shape[1 + count : -1]
    _, walk = covered_elements(size, window, **where)
    out = np.zeros((w.shape[0], *size, *window, w.shape[-1]), w.dtype)
    for at, tap, place in walk:
        out[(slice(None), *place, *tap)] = w[(slice(None), *at, *tap)]
    return out


def windows_taken(v: Array, **where: Any) -> Array:
    """Return the elements of (batch, *size, *window, channels) that windows cover."""
    count = (v.ndim - 2) // 2
    window = v.shape[1 + count : -1]
    result, walk = covered_elements(v.shape[1 : 1 + count], window, **where)
    out = np.zeros((v.shape[0], *result, *window, v.shape[-1]), v.dtype)
    for at, tap, place in walk:
        out[(slice(None), *at, *tap)] = v[(slice(None), *place, *tap)]
    return out


def channels_last(run: Any) -> Any:
    """Return a reference with a parameter ``data_format`` from one with channels last."""

    def outer(x: Array, *rest: Array, data_format: str = "", **params: Any) -> Array:
        first = data_format in ("NCHW", "NCW", "NCDHW", "channels_first")
        out = run(np.moveaxis(x, 1, -1) if first else x, *rest, **params)
        return np.moveaxis(out, -1, 1) if first else out

    return outer
