"""Bounds of index sums with symbolic coefficients, from the extents of variables and conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gcd

from attrs import frozen

from passkit.ast.expr import Binary, Const, Expr, SizeOf, Unary, Var
from passkit.ast.index import Sum, add, normal, times
from passkit.ast.walk import minimum_operands
from passkit.values.size import Extent, at_least, divide_exactly, known_factor

_SWAPPED = {">": "<", ">=": "<="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}


@frozen
class SizeBounds:
    """Bounds of the variables of an index.

    Those of threads, called ``@…``, and the numbers of iterations, called ``…'``, are not negative.

    Attributes:
        extents: exclusive upper bounds of variables, by name.
        facts: sums that are not negative.
        limits: sizes that an index may be below, which are tried for dividends.
    """

    extents: Mapping[str, Extent]
    facts: tuple[Sum, ...]
    limits: tuple[Extent, ...]

    def sum(self, x: Expr) -> Sum:
        """Return an index as a canonical sum."""
        return normal(x, self.extents)

    def is_below(self, x: Sum, limit: Extent) -> bool:
        """Return whether ``0 <= x < limit`` is certain."""
        if not self._is_index(x):
            return False
        gap = add(Sum((), limit - 1), x, -1)
        return self._is_natural(gap) or any(
            self._is_natural(rest) for f in self.facts for rest in _less(gap, f)
        )

    def _is_index(self, x: Sum) -> bool:
        """Return whether a sum is of indices, of which none is negative, and of natural numbers."""
        return at_least(x.constant, 0) and all(
            at_least(c, 0) and self._is_index_atom(atom) for atom, c in x.terms
        )

    def _is_index_atom(self, atom: Expr) -> bool:
        """Return whether an atom is an index, or a quotient or remainder of indices."""
        match atom:
            case Var(name):
                return name.startswith("@") or name.endswith("'")
            case Binary("//" | "%", a, b) if isinstance(b, (Const, SizeOf)):
                return self._is_index(self.sum(a))  # sizes that divide are positive
        return False

    def _is_natural(self, x: Sum) -> bool:
        """Return whether a sum is certainly not negative."""
        lowest = x.constant
        for atom, c in x.terms:
            if at_least(c, 0) and self._is_index_atom(atom):
                continue
            count = self.count(atom) if at_least(0, c) else None
            if count is None:
                return False
            lowest = lowest + c * (count - 1)
        return at_least(lowest, 0)

    def count(self, atom: Expr) -> Extent | None:
        """Return an exclusive upper bound of an atom of a sum; None if none is known."""
        own, by_facts = self.count_by_form(atom), self._count_by_facts(atom)
        if own is None or (isinstance(own, int) and by_facts is not None and by_facts < own):
            return by_facts
        return own

    def count_by_form(self, atom: Expr) -> Extent | None:
        """Return the exclusive upper bound that an atom has as a variable, quotient or remainder.

        None if none is known.
        """
        match atom:
            case Var(name):
                return self.extents.get(name)
            case Binary("%", _, b) if isinstance(b, (Const, SizeOf)):
                return self.sum(b).constant
            case Binary("//", a, b) if isinstance(b, (Const, SizeOf)):
                dividend, divisor = self.sum(a), self.sum(b).constant
                highest = self._highest(dividend)
                if isinstance(highest, int) and isinstance(divisor, int):
                    return highest // divisor + 1
                least: Extent | None = None
                for limit in self.limits:
                    quotient = divide_exactly(limit, divisor)
                    if quotient is None or (least is not None and at_least(quotient, least)):
                        continue
                    if self.is_below(dividend, limit):
                        least = quotient
                return least
        return None

    def _count_by_facts(self, atom: Expr) -> int | None:
        """Return the exclusive upper bound that a fact gives to an atom by itself, if one does."""
        for fact in self.facts:
            of_atom = next((c for a, c in fact.terms if a == atom), 0)
            if not isinstance(of_atom, int) or not isinstance(fact.constant, int) or of_atom >= 0:
                continue
            if all(at_least(0, c) and self._is_index_atom(a) for a, c in fact.terms):
                return max(1, fact.constant // -of_atom + 1)
        return None

    def _highest(self, x: Sum) -> int | None:
        """Return the largest value of a sum of variables with known extents; None for another."""
        highest = x.constant
        for atom, c in x.terms:
            count = self.extents.get(atom.name) if isinstance(atom, Var) else None
            if count is None or not at_least(c, 0):
                return None
            highest = highest + c * (count - 1)
        return highest if isinstance(highest, int) else None

    def facts_of(self, condition: Expr, holds: bool = True) -> Iterator[Sum]:
        """Yield sums that are not negative where a condition holds, or where it does not."""
        match condition:
            case Unary("~", x):
                yield from self.facts_of(x, not holds)
            case Binary("&", a, b) if holds:
                yield from self.facts_of(a)
                yield from self.facts_of(b)
            case Binary("<" | "<=" | ">" | ">=", a, b):
                op = condition.op if holds else _NEGATED[condition.op]
                if op in _SWAPPED:
                    a, b, op = b, a, _SWAPPED[op]
                for limit in minimum_operands(b, {}):
                    gap = add(self.sum(limit), self.sum(a), -1)
                    yield positive(gap) if op == "<" else gap


def _less(x: Sum, fact: Sum) -> Iterator[Sum]:
    """Yield differences of multiples of ``x`` and ``fact``.

    If ``fact`` and one of them are not negative, ``x`` is not negative. They are ``x - fact``, and
    the differences of those multiples in which an atom cancels out.
    """
    yield add(x, fact, -1)
    own = dict(x.terms)
    for atom, c in fact.terms:
        k = own.get(atom, 0)
        up, down = divide_exactly(k, c), divide_exactly(c, k)
        if up is not None and up != 1 and at_least(up, 1):
            yield add(x, fact, up * -1)
        elif down is not None and down != 1 and at_least(down, 1):
            yield add(times(x, down), fact, -1)


def positive(x: Sum) -> Sum:
    """Return a sum that is not negative where ``x`` is positive: less what divides all of it."""
    factor = gcd(known_factor(x.constant), *(known_factor(c) for _, c in x.terms))
    return Sum(x.terms, x.constant - max(1, factor))
