"""The clusters of a fusion plan, and the groups that several of them would be as one kernel."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set

from passkit.analysis.group import Group
from passkit.analysis.nests import contract_of
from passkit.analysis.tilemap import guessed
from passkit.fusion.contract import extract, quotient_of, without_views
from passkit.fusion.fusion_plan import FusionPlan
from passkit.fusion.legality import Legality
from passkit.fusion.options import FusionOptions
from passkit.fusion.score import is_small
from passkit.graph.graph import Graph
from passkit.graph.node import Entry
from passkit.schedule.nest_info import USUAL
from passkit.values.size import numel

_Numbers = tuple[int, ...]
_Signature = tuple[tuple[str, _Numbers, tuple[tuple[int, bool], ...], _Numbers], ...]


def usual_nbytes(graph: Graph, entry: Entry) -> int:
    """Return the bytes of a value of a graph, with `USUAL` for unknown sizes."""
    return guessed(numel(graph.shape(entry)), USUAL) * graph.dtype(entry).nbytes


class ClusterGroups:
    """The clusters of a fusion plan, which of them may be merged, and the groups that result.

    Attributes:
        graph: the graph.
        context: the target, the hints and the fuel.
        quotient: the clusters, by number in an order in which they can run.
        legality: the tests for groups.
        live_outs: for each cluster the values that others read, or that are results of the graph.
        takes_no_time: for each cluster whether it only sees memory in another shape, or nobody
            reads it.
    """

    def __init__(self, graph: Graph, fusion_plan: FusionPlan, context: FusionOptions) -> None:
        self.graph, self.context = graph, context
        self.quotient = quotient_of(graph, fusion_plan)
        self.legality = Legality(graph, context)
        numbers = range(len(self.quotient.clusters))
        self.live_outs = [self.quotient.live_outs({k}) for k in numbers]
        computing = {tuple(g) for g in without_views(graph, fusion_plan).groups}
        self.takes_no_time = [
            not self.live_outs[k] or (c.is_group and tuple(c.nodes) not in computing)
            for k, c in enumerate(self.quotient.clusters)
        ]
        self._hinted = {name for names in context.keep_together for name in names}
        self._open = [self._may_merge(k) for k in numbers]
        self._updated = {e for _, e in graph.updates}
        self._groups: dict[_Signature, Group] = {}
        self._keys: dict[int, tuple[str, list[Entry]]] = {}

    def _may_merge(self, number: int) -> bool:
        """Return whether a cluster may become part of a larger one.

        Clusters in which the option keep_together has operators may not, nor operators that no
        group has, except products that a kernel may compute: devices have libraries that are much
        faster for large ones.
        """
        cluster, target = self.quotient.clusters[number], self.context.target
        if not self._hinted.isdisjoint(self.graph.names[n] for n in cluster.nodes):
            return False
        if cluster.is_group:
            return True
        (node,) = cluster.nodes
        limits = target.fusion
        is_batched = len(self.graph.shape(node.entries[0])) > 2
        steps = limits.batched_product_steps if is_batched else limits.product_steps
        return target.lanes > 1 and is_small(node, steps)

    @property
    def predecessors(self) -> Sequence[Set[int]]:
        """For each cluster those that must run before it."""
        return list(self.quotient.predecessors.values())

    def __len__(self) -> int:
        """Return the number of clusters."""
        return len(self.quotient.clusters)

    def is_open(self, number: int) -> bool:
        """Return whether a cluster may become part of a larger one."""
        return self._open[number]

    def close(self, number: int) -> None:
        """Let a cluster stay as it is."""
        self._open[number] = False

    def is_product(self, number: int) -> bool:
        """Return whether a cluster is a product of matrices, which a library would compute."""
        nodes = self.quotient.clusters[number].nodes
        return len(nodes) == 1 and contract_of(nodes[0]) is not None

    def updates_state(self, numbers: Iterable[int]) -> bool:
        """Return whether a result of one of the clusters becomes the new value of state."""
        return any(e in self._updated for k in numbers for e in self.live_outs[k])

    def bytes_between(self, numbers: Collection[int]) -> int:
        """Return the bytes that clusters write and read for each other, and would not as one."""
        inside, total = set(numbers), 0
        for k in inside:
            for entry in self.live_outs[k]:
                readers = self.quotient.readers.get(entry, set())
                near = readers & inside
                if near:
                    stays = entry in self.quotient.heads or readers - inside
                    total += (len(near) + (not stays)) * self.nbytes(entry)
        return total

    def nbytes(self, entry: Entry) -> int:
        """Return the bytes of a value, with `USUAL` for unknown sizes."""
        return usual_nbytes(self.graph, entry)

    def group(self, numbers: Collection[int]) -> Group:
        """Return the group that clusters would be as one kernel.

        Clusters that are alike, as those of layers, have the same group; only the names of its
        nodes may be those of others.
        """
        signature = self._signature(numbers) if len(numbers) > 1 else None
        if signature is None:
            return extract(self.quotient, set(numbers))[0]
        group = self._groups.get(signature)
        if group is None:
            group = self._groups[signature] = extract(self.quotient, set(numbers))[0]
        return group

    def _signature(self, numbers: Collection[int]) -> _Signature | None:
        """Return what equal groups of clusters share: their keys, and the values between them.

        None where that does not determine the group: what one cluster duplicates may be another
        one's own.
        """
        place: dict[Entry, int] = {}
        inside, signature = set(numbers), []
        clusters, owner = self.quotient.clusters, self.quotient.cluster_of
        if any(owner.get(n) in inside for k in inside for n in clusters[k].duplicated):
            return None
        for k in sorted(inside):
            if not self.live_outs[k]:
                return None
            key, reads = self._key(k)
            read = tuple(place.setdefault(e, len(place)) for e in reads)
            results = tuple(
                (place.setdefault(e, len(place)), self.quotient.leaves(e, inside))
                for e in self.live_outs[k]
            )
            copies = tuple(
                place.setdefault(n.entries[0], len(place)) for n in clusters[k].duplicated
            )
            signature.append((key, read, results, copies))
        return tuple(signature)

    def _key(self, number: int) -> tuple[str, list[Entry]]:
        """Return the key of a cluster's own group, and what that reads in the order of inputs."""
        key = self._keys.get(number)
        if key is None:
            group, reads = extract(self.quotient, {number})
            key = self._keys[number] = group.key, reads
        return key

    def readers(self, entry: Entry) -> Set[int]:
        """Return the clusters that read a value from outside."""
        return self.quotient.readers.get(entry, frozenset())
