"""Plans of groups of several loop nests, which run one after the other in each tile.

The tile maps of all values that nests exchange follow from those of the results, so that a tile
computes what it reads. Nests exchange values in scratch memory, and no tile waits for another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge
from typing import TypeVar

from attrs import evolve, frozen

from passkit.analysis.domain import reduced_axes_of
from passkit.analysis.group import Group
from passkit.analysis.infer import NestResults, TileMaps
from passkit.analysis.nest_partitions import nest_partitions
from passkit.analysis.nests import NestNodes, contract_of, nest_outputs, with_recomputed
from passkit.analysis.slots import TileArray, assign_offsets, fit
from passkit.analysis.tile_layout import TileLayout, padded_to_vectors
from passkit.analysis.tilemap import TileMap, guessed
from passkit.analysis.tiling_search import AgreedTiling, TilingSearch, completed, roots_of
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf
from passkit.graph.op import FContract
from passkit.graph.quotient import live_ins
from passkit.schedule.idle import Work, total_work
from passkit.schedule.liveness import arrays_of
from passkit.schedule.lower_bound import LowerBound
from passkit.schedule.nest_info import (
    NestInfo,
    analyze_nest,
    nest_schedules,
    num_elements,
    values_off_pitch,
)
from passkit.schedule.roofline import least_bytes
from passkit.schedule.schedule import MultiNest, Schedule, TileNest
from passkit.schedule.shared_plan import ROOM, tile_parts
from passkit.schedule.tile_costs import nest_work, product_seconds, tile_seconds
from passkit.schedule.tiling import Composition
from passkit.target import Target
from passkit.values.size import Extent, Size, at_least, has_size

T = TypeVar("T", Schedule, "Schedule | Diagnostic")

Choose = Callable[[Sequence[Entry], Mapping[Node, TileLayout], Sequence[Schedule]], Schedule]
"""A choice among the schedules of a nest, for its results and a tile's parts of values."""
_NestKey = tuple[tuple[Node, ...], tuple[TileLayout | None, ...], tuple[Node, ...]]
"""The inputs of the plan of a nest: its nodes, a tile's parts of the values that it computes
and reads, and the values that are computed again."""


@frozen(eq=False)
class _PlannedNest:
    """A nest with its schedule.

    Attributes:
        nest: the nodes and the schedule.
        info: its domain and what a tile has of it; None for a matrix product.
        work: the work of all tiles, by the model.
    """

    nest: TileNest
    info: NestInfo | None
    work: Work


def has_contraction(graph: Graph) -> bool:
    """Return whether a group has an operator that is a nest of its own."""
    return any(n.op is not None and FContract.get(n.op.name) is not None for n in graph.nodes)


def first(
    results: Sequence[Entry], layouts: Mapping[Node, TileLayout], schedules: Sequence[Schedule]
) -> Schedule:
    """Choose the schedule of a nest that is the best as a rule."""
    return schedules[0]


def last(
    results: Sequence[Entry], layouts: Mapping[Node, TileLayout], schedules: Sequence[Schedule]
) -> Schedule:
    """Choose the other schedule of a nest, where there are two."""
    return schedules[-1]


def plan_multi_nest(group: Group, target: Target) -> Schedule | Diagnostic:
    """Return the fastest schedule of a group of several nests, or why there is none."""
    best: Schedule | None = None
    reason = Diagnostic("memory.nests")
    for bound, result in _schedules(group, target, first):
        if best is not None and bound >= best.seconds:
            break
        if isinstance(result, Diagnostic):
            reason = _more_telling(reason, result)
        elif best is None or result.seconds < best.seconds:
            best = result
    return reason if best is None else _without_guesses(group, best)


def multi_nest_schedules(
    group: Group, target: Target, choose: Choose
) -> Iterator[Schedule | Diagnostic]:
    """Yield the schedule of each tiling, or why it has none; the most promising tilings first."""
    return (_without_guesses(group, result) for _, result in _schedules(group, target, choose))


def multi_nest_schedule(
    group: Group,
    nests: Sequence[NestNodes],
    target: Target,
    roots: Mapping[Entry, TileMap],
    choose: Choose,
    derived: Mapping[Entry, Entry],
) -> Schedule | Diagnostic:
    """Return the schedule with given maps of results, or why there is none.

    Args:
        group: the group.
        nests: a partition of it.
        target: the machine.
        roots: the maps of results.
        choose: a choice among the schedules of a nest.
        derived: the results that follow from another value, with that value.
    """
    planner = _Planner(group, nests, target, choose, derived)
    tiles = next(iter(roots.values())).tiles
    maps = completed(group.graph, roots, tiles, planner.results_of(nests))
    if isinstance(maps, Diagnostic):
        return maps
    return _without_guesses(group, planner.schedule(AgreedTiling(roots, maps, tiles, 0.0)))


def _without_guesses(group: Group, result: T) -> T:
    """Return a schedule without seconds if these are of guessed sizes, to compare schedules by."""
    is_guessed = any(has_size(e.shape) for n in group.graph.nodes for e in n.entries)
    return evolve(result, seconds=0.0) if is_guessed and isinstance(result, Schedule) else result


def _schedules(
    group: Group, target: Target, choose: Choose
) -> Iterator[tuple[float, Schedule | Diagnostic]]:
    """Yield the lower bound of each tiling's seconds, and its schedule or why it has none.

    The least bounds come first. Seconds of unknown sizes are those of guessed ones. If none of
    those that are tried has a schedule, the fewest tiles are tried: they have one most often, and
    come last on a GPU, of which they leave multiprocessors idle.
    """
    problem = _problem(group.graph)
    if problem is not None:
        yield 0.0, problem
        return
    planners = []
    for nests in nest_partitions(group.graph):
        derived = derived_outputs(group.graph, nests)
        planners.append(_Planner(group, nests, target, choose, {}))
        if derived:
            planners.append(_Planner(group, nests, target, choose, derived))
    tried = Counter[tuple[_Planner, Extent]]()
    planned: list[tuple[AgreedTiling, _Planner]] = []
    for tiling, planner in merge(*(p.tilings() for p in planners), key=lambda pair: pair[0].bound):
        if tried.total() == target.tiling.ways:
            break
        if tried[planner, tiling.tiles] == target.tiling.ways_of_a_count:
            continue
        # A derived result lies as it did where it had a map of its own.
        if any(p.nests is planner.nests and tiling.is_part_of(other) for other, p in planned):
            continue
        tried[planner, tiling.tiles] += 1
        result = planner.schedule(tiling)
        if isinstance(result, Schedule):
            planned.append((tiling, planner))
        yield tiling.bound, result
    if tried and not planned and target.machine.in_flight_bytes:
        for planner in planners:
            for tiling, _ in planner.tilings(fewest=True):
                if not tried[planner, tiling.tiles]:
                    yield 0.0, planner.schedule(tiling)
    if not tried:  # otherwise the reasons against tilings that agree tell more
        for planner in planners:
            yield from ((0.0, reason) for reason in planner.refused)


def _problem(graph: Graph) -> Diagnostic | None:
    """Return why a group can have no schedule of several nests; None if it may have one."""
    constant: set[Node] = set()
    for n in graph.nodes:
        if n.op is not None and FContract.get(n.op.name) is not None:
            if contract_of(n) is None:
                return Diagnostic("op.library", {"op": n.label}, (n.label,))
            if any(e.node in constant for e in n.inputs):
                return Diagnostic("op.constant_operand", {"op": n.label}, (n.label,))
        if n.op is not None and all(e.node in constant for e in n.inputs):
            constant.add(n)
    if any(is_leaf(e.node) for e in graph.outputs):
        return Diagnostic("graph.output_is_input")
    return None


def heaviest(graph: Graph, derived: Mapping[Entry, Entry]) -> list[Entry]:
    """Return the results of a group, or the values that they follow from, the largest first."""
    values = dict.fromkeys(derived.get(e, e) for e in graph.outputs)
    return sorted(values, key=num_elements, reverse=True)


def _more_telling(a: Diagnostic, b: Diagnostic) -> Diagnostic:
    """Return a reason that names an operator, else the one that needs the least memory."""
    if a.at or b.at:
        return a if a.at else b
    least, need = (d.data.get("guess", d.data.get("need")) for d in (a, b))
    is_less = isinstance(least, int) and (not isinstance(need, int) or least <= need)
    return a if is_less else b


def derived_outputs(graph: Graph, nests: Sequence[NestNodes]) -> dict[Entry, Entry]:
    """Return outputs that only move the one value that their nest reads, with that value.

    Their elements may lie wherever a tile's part of the value is moved to, as heads of attention
    that are concatenated: no tile has rows, or columns, of the result.
    """
    derived: dict[Entry, Entry] = {}
    for nest in nests:
        read = [e for e in live_ins(graph, nest.nodes) if not is_leaf(e.node)]
        users = (u for n in nest.owns for e in n.entries for u in graph.users.get(e, ()))
        reduces = nest.is_product or any(reduced_axes_of(n) is not None for n in nest.nodes)
        moves = any(n.op is not None and n.op.has_attr("FElement") for n in nest.nodes)
        if len(read) == 1 and moves and not reduces and all(u in nest.nodes for u in users):
            derived.update({e: read[0] for e in graph.outputs if e.node in nest.owns})
    return derived


class _Planner:
    """The schedules of a partition of a group, in which some results are derived.

    Attributes:
        nests: the partition.
        refused: the reasons against tilings that were not found consistent.
    """

    def __init__(
        self,
        group: Group,
        nests: Sequence[NestNodes],
        target: Target,
        choose: Choose,
        derived: Mapping[Entry, Entry],
    ) -> None:
        self.group, self.graph, self.target = group, group.graph, target
        self.nests, self.choose, self.derived = nests, choose, derived
        self.moving = target.moving(least_bytes(group.graph))
        self.refused: Sequence[Diagnostic] = ()
        self.planned: dict[_NestKey, _PlannedNest | Diagnostic] = {}

    def results_of(self, nests: Sequence[NestNodes]) -> list[NestResults]:
        """Return nests with their results that have a tile map of their own."""
        results = []
        for nest, outputs in zip(nests, nest_outputs(self.graph, nests), strict=True):
            own = [e for e in outputs if e not in self.derived]
            if own:
                results.append(NestResults(nest.nodes, own))
        return results

    def tilings(self, fewest: bool = False) -> Iterator[tuple[AgreedTiling, _Planner]]:
        """Yield the tilings of the results, each with this planner; or only the fewest tiles."""
        final = roots_of(self.graph, [NestResults(p.nodes, ()) for p in self.nests])
        roots = dict.fromkeys(self.derived.get(e, e) for e in final)
        outputs = dict(zip(self.nests, nest_outputs(self.graph, self.nests), strict=True))
        bound = LowerBound(self.group, outputs, self.target)
        in_order = sorted(roots, key=num_elements, reverse=True)
        nests = self.results_of(self.nests)
        search = TilingSearch(self.graph, in_order, nests, bound, fewest)
        self.refused = search.refused
        yield from ((tiling, self) for tiling in search)

    def schedule(self, tiling: AgreedTiling) -> Schedule | Diagnostic:
        """Return the schedule of a tiling that fits into scratch memory, or why there is none.

        Rows are padded to whole vectors if there is room for it. If there is none without padding,
        values are computed again, one after the other.
        """
        limit = self.target.scratch
        padded = self._attempt(tiling, (), is_padded=True)
        if isinstance(padded, Diagnostic):
            return padded
        schedule, arrays = padded
        if at_least(limit, assign_offsets(self._sized(arrays), ROOM).nbytes):
            return schedule

        def arrays_without(dropped: tuple[int, ...]) -> Sequence[TileArray] | Diagnostic:
            nonlocal schedule
            attempt = self._attempt(tiling, [self.graph.nodes[k] for k in dropped], False)
            if isinstance(attempt, Diagnostic):
                return attempt
            schedule, arrays = attempt
            return self._sized(arrays)

        slots = fit(arrays_without, limit, ROOM)
        if isinstance(slots, Diagnostic):
            return slots
        if isinstance(slots.nbytes, Size):
            return Diagnostic(
                "memory.unknown",
                {
                    "need": slots.nbytes,
                    "target": self.target.name,
                    "sizes": ", ".join(sorted(slots.nbytes.symbols)),
                },
            )
        return schedule

    def _sized(self, arrays: Sequence[TileArray]) -> Sequence[TileArray]:
        """Return arrays with guessed sizes where a call may take more scratch than the limit."""
        if not self.target.grows:
            return arrays
        return [evolve(a, nbytes=guessed(a.nbytes)) for a in arrays]

    def _attempt(
        self, tiling: AgreedTiling, dropped: Sequence[Node], is_padded: bool
    ) -> tuple[Schedule, Sequence[TileArray]] | Diagnostic:
        """Return the schedule of a tiling and its arrays in scratch, or why there is none.

        Args:
            tiling: the tiling.
            dropped: the values that are computed again instead of stored.
            is_padded: whether rows are padded to whole vectors, where no nest forbids it.
        """
        nests = self._with_recomputed(dropped)
        if isinstance(nests, Diagnostic):
            return nests
        maps = self._maps(tiling, nests, dropped)
        if isinstance(maps, Diagnostic):
            return maps
        outputs = nest_outputs(self.graph, nests)
        pairs = list(zip(nests, outputs, strict=True))
        layouts = {e.node: TileLayout(tile_map) for e, tile_map in maps.items()}
        with_padding = self._padded(pairs, layouts, dropped) if is_padded else None
        if with_padding is None:
            planned = self._planned_nests(pairs, layouts, dropped)
            if isinstance(planned, Diagnostic):
                return planned
        else:
            layouts, planned = with_padding
        position = self.graph.positions
        stored = {
            position[e.node]: layouts[e.node] for own in outputs for e in own if e.node in layouts
        }
        in_order = tuple((k, stored[k]) for k in sorted(stored))
        multi_nest = MultiNest(tuple(p.nest for p in planned), in_order, tiling.tiles)
        parts = tile_parts(self.group, multi_nest, [p.info for p in planned])
        arrays = arrays_of(self.group, multi_nest, parts)[0]
        scratch = assign_offsets(arrays, ROOM).nbytes
        split = maps[heaviest(self.graph, self.derived)[0]].triple()
        assert split is not None
        work = total_work(p.work for p in planned)
        schedule = Schedule(
            Composition.MULTI_NEST,
            (),
            split,
            None,
            (),
            (),
            seconds=tile_seconds(
                work, tiling.tiles, len(planned), scratch, self.moving, self.target
            ),
            multi_nest=evolve(multi_nest, scratch=scratch),
        )
        return schedule, arrays

    def _with_recomputed(self, dropped: Sequence[Node]) -> Sequence[NestNodes] | Diagnostic:
        """Return the nests in which some values are computed again by those that read them."""
        if not dropped:
            return self.nests
        followed = [e.node for e in self.derived.values() if e.node in dropped]
        if followed:
            name = followed[0].label
            return Diagnostic("recompute.followed", {"value": name}, (name,))
        stored = {e.node for own in nest_outputs(self.graph, self.nests) for e in own}
        nests = with_recomputed(self.graph, self.nests, stored, dropped)
        if isinstance(nests, Diagnostic):
            return nests
        while not all(outputs := nest_outputs(self.graph, nests)):
            nests = [nest for nest, own in zip(nests, outputs, strict=True) if own]
        return nests

    def _maps(
        self, tiling: AgreedTiling, nests: Sequence[NestNodes], dropped: Sequence[Node]
    ) -> TileMaps | Diagnostic:
        """Return the maps of all values that nests compute, for those of a tiling."""
        results = self.results_of(nests)
        if not dropped and all(e in tiling.maps for nest in results for e in nest.results):
            return tiling.maps
        return completed(self.graph, tiling.roots, tiling.tiles, results)

    def _padded(
        self,
        pairs: Sequence[tuple[NestNodes, Sequence[Entry]]],
        layouts: Mapping[Node, TileLayout],
        dropped: Sequence[Node],
    ) -> tuple[dict[Node, TileLayout], list[_PlannedNest]] | None:
        """Return layouts with padded rows, and the planned nests; None if none can be padded.

        Args:
            pairs: the nests with their outputs.
            layouts: the layouts of values without padding.
            dropped: the values that are computed again.
        """
        exchanged = {e.node for nest, _ in pairs for e in live_ins(self.graph, nest.nodes)}
        width = self.target.lanes
        padded = {
            n: padded_to_vectors(layout, width) if n in exchanged else layout
            for n, layout in layouts.items()
        }
        while any(layout.pitch is not None for layout in padded.values()):
            planned = self._planned_nests(pairs, padded, dropped)
            if isinstance(planned, Diagnostic):
                return None
            off_pitch: set[Node] = set()
            for nest, (_, outputs) in zip(planned, pairs, strict=True):
                if nest.info is not None:
                    results = [e.node for e in outputs]
                    off_pitch |= values_off_pitch(nest.info, padded, results)
            if not off_pitch:
                return padded, planned
            padded |= {n: layouts[n] for n in off_pitch}
        return None

    def _planned_nests(
        self,
        pairs: Sequence[tuple[NestNodes, Sequence[Entry]]],
        layouts: Mapping[Node, TileLayout],
        dropped: Sequence[Node],
    ) -> list[_PlannedNest] | Diagnostic:
        """Return the nests with their schedules, or why one has none; each is planned once."""
        nests: list[_PlannedNest] = []
        for nest, outputs in pairs:
            read = [e.node for e in live_ins(self.graph, nest.nodes)]
            own = tuple(layouts.get(n) for n in (*(e.node for e in outputs), *read))
            key = tuple(nest.nodes), own, tuple(dropped)
            planned = self.planned.get(key)
            if planned is None:
                planned = self.planned[key] = self._plan_nest(nest, outputs, layouts, dropped)
            if isinstance(planned, Diagnostic):
                return planned
            nests.append(planned)
        return nests

    def _plan_nest(
        self,
        nest: NestNodes,
        outputs: Sequence[Entry],
        layouts: Mapping[Node, TileLayout],
        dropped: Sequence[Node],
    ) -> _PlannedNest | Diagnostic:
        """Return a nest with its schedule, or why it has none."""
        position = self.graph.positions
        nodes = tuple(position[n] for n in nest.nodes)
        results = tuple(position[e.node] for e in outputs)
        if nest.is_product:
            contract = contract_of(nest.nodes[0])
            assert contract is not None
            tile_map = layouts[nest.nodes[0]].tile_map
            work = Work(product_seconds(contract, tile_map, self.target))
            return _PlannedNest(TileNest(nodes, results, None), None, work)
        info = analyze_nest(self.group, nest.nodes, [e.node for e in outputs], layouts)
        if isinstance(info, Diagnostic):
            return info
        names = {self.graph.names[n] for n in dropped}
        recomputed = [n for n, name in info.group.origin.items() if name in names]
        schedules = nest_schedules(info, self.target, recomputed)
        if isinstance(schedules, Diagnostic):
            return schedules
        schedule = self.choose(outputs, layouts, schedules)
        work = nest_work(info, schedule, info.tile_map.tiles, self.target)
        return _PlannedNest(TileNest(nodes, results, schedule), info, work)
