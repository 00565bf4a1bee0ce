"""Forms: element numbers as sums of turns of loops, and what is known of the locals in them.

What is no such sum is a symbol of its own, made of an operator and the forms of its operands, so
that equal ones are known to be equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Union

from attrs import define, field, frozen

from passkit.ast import Binary, Const, Expr, Select, SizeOf, Unary, Var
from passkit.ast.stage import Let, Loop
from passkit.values.size import Extent, at_least

ONE = ""
"""What a form has for its constant."""

DEEPEST = 24
"""What has more operators than this within each other is not looked into."""

Symbol = Union[str, "Made"]
"""A turn or a tile by its name, or what is no sum of those."""
Form = Mapping[Symbol, Extent]
"""A sum: how often it has each symbol. 0 stands nowhere but at `ONE`."""


@frozen(cache_hash=True)
class Made:
    """An operator and its operands, ``depth`` within each other; ``names`` are those within."""

    op: str
    a: frozenset[tuple[Symbol, Extent]]
    b: frozenset[tuple[Symbol, Extent]]
    names: frozenset[str] = field(eq=False)
    depth: int = field(eq=False)


def is_within(name: str, symbol: Symbol) -> bool:
    """Whether a symbol is made of a name."""
    return name in symbol.names if isinstance(symbol, Made) else symbol == name


class Turns:
    """Upper bounds of the number of a loop's turns, found when they are asked for."""

    def __init__(self, find: Callable[[], tuple[Extent, ...]]) -> None:
        self.find = find

    @cached_property
    def most(self) -> tuple[Extent, ...]:
        """The bounds; none where nothing is known."""
        return self.find()


@define
class Locals:
    """What is known of names: forms of turns, and the values of locals."""

    sizes: Mapping[str, Extent]
    forms: dict[str, Form | None]
    lets: dict[str, Expr]
    turns: dict[str, Turns]
    known: dict[Expr, Form | None] = field(factory=dict)

    def inner(self) -> Locals:
        """The names inside a loop or a part."""
        return Locals(self.sizes, dict(self.forms), dict(self.lets), dict(self.turns))

    def let(self, let: Let) -> None:
        """A local."""
        self.lets[let.var.name] = let.value
        if self.forms.pop(let.var.name, None) is not None:
            self.known.clear()

    def enter(self, loop: Loop, symbol: str) -> None:
        """A loop whose turns are called ``symbol``."""
        start = self.form(loop.start)
        self.turns[symbol] = Turns(lambda: self._bounds(loop, start))
        self.forms[loop.var.name] = None if start is None else summed(start, {symbol: 1}, 1)

    def _bounds(self, loop: Loop, start: Form | None) -> tuple[Extent, ...]:
        """What the number of a loop's turns is at most, in several ways."""
        if start is None:
            return ()
        ends = [loop.stop] if loop.limit is None else [loop.stop, loop.limit]
        forms = (form for end in ends for form in self._least(end) if form is not None)
        bounds = (upper_bound(summed(form, start, -1)) for form in forms)
        return tuple(b for b in bounds if b is not None)

    def _least(self, x: Expr) -> Iterator[Form | None]:
        """The forms that ``x`` is the least of."""
        if isinstance(x, Var) and x.name in self.lets:
            x = self.lets[x.name]
        match x:
            case Select(Binary("<", a, b), c, d) if (a, b) == (c, d):
                yield from self._least(a)
                yield from self._least(b)
            case _:
                yield self.form(x)

    def form(self, x: Expr) -> Form | None:
        """An index as a form; None for what is read, or computed otherwise."""
        match x:
            case Const():
                return constant(x.integer)
            case SizeOf():
                return constant(x.size)
            case Var(name):
                return self._form_of(name)
            case Unary("-", a):
                found = self.form(a)
                return None if found is None else summed({}, found, -1)
            case Binary(op, a, b):
                return joined(op, self.form(a), self.form(b))
        return None

    def _form_of(self, name: str) -> Form | None:
        if name in self.sizes:
            return constant(self.sizes[name])
        if name not in self.forms and name in self.lets:
            self.forms[name] = self.form(self.lets[name])
        return self.forms.get(name, {name: 1})


def constant(n: Extent) -> Form:
    """The form of a number."""
    return {ONE: n} if n != 0 else {}


def joined(op: str, a: Form | None, b: Form | None) -> Form | None:
    """The form of an operator of two forms; None where one is, or too much lies within it."""
    if a is None or b is None:
        return None
    if op == "+" or op == "-":
        return summed(a, b, 1 if op == "+" else -1)
    if op == "*" and not (b.keys() - {ONE}):
        return summed({}, a, b.get(ONE, 0))
    if op == "*" and not (a.keys() - {ONE}):
        return summed({}, b, a.get(ONE, 0))
    if not (a.keys() | b.keys()) - {ONE} and b.get(ONE, 0) != 0:
        x, y = a.get(ONE, 0), b[ONE]
        if op == "//":
            return constant(x // y)
        if op == "%" and isinstance(x, int) and isinstance(y, int):
            return constant(x % y)
    if op == "//" and (inner := _quotient(a)) is not None and not b.keys() - {ONE}:
        return joined("//", inner[0], constant(inner[1] * b.get(ONE, 0)))
    made = [s for s in (*a, *b) if isinstance(s, Made)]
    names = frozenset(s for s in (*a, *b) if isinstance(s, str)).union(*(s.names for s in made))
    depth = 1 + max((s.depth for s in made), default=0)
    whole = Made(op, frozenset(a.items()), frozenset(b.items()), names, depth)
    return None if depth > DEEPEST else {whole: 1}


def _quotient(x: Form) -> tuple[Form, Extent] | None:
    """What is divided, and by which number, where that is all of a form: x // c // d is x // cd."""
    ((symbol, step),) = x.items() if len(x) == 1 else ((ONE, 0),)
    if not isinstance(symbol, Made) or symbol.op != "//" or step != 1:
        return None
    below = dict(symbol.b)
    return None if below.keys() - {ONE} else (dict(symbol.a), below.get(ONE, 0))


def summed(a: Form, b: Form, factor: Extent) -> Form:
    """a + factor b."""
    found = dict(a)
    for symbol, step in b.items():
        found[symbol] = found.get(symbol, 0) + step * factor
    found = {s: n for s, n in found.items() if n != 0}
    rests = [s for s in found if isinstance(s, Made) and s.op == "%"]
    return _put_together(found, rests) if rests else found


def _put_together(form: Form, rests: Iterable[Made]) -> Form:
    """x // d * d + x % d is x."""
    for rest in rests:
        below, step = dict(rest.b), form[rest]
        if below.keys() - {ONE}:
            continue
        (quotient,) = joined("//", dict(rest.a), below) or {ONE: 0}
        if form.get(quotient) == step * below.get(ONE, 0):
            others = {s: n for s, n in form.items() if s not in (rest, quotient)}
            return summed(others, dict(rest.a), step)
    return form


def digits(form: Form, loop: str, most: tuple[Extent, ...]) -> dict[Symbol, tuple[Extent, ...]]:
    """The symbols in which a form has the turn of a loop, if they are digits that tell it.

    Each comes with bounds of how many values it has; ``most`` are such of the turn itself. There
    are none where the symbols leave open which turn it is, or are something else.

    >>> row = joined("%", {"row": 1}, {ONE: 3}) | joined("//", {"row": 1}, {ONE: 3})
    >>> [bounds for bounds in digits(row, "row", (12,)).values()]
    [(3,), (4,)]
    """
    places: dict[Extent, tuple[Symbol, Extent | None]] = {}
    for symbol in form:
        if isinstance(symbol, Made) and loop in symbol.names:
            found = _digit(symbol, loop)
            if found is None or found[0] in places:
                return {}
            places[found[0]] = symbol, found[1]
    known: dict[Symbol, tuple[Extent, ...]] = {}
    place: Extent = 1
    while place in places:
        symbol, values = places.pop(place)
        known[symbol] = tuple((n + place - 1) // place for n in most)
        if values is None:
            return {} if places else known
        known[symbol] = (values,)
        place = place * values
    return known if not places and any(at_least(place, n) for n in most) else {}


def _digit(symbol: Made, loop: str) -> tuple[Extent, Extent | None] | None:
    """The place of a digit of a turn, and how many values it has, if that is cut off."""
    of, below = dict(symbol.a), dict(symbol.b)
    if below.keys() - {ONE}:
        return None
    if symbol.op == "//" and of == {loop: 1}:
        return below.get(ONE, 0), None
    inner = (of, 1) if of == {loop: 1} else _quotient(of)
    if symbol.op != "%" or inner is None or inner[0] != {loop: 1}:
        return None
    return inner[1], below.get(ONE, 0)


def upper_bound(turns: Form) -> Extent | None:
    """What a number of turns is at most: what is taken from it is never below 0."""
    rest = (n for s, n in turns.items() if s != ONE)
    return turns.get(ONE, 0) if all(at_least(0, n) for n in rest) else None
