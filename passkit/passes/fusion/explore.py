"""Exploration: which units of a board had better be one kernel, each way with what it gains.

It begins with units that values lead between, those that take longest first, and goes on from
what gains most, a neighbour at a time.

Source: FusionStitching (2019), Algorithm 2, over groups instead of operators.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from attrs import define, field, frozen

from passkit.diagnostics import Diagnostic
from passkit.passes.fusion.board import Board
from passkit.passes.fusion.memory import Memory, penalty
from passkit.passes.fusion.scores import Scorer
from passkit.plan.group import Group
from passkit.plan.planner import outline_group
from passkit.plan.schedule import Schedule
from passkit.selection.patterns import LADDER, substitution
from passkit.selection.problem import Pattern
from passkit.space.orderly import are_orderly
from passkit.space.tiling import Composition

TURNED = (Composition.BLOCK, Composition.NARROW)
HAZARD = Diagnostic("graph.state_hazard")

Members = frozenset[int]


@frozen
class Tried:
    """A set of units that was looked at: its gain in seconds, or why it is no kernel.

    ``measured`` where the clock told the gain; ``hoped`` is what the model says then. The gain is
    less by what counts for the bytes that the peak of memory has ``grown`` by.
    """

    members: Members
    gain: float
    apart: float = 0.0
    least: float = 0.0
    why: Diagnostic | None = None
    measured: bool = False
    hoped: float = 0.0
    grown: int = 0

    @property
    def promise(self) -> float:
        """What it may gain: others are grown from it even if a clock was not in its favour."""
        return max(self.gain, self.hoped)

    @property
    def pays(self) -> bool:
        """Whether it gains enough."""
        return self.why is None and self.gain > self.least


@define(eq=False)
class Explorer:
    """What was found on a board; ``tried`` has all that was looked at."""

    board: Board
    scorer: Scorer
    tried: dict[Members, Tried] = field(factory=dict)
    costs: list[float] = field(factory=list)
    memory: Memory = field(init=False)

    @memory.default
    def _memory(self) -> Memory:
        return Memory(self.board)

    def run(self) -> list[Pattern]:
        """The patterns that pay."""
        board = self.board
        self.costs = [self._own(k) for k in range(len(board.list))]
        for body in (*self._pairs(), *self._between_cuts()):
            self.look(self.closed(body))
        self._grow()
        return [Pattern(t.members, t.gain) for t in self.tried.values() if t.pays]

    def _own(self, k: int) -> float:
        """What a unit takes by itself; one of which that is not known is closed."""
        unit = self.board.list[k]
        if unit.silent or not unit.open:
            return 0.0
        found = self.scorer.cost(self.board.group([k]))
        if isinstance(found, float) and found > 0:
            return found
        unit.open = False
        return 0.0

    def _pairs(self) -> Iterator[Members]:
        """Neighbours with what is between them, the longest first."""
        units = self.board.units
        order = sorted(range(len(self.costs)), key=lambda k: (-self.costs[k], k))
        for k in order:
            around = units.before[k] | units.after[k]
            if self.board.is_open(k) and len(around) <= self.scorer.target.fusion.neighbours:
                for other in sorted(around, key=lambda n: (-self.costs[n], n)):
                    if self.board.is_open(other):
                        yield frozenset((k, other))

    def _between_cuts(self) -> Iterator[Members]:
        """All that hangs together between units that stay as they are, or products as well."""
        for cuts in LADDER[:2]:
            yield from substitution(self.board.needs, self.board.kinds, cuts)

    def closed(self, members: Members) -> Members:
        """Units, and those on ways from one of them to another."""
        return members | self.board.units.between(members)

    def look(self, members: Members) -> Tried | None:
        """What a set of units gains; None where it may be none, or the budget is used up."""
        known = self.tried.get(members)
        if known is not None:
            return known
        board = self.board
        limits = self.scorer.target.fusion
        if not 1 < len(members) <= limits.pattern_groups or not all(map(board.is_open, members)):
            return None
        apart = sum(self.costs[k] for k in members)
        products = any(map(board.is_product, members))
        strict = products and self.scorer.compared is None
        least = max(limits.min_gain, limits.min_product_share * apart)
        if self.most(members) <= (least if strict else limits.sure_gain):
            return None
        own, copies = board.nodes(members)
        misfit = board.limits.all([*own, *copies])
        if len(own) > limits.pattern_ops or misfit is not None:
            return None
        made = self._tried(members, board.group(members), apart, products)
        if made is not None:
            self.tried[members] = made
        return made

    def _tried(self, members: Members, group: Group, apart: float, products: bool) -> Tried | None:
        """What a group gains over its units, which take ``apart``; None if nobody may ask."""
        if products and self.board.updates(members):
            return Tried(members, 0.0, apart, why=HAZARD)
        found = self.scorer.cost(group)
        if found is None:
            return None
        if isinstance(found, Diagnostic):
            return Tried(members, 0.0, apart, why=found)
        refused = self._refused(group, members)
        if refused is HAZARD:
            return Tried(members, 0.0, apart, why=refused)
        grown = self.memory.growth(members)
        lost = penalty(grown, self.scorer.target)
        gain = apart - found - lost if found else 0.0
        measured = self.scorer.measured(group, apart)
        if measured is not None:
            sure = self.scorer.target.fusion.sure_gain
            return Tried(members, apart - measured - lost, apart, sure, None, True, gain, grown)
        if refused is not None:
            return Tried(members, 0.0, apart, why=refused, hoped=gain)
        least = self._least(members, group, apart, products)
        return Tried(members, gain, apart, least, grown=grown)

    def _refused(self, group: Group, members: Members) -> Diagnostic | None:
        """Why a group that has a plan had better not be one, whatever the model says."""
        plan = outline_group(group, self.scorer.target)
        if isinstance(plan, Schedule) and plan.composition in TURNED:
            return Diagnostic("cost.transposed")
        if isinstance(plan, Schedule) and plan.stitching and self.board.updates(members):
            return HAZARD
        return None

    def _work(self, members: Members) -> float:
        """The seconds of bytes and operations that units take, each in a kernel of its own."""
        plans = [outline_group(self.board.group(Members([k])), self.scorer.target) for k in members]
        return sum(p.seconds for p in plans if isinstance(p, Schedule))

    def _least(self, members: Members, group: Group, apart: float, products: bool) -> float:
        """Seconds that a group must gain over its units, which take ``apart``."""
        plan, limits = outline_group(group, self.scorer.target), self.scorer.target.fusion
        if products or not isinstance(plan, Schedule) or not are_orderly(group.ops):
            share = limits.min_product_share if products else limits.min_gather_share
            return max(limits.min_gain, share * apart)
        surely = plan.stitching is not None or plan.seconds <= self._work(members)
        if surely:
            return limits.sure_gain
        return max(limits.min_gain, limits.min_gather_share * apart)

    def most(self, members: Members) -> float:
        """What a set of units could gain at most: launches, and what they move for each other."""
        target = self.scorer.target
        calls = sorted(
            target.launch + target.meeting * (self.costs[k] > target.parallel) for k in members
        )
        return sum(calls[:-1]) + self.board.moved(members) / target.bandwidth

    def _grow(self) -> None:
        """Patterns of one unit more, from those that gain most on, as long as they gain more."""
        limits = self.scorer.target.fusion
        todo = [
            (-t.promise, sorted(t.members))
            for t in self.tried.values()
            if t.why is None and t.promise > -limits.grown_loss_share * t.apart
        ]
        heapq.heapify(todo)
        while todo and self.scorer.left > 0:
            gain, body = heapq.heappop(todo)
            members = frozenset(body)
            for more in self._around(members):
                grown = self.closed(members | {more})
                if grown in self.tried:
                    continue
                found = self.look(grown)
                if found is None or found.why is not None:
                    continue
                if found.promise > max(-gain, limits.sure_gain):
                    heapq.heappush(todo, (-found.promise, sorted(grown)))

    def _around(self, members: Members) -> list[int]:
        """The producers and consumers of units, those that take longest first."""
        units = self.board.units
        found = {n for k in members for n in units.before[k] | units.after[k]} - members
        return sorted(found, key=lambda n: (-self.costs[n], n))
