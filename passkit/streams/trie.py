"""The trie of plans, and the processor that defers, explores or executes.

Source: Burn's `ExecutionPlanStore` and `Processor`. Burn keeps lists of candidate plans, available
plans and triggers; here, one position in a trie replaces the three. A trigger "these operations
followed the plan" is a mark at the end of plan and followers; "always" is a mark at the end of the
plan itself; and a plan that may run when a caller waits for a result ends at the current position.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from enum import Enum
from typing import Any, Protocol

from passkit.streams.recorder import TrieCursor, TrieNode


class RunMode(Enum):
    """Why the processor runs.

    Attributes:
        LAZY: an operation was recorded; it may stay in the queue.
        SYNC: a result is needed now; the queue must become empty.
    """

    LAZY = "lazy"
    SYNC = "sync"


def walk(node: TrieNode, keys: Iterable[Hashable]) -> TrieNode:
    """Return the position in a trie that follows ``node`` by the operations ``keys``.

    Positions that lack are added to the trie, in place; without operations it is ``node`` itself.
    """
    for key in keys:
        child = node.children.get(key)
        # setdefault: another thread may have added it in the meantime
        node = node.children.setdefault(key, TrieNode(key)) if child is None else child
    return node


class PlanExplorer(Protocol):
    """Finds plans for sequences of operations that the trie lacks."""

    def explore(
        self, keys: Sequence[Hashable], mode: RunMode
    ) -> tuple[Callable[[], Any], int] | None:
        """Return a function that makes a plan, and the number of leading operations it covers.

        ``keys`` are the queued operations in relative form. None asks for more operations; in mode
        SYNC, a plan must cover all of them.
        """
        ...


class Processor(TrieCursor):
    """Runs the operations of one stream by plans of a trie, which several processors share.

    Args:
        trie: the root of the trie.
        explorer: finds plans that the trie lacks.
        execute: ``execute(plan, count)`` runs the first ``count`` queued operations, and returns
            the relative form of those that stay in the queue. Of a plan for the entire queue, it
            may leave operations whose results nobody needs yet.

    Attributes:
        keys: the queued operations in relative form.
        explorations: the number of plans that the explorer found.
    """

    def __init__(
        self,
        trie: TrieNode,
        explorer: PlanExplorer,
        execute: Callable[[Any, int], list[Hashable]],
    ) -> None:
        super().__init__(trie)
        self.explorer, self.execute = explorer, execute
        self.explorations = 0

    def run(self, mode: RunMode) -> None:
        """Execute plans until the queue is empty, or has only what the executor left pending.

        In mode LAZY, also until a stored plan may still match, or the explorer asks to wait.

        Raises: What exploring and executing raise.
        """
        while self.keys:
            if self.hit is not None:
                plan, count = self.hit
            elif mode is RunMode.LAZY and self.position is not None:
                return  # defer: a stored plan may still match
            elif mode is RunMode.SYNC and self.position is not None and self.position.plan:
                plan, count = self.position.plan, len(self.keys)
            else:
                explored = self._explore(mode)
                if explored is None:
                    return
                plan, count = explored
            covers_all = count == len(self.keys)
            self.reset(self.execute(plan, count))
            if covers_all:
                return  # what is queued now, the executor left pending on purpose

    def _explore(self, mode: RunMode) -> tuple[Any, int] | None:
        """Return a plan from the explorer and the number of operations that it covers.

        It is added to the trie, unless there is one for the same operations, which is returned
        then. In mode LAZY, the trie also notes that the plan runs after the queued operations.

        Returns: None if the explorer asks for more operations, which it may in mode LAZY only.
        """
        result = self.explorer.explore(self.keys, mode)
        if result is None:
            assert mode is RunMode.LAZY, "a plan must cover the queue when a result is needed"
            return None
        make, count = result
        node = walk(self.trie, self.keys[:count])
        if node.plan is None:
            node.plan = make()
            self.explorations += 1
        if mode is RunMode.LAZY:
            end = walk(node, self.keys[count:])
            end.fire = end.fire or (node.plan, count)
        return node.plan, count
