"""Limits: what the target has room for in one group, and what the caller wants apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from passkit.graph.graph import Graph
from passkit.graph.node import Node
from passkit.passes.context import PassContext
from passkit.passes.fusion.draft import Draft, Misfit
from passkit.values.size import numel


class Limits:
    """What may be one group as far as the target and the caller are concerned."""

    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph, self.target, self.names = graph, context.target, graph.names
        self.apart = [set(names) for names in context.keep_apart]
        self.alone = set(context.no_fuse)

    def one(self, draft: Draft, node: Node) -> Misfit | None:
        """Why a node may not join a draft, if so."""
        name = self.names[node]
        if self.alone and (
            name in self.alone or any(self.names[n] in self.alone for n in draft.members)
        ):
            return Misfit("no_fuse", "no_fuse names one of them", "take it out of no_fuse")
        for names in self.apart:
            if name in names and any(self.names[n] in names for n in draft.members):
                return Misfit("keep_apart", "keep_apart names both", "take them out of keep_apart")
        if 0 in (numel(self.graph.shape(node.entries[0])), draft.space.size):
            return Misfit("empty", "it has no elements")
        if len(draft.members) + 1 > self.target.max_ops:
            return Misfit("ops", f"a group has at most {self.target.max_ops} operators")
        reads = draft.reads | {e for e in node.inputs if e.node not in draft.members}
        if len(reads) > self.target.max_buffers:
            return Misfit("buffers", f"a kernel has at most {self.target.max_buffers} inputs")
        return None

    def both(self, home: Draft, other: Draft) -> Misfit | None:
        """Why two drafts may not become one, if so."""
        if self.alone or self.apart:
            names = {self.names[n] for n in home.members}
            others = {self.names[n] for n in other.members}
            if not self.alone.isdisjoint(names | others):
                return Misfit("no_fuse", "no_fuse names one of them", "take it out of no_fuse")
            if any(a & names and a & others for a in self.apart):
                return Misfit("keep_apart", "keep_apart names both", "take them out of keep_apart")
        if 0 in (home.space.size, other.space.size):
            return Misfit("empty", "it has no elements")
        if len(home.members) + len(other.members) > self.target.max_ops:
            return Misfit("ops", f"a group has at most {self.target.max_ops} operators")
        return None

    def all(self, nodes: Sequence[Node]) -> Misfit | None:
        """Why nodes may not be one group, if so, wherever they come from."""
        names = {self.names[n] for n in nodes}
        if not self.alone.isdisjoint(names):
            return Misfit("no_fuse", "no_fuse names one of them", "take it out of no_fuse")
        if any(len(a & names) > 1 for a in self.apart):
            return Misfit("keep_apart", "keep_apart names both", "take them out of keep_apart")
        if any(numel(self.graph.shape(e)) == 0 for n in nodes for e in n.entries):
            return Misfit("empty", "one of them has no elements")
        if len(nodes) > self.target.max_ops:
            return Misfit("ops", f"a group has at most {self.target.max_ops} operators")
        inside = set(nodes)
        reads = {e for n in nodes for e in n.inputs if e.node not in inside}
        if len(reads) > self.target.max_buffers:
            return Misfit("buffers", f"a kernel has at most {self.target.max_buffers} inputs")
        return None

    def copies(self, home: Draft, wanted: Iterable[Node]) -> bool:
        """Whether a draft may take copies of nodes along."""
        names = {self.names[n] for n in (*wanted, *home.members)}
        return self.alone.isdisjoint(names) and not any(len(a & names) > 1 for a in self.apart)
