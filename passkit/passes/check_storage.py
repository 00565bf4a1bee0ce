"""A check of memory plans that shares nothing with the planner: it runs the bytes.

Every byte range remembers which value it holds. Nodes run in order: each must find its inputs, and
what it writes replaces what was there.
"""

from __future__ import annotations

from collections.abc import Mapping

from passkit.errors import PassError
from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.plan.storage import Home, Storage, StoragePlan, identities, leaves, sharing
from passkit.values.size import evaluate, numel

Range = tuple[Storage | None, int, int]


def check_storage(graph: Graph, plan: StoragePlan, sizes: Mapping[str, int] | None = None) -> int:
    """Check a plan for a graph at some sizes; the bytes of its arena.

    Raises: PassError naming the first value that is lost before it is read, written over while it
    is read, or not where the caller will look for it.
    """
    run = _Run(graph, plan, sizes or {})
    for node in graph.nodes:
        if node.op is None or node.op is CONSTANT:
            run.write(node.entries[0], node.entries[0])
        else:
            run.node(node)
    for copy in plan.copies:
        run.copy(copy.entry, copy.source, copy.target, evaluate(copy.nbytes, sizes or {}))
    run.results()
    return run.arena


class _Run:
    """What each range of bytes holds now."""

    def __init__(self, graph: Graph, plan: StoragePlan, sizes: Mapping[str, int]) -> None:
        self.graph, self.plan, self.sizes = graph, plan, sizes
        self.offsets, self.arena = plan.bind(sizes)
        self.held: dict[Storage | None, list[tuple[int, int, Entry]]] = {}
        self.content: dict[Entry, Entry] = {}
        self.leaves = {place: n for n, place in leaves(graph).items()}

    def nbytes(self, entry: Entry) -> int:
        """The bytes of an entry at these sizes."""
        shape, dtype = self.graph.shape(entry), self.graph.dtype(entry)
        return evaluate(numel(shape), self.sizes) * dtype.nbytes

    def range(self, place: Storage, nbytes: int) -> Range:
        """Bytes of a buffer; all slots are one buffer, the arena."""
        if place.home is not Home.ARENA:
            return place, 0, nbytes
        start = self.offsets[place.index]
        if start + nbytes > self.arena:
            raise PassError(f"{place} of {nbytes} bytes ends after the arena's {self.arena} bytes")
        return None, start, start + nbytes

    def at(self, entry: Entry) -> Range:
        """The bytes of an entry."""
        return self.range(self.plan[entry], self.nbytes(entry))

    def read(self, entry: Entry, place: Range, reader: str) -> None:
        """Check that a range holds an entry's value."""
        buffer, start, end = place
        wanted = self.content[entry]
        if start == end or (start, end, wanted) in self.held.get(buffer, ()):
            return
        found = [e.name for a, b, e in self.held.get(buffer, ()) if a < end and start < b]
        raise PassError(
            f"{reader} reads {entry.name} at bytes {start} to {end} of {buffer or 'the arena'}, "
            f"which hold {' and '.join(found) or 'nothing'}"
        )

    def write(self, entry: Entry, content: Entry) -> None:
        """Let an entry's bytes hold a value."""
        self.content[entry] = content
        place = self.plan[entry]
        node = self.leaves.get(place)
        written = entry.node.op is not None and entry.node.op is not CONSTANT
        if not written and node is not entry.node:
            raise PassError(f"{entry.node.where} must have a buffer of its own, and is in {place}")
        if written and place.home in (Home.INPUT, Home.CONSTANT):
            raise PassError(f"{entry.node.where} is written into {place}, which is not ours")
        self.put(self.at(entry), content)

    def put(self, place: Range, content: Entry) -> None:
        """Let a range hold a value; what it overlaps is gone."""
        buffer, start, end = place
        kept = [h for h in self.held.get(buffer, ()) if h[0] >= end or h[1] <= start]
        self.held[buffer] = [*kept, (start, end, content)]

    def node(self, node: Node) -> None:
        """Run a node: find its inputs, then write its results."""
        for entry in node.inputs:
            self.read(entry, self.at(entry), node.where)
        same = {o: i for i, o in identities(node)}
        written: list[Entry] = []
        for entry in node.entries:
            source = node.inputs[same[entry.index]] if entry.index in same else None
            if source is not None and self.at(source) == self.at(entry):
                self.content[entry] = self.content[source]
                continue
            for k, other in enumerate(node.inputs):
                self.check_over(node, k, other, entry)
            for other in written:
                if _meet(self.at(other), self.at(entry)):
                    raise PassError(f"{other.name} and {entry.name} of {node.where} share bytes")
            written.append(entry)
        for entry in written:
            self.write(entry, entry)

    def check_over(self, node: Node, k: int, source: Entry, entry: Entry) -> None:
        """Check that a result lies over an input only element by element."""
        if not _meet(self.at(source), self.at(entry)):
            return
        a, b = self.graph.dtype(source), self.graph.dtype(entry)
        counts = [evaluate(numel(self.graph.shape(e)), self.sizes) for e in (source, entry)]
        fits = self.at(source) == self.at(entry) and a.nbytes == b.nbytes
        if not fits or counts[0] != counts[1] or (k, entry.index) not in sharing(self.graph, node):
            raise PassError(
                f"{node.where} writes {entry.name} over its input {source.name}, which it still "
                f"reads: {counts[1]} elements of {b} over {counts[0]} of {a}"
            )

    def copy(self, entry: Entry, source: Storage, target: Storage, nbytes: int) -> None:
        """Copy a value from one buffer to another."""
        place = self.range(source, nbytes)
        self.read(entry, place, f"the copy to {target}")
        self.put(self.range(target, nbytes), self.content[entry])

    def results(self) -> None:
        """Check that outputs and state hold what the caller expects."""
        for k, entry in enumerate(self.graph.outputs):
            place = Storage(Home.OUTPUT, k)
            self.read(entry, self.range(place, self.nbytes(entry)), f"the caller of output {k}")
        new = dict(self.graph.updates)
        for k, node in enumerate(self.graph.states):
            entry = new.get(node, node.entries[0])
            place = Storage(Home.STATE, k)
            reader = f"the next call's '{node.name}'"
            self.read(entry, self.range(place, self.nbytes(entry)), reader)


def _meet(a: Range, b: Range) -> bool:
    return a[0] == b[0] and a[1] < b[2] and b[1] < a[2]
