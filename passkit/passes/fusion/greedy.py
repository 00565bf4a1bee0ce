"""The strategy "stitch" in its greedy form: producers before consumers, each joins what it can.

A group lies in one iteration space: its values are FULL, or ROW after a reduction. Every group
has a depth; an edge between two groups always leads to a larger one, so that no cycle can arise. A
group may be moved deeper as long as whoever reads it is deeper still.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Node, known_shape
from passkit.passes.context import PassContext
from passkit.passes.fusion.draft import (
    Draft,
    against,
    crossing,
    fits,
    role_in,
    same_folding,
)
from passkit.passes.fusion.limits import Limits
from passkit.passes.fusion.partition import Partition, why_opaque
from passkit.passes.fusion_hints import keep_together_names
from passkit.plan.group import Decision
from passkit.plan.schedule import is_expensive
from passkit.space.reads import written_out
from passkit.space.space import Role, folding_of, is_free
from passkit.values.size import numel


def greedy(graph: Graph, context: PassContext) -> Partition:
    """Groups of elementwise, movement and row-reduction operators with several outputs."""
    run = _Greedy(graph, context)
    for node in graph.nodes:
        run.visit(node)
    run.pair()
    for names in keep_together_names(context):
        run.gather(names)
    return run.partition()


def _is_apart(node: Node) -> bool:
    """Whether an operator takes one element of each row of a few: memory moves all of them."""
    if node.op is None or node.op.name != "slice":
        return False
    shape, taken = known_shape(node.inputs[0]), known_shape(node.entries[0])
    return taken[-1:] == (1,) and numel(taken) != 1 and isinstance(shape[-1], int) and shape[-1] > 1


class _Greedy:
    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph, self.context = graph, context
        self.target = context.target
        self.of: dict[Node, Draft] = {}
        self.depth: dict[Node, int] = {}
        self.out = Partition()
        self.limits = Limits(graph, context)
        self.drafts: dict[int, Draft] = {}
        self.copied: dict[Node, list[Draft]] = {}
        self.node_of = {name: n for n, name in graph.names.items()}
        self.later: dict[Node, list[Node]] = {}
        self.untied: list[Decision] = []
        for node in graph.nodes:
            for c in node.control:
                self.later.setdefault(c, []).append(node)

    def visit(self, node: Node) -> None:
        """Put ``node`` into a group, producers having been visited."""
        g = self.graph
        if is_free(node):
            self.depth[node] = -1
            return
        opaque = why_opaque(g, node, self.target)
        lowest = max((self.depth[n] + 1 for n in self._before(node) if n not in self.of), default=0)
        if opaque is not None:
            self.depth[node] = max((self.depth[n] + 1 for n in self._before(node)), default=0)
            for n in self._producers(node):
                self.out.note(g.names, n, node, opaque)
            return
        self._place(node, lowest)

    def _before(self, node: Node) -> Iterable[Node]:
        yield from (e.node for e in node.inputs)
        yield from node.control

    def _producers(self, node: Node) -> list[Node]:
        return [n for n in dict.fromkeys(e.node for e in node.inputs) if not is_free(n)]

    def _place(self, node: Node, lowest: int) -> None:
        near = list({id(d): d for n in self._producers(node) if (d := self.of.get(n))}.values())
        depth = max([lowest, *(d.depth for d in near), *self._control_depth(node)])
        for n in self._producers(node):
            if n not in self.of:
                opaque = why_opaque(self.graph, n, self.target)
                ungrouped = Diagnostic("op.ungrouped") if opaque is None else opaque
                self.out.note(self.graph.names, n, node, ungrouped)
        mark, tried = len(self.out.log), dict[int, Diagnostic]()
        deepest = [d for d in near if d.depth == depth]
        for home in sorted(deepest, key=lambda d: d.reduced is None):
            misfit = self._join(home, node)
            if misfit is not None:
                tried[id(home)] = misfit
                continue
            if self._others(home, node, near):
                return
            # It reads a group that home can neither take in nor stand behind.
            del self.out.log[mark:], home.members[node]
            break
        self._others(self._start(node, depth + bool(deepest)), node, near, tried)

    def _control_depth(self, node: Node) -> list[int]:
        return [self.depth[c] + 1 for c in node.control]

    def _note(self, draft: Draft, node: Node, misfit: Diagnostic) -> None:
        for n in self._producers(node):
            if self.of.get(n) is draft:
                self.out.note(self.graph.names, n, node, misfit)

    def _start(self, node: Node, depth: int) -> Draft:
        draft = Draft.begin(self.graph, node, depth)
        self.drafts[id(draft)] = draft
        self._place_in(draft, node)
        return draft

    def _place_in(self, draft: Draft, node: Node) -> None:
        self.of[node] = draft
        self.depth[node] = draft.depth

    # One node and the group of its deepest producer.

    def _join(self, draft: Draft, node: Node) -> Diagnostic | None:
        misfit = self.limits.one(draft, node) or fits(self.graph, draft, node)
        if misfit is None and not self.context.spend(f"fuse {self.graph.names[node]}"):
            misfit = Diagnostic("fuel")
        if misfit is not None:
            return misfit
        found = folding_of(node)
        if found is not None and draft.reduced is None:
            draft.fold(self.graph.shape(node.inputs[0]), found.axes, found.chunks)
        role: Role | None
        if found is not None:
            role = Role.FULL if reduce_of(node) is None else Role.ROW
        else:
            role = role_in(self.graph, draft, node)
        assert role is not None
        draft.add(node, role)
        self._place_in(draft, node)
        for n in self._producers(node):
            if self.of.get(n) is draft:
                self.out.note(self.graph.names, n, node, Diagnostic("fused.domain"))
        return None

    # The groups of the other producers.

    def _others(
        self,
        home: Draft,
        node: Node,
        near: list[Draft],
        tried: Mapping[int, Diagnostic] | None = None,
    ) -> bool:
        """Take in the groups of the other producers, or stand behind them; whether that is so.

        ``tried`` are the groups that ``node`` could not join, and why.
        """
        for other in near:
            if self.drafts.get(id(other)) is not other or other is home:
                continue  # taken in already
            misfit = self._meet(home, other) or self._merge(home, other, node)
            if misfit is None or self._repeat(home, other, node):
                continue
            self._note(other, node, (tried or {}).get(id(other), misfit))
            if other.depth >= home.depth:
                if not self._can_sink(home, other.depth + 1, home):
                    return False
                self._sink(home, other.depth + 1)
        return True

    def _meet(self, home: Draft, other: Draft) -> Diagnostic | None:
        """Why no depth serves both; None if they are, or could be, equally deep."""
        if other.depth < home.depth and not self._can_sink(other, home.depth, home):
            return Diagnostic("graph.cycle")
        return None

    def _can_sink(self, draft: Draft, depth: int, other: Draft) -> bool:
        """Whether all that reads or awaits ``draft``, but for ``other``, lies below ``depth``."""
        users = self.graph.users
        for n in draft.members:
            after = [*(u for e in n.entries for u in users.get(e, ())), *self.later.get(n, ())]
            for u in after:
                near = self.of.get(u) in (draft, other)
                if not near and u in self.depth and self.depth[u] <= depth:
                    return False
                if any(d.depth <= depth for d in self.copied.get(u, ()) if d is not other):
                    return False
        return True

    def _sink(self, draft: Draft, depth: int) -> None:
        draft.depth = depth
        self.depth.update(dict.fromkeys(draft.members, depth))

    def _merge(self, home: Draft, other: Draft, node: Node | None) -> Diagnostic | None:
        """Join two groups, which one depth could serve, whose spaces agree at ``node`` if any."""
        if home.space.size == other.space.size:
            rows = False
        elif other.reduced is None and home.reduced and other.space.size == home.space.rows:
            rows = True
        else:
            return Diagnostic("domain.spaces", {"other": other.shape, "home": home.shape})
        if other.reduced is not None and home.reduced is not None:
            misfit = same_folding(home, other.shape, other.reduced, other.chunks)
            if misfit is not None:
                return misfit
        before = home.shape, home.reduced, home.chunks
        if other.reduced is not None and home.reduced is None:
            if Role.ROW in home.members.values():
                return Diagnostic("domain.reductions")
            home.fold(other.shape, other.reduced, other.chunks)
        roles = {n: Role.ROW if rows else r for n, r in other.members.items()}
        members = {**home.members, **roles}
        trial = Draft(home.depth, home.shape, members, {}, home.reduced, home.chunks)
        misfit = against(home, other) or self.limits.both(home, other)
        misfit = misfit or crossing(self.graph, trial, home, other)
        misfit = misfit or self.limits.inputs(home.reads | other.reads)
        at = next(iter(other.members)) if node is None else node
        if misfit is None and not self.context.spend(f"merge at {self.graph.names[at]}"):
            misfit = Diagnostic("fuel")
        if misfit is not None:
            home.fold(*before)
            return misfit
        for n, role in roles.items():
            home.members[n] = role
            self.of[n] = home
        self._sink(home, max(home.depth, other.depth))
        for n in other.clones:
            self._copy(home, n)
        home.reads |= other.reads
        self.drafts.pop(id(other), None)
        if node is not None:
            self._note_fused(home, node)
        return None

    def _copy(self, home: Draft, node: Node) -> None:
        home.clones[node] = None
        self.copied.setdefault(node, []).append(home)

    def _note_fused(self, home: Draft, node: Node) -> None:
        for n in self._producers(node):
            if self.of.get(n) is home:
                self.out.note(self.graph.names, n, node, Diagnostic("fused.domain"))

    def _repeat(self, home: Draft, other: Draft, node: Node) -> bool:
        """Copy a cheap broadcast producer into the group that reads it."""
        if reduce_of(node) is not None or other.reduced is not None:
            return False
        if 0 in (home.space.size, other.space.size):
            return False
        wanted = dict.fromkeys(n for n in self._producers(node) if self.of.get(n) is other)
        todo = list(wanted)
        while todo:
            n = todo.pop()
            for e in n.inputs:
                if e.node in other.members and e.node not in wanted:
                    wanted[e.node] = None
                    todo.append(e.node)
        if len(wanted) > self.target.fusion.repeated_ops or any(is_expensive(n) for n in wanted):
            return False
        few = self.target.fusion.slice_readers
        if any(_is_apart(n) for n in wanted) and self._num_readers(wanted, other) > few:
            return False
        if any(self.depth[m] >= home.depth for n in wanted for m in self._outside(n, other)):
            return False
        if other.clones or not self.limits.copies(home, wanted):
            return False
        terms = written_out(sorted(wanted, key=self.graph.positions.__getitem__))
        if terms > self.target.fusion.repeated_terms:
            return False
        reads = home.reads | {e for n in wanted for e in n.inputs if e.node not in wanted}
        if self.limits.inputs(reads) is not None:
            return False
        if not self.context.spend(f"repeat at {self.graph.names[node]}"):
            return False
        for n in wanted:
            self._copy(home, n)
        home.reads = reads
        for n in self._producers(node):
            if n in wanted:
                self.out.note(self.graph.names, n, node, Diagnostic("fused.repeated"))
        return True

    def _num_readers(self, nodes: Iterable[Node], draft: Draft) -> int:
        """The number of operators outside of a draft that read ``nodes`` of it."""
        users = self.graph.users
        readers = {u for n in nodes for e in n.entries for u in users.get(e, ())}
        return sum(u not in draft.members for u in readers)

    def _outside(self, node: Node, draft: Draft) -> list[Node]:
        return [m for m in self._before(node) if m not in draft.members]

    # Chunks of one value, folded in different ways: nobody reads both, but one pass serves both.

    def pair(self) -> None:
        """Join groups that fold the same chunks and read something in common."""
        first: dict[tuple[object, ...], list[Draft]] = {}
        for draft in list(self.drafts.values()):
            if draft.chunks is None:
                continue
            alike = first.setdefault((draft.shape, draft.reduced, draft.chunks), [])
            for home in alike:
                if self.drafts.get(id(home)) is home and home.reads & draft.reads:
                    deep, other = sorted((home, draft), key=lambda d: -d.depth)
                    if (self._meet(deep, other) or self._merge(deep, other, None)) is None:
                        break
            else:
                alike.append(draft)

    # What the caller wants in one group.

    def gather(self, names: list[str]) -> None:
        """Put the groups of nodes together where that is legal, else say why not."""
        first: Node | None = None
        for name in names:
            node = self.node_of.get(name)
            if node is None or node not in self.of:
                why = Diagnostic("op.removed")
                if node is not None:
                    opaque = why_opaque(self.graph, node, self.target)
                    why = Diagnostic("op.ungrouped") if opaque is None else opaque
                self._untied(name, name, why)
            elif first is None:
                first = node
            elif self.of[node] is not self.of[first]:
                home, other = sorted((self.of[first], self.of[node]), key=lambda d: -d.depth)
                misfit = self._meet(home, other) or self._merge(home, other, None)
                if misfit is not None:
                    self._untied(self.graph.names[first], name, misfit)

    def _untied(self, one: str, another: str, misfit: Diagnostic) -> None:
        refused = Diagnostic("hint.keep_together", {"reason": misfit})
        self.untied.append(Decision(one, another, refused))

    def partition(self) -> Partition:
        """The groups, in the order of their first members."""
        position = self.graph.positions
        drafts = sorted(self.drafts.values(), key=lambda d: position[next(iter(d.members))])
        for draft in drafts:
            self.out.groups.append(sorted(draft.members, key=position.__getitem__))
            self.out.clones.append([n for n in draft.clones if n not in draft.members])
        last = {(d.producer, d.consumer): self._settled(d) for d in self.out.log}
        self.out.log = [*last.values(), *self.untied]
        return self.out

    def _settled(self, d: Decision) -> Decision:
        """What became of an edge: groups that it did not join may have met elsewhere."""
        one, another = (self._homes(self.node_of[name]) for name in (d.producer, d.consumer))
        if d.fused or one.isdisjoint(another):
            return d
        return Decision(d.producer, d.consumer, Diagnostic("fused.domain"))

    def _homes(self, node: Node) -> set[int]:
        """The groups that compute a node, itself or a copy."""
        found = [*self.copied.get(node, ()), *([self.of[node]] if node in self.of else ())]
        return {id(d) for d in found if self.drafts.get(id(d)) is d}
