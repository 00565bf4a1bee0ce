"""The strategy "stitch" in its greedy form: producers before consumers, each joins what it can.

A group lies in one iteration space: its values are FULL, or ROW after a reduction. Every group
has a depth; an edge between two groups always leads to a larger one, so that no cycle can arise. A
group may be moved deeper as long as whoever reads it is deeper still.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import define, field

from passkit.errors import PasskitError
from passkit.graph import Graph
from passkit.group import Decision
from passkit.node import Entry, Node
from passkit.op import FElement
from passkit.passes.context import PassContext
from passkit.passes.fusion.partition import Partition, why_opaque
from passkit.reads import written_out
from passkit.schedule import is_expensive
from passkit.size import Extent, Shape, numel
from passkit.space import Layout, Role, Space, axes_of, is_free, reduce_of

CHEAP, LONGEST = 8, 64
"""Groups of at most this many light operators may be repeated where they are broadcast, if that is
no longer text than this many parts."""


@define(eq=False)
class Draft:
    """A group in the making; ``shape`` is its space, ``reduced`` the axes folded in it."""

    depth: int
    shape: Shape
    members: dict[Node, Role] = field(factory=dict)
    clones: dict[Node, None] = field(factory=dict)
    reduced: tuple[int, ...] | None = None
    reads: set[Entry] = field(factory=set)
    _space: Space | None = None

    @property
    def space(self) -> Space:
        """The iteration space."""
        if self._space is None:
            self._space = Space(axes_of(self.shape, self.reduced))
        return self._space

    def fold(self, shape: Shape, axes: tuple[int, ...]) -> None:
        """Let the first reduction of the group say which axes are folded."""
        self.shape, self.reduced, self._space = shape, axes, None


@define
class Misfit:
    """Why a node cannot join a group."""

    code: str
    reason: str
    way_out: str = ""


def greedy(graph: Graph, context: PassContext) -> Partition:
    """Groups of elementwise, movement and row-reduction operators with several outputs."""
    run = _Greedy(graph, context)
    for node in graph.nodes:
        run.visit(node)
    for names in context.keep_together:
        run.gather([_name(n) for n in names])
    return run.partition()


class _Greedy:
    def __init__(self, graph: Graph, context: PassContext) -> None:
        self.graph, self.context = graph, context
        self.target = context.target
        self.of: dict[Node, Draft] = {}
        self.depth: dict[Node, int] = {}
        self.out = Partition()
        self.apart = [{_name(n) for n in names} for names in context.keep_apart]
        self.alone = {_name(n) for n in context.no_fuse}
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
        opaque = why_opaque(g, node)
        lowest = max((self.depth[n] + 1 for n in self._before(node) if n not in self.of), default=0)
        if opaque is not None:
            self.depth[node] = max((self.depth[n] + 1 for n in self._before(node)), default=0)
            for n in self._producers(node):
                self.out.note(g.names, n, node, "opaque", opaque)
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
                reason = why_opaque(self.graph, n) or "it is not in a group"
                self.out.note(self.graph.names, n, node, "opaque", reason)
        mark, tried = len(self.out.log), dict[int, Misfit]()
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

    def _note(self, draft: Draft, node: Node, misfit: Misfit) -> None:
        for n in self._producers(node):
            if self.of.get(n) is draft:
                self.out.note(self.graph.names, n, node, misfit.code, misfit.reason, misfit.way_out)

    def _start(self, node: Node, depth: int) -> Draft:
        found = reduce_of(node)
        entry = node.inputs[0] if found is not None else node.entries[0]
        draft = Draft(depth, self.graph.shape(entry))
        if found is not None:
            draft.reduced = found.axes
        self.drafts[id(draft)] = draft
        self._add(draft, node, Role.ROW if found is not None else Role.FULL)
        return draft

    def _add(self, draft: Draft, node: Node, role: Role) -> None:
        draft.members[node] = role
        draft.reads.update(e for e in node.inputs if e.node not in draft.members)
        self.of[node] = draft
        self.depth[node] = draft.depth

    # One node and the group of its deepest producer.

    def _join(self, draft: Draft, node: Node) -> Misfit | None:
        misfit = self._allowed(draft, node) or self._fits(draft, node)
        if misfit is None and not self.context.spend(f"fuse {self.graph.names[node]}"):
            misfit = Misfit("fuel", "the fuel is used up", "raise fuel")
        if misfit is not None:
            return misfit
        found = reduce_of(node)
        if found is not None and draft.reduced is None:
            draft.fold(self.graph.shape(node.inputs[0]), found.axes)
        role = Role.ROW if found is not None else self._role(draft, node)
        assert role is not None
        self._add(draft, node, role)
        for n in self._producers(node):
            if self.of.get(n) is draft:
                self.out.note(self.graph.names, n, node, "fused", "one iteration space")
        return None

    def _allowed(self, draft: Draft, node: Node, joining: int = 1) -> Misfit | None:
        name = self.graph.names[node]
        if self.alone and (
            name in self.alone or any(self.graph.names[n] in self.alone for n in draft.members)
        ):
            return Misfit("no_fuse", "no_fuse names one of them", "take it out of no_fuse")
        for names in self.apart:
            if name in names and any(self.graph.names[n] in names for n in draft.members):
                return Misfit("keep_apart", "keep_apart names both", "take them out of keep_apart")
        if 0 in (numel(self.graph.shape(node.entries[0])), draft.space.size):
            return Misfit("empty", "it has no elements")
        if len(draft.members) + joining > self.target.max_ops:
            return Misfit("ops", f"a group has at most {self.target.max_ops} operators")
        reads = draft.reads | {e for e in node.inputs if e.node not in draft.members}
        if len(reads) > self.target.max_buffers:
            return Misfit("buffers", f"a kernel has at most {self.target.max_buffers} inputs")
        return None

    def _role(self, draft: Draft, node: Node) -> Role | None:
        """FULL or ROW by number of elements; a value of row values only is a ROW."""
        total = numel(self.graph.shape(node.entries[0]))
        space = draft.space
        inside = {draft.members[n] for n in self._producers(node) if n in draft.members}
        if draft.reduced is not None and total == space.rows and Role.FULL not in inside:
            return Role.ROW
        return Role.FULL if total == space.size else None

    def _fits(self, draft: Draft, node: Node) -> Misfit | None:
        found = reduce_of(node)
        if found is not None:
            return self._fits_reduction(draft, node, found.axes)
        role = self._role(draft, node)
        shape = self.graph.shape(node.entries[0])
        if role is None:
            return Misfit(
                "shape", f"its shape {_show(shape)} does not lie in the space {_show(draft.shape)}"
            )
        inside = [e for e in node.inputs if e.node in draft.members]
        plain = node.op is not None and FElement.get(node.op.name) is None
        if plain and all(
            self.graph.shape(e) == shape and draft.members[e.node] is role for e in inside
        ):
            return None
        return self._check_reads(draft, node, role)

    def _check_reads(self, draft: Draft, node: Node, role: Role) -> Misfit | None:
        """Every value of the group must be read at the point where it is computed."""
        layout = Layout(self.graph, draft.space)
        index = draft.space.index(role, self.graph.shape(node.entries[0]))
        for entry, where in layout.reads(node, index):
            known = draft.members.get(entry.node)
            if known is not None and layout.role_at(entry, where) is not known:
                return Misfit(
                    "index",
                    f"it reads {self.graph.names[entry.node]} at another index than its own",
                )
        return None

    def _fits_reduction(self, draft: Draft, node: Node, axes: tuple[int, ...]) -> Misfit | None:
        entry = node.inputs[0]
        shape = self.graph.shape(entry)
        if draft.members.get(entry.node) is not Role.FULL:
            return Misfit("twice", "it reduces what a reduction left")
        if draft.reduced is None:
            if numel(shape[k] for k in axes) == 1:
                return Misfit("unit", "it reduces axes of extent 1")
            return None
        return same_folding(draft.space, shape, axes)

    # The groups of the other producers.

    def _others(
        self, home: Draft, node: Node, near: list[Draft], tried: Mapping[int, Misfit] | None = None
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

    def _meet(self, home: Draft, other: Draft) -> Misfit | None:
        """Why no depth serves both; None if they are, or could be, equally deep."""
        if other.depth < home.depth and not self._can_sink(other, home.depth, home):
            return Misfit("order", "other kernels stand between them")
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

    def _merge(self, home: Draft, other: Draft, node: Node | None) -> Misfit | None:
        """Join two groups, which one depth could serve, whose spaces agree at ``node`` if any."""
        if home.space.size == other.space.size:
            rows = False
        elif other.reduced is None and home.reduced and other.space.size == home.space.rows:
            rows = True
        else:
            return Misfit("space", f"spaces {_show(other.shape)} and {_show(home.shape)} differ")
        if other.reduced is not None and home.reduced is not None:
            misfit = same_folding(home.space, other.shape, other.reduced)
            if misfit is not None:
                return misfit
        if other.reduced is not None and home.reduced is None:
            if Role.ROW in home.members.values():
                return Misfit("space", "row values of different spaces")
            home_shape, home_reduced = home.shape, home.reduced
            home.fold(other.shape, other.reduced)
        else:
            home_shape, home_reduced = home.shape, home.reduced
        roles = {n: Role.ROW if rows else r for n, r in other.members.items()}
        trial = Draft(home.depth, home.shape, {**home.members, **roles}, reduced=home.reduced)
        misfit = self._allowed_both(home, other) or self._crossing(trial, home, other)
        if misfit is None and len(home.reads | other.reads) > self.target.max_buffers:
            misfit = Misfit("buffers", f"a kernel has at most {self.target.max_buffers} inputs")
        at = next(iter(other.members)) if node is None else node
        if misfit is None and not self.context.spend(f"merge at {self.graph.names[at]}"):
            misfit = Misfit("fuel", "the fuel is used up", "raise fuel")
        if misfit is not None:
            home.shape, home.reduced, home._space = home_shape, home_reduced, None
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

    def _allowed_both(self, home: Draft, other: Draft) -> Misfit | None:
        if self.alone or self.apart:
            names = {self.graph.names[n] for n in home.members}
            others = {self.graph.names[n] for n in other.members}
            if not self.alone.isdisjoint(names | others):
                return Misfit("no_fuse", "no_fuse names one of them", "take it out of no_fuse")
            if any(a & names and a & others for a in self.apart):
                return Misfit("keep_apart", "keep_apart names both", "take them out of keep_apart")
        if 0 in (home.space.size, other.space.size):
            return Misfit("empty", "it has no elements")
        if len(home.members) + len(other.members) > self.target.max_ops:
            return Misfit("ops", f"a group has at most {self.target.max_ops} operators")
        return None

    def _crossing(self, trial: Draft, home: Draft, other: Draft) -> Misfit | None:
        """Whether ``home`` reads the values of ``other`` at their own points."""
        for node in home.members:
            inside = [e.node for e in node.inputs if e.node in other.members]
            if inside and reduce_of(node) is None:
                misfit = self._check_reads(trial, node, trial.members[node])
                if misfit is not None:
                    return misfit
            elif inside and trial.members[inside[0]] is not Role.FULL:
                return Misfit("twice", "it reduces what a reduction left")
        if any(e.node in other.members for n in home.clones for e in n.inputs):
            return Misfit("order", "a value repeated in one of them reads the other")
        return None

    def _note_fused(self, home: Draft, node: Node) -> None:
        for n in self._producers(node):
            if self.of.get(n) is home:
                self.out.note(self.graph.names, n, node, "fused", "one iteration space")

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
        if len(wanted) > CHEAP or any(is_expensive(n) for n in wanted):
            return False
        if any(self.depth[m] >= home.depth for n in wanted for m in self._outside(n, other)):
            return False
        if other.clones or not self._allowed_clone(home, wanted):
            return False
        if written_out(sorted(wanted, key=self.graph.positions.__getitem__)) > LONGEST:
            return False
        reads = home.reads | {e for n in wanted for e in n.inputs if e.node not in wanted}
        if len(reads) > self.target.max_buffers:
            return False
        if not self.context.spend(f"repeat at {self.graph.names[node]}"):
            return False
        for n in wanted:
            self._copy(home, n)
        home.reads = reads
        for n in self._producers(node):
            if n in wanted:
                self.out.note(self.graph.names, n, node, "fused", "repeated where it is read")
        return True

    def _outside(self, node: Node, draft: Draft) -> list[Node]:
        return [m for m in self._before(node) if m not in draft.members]

    def _allowed_clone(self, home: Draft, wanted: Iterable[Node]) -> bool:
        names = {self.graph.names[n] for n in (*wanted, *home.members)}
        return self.alone.isdisjoint(names) and not any(len(a & names) > 1 for a in self.apart)

    # What the caller wants in one group.

    def gather(self, names: list[str]) -> None:
        """Put the groups of nodes together where that is legal, else say why not."""
        first: Node | None = None
        for name in names:
            node = self.node_of.get(name)
            if node is None or node not in self.of:
                why = "there is no such node" if node is None else why_opaque(self.graph, node)
                self._untied(name, name, Misfit("opaque", why or "it is in no group"))
            elif first is None:
                first = node
            elif self.of[node] is not self.of[first]:
                home, other = sorted((self.of[first], self.of[node]), key=lambda d: -d.depth)
                misfit = self._meet(home, other) or self._merge(home, other, None)
                if misfit is not None:
                    self._untied(self.graph.names[first], name, misfit)

    def _untied(self, one: str, another: str, misfit: Misfit) -> None:
        reason = f"keep_together names both, but {misfit.reason}"
        self.untied.append(Decision(one, another, False, misfit.code, reason, {}, misfit.way_out))

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
        return Decision(d.producer, d.consumer, True, "fused", "one iteration space")

    def _homes(self, node: Node) -> set[int]:
        """The groups that compute a node, itself or a copy."""
        found = [*self.copied.get(node, ()), *([self.of[node]] if node in self.of else ())]
        return {id(d) for d in found if self.drafts.get(id(d)) is d}


def same_folding(space: Space, shape: Shape, axes: tuple[int, ...]) -> Misfit | None:
    """Whether reducing ``axes`` of a FULL value of ``shape`` folds just the reduced axes."""
    if numel(shape) != space.size:
        return Misfit("space", f"it reduces {_show(shape)}, not the group's space")
    try:
        index = space.index(Role.FULL, shape)
    except PasskitError:
        return Misfit("axes", "it reduces other axes than its group")
    return (
        None if space.folds(index, axes) else Misfit("axes", "it reduces other axes than its group")
    )


def _name(what: object) -> str:
    return what if isinstance(what, str) else getattr(what, "name", str(what))


def _show(shape: Iterable[Extent]) -> str:
    return "(" + ", ".join(map(str, shape)) + ")"
