"""What a phase reads and writes of the buffers its threads share, and which thread does so."""

from __future__ import annotations

from collections.abc import Container
from enum import Enum

from attrs import frozen

from passkit.ast import Expr, Var, const
from passkit.ast.index import Sum
from passkit.ast.stage import (
    Dot,
    Fold,
    Let,
    Level,
    Loop,
    Matrix,
    Part,
    Phase,
    Prefetch,
    Running,
    Stage,
    Statement,
)
from passkit.ast.walk import loads
from passkit.transforms.index_scopes import LANE, ROW, Row, Scope, ScopedIndex
from passkit.values import dtype as dt

DOWN, ALONG = Var("DOWN", dt.int64), Var("ALONG", dt.int64)
"""The row and the column of an element of a matrix."""


class By(Enum):
    """Which threads do something: each lane in its turn; all, of which the first writes; others."""

    LANES = "lanes"
    ALL = "all"
    UNTOLD = "untold"


@frozen(eq=False)
class Access:
    """A read or a write of a buffer.

    ``stage`` is the position in the part, -1 where its locals are. ``in_rows`` says that rows are
    shared out as well.
    """

    buffer: str
    write: bool
    place: ScopedIndex
    part: int
    stage: int
    by: By
    in_rows: bool

    @property
    def index(self) -> Sum:
        """The index, without locals."""
        return self.place.index

    @property
    def one_lane(self) -> bool:
        """Whether an element of a row, or of a tile without rows, has one lane."""
        return self.by is By.LANES and self.place.one_lane

    @property
    def one_row(self) -> bool:
        """Whether an element has one row of the tile."""
        return self.in_rows and self.place.one_row

    @property
    def row(self) -> Row | None:
        """What an element has in common with those of its row only, if that is certain."""
        return self.place.row if self.in_rows else None

    def mentions(self, var: Var) -> bool:
        """Whether the index depends on a variable."""
        return self.place.mentions(var)


def accesses_of(phase: Phase, watched: Container[str]) -> list[Access]:
    """All reads and writes that a phase makes of the buffers ``watched``, in order."""
    found = _Collector(watched)
    for k, part in enumerate(phase.parts):
        found.part(k, part)
    return found.accesses


class _Collector:
    def __init__(self, watched: Container[str]) -> None:
        self.watched = watched
        self.accesses: list[Access] = []

    def part(self, number: int, part: Part) -> None:
        """A part: its locals count as what stands in front of its stages."""
        self.number, self.position, self.in_rows = number, -1, part.rows is not None
        self.scopes: list[tuple[tuple[Loop, ...], Scope]] = []
        self.scope, self.by = Scope(), By.ALL
        for let in part.lets:
            self.let(let)
        if part.rows is not None:
            self.scope.enter(part.rows, ROW)
        for let in part.row_lets:
            self.let(let)
        around = self.scope
        for k, stage in enumerate(part.stages):
            self.position, self.scope, self.by = k, around.inner(), By.ALL
            self.in_rows = part.rows is not None
            if isinstance(stage, Dot):
                self.dot(stage)
            else:
                self.stage(stage)

    def stage(self, stage: Stage) -> None:
        """A stage: each turn of its loops over lanes is one thread's."""
        for loop in stage.loops:
            if loop.level is Level.WARP:  # a row takes its own rows one after the other
                self.scope.enter(loop, None if self.in_rows else ROW)
                self.in_rows = True
        for let in stage.before:
            self.let(let)
        around, self.scope = self.scope, self._inside(stage)
        if any(loop.level is Level.CTA for loop in stage.loops):
            self.by = By.LANES
        for s in stage.body:
            self.statement(s)
        self.scope, self.by = around, By.ALL
        for store in stage.after:
            self.statement(store)

    def _inside(self, stage: Stage) -> Scope:
        """The scope in the loops of a stage; stages of equal loops without indices share one."""
        known = stage.body if not stage.before else (*stage.before, *stage.body)
        alike = not any(isinstance(s, Let) and s.var.dtype is dt.int64 for s in known)
        if alike:
            found = next((x for loops, x in self.scopes if loops == stage.loops), None)
            if found is not None:
                return found
        scope = self.scope.inner()
        for loop in stage.loops:
            if loop.level is not Level.WARP:
                scope.enter(loop, LANE if loop.level is Level.CTA else None)
        if alike:
            self.scopes.append((stage.loops, scope))
        return scope

    def dot(self, dot: Dot) -> None:
        """A product: which thread has which of its elements is not told."""
        for loop in dot.loops:
            self.scope.enter(loop)
        zero, self.by = const(0, dt.int64), By.UNTOLD
        for x, down, along, write in (
            (dot.a, dot.m, dot.k, False),
            (dot.b, dot.k, dot.n, False),
            (dot.c, dot.m, dot.n, True),
        ):
            around, self.scope = self.scope, self.scope.inner()
            self.scope.enter(Loop(DOWN, zero, down, Level.THREAD))
            self.scope.enter(Loop(ALONG, zero, along, Level.THREAD))
            if x.buffer in self.watched:
                self.add(x.buffer, write, _element(x))
            self.scope = around

    def let(self, let: Let) -> None:
        self.reads(let.value)
        self.scope.let(let)

    def statement(self, s: Statement) -> None:
        """What a statement reads, then what it writes."""
        if isinstance(s, Let):
            self.let(s)
        if isinstance(s, (Let, Prefetch)):
            return
        self.reads(s.value)
        if s.buffer is None or s.index is None:
            return
        self.reads(s.index)
        if s.buffer in self.watched:
            if isinstance(s, (Fold, Running)):
                self.add(s.buffer, False, s.index)
            self.add(s.buffer, True, s.index)

    def reads(self, x: Expr) -> None:
        for part in loads(x):
            if part.buffer in self.watched:
                self.add(part.buffer, False, part.index)

    def add(self, buffer: str, write: bool, at: Expr) -> None:
        where = self.number, self.position
        place = self.scope.place(at)
        self.accesses.append(Access(buffer, write, place, *where, self.by, self.in_rows))


def _element(x: Matrix) -> Expr:
    return x.start + DOWN * x.down + ALONG * x.along
