"""Packing: kernels without data flow between them become one, each with tiles of its own.

FusionStitching's kernel packing. Kernels of one span, which is the length of the longest path to an
end, do not depend on each other; and as every edge leads to a smaller span, merging such kernels
makes no cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import Factory, define

from passkit.analysis.group import FUSED, Decision, Group, Kind
from passkit.diagnostics import Diagnostic
from passkit.fusion.legality import Legality
from passkit.fusion.options import FusionOptions
from passkit.fusion.union import group_in, name_of_kernel, with_unions
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf
from passkit.graph.quotient import QuotientGraph
from passkit.planner.plan import outline_group, plan_group
from passkit.schedule.cost import saved_by_packing
from passkit.schedule.schedule import Schedule, has_one_tile
from passkit.target import Target
from passkit.values.size import numel


def pack(
    graph: Graph, context: FusionOptions, log: Iterable[Decision]
) -> tuple[Graph, list[Decision]]:
    """Return the contracted graph with kernels packed, and its decisions.

    Kernels are packed if the option `keep_together` asks for it, or if that is faster.
    """
    run = _Packing(graph, context)
    for names in context.keep_together:
        run.keep_together(names)
    run.pack_small()
    decisions = [*(d for d in log if not run.is_packed(d)), *run.log]
    return (run.packed_graph() if run.packs else graph), decisions


@define(eq=False)
class _Pack:
    """Fused nodes that become one kernel.

    Attributes:
        nodes: the fused nodes.
        names: the names of their operators.
        arrays: the values that they read and write.
        old: the inputs and state that they read.
        new: the state that they update.
        waiting: the bytes that they read and other kernels computed.
    """

    nodes: list[Node] = Factory(list)
    names: set[str] = Factory(set)
    arrays: set[Entry] = Factory(set)
    old: set[Node] = Factory(set)
    new: set[Node] = Factory(set)
    waiting: int = 0

    def with_(self, other: _Pack) -> _Pack:
        """Return the pack of both together."""
        return _Pack(
            nodes=[*self.nodes, *other.nodes],
            names=self.names | other.names,
            arrays=self.arrays | other.arrays,
            old=self.old | other.old,
            new=self.new | other.new,
            waiting=self.waiting + other.waiting,
        )


class _Packing:
    """One run over a contracted graph.

    Attributes:
        quotient: its nodes, those of packs that the option `keep_together` asks for merged.
        packs: the packs of several kernels.
        pack_of: the pack of each fused node that is in one.
        log: the decisions about packs.
    """

    def __init__(self, graph: Graph, context: FusionOptions) -> None:
        self.graph, self.context, self.target = graph, context, context.target
        self.legality = Legality(graph, context)
        self.quotient = QuotientGraph(graph)
        self.packs: list[_Pack] = []
        self.pack_of: dict[Node, _Pack] = {}
        self.log: list[Decision] = []
        self._update_of = {e: v for v, e in graph.updates}
        self._node_of: dict[str, Node] = {}
        if context.keep_together:
            fused = [n for n in graph.nodes if n.op is FUSED]
            self._node_of = {name: n for n in fused for name in group_in(n).origin.values()}

    # Packs that an option asks for.

    def keep_together(self, names: Sequence[str]) -> None:
        """Pack the kernels of nodes, as far as none depends on another."""
        name_of: dict[Node, str] = {}
        for name in names:
            if name in self._node_of:
                name_of.setdefault(self._node_of[name], name)
        pack = _Pack()
        for node in sorted(name_of, key=lambda n: (self._is_empty(n), self._has_nests(n))):
            if node in self.pack_of:
                continue
            larger = pack.with_(self._single(node))
            refused = self._check(larger, node) if pack.nodes else None
            if refused is None:
                pack = larger
                continue
            why = Diagnostic("hint.keep_together", {"reason": refused})
            self.log.append(Decision(name_of[pack.nodes[0]], name_of[node], why))
        if len(pack.nodes) > 1:
            self.quotient.merge(self._clusters(pack))
        self._keep(pack, name_of)

    def _check(self, pack: _Pack, node: Node) -> Diagnostic | None:
        """Return why ``node`` cannot be the last of a pack; None if it can."""
        if self._is_empty(node):
            return Diagnostic("graph.empty")
        if self._has_nests(node):
            return Diagnostic("pack.nests", {"node": self.graph.names[node]})
        if not self.quotient.are_independent(self._clusters(pack)):
            return Diagnostic("pack.dependence")
        problem = self._check_limits(pack)
        if problem is None and not self._spend(node):
            return Diagnostic("fuel")
        return problem

    def _clusters(self, pack: _Pack) -> list[int]:
        """Return the numbers of the nodes of a pack."""
        return [self.quotient.cluster_of[n] for n in pack.nodes]

    def is_packed(self, d: Decision) -> bool:
        """Return whether operators are in one kernel that a decision keeps apart."""
        one, another = (self._pack_of_name(name) for name in (d.producer, d.consumer))
        return not d.fused and one is not None and one is another

    def _pack_of_name(self, name: str) -> _Pack | None:
        """Return the pack of the operator of a name, if there is one."""
        node = self._node_of.get(name)
        return None if node is None else self.pack_of.get(node)

    # Packs that are faster.

    def pack_small(self) -> None:
        """Pack small kernels of one span that are worth several threads together."""
        spans, vertex_of = self.quotient.spans(), self.quotient.vertex_of
        alike: dict[tuple[int, bool], list[Node]] = {}
        for node in self.graph.nodes:
            if node.op is FUSED and node not in self.pack_of:
                updates_state = any(e in self._update_of for e in node.entries)
                span = spans[vertex_of[self.quotient.cluster_of[node]]]
                alike.setdefault((span, updates_state), []).append(node)
        for nodes in alike.values():
            if len(nodes) > 1:
                self._pack_alike(nodes)

    def _pack_alike(self, nodes: Sequence[Node]) -> None:
        """Pack some of these kernels, of which none depends on another."""
        pack, seconds = _Pack(), dict[Node, float]()
        for node in nodes:
            own_seconds = self._seconds(node)
            own = self._single(node)
            factor = self.target.fusion.pack_ready_factor if self._is_ready(node) else 1
            most = self.target.packed * factor
            if own_seconds is None or own_seconds > most:
                continue
            larger = pack.with_(own)
            conflicts = not pack.old.isdisjoint(own.new) or not own.old.isdisjoint(pack.new)
            is_full = larger.waiting > self.target.packed_bytes
            is_full = is_full or self._check_limits(larger) is not None
            if pack.nodes and (conflicts or is_full):
                self._finish(pack, seconds)
                larger = own
            pack = larger
            seconds[node] = own_seconds
        self._finish(pack, seconds)

    def _seconds(self, node: Node) -> float | None:
        """Return one thread's seconds by the cost model; None for a kernel that is not packed.

        Kernels that a GPU has no loop nest for are not packed with others, which have one.
        Kernels of unknown sizes are not packed, except those of one tile on a GPU: one after the
        other, each keeps the device waiting for one block. Their time counts as 0.
        """
        if self._is_empty(node):
            return None
        if not set(self.context.no_fuse).isdisjoint(group_in(node).origin.values()):
            return None
        plan = outline_group(group_in(node), self.target)
        if isinstance(plan, Diagnostic) or plan.multi_nest is not None or plan.phase_outputs:
            return None
        if self.target.has_maps_only and _has_no_nest(group_in(node), self.target):
            return None
        if not plan.seconds and self.target.lanes == 1 and has_one_tile(plan):
            return 0.0
        return plan.seconds or None

    def _has_nests(self, node: Node) -> bool:
        """Return whether a kernel has several loop nests or phases: those are not packed."""
        plan = outline_group(group_in(node), self.target)
        return isinstance(plan, Schedule) and (
            plan.multi_nest is not None or bool(plan.phase_outputs)
        )

    def _is_empty(self, node: Node) -> bool:
        """Return whether a kernel reads or writes a value without elements."""
        return any(numel(self.graph.shape(e)) == 0 for e in (*node.inputs, *node.entries))

    def _is_ready(self, node: Node) -> bool:
        """Return whether a kernel may run at any time: it reads inputs, and no other reads it."""
        users = self.graph.users
        return all(is_leaf(e.node) for e in node.inputs) and not any(
            e in users for e in node.entries
        )

    def _finish(self, pack: _Pack, seconds: Mapping[Node, float]) -> None:
        """Keep a pack if what it saves is worth it, else those of its kernels that are short."""
        each = [seconds[n] for n in pack.nodes]
        if len(each) > 1 and saved_by_packing(each, self.target) > self.target.worth:
            self._take(pack.nodes)
        else:
            self._take(self._short(pack, seconds))

    def _short(self, pack: _Pack, seconds: Mapping[Node, float]) -> list[Node]:
        """Return kernels that one thread runs one after the other: one kernel saves launches."""
        nodes, total = list[Node](), 0.0
        for node in sorted(pack.nodes, key=lambda n: seconds[n]):
            total += seconds[node]
            if total > self.target.parallel:
                break
            nodes.append(node)
        return nodes if self.target.lanes > 1 else []

    def _take(self, nodes: Sequence[Node]) -> None:
        """Pack kernels as far as there is fuel."""
        if len(nodes) > 1:
            pack = self._single(nodes[0])
            for node in nodes[1:]:
                if self._spend(node):
                    pack = pack.with_(self._single(node))
            self._keep(pack, {n: name_of_kernel(n) for n in pack.nodes})

    # Packs.

    def _single(self, node: Node) -> _Pack:
        """Return a pack of one kernel."""
        sizes = [(e, numel(self.graph.shape(e))) for e in node.inputs if not is_leaf(e.node)]
        waiting = [n * self.graph.dtype(e).nbytes for e, n in sizes if isinstance(n, int)]
        return _Pack(
            nodes=[node],
            names=set(group_in(node).origin.values()),
            arrays={*node.inputs, *node.entries},
            old={e.node for e in node.inputs if is_leaf(e.node)},
            new={v for e in node.entries if (v := self._update_of.get(e)) is not None},
            waiting=sum(waiting),
        )

    def _check_limits(self, pack: _Pack) -> Diagnostic | None:
        """Return why options or the target keep kernels from being one; None if they do not."""
        if refused := self.legality.hints(pack.names):
            return refused
        limits = self.target.fusion
        most = min(limits.pack_ops, limits.pack_group_factor * self.target.max_ops)
        if len(pack.names) > most:
            return Diagnostic("limit.pack_ops", {"limit": most})
        # Besides pointers, the kernel needs sizes and the number of tiles of each part.
        sizes = limits.pack_size_arguments * len(pack.nodes)
        if len(pack.arrays) + sizes > self.target.max_arguments:
            return Diagnostic("limit.arguments", {"limit": self.target.max_arguments})
        return None

    def _spend(self, node: Node) -> bool:
        """Return whether there is fuel to pack a kernel."""
        return self.context.spend(f"pack {self.graph.names[node]}")

    def _keep(self, pack: _Pack, name_of: Mapping[Node, str]) -> None:
        """Let a pack of several kernels become one, which decisions call by these names."""
        if len(pack.nodes) < 2:
            return
        self.packs.append(pack)
        self.pack_of.update(dict.fromkeys(pack.nodes, pack))
        packed = Diagnostic("fused.packed", {"kernels": len(pack.nodes)})
        first, *others = (name_of[n] for n in pack.nodes)
        self.log += [Decision(first, name, packed) for name in others]

    def packed_graph(self) -> Graph:
        """Return the graph with a fused node for each pack."""
        unions = {self.graph.names[p.nodes[0]]: p.nodes for p in self.packs}
        return with_unions(self.graph, unions, Kind.PACKED)


def _has_no_nest(group: Group, target: Target) -> bool:
    """Return whether a GPU has no schedule of a group's loop nest."""
    plan = plan_group(group, target)
    return isinstance(plan, Schedule) and plan.no_nest is not None
