"""Bundles: elements that follow each other, taken by one lane in accesses of up to 16 bytes.

For lanes that compute with one number at a time: others are in `passkit.dialects.wholes`. A loop
over lanes becomes two: one whose lanes have a bundle each, and the loop as it was for what is left.
What is loaded for a bundle comes before all that it is for, what is stored behind.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from functools import reduce

from attrs import evolve, field, frozen

from passkit.ast import Binary, Const, Expr, Load, Select, Var
from passkit.ast.index import expression, normal
from passkit.ast.stage import Fold, Let, Loop, Prefetch, Running, Statement, Store
from passkit.ast.tidy import replace_children
from passkit.ast.walk import children, variables
from passkit.dialects.base import BundleTemplates
from passkit.dialects.body import Body
from passkit.dialects.expressions import ATOM
from passkit.dialects.strides import stride_of
from passkit.dialects.totals import memory_of, replaced
from passkit.values import dtype as dt
from passkit.values.dtype import DType

MOST_NBYTES = 256
"""Of the registers that all bundles of a stage take: with more, few threads are on a processor."""
Place = tuple[str, Expr]


@frozen
class Tie:
    """The bundles of loops that share what they store: as many elements, and by the same sizes."""

    count: int
    even: tuple[Expr, ...]


@frozen
class Bundle:
    """The elements of a lane from one place on. ``name`` is that of the array that they are in."""

    name: str
    buffer: str
    index: Expr
    dtype: DType
    loaded: bool
    stored: bool


@frozen
class Bundles:
    """A loop over lanes whose lanes have ``count`` elements each, and its statements for one.

    Where ``by_size``, which lane has which element depends on sizes alone, not on addresses, and is
    the same in every tile: those in ``even`` must be multiples of the count. Where tiles end
    anywhere they are ``ragged``, and the last bundle may have fewer. In a step of the loop a lane
    takes as many bundles as there are ``turns``. The statements ``begin`` at a line once they are
    open.
    """

    body: Body = field(repr=False)
    loop: Loop
    count: int
    found: tuple[Bundle, ...]
    statements: tuple[Statement, ...] = field(repr=False)
    by_size: bool
    even: tuple[Expr, ...] = ()
    turns: int = 1
    begin: list[int] = field(factory=list, eq=False, repr=False)

    @property
    def ragged(self) -> bool:
        """Whether the last bundle may have fewer elements than the others."""
        sizes = self.body.scalars.sizes
        return self.by_size and not all(
            isinstance(x, Const) or is_size(x, sizes) for x in (self.loop.start, self.loop.stop)
        )

    @property
    def templates(self) -> BundleTemplates:
        """The language's spellings."""
        assert self.body.dialect.bundles is not None
        return self.body.dialect.bundles

    def open(self) -> None:
        """Begin the loop, in a scope of its own; what follows is for one element of a bundle."""
        self.open_lanes()
        for b in self.found:
            self._take(b)
        self.open_elements()

    def open_lanes(self) -> None:
        """Begin the loop, in a scope of its own; what follows is for a bundle."""
        body, t = self.body, self.templates
        name, count = self.loop.var.name, self.count
        start, stop = self._ends()
        most = stop if start == "0" else f"{stop} - {start}"
        most += f" + {count - 1}" * self.ragged
        whole = f"{most} / {count}" if most == stop else f"({most}) / {count}"
        body.scope()
        body.line(t.whole.format(name=name, value=self._tested(whole)))
        times = f"{self.turns} * " if self.turns > 1 else ""
        body.open_loop(
            body.lane, var=f"{name}_bundle", start="0", stop=f"{name}_bundles", times=times
        )
        body.scalars.positions.add(f"{name}_first")
        if self.turns > 1:
            self._ask()
            self._open_turns()
            body.line(t.ahead.beyond.format(name=name))  # type: ignore[union-attr]
        self._first()

    def open_elements(self) -> None:
        """Begin what is for one element of a bundle."""
        body, t, name = self.body, self.templates, self.loop.var.name
        body.line(t.unroll)
        body.open(t.each.format(name=name, count=self.count))
        self.begin.append(len(body.lines))
        body.line(t.element.format(name=name))
        if self.ragged:
            body.open(t.within.format(name=name, stop=self._ends()[1]))

    def _ask(self) -> None:
        """Load what all turns of a lane are for."""
        body, ahead, name = self.body, self.templates.ahead, self.loop.var.name
        assert ahead is not None
        for b in self.found:
            if b.loaded:
                body.line(ahead.array.format(turns=self.turns, name=b.name, **self._spoken(b)))
        self._open_turns()
        self._first()
        for b in self.found:
            if b.loaded:
                own = evolve(b, name=f"{b.name}_ahead[{name}_turn]")
                body.line(ahead.within.format(name=name) + self._load(own))
        body.close()

    def _open_turns(self) -> None:
        body, ahead, name = self.body, self.templates.ahead, self.loop.var.name
        assert ahead is not None
        body.line(self.templates.unroll)
        body.open(ahead.loop.format(name=name, turns=self.turns))
        step = ahead.step_of_crew if body.by_crew else ahead.step
        body.line(ahead.here.format(name=name, step=step))

    def _first(self) -> None:
        """Where a bundle begins."""
        name, start = self.loop.var.name, self._ends()[0]
        first = f"{name}_{'here' if self.turns > 1 else 'bundle'} * {self.count}"
        at = first if start == "0" else f"{start} + {first}"
        self.body.line(self.templates.first.format(name=name, at=at))

    def _take(self, b: Bundle) -> None:
        """The array of a bundle, with what it loads."""
        if b.loaded and self.turns > 1:
            ahead = self.templates.ahead
            assert ahead is not None
            told = {"name": b.name, "loop": self.loop.var.name, **self._spoken(b)}
            self.body.line(ahead.now.format(**told))
        else:
            self.take(b)

    def declare(self, b: Bundle) -> None:
        """The array of a bundle."""
        self.body.line(self.templates.array.format(name=b.name, **self._spoken(b)))

    def take(self, b: Bundle) -> None:
        """The array of a bundle, with what it loads, if it does."""
        self.declare(b)
        if b.loaded:
            self.body.line(self._load(b))

    def _load(self, b: Bundle) -> str:
        t = self.templates
        return self._access(b, (t.load, t.load_any, t.load_some))

    def close_elements(self) -> None:
        """End what is for one element."""
        body = self.body
        body.drop_unused([self.loop.var], self.begin.pop())
        if self.ragged:
            body.close()
        body.close()

    def close(self) -> Loop:
        """End the loop; the one for the lanes that are left, whose scope is still open."""
        self.close_elements()
        for b in self.found:
            if b.stored:
                self.put(b)
        return self.close_lanes()

    def put(self, b: Bundle) -> None:
        """Store a bundle."""
        t = self.templates
        self.body.line(self._access(b, (t.store, t.store_any, t.store_some)))

    def close_lanes(self) -> Loop:
        """The same where all has been stored."""
        body, t = self.body, self.templates
        for _ in range(1 + (self.turns > 1)):
            body.close()
        start, stop = self._ends()
        name = self.loop.var.name
        left = f"{name}_bundles * {self.count}"
        value = left if start == "0" else f"{start} + {left}"
        if self.ragged:
            value = f"{name}_bundles ? {stop} : {start}"
        body.line(t.rest.format(name=name, value=value))
        rest = Var(f"{name}_rest", dt.int64)
        return evolve(self.loop, start=rest)

    def _ends(self) -> tuple[str, str]:
        start, stop = (self.body.scalars.expr(x, ATOM) for x in (self.loop.start, self.loop.stop))
        return start, stop

    def _access(self, b: Bundle, templates: tuple[str, str, str]) -> str:
        """What loads or stores a bundle: at its address, at any, or at any and as many as are."""
        first = Var(f"{self.loop.var.name}_first", dt.int64)
        at = self._at(b, first)
        template = templates[self.by_size + self.ragged]
        left = f"{self._ends()[1]} - {first.name}"
        return template.format(name=b.name, at=at, left=left, **self._spoken(b))

    def _spoken(self, b: Bundle) -> dict[str, str | int]:
        """What a template may say of a bundle's elements."""
        space = self.templates.space[b.buffer in self.body.scalars.scratch]
        return {"type": self.body.dialect.type_of(b.dtype), "count": self.count, "space": space}

    def _at(self, b: Bundle, first: Var) -> str:
        return self.body.scalars.address(b.buffer, replaced(b.index, {self.loop.var.name: first}))

    def _tested(self, whole: str) -> str:
        """How many bundles there are: none where they would not begin as their accesses need."""
        body, t = self.body, self.templates
        if self.by_size:
            texts = [body.scalars.expr(x, ATOM) for x in self.even]
            among = f"({' | '.join(texts)})" if texts[1:] else "".join(texts)
            return f"{among} % {self.count} == 0 ? {whole} : 0" if texts else whole
        begin = {self.loop.var.name: self.loop.start}
        tests = dict.fromkeys(
            t.aligned.format(at=body.scalars.address(b.buffer, index), **self._spoken(b))
            for b in self.found
            for index in [expression(normal(replaced(b.index, begin), {}))]
        )
        return f"{' && '.join(tests)} ? {whole} : 0"


def bundles_of(loop: Loop, statements: Iterable[Statement], body: Body) -> Bundles | None:
    """The bundles of a loop over lanes; None where there are none, or too many.

    A loop that is by itself may ask addresses, unless it folds over the lanes: the bits of a fold
    must not depend on where an array lies. One with a ``tie`` has those that it says.
    """
    templates = body.dialect.bundles
    if templates is None or templates.computes:
        return None
    plain, tie = plain_of(statements), body.tie
    found = found_in(loop, plain)
    if found is None or (tie is None and not found):
        return None
    count = tie.count if tie is not None else count_of(loop, found, templates)
    joined = any(isinstance(s, Fold) for s in plain)
    even: Sequence[Expr] | None = ()
    if tie is not None:
        even = tie.even
    elif joined and count:
        even = even_in(loop, found, count, body.scalars.sizes)
    if not count or even is None:
        return None
    element = Var(f"{loop.var.name}_k", dt.int64)
    places = {(b.buffer, b.index): b.name for b in found}
    inside = tuple(_moved(s, places, element) for s in plain)
    by_size = joined or tie is not None
    turns = turns_of(loop, found, count, templates)
    return Bundles(body, loop, count, tuple(found), inside, by_size, tuple(even), turns)


def turns_of(
    loop: Loop, found: Iterable[Bundle], count: int, templates: BundleTemplates
) -> int:
    """How many bundles a lane asks for at a time."""
    ahead = templates.ahead
    loaded = count * sum(b.dtype.nbytes for b in found if b.loaded)
    if ahead is None or not loaded:
        return 1
    turns = min(ahead.most, ahead.nbytes // loaded)
    while turns > 1 and _is_shorter(loop, (turns - 1) * ahead.lanes * count + 1):
        turns -= 1
    return max(1, turns)


def count_of(loop: Loop, found: Sequence[Bundle], templates: BundleTemplates) -> int:
    """How many elements a lane has; 0 where bundles do not pay, or there are too many."""
    sizes = [b.dtype.nbytes for b in found]
    count = min(templates.nbytes // min(sizes), 2 * templates.nbytes // max(sizes))
    short = _is_shorter(loop, count * templates.least)
    few = count < 2 or count * sum(sizes) > MOST_NBYTES or short
    return 0 if few else count


def _is_shorter(loop: Loop, least: int) -> bool:
    """Whether there are known to be less elements."""
    if not isinstance(loop.stop, Const) or not isinstance(loop.start, Const):
        return False
    return int(loop.stop.value) - int(loop.start.value) < least


def plain_of(statements: Iterable[Statement]) -> list[Statement]:
    """Statements with folds in memory as what they store, and without hints."""
    found: list[Statement] = []
    for s in statements:
        if isinstance(s, Fold) and s.buffer is not None:
            old = memory_of(s)
            step = replaced(s.combine, {"a": old, "b": s.value})
            found.append(Store(old.buffer, old.index, step))
        elif not isinstance(s, Prefetch):
            found.append(s)
    return found


def found_in(loop: Loop, statements: Sequence[Statement]) -> list[Bundle] | None:
    """The bundles of statements; None where one loads what one before it has stored."""
    if loop.down or any(isinstance(s, Running) for s in statements):
        return None
    different = {loop.var}
    for s in statements:
        if isinstance(s, Let) and not different.isdisjoint(variables(s.value)):
            different.add(s.var)

    def is_next(index: Expr) -> bool:
        others = different - {loop.var}
        if not others.isdisjoint(variables(index)):
            return False
        return stride_of(index, loop.var, lambda x: loop.var in set(variables(x))) == 1

    loaded: dict[Place, DType] = {}
    stored: dict[Place, DType] = {}
    written: set[str] = set()
    for s in statements:
        for x, always in _loads(s.value):  # type: ignore[union-attr]
            if x.buffer in written:
                return None
            if always and is_next(x.index):
                loaded[x.buffer, x.index] = x.dtype
        if isinstance(s, Store):
            if s.buffer in written:
                return None
            written.add(s.buffer)
            if is_next(s.index):
                stored[s.buffer, s.index] = s.value.dtype
    if any(b in written and (b, i) not in stored for b, i in loaded):
        return None  # what another lane may store
    counts: dict[str, int] = {}
    made = []
    for place, dtype in (loaded | stored).items():
        buffer, index = place
        number = counts[buffer] = counts.get(buffer, -1) + 1
        name = f"{buffer}_bundle{number or ''}"
        made.append(Bundle(name, buffer, index, dtype, place in loaded, place in stored))
    return made


def _loads(x: Expr, always: bool = True) -> Iterator[tuple[Load, bool]]:
    """What an expression loads, and whether it does so whatever it chooses."""
    if isinstance(x, Load):
        yield x, always
    if isinstance(x, Select):
        yield from _loads(x.condition, always)
        yield from _loads(x.a, False)
        yield from _loads(x.b, False)
        return
    for child in children(x):
        yield from _loads(child, always)


def _moved(s: Statement, places: dict[Place, str], element: Var) -> Statement:
    """A statement whose bundled elements are those of arrays."""

    def expr(x: Expr) -> Expr:
        if isinstance(x, Load) and (x.buffer, x.index) in places:
            return Load(places[x.buffer, x.index], element, x.dtype)
        return replace_children(x, expr)

    assert not isinstance(s, Prefetch)
    moved = evolve(s, value=expr(s.value))
    if isinstance(moved, Store) and (moved.buffer, moved.index) in places:
        return evolve(moved, buffer=places[moved.buffer, moved.index], index=element)
    return moved


def even_in(
    loop: Loop, found: Iterable[Bundle], count: int, sizes: Container[str]
) -> list[Expr] | None:
    """Which sizes must be multiples of ``count`` for bundles of all rows alike.

    None where one is known to be none, or more than sizes decides.
    """
    even = dict.fromkeys(x for x in (loop.start, loop.stop) if is_size(x, sizes))
    known = [int(x.value) for x in (loop.start, loop.stop) if isinstance(x, Const)]
    for b in found:
        total = normal(b.index, {})
        known += [total.constant] if isinstance(total.constant, int) else []
        for atom, c in total.terms:
            if atom in (loop.var, loop.start) or (isinstance(c, int) and c % count == 0):
                continue
            factors = [f for f in _factors(atom) if is_size(f, sizes)]
            if not factors:
                return None
            even[reduce(lambda a, b: Binary("*", a, b, dt.int64), factors)] = None
    return None if any(n % count for n in known) else list(even)


def is_size(x: Expr, sizes: Container[str]) -> bool:
    """Whether a number is an argument of the kernel, the same in all tiles."""
    return isinstance(x, Var) and x.name in sizes


def _factors(x: Expr) -> Iterator[Expr]:
    """What a product is made of."""
    if isinstance(x, Binary) and x.op == "*":
        yield from _factors(x.a)
        yield from _factors(x.b)
    else:
        yield x
