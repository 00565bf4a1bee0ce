"""Plans of several loop nests in one kernel on GPUs: each by the rules of single ones."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.analysis.group import Group
from passkit.diagnostics import Diagnostic
from passkit.planner.nests import scheduled_nest
from passkit.schedule.compose import compose
from passkit.schedule.loop_nest import LoopNest
from passkit.schedule.nest import NestSchedule
from passkit.schedule.pack import PackSchedule
from passkit.schedule.schedule import Schedule
from passkit.target import Target


def plan_pack(
    parts: Sequence[Group], plans: Sequence[Schedule], target: Target
) -> PackSchedule | Diagnostic:
    """Return the schedule of parts that are loop nests in one kernel, or why there is none.

    Args:
        parts: the parts, as groups by themselves.
        plans: the schedule of each, with that of its nest.
        target: a GPU.
    """
    schedules: list[NestSchedule] = []
    nests: list[LoopNest] = []
    for number, (part, plan) in enumerate(zip(parts, plans, strict=True)):
        if plan.nest is None:
            reason = plan.no_nest or Diagnostic("tile.composition")
            return Diagnostic("pack.part", {"part": number, "reason": reason})
        schedules.append(plan.nest)
        nests.append(scheduled_nest(part, plan))
    return compose(schedules, nests)


def packed_nests(group: Group, schedule: Schedule) -> list[LoopNest]:
    """Return the loop nests of a group that has a schedule of them, as ``schedule.pack``."""
    pairs = zip(group.alone(), schedule.parts, strict=True)
    return [scheduled_nest(part, plan) for part, plan in pairs]
