"""The first groups of the strategy "stitch": producers before consumers, each joins what it can.

A group has one iteration domain, in which its values are POINT, or REDUCED after a reduction. The
groups are vertices of a `QuotientGraph`, so that no cycle can arise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from passkit.diagnostics import Diagnostic
from passkit.fusion.domain_cluster import DomainCluster, are_cheap, kind_in, merged_cluster
from passkit.fusion.fusible import why_opaque
from passkit.fusion.fusion_plan import FusionPlan
from passkit.fusion.keep_together import with_kept_together
from passkit.fusion.legality import Legality
from passkit.fusion.options import FusionOptions
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Node, is_leaf
from passkit.graph.quotient import QuotientGraph, producers_within


def seed_plan(graph: Graph, context: FusionOptions) -> FusionPlan:
    """Return groups of elementwise, movement and row-reduction operators with several outputs."""
    run = _Seed(graph, context)
    for node in graph.nodes:
        if not is_leaf(node):
            run.visit(node)
    run.merge_partial_reductions()
    return with_kept_together(graph, run.fusion_plan(), context)


def _first_of(cluster: DomainCluster) -> Node:
    """Return the first operator of a group."""
    return next(iter(cluster.members))


class _Seed:
    """One run over a graph.

    Attributes:
        quotient: the groups and operators, with what must run before each.
        clusters: the groups by their number in ``quotient``.
    """

    def __init__(self, graph: Graph, context: FusionOptions) -> None:
        self.graph, self.context = graph, context
        self.target = context.target
        self.quotient = QuotientGraph(graph)
        self.clusters: dict[int, DomainCluster] = {}
        self.out = FusionPlan()
        self.legality = Legality(graph, context)

    def visit(self, node: Node) -> None:
        """Put ``node`` into the group of one of its producers, these having been visited.

        It gets a group of its own if no producer's serves; none if no kernel computes it.
        """
        opaque = why_opaque(self.graph, node, self.target)
        producers = self._producers(node)
        for n in producers:
            if opaque is not None or self._cluster_of(n) is None:
                why = opaque or why_opaque(self.graph, n, self.target)
                self.out.note(self.graph.names, n, node, why or Diagnostic("op.ungrouped"))
        if opaque is not None:
            return
        near = list({id(c): c for n in producers if (c := self._cluster_of(n))}.values())
        home, tried = None, dict[int, Diagnostic]()
        for cluster in sorted(near, key=lambda c: c.reduced is None):
            problem = self._join(cluster, node)
            if problem is None:
                home, tried = cluster, {}
                break
            tried[id(cluster)] = problem
        if home is None:
            home = DomainCluster.begin(self.graph, node)
            self.clusters[self.quotient.cluster_of[node]] = home
        self._merge_others(home, node, [c for c in near if c is not home], tried)

    def _producers(self, node: Node) -> list[Node]:
        """Return the operators that a node reads."""
        return [n for n in dict.fromkeys(e.node for e in node.inputs) if not is_leaf(n)]

    def _number(self, node: Node) -> int:
        """Return the number of the group of an operator."""
        return self.quotient.vertex_of[self.quotient.cluster_of[node]]

    def _cluster_of(self, node: Node) -> DomainCluster | None:
        """Return the group of an operator, if there is one."""
        return self.clusters.get(self._number(node))

    def _put(self, cluster: DomainCluster, *parts: Node) -> None:
        """Make the groups of some operators one, which is ``cluster``."""
        numbers = {self._number(n) for n in parts}
        for number in numbers:
            self.clusters.pop(number, None)
        self.clusters[self.quotient.merge(numbers)] = cluster

    def _check(self, decision: str, *parts: Node) -> Diagnostic | None:
        """Return why the groups of some operators cannot be one: a path, or no fuel for that."""
        if not self.quotient.can_merge({self._number(n) for n in parts}):
            return Diagnostic("graph.cycle")
        return None if self.context.spend(decision) else Diagnostic("fuel")

    def _note(self, cluster: DomainCluster, node: Node, diagnostic: Diagnostic) -> None:
        """Record a decision for each edge from a cluster to a node."""
        for n in self._producers(node):
            if self._cluster_of(n) is cluster:
                self.out.note(self.graph.names, n, node, diagnostic)

    def _join(self, cluster: DomainCluster, node: Node) -> Diagnostic | None:
        """Add a node to a cluster of its producers; return why that is not possible."""
        problem = self.legality.join(cluster, node)
        kind = kind_in(self.graph, cluster, node) if problem is None else problem
        if isinstance(kind, Diagnostic):
            return kind
        parts = _first_of(cluster), node
        problem = self._check(f"fuse {self.graph.names[node]}", *parts)
        if problem is None:
            self._put(cluster, *parts)
            cluster.add(self.graph, node, kind)
            self._note(cluster, node, Diagnostic("fused.domain"))
        return problem

    # The groups of the other producers.

    def _merge_others(
        self,
        home: DomainCluster,
        node: Node,
        others: Sequence[DomainCluster],
        tried: Mapping[int, Diagnostic],
    ) -> None:
        """Merge the groups of the other producers of a node into its own, or repeat what is cheap.

        Args:
            home: the cluster of the node.
            node: the node.
            others: the clusters of its other producers.
            tried: the clusters that the node could not join, by their identity, and why.
        """
        for other in others:
            merged = self._merge(home, other, node)
            if isinstance(merged, DomainCluster):
                home = merged
                self._note(home, node, Diagnostic("fused.domain"))
            elif not self._duplicate(home, other, node):
                self._note(other, node, tried.get(id(other), merged))

    def _merge(
        self, home: DomainCluster, other: DomainCluster, node: Node
    ) -> DomainCluster | Diagnostic:
        """Make two groups one and return it, or return why that is not possible.

        ``node`` is the operator at which they meet.
        """
        problem = self.legality.merge(home, other)
        merged = merged_cluster(self.graph, home, other) if problem is None else problem
        if isinstance(merged, Diagnostic):
            return merged
        parts = _first_of(home), _first_of(other)
        problem = self.legality.inputs(merged.reads)
        problem = problem or self._check(f"merge at {self.graph.names[node]}", *parts)
        if problem is not None:
            return problem
        self._put(merged, *parts)
        return merged

    def _duplicate(self, home: DomainCluster, other: DomainCluster, node: Node) -> bool:
        """Let a cluster compute what a node reads of another one, if that is cheap.

        Return whether it does so.
        """
        if reduce_of(node) is not None or other.reduced is not None:
            return False
        if 0 in (home.domain.size, other.domain.size):
            return False
        copied = producers_within(self._producers(node), other.members)
        if not are_cheap(self.graph, self.target, other, copied):
            return False
        if any(e.node in other.duplicated for n in copied for e in n.inputs):
            return False
        if not self.legality.may_duplicate(home, copied):
            return False
        read = home.reads.union(*(n.inputs for n in copied))
        reads = {e for e in read if e.node not in copied and not home.computes(e.node)}
        if self.legality.inputs(reads) is not None:
            return False
        if not self.context.spend(f"repeat at {self.graph.names[node]}"):
            return False
        home.duplicated |= copied
        home.reads = reads
        self._update_predecessors(home)
        for n in self._producers(node):
            if n in copied:
                self.out.note(self.graph.names, n, node, Diagnostic("fused.repeated"))
        return True

    def _update_predecessors(self, home: DomainCluster) -> None:
        """Let a group run after what its operators read, those repeated included.

        All of that ran before it already, by way of the groups that it repeats operators of.
        """
        inside = home.members.keys() | home.duplicated.keys()
        read = (m for n in inside for m in (*self._producers(n), *n.control) if m not in inside)
        number = self._number(_first_of(home))
        before = {self._number(m) for m in read if not is_leaf(m)} - {number}
        self.quotient.set_predecessors(number, before)

    def merge_partial_reductions(self) -> None:
        """Merge groups that reduce equal chunks and read a value in common.

        They are different reductions of one value, of which no operator reads both results.
        """
        alike_of: dict[tuple[object, ...], list[DomainCluster]] = {}
        for cluster in list(self.clusters.values()):
            if cluster.chunks is None:
                continue
            alike = alike_of.setdefault((cluster.shape, cluster.reduced, cluster.chunks), [])
            for k, home in enumerate(alike):
                if home.reads & cluster.reads:
                    merged = self._merge(home, cluster, _first_of(cluster))
                    if isinstance(merged, DomainCluster):
                        alike[k] = merged
                        break
            else:
                alike.append(cluster)

    def fusion_plan(self) -> FusionPlan:
        """Return the groups, in the order of their first members."""
        position = self.graph.positions
        for cluster in sorted(self.clusters.values(), key=lambda c: position[_first_of(c)]):
            self.out.groups.append(sorted(cluster.members, key=position.__getitem__))
            copies = [n for n in cluster.duplicated if n not in cluster.members]
            self.out.duplicated.append(copies)
        last = {(d.producer, d.consumer): d for d in self.out.log}
        self.out.log = list(last.values())
        # Groups of an edge that stays apart may have been merged later.
        return self.out.with_log(self.graph, Diagnostic("fused.domain"))
