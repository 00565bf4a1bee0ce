"""Indices of register arrays: literals and variables of unrolled loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from passkit.ast.expr import Binary, Const, Expr, Var


def is_plain(x: Expr) -> bool:
    """Return whether an index consists of literals and variables, sums, products and quotients."""
    if isinstance(x, Binary):
        return x.op in ("+", "-", "*", "//", "%") and is_plain(x.a) and is_plain(x.b)
    return isinstance(x, (Const, Var))


def plain_value(x: Expr, values: Mapping[str, Any]) -> Any:
    """Return a plain index for arrays of values of its variables."""
    match x:
        case Var(name):
            return values[name]
        case Binary(op, a, b):
            left, right = plain_value(a, values), plain_value(b, values)
            if op in ("//", "%"):
                return left // right if op == "//" else left % right
            return {"+": left + right, "-": left - right, "*": left * right}[op]
    assert isinstance(x, Const)
    return x.integer


def plain_values(x: Expr, ranges: Mapping[str, range]) -> Sequence[int]:
    """Return the values that a plain index has for all values of its variables.

    Args:
        x: the index.
        ranges: the values of its variables, and of no others.
    """
    if isinstance(x, Var):
        return ranges[x.name]
    grids = np.meshgrid(*map(np.array, ranges.values()), indexing="ij") if ranges else []
    values = plain_value(x, dict(zip(ranges, grids, strict=True)))
    return values.ravel().tolist() if ranges else [values]
