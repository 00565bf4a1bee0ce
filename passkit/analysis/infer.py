"""Inference of tile maps: what a tile has of each value of a group, for the maps of its results.

A group runs in loop nests. What a nest leaves for others, or for the caller, is computed once: a
tile has of it what all who read it need together. Other values are computed where a nest reads
them, and may be needed in several ways. Inputs of the group are there for any tile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from attrs import field, frozen

from passkit.analysis.propagate import operand_tile_maps
from passkit.analysis.tilemap import TileMap
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf
from passkit.values.size import Extent

TileMaps = dict[Entry, TileMap]
_Needs = dict[TileMap, "Node | None"]
"""The maps by which a value is needed, each with the first node that needs it so; None is the
caller."""


_Need = tuple[Entry, TileMap, Node]
"""A value that is read, the map by which it is needed, and the node that reads it."""


@frozen(eq=False)
class NestResults:
    """Nodes in post-order that are computed together, and the ``results`` that leave them.

    Values that nodes read of each other are computed at any element, whatever a tile has of them.
    """

    nodes: Sequence[Node]
    results: Sequence[Entry]
    inside: frozenset[Node] = field(init=False)
    needs: dict[tuple[TileMap | None, ...], tuple[_Need, ...] | Diagnostic] = field(
        init=False, factory=dict
    )
    """The needs that maps of the results lead to: a search meets the same maps again and again."""

    @inside.default
    def _inside(self) -> frozenset[Node]:
        return frozenset(self.nodes)


def infer_tile_maps(
    graph: Graph, roots: Mapping[Entry, TileMap], nests: Sequence[NestResults]
) -> TileMaps | Diagnostic:
    """Return what a tile has of the results of all nests, or why that cannot be.

    Maps of other values follow from those that read them; a value that none reads has no map. The
    part that tiles need of a value may overlap: each tile computes it for itself then. Outputs of
    the graph and roots cannot overlap, since one tile writes each of their elements.

    Args:
        graph: the group.
        roots: the maps of some results.
        nests: the loop nests, in an order in which they can run.

    Returns: the maps, or a diagnostic. ``tile.conflict``: a value is needed in two ways.
    ``tile.whole``: a value that cannot overlap is needed by several tiles. ``tile.operator``: an
    operator cannot run in such tiles. ``tile.count``: roots have different numbers of tiles.
    ``tile.empty``: a root has no elements.
    """
    return _Walk(graph, roots).run(nests)


class _Walk:
    """One walk from the roots to the inputs, users before producers."""

    def __init__(self, graph: Graph, roots: Mapping[Entry, TileMap]) -> None:
        self.graph, self.roots = graph, roots
        self.once = {*roots, *graph.outputs}
        self.needs: dict[Entry, _Needs] = {}
        self.maps: TileMaps = {}
        self.tiles: Extent = 1

    def run(self, nests: Sequence[NestResults]) -> TileMaps | Diagnostic:
        """Return the maps, or the first problem on the way."""
        problem = self._begin()
        for nest in reversed(nests):
            problem = problem or self._settle(nest) or self._propagate(nest)
        return problem or self.maps

    def _begin(self) -> Diagnostic | None:
        """Note the maps of the roots, which must have the same number of tiles."""
        first: Entry | None = None
        for entry, tile_map in self.roots.items():
            if 0 in tile_map.shape:
                return Diagnostic("tile.empty", {"value": self._name(entry)}, (entry.node.label,))
            if first is None:
                first, self.tiles = entry, tile_map.tiles
            elif tile_map.tiles != self.tiles:
                return Diagnostic(
                    "tile.count",
                    {
                        "value": self._name(first),
                        "blocks": self.tiles,
                        "other": self._name(entry),
                        "other_blocks": tile_map.tiles,
                    },
                    (entry.node.label,),
                )
            self.needs[entry] = {tile_map: None}
        return None

    def _name(self, entry: Entry) -> str:
        name = self.graph.names[entry.node]
        return f"{name}:{entry.index}" if len(entry.node.entries) > 1 else name

    def _settle(self, nest: NestResults) -> Diagnostic | None:
        """Give each result of a nest that is needed its one map."""
        for entry in nest.results:
            needs = self.needs.get(entry)
            if needs is not None:
                tile_map = self._map_for(entry, needs)
                if isinstance(tile_map, Diagnostic):
                    return tile_map
                self.maps[entry] = tile_map
        return None

    def _propagate(self, nest: NestResults) -> Diagnostic | None:
        """Add the needs that the maps of a nest's results lead to."""
        maps = tuple(map(self.maps.get, nest.results))
        needs = nest.needs.get(maps)
        if needs is None:
            needs = nest.needs[maps] = self._needs_of(nest)
        if isinstance(needs, Diagnostic):
            return needs
        for operand, tile_map, node in needs:
            self.needs.setdefault(operand, {}).setdefault(tile_map, node)
        return None

    def _needs_of(self, nest: NestResults) -> tuple[_Need, ...] | Diagnostic:
        """Return what a nest needs of values outside of it, for the maps of its results."""
        inner: dict[Entry, _Needs] = {
            e: {self.maps[e]: None} for e in nest.results if e in self.maps
        }
        outer: dict[Entry, _Needs] = {}
        for node in reversed(nest.nodes):
            for entry in node.entries:
                for tile_map in tuple(inner.get(entry, ())):
                    operand_maps = operand_tile_maps(entry, tile_map)
                    for operand, operand_map in zip(node.inputs, operand_maps, strict=True):
                        if isinstance(operand_map, Diagnostic):
                            data = {
                                "value": self._name(entry),
                                "state": tile_map,
                                "reason": operand_map,
                            }
                            return Diagnostic("tile.operator", data, (node.label,))
                        if operand_map is not None and not is_leaf(operand.node):
                            into = inner if operand.node in nest.inside else outer
                            into.setdefault(operand, {}).setdefault(operand_map, node)
        return tuple(
            (e, tile_map, node)
            for e, needs in outer.items()
            for tile_map, node in needs.items()
            if node is not None
        )

    def _map_for(self, entry: Entry, needs: _Needs) -> TileMap | Diagnostic:
        """Return the one map of a value that is stored, for all that need it."""
        first, *others = needs
        if entry not in self.once:
            return reduce(TileMap.joined, others, first)
        if others:
            return self._conflict(entry, needs, first, others[0])
        if not first.is_partition:
            return self._needed_whole(entry, needs, first)
        return first

    def _user(self, node: Node | None) -> str:
        return "the caller" if node is None else self.graph.names[node]

    def _conflict(self, entry: Entry, needs: _Needs, a: TileMap, b: TileMap) -> Diagnostic:
        """Return the diagnostic of a value that is needed in two ways."""
        return Diagnostic(
            "tile.conflict",
            {
                "value": self._name(entry),
                "state": a,
                "user": self._user(needs[a]),
                "other_state": b,
                "other_user": self._user(needs[b]),
            },
            (entry.node.label,),
        )

    def _needed_whole(self, entry: Entry, needs: _Needs, tile_map: TileMap) -> Diagnostic:
        """Return the diagnostic of a value of which several tiles need the same elements."""
        return Diagnostic(
            "tile.whole",
            {
                "value": self._name(entry),
                "state": tile_map,
                "user": self._user(needs[tile_map]),
                "blocks": self.tiles,
            },
            (entry.node.label,),
        )
