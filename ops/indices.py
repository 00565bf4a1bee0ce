"""Indices that are data: how they are interpreted, in kernels and in NumPy.

An index below 0 counts from the end. An index that is out of range is handled by the parameter
``mode``: "clip" takes the nearest element; "zero" reads 0 and drops writes. Memory outside of an
array is never touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from passkit import ast
from passkit.errors import DTypeError, GraphError, nearest
from passkit.graph.infer import demand, same_dtype_rule
from passkit.graph.node import Entry, Node
from passkit.ops.helpers import make
from passkit.values.dtype import DType
from passkit.values.size import Extent, Shape, numel

if TYPE_CHECKING:
    from passkit.ast import Expr

INDEX_MODES = ("clip", "zero")
"""The values of the parameter ``mode``."""


def index_mode(node: Node) -> str:
    """Return the parameter ``mode`` of ``node``: "clip" or "zero".

    Raises: GraphError for another.
    """
    mode = node.params["mode"]
    if mode not in INDEX_MODES:
        raise GraphError(f"{node.where} has no mode {mode!r}; {nearest(str(mode), INDEX_MODES)}")
    return str(mode)


def check_indices(node: Node, dtype: DType, name: str = "indices") -> None:
    """Check that an input has integers of any width.

    Args:
        node: The node to name in errors.
        dtype: The dtype of the input.
        name: The input to name in errors.

    Raises:
        DTypeError: If the dtype is something else, bool included.
    """
    if not dtype.is_integer:
        raise DTypeError(
            f"{node.where} needs integers as {name}, got {dtype}; pk.ops.cast(x, 'int64')"
        )


def indexed_dtype(node: Node, x: DType, indices: DType, *others: DType) -> DType:
    """Infer the dtype of an operator on (x, indices, …): that of x and all others.

    Args:
        node: The node to name in errors.
        x: The dtype of the first input.
        indices: The dtype of the indices.
        *others: The dtypes of further inputs, such as updates.

    Raises:
        DTypeError: If indices are no integers, or an other input has another dtype than x.
    """
    check_indices(node, indices)
    return same_dtype_rule(node, x, *others)


def check_nonempty(node: Node, n: Extent, indices: Shape, axis_name: str) -> None:
    """Check that an axis has elements to read, unless there are no indices.

    For a symbolic length a guard is recorded, which a call checks.

    Args:
        node: The node to name in errors.
        n: Length of the axis.
        indices: Shape of the indices.
        axis_name: The axis to name in errors.

    Raises:
        ShapeError: If the axis has length 0 and the indices are not known to be empty.
    """
    if numel(indices) != 0:
        demand(node, n, 1, f"{axis_name} must have an element to read")


def clipped_position(i: Expr, n: Extent) -> tuple[Expr, Expr]:
    """Return the position that index ``i`` of an axis of length ``n`` refers to, as int64.

    A negative index counts from the end.

    Returns:
        The nearest valid position (-1 if ``n`` is 0), and the position counted from the front,
        which may be invalid.
    """
    i = ast.cast(i, "int64")
    from_front = ast.where(i < 0, i + ast.size_of(n), i)
    return ast.minimum(ast.maximum(from_front, 0), ast.size_of(n - 1)), from_front


def is_inside(from_front: Expr, n: Extent) -> Expr:
    """Return whether a position counted from the front is valid for an axis of length ``n``."""
    return (from_front >= 0) & (from_front < ast.size_of(n))


def clipped_positions(indices: Any, n: int) -> tuple[Any, Any]:
    """Return the positions along an axis of length ``n`` that integers ``indices`` mean, in NumPy.

    Negative indices count from the end, and those out of range are clipped; all are 0 if ``n`` is
    0.

    Returns:
        The positions, a new int64 array, and a bool array: whether each index is in range.
    """
    i = np.asarray(indices).astype(np.int64)
    from_front = np.where(i < 0, i + n, i)
    return np.clip(from_front, 0, max(n - 1, 0)), (from_front >= 0) & (from_front < n)


def zeros_of(x: Entry) -> Entry:
    """Return zeros of the shape and dtype of ``x``."""
    return make("zeros_like", x)
