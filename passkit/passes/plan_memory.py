"""PlanMemory: let values with disjoint live ranges share bytes, and compute outputs in place.

Source: NNVM's PlanMemory (reference counts, in place, best fit within a factor of 16), with sizes
that may be symbols: a slot is as large as the largest value that it holds at any time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from itertools import pairwise

from attrs import define

from passkit.errors import PassError, ShapeError
from passkit.graph.graph import Annotation, Graph
from passkit.graph.node import CONSTANT, Entry, Node
from passkit.graph.op import TLibraryCall
from passkit.graph.storage import Copy, Home, Storage, StoragePlan, identities, leaves, sharing
from passkit.passes.base import register_pass
from passkit.passes.functionalize import writes_state
from passkit.values.size import Extent, Size, evaluate, numel

MATCH = 16
"""A free slot serves a value if their sizes differ by at most this factor (NNVM)."""
MOST_PAIRS = 4096
"""The most pairs of operands and outputs of a node that are examined for donations."""
TYPICAL = 1024
"""The value of unknown sizes when slots are compared; any choice is correct."""


@register_pass("PlanMemory", depends=("complete", "shape", "dtype"), provides="storage")
def plan_memory(graph: Graph) -> Graph:
    """Assign bytes to every entry of a functional graph, whose nodes run in order.

    Outputs get buffers of their own, which nothing else uses; a value that an output equals byte
    for byte is computed there. A new value of state overwrites the old one if nobody reads that any
    more, else it is copied at the end.

    y = exp(x); z = log(y); return sqrt(z)    becomes    y: slot 0; z: slot 0, in place of y

    Raises: PassError if an operator of the graph writes state; RuleError if an attribute function,
    such as FInplaceOption, returns something else than it must.
    """
    for node in graph.nodes:
        if writes_state(node):
            raise PassError(
                f"PlanMemory needs a graph in functional form, and {node.where} writes state; run "
                f"Functionalize first"
            )
    return graph.with_attrs(storage=storage_plan(graph))


def storage_plan(graph: Graph, share_outputs: bool = False) -> StoragePlan:
    """Return the memory plan of a graph: the storage of each entry, arena offset or buffer.

    With ``share_outputs``, outputs are in the arena too, as in NNVM; otherwise each has its own
    array. The graph is in functional form, and the shapes and dtypes of its entries are known.

    Raises: PassError if one is not known; RuleError if an attribute function, such as
    FInplaceOption, returns something else than it must.
    """
    return MemoryPlanner(graph, share_outputs).plan()


@define(eq=False)
class _Value:
    """A content of some bytes: an entry, and the entries that equal it byte for byte.

    Its live range is from position ``start`` to ``last`` in the order of nodes.
    """

    first: Entry
    nbytes: Extent
    start: int
    last: int
    storage: Storage | None = None


class MemoryPlanner:
    """Plans the memory of one graph. Time is a node's position; ``end`` is after the last."""

    def __init__(self, graph: Graph, share_outputs: bool = False) -> None:
        self.graph = graph
        self.share_outputs = share_outputs
        self.end = len(graph.nodes)
        self.values: dict[Entry, _Value] = {}
        self.aliases: dict[Entry, Entry] = {}
        self.inplace: dict[Entry, Entry] = {}
        self.copies: list[Copy] = []
        self.donors: list[int] = []
        self.slots = _Slots()

    def plan(self) -> StoragePlan:
        """Plan everything and return the plan; call it once.

        It has the storage of all values, the sizes of slots, the copies at the end, the entries in
        place, the aliases, and the donors of outputs.

        Raises: PassError if a shape or dtype is not known; RuleError if FInplaceOption,
        FInplaceIdentity or FInplaceRows returns something else than it must.
        """
        self.find_values()
        self.assign_outputs()
        self.find_donors()
        late_updates = self.assign_updates()
        self.assign_intermediates()
        self.copy_updates(late_updates)
        storage = {e: v.storage for e, v in self.values.items()}
        return StoragePlan(
            Annotation("storage", storage),
            tuple(tuple(sizes) for sizes in self.slots.sizes),
            tuple(self.copies),
            self.inplace,
            self.aliases,
            tuple(self.donors),
        )

    def find_values(self) -> None:
        """Set ``values`` and ``aliases``: the entries that are one value, and their live ranges.

        Raises: RuleError if FInplaceOption or FInplaceIdentity returns something else than it must.
        """
        storage = leaves(self.graph)
        for now, node in enumerate(self.graph.nodes):
            for entry in node.inputs:
                self.values[entry].last = now
            for entry in node.entries:
                self.values[entry] = _Value(entry, self.nbytes(entry), now, now)
            if node in storage:
                self.values[node.entries[0]].storage = storage[node]
                continue
            for i, o in identities(node):
                entry, source = node.entries[o], node.inputs[i]
                if self.nbytes(entry) == self.nbytes(source):
                    self.values[entry] = self.values[source]
                    self.aliases[entry] = source
        for entry in self.graph.heads:
            self.values[entry].last = self.end
        self.keep_sources_for_epilogues()

    def keep_sources_for_epilogues(self) -> None:
        """Extend the live range of a convolution's operands if the next node reads its output.

        They then live until that node, the next that is no variable or constant. Its kernel may run
        on each part of the output as soon as that is stored, while other parts are still computed
        from the operands.
        """
        order = [n for n in self.graph.nodes if n.op is not None and n.op is not CONSTANT]
        position = {node: now for now, node in enumerate(self.graph.nodes)}
        for node, following in pairwise(order):
            assert node.op is not None
            if TLibraryCall.get(node.op.name) != "convolution":
                continue
            if node.entries[0] in following.inputs:
                for entry in node.inputs:
                    value = self.values[entry]
                    value.last = max(value.last, position[following])

    def nbytes(self, entry: Entry) -> Extent:
        """Return the number of bytes of an entry, a Size if its size is symbolic."""
        return numel(self.graph.shape(entry)) * self.graph.dtype(entry).nbytes

    def assign_outputs(self) -> None:
        """Assign a buffer of its own to each output; copy a value that has storage already.

        With ``share_outputs`` nothing is done. Storage is set on values, copies are appended to
        ``copies``.
        """
        if self.share_outputs:
            return
        for k, entry in enumerate(self.graph.outputs):
            value, target = self.values[entry], Storage(Home.OUTPUT, k)
            if value.storage is None:
                value.storage = target
            else:
                self.copies.append(Copy(entry, value.storage, target, value.nbytes))

    def find_donors(self) -> None:
        """Find an input for each output over whose bytes it may be stored; append it to ``donors``.

        That is the input's position, -1 for none. Nobody reads the input after the output is
        computed. If the node that computes the output reads it, too, it reads each element before
        it writes the one in its place. With ``share_outputs`` nothing is done. Raises: RuleError if
        FInplaceOption or FInplaceRows returns something else than it must.
        """
        if self.share_outputs:
            return
        inputs = {self.values[n.entries[0]]: k for k, n in enumerate(self.graph.inputs)}
        unread_by_size: dict[Extent, list[_Value]] = {}
        for old in sorted(inputs, key=lambda value: -value.last):  # those read first come last
            unread_by_size.setdefault(old.nbytes, []).append(old)
        overwritten: set[_Value] = set()
        donors_by_node: dict[Node, dict[Entry, _Value]] = {}
        for k, entry in enumerate(self.graph.outputs):
            value, donor = self.values[entry], None
            if value.storage == Storage(Home.OUTPUT, k):
                node = value.first.node
                if node not in donors_by_node:
                    donors_by_node[node] = self.operand_donors(node, inputs)
                donor = donors_by_node[node].get(value.first)
                unread = unread_by_size.get(value.nbytes, [])
                while donor in overwritten or (
                    donor is None and unread and unread[-1].last < value.start
                ):
                    donor = unread.pop() if unread and unread[-1].last < value.start else None
            if donor is not None:
                overwritten.add(donor)
            self.donors.append(-1 if donor is None else inputs[donor])

    def operand_donors(self, node: Node, inputs: Mapping[_Value, int]) -> dict[Entry, _Value]:
        """Return, for outputs of a node, different inputs that it reads last and may overwrite.

        Outputs without one are no keys. ``inputs`` are the positions of the graph's inputs. The
        result is empty for a node, such as a packed kernel, with more than MOST_PAIRS pairs of
        operands and outputs: to look at all pairs would take longer than to plan the rest. Raises:
        RuleError if FInplaceOption or FInplaceRows returns something else than it must.
        """
        donors: dict[Entry, _Value] = {}
        if node.op is None or len(node.inputs) * len(node.entries) > MOST_PAIRS:
            return donors
        position = self.values[node.entries[0]].start
        pairs = set(sharing(self.graph, node))
        reads: dict[_Value, list[int]] = {}
        for k, operand in enumerate(node.inputs):
            reads.setdefault(self.values[operand], []).append(k)
        free = {old for old in reads if old in inputs and old.last == position}
        for k, output in sorted(pairs):
            entry, old = node.entries[output], self.values[node.inputs[k]]
            if entry in donors or old not in free or old.nbytes != self.nbytes(entry):
                continue
            if all(
                (j, output) in pairs and self.have_equal_layout(node.inputs[j], entry)
                for j in reads[old]
            ):
                donors[entry] = old
                free.remove(old)
        return donors

    def assign_updates(self) -> list[tuple[Entry, Storage]]:
        """Assign the storage of old state to its new values where that is safe.

        Such values are also recorded in ``inplace`` if their node reads the old state.

        Returns: The new values that must be copied at the end, with the storage of the state.
        """
        late: list[tuple[Entry, Storage]] = []
        for variable, entry in self.graph.updates:
            old, new = self.values[variable.entries[0]], self.values[entry]
            assert old.storage is not None
            is_free = old.last < new.start or (
                old.last == new.start and self.may_overwrite(old, new.first)
            )
            if new.storage is None and is_free and old.nbytes == new.nbytes:
                new.storage = old.storage
                self.record_in_place(new.first, old)
            else:
                late.append((entry, old.storage))
        return late

    def copy_updates(self, late: list[tuple[Entry, Storage]]) -> None:
        """Append copies of new values of state, for the end of a run, to ``copies``.

        Old state that is itself the source of a copy is saved before it is overwritten. ``late``
        are the new values with the storage of the state.
        """
        overwritten = {target for _, target in late}
        copies: list[Copy] = []
        for entry, target in late:
            value = self.values[entry]
            source = value.storage
            assert source is not None
            if source in overwritten:
                saved = Storage(Home.ARENA, self.slots.take(value.nbytes))
                self.copies.append(Copy(entry, source, saved, value.nbytes))
                source = saved
            copies.append(Copy(entry, source, target, value.nbytes))
        self.copies += copies

    def assign_intermediates(self) -> None:
        """Assign slots of the arena to the values without storage, in the order of nodes.

        Their ``storage`` is set. Raises: RuleError if FInplaceOption or FInplaceRows returns
        something else than it must.
        """
        values_by_end: dict[int, list[_Value]] = {}
        for value in dict.fromkeys(self.values.values()):
            if value.storage is None:
                values_by_end.setdefault(value.last, []).append(value)
        for now, node in enumerate(self.graph.nodes):
            values = [(e, self.values[e]) for e in node.entries]
            new = [v for e, v in values if v.storage is None and v.first is e]
            ending = [v for v in values_by_end.get(now, ()) if v.start < now]
            if node.op is not None:
                self.assign_in_place(new, ending)
            new.sort(key=lambda v: -typical(v.nbytes))
            for value in new:
                if value.storage is None:
                    value.storage = Storage(Home.ARENA, self.slots.take(value.nbytes))
            unread = (v for v in new if v.last == now)
            for value in (*ending, *unread):
                assert value.storage is not None
                self.slots.free(value.storage.index)

    def assign_in_place(self, new: list[_Value], ending: list[_Value]) -> None:
        """Let outputs of a node take the storage of inputs whose live ranges end at it.

        Args:
            new: the values that the node computes, whose storage is set.
            ending: the values that end there; those overwritten are removed from it.

        Raises: RuleError if FInplaceOption or FInplaceRows returns something else than it must.
        """
        for value in new:
            for old in ending:
                if old.nbytes == value.nbytes and self.may_overwrite(old, value.first):
                    value.storage = old.storage
                    ending.remove(old)
                    self.record_in_place(value.first, old)
                    break

    def may_overwrite(self, old: _Value, entry: Entry) -> bool:
        """Return whether a node may write its output ``entry`` over ``old``, which it reads.

        Every read of ``old`` must be of the element that is written next: declared by the operator,
        with as many elements as the output, so that nothing is broadcast. False if the node does
        not read ``old``. Raises: RuleError if FInplaceOption or FInplaceRows returns something else
        than it must.
        """
        node, pairs = entry.node, set(sharing(self.graph, entry.node))
        reads = [k for k, e in enumerate(node.inputs) if self.values[e] is old]
        return bool(reads) and all(
            (k, entry.index) in pairs and self.have_equal_layout(node.inputs[k], entry)
            for k in reads
        )

    def have_equal_layout(self, a: Entry, b: Entry) -> bool:
        """Return whether two entries have as many elements, of as many bytes.

        Symbolic numbers of elements must be the same expression.
        """
        graph = self.graph
        has_same_width = graph.dtype(a).nbytes == graph.dtype(b).nbytes
        return has_same_width and numel(graph.shape(a)) == numel(graph.shape(b))

    def record_in_place(self, entry: Entry, old: _Value) -> None:
        """Record in ``inplace`` that ``entry`` overwrites ``old``, if its node reads ``old``."""
        for source in entry.node.inputs:
            if self.values[source] is old:
                self.inplace[entry] = source
                return


class _Slots:
    """The slots of the arena: best fit within `MATCH`, else a new one.

    Attributes:
        sizes: By slot: the sizes of the values that it must hold.
        capacity: By slot: its typical bytes.
        unused: Free slots as pairs of capacity and slot, sorted.
    """

    def __init__(self) -> None:
        self.sizes: list[dict[Extent, None]] = []
        self.capacity: list[int] = []
        self.unused: list[tuple[int, int]] = []

    def take(self, nbytes: Extent) -> int:
        """Return a free slot for a value of ``nbytes``, which is in use from now on.

        It grows if it is smaller; a new slot is added if no free one fits within the factor
        `MATCH`.
        """
        need = typical(nbytes)
        k = bisect_left(self.unused, (need, -1))
        if k < len(self.unused) and self.unused[k][0] <= need * MATCH:
            _, slot = self.unused.pop(k)
        elif k and self.unused[k - 1][0] * MATCH >= need:
            _, slot = self.unused.pop(k - 1)
        else:
            slot = len(self.sizes)
            self.sizes.append({})
            self.capacity.append(0)
        self.capacity[slot] = max(self.capacity[slot], need)
        self._grow(slot, nbytes)
        return slot

    def _grow(self, slot: int, nbytes: Extent) -> None:
        """Let a slot hold ``nbytes``, besides what it holds already.

        Of known sizes only the largest is recorded; symbolic ones are all kept.
        """
        sizes = self.sizes[slot]
        if isinstance(nbytes, int):
            numbers = [s for s in sizes if isinstance(s, int)]
            if numbers and max(numbers) >= nbytes:
                return
            for size in numbers:
                del sizes[size]
        sizes[nbytes] = None

    def free(self, slot: int) -> None:
        """Add a slot of memory to the unused ones, so that later values use it.

        Nothing is returned.
        """
        insort(self.unused, (self.capacity[slot], slot))


def typical(size: Extent) -> int:
    """Return a number of bytes for a size, to compare slots by.

    `TYPICAL` stands for each symbol, or for the whole size if that then divides by zero.
    """
    if not isinstance(size, Size):
        return size
    try:
        return evaluate(size, dict.fromkeys(size.symbols, TYPICAL))
    except ShapeError:
        return TYPICAL
