"""Marks: which thread touched each element of a buffer last, and since which wait.

Two accesses are in order if one thread makes both, or if all threads that can be meant have waited
between them. A wait of a row orders what its threads do, a wait of a tile what its rows do, and the
end of a phase what its tiles do; so threads, rows and tiles are compared one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from attrs import evolve, frozen

Array = Any

APART = 1 << 32
"""Rows have numbers of two parts: rows of a part are so far apart, in between are those of a WARP
loop of a stage. The threads of such a row are numbered behind as many times its number."""
NOBODY, MANY = -1, -2
"""In place of a number: not touched, and touched by several."""


@frozen
class Who:
    """Who makes an access to elements: numbers, and where threads differ an array of them.

    ``stage`` is the number of the stage that runs. ``team`` counts the waits of tiles, ``squad``
    also those of rows: what has an equal one is not in order. ``step`` is the turn of the serial
    loops, by which one thread orders what it does in a stage; the stage's begin at ``first_step``.
    They are ``joined`` where they store what all threads of their row have found: each of those has
    loaded before what it loads in the stage.
    """

    stage: int
    tile: int
    team: int
    squad: int
    row: Array
    thread: Array
    step: Array
    first_step: int
    joined: bool = False

    def only(self, chosen: Array) -> Who:
        """The threads that are chosen."""
        return evolve(
            self, row=self.row[chosen], thread=self.thread[chosen], step=self.step[chosen]
        )

    def repeated(self, count: int) -> Who:
        """Each thread so many times."""
        row, thread, step = (np.repeat(x, count) for x in (self.row, self.thread, self.step))
        return evolve(self, row=row, thread=thread, step=step)


class Marks:
    """The last access of a kind, loads or stores, to each element of a buffer.

    ``tiles`` says whether several tiles have the same elements, ``rows`` whether several rows do.
    """

    def __init__(self, size: int, tiles: bool, rows: bool) -> None:
        self.tiles, self.rows = tiles, rows
        self.stage, self.tile, self.team, self.squad, self.row, self.thread, self.step = (
            np.full(size, NOBODY, np.int64) for _ in range(7)
        )

    def forget_tiles(self) -> None:
        """All tiles have come so far."""
        self.tile[:] = NOBODY

    def out_of_order(self, at: Array, who: Who) -> Array:
        """Where an access to the elements ``at`` may come before or after the last one."""
        bad: Array = (self.squad[at] == who.squad) & (self.thread[at] != who.thread)
        if self.rows:
            bad |= (self.team[at] == who.team) & (self.row[at] != who.row)
        if self.tiles:
            tile = self.tile[at]
            bad |= (tile != NOBODY) & (tile != who.tile)
        return bad

    def before_joining(self, at: Array, who: Who) -> Array:
        """Where threads of the same row made the last access in this stage, and have joined."""
        same: Array = (self.stage[at] == who.stage) & (self.row[at] == who.row)
        return same & who.joined

    def of_others(self, at: Array, who: Who) -> Array:
        """Where another thread made the last access."""
        return self.thread[at] != who.thread

    def in_later_step(self, at: Array, who: Who) -> Array:
        """Where the last access was of this stage, in a later turn of its serial loops."""
        return (self.step[at] >= who.first_step) & (self.step[at] > who.step)

    def replace(self, at: Array, who: Who) -> Array:
        """Note an access in place of earlier ones; where two of its threads meet in an element."""
        self._note(at, who)
        self.tile[at] = who.tile
        self.row[at] = who.row
        self.thread[at] = who.thread
        return (self.row[at] != who.row) | (self.thread[at] != who.thread)

    def join(self, at: Array, who: Who) -> None:
        """Note an access beside earlier ones that it is in no order with."""
        tile = self.tile[at]
        self.tile[at] = np.where((tile == NOBODY) | (tile == who.tile), who.tile, MANY)
        for marks, number, alike in (
            (self.row, who.row, self.team[at] == who.team),
            (self.thread, who.thread, self.squad[at] == who.squad),
        ):
            joined = np.where(alike & (marks[at] != number), MANY, number)
            marks[at] = joined
            marks[at[marks[at] != joined]] = MANY
        self._note(at, who)

    def _note(self, at: Array, who: Who) -> None:
        self.stage[at] = who.stage
        self.team[at] = who.team
        self.squad[at] = who.squad
        self.step[at] = who.step
