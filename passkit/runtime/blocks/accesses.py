"""Access histories: which thread last accessed each element, and between which barriers.

Two accesses are ordered if the same thread makes both, or if all threads concerned synchronize in
between. A barrier of a row orders its threads, a barrier of a tile orders its rows, and the end of
a phase orders tiles; so threads, rows and tiles are compared one after the other. Barriers are
counted: the number of barriers so far is an epoch, and accesses in the same epoch are not ordered.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve, frozen

Array = Any

ROW_STRIDE = 1 << 32
"""The distance between the numbers of two rows of a part.

Between them are the rows of a stage's WARP loop. The threads of such a row are numbered from its
own number times this distance.
"""
UNTOUCHED = -1
"""The number of no stage, tile, row or thread: there was no access."""
SEVERAL = -2
"""In place of a number: accesses by several, none of which is ordered with the others."""


@frozen
class AccessOrigin:
    """The threads that access some elements; numbers, or arrays with an element for each access.

    Attributes:
        stage: the number of the running stage.
        tile: the tile.
        tile_epoch: the barriers of tiles so far.
        row_epoch: the barriers of rows and tiles so far.
        row: the row, a multiple of `ROW_STRIDE` plus the index of a WARP loop.
        thread: the thread.
        step: the iteration of the serial loops, which orders the accesses of a thread in a stage.
        first_step: the first iteration of this stage.
        after_reduction: the access stores what all threads of the row have reduced, so that each
            of them is done with the loads of the stage.
    """

    stage: int
    tile: int
    tile_epoch: int
    row_epoch: int
    row: Array
    thread: Array
    step: Array
    first_step: int
    after_reduction: bool = False

    def selected(self, mask: Array) -> AccessOrigin:
        """Return the origin of those accesses for which ``mask`` is true."""
        return evolve(self, row=self.row[mask], thread=self.thread[mask], step=self.step[mask])

    def repeated(self, count: int) -> AccessOrigin:
        """Return an origin in which each access is followed by ``count`` - 1 copies of it."""
        row, thread, step = (np.repeat(x, count) for x in (self.row, self.thread, self.step))
        return evolve(self, row=row, thread=thread, step=step)


class AccessHistory:
    """The last access of one kind, loads or stores, to each element of a memory region.

    Args:
        size: the number of elements.
        tiles: whether several tiles access the same elements.
        rows: whether several rows access the same elements.
    """

    def __init__(self, size: int, tiles: bool, rows: bool) -> None:
        self.tiles, self.rows = tiles, rows
        (
            self.stage,
            self.tile,
            self.tile_epoch,
            self.row_epoch,
            self.row,
            self.thread,
            self.step,
        ) = (np.full(size, UNTOUCHED, np.int64) for _ in range(7))

    def end_phase(self) -> None:
        """Let all accesses so far count as ordered before those of other tiles from now on.

        The tiles recorded for them are erased.
        """
        self.tile[:] = UNTOUCHED

    def unordered(self, at: Array, origin: AccessOrigin) -> Array:
        """Return a mask of the accesses that are not ordered with the last one of this kind.

        Args:
            at: the elements accessed.
            origin: the threads that access them, and the barriers so far.
        """
        races: Array = (self.row_epoch[at] == origin.row_epoch) & (self.thread[at] != origin.thread)
        if self.rows:
            races |= (self.tile_epoch[at] == origin.tile_epoch) & (self.row[at] != origin.row)
        if self.tiles:
            tile = self.tile[at]
            races |= (tile != UNTOUCHED) & (tile != origin.tile)
        return races

    def before_reduction(self, at: Array, origin: AccessOrigin) -> Array:
        """Return a mask of the elements ``at`` whose last access a reduction orders before a store.

        That is so if ``origin`` stores the result of a reduction, and the access was made in the
        same stage by threads of the same row.
        """
        same: Array = (self.stage[at] == origin.stage) & (self.row[at] == origin.row)
        return same & origin.after_reduction

    def by_other_threads(self, at: Array, origin: AccessOrigin) -> Array:
        """Return a mask of the elements ``at`` whose last access was by another thread.

        ``origin`` has the threads that access them now. Elements without access count as accessed
        by another thread.
        """
        return self.thread[at] != origin.thread

    def in_later_iteration(self, at: Array, origin: AccessOrigin) -> Array:
        """Return a mask of the elements last accessed in a later iteration of this stage.

        Args:
            at: the elements accessed.
            origin: the threads that access them, and their iteration.
        """
        return (self.step[at] >= origin.first_step) & (self.step[at] > origin.step)

    def replace(self, at: Array, origin: AccessOrigin) -> Array:
        """Record accesses by ``origin`` to the elements ``at`` in place of earlier ones.

        Returns: A mask of the accesses to elements that another thread of ``origin`` accesses, too.
        """
        self._record(at, origin)
        self.tile[at] = origin.tile
        self.row[at] = origin.row
        self.thread[at] = origin.thread
        return (self.row[at] != origin.row) | (self.thread[at] != origin.thread)

    def merge(self, at: Array, origin: AccessOrigin) -> None:
        """Record accesses by ``origin`` to the elements ``at`` beside earlier ones of their epoch.

        Where several tiles, rows or threads have accessed an element in an epoch, their number
        becomes `SEVERAL`.
        """
        tile = self.tile[at]
        is_same_tile = (tile == UNTOUCHED) | (tile == origin.tile)
        self.tile[at] = np.where(is_same_tile, origin.tile, SEVERAL)
        for numbers, number, is_same_epoch in (
            (self.row, origin.row, self.tile_epoch[at] == origin.tile_epoch),
            (self.thread, origin.thread, self.row_epoch[at] == origin.row_epoch),
        ):
            merged = np.where(is_same_epoch & (numbers[at] != number), SEVERAL, number)
            numbers[at] = merged
            numbers[at[numbers[at] != merged]] = SEVERAL
        self._record(at, origin)

    def _record(self, at: Array, origin: AccessOrigin) -> None:
        """Record stage, barriers and iteration of accesses by ``origin`` to the elements ``at``."""
        self.stage[at] = origin.stage
        self.tile_epoch[at] = origin.tile_epoch
        self.row_epoch[at] = origin.row_epoch
        self.step[at] = origin.step
