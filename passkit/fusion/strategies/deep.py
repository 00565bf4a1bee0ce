"""The strategy "deep": work/span analysis, and groups grown from their results.

The span of an operator is the length of the longest path to a result. From each operator, those of
small span first, a group grows towards the inputs, layer by layer, as long as all agree on how a
result is split into blocks; operators with a user that stays outside stay outside, too. Elementwise
operators of one layer and shape, which cannot depend on each other, become one group as well. Then
spans of the groups are computed, and so on, until nothing changes.

Source: FusionStitching (2018), Algorithm 1 and its checker; if a group of it has no schedule, for
example for lack of shared memory, it ends before the operator that is too much.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence

from passkit.analysis.nests import contract_of
from passkit.analysis.tilemap import guessed
from passkit.diagnostics import Diagnostic
from passkit.fusion.common_splits import CommonSplits
from passkit.fusion.fusible import why_opaque
from passkit.fusion.fusion_plan import FusionPlan
from passkit.fusion.keep_together import with_kept_together
from passkit.fusion.legality import Legality, Level
from passkit.fusion.options import FusionOptions
from passkit.fusion.strategy import register_fusion
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.merge_graph import MergeGraph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FScan, OpPattern
from passkit.graph.quotient import QuotientGraph
from passkit.values.size import numel


@register_fusion("deep")
def deep(graph: Graph, context: FusionOptions) -> FusionPlan:
    """Groups of several iteration domains, grown from results as far as their splits agree."""
    run = _Deep(graph, context)
    for _ in range(context.target.fusion.deep_rounds):
        if not run.round():
            break
    return with_kept_together(graph, run.fusion_plan(), context)


def grow_from_root(
    quotient: MergeGraph,
    spans: Mapping[int, int],
    root: int,
    check: Callable[[Sequence[int], int], Diagnostic | None],
    name_of: Callable[[int], object],
) -> tuple[list[int], dict[int, Diagnostic]]:
    """Return the clusters that a group takes in from its root on, and why others stay outside.

    A cluster joins layer by layer if all its users have, except those that are no farther from an
    end than the root: then no path leaves the group and returns.

    Args:
        quotient: the clusters.
        spans: their spans.
        root: the cluster from which the group grows.
        check: returns what else keeps a cluster out of a group; None if nothing does.
        name_of: returns the name of a cluster.
    """
    fused, outside = [root], dict[int, Diagnostic]()
    seen = set(quotient.predecessors[root])
    todo = [(spans[k], k) for k in seen]
    heapq.heapify(todo)
    while todo:
        cluster = heapq.heappop(todo)[1]
        users = quotient.successors[cluster] - set(fused)
        others = sorted(users, key=lambda k: (-spans[k], k))
        if others and spans[others[0]] > spans[root]:
            outside[cluster] = Diagnostic("graph.cycle_through", {"node": name_of(others[0])})
            continue
        problem = check(fused, cluster)
        if problem is not None:
            outside[cluster] = problem
            continue
        fused.append(cluster)
        for k in quotient.predecessors[cluster] - seen:
            seen.add(k)
            heapq.heappush(todo, (spans[k], k))
    return fused, outside


class _Deep:
    """One run over a graph.

    Attributes:
        quotient: the groups, and operators that are in none.
        opaque: for each operator why it is in no group, None if it may be.
        outside: why a cluster is not in the group that grew from another one.
    """

    def __init__(self, graph: Graph, context: FusionOptions) -> None:
        self.graph, self.context = graph, context
        self.legality = Legality(graph, context)
        self.quotient = QuotientGraph(graph)
        self.opaque = {n: self._check_operator(n) for n in self.quotient.cluster_of}
        self.outside: dict[tuple[int, int], Diagnostic] = {}

    def _check_operator(self, node: Node) -> Diagnostic | None:
        """Return why no group has an operator: products that are large are left to a library."""
        product = contract_of(node)
        if product is None:
            return why_opaque(self.graph, node, self.context.target)
        steps = 2 * guessed(product.m) * guessed(product.n) * guessed(product.k)
        if steps > self.context.target.fusion.product_steps:
            return Diagnostic("op.large_product", {"steps": steps})
        return None

    def _is_open(self, cluster: int) -> bool:
        """Return whether a group may have all operators of a cluster."""
        return all(self.opaque[n] is None for n in self._nodes(cluster))

    def round(self) -> bool:
        """Grow groups from all clusters that are in none yet; return whether one grew."""
        spans, taken = self.quotient.spans(), set[int]()
        for root in sorted(spans, key=lambda k: (spans[k], k)):
            if root not in taken and self._is_open(root):
                taken |= self._grow(root, spans, taken)
        layers: dict[tuple[object, ...], list[int]] = {}
        for cluster in sorted(spans):
            if cluster not in taken and (shape := self._elementwise_shape(cluster)) is not None:
                layers.setdefault((spans[cluster], shape), []).append(cluster)
        for alike in layers.values():
            taken |= self._merge_layer(alike)
        return bool(taken)

    # From a result towards the inputs.

    def _grow(self, root: int, spans: Mapping[int, int], taken: set[int]) -> set[int]:
        """Merge a cluster with its producers as far as possible; return the merged clusters."""
        before = self.quotient.predecessors[root]
        if not any(self._is_open(k) and k not in taken for k in before):
            return set()
        splits = CommonSplits(self.graph, self.context.target)
        if splits.add(self._nodes(root)) is not None:
            return set()

        def check(fused: Sequence[int], cluster: int) -> Diagnostic | None:
            """Return why a cluster does not join the group."""
            return self._check_cluster(cluster, fused, taken) or splits.add(self._nodes(cluster))

        fused, outside = grow_from_root(self.quotient, spans, root, check, self._name)
        for cluster, why in outside.items():
            self.outside[cluster, root] = why
        count = self._num_schedulable(fused)
        if count < 2 or not self.context.spend(f"stitch {self._name(root)}"):
            return set()
        self.quotient.merge(fused[:count])
        return set(fused[:count])

    def _check_cluster(
        self, cluster: int, fused: Sequence[int], taken: set[int]
    ) -> Diagnostic | None:
        """Return why a cluster stays outside of a group, whatever splits they have in common."""
        if not self._is_open(cluster):
            return next(filter(None, map(self.opaque.get, self._nodes(cluster))))
        if cluster in taken:
            return Diagnostic("fusion.taken")
        return self.legality.check(self.quotient, [*fused, cluster])

    def _nodes(self, cluster: int) -> list[Node]:
        """Return the operators of a cluster, users first."""
        operators = self.quotient.clusters
        members = sorted(self.quotient.members[cluster], reverse=True)
        return [operators[k].nodes[0] for k in members]

    def _num_schedulable(self, clusters: Sequence[int]) -> int:
        """Return how many clusters, from the first on, have a schedule as one kernel.

        As a rule all have one; if not, the number is found by bisection.
        """
        fits, fails = 1, len(clusters) + 1
        while fails - fits > 1:
            count = len(clusters) if fails > len(clusters) else (fits + fails) // 2
            problem = self.legality.check(self.quotient, clusters[:count], Level.MAPPED)
            if problem is None:
                fits = count
            else:
                fails = count
                self.outside[clusters[count - 1], clusters[0]] = problem
        return fits

    # Beside each other.

    def _elementwise_shape(self, cluster: int) -> object:
        """Return the shape of all results of a cluster of elementwise operators, else None."""
        nodes = self._nodes(cluster)
        if not self._is_open(cluster):
            return None
        for n in nodes:
            assert n.op is not None
            is_plain = reduce_of(n) is None and FScan.get(n.op.name) is None
            if not is_plain or n.op.pattern > OpPattern.BROADCAST or contract_of(n) is not None:
                return None
        (shape, *others) = {self.graph.shape(n.entries[0]) for n in nodes}
        return None if others else shape

    def _merge_layer(self, alike: Sequence[int]) -> set[int]:
        """Merge clusters of one layer and shape within limits; return the merged clusters."""
        merged: set[int] = set()
        while alike:
            count = 1
            while count < len(alike) and self._is_legal_layer(alike[: count + 1]):
                count += 1
            count = self._num_schedulable(alike[:count])
            merged |= self._merge(alike[:count])
            alike = alike[count:]
        return merged

    def _is_legal_layer(self, clusters: Sequence[int]) -> bool:
        """Return whether clusters of one layer may be one kernel, of a limited number of bytes."""
        nodes = [n for k in clusters for n in self._nodes(k)]
        if self._nbytes(nodes) > self.context.target.fusion.layer_bytes:
            return False
        return self.legality.check(self.quotient, clusters) is None

    def _nbytes(self, nodes: Sequence[Node]) -> int:
        """Return the bytes that nodes read and compute."""
        inside = set(nodes)
        reads = {e for n in nodes for e in n.inputs if e.node not in inside}
        entries: set[Entry] = {*reads, *(e for n in nodes for e in n.entries)}
        g = self.graph
        return sum(guessed(numel(g.shape(e))) * g.dtype(e).nbytes for e in entries)

    def _merge(self, group: Sequence[int]) -> set[int]:
        """Merge clusters if there are several, and fuel; return the merged ones."""
        if len(group) < 2 or not self.context.spend(f"join at {self._name(group[0])}"):
            return set()
        self.quotient.merge(group)
        return set(group)

    def _name(self, cluster: int) -> str:
        """Return the name of the last operator of a cluster."""
        return self.graph.names[self._nodes(cluster)[0]]

    def fusion_plan(self) -> FusionPlan:
        """Return the clusters that kernels compute, and why values leave them."""
        fusion_plan = FusionPlan()
        for cluster in self.quotient.order:
            nodes = self._nodes(cluster)[::-1]
            # A matrix product that is in no group is a library call after all.
            if self._is_open(cluster) and (len(nodes) > 1 or contract_of(nodes[0]) is None):
                fusion_plan.groups.append(nodes)
        fusion_plan.note_all(self.graph, self._decide)
        return fusion_plan

    def _decide(self, producer: Node, consumer: Node) -> Diagnostic:
        """Return the decision about an edge: that it is fused, or why not."""
        for n in (producer, consumer):
            if (why := self.opaque[n]) is not None:
                return why
        cluster_of, vertex_of = self.quotient.cluster_of, self.quotient.vertex_of
        one, another = (vertex_of[cluster_of[n]] for n in (producer, consumer))
        if one == another:
            return Diagnostic("fused.splits")
        return self.outside.get((one, another), Diagnostic("fusion.apart"))
