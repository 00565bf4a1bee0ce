"""Rematerialization: recompute cheap forward values in the backward pass instead of keeping them.

The gradient refers to copies of the forward nodes. A copy reads its inputs through an identity node
with a control dependence on the gradient that needs it, so that it runs late and Simplify does not
merge it with the original. This module also lets gradients refer to state variables as the forward
read them, whatever was written since.

Source: NNVM's mirror_fun; Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016.
"""

from __future__ import annotations

from collections.abc import Callable

from passkit.graph.call import find_operator
from passkit.graph.node import AS_READ, CONSTANT, Entry, Node, as_read, is_state
from passkit.graph.node_view import NodeLike, NodeView
from passkit.graph.op import TStateful


def view_of_state_read(node: Node) -> NodeView | None:
    """Return a view of ``node`` with the values of state variables at the time when it read them.

    These are new AS_READ nodes, one for each variable. None if the node reads no state variable.
    """
    if not any(is_state(e) for e in node.inputs):
        return None
    values = {e: as_read(e, node) for e in dict.fromkeys(node.inputs) if is_state(e)}
    return node.view(values.get(e, e) for e in node.inputs)


class Rematerialization:
    """Copies of forward nodes, created as the backward pass needs them.

    Args:
        rule: called once for each forward node that could be computed again; returns whether it is.
    """

    def __init__(self, rule: Callable[[Node], bool]) -> None:
        self.rule = rule
        self.decisions: dict[Node, bool] = {}
        self.copies: dict[Node, Node] = {}

    def is_recomputed(self, node: Node) -> bool:
        """Return whether a node is recomputed: never one without inputs or with TStateful.

        ``rule`` decides about other nodes, once for each; all answers are stored in ``decisions``.
        """
        if node not in self.decisions:
            can = node.op is not None and node.op is not CONSTANT and bool(node.inputs)
            can = can and node.op is not None and not TStateful.get(node.op.name)
            self.decisions[node] = can and bool(self.rule(node))
        return self.decisions[node]

    def forward_node(self, node: Node, after: Node) -> NodeLike:
        """Return the copy of ``node``, or a view of it that refers to the copies of its inputs.

        Where neither it nor a producer is copied, it is a view if the node reads state variables,
        else ``node`` itself. New copies run after the node ``after``, which computes the gradient
        that needs them.
        """
        self.copy([node, *(e.node for e in node.inputs)], after)
        if node in self.copies:
            return self.copies[node]
        original = view_of_state_read(node) or node
        if not any(e.node in self.copies for e in node.inputs):
            return original
        return original.view(map(self.copied, original.inputs))

    def copied(self, entry: Entry) -> Entry:
        """Return the copy of an entry, or the entry itself if it has none."""
        if entry.node in self.copies:
            return self.copies[entry.node].entries[entry.index]
        return entry

    def copy(self, nodes: list[Node], after: Node) -> None:
        """Copy those of ``nodes`` that are recomputed, and their recomputed producers first.

        Args:
            nodes: forward nodes that the backward pass is about to refer to; those that are not
                recomputed are skipped.
            after: the node before which no copy may run, so that the copies are not computed early.
        """
        delayed: dict[Entry, Entry] = {}
        stack = [n for n in nodes if self.is_recomputed(n)]
        while stack:
            node = stack[-1]
            producers = [e.node for e in node.inputs if self.is_recomputed(e.node)]
            missing = [n for n in producers if n not in self.copies]
            if node in self.copies or not missing:
                stack.pop()
                if node not in self.copies:
                    self.copies[node] = self._copy_of(node, after, delayed)
            else:
                stack += missing

    def _copy_of(self, node: Node, after: Node, delayed: dict[Entry, Entry]) -> Node:
        """Return a copy of ``node`` that runs after ``after``.

        If it reads copied nodes, it reads their copies, which wait already. Else its first computed
        input waits, as an identity controlled by ``after``; without one, the copy itself has
        ``after`` as a control dependency. ``delayed`` maps entries to such identities, is shared by
        all copies, and is extended.
        """
        inputs = (view_of_state_read(node) or node).inputs
        name = f"{node.name}_again" if node.name else ""
        if any(e.node in self.copies for e in node.inputs):
            return node.replaced(map(self.copied, inputs), name=name)
        computed = [e for e in inputs if e.node.op not in (None, CONSTANT, AS_READ)]
        if not computed:
            return node.replaced(inputs, (*node.control, after), name)
        first = computed[0]
        if first not in delayed:
            delayed[first] = find_operator("identity")(first, control=(after,))
        return node.replaced((delayed.get(e, e) for e in inputs), name=name)
