"""Parts apart: results that read a value in two orders, as rows and turned, are of two parts.

Together they would have tiles that own the same points, so that all tiles need all of that value.
Apart each result has tiles of its own, which may need the same of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from passkit.analysis.closed_nest import closed, laid_out
from passkit.analysis.domain import Role
from passkit.analysis.domain_info import Layout, lay_apart
from passkit.analysis.nests import Piece, cut, results_of
from passkit.ast.index import Sum
from passkit.diagnostics import Diagnostic
from passkit.graph.attribute_calls import reduce_of
from passkit.graph.graph import Graph
from passkit.graph.node import Entry, Node, is_leaf, known_shape
from passkit.values.size import numel

Accesses = Mapping[Entry, set[Sum]]
"""Where the elements of a result read each value that other parts leave, in terms of its point."""


@lru_cache(maxsize=256)
def cuts(graph: Graph) -> list[list[Piece]]:
    """The ways to cut a group into parts, that with the most parts first."""
    pieces = cut(graph)
    pairs = zip(pieces, results_of(graph, pieces), strict=True)
    finer = [part for piece, results in pairs for part in _apart(graph, piece, results)]
    return [pieces] if len(finer) == len(pieces) else [finer, pieces]


def _apart(graph: Graph, piece: Piece, left: Sequence[Entry]) -> list[Piece]:
    results = [e.node for e in left]
    if piece.product or len(results) < 2:
        return [piece]
    part, feeds = closed(graph, tuple(piece.nodes), tuple(results))
    layout = lay_apart(part.graph, lambda space: [])
    if isinstance(layout, Diagnostic):
        return [piece]
    sources = {n: e for n, e in zip(layout.graph.inputs, feeds, strict=True) if not is_leaf(e.node)}
    reads = {
        node: _accesses(layout, entry, sources)
        for node, entry in zip(results, layout.graph.outputs, strict=True)
    }
    alike = _alike(piece, reads)
    if len(alike) < 2:
        return [piece]
    made = _dealt(piece, alike)
    return [piece] if any(isinstance(laid_out(graph, p.nodes), Diagnostic) for p in made) else made


def _alike(piece: Piece, reads: Mapping[Node, Accesses]) -> list[list[Node]]:
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


def _agree(a: Accesses, b: Accesses) -> bool:
    """Whether no value is read in one order by the one, and in others by the other."""
    return all(not at.isdisjoint(b[e]) for e, at in a.items() if e in b)


def _accesses(layout: Layout, entry: Entry, sources: Mapping[Node, Entry]) -> Accesses:
    shape = known_shape(entry)
    full = reduce_of(entry.node) is None and numel(shape) == layout.space.size
    role = Role.FULL if full else Role.ROW
    todo = [(entry, layout.space.index(role, shape))]
    seen, found = set(todo), dict[Entry, set[Sum]]()
    while todo:
        e, index = todo.pop()
        if e.node in sources:
            found.setdefault(sources[e.node], set()).add(layout.linear(index, known_shape(e)))
        if not is_leaf(e.node):
            more = [read for read in layout.reads(e.node, index) if read not in seen]
            seen.update(more)
            todo += more
    return found


def _dealt(piece: Piece, classes: Sequence[Sequence[Node]]) -> list[Piece]:
    """A part for each class of results; what several need is of the first of these."""
    inside, owner = set(piece.nodes), dict[Node, int]()
    made: list[Piece] = []
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
        made.append(Piece(body, owns={n for n in body if n in piece.owns}))
    return made
