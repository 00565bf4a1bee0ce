"""Indices of a kernel AST as sums of iterations, and which iterations share an element.

Insertion of barriers and the race check read indices here; what follows from them each decides by
itself. Iteration k of a loop over threads is always the same thread's, wherever the loop begins and
whichever way it runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping, Sequence
from functools import cached_property, lru_cache

from attrs import define, field, frozen

from passkit.ast import Binary, Const, Expr, Select, SizeOf, Unary, Var
from passkit.ast.index import Sum, add, expression, operation, times
from passkit.ast.stage import Let, Loop
from passkit.ast.tidy import parts, replace_children
from passkit.ast.walk import children, minimum_operands, variables
from passkit.checks.mixed_radix import are_digits
from passkit.values.dtype import int64
from passkit.values.size import Extent, at_least

THREAD, ROW = Var("THREAD", int64), Var("ROW", int64)
"""The iteration of a loop over the threads of a row or tile, and of a loop over rows."""
MAX_PARTS = 256
"""The number of operators and leaves of a subexpression beyond which an index is unknown."""

Bounds = tuple[Extent | None, ...]
"""Upper bounds of a number of values, of which each holds; None for one that is not known."""
Terms = tuple[tuple[Expr, Extent], ...]
"""Atoms with their coefficients."""
RowRange = tuple[Extent, Terms]
"""The distance of two rows in elements, and the terms of the index where the first row begins."""


@lru_cache(maxsize=1 << 13)
def variables_of(atom: Expr) -> frozenset[Var]:
    """Return the variables in an atom of a sum."""
    return frozenset(variables(atom))


@frozen
class IndexRange:
    """The elements that an index may be, from ``base + low`` to ``base + high``.

    Attributes:
        base: terms that do not depend on loops.
        low: the lowest offset.
        high: the highest offset.
    """

    base: Terms
    low: Extent
    high: Extent


class ElementIndex:
    """An index in a scope, by all threads and in all iterations of the loops around it.

    Attributes:
        sum: the index; None if it is loaded, or contains another function, or is too long.
        scope: the scope.
    """

    def __init__(self, total: Sum | None, scope: IndexScope) -> None:
        self.sum, self.scope = total, scope
        self._injective: dict[tuple[tuple[Var, ...], frozenset[Var]], bool] = {}

    def depends_on(self, var: Var) -> bool:
        """Return whether the element depends on an iteration or another variable."""
        return self.sum is None or any(var in variables_of(a) for a, _ in self.sum.terms)

    def is_injective(self, *iterations: Var, fixed: frozenset[Var] = frozenset()) -> bool:
        """Return whether no element is accessed in two different ``iterations`` of any loop.

        They are not if all iterations are digits of the index in a mixed radix.

        Args:
            iterations: the iterations that have to differ.
            fixed: iterations that are compared at equal values only.
        """
        key = iterations, fixed
        if key not in self._injective:
            self._injective[key] = self.sum is not None and self._differs(*key)
        return self._injective[key]

    def _differs(self, iterations: Container[Var], fixed: Container[Var]) -> bool:
        """Return what `is_injective` does, for an index that is known."""
        assert self.sum is not None
        loops = [v for v in self.scope.loops if v not in fixed]
        counts: dict[Expr, Bounds] = {}
        for loop in loops:
            if self.sum.coefficient(loop) != 0:
                counts[loop] = self.scope.loops[loop].bounds or (None,)
            elif self.depends_on(loop):
                own = digits(self.sum, loop, self.scope.loops[loop].bounds)
                counts |= {atom: bounds or (None,) for atom, bounds in own.items()}
            elif loop in iterations and not self.runs_once(loop):
                return False
        for atom, _ in self.sum.terms:
            if atom not in counts and not variables_of(atom).isdisjoint(loops):
                return False
        steps = [(c, counts[a]) for a, c in self.sum.terms if a in counts]
        if len(steps) < 2:
            return True
        coefficients = [c for c, _ in steps]
        return any(
            are_digits(zip(coefficients, bounds, strict=True))
            for bounds in itertools.product(*(b for _, b in steps))
        )

    def runs_once(self, loop: Var) -> bool:
        """Return whether a loop has one iteration, or is not around the access."""
        return loop not in self.scope.loops or 1 in self.scope.loops[loop].bounds

    def range(self, except_for: Var | None = None) -> IndexRange | None:
        """Return the elements over the iterations of all loops but one; None if unknown."""
        if self.sum is None:
            return None
        low = high = self.sum.constant
        base: list[tuple[Expr, Extent]] = []
        for atom, step in self.sum.terms:
            if atom == except_for:
                continue
            if not isinstance(atom, Var) or atom not in self.scope.loops:
                if not variables_of(atom).isdisjoint(self.scope.loops):
                    return None
                base.append((atom, step))
                continue
            bounds = self.scope.loops[atom].bounds
            if not bounds:
                return None
            count = next((b for b in bounds if isinstance(b, int)), bounds[0])
            if at_least(step, 0):
                high = high + step * (count - 1)
            elif at_least(0, step):
                low = low + step * (count - 1)
            else:
                return None
        return IndexRange(tuple(base), low, high)

    @cached_property
    def row_range(self) -> RowRange | None:
        """The elements of each row, if they are certainly those of no other row."""
        if self.sum is None:
            return None
        if self.runs_once(ROW):
            return 0, ()
        within, pitch = self.range(except_for=ROW), self.sum.coefficient(ROW)
        if within is None or not at_least(within.low, 0) or not at_least(pitch, within.high + 1):
            return None
        return pitch, within.base

    @cached_property
    def is_literal(self) -> bool:
        """Whether coefficients and trip counts are numbers: tests that fail are then exact."""
        if self.sum is None or not all(
            isinstance(a, Var) and isinstance(c, int) for a, c in self.sum.terms
        ):
            return False
        return isinstance(self.sum.constant, int) and all(
            any(isinstance(b, int) for b in n.bounds) for n in self.scope.loops.values()
        )


def may_meet(a: ElementIndex, b: ElementIndex) -> bool:
    """Return whether two accesses to one array may have an element in common."""
    x, y = a.range(), b.range()
    if x is None or y is None or x.base != y.base:
        return True
    return not (at_least(x.low, y.high + 1) or at_least(y.low, x.high + 1))


class TripCount:
    """Upper bounds of the number of iterations of a loop, computed when they are first needed.

    Args:
        loop: the loop.
        start: its start; None if it is unknown.
        scope: the scope around it.
    """

    def __init__(self, loop: Loop, start: Sum | None, scope: IndexScope) -> None:
        self._loop, self._start, self._scope = loop, start, scope

    @cached_property
    def bounds(self) -> tuple[Extent, ...]:
        """The upper bounds; an empty tuple if there is none."""
        loop, start, scope = self._loop, self._start, self._scope
        if start is None:
            return ()
        ends = [loop.stop] if loop.limit is None else [loop.stop, loop.limit]
        operands = (x for end in ends for x in minimum_operands(end, scope.definitions))
        trips = (add(x, start, -1) for x in map(scope.sum, operands) if x is not None)
        return tuple(x.constant for x in trips if all(at_least(0, c) for _, c in x.terms))


@define(eq=False)
class IndexScope:
    """The variables at a statement.

    Attributes:
        sizes: the values of the size arguments.
        sums: variables as sums of iterations and sizes; None where unknown.
        definitions: the values of local variables.
        loops: the loops around the statement, by iteration.
        elements: the indices that were read.
    """

    sizes: Mapping[str, Extent]
    sums: dict[str, Sum | None] = field(factory=dict)
    definitions: dict[str, Expr] = field(factory=dict)
    loops: dict[Var, TripCount] = field(factory=dict)
    elements: dict[Expr, ElementIndex] = field(factory=dict)

    def inner(self) -> IndexScope:
        """Return a copy for a nested scope."""
        return IndexScope(self.sizes, dict(self.sums), dict(self.definitions), dict(self.loops))

    def define(self, let: Let) -> None:
        """Add a local variable."""
        self.definitions[let.var.name] = let.value
        if self.sums.pop(let.var.name, None) is not None:
            self.elements.clear()

    def enter(self, loop: Loop, iteration: Var | None = None) -> None:
        """Add a loop, whose iterations are counted by ``iteration`` or else by its variable."""
        var = loop.var if iteration is None else iteration
        start = first = self.sum(loop.start)
        if loop.down:
            stop = None if loop.limit is not None else self.sum(loop.stop)
            first = None if stop is None else add(stop, Sum((), -1))
        self.loops[var] = TripCount(loop, start, self)
        step = -1 if loop.down else 1
        self.sums[loop.var.name] = None if first is None else add(first, Sum(((var, step),)))

    @property
    def trip_counts(self) -> tuple[tuple[Var, tuple[Extent, ...]], ...]:
        """The loops around the statement, each with bounds of its trip count."""
        return tuple((v, n.bounds) for v, n in self.loops.items())

    def element(self, at: Expr) -> ElementIndex:
        """Return an index in this scope; the same object for equal indices."""
        element = self.elements.get(at)
        if element is None:
            element = self.elements[at] = ElementIndex(self.sum(at), self)
        return element

    def sum(self, x: Expr) -> Sum | None:
        """Return an index as a sum of iterations and sizes; None if it is unknown."""
        match x:
            case Const():
                return Sum((), x.integer)
            case SizeOf():
                return Sum((), x.size)
            case Var(name):
                return self._variable(x, name)
            case Unary("-", a):
                inner = self.sum(a)
                return None if inner is None else times(inner, -1)
            case Binary() | Select():
                sums = [self.sum(y) for y in children(x)]
                operands = [y for y in sums if y is not None]
                return None if len(operands) < len(sums) else _combined(x, operands)
        return None

    def _variable(self, x: Var, name: str) -> Sum | None:
        """Return the sum of a variable."""
        if name in self.sizes:
            return Sum((), self.sizes[name])
        if name not in self.sums and name in self.definitions:
            self.sums[name] = self.sum(self.definitions[name])
        return self.sums[name] if name in self.sums else Sum(((x, 1),))


def _combined(x: Binary | Select, operands: Sequence[Sum]) -> Sum | None:
    """Return an operation on sums as one; None if it is too long.

    A quotient by 0, which only an index into an empty array has, is an atom like any other.
    """
    total = None
    if isinstance(x, Binary) and not (x.op in ("//", "%") and operands[1] == Sum(())):
        total = operation(x.op, operands[0], operands[1], {})
    if total is None:
        new = map(expression, operands)
        total = Sum(((replace_children(x, lambda _: next(new)), 1),))
    atoms = (a for a, _ in total.terms if not isinstance(a, Var))
    return None if any(_is_long(a) for a in atoms) else total


@lru_cache(maxsize=1 << 13)
def _is_long(atom: Expr) -> bool:
    """Return whether an expression has more parts than an index may have."""
    return parts(atom) > MAX_PARTS


# Digits.


def digits(index: Sum, iteration: Var, trip_bounds: tuple[Extent, ...]) -> dict[Expr, Bounds]:
    """Return the atoms of an index that are the digits of an iteration in a mixed radix.

    Args:
        index: the index.
        iteration: the iteration.
        trip_bounds: upper bounds of its number of iterations.

    Returns: for each digit upper bounds of its number of values. Empty if the digits do not
    determine the iteration, or if it occurs in another way.

    >>> row = Var("row", int64)
    >>> list(digits(Sum(((row % 3, 4), (row // 3, 1))), row, (12,)).values())
    [(3,), (4,)]
    """
    by_place: dict[Extent, tuple[Expr, Extent | None]] = {}
    for atom, _ in index.terms:
        if iteration in variables_of(atom):
            digit = _digit(atom, iteration)
            if digit is None or digit[0] in by_place:
                return {}
            by_place[digit[0]] = atom, digit[1]
    counts: dict[Expr, Bounds] = {}
    place: Extent = 1
    while place in by_place:
        atom, radix = by_place.pop(place)
        counts[atom] = tuple((n + place - 1) // place for n in trip_bounds)
        if radix is None:
            return {} if by_place else counts
        counts[atom] = (radix,)
        place = place * radix
    is_complete = not by_place and any(at_least(place, n) for n in trip_bounds)
    return counts if is_complete else {}


def _digit(atom: Expr, iteration: Var) -> tuple[Extent, Extent | None] | None:
    """Return the place value of a digit of an iteration, and its radix.

    The radix is None for the leading digit. Returns None if the atom is not a digit.
    """
    if atom == iteration:
        return 1, None
    match atom:
        case Binary("//" | "%" as op, a, Const() | SizeOf() as b):
            inner = _digit(a, iteration)
            divisor = b.integer if isinstance(b, Const) else b.size
            if inner is None or inner[1] is not None:
                return None
            return (inner[0] * divisor, None) if op == "//" else (inner[0], divisor)
    return None
