"""Bits: shifts and counts of those of integers, and numbers of one type as those of another."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit import ast
from passkit.ast import Expr
from passkit.errors import DTypeError
from passkit.graph.node import Node
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.ops.helpers import add_aliases, check_kinds
from passkit.ops.pointwise import elementwise
from passkit.values.dtype import DType, dtype_of, uint8

elementwise(
    "left_shift",
    "iu",
    lambda x, n: ast.left_shift(x, n),
    "x 2^n, wrapped; 0 where n is negative or at least the width",
    aliases="bitwise_left_shift",
)
elementwise(
    "right_shift",
    "iu",
    lambda x, n: ast.right_shift(x, n),
    "x / 2^n rounded down; copies of the sign where n is negative or at least the width",
    aliases="bitwise_right_shift",
)


def _ones(x: Expr) -> Expr:
    """How many bits are 1: sums of 2, 4 and 8 bits, and those of the bytes by one product."""
    nbytes, dtype = x.dtype.nbytes, dtype_of(f"uint{8 * x.dtype.nbytes}")

    def each_byte(value: int) -> Expr:
        return ast.const(int.from_bytes(bytes([value] * nbytes), "little"), dtype)

    def down(value: Expr, n: int) -> Expr:
        return ast.right_shift(value, ast.const(n, dtype))

    x = ast.cast(x, dtype)
    x = x - (down(x, 1) & each_byte(0x55))
    x = (x & each_byte(0x33)) + (down(x, 2) & each_byte(0x33))
    x = (x + down(x, 4)) & each_byte(0x0F)
    return ast.cast(down(x * each_byte(1), 8 * nbytes - 8), uint8)


def _count_type(node: Node, dtype: DType) -> DType:
    check_kinds(node, "iu", dtype)
    return uint8


elementwise(
    "bitwise_count",
    "iu",
    lambda x: _ones(abs(x)),
    "how many bits of the magnitude of x are 1, as uint8",
    _count_type,
)
elementwise(
    "population_count", "iu", _ones, "how many bits of x are 1, as uint8: the sign too", _count_type
)


# The same bytes as another type: a step of NumPy.


def _bitcast_type(node: Node, x: DType) -> DType:
    """Raises: DTypeError for a type of another width, and for bools and complex numbers."""
    wanted = dtype_of(node.params["dtype"])
    check_kinds(node, "iuf", x, wanted)
    if wanted.nbytes != x.nbytes:
        raise DTypeError(f"{node.where} needs a type of {x.nbytes} bytes, as {x} has, got {wanted}")
    return wanted


def _bitcast(node: Node, x: Any) -> Any:
    return np.ascontiguousarray(x).view(dtype_of(node.params["dtype"]).numpy).reshape(x.shape)


bitcast = register_op(
    "bitcast", 1, params={"dtype": REQUIRED}, doc="the bits of x taken as a number of another type"
)
bitcast.set_attr("FInferShape", lambda node, shape: shape)
bitcast.set_attr("FInferType", _bitcast_type)
bitcast.set_attr("FCompute", _bitcast)
bitcast.set_attr("FGradient", lambda node, dy: [None])
bitcast.set_attr("TOpPattern", OpPattern.OPAQUE)
bitcast.set_attr("THostLibrary", "numpy")
add_aliases(bitcast, "bitcast_convert_type")
