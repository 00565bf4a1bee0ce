"""Arrays to feed: values of several styles in every dtype."""

from __future__ import annotations

from typing import Any

import numpy as np
from ml_dtypes import finfo

from passkit.values.dtype import DType

DTYPES = {
    "float32": 48,
    "float64": 14,
    "float16": 6,
    "bfloat16": 6,
    "int32": 10,
    "int64": 5,
    "int8": 2,
    "int16": 2,
    "uint8": 3,
    "uint16": 2,
    "uint32": 2,
    "uint64": 2,
    "bool": 8,
}
"""The dtypes of inputs, and how often each is drawn."""

EXTENTS = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 20, 31, 33, 64, 65, 70, 100, 130, 300, 515, 1030)
SYMBOLS = (1, 2, 3, 5, 8, 16, 17, 33, 40, 65, 100, 257)
"""Extents that are known, and those of unknown ones in later runs."""


def draw(rng: np.random.Generator, style: str, shape: tuple[int, ...], dtype: DType) -> Any:
    """An array of a style: small whole numbers sum exactly, special ones have NaN and inf."""
    kind = dtype.numpy
    match style:
        case "coin":
            return rng.random(shape) < 0.5
        case "whole":
            low = 0 if dtype.kind == "u" else -4
            return rng.integers(low, 5, shape).astype(kind)
        case "bits":
            info = np.iinfo(kind)
            return rng.integers(info.min, info.max, shape, kind, endpoint=True)
        case "limits":
            info = np.iinfo(kind)
            return rng.choice(np.array([info.min, info.max, 0, 1, 2, info.max - 1], kind), shape)
        case "quarters":
            return (rng.integers(-32, 33, shape) / 4).astype(kind)
        case "wide":
            powers = np.exp2(rng.integers(-12, 13, shape))
            return (rng.standard_normal(shape) * powers).astype(kind)
        case "special":
            tiny = float(finfo(kind).tiny)
            odd = [0.0, -0.0, np.inf, -np.inf, np.nan, tiny / 8, 1.0, -1.0, 100.0, -100.0]
            plain = rng.standard_normal(shape)
            return np.where(rng.random(shape) < 0.2, rng.choice(odd, shape), plain).astype(kind)
    return rng.standard_normal(shape).astype(kind)
