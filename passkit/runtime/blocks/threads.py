"""The threads of a stage: its loops as axes of arrays, one element for each turn of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from attrs import evolve, frozen

from passkit.ast import Expr
from passkit.ast.stage import Level, Loop
from passkit.runtime.blocks.marks import APART, Who
from passkit.runtime.evaluate import evaluate

Array = Any

ALL = 0
"""The thread of what stands around the lanes: all threads of a row do it."""
FIRST = APART - 1
"""The thread of what is stored there: one of them does it for all."""


@frozen
class Clock:
    """When a stage runs: its number, its tile, and the waits before it.

    ``ends`` says that the lanes begin when all is done that stands before them, and end before what
    stands behind; each of the three then has a squad number of its own.
    """

    stage: int
    tile: int
    team: int
    squad: int
    first_step: int
    ends: bool

    def at(self, moment: int) -> Clock:
        """Before the lanes (0), in them (1), behind them (2)."""
        return evolve(self, squad=self.squad + moment * self.ends)


@frozen
class Axis:
    """A loop as an axis: its variable along it, and which turns there are, None for all."""

    loop: Loop
    var: Array
    exists: Array | None


class Threads:
    """Axes 0 are the rows of a part, at ``rows``; the others are loops, outermost first.

    Serial loops are axes as well: what goes from turn to turn is folds and scans alone, and the
    marks of memory tell where it is not.
    """

    def __init__(self, rows: Array, rank: int, clock: Clock) -> None:
        self.rank, self.clock = rank, clock
        self.rows = rows.reshape(-1, *[1] * rank) * APART
        self.axes: list[Axis] = []

    def add(self, loop: Loop, values: Mapping[str, Array]) -> None:
        """Go on by a loop, whose bounds depend on variables of ``values``."""
        start, stop = bounds(loop, values)
        count = np.asarray(stop - start)
        most = max(0, int(count.max())) if count.size else 0
        turns = np.arange(most, dtype=np.int64).reshape(-1, *[1] * (self.rank - len(self.axes) - 1))
        var = stop - 1 - turns if loop.down else start + turns
        ragged = count.size > 1 and bool((count < most).any())
        self.axes.append(Axis(loop, np.asarray(var), turns < count if ragged else None))

    @property
    def values(self) -> dict[str, Array]:
        """The variables of the loops."""
        return {a.loop.var.name: a.var for a in self.axes}

    @property
    def shape(self) -> tuple[int, ...]:
        """The rows and the turns of each loop; 1 for loops that are not added yet."""
        shape = [len(self.rows), *[1] * self.rank]
        for k, axis in enumerate(self.axes):
            shape[k + 1] = axis.var.shape[k - self.rank]
        return tuple(shape)

    def numbers(self, level: Level) -> tuple[int, ...]:
        """The axes of the loops of a level."""
        return tuple(k + 1 for k, a in enumerate(self.axes) if a.loop.level is level)

    def active(self, without: Sequence[int] = ()) -> Array | None:
        """Which threads there are, None for all; in any turn of the axes ``without``."""
        inside = [a.exists for k, a in enumerate(self.axes) if k + 1 not in without]
        masks = [mask for mask in inside if mask is not None]
        if not masks:
            return None
        found = masks[0]
        for mask in masks[1:]:
            found = found & mask
        found = found.reshape(*[1] * (self.rank + 1 - found.ndim), *found.shape)
        several = tuple(k for k in without if found.shape[k] > 1)
        return found.any(several, keepdims=True) if several else found

    def crew(self, moment: int = 1, without: Sequence[int] = ()) -> Crew:
        """Who makes the accesses of a statement, all turns of the axes ``without`` at once.

        ``moment`` is as in `Clock.at`.
        """
        shape = tuple(1 if k in without else n for k, n in enumerate(self.shape))
        warps = self._position(self.numbers(Level.WARP), shape)
        ids = warps * APART
        lanes = [k for k in self.numbers(Level.CTA) if k not in without]
        if lanes:
            ids = ids + self._position(lanes, shape) + 1
        steps = self._position(self.numbers(Level.THREAD), shape) + self.clock.first_step
        clock = self.clock.at(moment)
        return Crew(clock, shape, self.rows + warps, ids, steps, self.active(without))

    @property
    def num_steps(self) -> int:
        """The turns of all serial loops together."""
        return int(np.prod([self.shape[k] for k in self.numbers(Level.THREAD)], dtype=np.int64))

    def _position(self, axes: Sequence[int], shape: tuple[int, ...]) -> Array:
        """The position along several axes as one number."""
        found: Array = np.zeros([1] * len(shape), np.int64)
        for k in axes:
            along = np.arange(shape[k]).reshape(-1, *[1] * (len(shape) - k - 1))
            found = found * shape[k] + along
        return found


@frozen
class Crew:
    """Threads that run one statement together."""

    clock: Clock
    shape: tuple[int, ...]
    row: Array
    thread: Array
    step: Array
    active: Array | None
    joined: bool = False

    @property
    def storing(self) -> Crew:
        """Those that store: where all threads would, one of them."""
        return evolve(
            self, thread=np.where(self.thread % APART == ALL, self.thread + FIRST, self.thread)
        )

    @property
    def first_lane(self) -> Crew:
        """The thread of the first lane, where there is no other."""
        return evolve(self, thread=self.thread + 1)

    @property
    def anyone(self) -> Who:
        """One of them: for what all may do in any order."""
        c = self.clock
        return Who(c.stage, c.tile, c.team, c.squad, 0, ALL, c.first_step, c.first_step)

    def who(self, active: Array | None, shape: tuple[int, ...]) -> tuple[Who, Array | None]:
        """The threads of an access of a shape, flat, and which of them make it: None for all."""
        mask = self.active if active is None else active
        chosen = None if mask is None else np.broadcast_to(mask, shape).ravel()
        row, thread, step = (
            np.broadcast_to(x, shape).ravel() for x in (self.row, self.thread, self.step)
        )
        c = self.clock
        who = Who(c.stage, c.tile, c.team, c.squad, row, thread, step, c.first_step, self.joined)
        return (who if chosen is None else who.only(chosen)), chosen


def bounds(loop: Loop, values: Mapping[str, Array]) -> tuple[Array, Array]:
    """Where a loop begins and ends."""

    def number(x: Expr) -> Array:
        return np.asarray(evaluate(x, values))

    stop = number(loop.stop)
    return number(loop.start), stop if loop.limit is None else np.minimum(stop, number(loop.limit))
