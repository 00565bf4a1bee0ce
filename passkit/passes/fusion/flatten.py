"""Opening a fused graph: each fused node is replaced by the operators of its body."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.plan.group import FUSED, Group


def flatten(graph: Graph) -> Graph:
    """The graph as it was before Fusion, up to copies of free nodes.

    a -> fused{exp, add} -> y    becomes    a -> exp -> add -> y
    """

    def change(node: Node, inputs: tuple[Entry, ...]) -> Sequence[Entry] | None:
        if node.op is not FUSED:
            return None
        return inline(node.params["body"], inputs)

    return graph.rebuild(change)


def inline(group: Group, inputs: Sequence[Entry]) -> tuple[Entry, ...]:
    """The group's outputs, computed from ``inputs`` by plain operators."""
    new: dict[Entry, Entry] = {}
    for node, entry in zip(group.graph.inputs, inputs, strict=True):
        new[node.entries[0]] = entry
    for node in group.graph.nodes:
        if node.is_variable:
            continue
        made = node.replaced([new[e] for e in node.inputs], (), group.origin.get(node, node.name))
        new.update(zip(node.entries, made.entries, strict=True))
    return tuple(new[e] for e in group.graph.outputs)
