"""Indices in the scope of their loops, and which threads and rows access an element.

An index is a sum over `THREAD` and `ROW`, the iterations of loops over threads and rows: iteration
k of a loop over threads is always the same thread's, wherever its loop begins.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from functools import cached_property

from attrs import define, field

from passkit.ast import Binary, Const, Expr, Select, SizeOf, Unary, Var
from passkit.ast.index import Sum, add, normal
from passkit.ast.stage import Let, Loop
from passkit.ast.tidy import parts, replace_children
from passkit.ast.walk import children, minimum_operands, variables
from passkit.checks.stage_walk import ROW, THREAD
from passkit.values import dtype as dt
from passkit.values.size import Extent, at_least

UNKNOWN = Sum(((Var("UNKNOWN", dt.int64), 1),))
"""An index that is loaded, contains another function, or is too long."""
MAX_PARTS = 64
"""The number of subexpressions of an index beyond which it is unknown."""

RowRange = tuple[Extent, tuple[tuple[Expr, Extent], ...]]
"""The distance of two rows in elements, and the terms of the index where the first row begins."""


class ElementIndex:
    """An index in a scope, and the threads and rows that access its element."""

    def __init__(self, at: Expr, scope: SumScope) -> None:
        self._at, self._scope = at, scope

    @cached_property
    def index(self) -> Sum:
        """The index as a sum of iterations and sizes; `UNKNOWN` if it cannot be one."""
        value = self._scope.resolve(self._at)
        return UNKNOWN if value is None else normal(value, {})

    @cached_property
    def has_one_thread(self) -> bool:
        """Whether an element of a row, or of a tile without rows, has one thread's iteration."""
        return any(_is_digit(THREAD, self.index, n) for n in self._trip_counts(frozenset([ROW])))

    @cached_property
    def has_one_row(self) -> bool:
        """Whether an element belongs to one row of the tile."""
        return any(_is_digit(ROW, self.index, n) for n in self._trip_counts(frozenset()))

    @cached_property
    def row_range(self) -> RowRange | None:
        """The elements of each row, if they are certainly those of no other row."""
        if self.index == UNKNOWN:
            return None
        ranges = (_row_range(self.index, n) for n in self._trip_counts(frozenset()))
        return next((r for r in ranges if r is not None), None)

    def depends_on(self, var: Var) -> bool:
        """Return whether the index contains a variable."""
        return any(var in variables(a) for a, _ in self.index.terms)

    def _trip_counts(self, fixed: frozenset[Var]) -> Iterator[dict[Var, Extent | None]]:
        """Yield upper bounds of the trip counts of all loops, in all combinations.

        An unknown one is None. The iterations ``fixed`` are left out.
        """
        bounds = {v: self._scope.trip_bounds(v) for v in self._scope.loops if v not in fixed}
        for chosen in itertools.product(*(n or (None,) for n in bounds.values())):
            yield dict(zip(bounds, chosen, strict=True))


def _is_digit(var: Var, index: Sum, trip_counts: Mapping[Var, Extent | None]) -> bool:
    """Return whether different iterations of a loop have different indices.

    They do, for any iterations of the other loops, if all iterations are digits of the index in a
    mixed radix. ``trip_counts`` are upper bounds of their numbers.
    """
    digits: list[tuple[Extent, Var]] = []
    for atom, c in index.terms:
        if isinstance(atom, Var) and atom in trip_counts:
            digits.append((-1 * c if at_least(0, c) else c, atom))
        elif index == UNKNOWN or any(v in trip_counts for v in variables(atom)):
            return False
    if trip_counts[var] != 1 and all(atom != var for _, atom in digits):
        return False
    reach: Extent = 0
    while digits:
        low = next((d for d in digits if all(at_least(o[0], d[0]) for o in digits)), None)
        if low is None or not at_least(low[0], reach + 1):
            return False
        digits.remove(low)
        count = trip_counts[low[1]]
        if count is None:
            return not digits
        reach = reach + low[0] * (count - 1)
    return True


def _row_range(index: Sum, trip_counts: Mapping[Var, Extent | None]) -> RowRange | None:
    """Return the elements of each row; None if they may be those of another row, too."""
    if trip_counts.get(ROW) == 1:
        return 0, ()
    pitch = index.coefficient(ROW)
    low = high = index.constant
    begin: list[tuple[Expr, Extent]] = []
    for atom, c in index.terms:
        if isinstance(atom, Var) and atom in trip_counts:
            count = trip_counts[atom]
            if atom == ROW:
                continue
            if count is None:
                return None
            if at_least(0, c):
                low = low + c * (count - 1)
            else:
                high = high + c * (count - 1)
        elif any(v in trip_counts for v in variables(atom)):
            return None
        else:
            begin.append((atom, c))
    is_inside = at_least(low, 0) and at_least(pitch, high + 1)
    return (pitch, tuple(begin)) if is_inside else None


@define
class SumScope:
    """The variables at a statement.

    Attributes:
        definitions: the values of local variables.
        resolved: values of variables in terms of iterations and sizes; None where unknown.
        loops: the loops around the statement with their resolved starts, by iteration.
        bounds: upper bounds of trip counts that were computed.
        elements: the indices that were analyzed.
    """

    definitions: dict[str, Expr] = field(factory=dict)
    resolved: dict[str, Expr | None] = field(factory=dict)
    loops: dict[Var, tuple[Loop, Expr | None]] = field(factory=dict)
    bounds: dict[Var, tuple[Extent, ...]] = field(factory=dict)
    elements: dict[Expr, ElementIndex] = field(factory=dict)

    def inner(self) -> SumScope:
        """Return a copy for a nested scope."""
        return SumScope(dict(self.definitions), dict(self.resolved), dict(self.loops))

    def define(self, let: Let) -> None:
        """Add a local variable."""
        if let.var.dtype is dt.int64:
            self.definitions[let.var.name] = let.value
            self.resolved.pop(let.var.name, None)
        else:
            self.resolved[let.var.name] = None

    def enter(self, loop: Loop, iteration: Var | None = None) -> None:
        """Add a loop, whose iterations are counted by ``iteration`` or else by its variable."""
        start, var = self.resolve(loop.start), loop.var if iteration is None else iteration
        self.resolved[loop.var.name] = None
        self.loops[var] = loop, start
        if start is not None and not loop.down:
            is_zero = isinstance(start, Const) and start.value == 0
            self.resolved[loop.var.name] = var if is_zero else Binary("+", start, var, dt.int64)

    def trip_bounds(self, iteration: Var) -> tuple[Extent, ...]:
        """Return upper bounds of the number of iterations of a loop; empty if there is none."""
        if iteration not in self.bounds:
            loop, start = self.loops[iteration]
            ends = [loop.stop] if loop.limit is None else [loop.stop, loop.limit]
            values = [x for x in map(self.resolve, ends) if x is not None]
            operands = [x for end in values for x in minimum_operands(end, {})]
            bounds = [] if start is None else [_trip_bound(x, start) for x in operands]
            self.bounds[iteration] = tuple(b for b in bounds if b is not None)
        return self.bounds[iteration]

    def element(self, at: Expr) -> ElementIndex:
        """Return an index in this scope; the same object for equal indices."""
        element = self.elements.get(at)
        if element is None:
            element = self.elements[at] = ElementIndex(at, self)
        return element

    def resolve(self, x: Expr) -> Expr | None:
        """Return an expression in terms of iterations and sizes; None if it is unknown."""
        return self._resolved_with_size(x)[0]

    def _resolved_with_size(self, x: Expr) -> tuple[Expr | None, int]:
        """Return a resolved expression and the number of its subexpressions."""
        if isinstance(x, Var):
            if x.name not in self.resolved and x.name in self.definitions:
                self.resolved[x.name] = self.resolve(self.definitions[x.name])
            value = self.resolved.get(x.name, x)
            return value, 0 if value is None else parts(value)
        if not isinstance(x, (Binary, Unary, Const, SizeOf, Select)):
            return None, 0
        operands, length = [], 1
        for part in children(x):
            value, count = self._resolved_with_size(part)
            if value is None:
                return None, 0
            operands.append(value)
            length += count
        if length > MAX_PARTS:
            return None, 0
        if all(a is b for a, b in zip(operands, children(x), strict=True)):
            return x, length
        new = iter(operands)
        return replace_children(x, lambda _: next(new)), length


def _trip_bound(end: Expr, start: Expr) -> Extent | None:
    """Return an upper bound of ``end - start``, if all that is subtracted is not negative."""
    trips = add(normal(end, {}), normal(start, {}), -1)
    return trips.constant if all(at_least(0, c) for _, c in trips.terms) else None
