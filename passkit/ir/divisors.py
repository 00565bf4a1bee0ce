"""Divisors of indices: a power of two that divides an index, whatever its variables are."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from passkit.ast.expr import Binary, Const, Expr, Select, SizeOf, Var

LARGEST = 1 << 20


def divisor_of(x: Expr, definitions: Mapping[str, Expr]) -> int:
    """Return a power of two that divides an index, whatever its variables are.

    Args:
        x: the index.
        definitions: the values of variables that are defined in front of it.
    """
    if isinstance(x, Var):
        value = definitions.get(x.name)
        return 1 if value is None else divisor_of(value, definitions)
    if isinstance(x, Const):
        return LARGEST if x.integer == 0 else gcd(x.integer, LARGEST)
    match x:
        case SizeOf(int() as size):
            return LARGEST if size == 0 else gcd(size, LARGEST)
        case Binary("+" | "-" | "%", a, b) | Select(_, a, b):
            return gcd(divisor_of(a, definitions), divisor_of(b, definitions))
        case Binary("*", a, b):
            return min(LARGEST, divisor_of(a, definitions) * divisor_of(b, definitions))
    return 1
