"""Specimens of scans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.ops.specimens import Array, call, calls


def running(accumulate: Callable[..., Array], start: Any) -> Callable[..., Array]:
    """Return a scan by NumPy's ``accumulate``, also exclusive and reversed."""

    def reference(
        x: Array, axis: int | None = None, exclusive: bool = False, reverse: bool = False
    ) -> Array:
        x = np.moveaxis(x, 0 if axis is None else axis, 0)
        x = x[::-1] if reverse else x
        y = accumulate(x, axis=0, dtype=x.dtype)
        if exclusive and len(y):
            bound = start(x.dtype) if callable(start) else start
            y = np.concatenate([np.full_like(y[:1], bound), y[:-1]])
        return np.moveaxis(y[::-1] if reverse else y, 0, 0 if axis is None else axis)

    return reference


def lowest(dtype: Any) -> Any:
    """Return the lowest number of a dtype."""
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def highest(dtype: Any) -> Any:
    """Return the highest number of a dtype."""
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def special(rng: Any, dtype: Any) -> Array:
    """Return rows with NaN, infinities and zeros, or the limits of an integer dtype."""
    if dtype.is_integer:
        limits = np.iinfo(dtype.numpy)
        return np.array([[3, limits.max, 1, limits.min, 0, 2]], dtype.numpy)
    rows = [[1, -0.0, np.inf, 2, -np.inf, 1], [-np.inf, -np.inf, 1, 2, np.nan, 3]]
    return np.array(rows).astype(dtype.numpy)


LISTED = [
    call((37,)),
    call((0, 3), axis=0),
    call((3, 1), axis=1, exclusive=True),
    call((4, 300), axis=1),
    call((40, 33), axis=-1, reverse=True),
    call((5, 90), axis=1, exclusive=True, reverse=True),
    call((70, 80), axis=0, exclusive=True),
    call((3, 50, 40), axis=1, reverse=True),
    call(special, axis=1),
    call(special, axis=1, reverse=True),
]
FEW = [LISTED[0], LISTED[4], LISTED[6], LISTED[8]]
"""One call for each code path of the kernel."""
SCANS = {
    "cumsum": (np.add, 0, "iuf", 40),
    "cumprod": (np.multiply, 1, "iuf", 40),
    "cummax": (np.maximum, lowest, "iuf", 0),
    "cummin": (np.minimum, highest, "iuf", 0),
    "logcumsumexp": (np.logaddexp, -np.inf, "f", 8),
}
for _name, (_ufunc, _start, _kinds, _slack) in SCANS.items():
    listed = LISTED if _name == "cumsum" else FEW
    calls(_name, running(_ufunc.accumulate, _start), listed, kinds=_kinds, slack=_slack)


def cumulative(ufunc: Any, start: int) -> Callable[..., Array]:
    """Return a scan of the array API standard."""

    def reference(
        x: Array, axis: Any = None, dtype: Any = None, include_initial: bool = False
    ) -> Array:
        axis = 0 if axis is None else axis
        y = ufunc.accumulate(x, axis=axis, dtype=dtype or x.dtype)
        if not include_initial:
            return y
        return np.concatenate([np.full_like(np.take(y, [0], axis), start), y], axis)

    return reference


for _name, _ufunc, _start in (("cumulative_sum", np.add, 0), ("cumulative_prod", np.multiply, 1)):
    calls(
        _name,
        cumulative(_ufunc, _start),
        [call((7,)), call((4, 30), axis=1, include_initial=True)],
        kinds="if",
        slack=40,
    )
