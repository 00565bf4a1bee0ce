"""The operations that create arrays: constants and ranges, computed where they are read.

Their last operand is the input of `extents.extents_input`: the extents of the result are taken at
run time. Numbers such as the start of a range are operands too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import passkit.ops as ops
from passkit.frontends.xp.extents import with_inputs
from passkit.frontends.xp.runtime import OPERATIONS
from passkit.graph.node import Entry
from passkit.values.dtype import dtype_of
from passkit.values.size import Shape


def _build_constant(extents: Entry, shape: Shape, number: int, dtype: str) -> Entry:
    """Build an array of zeros or ones."""
    return with_inputs(ops.full(shape, number, dtype=dtype), [extents])


def _constant(extents: Any, shape: tuple[int, ...], number: int, dtype: str) -> Any:
    """Return an array of zeros or ones."""
    return np.full(shape, number, dtype_of(dtype).numpy)


def _build_range(start: Entry, step: Entry, extents: Entry, shape: Shape, dtype: str) -> Entry:
    """Build start, start + step, …, computed in the dtype of ``start`` and ``step``."""
    assert start.dtype is not None
    index = ops.cast(ops.arange(0, shape[0], 1, dtype="int64"), dtype=start.dtype)
    return with_inputs(ops.cast(start + index * step, dtype=dtype), [extents])


def _range(start: Any, step: Any, extents: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Return start, start + step, …, as `_build_range`."""
    return (start + np.arange(shape[0]).astype(start.dtype) * step).astype(dtype_of(dtype).numpy)


def _build_linspace(
    start: Entry, step: Entry, stop: Entry, last: Entry, extents: Entry, shape: Shape, dtype: str
) -> Entry:
    """Build start, start + step, …, and ``stop`` at the position ``last``; all in float64."""
    index = ops.cast(ops.arange(0, shape[0], 1, dtype="int64"), dtype="float64")
    values = ops.where(index >= last, stop, start + index * step)
    return with_inputs(ops.cast(values, dtype=dtype), [extents])


def _linspace(
    start: Any, step: Any, stop: Any, last: Any, extents: Any, shape: tuple[int, ...], dtype: str
) -> Any:
    """Return start, start + step, … and ``stop``, as `_build_linspace`."""
    index = np.arange(shape[0], dtype=np.float64)
    values = np.where(index >= last, stop, start + index * step)
    return values.astype(dtype_of(dtype).numpy)


def _build_eye(diagonal: Entry, extents: Entry, shape: Shape, dtype: str) -> Entry:
    """Build a matrix with ones on a diagonal."""
    rows, columns = (ops.arange(0, n, 1, dtype="int64") for n in shape)
    distance = ops.expand_dims(columns, axis=0) - ops.expand_dims(rows, axis=1)
    return with_inputs(ops.cast(ops.equal(distance, diagonal), dtype=dtype), [extents])


def _eye(diagonal: Any, extents: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Return a matrix with ones on a diagonal."""
    # np.eye refuses some diagonals that lie outside of the matrix.
    distance = np.arange(shape[1]) - np.arange(shape[0])[:, None]
    return (distance == diagonal).astype(dtype_of(dtype).numpy)


CREATORS = ("constant", "eye", "linspace", "range")
"""The names of the operations without an array as operand."""

OPERATIONS.define("constant", _build_constant, _constant)
OPERATIONS.define("range", _build_range, _range)
OPERATIONS.define("linspace", _build_linspace, _linspace)
OPERATIONS.define("eye", _build_eye, _eye)
OPERATIONS.define("tril", ops.tril, lambda x, k: np.tril(x, k))
OPERATIONS.define("triu", ops.triu, lambda x, k: np.triu(x, k))
