"""The strategy "xla": XLA's basic rules, the baseline that counts of kernels are compared with.

A kernel has one result: the last operator of a group, which may be a reduction. Its producers are
taken in, users first, if whoever reads them takes them in; so nothing is computed that another
kernel computes as well, but for light operators, which each of them repeats.

Source: XLA, InstructionFusion and its GPU rules: a reduction is fused into none of its users, an
expensive operator is computed once, what has to be in memory anyway is read from there.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit.diagnostics import Diagnostic
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.passes.context import PassContext
from passkit.passes.fusion.draft import Draft, crossing
from passkit.passes.fusion.limits import Limits
from passkit.passes.fusion.partition import Partition, why_opaque
from passkit.plan.schedule import is_expensive
from passkit.plan.strategy import register_fusion
from passkit.space.reads import written_out
from passkit.space.space import Role, folding_of, is_free
from passkit.values.size import numel


@register_fusion("xla")
def basic(graph: Graph, context: PassContext) -> Partition:
    """Groups of one result each: elementwise and movement operators, a reduction at the end."""
    run = _Basic(graph, context)
    for node in reversed(graph.nodes):
        if not is_free(node):
            run.visit(node)
    return run.partition()


class _Basic:
    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph, self.context = graph, context
        self.limits = Limits(graph, context)
        self.out = Partition()
        self.drafts: list[Draft] = []
        self.homes: dict[Node, list[Draft]] = {}
        self.heads = {e.node for e in graph.heads}
        self.awaited = {c for n in graph.nodes for c in n.control}

    def visit(self, node: Node) -> None:
        """Put ``node`` into the groups of all who read it, or begin one; they have been visited."""
        readers = list(dict.fromkeys(u for e in node.entries for u in self.graph.users.get(e, ())))
        misfit = self._apart(node, readers) or self._join(node, readers)
        for user in readers:
            why = Diagnostic("fused.readers") if misfit is None else misfit
            self.out.note(self.graph.names, node, user, why)
        if misfit is not None and why_opaque(self.graph, node, self.context.target) is None:
            draft = Draft.begin(self.graph, node)
            self.drafts.append(draft)
            self.homes[node] = [draft]

    def _apart(self, node: Node, readers: Sequence[Node]) -> Diagnostic | None:
        """Why ``node`` is computed by itself, whatever its users have room for."""
        opaque = why_opaque(self.graph, node, self.context.target)
        if opaque is not None:
            return opaque
        if node in self.heads:
            return Diagnostic("graph.output")
        if folding_of(node) is not None:
            return Diagnostic("op.reduction")
        if node.control or node in self.awaited or any(u.control for u in readers):
            return Diagnostic("graph.control")
        for user in readers:
            if user not in self.homes:
                return Diagnostic("op.host", {"reader": self.graph.names[user]})
        return None

    def _join(self, node: Node, readers: Sequence[Node]) -> Diagnostic | None:
        """Let all groups that read ``node`` compute it, or say why one of them cannot."""
        drafts = list({id(d): d for u in readers for d in self.homes[u]}.values())
        misfit = self._inside(drafts[0], node) if len(drafts) == 1 else None
        member = len(drafts) == 1 and misfit is None
        if not member:
            misfit = self._repeated(drafts, node, misfit)
        if misfit is None and not self.context.spend(f"fuse {self.graph.names[node]}"):
            misfit = Diagnostic("fuel")
        if misfit is not None:
            return misfit
        self.homes[node] = drafts
        for draft in drafts:
            draft.reads = self._reads(draft, node)
            if member:
                draft.members[node] = Role.FULL
            else:
                draft.clones[node] = None
        return None

    def _reads(self, draft: Draft, node: Node) -> set[Entry]:
        return {e for e in (*draft.reads, *node.inputs) if e.node is not node}

    def _inside(self, draft: Draft, node: Node) -> Diagnostic | None:
        """Why ``node`` cannot be computed at each point of a group's space, where it is read."""
        if numel(self.graph.shape(node.entries[0])) != draft.space.size:
            return Diagnostic("domain.elements")
        other = Draft.begin(self.graph, node)
        misfit = self.limits.both(draft, other) or self._room(draft, node)
        if misfit is not None:
            return misfit
        members = {**draft.members, node: Role.FULL}
        trial = Draft(0, draft.shape, members, {}, draft.reduced, draft.chunks)
        return crossing(self.graph, trial, draft, other)

    def _room(self, draft: Draft, node: Node) -> Diagnostic | None:
        most = self.context.target.max_buffers
        if len(self._reads(draft, node)) > most:
            return Diagnostic("limit.buffers", {"limit": most})
        return None

    def _repeated(
        self, drafts: Sequence[Draft], node: Node, why: Diagnostic | None
    ) -> Diagnostic | None:
        """Why ``node`` is not computed wherever it is read; ``why`` it is not at a point."""
        if is_expensive(node):
            return why or Diagnostic("op.expensive")
        for draft in drafts:
            if 0 in (numel(self.graph.shape(node.entries[0])), draft.space.size):
                return Diagnostic("graph.empty")
            if not self.limits.copies(draft, [node]):
                return Diagnostic("hint.keep_apart_one")
            position = self.graph.positions.__getitem__
            most = self.context.target.fusion.repeated_terms
            if written_out(sorted([*draft.clones, node], key=position)) > most:
                return Diagnostic("limit.length", {"limit": most})
            misfit = self._room(draft, node)
            if misfit is not None:
                return misfit
        return None

    def partition(self) -> Partition:
        """The groups, in the order of their results."""
        position = self.graph.positions.__getitem__
        for draft in reversed(self.drafts):
            self.out.groups.append(sorted(draft.members, key=position))
            self.out.clones.append(sorted(draft.clones, key=position))
        self.out.log.reverse()
        return self.out
