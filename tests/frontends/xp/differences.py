"""Random arrays of each dtype, and comparisons with NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit import xp

BOUNDS = {
    "float16": 4e-3,
    "float32": 4e-6,
    "float64": 4e-14,
    "complex64": 4e-6,
    "complex128": 4e-14,
}
"""The relative error that a result may have."""

SPECIAL = (float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 2.5)


def numbers(seed: int, dtype: str, *shape: int) -> Any:
    """Return random numbers, among them the extreme and special ones of the dtype."""
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    count = int(np.prod(shape))
    if kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        limits = np.iinfo(dtype)
        values = rng.integers(max(limits.min, -9), 9, count).astype(dtype)
        values[:3] = (limits.min, limits.max, 0)[:count]
        return values.reshape(shape)
    if kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    values = (rng.normal(size=count) * 3).astype(dtype)
    values[: len(SPECIAL)] = SPECIAL[:count]
    return values.reshape(shape)


def assert_same(result: Any, reference: Any, where: str) -> None:
    """Assert that an array has the dtype, the shape and nearly the values of a NumPy array."""
    reference = np.asarray(reference)
    assert result.dtype == reference.dtype, f"{where}: {result.dtype}, NumPy {reference.dtype}"
    assert result.shape == reference.shape, f"{where}: {result.shape}, NumPy {reference.shape}"
    bound = BOUNDS.get(reference.dtype.name, 0.0)
    array = np.asarray(result)
    with np.errstate(all="ignore"):
        close = np.isclose(array, reference, rtol=bound, atol=bound / 100, equal_nan=True)
    if not close.all():
        first = np.unravel_index(np.argmin(close), close.shape)
        raise AssertionError(f"{where} at {first}: {array[first]!r}, NumPy {reference[first]!r}")


def assert_all_same(pairs: list[tuple[str, Any, Any]]) -> None:
    """Compute arrays in one run, and compare each with its reference: (where, array, reference)."""
    xp.eval(*[array for _, array, _ in pairs])
    for where, array, reference in pairs:
        assert_same(array, reference, where)
