"""The candidates of the tuner: the templates of a group that a target can run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve, frozen

from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.analysis.transposed_accesses import BLOCK
from passkit.diagnostics import Diagnostic
from passkit.planner.cpu import tile_nest, tile_schedule
from passkit.planner.multi_nest import first, last, multi_nest_schedules
from passkit.planner.nests import scheduled_nest
from passkit.planner.plan import plan_group
from passkit.planner.template import within_scratch
from passkit.schedule.apply import apply
from passkit.schedule.apply_tiles import TileShape
from passkit.schedule.build import with_part_schedules
from passkit.schedule.cost import schedule_cost
from passkit.schedule.phases import groups_of_parts
from passkit.schedule.rules import apply_rules, operator_rules, schedule_rules
from passkit.schedule.schedule import Schedule
from passkit.schedule.template import ScheduleText, Template
from passkit.schedule.template_of import template_of
from passkit.schedule.text import schedule_text
from passkit.schedule.tiling import Composition, compositions, second_tiled_axis, split_for
from passkit.target import Target
from passkit.values.size import Extent

BLOCK_CHUNKS = (64, 16, 256)
"""The chunks of BLOCK tiles along the axis that is not the vector axis."""

ROW_CHUNKS = (64, 256, 16)
"""The rows of tiles of a composition that is not the default."""

UNKNOWN_CHUNKS = (8, 64)
"""The chunks to try if the default chunk is unknown."""


@frozen
class Candidate:
    """One way to run a group.

    Attributes:
        template: the template; on a GPU of loop nests the text of the schedule.
        schedule: the schedule that it describes.
        seconds: the seconds of the cost model, 0 if sizes are unknown.
    """

    template: Template | ScheduleText
    schedule: Schedule
    seconds: float


def candidates_of(group: Group, target: Target) -> tuple[Candidate, ...]:
    """Return the candidates of a group, the default first, then by the seconds of the cost model.

    All templates differ, and there are at most ``target.tiling.candidates``. A group without a
    schedule has no candidates. On a GPU of loop nests they are the schedules of its rules, in the
    order of the rules, for a group of one nest.
    """
    default = plan_group(group, target)
    if isinstance(default, Diagnostic):
        return ()
    if target.has_thread_maps:
        return tuple(_of_rules(group, default, target))
    candidates: dict[Template, Candidate] = {}
    for schedule in _schedules(group, default, target):
        template = template_of(group, schedule, target)
        if not _is_new(template, candidates):
            continue
        if isinstance(within_scratch(group, schedule, default, target), Diagnostic):
            continue
        seconds = schedule_cost(group, schedule, target)
        candidates[template] = Candidate(template, schedule, seconds)
    usual, *others = candidates.values()
    return (usual, *sorted(others, key=lambda c: c.seconds)[: target.tiling.candidates - 1])


def _of_rules(group: Group, default: Schedule, target: Target) -> Iterator[Candidate]:
    """Yield the schedules that rules have for a group of one loop nest on a GPU, each once."""
    if default.nest is None:
        return
    nest = scheduled_nest(group, default)
    schedules = {default.nest: default}
    for rule in (*operator_rules(nest), *schedule_rules(target)):
        own = apply_rules(nest, target, (rule,), apply).schedule
        if own is not None:
            schedules.setdefault(own, evolve(default, nest=own, rule=rule.name))
    for own, schedule in schedules.items():
        yield Candidate(ScheduleText(schedule_text(own, nest, target)), schedule, 0.0)


def _is_new(template: Template, others: Iterable[Template]) -> bool:
    """Return whether no other template has the same values, or more of them, or fewer.

    The templates of one distribution differ in the values that are computed again.
    """
    values = {*template.values}
    return not any(values <= {*t.values} or values >= {*t.values} for t in others)


def _schedules(group: Group, default: Schedule, target: Target) -> Iterator[Schedule]:
    """Yield the schedules to try for a group, ``default`` first."""
    yield default
    if default.parts:
        yield from _schedules_of_parts(group, default, target)
    elif default.multi_nest is not None:
        for choose in (first, last):
            schedules = multi_nest_schedules(group, target, choose)
            yield from (s for s in schedules if isinstance(s, Schedule))
    else:
        yield from _single_nest_schedules(group, default, target)


def _schedules_of_parts(group: Group, default: Schedule, target: Target) -> Iterator[Schedule]:
    """Yield a schedule with the second candidate of each part or phase, one with the third, ...

    Parts with fewer candidates repeat their last one.
    """
    pairs = zip(groups_of_parts(group, default), default.parts, strict=True)
    choices = [[own, *(c.schedule for c in candidates_of(part, target))] for part, own in pairs]
    for k in range(1, max(map(len, choices))):
        parts = [schedules[min(k, len(schedules) - 1)] for schedules in choices]
        yield with_part_schedules(default, parts, target)


def _single_nest_schedules(group: Group, default: Schedule, target: Target) -> Iterator[Schedule]:
    """Yield the schedules of a single-nest group: all structures, with tiles of several sizes."""
    info = analyze_domain(group.graph)
    assert isinstance(info, DomainInfo)
    if info.domain.size == 0:
        return
    nest = tile_nest(info)
    for composition in compositions(info, target):
        for chunk, width in _tile_sizes(info, composition, default, target):
            shape = TileShape(composition, split_for(info, composition, chunk), width)
            schedule = tile_schedule(nest, shape, target)
            if isinstance(schedule, Schedule):
                yield schedule


def _tile_sizes(
    info: DomainInfo, composition: Composition, default: Schedule, target: Target
) -> Sequence[tuple[Extent, Extent | None]]:
    """Return chunks and widths of tiles of a composition, ``default`` being the usual schedule."""
    chunk, is_default = default.split.chunk, default.composition is composition
    last_extent = info.domain.axes[-1].extent
    match composition:
        case Composition.COLUMN:
            return [(1, n) for n in _widths(target.tiling.tile_widths, last_extent)]
        case Composition.BLOCK:
            axis = second_tiled_axis(info, target)
            assert axis is not None
            is_whole = isinstance(axis.extent, int) and axis.extent <= BLOCK
            chunks = (axis.extent,) if is_whole else BLOCK_CHUNKS
            widths = _widths(target.tiling.tile_widths, last_extent)
            return [(chunk, width) for width in widths for chunk in chunks]
        case Composition.THREAD if default.width is not None and is_default:
            return [(n, n) for n in _scaled(chunk, target)]
        case Composition.NARROW:
            return [(n, n) for n in _scaled(chunk, target)]
        case _:
            row_counts = _scaled(chunk, target) if is_default else ROW_CHUNKS
            return [(n, None) for n in (*row_counts, 1)]


def _scaled(chunk: Extent, target: Target) -> Sequence[int]:
    """Return multiples and fractions of a chunk, or usual chunks if it is unknown."""
    if not isinstance(chunk, int):
        return UNKNOWN_CHUNKS
    return [max(1, int(chunk * f)) for f in target.tiling.tile_factors]


def _widths(widths: Sequence[int], extent: Extent) -> list[int]:
    """Return the widths that are less than the extent of the last axis, and this extent."""
    if not isinstance(extent, int):
        return [*widths]
    return [*(n for n in widths if n < extent), *([extent] if extent else [])]
