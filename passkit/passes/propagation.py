"""Propagation of facts over a graph: facts about entries imply facts about their neighbours.

Shape and dtype inference are instances.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node

Fact = TypeVar("Fact")


class Propagation(Generic[Fact]):
    """Facts about entries, and a worklist of the nodes at which more may be inferred.

    A fact is set once for each entry, so that the work is linear in the number of edges.

    Args:
        graph: The graph.
        facts: The initial fact of every entry, None where it is unknown. It is updated in place.
    """

    def __init__(self, graph: Graph, facts: dict[Entry, Fact | None]) -> None:
        self.graph = graph
        self.facts = facts
        self._worklist: deque[Node] = deque()

    def set_fact(self, entry: Entry, fact: Fact | None) -> None:
        """Set the fact of an entry and put its producer and users on the worklist.

        Do nothing if ``fact`` is None or the entry has a fact already, even another one.
        """
        if fact is None or self.facts[entry] is not None:
            return
        self.facts[entry] = fact
        self._worklist.append(entry.node)
        self._worklist.extend(self.graph.users.get(entry, ()))

    def run(self, infer: Callable[[Node], None], guess: Callable[[Node], None]) -> None:
        """Infer facts until none follows.

        Args:
            infer: Called with a node that has an entry without a fact, initially and whenever a
                fact about one of its entries is set. It calls `set_fact`.
            guess: Called with nodes that ``infer`` was called with and that still have such an
                entry, but only while nothing is left to infer.

        Raises: What ``infer`` and ``guess`` raise.
        """
        incomplete = [n for n in self.graph.nodes if n.op is not None and self._is_incomplete(n)]
        self._worklist.extend(incomplete)
        to_guess: deque[Node] = deque()
        while self._worklist or to_guess:
            if self._worklist:
                node = self._worklist.popleft()
                if node.op is not None and self._is_incomplete(node):
                    infer(node)
                    to_guess.append(node)
            else:
                node = to_guess.popleft()
                if self._is_incomplete(node):
                    guess(node)

    def _is_incomplete(self, node: Node) -> bool:
        """Return whether an input or output of the node has no fact yet."""
        return any(self.facts[e] is None for e in (*node.inputs, *node.entries))
