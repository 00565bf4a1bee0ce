"""The search for tile maps that all results of a group agree on, by their numbers of tiles.

It goes from root to root: those results that no other nest of the group reads. The maps that follow
from those of some roots give a lower bound of the cost of any tiling that has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import count

from attrs import frozen

from passkit.analysis.infer import NestResults, TileMaps, infer_tile_maps
from passkit.analysis.tilemap import TileMap, candidate_tilings
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, known_shape
from passkit.values.size import Extent, Shape

COMBINATIONS = 256
"""The most combinations of maps, of some roots or all, that are tried before a tiling of all roots
is known; the first tiling is always completed."""

CostBound = Callable[[TileMaps, Extent], "float | Diagnostic"]
"""The least cost of a kernel with these maps and so many tiles, whatever maps other values have; or
why there is none. It does not fall when maps are added."""


@frozen(eq=False)
class AgreedTiling:
    """Maps of the roots, or of the first of them, with the maps that follow from these.

    Attributes:
        roots: the maps of roots.
        maps: those of all values that have one.
        tiles: the number of tiles.
        bound: the least cost of a kernel with these maps.
    """

    roots: Mapping[Entry, TileMap]
    maps: TileMaps
    tiles: Extent
    bound: float

    def is_part_of(self, other: AgreedTiling) -> bool:
        """Return whether all these maps are maps of another tiling."""
        return self.maps.items() <= other.maps.items()


def roots_of(graph: Graph, nests: Sequence[NestResults]) -> tuple[Entry, ...]:
    """Return the outputs that no other nest reads: those whose maps are chosen."""
    read = {e for p in nests for n in p.nodes for e in n.inputs if e.node not in p.inside}
    return tuple(e for e in dict.fromkeys(graph.outputs) if e not in read)


@lru_cache(maxsize=256)
def by_tiles(shape: Shape) -> Mapping[Extent, Sequence[TileMap]]:
    """Return the candidate maps of a shape by their numbers of tiles, the most first."""
    maps: dict[Extent, list[TileMap]] = {}
    for tile_map in candidate_tilings(shape):
        maps.setdefault(tile_map.tiles, []).append(tile_map)
    return maps


class TilingSearch:
    """All tilings of some roots that are consistent for a group's loop nests.

    Attributes:
        fewest: whether only the least known number of tiles is tried that all roots can have.
        refused: the reasons against other tilings.
        tried: the number of inferences that were made.
    """

    def __init__(
        self,
        graph: Graph,
        roots: Iterable[Entry],
        nests: Sequence[NestResults],
        bound: CostBound,
        fewest: bool = False,
    ) -> None:
        self.graph, self.roots, self.nests = graph, tuple(roots), nests
        self.bound, self.fewest = bound, fewest
        self.refused: list[Diagnostic] = []
        self.tried = 0

    def __iter__(self) -> Iterator[AgreedTiling]:
        """Yield tilings of all roots, those with the least bound first.

        Of equal ones come those with the most tiles first, then those that come first for the first
        root.
        """
        serial = count()
        queue = [(tiling.bound, 0, next(serial), tiling) for tiling in self._begin()]
        heapify(queue)
        is_any_complete = False
        while queue:
            _, depth, number, tiling = heappop(queue)
            if -depth == len(self.roots):
                yield tiling
                continue
            # Straight on to a map of the last root, so that a complete tiling is known soon.
            while -depth < len(self.roots):
                if is_any_complete and self.tried >= COMBINATIONS:
                    break
                more = self._with_next_root(tiling, self.roots[-depth])
                if not more:
                    break
                depth, tiling, number = depth - 1, more[0], next(serial)
                for other in more[1:]:
                    heappush(queue, (other.bound, depth, next(serial), other))
            else:
                is_any_complete = True
                heappush(queue, (tiling.bound, depth, number, tiling))

    def _begin(self) -> Iterator[AgreedTiling]:
        """Yield tilings without maps, for each number of tiles that all roots can have."""
        first, *others = [by_tiles(known_shape(e)) for e in self.roots]
        common: Sequence[Extent] = [n for n in first if all(n in maps for maps in others)]
        if not common:
            names = {"values": _listed(self.roots)}
            first_root = self.roots[0].node.label
            self.refused.append(Diagnostic("tile.no_common_count", names, (first_root,)))
        if self.fewest:
            common = sorted(n for n in common if isinstance(n, int))[:1]
        for tiles in common:
            bound = self.bound({}, tiles)
            if isinstance(bound, Diagnostic):
                self.refused.append(bound)
            else:
                yield AgreedTiling({}, {}, tiles, bound)

    def _with_next_root(self, tiling: AgreedTiling, root: Entry) -> list[AgreedTiling]:
        """Return a tiling with each map of one more root that is consistent, the best first."""
        tilings = []
        for tile_map in by_tiles(known_shape(root))[tiling.tiles]:
            self.tried += 1
            roots = {**tiling.roots, root: tile_map}
            maps = infer_tile_maps(self.graph, roots, self.nests)
            bound = maps if isinstance(maps, Diagnostic) else self.bound(maps, tiling.tiles)
            if isinstance(bound, Diagnostic):
                self.refused.append(bound)
            elif not isinstance(maps, Diagnostic):
                tilings.append(AgreedTiling(roots, maps, tiling.tiles, bound))
        return sorted(tilings, key=lambda t: t.bound)


def _listed(entries: Sequence[Entry]) -> str:
    """Return the names of entries as an enumeration."""
    *others, last = (e.name for e in entries)
    return f"{', '.join(others)} and {last}" if others else last


def completed(
    graph: Graph, roots: Mapping[Entry, TileMap], tiles: Extent, nests: Sequence[NestResults]
) -> TileMaps | Diagnostic:
    """Return the maps of the results of all nests, for the maps of roots, or why there are none.

    Results of which no element is read, but their shape at most, have the first candidate.
    """
    own = dict(roots)
    while True:
        maps = infer_tile_maps(graph, own, nests)
        if isinstance(maps, Diagnostic):
            return maps
        rest = (e for nest in reversed(nests) for e in nest.results if e not in maps)
        entry = next(rest, None)
        if entry is None:
            return maps
        candidates = by_tiles(known_shape(entry)).get(tiles)
        if not candidates:
            data = {"value": entry.name, "blocks": tiles}
            return Diagnostic("tile.value_blocks", data, (entry.node.label,))
        own[entry] = candidates[0]
