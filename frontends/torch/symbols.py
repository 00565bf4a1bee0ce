"""PyTorch's symbolic integers as passkit's sizes."""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch.utils._sympy.functions import CleanDiv, FloorDiv, Max

from passkit.frontends.torch.errors import UnsupportedNodeError
from passkit.values.size import Extent, Size


def extent_of(value: Any) -> Extent:
    """Return a PyTorch integer, plain or symbolic, as a passkit extent.

    Raises: UnsupportedNodeError for an expression with more than sums, products and quotients.
    """
    if isinstance(value, torch.SymInt):
        return extent_of_expression(value.node.expr)
    return int(value)


def extent_of_expression(expression: sympy.Expr) -> Extent:
    """Return a sympy expression of symbolic sizes as a passkit extent.

    Raises: UnsupportedNodeError for an expression with more than sums, products and quotients.
    """
    match expression:
        case sympy.Integer():
            return int(expression)
        case sympy.Symbol():
            return Size.symbol(str(expression))
        case sympy.Add():
            return sum((extent_of_expression(x) for x in expression.args), start=0)
        case sympy.Mul():
            product: Extent = 1
            for x in expression.args:
                product = product * extent_of_expression(x)
            return product
        case sympy.Pow() if expression.exp.is_Integer and expression.exp > 0:
            product = 1
            for _ in range(int(expression.exp)):
                product = product * extent_of_expression(expression.base)
            return product
        case FloorDiv() | CleanDiv():
            numerator, denominator = expression.args
            return extent_of_expression(numerator) // extent_of_expression(denominator)
    raise UnsupportedNodeError(f"the size {expression} is no sum, product or quotient of sizes")


def stride_of(value: Any) -> Extent:
    """Return a stride of a tensor as a passkit extent.

    PyTorch writes the stride of an axis as ``Max(1, n)``, so that it is not 0 in empty tensors; it
    does not matter there.

    Raises: UnsupportedNodeError for an expression with more than sums, products and quotients.
    """
    if not isinstance(value, torch.SymInt):
        return int(value)
    expression = value.node.expr
    plain = expression.replace(
        lambda x: isinstance(x, (sympy.Max, Max)) and sympy.Integer(1) in x.args,
        lambda x: x.func(*(a for a in x.args if a != 1)),
    )
    return extent_of_expression(plain)


def memory_order(fake: torch.Tensor) -> tuple[int, ...]:
    """Return the axes of a tensor in the order in which they lie in memory, the slowest first."""
    return tuple(sorted(range(fake.dim()), key=lambda axis: (-_hint(fake.stride(axis)), axis)))


def may_overlap(fake: torch.Tensor) -> bool:
    """Return whether elements of a tensor may lie in the same place of memory, by its strides."""
    reach = 0
    for axis in reversed(memory_order(fake)):
        extent, stride = _hint(fake.shape[axis]), _hint(fake.stride(axis))
        if extent > 1 and stride <= reach:
            return True
        reach += max(extent - 1, 0) * stride
    return False


def _hint(value: Any) -> int:
    """Return an integer, for a symbolic one that of the tensors that are compiled for."""
    return int(value.node.hint) if isinstance(value, torch.SymInt) else int(value)
