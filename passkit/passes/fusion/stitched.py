"""Groups of several iteration spaces: what the caller wants in one kernel, if a plan serves it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from passkit.diagnostics import Diagnostic
from passkit.errors import GraphError
from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.passes.context import PassContext
from passkit.passes.fusion.contract import contract
from passkit.passes.fusion.limits import Limits
from passkit.passes.fusion.partition import Partition, why_opaque
from passkit.passes.fusion.phased import phased_group
from passkit.plan.group import FUSED, Decision
from passkit.plan.planner import outline_group
from passkit.space.space import is_free
from passkit.stitching.cutting import contract_of


def with_stitched(graph: Graph, partition: Partition, context: PassContext) -> Partition:
    """The partition with one group for each list of nodes that the caller wants together.

    The groups that they are in are joined, with what lies between them. Nodes that no values lead
    between are for packing.
    """
    for names in context.keep_together:
        wanted = set(names)
        nodes = [n for n in graph.nodes if graph.names[n] in wanted and not is_free(n)]
        if len(nodes) > 1 and not any(set(nodes) <= set(g) for g in partition.groups):
            partition = _joined(graph, partition, nodes, context)
    return partition


def _joined(
    graph: Graph, partition: Partition, nodes: Sequence[Node], context: PassContext
) -> Partition:
    made = _made(graph, partition, nodes)
    body = made.groups[-1]
    if not _is_connected([*body, *made.clones[-1]]):
        return partition
    names = {graph.names[n] for n in nodes}
    log = [d for d in partition.log if not _is_about(d, names)]
    problem = _problem(graph, made, context)
    if problem is not None:
        ends = graph.names[nodes[0]], graph.names[nodes[-1]]
        refused = Diagnostic("hint.keep_together", {"reason": problem})
        partition.log[:] = [*log, Decision(*ends, refused)]
        return partition
    fused = {graph.names[n] for n in body}
    made.log = [_settled(d, fused) for d in log]
    return made


def _made(graph: Graph, partition: Partition, nodes: Sequence[Node]) -> Partition:
    """The partition with a last group of nodes, the groups that they are in, what is between."""
    before = partition.clones or [[] for _ in partition.groups]
    body, copies = set(nodes), set[Node]()
    while True:
        met = [k for k, g in enumerate(partition.groups) if not body.isdisjoint(g)]
        for k in met:
            body |= set(partition.groups[k])
            copies |= set(before[k])
        more = _between(graph, body) - body
        if not more:
            break
        body |= more
    position = graph.positions
    kept = [k for k in range(len(partition.groups)) if k not in met]
    return Partition(
        [*(partition.groups[k] for k in kept), sorted(body, key=position.__getitem__)],
        [*(before[k] for k in kept), sorted(copies - body, key=position.__getitem__)],
    )


def _between(graph: Graph, body: set[Node]) -> set[Node]:
    """The nodes on the ways from one of them to another."""
    below: set[Node] = set()
    for n in graph.nodes:
        if any(e.node in body or e.node in below for e in n.inputs):
            below.add(n)
    above: set[Node] = set()
    for n in reversed(graph.nodes):
        if n in body or n in above:
            above.update(e.node for e in n.inputs)
    return {n for n in below & above if not is_free(n)}


def _is_connected(body: Sequence[Node]) -> bool:
    """Whether values lead between all of them, whichever way."""
    near: dict[Node, list[Node]] = {n: [] for n in body}
    for n in body:
        for e in n.inputs:
            if e.node in near:
                near[n].append(e.node)
                near[e.node].append(n)
    seen, todo = {body[0]}, [body[0]]
    while todo:
        for n in near[todo.pop()]:
            if n not in seen:
                seen.add(n)
                todo.append(n)
    return len(seen) == len(near)


def _problem(graph: Graph, made: Partition, context: PassContext) -> Diagnostic | None:
    """Why the last group of a partition is none, if so."""
    for n in made.groups[-1]:
        why = None if contract_of(n) else why_opaque(graph, n, context.target)
        if why is not None:
            return why
    misfit = Limits(graph, context).all(made.groups[-1])
    if misfit is not None:
        return misfit
    try:
        fused = contract(graph, made)
    except GraphError as error:
        return Diagnostic("graph.cycle_groups", {"problem": str(error)})
    # As it will be: what copies elsewhere read is a result, too.
    name = graph.names[made.groups[-1][-1]]
    (group,) = (n.params["body"] for n in fused.nodes if n.op is FUSED and n.name == name)
    plan = outline_group(group, context.target)
    if isinstance(plan, Diagnostic) and phased_group(group, context.target) is None:
        return plan
    if not context.spend(f"stitch {name}"):
        return Diagnostic("fuel")
    return None


def _is_about(d: Decision, names: Iterable[str]) -> bool:
    return d.code == "hint.keep_together" and {d.producer, d.consumer} <= set(names)


def _settled(d: Decision, fused: set[str]) -> Decision:
    if {d.producer, d.consumer} <= fused and not d.fused:
        return Decision(d.producer, d.consumer, Diagnostic("fused.keep_together"))
    return d
