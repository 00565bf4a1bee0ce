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
from passkit.size import Extent, Size, numel
from passkit.space import Infeasible, folding_of, is_free
from passkit.split import Reject, Split, SplitKind, State, Whole, join, legal_splits
from passkit.stitching.cutting import Piece, contract_of, cut, reads_of_part
from passkit.stitching.parts import LaidPart, lay_part, part_schedules
from passkit.stitching.regions import Region
from passkit.target import Target
from passkit.tiling import Composition

FLOPS = 6e10
"""Steps of products of matrices that a core takes in a second, from its caches."""
TURN = 1e-7
"""Seconds that a part of a tile takes besides its work: a handful of loops begin and end."""


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
            why = found if why.node is None else why
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
        self.group, self.graph, self.pieces, self.target = group, group.graph, pieces, target
        self.choose, self.following = choose, following
        self.states: dict[Entry, State] = {}
        self.number = self.graph.positions

    def schedule(self, splits: Mapping[Entry, Split]) -> Schedule | Infeasible:
        """The whole schedule, or the first thing that is in its way."""
        root = heaviest(self.graph, self.following)[0]
        split = splits[root]
        tiles = split.blocks(known_shape(root))
        for entry, own in splits.items():
            if own.blocks(known_shape(entry)) != tiles:
                return Infeasible(
                    "no_common_block_count",
                    f"{entry.name} has {own.blocks(known_shape(entry))} tiles, {root.name} {tiles}",
                    entry.node,
                )
        self.states.update(splits)
        results = [self._results(p) for p in self.pieces]
        for piece, values in reversed(list(zip(self.pieces, results, strict=True))):
            if any(e in self.following for e in values):
                continue
            problem = self._agree(values, tiles) or self._ask(piece, values)
            if problem is not None:
                return problem
        regions = {e.node: region_of(known_shape(e), s) for e, s in self.states.items()}
        parts, seconds = [], 0.0
        for piece, values in zip(self.pieces, results, strict=True):
            found = self._part(piece, values, regions, tiles)
            if isinstance(found, Infeasible):
                return found
            parts.append(found[0])
            seconds += found[1]
        left = [e.node for values in results for e in values if e.node in regions]
        kept = [(self.number[n], regions[n]) for n in left]
        stitching = Stitching(tuple(parts), tuple(sorted(kept, key=lambda k: k[0])), tiles)
        scratch = sum((r.size * 8 for r in regions.values()), start=0)
        if isinstance(scratch, Size) or scratch > self.target.scratch:
            return Infeasible("shared_over_limit", f"a tile needs {scratch} bytes of scratch")
        if isinstance(tiles, int):
            seconds = (seconds + tiles * len(parts) * TURN) * imbalance(tiles)
        return Schedule(
            Composition.STITCHED, (), split, None, (), (), seconds=seconds, stitching=stitching
        )

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
    ) -> tuple[PartPlan, float] | Infeasible:
        nodes = tuple(self.number[n] for n in piece.nodes)
        results = tuple(self.number[e.node] for e in values)
        if piece.product:
            return PartPlan(nodes, results, None), self._product_seconds(
                piece.nodes[0], regions[piece.nodes[0]], tiles
            )
        laid = lay_part(self.group, piece.nodes, [e.node for e in values], regions)
        if isinstance(laid, Infeasible):
            return laid
        plans = part_schedules(laid, self.target)
        if isinstance(plans, Infeasible):
            return plans
        plan = self.choose(values, regions, plans)
        return PartPlan(nodes, results, plan), plan.seconds * _repeated(laid, tiles)

    def _product_seconds(self, node: Node, region: Region, tiles: Extent) -> float:
        contract = contract_of(node)
        assert contract is not None
        steps = region.size * tiles * contract.k
        return steps / FLOPS if isinstance(steps, int) else 0.0


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


def _repeated(laid: LaidPart, tiles: Extent) -> float:
    """How often the points of a part are computed, with lanes that stand idle."""
    space = laid.layout.space
    points: Extent = tiles
    for axis in space.axes:
        length = laid.tract.length(axis)
        if axis is space.axes[-1] and isinstance(length, int):
            length = -(-length // 16) * 16
        points = points * length
    if isinstance(points, Size) or isinstance(space.size, Size):
        return 1.0
    return points / max(1, space.size)


def imbalance(tiles: int) -> float:
    """How much longer threads take that have too few tiles to share them evenly."""
    return 1.0 + 2.0 / tiles

