"""The first groups of the strategy "stitch": producers before consumers, each joins what it can.

A group has one iteration domain, in which its values are POINT, or REDUCED after a reduction. Every
group has a depth, and edges between groups lead to larger depths, so that no cycle can arise. A
group may be moved deeper if all that reads it is deeper still.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from passkit.analysis.domain import ValueKind, reduced_axes_of
from passkit.diagnostics import Diagnostic
from passkit.fusion.domain_cluster import (
    DomainCluster,
    check_crossing_reads,
    check_domain,
    check_reduced_axes,
    check_scan_directions,
    kind_in,
)
from passkit.fusion.duplicates import are_cheap
from passkit.fusion.fusible import why_opaque
from passkit.fusion.fusion_plan import FusionPlan
from passkit.fusion.keep_together import with_kept_together
from passkit.fusion.legality import Legality
from passkit.fusion.options import FusionOptions
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Node, is_leaf


def seed_plan(graph: Graph, context: FusionOptions) -> FusionPlan:
    """Return groups of elementwise, movement and row-reduction operators with several outputs."""
    run = _Seed(graph, context)
    for node in graph.nodes:
        run.visit(node)
    run.merge_partial_reductions()
    return with_kept_together(graph, run.fusion_plan(), context)


class _Seed:
    """One run over a graph.

    Attributes:
        cluster_of: the cluster of each operator that has been visited and that kernels compute.
        depth: the depth of each node that has been visited.
        clusters: the clusters by their identity; merged ones have been removed.
        duplicated_in: for each node the clusters that compute it though it belongs to another.
    """

    def __init__(self, graph: Graph, context: FusionOptions) -> None:
        self.graph, self.context = graph, context
        self.target = context.target
        self.cluster_of: dict[Node, DomainCluster] = {}
        self.depth: dict[Node, int] = {}
        self.out = FusionPlan()
        self.legality = Legality(graph, context)
        self.clusters: dict[int, DomainCluster] = {}
        self.duplicated_in: dict[Node, list[DomainCluster]] = {}
        self._waiting: dict[Node, list[Node]] = {}
        for node in graph.nodes:
            for c in node.control:
                self._waiting.setdefault(c, []).append(node)

    def visit(self, node: Node) -> None:
        """Put ``node`` into a group, producers having been visited."""
        if is_leaf(node):
            self.depth[node] = -1
            return
        opaque = why_opaque(self.graph, node, self.target)
        before = list(self._before(node))
        if opaque is not None:
            self.depth[node] = max((self.depth[n] + 1 for n in before), default=0)
            for n in self._producers(node):
                self.out.note(self.graph.names, n, node, opaque)
            return
        outside = (self.depth[n] + 1 for n in before if n not in self.cluster_of)
        self._place(node, max(outside, default=0))

    def _before(self, node: Node) -> Iterable[Node]:
        """Yield the nodes that a node reads or must run after."""
        yield from (e.node for e in node.inputs)
        yield from node.control

    def _producers(self, node: Node) -> list[Node]:
        """Return the operators that a node reads."""
        return [n for n in dict.fromkeys(e.node for e in node.inputs) if not is_leaf(n)]

    def _place(self, node: Node, least_depth: int) -> None:
        """Put a node into the group of one of its producers, or into one of its own."""
        producers = self._producers(node)
        near = list({id(c): c for n in producers if (c := self.cluster_of.get(n))}.values())
        after_control = (self.depth[c] + 1 for c in node.control)
        depth = max([least_depth, *(c.depth for c in near), *after_control])
        for n in producers:
            if n not in self.cluster_of:
                opaque = why_opaque(self.graph, n, self.target)
                ungrouped = Diagnostic("op.ungrouped") if opaque is None else opaque
                self.out.note(self.graph.names, n, node, ungrouped)
        mark, tried = len(self.out.log), dict[int, Diagnostic]()
        deepest = [c for c in near if c.depth == depth]
        for home in sorted(deepest, key=lambda c: c.reduced is None):
            problem = self._join(home, node)
            if problem is not None:
                tried[id(home)] = problem
                continue
            if self._place_others(home, node, near):
                return
            # The node reads a group that home can neither merge with nor follow.
            del self.out.log[mark:], home.members[node]
            break
        self._place_others(self._begin(node, depth + bool(deepest)), node, near, tried)

    def _note(self, cluster: DomainCluster, node: Node, diagnostic: Diagnostic) -> None:
        """Record a decision for each edge from a cluster to a node."""
        for n in self._producers(node):
            if self.cluster_of.get(n) is cluster:
                self.out.note(self.graph.names, n, node, diagnostic)

    def _begin(self, node: Node, depth: int) -> DomainCluster:
        """Return a new cluster of one node."""
        cluster = DomainCluster.begin(self.graph, node, depth)
        self.clusters[id(cluster)] = cluster
        self._set_cluster(cluster, node)
        return cluster

    def _set_cluster(self, cluster: DomainCluster, node: Node) -> None:
        """Record that a node is in a cluster."""
        self.cluster_of[node] = cluster
        self.depth[node] = cluster.depth

    # One node and the group of its deepest producer.

    def _join(self, cluster: DomainCluster, node: Node) -> Diagnostic | None:
        """Add a node to a cluster of its producers; return why that is not possible."""
        problem = self.legality.join(cluster, node) or check_domain(self.graph, cluster, node)
        if problem is None and not self.context.spend(f"fuse {self.graph.names[node]}"):
            problem = Diagnostic("fuel")
        if problem is not None:
            return problem
        reduction = reduced_axes_of(node)
        if reduction is not None and cluster.reduced is None:
            shape = self.graph.shape(node.inputs[0])
            cluster.set_reduction(shape, reduction.axes, reduction.chunks)
        kind: ValueKind | None
        if reduction is not None:
            kind = ValueKind.POINT if reduce_of(node) is None else ValueKind.REDUCED
        else:
            kind = kind_in(self.graph, cluster, node)
        assert kind is not None
        cluster.add(node, kind)
        self._set_cluster(cluster, node)
        self._note(cluster, node, Diagnostic("fused.domain"))
        return None

    # The groups of the other producers.

    def _place_others(
        self,
        home: DomainCluster,
        node: Node,
        near: list[DomainCluster],
        tried: Mapping[int, Diagnostic] | None = None,
    ) -> bool:
        """Merge the groups of the other producers of a node into its own, or move it behind them.

        Return whether that was possible.

        Args:
            home: the cluster of the node.
            node: the node.
            near: the clusters of its producers.
            tried: the clusters that the node could not join, by their identity, and why.
        """
        for other in near:
            if self.clusters.get(id(other)) is not other or other is home:
                continue  # merged already
            problem = self._check_depths(home, other) or self._merge(home, other, node)
            if problem is None or self._duplicate(home, other, node):
                continue
            self._note(other, node, (tried or {}).get(id(other), problem))
            if other.depth >= home.depth:
                if not self._can_move(home, other.depth + 1, home):
                    return False
                self._move(home, other.depth + 1)
        return True

    def _check_depths(self, home: DomainCluster, other: DomainCluster) -> Diagnostic | None:
        """Return why no depth serves both clusters; None if they are, or could be, equally deep."""
        if other.depth < home.depth and not self._can_move(other, home.depth, home):
            return Diagnostic("graph.cycle")
        return None

    def _can_move(self, cluster: DomainCluster, depth: int, other: DomainCluster) -> bool:
        """Return whether all that follows a cluster, except ``other``, is deeper than ``depth``."""
        users = self.graph.users
        for n in cluster.members:
            after = [*(u for e in n.entries for u in users.get(e, ())), *self._waiting.get(n, ())]
            for u in after:
                is_inside = self.cluster_of.get(u) in (cluster, other)
                if not is_inside and u in self.depth and self.depth[u] <= depth:
                    return False
                copies = self.duplicated_in.get(u, ())
                if any(c.depth <= depth for c in copies if c is not other):
                    return False
        return True

    def _move(self, cluster: DomainCluster, depth: int) -> None:
        """Give a cluster a depth."""
        cluster.depth = depth
        self.depth.update(dict.fromkeys(cluster.members, depth))

    def _merge(
        self, home: DomainCluster, other: DomainCluster, node: Node | None
    ) -> Diagnostic | None:
        """Merge a cluster into another one, or return why that is not possible.

        Args:
            home: the cluster that is kept.
            other: the cluster that is merged into it; one depth could serve both.
            node: the node of ``home`` that reads it, if there is one.
        """
        if home.domain.size == other.domain.size:
            are_rows = False
        elif other.reduced is None and home.reduced and other.domain.size == home.domain.rows:
            are_rows = True
        else:
            return Diagnostic("domain.spaces", {"other": other.shape, "home": home.shape})
        if other.reduced is not None and home.reduced is not None:
            problem = check_reduced_axes(home, other.shape, other.reduced, other.chunks)
            if problem is not None:
                return problem
        before = home.shape, home.reduced, home.chunks
        if other.reduced is not None and home.reduced is None:
            if ValueKind.REDUCED in home.members.values():
                return Diagnostic("domain.reductions")
            home.set_reduction(other.shape, other.reduced, other.chunks)
        kinds = {n: ValueKind.REDUCED if are_rows else r for n, r in other.members.items()}
        members = {**home.members, **kinds}
        merged = DomainCluster(home.depth, home.shape, members, {}, home.reduced, home.chunks)
        problem = check_scan_directions(home, other) or self.legality.merge(home, other)
        problem = problem or check_crossing_reads(self.graph, merged, home, other)
        problem = problem or self.legality.inputs(home.reads | other.reads)
        at = next(iter(other.members)) if node is None else node
        if problem is None and not self.context.spend(f"merge at {self.graph.names[at]}"):
            problem = Diagnostic("fuel")
        if problem is not None:
            home.set_reduction(*before)
            return problem
        for n, kind in kinds.items():
            home.members[n] = kind
            self.cluster_of[n] = home
        self._move(home, max(home.depth, other.depth))
        for n in other.duplicated:
            self._add_duplicate(home, n)
        home.reads |= other.reads
        self.clusters.pop(id(other), None)
        if node is not None:
            self._note(home, node, Diagnostic("fused.domain"))
        return None

    def _add_duplicate(self, home: DomainCluster, node: Node) -> None:
        """Let a cluster compute a node of another one as well."""
        home.duplicated[node] = None
        self.duplicated_in.setdefault(node, []).append(home)

    def _duplicate(self, home: DomainCluster, other: DomainCluster, node: Node) -> bool:
        """Let a cluster compute what a node reads of another one, if that is cheap.

        Return whether it does so.
        """
        if reduce_of(node) is not None or other.reduced is not None:
            return False
        if 0 in (home.domain.size, other.domain.size):
            return False
        producers = [n for n in self._producers(node) if self.cluster_of.get(n) is other]
        copied = dict.fromkeys(producers)
        todo = list(copied)
        while todo:
            n = todo.pop()
            for e in n.inputs:
                if e.node in other.members and e.node not in copied:
                    copied[e.node] = None
                    todo.append(e.node)
        if not are_cheap(self.graph, self.target, other, copied):
            return False
        outside = (m for n in copied for m in self._before(n) if m not in other.members)
        if any(self.depth[m] >= home.depth for m in outside):
            return False
        if other.duplicated or not self.legality.may_duplicate(home, copied):
            return False
        reads = home.reads | {e for n in copied for e in n.inputs if e.node not in copied}
        if self.legality.inputs(reads) is not None:
            return False
        if not self.context.spend(f"repeat at {self.graph.names[node]}"):
            return False
        for n in copied:
            self._add_duplicate(home, n)
        home.reads = reads
        for n in self._producers(node):
            if n in copied:
                self.out.note(self.graph.names, n, node, Diagnostic("fused.repeated"))
        return True

    def merge_partial_reductions(self) -> None:
        """Merge groups that reduce equal chunks and read a value in common.

        They are different reductions of one value, of which no operator reads both results.
        """
        alike_of: dict[tuple[object, ...], list[DomainCluster]] = {}
        for cluster in list(self.clusters.values()):
            if cluster.chunks is None:
                continue
            alike = alike_of.setdefault((cluster.shape, cluster.reduced, cluster.chunks), [])
            for home in alike:
                if self.clusters.get(id(home)) is home and home.reads & cluster.reads:
                    deep, other = sorted((home, cluster), key=lambda c: -c.depth)
                    problem = self._check_depths(deep, other) or self._merge(deep, other, None)
                    if problem is None:
                        break
            else:
                alike.append(cluster)

    def fusion_plan(self) -> FusionPlan:
        """Return the groups, in the order of their first members."""
        position = self.graph.positions
        for cluster in sorted(
            self.clusters.values(), key=lambda c: position[next(iter(c.members))]
        ):
            self.out.groups.append(sorted(cluster.members, key=position.__getitem__))
            copies = [n for n in cluster.duplicated if n not in cluster.members]
            self.out.duplicated.append(copies)
        last = {(d.producer, d.consumer): d for d in self.out.log}
        self.out.log = list(last.values())
        # Groups of an edge that stays apart may have been merged later.
        plan = self.out.with_log(self.graph, Diagnostic("fused.domain"))
        return plan
