"""The accesses of a phase of a kernel AST to buffers that its threads share, in order.

Barrier insertion and the race check both read them here: which statement accesses which element, in
which stage and by which threads.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
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
from passkit.ast.walk import loads, variables
from passkit.checks.stage_indices import ROW, THREAD, ElementIndex, IndexScope, RowRange
from passkit.values.dtype import int64
from passkit.values.size import Extent

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


@frozen(eq=False)
class StageAccess:
    """An access to an element of a buffer, by all threads and in all iterations.

    Attributes:
        buffer: the name of the buffer.
        is_store: whether it is a store.
        element: the element.
        part: the number of the part.
        stage: the position of the stage in the part; -1 for the locals of the part.
        order: the position of the stage among the parts and stages of the phase.
        stage_name: the name of the stage.
        executor: the threads that execute it.
        in_rows: whether it belongs to one row of the tile.
        follows_reduction: whether it stores the result of a reduction across the threads of the
            row: all of them have then executed their loads in the stage.
    """

    buffer: str
    is_store: bool
    element: ElementIndex
    part: int
    stage: int
    order: int
    stage_name: str
    executor: Executor
    in_rows: bool
    follows_reduction: bool

    @property
    def index(self) -> Sum | None:
        """The element as a sum of iterations and sizes; None if it is unknown."""
        return self.element.sum

    @property
    def is_per_thread(self) -> bool:
        """Whether each iteration of a loop over threads is one thread's."""
        return self.executor is Executor.EACH

    @property
    def row_range(self) -> RowRange | None:
        """The elements of each row, if they are certainly those of no other row."""
        return self.element.row_range if self.in_rows else None

    def has_index_of(self, other: StageAccess) -> bool:
        """Return whether both indices are certainly equal in equal iterations of the loops."""
        return self.index is not None and self.index == other.index


class PhaseAccesses:
    """The accesses of a phase to the buffers ``watched``, in order.

    Args:
        phase: the phase.
        watched: the names of the buffers.
        sizes: the values of the size arguments.

    Attributes:
        accesses: the accesses.
        first_order: the position of each part; its stages follow it.
    """

    def __init__(self, phase: Phase, watched: Container[str], sizes: Mapping[str, Extent]) -> None:
        self.watched, self.sizes = watched, sizes
        self.accesses: list[StageAccess] = []
        self.first_order: list[int] = []
        order = 0
        for number, part in enumerate(phase.parts):
            self.first_order.append(order)
            self._part(number, part)
            order += 1 + len(part.stages)

    def _part(self, number: int, part: Part) -> None:
        """Record the accesses of a part; those of its locals come before those of its stages."""
        self.part, self.stage, self.stage_name = number, -1, f"the locals of part {number}"
        self.in_rows, self.executor = part.rows is not None, Executor.ALL
        self.follows_reduction = False
        self.loop_scopes: list[tuple[tuple[Loop, ...], IndexScope]] = []
        self.scope = IndexScope(self.sizes)
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
                self.executor = Executor.EACH
        for s in stage.body:
            if isinstance(s, (Fold, Running)):  # the identity, before the first iteration
                self._element(s.buffer, s.index, is_store=True)
        self._statements(stage.body)
        self.scope, self.executor = outer, Executor.ALL
        reduced = {s.var for s in stage.body if isinstance(s, Fold) and s.buffer is None}
        for store in stage.after:
            self.follows_reduction = not reduced.isdisjoint(variables(store.value))
            self._statements([store])
        self.follows_reduction = False

    def _scope_of_loops(self, stage: Stage) -> IndexScope:
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
        """Add an access by the current statement, unless its buffer is not watched."""
        if buffer is None or index is None or buffer not in self.watched:
            return
        self.accesses.append(
            StageAccess(
                buffer=buffer,
                is_store=is_store,
                element=self.scope.element(index),
                part=self.part,
                stage=self.stage,
                order=self.first_order[self.part] + 1 + self.stage,
                stage_name=self.stage_name,
                executor=self.executor,
                in_rows=self.in_rows,
                follows_reduction=self.follows_reduction and is_store,
            )
        )
