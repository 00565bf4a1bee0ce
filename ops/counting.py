"""Sizes as numbers that a graph computes with."""

from __future__ import annotations

from passkit.graph.node import Entry, constant
from passkit.ops.helpers import make
from passkit.values.size import Extent, Size


def number_of(size: Extent) -> Entry:
    """A size as a number: a symbol is the sum of so many ones."""
    if not isinstance(size, Size):
        return constant(size, "int64")
    total = constant(0, "int64")
    for monomial, coefficient in size.terms:
        term = constant(coefficient, "int64")
        for atom in monomial:
            if isinstance(atom, str):
                ones = make("full", shape=(Size.symbol(atom),), fill_value=1, dtype="int64")
                factor = make("reduce_sum", ones)
            else:
                factor = number_of(atom.numerator) // number_of(atom.denominator)
            term = term * factor
        total = total + term
    return total
