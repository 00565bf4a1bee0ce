"""Schedules from tilings: of a group of one space, of parts that are packed, and of phases."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve

from passkit.analysis.components import aim_of, bundles
from passkit.analysis.domain import ValueKind
from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.recompute import is_expensive
from passkit.analysis.size_arguments import SMALL
from passkit.analysis.tilemap import Split
from passkit.ast.stage import Place
from passkit.graph.attribute_calls import reduce_of
from passkit.schedule.schedule import Schedule, estimate, reduction_depths, split_stages
from passkit.schedule.tiling import Composition, row_place
from passkit.target import Target
from passkit.values.size import Extent, numel


def plain_schedule(
    info: DomainInfo, composition: Composition, split: Split, width: Extent | None, target: Target
) -> Schedule:
    """The schedule of a group of one space with tiles of this kind."""
    place = row_place(info, composition, target)
    if place is Place.LANES and _is_long_text(info, target):
        place = None
    stages, kept = split_stages(info, reduction_depths(info), place)
    seconds = estimate(info, target)
    return Schedule(composition, info.domain.axes, split, width, stages, kept, seconds=seconds)


def _is_long_text(info: DomainInfo, target: Target) -> bool:
    """Whether a row that fits in registers has too many functions to be written out.

    Rows of up to `SMALL` elements are written out in any case.
    """
    length = info.domain.axes[-1].extent
    assert isinstance(length, int)  # it is short
    if length <= SMALL:
        return False
    full = [n for n, role in info.roles.items() if ValueKind.FULL in role and reduce_of(n) is None]
    vectors = -(-length // target.lanes)
    return vectors * sum(map(is_expensive, full)) > target.tiling.register_functions


def packed_schedule(plans: Sequence[Schedule], target: Target) -> Schedule:
    """The schedule of parts that run as ``plans`` say; small ones share tiles."""
    seconds = [p.seconds for p in plans]
    aim = aim_of(seconds, target.tiling) if target.lanes > 1 else 0.0
    small = [2 * p.seconds < aim and _is_small(p) for p in plans]
    return Schedule(
        *(Composition.PACKED, (), Split(0, 1), None, (), ()),
        seconds=sum(seconds) if all(seconds) else 0.0,
        parts=_in_one_kernel(plans),
        share=tuple(map(tuple, bundles(seconds, small, aim))),
    )


def phased_schedule(
    plans: Sequence[Schedule], phase_outputs: tuple[tuple[int, ...], ...], target: Target
) -> Schedule:
    """The schedule of phases that run as ``plans`` say, and make outputs of these numbers."""
    seconds = [p.seconds for p in plans]
    meetings = (len(plans) - 1) * target.meeting
    return Schedule(
        *(Composition.PHASED, (), Split(0, 1), None, (), ()),
        seconds=sum(seconds) + meetings if all(seconds) else 0.0,
        parts=_in_one_kernel(plans),
        phase_outputs=phase_outputs,
    )


def _in_one_kernel(plans: Sequence[Schedule]) -> tuple[Schedule, ...]:
    """Return the schedules of parts of one kernel: their nests are no kernels of their own."""
    return tuple(evolve(p, nest=None, pack=None) if p.nest or p.pack else p for p in plans)


def schedule_like(default: Schedule, plans: Sequence[Schedule], target: Target) -> Schedule:
    """The schedule of the parts, or of the phases, of ``default`` with other ``plans``."""
    if default.phase_outputs:
        return phased_schedule(plans, default.phase_outputs, target)
    return packed_schedule(plans, target)


def _is_small(plan: Schedule) -> bool:
    """Whether a part is one tile without scratch, so that others may follow it there."""
    if any(k.place is Place.SHARED for k in plan.kept):
        return False
    if plan.composition is Composition.THREAD and len(plan.axes) == 1:
        count, most = plan.axes[0].extent, plan.width
    elif plan.composition in (Composition.THREAD, Composition.ROW) and plan.width is None:
        lane = plan.axes[-1]
        count = numel(a.extent for a in plan.axes if not a.reduced and a is not lane)
        most = plan.split.chunk
    else:
        return False
    return isinstance(count, int) and isinstance(most, int) and count <= most
