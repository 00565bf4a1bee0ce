"""Plans of single loop nests on GPUs: the first rule that has a legal schedule."""

from __future__ import annotations

from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import scan_of
from passkit.planner.gpu import RULES
from passkit.planner.transposes import transpose
from passkit.schedule.apply import apply
from passkit.schedule.loop_nest import LoopNest
from passkit.schedule.nest import NestSchedule
from passkit.schedule.rules import (
    RuleResult,
    apply_rules,
    operator_rules,
    register_built_in_rules,
    schedule_rules,
)
from passkit.schedule.schedule import Schedule
from passkit.target import Target

for _dialect in ("cuda", "opencl"):
    register_built_in_rules(_dialect, (("transpose", transpose), *RULES))


def plan_nest(info: DomainInfo, schedule: Schedule, target: Target) -> RuleResult[NestSchedule]:
    """Return the plan of a group of one loop nest.

    Args:
        info: the iteration domain of the group.
        schedule: its stages.
        target: a GPU.

    Raises: RuleError if a rule returns something else than actions.
    """
    nest = loop_nest(info, schedule)
    if isinstance(nest, Diagnostic):
        return RuleResult(None, "", nest)
    return apply_rules(nest, target, (*operator_rules(nest), *schedule_rules(target)), apply)


def scheduled_nest(group: Group, schedule: Schedule) -> LoopNest:
    """Return the loop nest of a group that has a schedule of it, as ``schedule.nest``."""
    info = analyze_domain(group.graph)
    assert isinstance(info, DomainInfo)
    nest = loop_nest(info, schedule)
    assert isinstance(nest, LoopNest)
    return nest


def loop_nest(info: DomainInfo, schedule: Schedule) -> LoopNest | Diagnostic:
    """Return the loop nest of a group, or why it is not one that GPUs have schedules of.

    Args:
        info: the iteration domain of the group.
        schedule: its stages.
    """
    if schedule.parts or schedule.multi_nest is not None:
        return Diagnostic("tile.composition")
    for node in info.graph.nodes:
        if scan_of(node) is not None:
            return Diagnostic("op.scan", {"op": node.label})
    return LoopNest(info, schedule.stages, schedule.staged)
