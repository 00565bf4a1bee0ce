"""Inputs of cases, for the dtypes that TensorFlow accepts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from tests.frontends.tf_graphdef.reference.case import Array, Case

FLOATS = ("float32", "float64", "float16", "bfloat16")
SIGNED = ("int32", "int64", "int8", "int16")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
EVERY = (*FLOATS, *SIGNED, *UNSIGNED, "bool", "complex64")
DELICATE = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 6, 100)
"""Numbers that are often special."""


def numpy_type(name: str) -> np.dtype[Any]:
    """Return NumPy's dtype of a name, bfloat16 included."""
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def draw(seed: int, shape: Sequence[int], dtype: str = "float32", low: int = -9) -> Array:
    """Return normal floats or complex numbers, integers from ``low`` to 9, or booleans."""
    rng = np.random.default_rng(seed)
    kind = numpy_type(dtype)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if kind.kind in "iu":
        return rng.integers(0 if kind.kind == "u" else low, 10, shape).astype(kind)
    if kind.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(kind)
    return rng.normal(size=shape).astype(kind)


def delicate(seed: int, dtype: str, scale: float = 3.0) -> Array:
    """Return a matrix that includes special numbers, or the limits of an integer dtype."""
    kind = numpy_type(dtype)
    out = draw(seed, (3, 9), dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        out[0, :4] = (limits.max, limits.min, 0, 1)
    elif dtype != "bool" and kind.kind != "c":
        out = (out.astype(np.float64) * scale).astype(kind)
        out.reshape(-1)[: len(DELICATE)] = np.array(DELICATE).astype(kind)
    return out


def takes(tf: Any, function: Callable[..., Any], inputs: Mapping[str, Array]) -> bool:
    """Return whether TensorFlow runs a function on the inputs."""
    try:
        function(*(tf.constant(v) for v in inputs.values()))
    except (tf.errors.OpError, TypeError, ValueError):
        return False
    return True


def sweep(
    tf: Any,
    op: str,
    variant: str,
    function: Callable[..., Any],
    inputs: Callable[[str], Mapping[str, Array]],
    dtypes: Sequence[str] = FLOATS,
    free: bool = True,
) -> Iterator[Case]:
    """Yield a case for each dtype that TensorFlow accepts; ``inputs`` creates them for a dtype."""
    for dtype in dtypes:
        result = inputs(dtype)
        if takes(tf, function, result):
            yield Case(op, variant, function, result, free)
