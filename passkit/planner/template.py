"""Schedules from templates: the schedule that a template describes, or the nearest possible one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import frozen

from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Group
from passkit.analysis.nest_partitions import nest_partitions
from passkit.analysis.nests import NestNodes
from passkit.analysis.tile_layout import TileLayout
from passkit.diagnostics import Diagnostic
from passkit.errors import ScheduleError
from passkit.graph.node import Entry, Node, known_shape
from passkit.planner.cpu import tile_nest, tile_schedule
from passkit.planner.multi_nest import derived_outputs, heaviest, multi_nest_schedule
from passkit.schedule.apply_tiles import TileShape
from passkit.schedule.build import with_part_schedules
from passkit.schedule.schedule import Schedule
from passkit.schedule.shared_plan import plan_shared
from passkit.schedule.template import Template, ValueTemplate, check
from passkit.schedule.template_levels import (
    multi_nest_template,
    normalize,
    split_of,
    tile_sizes_of,
)
from passkit.schedule.template_loops import (
    ValueLoops,
    kernel_loops,
    multi_nest_values,
    value_names,
)
from passkit.schedule.template_of import (
    leaf_schedules,
    parts_with_names,
    value_templates,
    values_of,
)
from passkit.schedule.tiling import Composition, compositions, split_for
from passkit.target import Target
from passkit.values.size import Size

SYMBOLIC_ROWS = (Composition.ROW, Composition.THREAD)
"""The compositions with tiles of a symbolic number of rows."""


def apply_template(
    group: Group, default: Schedule, target: Target, template: Template
) -> Schedule | Diagnostic:
    """Return the schedule of a group that a template describes.

    Args:
        group: the group.
        default: its schedule without a template.
        target: the machine.
        template: the template.

    Returns: the schedule, or why no kernel does what the template says.

    Raises: ScheduleError for a template that does not fit the group's loops.
    """
    names = value_names(group)
    by_name = {value.name: value for value in template.values}
    loops = list(_nameable_values(group, default, target, names, by_name))
    with_loops = {value.name for value in loops}
    check(template, loops, [name for name in names.values() if name not in with_loops])
    if template.cta_num is not None or template.cta_size != target.block:
        raise ScheduleError(
            f"blocks on {target.name} are as many as there are pieces, of {target.block} threads; "
            f"got cta_num {template.cta_num}, cta_size {template.cta_size}"
        )
    return _TemplatePlan(target, by_name).apply(group, default, names)


def _nameable_values(
    group: Group,
    default: Schedule,
    target: Target,
    names: Mapping[Node, str],
    named: Collection[str],
) -> Iterator[ValueLoops]:
    """Yield the values that a template which names the values ``named`` has to name.

    Args:
        group: the group.
        default: its schedule without a template.
        target: the machine.
        names: the names of the nodes in templates.
        named: the names in the template.
    """
    for part_names, part, schedule in leaf_schedules(group, default, names):
        if schedule.multi_nest is None:
            yield from values_of(part, schedule, target, part_names).values()
        else:
            yield from _partitions(part, part_names, named)[0].values.values()


@frozen
class _Partition:
    """A partition of a multi-nest group into nests.

    Attributes:
        nests: the nests.
        values: the values that a template has to name, with their loops.
        derived: the outputs that follow from a moved value, with this value.
    """

    nests: Sequence[NestNodes]
    values: Mapping[Node, ValueLoops]
    derived: Mapping[Entry, Entry]


def _partitions(
    group: Group, names: Mapping[Node, str], named: Collection[str]
) -> list[_Partition]:
    """Return the partitions of a multi-nest group for which a template names the right values.

    Values that are not named are computed again where they are read, except outputs. If there is
    no such partition, the finest one tells which values are missing.

    Args:
        group: the group.
        names: the names of the nodes in templates.
        named: the names in the template.
    """
    partitions = [_partition(group, names, nests, named) for nests in nest_partitions(group.graph)]
    fitting = [p for p in partitions if all(v.name in named for v in p.values.values())]
    return fitting or partitions[:1]


def _partition(
    group: Group, names: Mapping[Node, str], nests: Sequence[NestNodes], named: Collection[str]
) -> _Partition:
    """Return a partition with the values that a template has to name.

    An output that the template names does not follow from another value.

    Args:
        group: the group.
        names: the names of the nodes in templates.
        nests: the nests of the partition.
        named: the names in the template.
    """
    derived = derived_outputs(group.graph, nests)
    if any(names[e.node] in named for e in derived):
        derived = {}
    following = {e.node for e in derived}
    values = {
        node: value
        for node, value in multi_nest_values(group, names).items()
        if value.name in named or (value.is_output and node not in following)
    }
    return _Partition(nests, values, derived)


@frozen
class _TemplatePlan:
    """The search for the schedule that a template describes.

    Attributes:
        target: the machine.
        templates: the templates of values, by their names.
    """

    target: Target
    templates: Mapping[str, ValueTemplate]

    def apply(
        self, group: Group, default: Schedule, names: Mapping[Node, str]
    ) -> Schedule | Diagnostic:
        """Return the schedule of a group or part, or why there is none.

        Args:
            group: the group or part.
            default: its schedule without a template.
            names: the names of its nodes in templates.
        """
        if default.parts:
            schedules = []
            for part_names, part, part_default in parts_with_names(group, default, names):
                schedule = self.apply(part, part_default, part_names)
                if isinstance(schedule, Diagnostic):
                    return schedule
                schedules.append(schedule)
            return with_part_schedules(default, schedules, self.target)
        asked = self._normalized(group, default, names)
        nearest = list(value_templates(group, default, self.target, names))
        if nearest == asked:
            return default
        refusal: Diagnostic | None = None
        for schedule in self._candidates(group, default, names):
            if isinstance(schedule, Diagnostic):
                refusal = schedule
                continue
            nearest = list(value_templates(group, schedule, self.target, names))
            if nearest == asked:
                return within_scratch(group, schedule, default, self.target)
        if refusal is not None:
            return refusal
        data = {
            "asked": next((str(v) for v in asked if v not in nearest), "no more than that"),
            "possible": next((str(v) for v in nearest if v not in asked), "fewer values"),
        }
        return Diagnostic("template.none", data)

    def _normalized(
        self, group: Group, default: Schedule, names: Mapping[Node, str]
    ) -> list[ValueTemplate]:
        """Return the templates of the values of a group without parts in canonical form."""
        values = _nameable_values(group, default, self.target, names, self.templates)
        return [normalize(self.templates[v.name], v) for v in values]

    def _candidates(
        self, group: Group, default: Schedule, names: Mapping[Node, str]
    ) -> Iterator[Schedule | Diagnostic]:
        """Yield schedules that the template may describe, and the reasons against others.

        The template describes no schedule of a single nest if it names row values only.
        """
        if default.multi_nest is not None:
            for partition in _partitions(group, names, self.templates):
                yield self._multi_nest(group, partition)
            return
        info = analyze_domain(group.graph)
        assert isinstance(info, DomainInfo)
        count = len(kernel_loops(info, self.target))
        values = values_of(group, default, self.target, names).values()
        value = next((v for v in values if len(v.kinds) == count), None)
        if value is None:
            return
        nest = tile_nest(info)
        for composition in compositions(info, self.target):
            chunk, width = tile_sizes_of(self.templates[value.name], value, composition)
            numbers = [width] if composition in SYMBOLIC_ROWS else [width, chunk]
            if any(isinstance(n, Size) for n in numbers):
                size = chunk if width is None else width
                yield Diagnostic("template.unknown_size", {"size": size})
            else:
                shape = TileShape(composition, split_for(info, composition, chunk), width)
                yield tile_schedule(nest, shape, self.target)

    def _multi_nest(self, group: Group, partition: _Partition) -> Schedule | Diagnostic:
        """Return the schedule with the splits of the template.

        Each nest has the schedule that the template describes, or its default.
        """
        values = partition.values

        def choose(
            entries: Sequence[Entry],
            layouts: Mapping[Node, TileLayout],
            schedules: Sequence[Schedule],
        ) -> Schedule:
            """Return the schedule of a nest, given its results and their layouts."""
            nodes = [e.node for e in entries if e.node in layouts and e.node in values]

            def is_described(schedule: Schedule) -> bool:
                """Return whether the template describes the nest under a schedule."""
                return all(
                    multi_nest_template(n, values[n], layouts[n].tile_map, schedule)
                    == normalize(self.templates[values[n].name], values[n])
                    for n in nodes
                )

            return next(filter(is_described, schedules), schedules[0])

        roots = {}
        for e in heaviest(group.graph, partition.derived):
            value = values[e.node]
            split = split_of(self.templates[value.name], value)
            roots[e] = split.tile_map(known_shape(e))
        return multi_nest_schedule(
            group, partition.nests, self.target, roots, choose, partition.derived
        )


def within_scratch(
    group: Group, schedule: Schedule, default: Schedule, target: Target
) -> Schedule | Diagnostic:
    """Return a schedule if its scratch memory fits, or needs no more than that of the default.

    Args:
        group: the group.
        schedule: the schedule.
        default: the schedule of the group without a template.
        target: the machine.

    Returns: the schedule, or the diagnostic "memory.template".
    """
    needed, usual = plan_shared(group, schedule).nbytes, plan_shared(group, default).nbytes
    limit = max(target.scratch, usual) if isinstance(usual, int) else target.scratch
    if isinstance(needed, Size) or needed <= limit:
        return schedule
    return Diagnostic("memory.template", {"need": needed, "limit": limit})
