"""Schedules that the option ``templates`` gives as texts, as schedules are printed."""

from __future__ import annotations

from attrs import evolve

from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.diagnostics import Diagnostic
from passkit.planner.cpu import tile_nest
from passkit.planner.nests import scheduled_nest
from passkit.planner.packs import packed_nests
from passkit.schedule.block_nest import BlockNest
from passkit.schedule.block_text import parse_block
from passkit.schedule.parse import parse_schedule
from passkit.schedule.parse_pack import parse_pack
from passkit.schedule.parse_tiles import parse_tiles
from passkit.schedule.schedule import Schedule
from passkit.schedule.template import ScheduleText
from passkit.target import Target
from passkit.transforms.block_parts import block_nest


def schedule_of_text(
    group: Group, default: Schedule, target: Target, given: ScheduleText
) -> Schedule | Diagnostic:
    """Return the schedule of a group that a text describes, or why a text cannot describe one.

    Args:
        group: the group.
        default: its schedule without the text.
        target: the machine.
        given: the text.

    Raises: ScheduleError with the line, and mostly the column, if the text does not follow the
    grammar, names what the kernel does not have, or describes a schedule that is not legal.
    """
    if default.nest is not None:
        nest = parse_schedule(given.text, scheduled_nest(group, default), target)
        return evolve(default, nest=nest)
    if default.pack is not None:
        return evolve(default, pack=parse_pack(given.text, packed_nests(group, default), target))
    if default.block is not None:
        nests = block_nest(group, default)
        assert isinstance(nests, BlockNest)  # the schedule was made from it
        return evolve(default, block=parse_block(given.text, nests, target))
    info = None if default.parts or default.multi_nest else analyze_domain(group.graph)
    if target.lanes > 1 and isinstance(info, DomainInfo):
        return parse_tiles(given.text, tile_nest(info), target)
    return Diagnostic("template.nests", {"composition": default.composition.value})
