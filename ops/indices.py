"""Indices that are data: where they point, in kernels and in NumPy.

An index below 0 counts from the end. What is out of range after that is, by ``mode``, the nearest
element ("clip"), or nothing: it reads 0 and what is written there is dropped ("zero"). Nothing
outside of an array is ever touched.
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

MODES = ("clip", "zero")


def mode_of(node: Node) -> str:
    """The parameter ``mode``. Raises: GraphError for one that there is not."""
    mode = node.params["mode"]
    if mode not in MODES:
        raise GraphError(f"{node.where} has no mode {mode!r}; {nearest(str(mode), MODES)}")
    return str(mode)


def check_indices(node: Node, dtype: DType, what: str = "indices") -> None:
    """Make sure that indices are integers. Raises: DTypeError."""
    if not dtype.is_integer:
        raise DTypeError(
            f"{node.where} needs integers as {what}, got {dtype}; pk.ops.cast(x, 'int64')"
        )


def indexed_type(node: Node, x: DType, indices: DType, *rest: DType) -> DType:
    """The dtype of the first input; the second are integers, the rest like the first."""
    check_indices(node, indices)
    return same_dtype_rule(node, x, *rest)


def need_elements(node: Node, n: Extent, indices: Shape, what: str) -> None:
    """Make sure that there is something to point at, unless nothing points."""
    if numel(indices) != 0:
        demand(node, n, 1, f"{what} must have an element to read")


def position(i: Expr, n: Extent) -> tuple[Expr, Expr]:
    """The position below ``n`` that index ``i`` points at, and ``i`` counted from the front."""
    i = ast.cast(i, "int64")
    front = ast.where(i < 0, i + ast.size_of(n), i)
    return ast.minimum(ast.maximum(front, 0), ast.size_of(n - 1)), front


def inside(front: Expr, n: Extent) -> Expr:
    """Whether an index counted from the front points at an element."""
    return (front >= 0) & (front < ast.size_of(n))


def positions(indices: Any, n: int) -> tuple[Any, Any]:
    """`position` for an array of indices, and whether each points at an element."""
    i = np.asarray(indices).astype(np.int64)
    front = np.where(i < 0, i + n, i)
    return np.clip(front, 0, max(n - 1, 0)), (front >= 0) & (front < n)


def zeros_of(x: Entry) -> Entry:
    """Zeros of the shape and dtype of ``x``."""
    return make("zeros_like", x)
