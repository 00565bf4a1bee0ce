"""What a gradient refers to: values as they were read, and values computed again.

A value that is cheap to compute need not be kept from the forward until its gradient is computed.
Its copies read their inputs through an identity that comes after the gradient which asks for them,
so that they are computed late, and Simplify does not take them for the originals.

Source: NNVM's mirror_fun; Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016.
"""

from __future__ import annotations

from collections.abc import Callable

from passkit.graph.call import find_operator
from passkit.graph.node import AS_READ, CONSTANT, Entry, Node, as_read, is_state
from passkit.graph.op import TStateful


def pinned(node: Node) -> Node | None:
    """``node`` with the state variables that it reads as it read them; None if there are none."""
    if not any(is_state(e) for e in node.inputs):
        return None
    read = {e: as_read(e, node) for e in dict.fromkeys(node.inputs) if is_state(e)}
    return node.seen(read.get(e, e) for e in node.inputs)


class Rematerialization:
    """Copies of the nodes for which ``rule`` holds, made as gradients ask for them."""

    def __init__(self, rule: Callable[[Node], bool]) -> None:
        self.rule = rule
        self.chosen: dict[Node, bool] = {}
        self.copies: dict[Node, Node] = {}

    def copied(self, node: Node) -> bool:
        """Whether a node is to be computed again; what has no inputs or writes state never is."""
        if node not in self.chosen:
            can = node.op is not None and node.op is not CONSTANT and bool(node.inputs)
            can = can and node.op is not None and not TStateful.get(node.op.name)
            self.chosen[node] = can and bool(self.rule(node))
        return self.chosen[node]

    def source(self, node: Node, after: Node) -> Node:
        """What the rule of ``node`` is to see, where copies are made after the node ``after``."""
        self.copy([node, *(e.node for e in node.inputs)], after)
        if node in self.copies:
            return self.copies[node]
        known = pinned(node) or node
        if not any(e.node in self.copies for e in node.inputs):
            return known
        return known.seen(map(self.entry, known.inputs))

    def entry(self, e: Entry) -> Entry:
        """The copy of an entry, if there is one."""
        return self.copies[e.node].entries[e.index] if e.node in self.copies else e

    def copy(self, wanted: list[Node], after: Node) -> None:
        """Copy nodes, and those before them that are to be computed again, producers first."""
        late: dict[Entry, Entry] = {}
        stack = [n for n in wanted if self.copied(n)]
        while stack:
            node = stack[-1]
            before = [e.node for e in node.inputs if self.copied(e.node)]
            missing = [n for n in before if n not in self.copies]
            if node in self.copies or not missing:
                stack.pop()
                if node not in self.copies:
                    self.copies[node] = self.made(node, after, late)
            else:
                stack += missing

    def made(self, node: Node, after: Node, late: dict[Entry, Entry]) -> Node:
        """A copy of ``node``; ``late`` are the inputs that wait for ``after`` already."""
        seen = pinned(node) or node
        if any(e.node in self.copies for e in node.inputs):
            return node.replaced(map(self.entry, seen.inputs), name=_again(node))
        computed = [e for e in seen.inputs if e.node.op not in (None, CONSTANT, AS_READ)]
        if not computed:
            return node.replaced(seen.inputs, (*node.control, after), _again(node))
        first = computed[0]
        if first not in late:
            late[first] = find_operator("identity")(first, control=(after,))
        return node.replaced((late.get(e, e) for e in seen.inputs), name=_again(node))


def _again(node: Node) -> str:
    return f"{node.name}_again" if node.name else ""
