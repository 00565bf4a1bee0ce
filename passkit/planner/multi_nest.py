"""Stitching: groups of several iteration spaces as one kernel, whose tiles own what they pass on.

Every value that leaves a part is shared out over the tiles in the same way that its readers are: a
tile computes what it reads. So parts meet in scratch arrays, and no tile waits for another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from typing import TypeVar

from attrs import evolve

from passkit.analysis.domain import reduced_axes_of
from passkit.analysis.group import Group
from passkit.analysis.infer import NestResults, TileMaps
from passkit.analysis.nest_partitions import nest_partitions
from passkit.analysis.nests import NestNodes, contract_of, nest_outputs, without
from passkit.analysis.slots import TileArray, assign_offsets, fit
from passkit.analysis.tile_layout import TileLayout, padded_to_vectors
from passkit.analysis.tilemap import TileMap, guessed
from passkit.analysis.tiling_search import AgreedTiling, TilingSearch, completed, roots_of
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.graph.op import FContract
from passkit.graph.quotient import live_ins
from passkit.schedule.bounds import LowerBound
from passkit.schedule.liveness import arrays_of
from passkit.schedule.nest_info import NestInfo, analyze_nest, crooked, part_schedules
from passkit.schedule.schedule import MultiNest, Schedule, TileNest
from passkit.schedule.shared_plan import ROOM, tile_parts
from passkit.schedule.tile_costs import part_seconds, product_seconds, tile_seconds
from passkit.schedule.tiling import Composition
from passkit.target import Target
from passkit.values.size import Extent, Size, at_least, has_size, numel

T = TypeVar("T", Schedule, "Schedule | Diagnostic")

_Made = tuple[TileNest, NestInfo | None, float]
"""A part, its space if it has one of its own, and its seconds."""
_Known = tuple[tuple[Node, ...], tuple[TileLayout | None, ...], Extent, tuple[Node, ...]]
"""What that follows from: its nodes, what a tile has of values it leaves and reads, how many tiles
there are, and what it does without."""


def has_contraction(graph: Graph) -> bool:
    """Whether a group has more than one iteration space by its nature."""
    return any(n.op is not None and FContract.get(n.op.name) is not None for n in graph.nodes)


Choose = Callable[[Sequence[Entry], Mapping[Node, TileLayout], Sequence[Schedule]], Schedule]
"""Which of the schedules of a part to take, with its results and what a tile owns of them."""


def first(
    values: Sequence[Entry], layouts: Mapping[Node, TileLayout], plans: Sequence[Schedule]
) -> Schedule:
    """The best schedule of a part as a rule."""
    return plans[0]


def last(
    values: Sequence[Entry], layouts: Mapping[Node, TileLayout], plans: Sequence[Schedule]
) -> Schedule:
    """The other one, where there are two."""
    return plans[-1]


def plan_multi_nest(group: Group, target: Target) -> Schedule | Diagnostic:
    """The quickest schedule of a stitched kernel by the model, or why there is none."""
    best: Schedule | None = None
    why = Diagnostic("memory.nests")
    for least, found in _ways(group, target, first):
        if best is not None and least >= best.seconds:
            break
        if isinstance(found, Diagnostic):
            why = _rather(why, found)
        elif best is None or found.seconds < best.seconds:
            best = found
    return why if best is None else _told(group, best)


def multi_nest_schedules(
    group: Group, target: Target, choose: Choose
) -> Iterator[Schedule | Diagnostic]:
    """For ways to split the results the schedule, or why there is none; the most promising first.

    Splits are those on which the results agree by their numbers of tiles.
    """
    return (_told(group, found) for _, found in _ways(group, target, choose))


def _told(group: Group, found: T) -> T:
    """A schedule that has no seconds where they are not known: they were for comparing."""
    unknown = any(has_size(e.shape) for n in group.graph.nodes for e in n.entries)
    return evolve(found, seconds=0.0) if unknown and isinstance(found, Schedule) else found


def _ways(
    group: Group, target: Target, choose: Choose
) -> Iterator[tuple[float, Schedule | Diagnostic]]:
    """The same with the seconds that each takes at least by the model, in their order.

    Schedules have seconds even where sizes are unknown: those of usual ones.
    """
    refused = _refused(group.graph)
    if refused is not None:
        yield 0.0, refused
        return
    plans = []
    for pieces in nest_partitions(group.graph):
        moved = derived_outputs(group.graph, pieces)
        plans += [_Plan(group, pieces, target, choose, f) for f in ({}, moved)[: 1 + bool(moved)]]
    tried, done = Counter[tuple[_Plan, Extent]](), list[tuple[AgreedTiling, _Plan]]()
    for found, plan in merge(*(p.agreed() for p in plans), key=lambda pair: pair[0].bound):
        if tried.total() == target.tiling.ways:
            break
        if tried[plan, found.tiles] == target.tiling.ways_of_a_count:
            continue
        # A result that follows another lies as it did where it had a split of its own.
        if any(p.whole is plan.whole and found.is_part_of(other) for other, p in done):
            continue
        tried[plan, found.tiles] += 1
        made = plan.schedule(found)
        if isinstance(made, Schedule):
            done.append((found, plan))
        yield found.bound, made
    if not tried:  # else what was in the way of those that agreed tells more
        for plan in plans:
            yield from ((0.0, why) for why in plan.refused)


def multi_nest_schedule(
    group: Group,
    pieces: Sequence[NestNodes],
    target: Target,
    roots: Mapping[Entry, TileMap],
    choose: Choose,
    following: Mapping[Entry, Entry],
) -> Schedule | Diagnostic:
    """The schedule that splits results in a given way, or what is in its way."""
    plan = _Plan(group, pieces, target, choose, following)
    tiles = next(iter(roots.values())).tiles
    maps = completed(group.graph, roots, tiles, plan.shares(plan.whole))
    if isinstance(maps, Diagnostic):
        return maps
    return _told(group, plan.schedule(AgreedTiling(roots, maps, tiles, 0.0)))


def _refused(graph: Graph) -> Diagnostic | None:
    fixed: set[Node] = set()
    for n in graph.nodes:
        if n.op is not None and FContract.get(n.op.name) is not None:
            if contract_of(n) is None:
                return Diagnostic("op.library", {"op": n.label}, (n.label,))
            if any(e.node in fixed for e in n.inputs):
                return Diagnostic("op.constant_operand", {"op": n.label}, (n.label,))
        if n.op is not None and all(e.node in fixed for e in n.inputs):
            fixed.add(n)
    if any(is_leaf(e.node) for e in graph.outputs):
        return Diagnostic("graph.output_is_input")
    return None


def heaviest(graph: Graph, following: Mapping[Entry, Entry]) -> list[Entry]:
    """The results of a group, or what they follow, each once, the largest first."""
    wanted = dict.fromkeys(following.get(e, e) for e in graph.outputs)
    return sorted(wanted, key=_weight, reverse=True)


def _rather(why: Diagnostic, other: Diagnostic) -> Diagnostic:
    """The more telling of two reasons: one that names an operator, or what needs the least."""
    if why.at or other.at:
        return why if why.at else other
    least, need = (d.data.get("guess", d.data.get("need")) for d in (why, other))
    less = isinstance(least, int) and (not isinstance(need, int) or least <= need)
    return why if less else other


def derived_outputs(graph: Graph, pieces: Sequence[NestNodes]) -> dict[Entry, Entry]:
    """Results that may lie wherever the tiles of the one value fall that their part reads.

    So are heads of attention put side by side: no tile owns rows, or columns, of the result. What
    is not moved lies there anyway.
    """
    found: dict[Entry, Entry] = {}
    for piece in pieces:
        read = [e for e in live_ins(graph, piece.nodes) if not is_leaf(e.node)]
        users = (u for n in piece.owns for e in n.entries for u in graph.users.get(e, ()))
        folds = piece.product or any(reduced_axes_of(n) is not None for n in piece.nodes)
        moves = any(n.op is not None and n.op.has_attr("FElement") for n in piece.nodes)
        if len(read) == 1 and moves and not folds and all(u in piece.nodes for u in users):
            found.update({e: read[0] for e in graph.outputs if e.node in piece.owns})
    return found


def _weight(entry: Entry) -> int:
    size = numel(known_shape(entry))
    return size if isinstance(size, int) else 1 << 62


class _Plan:
    """The ways to run a group as a stitched kernel, in which some results follow others."""

    def __init__(
        self,
        group: Group,
        pieces: Sequence[NestNodes],
        target: Target,
        choose: Choose,
        following: Mapping[Entry, Entry],
    ) -> None:
        self.group, self.graph, self.whole, self.target = group, group.graph, pieces, target
        self.choose, self.following = choose, following
        self.number = self.graph.positions
        self.best: Schedule | None = None
        self.refused: Sequence[Diagnostic] = ()
        self.made: dict[_Known, _Made | Diagnostic] = {}

    def shares(self, pieces: Sequence[NestNodes]) -> list[NestResults]:
        """Parts with what they leave that does not follow something else."""
        found = []
        for piece, values in zip(pieces, nest_outputs(self.graph, pieces), strict=True):
            own = [e for e in values if e not in self.following]
            if own:
                found.append(NestResults(piece.nodes, own))
        return found

    def agreed(self) -> Iterator[tuple[AgreedTiling, _Plan]]:
        """The ways to split the results, each with the plan that it is of."""
        final = roots_of(self.graph, [NestResults(p.nodes, ()) for p in self.whole])
        wanted = dict.fromkeys(self.following.get(e, e) for e in final)
        roots = sorted(wanted, key=_weight, reverse=True)
        results = dict(zip(self.whole, nest_outputs(self.graph, self.whole), strict=True))
        least = LowerBound(self.group, results, self.target)
        search = TilingSearch(self.graph, roots, self.shares(self.whole), least)
        self.refused = search.refused
        yield from ((found, self) for found in search)

    def schedule(self, found: AgreedTiling) -> Schedule | Diagnostic:
        """The whole schedule that splits results in a given way, or what is in its way."""

        def arrays(dropped: tuple[int, ...]) -> Sequence[TileArray] | Diagnostic:
            made = self._without(found, [self.graph.nodes[k] for k in dropped])
            if isinstance(made, Diagnostic) or not self.target.grows:
                return made
            return [evolve(a, nbytes=guessed(a.nbytes)) for a in made]

        limit = self.target.scratch
        self.roomy = True
        made = arrays(())
        if isinstance(made, Diagnostic):
            return made
        if not at_least(limit, assign_offsets(made, ROOM).nbytes):
            self.roomy = False  # what rows have to spare is given up before any array is
            shared = fit(arrays, limit, ROOM)
            if isinstance(shared, Diagnostic):
                return shared
            if isinstance(shared.nbytes, Size):
                return Diagnostic(
                    "memory.unknown",
                    {
                        "need": shared.nbytes,
                        "target": self.target.name,
                        "sizes": ", ".join(sorted(shared.nbytes.symbols)),
                    },
                )
        assert self.best is not None
        return self.best

    def _without(
        self, found: AgreedTiling, dropped: Sequence[Node]
    ) -> Sequence[TileArray] | Diagnostic:
        """The arrays of the schedule in which some values have none; it is the ``best`` then."""
        self.dropped = dropped
        pieces = self._pieces(dropped)
        if isinstance(pieces, Diagnostic):
            return pieces
        self.pieces = pieces
        results = nest_outputs(self.graph, pieces)
        maps = self._maps(found, dropped)
        if isinstance(maps, Diagnostic):
            return maps
        made = self._laid(results, maps, found.tiles)
        if isinstance(made, Diagnostic):
            return made
        layouts, parted = made
        parts, laid = tuple(f[0] for f in parted), [f[1] for f in parted]
        seconds = sum(f[2] for f in parted)
        owned = [e.node for values in results for e in values if e.node in layouts]
        kept = [(self.number[n], layouts[n]) for n in owned]
        tiles = found.tiles
        multi_nest = MultiNest(parts, tuple(sorted(kept, key=lambda k: k[0])), tiles)
        arrays = arrays_of(self.group, multi_nest, tile_parts(self.group, multi_nest, laid))[0]
        scratch = assign_offsets(arrays, ROOM).nbytes
        split = maps[heaviest(self.graph, self.following)[0]].triple()
        assert split is not None
        self.best = Schedule(
            *(Composition.MULTI_NEST, (), split, None, (), ()),
            seconds=tile_seconds(seconds, tiles, len(parts), scratch, self.target),
            multi_nest=evolve(multi_nest, scratch=scratch),
        )
        return arrays

    def _pieces(self, dropped: Sequence[Node]) -> Sequence[NestNodes] | Diagnostic:
        """The parts, where some values are computed again by who reads them."""
        if not dropped:
            return self.whole
        followed = [e.node for e in self.following.values() if e.node in dropped]
        if followed:
            name = followed[0].label
            return Diagnostic("recompute.followed", {"value": name}, (name,))
        left = {e.node for values in nest_outputs(self.graph, self.whole) for e in values}
        pieces = without(self.graph, self.whole, left, dropped)
        if isinstance(pieces, Diagnostic):
            return pieces
        while not all(results := nest_outputs(self.graph, pieces)):
            pieces = [p for p, values in zip(pieces, results, strict=True) if values]
        return pieces

    def _maps(self, found: AgreedTiling, dropped: Sequence[Node]) -> TileMaps | Diagnostic:
        """What a tile has of all values that parts leave, for the splits of some."""
        shares = self.shares(self.pieces)
        if not dropped and all(e in found.maps for part in shares for e in part.results):
            return found.maps
        return completed(self.graph, found.roots, found.tiles, shares)

    def _laid(
        self, results: Sequence[Sequence[Entry]], maps: TileMaps, tiles: Extent
    ) -> tuple[dict[Node, TileLayout], list[_Made]] | Diagnostic:
        """The parts; rows are whole vectors in scratch where there is room and no part minds."""
        layouts = {e.node: TileLayout(tile_map) for e, tile_map in maps.items()}
        passed = {e.node for p in self.pieces for e in live_ins(self.graph, p.nodes)}
        vector = self.target.lanes if self.roomy else 1
        wide = {n: padded_to_vectors(r, vector) if n in passed else r for n, r in layouts.items()}
        while any(r.pitch is not None for r in wide.values()):
            found = self._parts(results, wide, tiles)
            if isinstance(found, Diagnostic):
                break
            bent: set[Node] = set()
            for (_, laid, _), values in zip(found, results, strict=True):
                if laid is not None:
                    bent |= crooked(laid, wide, [e.node for e in values])
            if not bent:
                return wide, found
            wide |= {n: layouts[n] for n in bent}
        found = self._parts(results, layouts, tiles)
        return found if isinstance(found, Diagnostic) else (layouts, found)

    def _parts(
        self, results: Sequence[Sequence[Entry]], layouts: Mapping[Node, TileLayout], tiles: Extent
    ) -> list[_Made] | Diagnostic:
        made: list[_Made] = []
        for piece, values in zip(self.pieces, results, strict=True):
            read = [e.node for e in live_ins(self.graph, piece.nodes)]
            own = tuple(layouts.get(n) for n in (*(e.node for e in values), *read))
            key = tuple(piece.nodes), own, tiles, tuple(self.dropped)
            found = self.made.get(key)
            if found is None:
                found = self.made[key] = self._part(piece, values, layouts, tiles)
            if isinstance(found, Diagnostic):
                return found
            made.append(found)
        return made

    def _part(
        self,
        piece: NestNodes,
        values: Sequence[Entry],
        layouts: Mapping[Node, TileLayout],
        tiles: Extent,
    ) -> _Made | Diagnostic:
        nodes = tuple(self.number[n] for n in piece.nodes)
        results = tuple(self.number[e.node] for e in values)
        if piece.product:
            contract = contract_of(piece.nodes[0])
            assert contract is not None
            seconds = product_seconds(contract, layouts[piece.nodes[0]].tile_map, self.target)
            return TileNest(nodes, results, None), None, seconds
        laid = analyze_nest(self.group, piece.nodes, [e.node for e in values], layouts)
        if isinstance(laid, Diagnostic):
            return laid
        dropped = {self.graph.names[n] for n in self.dropped}
        again = [n for n, name in laid.group.origin.items() if name in dropped]
        plans = part_schedules(laid, self.target, again)
        if isinstance(plans, Diagnostic):
            return plans
        plan = self.choose(values, layouts, plans)
        return TileNest(nodes, results, plan), laid, part_seconds(laid, plan, tiles, self.target)
