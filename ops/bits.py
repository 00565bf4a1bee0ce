"""Bits of integers: shifts and counts."""

from __future__ import annotations

from passkit import ast
from passkit.ast import Expr
from passkit.dtype import DType, dtype_of, uint8
from passkit.node import Node
from passkit.ops.pointwise import elementwise
from passkit.ops.rules import take

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
    take(node, "iu", dtype)
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
