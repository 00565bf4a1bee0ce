"""Evaluation of index expressions of loop IR to `Affine` sums, in the context of a statement.

A context has the values of variables, the conditions that hold, and the facts that bound sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from passkit.ast.expr import Binary, Call, Const, Expr, Select, Unary, Var
from passkit.checks.affine import UNBOUNDED, Affine, Array, IndexAtom, is_uniform, literal, top_of
from passkit.ir.loop import Bind, IsAligned, ThreadIndex


@frozen
class Context:
    """The values and conditions that hold at a statement.

    Attributes:
        rank: the number of axes.
        forms: the values of variables of loops and threads.
        definitions: the values of `LetStmt` variables.
        facts: sums that are not negative.
        settled: conditions whose values follow from branches around the statement.
        mask: the points (threads and iterations) that may come here.
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
        return literal(self.rank, value)

    def unknown(self) -> Affine:
        """Return a number without bounds."""
        array = np.full((1,) * self.rank, UNBOUNDED, np.int64)
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
            case Call("minimum" | "maximum" as name, (a, b)):
                return self._extreme(name, self.value(a), self.value(b))
        return self.unknown()

    def _operation(self, x: Binary) -> Affine:
        """Return the value of an operation; an unknown number where it is not understood."""
        op, a, b = x.op, self.value(x.a), self.value(x.b)
        if op in ("+", "-"):
            total = a + (b if op == "+" else b.scaled(-1))
            return self._distributed(x) if total.is_unbounded else total
        if op == "*":
            return self._product(a, b)
        if op in ("//", "%") and b.is_literal and b.low.item() > 0:
            return self._divided(op, a, int(b.low.item()))
        if op == "^" and b.is_literal and a.is_exact and not a.terms:
            numbers = a.low ^ b.low
            return Affine((), numbers, numbers)
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
        top = top_of(a)
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
        return self.unknown() if a.is_unbounded else self.atom(IndexAtom(op, a, d))

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

    def _extreme(self, name: str, a: Affine, b: Affine) -> Affine:
        """Return the minimum or maximum of two sums, as ``name`` says."""
        if a.terms != b.terms:
            a, b = self.interval(a), self.interval(b)
        choose = np.minimum if name == "minimum" else np.maximum
        return Affine(a.terms, choose(a.low, b.low), choose(a.high, b.high))

    def bounded(self, x: Affine, condition: Expr, holds: bool) -> Affine:
        """Return a sum as a number within the bounds that facts give, where a condition is so."""
        return self.where(condition, holds).interval(x)

    def interval(self, x: Affine) -> Affine:
        """Return a sum as a number within the bounds that the facts give."""
        if not x.terms:
            return x
        low, high = np.full_like(x.low, -UNBOUNDED), np.full_like(x.high, UNBOUNDED)
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
        inner: Context | None = None
        if isinstance(condition, Var) and condition.name in self.definitions:
            inner = self.where(self.definitions[condition.name], holds)
        elif isinstance(condition, Unary) and condition.op == "~":
            inner = self.where(condition.x, not holds)
        if inner is not None:
            settled = {**inner.settled, condition: holds}
            facts, mask = inner.facts, inner.mask
            return Context(self.rank, self.forms, self.definitions, facts, settled, mask)
        if isinstance(condition, Binary) and condition.op == "&" and holds:
            return self.where(condition.a, True).where(condition.b, True)
        margin = self.margin(condition, holds)
        facts = self.facts if margin is None or margin.is_unbounded else (*self.facts, margin)
        must, may = self.holds(condition)
        mask = self.mask & (may if holds else ~must)
        settled = {**self.settled, condition: holds}
        if any(not so and _all_hold(x, settled) for x, so in settled.items()):
            mask = np.zeros_like(mask)  # a conjunction does not hold, and all its conditions do
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
        return is_uniform(margin)

    def distance(self, start: Expr, stop: Expr) -> Affine:
        """Return bounds of ``stop - start``."""
        return self.interval(self.value(Binary("-", stop, start, start.dtype)))


def _all_hold(condition: Expr, settled: Mapping[Expr, bool]) -> bool:
    """Return whether a condition is a conjunction, all conditions of which are settled to hold."""
    if not isinstance(condition, Binary) or condition.op != "&":
        return False
    return all(settled.get(x, False) or _all_hold(x, settled) for x in (condition.a, condition.b))


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
