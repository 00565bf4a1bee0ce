"""Values with bounds of their error, and how arrays keep them."""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import frozen
from ml_dtypes import finfo

from passkit.values.dtype import DType, dtype_of

SIGN = 5e-324
"""The bound of a zero whose sign is open."""


@frozen(eq=False)
class Value:
    """An array, and the largest error of each element; None is 0 everywhere."""

    array: Any
    error: Any = None

    @property
    def bound(self) -> Any:
        """The error as an array of float64."""
        if self.error is None:
            return np.zeros(np.shape(self.array))
        return self.error


def is_float(array: Any) -> bool:
    """Whether an array is of real floats, of 16 bits too."""
    return dtype_of(np.asarray(array).dtype).is_float


def unit_of(dtype: DType) -> float:
    """Half the distance of 1 and the next float."""
    return float(finfo(dtype.numpy).eps) / 2


def largest(dtype: DType) -> float:
    """The largest finite number of a float dtype."""
    return float(finfo(dtype.numpy).max)


def least(dtype: DType) -> float:
    """The smallest normal number of a float dtype."""
    return float(finfo(dtype.numpy).tiny)


def difference(a: Any, b: Any) -> Any:
    """How far ``a`` is from ``b``; infinite where only one is finite or a number."""
    a, b = np.asarray(a), np.asarray(b)
    if b.dtype.kind == "c":
        return difference(np.real(a), np.real(b)) + difference(np.imag(a), np.imag(b))
    if not is_float(b):
        return np.where(a != b, np.inf, 0.0)
    a, b = a.astype(np.float64), b.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        off = np.abs(a - b)
    return np.where(same, 0.0, np.where(np.isfinite(off), off, np.inf))


def spacing(x: Any, dtype: DType | None = None) -> Any:
    """The distance of neighbouring floats of ``dtype`` at ``x``, as float64."""
    dtype = dtype or dtype_of(np.asarray(x).dtype)
    wide = np.abs(np.asarray(x).astype(np.float64))
    size = np.where(np.isfinite(wide), np.maximum(wide, least(dtype)), least(dtype))
    _, exponent = np.frexp(size)
    return np.ldexp(float(finfo(dtype.numpy).eps), exponent - 1)


def mismatch(result: Any, expected: Value) -> str | None:
    """How an array breaks the bounds of a value; None when it keeps them."""
    a, b = np.asarray(result), np.asarray(expected.array)
    if a.dtype != b.dtype or a.shape != b.shape:
        return f"is {a.dtype}{list(a.shape)}, not {b.dtype}{list(b.shape)}"
    if b.dtype.kind == "c":
        bad = ~((a == b) | (np.isnan(a) & np.isnan(b)))
    elif is_float(b):
        bad = ~(((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b)))
    else:
        bad = a != b
    if expected.error is not None and bad.any():
        with np.errstate(all="ignore"):
            off = (
                difference(a, b)
                if b.dtype.kind == "c" or is_float(b)
                else np.where(bad, np.inf, 0.0)
            )
            near = (off <= expected.error * 1.0001) & (expected.error > 0)
        bad = bad & ~near
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    error = float(np.broadcast_to(expected.bound, b.shape)[at])
    return (
        f"differs in {int(bad.sum())} of {bad.size} elements, first at {at}: {a[at]!r}, "
        f"not {b[at]!r} (± {error:.3g})"
    )


def openness(value: Value) -> tuple[int, int, int]:
    """How many elements must agree in every bit, up to a bound, and not at all."""
    bound = np.broadcast_to(value.bound, np.shape(value.array))
    return (
        int(np.sum(bound == 0)),
        int(np.sum((bound > 0) & (bound < np.inf))),
        int(np.sum(bound == np.inf)),
    )
