"""Phases: parts of a group that run one after another, with grid barriers in between.

No tile of a phase begins before all tiles of the phase before have ended, so each phase has tiles
of its own. Values that a later phase reads are outputs of the group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from passkit.analysis.components import Component
from passkit.analysis.extract import kind_of
from passkit.analysis.group import Group
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.schedule.schedule import Schedule


def scheduled_parts(group: Group, schedule: Schedule) -> tuple[Component, ...]:
    """Return the parts or phases of a group that a packed or phased schedule has schedules for."""
    return phases_of(group.graph, schedule.phase_outputs) if schedule.phase_outputs else group.parts


def groups_of_parts(group: Group, schedule: Schedule) -> list[Group]:
    """Return the parts of `scheduled_parts` as groups; nodes keep their names in the whole."""
    if not schedule.phase_outputs:
        return group.alone()
    return [phase_group(group, part) for part in scheduled_parts(group, schedule)]


def planned_phases(group: Group, schedule: Schedule) -> Iterator[tuple[Component, Group, Schedule]]:
    """Yield the parts or phases of a group, each also as a group, and with its schedule."""
    components, groups = scheduled_parts(group, schedule), groups_of_parts(group, schedule)
    return zip(components, groups, schedule.parts, strict=True)


def phase_group(group: Group, phase: Component) -> Group:
    """Return a phase of ``group`` as a group."""
    operators = [n for n in phase.graph.nodes if not is_leaf(n)]
    origin = {n: group.called(phase.original(n)) for n in operators}
    return Group(phase.graph, kind_of(operators), origin)


@lru_cache(maxsize=256)
def phases_of(graph: Graph, phase_outputs: tuple[tuple[int, ...], ...]) -> tuple[Component, ...]:
    """Return the phases of a group's graph, given the positions of the outputs of each."""
    phases: list[Component] = []
    stored: dict[Entry, int] = {}
    for numbers in phase_outputs:
        phases.append(slice_phase(graph, numbers, stored))
        stored |= {graph.outputs[k]: k for k in numbers}
    return tuple(phases)


def slice_phase(graph: Graph, outputs: Sequence[int], stored: Mapping[Entry, int]) -> Component:
    """Return the part of a graph that computes some outputs from inputs and earlier outputs.

    Args:
        graph: the graph of a group.
        outputs: the positions of the outputs of the phase.
        stored: the outputs of earlier phases, with their positions; the phase has variables for
            those that it reads.
    """
    number = {n.entries[0]: k for k, n in enumerate(graph.inputs)}
    number |= {e: len(graph.inputs) + k for e, k in stored.items()}
    results = [graph.outputs[k] for k in outputs]
    replaced: dict[Entry, Entry] = {}
    original: dict[Node, Node] = {}
    variables: dict[Node, int] = {}
    for node in _operators_of(graph, results, stored):
        for e in node.inputs:
            if e not in replaced:
                replaced[e] = _variable_for(e, graph) if e in stored else e
                if e in number:
                    variables[replaced[e].node] = number[e]
        inputs = tuple(replaced[e] for e in node.inputs)
        copy = node if inputs == node.inputs else Node(node.op, inputs, node.params, node.name)
        original[copy] = node
        for entry, new in zip(node.entries, copy.entries, strict=True):
            replaced.setdefault(entry, new)
    closed = Graph([replaced.get(e, e) for e in results])
    inputs_of_phase = tuple(variables[n] for n in closed.inputs)
    return Component(closed, inputs_of_phase, tuple(outputs), original)


def _variable_for(entry: Entry, graph: Graph) -> Entry:
    """Return a variable in place of a value that an earlier phase has stored."""
    params = {"shape": known_shape(entry), "dtype": entry.dtype}
    return Node(None, (), params, graph.names[entry.node]).entries[0]


def _operators_of(
    graph: Graph, results: Sequence[Entry], stored: Mapping[Entry, int]
) -> list[Node]:
    """Return the operators that compute ``results`` from ``stored`` values, in post-order."""
    operators: set[Node] = set()
    stack = [e.node for e in results if e not in stored and not is_leaf(e.node)]
    while stack:
        node = stack.pop()
        if node not in operators:
            operators.add(node)
            stack += [e.node for e in node.inputs if e not in stored and not is_leaf(e.node)]
    return sorted(operators, key=graph.positions.__getitem__)
