"""Exact algebraic rewrites of elementwise operators (FSimplify).

Each function gets the node and its inputs, and returns an entry that has the same bits for every
input, NaN, infinities and -0 among them, or None where no rewrite applies. A constant in these
rewrites is a real number or bool as `scalar_constant` finds it: one element, broadcast or not.
"""

from __future__ import annotations

import numpy as np

from passkit.graph.call import convert
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.op import get_op
from passkit.ops.helpers import as_replacement, is_constant, make, scalar_constant
from passkit.values.dtype import is_lossless


def simplify_add(node: Node, x: Entry, y: Entry) -> Entry | None:
    """Rewrite ``x + -0.0 -> x``, and for integers ``x + 0 -> x``; None if neither applies.

    The number is a real constant of one element, broadcast or not; the operands may be exchanged.
    Floats plus 0.0 stay, since ``-0.0 + 0.0`` is 0.0. ``node`` applies the operator to entries
    ``x`` and ``y``; None also if the operand that remains has not the shape and dtype of its
    output.
    """
    for operand, other in ((x, y), (y, x)):
        value = scalar_constant(other)
        if value is not None and value == 0 and (value.dtype.kind in "iu" or np.signbit(value)):
            return as_replacement(node, operand)
    return None


def simplify_sub(node: Node, x: Entry, y: Entry) -> Entry | None:
    """Rewrite ``x - 0 -> x``, for the output of ``node``; return None if that does not apply.

    The 0 is a real constant of one element, broadcast or not, and not -0.0. None also if ``x`` has
    not the shape and dtype of the output.
    """
    return as_replacement(node, x) if is_constant(y, 0) else None


def simplify_mul(node: Node, x: Entry, y: Entry) -> Entry | None:
    """Rewrite ``x * 1 -> x`` and ``1 * x -> x``, for the output of ``node``; else return None.

    The 1 is a real constant of one element, broadcast or not. None also if the operand has not the
    shape and dtype of the output.
    """
    if is_constant(y, 1):
        return as_replacement(node, x)
    return as_replacement(node, y) if is_constant(x, 1) else None


def simplify_div(node: Node, x: Entry, y: Entry) -> Entry | None:
    """Rewrite ``x / 1 -> x``, and ``x / c -> x * (1/c)`` for a power of two; else return None.

    1 and ``c`` are real constants of one element. The 1 may be broadcast, ``c`` not, which is from
    2**-14 to 2**12 in magnitude. ``x`` itself is returned only if it has the shape and dtype of the
    output of ``node``, which applies the operator to entries ``x`` and ``y``.
    """
    value = scalar_constant(y)
    if value is None:
        return None
    if value == 1:
        return as_replacement(node, x)
    if y.node.op is not CONSTANT:  # a broadcast constant
        return None
    mantissa, exponent = np.frexp(np.float64(value))
    if abs(mantissa) == 0.5 and abs(int(exponent)) < 14:  # the inverse is exact in 16 bits too
        inverse = np.full(y.node.params["value"].shape, 1.0 / float(value), value.dtype)
        return make("mul", x, inverse)
    return None


def simplify_pow(node: Node, x: Entry, y: Entry) -> Entry | None:
    """Rewrite ``x**1``, ``x**2``, ``x**-1`` to identity, square and reciprocal; else return None.

    The exponent is a real constant of one element, broadcast or not. The replacements are
    correctly rounded, as pow need not be. ``x**0.5`` stays, since sqrt differs from it at -inf and
    -0, and ``x**-1`` of integers stays, since they have no reciprocal. None also if ``x`` has not
    the shape and dtype of the output of ``node``.
    """
    if x.dtype is None or as_replacement(node, x) is None:
        return None
    for value, name in ((1, "identity"), (2, "square"), (-1, "reciprocal")):
        if is_constant(y, value) and (value > 0 or x.dtype.is_float):
            return make(name, x)
    return None


def simplify_involution(node: Node, x: Entry) -> Entry | None:
    """Rewrite ``f(f(x)) -> x``; None if ``x`` is not computed by the operator of ``node``."""
    return x.node.inputs[0] if x.node.op is node.op else None


def simplify_idempotent(node: Node, x: Entry) -> Entry | None:
    """Rewrite ``f(f(x)) -> f(x)``; None if ``x`` is not computed by the operator of ``node``."""
    return x if x.node.op is node.op else None


def simplify_abs(node: Node, x: Entry) -> Entry | None:
    """Rewrite ``abs(-x) -> abs(x)`` and ``abs(abs(x)) -> abs(x)``; return None otherwise.

    The negative of an unsigned integer wraps, so that its abs stays. ``node`` is the operator's
    node.
    """
    if x.node.op is get_op("neg") and x.dtype is not None and x.dtype.kind != "u":
        return make("abs", x.node.inputs[0])
    return simplify_idempotent(node, x)


def simplify_equal_operands(node: Node, x: Entry, y: Entry) -> Entry | None:
    """Rewrite ``f(x, x) -> x``, for the output of ``node``; None if the operands are two entries.

    None also if ``x`` has not the shape and dtype of the output.
    """
    return as_replacement(node, x) if x is y else None


def simplify_where(node: Node, condition: Entry, x: Entry, y: Entry) -> Entry | None:
    """Rewrite ``where(True, x, y) -> x``, ``where(False, x, y) -> y``, ``where(c, x, x) -> x``.

    ``condition``, ``x`` and ``y`` are the inputs of ``node``. True and False are constants of one
    element, broadcast or not.

    Returns: None if none of them applies, or the operand has not the shape and dtype of the output
    of ``node``.
    """
    value = scalar_constant(condition)
    if value is not None:
        return as_replacement(node, x if value else y)
    return as_replacement(node, x) if x is y else None


def simplify_cast(node: Node) -> Entry | None:
    """Remove a cast to the same dtype, and merge a cast with a lossless cast before it.

    An integer that becomes an integer wraps, and a float that becomes one saturates. So an integer
    may skip a float on its way to another integer type only where that holds all its values:
    ``cast(cast(x: int8, "float32"), "uint8")`` is 0 for -1, and ``cast(x, "uint8")`` is 255.

    Returns: The entry that replaces the output of ``node``, which may be the input of either cast;
    None if neither applies or a dtype is unknown.
    """
    x = node.inputs[0]
    target = node.entries[0].dtype
    if x.dtype is target:
        return x if target is not None else None
    if x.node.op is not node.op:
        return None
    source = x.node.inputs[0]
    if source.dtype is None or x.dtype is None or target is None:
        return None
    if not is_lossless(source.dtype, x.dtype):
        return None
    same_overflow = source.dtype.is_float == x.dtype.is_float or not target.is_integer
    if same_overflow or is_lossless(source.dtype, target):
        return convert(source, target)
    return None
