"""Limits: what the target has room for in one group, and what the caller wants apart."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes.context import PassContext
from passkit.passes.fusion.draft import Draft
from passkit.plan.closing import is_literal
from passkit.plan.schedule import is_expensive
from passkit.space.space import is_free
from passkit.values.size import numel


class Limits:
    """What may be one group as far as the target and the caller are concerned."""

    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph, self.target, self.names = graph, context.target, graph.names
        self.apart = [set(names) for names in context.keep_apart]
        self.alone = set(context.no_fuse)
        self._expensive: dict[Node, bool] = {}

    def one(self, draft: Draft, node: Node) -> Diagnostic | None:
        """Why a node may not join a draft, if so."""
        name = self.names[node]
        if self.alone and (
            name in self.alone or any(self.names[n] in self.alone for n in draft.members)
        ):
            return Diagnostic("hint.no_fuse")
        for names in self.apart:
            if name in names and any(self.names[n] in names for n in draft.members):
                return Diagnostic("hint.keep_apart")
        if 0 in (numel(self.graph.shape(node.entries[0])), draft.space.size):
            return Diagnostic("graph.empty")
        if misfit := self.operators(draft.members, [node]):
            return misfit
        return self.inputs(draft.reads | {e for e in node.inputs if e.node not in draft.members})

    def both(self, home: Draft, other: Draft) -> Diagnostic | None:
        """Why two drafts may not become one, if so."""
        if self.alone or self.apart:
            names = {self.names[n] for n in home.members}
            others = {self.names[n] for n in other.members}
            if not self.alone.isdisjoint(names | others):
                return Diagnostic("hint.no_fuse")
            if any(a & names and a & others for a in self.apart):
                return Diagnostic("hint.keep_apart")
        if 0 in (home.space.size, other.space.size):
            return Diagnostic("graph.empty")
        return self.operators(home.members, other.members)

    def all(self, nodes: Sequence[Node]) -> Diagnostic | None:
        """Why nodes may not be one group, if so, wherever they come from."""
        names = {self.names[n] for n in nodes}
        if not self.alone.isdisjoint(names):
            return Diagnostic("hint.no_fuse")
        if any(len(a & names) > 1 for a in self.apart):
            return Diagnostic("hint.keep_apart")
        if any(numel(self.graph.shape(e)) == 0 for n in nodes for e in n.entries):
            return Diagnostic("graph.empty_member")
        if misfit := self.operators(nodes):
            return misfit
        inside = set(nodes)
        return self.inputs({e for n in nodes for e in n.inputs if e.node not in inside})

    def inputs(self, reads: Collection[Entry]) -> Diagnostic | None:
        """Whether a kernel reads too many values; literals, which stand in its text, are none.

        Nor are arrays without elements, which give a graph extents. Of scalars, which need no
        address of an element, ``scalars_per_input`` of the target count as one.
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
        """Whether nodes are too many for a group.

        More than ``max_ops`` may be one where all count as light ones, expensive ones as
        ``function_ops``.
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
        found = self._expensive.get(node)
        if found is None:
            found = self._expensive[node] = not is_free(node) and is_expensive(node)
        return found

    def copies(self, home: Draft, wanted: Iterable[Node]) -> bool:
        """Whether a draft may take copies of nodes along."""
        names = {self.names[n] for n in (*wanted, *home.members)}
        return self.alone.isdisjoint(names) and not any(len(a & names) > 1 for a in self.apart)
