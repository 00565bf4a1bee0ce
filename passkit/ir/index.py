"""Index arithmetic of loop IR: int64 literals, sums and products."""

from __future__ import annotations

from functools import lru_cache

from passkit.ast.expr import Binary, Const, Expr, SizeOf, const
from passkit.ast.tidy import replace_children
from passkit.values.dtype import int64


@lru_cache(maxsize=4096)
def literal(value: int) -> Const:
    """Return an int64 literal."""
    return const(value, int64)


def plus(a: Expr, b: Expr) -> Expr:
    """Return ``a + b`` of indices; a zero is left out."""
    if a == literal(0):
        return b
    return a if b == literal(0) else Binary("+", a, b, int64)


def times(a: Expr, factor: int) -> Expr:
    """Return ``a * factor`` of an index; a factor of 1 is left out."""
    return a if factor == 1 else Binary("*", a, literal(factor), int64)


def with_literals(x: Expr) -> Expr:
    """Return an index with literals in place of known sizes."""
    if isinstance(x, SizeOf) and isinstance(x.size, int):
        return literal(x.size)
    return replace_children(x, with_literals)
