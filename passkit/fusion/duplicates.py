"""Duplicates: operators that are cheap enough for several kernels to compute."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from passkit.analysis.accesses import expression_size
from passkit.analysis.recompute import is_expensive
from passkit.fusion.domain_cluster import DomainCluster
from passkit.graph.graph import Graph
from passkit.graph.node import Node, known_shape
from passkit.target import Target
from passkit.values.size import numel


def are_cheap(
    graph: Graph, target: Target, cluster: DomainCluster, nodes: Collection[Node]
) -> bool:
    """Return whether a kernel may compute operators of another one as well.

    Args:
        graph: the graph.
        target: the target, whose limits say how many there may be.
        cluster: the cluster that they are in.
        nodes: the operators.
    """
    limits = target.fusion
    if len(nodes) > limits.repeated_ops or any(is_expensive(n) for n in nodes):
        return False
    takes_rows = any(_takes_one_of_each_row(n) for n in nodes)
    if takes_rows and _num_readers(graph, cluster, nodes) > limits.slice_readers:
        return False
    return expression_size(sorted(nodes, key=graph.positions.__getitem__)) <= limits.repeated_terms


def _takes_one_of_each_row(node: Node) -> bool:
    """Return whether an operator takes one element of each row.

    Memory moves in units of several elements, so that it moves all of a row of a few.
    """
    if node.op is None or node.op.name != "slice":
        return False
    shape, taken = known_shape(node.inputs[0]), known_shape(node.entries[0])
    return taken[-1:] == (1,) and numel(taken) != 1 and isinstance(shape[-1], int) and shape[-1] > 1


def _num_readers(graph: Graph, cluster: DomainCluster, nodes: Iterable[Node]) -> int:
    """Return the number of operators outside of a cluster that read ``nodes`` of it."""
    readers = {u for n in nodes for e in n.entries for u in graph.users.get(e, ())}
    return sum(u not in cluster.members for u in readers)
