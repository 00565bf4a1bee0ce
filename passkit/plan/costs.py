"""The model's seconds of schedules of one group, to hold them against each other.

`Schedule.seconds` is what the work takes, whoever does it; here come the tiles and rows that have
to begin and end, lanes that stand idle, and threads that have nothing left to do.
"""

from __future__ import annotations

from passkit.lowering.loops import Loops, tiles_of
from passkit.plan.group import Group
from passkit.plan.phases import alone
from passkit.plan.schedule import Schedule
from passkit.plan.target import Target
from passkit.space.layout import Layout, lay_out
from passkit.space.tiling import Composition
from passkit.stitching.costs import imbalance, row_seconds
from passkit.values.size import numel

TILE = 4e-8
"""Seconds that a tile takes besides its work."""


def model_seconds(group: Group, schedule: Schedule, target: Target) -> float:
    """Seconds of a schedule by the model, 0 where sizes are unknown."""
    if schedule.stitching is not None:
        return schedule.seconds
    if schedule.parts:
        pairs = zip(alone(group, schedule), schedule.parts, strict=True)
        found = [model_seconds(part, plan, target) for part, plan in pairs]
        meetings = max(0, len(schedule.makes) - 1) * target.meeting
        return sum(found) + meetings if all(found) else 0.0
    layout, tiles = lay_out(group.graph), tiles_of(schedule)
    assert isinstance(layout, Layout)
    if not schedule.seconds or not isinstance(tiles, int) or not tiles:
        return 0.0
    work = schedule.seconds * _idle(schedule, target)
    total = work + target.overhead * (tiles * TILE + _between(schedule))
    return total * imbalance(tiles) if total >= target.parallel else total


def work_seconds(schedule: Schedule) -> float:
    """Seconds of the work of a kernel of one space and of its rows, whoever does it."""
    return schedule.seconds + _between(schedule)


def _lanes(schedule: Schedule) -> tuple[int, int]:
    """How often lanes run through a row, or a tile's part of it, and how many points that has."""
    loops = Loops(schedule.space, schedule)
    lane = loops.lane
    aside = (lane, loops.few)
    times = numel(a.steps for a in schedule.axes if a not in aside and not a.counting)
    width = lane.steps if schedule.width is None else schedule.width
    assert isinstance(times, int) and isinstance(lane.steps, int) and isinstance(width, int)
    length = min(max(1, width), max(1, lane.steps))
    return times * -(-lane.steps // length), length


def _idle(schedule: Schedule, target: Target) -> float:
    """How much longer the work takes because vectors of lanes are not full."""
    _, length = _lanes(schedule)
    if schedule.composition is Composition.SHORT:
        return 1.0
    return -(-length // target.lanes) * target.lanes / length


def _between(schedule: Schedule) -> float:
    """Seconds between the passes of a kernel over its rows, and at the ends of their folds."""
    return _lanes(schedule)[0] * row_seconds(schedule, schedule.space.axes[-1].reduced)
