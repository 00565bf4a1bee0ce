"""Opening a fused graph: each fused node is replaced by the operators of its body."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.plan.group import FUSED, Group


def flatten(graph: Graph) -> Graph:
    """The graph as it was before Fusion, up to copies of free nodes.

    What a fused node waits for is what the first operators of its body wait for.

    a -> fused{exp, add} -> y    becomes    a -> exp -> add -> y
    """
    return graph.transform(
        lambda node: (
            inline(node.params["body"], node.inputs, node.control) if node.op is FUSED else None
        )
    )


def inline(
    group: Group, inputs: Sequence[Entry], control: Sequence[Node] = ()
) -> tuple[Entry, ...]:
    """The group's outputs, computed from ``inputs`` by plain operators after ``control``."""
    new: dict[Entry, Entry] = {}
    for node, entry in zip(group.graph.inputs, inputs, strict=True):
        new[node.entries[0]] = entry
    for node in group.graph.nodes:
        if node.is_variable:
            continue
        first = node.op is not CONSTANT and all(e.node.op in (None, CONSTANT) for e in node.inputs)
        own = [new[e] for e in node.inputs]
        made = node.replaced(own, control if first else (), group.origin.get(node, node.name))
        new.update(zip(node.entries, made.entries, strict=True))
    return tuple(new[e] for e in group.graph.outputs)
