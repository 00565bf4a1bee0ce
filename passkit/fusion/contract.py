"""Contraction: each group of a fusion plan becomes a fused node over a closed graph of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from passkit.analysis.extract import extract_group
from passkit.analysis.group import Group, fused_node
from passkit.fusion.fusion_plan import FusionPlan
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.quotient import QuotientGraph, live_ins, live_outs


def contract(graph: Graph, fusion_plan: FusionPlan) -> Graph:
    """Return the graph with a fused node for each group.

    Raises: GraphError when groups depend on each other in a cycle, naming two of them.
    """
    quotient = quotient_of(graph, fusion_plan)

    def replacement(
        number: int, new: Mapping[Entry, Entry], control: tuple[Node, ...]
    ) -> tuple[Node, Sequence[Entry]]:
        """Return the fused node of a group, and the values that it computes."""
        group, reads = extract(quotient, {number})
        name = graph.names[quotient.clusters[number].nodes[-1]]
        node = fused_node(group, tuple(new[e] for e in reads), name, control)
        return node, quotient.results({number})

    return quotient.contract(replacement)


def quotient_of(graph: Graph, fusion_plan: FusionPlan) -> QuotientGraph:
    """Return the clusters of a fusion plan.

    Raises: GraphError when groups depend on each other in a cycle, naming two of them.
    """
    return QuotientGraph(graph, fusion_plan.groups, fusion_plan.duplicated)


def extract(quotient: QuotientGraph, numbers: Set[int]) -> tuple[Group, list[Entry]]:
    """Return the group that clusters would be, and what it reads in the order of its inputs."""
    body, reads = quotient.body(numbers), quotient.live_ins(numbers)
    return extract_group(quotient.graph, body, reads, quotient.results(numbers))


def group_of(graph: Graph, body: Sequence[Node]) -> Group:
    """Return the group of operators in post-order, as if all others were in no group."""
    results = live_outs(graph, body) or [body[-1].entries[0]]
    return extract_group(graph, body, live_ins(graph, body), results)[0]
