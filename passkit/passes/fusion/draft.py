"""Drafts: groups in the making, each in one iteration space, and what has a place in that space."""

from __future__ import annotations

from attrs import define, field

from passkit.ast import Chunks, Reduce, Scan
from passkit.diagnostics import Diagnostic
from passkit.errors import PasskitError
from passkit.graph.attribute_calls import reduce_of, scan_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node
from passkit.graph.op import FElement
from passkit.space.layout import Layout
from passkit.space.space import Role, Space, axes_of, folding_of
from passkit.values.size import Shape, numel


@define(eq=False)
class Draft:
    """A group in the making; ``shape`` is its space, ``reduced`` the axes folded in it.

    They may be folded in ``chunks``.
    """

    depth: int
    shape: Shape
    members: dict[Node, Role] = field(factory=dict)
    clones: dict[Node, None] = field(factory=dict)
    reduced: tuple[int, ...] | None = None
    chunks: Chunks | None = None
    reads: set[Entry] = field(factory=set)
    _space: Space | None = None

    @classmethod
    def begin(cls, graph: Graph, node: Node, depth: int = 0) -> Draft:
        """A group of one operator, in the space of what it computes or folds."""
        found = folding_of(node)
        entry = node.inputs[0] if found is not None else node.entries[0]
        draft = cls(depth, graph.shape(entry))
        if found is not None:
            draft.reduced, draft.chunks = found.axes, found.chunks
        draft.add(node, Role.FULL if reduce_of(node) is None else Role.ROW)
        return draft

    def add(self, node: Node, role: Role) -> None:
        """Take in a node whose producers are members, or are read from outside."""
        self.members[node] = role
        self.reads.update(e for e in node.inputs if e.node not in self.members)

    @property
    def space(self) -> Space:
        """The iteration space."""
        if self._space is None:
            self._space = Space(axes_of(self.shape, self.reduced, self.chunks))
        return self._space

    def fold(self, shape: Shape, axes: tuple[int, ...] | None, chunks: Chunks | None) -> None:
        """Let the first reduction of the group say which axes are folded, and how."""
        self.shape, self.reduced, self.chunks, self._space = shape, axes, chunks, None


def fits(graph: Graph, draft: Draft, node: Node) -> Diagnostic | None:
    """Why a node cannot lie in the space of a draft, if so."""
    found = reduce_of(node)
    if found is not None:
        return _fits_reduction(graph, draft, node, found)
    scan = scan_of(node)
    if scan is not None:
        return _fits_scan(graph, draft, node, scan)
    role = role_in(graph, draft, node)
    shape = graph.shape(node.entries[0])
    if role is None:
        return Diagnostic("domain.shape", {"shape": shape, "domain": draft.shape})
    inside = [e for e in node.inputs if e.node in draft.members]
    plain = node.op is not None and FElement.get(node.op.name) is None
    if plain and all(graph.shape(e) == shape and draft.members[e.node] is role for e in inside):
        return None
    return check_reads(graph, draft, node, role)


def role_in(graph: Graph, draft: Draft, node: Node) -> Role | None:
    """FULL or ROW by number of elements; a value of row values only is a ROW."""
    total = numel(graph.shape(node.entries[0]))
    space = draft.space
    inside = {draft.members[n] for n in (e.node for e in node.inputs) if n in draft.members}
    if draft.reduced is not None and total == space.rows and Role.FULL not in inside:
        return Role.ROW
    return Role.FULL if total == space.size else None


def check_reads(graph: Graph, draft: Draft, node: Node, role: Role) -> Diagnostic | None:
    """Every value of the group must be read at the point where it is computed."""
    layout = Layout(graph, draft.space)
    index = draft.space.index(role, graph.shape(node.entries[0]))
    for entry, where in layout.reads(node, index):
        known = draft.members.get(entry.node)
        if known is not None and layout.role_at(entry, where) is not known:
            return Diagnostic("domain.index", {"value": graph.names[entry.node]})
    return None


def _fits_reduction(graph: Graph, draft: Draft, node: Node, found: Reduce) -> Diagnostic | None:
    entry, axes = node.inputs[0], found.axes
    shape = graph.shape(entry)
    if draft.members.get(entry.node) is not Role.FULL:
        return Diagnostic("domain.nested_reduction")
    if draft.reduced is None:
        if numel(shape[k] for k in axes) == 1:
            return Diagnostic("domain.unit_reduction")
        return None
    return same_folding(draft, shape, axes, found.chunks)


def _fits_scan(graph: Graph, draft: Draft, node: Node, scan: Scan) -> Diagnostic | None:
    entry = node.inputs[0]
    shape = graph.shape(entry)
    if draft.members.get(entry.node, Role.FULL) is not Role.FULL:
        return Diagnostic("domain.nested_scan")
    if not _one_way(scan.reverse, draft):
        return Diagnostic("domain.scan_direction")
    if draft.reduced is None:
        if shape[scan.axis] == 1:
            return Diagnostic("domain.unit_scan")
        return None if numel(shape) == draft.space.size else Diagnostic("domain.scan_extent")
    return same_folding(draft, shape, (scan.axis,), None)


def _one_way(reverse: bool, draft: Draft) -> bool:
    return all(s.reverse is reverse for n in draft.members if (s := scan_of(n)) is not None)


def against(home: Draft, other: Draft) -> Diagnostic | None:
    """Whether scans of two drafts run in different directions."""
    ways = {s.reverse for d in (home, other) for n in d.members if (s := scan_of(n)) is not None}
    return Diagnostic("domain.scan_directions") if len(ways) > 1 else None


def crossing(graph: Graph, trial: Draft, home: Draft, other: Draft) -> Diagnostic | None:
    """Whether ``home`` reads the values of ``other`` at their own points."""
    for node in home.members:
        inside = [e.node for e in node.inputs if e.node in other.members]
        if inside and reduce_of(node) is None:
            misfit = check_reads(graph, trial, node, trial.members[node])
            if misfit is not None:
                return misfit
        elif inside and trial.members[inside[0]] is not Role.FULL:
            return Diagnostic("domain.nested_reduction")
    if any(e.node in other.members for n in home.clones for e in n.inputs):
        return Diagnostic("graph.repeated_reader")
    return None


def same_folding(
    draft: Draft, shape: Shape, axes: tuple[int, ...], chunks: Chunks | None
) -> Diagnostic | None:
    """Whether reducing ``axes`` of a FULL value of ``shape`` folds just the reduced axes."""
    space = draft.space
    if chunks != draft.chunks or (chunks is not None and shape != draft.shape):
        return Diagnostic("domain.other_chunks")
    if numel(shape) != space.size:
        return Diagnostic("domain.reduced_shape", {"shape": shape})
    try:
        index = space.index(Role.FULL, shape)
    except PasskitError:
        return Diagnostic("domain.axes")
    return None if space.folds(index, axes) else Diagnostic("domain.axes")
