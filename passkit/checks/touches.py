"""What an emitted kernel touches of the memory its threads share: where, when, and by which thread.

An element's number is a linear form of the turns of loops. Turn k of a loop that is shared out is
always the same thread's or the same row's, so that equal forms mean equal threads.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import partial
from itertools import permutations, product

from attrs import frozen

from passkit.ast import Expr
from passkit.ast.stage import (
    Dot,
    Fold,
    Let,
    Level,
    Matrix,
    Part,
    Prefetch,
    Running,
    Stage,
    Statement,
)
from passkit.ast.walk import loads, variables
from passkit.checks.forms import (
    ONE,
    Form,
    Locals,
    Made,
    Symbol,
    Turns,
    digits,
    is_within,
    joined,
    upper_bound,
)
from passkit.values.size import Extent, at_least

LANE, ROW = "lane", "row"
"""The turn of a lane, and of a row."""


@frozen(eq=False)
class Touch:
    """A read or a write of ``buffer`` in a stage; ``lanes`` says that each lane has its own turns.

    Without, all threads read, or the first one writes; ``told`` is whether that much is known at
    all, ``down`` whether the last lane has the first turn. ``turns`` has upper bounds of each loop
    around. What is ``behind`` stores what all threads of its row have joined in: each of them has
    read before what it reads in the stage.
    """

    buffer: str
    writes: bool
    stage: str
    part: int
    order: int
    form: Form | None
    turns: Mapping[str, Turns]
    lanes: bool
    rows: bool
    told: bool = True
    down: bool = False
    behind: bool = False

    def has(self, symbol: str) -> bool:
        """Whether the element depends on a symbol."""
        return self.form is None or any(is_within(symbol, s) for s in self.form)

    def is_spread(self, *symbols: str, fixed: Container[str] = ()) -> bool:
        """Whether no element is met in two different turns of any of the loops ``symbols``."""
        if self.form is None:
            return False
        loops = [s for s in self.turns if s not in fixed]
        strange = [s for s in self.form if isinstance(s, Made)]
        met: dict[Symbol, tuple[Extent | None, ...]] = {}
        for loop in loops:
            if loop in self.form:
                met[loop] = self.turns[loop].most or (None,)
            elif any(is_within(loop, s) for s in strange):
                met |= digits(self.form, loop, self.turns[loop].most)
            elif loop in symbols and not self.once(loop):
                return False
        if any(is_within(loop, s) for s in strange if s not in met for loop in loops):
            return False
        if len(met) < 2:
            return True
        return any(map(_nested, _orders([(_size(self.form[s]), n) for s, n in met.items()])))

    def once(self, symbol: str) -> bool:
        """Whether a loop has one turn, if it is there at all."""
        return symbol not in self.turns or 1 in self.turns[symbol].most

    def range(self, but: str = ONE) -> tuple[Form, Extent, Extent] | None:
        """Where the turns of all loops ``but`` one go: from a start, from lowest to highest."""
        if self.form is None:
            return None
        low = high = self.form.get(ONE, 0)
        start: dict[Symbol, Extent] = {}
        for symbol, step in self.form.items():
            if symbol in (but, ONE):
                continue
            if symbol not in self.turns:
                if any(is_within(loop, symbol) for loop in self.turns):
                    return None
                start[symbol] = step
            elif not (bounds := self.turns[str(symbol)].most):
                return None
            elif at_least(step, 0):
                high = high + step * (_least(bounds) - 1)
            else:
                low = low + step * (_least(bounds) - 1)
        return start, low, high

    def cell(self) -> tuple[Extent, Form] | None:
        """How far apart the elements of rows are, and from where, if each is of one row only."""
        if not self.rows or self.form is None:
            return None
        if self.once(ROW):
            return 0, {}
        found, apart = self.range(but=ROW), self.form.get(ROW, 0)
        if found is None or not at_least(found[1], 0) or not at_least(apart, found[2] + 1):
            return None
        return apart, found[0]

    @property
    def is_known(self) -> bool:
        """Whether all steps and bounds are numbers, so that what is not certain is not so."""
        if self.form is None or any(isinstance(s, Made) for s in self.form):
            return False
        steps = all(isinstance(n, int) for n in self.form.values())
        return steps and all(any(isinstance(b, int) for b in n.most) for n in self.turns.values())


def _size(step: Extent) -> Extent:
    return step * -1 if at_least(0, step) else step


def _least(bounds: tuple[Extent, ...]) -> Extent:
    """The bound that is a number, if one is."""
    return next((b for b in bounds if isinstance(b, int)), bounds[0])


_Step = tuple[Extent, tuple[Extent | None, ...]]


def _orders(steps: Sequence[_Step]) -> Iterable[Sequence[_Step]]:
    """The orders in which steps may be nested: by length, as far as that is known."""
    if all(isinstance(n, int) for n, _ in steps):
        return (sorted(steps, key=_length),)
    return permutations(steps)


def _length(step: _Step) -> tuple[float, float]:
    """How long a step is, and how many there are: a step that is not taken comes first."""
    return float(step[0]), min((n for n in step[1] if isinstance(n, int)), default=math.inf)


def _nested(steps: Sequence[_Step]) -> bool:
    """Whether each step is longer than all turns of those before it go together."""
    for bounds in product(*(b for _, b in steps)):
        reach: Extent = 0
        for k, ((step, _), bound) in enumerate(zip(steps, bounds, strict=True)):
            if not at_least(step, reach + 1) or (bound is None and k < len(steps) - 1):
                break
            reach = reach if bound is None else reach + step * (bound - 1)
        else:
            return True
    return False


class Collector:
    """Walks the parts of a phase in order and notes what they touch of the buffers ``watched``."""

    def __init__(self, watched: Container[str], sizes: Mapping[str, Extent]) -> None:
        self.watched, self.sizes = watched, sizes
        self.touches: list[Touch] = []
        self.order = 0
        self.behind = False
        self.orders: list[int] = []
        """Where each part begins."""

    def part(self, number: int, part: Part) -> None:
        """A part: what its locals read is in front of its stages."""
        self.number, self.stage = number, f"the locals of part {number}"
        self.orders.append(self.order)
        self.lanes, self.rows = False, part.rows is not None
        self.told = True
        self.names = Locals(self.sizes, {}, {}, {})
        self._lets(part.lets)
        self.names = self.names.inner()
        if part.rows is not None:
            self.names.enter(part.rows, ROW)
        self._lets(part.row_lets)
        around = self.names
        for stage in part.stages:
            self.order += 1
            self.stage, self.names = stage.name, around.inner()
            self.lanes, self.rows = False, part.rows is not None
            self.told = True
            if isinstance(stage, Dot):
                self._dot(stage)
            else:
                self._stage(stage)
        self.order += 1

    def _lets(self, lets: tuple[Let, ...]) -> None:
        for let in lets:
            self._statement(let)

    def _stage(self, stage: Stage) -> None:
        for loop in stage.loops:
            if loop.level is Level.WARP and self.rows:
                # A row that has rows itself takes them one after the other.
                self.names.enter(loop, f"turn of {loop.var.name}")
            elif loop.level is Level.WARP:
                self.names.enter(loop, ROW)
                self.rows = True
        self._lets(stage.before)
        outside, self.names = self.names, self.names.inner()
        for loop in stage.loops:
            if loop.level is Level.CTA:
                self.names.enter(loop, LANE)
                self.lanes, self.down = True, loop.down
            elif loop.level is not Level.WARP:
                self.names.enter(loop, f"turn of {loop.var.name}")
        for s in stage.body:
            if isinstance(s, (Fold, Running)):
                self._identity(s)
        for s in stage.body:
            self._statement(s)
        self.names, self.lanes = outside, False
        joined = {s.var for s in stage.body if isinstance(s, Fold) and s.buffer is None}
        for s in stage.after:
            self.behind = not joined.isdisjoint(variables(s.value))
            self._statement(s)
        self.behind = False

    def _dot(self, dot: Dot) -> None:
        self.told = False
        for loop in dot.loops:
            self.names.enter(loop, f"turn of {loop.var.name}")
        down, along = self.names.form(dot.m), self.names.form(dot.n)
        steps = self.names.form(dot.k)
        self._matrix(dot.a, down, steps, False)
        self._matrix(dot.b, steps, along, False)
        self._matrix(dot.c, down, along, True)

    def _matrix(self, x: Matrix, height: Form | None, width: Form | None, writes: bool) -> None:
        if x.buffer not in self.watched:
            return
        form, around = self.names.form(x.start), self.names
        self.names = around.inner()
        for symbol, stride, extent in (("down", x.down, height), ("along", x.along, width)):
            most = None if extent is None else upper_bound(extent)
            bounds = () if most is None else (most,)
            self.names.turns[symbol] = Turns(partial(tuple, bounds))
            form = joined("+", form, joined("*", {symbol: 1}, around.form(stride)))
        self._touch(x.buffer, writes, form)
        self.names = around

    def _statement(self, s: Statement) -> None:
        if isinstance(s, Prefetch):
            return
        self._reads(s.value)
        if isinstance(s, Let):
            self.names.let(s)
        elif s.buffer is not None and s.index is not None:
            self._reads(s.index)
            if s.buffer in self.watched:
                form = self._form(s.index)
                if isinstance(s, (Fold, Running)):
                    self._touch(s.buffer, False, form)
                self._touch(s.buffer, True, form)

    def _identity(self, s: Fold | Running) -> None:
        """What folds in memory begins with an identity there, in front of its first turn."""
        if s.buffer is not None and s.index is not None and s.buffer in self.watched:
            self._touch(s.buffer, True, self._form(s.index))

    def _reads(self, x: Expr) -> None:
        for part in loads(x):
            if part.buffer in self.watched:
                self._touch(part.buffer, False, self._form(part.index))

    def _form(self, index: Expr) -> Form | None:
        """The form of an index; equal ones in equal scopes are one."""
        known = self.names.known
        if index not in known:
            known[index] = self.names.form(index)
        return known[index]

    def _touch(self, buffer: str, writes: bool, form: Form | None) -> None:
        self.touches.append(
            Touch(
                buffer=buffer,
                writes=writes,
                stage=self.stage,
                part=self.number,
                order=self.order,
                form=form,
                turns=self.names.turns,
                lanes=self.lanes,
                rows=self.rows,
                told=self.told,
                down=self.lanes and self.down,
                behind=self.behind and writes,
            )
        )


def disjoint(a: Touch, b: Touch) -> bool:
    """Whether what two touches of one array may reach has no element in common."""
    x, y = a.range(), b.range()
    if a.buffer != b.buffer or x is None or y is None or x[0] != y[0]:
        return False
    return at_least(x[1], y[2] + 1) or at_least(y[1], x[2] + 1)
