"""Consistency: whether the values of a group can be shared out over one launch's blocks.

Values that are materialised, in scratch or in an output, are computed once, so all their readers
must ask for the same part in each block. The others are computed where they are read, and may be
needed in several ways. External inputs are there for any block.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce
from typing import Any

from attrs import field, frozen

from passkit.errors import ScheduleError
from passkit.graph import Graph
from passkit.node import Entry, Node, known_shape
from passkit.propagate import operand_states
from passkit.size import Extent, at_least, numel
from passkit.space import is_free
from passkit.split import WHOLE, Reject, Split, State, Whole, join

REPLICATED = 4096
"""The most elements of a value that every block computes for itself."""
DEPTH = 1
"""How deep such values may rest on each other."""


@frozen
class Conflict:
    """Why no common schedule exists: a code, a sentence, and the values and states in it.

    ``schedule_conflict``: a materialised value is needed in two ways, or by every block;
    ``schedule_reject``: an operator cannot be split so; ``block_count``: the outputs have different
    numbers of blocks; ``empty``: a value has no elements.
    """

    code: str
    reason: str
    data: Mapping[str, Any] = field(factory=dict, eq=False)
    node: Node | None = field(default=None, eq=False)


States = dict[Entry, State]


def consistent(
    graph: Graph,
    roots: Mapping[Entry, Split],
    materialised: Collection[Entry],
    *,
    strict: bool = False,
    replicated: Collection[Entry] = (),
) -> States | Conflict:
    """The part of each materialised value and root that a block has, or why there is none.

    ``roots`` give outputs their splits; an output that other operators read follows from them where
    it has none. ``replicated`` are materialised values that each block may compute for itself, as a
    `Whole`: such as `replicable` finds. With ``strict`` every operator must agree, and has a state.

    Raises: ScheduleError for an output without a split that nothing reads.
    """
    walk = _Walk(graph, roots, materialised, strict, replicated)
    return walk.conflict or walk.run()


class _Walk:
    """One walk from the roots to the inputs, users before producers."""

    def __init__(
        self,
        graph: Graph,
        roots: Mapping[Entry, Split],
        materialised: Collection[Entry],
        strict: bool,
        replicated: Collection[Entry],
    ) -> None:
        self.graph, self.strict = graph, strict
        self.held, self.replicated = set(materialised) | set(graph.outputs), set(replicated)
        self.roots = roots
        self.asked: dict[Entry, dict[State, Node | None]] = {}
        self.states: States = {}
        self.blocks: Extent = 1
        self.conflict = self._begin()

    def _begin(self) -> Conflict | None:
        """What the roots ask for; they must have the same number of blocks."""
        first: Entry | None = None
        for entry, split in self.roots.items():
            shape = known_shape(entry)
            if 0 in shape:
                name = self._name(entry)
                return Conflict("empty", f"{name} has no elements", {"value": name}, entry.node)
            many = split.blocks(shape)
            if first is None:
                first, self.blocks = entry, many
            elif many != self.blocks:
                names = self._name(first), self._name(entry)
                return Conflict(
                    "block_count",
                    f"{names[0]} has {self.blocks} blocks, {names[1]} has {many}",
                    {"values": names, "blocks": (self.blocks, many)},
                    entry.node,
                )
            self.asked[entry] = {split.canonical(shape): None}
        return None

    def _name(self, entry: Entry) -> str:
        name = self.graph.names[entry.node]
        return f"{name}:{entry.index}" if len(entry.node.entries) > 1 else name

    def run(self) -> States | Conflict:
        """The states, or the first conflict on the way."""
        for node in reversed(self.graph.nodes):
            for entry in () if is_free(node) else node.entries:
                failed = self._visit(entry)
                if failed is not None:
                    return failed
        return self.states

    def _visit(self, entry: Entry) -> Conflict | None:
        asked = self.asked.get(entry)
        if asked is None:
            if entry in self.graph.outputs:
                raise ScheduleError(
                    f"the output {self._name(entry)} has no split, and nothing in its group that "
                    "has one reads it; give it one in roots"
                )
            return None
        wanted = list(asked)
        if self.strict or entry in self.held or entry in self.roots:
            state = self._settled(entry, asked)
            if isinstance(state, Conflict):
                return state
            self.states[entry] = state
            wanted = [state]
        for state in wanted:
            failed = self._ask(entry, state)
            if failed is not None:
                return failed
        return None

    def _ask(self, entry: Entry, state: State) -> Conflict | None:
        """Hand on what a value's state asks of its operands."""
        node = entry.node
        for operand, found in zip(node.inputs, operand_states(entry, state), strict=True):
            if isinstance(found, Reject):
                name = self._name(entry)
                return Conflict(
                    "schedule_reject",
                    f"{name} rejects {state}: {found.reason}",
                    {"value": name, "state": state},
                    node,
                )
            if found is not None and not is_free(operand.node):
                self.asked.setdefault(operand, {}).setdefault(found, node)
        return None

    def _settled(self, entry: Entry, asked: Mapping[State, Node | None]) -> State | Conflict:
        """The one state that a materialised value has."""
        shape, states = known_shape(entry), list(asked)
        splits = [s for s in states if isinstance(s, Split)]
        if self.blocks == 1:
            return splits[0] if splits else WHOLE
        other = next((s for s in splits[1:] if not s.same(splits[0], shape)), None)
        whole = next((s for s in states if isinstance(s, Whole)), None)
        if other is None and whole is None:
            return splits[0]
        output = entry in self.roots or entry in self.graph.outputs
        why = "it is an output" if output else "it is no replicated value"
        if entry in self.replicated and not output:
            state = reduce(lambda a, b: join(a, b, shape), states)
            assert isinstance(state, Whole)
            count = state.elements(shape)
            if at_least(REPLICATED, count):
                return state
            why = f"{count} elements are more than the {REPLICATED} that a block may replicate"
        if splits:
            return self._differ(entry, asked, splits[0], other or whole or splits[0])
        return self._needed_whole(entry, asked, states[0], why)

    def _user(self, node: Node | None) -> str:
        return "the caller" if node is None else self.graph.names[node]

    def _differ(
        self, entry: Entry, asked: Mapping[State, Node | None], a: State, b: State
    ) -> Conflict:
        name, users = self._name(entry), (self._user(asked[a]), self._user(asked[b]))
        return Conflict(
            "schedule_conflict",
            f"{name} is needed as {a} by {users[0]} and as {b} by {users[1]}",
            {"value": name, "states": (a, b), "users": users},
            entry.node,
        )

    def _needed_whole(
        self, entry: Entry, asked: Mapping[State, Node | None], whole: State, why: str
    ) -> Conflict:
        name, user = self._name(entry), self._user(asked[whole])
        return Conflict(
            "schedule_conflict",
            f"{name} is needed as {whole} by {user} in each of {self.blocks} blocks, and {why}",
            {"value": name, "states": (whole,), "users": (user,)},
            entry.node,
        )


def replicable(graph: Graph, materialised: Collection[Entry]) -> frozenset[Entry]:
    """The materialised values that are small enough, and rest on no more than one such value.

    Outputs are none: each element of theirs is written by one block.
    """
    depth: dict[Entry, int] = {}
    found = set()
    for node in graph.nodes:
        below = max((depth[e] for e in node.inputs), default=0)
        for entry in node.entries:
            held = not is_free(node) and entry in materialised
            depth[entry] = below + held
            small = at_least(REPLICATED, numel(known_shape(entry)))
            if held and small and depth[entry] <= DEPTH + 1 and entry not in graph.outputs:
                found.add(entry)
    return frozenset(found)
