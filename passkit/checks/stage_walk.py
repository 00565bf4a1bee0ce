"""The walk over the kernel AST of a phase that visits each access to buffers that threads share.

Barrier insertion and the race check describe indices in different ways, each with a scope and an
access class of its own. Which statement accesses which buffer, in which stage and by which threads,
is the same for both: `StageWalk` says it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterable
from enum import Enum
from typing import Generic, Protocol, Self, TypeVar

from passkit.ast import Expr, Var, const
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
from passkit.ast.walk import loads, variables
from passkit.values.dtype import int64

THREAD, ROW = Var("THREAD", int64), Var("ROW", int64)
"""The iteration of a loop over the threads of a row or tile, and of a loop over rows.

Iteration k of a loop over threads is always the same thread's, wherever the loop begins.
"""
MATRIX_ROW, MATRIX_COLUMN = Var("MATRIX_ROW", int64), Var("MATRIX_COLUMN", int64)
"""The row and the column of an element of a matrix."""


class Executor(Enum):
    """The threads that execute a statement.

    Attributes:
        EACH: each iteration of a loop over threads is one thread's.
        ALL: all threads execute it with the same values; only the first one stores.
        UNKNOWN: the dialect decides, as for the elements of a matrix product.
    """

    EACH = "each"
    ALL = "all"
    UNKNOWN = "unknown"


class IndexScope(Protocol):
    """The definitions of the variables that an index may contain."""

    def inner(self) -> Self:
        """Return a copy for a nested scope."""

    def define(self, let: Let) -> None:
        """Add a local variable."""

    def enter(self, loop: Loop, iteration: Var | None = None) -> None:
        """Add a loop, whose iterations are counted by ``iteration`` or else by its variable."""


ScopeT = TypeVar("ScopeT", bound=IndexScope)


class StageWalk(ABC, Generic[ScopeT]):
    """Visits the parts of a phase in order and calls `record` for each access.

    Attributes:
        watched: the names of the buffers whose accesses are recorded.
        scope: the definitions at the current statement.
        part: the number of the current part.
        stage: the number of the current stage in its part; -1 for the locals of the part.
        stage_name: the name of the current stage.
        executor: the threads that execute the current statement.
        in_rows: whether the current statement belongs to one row of the tile.
        is_reversed: whether the loop over threads runs from the last iteration to the first.
        follows_reduction: whether the current statement stores the result of a reduction across the
            threads of a row, all of which have then executed the loops of the stage.
    """

    scope: ScopeT

    def __init__(self, watched: Container[str]) -> None:
        self.watched = watched

    @abstractmethod
    def new_scope(self) -> ScopeT:
        """Return an empty scope."""

    @abstractmethod
    def record(self, buffer: str, is_store: bool, index: Expr) -> None:
        """Add an access to an element of a watched buffer by the current statement."""

    def visit(self, phase: Phase) -> None:
        """Record the accesses of all parts of a phase."""
        for k, part in enumerate(phase.parts):
            self._part(k, part)

    def _part(self, number: int, part: Part) -> None:
        """Record the accesses of a part; those of its locals come before those of its stages."""
        self.part, self.stage, self.stage_name = number, -1, f"the locals of part {number}"
        self.in_rows, self.executor = part.rows is not None, Executor.ALL
        self.is_reversed = self.follows_reduction = False
        self.loop_scopes: list[tuple[tuple[Loop, ...], ScopeT]] = []
        self.scope = self.new_scope()
        self._statements(part.lets)
        self.scope = self.scope.inner()
        if part.rows is not None:
            self.scope.enter(part.rows, ROW)
        self._statements(part.row_lets)
        outer = self.scope
        for k, stage in enumerate(part.stages):
            self.stage, self.stage_name, self.scope = k, stage.name, outer.inner()
            self.in_rows, self.executor = part.rows is not None, Executor.ALL
            if isinstance(stage, Dot):
                self._product(stage)
            else:
                self._loops(stage)

    def _loops(self, stage: Stage) -> None:
        """Record the accesses of a stage that is a loop nest."""
        for loop in stage.loops:
            if loop.level is Level.WARP:  # a row executes its own rows one after the other
                self.scope.enter(loop, None if self.in_rows else ROW)
                self.in_rows = True
        self._statements(stage.before)
        outer, self.scope = self.scope, self._scope_of_loops(stage)
        for loop in stage.loops:
            if loop.level is Level.CTA:
                self.executor, self.is_reversed = Executor.EACH, loop.down
        for s in stage.body:
            if isinstance(s, (Fold, Running)):  # the identity, before the first iteration
                self._element(s.buffer, s.index, is_store=True)
        self._statements(stage.body)
        self.scope, self.executor, self.is_reversed = outer, Executor.ALL, False
        reduced = {s.var for s in stage.body if isinstance(s, Fold) and s.buffer is None}
        for store in stage.after:
            self.follows_reduction = not reduced.isdisjoint(variables(store.value))
            self._statements([store])
        self.follows_reduction = False

    def _scope_of_loops(self, stage: Stage) -> ScopeT:
        """Return the scope inside the loops of a stage.

        Stages with equal loops and without index variables of their own share one, so that equal
        indices are analyzed once.
        """
        is_shared = not any(
            isinstance(s, Let) and s.var.dtype is int64 for s in (*stage.before, *stage.body)
        )
        if is_shared:
            scope = next((x for loops, x in self.loop_scopes if loops == stage.loops), None)
            if scope is not None:
                return scope
        scope = self.scope.inner()
        for loop in stage.loops:
            if loop.level is not Level.WARP:
                scope.enter(loop, THREAD if loop.level is Level.CTA else None)
        if is_shared:
            self.loop_scopes.append((stage.loops, scope))
        return scope

    def _product(self, dot: Dot) -> None:
        """Record the accesses of a matrix product."""
        self.executor = Executor.UNKNOWN
        for loop in dot.loops:
            self.scope.enter(loop)
        self._matrix(dot.a, dot.m, dot.k, False)
        self._matrix(dot.b, dot.k, dot.n, False)
        self._matrix(dot.c, dot.m, dot.n, True)

    def _matrix(self, x: Matrix, rows: Expr, columns: Expr, is_store: bool) -> None:
        """Record the access to all elements of a matrix."""
        outer, zero = self.scope, const(0, int64)
        self.scope = outer.inner()
        self.scope.enter(Loop(MATRIX_ROW, zero, rows, Level.THREAD))
        self.scope.enter(Loop(MATRIX_COLUMN, zero, columns, Level.THREAD))
        index = x.start + MATRIX_ROW * x.down + MATRIX_COLUMN * x.along
        self._element(x.buffer, index, is_store)
        self.scope = outer

    def _statements(self, statements: Iterable[Statement]) -> None:
        """Record the accesses of statements: of each first the loads, then the store."""
        for s in statements:
            if isinstance(s, Prefetch):
                continue
            self._loads(s.value)
            if isinstance(s, Let):
                self.scope.define(s)
            elif s.index is not None:
                self._loads(s.index)
                if isinstance(s, (Fold, Running)):
                    self._element(s.buffer, s.index, is_store=False)
                self._element(s.buffer, s.index, is_store=True)

    def _loads(self, x: Expr) -> None:
        """Record the loads in an expression."""
        for load in loads(x):
            self._element(load.buffer, load.index, is_store=False)

    def _element(self, buffer: str | None, index: Expr | None, is_store: bool) -> None:
        """Record an access, unless its buffer is not watched."""
        if buffer is not None and index is not None and buffer in self.watched:
            self.record(buffer, is_store, index)
