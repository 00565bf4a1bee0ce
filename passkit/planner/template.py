"""Obeying templates: the schedule that does what somebody wrote, or what is possible instead."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from passkit.analysis.group import Group
from passkit.analysis.nest_partitions import nest_partitions
from passkit.analysis.nests import NestNodes
from passkit.analysis.regions import Region
from passkit.diagnostics import Diagnostic
from passkit.errors import ScheduleError
from passkit.graph.node import Entry, Node, known_shape
from passkit.planner.multi_nest import derived_outputs, heaviest, multi_nest_schedule
from passkit.schedule import template_multi as stitched
from passkit.schedule import template_single as plain
from passkit.schedule.build import plain_schedule, schedule_like
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import plan_shared
from passkit.schedule.template import NestPlan, Template, check
from passkit.schedule.template_levels import split_of
from passkit.schedule.template_loops import Nest, value_names
from passkit.schedule.template_of import (
    nests_of_group,
    outer_names,
    parts_with_names,
    plain_values,
    renamed,
    template_of,
)
from passkit.schedule.tiling import Composition, compositions, split_for
from passkit.target import Target
from passkit.values.size import Size

Stages = Mapping[str, NestPlan]
BY_ROWS = (Composition.ROW, Composition.THREAD)
"""Whose tiles may have any number of rows."""


def apply_template(
    group: Group, default: Schedule, target: Target, template: Template
) -> Schedule | Diagnostic:
    """The schedule of a group that deals its loops out as a template says.

    ``default`` is the one that it has without. Raises: ScheduleError for a template that does not
    fit the group's loops.
    """
    nests = _nests(group, default, target, [s.name for s in template.stages])
    named = {nest.name for nest in nests}
    check(template, nests, [n for n in value_names(group).values() if n not in named])
    if template.cta_num is not None or template.cta_size != target.block:
        raise ScheduleError(
            f"blocks on {target.name} are as many as there are pieces, of {target.block} threads; "
            f"got cta_num {template.cta_num}, cta_size {template.cta_size}"
        )
    return _obeying(group, default, target, {s.name: s for s in template.stages})


def _nests(group: Group, default: Schedule, target: Target, named: Sequence[str]) -> Sequence[Nest]:
    """The values that a template with these names speaks of."""
    if default.parts:
        found = list[Nest]()
        for names, part, plan in parts_with_names(group, default, value_names(group)):
            outer = outer_names(part, names)
            inner = [name for name, whole in outer.items() if whole in named]
            nests = _nests(part, plan, target, inner)
            found += [evolve(nest, name=outer[nest.name]) for nest in nests]
        return found
    if default.multi_nest is None:
        return nests_of_group(group, default, target)
    return [*_cuts(group, named)[0].values.values()]


@frozen
class _Cut:
    """Parts of a stitched group, the values that are named, and the results that follow others."""

    pieces: Sequence[NestNodes]
    values: Mapping[Node, Nest]
    following: Mapping[Entry, Entry]


def _cuts(group: Group, named: Collection[str]) -> list[_Cut]:
    """The ways to cut a stitched group in which just these values may be named.

    What is not named is computed again where it is read, but for results. If there is no such way,
    that with the most parts tells what is missing.
    """
    found = [_cut(group, pieces, named) for pieces in nest_partitions(group.graph)]
    fit = [c for c in found if all(nest.name in named for nest in c.values.values())]
    return fit or found[:1]


def _cut(group: Group, pieces: Sequence[NestNodes], named: Collection[str]) -> _Cut:
    names = value_names(group)
    following = derived_outputs(group.graph, pieces)
    if any(names[e.node] in named for e in following):
        following = {}
    followed = {e.node for e in following}
    values = {
        node: nest
        for node, nest in stitched.values_of(group, names).items()
        if nest.name in named or (nest.root and node not in followed)
    }
    return _Cut(pieces, values, following)


def _obeying(
    group: Group, default: Schedule, target: Target, stages: Stages
) -> Schedule | Diagnostic:
    if default.parts:
        return _of_parts(group, default, target, stages)
    wanted = _settled(group, default, target, stages)
    made, refused = template_of(group, default, target).stages, None
    if made == wanted:
        return default
    for found in _candidates(group, default, target, stages):
        if isinstance(found, Diagnostic):
            refused = found
            continue
        made = template_of(group, found, target).stages
        if made == wanted:
            return within(group, found, default, target)
    if refused is not None:
        return refused
    asked = next((str(s) for s in wanted if s not in made), "no more than that")
    can = next((str(s) for s in made if s not in wanted), "fewer values")
    return Diagnostic("template.none", {"asked": asked, "possible": can})


def _of_parts(
    group: Group, default: Schedule, target: Target, stages: Stages
) -> Schedule | Diagnostic:
    """Each part, or phase, by what is said of it."""
    names, plans = value_names(group), []
    for within_names, part, plan in parts_with_names(group, default, names):
        inner = {outer: own for own, outer in outer_names(part, within_names).items()}
        own = {s.name: s for s in renamed([*stages.values()], inner)}
        found = _obeying(part, plan, target, own)
        if isinstance(found, Diagnostic):
            return found
        plans.append(found)
    return schedule_like(default, plans, target)


def _settled(
    group: Group, default: Schedule, target: Target, stages: Stages
) -> tuple[NestPlan, ...]:
    """The stages in the order and the words of `template_of`."""
    names = value_names(group)
    if default.multi_nest is None:
        info, values = plain_values(group, target, names)
        runs = plain.runs_of(info, target)
        return tuple(plain.settle(stages[v.nest.name], v, runs) for v in values)
    nests = _cuts(group, stages)[0].values.values()
    return tuple(stitched.settle(stages[n.name], n) for n in nests)


def _candidates(
    group: Group, default: Schedule, target: Target, stages: Stages
) -> Iterator[Schedule | Diagnostic]:
    """Schedules that may be meant, and what is in the way of others."""
    if default.multi_nest is not None:
        yield from (_stitched(group, target, stages, each) for each in _cuts(group, stages))
        return
    info, values = plain_values(group, target, value_names(group))
    runs = plain.runs_of(info, target)
    stage = next((stages[v.nest.name] for v in values if v.runs == runs), None)
    if stage is None:
        return  # row values alone: nothing is said of what is folded
    for composition in compositions(info, target):
        chunk, width = plain.sizes_of(stage, composition, runs)
        known = [width] if composition in BY_ROWS else [width, chunk]
        if any(isinstance(n, Size) for n in known):
            size = chunk if width is None else width
            yield Diagnostic("template.unknown_size", {"size": size})
        else:
            split = split_for(info, composition, chunk)
            yield plain_schedule(info, composition, split, width, target)


def _stitched(group: Group, target: Target, stages: Stages, cut: _Cut) -> Schedule | Diagnostic:
    """The schedule with the splits of the results, and for each part what comes closest."""
    nests = cut.values

    def choose(
        values: Sequence[Entry], regions: Mapping[Node, Region], plans: Sequence[Schedule]
    ) -> Schedule:
        def is_meant(plan: Schedule) -> bool:
            own = [e.node for e in values if e.node in regions and e.node in nests]
            return all(_is_meant(n, nests[n], regions[n], plan) for n in own)

        return next(filter(is_meant, plans), plans[0])

    def _is_meant(node: Node, nest: Nest, region: Region, plan: Schedule) -> bool:
        wanted = stitched.settle(stages[nest.name], nest)
        return stitched.stage_of(node, nest, region, plan) == wanted

    splits = {}
    for e in heaviest(group.graph, cut.following):
        split = split_of(stages[nests[e.node].name], nests[e.node])
        splits[e] = split.canonical(known_shape(e))
    return multi_nest_schedule(group, cut.pieces, target, splits, choose, cut.following)


def within(
    group: Group, plan: Schedule, default: Schedule, target: Target
) -> Schedule | Diagnostic:
    """The schedule, if there is room for its scratch, as there is for that of the default."""
    needed, own = plan_shared(group, plan).nbytes, plan_shared(group, default).nbytes
    limit = max(target.scratch, own) if isinstance(own, int) else target.scratch
    if isinstance(needed, Size) or needed <= limit:
        return plan
    return Diagnostic("memory.template", {"need": needed, "limit": limit})
