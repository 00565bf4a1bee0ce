"""Stitching: groups of several iteration spaces as one kernel, whose tiles own what they pass on.

Every value that leaves a part is shared out over the tiles in the same way that its readers are: a
tile computes what it reads. So parts meet in scratch arrays, and no tile waits for another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from passkit.graph import Graph
from passkit.group import Group
from passkit.node import Entry, Node, known_shape
from passkit.op import FContract
from passkit.propagate import operand_states
from passkit.schedule import PartPlan, Schedule, Stitching
from passkit.shared import ROOM, tile_parts
from passkit.sharing import Array, arranged, share
from passkit.size import Extent, Size, at_least, numel
from passkit.space import Infeasible, folding_of, is_free
from passkit.split import Reject, Split, SplitKind, State, Whole, join, legal_splits
from passkit.stitching.costs import part_seconds, product_seconds, tile_seconds
from passkit.stitching.cutting import Piece, contract_of, cut, reads_of_part, without
from passkit.stitching.lives import arrays_of
from passkit.stitching.parts import LaidPart, crooked, lay_part, part_schedules
from passkit.stitching.regions import Region, pitched
from passkit.target import Target
from passkit.tiling import Composition

_Made = tuple[PartPlan, LaidPart | None, float]
"""A part, its space if it has one of its own, and its seconds."""


def is_stitched(graph: Graph) -> bool:
    """Whether a group has more than one iteration space by its nature."""
    return any(n.op is not None and FContract.get(n.op.name) is not None for n in graph.nodes)


Choose = Callable[[Sequence[Entry], Mapping[Node, Region], Sequence[Schedule]], Schedule]
"""Which of the schedules of a part to take, with its results and what a tile owns of them."""


def first(
    values: Sequence[Entry], regions: Mapping[Node, Region], plans: Sequence[Schedule]
) -> Schedule:
    """The best schedule of a part as a rule."""
    return plans[0]


def last(
    values: Sequence[Entry], regions: Mapping[Node, Region], plans: Sequence[Schedule]
) -> Schedule:
    """The other one, where there are two."""
    return plans[-1]


def plan_stitched(group: Group, target: Target) -> Schedule | Infeasible:
    """The quickest schedule of a stitched kernel by the model, or why there is none."""
    best: Schedule | None = None
    why = Infeasible("shared", "no split of its results suits all its parts")
    for found in ways_to_stitch(group, target, first):
        if isinstance(found, Infeasible):
            why = _rather(why, found)
        elif best is None or found.seconds < best.seconds:
            best = found
    return best or why


def ways_to_stitch(
    group: Group, target: Target, choose: Choose
) -> Iterator[Schedule | Infeasible]:
    """For each way to split the heaviest result the schedule, or why there is none."""
    refused = _refused(group.graph)
    if refused is not None:
        yield refused
        return
    pieces = cut(group.graph)
    moved = followers(group.graph, pieces)
    for following in ({}, moved) if moved else ({},):
        root = heaviest(group.graph, following)[0]
        for split in legal_splits(known_shape(root)):
            yield _Plan(group, pieces, target, choose, following).schedule({root: split})


def stitch(
    group: Group,
    target: Target,
    splits: Mapping[Entry, Split],
    choose: Choose,
    following: Mapping[Entry, Entry],
) -> Schedule | Infeasible:
    """The schedule that splits results in a given way, or what is in its way."""
    return _Plan(group, cut(group.graph), target, choose, following).schedule(splits)


def _refused(graph: Graph) -> Infeasible | None:
    for n in graph.nodes:
        if n.op is not None and FContract.get(n.op.name) is not None and contract_of(n) is None:
            return Infeasible("library", f"a library computes {n.label}", n)
    if any(e.node.op is None for e in graph.outputs):
        return Infeasible("pass_through", "an output that is an input")
    return None


def heaviest(graph: Graph, following: Mapping[Entry, Entry]) -> list[Entry]:
    """The results of a group, or what they follow, each once, the largest first."""
    wanted = dict.fromkeys(following.get(e, e) for e in graph.outputs)
    return sorted(wanted, key=_weight, reverse=True)


def _rather(why: Infeasible, other: Infeasible) -> Infeasible:
    """The more telling of two reasons: one that names an operator, or what needs the least."""
    if why.node is not None or other.node is not None:
        return other if why.node is None else why
    least, need = why.data.get("need"), other.data.get("need")
    less = isinstance(least, int) and (not isinstance(need, int) or least <= need)
    return why if less else other


def followers(graph: Graph, pieces: Sequence[Piece]) -> dict[Entry, Entry]:
    """Results that may lie wherever the tiles of the one value fall that their part reads.

    So are heads of attention put side by side: no tile owns rows, or columns, of the result.
    """
    found: dict[Entry, Entry] = {}
    for piece in pieces:
        read = [e for e in reads_of_part(graph, piece.nodes) if not is_free(e.node)]
        users = (u for n in piece.owns for e in n.entries for u in graph.users.get(e, ()))
        folds = piece.product or any(folding_of(n) is not None for n in piece.nodes)
        if len(read) == 1 and not folds and all(u in piece.nodes for u in users):
            found.update({e: read[0] for e in graph.outputs if e.node in piece.owns})
    return found


def _weight(entry: Entry) -> int:
    size = numel(known_shape(entry))
    return size if isinstance(size, int) else 1 << 62


class _Plan:
    """A stitched kernel whose results are split in a given way, the heaviest of them at least."""

    def __init__(
        self,
        group: Group,
        pieces: Sequence[Piece],
        target: Target,
        choose: Choose,
        following: Mapping[Entry, Entry],
    ) -> None:
        self.group, self.graph, self.whole, self.target = group, group.graph, pieces, target
        self.choose, self.following = choose, following
        self.number = self.graph.positions
        self.best: Schedule | None = None

    def schedule(self, splits: Mapping[Entry, Split]) -> Schedule | Infeasible:
        """The whole schedule, or the first thing that is in its way."""
        root = heaviest(self.graph, self.following)[0]
        tiles = splits[root].blocks(known_shape(root))
        for entry, own in splits.items():
            if own.blocks(known_shape(entry)) != tiles:
                return Infeasible(
                    "no_common_block_count",
                    f"{entry.name} has {own.blocks(known_shape(entry))} tiles, {root.name} {tiles}",
                    entry.node,
                )

        def arrays(dropped: tuple[int, ...]) -> Sequence[Array] | Infeasible:
            return self._without(splits, root, [self.graph.nodes[k] for k in dropped])

        limit = self.target.scratch
        self.roomy = True
        found = arrays(())
        if isinstance(found, Infeasible):
            return found
        if not at_least(limit, arranged(found, ROOM).nbytes):
            self.roomy = False  # what rows have to spare is given up before any array is
            shared = share(arrays, limit, ROOM)
            if isinstance(shared, Infeasible):
                return shared
            if isinstance(shared.nbytes, Size):
                reason = f"a tile needs {shared.nbytes} bytes of scratch"
                return Infeasible("shared_over_limit", reason)
        assert self.best is not None
        return self.best

    def _without(
        self, splits: Mapping[Entry, Split], root: Entry, dropped: Sequence[Node]
    ) -> Sequence[Array] | Infeasible:
        """The arrays of the schedule in which some values have none; it is the ``best`` then."""
        split = splits[root]
        self.states: dict[Entry, State] = {**splits}
        self.dropped, self.pieces = dropped, self.whole
        results = [self._results(p) for p in self.pieces]
        followed = [e.node for e in self.following.values() if e.node in dropped]
        if followed:
            return Infeasible("operand", f"a result lies as {followed[0].label} does", followed[0])
        if dropped:
            left = {e.node for values in results for e in values}
            pieces = without(self.graph, self.whole, left, dropped)
            if isinstance(pieces, Infeasible):
                return pieces
            self.pieces = pieces
            while not all(results := [self._results(p) for p in self.pieces]):
                self.pieces = [p for p in self.pieces if self._results(p)]
        tiles = split.blocks(known_shape(root))
        for piece, values in reversed(list(zip(self.pieces, results, strict=True))):
            if any(e in self.following for e in values):
                continue
            problem = self._agree(values, tiles) or self._ask(piece, values)
            if problem is not None:
                return problem
        made = self._laid(results, tiles)
        if isinstance(made, Infeasible):
            return made
        regions, found = made
        parts, laid = tuple(f[0] for f in found), [f[1] for f in found]
        seconds = sum(f[2] for f in found)
        owned = [e.node for values in results for e in values if e.node in regions]
        kept = [(self.number[n], regions[n]) for n in owned]
        stitching = Stitching(parts, tuple(sorted(kept, key=lambda k: k[0])), tiles)
        arrays = arrays_of(self.group, stitching, tile_parts(self.group, stitching, laid))[0]
        scratch = arranged(arrays, ROOM).nbytes
        self.best = Schedule(
            *(Composition.STITCHED, (), split, None, (), ()),
            seconds=tile_seconds(seconds, tiles, len(parts), scratch),
            stitching=stitching,
        )
        return arrays

    def _laid(
        self, results: Sequence[Sequence[Entry]], tiles: Extent
    ) -> tuple[dict[Node, Region], list[_Made]] | Infeasible:
        """The parts; rows are whole vectors in scratch where there is room and no part minds."""
        regions = {e.node: region_of(known_shape(e), s) for e, s in self.states.items()}
        passed = {e.node for p in self.pieces for e in reads_of_part(self.graph, p.nodes)}
        vector = self.target.lanes if self.roomy else 1
        wide = {n: pitched(r, vector) if n in passed else r for n, r in regions.items()}
        while any(r.pitch is not None for r in wide.values()):
            found = self._parts(results, wide, tiles)
            if isinstance(found, Infeasible):
                break
            bent: set[Node] = set()
            for (_, laid, _), values in zip(found, results, strict=True):
                if laid is not None:
                    bent |= crooked(laid, wide, [e.node for e in values])
            if not bent:
                return wide, found
            wide |= {n: regions[n] for n in bent}
        found = self._parts(results, regions, tiles)
        return found if isinstance(found, Infeasible) else (regions, found)

    def _parts(
        self, results: Sequence[Sequence[Entry]], regions: Mapping[Node, Region], tiles: Extent
    ) -> list[_Made] | Infeasible:
        made: list[_Made] = []
        for piece, values in zip(self.pieces, results, strict=True):
            found = self._part(piece, values, regions, tiles)
            if isinstance(found, Infeasible):
                return found
            made.append(found)
        return made

    def _results(self, piece: Piece) -> list[Entry]:
        """What of a part others read, or the caller."""
        read = {
            e for p in self.pieces if p is not piece for e in reads_of_part(self.graph, p.nodes)
        }
        wanted = read | set(self.graph.outputs)
        return [e for n in piece.nodes if n in piece.owns for e in n.entries if e in wanted]

    def _agree(self, values: Sequence[Entry], tiles: Extent) -> Infeasible | None:
        """Give results that nobody has asked for a split into as many tiles as the others have."""
        for entry in values:
            state, shape = self.states.get(entry), known_shape(entry)
            if isinstance(state, Whole) and entry in self.graph.outputs and tiles != 1:
                return Infeasible(
                    "schedule_conflict", f"{entry.name} is needed whole by every tile", entry.node
                )
            if state is None:
                found = [s for s in legal_splits(shape) if s.blocks(shape) == tiles]
                if not found:
                    return Infeasible(
                        "no_common_block_count", f"{entry.name} has no {tiles} tiles", entry.node
                    )
                self.states[entry] = found[0]
        return None

    def _ask(self, piece: Piece, values: Sequence[Entry]) -> Infeasible | None:
        """What a tile needs of the results of earlier parts, for its own of this part's."""
        inside = set(piece.nodes)
        wanted: dict[Entry, State] = {e: self.states[e] for e in values}
        for node in reversed(piece.nodes):
            entry = node.entries[0]
            if entry not in wanted:
                continue
            for operand, found in zip(
                node.inputs, operand_states(entry, wanted[entry]), strict=True
            ):
                if isinstance(found, Reject):
                    return Infeasible("op_rejects_schedule", found.reason, node)
                if found is None or is_free(operand.node):
                    continue
                into = wanted if operand.node in inside else self.states
                shape = known_shape(operand)
                known = into.get(operand)
                into[operand] = found if known is None else join(known, found, shape)
        return None

    def _part(
        self,
        piece: Piece,
        values: Sequence[Entry],
        regions: Mapping[Node, Region],
        tiles: Extent,
    ) -> _Made | Infeasible:
        nodes = tuple(self.number[n] for n in piece.nodes)
        results = tuple(self.number[e.node] for e in values)
        if piece.product:
            contract = contract_of(piece.nodes[0])
            assert contract is not None
            seconds = product_seconds(contract, regions[piece.nodes[0]], tiles)
            return PartPlan(nodes, results, None), None, seconds
        laid = lay_part(self.group, piece.nodes, [e.node for e in values], regions)
        if isinstance(laid, Infeasible):
            return laid
        dropped = {self.graph.names[n] for n in self.dropped}
        again = [n for n, name in laid.group.origin.items() if name in dropped]
        plans = part_schedules(laid, self.target, again)
        if isinstance(plans, Infeasible):
            return plans
        plan = self.choose(values, regions, plans)
        return PartPlan(nodes, results, plan), laid, part_seconds(laid, plan, tiles)


def region_of(shape: tuple[Extent, ...], state: State) -> Region:
    """What a tile owns of a value in that state."""
    if isinstance(state, Whole):
        return Region(shape, state.prefix, per=state.per)
    digits = state.digits(shape)
    if not digits:
        return Region(shape, 0)
    single = state.chunk == 1
    backwards = state.kind is SplitKind.COLUMN
    fixed = (len(shape) - 1 - state.split_dim if backwards else state.split_dim) + single
    window = None if single else state.split_dim
    return Region(shape, fixed, window, state.chunk, backwards)
