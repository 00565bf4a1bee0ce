"""Legality: whether operators can share a kernel, as far as the graph, options and target say."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set
from enum import Enum, auto
from itertools import chain

from passkit.analysis.group import Group
from passkit.analysis.nests import contract_of
from passkit.analysis.recompute import is_expensive
from passkit.diagnostics import Diagnostic
from passkit.fusion.contract import extract
from passkit.fusion.domain_cluster import DomainCluster
from passkit.fusion.fusible import why_opaque
from passkit.fusion.options import FusionOptions
from passkit.fusion.phases import phased_group
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf
from passkit.graph.quotient import QuotientGraph, is_literal
from passkit.planner.plan import outline_group, why_no_maps
from passkit.values.size import Extent, numel


class Level(Enum):
    """How much is tested of a group."""

    CHEAP = auto()
    """Operators, options, sizes, and that no path leaves the group and returns."""
    FULL = auto()
    """Also that the target has a schedule for it, within its shared memory."""
    MAPPED = auto()
    """Also that a GPU has maps of the parts of a stitched kernel or a pack."""


class Legality:
    """The tests for groups of one graph.

    Each test returns a diagnostic that says why something is not possible, None if it is.
    """

    def __init__(self, graph: Graph, context: FusionOptions) -> None:
        self.graph, self.target, self.names = graph, context.target, graph.names
        self._apart = [set(names) for names in context.keep_apart]
        self._alone = set(context.no_fuse)
        self._expensive: dict[Node, bool] = {}
        self._computable: set[Node] = set()

    def check(
        self,
        quotient: QuotientGraph,
        numbers: Collection[int],
        level: Level = Level.CHEAP,
        in_phases: bool = False,
    ) -> Diagnostic | None:
        """Return why clusters cannot be one kernel; None if they can.

        A single operator may always be one if a kernel can compute it and the target has a
        schedule.

        Args:
            quotient: the clusters.
            numbers: the numbers that some of these have after all merges so far.
            level: how much is tested.
            in_phases: whether a kernel of several phases is enough from the level FULL on.
        """
        clusters = {m for k in numbers for m in quotient.members[k]}
        bodies = (quotient.clusters[k].body for k in sorted(clusters))
        nodes = list(dict.fromkeys(chain.from_iterable(bodies)))
        if not self._computable.issuperset(nodes):
            for node in nodes:
                if (opaque := self.operator(node)) is not None:
                    return opaque
            self._computable.update(nodes)
        if len(nodes) > 1 and (refused := self.limits(nodes)) is not None:
            return refused
        if len(numbers) > 1 and not quotient.can_merge(numbers):
            return Diagnostic("graph.cycle")
        if level is Level.CHEAP:
            return None
        group, _ = extract(quotient, clusters)
        is_mapped = level is Level.MAPPED and len(nodes) > 1
        problem = self._schedule(group, is_mapped)
        if problem is not None and in_phases and phased_group(group, self.target) is not None:
            return None
        return problem

    def _schedule(self, group: Group, is_mapped: bool) -> Diagnostic | None:
        """Return why the target has no schedule for a group as one kernel; None if it has.

        With ``is_mapped`` a GPU also has maps of the parts of a stitched one.
        """
        schedule = outline_group(group, self.target)
        if isinstance(schedule, Diagnostic):
            return schedule
        return why_no_maps(group, self.target) if is_mapped else None

    def operator(self, node: Node) -> Diagnostic | None:
        """Return why no kernel computes a node; matrix products can be computed by kernels."""
        if node in self._computable or contract_of(node) is not None:
            return None
        return why_opaque(self.graph, node, self.target)

    def hints(self, names: Set[str]) -> Diagnostic | None:
        """Return which option keeps operators of these names apart."""
        if not self._alone.isdisjoint(names):
            return Diagnostic("hint.no_fuse")
        if any(len(apart & names) > 1 for apart in self._apart):
            return Diagnostic("hint.keep_apart")
        return None

    def limits(self, nodes: Sequence[Node]) -> Diagnostic | None:
        """Return why options or sizes keep nodes from being one group."""
        if refused := self.hints({self.names[n] for n in nodes}):
            return refused
        if any(numel(self.graph.shape(e)) == 0 for n in nodes for e in n.entries):
            return Diagnostic("graph.empty_member")
        if refused := self.operators(nodes):
            return refused
        inside = set(nodes)
        return self.inputs({e for n in nodes for e in n.inputs if e.node not in inside})

    def join(self, home: DomainCluster, node: Node) -> Diagnostic | None:
        """Return why options or sizes keep a node from joining a cluster."""
        if refused := self._merge(home, [node], numel(self.graph.shape(node.entries[0]))):
            return refused
        return self.inputs(home.reads | {e for e in node.inputs if not home.computes(e.node)})

    def merge(self, home: DomainCluster, other: DomainCluster) -> Diagnostic | None:
        """Return why options or sizes keep two clusters from being one, whatever they read."""
        return self._merge(home, other.members, other.domain.size)

    def _merge(
        self, home: DomainCluster, nodes: Collection[Node], size: Extent
    ) -> Diagnostic | None:
        """Return why options or numbers keep a cluster and nodes of so many points from merging."""
        if self._alone or self._apart:
            names = {self.names[n] for n in home.members}
            others = {self.names[n] for n in nodes}
            if not self._alone.isdisjoint(names | others):
                return Diagnostic("hint.no_fuse")
            if any(apart & names and apart & others for apart in self._apart):
                return Diagnostic("hint.keep_apart")
        if 0 in (size, home.domain.size):
            return Diagnostic("graph.empty")
        return self.operators(home.members, nodes)

    def may_duplicate(self, home: DomainCluster, nodes: Iterable[Node]) -> bool:
        """Return whether options allow that a cluster computes nodes of other groups as well."""
        return self.hints({self.names[n] for n in (*nodes, *home.members)}) is None

    def inputs(self, reads: Collection[Entry]) -> Diagnostic | None:
        """Return a diagnostic if a kernel would have more input buffers than the target allows.

        Literals are no buffers, nor are arrays without elements, which only give a graph extents.
        Scalars need no address of an element: ``scalars_per_input`` of the target count as one.
        """
        most = self.target.max_buffers
        if len(reads) <= most:
            return None
        shapes = [self.graph.shape(e) for e in reads if not is_literal(self.graph, e)]
        read = [shape for shape in shapes if numel(shape) != 0]
        scalars = sum(not shape for shape in read)
        if len(read) - scalars + scalars // self.target.fusion.scalars_per_input <= most:
            return None
        return Diagnostic("limit.buffers", {"limit": most})

    def operators(self, *parts: Collection[Node]) -> Diagnostic | None:
        """Return a diagnostic if nodes are too many for a group.

        More than ``max_ops`` nodes may be one group if their number is at most ``light_ops`` times
        ``max_ops``, where each expensive operator counts as ``function_ops``.
        """
        most, light = self.target.max_ops, self.target.light_ops
        count = sum(map(len, parts))
        if count <= most:
            return None
        if count <= light * most:
            expensive = sum(self._is_expensive(n) for part in parts for n in part)
            if count + (self.target.fusion.function_ops - 1) * expensive <= light * most:
                return None
        if light > 1:
            return Diagnostic("limit.light_ops", {"limit": most, "light": light * most})
        return Diagnostic("limit.ops", {"limit": most})

    def _is_expensive(self, node: Node) -> bool:
        """Return whether a node is an expensive operator."""
        if node not in self._expensive:
            self._expensive[node] = not is_leaf(node) and is_expensive(node)
        return self._expensive[node]
