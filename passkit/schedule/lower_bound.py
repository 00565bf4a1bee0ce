"""Lower bounds: the least cost of a kernel of several nests with the maps of some values.

They say which tilings are worth a full plan, and which never fit into scratch memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from attrs import field, frozen

from passkit.analysis.domain_info import DomainInfo, analyze_bounded_domain
from passkit.analysis.extract import extract_nest
from passkit.analysis.group import Group
from passkit.analysis.infer import TileMaps
from passkit.analysis.nests import NestNodes, contract_of
from passkit.analysis.tilemap import GUESS, TileMap, guessed, whole_map
from passkit.diagnostics import Diagnostic
from passkit.graph.node import Entry, known_dtype, known_shape
from passkit.graph.quotient import live_ins
from passkit.schedule.idle import NO_WORK, Work
from passkit.schedule.nest_info import USUAL
from passkit.schedule.roofline import least_bytes, roofline_seconds, waiting_seconds
from passkit.schedule.tile_costs import product_seconds, tile_seconds
from passkit.target import Target
from passkit.values.size import Extent, numel


@frozen(eq=False)
class _NestBound:
    """The least cost of a nest.

    Attributes:
        work: the least work for the maps of values.
        results: the values that determine them.
        resident: the values that are in scratch memory at the same time.
    """

    work: Callable[[TileMaps], Work]
    results: Sequence[Entry]
    resident: Sequence[Entry]
    costs: dict[tuple[TileMap | None, ...], tuple[Work, Extent]] = field(init=False, factory=dict)

    def of(self, maps: TileMaps) -> tuple[Work, Extent]:
        """Return the least work and bytes for the maps of values; each computed once."""
        key = (*map(maps.get, self.results), *map(maps.get, self.resident))
        costs = self.costs.get(key)
        if costs is None:
            nbytes = sum((_nbytes(e, maps[e]) for e in self.resident if e in maps), 0)
            costs = self.costs[key] = self.work(maps), nbytes
        return costs


class LowerBound:
    """The least cost of a kernel with the maps of some values; other values add nothing to it.

    It holds for schedules in which no value is computed again for lack of scratch memory.
    """

    def __init__(
        self, group: Group, nests: Mapping[NestNodes, Sequence[Entry]], target: Target
    ) -> None:
        self.group, self.target = group, target
        self.moving = target.moving(least_bytes(group.graph))
        read = {e for nest in nests for e in live_ins(group.graph, nest.nodes)}
        stored = {e for outputs in nests.values() for e in outputs}
        self.nests = [
            self._product(nest, outputs, read, stored)
            if nest.is_product
            else self._loops(nest, outputs)
            for nest, outputs in nests.items()
        ]

    def _loops(self, nest: NestNodes, outputs: Sequence[Entry]) -> _NestBound:
        """Return the bound of a nest with an iteration domain."""
        results = tuple(e.node for e in outputs)
        group, _ = extract_nest(self.group.graph, tuple(nest.nodes), results)
        info = analyze_bounded_domain(group.graph, lambda domain: [])
        once = NO_WORK
        if isinstance(info, DomainInfo):
            seconds = roofline_seconds(info, self.target, guessed(info.domain.size, USUAL))
            once = Work(seconds, waiting_seconds(group.graph, self.target))

        def work(maps: TileMaps) -> Work:
            return once.times(max((_repeated(maps[e]) for e in outputs if e in maps), default=1.0))

        return _NestBound(work, outputs, ())

    def _product(
        self,
        nest: NestNodes,
        outputs: Sequence[Entry],
        read: Collection[Entry],
        stored: Collection[Entry],
    ) -> _NestBound:
        """Return the bound of a matrix product.

        Args:
            nest: the nest.
            outputs: its outputs.
            read: the values that nests read.
            stored: the values that nests compute for others.
        """
        (node,), contract = nest.nodes, contract_of(nest.nodes[0])
        assert contract is not None
        shape = known_shape(node.entries[0])
        operands = (e for e in live_ins(self.group.graph, [node]) if e in stored)
        resident = (*operands, *(e for e in outputs if e in read))

        def work(maps: TileMaps) -> Work:
            tile_map = maps.get(node.entries[0], whole_map(shape))
            return Work(product_seconds(contract, tile_map, self.target))

        return _NestBound(work, outputs, resident)

    def __call__(self, maps: TileMaps, tiles: Extent) -> float | Diagnostic:
        """Return the least seconds, or that a product and its operands exceed scratch memory."""
        total = NO_WORK
        scratch: Extent = 0
        for nest in self.nests:
            work, nbytes = nest.of(maps)
            total += work
            scratch = max(scratch, nbytes, key=guessed)
        if guessed(scratch) > self.target.scratch:
            return _exceeded(scratch, self.target.scratch)
        return tile_seconds(total, tiles, len(self.nests), scratch, self.moving, self.target)


def _exceeded(need: Extent, limit: int) -> Diagnostic:
    """Return the diagnostic of a product that needs more bytes than there are."""
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
    return tile_map.elements * known_dtype(entry).nbytes
