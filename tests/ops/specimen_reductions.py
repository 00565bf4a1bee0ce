"""Specimens of reductions, statistics, norms and searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.ops.specimens import Array, call, calls, normal, positive, reduction


def same(function: Any) -> Any:
    """Return a reduction of NumPy that keeps the dtype."""
    return lambda x, **k: function(x, dtype=x.dtype, **k)


def near_one(rng: Any, shape: Any) -> Array:
    """Draw factors whose products stay in range."""
    return rng.uniform(0.9, 1.1, shape)


reduction("reduce_prod", same(np.prod), near_one, kinds="iuf", slack=60)
reduction("reduce_min", np.min, kinds="iuf", empty=False)
reduction("reduce_any", np.any, kinds="b")
reduction("reduce_all", np.all, kinds="b")
FEW = [call((5, 40, 33), axis=(0, 2), keepdims=True), call((37,)), call((3, 300, 2), axis=1)]
"""One call for each code path of the kernel; composites need no more."""
calls("sum", same(np.sum), FEW[:2], kinds="iuf", slack=8)
calls("prod", same(np.prod), FEW[:2], kinds="iuf", slack=60, draw=near_one)
calls(
    "sum",
    lambda x, dtype, **k: np.sum(x, dtype=dtype, **k),
    [call((5, 7), dtype="float64", axis=0), call((5, 7), dtype="int64")],
    kinds="i",
)
calls(
    "mean",
    lambda x, dtype=None, **k: np.mean(x, **k).astype(dtype or "float64"),
    [call((5, 7), axis=0), call((5, 7), dtype="float32")],
    kinds="iu",
    slack=2,
)

for _name, _ufunc in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
    calls(f"reduce_bitwise_{_name}", _ufunc.reduce, FEW, kinds="iu")


# Variances and norms.

FINITE = [*FEW, call((7, 1), axis=1)]
STRICT = [call((5, 40, 33), axis=(0, 2), correction=1), call((7, 30), axis=1, correction=1.5)]


def _variance(x: Array, correction: float = 0, **k: Any) -> Array:
    return np.var(x, ddof=correction, **k)


def _deviation(x: Array, correction: float = 0, **k: Any) -> Array:
    return np.std(x, ddof=correction, **k)


calls("reduce_mean", np.mean, [*FINITE, call((0, 3), axis=0), call(())], slack=8)
calls("mean", np.mean, FEW[:1], slack=40)
calls("var", _variance, [*FINITE, *STRICT], slack=16)
calls("std", _deviation, STRICT, slack=16)
calls("nanvar", lambda x, correction=0, **k: np.nanvar(x, ddof=correction, **k), STRICT, slack=16)
calls(
    "nanstd", lambda x, correction=0, **k: np.nanstd(x, ddof=correction, **k), STRICT[1:], slack=16
)
calls("reduce_variance", np.var, FEW, slack=16)
calls("moments", lambda x, **k: (np.mean(x, **k), np.var(x, **k)), FINITE, slack=16)
calls(
    "average",
    lambda x, w, **k: np.average(x, weights=np.broadcast_to(w, x.shape), **k),
    [
        call((4, 5), lambda rng, d: positive(rng, (5,)).astype(d.numpy), axis=1),
        call((6,), lambda rng, d: positive(rng, (6,)).astype(d.numpy)),
    ],
    slack=64,
)

NORMS = [{"ord": o} for o in (1, 3, 0.5, 0, np.inf, -np.inf)]
calls(
    "vector_norm",
    lambda x, **k: np.linalg.vector_norm(x, **k),
    [call((5, 7), axis=1, **p) for p in NORMS]
    + [call((5, 3, 7), axis=(0, 2), keepdims=True), call((33,)), call((0,))],
    slack=32,
)
calls("reduce_l1", lambda x, **k: np.linalg.vector_norm(x, ord=1, **k), FEW[:1], slack=40)
calls("reduce_l2", lambda x, **k: np.linalg.vector_norm(x, **k), FEW[:1], slack=8)
calls("reduce_linf", lambda x, **k: np.linalg.vector_norm(x, ord=np.inf, **k), FEW[:1])
calls("ptp", np.ptp, FEW[:2], kinds="iuf")


def logsumexp(x: Array, **k: Any) -> Array:
    """Return log(sum(exp(x)))."""
    from scipy import special

    return special.logsumexp(x, **k)


calls("logsumexp", logsumexp, FEW, slack=16)


# Statistics without NaN.


def spotted(rng: Any, shape: Any) -> Array:
    """Draw numbers of which a third are NaN."""
    return np.where(rng.uniform(size=shape) < 0.3, np.nan, normal(rng, shape))


def all_nan(rng: Any, dtype: Any) -> Array:
    """Return a row of NaN, and one with some."""
    return np.array([[np.nan, np.nan], [np.nan, 2]]).astype(dtype.numpy)


SPOTTED = [FEW[0], call(all_nan, axis=1)]
calls("nansum", np.nansum, SPOTTED, slack=40, draw=spotted)
calls("nanprod", np.nanprod, SPOTTED, slack=60, draw=lambda rng, s: spotted(rng, s) * 0.02 + 1)
calls("nanmean", np.nanmean, SPOTTED, slack=40, draw=spotted)
calls("nanmax", np.nanmax, SPOTTED, draw=spotted)
calls("nanmin", np.nanmin, SPOTTED, draw=spotted)


# Searches.


def arg(function: Any) -> Any:
    """Return a search of NumPy over one axis or all, or over several as one."""

    def reference(x: Array, axis: Any = None, keepdims: bool = False) -> Array:
        if not isinstance(axis, tuple):
            return np.asarray(function(x, axis=axis, keepdims=keepdims))
        others = [k for k in range(x.ndim) if k not in axis]
        flat = np.transpose(x, (*others, *axis)).reshape(*[x.shape[k] for k in others], -1)
        positions = function(flat, axis=-1)
        return np.expand_dims(positions, axis) if keepdims else np.asarray(positions)

    return reference


def coarse(rng: Any, shape: Any) -> Array:
    """Draw few values, so that many are equal."""
    return np.rint(normal(rng, shape))


reduction("argmax", arg(np.argmax), coarse, kinds="f", empty=False)
calls("argmax", arg(np.argmax), FEW, kinds="iub", draw=coarse)
calls("argmin", arg(np.argmin), [*FEW, call(all_nan, axis=1)], kinds="f", draw=coarse)
calls("argmin", arg(np.argmin), FEW[:1], kinds="iub", draw=coarse)
calls(
    "count_nonzero",
    lambda x, **k: np.asarray(np.count_nonzero(x, **k)),
    FEW,
    kinds="iufb",
    draw=coarse,
)


def _bins(x: Array, length: int) -> Array:
    return np.bincount(x[(x >= 0) & (x < length)].astype(np.int64), minlength=length)


calls("bincount", _bins, [call((50,), length=7), call((0,), length=3)], kinds="iu")
calls(
    "histogram",
    lambda x, bins=10, range=(0.0, 1.0): np.histogram(x, bins, range)[0],
    [call((50,), bins=7, range=(-2.0, 2.5)), call((0,)), call((5, 40))],
)


# Order statistics and differences.


def with_nan(rng: Any, dtype: Any) -> Array:
    """Return two rows, one of which has a NaN."""
    return np.array([[1, np.nan, 3], [3, 1, 2]]).astype(dtype.numpy)


RANKED = [call((4, 6), axis=1, keepdims=True), call((2, 3, 5), axis=(0, 2)), call(with_nan, axis=1)]
calls("median", np.median, RANKED, slack=2)
calls(
    "quantile",
    lambda x, q=0.5, **k: np.quantile(x, q, **k),
    [call((7, 5), q=q, axis=0) for q in (0.3, 1.0)] + RANKED[2:],
    slack=4,
)
calls(
    "diff",
    lambda x, n=1, axis=-1: np.diff(x, n, axis),
    [call((4, 6), axis=0), call((4, 6), n=2), call((3,), n=4), call((5,), n=0)],
    kinds="iuf",
    slack=4,
)
