"""Bounds: what a stitched kernel takes at least, by what a tile has of the values of its parts.

They say which ways to split results are worth being planned, and which never fit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from attrs import field, frozen

from passkit.analysis.closed_nest import extract_nest
from passkit.analysis.domain_info import DomainInfo, analyze_bounded_domain
from passkit.analysis.group import Group
from passkit.analysis.infer import States
from passkit.analysis.nests import NestNodes, contract_of
from passkit.analysis.regions import Region, region_of
from passkit.analysis.tilemap import GUESS, SplitState, guessed
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
    """A part: the seconds of its work for states, its results, and what lies together for it."""

    seconds: Callable[[States, Extent], float]
    results: Sequence[Entry]
    together: Sequence[Entry]
    known: dict[tuple[SplitState | Extent | None, ...], tuple[float, Extent]] = field(
        init=False, factory=dict
    )

    def takes(self, states: States, tiles: Extent) -> tuple[float, Extent]:
        """The seconds, and the bytes, that states of its values cost; each found once."""
        key = (tiles, *map(states.get, self.results), *map(states.get, self.together))
        found = self.known.get(key)
        if found is None:
            room = sum((_nbytes(e, states[e]) for e in self.together if e in states), 0)
            found = self.known[key] = self.seconds(states, tiles), room
        return found


class LowerBound:
    """What states of some values cost at least; those of others are taken to cost nothing more.

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

            def work(states: States, tiles: Extent) -> float:
                held = [(e, states[e]) for e in values if e in states]
                return once * max((_repeated(e, s, tiles) for e, s in held), default=1.0)

            return _Part(work, values, ())
        (node,), contract = piece.nodes, contract_of(piece.nodes[0])
        assert contract is not None
        shape = known_shape(node.entries[0])
        operands = (e for e in live_ins(self.group.graph, [node]) if e in held)
        together = (*operands, *(e for e in values if e in read))

        def product(states: States, tiles: Extent) -> float:
            state = states.get(node.entries[0])
            if state is None:
                return product_seconds(contract, Region(shape, 0), 1, self.target)
            return product_seconds(contract, region_of(shape, state), tiles, self.target)

        return _Part(product, values, together)

    def _work(self, nodes: tuple[Node, ...], results: tuple[Node, ...]) -> float:
        part, _ = extract_nest(self.group.graph, nodes, results)
        info = analyze_bounded_domain(part.graph, lambda domain: [])
        return 0.0 if isinstance(info, Diagnostic) else self._seconds(info)

    def _seconds(self, info: DomainInfo) -> float:
        return roofline_seconds(info, self.target, guessed(info.domain.size, USUAL))

    def __call__(self, states: States, tiles: Extent) -> float | Diagnostic:
        """Seconds, or that scratch has no room for a product, its operands and its result."""
        seconds = 0.0
        room: Extent = 0
        for part in self.parts:
            takes, own = part.takes(states, tiles)
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


def _repeated(entry: Entry, state: SplitState, tiles: Extent) -> float:
    """How often the elements of a value are computed, by all tiles together."""
    shape = known_shape(entry)
    points, size = tiles * state.elements(shape), numel(shape)
    return max(1.0, guessed(points, USUAL) / max(1, guessed(size, USUAL)))


def _nbytes(entry: Entry, state: SplitState) -> Extent:
    assert entry.dtype is not None
    return state.elements(known_shape(entry)) * entry.dtype.nbytes
