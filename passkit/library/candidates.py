"""Variants: the templates of a group that a target can run, with the model's seconds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.analysis.transposed_accesses import BLOCK
from passkit.diagnostics import Diagnostic
from passkit.planner.multi_nest import first, last, multi_nest_schedules
from passkit.planner.plan import plan_group
from passkit.planner.template import within
from passkit.schedule.build import plain_schedule, schedule_like
from passkit.schedule.cost import model_seconds
from passkit.schedule.phases import scheduled_groups
from passkit.schedule.schedule import Schedule
from passkit.schedule.template import Template
from passkit.schedule.template_of import template_of
from passkit.schedule.tiling import Composition, compositions, cut_axis, split_for, tiling
from passkit.target import Target
from passkit.values.size import Extent


@frozen
class Candidate:
    """One way to run a group: the template, the schedule that obeys it, and the model's seconds.

    The seconds are 0 where sizes are unknown.
    """

    template: Template
    schedule: Schedule
    seconds: float


def candidates_of(group: Group, target: Target) -> tuple[Candidate, ...]:
    """The templates of a group, the one that it has by default first, then by the model's seconds.

    No two are the same, and there are at most ``target.tiling.candidates``. There is none where the
    group has no schedule.
    """
    default = plan_group(group, target)
    if isinstance(default, Diagnostic):
        return ()
    found: dict[Template, Candidate] = {}
    for schedule in _schedules(group, default, target):
        template = template_of(group, schedule, target)
        if not _is_new(template, found):
            continue
        if isinstance(within(group, schedule, default, target), Diagnostic):
            continue
        seconds = model_seconds(group, schedule, target)
        found[template] = Candidate(template, schedule, seconds)
    usual, *others = found.values()
    return (usual, *sorted(others, key=lambda v: v.seconds)[: target.tiling.variants - 1])


def _is_new(template: Template, known: Iterable[Template]) -> bool:
    """Whether no known one says the same, and as much or less of results that follow others."""
    said = {*template.stages}
    return not any(said <= {*t.stages} or said >= {*t.stages} for t in known)


def _schedules(group: Group, default: Schedule, target: Target) -> Iterator[Schedule]:
    yield default
    if default.parts:
        yield from _of_parts(group, default, target)
    elif default.multi_nest is not None:
        for choose in (first, last):
            ways = multi_nest_schedules(group, target, choose)
            yield from (w for w in ways if isinstance(w, Schedule))
    else:
        yield from _plain(group, target)


def _of_parts(group: Group, default: Schedule, target: Target) -> Iterator[Schedule]:
    """All parts, or phases, in their second way, then all in their third, and so on."""
    pairs = zip(scheduled_groups(group, default), default.parts, strict=True)
    ways = [[plan, *(v.schedule for v in candidates_of(part, target))] for part, plan in pairs]
    for k in range(1, max(map(len, ways))):
        plans = [own[min(k, len(own) - 1)] for own in ways]
        yield schedule_like(default, plans, target)


def _plain(group: Group, target: Target) -> Iterator[Schedule]:
    """Each way for points to map to lanes, with tiles of several sizes."""
    info = analyze_domain(group.graph)
    assert isinstance(info, DomainInfo)
    if info.domain.size == 0:
        return  # there is nothing to deal out
    for composition in compositions(info, target):
        for chunk, width in _sizes(info, composition, target):
            split = split_for(info, composition, chunk)
            yield plain_schedule(info, composition, split, width, target)


def _sizes(
    info: DomainInfo, composition: Composition, target: Target
) -> Sequence[tuple[Extent, Extent | None]]:
    """Chunks and widths of tiles."""
    own, split, width = tiling(info, target)
    most = info.domain.axes[-1].extent
    cut = cut_axis(info, target)
    match composition:
        case Composition.COLUMN:
            return [(1, n) for n in _below(target.tiling.tile_widths, most)]
        case Composition.BLOCK:
            assert cut is not None
            few = isinstance(cut.extent, int) and cut.extent <= BLOCK
            chunks = [cut.extent] if few else [64, 16, 256]
            return [(c, w) for w in _below(target.tiling.tile_widths, most) for c in chunks]
        case Composition.THREAD if width is not None and own is composition:
            return [(n, n) for n in _scaled(split.chunk, target)]
        case Composition.NARROW:
            return [(n, n) for n in _scaled(split.chunk, target)]
        case _:
            rows = [64, 256, 16] if own is not composition else _scaled(split.chunk, target)
            return [(n, None) for n in (*rows, 1)]


def _scaled(chunk: Extent, target: Target) -> list[Extent]:
    """Chunks around one that is known, or some that are often good."""
    if not isinstance(chunk, int):
        return [8, 64]
    return [max(1, int(chunk * f)) for f in target.tiling.tile_factors]


def _below(widths: Sequence[int], extent: Extent) -> list[int]:
    """Widths that a last axis has room for, and all of it."""
    if not isinstance(extent, int):
        return [*widths]
    return [*(n for n in widths if n < extent), *([extent] if extent else [])]
