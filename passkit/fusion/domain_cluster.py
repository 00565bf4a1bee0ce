"""Clusters of one iteration domain: groups that grow, and the tests for what fits into them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from attrs import define, field

from passkit.analysis.accesses import expression_size
from passkit.analysis.domain import Domain, ValueKind, axes_of, reduced_axes_of
from passkit.analysis.domain_info import DomainInfo
from passkit.analysis.recompute import is_expensive
from passkit.ast import Chunks, Reduce, Scan
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of, scan_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, known_shape
from passkit.graph.op import FElement
from passkit.target import Target
from passkit.values.size import Shape, numel


@define(eq=False)
class DomainCluster:
    """Operators that are computed together in one iteration domain.

    Attributes:
        shape: the shape of the domain.
        members: the operators, with whether each has a value at each point or one of each row.
        duplicated: operators of other clusters that it computes as well.
        reduced: the axes that its reductions and scans go over; None if it has none.
        chunks: how a reduced axis is divided, if its reductions are partial ones.
        reads: the values that it reads from outside.
    """

    shape: Shape
    members: dict[Node, ValueKind] = field(factory=dict)
    duplicated: dict[Node, None] = field(factory=dict)
    reduced: tuple[int, ...] | None = None
    chunks: Chunks | None = None
    reads: set[Entry] = field(factory=set)
    _space: Domain | None = None

    @classmethod
    def begin(cls, graph: Graph, node: Node) -> DomainCluster:
        """Return the cluster of one operator, in the domain of what it computes or reduces."""
        cluster = cls(graph.shape(node.entries[0]))
        cluster.add(graph, node, ValueKind.POINT if reduce_of(node) is None else ValueKind.REDUCED)
        return cluster

    def add(self, graph: Graph, node: Node, kind: ValueKind) -> None:
        """Add a node, whose producers are members or are read from outside.

        The first reduction or scan defines the domain, and which axes are reduced.
        """
        reduction = reduced_axes_of(node)
        if reduction is not None and self.reduced is None:
            self.shape, self._space = graph.shape(node.inputs[0]), None
            self.reduced, self.chunks = reduction.axes, reduction.chunks
        self.members[node] = kind
        self.reads.update(e for e in node.inputs if not self.computes(e.node))

    def computes(self, node: Node) -> bool:
        """Return whether an operator is a member, or is computed as well."""
        return node in self.members or node in self.duplicated

    @property
    def domain(self) -> Domain:
        """The iteration domain."""
        if self._space is None:
            self._space = Domain(axes_of(self.shape, self.reduced, self.chunks))
        return self._space


def merged_cluster(
    graph: Graph, home: DomainCluster, other: DomainCluster
) -> DomainCluster | Diagnostic:
    """Return the cluster that two are together, or why they have no iteration domain in common.

    The other one's values may be at points of the domain of ``home``, or at its rows.
    """
    are_rows = home.domain.size != other.domain.size
    if are_rows and (
        other.reduced is not None or not home.reduced or other.domain.size != home.domain.rows
    ):
        return Diagnostic("domain.spaces", {"other": other.shape, "home": home.shape})
    frame = home
    if other.reduced is not None and home.reduced is not None:
        problem = _check_reduced_axes(home, other.shape, other.reduced, other.chunks)
        if problem is not None:
            return problem
    elif other.reduced is not None:
        if ValueKind.REDUCED in home.members.values():
            return Diagnostic("domain.reductions")
        frame = other
    if len(_directions(home, other)) > 1:
        return Diagnostic("domain.scan_directions")
    kinds = dict.fromkeys(other.members, ValueKind.REDUCED) if are_rows else other.members
    merged = DomainCluster(
        shape=frame.shape,
        members={**home.members, **kinds},
        duplicated={**home.duplicated, **other.duplicated},
        reduced=frame.reduced,
        chunks=frame.chunks,
    )
    merged.reads = {e for e in home.reads | other.reads if not merged.computes(e.node)}
    return _check_crossing_reads(graph, merged, home, other) or merged


def kind_in(graph: Graph, cluster: DomainCluster, node: Node) -> ValueKind | Diagnostic:
    """Return what a node's value is in the domain of a cluster, or why it cannot be computed there.

    It is POINT or REDUCED.
    """
    reduction = reduce_of(node)
    if reduction is not None:
        return _check_reduction(graph, cluster, node, reduction) or ValueKind.REDUCED
    scan = scan_of(node)
    if scan is not None:
        return _check_scan(graph, cluster, node, scan) or ValueKind.POINT
    kind = _kind_by_size(graph, cluster, node)
    shape = graph.shape(node.entries[0])
    if kind is None:
        return Diagnostic("domain.shape", {"shape": shape, "domain": cluster.shape})
    inside = [e for e in node.inputs if e.node in cluster.members]
    is_plain = node.op is not None and FElement.get(node.op.name) is None
    if is_plain and all(
        graph.shape(e) == shape and cluster.members[e.node] is kind for e in inside
    ):
        return kind
    return _check_reads(graph, cluster, node, kind) or kind


def _kind_by_size(graph: Graph, cluster: DomainCluster, node: Node) -> ValueKind | None:
    """Return POINT or REDUCED by the number of elements; None if neither has so many.

    A value that is computed of reduced values only is REDUCED.
    """
    total = numel(graph.shape(node.entries[0]))
    domain = cluster.domain
    producers = (e.node for e in node.inputs)
    kinds = {cluster.members[n] for n in producers if n in cluster.members}
    if cluster.reduced is not None and total == domain.rows and ValueKind.POINT not in kinds:
        return ValueKind.REDUCED
    return ValueKind.POINT if total == domain.size else None


def _check_reads(
    graph: Graph, cluster: DomainCluster, node: Node, kind: ValueKind
) -> Diagnostic | None:
    """Return which member a node reads at another point than where that is computed, if one."""
    info = DomainInfo(graph, cluster.domain)
    index = cluster.domain.index(kind, graph.shape(node.entries[0]))
    for entry, read_index in info.reads(node, index):
        computed = cluster.members.get(entry.node)
        if computed is not None and info.kind_at(entry, read_index) is not computed:
            return Diagnostic("domain.index", {"value": graph.names[entry.node]})
    return None


def _check_reduction(
    graph: Graph, cluster: DomainCluster, node: Node, reduction: Reduce
) -> Diagnostic | None:
    """Return why a reduction of a member cannot be computed in the domain of the cluster."""
    entry, axes = node.inputs[0], reduction.axes
    shape = graph.shape(entry)
    if cluster.members.get(entry.node) is not ValueKind.POINT:
        return Diagnostic("domain.nested_reduction")
    if cluster.reduced is None:
        if numel(shape[k] for k in axes) == 1:
            return Diagnostic("domain.unit_reduction")
        return None
    return _check_reduced_axes(cluster, shape, axes, reduction.chunks)


def _check_scan(graph: Graph, cluster: DomainCluster, node: Node, scan: Scan) -> Diagnostic | None:
    """Return why a scan cannot be computed in the domain of a cluster."""
    entry = node.inputs[0]
    shape = graph.shape(entry)
    if cluster.members.get(entry.node, ValueKind.POINT) is not ValueKind.POINT:
        return Diagnostic("domain.nested_scan")
    if _directions(cluster) - {scan.reverse}:
        return Diagnostic("domain.scan_direction")
    if cluster.reduced is None:
        if shape[scan.axis] == 1:
            return Diagnostic("domain.unit_scan")
        return None if numel(shape) == cluster.domain.size else Diagnostic("domain.scan_extent")
    return _check_reduced_axes(cluster, shape, (scan.axis,), None)


def _directions(*clusters: DomainCluster) -> set[bool]:
    """Return for the scans of clusters whether they are reversed."""
    return {scan.reverse for c in clusters for n in c.members if (scan := scan_of(n)) is not None}


def _check_crossing_reads(
    graph: Graph, merged: DomainCluster, home: DomainCluster, other: DomainCluster
) -> Diagnostic | None:
    """Return why ``home`` cannot read the values of ``other`` where these are computed.

    Args:
        graph: the graph.
        merged: a cluster with the members of both, in its domain.
        home: the cluster that reads.
        other: the cluster that is read.
    """
    for node in home.members:
        inside = [e.node for e in node.inputs if e.node in other.members]
        if inside and reduce_of(node) is None:
            problem = _check_reads(graph, merged, node, merged.members[node])
            if problem is not None:
                return problem
        elif inside and merged.members[inside[0]] is not ValueKind.POINT:
            return Diagnostic("domain.nested_reduction")
    if any(e.node in other.members for n in home.duplicated for e in n.inputs):
        return Diagnostic("graph.repeated_reader")
    return None


def _check_reduced_axes(
    cluster: DomainCluster, shape: Shape, axes: tuple[int, ...], chunks: Chunks | None
) -> Diagnostic | None:
    """Return why a reduction does not go over just the reduced axes of a cluster.

    Args:
        cluster: a cluster with reductions.
        shape: the shape of the value that is reduced, which has a value at each point.
        axes: the axes of that shape that are reduced.
        chunks: how they are divided, if at all.
    """
    domain = cluster.domain
    if chunks != cluster.chunks or (chunks is not None and shape != cluster.shape):
        return Diagnostic("domain.other_chunks")
    if numel(shape) != domain.size:
        return Diagnostic("domain.reduced_shape", {"shape": shape})
    reduces = domain.reduces_dims(domain.index(ValueKind.POINT, shape), axes)
    return None if reduces else Diagnostic("domain.axes")


def are_cheap(
    graph: Graph, target: Target, cluster: DomainCluster, nodes: Collection[Node]
) -> bool:
    """Return whether a kernel may compute operators of another one as well.

    Args:
        graph: the graph.
        target: the target, whose limits say how many there may be.
        cluster: the cluster that they are in.
        nodes: the operators.
    """
    limits = target.fusion
    if len(nodes) > limits.repeated_ops or any(is_expensive(n) for n in nodes):
        return False
    takes_rows = any(_takes_one_of_each_row(n) for n in nodes)
    if takes_rows and _num_readers(graph, cluster, nodes) > limits.slice_readers:
        return False
    return expression_size(sorted(nodes, key=graph.positions.__getitem__)) <= limits.repeated_terms


def _takes_one_of_each_row(node: Node) -> bool:
    """Return whether an operator takes one element of each row.

    Memory moves in units of several elements, so that it moves all of a row of a few.
    """
    if node.op is None or node.op.name != "slice":
        return False
    shape, taken = known_shape(node.inputs[0]), known_shape(node.entries[0])
    return taken[-1:] == (1,) and numel(taken) != 1 and isinstance(shape[-1], int) and shape[-1] > 1


def _num_readers(graph: Graph, cluster: DomainCluster, nodes: Iterable[Node]) -> int:
    """Return the number of operators outside of a cluster that read ``nodes`` of it."""
    readers = {u for n in nodes for e in n.entries for u in graph.users.get(e, ())}
    return sum(u not in cluster.members for u in readers)
