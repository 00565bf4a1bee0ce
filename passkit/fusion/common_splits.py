"""Common splits: the parts of values that the tiles of a growing group have, for each split.

Operators are added users first. Each split of the first result determines the part of every operand
that a tile needs; splits that an operator rejects are dropped, and if none is left the operator
stays outside.
Source: FusionStitching (2018), SchdConsistent, on the rules of `passkit.analysis.propagate`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from passkit.analysis.propagate import operand_tile_maps
from passkit.analysis.tilemap import TileMap, guessed
from passkit.analysis.tiling_search import by_tiles
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.target import Target
from passkit.values.size import at_least

StateOfNode = dict[Node, TileMap]


class CommonSplits:
    """The splits on which operators agree.

    Attributes:
        nodes: the operators, users first.
        allowed: for each split of the first result that all of them allow the part of each
            operator's value that a tile has.
    """

    def __init__(self, graph: Graph, target: Target) -> None:
        self.graph, self.target = graph, target
        self.nodes: list[Node] = []
        self.allowed: list[StateOfNode] = []

    def add(self, nodes: Sequence[Node]) -> Diagnostic | None:
        """Add operators, users first; return why no split serves them, and add none, if so."""
        count, allowed = len(self.nodes), self.allowed
        inside = {*self.nodes, *nodes}
        for node in nodes:
            problem = self._add(node, inside)
            if problem is not None:
                for states in allowed:
                    for n in self.nodes[count:]:
                        states.pop(n, None)
                del self.nodes[count:]
                self.allowed = allowed
                return problem
        return None

    def _add(self, node: Node, inside: Collection[Node]) -> Diagnostic | None:
        """Add an operator, or return why no split serves it as well.

        Args:
            node: the operator.
            inside: all operators, with those that are added afterwards.
        """
        entry = node.entries[0]
        if not all(at_least(n, 1) for e in (entry, *node.inputs) for n in self.graph.shape(e)):
            return Diagnostic("graph.empty_operand", at=(node.label,))
        if not self.nodes:
            splits = by_tiles(self.graph.shape(entry)).values()
            self.allowed = [{node: s} for alike in splits for s in alike]
            problem = Diagnostic("tile.no_split")
        else:
            problem = self._restrict(entry, inside)
        self.nodes.append(node)
        return None if self.allowed else problem

    def _restrict(self, entry: Entry, inside: Collection[Node]) -> Diagnostic:
        """Keep the splits that serve a value; return why others do not.

        Args:
            entry: the value.
            inside: all operators of the group.
        """
        users = dict.fromkeys(self.graph.users.get(entry, ()))
        leaves = entry in self.graph.heads or any(u not in inside for u in users)
        added = self.allowed[0]
        reads = [(u, k) for u in users if u in added for k, e in enumerate(u.inputs) if e is entry]
        allowed, problem = [], Diagnostic("tile.none_left")
        for states in self.allowed:
            state = self._state(entry, states, reads, leaves)
            if isinstance(state, Diagnostic):
                problem = state
            else:
                states[entry.node] = state
                allowed.append(states)
        self.allowed = allowed
        return problem

    def _state(
        self,
        entry: Entry,
        states: StateOfNode,
        reads: Sequence[tuple[Node, int]],
        leaves: bool,
    ) -> TileMap | Diagnostic:
        """Return the part of a value that a tile has, or why it cannot have that part.

        Args:
            entry: the value.
            states: the parts that the tile has of other values.
            reads: the operators that read it, each with the number of an input.
            leaves: whether the value is also read outside.
        """
        part: TileMap | None = None
        for user, number in reads:
            need = operand_tile_maps(user.entries[0], states[user])[number]
            if isinstance(need, Diagnostic):
                return need
            if need is not None:
                part = need if part is None else part.joined(need)
        if part is None:
            return self._own(entry, states)
        if part.is_partition:
            return part
        if leaves:
            return Diagnostic("tile.larger")
        if guessed(part.elements) > self.target.fusion.copied_elements:
            return Diagnostic("tile.repeated", {"count": part.elements})
        return part

    def _own(self, entry: Entry, states: StateOfNode) -> TileMap | Diagnostic:
        """Return a split of a further result, into as many blocks as the first one has."""
        first = self.nodes[0]
        blocks = states[first].tiles
        alike = by_tiles(self.graph.shape(entry)).get(blocks)
        return alike[0] if alike else Diagnostic("tile.blocks", {"blocks": blocks})
