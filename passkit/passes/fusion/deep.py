"""The strategy "deep": work/span analysis, and groups grown from their results.

The span of an operator is the length of the longest way to a result. From each operator, those of
small span first, a group grows towards the inputs, layer by layer, as long as all agree on how a
result is split into blocks; what has a user that was given up is given up, too. Elementwise
operators of one layer and shape, which cannot depend on each other, become one group as well. Then
spans are taken again, of groups, until nothing changes.

Source: FusionStitching (2018), Algorithm 1 and its checker; where a group of it has no plan, as
for want of scratch, it ends before the operator that is too much.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FScan, OpPattern
from passkit.passes.context import PassContext
from passkit.passes.fusion.contract import group_of
from passkit.passes.fusion.limits import Limits
from passkit.passes.fusion.partition import Partition, why_opaque
from passkit.passes.fusion.stitched import with_stitched
from passkit.passes.fusion.trial import Trial
from passkit.plan.planner import outline_group
from passkit.plan.strategy import register_fusion
from passkit.selection.units import Units
from passkit.space.space import is_free
from passkit.splits.split import guessed
from passkit.stitching.cutting import contract_of
from passkit.values.size import numel


@register_fusion("deep")
def deep(graph: Graph, context: PassContext) -> Partition:
    """Groups of several iteration spaces, grown from results as far as their splits agree."""
    return with_stitched(graph, _grown(graph, context), context)


def _grown(graph: Graph, context: PassContext) -> Partition:
    """Groups as the algorithm grows them, before any that the caller wants together."""
    run = _Deep(graph, context)
    for _ in range(context.target.fusion.deep_rounds):
        if not run.round():
            break
    return run.partition()


def grown(
    units: Units,
    spans: Mapping[int, int],
    root: int,
    why_not: Callable[[Sequence[int], int], Diagnostic | None],
    named: Callable[[int], object],
) -> tuple[list[int], dict[int, Diagnostic]]:
    """What a group takes in from its root on, layer by layer, and why the rest stays outside.

    A unit joins if all its users have, but for those that are no farther from an end than the root:
    then no way leaves the group and comes back. ``why_not`` says what else keeps it out.
    """
    fused, left = [root], dict[int, Diagnostic]()
    seen = set(units.before[root])
    todo = [(spans[u], u) for u in seen]
    heapq.heapify(todo)
    while todo:
        unit = heapq.heappop(todo)[1]
        others = sorted(units.after[unit] - set(fused), key=lambda u: (-spans[u], u))
        if others and spans[others[0]] > spans[root]:
            left[unit] = Diagnostic("graph.cycle_through", {"node": named(others[0])})
            continue
        problem = why_not(fused, unit)
        if problem is not None:
            left[unit] = problem
            continue
        fused.append(unit)
        for u in units.before[unit] - seen:
            seen.add(u)
            heapq.heappush(todo, (spans[u], u))
    return fused, left


class _Deep:
    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph, self.context = graph, context
        self.limits = Limits(graph, context)
        self.nodes = [n for n in graph.nodes if not is_free(n)]
        self.number = {n: k for k, n in enumerate(self.nodes)}
        self.units = Units([self._needs(n) for n in self.nodes])
        self.opaque = {n: self._why_opaque(n) for n in self.nodes}
        self.why: dict[tuple[int, int], Diagnostic] = {}

    def _why_opaque(self, node: Node) -> Diagnostic | None:
        product = contract_of(node)
        if product is None:
            return why_opaque(self.graph, node, self.context.target)
        steps = 2 * guessed(product.m) * guessed(product.n) * guessed(product.k)
        if steps > self.context.target.fusion.product_steps:
            return Diagnostic("op.large_product", {"steps": steps})
        return None

    def _needs(self, node: Node) -> set[int]:
        found = (*(e.node for e in node.inputs), *node.control)
        return {self.number[n] for n in found if n in self.number}

    def _is_open(self, unit: int) -> bool:
        return all(self.opaque[n] is None for n in self._nodes(unit))

    def round(self) -> bool:
        """Grow groups from all that is in none yet; whether there was any."""
        spans, taken = self.units.spans(), set[int]()
        for root in sorted(spans, key=lambda u: (spans[u], u)):
            if root not in taken and self._is_open(root):
                taken |= self._grow(root, spans, taken)
        layers: dict[tuple[object, ...], list[int]] = {}
        for unit in sorted(spans):
            if unit not in taken and (shape := self._elementwise(unit)) is not None:
                layers.setdefault((spans[unit], shape), []).append(unit)
        for alike in layers.values():
            taken |= self._beside(alike)
        return bool(taken)

    # From a result towards the inputs.

    def _grow(self, root: int, spans: Mapping[int, int], taken: set[int]) -> set[int]:
        """Join a unit with what it is made of, as far as that goes; the units that are one now."""
        if not any(self._is_open(u) and u not in taken for u in self.units.before[root]):
            return set()
        first = Trial(self.graph, self.context.target).joined(self._nodes(root))
        if isinstance(first, Diagnostic):
            return set()
        trial: Trial = first

        def why_not(fused: Sequence[int], unit: int) -> Diagnostic | None:
            nonlocal trial
            found = self._taken_in(trial, fused, unit, taken)
            if isinstance(found, Diagnostic):
                return found
            trial = found
            return None

        fused, left = grown(self.units, spans, root, why_not, self._name)
        for unit, why in left.items():
            self.why[unit, root] = why
        many = self._planned(fused)
        if many < 2 or not self.context.spend(f"stitch {self._name(root)}"):
            return set()
        self.units.join(fused[:many])
        return set(fused[:many])

    def _taken_in(
        self, trial: Trial, fused: Sequence[int], unit: int, taken: set[int]
    ) -> Trial | Diagnostic:
        """The trial with another unit, or why it stays outside."""
        if not self._is_open(unit):
            return next(filter(None, map(self.opaque.get, self._nodes(unit))))
        if unit in taken:
            return Diagnostic("fusion.taken")
        found = trial.joined(self._nodes(unit))
        if isinstance(found, Diagnostic):
            return found
        misfit = self.limits.all(found.nodes)
        if misfit is not None:
            return misfit
        if not self.units.can_join([*fused, unit]):
            return Diagnostic("graph.cycle")
        return found

    def _nodes(self, unit: int) -> list[Node]:
        """The operators of a unit, users first."""
        return [self.nodes[k] for k in sorted(self.units.members[unit], reverse=True)]

    def _planned(self, fused: Sequence[int]) -> int:
        """How many of the units, from the first on, have a plan as one kernel."""
        fits, fails = 1, len(fused) + 1
        while fails - fits > 1:
            # All of them are tried first: as a rule they have one.
            many = len(fused) if fails > len(fused) else (fits + fails) // 2
            plan = self._plan(fused[:many])
            if isinstance(plan, Diagnostic):
                fails = many
                self.why[fused[many - 1], fused[0]] = plan
            else:
                fits = many
        return fits

    def _plan(self, units: Sequence[int]) -> object:
        body = sorted(k for u in units for k in self.units.members[u])
        group = group_of(self.graph, [self.nodes[k] for k in body])
        return outline_group(group, self.context.target)

    # Beside each other.

    def _elementwise(self, unit: int) -> object:
        """The shape of all results of a unit of elementwise operators, else None."""
        nodes = self._nodes(unit)
        if not self._is_open(unit):
            return None
        for n in nodes:
            assert n.op is not None
            plain = reduce_of(n) is None and FScan.get(n.op.name) is None
            if not plain or n.op.pattern > OpPattern.BROADCAST or contract_of(n) is not None:
                return None
        (shape, *others) = {self.graph.shape(n.entries[0]) for n in nodes}
        return None if others else shape

    def _beside(self, alike: Sequence[int]) -> set[int]:
        """Join units of one layer that have one shape, as long as they have room."""
        joined: set[int] = set()
        group: list[int] = []
        for unit in alike:
            if group and self._fit([*group, unit]):
                group.append(unit)
            else:
                joined |= self._close(group)
                group = [unit]
        return joined | self._close(group)

    def _fit(self, units: Sequence[int]) -> bool:
        nodes = [n for u in units for n in self._nodes(u)]
        most = self.context.target.fusion.layer_bytes
        if self.limits.all(nodes) is not None or self._nbytes(nodes) > most:
            return False
        return self.units.can_join(units) and not isinstance(self._plan(units), Diagnostic)

    def _nbytes(self, nodes: Sequence[Node]) -> int:
        inside = set(nodes)
        reads = {e for n in nodes for e in n.inputs if e.node not in inside}
        entries: set[Entry] = {*reads, *(e for n in nodes for e in n.entries)}
        g = self.graph
        return sum(guessed(numel(g.shape(e))) * g.dtype(e).nbytes for e in entries)

    def _close(self, group: Sequence[int]) -> set[int]:
        if len(group) < 2 or not self.context.spend(f"join at {self._name(group[0])}"):
            return set()
        self.units.join(group)
        return set(group)

    def _name(self, unit: int) -> str:
        return self.graph.names[self._nodes(unit)[0]]

    def partition(self) -> Partition:
        """The units that kernels compute, and why values leave them."""
        out = Partition()
        for unit in self.units:
            nodes = self._nodes(unit)[::-1]
            # A product of matrices that nobody took in is a library's after all.
            if self._is_open(unit) and (len(nodes) > 1 or contract_of(nodes[0]) is None):
                out.groups.append(nodes)
        for node in self.graph.nodes:
            for producer in dict.fromkeys(e.node for e in node.inputs):
                if not is_free(producer) and not is_free(node):
                    out.note(self.graph.names, producer, node, self._decided(producer, node))
        return out

    def _decided(self, producer: Node, consumer: Node) -> Diagnostic:
        """What became of an edge, and why."""
        for n in (producer, consumer):
            if (why := self.opaque[n]) is not None:
                return why
        one, another = (self.units.of[self.number[n]] for n in (producer, consumer))
        if one == another:
            return Diagnostic("fused.splits")
        found = self.why.get((one, another))
        return Diagnostic("fusion.apart") if found is None else found
