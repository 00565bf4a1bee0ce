"""A toy explorer over integers, and Burn's processor with lists of plans instead of a trie."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from attrs import define, field

from passkit.streams.trie import Processor, RunMode, TrieNode

Operations = tuple[Hashable, ...]


@define
class ToyPlan:
    """A plan of the toy explorer.

    Attributes:
        operations: the operations that it covers.
        fused: how many leading ones are fused; the others run one by one.
    """

    operations: Operations
    fused: int


@define
class ToyExplorer:
    """Fuses operations that equal one of its patterns, as the fusers in Burn's tests do.

    A fuser closes at the first operation that differs from its pattern, and when the pattern is
    complete; then it is ready. When all are closed, the longest ready one is the plan.

    Attributes:
        patterns: what is fused.
        plans: the plans so far.
    """

    patterns: Sequence[Operations]
    plans: list[ToyPlan] = field(factory=list)

    def explore(self, keys: Sequence[Hashable], mode: RunMode) -> Any:
        """Return how to make a plan and the number of operations that it covers, or None."""
        closed_at = [_closes_at(p, keys) for p in self.patterns]
        ready = [len(p) for p in self.patterns if tuple(keys[: len(p)]) == p]
        if mode is RunMode.SYNC:
            return self._maker(keys, max(ready, default=0)), len(keys)
        if any(k is None for k in closed_at):
            return None
        if ready:
            return self._maker(keys[: max(ready)], max(ready)), max(ready)
        count = max((k for k in closed_at if k is not None), default=0) + 1
        return self._maker(keys[:count], 0), count

    def _maker(self, keys: Sequence[Hashable], fused: int) -> Any:
        """Return a function that makes and keeps a plan."""

        def make() -> ToyPlan:
            self.plans.append(ToyPlan(tuple(keys), fused))
            return self.plans[-1]

        return make


def _closes_at(pattern: Operations, keys: Sequence[Hashable]) -> int | None:
    """Return the index of the operation at which the fuser of a pattern closes, None if open."""
    for k, key in enumerate(keys):
        if k == len(pattern) or pattern[k] != key:
            return k
        if k + 1 == len(pattern):
            return k
    return None


class TrieRun:
    """A program of integers on the processor with a trie, with a record of what it executed."""

    def __init__(self, patterns: Sequence[Operations]) -> None:
        self.explorer = ToyExplorer(patterns)
        self.executed: list[tuple[Operations, int]] = []
        self.processor = Processor(TrieNode(), self.explorer, self._execute)

    def _execute(self, plan: ToyPlan, count: int) -> list[Hashable]:
        """Record an execution; return the operations that stay queued."""
        assert plan.operations == tuple(self.processor.keys[:count])
        self.executed.append((plan.operations, plan.fused))
        return self.processor.keys[count:]

    def add(self, *operations: Hashable) -> tuple[int, int]:
        """Record operations; return how many are queued and how many executions there were."""
        for operation in operations:
            self.processor.add(operation)
            self.processor.run(RunMode.LAZY)
        return len(self.processor.keys), len(self.executed)

    def sync(self) -> tuple[int, int]:
        """Wait for all results; return what `add` returns."""
        self.processor.run(RunMode.SYNC)
        return len(self.processor.keys), len(self.executed)

    @property
    def explorations(self) -> int:
        """The number of plans that were made."""
        return self.processor.explorations

    def triggers(self) -> dict[Operations, set[Operations]]:
        """Return, for each plan that has some, the operations after it that start its execution."""
        triggers: dict[Operations, set[Operations]] = {}
        pending: list[tuple[Operations, TrieNode]] = [((), self.processor.trie)]
        while pending:
            path, node = pending.pop()
            if node.fire is not None:
                plan, count = node.fire
                triggers.setdefault(plan.operations, set()).add(path[count:])
            pending += [((*path, key), child) for key, child in node.children.items()]
        return triggers


@define
class ListedPlan:
    """A stored plan of Burn's: the plan, and the operations after it that start its execution."""

    plan: ToyPlan
    triggers: list[Operations]


class ListRun:
    """The same program by Burn's policy: lists of candidates, available plans and triggers."""

    def __init__(self, patterns: Sequence[Operations]) -> None:
        self.explorer = ToyExplorer(patterns)
        self.executed: list[tuple[Operations, int]] = []
        self.store: list[ListedPlan] = []
        self.queue: list[Hashable] = []

    @property
    def explorations(self) -> int:
        """The number of plans that were made."""
        return len(self.store)

    def add(self, *operations: Hashable) -> tuple[int, int]:
        """Record operations; return how many are queued and how many executions there were."""
        for operation in operations:
            self.queue.append(operation)
            self._run(RunMode.LAZY)
        return len(self.queue), len(self.executed)

    def sync(self) -> tuple[int, int]:
        """Wait for all results; return what `add` returns."""
        self._run(RunMode.SYNC)
        return len(self.queue), len(self.executed)

    def _run(self, mode: RunMode) -> None:
        """Execute, explore or defer until the queue is empty or is to wait."""
        while self.queue:
            plan = self._triggered()
            if plan is None and mode is RunMode.SYNC:
                plan = self._of_entire_queue()
            elif plan is None and self._may_match():
                return
            if plan is None:
                plan = self._explore(mode)
                if plan is None:
                    return
            self.executed.append((plan.plan.operations, plan.plan.fused))
            del self.queue[: len(plan.plan.operations)]

    def _triggered(self) -> ListedPlan | None:
        """Return the plan whose trigger fired first while the queue was filled."""
        for length in range(1, len(self.queue) + 1):
            for each in self.store:
                for rest in each.triggers:
                    if (*each.plan.operations, *rest) == tuple(self.queue[:length]):
                        return each
        return None

    def _of_entire_queue(self) -> ListedPlan | None:
        """Return the plan for exactly the queued operations."""
        exact = (p for p in self.store if p.plan.operations == tuple(self.queue))
        return next(exact, None)

    def _may_match(self) -> bool:
        """Return whether a plan, or a plan with a trigger, begins with the queued operations."""
        queued = tuple(self.queue)
        sequences = [p.plan.operations for p in self.store]
        sequences += [(*p.plan.operations, *rest) for p in self.store for rest in p.triggers]
        return any(s[: len(queued)] == queued for s in sequences)

    def _explore(self, mode: RunMode) -> ListedPlan | None:
        """Return the plan that the explorer finds, with its trigger; None to wait."""
        explored = self.explorer.explore(self.queue, mode)
        if explored is None:
            return None
        make, count = explored
        operations = tuple(self.queue[:count])
        stored = next((p for p in self.store if p.plan.operations == operations), None)
        if stored is None:
            stored = ListedPlan(make(), [])
            self.store.append(stored)
        rest = tuple(self.queue[count:])
        if mode is RunMode.LAZY and rest not in stored.triggers:
            stored.triggers.append(rest)
        return stored
