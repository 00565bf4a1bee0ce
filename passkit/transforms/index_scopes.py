"""Scopes: what indices are made of where they stand, and what that says of lanes and rows.

An index is written with `LANE` and `ROW`, the turns of the loops that are shared out: turn k of a
loop over lanes is always the same thread's, wherever its loop begins.
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
from passkit.ast.walk import children, variables
from passkit.values import dtype as dt
from passkit.values.size import Extent, at_least

LANE, ROW = Var("LANE", dt.int64), Var("ROW", dt.int64)
UNTOLD = Sum(((Var("UNTOLD", dt.int64), 1),))
"""An index of which the text does not tell what it is made of."""
LONGEST = 64
"""Expressions of more parts than this are not looked into."""

Row = tuple[Extent, tuple[tuple[Expr, Extent], ...]]
"""How many elements rows are apart, and where the first begins."""


class ScopedIndex:
    """An index in a scope: which element it is of, and what that says of lanes and rows."""

    def __init__(self, at: Expr, scope: Scope) -> None:
        self.at, self.scope = at, scope

    @cached_property
    def index(self) -> Sum:
        """The index, without locals."""
        return self.scope.sum_of(self.at)

    @cached_property
    def one_lane(self) -> bool:
        """Whether an element of a row, or of a tile without rows, has one turn of the lanes."""
        fixed = frozenset([ROW])
        return any(_is_digit(LANE, self.index, most) for most in self._bounds(fixed))

    @cached_property
    def one_row(self) -> bool:
        """Whether an element has one row of the tile."""
        return any(_is_digit(ROW, self.index, most) for most in self._bounds(frozenset()))

    @cached_property
    def row(self) -> Row | None:
        """What an element has in common with those of its row only, if that is certain."""
        if self.index == UNTOLD:
            return None
        found = (_row(self.index, most) for most in self._bounds(frozenset()))
        return next((r for r in found if r is not None), None)

    def mentions(self, var: Var) -> bool:
        """Whether the index depends on a variable."""
        return any(var in variables(a) for a, _ in self.index.terms)

    def _bounds(self, fixed: frozenset[Var]) -> Iterator[dict[Var, Extent | None]]:
        """What the loops' variables may stay below, as far as it is known, but for those fixed."""
        loops = {v: self.scope.most(v) for v in self.scope.loops if v not in fixed}
        for most in itertools.product(*(n or (None,) for n in loops.values())):
            yield dict(zip(loops, most, strict=True))


def _is_digit(var: Var, index: Sum, most: Mapping[Var, Extent | None]) -> bool:
    """Whether different turns of a loop have different indices, whatever the others' turns.

    So it is when the turns are digits of the index: ``most`` says what each stays below.
    """
    digits: list[tuple[Extent, Var]] = []
    for atom, c in index.terms:
        if isinstance(atom, Var) and atom in most:
            digits.append((-1 * c if at_least(0, c) else c, atom))
        elif index == UNTOLD or any(v in most for v in variables(atom)):
            return False
    if most[var] != 1 and all(atom != var for _, atom in digits):
        return False
    reach: Extent = 0
    while digits:
        low = next((d for d in digits if all(at_least(o[0], d[0]) for o in digits)), None)
        if low is None or not at_least(low[0], reach + 1):
            return False
        digits.remove(low)
        turns = most[low[1]]
        if turns is None:
            return not digits
        reach = reach + low[0] * (turns - 1)
    return True


def _row(index: Sum, most: Mapping[Var, Extent | None]) -> Row | None:
    """How far rows are apart, and where the first is, if nothing reaches into the next one."""
    if most.get(ROW) == 1:
        return 0, ()
    apart = index.coefficient(ROW)
    low = high = index.constant
    first: list[tuple[Expr, Extent]] = []
    for atom, c in index.terms:
        if isinstance(atom, Var) and atom in most:
            turns = most[atom]
            if turns is None and atom != ROW:
                return None
            if turns is None or atom == ROW:
                continue
            if at_least(0, c):
                low = low + c * (turns - 1)
            else:
                high = high + c * (turns - 1)
        elif any(v in most for v in variables(atom)):
            return None
        else:
            first.append((atom, c))
    inside = at_least(low, 0) and at_least(apart, high + 1)
    return (apart, tuple(first)) if inside else None


@define
class Scope:
    """The locals and the loops around an access, by name; ``told`` has what they are made of."""

    lets: dict[str, Expr] = field(factory=dict)
    told: dict[str, Expr | None] = field(factory=dict)
    loops: dict[Var, tuple[Loop, Expr | None]] = field(factory=dict)
    bounds: dict[Var, tuple[Extent, ...]] = field(factory=dict)
    places: dict[Expr, ScopedIndex] = field(factory=dict)

    def inner(self) -> Scope:
        """A scope inside this one."""
        return Scope(dict(self.lets), dict(self.told), dict(self.loops))

    def let(self, let: Let) -> None:
        """Know a local."""
        if let.var.dtype is dt.int64:
            self.lets[let.var.name] = let.value
            self.told.pop(let.var.name, None)
        else:
            self.told[let.var.name] = None

    def enter(self, loop: Loop, turn: Var | None = None) -> None:
        """Know a loop: its variable is where it begins, and ``turn`` or itself from 0 on."""
        start, var = self._full(loop.start), loop.var if turn is None else turn
        self.told[loop.var.name] = None
        self.loops[var] = loop, start
        if start is not None and not loop.down:
            zero = isinstance(start, Const) and start.value == 0
            self.told[loop.var.name] = var if zero else Binary("+", start, var, dt.int64)

    def most(self, var: Var) -> tuple[Extent, ...]:
        """What the turns of a loop stay below, in several ways; nothing where that is not known."""
        if var not in self.bounds:
            loop, start = self.loops[var]
            ends = [loop.stop] if loop.limit is None else [loop.stop, loop.limit]
            full = [x for x in map(self._full, ends) if x is not None]
            least = [x for end in full for x in _least_of(end)]
            bounds = [] if start is None else [_bound(x, start) for x in least]
            self.bounds[var] = tuple(b for b in bounds if b is not None)
        return self.bounds[var]

    def place(self, at: Expr) -> ScopedIndex:
        """An index here; equal ones are one."""
        found = self.places.get(at)
        if found is None:
            found = self.places[at] = ScopedIndex(at, self)
        return found

    def sum_of(self, index: Expr) -> Sum:
        """An index as a sum; `UNTOLD` where that cannot be told."""
        full = self._full(index)
        return UNTOLD if full is None else normal(full, {})

    def _full(self, x: Expr) -> Expr | None:
        """An expression without locals; None where that cannot be told, or is long."""
        return self._measured(x)[0]

    def _measured(self, x: Expr) -> tuple[Expr | None, int]:
        """The same with its parts counted."""
        if isinstance(x, Var):
            if x.name not in self.told and x.name in self.lets:
                self.told[x.name] = self._full(self.lets[x.name])
            found = self.told.get(x.name, x)
            return found, 0 if found is None else parts(found)
        if not isinstance(x, (Binary, Unary, Const, SizeOf, Select)):
            return None, 0
        made, length = [], 1
        for part in children(x):
            whole, count = self._measured(part)
            if whole is None:
                return None, 0
            made.append(whole)
            length += count
        if length > LONGEST:
            return None, 0
        if all(a is b for a, b in zip(made, children(x), strict=True)):
            return x, length
        parts_made = iter(made)
        return replace_children(x, lambda _: next(parts_made)), length


def _least_of(x: Expr) -> Iterator[Expr]:
    """The values that ``x`` is the least of."""
    match x:
        case Select(Binary("<", a, b), c, d) if (a, b) == (c, d):
            yield from _least_of(a)
            yield from _least_of(b)
        case _:
            yield x


def _bound(end: Expr, start: Expr) -> Extent | None:
    """What the turns of a loop are at most: what is taken from that is no less than 0."""
    turns = add(normal(end, {}), normal(start, {}), -1)
    return turns.constant if all(at_least(0, c) for _, c in turns.terms) else None
