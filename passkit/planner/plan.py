"""The planner: the schedule of a group on a target, or why it cannot be one kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING

from attrs import evolve

from passkit.analysis.components import seconds_per_tile, tile_points
from passkit.analysis.domain import ValueKind, reduced_axes_of
from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import FUSED, Group, Kind
from passkit.diagnostics import Diagnostic
from passkit.errors import ScheduleError
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf
from passkit.planner.cpu import plan_tiles
from passkit.planner.multi_nest import has_contraction, plan_multi_nest
from passkit.planner.phases import plan_phased
from passkit.planner.template import apply_template
from passkit.schedule.build import packed_schedule
from passkit.schedule.phases import phase_group, phases_of
from passkit.schedule.rules import rules_key
from passkit.schedule.schedule import Schedule, Source
from passkit.schedule.template import ScheduleText, Template
from passkit.schedule.tiling import Composition
from passkit.target import Target
from passkit.values.lazy import Lazy
from passkit.values.memo import UncachedArgument

if TYPE_CHECKING:
    from passkit.planner import blocks, given, joins, nests, packs
else:  # the planners of GPUs, and the parser of schedules
    blocks = Lazy("passkit.planner.blocks")
    given = Lazy("passkit.planner.given")
    joins = Lazy("passkit.planner.joins")
    nests = Lazy("passkit.planner.nests")
    packs = Lazy("passkit.planner.packs")


def plan_group(
    group: Group, target: Target, template: Template | ScheduleText | None = None
) -> Schedule | Diagnostic:
    """Return the schedule of a group, memoised by the key of the group and the target.

    Args:
        group: the group.
        target: the machine.
        template: a template that the schedule must have, or its text.

    Returns: the schedule, or why there is none; with a template also the nearest possible one.

    Raises: ScheduleError for a template, or a text, that does not fit the loops of the group.
    """
    phased = group.kind is Kind.PHASED
    rules = _rules_key(group, target)
    if template is None:
        return _plan(group.key, phased, UncachedArgument(group), target, rules)
    return _plan_with_template(group.key, phased, UncachedArgument(group), target, template, rules)


def outline_group(group: Group, target: Target) -> Schedule | Diagnostic:
    """Return the schedule of a group without those of its loop nests on a GPU.

    Tiles, stages, seconds and diagnostics are those of `plan_group`. Fusion compares many more
    groups than there are kernels, and needs no more. A group of phases has the schedules of its
    loop nests here, too.
    """
    if group.kind is Kind.PHASED or not target.has_thread_maps:
        return plan_group(group, target)
    return _outline(group.key, False, UncachedArgument(group), target)


def plan_mapped(group: Group, target: Target) -> Schedule | Diagnostic:
    """Return the schedule of a group; on a GPU its threads have the points of all its nests.

    Returns: the schedule, or why there is none, or none with such maps. Measurements are ignored.
    """
    schedule = plan_group(group, target)
    if isinstance(schedule, Diagnostic) or not target.has_maps_only:
        return schedule
    mapped = with_block(group, schedule, target)
    if mapped.is_mapped:
        return mapped
    return mapped.no_nest or Diagnostic("tile.composition")


def with_block(group: Group, schedule: Schedule, target: Target) -> Schedule:
    """Return the schedule of a stitched group with the maps of its parts, for a GPU.

    Where there are none, ``no_nest`` is the reason. A schedule of phases has these maps in its
    phases. Any other one is returned as it is, and so is one that was measured or is the user's.

    Args:
        group: the group.
        schedule: its schedule.
        target: the target.
    """
    if not target.has_thread_maps or schedule.multi_nest is None:
        return schedule
    if schedule.source is not Source.MODEL:
        return schedule
    return blocks.mapped(group, schedule, target)


def why_no_maps(group: Group, target: Target) -> Diagnostic | None:
    """Return why a GPU has no maps of the parts of a stitched group, or of a pack.

    None if it has, or needs none: for groups of one loop nest, and on other targets.
    """
    if not target.has_maps_only:
        return None
    schedule = outline_group(group, target)
    if not isinstance(schedule, Schedule):
        return None
    if schedule.composition is Composition.PACKED:
        schedule = plan_group(group, target)
        assert isinstance(schedule, Schedule)  # its outline is one
    elif schedule.multi_nest is None:
        return None
    return with_block(group, schedule, target).no_nest


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
    return rules_key(group.graph) if target.nests or target.lanes > 1 else None


@lru_cache(maxsize=4096)
def _plan(
    key: str, phased: bool, held: UncachedArgument[Group], target: Target, rules: Hashable
) -> Schedule | Diagnostic:
    """Return the schedule of a group without a template, or why there is none.

    Args:
        key: the key of the group.
        phased: whether the kind of the group has phases.
        held: the group, which ``key`` and ``phased`` identify.
        target: the machine.
        rules: the key of the schedule rules.
    """
    joined = _joined(held.value, target) if phased else None
    if joined is not None:
        return joined
    plan_phase = plan_mapped if target.has_maps_only else outline_group
    phases = plan_phased(held.value, target, plan_phase) if phased else None
    if isinstance(phases, Schedule):
        return phases
    if not target.has_thread_maps:
        return _one_phase(held.value, target)
    outline = _outline(key, phased, held, target)
    if isinstance(outline, Diagnostic):
        return outline
    return _with_loop_nests(held.value, outline, target)


def _one_phase(group: Group, target: Target) -> Schedule | Diagnostic:
    """Return the schedule of a group without phases, without those of its loop nests.

    A group of several independent parts is packed. One domain has a single-nest schedule. A group
    with matrix products, or of several domains, has a multi-nest one.
    """
    if len(group.parts) > 1:
        packed = _packed(group, target)
        if isinstance(packed, Schedule) or packed.code != "pack.part_nests":
            return packed
    if has_contraction(group.graph):
        return plan_multi_nest(group, target)
    info = analyze_domain(group.graph)
    if isinstance(info, Diagnostic):
        schedule = plan_multi_nest(group, target)
        return info if isinstance(schedule, Diagnostic) else schedule
    return plan_tiles(info, target)


def _joined(group: Group, target: Target) -> Schedule | None:
    """Return the schedule of a group in which the last block combines partial results.

    Returns: None for other groups and targets.
    """
    if not target.has_maps_only:
        return None
    phase_outputs = joins.joined_phases(group.graph)
    if phase_outputs is None:
        return None
    partials, combine = (phase_group(group, p) for p in phases_of(group.graph, phase_outputs))
    first, info = plan_group(partials, target), analyze_domain(combine.graph)
    if not isinstance(first, Schedule) or not isinstance(info, DomainInfo):
        return None
    return joins.plan_joined(group, target, (first, plan_tiles(info, target)))


def _with_loop_nests(group: Group, schedule: Schedule, target: Target) -> Schedule:
    """Return a schedule with that of its loop nest, or of those of its parts, if it has one.

    Args:
        group: the group.
        schedule: its schedule, of one phase.
        target: a GPU whose dialect prints loop IR.
    """
    if schedule.multi_nest is not None:
        return schedule
    if schedule.composition is Composition.PACKED:
        if not target.cooperates:
            return evolve(schedule, no_nest=Diagnostic("pack.target", {"target": target.name}))
        return _with_pack(group, target)
    info = analyze_domain(group.graph)
    assert isinstance(info, DomainInfo)  # the schedule was made from it
    plan = nests.plan_nest(info, schedule, target)
    return evolve(
        schedule,
        nest=plan.schedule,
        rule=plan.rule,
        no_nest=plan.diagnostic,
        refusal=plan.refusal,
    )


def check_rules(where: str, schedule: Schedule) -> None:
    """Check that the schedule rules of the user are legal for a group that is compiled.

    Groups that Fusion only considers are not checked: the rule may be for another one. ``where`` is
    the group, for the message.

    Raises: ScheduleError with the group and the diagnostic of the rule.
    """
    if schedule.refusal is not None:
        raise ScheduleError(f"{where}: {schedule.refusal}")


@lru_cache(maxsize=1024)
def _plan_with_template(
    key: str,
    phased: bool,
    held: UncachedArgument[Group],
    target: Target,
    template: Template | ScheduleText,
    rules: Hashable,
) -> Schedule | Diagnostic:
    """Return the schedule of a group with a template, or why there is none.

    Args:
        key: the key of the group.
        phased: whether the kind of the group has phases.
        held: the group, which ``key`` and ``phased`` identify.
        target: the machine.
        template: the template, or the text of the schedule.
        rules: the key of the schedule rules.

    Raises: ScheduleError for a template, or a text, that does not fit the loops of the group.
    """
    default = _plan(key, phased, held, target, rules)
    if isinstance(default, Diagnostic):
        return default
    if isinstance(template, ScheduleText):
        default = with_block(held.value, default, target)
        schedule = given.schedule_of_text(held.value, default, target, template)
    elif target.has_thread_maps:
        return Diagnostic("template.loop_nests", {"target": target.name})
    else:
        schedule = apply_template(held.value, default, target, template)
    if isinstance(schedule, Diagnostic):
        return schedule
    return evolve(schedule, source=Source.USER, rule="")


def _packed(group: Group, target: Target) -> Schedule | Diagnostic:
    """Return the schedule of a group of independent parts, or why there is none.

    Each part has a schedule of its own, with tiles that take about as long as those of others. A
    multi-nest part cannot be packed.
    """
    leaf = next((e.node for e in group.graph.outputs if is_leaf(e.node)), None)
    if leaf is not None:
        return Diagnostic("graph.output_is_input", at=(leaf.label,))
    parts = group.alone()
    schedules = []
    for part in parts:
        schedule = outline_group(part, target)
        if isinstance(schedule, Diagnostic):
            return schedule
        if schedule.multi_nest is not None:
            return Diagnostic("pack.part_nests")
        schedules.append(schedule)
    seconds = [s.seconds for s in schedules]
    aim = seconds_per_tile(seconds, target.tiling) if target.lanes > 1 else 0.0
    if aim:
        for k, part in enumerate(parts):
            tile = _tile_points(schedules[k], aim, target)
            part_target = target if tile == target.tile else evolve(target, tile=tile)
            schedule = outline_group(part, part_target)
            assert isinstance(schedule, Schedule)
            schedules[k] = schedule
    return packed_schedule(schedules, target)


def _with_pack(group: Group, target: Target) -> Schedule:
    """Return the schedule of parts with that of their loop nests in one launch, if it has one.

    Args:
        group: a group of several parts, each of which has a schedule.
        target: a GPU whose dialect prints loop IR. It has no vectors, so tiles stay as they are.
    """
    parts = group.alone()
    plans = [p for part in parts if isinstance(p := plan_group(part, target), Schedule)]
    schedule = packed_schedule(plans, target)
    refusal = next((p.refusal for p in plans if p.refusal is not None), None)
    pack = packs.plan_pack(parts, plans, target)
    if isinstance(pack, Diagnostic):
        return evolve(schedule, no_nest=pack, refusal=refusal)
    rules = ", ".join(dict.fromkeys(p.rule for p in plans))
    return evolve(schedule, pack=pack, rule=rules, refusal=refusal)


def _tile_points(schedule: Schedule, aim: float, target: Target) -> int:
    """Return the points of a tile of a part that takes about ``aim`` seconds."""
    points = schedule.domain.size
    if not isinstance(points, int) or points == 0:  # a reduction of nothing takes time, too
        return target.tile
    return tile_points(schedule.seconds / points, aim, target)


def inplace_pairs(node: Node) -> list[tuple[int, int]]:
    """Return the inputs that results of a fused node may overwrite: FInplaceOption.

    The part of such an input has no reductions, and no other part reads the input. Every element is
    read at the point at which it is overwritten. A phased kernel has no such pairs.

    Returns: pairs of positions of an input and of a result.
    """
    return _pairs_of(node)[0]


def inplace_rows(node: Node) -> list[tuple[int, int]]:
    """Return the inputs that results may overwrite after a reduction: FInplaceRows.

    As `inplace_pairs`, for inputs and results with one element per row, which the kernel reads and
    writes after its only traversal of the rows.
    """
    return _pairs_of(node)[1]


Pairs = tuple[list[tuple[int, int]], list[tuple[int, int]]]
"""The results of `inplace_pairs` and of `inplace_rows`."""


def _pairs_of(node: Node) -> Pairs:
    """Return the pairs of the inputs and results of a fused node."""
    group: Group = node.params["body"]
    return ([], []) if group.kind is Kind.PHASED else _pairs(group.key, UncachedArgument(group))


@lru_cache(maxsize=4096)
def _pairs(key: str, held: UncachedArgument[Group]) -> Pairs:
    """Return the pairs of the group ``held.value``, which ``key`` identifies.

    There are none if a part is a multi-nest kernel, as the parts are not packed then.
    """
    group = held.value
    readers = Counter(i for part in group.parts for i in part.inputs)
    pairs: Pairs = [], []
    for part in group.parts:
        info = None if has_contraction(part.graph) else analyze_domain(part.graph)
        if info is None or isinstance(info, Diagnostic):
            return [], []
        pairs[bool(info.domain.reduced)].extend(
            (i, o)
            for i, n in zip(part.inputs, part.graph.inputs, strict=True)
            if readers[i] == 1
            for o, result in zip(part.outputs, info.graph.outputs, strict=True)
            if _may_overwrite(info, n, result)
        )
    return pairs


def _may_overwrite(info: DomainInfo, variable: Node, result: Entry) -> bool:
    """Return whether a result may overwrite an input in the domain ``info``.

    Every element must be read at the point at which it is overwritten. In a domain with reductions
    the point is a row: no reduction may depend on another, and only row values behind the
    reductions may read the input.
    """
    accesses = info.input_accesses.get(variable, [])
    if not info.domain.reduced:
        return all(at == info.domain.point_index for at in accesses)
    readers = [n for n in info.graph.nodes if any(e.node is variable for e in n.inputs)]
    are_rows = all(info.kinds.get(n) is ValueKind.REDUCED for n in (*readers, result.node))
    if not are_rows or any(at != info.domain.row_index for at in accesses):
        return False
    before, behind = _around_reductions(info.graph)
    return variable not in before and before.isdisjoint(behind)


def _around_reductions(graph: Graph) -> tuple[set[Node], set[Node]]:
    """Return the nodes that reductions depend on, and reductions with the nodes behind them."""
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
