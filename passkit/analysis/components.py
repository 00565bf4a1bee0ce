"""Components of packs: operators without data flow between them, and how they share tiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from attrs import define, field, frozen

from passkit.analysis.domain import Axis
from passkit.analysis.domain_info import analyze_domain
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.components import connected_components
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.graph.op import FContract
from passkit.target import Target
from passkit.target.heuristics import TilingHeuristics
from passkit.values.memo import UncachedArgument
from passkit.values.size import Shape, numel

MAX_ARRAYS = 8
"""The most arrays of a nest that serves several components without an array in common."""
MAX_NODES = 24
"""The most nodes of such a nest."""
MAX_TRIES = 4
"""The most nests with which a component is tried."""
MAX_RESULTS = 8
"""The most results of a nest that serves several components.

Components that read one array share its cache lines in a nest. But compilers take more than linear
time for a long loop body: 200 columns of one matrix are 25 nests, and equal ones share a function.
"""


@frozen(eq=False)
class Component:
    """A closed part of a group's graph.

    Attributes:
        graph: the graph.
        inputs: for each of its inputs the number of the group's input. After all inputs, the
            group's outputs are counted on, of which a phase reads those of earlier phases.
        outputs: for each of its outputs the number of the group's output.
        source: the group's node for each node that is not the same one.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    source: Mapping[Node, Node] = field(factory=dict)

    def original(self, node: Node) -> Node:
        """Return the group's node for a node of the component."""
        return self.source.get(node, node)


def independent_components(graph: Graph) -> tuple[Component, ...]:
    """Return the components of a group without data flow between them, by their first outputs.

    Components with one domain are one if they read the same arrays, or have few.
    """
    connected = _connected_outputs(graph)
    nests = _merged_nests(graph, connected) if len(connected) > 1 else []
    if len(nests) < 2:
        inputs, outputs = (tuple(range(len(k))) for k in (graph.inputs, graph.outputs))
        return (Component(graph, inputs, outputs),)
    number = {n: k for k, n in enumerate(graph.inputs)}
    return tuple(
        Component(nest.graph, tuple(number[n] for n in nest.graph.inputs), tuple(nest.outputs))
        for nest in nests
    )


def _connected_outputs(graph: Graph) -> list[list[int]]:
    """Return the numbers of outputs that operators connect, one list for each component."""
    edges = (
        (node, entry.node)
        for node in graph.nodes
        if not is_leaf(node)
        for entry in node.inputs
        if not is_leaf(entry.node)
    )
    components = connected_components(graph.nodes, edges)
    number = {node: k for k, component in enumerate(components) for node in component}
    outputs: dict[int, list[int]] = {}
    for k, entry in enumerate(graph.outputs):
        outputs.setdefault(number[entry.node], []).append(k)
    return list(outputs.values())


@define(eq=False)
class _Nest:
    """Outputs that are computed together.

    Attributes:
        outputs: their numbers.
        graph: their closed graph.
        axes: the axes of their domain; None if they have several domains.
    """

    outputs: list[int]
    graph: Graph
    axes: tuple[Axis, ...] | None

    @property
    def shapes(self) -> set[Shape]:
        """Return the shapes of results, or of the operands of reductions."""
        nodes = [e.node for e in self.graph.outputs]
        entries = [n.inputs[0] if reduce_of(n) is not None else n.entries[0] for n in nodes]
        return set(map(known_shape, entries))

    @property
    def arrays(self) -> dict[Node | Entry, None]:
        """Return the inputs of more than one element, and the outputs, in the graph's order."""
        large = [n for n in self.graph.inputs if numel(known_shape(n.entries[0])) != 1]
        return dict.fromkeys([*large, *self.graph.outputs])


def _merged_nests(graph: Graph, connected: Iterable[list[int]]) -> list[_Nest]:
    """Return nests for connected outputs; several of these share a nest where that is better."""
    nests: list[_Nest] = []
    nests_of_array: dict[Node | Entry, list[_Nest]] = {}
    last: dict[tuple[Axis, ...], _Nest] = {}
    for outputs in connected:
        new = _nest_of(graph, outputs)
        related = [nest for n in new.arrays for nest in nests_of_array.get(n, ())]
        if new.axes is not None and new.axes in last:
            related.append(last[new.axes])
        fitting = [
            nest
            for nest in dict.fromkeys(related)
            if len(nest.outputs) + len(outputs) <= MAX_RESULTS
        ]
        merged = _merge_into_first(graph, new, fitting[:MAX_TRIES])
        if merged is None:
            merged = new
            nests.append(new)
        if merged.axes is not None:
            last[merged.axes] = merged
        for n in new.arrays:
            nests_of_array.setdefault(n, []).append(merged)
    return nests


def _nest_of(graph: Graph, outputs: list[int]) -> _Nest:
    """Return a nest of the outputs with some numbers."""
    closed = Graph([graph.outputs[k] for k in outputs])
    return _Nest(outputs, closed, _axes(closed.key, UncachedArgument(closed)))


@lru_cache(maxsize=4096)
def _axes(key: str, held: UncachedArgument[Graph]) -> tuple[Axis, ...] | None:
    """Return the axes of a graph's domain; None without one, or if it has a product."""
    if any(n.op is not None and FContract.get(n.op.name) is not None for n in held.value.nodes):
        return None
    info = analyze_domain(held.value)
    return None if isinstance(info, Diagnostic) else info.domain.axes


def _merge_into_first(graph: Graph, new: _Nest, nests: Iterable[_Nest]) -> _Nest | None:
    """Merge a new nest into the first of several nests that it fits, and return that nest.

    Returns: None if it fits none of them.
    """
    for nest in nests:
        merged = _merged(graph, nest, new)
        if merged is not None:
            nest.outputs, nest.graph, nest.axes = merged.outputs, merged.graph, merged.axes
            return nest
    return None


def _merged(graph: Graph, nest: _Nest, new: _Nest) -> _Nest | None:
    """Return a nest with the outputs of two; None if they had better be computed apart.

    They must have a shape in common: otherwise accesses to one would have divisions.
    """
    if nest.axes is None or new.axes is None:
        return None
    if numel(a.extent for a in nest.axes) != numel(a.extent for a in new.axes):
        return None
    if nest.shapes.isdisjoint(new.shapes):
        return None
    shared = nest.arrays.keys() & new.arrays.keys()
    if not shared and len(nest.arrays | new.arrays) > MAX_ARRAYS:
        return None
    if not shared and len(nest.graph.nodes) + len(new.graph.nodes) > MAX_NODES:
        return None
    merged = _nest_of(graph, sorted([*nest.outputs, *new.outputs]))
    is_same_domain = bool(shared) or merged.axes == nest.axes
    return merged if merged.axes is not None and is_same_domain else None


def seconds_per_tile(seconds: Sequence[float], tiling: TilingHeuristics) -> float:
    """Return the seconds that a tile of a pack should take; 0 if those of a component are unknown.

    Args:
        seconds: the seconds of each component, 0 where they are unknown.
        tiling: the target's heuristics.
    """
    if not all(seconds):
        return 0.0
    return max(sum(seconds) / tiling.pack_tiles, tiling.pack_tile_seconds)


def tile_points(seconds_per_point: float, tile_seconds: float, target: Target) -> int:
    """Return the points of a tile that takes about ``tile_seconds``, a power of two or the most."""
    max_points, min_points = target.tile, target.tiling.pack_tile_points
    points = min(int(tile_seconds / seconds_per_point), max_points)
    if points == max_points:
        return max_points
    return 1 << max(points, min_points).bit_length() - 1


def shared_tiles(
    seconds: Sequence[float], is_small: Sequence[bool], tile_seconds: float
) -> list[list[int]]:
    """Return the numbers of components in lists that share tiles.

    Args:
        seconds: the seconds of each component.
        is_small: whether each component is one tile. Only such ones share a tile.
        tile_seconds: the most seconds of components that share a tile.
    """
    tiles: list[list[int]] = []
    total = 0.0
    for k in sorted(range(len(seconds)), key=lambda k: is_small[k]):
        can_share = bool(tiles) and is_small[k] and is_small[tiles[-1][0]]
        if can_share and total + seconds[k] <= tile_seconds:
            tiles[-1].append(k)
            total += seconds[k]
        else:
            tiles.append([k])
            total = seconds[k]
    return tiles
