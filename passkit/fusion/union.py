"""Unions: one group that computes all that several kernels do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from passkit.analysis.group import Group, Kind, fused_node
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.quotient import QuotientGraph


def group_in(node: Node) -> Group:
    """Return the group of a fused node."""
    return node.params["body"]  # type: ignore[no-any-return]


def name_of_kernel(node: Node) -> str:
    """Return the name by which users know a kernel: that of the operator of its first result."""
    group = group_in(node)
    return group.called(group.graph.outputs[0].node)


def union(nodes: Sequence[Node], kind: Kind) -> tuple[Group, dict[Node, Entry]]:
    """Return the group of several fused nodes, and the value that feeds each of its variables.

    A value that several of them read is one variable, and one that an earlier node computes is read
    inside. The outputs are those of the nodes, in order.

    Args:
        nodes: the fused nodes, in an order in which they can run.
        kind: the kind of the group.
    """
    inner: dict[Entry, Entry] = {}
    feeds: dict[Node, Entry] = {}
    origin: dict[Node, str] = {}
    outputs: list[Entry] = []
    for node in nodes:
        group, copies = group_in(node), dict[Entry, Entry]()
        for variable, source in zip(group.inputs, node.inputs, strict=True):
            if source not in inner:
                own = Node(None, (), variable.params, variable.name)
                inner[source], feeds[own] = own.entries[0], source
            copies[variable.entries[0]] = inner[source]
        for old in group.graph.nodes:
            if not old.is_variable:
                copy = old.replaced([copies[e] for e in old.inputs], ())
                copies.update(zip(old.entries, copy.entries, strict=True))
                origin |= {copy: group.origin[old]} if old in group.origin else {}
        # Operators that something must run after may be in no graph, but explanations name them.
        alive = set(group.graph.nodes)
        origin |= {n: name for n, name in group.origin.items() if n not in alive}
        results = [copies[e] for e in group.graph.outputs]
        inner.update(zip(node.entries, results, strict=True))
        outputs += results
    return Group(Graph(outputs), kind, origin), feeds


def with_unions(graph: Graph, unions: Mapping[str, Sequence[Node]], kind: Kind) -> Graph:
    """Return a fused graph with one fused node in the place of several.

    Args:
        graph: the graph.
        unions: disjoint sets of fused nodes, by the names of the nodes that replace them.
        kind: the kind of their groups.

    Raises: GraphError when they depend on each other in a cycle.
    """
    quotient = QuotientGraph(graph, unions.values())
    name_of = {nodes[0]: name for name, nodes in unions.items()}

    def replacement(
        number: int, new: Mapping[Entry, Entry], control: tuple[Node, ...]
    ) -> tuple[Node, Sequence[Entry]]:
        """Return the fused node of a union, and the values that it computes."""
        nodes = quotient.clusters[number].nodes
        group, feeds = union(nodes, kind)
        inputs = tuple(new[feeds[n]] for n in group.inputs)
        return fused_node(group, inputs, name_of[nodes[0]], control), [
            e for n in nodes for e in n.entries
        ]

    return quotient.contract(replacement)
