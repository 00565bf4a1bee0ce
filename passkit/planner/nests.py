"""Plans of single loop nests on GPUs: the first rule that has a legal schedule."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.analysis.domain import Axis, Domain
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

register_built_in_rules("cuda", (("transpose", transpose), *RULES))


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
    domain = info.domain
    if schedule.parts or schedule.multi_nest is not None:
        return Diagnostic("tile.composition")
    for node in info.graph.nodes:
        if scan_of(node) is not None:
            return Diagnostic("op.scan", {"op": node.label})
    nest = LoopNest(info, schedule.stages, schedule.staged)
    has_one_reduced = len(domain.reduced) == 1
    is_refused = nest.is_chunked and not _are_chunks_read_once(nest, domain)
    if nest.is_column:
        if not has_one_reduced or is_refused:
            return Diagnostic("domain.order")
    elif is_refused or (nest.is_chunked and not has_one_reduced):
        return Diagnostic("domain.chunks")
    outer = next((k for k, a in enumerate(domain.axes) if not a.reduced), None)
    if nest.is_column and outer == len(domain.axes) - 1:
        outer = None
    if outer is not None and _is_inside_of_reduced(nest, domain.axes, outer):
        outer = None  # the elements of a point would lie an unknown number apart
    for k, axis in enumerate(domain.axes):
        if axis.reduced and axis.extent == 0:
            return Diagnostic("domain.empty", {"axis": axis.var.name})
        if k != outer and not isinstance(axis.extent, int):
            return Diagnostic("domain.extent", {"axis": axis.var.name, "extent": axis.extent})
    return nest


def _are_chunks_read_once(nest: LoopNest, domain: Domain) -> bool:
    """Return whether a block goes once through a chunk, all of them equal if points are stored."""
    extent, chunk = domain.reduced[0].extent, domain.reduced[0].chunk
    are_equal = isinstance(extent, int) and isinstance(chunk, int) and extent % chunk == 0
    return nest.is_read_once or (nest.is_single_pass and are_equal)


def _is_inside_of_reduced(nest: LoopNest, axes: Sequence[Axis], outer: int) -> bool:
    """Return whether points are stored, and an axis in front of the one numbered is reduced."""
    return any(s.stores for s in nest.stages) and any(a.reduced for a in axes[:outer])
