"""Indices as sums of terms that are equal in all threads of a block, and numbers for each thread.

An index of loop IR is evaluated for all threads of a block and all iterations of the loops around
it at once. An unknown value, such as the index of the block, is an `IndexAtom` with a coefficient;
the rest are arrays of lower and upper bounds, which are equal where the value is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import frozen

Array = Any
UNBOUNDED = 1 << 60
"""The bound of a number without one."""


@frozen
class IndexAtom:
    """An unknown value: the index of the block, a size, or a quotient or remainder.

    Attributes:
        name: its name; of quotients and remainders ``//`` or ``%``.
        inner: the dividend, for quotients and remainders.
        divisor: the divisor.
        count: the number of values of others, if it is known: they are below it, and not negative.
    """

    name: str
    inner: Affine | None = None
    divisor: int = 0
    count: int | None = None


@frozen(eq=False)
class Affine:
    """``sum(coefficient * atom) + number`` with ``low <= number <= high``.

    ``low`` and ``high`` have an axis for each thread index and loop, of length 1 where the value
    does not depend on it.
    """

    terms: tuple[tuple[IndexAtom, int], ...]
    low: Array
    high: Array

    @property
    def key(self) -> tuple[Any, ...]:
        """Return a tuple that equals that of equal sums only."""
        return self.terms, self.low.shape, self.low.tobytes(), self.high.tobytes()

    def __eq__(self, other: object) -> bool:
        """Return whether terms and numbers are equal."""
        return isinstance(other, Affine) and self.key == other.key

    def __hash__(self) -> int:
        """Return the hash of terms and numbers."""
        return hash(self.key)

    @property
    def is_exact(self) -> bool:
        """Return whether the number is known everywhere."""
        return self.low is self.high or bool(np.array_equal(self.low, self.high))

    @property
    def is_literal(self) -> bool:
        """Return whether it is one known number."""
        return not self.terms and self.is_exact and self.low.size == 1

    def scaled(self, factor: int) -> Affine:
        """Return the sum times a factor."""
        if factor == 1:
            return self
        terms = tuple((a, c * factor) for a, c in self.terms) if factor else ()
        low = (
            np.clip(self.low * factor, -UNBOUNDED, UNBOUNDED)
            if self.is_unbounded
            else self.low * factor
        )
        if self.low is self.high:
            return Affine(terms, low, low)
        high = (
            np.clip(self.high * factor, -UNBOUNDED, UNBOUNDED)
            if self.is_unbounded
            else self.high * factor
        )
        return Affine(terms, low, high) if factor >= 0 else Affine(terms, high, low)

    @property
    def is_unbounded(self) -> bool:
        """Return whether a bound is missing somewhere."""
        return self.low is not self.high and bool(
            (self.low <= -UNBOUNDED).any() or (self.high >= UNBOUNDED).any()
        )

    def __add__(self, other: Affine) -> Affine:
        """Return the sum of both; quotient and remainder by one divisor give their dividend."""
        if not self.terms or not other.terms:
            return self._with_numbers(self.terms or other.terms, other)
        terms = dict(self.terms)
        for atom, c in other.terms:
            terms[atom] = terms.get(atom, 0) + c
        for atom, _ in (*self.terms, *other.terms):
            if atom.name == "%" and atom.inner is not None:
                whole = IndexAtom("//", atom.inner, atom.divisor)
                if whole in terms and terms[whole] == terms[atom] * atom.divisor != 0:
                    rest = {a: n for a, n in terms.items() if a not in (whole, atom)}
                    pair = Affine(tuple(rest.items()), self.low, self.high)
                    pair = pair + Affine((), other.low, other.high)
                    return pair + atom.inner.scaled(terms[atom])
        return self._with_numbers([(a, c) for a, c in terms.items() if c], other)

    def _with_numbers(self, terms: Sequence[tuple[IndexAtom, int]], other: Affine) -> Affine:
        """Return the sum of these terms and of the numbers of both."""
        kept = tuple(sorted(terms, key=_order) if len(terms) > 1 else terms)
        low = self.low + other.low
        if self.low is self.high and other.low is other.high:
            return Affine(kept, low, low)
        high = self.high + other.high
        return Affine(
            kept, np.clip(low, -UNBOUNDED, UNBOUNDED), np.clip(high, -UNBOUNDED, UNBOUNDED)
        )


@lru_cache(maxsize=256)
def literal(rank: int, value: int) -> Affine:
    """Return a number that is the same at all points of ``rank`` axes."""
    array = np.full((1,) * rank, value, np.int64)
    return Affine((), array, array)


def count_of(atom: IndexAtom) -> int | None:
    """Return the number of values of an atom, which begin at 0; None if it has no known limit."""
    if atom.inner is None:
        return atom.count
    if atom.name == "%":
        return atom.divisor
    top = top_of(atom.inner)
    return None if top is None else top // atom.divisor + 1


def is_uniform(x: Affine) -> bool:
    """Return whether a sum is the same in all threads of a block."""
    is_one = x.is_exact and x.low.size == 1
    return is_one and all(a.inner is None or is_uniform(a.inner) for a, _ in x.terms)


def top_of(x: Affine) -> int | None:
    """Return the largest value of a sum with atoms that are not negative; None if unknown."""
    top = int(x.high.max())
    for atom, c in x.terms:
        count = count_of(atom)
        if count is None or c < 0:
            return None
        top += c * (count - 1)
    return top


def _order(term: tuple[IndexAtom, int]) -> tuple[str, int, int]:
    """Return the key by which terms are sorted."""
    atom, coefficient = term
    return atom.name, atom.divisor, coefficient
