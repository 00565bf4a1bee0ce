"""Specimens of operators without inputs, such as ranges, and of one_hot."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit.values.dtype import dtype_of
from tests.ops.specimen_movement import moves
from tests.ops.specimens import Call, call, calls

Array = Any


def _with_dtype(make: Any) -> Any:
    """Return a reference that casts the result to the dtype that a parameter names."""
    return lambda *a, dtype="float32", **k: make(*a, **k).astype(dtype_of(dtype).numpy)


def _dtypes(**params: Any) -> list[Call]:
    return [call(**params, dtype=d) for d in ("float32", "int32", "bool", "float64")]


moves("full", _with_dtype(np.full), _dtypes(shape=(2, 30), fill_value=1), kinds="f")
moves("zeros", _with_dtype(np.zeros), _dtypes(shape=(2, 3)), kinds="f")
moves("ones", _with_dtype(np.ones), _dtypes(shape=()), kinds="f")
moves(
    "full_like",
    lambda x, fill_value: np.full_like(x, fill_value),
    [call((2, 30), fill_value=1), call((), fill_value=0)],
)


def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    first, last = (0, start) if stop is None else (start, stop)
    whole = not any(isinstance(v, float) for v in (first, last, step))
    n = max(0, int(np.ceil((last - first) / step)))
    out = first + np.arange(n) * step
    return out.astype(dtype or ("int64" if whole else "float64"))


moves(
    "arange",
    _arange,
    [
        call(start=40),
        call(start=3, stop=30, step=2),
        call(start=5, stop=-3, step=-2, dtype="int32"),
        call(start=0.5, stop=3, step=0.25),
        call(start=7, dtype="float32"),
        call(start=5, stop=2),
    ],
    kinds="f",
)


def _linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: str = "float32"
) -> Array:
    return np.linspace(start, stop, num, endpoint).astype(dtype)


calls(
    "linspace",
    _linspace,
    [
        call(start=0.0, stop=1.0),
        call(start=-2, stop=5, num=7, endpoint=False),
        call(start=1.0, stop=2.0, num=1, dtype="float64"),
        call(start=0.0, stop=1.0, num=0),
    ],
    kinds="f",
    ulps=4,
)


def _eye(n_rows: int, n_cols: int | None = None, k: int = 0, dtype: str = "float32") -> Array:
    return np.eye(n_rows, n_cols, k, dtype)


moves("eye", _eye, [call(n_rows=20), call(n_rows=3, n_cols=5, k=1, dtype="int32")], kinds="f")


def _hot(
    i: Array,
    depth: int,
    on_value: Any = 1,
    off_value: Any = 0,
    axis: int = -1,
    dtype: str = "float32",
) -> Array:
    hot = np.expand_dims(i.astype(np.int64), axis) == np.arange(depth).reshape(
        [-1 if k == (axis % (i.ndim + 1)) else 1 for k in range(i.ndim + 1)]
    )
    return np.where(hot, on_value, off_value).astype(dtype)


moves(
    "one_hot",
    _hot,
    [
        call((4, 3), depth=20),
        call((5,), depth=3, axis=0, dtype="int32"),
        call((2, 3), depth=4, axis=1, on_value=2.5, off_value=-1),
    ],
    kinds="iu",
)
