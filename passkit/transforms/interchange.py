"""interchange: a few iterations of a loop over a reduced axis go inside the vector loop.

A reduction whose partial results are in memory, one for each column, would load and store them in
each iteration of the loop over rows. With some rows inside the vector loop they stay in registers
meanwhile. Elements are combined in the order of the rows either way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from passkit.ast import Binary, Expr, Load, Select, Var, const, size_of
from passkit.ast.stage import Fold, Loop, Prefetch, Running, Stage, Store
from passkit.ast.walk import variables, walk
from passkit.ir.strides import Stride, moves_with, stride_of
from passkit.transforms.vector_shape import vector_variables
from passkit.values import dtype as dt

ROWS_OF_ONE_ARRAY = 16
"""The rows inside the vector loop where one array is read."""
ROWS_OF_SEVERAL = 4
"""The rows where several are, which must not evict each other from the first-level cache."""
ROWS_WITH_PREFETCH = 4
"""The rows where those of the next iterations are prefetched meanwhile."""
ROWS_OF_EXTREMES = 8
"""The rows of a maximum or minimum, whose steps wait longer for each other, where these are known
not to share places of the cache. Sums take their rows in the same order wherever they are."""
PLACES_NBYTES = 4096
"""Rows whose distance is a multiple of so many bytes have the same places of a first-level cache,
and there are few of those."""

StrideOf = Callable[[Expr], Stride | None]


def may_interchange(
    stage: Stage, lane: Loop, serial: Loop, vectors: frozenset[Var], stride: StrideOf
) -> bool:
    """Return whether some iterations of a loop can go inside the vector loop.

    Divisors that differ from row to row are against it, as the reciprocal of each would be taken
    for each vector. So are long rows of several arrays that are only reduced: their distances are
    often powers of two, so that they would evict each other from the cache.

    Args:
        stage: the stage.
        lane: its vector loop.
        serial: the innermost of the loops around that.
        vectors: the variables that differ from point to point of the vector loop.
        stride: returns how far an index moves from point to point.
    """
    buffers = [s.buffer for s in stage.body if isinstance(s, (Fold, Running))]
    if not buffers or None in buffers or serial.down:
        return False
    if lane.wide and not any(isinstance(s, Store) for s in stage.body):
        rows = (x for x in _loads_that_move(stage, serial) if stride(x.index) != 0)
        if len({x.buffer for x in rows}) > 1:
            return False
    moving = vector_variables(stage.body, serial.var) - vectors
    return not any(
        isinstance(x, Binary) and x.op == "/" and not moving.isdisjoint(variables(x.b))
        for x in _parts(stage)
    )


def interchanged_rows(stage: Stage, serial: Loop, is_extreme: Callable[[Fold], bool]) -> Expr:
    """Return how many iterations of a loop go inside the vector loop at a time.

    Args:
        stage: the stage.
        serial: the loop.
        is_extreme: whether a reduction is a maximum or minimum.
    """
    loads = list(_loads_that_move(stage, serial))
    arrays = {x.buffer for x in loads}
    if len(arrays | {s.buffer for s in stage.body if isinstance(s, Store)}) > 1:
        return size_of(ROWS_OF_SEVERAL)
    if not any(isinstance(s, Prefetch) for s in stage.body):
        return size_of(ROWS_OF_ONE_ARRAY)
    if not any(isinstance(s, Fold) and is_extreme(s) for s in stage.body):
        return size_of(ROWS_WITH_PREFETCH)
    distances = {stride_of(x.index, serial.var, moves_with(serial.var)) for x in loads}
    return _rows_of_extremes(distances, PLACES_NBYTES // loads[0].dtype.nbytes)


def _rows_of_extremes(distances: set[Stride | None], page: int) -> Expr:
    """Return the rows of a maximum or minimum by the distances of rows, in elements."""
    distance, *others = distances
    if others or distance is None or (isinstance(distance, int) and distance % page == 0):
        return size_of(ROWS_WITH_PREFETCH)
    if isinstance(distance, int):
        return size_of(ROWS_OF_EXTREMES)
    elements = distance if isinstance(distance, Expr) else size_of(distance)
    differs = Binary("!=", elements % page, const(0, dt.int64), dt.bool_)
    return Select(differs, size_of(ROWS_OF_EXTREMES), size_of(ROWS_WITH_PREFETCH), dt.int64)


def _parts(stage: Stage) -> Iterator[Expr]:
    """Yield the subexpressions of all values of a stage."""
    for s in stage.body:
        if not isinstance(s, Prefetch):
            yield from walk(s.value)


def _loads_that_move(stage: Stage, serial: Loop) -> Iterator[Load]:
    """Yield the loads of another element in each iteration of a loop."""
    for x in _parts(stage):
        if isinstance(x, Load) and serial.var in variables(x.index):
            yield x
