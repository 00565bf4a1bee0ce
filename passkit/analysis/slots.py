"""Slots of scratch memory: which arrays of a tile share bytes, and which are not stored at all.

Program points of a tile are numbered. An array is live from the point that first writes it to the
point that last reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum, IntEnum

from attrs import evolve, frozen

from passkit.analysis.dominance import Dominance, dominance
from passkit.diagnostics import Diagnostic
from passkit.values.size import Extent, at_least, divide_exactly


class Work(Enum):
    """The cost class of computing an element again.

    Attributes:
        FREE: only its index.
        LIGHT: a cheap operator.
        EXPENSIVE: an expensive operator.
        REDUCE: a reduction or scan.
        DOT: an element of a matrix product.
    """

    FREE = "free"
    LIGHT = "light"
    EXPENSIVE = "expensive"
    REDUCE = "reduce"
    DOT = "dot"


class Need(IntEnum):
    """Why a value has an array, in the order of recomputation; MANDATORY: never recomputed."""

    LIGHT_SHARED = 0
    EXPENSIVE_SHARED = 1
    DOT_OPERAND = 2
    MANDATORY = 3


class Mode(Enum):
    """When an array may take the bytes of another one.

    Attributes:
        NONE: never.
        DOMINANCE: when all paths from the other value have joined (FusionStitching, algorithm 4).
        LIVENESS: when the other array is not live any more.
        SMALLER: by DOMINANCE or LIVENESS, whichever takes fewer bytes.
    """

    NONE = "none"
    DOMINANCE = "dominance"
    LIVENESS = "liveness"
    SMALLER = "smaller"


@frozen
class TileArray:
    """The live range of an array of a tile; other arrays are given by their positions in a list.

    Attributes:
        value: the position of the value in the group.
        nbytes: the size.
        start: the program point that first writes it.
        end: the program point that last reads it.
        may_overlay: live arrays that it may overwrite, element by element: nothing else reads the
            element later.
        operands: the arrays from which its value is computed.
        is_root: whether an output is computed from it.
        need: why the value has an array.
        span: the length of the longest path from the value to an output.
        room: the memory that it lies in. Only arrays of one room can share bytes.
    """

    value: int
    nbytes: Extent
    start: int
    end: int
    may_overlay: frozenset[int] = frozenset()
    operands: tuple[int, ...] = ()
    is_root: bool = False
    need: Need = Need.MANDATORY
    span: int = 0
    room: int = 0


@frozen
class Slot:
    """Bytes of a room that several arrays have, one after another."""

    room: int
    offset: Extent
    nbytes: Extent
    arrays: tuple[int, ...]


@frozen
class SlotAssignment:
    """The slots of the arrays of a tile.

    Attributes:
        mode: when arrays share bytes.
        slots: the slots.
        requested: the bytes of all arrays without sharing.
        nbytes: the bytes of all rooms, with the gaps between slots.
        dropped: the values that are recomputed, in the order in which they were chosen.
    """

    mode: Mode
    slots: tuple[Slot, ...]
    requested: Extent
    nbytes: Extent
    dropped: tuple[int, ...] = ()

    @property
    def allocated(self) -> Extent:
        """The bytes of all slots, without gaps."""
        return sum((s.nbytes for s in self.slots), 0)

    def offsets(self) -> dict[int, Extent]:
        """Return the offset of each array in its room."""
        return {v: s.offset for s in self.slots for v in s.arrays}


ArraysWithout = Callable[[tuple[int, ...]], Sequence[TileArray] | Diagnostic]
"""The arrays of a tile in which some values are recomputed, or why they cannot be."""


def fit(
    arrays_without: ArraysWithout, limit: int, align: int, mode: Mode = Mode.SMALLER
) -> SlotAssignment | Diagnostic:
    """Return slots that fit into a limit; values are recomputed one by one until they do.

    Sizes that only a call knows are compared as far as that can be decided: no array gets bytes
    that may be too few, and values are recomputed only where arrays are certainly too large.

    Args:
        arrays_without: the arrays in which some values are recomputed.
        limit: the bytes.
        align: the alignment of slots in bytes.
        mode: when arrays share bytes.

    Returns: the slots, or the diagnostic of the first arrays, or ``memory.arrays``.
    """
    dropped: tuple[int, ...] = ()
    needed: set[int] = set()
    arrays = arrays_without(dropped)
    if isinstance(arrays, Diagnostic):
        return arrays
    while True:
        assignment = assign_offsets(arrays, align, mode)
        if not at_least(assignment.nbytes, limit + 1):
            return evolve(assignment, dropped=dropped)
        candidate = next_to_recompute(arrays, needed)
        if candidate is None:
            return Diagnostic("memory.arrays", {"need": assignment.nbytes, "limit": limit})
        value = arrays[candidate].value
        fewer = arrays_without((*dropped, value))
        if isinstance(fewer, Diagnostic):
            needed.add(value)
        else:
            dropped, arrays = (*dropped, value), fewer


def next_to_recompute(arrays: Sequence[TileArray], needed: Collection[int] = ()) -> int | None:
    """Return the array whose value is recomputed next; None if only necessary ones are left.

    It has the lowest class, among these the shortest path to an output, and then the largest size.

    Args:
        arrays: the arrays.
        needed: the values that cannot be recomputed.
    """
    optional = [a for a in arrays if a.need is not Need.MANDATORY and a.value not in needed]
    rank = min(((a.need, a.span) for a in optional), default=None)
    best: int | None = None
    for k, a in enumerate(arrays):
        if (a.need, a.span) != rank or a.value in needed:
            continue
        if best is None or at_least(a.nbytes, arrays[best].nbytes + 1):
            best = k
    return best


def may_follow(arrays: Sequence[TileArray], v: int, p: int) -> bool:
    """Return whether array ``v`` may have the bytes of ``p``."""
    return arrays[p].end < arrays[v].start or p in arrays[v].may_overlay


class _Arena:
    """The slots of a room while they are assigned: their capacity, their bytes and their arrays."""

    def __init__(self, arrays: Sequence[TileArray], members: Sequence[int], align: int) -> None:
        self.arrays, self.members, self.align = arrays, members, align
        self.capacity: list[Extent] = []
        self.nbytes: list[Extent] = []
        self.arrays_of: list[list[int]] = []
        self.slot_of: dict[int, int] = {}

    def free(self, v: int, slots: Iterable[int]) -> list[int]:
        """Return those of some slots whose last array ``v`` may follow."""
        return [s for s in slots if may_follow(self.arrays, v, self.arrays_of[s][-1])]

    def give(self, v: int, slots: Collection[int]) -> int:
        """Give ``v`` the smallest of some slots that is certainly large enough, or a new one.

        A slot ends where its largest array does. Returns: the number of the slot.
        """
        nbytes = self.arrays[v].nbytes
        best = self.best(slots, nbytes)
        if best is None:
            best = len(self.arrays_of)
            self.capacity.append(aligned(nbytes, self.align))
            self.nbytes.append(nbytes)
            self.arrays_of.append([])
        elif not at_least(self.nbytes[best], nbytes):  # it uses what alignment had left over
            larger = at_least(nbytes, self.nbytes[best])
            self.nbytes[best] = nbytes if larger else self.capacity[best]
        self.arrays_of[best].append(v)
        self.slot_of[v] = best
        return best

    def grow(self, v: int, slots: Collection[int]) -> None:
        """Assign a slot as `give`, but enlarge the largest of the slots instead of adding one."""
        nbytes = self.arrays[v].nbytes
        if self.best(slots, nbytes) is None:
            smaller = [s for s in slots if at_least(nbytes, self.capacity[s])]
            largest = self._largest(smaller)
            if largest is not None:
                self.capacity[largest] = aligned(nbytes, self.align)
                self.nbytes[largest] = nbytes
        self.give(v, slots)

    def best(self, slots: Iterable[int], nbytes: Extent) -> int | None:
        """Return the smallest of some slots that is certainly large enough; None without any."""
        best: int | None = None
        for s in slots:
            holds = at_least(self.nbytes[s], nbytes) or at_least(self.capacity[s], nbytes)
            if holds and (best is None or at_least(self.capacity[best], self.capacity[s] + 1)):
                best = s
        return best

    def _largest(self, slots: Iterable[int]) -> int | None:
        """Return the largest of some slots; None without any."""
        best: int | None = None
        for s in slots:
            if best is None or at_least(self.capacity[s], self.capacity[best] + 1):
                best = s
        return best


def aligned(nbytes: Extent, align: int) -> Extent:
    """Return the least multiple of ``align`` that is not less than ``nbytes``."""
    exact = divide_exactly(nbytes, align) is not None
    return nbytes if exact else (nbytes + (align - 1)) // align * align


def _by_dominance(arena: _Arena) -> None:
    """Let an array follow those that it dominates, whose paths to outputs all lead through it."""
    arrays, tree = arena.arrays, _tree(arena.arrays)
    arriving: dict[int, tuple[int, ...]] = {}
    """The arrays from which a path leads to an array and has not joined all others."""
    pool: list[int] = []
    for v in arena.members:
        before = tuple(dict.fromkeys(h for p in arrays[v].operands for h in arriving.get(p, ())))
        joined = [p for p in before if tree.dominates(v, p)]
        over = arena.free(v, [arena.slot_of[p] for p in joined])
        reused = over if arena.best(over, arrays[v].nbytes) is not None else arena.free(v, pool)
        slot = arena.give(v, reused)
        pool = [s for s in pool if s != slot]
        # Arrays that are read at this program point are free from the next one on.
        pool += [s for p in joined if (s := arena.slot_of[p]) != slot]
        arriving[v] = (*(p for p in before if p not in joined), v)


def _tree(arrays: Sequence[TileArray]) -> Dominance:
    """Return the dominance relation of arrays, towards the outputs."""
    roots = [v for v, a in enumerate(arrays) if a.is_root]
    return dominance([a.operands for a in arrays], roots)


def _by_liveness(arena: _Arena) -> None:
    """Let an array follow those that are not live any more."""
    for v in arena.members:
        arena.grow(v, arena.free(v, range(len(arena.arrays_of))))


def _apart(arena: _Arena) -> None:
    """Give each array a slot of its own."""
    for v in arena.members:
        arena.give(v, ())


ALGORITHMS: dict[Mode, Callable[[_Arena], None]] = {
    Mode.NONE: _apart,
    Mode.DOMINANCE: _by_dominance,
    Mode.LIVENESS: _by_liveness,
}


def assign_offsets(
    arrays: Sequence[TileArray], align: int, mode: Mode = Mode.SMALLER
) -> SlotAssignment:
    """Return the slots of arrays.

    Args:
        arrays: the arrays, in the order of the points that first write them; operands come first.
        align: the alignment of slots in bytes.
        mode: when arrays share bytes.
    """
    assert all(p < v for v, a in enumerate(arrays) for p in a.operands)
    if mode is Mode.SMALLER:
        first, second = (assign_offsets(arrays, align, m) for m in (Mode.DOMINANCE, Mode.LIVENESS))
        return second if at_least(first.nbytes, second.nbytes + 1) else first
    slots: list[Slot] = []
    total: Extent = 0
    for room in dict.fromkeys(a.room for a in arrays):
        arena = _Arena(arrays, [v for v, a in enumerate(arrays) if a.room == room], align)
        ALGORITHMS[mode](arena)
        end: Extent = 0
        for nbytes, members in zip(arena.nbytes, arena.arrays_of, strict=True):
            slots.append(Slot(room, end, nbytes, tuple(members)))
            end = end + aligned(nbytes, align)
        total = total + end
    requested: Extent = sum((a.nbytes for a in arrays), 0)
    return SlotAssignment(mode, tuple(slots), requested, total)
