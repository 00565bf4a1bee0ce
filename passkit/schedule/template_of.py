"""The template of a group under a schedule, and the values that the templates of a group name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.graph.node import Node
from passkit.schedule.phases import groups_of_parts, scheduled_parts
from passkit.schedule.schedule import Schedule
from passkit.schedule.template import Template, ValueTemplate
from passkit.schedule.template_levels import multi_nest_template, single_nest_template
from passkit.schedule.template_loops import (
    ValueLoops,
    multi_nest_values,
    single_nest_values,
    value_names,
)
from passkit.target import Target


def template_of(group: Group, schedule: Schedule, target: Target) -> Template:
    """Return the template of a group under a schedule.

    The template of a packed or phased group consists of those of all parts or phases, in order.
    """
    values = value_templates(group, schedule, target, value_names(group))
    return Template(tuple(values), cta_size=target.block)


def value_templates(
    group: Group, schedule: Schedule, target: Target, names: Mapping[Node, str]
) -> Iterator[ValueTemplate]:
    """Yield the templates of the values of a group under a schedule.

    Args:
        group: the group.
        schedule: the schedule.
        target: the machine.
        names: the names of the nodes in templates.
    """
    for part_names, part, plan in leaf_schedules(group, schedule, names):
        values = values_of(part, plan, target, part_names)
        if plan.multi_nest is None:
            yield from (single_nest_template(value, plan) for value in values.values())
        else:
            nodes = part.graph.nodes
            maps = {nodes[k]: layout.tile_map for k, layout in plan.multi_nest.layouts}
            schedules = {nodes[k]: p.schedule for p in plan.multi_nest.nests for k in p.results}
            for node, value in values.items():
                yield multi_nest_template(node, value, maps[node], schedules[node])


def values_of(
    group: Group, schedule: Schedule, target: Target, names: Mapping[Node, str]
) -> dict[Node, ValueLoops]:
    """Return the values that templates of a group without parts name, with their loops.

    A template of a multi-nest kernel does not name values that are computed again where they are
    read, nor outputs that follow from a moved value.

    Args:
        group: the group.
        schedule: a schedule of it.
        target: the machine.
        names: the names of the nodes in templates.
    """
    if schedule.multi_nest is None:
        info = analyze_domain(group.graph)
        assert isinstance(info, DomainInfo)
        return single_nest_values(info, [e.node for e in group.graph.outputs], names, target)
    tiled = {group.graph.nodes[k] for k, _ in schedule.multi_nest.layouts}
    values = multi_nest_values(group, names)
    return {node: value for node, value in values.items() if node in tiled}


def leaf_schedules(
    group: Group, schedule: Schedule, names: Mapping[Node, str]
) -> Iterator[tuple[Mapping[Node, str], Group, Schedule]]:
    """Yield the schedules without parts inside a schedule, as `parts_with_names` yields parts.

    Args:
        group: the group.
        schedule: its schedule.
        names: the names of the nodes of the group in templates.
    """
    if not schedule.parts:
        yield names, group, schedule
    for part_names, part, plan in parts_with_names(group, schedule, names):
        yield from leaf_schedules(part, plan, part_names)


def parts_with_names(
    group: Group, schedule: Schedule, names: Mapping[Node, str]
) -> Iterator[tuple[dict[Node, str], Group, Schedule]]:
    """Yield the parts or phases of a packed or phased schedule; nothing for another schedule.

    The nodes of a phase are copies, so each part comes with the names of its own nodes.

    Args:
        group: the group.
        schedule: its schedule.
        names: the names of the nodes of the group in templates.

    Yields: the names of the nodes of a part, the part as a group, and its schedule.
    """
    if not schedule.parts:
        return
    parts, groups = scheduled_parts(group, schedule), groups_of_parts(group, schedule)
    for part, own_group, own_schedule in zip(parts, groups, schedule.parts, strict=True):
        yield {n: names[part.original(n)] for n in own_group.ops}, own_group, own_schedule
