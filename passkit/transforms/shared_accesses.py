"""The accesses of a phase to buffers that its threads share, for the insertion of barriers."""

from __future__ import annotations

from collections.abc import Container

from attrs import frozen

from passkit.ast import Expr, Var
from passkit.ast.index import Sum
from passkit.ast.stage import Phase
from passkit.checks.stage_walk import Executor, StageWalk
from passkit.transforms.index_scopes import ElementIndex, RowRange, SumScope


@frozen(eq=False)
class SharedAccess:
    """An access to an element of a buffer, by all threads and in all iterations.

    Attributes:
        buffer: the name of the buffer.
        is_store: whether it is a store.
        element: the element.
        part: the number of the part.
        stage: the position of the stage in the part; -1 for the locals of the part.
        executor: the threads that execute it.
        in_rows: whether it belongs to one row of the tile.
    """

    buffer: str
    is_store: bool
    element: ElementIndex
    part: int
    stage: int
    executor: Executor
    in_rows: bool

    @property
    def index(self) -> Sum:
        """The index as a sum of iterations and sizes."""
        return self.element.index

    @property
    def has_one_thread(self) -> bool:
        """Whether each element of a row, or of a tile without rows, belongs to one thread."""
        return self.executor is Executor.EACH and self.element.has_one_thread

    @property
    def has_one_row(self) -> bool:
        """Whether each element belongs to one row of the tile."""
        return self.in_rows and self.element.has_one_row

    @property
    def row_range(self) -> RowRange | None:
        """The elements of each row, if they are certainly those of no other row."""
        return self.element.row_range if self.in_rows else None

    def depends_on(self, var: Var) -> bool:
        """Return whether the index contains a variable."""
        return self.element.depends_on(var)


def accesses_of(phase: Phase, watched: Container[str]) -> list[SharedAccess]:
    """Return all accesses of a phase to the buffers ``watched``, in order."""
    collector = _SharedCollector(watched)
    collector.visit(phase)
    return collector.accesses


class _SharedCollector(StageWalk[SumScope]):
    """Collects the accesses of a phase in order."""

    def __init__(self, watched: Container[str]) -> None:
        super().__init__(watched)
        self.accesses: list[SharedAccess] = []

    def new_scope(self) -> SumScope:
        """Return an empty scope."""
        return SumScope()

    def record(self, buffer: str, is_store: bool, index: Expr) -> None:
        """Add an access by the current statement."""
        element = self.scope.element(index)
        self.accesses.append(
            SharedAccess(
                buffer, is_store, element, self.part, self.stage, self.executor, self.in_rows
            )
        )
