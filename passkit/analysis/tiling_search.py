"""The search for splits that all results of a group agree on, by their common numbers of blocks.

It goes from root to root: those results that no other part of the group reads. What follows from
the splits of some of them bounds what it costs to split all so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import count

from attrs import frozen

from passkit.analysis.infer import NestResults, States, infer_tile_maps
from passkit.analysis.tilemap import Split, candidate_tilings
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, known_shape
from passkit.values.size import Extent, Shape

COMBINATIONS = 256
"""How many combinations of splits, of some roots or all, are asked at most what follows from them,
once one for all roots is known."""

Least = Callable[[States, Extent], "float | Diagnostic"]
"""What states cost at least with so many blocks, whatever states other values have; or that they
cannot be. It grows with the states."""


@frozen(eq=False)
class AgreedTiling:
    """Splits of the roots, or of the first of them, with what follows from these."""

    splits: Mapping[Entry, Split]
    states: States
    blocks: Extent
    least: float

    def is_part_of(self, other: AgreedTiling) -> bool:
        """Whether all that follows from these splits does so from the other ones."""
        return self.states.items() <= other.states.items()


def roots_of(graph: Graph, parts: Sequence[NestResults]) -> tuple[Entry, ...]:
    """The outputs that no other part reads: those whose splits are chosen."""
    read = {e for p in parts for n in p.nodes for e in n.inputs if e.node not in p.inside}
    return tuple(e for e in dict.fromkeys(graph.outputs) if e not in read)


@lru_cache(maxsize=256)
def by_blocks(shape: Shape) -> Mapping[Extent, Sequence[Split]]:
    """The legal splits of a shape by how many blocks they have, the most first."""
    found: dict[Extent, list[Split]] = {}
    for split in candidate_tilings(shape):
        found.setdefault(split.blocks(shape), []).append(split)
    return found


class TilingSearch:
    """All ways to split some roots, as far as those are consistent for a group's ``parts``.

    ``refused`` has what was in the way of others; ``asked`` counts the walks that were made.
    """

    def __init__(
        self, graph: Graph, roots: Iterable[Entry], parts: Sequence[NestResults], least: Least
    ) -> None:
        self.graph, self.roots, self.parts = graph, tuple(roots), parts
        self.least = least
        self.refused: list[Diagnostic] = []
        self.asked = 0

    def __iter__(self) -> Iterator[AgreedTiling]:
        """Splits of all roots, those with the least bound first.

        Of equal ones come the most blocks first, then those that come first for the first root.
        """
        serial = count()
        queue = [(found.least, 0, next(serial), found) for found in self._begin()]
        heapify(queue)
        whole = False
        while queue:
            _, depth, number, found = heappop(queue)
            if -depth == len(self.roots):
                yield found
                continue
            # Straight on to a split of the last root, so that there is one soon.
            while -depth < len(self.roots) and not (whole and self.asked >= COMBINATIONS):
                more = self._more(found, self.roots[-depth])
                if not more:
                    break
                depth, found, number = depth - 1, more[0], next(serial)
                for other in more[1:]:
                    heappush(queue, (other.least, depth, next(serial), other))
            else:
                if -depth == len(self.roots):
                    whole = True
                    heappush(queue, (found.least, depth, number, found))

    def _begin(self) -> Iterator[AgreedTiling]:
        """No splits yet, for each number of blocks that all roots can have."""
        first, *others = [by_blocks(known_shape(e)) for e in self.roots]
        common = [n for n in first if all(n in found for found in others)]
        if not common:
            names = {"values": _listed(self.roots)}
            first_root = self.roots[0].node.label
            self.refused.append(Diagnostic("tile.no_common_count", names, (first_root,)))
        for blocks in common:
            least = self.least({}, blocks)
            if isinstance(least, Diagnostic):
                self.refused.append(least)
            else:
                yield AgreedTiling({}, {}, blocks, least)

    def _more(self, found: AgreedTiling, root: Entry) -> list[AgreedTiling]:
        """The same with each split of one more root that is consistent with it, the best first."""
        made = []
        for split in by_blocks(known_shape(root))[found.blocks]:
            self.asked += 1
            splits = {**found.splits, root: split}
            states = infer_tile_maps(self.graph, splits, self.parts)
            least = states if isinstance(states, Diagnostic) else self.least(states, found.blocks)
            if isinstance(least, Diagnostic):
                self.refused.append(least)
            elif not isinstance(states, Diagnostic):
                made.append(AgreedTiling(splits, states, found.blocks, least))
        return sorted(made, key=lambda a: a.least)


def _listed(entries: Sequence[Entry]) -> str:
    *others, last = (e.name for e in entries)
    return f"{', '.join(others)} and {last}" if others else last


def completed(
    graph: Graph, splits: Mapping[Entry, Split], blocks: Extent, parts: Sequence[NestResults]
) -> States | Diagnostic:
    """What follows from splits for the results of all parts.

    Those of which nobody reads an element, but their shape at most, are split in the first way.
    """
    own = dict(splits)
    while True:
        states = infer_tile_maps(graph, own, parts)
        if isinstance(states, Diagnostic):
            return states
        left = (e for part in reversed(parts) for e in part.results if e not in states)
        entry = next(left, None)
        if entry is None:
            return states
        found = by_blocks(known_shape(entry)).get(blocks)
        if not found:
            data = {"value": entry.name, "blocks": blocks}
            return Diagnostic("tile.value_blocks", data, (entry.node.label,))
        own[entry] = found[0]
