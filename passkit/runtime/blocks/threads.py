"""The threads of a stage: its loops as axes of arrays, with an element for each iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from passkit.ast import Expr
from passkit.ast.stage import Level, Loop
from passkit.runtime.blocks.accesses import ROW_STRIDE, AccessOrigin
from passkit.runtime.evaluate import evaluate

Array = Any

ALL_THREADS = 0
"""The thread number of statements outside the thread loop: all threads of a row execute them."""
FIRST_THREAD = ROW_STRIDE - 1
"""The thread number of stores outside the thread loop: one thread of a row makes them."""


@frozen
class StageContext:
    """When a stage runs.

    Attributes:
        stage: the number of the stage.
        tile: the tile.
        tile_epoch: the barriers of tiles before the stage.
        row_epoch: the barriers of rows and tiles before the stage.
        first_step: the number of its first serial iteration.
        is_loop: the stage is a loop of its own, so that the thread loop is ordered after the
            statements before it, and before those after it. Each of the three has its own epoch.
    """

    stage: int
    tile: int
    tile_epoch: int
    row_epoch: int
    first_step: int
    is_loop: bool

    def epoch_of(self, moment: int) -> int:
        """Return the row epoch before the thread loop (0), in it (1) and after it (2).

        It is the same for all three unless the stage is a loop of its own.
        """
        return self.row_epoch + moment * self.is_loop


@frozen
class LoopAxis:
    """A loop as an axis of arrays.

    Attributes:
        loop: the loop.
        var: the values of its variable along the axis.
        exists: which iterations there are where rows have different numbers; None for all.
    """

    loop: Loop
    var: Array
    exists: Array | None


class StageThreads:
    """The iterations of a stage's loops: axis 0 are rows of a part, the others loops from outside.

    Serial loops are axes as well. Only reductions and scans may carry values from one iteration to
    the next, and the access histories report anything else.

    Args:
        rows: the numbers of the rows.
        rank: the number of loops.
        context: when the stage runs.
    """

    def __init__(self, rows: Array, rank: int, context: StageContext) -> None:
        self.rank, self.context = rank, context
        self.rows = rows.reshape(-1, *[1] * rank) * ROW_STRIDE
        self.axes: list[LoopAxis] = []

    def add(self, loop: Loop, values: Mapping[str, Array]) -> None:
        """Append the axis of a loop, whose bounds may depend on the variables in ``values``."""
        start, stop = bounds(loop, values)
        count = np.asarray(stop - start)
        most = max(0, int(count.max())) if count.size else 0
        inner_rank = self.rank - len(self.axes) - 1
        iterations = np.arange(most, dtype=np.int64).reshape(-1, *[1] * inner_rank)
        var = stop - 1 - iterations if loop.down else start + iterations
        is_ragged = count.size > 1 and bool((count < most).any())
        exists = iterations < count if is_ragged else None
        self.axes.append(LoopAxis(loop, np.asarray(var), exists))

    @property
    def values(self) -> dict[str, Array]:
        """The arrays of the loop variables by name."""
        return {a.loop.var.name: a.var for a in self.axes}

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows and of iterations of each loop; 1 for loops that are not added yet."""
        shape = [len(self.rows), *[1] * self.rank]
        for k, axis in enumerate(self.axes):
            shape[k + 1] = axis.var.shape[k - self.rank]
        return tuple(shape)

    def axes_of(self, level: Level) -> tuple[int, ...]:
        """Return the axes, from 1, of the loops of a level that have been added."""
        return tuple(k + 1 for k, a in enumerate(self.axes) if a.loop.level is level)

    def active(self, reduced: Sequence[int] = ()) -> Array | None:
        """Return the mask of existing iterations, None for all.

        ``reduced`` are axes along which the mask has length 1: it holds there if any iteration
        exists.
        """
        inside = [a.exists for k, a in enumerate(self.axes) if k + 1 not in reduced]
        masks = [mask for mask in inside if mask is not None]
        if not masks:
            return None
        combined = masks[0]
        for mask in masks[1:]:
            combined = combined & mask
        combined = combined.reshape(*[1] * (self.rank + 1 - combined.ndim), *combined.shape)
        several = tuple(k for k in reduced if combined.shape[k] > 1)
        return combined.any(several, keepdims=True) if several else combined

    def group(self, moment: int = 1, reduced: Sequence[int] = ()) -> ThreadGroup:
        """Return the threads that execute a statement.

        Args:
            moment: before (0), in (1) or after (2) the thread loop.
            reduced: axes of which the statement has one iteration.
        """
        shape = tuple(1 if k in reduced else n for k, n in enumerate(self.shape))
        warps = self._linear_index(self.axes_of(Level.WARP), shape)
        threads = warps * ROW_STRIDE
        thread_axes = [k for k in self.axes_of(Level.CTA) if k not in reduced]
        if thread_axes:
            threads = threads + self._linear_index(thread_axes, shape) + 1
        iterations = self._linear_index(self.axes_of(Level.THREAD), shape)
        return ThreadGroup(
            context=self.context,
            row_epoch=self.context.epoch_of(moment),
            shape=shape,
            row=self.rows + warps,
            thread=threads,
            step=iterations + self.context.first_step,
            active=self.active(reduced),
        )

    @property
    def num_steps(self) -> int:
        """The iterations of all serial loops together."""
        return int(np.prod([self.shape[k] for k in self.axes_of(Level.THREAD)], dtype=np.int64))

    def _linear_index(self, axes: Sequence[int], shape: tuple[int, ...]) -> Array:
        """Return the index along several axes as one number, the last axis the fastest.

        The result is an array that broadcasts to ``shape``; 0 without axes.
        """
        index: Array = np.zeros([1] * len(shape), np.int64)
        for k in axes:
            along = np.arange(shape[k]).reshape(-1, *[1] * (len(shape) - k - 1))
            index = index * shape[k] + along
        return index


@frozen
class ThreadGroup:
    """The threads that execute one statement together.

    Attributes:
        context: when the stage runs.
        row_epoch: the row epoch of the statement.
        shape: the shape that the following arrays broadcast to.
        row: the row of each thread.
        thread: the number of each thread.
        step: the serial iteration.
        active: which threads there are, None for all.
        after_reduction: as in `AccessOrigin`.
    """

    context: StageContext
    row_epoch: int
    shape: tuple[int, ...]
    row: Array
    thread: Array
    step: Array
    active: Array | None
    after_reduction: bool = False

    @property
    def storing(self) -> ThreadGroup:
        """The group as it stores: numbers of all threads of a row become that of one of them.

        These are `ALL_THREADS` and `FIRST_THREAD`; the numbers of other threads stay.
        """
        is_all = self.thread % ROW_STRIDE == ALL_THREADS
        return evolve(self, thread=np.where(is_all, self.thread + FIRST_THREAD, self.thread))

    @property
    def first_lane(self) -> ThreadGroup:
        """The group with the first thread of the thread loop in place of all threads of a row.

        `StageThreads.group` gives `ALL_THREADS`, which is 0, to statements outside the thread loop,
        and numbers the threads of the loop from 1 on. Here 1 is added to each thread number. The
        group must be one of a statement outside the thread loop.
        """
        return evolve(self, thread=self.thread + 1)

    @property
    def any_thread(self) -> AccessOrigin:
        """The origin of loads that need no check: thread `ALL_THREADS` of row 0 stands for all."""
        c = self.context
        return AccessOrigin(
            stage=c.stage,
            tile=c.tile,
            tile_epoch=c.tile_epoch,
            row_epoch=self.row_epoch,
            row=0,
            thread=ALL_THREADS,
            step=c.first_step,
            first_step=c.first_step,
        )

    def origin(
        self, active: Array | None, shape: tuple[int, ...]
    ) -> tuple[AccessOrigin, Array | None]:
        """Return the flat origin of accesses of a shape, and the mask of those that are made.

        Args:
            active: the mask of threads that access; None for all in the group.
            shape: the shape of the accesses.

        Returns:
            The origin of the accesses that are made, and their flat mask, None for all.
        """
        mask = self.active if active is None else active
        flat_mask = None if mask is None else np.broadcast_to(mask, shape).ravel()
        row, thread, step = (
            np.broadcast_to(x, shape).ravel() for x in (self.row, self.thread, self.step)
        )
        c = self.context
        origin = AccessOrigin(
            stage=c.stage,
            tile=c.tile,
            tile_epoch=c.tile_epoch,
            row_epoch=self.row_epoch,
            row=row,
            thread=thread,
            step=step,
            first_step=c.first_step,
            after_reduction=self.after_reduction,
        )
        return (origin if flat_mask is None else origin.selected(flat_mask)), flat_mask


def bounds(loop: Loop, values: Mapping[str, Array]) -> tuple[Array, Array]:
    """Return the first value of a loop variable and one past the last, as arrays.

    The latter is at most the loop's limit, if it has one. ``values`` has the arrays of the
    variables that the bounds depend on.
    """

    def number(x: Expr) -> Array:
        """Return the value of an expression of ``values`` as an array."""
        return np.asarray(evaluate(x, values))

    stop = number(loop.stop)
    return number(loop.start), stop if loop.limit is None else np.minimum(stop, number(loop.limit))
