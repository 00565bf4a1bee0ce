"""Specimens of the operators that gradients consist of."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.specimens import call, calls


def _sum_like(x: Any, like: Any) -> Any:
    lead = x.ndim - like.ndim
    axes = (*range(lead), *(lead + k for k, n in enumerate(like.shape) if n == 1))
    return x.sum(axes, dtype=x.dtype).reshape(like.shape)


def _unslice(x: Any, shape: Any, begin: Any, step: Any = None) -> Any:
    out = np.zeros(shape, x.dtype)
    steps = step or (1,) * x.ndim
    at = [b + s * np.arange(n) for b, s, n in zip(begin, steps, x.shape, strict=True)]
    out[np.ix_(*at)] = x
    return out


def _others(x: Any, axis: Any) -> Any:
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    flat = np.moveaxis(x, axes, range(-len(axes), 0))
    rows = flat.reshape(-1, int(np.prod(flat.shape[flat.ndim - len(axes) :])))
    out = [[np.prod(np.delete(r, k)) for k in range(r.size)] for r in rows]
    whole = np.array(out, x.dtype).reshape(flat.shape)
    return np.moveaxis(whole, range(-len(axes), 0), axes)


def _zeros(rng: np.random.Generator, dtype: Any) -> Any:
    """Return rows with no, one, two and only zeros."""
    drawn = rng.normal(size=(4, 5)) + 2.0
    drawn[1, 2] = drawn[2, 0] = drawn[2, 3] = 0.0
    drawn[3] = 0.0
    return drawn.astype(dtype.numpy)


calls(
    "sum_like",
    _sum_like,
    [
        call((3, 5, 7), (5, 1)),
        call((4, 6), (4, 6)),
        call((4, 6), ()),
        call((0, 3), (1, 3)),
        call((1, 6), (1, 1)),
    ],
    kinds="if",
    slack=4,
)
calls(
    "unslice",
    _unslice,
    [
        call((3, 4), shape=(5, 9), begin=(1, 8), step=(1, -2)),
        call((4, 3), shape=(4, 3), begin=(0, 0)),
        call((4, 3), shape=(4, 3), begin=(3, 0), step=(-1, 1)),
        call((0, 3), shape=(2, 8), begin=(0, 1), step=(1, 3)),
        call((33, 50), shape=(40, 200), begin=(5, 2), step=(1, 3)),
    ],
    kinds="biuf",
)
calls(
    "div_by_size",
    lambda x, size: x / size,
    [call((5, 7), size=7), call((), size=3), call((0, 2), size=5)],
)
calls("sized_by", lambda x, *rest: x, [call((3, 4), (5,), (2, 2)), call(())], kinds="bif")
calls(
    "prod_others",
    _others,
    [
        call(_zeros, axis=1),
        call(_zeros, axis=None),
        call((3, 4, 2), axis=(0, 2)),
        call((), axis=()),
    ],
    slack=64,
)
