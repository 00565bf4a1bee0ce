"""Groups of several phases: which of their values are in memory between two phases.

A phase reads values of earlier ones, and these must be outputs of the group: so the choice of those
values is the choice of phases. Long reductions are split first, as SplitReduce does for those that
need not be in one kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from passkit.analysis.chunks import chunks_of, split_tiling
from passkit.analysis.domain import reduced_axes_of
from passkit.analysis.group import FUSED, Group, Kind, fused_node
from passkit.analysis.nests import contract_of, form_nests
from passkit.analysis.partial import ReductionSplit, split_reduction
from passkit.analysis.recompute import RECOMPUTE
from passkit.diagnostics import Diagnostic
from passkit.fusion.options import FusionOptions
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.graph.quotient import live_ins
from passkit.planner.phases import cross_phase_values, has_unknown_inputs
from passkit.planner.plan import plan_group, plan_mapped
from passkit.schedule.cost import schedule_cost
from passkit.schedule.phases import scheduled_parts
from passkit.schedule.schedule import Schedule
from passkit.schedule.stages import recompute_cost
from passkit.schedule.tile_loops import tiles_of
from passkit.target import Target
from passkit.values.memo import UncachedArgument
from passkit.values.size import Size, at_least, numel

Cuts = tuple[tuple[int, ReductionSplit], ...]
"""The positions of reductions that are split first, each with its chunks."""
Positions = tuple[tuple[int, int], ...]
"""The values that phases leave for later ones, each by the position of its node and its number."""


def with_phases(graph: Graph, context: FusionOptions) -> Graph:
    """Return the fused graph in which groups that need several phases have more results.

    These are the values that phases leave for later ones, which no other node reads. Only groups
    that the option `keep_together` asks for may have several phases.
    """
    hints = [set(names) for names in context.keep_together]

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        """Return the results of a group of phases; None for other nodes."""
        if node.op is not FUSED:
            return None
        group: Group = node.params["body"]
        names = {group.called(n) for n in group.ops}
        if not any(len(names & together) > 1 for together in hints):
            return None
        phased = phased_group(group, context.target)
        if phased is None:
            return None
        feeds = dict(zip(group.inputs, inputs, strict=True))
        return fused_node(phased, tuple(feeds[n] for n in phased.inputs), node.name).entries

    return graph.rebuild(change)


def phased_group(group: Group, target: Target) -> Group | None:
    """Return the group with the values that phases leave for later ones as further results.

    None if no phases serve it, or one phase does without leaving threads idle.
    """
    chosen = _choice(group.key, UncachedArgument(group), target)
    return None if chosen is None else _with_phases(group, *chosen)


@lru_cache(maxsize=1024)
def _choice(
    key: str, held: UncachedArgument[Group], target: Target
) -> tuple[Cuts, Positions] | None:
    """Return which reductions are split and which values phases leave; None if there are none.

    Args:
        key: the key of the group, by which choices are cached.
        held: the group.
        target: the target.
    """
    group = held.value
    nodes = enumerate(group.graph.nodes)
    splits = ((k, chunks_of(group.graph, n, split_tiling(target))) for k, n in nodes)
    long = tuple((k, split) for k, split in splits if split is not None)
    plan = plan_mapped(group, target)
    if isinstance(plan, Schedule) and not long and not _is_idle(group, plan, target):
        return None
    for cuts in dict.fromkeys((long, ())):
        whole = _split(group, cuts)
        for values in _candidates(whole.graph, target.fusion.phase_values):
            chosen = _Choice(whole, target).best(values)
            if chosen is not None:
                position = whole.graph.positions
                positions = tuple((position[e.node], e.index) for e in chosen)
                phased = _with_phases(group, cuts, positions)
                return (cuts, positions) if _is_faster(group, plan, phased, target) else None
    return None


def _is_idle(group: Group, plan: Schedule, target: Target) -> bool:
    """Return whether a long kernel, or one of unknown sizes, has too few tiles for all threads."""
    tiles = tiles_of(plan)
    if not isinstance(tiles, int) or tiles > target.fusion.idle_tiles:
        return False
    long = target.fusion.idle_factor * target.parallel
    return has_unknown_inputs(group.graph) or schedule_cost(group, plan, target) > long


def _is_faster(group: Group, plan: Schedule | Diagnostic, phased: Group, target: Target) -> bool:
    """Return whether a group is faster in phases than as it is planned, if it has a plan."""
    if isinstance(plan, Diagnostic):
        return True
    several = plan_group(phased, target)
    assert isinstance(several, Schedule)
    if has_unknown_inputs(group.graph) and _is_idle(group, plan, target):
        return any(isinstance(tiles_of(p), Size) for p in several.parts)
    seconds = schedule_cost(phased, several, target)
    return 0 < seconds < schedule_cost(group, plan, target)


def _split(group: Group, cuts: Cuts) -> Group:
    """Return the group with some reductions split, with names as SplitReduce gives them."""
    if not cuts:
        return group
    splits = {group.graph.nodes[k]: split for k, split in cuts}

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        """Return the result of a split reduction; None for other nodes."""
        if node not in splits:
            return None
        return split_reduction(node.replaced(inputs), splits[node]).entries

    graph, new = group.graph.rebuilt(change)
    origin: dict[Node, str] = {}
    for old, entry in new.items():
        if not is_leaf(old.node):
            origin[entry.node] = group.called(old.node)
        if old.node in splits:
            origin[entry.node.inputs[0].node] = f"{group.called(old.node)}_part"
    return Group(graph, group.kind, origin)


def _with_phases(group: Group, cuts: Cuts, values: Positions) -> Group:
    """Return the group with some reductions split, and values for later phases as results."""
    whole = _split(group, cuts)
    return _passing_on(whole, [whole.graph.nodes[k].entries[index] for k, index in values])


def _passing_on(whole: Group, values: Sequence[Entry]) -> Group:
    """Return the group with further results, which later phases may read."""
    return Group(Graph([*whole.graph.outputs, *values]), Kind.PHASED, whole.origin)


def _candidates(graph: Graph, most: int) -> Iterator[list[Entry]]:
    """Yield sets of values that phases may leave for later ones, larger each time.

    The results of reductions and products, and values computed of these before they are broadcast;
    also the values between loop nests of a kernel; all values.

    Args:
        graph: the graph of the group.
        most: the most values of a set.
    """
    results, reduced, behind = set(graph.outputs), list[Entry](), set[Node]()
    for node in graph.nodes:
        if is_leaf(node):
            continue
        reduces = _reduces(node)
        if reduces or any(e.node in behind for e in node.inputs):
            behind.add(node)
            reduced += [e for e in node.entries if reduces or _is_broadcast(graph, e)]
    pieces = dict.fromkeys(
        e for p in form_nests(graph) for e in live_ins(graph, p.nodes) if not is_leaf(e.node)
    )
    every = [e for n in graph.nodes if not is_leaf(n) for e in n.entries]
    tried: list[list[Entry]] = []
    for values in (reduced, [*dict.fromkeys([*reduced, *pieces])], every):
        inner = [e for e in values if e not in results]
        if inner not in tried and len(inner) <= most:
            tried.append(inner)
            yield inner


def _reduces(node: Node) -> bool:
    """Return whether a node is a reduction, a scan or a product of matrices."""
    return reduced_axes_of(node) is not None or contract_of(node) is not None


def _is_expensive(entry: Entry) -> bool:
    """Return whether it takes more than a few operators to compute a value again."""
    return recompute_cost(entry.node, RECOMPUTE) > RECOMPUTE


def _is_broadcast(graph: Graph, entry: Entry) -> bool:
    """Return whether a value of more elements is computed of a value."""
    users = (e for n in graph.users.get(entry, ()) for e in n.entries)
    own = numel(known_shape(entry))
    return any(not at_least(own, numel(known_shape(e))) for e in users)


class _Choice:
    """The choice of the values that phases of a group leave for later ones."""

    def __init__(self, whole: Group, target: Target) -> None:
        self.whole, self.target = whole, target

    def best(self, values: Sequence[Entry]) -> list[Entry] | None:
        """Return those of ``values`` that are read again, or better ones; None without a plan."""
        plan = self._plan(values)
        if plan is None:
            return None
        while True:
            used = self._used(values, plan)
            fewer = self._plan(used) if len(used) < len(values) else None
            if fewer is None:
                return self._improved(list(values), plan)
            values, plan = used, fewer

    def _plan(self, values: Sequence[Entry]) -> Schedule | None:
        """Return the plan of the group with these values; None if it has none."""
        plan = plan_mapped(_passing_on(self.whole, values), self.target)
        return None if isinstance(plan, Diagnostic) else plan

    def _seconds(self, values: Sequence[Entry], plan: Schedule) -> float:
        """Return the seconds of the group with these values by the cost model."""
        return schedule_cost(_passing_on(self.whole, values), plan, self.target)

    def _used(self, values: Sequence[Entry], plan: Schedule) -> list[Entry]:
        """Return the values that a later phase reads."""
        if not plan.phase_outputs:
            return []
        group, first = _passing_on(self.whole, values), len(self.whole.graph.outputs)
        read = cross_phase_values(group, scheduled_parts(group, plan))
        return [values[k - first] for k in read if k >= first]

    def _improved(self, values: list[Entry], plan: Schedule) -> list[Entry]:
        """Return the values with one more or one less, if that is faster.

        A value that several phases compute may be added, one that is cheap to compute removed. If
        sizes are unknown, all values that take more than a few operators are added.
        """
        seconds = self._seconds(values, plan)
        expensive = [e for e in self._repeated(values, plan) if _is_expensive(e)]
        if not seconds:
            more = [*values, *expensive]
            larger = self._plan(more) if expensive else None
            return self._used(more, larger) if larger is not None else values
        cheap = [e for e in values if not _is_expensive(e) and not _reduces(e.node)]
        others = [[*values, e] for e in reversed(expensive)]
        others += [[v for v in values if v is not e] for e in cheap]
        for other in others[: self.target.fusion.phase_trials]:
            changed = self._plan(other)
            if changed is None or len(self._used(other, changed)) < len(other):
                continue
            if 0 < self._seconds(other, changed) < seconds:
                values = other
                break
        return values

    def _repeated(self, values: Sequence[Entry], plan: Schedule) -> list[Entry]:
        """Return the values that several phases compute."""
        if not plan.phase_outputs:
            return []
        group = _passing_on(self.whole, values)
        count: Counter[Node] = Counter()
        for part in scheduled_parts(group, plan):
            count.update(part.original(n) for n in part.graph.nodes if not is_leaf(n))
        outputs = set(group.graph.outputs)
        nodes = (n for n in group.graph.nodes if count[n] > 1)
        return [e for n in nodes for e in n.entries if e not in outputs]
