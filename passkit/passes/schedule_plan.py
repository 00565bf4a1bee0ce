"""SchedulePlan: how each group runs, as data that CodeGen obeys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from passkit.errors import ScheduleError, nearest
from passkit.graph.graph import Annotation, Graph
from passkit.graph.node import Entry, Node
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext, evaluator_of
from passkit.plan.group import Group
from passkit.plan.groups import groups_of
from passkit.plan.phases import alone, parts_by
from passkit.plan.phasing import passed_on
from passkit.plan.planner import plan_group
from passkit.plan.schedule import Schedule, Source, kept_near, with_stream
from passkit.plan.target import DEVICES, Target
from passkit.space.space import Infeasible
from passkit.templating.template import Template
from passkit.values.size import numel


@register_pass(
    "SchedulePlan",
    depends=("subgraph", "shape", "dtype"),
    provides=("schedule",),
    target_dependent=True,
)
def schedule_plan(graph: Graph, context: PassContext) -> Graph:
    """Annotate each fused node with its `Schedule`: of its template, else the evaluator's choice.

    A choice that was measured, of another template than the usual one, is an optional decision.

    Raises: ScheduleError for a template of no group, or that its group's kernel cannot do; and for
    a group that no schedule serves, though Fusion makes none of those.
    """
    plans, target = {}, context.target
    given = _given(graph, context)
    evaluator = evaluator_of(context)
    for node, group in groups_of(graph).items():
        if node in given:
            plan = _obeying(node, group, target, *given[node])
        else:
            plan = _planned(node, group, context, evaluator)
        if target.dialect in DEVICES:
            plan = _kept_near(group, plan, target)
        plans[node] = _with_stream(graph, node, plan, target)
    return graph.with_attrs(schedule=Annotation("schedule", plans))


def _given(graph: Graph, context: PassContext) -> dict[Node, tuple[str, Template]]:
    """By fused node the template that the context has for it, and the name that it goes by there.

    Raises: ScheduleError where a name is that of no group, or of several, or a group has two.
    """
    found: dict[Node, tuple[str, Template]] = {}
    if not context.templates:
        return found
    homes: dict[str, list[Node]] = {}
    for node, group in graph.attrs["subgraph"].items():
        for name in {group.called(n) for n in group.ops} - {graph.names[node]}:
            homes.setdefault(name, []).append(node)
    homes |= {graph.names[node]: [node] for node in graph.attrs["subgraph"]}
    for name, template in context.templates:
        nodes = homes.get(name, [])
        if not nodes:
            raise ScheduleError(f"templates: no group has {name!r}; {nearest(name, homes)}")
        if len(nodes) > 1:
            several = ", ".join(graph.names[n] for n in nodes)
            raise ScheduleError(f"templates: {name!r} is in several groups; name one: {several}")
        if nodes[0] in found:
            raise ScheduleError(
                f"templates: {found[nodes[0]][0]!r} and {name!r} are in one group, "
                f"{graph.names[nodes[0]]}; it has one template"
            )
        found[nodes[0]] = name, template
    return found


def _planned(node: Node, group: Group, context: PassContext, evaluator: Any) -> Schedule:
    """The schedule of a group. Raises: ScheduleError where there is none."""
    target = context.target
    plan: Schedule | Infeasible = evaluator.choose(group, target)
    if isinstance(plan, Schedule) and plan.source is Source.MEASURED:
        usual = plan_group(group, target)
        if isinstance(usual, Schedule) and evolve(usual, source=plan.source) != plan:
            plan = plan if context.spend(f"tuned {node.label}") else usual
    if isinstance(plan, Infeasible):
        raise ScheduleError(
            f"{node.where}: {group} has no schedule on {target.name}: {plan.reason}; "
            f"name one of its operators in no_fuse"
        )
    return plan


def _obeying(node: Node, group: Group, target: Target, name: str, template: Template) -> Schedule:
    """The schedule that a template asks for. Raises: ScheduleError with what is possible."""
    try:
        plan = plan_group(group, target, template)
    except ScheduleError as error:
        raise ScheduleError(f"templates[{name!r}]: {error}") from None
    if isinstance(plan, Infeasible):
        raise ScheduleError(
            f"templates[{name!r}]: {node.where} cannot run so on {target.name}: {plan.reason}"
        )
    return plan


def _kept_near(group: Group, plan: Schedule, target: Target) -> Schedule:
    """The schedule with rows in shared memory; parts and phases decide for themselves."""
    if not plan.parts:
        return kept_near(plan, group.graph, target)
    pairs = zip(alone(group, plan), plan.parts, strict=True)
    return evolve(plan, parts=tuple(_kept_near(g, part, target) for g, part in pairs))


def _with_stream(graph: Graph, node: Node, plan: Schedule, target: Target) -> Schedule:
    """The schedule of a fused node with outputs streamed; parts and phases decide for themselves.

    What a later phase reads had better stay in the caches.
    """
    group: Group = node.params["body"]
    outputs = streamed(graph, node.entries, target)
    if not plan.parts or not outputs:
        return with_stream(plan, outputs, target)
    parts, made = [], parts_by(group, plan)
    read = set(passed_on(group, made))
    for own, part in zip(plan.parts, made, strict=True):
        results = [node.entries[o] for o in part.outputs]
        found = tuple(k for k in streamed(graph, results, target) if part.outputs[k] not in read)
        parts.append(own if own.parts else with_stream(own, found, target))
    return evolve(plan, parts=tuple(parts))


def streamed(graph: Graph, entries: Sequence[Entry], target: Target) -> tuple[int, ...]:
    """Which of a kernel's values are only results, and together exceed `stream_bytes`."""
    found, total = [], 0
    results = set(graph.outputs)
    for k, entry in enumerate(entries):
        size = numel(graph.shape(entry))
        if entry in results and entry not in graph.users and isinstance(size, int):
            found.append(k)
            total += size * graph.dtype(entry).nbytes
    return tuple(found) if total >= target.stream_bytes else ()
