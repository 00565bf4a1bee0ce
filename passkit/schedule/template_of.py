"""The template of a group under a schedule, and the loops that a group's templates speak of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import evolve

from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.graph.node import Node
from passkit.schedule import template_multi as stitched
from passkit.schedule import template_single as plain
from passkit.schedule.phases import scheduled_groups, scheduled_parts
from passkit.schedule.schedule import MultiNest, Schedule
from passkit.schedule.template import NestPlan, Template
from passkit.schedule.template_loops import Nest, value_names
from passkit.target import Target


def template_of(group: Group, schedule: Schedule, target: Target) -> Template:
    """What a schedule of a group does, as a template.

    Of packed groups it is that of all their parts, of phased ones that of all their phases, one
    behind the other.
    """
    stages = _stages(group, schedule, target, value_names(group))
    return Template(stages, cta_size=target.block)


def _stages(
    group: Group, schedule: Schedule, target: Target, names: dict[Node, str]
) -> tuple[NestPlan, ...]:
    if schedule.parts:
        parts = parts_with_names(group, schedule, names)
        return tuple(s for own, p, plan in parts for s in _stages(p, plan, target, own))
    if schedule.multi_nest is None:
        info, values = plain_values(group, target, names)
        runs = plain.runs_of(info, target)
        return tuple(plain.stage_of(v, schedule, runs) for v in values)
    nodes = group.graph.nodes
    regions = {nodes[k]: r for k, r in schedule.multi_nest.regions}
    by = {nodes[k]: p.schedule for p in schedule.multi_nest.parts for k in p.results}
    nests = stitched_values(group, schedule.multi_nest, names)
    return tuple(stitched.stage_of(n, nest, regions[n], by[n]) for n, nest in nests.items())


def stitched_values(
    group: Group, multi_nest: MultiNest, names: dict[Node, str]
) -> dict[Node, Nest]:
    """What the templates of a stitched group name, if its tiles own values as these do.

    Results that follow what they move have no loops of their own, nor has what is computed again.
    """
    own = {group.graph.nodes[k] for k, _ in multi_nest.regions}
    found = stitched.values_of(group, names)
    return {node: nest for node, nest in found.items() if node in own}


def plain_values(
    group: Group, target: Target, names: dict[Node, str]
) -> tuple[DomainInfo, tuple[plain.NestValue, ...]]:
    """The layout of a group of one space, and what its templates name."""
    info = analyze_domain(group.graph)
    assert isinstance(info, DomainInfo)
    return info, plain.values_of(info, [e.node for e in group.graph.outputs], names, target)


def nests_of_group(group: Group, schedule: Schedule, target: Target) -> tuple[Nest, ...]:
    """The values that a group's templates name, in their order, with their loops."""
    names = value_names(group)
    if schedule.parts:
        return tuple(
            evolve(nest, name=own[nest.name])
            for within, part, plan in parts_with_names(group, schedule, names)
            for own in [outer_names(part, within)]
            for nest in nests_of_group(part, plan, target)
        )
    if schedule.multi_nest is None:
        return tuple(v.nest for v in plain_values(group, target, names)[1])
    return tuple(stitched_values(group, schedule.multi_nest, names).values())


def parts_with_names(
    group: Group, schedule: Schedule, names: Mapping[Node, str]
) -> Iterator[tuple[dict[Node, str], Group, Schedule]]:
    """The parts, or phases, that a schedule has plans for; first what the group calls their nodes.

    A phase has copies of the group's nodes.
    """
    parts, groups = scheduled_parts(group, schedule), scheduled_groups(group, schedule)
    for part, own, plan in zip(parts, groups, schedule.parts, strict=True):
        yield {n: names[part.original(n)] for n in own.ops}, own, plan


def outer_names(part: Group, names: Mapping[Node, str]) -> dict[str, str]:
    """What the whole group calls the values of a part, by what the part calls them."""
    return {name: names[node] for node, name in value_names(part).items()}


def renamed(stages: Sequence[NestPlan], names: Mapping[str, str]) -> tuple[NestPlan, ...]:
    """Stages of those values that ``names`` has, under other names."""
    return tuple(evolve(s, name=names[s.name]) for s in stages if s.name in names)
