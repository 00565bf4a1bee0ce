"""Bundles: elements that follow each other, taken by one lane in accesses of up to 16 bytes.

For lanes that compute with one number at a time: others are in `passkit.dialects.wholes`. A loop
over lanes becomes two: one whose lanes have a bundle each, and the loop as it was for what is left.
What is loaded for a bundle comes before all that it is for, what is stored behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import evolve, field, frozen

from passkit.ast import Const, Expr, Load, Var
from passkit.ast.index import expression, normal
from passkit.ast.stage import Fold, Loop, Prefetch, Statement, Store
from passkit.ast.tidy import replace_children
from passkit.dialects.base import BundleTemplates
from passkit.dialects.body import Body
from passkit.dialects.bundled import (
    BufferElement,
    Bundle,
    count_of,
    even_in,
    found_in,
    is_size,
    plain_of,
    turns_of,
)
from passkit.dialects.bundled_quotients import quotients_before
from passkit.dialects.expressions import ATOM
from passkit.ir.rewrite import substitute
from passkit.values import dtype as dt


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

    def open(self) -> Sequence[Statement]:
        """Begin the loop, in a scope of its own, and return the statements for one element.

        Their quotients are taken before, of all elements of a bundle together.
        """
        self.open_lanes()
        for b in self.found:
            if b.loaded and self.turns > 1:
                self._turn(b)
            else:
                self.take(b)
        statements = quotients_before(self)
        self.open_elements()
        return statements

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
        step = ahead.step_of_tile if body.by_tile else ahead.step
        body.line(ahead.here.format(name=name, step=step))

    def _first(self) -> None:
        """Where a bundle begins."""
        name, start = self.loop.var.name, self._ends()[0]
        first = f"{name}_{'here' if self.turns > 1 else 'bundle'} * {self.count}"
        at = first if start == "0" else f"{start} + {first}"
        self.body.line(self.templates.first.format(name=name, at=at))

    def _turn(self, b: Bundle) -> None:
        """The array of a bundle that was loaded with those of other turns."""
        ahead = self.templates.ahead
        assert ahead is not None
        told = {"name": b.name, "loop": self.loop.var.name, **self._spoken(b)}
        self.body.line(ahead.now.format(**told))

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
        return self.body.scalars.address(b.buffer, substitute(b.index, {self.loop.var.name: first}))

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
            for index in [expression(normal(substitute(b.index, begin), {}))]
        )
        return f"{' && '.join(tests)} ? {whole} : 0"


def bundles_of(loop: Loop, statements: Iterable[Statement], body: Body) -> Bundles | None:
    """The bundles of a loop over lanes; None where there are none, or too many.

    A loop that is by itself may ask addresses, unless it reduces over the lanes: the bits of a
    reduction must not depend on where an array lies. One with a ``tie`` has those that it says.
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


def _moved(s: Statement, places: dict[BufferElement, str], element: Var) -> Statement:
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
