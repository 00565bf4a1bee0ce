"""Partial results of reductions and scans: their names, their place in memory, their kind."""

from __future__ import annotations

import numpy as np

from passkit.ast import Call, Load, Var, left, right
from passkit.ast.stage import Fold, Running


def partial_name(s: Fold | Running) -> str:
    """Return the name of the accumulator of a reduction or scan."""
    return f"{s.var.name}_lanes"


def partial_variable(s: Fold | Running) -> Var:
    """Return the variable of what a reduction or scan has combined so far."""
    return Var(partial_name(s), s.var.dtype)


def memory_of(s: Fold | Running) -> Load:
    """Return the element of memory in which each point has its partial result."""
    assert s.buffer is not None and s.index is not None
    return Load(s.buffer, s.index, s.var.dtype)


def extreme_of(f: Fold) -> str:
    """Return "largest" or "smallest" for a reduction that is just that of floats, else ""."""
    a, b = left(f.var.dtype), right(f.var.dtype)
    if not f.var.dtype.is_float or not np.isinf(f.identity.value):
        return ""
    if f.identity.value < 0 and f.combine == Call("maximum", (a, b), f.var.dtype):
        return "largest"
    if f.identity.value > 0 and f.combine == Call("minimum", (a, b), f.var.dtype):
        return "smallest"
    return ""
