"""Packing: what a group falls into that has no data flow between, and how tiles are shared out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from attrs import define, field, frozen

from passkit.analysis.domain import Axis
from passkit.analysis.domain_info import analyze_domain
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.graph.op import FContract
from passkit.target import Target
from passkit.target.heuristics import TilingHeuristics
from passkit.values.memo import UncachedArgument
from passkit.values.size import Shape, numel

MAX_ARRAYS, MAX_NODES, MAX_TRIES = 8, 24, 4
"""Arrays and nodes of a loop that does what parts of one space do, which share no array, at most;
and loops that a part is tried with."""
MAX_RESULTS = 8
"""The most results of a loop that serves several parts.

Parts that read one array share its cache lines in a loop; but compilers take more than linear time
for the text of a loop, so 200 columns of one matrix are 25 loops, and equal ones share a function.
"""


@frozen(eq=False)
class Component:
    """A closed part of a group's graph, with the group's numbers of its inputs and outputs.

    Numbers of inputs go on with outputs, of which a phase reads those that earlier ones made.
    ``source`` has the group's node for each that is not that node itself.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    source: Mapping[Node, Node] = field(factory=dict)

    def original(self, node: Node) -> Node:
        """The node of the group that a node of the part is."""
        return self.source.get(node, node)


def independent_components(graph: Graph) -> tuple[Component, ...]:
    """The parts of a group's graph with no data flow between, in the order of first outputs.

    Where parts have one space and read the same arrays, or have few, one loop does it all: they
    are one part then.
    """
    found = _components(graph)
    loops = _merged_nests(graph, found) if len(found) > 1 else []
    if len(loops) < 2:
        inputs, outputs = (tuple(range(len(k))) for k in (graph.inputs, graph.outputs))
        return (Component(graph, inputs, outputs),)
    number = {n: k for k, n in enumerate(graph.inputs)}
    return tuple(
        Component(r.graph, tuple(number[n] for n in r.graph.inputs), tuple(r.outputs))
        for r in loops
    )


def _components(graph: Graph) -> list[list[int]]:
    """Numbers of outputs that operators connect, by the first of each."""
    root: dict[Node, Node] = {}

    def find(node: Node) -> Node:
        while root[node] is not node:
            root[node] = node = root[root[node]]
        return node

    for node in graph.nodes:
        root[node] = node
        if not is_leaf(node):
            for entry in node.inputs:
                if not is_leaf(entry.node):
                    root[find(entry.node)] = node
    found: dict[Node, list[int]] = {}
    for k, entry in enumerate(graph.outputs):
        found.setdefault(find(entry.node), []).append(k)
    return list(found.values())


@define(eq=False)
class _Nest:
    """Outputs that one loop computes, in this space; None where it takes several spaces."""

    outputs: list[int]
    graph: Graph
    axes: tuple[Axis, ...] | None

    @property
    def shapes(self) -> set[Shape]:
        """What results measure, or what is folded to them."""
        nodes = [e.node for e in self.graph.outputs]
        folded = [n.inputs[0] if reduce_of(n) is not None else n.entries[0] for n in nodes]
        return set(map(known_shape, folded))

    @property
    def arrays(self) -> dict[Node | Entry, None]:
        """The inputs of more than one element, and the outputs, in the graph's order."""
        large = [n for n in self.graph.inputs if numel(known_shape(n.entries[0])) != 1]
        return dict.fromkeys([*large, *self.graph.outputs])


def _merged_nests(graph: Graph, found: Iterable[list[int]]) -> list[_Nest]:
    """The components, those that one loop had better compute together."""
    loops: list[_Nest] = []
    readers: dict[Node | Entry, list[_Nest]] = {}
    last: dict[tuple[Axis, ...], _Nest] = {}
    for outputs in found:
        own = _nest_of(graph, outputs)
        near = [r for n in own.arrays for r in readers.get(n, ())]
        if own.axes is not None and own.axes in last:
            near.append(last[own.axes])
        room = [r for r in dict.fromkeys(near) if len(r.outputs) + len(outputs) <= MAX_RESULTS]
        home = _merge_into(graph, own, room[:MAX_TRIES])
        if home is None:
            home = own
            loops.append(own)
        if home.axes is not None:
            last[home.axes] = home
        for n in own.arrays:
            readers.setdefault(n, []).append(home)
    return loops


def _nest_of(graph: Graph, outputs: list[int]) -> _Nest:
    closed = Graph([graph.outputs[k] for k in outputs])
    return _Nest(outputs, closed, _axes(closed.key, UncachedArgument(closed)))


@lru_cache(maxsize=4096)
def _axes(key: str, held: UncachedArgument[Graph]) -> tuple[Axis, ...] | None:
    """The axes of a graph's space, if it has one."""
    if any(n.op is not None and FContract.get(n.op.name) is not None for n in held.value.nodes):
        return None
    info = analyze_domain(held.value)
    return None if isinstance(info, Diagnostic) else info.domain.axes


def _merge_into(graph: Graph, own: _Nest, near: Iterable[_Nest]) -> _Nest | None:
    """The first of the loops ``near`` that computes ``own`` as well from now on."""
    for home in near:
        if home.axes is None or own.axes is None:
            continue
        if numel(a.extent for a in home.axes) != numel(a.extent for a in own.axes):
            continue
        if home.shapes.isdisjoint(own.shapes):
            continue  # one would be read by divided positions
        shared = home.arrays.keys() & own.arrays.keys()
        if not shared and len(home.arrays | own.arrays) > MAX_ARRAYS:
            continue
        if not shared and len(home.graph.nodes) + len(own.graph.nodes) > MAX_NODES:
            continue
        both = _nest_of(graph, sorted([*home.outputs, *own.outputs]))
        if both.axes is None or not (shared or both.axes == home.axes):
            continue
        home.outputs, home.graph, home.axes = both.outputs, both.graph, both.axes
        return home
    return None


def seconds_per_tile(seconds: Sequence[float], tiling: TilingHeuristics) -> float:
    """The seconds that a tile should take where parts take these; 0 where one is not known."""
    if not all(seconds):
        return 0.0
    return max(sum(seconds) / tiling.pack_tiles, tiling.pack_tile_seconds)


def tile_points(each: float, aim: float, target: Target) -> int:
    """The points of a tile that takes about ``aim`` seconds, ``each`` for a point."""
    most, least = target.tile, target.tiling.pack_tile_points
    fits = min(int(aim / each), most)
    return 1 << max(fits, least).bit_length() - 1 if fits < most else most


def shared_tiles(seconds: Sequence[float], small: Sequence[bool], aim: float) -> list[list[int]]:
    """The numbers of parts that share tiles: ``small`` ones, up to ``aim`` seconds together."""
    made: list[list[int]] = []
    taken = 0.0
    for k in sorted(range(len(seconds)), key=lambda k: small[k]):
        fits = small[k] and made and small[made[-1][0]] and taken + seconds[k] <= aim
        if fits:
            made[-1].append(k)
        else:
            made.append([k])
        taken = seconds[k] + (taken if fits else 0.0)
    return made
