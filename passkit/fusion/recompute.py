"""Recomputation: kernels compute a large value of small operands again instead of reading it.

A pairwise expression ``f(x[:, None], y[None, :])`` has M·N elements and M + N operands. Where two
reductions need different loops over it, as sums of its rows and of its columns, fusion leaves two
kernels, of which one writes the M·N elements for the other. Here the expression is copied into the
second kernel if that is cheaper by the cost model and by the memory at the peak.

Source: rematerialization (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import evolve, frozen

from passkit.analysis.domain import ValueKind, reduced_axes_of
from passkit.analysis.domain_info import DomainInfo, analyze_domain
from passkit.analysis.recompute import is_expensive
from passkit.diagnostics import Diagnostic
from passkit.fusion.cluster_groups import ClusterGroups, usual_nbytes
from passkit.fusion.fusion_plan import FusionPlan
from passkit.fusion.memory import Memory
from passkit.fusion.options import FusionOptions
from passkit.fusion.report import SelectionReport
from passkit.fusion.score import Costs, Scorer
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf
from passkit.graph.quotient import producers_within
from passkit.schedule.cost import peak_seconds
from passkit.values.size import numel


@frozen(eq=False)
class _Cone:
    """Operators of a group that compute one of its results from small operands.

    Attributes:
        nodes: the operators.
        operands: values of the group that are read instead of being computed again: small ones that
            are expensive, or that come from reductions.
    """

    nodes: frozenset[Node]
    operands: frozenset[Entry]


@frozen(eq=False)
class _Change:
    """A fusion plan in which the readers of a value compute it.

    Attributes:
        entry: the value.
        fusion_plan: the plan.
        saved: the seconds that kernels take less by the cost model.
        peak: the largest bytes of values between kernels.
    """

    entry: Entry
    fusion_plan: FusionPlan
    saved: float
    peak: int


def recomputed(
    graph: Graph,
    fusion_plan: FusionPlan,
    context: FusionOptions,
    costs: Costs,
    report: SelectionReport,
) -> tuple[FusionPlan, SelectionReport]:
    """Copy the producers of large values of small operands into the kernels that read them.

    Args:
        graph: The graph.
        fusion_plan: The groups as fusion left them.
        context: The target and its numbers, hints and fuel.
        costs: The source of the seconds of groups.
        report: The numbers of the selection before.

    Returns: The plan, and the numbers with the seconds and the peak as they are then. Both are
        unchanged if nothing pays.
    """
    if not any(_enlarges(graph, n, context) for n in graph.nodes):
        return fusion_plan, report
    scorer = Scorer(context.target, costs, 0)
    refused: set[Entry] = set()
    while True:
        change = _Round(graph, fusion_plan, context, scorer).best(refused)
        if change is None or not context.spend(f"recompute {graph.names[change.entry.node]}"):
            return fusion_plan, report
        fusion_plan = change.fusion_plan
        after, peaks = report.after - change.saved, (report.peaks[0], change.peak)
        report = evolve(report, after=after, peaks=peaks)


def _enlarges(graph: Graph, node: Node, context: FusionOptions) -> bool:
    """Return whether a node computes a value larger than the caches of much smaller operands."""
    if is_leaf(node) or not node.inputs:
        return False
    nbytes = sum(usual_nbytes(graph, e) for e in node.entries)
    if nbytes < context.target.machine.llc_bytes:
        return False
    growth = context.target.fusion.recomputed_growth
    return nbytes >= growth * max(usual_nbytes(graph, e) for e in node.inputs)


class _Round:
    """The values between the kernels of one fusion plan, and the gain if one is recomputed."""

    def __init__(
        self, graph: Graph, fusion_plan: FusionPlan, context: FusionOptions, scorer: Scorer
    ) -> None:
        self.graph, self.fusion_plan = graph, fusion_plan
        self.context, self.scorer = context, scorer
        self.groups = ClusterGroups(graph, fusion_plan, context)
        self.memory = Memory(self.groups)
        self._group_of = {n: k for k, group in enumerate(fusion_plan.groups) for n in group}
        self._awaited = {c for n in graph.nodes for c in n.control}

    def best(self, refused: set[Entry]) -> _Change | None:
        """Return the change for the largest value for which one pays.

        Larger ones are added to ``refused``, and those in it are not tried.
        """
        for number, entry in self._candidates(refused):
            change = self._change(number, entry)
            if change is not None:
                return change
            refused.add(entry)
        return None

    def _candidates(self, refused: Collection[Entry]) -> list[tuple[int, Entry]]:
        """Return clusters and values that others read and caches cannot hold, largest first."""
        groups, least = self.groups, self.context.target.machine.llc_bytes
        candidates = [
            (k, e)
            for k in range(len(groups))
            if self._may_change(k)
            for e in groups.live_outs[k]
            if e not in refused and e not in groups.quotient.heads and groups.nbytes(e) >= least
        ]
        return sorted(candidates, key=lambda c: (-groups.nbytes(c[1]), c[0]))

    def _may_change(self, number: int) -> bool:
        """Return whether the operators of a cluster may change, and nothing waits for them."""
        cluster = self.groups.quotient.clusters[number]
        if not self.groups.is_open(number) or self.groups.takes_no_time[number]:
            return False
        if not cluster.is_group:
            return False
        return not any(n.control or n in self._awaited for n in cluster.nodes)

    def _change(self, number: int, entry: Entry) -> _Change | None:
        """Return the plan in which all readers of a value compute it; None if that does not pay."""
        clusters = self.groups.quotient.clusters
        readers = sorted(self.groups.readers(entry) - {number})
        cone = self._cone(number, entry)
        if cone is None or not all(map(self._may_change, readers)):
            return None
        changed, rest = self._duplicated(number, entry, cone, readers)
        other = ClusterGroups(self.graph, changed, self.context)
        cluster_of = other.quotient.cluster_of
        computing = [cluster_of[clusters[k].nodes[-1]] for k in readers]
        if not all(_computes(other, k, entry) for k in computing):
            return None
        before = self._seconds(self.groups, [number, *readers])
        after = self._seconds(other, {*computing, *(cluster_of[n] for n in rest)})
        if before is None or after is None:
            return None
        saved, peak = before - after, Memory(other).peak
        least = self.context.target.fusion.min_recompute_share * before
        if saved + self._freed(peak) <= least:
            return None
        again = Diagnostic("fused.recomputed", {"nbytes": self.groups.nbytes(entry)})
        apart = Diagnostic("recompute.readers", {"value": self.graph.names[entry.node]})
        logged = changed.with_log(self.graph, again, lambda _: apart)
        return _Change(entry, logged, saved, peak)

    def _freed(self, peak: int) -> float:
        """Return the seconds that count for another peak of memory, negative if it is higher."""
        target = self.context.target
        freed = max(0, self.memory.peak - max(peak, self.memory.room))
        growth = self.memory.beyond(peak)
        weight = 1 + freed / target.fusion.scarce_bytes
        return peak_seconds(freed, target) * weight - peak_seconds(growth, target)

    def _cone(self, number: int, entry: Entry) -> _Cone | None:
        """Return the operators that readers of a value would copy; None if it is no such value.

        None as well if its operands are not much smaller, or it comes from a large reduction.
        """
        cluster = self.groups.quotient.clusters[number]
        body = set(cluster.body)
        most = self.groups.nbytes(entry) // self.context.target.fusion.recomputed_growth
        nodes, operands, read = {entry.node}, set[Entry](), set[Entry]()
        todo = [entry.node]
        if reduced_axes_of(entry.node) is not None:
            return None
        while todo:
            for e in todo.pop().inputs:
                if e.node in nodes or e in read or e in operands:
                    continue
                if e.node not in body:
                    if numel(self.graph.shape(e)) != 1 or not is_leaf(e.node):
                        read.add(e)
                elif self._is_copied(e, body, most):
                    nodes.add(e.node)
                    todo.append(e.node)
                elif self.groups.nbytes(e) > most:
                    return None
                else:
                    operands.add(e)
        sources = (*read, *operands)
        if sum(self.groups.nbytes(e) for e in sources) > most:
            return None
        if not any(numel(self.graph.shape(e)) != 1 for e in sources):
            return None
        is_own = {e.node for e in operands} <= set(cluster.nodes)
        return _Cone(frozenset(nodes), frozenset(operands)) if is_own else None

    def _is_copied(self, entry: Entry, body: Collection[Node], most: int) -> bool:
        """Return whether a value is computed again: a large one not of a reduction, or a cheap one.

        A cheap one is small, made of light operators, and does not come from reductions.
        """
        if self.groups.nbytes(entry) > most:
            return reduced_axes_of(entry.node) is None
        light = (
            reduced_axes_of(n) is None and not is_expensive(n)
            for n in producers_within([entry.node], body)
        )
        return all(light)

    def _duplicated(
        self, number: int, entry: Entry, cone: _Cone, readers: Sequence[int]
    ) -> tuple[FusionPlan, list[Node]]:
        """Return the plan whose readers compute a value, and the rest of its group.

        Operators that the rest does not need any more belong to the first reader.

        Args:
            number: the cluster of the value.
            entry: the value.
            cone: the operators that compute it.
            readers: the clusters that read it.
        """
        clusters, position = self.groups.quotient.clusters, self.graph.positions.__getitem__
        own = clusters[number]
        results = (e for e in self.groups.live_outs[number] if e is not entry)
        needed = producers_within((e.node for e in (*results, *cone.operands)), set(own.body))
        moved = [n for n in own.nodes if n not in needed]
        groups = [list(g) for g, _ in self.fusion_plan.pairs]
        duplicated = [list(c) for _, c in self.fusion_plan.pairs]
        home = self._group_of[own.nodes[0]]
        groups[home] = [n for n in groups[home] if n in needed]
        duplicated[home] = [n for n in duplicated[home] if n in needed]
        for k, reader in enumerate(readers):
            j = self._group_of[clusters[reader].nodes[0]]
            groups[j] = sorted([*groups[j], *(moved if k == 0 else ())], key=position)
            copies = {*duplicated[j], *cone.nodes}.difference(groups[j])
            duplicated[j] = sorted(copies, key=position)
        pairs = zip(groups, duplicated, strict=True)
        return self.fusion_plan.with_pairs(p for p in pairs if p[0]), groups[home]

    def _seconds(self, groups: ClusterGroups, numbers: Iterable[int]) -> float | None:
        """Return the seconds of clusters by the cost model; None if one of them is unknown."""
        return self.scorer.total((groups.group([k]) for k in sorted(numbers)), bounded=False)


def _computes(groups: ClusterGroups, number: int, entry: Entry) -> bool:
    """Return whether a cluster can be a kernel that computes a value at each point of a domain."""
    if groups.legality.check(groups.quotient, [number]) is not None:
        return False
    group = groups.group([number])
    info = analyze_domain(group.graph)
    name = groups.graph.names[entry.node]
    return isinstance(info, DomainInfo) and any(
        ValueKind.POINT in kind for n, kind in info.kinds.items() if group.origin.get(n) == name
    )
