"""PlanMemory: values whose lives do not meet share bytes; results take the place of what dies.

Source: NNVM's PlanMemory (reference counts, in place, best fit within a factor of 16), with sizes
that may be symbols: a slot has room for the largest value it holds at any time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from itertools import pairwise

from attrs import define

from passkit.errors import PassError
from passkit.graph.graph import Annotation, Graph
from passkit.graph.node import CONSTANT, Entry
from passkit.graph.op import TLibraryCall
from passkit.passes.base import register_pass
from passkit.passes.functionalize import writes
from passkit.plan.storage import Copy, Home, Storage, StoragePlan, identities, leaves, sharing
from passkit.values.size import Extent, Size, evaluate, numel

MATCH = 16
"""A free slot serves a value if their sizes differ by at most this factor (NNVM)."""
TYPICAL = 1024
"""The extent that stands for an unknown one when slots are compared; any choice is correct."""


@register_pass("PlanMemory", depends=("complete", "shape", "dtype"), provides="storage")
def plan_memory(graph: Graph) -> Graph:
    """Give every entry of a pure graph its bytes, in the order in which nodes stand.

    Results get buffers of their own, which nothing else uses; an intermediate value that a
    result equals byte for byte is made there. A new value of state is written over the old one
    where nobody reads that any more, else it is copied at the end.

    y = exp(x); z = log(y); return sqrt(z)    becomes    y: slot 0; z: slot 0, in place of y

    Raises: PassError when the graph writes state other than by updates.
    """
    for node in graph.nodes:
        if writes(node):
            raise PassError(
                f"PlanMemory needs values, and {node.where} writes state; run Functionalize first"
            )
    return graph.with_attrs(storage=_Planner(graph).plan())


def storage_plan(graph: Graph, share_outputs: bool = False) -> StoragePlan:
    """The plan for a graph; with ``share_outputs`` results are in the arena too, as NNVM's are."""
    return _Planner(graph, share_outputs).plan()


@define(eq=False)
class _Value:
    """Bytes with one content over time: an entry, and what is the same byte for byte."""

    first: Entry
    nbytes: Extent
    start: int
    last: int
    place: Storage | None = None


class _Planner:
    """One graph's plan in the making. Time is a node's position; ``end`` is after the last."""

    def __init__(self, graph: Graph, share_outputs: bool = False) -> None:
        self.graph = graph
        self.share_outputs = share_outputs
        self.end = len(graph.nodes)
        self.value: dict[Entry, _Value] = {}
        self.aliases: dict[Entry, Entry] = {}
        self.inplace: dict[Entry, Entry] = {}
        self.copies: list[Copy] = []
        self.slots = _Slots()

    def plan(self) -> StoragePlan:
        """Where everything lives."""
        self.find_values()
        self.place_outputs()
        late = self.place_updates()
        self.place_rest()
        self.copy_updates(late)
        places = {e: v.place for e, v in self.value.items()}
        return StoragePlan(
            Annotation("storage", places),
            tuple(tuple(sizes) for sizes in self.slots.sizes),
            tuple(self.copies),
            self.inplace,
            self.aliases,
        )

    def find_values(self) -> None:
        """Which entries are one value, and when each is made and read for the last time."""
        places = leaves(self.graph)
        for now, node in enumerate(self.graph.nodes):
            for entry in node.inputs:
                self.value[entry].last = now
            for entry in node.entries:
                self.value[entry] = _Value(entry, self.nbytes(entry), now, now)
            if node in places:
                self.value[node.entries[0]].place = places[node]
                continue
            for i, o in identities(node):
                entry, source = node.entries[o], node.inputs[i]
                if self.nbytes(entry) == self.nbytes(source):
                    self.value[entry] = self.value[source]
                    self.aliases[entry] = source
        for entry in self.graph.heads:
            self.value[entry].last = self.end
        self.keep_sources_for_epilogues()

    def keep_sources_for_epilogues(self) -> None:
        """Keep what a convolution reads until the next node has run, if that reads its result.

        The next kernel may run on each part of the result as soon as that is stored, while other
        parts of it are still computed from the sources.
        """
        order = [n for n in self.graph.nodes if n.op is not None and n.op is not CONSTANT]
        position = {node: now for now, node in enumerate(self.graph.nodes)}
        for node, following in pairwise(order):
            assert node.op is not None
            if TLibraryCall.get(node.op.name) != "convolution":
                continue
            if node.entries[0] in following.inputs:
                for entry in node.inputs:
                    value = self.value[entry]
                    value.last = max(value.last, position[following])

    def nbytes(self, entry: Entry) -> Extent:
        """The bytes of an entry, maybe a symbol."""
        return numel(self.graph.shape(entry)) * self.graph.dtype(entry).nbytes

    def place_outputs(self) -> None:
        """Make each result in a buffer of its own; what has another place already is copied."""
        if self.share_outputs:
            return
        for k, entry in enumerate(self.graph.outputs):
            value, target = self.value[entry], Storage(Home.OUTPUT, k)
            if value.place is None:
                value.place = target
            else:
                self.copies.append(Copy(entry, value.place, target, value.nbytes))

    def place_updates(self) -> list[tuple[Entry, Storage]]:
        """Make new values of state over the old ones where that is safe; the rest is returned."""
        late: list[tuple[Entry, Storage]] = []
        for variable, entry in self.graph.updates:
            old, new = self.value[variable.entries[0]], self.value[entry]
            assert old.place is not None
            free = old.last < new.start or (old.last == new.start and self.may_take(old, new.first))
            if new.place is None and free and old.nbytes == new.nbytes:
                new.place = old.place
                self.note(new.first, old)
            else:
                late.append((entry, old.place))
        return late

    def copy_updates(self, late: list[tuple[Entry, Storage]]) -> None:
        """Copy new values of state at the end; old state that others want is saved first."""
        overwritten = {target for _, target in late}
        copies: list[Copy] = []
        for entry, target in late:
            value = self.value[entry]
            source = value.place
            assert source is not None
            if source in overwritten:
                saved = Storage(Home.ARENA, self.slots.take(value.nbytes))
                self.copies.append(Copy(entry, source, saved, value.nbytes))
                source = saved
            copies.append(Copy(entry, source, target, value.nbytes))
        self.copies += copies

    def place_rest(self) -> None:
        """Give what is left places in the arena, in the order of nodes."""
        dying: dict[int, list[_Value]] = {}
        for value in dict.fromkeys(self.value.values()):
            if value.place is None:
                dying.setdefault(value.last, []).append(value)
        for now, node in enumerate(self.graph.nodes):
            made = [v for e in node.entries if (v := self.value[e]).place is None and v.first is e]
            ending = [v for v in dying.get(now, ()) if v.start < now]
            if node.op is not None:
                self.place_over(made, ending)
            made.sort(key=lambda v: -typical(v.nbytes))
            for value in made:
                if value.place is None:
                    value.place = Storage(Home.ARENA, self.slots.take(value.nbytes))
            for value in (*ending, *(v for v in made if v.last == now)):
                assert value.place is not None
                self.slots.free(value.place.index)

    def place_over(self, made: list[_Value], ending: list[_Value]) -> None:
        """Make results in the place of inputs that end here; those are taken off ``ending``."""
        for new in made:
            for old in ending:
                if old.nbytes == new.nbytes and self.may_take(old, new.first):
                    new.place = old.place
                    ending.remove(old)
                    self.note(new.first, old)
                    break

    def may_take(self, old: _Value, entry: Entry) -> bool:
        """Whether a node may write ``entry`` over ``old``, which it reads.

        Every read of ``old`` must be of the element that is written next: declared by the
        operator, with as many elements as the result, so that nothing is broadcast.
        """
        node, pairs = entry.node, set(sharing(self.graph, entry.node))
        reads = [k for k, e in enumerate(node.inputs) if self.value[e] is old]
        return bool(reads) and all(
            (k, entry.index) in pairs and self.alike(node.inputs[k], entry) for k in reads
        )

    def alike(self, a: Entry, b: Entry) -> bool:
        """Whether two entries have as many elements, of as many bytes."""
        graph = self.graph
        same = graph.dtype(a).nbytes == graph.dtype(b).nbytes
        return same and numel(graph.shape(a)) == numel(graph.shape(b))

    def note(self, entry: Entry, old: _Value) -> None:
        """Note which input's place a result took, if it was an input of its node."""
        for source in entry.node.inputs:
            if self.value[source] is old:
                self.inplace[entry] = source
                return


class _Slots:
    """The arena's slots, and which are free: best fit within `MATCH`, else the largest grows."""

    def __init__(self) -> None:
        self.sizes: list[dict[Extent, None]] = []
        self.room: list[int] = []
        self.unused: list[tuple[int, int]] = []

    def take(self, nbytes: Extent) -> int:
        """A slot for a value that nobody else uses now."""
        need = typical(nbytes)
        k = bisect_left(self.unused, (need, -1))
        if k < len(self.unused) and self.unused[k][0] <= need * MATCH:
            _, slot = self.unused.pop(k)
        elif k and self.unused[k - 1][0] * MATCH >= need:
            _, slot = self.unused.pop(k - 1)
        else:
            slot = len(self.sizes)
            self.sizes.append({})
            self.room.append(0)
        self.room[slot] = max(self.room[slot], need)
        self.add(slot, nbytes)
        return slot

    def add(self, slot: int, nbytes: Extent) -> None:
        """Let a slot have room for ``nbytes``; of known sizes only the largest is kept."""
        sizes = self.sizes[slot]
        if isinstance(nbytes, int):
            known = [s for s in sizes if isinstance(s, int)]
            if known and max(known) >= nbytes:
                return
            for size in known:
                del sizes[size]
        sizes[nbytes] = None

    def free(self, slot: int) -> None:
        """Let others use a slot."""
        insort(self.unused, (self.room[slot], slot))


def typical(size: Extent) -> int:
    """A number for a size, to compare slots by."""
    if isinstance(size, Size):
        return evaluate(size, dict.fromkeys(size.symbols, TYPICAL))
    return size
