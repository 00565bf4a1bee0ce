"""Tuning jobs: the groups of a plan with the templates that are to be measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve, frozen

from passkit.analysis.group import Group, fused_node
from passkit.analysis.single import single_node_plan
from passkit.fusion.alternatives import Alternative
from passkit.graph.graph import Graph
from passkit.graph.node import Node, var
from passkit.library.candidates import Candidate, candidates_of
from passkit.library.evaluator import UNFUSED, Evaluator, Record, Sizes
from passkit.planner.plan import plan_group
from passkit.schedule.cost import schedule_cost
from passkit.schedule.schedule import Schedule, Source
from passkit.schedule.template_of import template_of
from passkit.serial.json import to_json
from passkit.target import Target
from passkit.tuning.measure import MeasureAnswer, Request
from passkit.values.size import evaluate, numel

DEFAULT_SIZE = 64
"""The value of a size that the user did not specify."""
LARGE_FACTOR = 32
"""The number of elements at the larger sizes of a group, relative to the specified ones."""
MAX_LARGE_BYTES = 64 << 20
"""The most bytes of inputs and outputs at the larger sizes."""


@frozen(eq=False)
class Job:
    """A group with the templates to measure at some sizes.

    Attributes:
        group: The group.
        name: The name of its node.
        operators: The labels of its operators.
        sizes: The values of its unknown sizes.
        request: The request for the measurement.
        candidates: The possible templates within the budget, the usual one first.
        beyond_budget: Further templates.
        apart_seconds: For a rival pattern: the seconds of its units in separate kernels, by the
            cost model.
        chosen: For a rival pattern: whether the current plan has it as one kernel.
    """

    group: Group
    name: str
    operators: str
    sizes: Sizes
    request: Request
    candidates: tuple[Candidate, ...]
    beyond_budget: tuple[Candidate, ...]
    apart_seconds: float = 0.0
    chosen: bool = True

    def record(self, template: str, answer: MeasureAnswer) -> Record:
        """Return the record of ``template`` in an answer: its samples, or its fault.

        Without either, the record has no samples and no fault.
        """
        estimates = {str(v.template): v.seconds for v in self.candidates}
        return Record(
            group=self.group.key,
            template=template,
            sizes=self.sizes,
            source=Source.MEASURED,
            samples=answer.samples.get(template, ()),
            model=estimates.get(template, self.apart_seconds),
            fault=answer.faults.get(template, ""),
            operators=self.operators,
            beside=answer.beside.get(template, ()),
        )

    def model_records(self) -> list[Record]:
        """Return records of the templates beyond the budget, with the cost model's seconds."""
        return [
            Record(
                group=self.group.key,
                template=str(v.template),
                sizes=self.sizes,
                source=Source.MODEL,
                model=v.seconds,
                operators=self.operators,
            )
            for v in self.beyond_budget
        ]


def jobs(
    plan: Graph,
    evaluator: Evaluator,
    sizes: Mapping[str, int],
    budget: int,
    options: Mapping[str, str],
    again: bool = False,
) -> Iterator[Job]:
    """Yield a job for each distinct group of a plan, and its sizes, with templates to measure.

    Args:
        plan: A graph with groups.
        evaluator: The measurements so far.
        sizes: The values of unknown sizes; those missing are `DEFAULT_SIZE`. For a group of unknown
            sizes, only templates that reduce in the order of the usual one are measured: outputs
            must be the same bit for bit at all sizes, and only some sizes are tried.
        budget: The most templates of a group.
        options: The options of requests.
        again: Whether to measure templates again that were measured before.

    Raises: GraphError if a group has a parameter that JSON cannot hold.
    """
    target: Target = plan.attrs["options"]["target"]
    visited: set[tuple[str, Sizes]] = set()
    for node, group in plan.attrs["subgraph"].items():
        for group_sizes in sizes_to_measure(group, sizes_of(group, sizes)):
            if (group.key, group_sizes) in visited:
                continue
            visited.add((group.key, group_sizes))
            candidates = candidates_of(group, target)
            if group_sizes:
                usual_order = _reduction_order(candidates[0].schedule)
                candidates = tuple(
                    v for v in candidates if _reduction_order(v.schedule) == usual_order
                )
            records = {} if again else evaluator.records_of(group, group_sizes)
            within_budget = [str(v.template) for v in candidates[:budget]]
            missing = [t for t in within_budget if not _is_measured(records.get(t))]
            if missing:
                fastest = _fastest_template(records)
                texts = [str(candidates[0].template), *([fastest] if fastest else []), *missing]
                templates = tuple(dict.fromkeys(texts))
                yield Job(
                    group=group,
                    name=plan.names[node],
                    operators=", ".join(n.label for n in group.ops),
                    sizes=group_sizes,
                    request=_request(group, group_sizes, templates, options),
                    candidates=candidates[:budget],
                    beyond_budget=tuple(
                        v for v in candidates[budget:] if str(v.template) not in records
                    ),
                )


def rival_job(
    rival: Alternative,
    evaluator: Evaluator,
    target: Target,
    options: Mapping[str, str],
    again: bool,
) -> Job | None:
    """Return a job that compares a pattern in one kernel with its units in separate kernels.

    Args:
        rival: The pattern and its units.
        evaluator: The measurements so far.
        target: The target.
        options: The options that workers compile under, in the request.
        again: Whether to measure a comparison again that was measured before.

    Returns:
        The job; None if the comparison was measured before, unless ``again``.

    Raises: GraphError if the pattern has a parameter that JSON cannot hold.
    """
    group = rival.group
    if not again and _is_measured(evaluator.records_of(group).get(UNFUSED)):
        return None
    plan = plan_group(group, target)
    assert isinstance(plan, Schedule)
    usual = Candidate(template_of(group, plan, target), plan, schedule_cost(group, plan, target))
    variables = {n: _var(k, n) for k, n in enumerate(group.inputs)}
    apart = rival.apart.rebuild(
        lambda node, inputs: variables[node].node.entries if node in variables else None
    )
    request = _request(group, (), (str(usual.template), UNFUSED), options)
    return Job(
        group=group,
        name=rival.names[-1],
        operators=", ".join(n.label for n in group.ops),
        sizes=(),
        request=evolve(request, apart=to_json(apart)),
        candidates=(usual,),
        beyond_budget=(),
        apart_seconds=rival.seconds,
        chosen=rival.chosen,
    )


def _reduction_order(schedule: Schedule) -> tuple[object, ...]:
    """Return a key that is equal for schedules whose reductions combine elements in one order.

    It consists of the composition of each part: how its iterations are mapped to vector lanes.
    """
    if schedule.multi_nest is not None:
        parts = schedule.multi_nest.nests
        return tuple((p.nodes, p.schedule and _reduction_order(p.schedule)) for p in parts)
    return schedule.composition, *map(_reduction_order, schedule.parts)


def _is_measured(record: Record | None) -> bool:
    """Return whether a template was measured, also with a fault; False for None."""
    return record is not None and record.source is Source.MEASURED


def _fastest_template(records: Mapping[str, Record]) -> str | None:
    """Return the fastest template measured before; None if none was measured without a fault.

    ``records`` are by template.
    """
    measured = [r for r in records.values() if r.measured]
    return min(measured, key=lambda r: (r.seconds, r.template)).template if measured else None


def sizes_of(group: Group, sizes: Mapping[str, int]) -> Sizes:
    """Return the values of a group's symbolic sizes, sorted by name.

    ``sizes`` has those specified; the others are `DEFAULT_SIZE`.
    """
    return tuple((name, sizes.get(name, DEFAULT_SIZE)) for name in sorted(group.sizes))


def sizes_to_measure(group: Group, sizes: Sizes) -> list[Sizes]:
    """Return the sizes at which a group is measured: ``sizes``, and if there are any, larger ones.

    One kernel serves all sizes, and a template that is fast for few elements may be slow for many.
    The larger sizes have about `LARGE_FACTOR` times the elements, and are left out if inputs and
    outputs exceed `MAX_LARGE_BYTES`. Both are (name, value) pairs.
    """
    factor = round(LARGE_FACTOR ** (1 / max(1, len(sizes))))
    larger = tuple((name, n * factor) for name, n in sizes)
    if not sizes or _nbytes(group, larger) > MAX_LARGE_BYTES:
        return [sizes]
    return [sizes, larger]


def _nbytes(group: Group, sizes: Sizes) -> int:
    """Return the bytes of a group's inputs and outputs at the values ``sizes`` of all its sizes.

    Shapes and dtypes are known.
    """
    entries = [*(n.entries[0] for n in group.inputs), *group.graph.outputs]
    values = dict(sizes)
    return sum(evaluate(numel(e.shape or ()), values) * e.dtype.nbytes for e in entries if e.dtype)


def _request(
    group: Group, sizes: Sizes, templates: tuple[str, ...], options: Mapping[str, str]
) -> Request:
    """Return the request to measure ``templates`` of a group.

    Args:
        group: The group.
        sizes: The values of its symbolic sizes.
        templates: The templates; the first is the usual one.
        options: The options that the worker compiles under.

    Raises: GraphError if the group has a parameter that JSON cannot hold; ShapeError if a size has
    no value.
    """
    inputs = tuple(_var(k, n) for k, n in enumerate(group.inputs))
    graph = single_node_plan(fused_node(group, inputs, "group"), inputs)
    declared = [n.entries[0].shape or () for n in graph.inputs]
    shapes = tuple(tuple(evaluate(d, dict(sizes)) for d in shape) for shape in declared)
    return Request(to_json(graph), shapes, templates, options)


def _var(number: int, node: Node) -> Any:
    """Return a new input called "x" and its ``number``, with the shape and dtype of ``node``.

    The result is its entry; ``node`` has a single one.
    """
    entry = node.entries[0]
    return var(f"x{number}", entry.shape, entry.dtype)
