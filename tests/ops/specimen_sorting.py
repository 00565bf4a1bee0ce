"""Specimens of sorting and searching."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.specimens import call, calls

Array = Any


def _order(x: Array, axis: int = -1, descending: bool = False) -> Array:
    """Return the stable order, ascending or descending; NaN is the largest."""
    x = np.moveaxis(x, axis, -1)
    out = np.zeros(x.shape, np.int64)
    for at in np.ndindex(x.shape[:-1]):
        row = x[at].tolist()
        keys = [(v != v, 0 if v != v else v) for v in row]
        out[at] = sorted(range(len(row)), key=lambda k: keys[k], reverse=False)
        if descending:
            ranks = {key: r for r, key in enumerate(sorted(set(keys)))}
            out[at] = sorted(range(len(row)), key=lambda k: -ranks[keys[k]])
    return np.moveaxis(out, -1, axis)


def _sort(x: Array, axis: int = -1, descending: bool = False) -> Array:
    return np.take_along_axis(x, _order(x, axis, descending), axis)


def _top(x: Array, k: int = 1, axis: int = -1) -> tuple[Array, Array]:
    order = np.take(_order(x, axis, True), np.arange(k), axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int32)


def ties(rng: Any, dtype: Any) -> Array:
    """Return rows with equal elements, and with NaN for floats."""
    out = rng.integers(0, 4, (3, 9)).astype(dtype.numpy)
    if dtype.is_float:
        out[1, 4] = np.nan
    return out


_LISTED = [call((5, 7)), call((4, 3), axis=0, descending=True), call((0, 3)), call((6,), axis=0)]
_TIED = [call(ties), call(ties, descending=True)]
calls("sort", _sort, _LISTED, kinds="iuf")
calls("sort", _sort, _TIED, kinds="iu")
calls("argsort", _order, [*_LISTED, *_TIED], kinds="iuf")
calls("top_k", _top, [call((5, 7), k=3), call((6, 2), k=6, axis=0), call((4,), k=0)], kinds="iuf")
calls("top_k", _top, [call(ties, k=4)], kinds="iu")


def rising(*shape: int) -> Any:
    """Return a function that draws numbers sorted along the last axis."""

    def make(rng: Any, dtype: Any) -> Array:
        return np.sort(rng.integers(0, 20, shape), -1).astype(dtype.numpy)

    return make


def with_infinities(rng: Any, dtype: Any) -> Array:
    """Return sorted numbers with infinities, zeros of both signs, and NaN at the end."""
    return np.array([-np.inf, -1, -0.0, 0.0, 0.0, 2, np.inf, np.nan, np.nan]).astype(dtype.numpy)


def _search(a: Array, v: Array, side: str = "left") -> Array:
    if a.ndim == 1:
        return np.asarray(np.searchsorted(a, v, side), np.int64)
    return np.stack([_search(x, y, side) for x, y in zip(a, v, strict=True)])


calls(
    "searchsorted",
    _search,
    [
        call(rising(9), (4, 3)),
        call(rising(3, 5), (3, 4), side="right"),
        call(rising(4), ()),
        call(rising(300), (70,)),
        call(rising(0), (3,)),
    ],
    kinds="iuf",
)
calls(
    "searchsorted",
    _search,
    [call(with_infinities, with_infinities), call(with_infinities, with_infinities, side="right")],
    kinds="f",
)
calls(
    "digitize",
    lambda x, b, right=False: np.asarray(np.digitize(x, b, right), np.int64),
    [call((4, 3), rising(5)), call(rising(6), rising(6), right=True)],
    kinds="iuf",
)
calls(
    "isin",
    np.isin,
    [
        call((4, 3), (5,)),
        call(rising(7), rising(2, 3), invert=True),
        call(rising(30), rising(70)),
        call(rising(5), rising(0)),
    ],
    kinds="iuf",
)
calls("isin", np.isin, [call(with_infinities, with_infinities)], kinds="f")


def _argwhere(x: Array, size: int, fill_value: int = -1) -> Array:
    coordinates = np.argwhere(x)
    out = np.full((size, x.ndim), fill_value, np.int64)
    out[: min(size, len(coordinates))] = coordinates[:size]
    return out


calls("argwhere", _argwhere, [call((3, 4), size=9), call((5,), size=2, fill_value=7)], kinds="biuf")
calls(
    "flatnonzero",
    lambda x, size, fill_value=-1: _argwhere(x.reshape(-1), size, fill_value)[:, 0],
    [call((3, 4), size=9), call((5,), size=2, fill_value=7)],
    kinds="biuf",
)


def _unique(x: Array, size: int) -> tuple[Array, Array]:
    values, counts = np.unique(x, return_counts=True)
    many = min(size, len(values))
    out, times = np.zeros(size, x.dtype), np.zeros(size, np.int64)
    out[:many], times[:many] = values[:many], counts[:many]
    return out, times


calls("unique", _unique, [call((3, 4), size=12), call(rising(9), size=4)], kinds="iuf")
calls(
    "first_positions",
    lambda x: np.array([list(x).index(e) for e in x], np.int64),
    [call(np.array([3, 1, 3, 0, 1, 3])), call(np.array([7]))],
    kinds="i",
)
