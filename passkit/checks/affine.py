"""Indices as sums of terms that are equal in all threads of a block, and numbers for each thread.

An index of loop IR is evaluated for all threads of a block and all iterations of the loops around
it at once. What no literal gives, such as the index of the block, is an `IndexAtom` with a
coefficient; the rest are arrays of lower and upper bounds, which are equal where the value is
known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from passkit.ast.expr import Binary, Const, Expr, Select, Var
from passkit.ir.loop import Bind, IsAligned, ThreadIndex

Array = Any
FAR = 1 << 60
"""The bound of what has none."""


@frozen
class IndexAtom:
    """A value that is not known: the index of the block, a size, or a quotient or remainder.

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
        """Return what is equal for equal sums."""
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
        low = np.clip(self.low * factor, -FAR, FAR) if self.is_far else self.low * factor
        if self.low is self.high:
            return Affine(terms, low, low)
        high = np.clip(self.high * factor, -FAR, FAR) if self.is_far else self.high * factor
        return Affine(terms, low, high) if factor >= 0 else Affine(terms, high, low)

    @property
    def is_far(self) -> bool:
        """Return whether a bound is missing somewhere."""
        return self.low is not self.high and bool(
            (self.low <= -FAR).any() or (self.high >= FAR).any()
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
        return Affine(kept, np.clip(low, -FAR, FAR), np.clip(high, -FAR, FAR))


@lru_cache(maxsize=256)
def _number(rank: int, value: int) -> Affine:
    """Return a number that is the same at all points of ``rank`` axes."""
    array = np.full((1,) * rank, value, np.int64)
    return Affine((), array, array)


def count_of(atom: IndexAtom) -> int | None:
    """Return the number of values of an atom, which begin at 0; None if it has no known limit."""
    if atom.inner is None:
        return atom.count
    if atom.name == "%":
        return atom.divisor
    top = _top(atom.inner)
    return None if top is None else top // atom.divisor + 1


def _is_of_block(x: Affine) -> bool:
    """Return whether a sum is the same in all threads of a block."""
    is_one = x.is_exact and x.low.size == 1
    return is_one and all(a.inner is None or _is_of_block(a.inner) for a, _ in x.terms)


def _top(x: Affine) -> int | None:
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


@frozen
class Context:
    """The values and conditions that hold at a statement.

    Attributes:
        rank: the number of axes.
        forms: the values of variables of loops and threads.
        definitions: the values of `LetStmt` variables.
        facts: sums that are not negative.
        settled: conditions whose values follow from branches around the statement.
        mask: the points that come here, as far as is known.
        cache: values, conditions and inner contexts that were computed.
    """

    rank: int
    forms: Mapping[str, Affine]
    definitions: Mapping[str, Expr]
    facts: tuple[Affine, ...]
    settled: Mapping[Expr, bool]
    mask: Array
    cache: dict[Any, Any] = field(factory=dict)

    def number(self, value: int) -> Affine:
        """Return a literal."""
        return _number(self.rank, value)

    def unknown(self) -> Affine:
        """Return a number that may be any."""
        array = np.full((1,) * self.rank, FAR, np.int64)
        return Affine((), -array, array)

    def along(self, axis: int, values: Array) -> Affine:
        """Return numbers along an axis."""
        array = np.asarray(values, np.int64).reshape(
            [-1 if k == axis else 1 for k in range(self.rank)]
        )
        return Affine((), array, array)

    def atom(self, atom: IndexAtom) -> Affine:
        """Return an atom as a sum."""
        zero = self.number(0).low
        return Affine(((atom, 1),), zero, zero)

    # Values.

    def value(self, x: Expr) -> Affine:
        """Return an index; an unknown number where it is not understood."""
        value = self.cache.get(x)
        if value is None:
            value = self.cache[x] = self._value(x)
        return value

    def _value(self, x: Expr) -> Affine:
        """Return an index that is not in the cache."""
        if isinstance(x, Const):
            return self.number(x.integer)
        if isinstance(x, Binary):
            return self._operation(x)
        match x:
            case Var(name):
                if name in self.forms:
                    return self.forms[name]
                if name in self.definitions:
                    return self.value(self.definitions[name])
            case ThreadIndex(bind):
                return self.forms[f"@{bind.value}"]
            case Select(condition, a, b):
                return self._selected(condition, a, b)
        return self.unknown()

    def _operation(self, x: Binary) -> Affine:
        """Return the value of an operation; an unknown number where it is not understood."""
        op, a, b = x.op, self.value(x.a), self.value(x.b)
        if op in ("+", "-"):
            total = a + (b if op == "+" else b.scaled(-1))
            return self._distributed(x) if total.is_far else total
        if op == "*":
            return self._product(a, b)
        if op in ("//", "%") and b.is_literal and b.low.item() > 0:
            return self._divided(op, a, int(b.low.item()))
        return self.unknown()

    def _product(self, a: Affine, b: Affine) -> Affine:
        """Return a product of two sums."""
        for x, y in ((a, b), (b, a)):
            if x.is_literal:
                return y.scaled(int(x.low.item()))
        if a.terms or b.terms or not (a.is_exact and b.is_exact):
            return self.unknown()
        low = a.low * b.low
        return Affine((), low, low)

    def _divided(self, op: str, a: Affine, d: int) -> Affine:
        """Return a quotient or remainder of a sum that is not negative."""
        top = _top(a)
        if top is not None and top < d and a.is_exact and int(a.low.min()) >= 0:
            return a if op == "%" else self.number(0)
        whole = tuple((x, c // d) for x, c in a.terms if c % d == 0)
        if len(whole) == len(a.terms):
            if a.is_exact:
                low = a.low // d if op == "//" else a.low % d
                return Affine(whole if op == "//" else (), low, low)
            if op == "//":
                return Affine(whole, a.low // d, a.high // d)
            inside = (a.low >= 0) & (a.high < d) & (not a.terms)
            return Affine((), np.where(inside, a.low, 0), np.where(inside, a.high, d - 1))
        return self.unknown() if a.is_far else self.atom(IndexAtom(op, a, d))

    def _distributed(self, x: Binary) -> Affine:
        """Return a sum or difference with a selection on its left, of each of its values."""
        chosen = x.a
        while isinstance(chosen, Var) and chosen.name in self.definitions:
            chosen = self.definitions[chosen.name]
        if not isinstance(chosen, Select):
            return self.unknown()
        a, b = evolve(x, a=chosen.a), evolve(x, a=chosen.b)
        return self._selected(chosen.condition, a, b)

    def _selected(self, condition: Expr, a: Expr, b: Expr) -> Affine:
        """Return a selection: one of its values where the condition is settled, else the hull."""
        if condition in self.settled:
            return self.value(a if self.settled[condition] else b)
        must, may = self.holds(condition)
        if must.all():
            return self.value(a)
        if not may.any():
            return self.value(b)
        first = self.where(condition, True).value(a)
        then = self.where(condition, False).value(b)
        if first.terms != then.terms:
            first, then = self.bounded(first, condition, True), self.bounded(then, condition, False)
        if first.terms != then.terms:
            return self.unknown()
        low = np.where(must, first.low, np.where(may, np.minimum(first.low, then.low), then.low))
        high = np.where(
            must, first.high, np.where(may, np.maximum(first.high, then.high), then.high)
        )
        return Affine(first.terms, low, high)

    def bounded(self, x: Affine, condition: Expr, holds: bool) -> Affine:
        """Return a sum as a number within the bounds that facts give, where a condition is so."""
        return self.where(condition, holds).interval(x)

    def interval(self, x: Affine) -> Affine:
        """Return a sum as a number within the bounds that the facts give."""
        if not x.terms:
            return x
        low, high = np.full_like(x.low, -FAR), np.full_like(x.high, FAR)
        for fact in self.facts:
            above = x + fact
            if not above.terms:  # x = above - fact, and fact >= 0
                high = np.minimum(high, above.high)
            below = x + fact.scaled(-1)
            if not below.terms:  # x = below + fact
                low = np.maximum(low, below.low)
        return Affine((), low, high)

    # Conditions.

    def holds(self, condition: Expr) -> tuple[Array, Array]:
        """Return where a condition certainly holds, and where it may hold."""
        key = "holds", condition
        pair = self.cache.get(key)
        if pair is None:
            pair = self.cache[key] = self._holds(condition)
        return pair

    def _holds(self, condition: Expr) -> tuple[Array, Array]:
        """Return where a condition that is not in the cache certainly and possibly holds."""
        always, never = np.ones((1,) * self.rank, bool), np.zeros((1,) * self.rank, bool)
        if condition in self.settled:
            return (always, always) if self.settled[condition] else (never, never)
        match condition:
            case Binary("&", a, b):
                first, then = self.holds(a), self.holds(b)
                return first[0] & then[0], first[1] & then[1]
            case Binary("==", a, b):
                x = self.interval(self.value(a) + self.value(b).scaled(-1))
                return (x.low == 0) & (x.high == 0), (x.low <= 0) & (x.high >= 0)
        margin = self.margin(condition)
        if margin is None:
            return never, always
        x = self.interval(margin)
        return x.low >= 0, x.high >= 0

    def margin(self, condition: Expr, is_so: bool = True) -> Affine | None:
        """Return a sum that is not negative exactly where a comparison is, or is not, so."""
        match condition:
            case Binary("<" | "<=" | ">" | ">=", a, b):
                op = (
                    condition.op
                    if is_so
                    else {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}[condition.op]
                )
                small, large = (a, b) if op in ("<", "<=") else (b, a)
                gap = self.value(large) + self.value(small).scaled(-1)
                return gap + self.number(-1) if op in ("<", ">") else gap
        return None

    def where(self, condition: Expr, holds: bool) -> Context:
        """Return the context where a condition holds, or where it does not."""
        key = holds, condition
        context = self.cache.get(key)
        if context is None:
            context = self.cache[key] = self._where(condition, holds)
        return context

    def _where(self, condition: Expr, holds: bool) -> Context:
        """Return the context, which is not in the cache, where a condition holds or does not."""
        if isinstance(condition, Binary) and condition.op == "&" and holds:
            return self.where(condition.a, True).where(condition.b, True)
        margin = self.margin(condition, holds)
        facts = self.facts if margin is None or margin.is_far else (*self.facts, margin)
        must, may = self.holds(condition)
        mask = self.mask & (may if holds else ~must)
        settled = {**self.settled, condition: holds}
        return Context(self.rank, self.forms, self.definitions, facts, settled, mask)

    def defined(self, name: str, value: Expr) -> Context:
        """Return the context behind the definition of a variable.

        Values that were computed stay, but no inner contexts, which do not have the definition.
        """
        definitions = {**self.definitions, name: value}
        if name not in self.forms and name not in self.definitions:
            cache = {k: v for k, v in self.cache.items() if type(v) is not Context}
            return self._with(self.forms, definitions, self.mask, cache)
        forms = {k: v for k, v in self.forms.items() if k != name}
        return self._with(forms, definitions, self.mask, {})

    def with_form(self, name: str, form: Affine, mask: Array | None = None) -> Context:
        """Return the context with a value of a variable, and with fewer points."""
        inside = self.mask if mask is None else self.mask & mask
        return self._with({**self.forms, name: form}, self.definitions, inside, {})

    def _with(
        self,
        forms: Mapping[str, Affine],
        definitions: Mapping[str, Expr],
        mask: Array,
        cache: dict[Any, Any],
    ) -> Context:
        """Return the context with other values of variables."""
        return Context(self.rank, forms, definitions, self.facts, self.settled, mask, cache)

    def is_uniform(self, condition: Expr) -> bool:
        """Return whether a condition is the same in all threads of a block."""
        if isinstance(condition, Binary) and condition.op == "&":
            return self.is_uniform(condition.a) and self.is_uniform(condition.b)
        margin = self.margin(condition)
        if margin is None:
            return isinstance(condition, IsAligned)
        return _is_of_block(margin)

    def distance(self, start: Expr, stop: Expr) -> Affine:
        """Return how far ``stop`` is from ``start``, as bounds."""
        return self.interval(self.value(Binary("-", stop, start, start.dtype)))


def context_of_threads(
    rank: int, y: int, x: int, blocks: int | None, sizes: Mapping[str, int | None]
) -> Context:
    """Return the context at the begin of a kernel.

    Args:
        rank: the number of axes; the first two are THREAD_Y and THREAD_X.
        y: the extent of THREAD_Y.
        x: the extent of THREAD_X.
        blocks: the number of blocks; None if it is not known.
        sizes: the size arguments by name, with their values if these are known.
    """
    empty = Context(rank, {}, {}, (), {}, np.ones((1,) * rank, bool))
    grid = empty.number(0) if blocks == 1 else empty.atom(IndexAtom("block", count=blocks))
    forms = {
        f"@{Bind.GRID.value}": grid,
        f"@{Bind.THREAD_Y.value}": empty.along(0, np.arange(y)),
        f"@{Bind.THREAD_X.value}": empty.along(1, np.arange(x)),
        **{
            name: empty.atom(IndexAtom(name)) if n is None else empty.number(n)
            for name, n in sizes.items()
        },
    }
    return evolve(empty, forms=forms)
