"""Spreading facts over a graph: what is known of one entry tells something of its neighbours."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node

Fact = TypeVar("Fact")


class Spread(Generic[Fact]):
    """Facts about entries, and the nodes that may know more now that a fact was learnt.

    ``visit`` and ``guess`` call `learn`. A node is visited again when one of its entries becomes
    known; it guesses only when nothing is left to conclude. Every entry is learnt once, so the
    work is linear in the number of edges.
    """

    def __init__(self, graph: Graph, known: dict[Entry, Fact | None]) -> None:
        self.graph = graph
        self.known = known
        self._waiting: deque[Node] = deque()

    def learn(self, entry: Entry, fact: Fact | None) -> None:
        """Note a fact about an entry of which nothing was known."""
        if fact is None or self.known[entry] is not None:
            return
        self.known[entry] = fact
        self._waiting.append(entry.node)
        self._waiting.extend(self.graph.users.get(entry, ()))

    def settle(self, visit: Callable[[Node], None], guess: Callable[[Node], None]) -> None:
        """Conclude all that follows, guessing where nothing does."""
        lacking = [n for n in self.graph.nodes if n.op is not None and self._lacks(n)]
        self._waiting.extend(lacking)
        guesses: deque[Node] = deque()
        while self._waiting or guesses:
            if self._waiting:
                node = self._waiting.popleft()
                if node.op is not None and self._lacks(node):
                    visit(node)
                    guesses.append(node)
            else:
                node = guesses.popleft()
                if self._lacks(node):
                    guess(node)

    def _lacks(self, node: Node) -> bool:
        known = self.known
        return any(known[e] is None for e in (*node.inputs, *node.entries))
