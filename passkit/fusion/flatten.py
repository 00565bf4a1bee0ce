"""Flattening of a fused graph: each fused node is replaced by the operators of its group."""

from __future__ import annotations

from collections.abc import Sequence

from passkit.analysis.group import FUSED, Group
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf


def flatten(graph: Graph) -> Graph:
    """Return the graph as it was before Fusion, except for copies of constants.

    The first operators of a group run after all that the fused node must run after.

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
    """Return the outputs of a group, computed by plain operators.

    Args:
        group: the group.
        inputs: the values of its variables.
        control: the nodes that its operators must run after.
    """
    new: dict[Entry, Entry] = {}
    for node, entry in zip(group.graph.inputs, inputs, strict=True):
        new[node.entries[0]] = entry
    for node in group.graph.nodes:
        if node.is_variable:
            continue
        is_first = not is_leaf(node) and all(is_leaf(e.node) for e in node.inputs)
        own = [new[e] for e in node.inputs]
        name = group.origin.get(node, node.name)
        copy = node.replaced(own, control if is_first else (), name)
        new.update(zip(node.entries, copy.entries, strict=True))
    return tuple(new[e] for e in group.graph.outputs)
