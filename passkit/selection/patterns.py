"""Patterns: sets of operators that one kernel might compute, made in two ways.

Substitution cuts a graph at operators of some classes; what has the same number of cuts above it
cannot wait for itself. Exploration grows patterns around the operators that touch most memory, an
operator at a time, and finds what lies across such cuts.

Source: FusionStitching (2019), Algorithms 1 and 2, with what their listings leave open: operators
in front of the first cut, memo and budget.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import Enum, auto

from passkit.selection.units import Units


class Kind(Enum):
    """What an operator is to plans."""

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
"""The classes that cut, from few to all but elementwise operators."""
LARGEST = 64
"""Operators of a pattern at most; longer ones are cut in the order in which they run."""
BUDGET, OPERANDS = 2000, 10
"""Patterns that are explored at most, around operators of at most so many operands."""

Members = frozenset[int]


def substitution(
    needs: Sequence[Collection[int]], kinds: Sequence[Kind], cuts: Collection[Kind]
) -> Iterator[Members]:
    """What lies between two cuts and hangs together, in pieces of at most `LARGEST`."""
    depth: list[int] = []
    for found in needs:
        depth.append(max((depth[n] + (kinds[n] in cuts) for n in found), default=0))
    inside = [k for k, kind in enumerate(kinds) if kind not in cuts]
    for body in _components(needs, inside, depth):
        for first in range(0, len(body), LARGEST):
            if len(piece := body[first : first + LARGEST]) > 1:
                yield frozenset(piece)


def _components(
    needs: Sequence[Collection[int]], inside: Iterable[int], depth: Sequence[int]
) -> list[list[int]]:
    """Operators of one depth that values lead between, whichever way."""
    root = {k: k for k in inside}

    def find(k: int) -> int:
        while root[k] != k:
            root[k] = root[root[k]]
            k = root[k]
        return k

    for k in root:
        for n in needs[k]:
            if n in root and depth[n] == depth[k]:
                root[find(k)] = find(n)
    found: dict[int, list[int]] = {}
    for k in root:
        found.setdefault(find(k), []).append(k)
    return list(found.values())


def exploration(
    units: Units,
    kinds: Sequence[Kind],
    seeds: Iterable[int],
    budget: int = BUDGET,
    limit: Callable[[Members], bool] = lambda _: True,
) -> Iterator[Members]:
    """What grows around the seeds by one operator at a time, with all that stands between, once.

    ``units`` are single operators. What does not keep to the ``limit`` grows no further; so many
    patterns as the ``budget`` allows are shared out evenly over the seeds.
    """
    given = [s for s in dict.fromkeys(seeds) if _may_grow(units, kinds, s)]
    met: set[Members] = set()
    for k, seed in enumerate(given):
        room = (budget - len(met)) // (len(given) - k)
        todo = [frozenset((seed,))]
        for body in todo:
            for more in sorted(_around(units, body)):
                if room == 0:
                    break
                grown = _closed(units, body | {more})
                if not all(_may_grow(units, kinds, v) for v in grown):
                    continue
                if len(grown) > LARGEST or grown in met or not limit(grown):
                    continue
                met.add(grown)
                room -= 1
                todo.append(grown)
                yield grown


def _may_grow(units: Units, kinds: Sequence[Kind], k: int) -> bool:
    return kinds[k] not in _ALWAYS and len(units.before[k]) <= OPERANDS


def _around(units: Units, body: Members) -> set[int]:
    """The producers and consumers of operators."""
    return {n for k in body for n in units.before[k] | units.after[k]} - body


def _closed(units: Units, body: Members) -> Members:
    """Operators, and those on ways from one of them to another."""
    return body | units.between(body)
