"""Planning of phases: which outputs of a group each phase makes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from attrs import frozen

from passkit.analysis.components import Component
from passkit.analysis.domain import reduced_axes_of
from passkit.analysis.extract import kind_of
from passkit.analysis.group import Group
from passkit.analysis.nests import contract_of
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.schedule.build import phased_schedule
from passkit.schedule.cost import model_seconds
from passkit.schedule.phases import slice_phase
from passkit.schedule.schedule import Schedule
from passkit.schedule.tile_loops import tiles_of
from passkit.target import Target
from passkit.values.size import Extent, Size, at_least

PlanGroup = Callable[[Group, Target], Schedule | Diagnostic]


@frozen(eq=False)
class _Phase:
    """The outputs that a phase makes, how, and the folds and products that it computes."""

    outputs: tuple[int, ...]
    plan: Schedule
    folds: frozenset[Node]
    seconds: float
    tiles: Extent


def plan_phased(group: Group, target: Target, plan: PlanGroup) -> Schedule | Diagnostic:
    """The schedule of a group in phases, each of which makes as many outputs as ``plan`` serves.

    What a phase reads of an earlier one is an output. So has a fold to be that two would need.
    """
    graph = group.graph
    if any(is_leaf(e.node) for e in graph.outputs):
        return Diagnostic("graph.output_is_input")
    left: dict[Entry, list[int]] = {}
    for k, e in enumerate(graph.outputs):
        left.setdefault(e, []).append(k)
    order = sorted(left, key=lambda e: (graph.positions[e.node], e.index))
    phases: list[_Phase] = []
    made: dict[Entry, int] = {}
    while order:
        found = _Search(graph, made, target, plan).longest({e: left[e] for e in order})
        if isinstance(found, Diagnostic):
            return found
        twice = (n for p in phases for n in found.folds & p.folds)
        again = min(twice, key=graph.positions.__getitem__, default=None)
        if again is not None:
            return Diagnostic("phase.repeated_reduction", {"value": again.label}, (again.label,))
        phases.append(found)
        made |= {graph.outputs[k]: k for k in found.outputs}
        order = [e for e in order if e not in made]
    if len(phases) == 1:
        return phases[0].plan
    return phased_schedule([p.plan for p in phases], tuple(p.outputs for p in phases), target)


def is_open(graph: Graph) -> bool:
    """Whether only a call knows how much a graph reads."""
    return any(isinstance(n, Size) for i in graph.inputs for n in known_shape(i.entries[0]))


class _Search:
    """The search for one phase: what it may make, where some outputs are ``made`` already."""

    def __init__(
        self, graph: Graph, made: Mapping[Entry, int], target: Target, plan: PlanGroup
    ) -> None:
        self.graph, self.made, self.target, self.plan = graph, made, target, plan
        self.is_open = is_open(graph)

    def longest(self, left: Mapping[Entry, Sequence[int]]) -> _Phase | Diagnostic:
        """The phase that makes as many of the outputs ``left`` as one can, the first ones first.

        What needs an output that the phase cannot make waits for it.
        """
        best: _Phase | None = None
        why: Diagnostic | None = None
        taken: dict[Entry, Sequence[int]] = {}
        refused: set[Node] = set()
        for entry, numbers in left.items():
            found = self._phase([k for ks in (*taken.values(), numbers) for k in ks], refused)
            if isinstance(found, Diagnostic):
                why = why or found
            elif best is None or self._is_better(found, best, numbers, taken):
                best, taken = found, {**taken, entry: numbers}
                continue
            refused.add(entry.node)
        assert best is not None or why is not None
        return best or why  # type: ignore[return-value]

    def _is_better(
        self, both: _Phase, one: _Phase, other: Sequence[int], taken: Mapping[Entry, Sequence[int]]
    ) -> bool:
        """Whether to make outputs in one phase is quicker than the ``other`` in one of their own.

        So it is where tiles are enough, and no fewer. Where sizes are unknown, a phase with tiles
        for all threads stays so.
        """
        if isinstance(both.tiles, Size) and self.is_open:
            return True
        enough = self.target.tiling.enough_tiles
        if both.seconds and at_least(both.tiles, enough) and at_least(both.tiles, one.tiles):
            return True
        known = {**self.made, **{e: numbers[0] for e, numbers in taken.items()}}
        apart = _Search(self.graph, known, self.target, self.plan)._phase(other, ())
        if self.is_open or not both.seconds or not one.seconds:
            many = not isinstance(apart, Diagnostic) and isinstance(apart.tiles, Size)
            return isinstance(one.tiles, int) and not many
        if isinstance(apart, Diagnostic) or not apart.seconds:
            return True
        meeting = max(self.target.meeting, self.target.launch)
        return both.seconds <= one.seconds + apart.seconds + meeting

    def _phase(self, outputs: Sequence[int], refused: Collection[Node]) -> _Phase | Diagnostic:
        part = slice_phase(self.graph, sorted(outputs), self.made)
        body = [part.original(n) for n in part.graph.nodes if not is_leaf(n)]
        if any(n in refused for n in body):
            return Diagnostic("phase.order")
        group = Group(part.graph, kind_of(body))
        plan = self.plan(group, self.target)
        if isinstance(plan, Diagnostic):
            return plan
        folds = (n for n in body if reduced_axes_of(n) is not None or contract_of(n) is not None)
        seconds = model_seconds(group, plan, self.target)
        return _Phase(part.outputs, plan, frozenset(folds), seconds, tiles_of(plan))


def cross_phase_values(group: Group, parts: Sequence[Component]) -> list[int]:
    """The outputs of a group that a phase reads, by their numbers."""
    first = len(group.graph.inputs)
    return sorted({k - first for p in parts for k in p.inputs if k >= first})
