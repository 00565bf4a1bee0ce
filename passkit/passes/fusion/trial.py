"""Trials: what blocks would have of a group in the making, for each split of its result.

Operators are taken in users first. Each split of the first result says what a block needs of every
operand in turn; splits that an operator rejects drop out, and where none is left it stays outside.
Source: FusionStitching (2018), SchdConsistent, on the rules of `passkit.splits.propagate`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import field, frozen

from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.splits.propagate import operand_states
from passkit.splits.split import Split, SplitState, guessed, join
from passkit.splits.split_search import by_blocks
from passkit.target import Target
from passkit.values.size import at_least

States = dict[Node, SplitState]


@frozen(eq=False)
class Trial:
    """Operators that agree, and for each split that all of them allow what blocks have of them."""

    graph: Graph
    target: Target
    nodes: tuple[Node, ...] = ()
    allowed: tuple[States, ...] = ()
    inside: frozenset[Node] = field(init=False)

    @inside.default
    def _inside(self) -> frozenset[Node]:
        return frozenset(self.nodes)

    def joined(self, more: Sequence[Node]) -> Trial | Diagnostic:
        """The trial with more operators, users first, or why no split serves them as well."""
        trial = self
        for k, node in enumerate(more):
            found = trial._with(node, more[k + 1 :])
            if isinstance(found, Diagnostic):
                return found
            trial = found
        return trial

    def _with(self, node: Node, coming: Collection[Node]) -> Trial | Diagnostic:
        entry = node.entries[0]
        if not all(at_least(n, 1) for e in (entry, *node.inputs) for n in self.graph.shape(e)):
            return Diagnostic("graph.empty_operand", at=(node.label,))
        leaves = self._leaves(entry, {*self.inside, *coming})
        if not self.nodes:
            alike = by_blocks(self.graph.shape(entry)).values()
            allowed: list[States] = [{node: s} for splits in alike for s in splits]
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
        users = self.graph.users.get(entry, ())
        return entry in self.graph.heads or any(u not in inside for u in users)

    def _state(self, entry: Entry, states: States, leaves: bool) -> SplitState | Diagnostic:
        """What a block has of a value, for what it has of those who read it."""
        shape = self.graph.shape(entry)
        wanted: SplitState | None = None
        for user in dict.fromkeys(self.graph.users.get(entry, ())):
            if user not in states:
                continue
            needs = operand_states(user.entries[0], states[user])
            for read, need in zip(user.inputs, needs, strict=True):
                if read is entry and isinstance(need, Diagnostic):
                    return need
                if read is entry and need is not None and not isinstance(need, Diagnostic):
                    wanted = need if wanted is None else join(wanted, need, shape)
        if wanted is None:
            return self._own(entry, states)
        if isinstance(wanted, Split):
            return wanted
        if leaves:
            return Diagnostic("tile.larger")
        if guessed(wanted.elements(shape)) > self.target.fusion.copied_elements:
            return Diagnostic("tile.repeated", {"count": wanted.elements(shape)})
        return wanted

    def _own(self, entry: Entry, states: States) -> SplitState | Diagnostic:
        """A split of a further result, in as many blocks as the first one has."""
        first = self.nodes[0]
        split = states[first]
        assert isinstance(split, Split)
        blocks = split.blocks(self.graph.shape(first.entries[0]))
        found = by_blocks(self.graph.shape(entry)).get(blocks)
        return found[0] if found else Diagnostic("tile.blocks", {"blocks": blocks})
