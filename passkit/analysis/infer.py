"""Consistency: what a block has of each value of a group, for the splits that results have.

A group runs in parts. What a part leaves for others, or for the caller, is computed once: a block
has of it what all those who read it ask for together. Other values are computed where a part reads
them, and may be needed in several ways. External inputs are there for any block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

from attrs import field, frozen

from passkit.analysis.propagate import operand_tile_maps
from passkit.analysis.tilemap import Split, SplitState, Whole, join
from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.values.size import Extent

States = dict[Entry, SplitState]
_Asked = dict[SplitState, "Node | None"]
"""What is asked of a value, and who asks first: None is the caller."""


_Ask = tuple[Entry, SplitState, Node]
"""A value that is read, what is asked of it, and who asks."""


@frozen(eq=False)
class NestResults:
    """Nodes in post-order that are computed together, and the ``results`` that leave them.

    What nodes read of each other they compute at any element, whatever a block has of it.
    """

    nodes: Sequence[Node]
    results: Sequence[Entry]
    inside: frozenset[Node] = field(init=False)
    asks: dict[tuple[SplitState | None, ...], tuple[_Ask, ...] | Diagnostic] = field(
        init=False, factory=dict
    )
    """What states of the results ask of what the part reads, as far as that has been found out:
    a search meets the same states of most parts again and again."""

    @inside.default
    def _inside(self) -> frozenset[Node]:
        return frozenset(self.nodes)


def infer_tile_maps(
    graph: Graph, roots: Mapping[Entry, Split], parts: Sequence[NestResults]
) -> States | Diagnostic:
    """What a block has of the results of all parts, or why that cannot be.

    ``parts`` come in an order in which they can run. ``roots`` give results their splits; others
    follow from who reads them, and have no state where nobody does. What blocks need more of than
    their share is a `Whole`: each computes it for itself. So it cannot be with the outputs of the
    graph and with the ``roots``, of which each element is written by one block.

    The codes of refusals: ``tile.conflict`` and ``tile.whole``, such a value is needed in two ways,
    or by every block; ``tile.operator``, an operator cannot be split so; ``tile.count``, the roots
    have different numbers of blocks; ``tile.empty``, one of them has no elements.
    """
    return _Walk(graph, roots).run(parts)


class _Walk:
    """One walk from the roots to the inputs, users before producers."""

    def __init__(self, graph: Graph, roots: Mapping[Entry, Split]) -> None:
        self.graph, self.roots = graph, roots
        self.once = {*roots, *graph.outputs}
        self.asked: dict[Entry, _Asked] = {}
        self.states: States = {}
        self.blocks: Extent = 1

    def run(self, parts: Sequence[NestResults]) -> States | Diagnostic:
        """The states, or the first thing on the way that has none."""
        problem = self._begin()
        for part in reversed(parts):
            problem = problem or self._settle(part) or self._ask(part)
        return problem or self.states

    def _begin(self) -> Diagnostic | None:
        """What the roots ask for; they must have the same number of blocks."""
        first: Entry | None = None
        for entry, split in self.roots.items():
            shape = known_shape(entry)
            if 0 in shape:
                return Diagnostic("tile.empty", {"value": self._name(entry)}, (entry.node.label,))
            many = split.blocks(shape)
            if first is None:
                first, self.blocks = entry, many
            elif many != self.blocks:
                return Diagnostic(
                    "tile.count",
                    {
                        "value": self._name(first),
                        "blocks": self.blocks,
                        "other": self._name(entry),
                        "other_blocks": many,
                    },
                    (entry.node.label,),
                )
            self.asked[entry] = {split.canonical(shape): None}
        return None

    def _name(self, entry: Entry) -> str:
        name = self.graph.names[entry.node]
        return f"{name}:{entry.index}" if len(entry.node.entries) > 1 else name

    def _settle(self, part: NestResults) -> Diagnostic | None:
        """Give each result of a part the one state that it has."""
        for entry in part.results:
            asked = self.asked.get(entry)
            if asked is not None:
                state = self._settled(entry, asked)
                if isinstance(state, Diagnostic):
                    return state
                self.states[entry] = state
        return None

    def _ask(self, part: NestResults) -> Diagnostic | None:
        """Hand on what the states of a part's results ask of its operands."""
        states = tuple(map(self.states.get, part.results))
        asks = part.asks.get(states)
        if asks is None:
            asks = part.asks[states] = self._asks(part)
        if isinstance(asks, Diagnostic):
            return asks
        for operand, found, node in asks:
            into = self.asked.get(operand)
            if into is None:
                self.asked[operand] = {found: node}
            elif found not in into:
                into[found] = node
        return None

    def _asks(self, part: NestResults) -> tuple[_Ask, ...] | Diagnostic:
        inner: dict[Entry, _Asked] = {
            e: {self.states[e]: None} for e in part.results if e in self.states
        }
        outer: dict[Entry, _Asked] = {}
        for node in reversed(part.nodes):
            wanted = [(e, state) for e in node.entries for state in inner.get(e, ())]
            for entry, state in wanted:
                for operand, found in zip(
                    node.inputs, operand_tile_maps(entry, state), strict=True
                ):
                    if isinstance(found, Diagnostic):
                        data = {"value": self._name(entry), "state": state, "reason": found}
                        return Diagnostic("tile.operator", data, (node.label,))
                    if found is not None and not is_leaf(operand.node):
                        into = inner if operand.node in part.inside else outer
                        into.setdefault(operand, {}).setdefault(found, node)
        return tuple(
            (e, state, node)
            for e, asked in outer.items()
            for state, node in asked.items()
            if node is not None
        )

    def _settled(self, entry: Entry, asked: _Asked) -> SplitState | Diagnostic:
        """The one state that a value has which is held."""
        first = next(iter(asked))
        if entry not in self.once and len(asked) == 1:
            return first
        shape, (_, *others) = known_shape(entry), asked
        other = next((s for s in others if not _is_same(first, s, entry)), None)
        if entry not in self.once:
            return first if other is None else reduce(lambda a, b: join(a, b, shape), asked)
        if other is not None:
            return self._differ(entry, asked, first, other)
        if isinstance(first, Whole) and self.blocks != 1:
            return self._needed_whole(entry, asked, first)
        return first

    def _user(self, node: Node | None) -> str:
        return "the caller" if node is None else self.graph.names[node]

    def _differ(self, entry: Entry, asked: _Asked, a: SplitState, b: SplitState) -> Diagnostic:
        return Diagnostic(
            "tile.conflict",
            {
                "value": self._name(entry),
                "state": a,
                "user": self._user(asked[a]),
                "other_state": b,
                "other_user": self._user(asked[b]),
            },
            (entry.node.label,),
        )

    def _needed_whole(self, entry: Entry, asked: _Asked, whole: SplitState) -> Diagnostic:
        return Diagnostic(
            "tile.whole",
            {
                "value": self._name(entry),
                "state": whole,
                "user": self._user(asked[whole]),
                "blocks": self.blocks,
            },
            (entry.node.label,),
        )


def _is_same(a: SplitState, b: SplitState, entry: Entry) -> bool:
    """Whether two states are one partition, or one need."""
    if isinstance(a, Split) and isinstance(b, Split):
        return a.same(b, known_shape(entry))
    return a == b
