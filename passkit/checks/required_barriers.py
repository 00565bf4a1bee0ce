"""The barriers that two accesses of a kernel AST need, by the order in which they may follow."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, IntEnum

from passkit.ast import Var
from passkit.ast.stage import Phase
from passkit.checks.overlap import ScratchMemory, have_common_tile
from passkit.checks.stage_accesses import Executor, StageAccess
from passkit.checks.stage_indices import ROW, THREAD, may_meet


class RequiredBarrier(IntEnum):
    """The threads that have to wait for each other between two accesses.

    IMPOSSIBLE: no barrier orders the accesses.
    """

    NONE = 0
    ROW = 1
    TILE = 2
    IMPOSSIBLE = 3


NONE, IMPOSSIBLE = RequiredBarrier.NONE, RequiredBarrier.IMPOSSIBLE


class Order(Enum):
    """Where the first of two accesses stands, seen from the second one, as text for messages.

    Attributes:
        STAGE: in the same stage.
        ROW: in an earlier stage of the same row.
        NEXT_ROW: in another row of the part.
        TILE: in an earlier stage or part of the same tile.
        NEXT_TILE: in another tile of the same threads.
    """

    STAGE = "in the same stage"
    ROW = "before in the row"
    NEXT_ROW = "in a row before"
    TILE = "before"
    NEXT_TILE = "in a tile before"


class BarrierRequirements:
    """The barriers that accesses of a phase need, of which at least one is a store.

    Args:
        phase: the phase.
        scratch: the scratch arrays.
    """

    def __init__(self, phase: Phase, scratch: ScratchMemory) -> None:
        self.parts, self.tile, self.scratch = phase.parts, phase.tile.var, scratch

    def between(self, a: StageAccess, b: StageAccess) -> Iterator[tuple[Order, RequiredBarrier]]:
        """Yield in which orders ``b`` may follow ``a``, each with the barrier that it needs."""
        has_rows = self.parts[a.part].rows is not None
        if a.order == b.order:
            yield Order.STAGE, self._within_stage(a, b)
        elif a.part == b.part and a.order < b.order:
            if has_rows:
                yield Order.ROW, self._within_row(a, b)
            else:
                yield Order.TILE, self._across_stages(a, b, Order.TILE)
        elif a.part < b.part and have_common_tile(self.parts[a.part], self.parts[b.part]):
            yield Order.TILE, self._across_stages(a, b, Order.TILE)
        if a.part == b.part and has_rows:
            yield Order.NEXT_ROW, self._across_rows(a, b)
        if self.scratch.has(a):
            yield Order.NEXT_TILE, self._across_stages(a, b, Order.NEXT_TILE)

    def _within_stage(self, a: StageAccess, b: StageAccess) -> RequiredBarrier:
        """Return the barrier that two accesses of one stage need; there is no place for one."""
        is_product = a is b and a.executor is Executor.UNKNOWN
        if _are_disjoint(a, b) or is_product or self._follows_reduction(a, b):
            return NONE
        x = a.element
        is_single = a.executor is Executor.ALL and not b.is_per_thread
        if is_single and a.is_store and b.is_store:
            is_alone = (
                not a.in_rows or x.depends_on(ROW) or self.scratch.is_of_row(a) or x.runs_once(ROW)
            )
            return NONE if is_alone and a.index == b.index else IMPOSSIBLE
        if not (a.has_index_of(b) and a.is_per_thread and b.is_per_thread):
            return IMPOSSIBLE
        of_row = self.scratch.is_of_row(a)  # each row has its own array: no other row accesses it
        loops = [THREAD] if of_row or not a.in_rows else [THREAD, ROW]
        if a.buffer != b.buffer:
            loops = [v for y in (a, b) for v in y.element.scope.loops if v != ROW or not of_row]
            if not self.scratch.have_same_elements(a, b):
                return IMPOSSIBLE
        if x.is_injective(*loops):
            return NONE
        if a.buffer != b.buffer or x.is_literal:
            return IMPOSSIBLE
        is_plausible = all(x.depends_on(v) or x.runs_once(v) for v in loops)
        return NONE if is_plausible else IMPOSSIBLE

    def _follows_reduction(self, a: StageAccess, b: StageAccess) -> bool:
        """Return whether a row stores a reduction's result over an element that it reduced."""
        if not (a.follows_reduction or b.follows_reduction) or (a.is_store and b.is_store):
            return False
        if not self.scratch.have_same_elements(a, b):
            return False
        return a.has_index_of(b) and a.in_rows and b.in_rows and _has_one_row(a)

    def _within_row(self, a: StageAccess, b: StageAccess) -> RequiredBarrier:
        """Return the barrier that accesses of two stages of one row need."""
        return NONE if self._have_one_thread(a, b, frozenset([ROW])) else RequiredBarrier.ROW

    def _across_rows(self, a: StageAccess, b: StageAccess) -> RequiredBarrier:
        """Return the barrier that accesses of two rows of a part need.

        The rows have different threads, or are executed one after the other by the same threads.
        """
        if self.scratch.is_of_row(a) and self.scratch.is_of_row(b):
            return NONE if self._have_one_thread(a, b) else RequiredBarrier.ROW
        x, y = a.element, b.element
        if self._have_one_row(a, b) or _are_disjoint(a, b) or x.runs_once(ROW):
            return NONE
        if x.sum is None or y.sum is None:
            return IMPOSSIBLE
        if not self.scratch.has(a):
            return NONE if x.depends_on(ROW) and y.depends_on(ROW) else IMPOSSIBLE
        steps = x.sum.coefficient(ROW), y.sum.coefficient(ROW)
        is_certain = (x.is_literal and y.is_literal) or 0 in steps or steps[0] != steps[1]
        return IMPOSSIBLE if is_certain else NONE

    def _across_stages(self, a: StageAccess, b: StageAccess, order: Order) -> RequiredBarrier:
        """Return the barrier that accesses need in two stages without rows, parts or tiles."""
        depends_on_tile = a.element.depends_on(self.tile) or b.element.depends_on(self.tile)
        is_moved = order is Order.NEXT_TILE and depends_on_tile
        if any(self.scratch.is_of_row(x) and not x.in_rows for x in (a, b)):
            return IMPOSSIBLE
        if self.scratch.is_of_row(a) and self.scratch.is_of_row(b):
            is_own = not is_moved and self._have_one_thread(a, b)
            return NONE if is_own else RequiredBarrier.ROW
        if self._have_one_row(a, b) and not is_moved:
            return NONE if self._have_one_thread(a, b, frozenset([ROW])) else RequiredBarrier.ROW
        if not a.in_rows and not b.in_rows and not is_moved and self._have_one_thread(a, b):
            return NONE
        return RequiredBarrier.TILE

    def _have_one_thread(
        self, a: StageAccess, b: StageAccess, fixed: frozenset[Var] = frozenset()
    ) -> bool:
        """Return whether each element that both access is accessed by one thread.

        ``fixed`` are iterations that are equal in both accesses.
        """
        if a.executor is not b.executor or a.executor is Executor.UNKNOWN:
            return False
        if (
            a.in_rows != b.in_rows
            or not self.scratch.have_same_elements(a, b)
            or not a.has_index_of(b)
        ):
            return False
        if a.executor is Executor.ALL:
            return a.is_store and b.is_store
        return all(x.element.is_injective(THREAD, fixed=fixed) for x in (a, b))

    def _have_one_row(self, a: StageAccess, b: StageAccess) -> bool:
        """Return whether each element that both access belongs to rows of one number."""
        if not self.scratch.have_same_elements(a, b):
            return False
        if a.row_range is not None and a.row_range == b.row_range:
            return True
        is_same = a.has_index_of(b) and a.in_rows and b.in_rows
        return is_same and _has_one_row(a) and _has_one_row(b)


def _has_one_row(a: StageAccess) -> bool:
    """Return whether each element of an access belongs to one row of the tile."""
    return a.element.depends_on(ROW) and a.element.is_injective(ROW)


def _are_disjoint(a: StageAccess, b: StageAccess) -> bool:
    """Return whether two accesses are to one array, and certainly have no element in common."""
    return a.buffer == b.buffer and not may_meet(a.element, b.element)
