"""Nest builders: loop nests to which operators are added one by one.

The iteration domain of a nest is kept while operators are added, with all axes apart. Only what a
new operator reads is looked at then. A nest that was built so requires no less of its values than
one that is analyzed at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, field

from passkit.analysis.accesses import Index
from passkit.analysis.domain import ReducedAxes, ValueKind, reduced_axes_of
from passkit.analysis.domain_info import (
    DomainInfo,
    check_reduction,
    domain_over,
    largest_output,
    output_kind,
    shapes_of_others,
)
from passkit.analysis.extract import outputs_of
from passkit.graph.graph import Graph
from passkit.graph.node import Node, known_shape
from passkit.values.size import Shape

_Access = tuple[Node, Index, ValueKind]
"""A node, the index of the element that is read, and where that lies in the domain."""
_Frame = tuple[Shape, ReducedAxes | None]
"""The shape that a domain has, and which of its axes all reductions have."""


@define(eq=False)
class NestBuilder:
    """Nodes of one iteration domain, and the accesses to each of them.

    Attributes:
        graph: the group.
        nodes: the nodes.
        anchor: the shape that reductions have, or the largest output.
        reduced: the axes of all reductions; None without any.
        others: the shapes by which axes are divided.
        info: the domain.
        accesses: the accesses that fit into the domain.
    """

    graph: Graph
    nodes: set[Node]
    anchor: Shape
    reduced: ReducedAxes | None
    others: list[Shape]
    info: DomainInfo
    accesses: set[_Access] = field(factory=set)

    def add(self, body: Iterable[Node], nodes: Sequence[Node]) -> bool:
        """Add operators if they fit into the domain; return whether they do.

        After a refusal nothing else can be added.

        Args:
            body: the operators, some of which may be in the nest.
            nodes: the nodes of the nest with these, in post-order.
        """
        new = [n for n in body if n not in self.nodes]
        frame = _frame_of(self.graph, nodes) if self.reduced is None else self._frame(new)
        if frame != (self.anchor, self.reduced):
            return False
        if any(s not in self.others for s in shapes_of_others(self.anchor, new)):
            return False
        self.nodes.update(new)
        return self.fits(new)

    def _frame(self, new: Sequence[Node]) -> _Frame | None:
        """Return the frame of the nest with new nodes; None if they reduce something else."""
        own = self.anchor, self.reduced
        return own if _frames(new) <= {own} else None

    def fits(self, new: Sequence[Node]) -> bool:
        """Return whether new nodes, and all that they read, fit into the domain."""
        info, domain = self.info, self.info.domain
        accesses: list[_Access] = []
        for entry in outputs_of(self.graph, new, self.nodes):
            kind = output_kind(info, entry)
            if kind is None:
                return False
            accesses.append((entry.node, domain.index(kind, known_shape(entry)), kind))
        for n in new:
            reduced = reduced_axes_of(n)
            if reduced is not None and check_reduction(info, n, reduced, {}) is not None:
                return False
        while accesses:
            access = accesses.pop()
            if access not in self.accesses:
                self.accesses.add(access)
                more = self._reads(*access)
                if more is None:
                    return False
                accesses += more
        return True

    def _reads(self, node: Node, index: Index, kind: ValueKind) -> list[_Access] | None:
        """Return the accesses by which a node computes an element; None if one does not fit."""
        info, reduced = self.info, reduced_axes_of(node)
        if reduced is not None and check_reduction(info, node, reduced, {index: kind}) is not None:
            return None
        accesses: list[_Access] = []
        for entry, at in info.reads(node, index):
            if entry.node in self.nodes:
                kind_at = info.kind_at(entry, at)
                if reduced is not None and kind_at is not ValueKind.POINT:
                    return None
                accesses.append((entry.node, at, kind_at))
        return accesses


def nest_builder_of(graph: Graph, nodes: Sequence[Node]) -> NestBuilder | None:
    """Return a builder with some nodes; None if they have no domain with all axes apart."""
    frame = _frame_of(graph, nodes)
    if frame is None:
        return None
    anchor, reduced = frame
    others = shapes_of_others(anchor, nodes)
    chunks = None if reduced is None else reduced.chunks
    domain = domain_over(anchor, reduced, others)
    info = DomainInfo(graph, domain, anchor if chunks else None, chunks)
    builder = NestBuilder(graph, set(nodes), anchor, reduced, others, info)
    return builder if builder.fits(nodes) else None


def _frame_of(graph: Graph, nodes: Sequence[Node]) -> _Frame | None:
    """Return the frame of a nest of some nodes; None if their reductions differ."""
    frames = _frames(nodes)
    if frames:
        return frames.pop() if len(frames) == 1 else None
    return largest_output(outputs_of(graph, nodes, set(nodes))), None


def _frames(nodes: Iterable[Node]) -> set[_Frame]:
    """Return the frames of the reductions and scans among nodes."""
    return {
        (known_shape(n.inputs[0]), reduced)
        for n in nodes
        if (reduced := reduced_axes_of(n)) is not None
    }
