"""Groups of several iteration spaces: what the caller wants in one kernel, if a plan serves it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from passkit.closing import make_group
from passkit.errors import GraphError
from passkit.graph import Graph
from passkit.group import Decision
from passkit.node import Node
from passkit.passes.context import PassContext, name_of
from passkit.passes.fusion.contract import contract
from passkit.passes.fusion.partition import Partition, is_fusible
from passkit.planner import plan_group
from passkit.space import Infeasible
from passkit.stitching.cutting import contract_of, reads_of_part

TOGETHER = "keep_together names both"
FLOATS = ("float32", "float64")


def with_stitched(graph: Graph, partition: Partition, context: PassContext) -> Partition:
    """The partition with one group for each list of nodes that the caller wants together.

    The groups that they are in are joined, with products of matrices between them.
    """
    for names in context.keep_together:
        wanted = {name_of(n) for n in names}
        nodes = [n for n in graph.nodes if graph.names[n] in wanted]
        if len(nodes) > 1 and not _are_one(partition, nodes):
            partition = _joined(graph, partition, nodes, context)
    return partition


def _are_one(partition: Partition, nodes: Sequence[Node]) -> bool:
    return any(set(nodes) <= set(group) for group in partition.groups)


def _joined(
    graph: Graph, partition: Partition, nodes: Sequence[Node], context: PassContext
) -> Partition:
    """The partition with some nodes, and whatever is in their groups, in one group."""
    free = [n for n in nodes if not _has_place(graph, n, context)]
    if free:
        return partition
    inside = set(nodes)
    groups, clones = [], []
    body, copies = set(nodes), set[Node]()
    before = partition.clones or [[] for _ in partition.groups]
    for group, more in zip(partition.groups, before, strict=True):
        if inside.isdisjoint(group):
            groups.append(group)
            clones.append(more)
        else:
            body |= set(group)
            copies |= set(more)
    position = graph.positions
    members = sorted(body, key=position.__getitem__)
    made = Partition([*groups, members], [*clones, sorted(copies - body, key=position.__getitem__)])
    problem = _problem(graph, made, context)
    names = {graph.names[n] for n in nodes}
    log = [d for d in partition.log if not _is_about(d, names)]
    ends = graph.names[members[0]], graph.names[members[-1]]
    if problem is not None:
        reason = f"{TOGETHER}, but {problem.reason}"
        partition.log[:] = [*log, Decision(*ends, False, problem.code, reason)]
        return partition
    fused = {graph.names[n] for n in body}
    made.log = [_settled(d, fused) for d in log]
    return made


def _has_place(graph: Graph, node: Node, context: PassContext) -> bool:
    if contract_of(node) is not None:
        return all(graph.dtype(e).name in FLOATS for e in (*node.inputs, *node.entries))
    return is_fusible(graph, node, context.target)


def _problem(graph: Graph, made: Partition, context: PassContext) -> Infeasible | None:
    """Why the last group of a partition is none, if so."""
    body = sorted({*made.groups[-1], *made.clones[-1]}, key=graph.positions.__getitem__)
    inside = set(body)
    outputs = set(graph.outputs)
    results = [
        e
        for n in made.groups[-1]
        for e in n.entries
        if e in outputs or any(u not in inside for u in graph.users.get(e, ()))
    ]
    group, _ = make_group(graph, body, reads_of_part(graph, body), results)
    plan = plan_group(group, context.target)
    if isinstance(plan, Infeasible):
        return plan
    try:
        contract(graph, made)
    except GraphError as error:
        return Infeasible("would_create_cycle", str(error))
    return None


def _is_about(d: Decision, names: Iterable[str]) -> bool:
    return d.reason.startswith(TOGETHER) and {d.producer, d.consumer} <= set(names)


def _settled(d: Decision, fused: set[str]) -> Decision:
    if {d.producer, d.consumer} <= fused and not d.fused:
        return Decision(d.producer, d.consumer, True, "fused", "one stitched kernel")
    return d
