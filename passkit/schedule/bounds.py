"""Bounds: what a stitched kernel takes at least, by what a tile has of the values of its parts.

They say which ways to split results are worth being planned, and which never fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from attrs import field, frozen

from passkit.analysis.closed_nest import extract_nest
from passkit.analysis.domain_info import DomainInfo, analyze_bounded_domain
from passkit.analysis.group import Group
from passkit.analysis.infer import TileMaps
from passkit.analysis.nests import NestNodes, contract_of
from passkit.analysis.tilemap import GUESS, TileMap, guessed, whole_map
from passkit.diagnostics import Diagnostic
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.quotient import live_ins
from passkit.schedule.nest_info import USUAL
from passkit.schedule.roofline import roofline_seconds
from passkit.schedule.tile_costs import product_seconds, tile_seconds
from passkit.target import Target
from passkit.values.size import Extent, numel


@frozen(eq=False)
class _Part:
    """A nest: the seconds of its work, its results, and the values that it needs in scratch."""

    seconds: Callable[[TileMaps], float]
    results: Sequence[Entry]
    together: Sequence[Entry]
    costs: dict[tuple[TileMap | None, ...], tuple[float, Extent]] = field(init=False, factory=dict)

    def takes(self, maps: TileMaps) -> tuple[float, Extent]:
        """Return the seconds and the bytes that maps of its values cost; each computed once."""
        key = (*map(maps.get, self.results), *map(maps.get, self.together))
        costs = self.costs.get(key)
        if costs is None:
            nbytes = sum((_nbytes(e, maps[e]) for e in self.together if e in maps), 0)
            costs = self.costs[key] = self.seconds(maps), nbytes
        return costs


class LowerBound:
    """The least cost of a kernel with the maps of some values; other values add nothing to it.

    It holds for schedules in which no value is given up for want of room.
    """

    def __init__(
        self, group: Group, parts: Mapping[NestNodes, Sequence[Entry]], target: Target
    ) -> None:
        self.group, self.target = group, target
        read = {e for p in parts for e in live_ins(group.graph, p.nodes)}
        held = {e for values in parts.values() for e in values}
        self.parts = [self._part(p, values, read, held) for p, values in parts.items()]

    def _part(
        self, piece: NestNodes, values: Sequence[Entry], read: Collection[Entry], held: set[Entry]
    ) -> _Part:
        if not piece.product:
            results = tuple(e.node for e in values)
            once = self._work(tuple(piece.nodes), results)

            def work(maps: TileMaps) -> float:
                return once * max((_repeated(maps[e]) for e in values if e in maps), default=1.0)

            return _Part(work, values, ())
        (node,), contract = piece.nodes, contract_of(piece.nodes[0])
        assert contract is not None
        shape = known_shape(node.entries[0])
        operands = (e for e in live_ins(self.group.graph, [node]) if e in held)
        together = (*operands, *(e for e in values if e in read))

        def product(maps: TileMaps) -> float:
            tile_map = maps.get(node.entries[0], whole_map(shape))
            return product_seconds(contract, tile_map, self.target)

        return _Part(product, values, together)

    def _work(self, nodes: tuple[Node, ...], results: tuple[Node, ...]) -> float:
        part, _ = extract_nest(self.group.graph, nodes, results)
        info = analyze_bounded_domain(part.graph, lambda domain: [])
        return 0.0 if isinstance(info, Diagnostic) else self._seconds(info)

    def _seconds(self, info: DomainInfo) -> float:
        return roofline_seconds(info, self.target, guessed(info.domain.size, USUAL))

    def __call__(self, maps: TileMaps, tiles: Extent) -> float | Diagnostic:
        """Seconds, or that scratch has no room for a product, its operands and its result."""
        seconds = 0.0
        room: Extent = 0
        for part in self.parts:
            takes, own = part.takes(maps)
            seconds += takes
            room = max(room, own, key=guessed)
        if guessed(room) > self.target.scratch:
            return _too_much(room, self.target.scratch)
        return tile_seconds(seconds, tiles, len(self.parts), room, self.target)


def _too_much(need: Extent, limit: int) -> Diagnostic:
    """Why arrays do not fit."""
    if isinstance(need, int):
        return Diagnostic("memory.least", {"need": need, "limit": limit})
    return Diagnostic(
        "memory.guessed", {"need": need, "guess": guessed(need), "size": GUESS, "limit": limit}
    )


def _repeated(tile_map: TileMap) -> float:
    """Return how often the elements of a value are computed, by all tiles together."""
    points, size = tile_map.tiles * tile_map.elements, numel(tile_map.shape)
    return max(1.0, guessed(points, USUAL) / max(1, guessed(size, USUAL)))


def _nbytes(entry: Entry, tile_map: TileMap) -> Extent:
    """Return the bytes of a tile's part of a value."""
    assert entry.dtype is not None
    return tile_map.elements * entry.dtype.nbytes
