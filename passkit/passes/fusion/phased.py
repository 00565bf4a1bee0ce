"""Groups that take several phases: which of their values lie in memory between two of them.

A phase reads what earlier ones made, and what it reads must be an output of the group: so the
choice of those values is the choice of phases. Long folds are split first, as SplitReduce does
where nobody wants them in one kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from attrs import frozen

from passkit.ast import Chunks
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, known_shape
from passkit.lowering.loops import tiles_of
from passkit.passes.context import PassContext
from passkit.passes.options import node_name
from passkit.passes.split_reduce import chunks_of
from passkit.plan.closing import reads_of_part
from passkit.plan.costs import model_seconds
from passkit.plan.group import FUSED, Group, Kind, fused_node
from passkit.plan.phases import parts_by
from passkit.plan.phasing import is_open, passed_on
from passkit.plan.planner import plan_group
from passkit.plan.schedule import RECOMPUTE, Schedule, recompute_cost
from passkit.space.partial import split
from passkit.space.space import folding_of, is_free
from passkit.stitching.cutting import contract_of, cut
from passkit.target import Target
from passkit.values.memo import UncachedArgument
from passkit.values.size import Size, at_least, numel

Values = tuple[tuple[int, int], ...]
"""Entries by the positions of their nodes, and their numbers."""


@frozen
class Recipe:
    """How a group comes to have phases: reductions that are split, and then values passed on."""

    cuts: tuple[tuple[int, Chunks], ...]
    values: Values


def with_phases(graph: Graph, context: PassContext) -> Graph:
    """The fused graph in which what the caller wants, and no phase alone runs, passes values on.

    These become further results of their nodes, which nobody reads.
    """
    hints = [{node_name(n) for n in names} for names in context.keep_together]

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
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
    """The group with what it passes on between phases; None where no phases serve it.

    So it is as well where one phase does, unless it leaves threads without work.
    """
    recipe = _recipe(group.key, UncachedArgument(group), target)
    return None if recipe is None else _made(_split(group, recipe.cuts), recipe.values)


@lru_cache(maxsize=1024)
def _recipe(key: str, held: UncachedArgument[Group], target: Target) -> Recipe | None:
    group = held.value
    nodes = enumerate(group.graph.nodes)
    split = ((k, chunks_of(group.graph, n, target.tiling)) for k, n in nodes)
    long = tuple((k, c) for k, c in split if c is not None)
    plan = plan_group(group, target)
    if isinstance(plan, Schedule) and not long and not _is_idle(group, plan, target):
        return None
    for cuts in dict.fromkeys((long, ())):
        whole = _split(group, cuts)
        for values in _candidates(whole.graph, target.fusion.phase_values):
            found = _Choice(whole, target).settled(values)
            if found is not None:
                position = whole.graph.positions
                made = Recipe(cuts, tuple((position[e.node], e.index) for e in found))
                return made if _is_quicker(group, plan, made, target) else None
    return None


def _is_idle(group: Group, plan: Schedule, target: Target) -> bool:
    """Whether a long kernel, or one of unknown sizes, has too few tiles for threads to share."""
    tiles = tiles_of(plan)
    if not isinstance(tiles, int) or tiles > target.fusion.idle_tiles:
        return False
    long = target.fusion.idle_factor * target.parallel
    return is_open(group.graph) or model_seconds(group, plan, target) > long


def _is_quicker(group: Group, plan: Schedule | Diagnostic, recipe: Recipe, target: Target) -> bool:
    """Whether a group had better run in phases, if one phase serves it as well."""
    if isinstance(plan, Diagnostic):
        return True
    made = _made(_split(group, recipe.cuts), recipe.values)
    several = plan_group(made, target)
    assert isinstance(several, Schedule)
    if is_open(group.graph) and _is_idle(group, plan, target):
        return any(isinstance(tiles_of(p), Size) for p in several.parts)
    seconds = model_seconds(made, several, target)
    return 0 < seconds < model_seconds(group, plan, target)


def _split(group: Group, cuts: Sequence[tuple[int, Chunks]]) -> Group:
    """The group with these reductions split, whose halves are called as SplitReduce calls them."""
    if not cuts:
        return group
    chunks = {group.graph.nodes[k]: c for k, c in cuts}

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        return split(node.replaced(inputs), chunks[node]).entries if node in chunks else None

    graph, new = group.graph.rebuilt(change)
    origin: dict[Node, str] = {}
    for old, made in new.items():
        if not is_free(old.node):
            origin[made.node] = group.called(old.node)
        if old.node in chunks:
            origin[made.node.inputs[0].node] = f"{group.called(old.node)}_part"
    return Group(graph, group.kind, origin)


def _made(whole: Group, values: Values) -> Group:
    """The group with further results."""
    nodes = whole.graph.nodes
    return _passing_on(whole, [nodes[k].entries[index] for k, index in values])


def _passing_on(whole: Group, values: Sequence[Entry]) -> Group:
    return Group(Graph([*whole.graph.outputs, *values]), Kind.PHASED, whole.origin)


def _candidates(graph: Graph, most: int) -> Iterator[list[Entry]]:
    """Values that may be passed on, ``most`` of them, more each time.

    What folds and products leave, and what is made of that before it is brought back to many
    elements; what parts of stitched kernels pass on; all values.
    """
    results, folds, behind = set(graph.outputs), list[Entry](), set[Node]()
    for node in graph.nodes:
        if is_free(node):
            continue
        own = _folds(node)
        if own or any(e.node in behind for e in node.inputs):
            behind.add(node)
            folds += [e for e in node.entries if own or _grows(graph, e)]
    pieces = dict.fromkeys(
        e for p in cut(graph) for e in reads_of_part(graph, p.nodes) if not is_free(e.node)
    )
    every = [e for n in graph.nodes if not is_free(n) for e in n.entries]
    tried: list[list[Entry]] = []
    for values in (folds, [*dict.fromkeys([*folds, *pieces])], every):
        inner = [e for e in values if e not in results]
        if inner not in tried and len(inner) <= most:
            tried.append(inner)
            yield inner


def _folds(node: Node) -> bool:
    return folding_of(node) is not None or contract_of(node) is not None


def _is_dear(entry: Entry) -> bool:
    """Whether it takes more than a few operators to compute a value again."""
    return recompute_cost(entry.node, RECOMPUTE) > RECOMPUTE


def _grows(graph: Graph, entry: Entry) -> bool:
    """Whether something of more elements is made of a value."""
    users = (e for n in graph.users.get(entry, ()) for e in n.entries)
    own = numel(known_shape(entry))
    return any(not at_least(own, numel(known_shape(e))) for e in users)


class _Choice:
    """The choice of the values that phases of a group pass on."""

    def __init__(self, whole: Group, target: Target) -> None:
        self.whole, self.target = whole, target

    def settled(self, values: Sequence[Entry]) -> list[Entry] | None:
        """Those of ``values`` that are read again, or better ones; None where no plan serves."""
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
        found = plan_group(_passing_on(self.whole, values), self.target)
        return None if isinstance(found, Diagnostic) else found

    def _seconds(self, values: Sequence[Entry], plan: Schedule) -> float:
        return model_seconds(_passing_on(self.whole, values), plan, self.target)

    def _used(self, values: Sequence[Entry], plan: Schedule) -> list[Entry]:
        """The values that a later phase reads."""
        if not plan.makes:
            return []
        group, first = _passing_on(self.whole, values), len(self.whole.graph.outputs)
        read = passed_on(group, parts_by(group, plan))
        return [values[k - first] for k in read if k >= first]

    def _improved(self, values: list[Entry], plan: Schedule) -> list[Entry]:
        """With a value that several phases compute, or without one soon computed, if quicker.

        Where sizes are unknown, what takes more than a few operators is passed on.
        """
        seconds = self._seconds(values, plan)
        dear = [e for e in self._repeated(values, plan) if _is_dear(e)]
        if not seconds:
            more = [*values, *dear]
            found = self._plan(more) if dear else None
            return self._used(more, found) if found is not None else values
        cheap = [e for e in values if not _is_dear(e) and not _folds(e.node)]
        others = [[*values, e] for e in reversed(dear)]
        others += [[v for v in values if v is not e] for e in cheap]
        for other in others[: self.target.fusion.phase_trials]:
            found = self._plan(other)
            if found is None or len(self._used(other, found)) < len(other):
                continue
            quicker = self._seconds(other, found)
            if 0 < quicker < seconds:
                values, seconds = other, quicker
                break
        return values

    def _repeated(self, values: Sequence[Entry], plan: Schedule) -> list[Entry]:
        """What several phases compute, each for itself."""
        if not plan.makes:
            return []
        group = _passing_on(self.whole, values)
        count: Counter[Node] = Counter()
        for part in parts_by(group, plan):
            count.update(part.original(n) for n in part.graph.nodes if not is_free(n))
        outputs = set(group.graph.outputs)
        nodes = (n for n in group.graph.nodes if count[n] > 1)
        return [e for n in nodes for e in n.entries if e not in outputs]
