"""The planner: how a group runs on a target, or why it cannot be one kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import lru_cache

from attrs import evolve

from passkit.analysis.components import aim_of, points_of_tile
from passkit.analysis.domain import ValueKind, reduced_axes_of
from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import FUSED, Group, Kind
from passkit.diagnostics import Diagnostic
from passkit.errors import ScheduleError
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf
from passkit.planner.joins import joined_phases, plan_joined
from passkit.planner.multi_nest import has_contraction, plan_multi_nest
from passkit.planner.nests import plan_nest
from passkit.planner.packs import plan_pack
from passkit.planner.phases import plan_phased
from passkit.planner.template import apply_template
from passkit.schedule.build import packed_schedule, plain_schedule
from passkit.schedule.phases import phase_group, phases_of
from passkit.schedule.rules import rules_key
from passkit.schedule.schedule import Schedule, Source
from passkit.schedule.template import Template
from passkit.schedule.tiling import Composition, tiling
from passkit.target import Target
from passkit.values.memo import UncachedArgument


def plan_group(
    group: Group, target: Target, template: Template | None = None
) -> Schedule | Diagnostic:
    """The schedule of a group on a target, or why it has none. Pure, and memoised by group key.

    One that obeys a ``template`` is the user's; where no kernel of the target does what it says,
    the answer tells what is possible.

    Raises: ScheduleError for a template that does not fit the loops of the group.
    """
    phased = group.kind is Kind.PHASED
    rules = _rules_key(group, target)
    if template is None:
        return _plan(group.key, phased, UncachedArgument(group), target, rules)
    return _obeying(group.key, phased, UncachedArgument(group), target, template, rules)


def outline_group(group: Group, target: Target) -> Schedule | Diagnostic:
    """Return the schedule of a group on a target without those of its loop nests.

    Tiles, stages and seconds are those of `plan_group`, and so is the reason if there is none.
    Fusion compares many more groups than kernels are made of, and asks for no more. A group of
    phases has the schedules of its nests here, too.
    """
    if group.kind is Kind.PHASED or not _has_nests(target):
        return plan_group(group, target)
    return _outline(group.key, False, UncachedArgument(group), target)


@lru_cache(maxsize=4096)
def _outline(
    key: str, phased: bool, held: UncachedArgument[Group], target: Target
) -> Schedule | Diagnostic:
    """Return the schedule of a group of one phase without those of its loop nests.

    ``key`` and ``phased``, whether its kind has phases, identify the group ``held.value``.
    """
    return _one_phase(held.value, target)


def _rules_key(group: Group, target: Target) -> Hashable:
    """Return a value that differs where other schedule rules may apply to a group on a target."""
    if not target.nests:
        return None
    return rules_key(group.graph)


@lru_cache(maxsize=4096)
def _plan(
    key: str, phased: bool, held: UncachedArgument[Group], target: Target, rules: Hashable
) -> Schedule | Diagnostic:
    joined = _joined(held.value, target) if phased else None
    if joined is not None:
        return joined
    several = plan_phased(held.value, target, plan_group) if phased else None
    if isinstance(several, Schedule):
        return several
    if not _has_nests(target):
        return _one_phase(held.value, target)
    outline = _outline(key, phased, held, target)
    return outline if isinstance(outline, Diagnostic) else _with_nests(held.value, outline, target)


def _one_phase(group: Group, target: Target) -> Schedule | Diagnostic:
    """The schedule of a group whose tiles wait for no others, without those of its loop nests."""
    if len(group.parts) > 1:
        packed = _packed(group, target)
        if isinstance(packed, Schedule) or packed.code != "pack.part_nests":
            return packed
    if has_contraction(group.graph):
        return plan_multi_nest(group, target)
    info = analyze_domain(group.graph)
    if isinstance(info, Diagnostic):
        found = plan_multi_nest(group, target)
        return info if isinstance(found, Diagnostic) else found
    return plain_schedule(info, *tiling(info, target), target)


def _joined(group: Group, target: Target) -> Schedule | None:
    """Return the schedule of a group whose last blocks join partial results; None for another."""
    if not target.nests or target.name == "blocks":
        return None
    phase_outputs = joined_phases(group.graph)
    if phase_outputs is None:
        return None
    chunks, joins = (phase_group(group, part) for part in phases_of(group.graph, phase_outputs))
    first, info = plan_group(chunks, target), analyze_domain(joins.graph)
    if not isinstance(first, Schedule) or not isinstance(info, DomainInfo):
        return None
    then = plain_schedule(info, *tiling(info, target), target)
    return plan_joined(group, target, (first, then))


def _with_nests(group: Group, schedule: Schedule, target: Target) -> Schedule:
    """Return a schedule with that of its loop nest, or of those of its parts, where it has one.

    Args:
        group: the group.
        schedule: its schedule, of one phase.
        target: a GPU whose dialect prints loop IR.
    """
    if schedule.multi_nest is not None:
        return schedule
    if schedule.composition is Composition.PACKED:
        return _with_pack(group, target)
    info = analyze_domain(group.graph)
    assert isinstance(info, DomainInfo)  # the schedule was made from it
    plan = plan_nest(info, schedule, target)
    return evolve(
        schedule,
        nest=plan.schedule,
        rule=plan.rule,
        no_nest=plan.diagnostic,
        refusal=plan.refusal,
    )


def check_rules(where: str, schedule: Schedule) -> None:
    """Raise a ScheduleError if a rule of the user made a schedule of a group that is not legal.

    Groups that Fusion only considers are not refused: the rule may be for another one. ``where`` is
    the group, for the message.
    """
    if schedule.refusal is not None:
        raise ScheduleError(f"{where}: {schedule.refusal}")


@lru_cache(maxsize=1024)
def _obeying(
    key: str,
    phased: bool,
    held: UncachedArgument[Group],
    target: Target,
    template: Template,
    rules: Hashable,
) -> Schedule | Diagnostic:
    default = _plan(key, phased, held, target, rules)
    if isinstance(default, Diagnostic):
        return default
    found = apply_template(held.value, default, target, template)
    if isinstance(found, Diagnostic):
        return found
    # What the template says is obeyed.
    given = Diagnostic("template.given") if target.nests else None
    return evolve(found, source=Source.USER, nest=None, pack=None, no_nest=given)


def _packed(group: Group, target: Target) -> Schedule | Diagnostic:
    """The schedule of parts: each as if alone, with tiles that take about as long everywhere.

    A part that is stitched is not packed: it has parts of its own.
    """
    free = next((e.node for e in group.graph.outputs if is_leaf(e.node)), None)
    if free is not None:
        return Diagnostic("graph.output_is_input", at=(free.label,))
    parts = group.alone()
    plans = []
    for part in parts:
        plan = outline_group(part, target)
        if isinstance(plan, Diagnostic):
            return plan
        if plan.multi_nest is not None:
            return Diagnostic("pack.part_nests")
        plans.append(plan)
    seconds = [p.seconds for p in plans]
    aim = aim_of(seconds, target.tiling) if target.lanes > 1 else 0.0
    if aim:
        for k, part in enumerate(parts):
            tile = _tile(plans[k], aim, target)
            own = target if tile == target.tile else evolve(target, tile=tile)
            plan = outline_group(part, own)
            assert isinstance(plan, Schedule)
            plans[k] = plan
    return packed_schedule(plans, target)


def _with_pack(group: Group, target: Target) -> Schedule:
    """Return the schedule of parts with that of their loop nests in one kernel, where it has one.

    Args:
        group: a group of several parts, each of which has a schedule.
        target: a GPU whose dialect prints loop IR. It has no lanes, so that tiles stay as they are.
    """
    parts = group.alone()
    plans = [p for part in parts if isinstance(p := plan_group(part, target), Schedule)]
    schedule = packed_schedule(plans, target)
    refusal = next((p.refusal for p in plans if p.refusal is not None), None)
    plan = plan_pack(parts, plans, target)
    if isinstance(plan, Diagnostic):
        return evolve(schedule, no_nest=plan, refusal=refusal)
    rules = ", ".join(dict.fromkeys(p.rule for p in plans))
    return evolve(schedule, pack=plan, rule=rules, refusal=refusal)


def _has_nests(target: Target) -> bool:
    """Return whether loop nests have schedules on a target: a GPU whose dialect prints loop IR."""
    return target.nests and target.name != "blocks"


def _tile(plan: Schedule, aim: float, target: Target) -> int:
    """The points that a tile of a part should have."""
    points = plan.domain.size
    if not isinstance(points, int) or points == 0:  # a sum of nothing takes time all the same
        return target.tile
    return points_of_tile(plan.seconds / points, aim, target)


def inplace_pairs(node: Node) -> list[tuple[int, int]]:
    """Which results of a fused node may overwrite which inputs: FInplaceOption.

    One pass over the points, every read of the input at the point that is written, and no other
    part of the kernel that reads it. What has phases may read an input in several.
    """
    return _pairs_of(node)[0]


def inplace_rows(node: Node) -> list[tuple[int, int]]:
    """The same behind a reduction, where that pass is the one over what it leaves: FInplaceRows."""
    return _pairs_of(node)[1]


Pairs = tuple[list[tuple[int, int]], list[tuple[int, int]]]


def _pairs_of(node: Node) -> Pairs:
    group: Group = node.params["body"]
    return ([], []) if group.kind is Kind.PHASED else _pairs(group.key, UncachedArgument(group))


@lru_cache(maxsize=4096)
def _pairs(key: str, held: UncachedArgument[Group]) -> Pairs:
    group = held.value
    readers = Counter(i for part in group.parts for i in part.inputs)
    pairs: Pairs = [], []
    for part in group.parts:
        info = None if has_contraction(part.graph) else analyze_domain(part.graph)
        if info is None or isinstance(info, Diagnostic):
            return [], []  # it is stitched, all of it: no part is packed then
        pairs[bool(info.domain.reduced)].extend(
            (i, o)
            for i, n in zip(part.inputs, part.graph.inputs, strict=True)
            if readers[i] == 1
            for o, result in zip(part.outputs, info.graph.outputs, strict=True)
            if _may_overwrite(info, n, result)
        )
    return pairs


def _may_overwrite(info: DomainInfo, given: Node, result: Entry) -> bool:
    """Whether every read of an input is at the point that is written, and not later.

    Where something is folded that point is a row, if there is but one pass over rows: if no
    reduction comes from another, and all that reads the input are row values behind them.
    """
    reads = info.input_accesses.get(given, [])
    if not info.domain.reduced:
        return all(at == info.domain.full for at in reads)
    readers = [n for n in info.graph.nodes if any(e.node is given for e in n.inputs)]
    rows = all(info.roles.get(n) is ValueKind.ROW for n in (*readers, result.node))
    if not rows or any(at != info.domain.row for at in reads):
        return False
    before, behind = _around_folds(info.graph)
    return given not in before and before.isdisjoint(behind)


def _around_folds(graph: Graph) -> tuple[set[Node], set[Node]]:
    """What reductions come from, and reductions and what comes from them."""
    before: set[Node] = set()
    behind: set[Node] = set()
    for node in reversed(graph.nodes):
        if reduced_axes_of(node) is not None or node in before:
            before |= {e.node for e in node.inputs}
    for node in graph.nodes:
        if reduced_axes_of(node) is not None or any(e.node in behind for e in node.inputs):
            behind.add(node)
    return before, behind


FUSED.set_attr("FInplaceOption", inplace_pairs)
FUSED.set_attr("FInplaceRows", inplace_rows)
