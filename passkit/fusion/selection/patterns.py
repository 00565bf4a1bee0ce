"""Patterns: sets of operators that one kernel might compute, generated in two ways.

Substitution cuts a graph at operators of some kinds; operators with equally many cuts above them
make no cycle. Exploration grows patterns around the operators that access most memory, by an
operator at a time, and finds patterns across such cuts.

Source: FusionStitching (2019), Algorithms 1 and 2, with details that their listings leave open:
operators before the first cut, memoization and budget.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import Enum, auto

from passkit.graph.merge_graph import MergeGraph


class Kind(Enum):
    """The kind of an operator in patterns."""

    LIGHT = auto()
    EXPENSIVE = auto()
    ROW = auto()
    SCALAR = auto()
    COLUMN = auto()
    PRODUCT = auto()
    """A product of matrices that a kernel may compute."""
    LIBRARY = auto()
    OPAQUE = auto()


_ALWAYS = frozenset((Kind.LIBRARY, Kind.OPAQUE))
LADDER = (
    _ALWAYS,
    _ALWAYS | {Kind.PRODUCT},
    _ALWAYS | {Kind.PRODUCT, Kind.COLUMN},
    _ALWAYS | {Kind.PRODUCT, Kind.COLUMN, Kind.SCALAR},
    _ALWAYS | {Kind.PRODUCT, Kind.COLUMN, Kind.SCALAR, Kind.ROW},
)
"""Sets of kinds at which graphs are cut, from few to all but elementwise operators."""
LARGEST = 64
"""The most operators of a pattern; longer ones are cut in the order in which they run."""
BUDGET, OPERANDS = 2000, 10
"""The most patterns that are explored, and the most operands of an operator in them."""

Members = frozenset[int]


def substitution(
    predecessors: Sequence[Collection[int]], kinds: Sequence[Kind], cuts: Collection[Kind]
) -> Iterator[Members]:
    """Yield the connected sets between two cuts, in pieces of at most `LARGEST`.

    Args:
        predecessors: for each operator, in a topological order, those that must run before it.
        kinds: the kinds of operators.
        cuts: the kinds at which the graph is cut.
    """
    depth: list[int] = []
    for before in predecessors:
        depth.append(max((depth[n] + (kinds[n] in cuts) for n in before), default=0))
    inside = [k for k, kind in enumerate(kinds) if kind not in cuts]
    for body in _components(predecessors, inside, depth):
        for first in range(0, len(body), LARGEST):
            if len(piece := body[first : first + LARGEST]) > 1:
                yield frozenset(piece)


def _components(
    predecessors: Sequence[Collection[int]], inside: Iterable[int], depth: Sequence[int]
) -> list[list[int]]:
    """Return the connected components of operators of one depth."""
    root = {k: k for k in inside}

    def find(k: int) -> int:
        """Return the operator that stands for the component of one."""
        while root[k] != k:
            root[k] = root[root[k]]
            k = root[k]
        return k

    for k in root:
        for n in predecessors[k]:
            if n in root and depth[n] == depth[k]:
                root[find(k)] = find(n)
    components: dict[int, list[int]] = {}
    for k in root:
        components.setdefault(find(k), []).append(k)
    return list(components.values())


def exploration(
    graph: MergeGraph,
    kinds: Sequence[Kind],
    seeds: Iterable[int],
    budget: int = BUDGET,
    limit: Callable[[Members], bool] = lambda _: True,
) -> Iterator[Members]:
    """Yield patterns that grow around seeds by an operator, and all on paths to it, each once.

    Args:
        graph: the operators.
        kinds: their kinds.
        seeds: the operators to begin with.
        budget: the most patterns, which are evenly divided among the seeds.
        limit: returns whether a pattern is possible; others do not grow.
    """
    starts = [s for s in dict.fromkeys(seeds) if _may_grow(graph, kinds, s)]
    seen: set[Members] = set()
    for k, seed in enumerate(starts):
        room = (budget - len(seen)) // (len(starts) - k)
        todo = [frozenset((seed,))]
        for body in todo:
            for neighbour in sorted(_neighbours(graph, body)):
                if room == 0:
                    break
                grown = _closed(graph, body | {neighbour})
                if not all(_may_grow(graph, kinds, v) for v in grown):
                    continue
                if len(grown) > LARGEST or grown in seen or not limit(grown):
                    continue
                seen.add(grown)
                room -= 1
                todo.append(grown)
                yield grown


def _may_grow(graph: MergeGraph, kinds: Sequence[Kind], k: int) -> bool:
    """Return whether patterns may have an operator."""
    return kinds[k] not in _ALWAYS and len(graph.predecessors[k]) <= OPERANDS


def _neighbours(graph: MergeGraph, body: Members) -> set[int]:
    """Return the producers and consumers of operators."""
    return {n for k in body for n in graph.predecessors[k] | graph.successors[k]} - body


def _closed(graph: MergeGraph, body: Members) -> Members:
    """Return operators, and those on paths between them."""
    return body | graph.between(body)
