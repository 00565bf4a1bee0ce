"""Linear forms of indices with symbolic sizes: sums of loop iterations and constants.

A subexpression that is not linear, such as a quotient, is a symbol that consists of its operator
and the forms of its operands, so that equal subexpressions are equal symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Union

from attrs import define, field, frozen

from passkit.ast import Binary, Const, Expr, SizeOf, Unary, Var
from passkit.ast.stage import Let, Loop
from passkit.ast.walk import minimum_operands
from passkit.values.size import Extent, at_least

CONSTANT = ""
"""The symbol whose coefficient is the constant term."""

MAX_DEPTH = 24
"""How deeply compound symbols may be nested; a deeper index is unknown."""

Symbol = Union[str, "CompoundSymbol"]
"""The name of an iteration or of another variable, or a subexpression that is not linear."""
LinearForm = Mapping[Symbol, Extent]
"""The coefficient of each symbol. Only that of `CONSTANT` may be 0."""


@frozen(cache_hash=True)
class CompoundSymbol:
    """An operation on two linear forms.

    Attributes:
        op: the operator.
        a: the coefficients of its left operand.
        b: the coefficients of its right operand.
        names: the names of variables in its operands.
        depth: the number of compound symbols that are nested in it, itself included.
    """

    op: str
    a: frozenset[tuple[Symbol, Extent]]
    b: frozenset[tuple[Symbol, Extent]]
    names: frozenset[str] = field(eq=False)
    depth: int = field(eq=False)


def mentions(symbol: Symbol, name: str) -> bool:
    """Return whether a symbol is a variable or contains it."""
    return name in symbol.names if isinstance(symbol, CompoundSymbol) else symbol == name


class TripCount:
    """Upper bounds of the number of iterations of a loop, computed when they are first needed."""

    def __init__(self, compute: Callable[[], tuple[Extent, ...]]) -> None:
        self._compute = compute

    @cached_property
    def bounds(self) -> tuple[Extent, ...]:
        """The upper bounds; an empty tuple if there is none."""
        return self._compute()


@define
class FormScope:
    """The variables at a statement.

    Attributes:
        sizes: the values of the size arguments.
        forms: the linear forms of variables; None for one that has none.
        definitions: the values of local variables.
        trip_counts: the loops around the statement, by the names of their iterations.
        cache: the forms of indices that were computed in this scope.
    """

    sizes: Mapping[str, Extent]
    forms: dict[str, LinearForm | None] = field(factory=dict)
    definitions: dict[str, Expr] = field(factory=dict)
    trip_counts: dict[str, TripCount] = field(factory=dict)
    cache: dict[Expr, LinearForm | None] = field(factory=dict)

    def inner(self) -> FormScope:
        """Return a copy for a nested scope."""
        return FormScope(
            self.sizes, dict(self.forms), dict(self.definitions), dict(self.trip_counts)
        )

    def define(self, let: Let) -> None:
        """Add a local variable."""
        self.definitions[let.var.name] = let.value
        if self.forms.pop(let.var.name, None) is not None:
            self.cache.clear()

    def enter(self, loop: Loop, iteration: Var | None = None) -> None:
        """Add a loop, whose iterations are counted by ``iteration`` or else by its variable."""
        name = (loop.var if iteration is None else iteration).name
        start = self.form(loop.start)
        self.trip_counts[name] = TripCount(lambda: self._trip_bounds(loop, start))
        self.forms[loop.var.name] = None if start is None else add_scaled(start, {name: 1}, 1)

    def _trip_bounds(self, loop: Loop, start: LinearForm | None) -> tuple[Extent, ...]:
        """Return upper bounds of the number of iterations of a loop."""
        if start is None:
            return ()
        ends = [loop.stop] if loop.limit is None else [loop.stop, loop.limit]
        operands = (x for end in ends for x in minimum_operands(end, self.definitions))
        forms = (form for form in map(self.form, operands) if form is not None)
        bounds = (upper_bound(add_scaled(form, start, -1)) for form in forms)
        return tuple(b for b in bounds if b is not None)

    def cached_form(self, index: Expr) -> LinearForm | None:
        """Return the form of an index, computed once for equal indices."""
        if index not in self.cache:
            self.cache[index] = self.form(index)
        return self.cache[index]

    def form(self, x: Expr) -> LinearForm | None:
        """Return the form of an index; None if it is loaded or contains another function."""
        match x:
            case Const():
                return constant(x.integer)
            case SizeOf():
                return constant(x.size)
            case Var(name):
                return self._variable(name)
            case Unary("-", a):
                form = self.form(a)
                return None if form is None else add_scaled({}, form, -1)
            case Binary(op, a, b):
                return combined(op, self.form(a), self.form(b))
        return None

    def _variable(self, name: str) -> LinearForm | None:
        """Return the form of a variable."""
        if name in self.sizes:
            return constant(self.sizes[name])
        if name not in self.forms and name in self.definitions:
            self.forms[name] = self.form(self.definitions[name])
        return self.forms.get(name, {name: 1})


def constant(n: Extent) -> LinearForm:
    """Return the form of a number."""
    return {CONSTANT: n} if n != 0 else {}


def combined(op: str, a: LinearForm | None, b: LinearForm | None) -> LinearForm | None:
    """Return the form of an operation; None if an operand has none or it is nested too deeply."""
    if a is None or b is None:
        return None
    if op == "+" or op == "-":
        return add_scaled(a, b, 1 if op == "+" else -1)
    if op == "*" and not (b.keys() - {CONSTANT}):
        return add_scaled({}, a, b.get(CONSTANT, 0))
    if op == "*" and not (a.keys() - {CONSTANT}):
        return add_scaled({}, b, a.get(CONSTANT, 0))
    if not (a.keys() | b.keys()) - {CONSTANT} and b.get(CONSTANT, 0) != 0:
        x, y = a.get(CONSTANT, 0), b[CONSTANT]
        if op == "//":
            return constant(x // y)
        if op == "%" and isinstance(x, int) and isinstance(y, int):
            return constant(x % y)
    if op == "//" and (inner := _quotient(a)) is not None and not b.keys() - {CONSTANT}:
        return combined("//", inner[0], constant(inner[1] * b.get(CONSTANT, 0)))
    nested = [s for s in (*a, *b) if isinstance(s, CompoundSymbol)]
    names = frozenset(s for s in (*a, *b) if isinstance(s, str)).union(*(s.names for s in nested))
    depth = 1 + max((s.depth for s in nested), default=0)
    symbol = CompoundSymbol(op, frozenset(a.items()), frozenset(b.items()), names, depth)
    return None if depth > MAX_DEPTH else {symbol: 1}


def _quotient(x: LinearForm) -> tuple[LinearForm, Extent] | None:
    """Return dividend and divisor of a form that is a single quotient; None for any other.

    ``x // c // d`` is ``x // (c * d)``.
    """
    ((symbol, coefficient),) = x.items() if len(x) == 1 else ((CONSTANT, 0),)
    if not isinstance(symbol, CompoundSymbol) or symbol.op != "//" or coefficient != 1:
        return None
    divisor = dict(symbol.b)
    return None if divisor.keys() - {CONSTANT} else (dict(symbol.a), divisor.get(CONSTANT, 0))


def add_scaled(a: LinearForm, b: LinearForm, factor: Extent) -> LinearForm:
    """Return ``a + factor * b``."""
    total = dict(a)
    for symbol, coefficient in b.items():
        total[symbol] = total.get(symbol, 0) + coefficient * factor
    total = {s: n for s, n in total.items() if n != 0}
    remainders = [s for s in total if isinstance(s, CompoundSymbol) and s.op == "%"]
    return _merge_quotients(total, remainders) if remainders else total


def _merge_quotients(form: LinearForm, remainders: Iterable[CompoundSymbol]) -> LinearForm:
    """Replace ``x // d * d + x % d`` by ``x`` for one of the remainders."""
    for remainder in remainders:
        divisor, coefficient = dict(remainder.b), form[remainder]
        if divisor.keys() - {CONSTANT}:
            continue
        (quotient,) = combined("//", dict(remainder.a), divisor) or {CONSTANT: 0}
        if form.get(quotient) == coefficient * divisor.get(CONSTANT, 0):
            others = {s: n for s, n in form.items() if s not in (remainder, quotient)}
            return add_scaled(others, dict(remainder.a), coefficient)
    return form


def digits(
    form: LinearForm, iteration: str, trip_bounds: tuple[Extent, ...]
) -> dict[Symbol, tuple[Extent, ...]]:
    """Return the symbols of a form that are the digits of an iteration in a mixed radix.

    Args:
        form: the form.
        iteration: the name of the iteration.
        trip_bounds: upper bounds of its number of iterations.

    Returns: for each digit upper bounds of its number of values. Empty if the digits do not
    determine the iteration, or if it occurs in another way.

    >>> row = combined("%", {"row": 1}, {CONSTANT: 3}) | combined("//", {"row": 1}, {CONSTANT: 3})
    >>> [bounds for bounds in digits(row, "row", (12,)).values()]
    [(3,), (4,)]
    """
    by_place: dict[Extent, tuple[Symbol, Extent | None]] = {}
    for symbol in form:
        if isinstance(symbol, CompoundSymbol) and iteration in symbol.names:
            digit = _digit(symbol, iteration)
            if digit is None or digit[0] in by_place:
                return {}
            by_place[digit[0]] = symbol, digit[1]
    bounds: dict[Symbol, tuple[Extent, ...]] = {}
    place: Extent = 1
    while place in by_place:
        symbol, radix = by_place.pop(place)
        bounds[symbol] = tuple((n + place - 1) // place for n in trip_bounds)
        if radix is None:
            return {} if by_place else bounds
        bounds[symbol] = (radix,)
        place = place * radix
    is_complete = not by_place and any(at_least(place, n) for n in trip_bounds)
    return bounds if is_complete else {}


def _digit(symbol: CompoundSymbol, iteration: str) -> tuple[Extent, Extent | None] | None:
    """Return the place value of a digit of an iteration, and its radix.

    The radix is None for the leading digit. Returns None if the symbol is not a digit.
    """
    dividend, divisor = dict(symbol.a), dict(symbol.b)
    if divisor.keys() - {CONSTANT}:
        return None
    if symbol.op == "//" and dividend == {iteration: 1}:
        return divisor.get(CONSTANT, 0), None
    inner = (dividend, 1) if dividend == {iteration: 1} else _quotient(dividend)
    if symbol.op != "%" or inner is None or inner[0] != {iteration: 1}:
        return None
    return inner[1], divisor.get(CONSTANT, 0)


def upper_bound(form: LinearForm) -> Extent | None:
    """Return an upper bound of a form whose symbols are not negative; None if there is none."""
    coefficients = (n for s, n in form.items() if s != CONSTANT)
    return form.get(CONSTANT, 0) if all(at_least(0, n) for n in coefficients) else None
