"""Loop nests: the operators of a group as nests that run one after the other in each tile.

A matrix product is a nest of its own. Any other operator joins the nest of what it reads last, or a
later one, as long as all of that nest has one iteration domain. Cheap values of inputs belong to
each nest that reads them.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence

from attrs import define, field

from passkit.analysis.accesses import Index, accesses_of
from passkit.analysis.domain import reduced_axes_of
from passkit.analysis.domain_info import (
    DomainInfo,
    analyze_bounded_domain,
    analyze_domain_in_order,
)
from passkit.analysis.extract import extract_group, extract_nest, outputs_of
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
    """The nodes of a loop nest.

    Attributes:
        nodes: the nodes, in post-order.
        is_product: whether it is a matrix product.
        owns: the nodes that no other nest computes; others are copies of cheap values.
        builder: the domain while operators are added, where that is known.
    """

    nodes: list[Node] = field(factory=list)
    is_product: bool = False
    owns: set[Node] = field(factory=set)
    builder: NestBuilder | None = None


def contract_of(node: Node) -> Contract | None:
    """Return the matrix product that an operator is; None for any other operator."""
    contract = contraction_of(node)
    return contract if isinstance(contract, Contract) else None


def source_of(
    entry: Entry, index: Index, stored: Container[Node], extents: Extents
) -> tuple[Entry, Index] | None:
    """Return the element of an input or a stored value that an element of a moved value is.

    Args:
        entry: the value.
        index: the index of its element.
        stored: the nodes whose values are stored.
        extents: the extents of the variables of the index.

    Returns: None if the element is computed.
    """
    while not (is_leaf(entry.node) or entry.node in stored):
        if entry.node.op is None or not entry.node.op.has_attr("FElement"):
            return None  # it computes, as reductions do
        accesses = accesses_of(entry.node, index, extents)
        if not accesses.plain:
            return None
        k, index = accesses.at[0]
        entry = entry.node.inputs[k]
    return entry, index


def _is_strided_input(entry: Entry) -> bool:
    """Return whether a value is a moved input whose rows and columns have constant strides."""
    shape = known_shape(entry)
    at = tuple(Var(f"b{k}", dt.int64) for k in range(len(shape)))
    extents = {v.name: n for v, n in zip(at, shape, strict=True)}
    source = source_of(entry, at, (), extents)
    if source is None or not source[0].node.is_variable:
        return False
    place = ravel(source[1], known_shape(source[0]), extents)
    inner = set(at[-2:])
    return all(isinstance(x, Var) or inner.isdisjoint(variables(x)) for x, _ in place.terms)


def analyze_nodes(graph: Graph, nodes: Sequence[Node]) -> DomainInfo | Diagnostic:
    """Return the iteration domain of some nodes, or why they have none."""
    group, _ = extract_group(
        graph, nodes, live_ins(graph, nodes), outputs_of(graph, nodes, set(nodes))
    )
    return analyze_domain_in_order(group.graph)


def form_nests(graph: Graph) -> list[NestNodes]:
    """Return the loop nests of a group, in an order in which they can run.

    Domains are analyzed while operators are added, with all axes apart. If one of these has no
    domain once its axes are merged, nests are formed again with a full analysis for each operator.
    """
    nests = _NestForming(graph, incremental=True).run()
    outputs = nest_outputs(graph, nests)
    pairs = zip(nests, outputs, strict=True)
    if all(_has_domain(graph, nest, own) for nest, own in pairs if nest.builder is not None):
        return nests
    return _NestForming(graph, incremental=False).run()


def _has_domain(graph: Graph, nest: NestNodes, outputs: Sequence[Entry]) -> bool:
    """Return whether a nest has an iteration domain with merged axes."""
    group, _ = extract_nest(graph, tuple(nest.nodes), tuple(e.node for e in outputs))
    return not isinstance(analyze_bounded_domain(group.graph, lambda domain: []), Diagnostic)


class _NestForming:
    """The nests while operators are visited in post-order."""

    def __init__(self, graph: Graph, incremental: bool) -> None:
        self.graph, self.incremental = graph, incremental
        self.results = set(graph.outputs)
        self.nests: list[NestNodes] = []
        self.nest_of: dict[Node, NestNodes] = {}
        self.recomputable: dict[Node, int] = {}
        """Cheap values of inputs, and how many operators it takes to compute them again."""

    def run(self) -> list[NestNodes]:
        """Return the nests."""
        for node in self.graph.nodes:
            self._visit(node)
        for entry in self.graph.outputs:
            self._store(entry.node)
        return self.nests

    def _visit(self, node: Node) -> None:
        """Put an operator into a nest, or note that its value is recomputable."""
        if is_leaf(node):
            return
        if contract_of(node) is not None:
            for e in node.inputs:
                # A value that is a result is read from where it is stored.
                is_stored = e in self.results or not _is_strided_input(e)
                if e.node in self.recomputable and is_stored:
                    self._store(e.node)
            self._new_nest(node, is_product=True)
            return
        cost = self._recompute_cost(node)
        if cost is None:
            self._add_to_nest(node)
        else:
            self.recomputable[node] = cost

    def _recompute_cost(self, node: Node) -> int | None:
        """Return the operators that a cheap value of inputs takes; None for any other value."""
        assert node.op is not None
        if is_expensive(node) or reduce_of(node) or scan_of(node):
            return None
        if node.op.pattern > OpPattern.INJECTIVE:
            return None
        total = 1
        for n in dict.fromkeys(e.node for e in node.inputs):
            if is_leaf(n):
                continue
            if n not in self.recomputable:
                return None
            total += self.recomputable[n]
        return total if total <= RECOMPUTE else None

    def _store(self, node: Node) -> None:
        """Put a recomputable value that must be stored into a nest."""
        if node in self.recomputable and node not in self.nest_of:
            self._add_to_nest(node)

    def _add_to_nest(self, node: Node) -> None:
        """Add an operator to the first nest with its domain, or to a new one."""
        body = self._with_recomputable(node)
        before = [self.nest_of[e.node] for n in body for e in n.inputs if e.node in self.nest_of]
        first = max((self.nests.index(nest) for nest in before), default=0)
        for nest in self.nests[first:]:
            if not nest.is_product and self._fits(nest, body):
                break
        else:
            nest = self._new_nest(node, is_product=False)
        nest.nodes = self._in_order({*nest.nodes, *body})
        nest.owns.add(node)
        self.nest_of[node] = nest

    def _new_nest(self, node: Node, is_product: bool) -> NestNodes:
        """Append a nest, which has a node already if that is a matrix product."""
        nest = NestNodes([node] if is_product else [], is_product, {node})
        self.nests.append(nest)
        self.nest_of[node] = nest
        return nest

    def _in_order(self, nodes: Collection[Node]) -> list[Node]:
        """Return nodes in post-order."""
        return sorted(nodes, key=self.graph.positions.__getitem__)

    def _with_recomputable(self, node: Node) -> list[Node]:
        """Return a node and the recomputable values that it needs and no nest has."""
        nodes = {node: None}
        stack = [node]
        while stack:
            for e in stack.pop().inputs:
                if (
                    e.node in self.recomputable
                    and e.node not in self.nest_of
                    and e.node not in nodes
                ):
                    nodes[e.node] = None
                    stack.append(e.node)
        return list(nodes)

    def _fits(self, nest: NestNodes, body: Sequence[Node]) -> bool:
        """Return whether a nest has one iteration domain with more nodes."""
        nodes = self._in_order({*nest.nodes, *body})
        if self.incremental:
            if nest.builder is None or not nest.builder.add(body, nodes):
                nest.builder = nest_builder_of(self.graph, nodes)
            if nest.builder is not None:
                return True
        return not isinstance(analyze_nodes(self.graph, nodes), Diagnostic)


def with_recomputed(
    graph: Graph, nests: Sequence[NestNodes], stored: Container[Node], dropped: Collection[Node]
) -> list[NestNodes] | Diagnostic:
    """Return nests in which those that read a dropped value compute it themselves.

    Args:
        graph: the group.
        nests: the nests.
        stored: the values in scratch memory, from which recomputation begins, as from inputs and
            reductions.
        dropped: the values that are not stored any more.

    Returns: a diagnostic if a matrix product reads such a value, or a nest has no domain with it.
    """
    changed: list[NestNodes] = []
    for nest in nests:
        stack = [e.node for e in live_ins(graph, nest.nodes) if e.node in dropped]
        if not stack:
            changed.append(nest)
            continue
        if nest.is_product:
            operands = {"reader": nest.nodes[0].label, "operand": stack[0].label}
            return Diagnostic("recompute.operand", operands, (stack[0].label,))
        nodes = set(nest.nodes)
        while stack:
            node = stack.pop()
            if node not in nodes:
                nodes.add(node)
                stack += [e.node for e in node.inputs if _is_recomputed(e.node, stored, dropped)]
        body = sorted(nodes, key=graph.positions.__getitem__)
        info = analyze_nodes(graph, body)
        if isinstance(info, Diagnostic):
            return info
        changed.append(NestNodes(body, owns=nest.owns))
    return changed


def _is_recomputed(node: Node, stored: Container[Node], dropped: Collection[Node]) -> bool:
    """Return whether a nest that computes a dropped value computes this operand, too."""
    if is_leaf(node) or (node in stored and node not in dropped):
        return False
    return reduced_axes_of(node) is None and contract_of(node) is None


def nest_outputs(graph: Graph, nests: Sequence[NestNodes]) -> list[list[Entry]]:
    """Return the values of each nest that other nests read, or that are outputs of the group."""
    read = {e for nest in nests for e in live_ins(graph, nest.nodes)} | set(graph.outputs)
    return [
        [e for n in nest.nodes if n in nest.owns for e in n.entries if e in read] for nest in nests
    ]
