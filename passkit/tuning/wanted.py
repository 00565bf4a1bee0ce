"""What is not measured yet: the groups of a plan, and the templates of each that are worth it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve, frozen

from passkit.graph.graph import Graph
from passkit.graph.node import Node, var
from passkit.passes.fusion.rivals import Rival
from passkit.plan.costs import model_seconds
from passkit.plan.evaluator import APART, Evaluator, Record, Sizes
from passkit.plan.group import Group, fused_node
from passkit.plan.planner import plan_group
from passkit.plan.schedule import Schedule, Source
from passkit.plan.single import single
from passkit.plan.target import Target
from passkit.plan.variants import Variant, variants
from passkit.serial.json import to_json
from passkit.templating.naming import template_of
from passkit.tuning.measure import Answer, Request
from passkit.values.size import evaluate, numel


@frozen(eq=False)
class Job:
    """A group with the templates that are not measured at these sizes.

    ``ways`` are those within the budget, the usual one first, and ``left`` those beyond it. Of a
    rival the units run apart as well, ``apart`` seconds by the model; it is ``chosen`` if the plan
    of now has it.
    """

    group: Group
    name: str
    operators: str
    sizes: Sizes
    request: Request
    ways: tuple[Variant, ...]
    left: tuple[Variant, ...]
    apart: float = 0.0
    chosen: bool = True

    def record(self, template: str, answer: Answer) -> Record:
        """What was measured of a template."""
        samples, fault = answer.samples.get(template, ()), answer.faults.get(template, "")
        model = next((v.seconds for v in self.ways if str(v.template) == template), self.apart)
        return Record(
            *(self.group.key, template, self.sizes, Source.MEASURED, samples, model, fault),
            operators=self.operators,
            beside=answer.beside.get(template, ()),
        )

    def by_model(self) -> list[Record]:
        """What the model says of the templates beyond the budget."""
        return [
            Record(
                *(self.group.key, str(v.template), self.sizes, Source.MODEL, (), v.seconds),
                operators=self.operators,
            )
            for v in self.left
        ]


def jobs(
    plan: Graph,
    evaluator: Evaluator,
    sizes: Mapping[str, int],
    budget: int,
    options: Mapping[str, str],
    again: bool = False,
) -> Iterator[Job]:
    """A job for each different group of a plan of which something is not measured, or all.

    ``sizes`` are the numbers of unknown sizes; one that is not there is `UNKNOWN`. Where there are
    such, only templates that fold as the usual one does count: results must be the same bit for bit
    at all sizes, and only some are tried.
    """
    target: Target = plan.attrs["options"]["target"]
    seen: set[tuple[str, Sizes]] = set()
    found = [
        (node, group, own)
        for node, group in plan.attrs["subgraph"].items()
        for own in several(group, sizes_of(group, sizes))
    ]
    for node, group, own in found:
        if (group.key, own) in seen:
            continue
        seen.add((group.key, own))
        ways = variants(group, target)
        if own:
            ways = tuple(v for v in ways if _folding(v.schedule) == _folding(ways[0].schedule))
        known = {} if again else evaluator.known(group, own)
        missing = [t for t in _texts(ways[:budget]) if not _is_known(known.get(t))]
        if missing:
            usual = str(ways[0].template)
            best = _quickest(known)
            texts = dict.fromkeys([usual, *([best] if best else []), *missing])
            yield Job(
                group,
                plan.names[node],
                ", ".join(n.label for n in group.ops),
                own,
                _request(group, own, tuple(texts), options),
                ways[:budget],
                tuple(v for v in ways[budget:] if str(v.template) not in known),
            )


def rival_job(
    rival: Rival, evaluator: Evaluator, target: Target, options: Mapping[str, str], again: bool
) -> Job | None:
    """A job that holds a pattern against its units; None where that was done."""
    group = rival.group
    if not again and _is_known(evaluator.known(group).get(APART)):
        return None
    plan = plan_group(group, target)
    assert isinstance(plan, Schedule)
    usual = Variant(template_of(group, plan, target), plan, model_seconds(group, plan, target))
    variables = {n: _var(k, n) for k, n in enumerate(group.inputs)}
    apart = rival.apart.rebuild(
        lambda node, inputs: variables[node].node.entries if node in variables else None
    )
    request = _request(group, (), (str(usual.template), APART), options)
    return Job(
        group, rival.names[-1], ", ".join(n.label for n in group.ops), (),
        evolve(request, apart=to_json(apart)), (usual,), (), rival.seconds, rival.chosen,
    )  # fmt: skip


UNKNOWN = 64
"""What a size is that nobody gave."""
LARGER, MOST_BYTES = 32, 64 << 20
"""How many times as many elements the larger sizes make, and the bytes that they may make."""


def _folding(schedule: Schedule) -> tuple[object, ...]:
    """What the order of a fold depends on: how points map to lanes, in each part."""
    if schedule.stitching is not None:
        parts = schedule.stitching.parts
        return tuple((p.nodes, p.schedule and _folding(p.schedule)) for p in parts)
    return schedule.composition, *map(_folding, schedule.parts)


def _texts(ways: tuple[Variant, ...]) -> list[str]:
    return [str(v.template) for v in ways]


def _is_known(record: Record | None) -> bool:
    """Whether a template was measured, or cannot be."""
    return record is not None and record.source is Source.MEASURED


def _quickest(known: Mapping[str, Record]) -> str | None:
    """The best of those measured before: it is measured beside the new ones."""
    good = [r for r in known.values() if r.measured]
    return min(good, key=lambda r: (r.seconds, r.template)).template if good else None


def sizes_of(group: Group, sizes: Mapping[str, int]) -> Sizes:
    """The numbers of a group's unknown sizes."""
    return tuple((name, sizes.get(name, UNKNOWN)) for name in sorted(group.sizes))


def several(group: Group, sizes: Sizes) -> list[Sizes]:
    """The sizes that a group is measured at: where some are unknown, larger ones too.

    One kernel serves them all, and what is good for few elements may not be for many.
    """
    factor = round(LARGER ** (1 / max(1, len(sizes))))
    larger = tuple((name, n * factor) for name, n in sizes)
    if not sizes or _nbytes(group, larger) > MOST_BYTES:
        return [sizes]
    return [sizes, larger]


def _nbytes(group: Group, sizes: Sizes) -> int:
    """The bytes of inputs and results at these sizes."""
    entries = [*(n.entries[0] for n in group.inputs), *group.graph.outputs]
    numbers = dict(sizes)
    return sum(evaluate(numel(e.shape or ()), numbers) * e.dtype.nbytes for e in entries if e.dtype)


def _request(
    group: Group, sizes: Sizes, templates: tuple[str, ...], options: Mapping[str, str]
) -> Request:
    inputs = tuple(_var(k, n) for k, n in enumerate(group.inputs))
    graph = single(fused_node(group, inputs, "group"), inputs)
    declared = [n.entries[0].shape or () for n in graph.inputs]
    shapes = tuple(tuple(evaluate(d, dict(sizes)) for d in shape) for shape in declared)
    return Request(to_json(graph), shapes, templates, options)


def _var(number: int, node: Node) -> Any:
    entry = node.entries[0]
    return var(f"x{number}", entry.shape, entry.dtype)
