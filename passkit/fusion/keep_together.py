"""Groups that the option `keep_together` asks for, which may have several iteration domains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve

from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.group import Decision
from passkit.diagnostics import Diagnostic
from passkit.fusion.contract import extract, quotient_of
from passkit.fusion.fusible import why_opaque
from passkit.fusion.fusion_plan import FusionPlan
from passkit.fusion.legality import Legality, Level
from passkit.fusion.options import FusionOptions
from passkit.graph.components import connected_components
from passkit.graph.graph import Graph
from passkit.graph.node import Node, is_leaf
from passkit.graph.quotient import QuotientGraph


def with_kept_together(graph: Graph, fusion_plan: FusionPlan, context: FusionOptions) -> FusionPlan:
    """Return the plan with one group for each list of nodes in the option `keep_together`.

    The groups of nodes that values connect are merged, with all that is on paths between these, and
    so are groups that have one iteration domain together. Others are left to packing.
    """
    for names in context.keep_together:
        nodes = [n for n in graph.nodes if graph.names[n] in names and not is_leaf(n)]
        is_one_group = any(set(nodes) <= set(group) for group in fusion_plan.groups)
        if len(nodes) > 1 and not is_one_group and _are_related(graph, fusion_plan, nodes):
            fusion_plan = _merged(graph, fusion_plan, nodes, context)
        refused = _refusals(graph, names, fusion_plan, context)
        fusion_plan = evolve(fusion_plan, log=[*fusion_plan.log, *refused])
    return fusion_plan


def _are_related(graph: Graph, fusion_plan: FusionPlan, nodes: Sequence[Node]) -> bool:
    """Return whether values connect some nodes, or their groups have one iteration domain.

    Values on paths between the groups count, in whichever direction.
    """
    quotient = quotient_of(graph, fusion_plan)
    numbers = {quotient.cluster_of[n] for n in nodes}
    between = quotient.between(numbers)
    own, duplicated = quotient.nodes(numbers | between)
    edges = ((n, e.node) for n in (*own, *duplicated) for e in n.inputs)
    components = connected_components([*own, *duplicated], edges)
    if any(set(nodes) <= set(component) for component in components):
        return True
    if between:
        return False
    group, _ = extract(quotient, numbers)
    return isinstance(analyze_domain(group.graph), DomainInfo)


def _refusals(
    graph: Graph, names: Iterable[str], fusion_plan: FusionPlan, context: FusionOptions
) -> Iterator[Decision]:
    """Yield why nodes of an option are in no group: they are not in the graph, or opaque."""
    grouped = {n for group in fusion_plan.groups for n in group}
    node_of = {name: n for n, name in graph.names.items()}
    for name in names:
        node = node_of.get(name)
        if node not in grouped:
            opaque = None if node is None else why_opaque(graph, node, context.target)
            reason = Diagnostic("op.removed") if opaque is None else opaque
            yield Decision(name, name, Diagnostic("hint.keep_together", {"reason": reason}))


def _merged(
    graph: Graph, fusion_plan: FusionPlan, nodes: Sequence[Node], context: FusionOptions
) -> FusionPlan:
    """Return the plan with a group of ``nodes``; with the reason in its log if there is none."""
    quotient = quotient_of(graph, fusion_plan)
    numbers = {quotient.cluster_of[n] for n in nodes}
    numbers |= quotient.between(numbers)
    own, duplicated = quotient.nodes(numbers)
    problem = _problem(quotient, numbers, context)
    if problem is not None:
        ends = graph.names[nodes[0]], graph.names[nodes[-1]]
        refused = Diagnostic("hint.keep_together", {"reason": problem})
        return evolve(fusion_plan, log=[*fusion_plan.log, Decision(*ends, refused)])
    merged = fusion_plan.with_groups([(own, duplicated)])
    return merged.with_log(graph, Diagnostic("fused.keep_together"))


def _problem(
    quotient: QuotientGraph, numbers: set[int], context: FusionOptions
) -> Diagnostic | None:
    """Return why clusters cannot be one kernel; None if they can."""
    legality = Legality(quotient.graph, context)
    problem = legality.check(quotient, numbers, Level.MAPPED, in_phases=True)
    last = quotient.graph.names[quotient.nodes(numbers)[0][-1]]
    if problem is None and not context.spend(f"stitch {last}"):
        return Diagnostic("fuel")
    return problem
