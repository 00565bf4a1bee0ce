"""Phases: parts of a group that run one after the other, and meet in memory.

Between two phases stands a grid barrier: no tile of the later one begins before all tiles of the
earlier one have ended. So each may share out what it computes in tiles of its own. What a phase
passes on is an output of the group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from passkit.analysis.components import Component
from passkit.analysis.extract import kind_of
from passkit.analysis.group import Group
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.schedule.schedule import Schedule


def scheduled_parts(group: Group, schedule: Schedule) -> tuple[Component, ...]:
    """What a packed or phased schedule of a group has plans for, in order."""
    return phases_of(group.graph, schedule.phase_outputs) if schedule.phase_outputs else group.parts


def scheduled_groups(group: Group, schedule: Schedule) -> list[Group]:
    """Each of these parts as a group by itself; its nodes are called as in the whole."""
    if not schedule.phase_outputs:
        return group.alone()
    return [phase_group(group, part) for part in scheduled_parts(group, schedule)]


def phase_group(group: Group, part: Component) -> Group:
    """A phase of a group as one by itself."""
    body = [n for n in part.graph.nodes if not is_leaf(n)]
    origin = {n: group.called(part.original(n)) for n in body}
    return Group(part.graph, kind_of(body), origin)


@lru_cache(maxsize=256)
def phases_of(graph: Graph, phase_outputs: tuple[tuple[int, ...], ...]) -> tuple[Component, ...]:
    """The phases of a group's graph that make these outputs, one after the other."""
    parts: list[Component] = []
    made: dict[Entry, int] = {}
    for numbers in phase_outputs:
        parts.append(slice_phase(graph, numbers, made))
        made |= {graph.outputs[k]: k for k in numbers}
    return tuple(parts)


def slice_phase(graph: Graph, outputs: Sequence[int], made: Mapping[Entry, int]) -> Component:
    """What makes these outputs of a graph where those that are ``made`` lie in memory already."""
    number = {n.entries[0]: k for k, n in enumerate(graph.inputs)}
    number |= {e: len(graph.inputs) + k for e, k in made.items()}
    wanted = [graph.outputs[k] for k in outputs]
    new: dict[Entry, Entry] = {}
    source: dict[Node, Node] = {}
    variables: dict[Node, int] = {}
    for node in _body(graph, wanted, made):
        for e in node.inputs:
            if e not in new:
                new[e] = _read(e, made, graph)
                if e in number:
                    variables[new[e].node] = number[e]
        inputs = tuple(new[e] for e in node.inputs)
        own = node if inputs == node.inputs else Node(node.op, inputs, node.params, node.name)
        source[own] = node
        new.update((a, b) for a, b in zip(node.entries, own.entries, strict=True) if a not in new)
    closed = Graph([new.get(e, e) for e in wanted])
    return Component(closed, tuple(variables[n] for n in closed.inputs), tuple(outputs), source)


def _read(entry: Entry, made: Mapping[Entry, int], graph: Graph) -> Entry:
    """What a phase has in the place of a value that it does not compute."""
    if entry not in made:
        return entry
    params = {"shape": known_shape(entry), "dtype": entry.dtype}
    return Node(None, (), params, graph.names[entry.node]).entries[0]


def _body(graph: Graph, wanted: Sequence[Entry], made: Mapping[Entry, int]) -> list[Node]:
    """The nodes that compute the wanted values, in post-order."""
    found: set[Node] = set()
    todo = [e.node for e in wanted if e not in made and not is_leaf(e.node)]
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += [e.node for e in node.inputs if e not in made and not is_leaf(e.node)]
    return sorted(found, key=graph.positions.__getitem__)
