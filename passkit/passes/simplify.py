"""Simplify: common subexpressions, constants, and exact algebra. Dead code is gone by construction.

Only what keeps every bit: operators' FSimplify, constants computed by `interpret`, equal nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

from passkit.errors import PassError
from passkit.graph import rules
from passkit.graph.graph import Graph
from passkit.graph.infer import show_shape
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.op import FSimplify, TStateful
from passkit.passes.base import register_pass
from passkit.passes.context import PassContext
from passkit.passes.cse import node_key
from passkit.passes.fold import can_fold, fold

ROUNDS = 1000
"""How often one node may be rewritten before FSimplify is taken to run in circles."""


@register_pass("Simplify", depends="complete", preserves="functional", changes_graph=True)
def simplify(graph: Graph, context: PassContext) -> Graph:
    """Merge equal nodes, compute constants, and apply FSimplify until nothing changes.

    a = exp(x); b = exp(x); y = add(a, b)    becomes    a = exp(x); y = add(a, a)

    Raises: PassError when FSimplify changes a shape or dtype, or never ends.
    """
    best = _Best(context.spend)
    for node in graph.nodes:
        best.settle(node)
    updates = [(v, best.of(e)) for v, e in graph.updates]
    return Graph([best.of(e) for e in graph.outputs], updates)


class _Best:
    """What stands for each node in the simplified graph: one node for all that are equal.

    A node is settled when its inputs are. A rewritten node waits for what it was rewritten to,
    which is settled like any other, so that the result is a fixed point.
    """

    def __init__(self, spend: Callable[[str], bool]) -> None:
        self.spend = spend
        self.final: dict[Node, Sequence[Entry]] = {}
        self.goal: dict[Node, Sequence[Entry]] = {}
        self.rounds: dict[Node, int] = {}
        self.equal: dict[Hashable, Node] = {}
        self.active: dict[Hashable, Node] = {}
        self.key: dict[Node, Hashable] = {}

    def of(self, entry: Entry) -> Entry:
        """What stands for an entry."""
        return self.final[entry.node][entry.index]

    def settle(self, node: Node) -> None:
        """Find what stands for a node, and for all that comes up on the way."""
        stack = [node]
        while stack:
            top = stack[-1]
            if top in self.final:
                stack.pop()
                continue
            goal = self.goal.get(top)
            if goal is not None:
                before = [e.node for e in goal]
            else:
                before = [*(e.node for e in top.inputs), *top.control]
            waiting = [n for n in before if n not in self.final]
            if waiting:
                if any(n in self.goal for n in waiting):
                    again = next(n for n in waiting if n in self.goal)
                    raise PassError(
                        f"FSimplify of {again.where} gives what uses {again.where} itself; it "
                        f"must be made from the node's inputs"
                    )
                stack += reversed(waiting)
            elif goal is not None:
                self.final[top] = [self.of(e) for e in goal]
                if top in self.key:
                    key = self.key.pop(top)
                    self.equal[key] = self.active.pop(key)
            else:
                self.step(top)

    def step(self, node: Node) -> None:
        """Settle a node whose inputs are settled, or give it a goal."""
        inputs = tuple(self.of(e) for e in node.inputs)
        control = tuple(dict.fromkeys(self.final[c][0].node for c in node.control))
        if inputs != node.inputs or control != node.control:
            self.aim(node, node.replaced(inputs, control).entries)
            return
        key = node_key(node)
        if key is None:
            self.final[node] = node.entries
            return
        twin = self.equal.get(key)
        if twin is not None and (
            node.op is CONSTANT or self.spend(f"Simplify: merge {node.where}")
        ):
            self.final[node] = self.final[twin]
            return
        # A node that came back to what is being rewritten already is where rewriting ends.
        found = None if key in self.active else self.rewritten(node)
        if found is None:
            self.equal[key] = node
            self.final[node] = node.entries
        else:
            self.active[key], self.key[node] = node, key
            self.aim(node, found)

    def aim(self, node: Node, entries: Sequence[Entry]) -> None:
        """Let what stands for ``entries`` stand for ``node``."""
        rounds = self.rounds.get(node, 0) + 1
        if rounds > ROUNDS:
            raise PassError(
                f"FSimplify of {node.where} does not come to an end after {ROUNDS} rewrites; it "
                f"must return None for what it has rewritten itself"
            )
        self.goal[node] = entries
        for entry in entries:
            if entry.node not in self.final:
                self.rounds[entry.node] = rounds

    def rewritten(self, node: Node) -> Sequence[Entry] | None:
        """Simpler entries with the values of a node's results; None when there are none."""
        assert node.op is not None
        if node.control or node.op is CONSTANT or TStateful.get(node.op.name):
            return None
        if can_fold(node):
            return fold(node) if self.spend(f"Simplify: fold {node.where}") else None
        if FSimplify.get(node.op.name) is None:
            return None
        found = rules.entry(FSimplify, node, rules.call(FSimplify, node, node))
        if found is None or found is node.entries[0]:
            return None
        whole = node.entries[0]
        if found.shape != whole.shape or found.dtype is not whole.dtype:
            raise PassError(
                f"FSimplify of {node.where} gives {found.dtype}{show_shape(found.shape)} for "
                f"{whole.dtype}{show_shape(whole.shape)}"
            )
        return [found] if self.spend(f"Simplify: rewrite {node.where}") else None
