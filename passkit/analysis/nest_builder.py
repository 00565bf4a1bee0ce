"""Growth: parts in the making, whose iteration space is kept while operators join them.

What an operator that joins reads is all that is looked at then. A part that has been laid out as it
grew asks for no less of its values than one that is laid out at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import define, field

from passkit.analysis.accesses import Index
from passkit.analysis.domain import ReducedAxes, ValueKind, reduced_axes_of
from passkit.analysis.domain_info import (
    DomainInfo,
    check_fold,
    largest_of,
    others_of,
    output_role,
    space_over,
)
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, known_shape
from passkit.values.size import Shape

_Read = tuple[Node, Index, ValueKind]


@define(eq=False)
class NestBuilder:
    """Nodes in one space with all axes apart, and at which indices each is read.

    All their folds, if any, are one ``folding`` of the shape ``anchor``.
    """

    graph: Graph
    inside: set[Node]
    anchor: Shape
    folding: ReducedAxes | None
    others: list[Shape]
    info: DomainInfo
    seen: set[_Read] = field(factory=set)

    def joined(self, nodes: Sequence[Node], body: Iterable[Node]) -> bool:
        """Whether nodes fit in that are new among ``nodes``; if not, nothing else may join."""
        new = [n for n in body if n not in self.inside]
        frame = _frame_of(self.graph, nodes) if self.folding is None else self._frame(new)
        if frame != (self.anchor, self.folding):
            return False
        if any(s not in self.others for s in others_of(self.anchor, new)):
            return False
        self.inside.update(new)
        return self._fits(new)

    def _frame(self, new: Sequence[Node]) -> tuple[Shape, ReducedAxes | None] | None:
        """What the part folds with nodes that are new; None where it is not all one."""
        folds = (
            (known_shape(n.inputs[0]), f) for n in new if (f := reduced_axes_of(n)) is not None
        )
        own = self.anchor, self.folding
        return own if all(found == own for found in folds) else None

    def _fits(self, new: Sequence[Node]) -> bool:
        info, domain = self.info, self.info.domain
        found: list[_Read] = []
        for entry in _outputs(self.graph, new, self.inside):
            role = output_role(info, entry)
            if role is None:
                return False
            found.append((entry.node, domain.index(role, known_shape(entry)), role))
        for n in new:
            fold = reduced_axes_of(n)
            if fold is not None and check_fold(info, n, fold, {}) is not None:
                return False
        while found:
            read = found.pop()
            if read not in self.seen:
                self.seen.add(read)
                more = self._behind(*read)
                if more is None:
                    return False
                found += more
        return True

    def _behind(self, node: Node, index: Index, role: ValueKind) -> list[_Read] | None:
        """What a node reads for its element at an index; None where that does not fit."""
        info, folding = self.info, reduced_axes_of(node)
        if folding is not None and check_fold(info, node, folding, {index: role}) is not None:
            return None
        found: list[_Read] = []
        for entry, at in info.reads(node, index):
            if entry.node in self.inside:
                met = info.role_at(entry, at)
                if folding is not None and met is not ValueKind.FULL:
                    return None
                found.append((entry.node, at, met))
        return found


def nest_builder_of(graph: Graph, nodes: Sequence[Node]) -> NestBuilder | None:
    """The space of some nodes; None where they have none, or none that is found so easily."""
    frame = _frame_of(graph, nodes)
    if frame is None:
        return None
    anchor, folding = frame
    others = others_of(anchor, nodes)
    chunks = None if folding is None else folding.chunks
    domain = space_over(anchor, folding, others)
    info = DomainInfo(graph, domain, anchor if chunks else None, chunks)
    made = NestBuilder(graph, set(nodes), anchor, folding, others, info)
    return made if made._fits(nodes) else None


def _frame_of(graph: Graph, nodes: Sequence[Node]) -> tuple[Shape, ReducedAxes | None] | None:
    """The shape that nodes have a space over, and how they all fold it."""
    folds = {(known_shape(n.inputs[0]), f) for n in nodes if (f := reduced_axes_of(n)) is not None}
    if folds:
        return folds.pop() if len(folds) == 1 else None
    return largest_of(_outputs(graph, nodes, set(nodes))), None


def _outputs(graph: Graph, nodes: Sequence[Node], inside: set[Node]) -> list[Entry]:
    """What nobody among the nodes reads, or somebody outside."""
    read = {e for n in nodes for e in n.inputs}
    return [
        e
        for n in nodes
        for e in n.entries[:1]
        if e not in read or any(u not in inside for u in graph.users.get(e, ()))
    ]
