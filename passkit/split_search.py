"""The search for splits that all outputs of a group agree on, by their common numbers of blocks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice, product

from attrs import frozen

from passkit.consistency import Conflict, States, consistent
from passkit.graph import Graph
from passkit.node import Entry, known_shape
from passkit.op import TOpCost
from passkit.size import Extent, Shape
from passkit.space import is_free
from passkit.split import Split, State, legal_splits

COMBINATIONS = 256
"""The most combinations of splits that are tried for one number of blocks."""

Cost = Callable[[Entry, State], float]


@frozen
class Chosen:
    """The cheapest splits found, what follows from them, and what the search took.

    ``tried`` combinations were asked whether they are consistent, ``evaluated`` costs looked up.
    """

    splits: Mapping[Entry, Split]
    states: States
    blocks: Extent
    seconds: float
    tried: int
    evaluated: int


def roots_of(graph: Graph) -> tuple[Entry, ...]:
    """The outputs that nothing else in the group reads: those whose splits are chosen."""
    return tuple(
        dict.fromkeys(
            e for e in graph.outputs if not is_free(e.node) and not graph.users.get(e, ())
        )
    )


def search(
    graph: Graph,
    materialised: Collection[Entry],
    cost: Cost,
    *,
    candidates: Callable[[Shape], Sequence[Split]] = legal_splits,
    strict: bool = False,
    replicated: Collection[Entry] = (),
) -> Chosen | Conflict:
    """The splits of a group's roots with the least sum of costs, or why there are none.

    Only numbers of blocks that all roots can have are tried, the largest first. ``cost`` gives the
    seconds of a value in a state, not below 0; light operators are not asked for. The sum is given
    up where it reaches the best so far, so of equal ones the first stays: more blocks, Row before
    Column.
    """
    roots = roots_of(graph)
    by_blocks = [_by_blocks(known_shape(e), candidates) for e in roots]
    common = [n for n in by_blocks[0] if all(n in m for m in by_blocks)] if roots else []
    best: Chosen | None = None
    last = Conflict("block_count", "the outputs have no number of blocks in common")
    tried = evaluated = 0
    for blocks in common:
        for splits in combinations(roots, [m[blocks] for m in by_blocks]):
            tried += 1
            states = consistent(graph, splits, materialised, strict=strict, replicated=replicated)
            if isinstance(states, Conflict):
                last = states
                continue
            total = 0.0
            for entry, state in states.items():
                if best is not None and total >= best.seconds:
                    break
                if not is_light(entry):
                    total += cost(entry, state)
                    evaluated += 1
            if best is None or total < best.seconds:
                best = Chosen(splits, states, blocks, total, tried, evaluated)
    if best is None:
        return last
    return Chosen(best.splits, best.states, best.blocks, best.seconds, tried, evaluated)


def is_light(entry: Entry) -> bool:
    """Whether a value's operator costs so little that its split does not matter."""
    op = entry.node.op
    return op is None or TOpCost.get(op.name) == "light"


def _by_blocks(
    shape: Shape, candidates: Callable[[Shape], Sequence[Split]]
) -> dict[Extent, list[Split]]:
    """The splits of a shape by how many blocks they have, in the order of the candidates."""
    found: dict[Extent, list[Split]] = {}
    for split in candidates(shape):
        found.setdefault(split.blocks(shape), []).append(split)
    return found


def combinations(
    roots: Sequence[Entry], choices: Sequence[Sequence[Split]]
) -> Iterator[dict[Entry, Split]]:
    """One split for each root: first those that are one for all roots of a shape, then any."""
    shapes = {known_shape(e): c for e, c in zip(roots, choices, strict=True)}
    alike = (dict(zip(shapes, found, strict=True)) for found in product(*shapes.values()))
    first = (tuple(found[known_shape(e)] for e in roots) for found in alike)
    seen: set[tuple[Split, ...]] = set()
    for ordered in (first, product(*choices)):
        for splits in islice(ordered, COMBINATIONS):
            if splits not in seen and len(seen) < COMBINATIONS:
                seen.add(splits)
                yield dict(zip(roots, splits, strict=True))
