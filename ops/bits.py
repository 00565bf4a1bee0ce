"""Operators on bits: shifts, counts of bits, and bits reinterpreted as another dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from passkit import ast
from passkit.ast import Expr
from passkit.errors import DTypeError
from passkit.graph.node import Node
from passkit.graph.op import REQUIRED, OpPattern, register_op
from passkit.ops.elementwise_definition import elementwise
from passkit.ops.helpers import add_aliases, check_kinds
from passkit.values.dtype import DType, dtype_of, uint8

elementwise(
    name="left_shift",
    aliases="bitwise_left_shift",
    kinds="iu",
    code=lambda x, n: ast.left_shift(x, n),
    doc="x * 2^n without the bits that overflow; 0 where n is negative or at least the number of "
    "bits",
)
elementwise(
    name="right_shift",
    aliases="bitwise_right_shift",
    kinds="iu",
    code=lambda x, n: ast.right_shift(x, n),
    doc="x / 2^n rounded down; 0 or -1 by the sign of x where n is negative or at least the "
    "number of bits",
)


def _popcount(x: Expr) -> Expr:
    """Return the number of bits of an integer that are 1, the sign bit included, as uint8.

    The bits are summed in fields of 2, 4 and 8 bits, and the bytes by one multiplication.
    """
    nbytes = x.dtype.nbytes
    dtype = dtype_of(f"uint{8 * nbytes}")

    def repeat_byte(value: int) -> Expr:
        """Return an unsigned constant, as wide as x, whose bytes are all ``value``, 0 to 255."""
        return ast.const(int.from_bytes(bytes([value] * nbytes), "little"), dtype)

    def shift_right(value: Expr, n: int) -> Expr:
        """Return ``value``, unsigned, shifted right by ``n`` bits; zeros move in."""
        return ast.right_shift(value, ast.const(n, dtype))

    x = ast.cast(x, dtype)
    x = x - (shift_right(x, 1) & repeat_byte(0x55))
    x = (x & repeat_byte(0x33)) + (shift_right(x, 2) & repeat_byte(0x33))
    x = (x + shift_right(x, 4)) & repeat_byte(0x0F)
    return ast.cast(shift_right(x * repeat_byte(1), 8 * nbytes - 8), uint8)


elementwise(
    name="bitwise_count",
    kinds="iu",
    result_dtype=uint8,
    code=lambda x: _popcount(abs(x)),
    doc="the number of ones among the bits of the magnitude of x, as uint8",
)
elementwise(
    name="population_count",
    kinds="iu",
    result_dtype=uint8,
    code=_popcount,
    doc="the number of ones among the bits of x, the sign included, as uint8",
)


def _infer_bitcast_type(node: Node, x: DType) -> DType:
    """Infer the dtype, the parameter ``dtype`` of ``node``.

    Raises:
        DTypeError: If it is no dtype, None too, or of another width than ``x``, or one of them is
            bool or complex.
    """
    target = dtype_of(node.params["dtype"])
    check_kinds(node, "iuf", x, target)
    if target.nbytes != x.nbytes:
        raise DTypeError(f"{node.where} needs a type of {x.nbytes} bytes, as {x} has, got {target}")
    return target


def _compute_bitcast(node: Node, x: Any) -> Any:
    """Reinterpret the bytes of array ``x`` as the parameter ``dtype``, in NumPy; keep the shape.

    ``node`` has the parameter ``dtype``, which must be as wide as that of ``x``. The result may
    share the memory of ``x``.

    Raises: DTypeError if there is no such dtype.
    """
    return np.ascontiguousarray(x).view(dtype_of(node.params["dtype"]).numpy).reshape(x.shape)


bitcast = register_op(
    "bitcast",
    1,
    params={"dtype": REQUIRED},
    doc="the bits of x interpreted as dtype, which has as many bytes; the shape stays",
)
bitcast.set_attr("FInferShape", lambda node, shape: shape)
bitcast.set_attr("FInferType", _infer_bitcast_type)
bitcast.set_attr("FCompute", _compute_bitcast)
bitcast.set_attr("FGradient", lambda node, dy: [None])
bitcast.set_attr("TOpPattern", OpPattern.OPAQUE)
bitcast.set_attr("THostLibrary", "numpy")
add_aliases(bitcast, "bitcast_convert_type")
