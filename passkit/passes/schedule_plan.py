"""SchedulePlan: choose a schedule for each group, as data that CodeGen uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from passkit.analysis.group import Group
from passkit.analysis.groups import groups_of
from passkit.diagnostics import Diagnostic
from passkit.errors import ScheduleError, nearest
from passkit.graph.graph import Annotation, Graph
from passkit.graph.node import Entry, Node
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext, evaluator_of
from passkit.planner.phases import cross_phase_values
from passkit.planner.plan import check_rules, plan_group, with_block
from passkit.schedule.phases import groups_of_parts, scheduled_parts
from passkit.schedule.schedule import Schedule, Source
from passkit.schedule.stages import stage_rows_in_shared, stream_outputs
from passkit.schedule.template import ScheduleText, Template
from passkit.target import DEVICES, Target
from passkit.values.size import numel


@register_pass(
    "SchedulePlan",
    depends=("subgraph", "shape", "dtype"),
    provides=("schedule",),
    target_dependent=True,
)
def schedule_plan(graph: Graph, context: PassContext) -> Graph:
    """Annotate each fused node with its `Schedule`: of its template, else the evaluator's choice.

    ``context`` has the target, templates and evaluator. A measured choice that differs from the
    usual template is an optional decision.

    Raises: ScheduleError for a template of no group or of several, or that its group's kernel
    cannot have; and for a group without any schedule, which Fusion does not make. CacheError if
    other users may write to the folder of the measurements.
    """
    schedules, target = {}, context.target
    templates = _templates_by_node(graph, context)
    evaluator = evaluator_of(context)
    for node, group in groups_of(graph).items():
        if node in templates:
            name, template = templates[node]
            schedule = _schedule_of_template(node, group, target, name, template)
        else:
            schedule = _chosen_schedule(node, group, context, evaluator)
        if target.dialect in DEVICES:
            schedule = _with_rows_in_shared_memory(group, schedule, target)
        schedules[node] = _with_streamed_outputs(graph, node, schedule, target)
    return graph.with_attrs(schedule=Annotation("schedule", schedules))


def _templates_by_node(
    graph: Graph, context: PassContext
) -> dict[Node, tuple[str, Template | ScheduleText]]:
    """Return, by fused node, the name and the template that the option ``templates`` gives for it.

    Empty without templates in ``context``. ``graph`` has the annotation subgraph.

    Raises: ScheduleError if a name is that of no group or of several, or a group has two templates.
    """
    templates: dict[Node, tuple[str, Template | ScheduleText]] = {}
    if not context.templates:
        return templates
    nodes_by_name: dict[str, list[Node]] = {}
    for node, group in graph.attrs["subgraph"].items():
        for name in {group.called(n) for n in group.ops} - {graph.names[node]}:
            nodes_by_name.setdefault(name, []).append(node)
    nodes_by_name |= {graph.names[node]: [node] for node in graph.attrs["subgraph"]}
    for name, template in context.templates:
        nodes = nodes_by_name.get(name, [])
        if not nodes:
            hint = nearest(name, nodes_by_name)
            raise ScheduleError(f"templates: no group has {name!r}; {hint}")
        if len(nodes) > 1:
            several = ", ".join(graph.names[n] for n in nodes)
            raise ScheduleError(f"templates: {name!r} is in several groups; name one: {several}")
        if nodes[0] in templates:
            raise ScheduleError(
                f"templates: {templates[nodes[0]][0]!r} and {name!r} are in one group, "
                f"{graph.names[nodes[0]]}, which has one template; give it by one of the names"
            )
        templates[nodes[0]] = name, template
    return templates


def _chosen_schedule(node: Node, group: Group, context: PassContext, evaluator: Any) -> Schedule:
    """Return the schedule that the evaluator chooses for a group.

    Args:
        node: the group's node, for messages.
        group: the group.
        context: has the target, and the fuel; without fuel a measured schedule gives way to the
            planner's.
        evaluator: has the method ``choose(group, target)``.

    Raises: ScheduleError with the reason if the group has no schedule, or a rule of the user makes
    one that is not legal.
    """
    target = context.target
    schedule: Schedule | Diagnostic = evaluator.choose(group, target)
    if isinstance(schedule, Schedule) and schedule.source is Source.MEASURED:
        usual = plan_group(group, target)
        if isinstance(usual, Schedule) and evolve(usual, source=schedule.source) != schedule:
            schedule = schedule if context.spend(f"tuned {node.label}") else usual
    if isinstance(schedule, Diagnostic):
        raise ScheduleError(
            f"{node.where}: {group} has no schedule on {target.name}: {schedule}; "
            f"name one of its operators in no_fuse"
        )
    check_rules(node.where, schedule)
    return with_block(group, schedule, target)


def _schedule_of_template(
    node: Node, group: Group, target: Target, name: str, template: Template | ScheduleText
) -> Schedule:
    """Return the schedule of the template that the option ``templates`` gives for a group.

    Args:
        node: the group's node.
        group: the group.
        target: the target.
        name: the key of ``templates``, for messages.
        template: the template.

    Raises: ScheduleError with the reason if the group cannot have it.
    """
    try:
        schedule = plan_group(group, target, template)
    except ScheduleError as error:
        raise ScheduleError(f"templates[{name!r}]: {error}") from None
    if isinstance(schedule, Diagnostic):
        raise ScheduleError(
            f"templates[{name!r}]: {node.where} cannot have this template on {target.name}: "
            f"{schedule}; passkit.templates lists those that it can have"
        )
    return schedule


def _with_rows_in_shared_memory(group: Group, schedule: Schedule, target: Target) -> Schedule:
    """Return the schedule of a group with rows kept in shared memory where that is faster.

    The cost model decides for each part and phase of the schedule by itself, for the device
    ``target``.
    """
    if not schedule.parts:
        return stage_rows_in_shared(schedule, group.graph, target)
    pairs = zip(groups_of_parts(group, schedule), schedule.parts, strict=True)
    parts = tuple(_with_rows_in_shared_memory(g, part, target) for g, part in pairs)
    return evolve(schedule, parts=parts)


def _with_streamed_outputs(
    graph: Graph, node: Node, schedule: Schedule, target: Target
) -> Schedule:
    """Return the schedule of a fused node with large outputs written past the caches.

    ``target`` says from how many bytes. In a schedule of phases this is decided for each phase; a
    value that a later phase reads is not streamed, but stays in the caches.
    """
    group: Group = node.params["body"]
    outputs = streamed_outputs(graph, node.entries, target)
    if not schedule.parts or not outputs:
        return stream_outputs(schedule, outputs, target)
    phases = scheduled_parts(group, schedule)
    read_by_later_phases = set(cross_phase_values(group, phases))
    parts = []
    for part, phase in zip(schedule.parts, phases, strict=True):
        results = [node.entries[o] for o in phase.outputs]
        streamed = tuple(
            k
            for k in streamed_outputs(graph, results, target)
            if phase.outputs[k] not in read_by_later_phases
        )
        parts.append(part if part.parts else stream_outputs(part, streamed, target))
    return evolve(schedule, parts=tuple(parts))


def streamed_outputs(graph: Graph, entries: Sequence[Entry], target: Target) -> tuple[int, ...]:
    """Return the positions of a kernel's outputs that are written past the caches.

    They are outputs of the graph of known size that no node reads, if together they have at least
    the target's ``stream_bytes``; else none. ``entries`` are all outputs of the kernel.
    """
    positions, total = [], 0
    outputs = set(graph.outputs)
    for k, entry in enumerate(entries):
        size = numel(graph.shape(entry))
        if entry in outputs and entry not in graph.users and isinstance(size, int):
            positions.append(k)
            total += size * graph.dtype(entry).nbytes
    return tuple(positions) if total >= target.stream_bytes else ()
