"""Parts apart: results that read a value in two orders, as rows and turned, are of two parts.

Together they would have tiles that own the same points, so that all tiles need all of that value.
Apart each result has tiles of its own, which may need the same of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from passkit.analysis.closed_nest import analyze_extracted, extract_nest
from passkit.analysis.domain import ValueKind
from passkit.analysis.domain_info import DomainInfo, analyze_bounded_domain
from passkit.analysis.nests import NestNodes, form_nests, nest_outputs
from passkit.ast.index import Sum
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.values.size import numel

EntryAccesses = Mapping[Entry, set[Sum]]
"""Where the elements of a result read each value that other parts leave, in terms of its point."""


@lru_cache(maxsize=256)
def nest_partitions(graph: Graph) -> list[list[NestNodes]]:
    """The ways to cut a group into parts, that with the most parts first."""
    pieces = form_nests(graph)
    pairs = zip(pieces, nest_outputs(graph, pieces), strict=True)
    finer = [part for piece, results in pairs for part in _apart(graph, piece, results)]
    return [pieces] if len(finer) == len(pieces) else [finer, pieces]


def _apart(graph: Graph, piece: NestNodes, left: Sequence[Entry]) -> list[NestNodes]:
    results = [e.node for e in left]
    if piece.product or len(results) < 2:
        return [piece]
    part, feeds = extract_nest(graph, tuple(piece.nodes), tuple(results))
    info = analyze_bounded_domain(part.graph, lambda domain: [])
    if isinstance(info, Diagnostic):
        return [piece]
    sources = {n: e for n, e in zip(info.graph.inputs, feeds, strict=True) if not is_leaf(e.node)}
    reads = {
        node: _accesses(info, entry, sources)
        for node, entry in zip(results, info.graph.outputs, strict=True)
    }
    alike = _alike(piece, reads)
    if len(alike) < 2:
        return [piece]
    made = _dealt(piece, alike)
    return (
        [piece]
        if any(isinstance(analyze_extracted(graph, p.nodes), Diagnostic) for p in made)
        else made
    )


def _alike(piece: NestNodes, reads: Mapping[Node, EntryAccesses]) -> list[list[Node]]:
    """Classes of results that agree; none has one that a result of a class before is made of."""
    found: list[list[Node]] = []
    least: dict[Node, int] = {}
    """The first class that a node may be of."""
    for node in piece.nodes:
        least[node] = max((least.get(e.node, 0) for e in node.inputs), default=0)
        if node in reads:
            fit = (
                k
                for k in range(least[node], len(found))
                if all(_agree(reads[node], reads[other]) for other in found[k])
            )
            least[node] = next(fit, len(found))
            if least[node] == len(found):
                found.append([])
            found[least[node]].append(node)
    return found


def _agree(a: EntryAccesses, b: EntryAccesses) -> bool:
    """Whether no value is read in one order by the one, and in others by the other."""
    return all(not at.isdisjoint(b[e]) for e, at in a.items() if e in b)


def _accesses(info: DomainInfo, entry: Entry, sources: Mapping[Node, Entry]) -> EntryAccesses:
    shape = known_shape(entry)
    full = reduce_of(entry.node) is None and numel(shape) == info.domain.size
    role = ValueKind.FULL if full else ValueKind.ROW
    todo = [(entry, info.domain.index(role, shape))]
    seen, found = set(todo), dict[Entry, set[Sum]]()
    while todo:
        e, index = todo.pop()
        if e.node in sources:
            found.setdefault(sources[e.node], set()).add(info.linear(index, known_shape(e)))
        if not is_leaf(e.node):
            more = [read for read in info.reads(e.node, index) if read not in seen]
            seen.update(more)
            todo += more
    return found


def _dealt(piece: NestNodes, classes: Sequence[Sequence[Node]]) -> list[NestNodes]:
    """A part for each class of results; what several need is of the first of these."""
    inside, owner = set(piece.nodes), dict[Node, int]()
    made: list[NestNodes] = []
    for k, results in enumerate(classes):
        nodes, todo = set[Node](), [*results]
        while todo:
            n = todo.pop()
            if n in inside and n not in nodes and owner.setdefault(n, k) in (k, -1):
                nodes.add(n)
                if n not in piece.owns:
                    owner[n] = -1  # a copy of a cheap value, which each of them has
                todo += [e.node for e in n.inputs]
        body = [n for n in piece.nodes if n in nodes]
        made.append(NestNodes(body, owns={n for n in body if n in piece.owns}))
    return made
