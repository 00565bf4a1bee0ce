"""Matrices of a diagonal, and diagonals of matrices."""

from __future__ import annotations

from typing import Any

from passkit.errors import ShapeError
from passkit.frontends.xp.array import Array, array_of
from passkit.frontends.xp.creation import eye, zeros
from passkit.frontends.xp.joining import concat
from passkit.frontends.xp.linalg import diagonal
from passkit.frontends.xp.manipulation import expand_dims
from passkit.frontends.xp.reductions import integer
from passkit.frontends.xp.searching import where


def diag(x: Any, /, k: int = 0) -> Array:
    """Return a matrix with the elements of a vector on a diagonal, or a diagonal of a matrix.

    Args:
        x: the vector, or the matrix, of any dtype.
        k: the diagonal: 0 the main one, positive ones above, negative ones below it. Of a matrix,
            one outside is empty.

    Returns: A new array of the dtype of ``x``; of a vector of n elements, a square matrix with
        n + abs(k) rows.

    Raises:
        ArgumentError: ``x`` is no array or number, or ``k`` no integer.
        ShapeError: ``x`` has neither one axis nor two, or the matrix would be too large.

    >>> from passkit import xp
    >>> xp.diag(xp.asarray([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int64)
    """
    x, k = array_of(x), integer("diag: k", k)
    if x.ndim == 2:
        return diagonal(x, offset=k)
    if x.ndim != 1:
        raise ShapeError(f"diag needs a vector or a matrix, got shape {x.shape}")
    extent = x.shape[0] + abs(k)
    padded = concat([x, zeros(abs(k), dtype=x.dtype, device=x.device)]) if k else x
    is_inside = eye(extent, k=k, dtype="bool", device=x.device)
    zero = zeros((), dtype=x.dtype, device=x.device)
    return where(is_inside, expand_dims(padded, axis=1 if k >= 0 else 0), zero)
