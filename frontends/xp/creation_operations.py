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
    """Build an array of ``shape`` whose elements are ``number``, 0 or 1, of a dtype.

    ``extents`` is the input that gives the plan the shape; its elements are not read.
    """
    return with_inputs(ops.full(shape, number, dtype=dtype), [extents])


def _constant(extents: Any, shape: tuple[int, ...], number: int, dtype: str) -> Any:
    """Return a NumPy array of ``shape`` whose elements are ``number``, 0 or 1, of a dtype.

    ``extents`` has no effect.
    """
    return np.full(shape, number, dtype_of(dtype).numpy)


def _build_range(start: Entry, step: Entry, extents: Entry, shape: Shape, dtype: str) -> Entry:
    """Build start, start + step, …, computed in the dtype of ``start`` and ``step``.

    These are scalars of one dtype. ``shape`` has one extent, the number of elements; ``dtype`` is
    that of the result. ``extents`` is the input that gives the plan the shape; its elements are not
    read.
    """
    assert start.dtype is not None
    index = ops.cast(ops.arange(0, shape[0], 1, dtype="int64"), dtype=start.dtype)
    return with_inputs(ops.cast(start + index * step, dtype=dtype), [extents])


def _range(start: Any, step: Any, extents: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Return start, start + step, … as a NumPy vector of ``dtype``, as `_build_range`.

    They are computed in the dtype of ``start`` and ``step``, which are NumPy scalars or arrays
    without axes. ``shape`` has one extent, the number of elements; ``extents`` has no effect.
    """
    return (start + np.arange(shape[0]).astype(start.dtype) * step).astype(dtype_of(dtype).numpy)


def _build_linspace(
    start: Entry, step: Entry, stop: Entry, last: Entry, extents: Entry, shape: Shape, dtype: str
) -> Entry:
    """Build start, start + step, …, and ``stop`` from the position ``last`` on.

    These are scalars of float64; ``last`` may be infinite. ``shape`` has one extent, the number
    of elements; they are computed in float64 and converted to ``dtype``, rounded down for integers.
    ``extents`` is the input that gives the plan the shape; its elements are not read.
    """
    index = ops.cast(ops.arange(0, shape[0], 1, dtype="int64"), dtype="float64")
    values = ops.where(index >= last, stop, start + index * step)
    if dtype_of(dtype).kind in "iu":
        values = ops.floor(values)  # as NumPy
    return with_inputs(ops.cast(values, dtype=dtype), [extents])


def _linspace(
    start: Any, step: Any, stop: Any, last: Any, extents: Any, shape: tuple[int, ...], dtype: str
) -> Any:
    """Return start, start + step, … as a NumPy vector, and ``stop`` from the position ``last`` on.

    These are NumPy scalars or arrays without axes. ``shape`` has one extent, the number of
    elements; they are computed in float64 and converted to ``dtype``,
    rounded down for integers. ``extents`` has no effect.
    """
    index = np.arange(shape[0], dtype=np.float64)
    values = np.where(index >= last, stop, start + index * step)
    if dtype_of(dtype).kind in "iu":
        values = np.floor(values)
    return values.astype(dtype_of(dtype).numpy)


def _build_eye(diagonal: Entry, extents: Entry, shape: Shape, dtype: str) -> Entry:
    """Build a matrix of ``shape`` and ``dtype``, 1 where column - row is ``diagonal``, else 0.

    ``extents`` is the input that gives the plan the shape; its elements are not read.
    """
    rows, columns = (ops.arange(0, n, 1, dtype="int64") for n in shape)
    distance = ops.expand_dims(columns, axis=0) - ops.expand_dims(rows, axis=1)
    return with_inputs(ops.cast(ops.equal(distance, diagonal), dtype=dtype), [extents])


def _eye(diagonal: Any, extents: Any, shape: tuple[int, ...], dtype: str) -> Any:
    """Return a matrix of ``shape`` and ``dtype``, 1 where column - row is ``diagonal``, else 0.

    It is a NumPy array; ``extents`` has no effect.
    """
    # np.eye refuses some diagonals that lie outside of the matrix.
    distance = np.arange(shape[1]) - np.arange(shape[0])[:, None]
    return (distance == diagonal).astype(dtype_of(dtype).numpy)


CREATORS = ("constant", "eye", "linspace", "range")
"""The names of the operations whose operands are only scalars and extents."""

OPERATIONS.define("constant", _build_constant, _constant)
OPERATIONS.define("range", _build_range, _range)
OPERATIONS.define("linspace", _build_linspace, _linspace)
OPERATIONS.define("eye", _build_eye, _eye)
OPERATIONS.define("tril", ops.tril, lambda x, k: np.tril(x, k))
OPERATIONS.define("triu", ops.triu, lambda x, k: np.triu(x, k))
OPERATIONS.recomputed |= {"constant", "tril", "triu"}
