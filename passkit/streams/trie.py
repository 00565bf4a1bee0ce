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


class Mode(Enum):
    """Why the processor runs.

    Attributes:
        LAZY: an operation was recorded; it may stay in the queue.
        SYNC: a result is needed now; the queue must become empty.
    """

    LAZY = "lazy"
    SYNC = "sync"


class TrieNode:
    """A position in the trie: the sequence of operations from the root to here.

    Attributes:
        children: the next positions by operation, in relative form.
        plan: the plan for exactly this sequence, or None.
        fire: the plan to execute in lazy mode as soon as this position is reached, or None. It is
            for this sequence, or for the part of it that precedes the operations that closed it.
    """

    __slots__ = ("children", "fire", "plan")

    def __init__(self) -> None:
        self.children: dict[Hashable, TrieNode] = {}
        self.plan: Any = None
        self.fire: Any = None

    def walk(self, keys: Iterable[Hashable]) -> TrieNode:
        """Return the position after more operations; positions that lack are added."""
        node = self
        for key in keys:
            child = node.children.get(key)
            # setdefault: another thread may have added it in the meantime
            node = node.children.setdefault(key, TrieNode()) if child is None else child
        return node


class Explorer(Protocol):
    """Finds plans for sequences of operations that the trie lacks."""

    def explore(self, keys: Sequence[Hashable], mode: Mode) -> tuple[Callable[[], Any], int] | None:
        """Return how to make a plan, and the number of leading operations that it covers.

        None asks for more operations; in mode SYNC, a plan must cover all of them.
        """
        ...


class Processor:
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
        explorer: Explorer,
        execute: Callable[[Any, int], list[Hashable]],
    ) -> None:
        self.trie, self.explorer, self.execute = trie, explorer, execute
        self.keys: list[Hashable] = []
        self.explorations = 0
        self._position: TrieNode | None = trie
        self._hit: tuple[Any, int] | None = None

    def add(self, key: Hashable) -> None:
        """Queue an operation, and move to its position in the trie."""
        self.keys.append(key)
        position = self._position
        if position is not None:
            position = self._position = position.children.get(key)
            if position is not None and position.fire is not None and self._hit is None:
                self._hit = position.fire

    def reset(self, keys: Iterable[Hashable]) -> None:
        """Replace the queue, and move to the position of its operations."""
        self.keys, self._position, self._hit = [], self.trie, None
        for key in keys:
            self.add(key)

    def run(self, mode: Mode) -> None:
        """Execute plans until the queue is empty or, in mode LAZY, until it is to wait.

        Raises: What exploring and executing raise.
        """
        while self.keys:
            if self._hit is not None:
                plan, count = self._hit
            elif mode is Mode.LAZY and self._position is not None:
                return  # defer: a stored plan may still match
            elif mode is Mode.SYNC and self._position is not None and self._position.plan:
                plan, count = self._position.plan, len(self.keys)
            else:
                explored = self._explore(mode)
                if explored is None:
                    return
                plan, count = explored
            covers_all = count == len(self.keys)
            self.reset(self.execute(plan, count))
            if covers_all:
                return  # what is queued now, the executor left pending on purpose

    def _explore(self, mode: Mode) -> tuple[Any, int] | None:
        """Return a new plan and the number of operations that it covers; None to wait for more."""
        result = self.explorer.explore(self.keys, mode)
        if result is None:
            assert mode is Mode.LAZY, "a plan must cover the queue when a result is needed"
            return None
        make, count = result
        node = self.trie.walk(self.keys[:count])
        if node.plan is None:
            node.plan = make()
            self.explorations += 1
        if mode is Mode.LAZY:
            end = node.walk(self.keys[count:])
            end.fire = end.fire or (node.plan, count)
        return node.plan, count
