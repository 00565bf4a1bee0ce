"""The division of a group into phases: the outputs that each phase computes."""

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
from passkit.schedule.cost import schedule_cost
from passkit.schedule.phases import slice_phase
from passkit.schedule.schedule import Schedule
from passkit.schedule.tile_loops import tiles_of
from passkit.target import Target
from passkit.values.size import Extent, Size, at_least

PlanGroup = Callable[[Group, Target], Schedule | Diagnostic]
"""The planner of one phase."""


@frozen(eq=False)
class _Phase:
    """One phase.

    Attributes:
        outputs: the positions of the outputs that it computes.
        schedule: its schedule.
        reductions: the reductions and matrix products that it computes.
        seconds: its seconds by the cost model, 0 if sizes are unknown.
        tiles: the number of its tiles.
    """

    outputs: tuple[int, ...]
    schedule: Schedule
    reductions: frozenset[Node]
    seconds: float
    tiles: Extent


def plan_phased(group: Group, target: Target, plan: PlanGroup) -> Schedule | Diagnostic:
    """Return the schedule of a group in phases, each of which computes as many outputs as it can.

    Values that a later phase reads must be outputs, and so must a reduction that two phases need.

    Args:
        group: the group.
        target: the machine.
        plan: the planner of one phase.

    Returns: the schedule, that of the group if one phase computes everything, or why there is none.
    """
    graph = group.graph
    if any(is_leaf(e.node) for e in graph.outputs):
        return Diagnostic("graph.output_is_input")
    numbers: dict[Entry, list[int]] = {}
    for k, e in enumerate(graph.outputs):
        numbers.setdefault(e, []).append(k)
    remaining = sorted(numbers, key=lambda e: (graph.positions[e.node], e.index))
    phases: list[_Phase] = []
    stored: dict[Entry, int] = {}
    while remaining:
        search = _PhaseSearch(graph, stored, target, plan)
        phase = search.largest({e: numbers[e] for e in remaining})
        if isinstance(phase, Diagnostic):
            return phase
        repeated = [n for p in phases for n in phase.reductions & p.reductions]
        if repeated:
            label = min(repeated, key=graph.positions.__getitem__).label
            return Diagnostic("phase.repeated_reduction", {"value": label}, (label,))
        phases.append(phase)
        stored |= {graph.outputs[k]: k for k in phase.outputs}
        remaining = [e for e in remaining if e not in stored]
    if len(phases) == 1:
        return phases[0].schedule
    return phased_schedule([p.schedule for p in phases], tuple(p.outputs for p in phases), target)


def has_unknown_inputs(graph: Graph) -> bool:
    """Return whether the shape of an input of a graph is known at the call only."""
    return any(isinstance(n, Size) for i in graph.inputs for n in known_shape(i.entries[0]))


class _PhaseSearch:
    """The search for the next phase.

    Attributes:
        graph: the graph of the group.
        stored: the outputs of earlier phases, with their positions.
        target: the machine.
        plan: the planner of one phase.
        has_unknown_inputs: whether sizes of inputs are unknown.
    """

    def __init__(
        self, graph: Graph, stored: Mapping[Entry, int], target: Target, plan: PlanGroup
    ) -> None:
        self.graph, self.stored, self.target, self.plan = graph, stored, target, plan
        self.has_unknown_inputs = has_unknown_inputs(graph)

    def largest(self, remaining: Mapping[Entry, Sequence[int]]) -> _Phase | Diagnostic:
        """Return the phase with as many of the remaining outputs as possible, in order.

        An output that needs a value which the phase cannot compute is left to a later phase.

        Args:
            remaining: the outputs that no phase computes yet, with their positions.

        Returns: the phase, or why the first output has none.
        """
        best: _Phase | None = None
        refusal: Diagnostic | None = None
        chosen: dict[Entry, Sequence[int]] = {}
        refused: set[Node] = set()
        for entry, numbers in remaining.items():
            phase = self._phase([k for ks in (*chosen.values(), numbers) for k in ks], refused)
            if isinstance(phase, Diagnostic):
                refusal = refusal or phase
            elif best is None or self._is_better(phase, best, numbers, chosen):
                best, chosen = phase, {**chosen, entry: numbers}
                continue
            refused.add(entry.node)
        assert best is not None or refusal is not None
        return best or refusal  # type: ignore[return-value]

    def _is_better(
        self,
        both: _Phase,
        one: _Phase,
        output: Sequence[int],
        chosen: Mapping[Entry, Sequence[int]],
    ) -> bool:
        """Return whether one phase with another output is faster than a second phase for it.

        This holds if the phase has enough tiles, and no fewer than before. If sizes are unknown,
        a phase with an unknown number of tiles stays so.

        Args:
            both: the phase with the output.
            one: the phase without it.
            output: the positions of the output.
            chosen: the outputs of ``one``.
        """
        if isinstance(both.tiles, Size) and self.has_unknown_inputs:
            return True
        enough = self.target.tiling.enough_tiles
        if both.seconds and at_least(both.tiles, enough) and at_least(both.tiles, one.tiles):
            return True
        stored = {**self.stored, **{e: numbers[0] for e, numbers in chosen.items()}}
        second = _PhaseSearch(self.graph, stored, self.target, self.plan)._phase(output, ())
        if self.has_unknown_inputs or not both.seconds or not one.seconds:
            is_symbolic = not isinstance(second, Diagnostic) and isinstance(second.tiles, Size)
            return isinstance(one.tiles, int) and not is_symbolic
        if isinstance(second, Diagnostic) or not second.seconds:
            return True
        barrier = max(self.target.meeting, self.target.launch)
        return both.seconds <= one.seconds + second.seconds + barrier

    def _phase(self, outputs: Sequence[int], refused: Collection[Node]) -> _Phase | Diagnostic:
        """Return the phase that computes some outputs without the nodes ``refused``."""
        part = slice_phase(self.graph, sorted(outputs), self.stored)
        operators = [part.original(n) for n in part.graph.nodes if not is_leaf(n)]
        if any(n in refused for n in operators):
            return Diagnostic("phase.order")
        group = Group(part.graph, kind_of(operators))
        schedule = self.plan(group, self.target)
        if isinstance(schedule, Diagnostic):
            return schedule
        reductions = frozenset(
            n for n in operators if reduced_axes_of(n) is not None or contract_of(n) is not None
        )
        seconds = schedule_cost(group, schedule, self.target)
        return _Phase(part.outputs, schedule, reductions, seconds, tiles_of(schedule))


def cross_phase_values(group: Group, phases: Sequence[Component]) -> list[int]:
    """Return the positions of the outputs of a group that one of its phases reads."""
    first = len(group.graph.inputs)
    return sorted({k - first for p in phases for k in p.inputs if k >= first})
