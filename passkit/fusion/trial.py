"""Trials: the parts of values that blocks would have of a growing group, for each split.

Operators are added users first. Each split of the first result determines the part of every operand
that a block needs; splits that an operator rejects are dropped, and if none is left the operator
stays outside.
Source: FusionStitching (2018), SchdConsistent, on the rules of `passkit.analysis.propagate`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import field, frozen

from passkit.analysis.propagate import operand_tile_maps
from passkit.analysis.tilemap import Split, SplitState, guessed, join
from passkit.analysis.tiling_search import by_blocks
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.target import Target
from passkit.values.size import at_least

StateOfNode = dict[Node, SplitState]


@frozen(eq=False)
class Trial:
    """Operators that agree on splits of their values into blocks.

    Attributes:
        graph: the graph.
        target: the target.
        nodes: the operators, users first.
        allowed: for each split that all of them allow the part of each operator's value that a
            block has.
        inside: the operators.
    """

    graph: Graph
    target: Target
    nodes: tuple[Node, ...] = ()
    allowed: tuple[StateOfNode, ...] = ()
    inside: frozenset[Node] = field(init=False)

    @inside.default
    def _inside(self) -> frozenset[Node]:
        return frozenset(self.nodes)

    def with_nodes(self, more: Sequence[Node]) -> Trial | Diagnostic:
        """Return the trial with more operators, users first, or why no split serves them, too."""
        trial = self
        for k, node in enumerate(more):
            joined = trial._with_node(node, more[k + 1 :])
            if isinstance(joined, Diagnostic):
                return joined
            trial = joined
        return trial

    def _with_node(self, node: Node, coming: Collection[Node]) -> Trial | Diagnostic:
        """Return the trial with another operator, or why no split serves it as well.

        Args:
            node: the operator.
            coming: operators that are added afterwards.
        """
        entry = node.entries[0]
        if not all(at_least(n, 1) for e in (entry, *node.inputs) for n in self.graph.shape(e)):
            return Diagnostic("graph.empty_operand", at=(node.label,))
        leaves = self._leaves(entry, {*self.inside, *coming})
        if not self.nodes:
            alike = by_blocks(self.graph.shape(entry)).values()
            allowed: list[StateOfNode] = [{node: s} for splits in alike for s in splits]
            why = Diagnostic("tile.no_split")
        else:
            allowed, why = [], Diagnostic("tile.none_left")
            for states in self.allowed:
                state = self._state(entry, states, leaves)
                if isinstance(state, Diagnostic):
                    why = state
                else:
                    allowed.append({**states, node: state})
        if not allowed:
            return why
        return Trial(self.graph, self.target, (*self.nodes, node), tuple(allowed))

    def _leaves(self, entry: Entry, inside: Collection[Node]) -> bool:
        """Return whether a value is a result of the graph, or read outside of operators."""
        users = self.graph.users.get(entry, ())
        return entry in self.graph.heads or any(u not in inside for u in users)

    def _state(self, entry: Entry, states: StateOfNode, leaves: bool) -> SplitState | Diagnostic:
        """Return the part of a value that a block has, or why it cannot have that part.

        Args:
            entry: the value.
            states: the parts that it has of the values of operators that read it.
            leaves: whether the value is also read outside.
        """
        shape = self.graph.shape(entry)
        part: SplitState | None = None
        for user in dict.fromkeys(self.graph.users.get(entry, ())):
            if user not in states:
                continue
            needs = operand_tile_maps(user.entries[0], states[user])
            for read, need in zip(user.inputs, needs, strict=True):
                if read is entry and isinstance(need, Diagnostic):
                    return need
                if read is entry and need is not None and not isinstance(need, Diagnostic):
                    part = need if part is None else join(part, need, shape)
        if part is None:
            return self._own(entry, states)
        if isinstance(part, Split):
            return part
        if leaves:
            return Diagnostic("tile.larger")
        if guessed(part.elements(shape)) > self.target.fusion.copied_elements:
            return Diagnostic("tile.repeated", {"count": part.elements(shape)})
        return part

    def _own(self, entry: Entry, states: StateOfNode) -> SplitState | Diagnostic:
        """Return a split of a further result, into as many blocks as the first one has."""
        first = self.nodes[0]
        split = states[first]
        assert isinstance(split, Split)
        blocks = split.blocks(self.graph.shape(first.entries[0]))
        alike = by_blocks(self.graph.shape(entry)).get(blocks)
        return alike[0] if alike else Diagnostic("tile.blocks", {"blocks": blocks})
