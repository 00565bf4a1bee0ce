"""Exploration: sets of clusters that may be one kernel, each with what that gains.

It begins with clusters that read values of each other, those that take longest first, and then adds
neighbours to sets, beginning with those that gain most.

Source: FusionStitching (2019), Algorithm 2, over groups instead of operators.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence

from attrs import define, evolve, field, frozen

from passkit.analysis.group import Group
from passkit.analysis.ordered_accesses import read_in_order
from passkit.diagnostics import Diagnostic
from passkit.fusion.cluster_groups import ClusterGroups
from passkit.fusion.memory import Memory
from passkit.fusion.score import Scorer
from passkit.fusion.selection.problem import Pattern, Problem
from passkit.graph.components import connected_components
from passkit.planner.plan import outline_group, why_no_maps
from passkit.schedule.cost import most_saved, peak_seconds
from passkit.schedule.schedule import Schedule
from passkit.schedule.tiling import Composition

TRANSPOSED = (Composition.BLOCK, Composition.NARROW)
HAZARD = Diagnostic("graph.state_hazard")
LARGEST = 64
"""The most clusters of a substitution pattern; longer ones are cut in the order they run in."""

Members = frozenset[int]


@frozen
class Candidate:
    """A set of clusters that was examined.

    Attributes:
        members: the clusters.
        gain: the seconds that one kernel takes less than all of them, of which what counts for more
            memory at the peak has been subtracted.
        apart: the seconds that they take apart.
        least: the seconds that it must gain.
        problem: why it cannot be a kernel, if so.
        is_measured: whether the gain was measured.
        modelled_gain: the gain by the cost model, if that is not the gain.
        growth: the bytes by which the peak of memory grows.
    """

    members: Members
    gain: float
    apart: float = 0.0
    least: float = 0.0
    problem: Diagnostic | None = None
    is_measured: bool = False
    modelled_gain: float = 0.0
    growth: int = 0

    @property
    def promise(self) -> float:
        """The gain that larger sets are grown for, even if measurements contradict the model."""
        return max(self.gain, self.modelled_gain)

    @property
    def pays(self) -> bool:
        """Whether it gains enough."""
        return self.problem is None and self.gain > self.least


@define(eq=False)
class Explorer:
    """One exploration of the clusters of a fusion plan.

    Attributes:
        groups: the clusters.
        scorer: the cost model, and how much may be planned.
        candidates: the sets that were examined, by their members.
        costs: the seconds of each cluster, 0 if unknown.
        memory: the values between clusters.
        unmapped: the sets that a GPU has no maps of the parts of.
    """

    groups: ClusterGroups
    scorer: Scorer
    candidates: dict[Members, Candidate] = field(factory=dict)
    costs: list[float] = field(factory=list)
    memory: Memory = field(init=False)
    unmapped: set[Members] = field(factory=set)

    @memory.default
    def _memory(self) -> Memory:
        return Memory(self.groups)

    def run(self) -> Problem:
        """Return the patterns that pay, of which some are to be selected."""
        self.costs = [self._own_cost(k) for k in range(len(self.groups))]
        for body in (*self._pairs(), *self._between_cuts()):
            self.examine(self.closed(body))
        self._grow()
        return Problem(self.groups.predecessors, self.patterns())

    def patterns(self) -> list[Pattern]:
        """Return the sets that pay."""
        patterns = [Pattern(c.members, c.gain) for c in self.candidates.values() if c.pays]
        return sorted(patterns, key=lambda p: sorted(p.members))

    def refuse(self, members: Members) -> bool:
        """Return whether a GPU has no maps of the parts of a set, which is no candidate then."""
        problem = why_no_maps(self.groups.group(members), self.scorer.target)
        if problem is None:
            return False
        self.candidates[members] = evolve(self.candidates[members], problem=problem)
        self.unmapped.add(members)
        return True

    def _own_cost(self, number: int) -> float:
        """Return the seconds of a cluster; one whose seconds are unknown stays as it is."""
        groups = self.groups
        if groups.takes_no_time[number] or not groups.is_open(number):
            return 0.0
        cost = self.scorer.cost(groups.group([number]))
        if isinstance(cost, float) and cost > 0:
            return cost
        groups.close(number)
        return 0.0

    def _pairs(self) -> Iterator[Members]:
        """Yield pairs of neighbours, those that take longest first."""
        quotient = self.groups.quotient
        order = sorted(range(len(self.costs)), key=lambda k: (-self.costs[k], k))
        for k in order:
            around = quotient.predecessors[k] | quotient.successors[k]
            most = self.scorer.target.fusion.neighbours
            if self.groups.is_open(k) and len(around) <= most:
                for other in sorted(around, key=lambda n: (-self.costs[n], n)):
                    if self.groups.is_open(other):
                        yield frozenset((k, other))

    def _between_cuts(self) -> Iterator[Members]:
        """Yield connected sets between clusters that stay as they are, and between products."""
        closed = {k for k in range(len(self.groups)) if not self.groups.is_open(k)}
        products = {k for k in range(len(self.groups)) if self.groups.is_product(k)}
        for cuts in (closed, closed | products):
            yield from substitution(self.groups.predecessors, cuts)

    def closed(self, members: Members) -> Members:
        """Return clusters, and those on paths between them."""
        return members | self.groups.quotient.between(members)

    def examine(self, members: Members) -> Candidate | None:
        """Return the gain of a set of clusters; None if it is illegal, or the budget is used up."""
        if members in self.candidates:
            return self.candidates[members]
        groups, limits = self.groups, self.scorer.target.fusion
        if not 1 < len(members) <= limits.pattern_groups or not all(map(groups.is_open, members)):
            return None
        apart = sum(self.costs[k] for k in members)
        has_product = any(map(groups.is_product, members))
        is_strict = has_product and self.scorer.costs.measured_gain is None
        least = max(limits.min_gain, limits.min_product_share * apart)
        costs, nbytes = [self.costs[k] for k in members], groups.bytes_between(members)
        most = most_saved(costs, nbytes, self.scorer.target)
        if most <= (least if is_strict else limits.sure_gain):
            return None
        num_operators = sum(len(groups.quotient.clusters[k].nodes) for k in members)
        if num_operators > limits.pattern_ops:
            return None
        if groups.legality.check(groups.quotient, members) is not None:
            return None
        candidate = self._candidate(members, groups.group(members), apart, has_product)
        if candidate is not None:
            self.candidates[members] = candidate
        return candidate

    def _candidate(
        self, members: Members, group: Group, apart: float, has_product: bool
    ) -> Candidate | None:
        """Return the gain of a group over its clusters; None if the budget is used up.

        Args:
            members: the clusters.
            group: the group that they would be.
            apart: the seconds that they take apart.
            has_product: whether one of them is a product of matrices.
        """
        updates_state = self.groups.updates_state(members)
        if has_product and updates_state:
            return Candidate(members, 0.0, apart, problem=HAZARD)
        cost = self.scorer.cost(group)
        if cost is None:
            return None
        if isinstance(cost, Diagnostic):
            return Candidate(members, 0.0, apart, problem=cost)
        plan = outline_group(group, self.scorer.target)
        schedule = plan if isinstance(plan, Schedule) else None
        if schedule and schedule.multi_nest and updates_state:
            return Candidate(members, 0.0, apart, problem=HAZARD)
        growth = self.memory.growth(members)
        lost = peak_seconds(growth, self.scorer.target)
        gain = apart - cost - lost if cost else 0.0
        measured = self.scorer.measured(group, apart)
        if measured is not None:
            sure = self.scorer.target.fusion.sure_gain
            measured_gain = apart - measured - lost
            return Candidate(members, measured_gain, apart, sure, None, True, gain, growth)
        if schedule and schedule.composition in TRANSPOSED:
            problem = Diagnostic("cost.transposed")
            return Candidate(members, 0.0, apart, problem=problem, modelled_gain=gain)
        least = self._least_gain(members, group, schedule, apart, has_product)
        return Candidate(members, gain, apart, least, growth=growth)

    def _work(self, members: Members) -> float:
        """Return the seconds of bytes and operations of clusters, each a kernel of its own."""
        groups = (self.groups.group(Members([k])) for k in members)
        plans = [outline_group(g, self.scorer.target) for g in groups]
        return sum(p.seconds for p in plans if isinstance(p, Schedule))

    def _least_gain(
        self,
        members: Members,
        group: Group,
        schedule: Schedule | None,
        apart: float,
        has_product: bool,
    ) -> float:
        """Return the seconds that a group must gain over its clusters.

        Args:
            members: the clusters.
            group: the group that they would be.
            schedule: its schedule; None if a library computes it.
            apart: the seconds that the clusters take.
            has_product: whether one of them is a product of matrices.
        """
        target, limits = self.scorer.target, self.scorer.target.fusion
        share = limits.min_product_share if has_product else limits.min_gather_share
        least = max(limits.min_gain, share * apart)
        if has_product or schedule is None or not read_in_order(group.ops, target):
            return least
        is_sure = schedule.multi_nest is not None or schedule.seconds <= self._work(members)
        return limits.sure_gain if is_sure else least

    def _grow(self) -> None:
        """Add clusters to sets, first to those that gain most, as long as the gain grows."""
        limits = self.scorer.target.fusion
        todo = [
            (-c.promise, sorted(c.members))
            for c in self.candidates.values()
            if c.problem is None and c.promise > -limits.grown_loss_share * c.apart
        ]
        heapq.heapify(todo)
        while todo and self.scorer.left > 0:
            gain, body = heapq.heappop(todo)
            members = frozenset(body)
            for neighbour in self._neighbours(members):
                grown = self.closed(members | {neighbour})
                if grown in self.candidates:
                    continue
                candidate = self.examine(grown)
                if candidate is None or candidate.problem is not None:
                    continue
                if candidate.promise > max(-gain, limits.sure_gain):
                    heapq.heappush(todo, (-candidate.promise, sorted(grown)))

    def _neighbours(self, members: Members) -> list[int]:
        """Return the producers and consumers of clusters, those that take longest first."""
        before, after = self.groups.quotient.predecessors, self.groups.quotient.successors
        around = {n for k in members for n in before[k] | after[k]} - members
        return sorted(around, key=lambda n: (-self.costs[n], n))


def substitution(
    predecessors: Sequence[Collection[int]], cuts: Collection[int]
) -> Iterator[Members]:
    """Yield substitution patterns: the connected sets of clusters between some that cut a graph.

    Clusters with equally many cuts above them make no cycle. Source: FusionStitching (2019),
    Algorithm 1, with clusters before the first cut, which its listing leaves open.

    Args:
        predecessors: for each cluster, in a topological order, those that must run before it.
        cuts: the clusters at which the graph is cut.
    """
    depth: list[int] = []
    for before in predecessors:
        depth.append(max((depth[n] + (n in cuts) for n in before), default=0))
    inside = [k for k in range(len(depth)) if k not in cuts]
    edges = ((k, n) for k in inside for n in predecessors[k] if depth[n] == depth[k])
    for component in connected_components(inside, edges):
        for first in range(0, len(component), LARGEST):
            members = component[first : first + LARGEST]
            if len(members) > 1:
                yield frozenset(members)
