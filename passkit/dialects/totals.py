"""What folds and scans in C have so far: their names, where they lie, which one is an extreme."""

from __future__ import annotations

import numpy as np

from passkit.ast import Call, Expr, Load, Var, left, right
from passkit.ast.stage import Fold, Running
from passkit.ast.tidy import replace_children


def memory_of(f: Fold | Running) -> Load:
    """Where each lane has what it folded to so far."""
    assert f.buffer is not None and f.index is not None
    return Load(f.buffer, f.index, f.var.dtype)


def partial_of(f: Fold | Running) -> Var:
    """What the lanes fold to, before they are joined."""
    return Var(f"{f.var.name}_lanes", f.var.dtype)


def extreme_of(f: Fold) -> str | None:
    """The fold that is just the greatest or least of floats."""
    a, b = left(f.var.dtype), right(f.var.dtype)
    if not f.var.dtype.is_float or not np.isinf(f.identity.value):
        return None
    if f.identity.value < 0 and f.combine == Call("maximum", (a, b), f.var.dtype):
        return "largest"
    if f.identity.value > 0 and f.combine == Call("minimum", (a, b), f.var.dtype):
        return "smallest"
    return None


def replaced(x: Expr, values: dict[str, Expr]) -> Expr:
    """An expression with other values for variables of these names."""
    if isinstance(x, Var):
        return values.get(x.name, x)
    return replace_children(x, lambda child: replaced(child, values))
