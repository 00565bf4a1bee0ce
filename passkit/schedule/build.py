"""Construction of the schedules of packs and of phases from those of their parts."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from passkit.analysis.components import seconds_per_tile, shared_tiles
from passkit.analysis.tilemap import Split
from passkit.ast.stage import Place
from passkit.schedule.compose import phased_launch
from passkit.schedule.schedule import Schedule
from passkit.schedule.tiling import Composition
from passkit.target import Target
from passkit.values.size import numel


def packed_schedule(parts: Sequence[Schedule], target: Target) -> Schedule:
    """Return the schedule of a pack of ``parts`` without those of their nests on a GPU.

    Small parts share tiles.
    """
    seconds = [p.seconds for p in parts]
    aim = seconds_per_tile(seconds, target.tiling) if target.lanes > 1 else 0.0
    is_small = [2 * p.seconds < aim and _is_one_small_tile(p) for p in parts]
    return evolve(
        _of_parts(Composition.PACKED, [evolve(p, nest=None) if p.nest else p for p in parts]),
        seconds=sum(seconds) if all(seconds) else 0.0,
        shared_tiles=tuple(map(tuple, shared_tiles(seconds, is_small, aim))),
    )


def phased_schedule(
    phases: Sequence[Schedule], phase_outputs: tuple[tuple[int, ...], ...], target: Target
) -> Schedule:
    """Return the schedule of ``phases`` with grid barriers in between.

    The phases keep the schedules of their nests on a GPU. ``phase_outputs`` are the positions of
    the outputs of each phase in the group.
    """
    seconds = [p.seconds for p in phases]
    barriers = (len(phases) - 1) * target.meeting
    launches = [p.launch for p in phases if p.launch is not None]
    return evolve(
        _of_parts(Composition.PHASED, phases),
        seconds=sum(seconds) + barriers if all(seconds) else 0.0,
        phase_outputs=phase_outputs,
        phase_launch=phased_launch(launches, target.limits)
        if len(launches) == len(phases)
        else None,
    )


def _of_parts(composition: Composition, parts: Sequence[Schedule]) -> Schedule:
    """Return a schedule of parts."""
    return Schedule(
        composition,
        axes=(),
        split=Split(0, 1),
        width=None,
        stages=(),
        staged=(),
        parts=tuple(parts),
    )


def with_part_schedules(schedule: Schedule, parts: Sequence[Schedule], target: Target) -> Schedule:
    """Return a packed or phased schedule with other schedules of its parts or phases."""
    if schedule.phase_outputs:
        return phased_schedule(parts, schedule.phase_outputs, target)
    return packed_schedule(parts, target)


def _is_one_small_tile(schedule: Schedule) -> bool:
    """Return whether a part is one tile without scratch memory, which others can follow."""
    if any(k.place is Place.SHARED for k in schedule.staged):
        return False
    if schedule.composition is Composition.THREAD and len(schedule.axes) == 1:
        count, most = schedule.axes[0].extent, schedule.width
    elif schedule.composition in (Composition.THREAD, Composition.ROW) and schedule.width is None:
        vector_axis = schedule.axes[-1]
        count = numel(a.extent for a in schedule.axes if not a.reduced and a is not vector_axis)
        most = schedule.split.chunk
    else:
        return False
    return isinstance(count, int) and isinstance(most, int) and count <= most
