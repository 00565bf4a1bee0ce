"""The strategy "xla": XLA's basic rules, the baseline that counts of kernels are compared with.

A kernel has one result: the last operator of a group, which may be a reduction. Producers are
added, users first, if all groups that read them compute them; so nothing is computed twice except
for light operators, which each reader repeats.

Source: XLA, InstructionFusion and its GPU rules: a reduction is fused into none of its users, an
expensive operator is computed once, what has to be in memory anyway is read from there.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit.analysis.accesses import expression_size
from passkit.analysis.domain import ValueKind, reduced_axes_of
from passkit.analysis.recompute import is_expensive
from passkit.diagnostics import Diagnostic
from passkit.fusion.domain_cluster import DomainCluster, merged_cluster
from passkit.fusion.fusible import why_opaque
from passkit.fusion.fusion_plan import FusionPlan
from passkit.fusion.legality import Legality
from passkit.fusion.options import FusionOptions
from passkit.fusion.strategy import register_fusion
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf
from passkit.values.size import numel


@register_fusion("xla")
def basic(graph: Graph, context: FusionOptions) -> FusionPlan:
    """Groups of one result each: elementwise and movement operators, a reduction at the end."""
    run = _Basic(graph, context)
    for node in reversed(graph.nodes):
        if not is_leaf(node):
            run.visit(node)
    return run.fusion_plan()


class _Basic:
    """One run over a graph.

    Attributes:
        clusters: the clusters, in the order in which they were begun.
        computing: for each operator that has been visited the clusters that compute it.
    """

    def __init__(self, graph: Graph, context: FusionOptions) -> None:
        self.graph, self.context = graph, context
        self.legality = Legality(graph, context)
        self.out = FusionPlan()
        self.clusters: list[DomainCluster] = []
        self.computing: dict[Node, list[DomainCluster]] = {}
        self._heads = {e.node for e in graph.heads}
        self._awaited = {c for n in graph.nodes for c in n.control}

    def visit(self, node: Node) -> None:
        """Put ``node`` into the groups of all its readers, or begin one; these were visited."""
        readers = list(dict.fromkeys(u for e in node.entries for u in self.graph.users.get(e, ())))
        problem = self._check_alone(node, readers) or self._join(node, readers)
        for user in readers:
            why = Diagnostic("fused.readers") if problem is None else problem
            self.out.note(self.graph.names, node, user, why)
        if problem is not None and why_opaque(self.graph, node, self.context.target) is None:
            cluster = DomainCluster.begin(self.graph, node)
            self.clusters.append(cluster)
            self.computing[node] = [cluster]

    def _check_alone(self, node: Node, readers: Sequence[Node]) -> Diagnostic | None:
        """Return why ``node`` is computed by itself, whatever its users could compute."""
        opaque = why_opaque(self.graph, node, self.context.target)
        if opaque is not None:
            return opaque
        if node in self._heads:
            return Diagnostic("graph.output")
        if reduced_axes_of(node) is not None:
            return Diagnostic("op.reduction")
        if node.control or node in self._awaited or any(u.control for u in readers):
            return Diagnostic("graph.control")
        for user in readers:
            if user not in self.computing:
                return Diagnostic("op.host", {"reader": self.graph.names[user]})
        return None

    def _join(self, node: Node, readers: Sequence[Node]) -> Diagnostic | None:
        """Let all groups that read ``node`` compute it, or return why one of them cannot."""
        clusters = list({id(c): c for u in readers for c in self.computing[u]}.values())
        problem = self._check_member(clusters[0], node) if len(clusters) == 1 else None
        is_member = len(clusters) == 1 and problem is None
        if not is_member:
            problem = self._check_repeated(clusters, node, problem)
        if problem is None and not self.context.spend(f"fuse {self.graph.names[node]}"):
            problem = Diagnostic("fuel")
        if problem is not None:
            return problem
        self.computing[node] = clusters
        for cluster in clusters:
            cluster.reads = self._reads_with(cluster, node)
            if is_member:
                cluster.members[node] = ValueKind.POINT
            else:
                cluster.duplicated[node] = None
        return None

    def _reads_with(self, cluster: DomainCluster, node: Node) -> set[Entry]:
        """Return what a cluster reads if it computes ``node``."""
        return {e for e in (*cluster.reads, *node.inputs) if e.node is not node}

    def _check_member(self, cluster: DomainCluster, node: Node) -> Diagnostic | None:
        """Return why ``node`` cannot be computed at each point of a domain, where it is read."""
        if numel(self.graph.shape(node.entries[0])) != cluster.domain.size:
            return Diagnostic("domain.elements")
        other = DomainCluster.begin(self.graph, node)
        problem = self.legality.merge(cluster, other) or self._check_reads(cluster, node)
        if problem is not None:
            return problem
        merged = merged_cluster(self.graph, cluster, other)
        return merged if isinstance(merged, Diagnostic) else None

    def _check_reads(self, cluster: DomainCluster, node: Node) -> Diagnostic | None:
        """Return a diagnostic if a cluster that computes ``node`` would read too many values."""
        most = self.context.target.max_buffers
        if len(self._reads_with(cluster, node)) > most:
            return Diagnostic("limit.buffers", {"limit": most})
        return None

    def _check_repeated(
        self, clusters: Sequence[DomainCluster], node: Node, problem: Diagnostic | None
    ) -> Diagnostic | None:
        """Return why ``node`` cannot be computed again wherever it is read.

        Args:
            clusters: the clusters that read it.
            node: the node.
            problem: why it cannot be computed once, at each point of the only one's domain.
        """
        if is_expensive(node):
            return problem or Diagnostic("op.expensive")
        for cluster in clusters:
            if 0 in (numel(self.graph.shape(node.entries[0])), cluster.domain.size):
                return Diagnostic("graph.empty")
            if not self.legality.may_duplicate(cluster, [node]):
                return Diagnostic("hint.keep_apart_one")
            position = self.graph.positions.__getitem__
            most = self.context.target.fusion.repeated_terms
            if expression_size(sorted([*cluster.duplicated, node], key=position)) > most:
                return Diagnostic("limit.length", {"limit": most})
            too_many = self._check_reads(cluster, node)
            if too_many is not None:
                return too_many
        return None

    def fusion_plan(self) -> FusionPlan:
        """Return the groups, in the order of their results."""
        position = self.graph.positions.__getitem__
        for cluster in reversed(self.clusters):
            self.out.groups.append(sorted(cluster.members, key=position))
            self.out.duplicated.append(sorted(cluster.duplicated, key=position))
        self.out.log.reverse()
        return self.out
