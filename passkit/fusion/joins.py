"""Joins of split reductions: on a GPU, the chunks and their join become one kernel.

SplitReduce has split long reductions before, so that Fusion keeps what reads the whole result apart
from the chunks. Where the last block of the chunks can join them, two launches become one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from passkit.analysis.group import FUSED, Decision, Kind
from passkit.analysis.partial import COMBINE_PARTIALS, PARTIAL_REDUCE
from passkit.diagnostics import Diagnostic
from passkit.fusion.legality import Legality
from passkit.fusion.options import FusionOptions
from passkit.fusion.union import group_in, name_of_kernel, union, with_unions
from passkit.graph.graph import Graph
from passkit.graph.node import Node, is_leaf
from passkit.planner.plan import plan_group
from passkit.schedule.schedule import Schedule


def with_joins(
    graph: Graph, context: FusionOptions, log: Iterable[Decision]
) -> tuple[Graph, list[Decision]]:
    """Return the fused graph in which the last blocks of chunks join them, and its decisions.

    Each of these kernels takes fuel of ``context``.
    """
    pairs = _pairs(graph)
    joins = [
        (chunks, *readers)
        for chunks, readers in pairs
        if _may_join(graph, chunks, readers, context)
    ]
    if not joins:
        return graph, list(log)
    reason = Diagnostic("fused.joined")
    more = [
        Decision(name_of_kernel(chunks), name_of_kernel(reader), reason)
        for chunks, *readers in joins
        for reader in readers
    ]
    joined = {(d.producer, d.consumer) for d in more}
    kept = [d for d in log if d.fused or (d.producer, d.consumer) not in joined]
    unions = {graph.names[nodes[-1]]: nodes for nodes in joins}
    return with_unions(graph, unions, Kind.PHASED), [*kept, *more]


def _pairs(graph: Graph) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Yield fused nodes of chunks with all that read them, if these are fused nodes of joins."""
    results = {e.node for e in graph.heads}
    for node in graph.nodes:
        if node.op is not FUSED or node in results:
            continue
        if any(e.node.op is not PARTIAL_REDUCE for e in group_in(node).graph.outputs):
            continue
        readers = tuple(dict.fromkeys(n for e in node.entries for n in graph.users.get(e, ())))
        if readers and all(_joins(n, node) for n in readers):
            yield node, readers


def _joins(node: Node, chunks: Node) -> bool:
    """Return whether a node is fused and only joins what it reads of some chunks."""
    if node.op is not FUSED or group_in(node).kind is Kind.PHASED:
        return False
    group = group_in(node)
    read = {v for v, e in zip(group.inputs, node.inputs, strict=True) if e.node is chunks}
    return all(
        n.op is COMBINE_PARTIALS for n in group.graph.nodes if any(e.node in read for e in n.inputs)
    ) and not any(n.op is PARTIAL_REDUCE for n in group.graph.nodes)


def _may_join(
    graph: Graph, chunks: Node, readers: tuple[Node, ...], context: FusionOptions
) -> bool:
    """Return whether chunks and their readers are one kernel: the last blocks join the chunks.

    They are not if options keep them apart, or there is no fuel.
    """
    names = {group_in(n).called(op) for n in (chunks, *readers) for op in group_in(n).ops}
    if Legality(graph, context).hints(names) is not None:
        return False
    others = [e.node for n in readers for e in n.inputs if e.node is not chunks]
    if len(readers) > 1 and not all(map(is_leaf, others)):
        return False  # another reader may depend on the first one
    if any(n.control for n in (chunks, *readers)):
        return False
    group, _ = union((chunks, *readers), Kind.PHASED)
    plan = plan_group(group, context.target)
    if not isinstance(plan, Schedule) or not plan.is_joined:
        return False
    return context.spend(f"join {graph.names[chunks]} in its last blocks")
