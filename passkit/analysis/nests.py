"""Cutting: the operators of a stitched group as parts that run one after the other.

A product of matrices is a part of its own. The others join the part of what they read last, as long
as all of it has one iteration space. Cheap values of nothing but inputs belong to the part that
reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence

from attrs import define, field

from passkit.analysis.accesses import Index, accesses_of
from passkit.analysis.closed_nest import analyze_extracted, extract_nest
from passkit.analysis.domain import reduced_axes_of
from passkit.analysis.domain_info import analyze_bounded_domain
from passkit.analysis.nest_builder import NestBuilder, nest_builder_of
from passkit.analysis.recompute import RECOMPUTE, is_expensive
from passkit.ast import Var
from passkit.ast.folds import Contract
from passkit.ast.index import Extents, ravel
from passkit.ast.walk import variables
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import contraction_of, reduce_of, scan_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.graph.op import OpPattern
from passkit.graph.quotient import live_ins
from passkit.values import dtype as dt


@define(eq=False)
class NestNodes:
    """A part in the making: its nodes in post-order; ``product`` if it is one of matrices.

    Nodes that it does not own are copies of cheap values. ``growth`` is its space as it grows,
    where that is known.
    """

    nodes: list[Node] = field(factory=list)
    product: bool = False
    owns: set[Node] = field(factory=set)
    growth: NestBuilder | None = None


def contract_of(node: Node) -> Contract | None:
    """The product of matrices that an operator is, or None."""
    found = contraction_of(node)
    return found if isinstance(found, Contract) else None


def source_of(
    entry: Entry, index: Index, known: Container[Node], extents: Extents
) -> tuple[Entry, Index] | None:
    """The element that an element of a moved value is, of an input or a value that is ``known``."""
    while not (is_leaf(entry.node) or entry.node in known):
        found = accesses_of(entry.node, index, extents)
        if not found.plain:
            return None
        k, index = found.at[0]
        entry = entry.node.inputs[k]
    return entry, index


def _lies_evenly(entry: Entry) -> bool:
    """Whether the rows and columns of a moved input lie at even distances."""
    shape = known_shape(entry)
    at = tuple(Var(f"b{k}", dt.int64) for k in range(len(shape)))
    extents = {v.name: n for v, n in zip(at, shape, strict=True)}
    found = source_of(entry, at, (), extents)
    if found is None or not found[0].node.is_variable:
        return False
    place = ravel(found[1], known_shape(found[0]), extents)
    inside = set(at[-2:])
    return all(isinstance(x, Var) or inside.isdisjoint(variables(x)) for x, _ in place.terms)


def form_nests(graph: Graph) -> list[NestNodes]:
    """The parts of a group, in an order in which they can run."""
    pieces = _Cutting(graph, quick=True).run()
    nest_builder_of = [k for k, p in enumerate(pieces) if p.growth is not None]
    left = nest_outputs(graph, pieces)
    if all(_stands(graph, pieces[k], left[k]) for k in nest_builder_of):
        return pieces
    return _Cutting(graph, quick=False).run()


def _stands(graph: Graph, piece: NestNodes, results: Sequence[Entry]) -> bool:
    """Whether a part that was laid out while it grew has a space when its axes are joined, too."""
    part, _ = extract_nest(graph, tuple(piece.nodes), tuple(e.node for e in results))
    return not isinstance(analyze_bounded_domain(part.graph, lambda domain: []), Diagnostic)


class _Cutting:
    """One way to cut: a ``quick`` one lays parts out as they grow, with all their axes apart."""

    def __init__(self, graph: Graph, quick: bool) -> None:
        self.graph, self.quick = graph, quick
        self.results = set(graph.outputs)
        self.pieces: list[NestNodes] = []
        self.of: dict[Node, NestNodes] = {}
        self.loose: dict[Node, int] = {}
        """Cheap values of inputs, and how many operators it takes to compute them again."""

    def run(self) -> list[NestNodes]:
        """The parts."""
        for node in self.graph.nodes:
            self.visit(node)
        for entry in self.graph.outputs:
            self.settle(entry.node)
        return self.pieces

    def visit(self, node: Node) -> None:
        """Put an operator into a part, what it reads having been visited."""
        if is_leaf(node):
            return
        if contract_of(node) is not None:
            for e in node.inputs:
                # What is a result anyway is read from where it is stored.
                if e.node in self.loose and (e in self.results or not _lies_evenly(e)):
                    self.settle(e.node)
            self._new(node, product=True)
            return
        cost = self._loose_cost(node)
        if cost is not None:
            self.loose[node] = cost
            return
        self._join(node)

    def _loose_cost(self, node: Node) -> int | None:
        """The operators that a cheap value of inputs takes; None for any other."""
        assert node.op is not None
        if is_expensive(node) or reduce_of(node) or scan_of(node):
            return None
        if node.op.pattern > OpPattern.INJECTIVE:
            return None
        total = 1
        for n in dict.fromkeys(e.node for e in node.inputs):
            if is_leaf(n):
                continue
            if n not in self.loose:
                return None
            total += self.loose[n]
        return total if total <= RECOMPUTE else None

    def settle(self, node: Node) -> None:
        """Give a cheap value that must lie in memory a part of its own."""
        if node in self.loose and node not in self.of:
            self._join(node)

    def _join(self, node: Node) -> None:
        body = self._with_loose([node])
        before = [self.of[e.node] for n in body for e in n.inputs if e.node in self.of]
        first = max((self.pieces.index(p) for p in before), default=0)
        for piece in self.pieces[first:]:
            if not piece.product and self._fits(piece, body):
                self._add(piece, body, node)
                return
        piece = self._new(node, product=False)
        self._add(piece, body, node)

    def _new(self, node: Node, product: bool) -> NestNodes:
        piece = NestNodes([node] if product else [], product, {node})
        self.pieces.append(piece)
        self.of[node] = piece
        return piece

    def _add(self, piece: NestNodes, body: Sequence[Node], node: Node) -> None:
        position = self.graph.positions
        piece.nodes = sorted({*piece.nodes, *body}, key=position.__getitem__)
        piece.owns.add(node)
        self.of[node] = piece

    def _with_loose(self, nodes: Sequence[Node]) -> list[Node]:
        """Nodes and the cheap values that they need."""
        found = dict.fromkeys(nodes)
        todo = list(nodes)
        while todo:
            for e in todo.pop().inputs:
                if e.node in self.loose and e.node not in self.of and e.node not in found:
                    found[e.node] = None
                    todo.append(e.node)
        return list(found)

    def _fits(self, piece: NestNodes, body: Sequence[Node]) -> bool:
        """Whether a part has one iteration space with more nodes in it."""
        nodes = sorted({*piece.nodes, *body}, key=self.graph.positions.__getitem__)
        if self.quick:
            if piece.growth is None or not piece.growth.joined(nodes, body):
                piece.growth = nest_builder_of(self.graph, nodes)
            if piece.growth is not None:
                return True
        return not isinstance(analyze_extracted(self.graph, nodes), Diagnostic)


def without(
    graph: Graph, pieces: Sequence[NestNodes], arrays: Container[Node], dropped: Collection[Node]
) -> list[NestNodes] | Diagnostic:
    """The parts where those that read a value that is ``dropped`` compute it themselves.

    They begin at inputs, folds, and the values that have ``arrays``.
    """
    found: list[NestNodes] = []
    for piece in pieces:
        todo = [e.node for e in live_ins(graph, piece.nodes) if e.node in dropped]
        if not todo:
            found.append(piece)
            continue
        if piece.product:
            operands = {"reader": piece.nodes[0].label, "operand": todo[0].label}
            return Diagnostic("recompute.operand", operands, (todo[0].label,))
        nodes = set(piece.nodes)
        while todo:
            node = todo.pop()
            if node not in nodes:
                nodes.add(node)
                todo += [e.node for e in node.inputs if _is_free_to_copy(e.node, arrays, dropped)]
        body = sorted(nodes, key=graph.positions.__getitem__)
        info = analyze_extracted(graph, body)
        if isinstance(info, Diagnostic):
            return info
        found.append(NestNodes(body, owns=piece.owns))
    return found


def _is_free_to_copy(node: Node, arrays: Container[Node], dropped: Collection[Node]) -> bool:
    if is_leaf(node) or (node in arrays and node not in dropped):
        return False
    return reduced_axes_of(node) is None and contract_of(node) is None


def nest_outputs(graph: Graph, pieces: Sequence[NestNodes]) -> list[list[Entry]]:
    """Return the values of each part that other parts read, or that are results of the graph."""
    read = {e for p in pieces for e in live_ins(graph, p.nodes)} | set(graph.outputs)
    return [[e for n in p.nodes if n in p.owns for e in n.entries if e in read] for p in pieces]
