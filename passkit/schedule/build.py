"""Construction of schedules: of single-nest groups, of packs and of phases."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from passkit.analysis.components import seconds_per_tile, shared_tiles
from passkit.analysis.domain import ValueKind
from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.recompute import is_expensive
from passkit.analysis.size_arguments import MAX_LITERAL_EXTENT
from passkit.analysis.tilemap import Split
from passkit.ast.stage import Place
from passkit.graph.attribute_calls import reduce_of
from passkit.schedule.roofline import roofline_seconds
from passkit.schedule.schedule import Schedule
from passkit.schedule.stages import split_stages
from passkit.schedule.tiling import Composition, staging_place
from passkit.target import Target
from passkit.values.size import Extent, numel


def single_nest_schedule(
    info: DomainInfo, composition: Composition, split: Split, width: Extent | None, target: Target
) -> Schedule:
    """Return the schedule of a group of one iteration domain.

    Args:
        info: the iteration domain.
        composition: how the points of a tile are mapped to vectors.
        split: the tile map of the domain.
        width: the points of a tile along the vector axis; None for the whole axis.
        target: the machine.
    """
    place = staging_place(info, composition, target)
    if place is Place.LANES and _is_long_text(info, target):
        place = None
    stages, staged = split_stages(info, place)
    seconds = roofline_seconds(info, target)
    return Schedule(composition, info.domain.axes, split, width, stages, staged, seconds=seconds)


def _is_long_text(info: DomainInfo, target: Target) -> bool:
    """Return whether an unrolled row that fits in registers would call too many functions.

    Rows of up to `MAX_LITERAL_EXTENT` elements are unrolled in any case.
    """
    length = info.domain.axes[-1].extent
    assert isinstance(length, int)  # only short rows are staged in registers
    if length <= MAX_LITERAL_EXTENT:
        return False
    full = [n for n, kind in info.kinds.items() if ValueKind.POINT in kind and reduce_of(n) is None]
    vectors = -(-length // target.lanes)
    return vectors * sum(map(is_expensive, full)) > target.tiling.register_functions


def packed_schedule(parts: Sequence[Schedule], target: Target) -> Schedule:
    """Return the schedule of a pack of ``parts``; small parts share tiles."""
    seconds = [p.seconds for p in parts]
    aim = seconds_per_tile(seconds, target.tiling) if target.lanes > 1 else 0.0
    is_small = [2 * p.seconds < aim and _is_one_small_tile(p) for p in parts]
    return evolve(
        _of_parts(Composition.PACKED, parts),
        seconds=sum(seconds) if all(seconds) else 0.0,
        shared_tiles=tuple(map(tuple, shared_tiles(seconds, is_small, aim))),
    )


def phased_schedule(
    phases: Sequence[Schedule], phase_outputs: tuple[tuple[int, ...], ...], target: Target
) -> Schedule:
    """Return the schedule of ``phases`` with grid barriers in between.

    ``phase_outputs`` are the positions of the outputs of each phase in the group.
    """
    seconds = [p.seconds for p in phases]
    barriers = (len(phases) - 1) * target.meeting
    return evolve(
        _of_parts(Composition.PHASED, phases),
        seconds=sum(seconds) + barriers if all(seconds) else 0.0,
        phase_outputs=phase_outputs,
    )


def _of_parts(composition: Composition, parts: Sequence[Schedule]) -> Schedule:
    """Return a schedule of parts, which are not launched by themselves."""
    return Schedule(
        composition,
        axes=(),
        split=Split(0, 1),
        width=None,
        stages=(),
        staged=(),
        parts=tuple(evolve(p, nest=None, pack=None) if p.nest or p.pack else p for p in parts),
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
