"""Sums of products of matrices: what the steps of a loop add up to the gradient of a weight."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from passkit.errors import ShapeError
from passkit.graph.infer import agree
from passkit.graph.node import Entry, Node
from passkit.graph.op import OpPattern, get_op, register_op
from passkit.ops.helpers import common_dtype, show_shapes
from passkit.ops.linalg import LIBRARIES, matmul, matmul_gradient
from passkit.values.size import Shape

matmul_sum = register_op(
    "matmul_sum",
    num_inputs=-1,
    params={"transpose_a": False, "transpose_b": False},
    doc="the sum of products of matrices, of pairs of operands: a1 @ b1 + a2 @ b2 + …",
)


def _pairs(node: Node, operands: Sequence[Any]) -> list[tuple[Any, Any]]:
    """The operands two by two. Raises: ShapeError where one has no partner."""
    if not operands or len(operands) % 2:
        raise ShapeError(
            f"{node.where} needs pairs of matrices, got {len(operands)} operands; give a right "
            f"one for each left one"
        )
    return list(zip(operands[::2], operands[1::2], strict=True))


def _shape(node: Node, *shapes: Shape) -> Shape:
    """Shapes: (m, k1), (k1, n), (m, k2), (k2, n), … -> (m, n)."""
    flip_a, flip_b = node.params["transpose_a"], node.params["transpose_b"]
    rows = columns = None
    for a, b in _pairs(node, shapes):
        if len(a) != 2 or len(b) != 2:
            raise ShapeError(
                f"{node.where} needs matrices of rank 2, got {show_shapes((a, b))}; reshape them"
            )
        (m, k), (k_b, n) = a[:: -1 if flip_a else 1], b[:: -1 if flip_b else 1]
        agree(node, k, k_b, "the inner dimension")
        rows = m if rows is None else agree(node, rows, m, "the number of rows")
        columns = n if columns is None else agree(node, columns, n, "the number of columns")
    assert rows is not None and columns is not None
    return rows, columns


def _compute(node: Node, *arrays: Any) -> Any:
    """In doubles, rounded once."""
    flip_a, flip_b = node.params["transpose_a"], node.params["transpose_b"]
    wide = [np.asarray(x, np.float64) for x in arrays]
    flipped = [(a.T if flip_a else a, b.T if flip_b else b) for a, b in _pairs(node, wide)]
    total: Any = sum(a @ b for a, b in flipped)
    return total.astype(arrays[0].dtype)


def _gradient(node: Node, dy: Entry) -> list[Entry]:
    """That of each product."""
    found: list[Entry] = []
    for a, b in _pairs(node, node.inputs):
        found += matmul_gradient(matmul(a, b, **node.params).node, dy)
    return found


def _expanded(node: Node, *operands: Entry) -> Entry | None:
    """Products that are added, for floats of which no library has products."""
    dtype = operands[0].dtype
    return None if dtype is None or dtype.name in LIBRARIES else added(node, *operands)


def added(node: Node, *operands: Entry) -> Entry:
    """The same sum by products and additions, each rounded."""
    products = [matmul(a, b, **node.params) for a, b in _pairs(node, operands)]
    total: Entry = reduce(get_op("add"), products)
    return total


matmul_sum.set_attr("FExpand", _expanded)
matmul_sum.set_attr("FInferShape", _shape)
matmul_sum.set_attr("FInferType", common_dtype("f"))
matmul_sum.set_attr("FCompute", _compute)
matmul_sum.set_attr("FGradient", _gradient)
matmul_sum.set_attr("TOpPattern", OpPattern.OPAQUE)
matmul_sum.set_attr("TOpCost", "expensive")
matmul_sum.set_attr("TLibraryCall", "gemm_sum")
