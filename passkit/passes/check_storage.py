"""Check a memory plan by simulating it; shares no code with the planner.

Each range of bytes remembers which value it holds. Nodes run in order: each must find its inputs
intact, and its outputs replace what their bytes held.
"""

from __future__ import annotations

from collections.abc import Mapping

from passkit.errors import PassError
from passkit.graph.graph import Graph
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.storage import Home, Storage, StoragePlan, identities, leaves, sharing
from passkit.values.size import evaluate, numel

ByteRange = tuple[Storage | None, int, int]
"""A buffer, first byte and end; None is the arena."""


def check_storage(graph: Graph, plan: StoragePlan, sizes: Mapping[str, int] | None = None) -> int:
    """Check a memory plan of a graph for some sizes.

    Args:
        graph: The graph, in functional form, with shapes and dtypes.
        plan: The plan, which has a storage for every entry.
        sizes: The values of all unknown sizes; None if there are none.

    Returns: The bytes of the arena.

    Raises: PassError naming the first value that is lost before it is read, overwritten while it is
    read, written where a run must not, outside of the arena, or not where the caller will read it;
    ShapeError if a size has no value.
    """
    simulation = _Simulation(graph, plan, sizes or {})
    for node in graph.nodes:
        if node.op is None or node.op is CONSTANT:
            simulation.write(node.entries[0], node.entries[0])
        else:
            simulation.run(node)
    for copy in plan.copies:
        nbytes = evaluate(copy.nbytes, sizes or {})
        simulation.copy(copy.entry, copy.source, copy.target, nbytes)
    simulation.check_results()
    return simulation.arena


class _Simulation:
    """The values that ranges of bytes hold, while the nodes of a graph run.

    Attributes:
        contents: By buffer: ranges with the entry whose value they hold.
        value_of: By entry: the entry whose value it has; another one for an alias.
    """

    def __init__(self, graph: Graph, plan: StoragePlan, sizes: Mapping[str, int]) -> None:
        self.graph = graph
        self.plan = plan
        self.sizes = sizes
        self.offsets, self.arena = plan.bind(sizes)
        self.contents: dict[Storage | None, list[tuple[int, int, Entry]]] = {}
        self.value_of: dict[Entry, Entry] = {}
        self.leaves = {storage: n for n, storage in leaves(graph).items()}

    def nbytes(self, entry: Entry) -> int:
        """Return the bytes of an entry at these sizes.

        Raises: ShapeError if a size has no value.
        """
        shape, dtype = self.graph.shape(entry), self.graph.dtype(entry)
        return evaluate(numel(shape), self.sizes) * dtype.nbytes

    def byte_range(self, storage: Storage, nbytes: int) -> ByteRange:
        """Return the range of the first ``nbytes`` of a storage: (buffer, first byte, end).

        All slots are ranges of one buffer, the arena, which is None; other buffers begin at 0.

        Raises: PassError if it ends after the arena.
        """
        if storage.home is not Home.ARENA:
            return storage, 0, nbytes
        start = self.offsets[storage.index]
        if start + nbytes > self.arena:
            raise PassError(
                f"{storage} of {nbytes} bytes ends after the arena's {self.arena} bytes"
            )
        return None, start, start + nbytes

    def range_of(self, entry: Entry) -> ByteRange:
        """Return the range of bytes that the plan assigns to an entry: (buffer, first byte, end).

        Raises: PassError if it ends after the arena; ShapeError if a size has no value.
        """
        return self.byte_range(self.plan[entry], self.nbytes(entry))

    def read(self, entry: Entry, byte_range: ByteRange, reader: str) -> None:
        """Check that exactly a range of bytes holds the value of ``entry``; an empty one does.

        ``byte_range`` is (buffer, first byte, end).

        Raises: PassError naming ``reader``, a phrase for messages, and what the range holds.
        """
        buffer, start, end = byte_range
        value = self.value_of[entry]
        if start == end or (start, end, value) in self.contents.get(buffer, ()):
            return
        overlapping = [e.name for a, b, e in self.contents.get(buffer, ()) if a < end and start < b]
        raise PassError(
            f"{reader} reads {entry.name} at bytes {start} to {end} of {buffer or 'the arena'}, "
            f"which hold {' and '.join(overlapping) or 'nothing'}"
        )

    def write(self, entry: Entry, value: Entry) -> None:
        """Record that the bytes of ``entry`` hold ``value``; values that they overlap are lost.

        Raises: PassError if an input, constant or state has no buffer of its own, if a computed
        value is written over an input or a constant, or after the arena's end; ShapeError if a size
        has no value.
        """
        self.value_of[entry] = value
        storage = self.plan[entry]
        is_computed = entry.node.op is not None and entry.node.op is not CONSTANT
        if not is_computed and self.leaves.get(storage) is not entry.node:
            raise PassError(
                f"{entry.node.where} must have a buffer of its own, and is in {storage}"
            )
        if is_computed and storage.home in (Home.INPUT, Home.CONSTANT):
            raise PassError(
                f"{entry.node.where} is written into {storage}, which a run must not change"
            )
        self.write_range(self.range_of(entry), value)

    def write_range(self, byte_range: ByteRange, value: Entry) -> None:
        """Record that a range of bytes holds a value; values that it overlaps are lost.

        ``byte_range`` is (buffer, first byte, end). Nothing is checked.
        """
        buffer, start, end = byte_range
        intact = [c for c in self.contents.get(buffer, ()) if c[0] >= end or c[1] <= start]
        self.contents[buffer] = [*intact, (start, end, value)]

    def run(self, node: Node) -> None:
        """Run a node: read its inputs, then write its outputs, in the recorded contents.

        An output that equals an input and has its bytes is an alias, and is not written.

        Raises: PassError if an input was overwritten, an output overwrites an input that is still
        read, an input or a constant of the graph, or two outputs share bytes; ShapeError if a size
        has no value.
        """
        for entry in node.inputs:
            self.read(entry, self.range_of(entry), node.where)
        source_of = {o: i for i, o in identities(node)}
        written: list[Entry] = []
        for entry in node.entries:
            source = node.inputs[source_of[entry.index]] if entry.index in source_of else None
            if source is not None and self.range_of(source) == self.range_of(entry):
                self.value_of[entry] = self.value_of[source]
                continue
            for k, other in enumerate(node.inputs):
                self.check_in_place(node, k, other, entry)
            for other in written:
                if _overlap(self.range_of(other), self.range_of(entry)):
                    raise PassError(f"{other.name} and {entry.name} of {node.where} share bytes")
            written.append(entry)
        for entry in written:
            self.write(entry, entry)

    def check_in_place(self, node: Node, k: int, source: Entry, entry: Entry) -> None:
        """Check that output ``entry`` of ``node`` overwrites input ``k`` only element by element.

        ``source`` is that input. Nothing is checked where their ranges do not overlap; else they
        must be the same range, with as many elements of as many bytes, and the operator must allow
        it.

        Raises: PassError naming both, with the number and dtype of their elements; ShapeError if a
        size has no value.
        """
        if not _overlap(self.range_of(source), self.range_of(entry)):
            return
        a, b = self.graph.dtype(source), self.graph.dtype(entry)
        counts = [evaluate(numel(self.graph.shape(e)), self.sizes) for e in (source, entry)]
        fits = self.range_of(source) == self.range_of(entry) and a.nbytes == b.nbytes
        if not fits or counts[0] != counts[1] or (k, entry.index) not in sharing(self.graph, node):
            raise PassError(
                f"{node.where} writes {entry.name} over its input {source.name}, which it still "
                f"reads: {counts[1]} elements of {b} over {counts[0]} of {a}"
            )

    def copy(self, entry: Entry, source: Storage, target: Storage, nbytes: int) -> None:
        """Check and record a copy of an entry's value of ``nbytes`` from one storage to another.

        Raises: PassError where ``source`` does not hold the value, or a range ends after the arena.
        """
        self.read(entry, self.byte_range(source, nbytes), f"the copy to {target}")
        self.write_range(self.byte_range(target, nbytes), self.value_of[entry])

    def check_results(self) -> None:
        """Check that outputs and state hold the values that the caller reads.

        State without an update must hold its old value.

        Raises: PassError naming the first that does not; ShapeError if a size has no value.
        """
        for k, entry in enumerate(self.graph.outputs):
            storage = Storage(Home.OUTPUT, k)
            byte_range = self.byte_range(storage, self.nbytes(entry))
            self.read(entry, byte_range, f"the caller of output {k}")
        updates = dict(self.graph.updates)
        for k, node in enumerate(self.graph.states):
            entry = updates.get(node, node.entries[0])
            storage = Storage(Home.STATE, k)
            byte_range = self.byte_range(storage, self.nbytes(entry))
            self.read(entry, byte_range, f"the next call's '{node.name}'")


def _overlap(a: ByteRange, b: ByteRange) -> bool:
    """Return whether two ranges of bytes are in one buffer and have a byte in common."""
    return a[0] == b[0] and max(a[1], b[1]) < min(a[2], b[2])
