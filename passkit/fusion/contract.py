"""Contraction: each group of a fusion plan becomes a fused node over a closed graph of its own.

`without_views` leaves out groups that need no kernel, as their results are the memory that they
read; `flatten` undoes contraction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from passkit.analysis.extract import extract_group
from passkit.analysis.group import FUSED, Group, fused_node
from passkit.fusion.fusion_plan import FusionPlan
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf
from passkit.graph.quotient import QuotientGraph, live_ins, live_outs
from passkit.graph.storage import identities


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


def without_views(graph: Graph, fusion_plan: FusionPlan) -> FusionPlan:
    """Return the plan without groups of nothing but views, as a reshape between two libraries.

    A view of an input that is a result of the graph stays a kernel: it is copied anyway, and
    several threads copy faster than one.
    """
    heads = {e.node for e in graph.heads}
    pairs = fusion_plan.pairs
    return fusion_plan.with_pairs(p for p in pairs if p[1] or not _is_view(p[0], heads))


def _is_view(group: Sequence[Node], heads: set[Node]) -> bool:
    """Return whether results of each node are its inputs' memory, and none has to be copied."""
    inside = set(group)
    if not all(identities(n) for n in group):
        return False
    sources = [e.node for n in group for e in n.inputs if e.node not in inside]
    return not (any(map(is_leaf, sources)) and inside & heads)


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
