"""Partitions into nests: outputs that read a value in two orders may be nests of their own.

An example is a matrix and its transpose. In one nest a tile computes the same points of both, and
so needs all of the value. In two nests each output has its own tile map, and the maps may need the
same part of the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from passkit.analysis.domain import ValueKind
from passkit.analysis.domain_info import DomainInfo, analyze_bounded_domain
from passkit.analysis.extract import extract_nest
from passkit.analysis.nests import NestNodes, analyze_nodes, form_nests, nest_outputs
from passkit.ast.index import Sum
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.values.size import numel

NestAccesses = Mapping[Entry, set[Sum]]
"""The linear indices at which a point of an output reads each value of other nests."""


@lru_cache(maxsize=256)
def nest_partitions(graph: Graph) -> list[list[NestNodes]]:
    """Return the partitions of a group into nests, the finer one first if there are two."""
    nests = form_nests(graph)
    pairs = zip(nests, nest_outputs(graph, nests), strict=True)
    finer = [part for nest, outputs in pairs for part in _by_order(graph, nest, outputs)]
    return [nests] if len(finer) == len(nests) else [finer, nests]


def _by_order(graph: Graph, nest: NestNodes, outputs: Sequence[Entry]) -> list[NestNodes]:
    """Return a nest for each order in which outputs of a nest read values of other nests.

    The nest itself is the only one if there is one order, or if one of them has no domain.
    """
    results = [e.node for e in outputs]
    if nest.is_product or len(results) < 2:
        return [nest]
    group, feeds = extract_nest(graph, tuple(nest.nodes), tuple(results))
    info = analyze_bounded_domain(group.graph, lambda domain: [])
    if isinstance(info, Diagnostic):
        return [nest]
    sources = {n: e for n, e in zip(info.graph.inputs, feeds, strict=True) if not is_leaf(e.node)}
    accesses = {
        node: _accesses(info, entry, sources)
        for node, entry in zip(results, info.graph.outputs, strict=True)
    }
    classes = _classes(nest, accesses)
    if len(classes) < 2:
        return [nest]
    parts = _split(nest, classes)
    has_domains = all(
        not isinstance(analyze_nodes(graph, part.nodes), Diagnostic) for part in parts
    )
    return parts if has_domains else [nest]


def _classes(nest: NestNodes, accesses: Mapping[Node, NestAccesses]) -> list[list[Node]]:
    """Return classes of outputs with the same orders.

    No class has an output from which one of an earlier class is computed.
    """
    classes: list[list[Node]] = []
    first_class: dict[Node, int] = {}  # the first class that a node may belong to
    for node in nest.nodes:
        first_class[node] = max((first_class.get(e.node, 0) for e in node.inputs), default=0)
        if node in accesses:
            fitting = (
                k
                for k in range(first_class[node], len(classes))
                if all(_agree(accesses[node], accesses[other]) for other in classes[k])
            )
            first_class[node] = next(fitting, len(classes))
            if first_class[node] == len(classes):
                classes.append([])
            classes[first_class[node]].append(node)
    return classes


def _agree(a: NestAccesses, b: NestAccesses) -> bool:
    """Return whether two outputs have an access in common to each value that both read."""
    return all(not at.isdisjoint(b[e]) for e, at in a.items() if e in b)


def _accesses(info: DomainInfo, entry: Entry, sources: Mapping[Node, Entry]) -> NestAccesses:
    """Return the accesses by which a point of an output reads values of other nests.

    Args:
        info: the domain of the nest.
        entry: the output.
        sources: the values of other nests, by the variables that represent them.
    """
    shape = known_shape(entry)
    full = reduce_of(entry.node) is None and numel(shape) == info.domain.size
    kind = ValueKind.POINT if full else ValueKind.REDUCED
    stack = [(entry, info.domain.index(kind, shape))]
    visited = set(stack)
    accesses: dict[Entry, set[Sum]] = {}
    while stack:
        e, index = stack.pop()
        if e.node in sources:
            linear = info.linear(index, known_shape(e))
            accesses.setdefault(sources[e.node], set()).add(linear)
        if not is_leaf(e.node):
            reads = [read for read in info.reads(e.node, index) if read not in visited]
            visited.update(reads)
            stack += reads
    return accesses


def _split(nest: NestNodes, classes: Sequence[Sequence[Node]]) -> list[NestNodes]:
    """Return a nest for each class of outputs; what several need belongs to the first of them."""
    inside = set(nest.nodes)
    class_of: dict[Node, int | None] = {}  # None: a copy of a cheap value, which each class has
    parts: list[NestNodes] = []
    for k, results in enumerate(classes):
        nodes: set[Node] = set()
        stack = [*results]
        while stack:
            n = stack.pop()
            if n not in inside or n in nodes:
                continue
            if class_of.setdefault(n, k if n in nest.owns else None) in (k, None):
                nodes.add(n)
                stack += [e.node for e in n.inputs]
        body = [n for n in nest.nodes if n in nodes]
        parts.append(NestNodes(body, owns={n for n in body if n in nest.owns}))
    return parts
