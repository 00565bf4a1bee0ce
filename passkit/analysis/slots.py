"""Sharing: which arrays of a tile lie in the same bytes, and which are given up for want of room.

Plain data goes in and comes out. What a tile does is numbered in *moments*; an array is written in
one of them first, and read in one of them last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum, IntEnum

from attrs import evolve, frozen

from passkit.analysis.dominance import Dominance, dominance
from passkit.diagnostics import Diagnostic
from passkit.values.size import Extent, at_least, divide_exactly


class Work(Enum):
    """What computing an element again costs: nothing but its index, a little, much, or a fold."""

    FREE = "free"
    LIGHT = "light"
    EXPENSIVE = "expensive"
    REDUCE = "reduce"
    DOT = "dot"


class Need(IntEnum):
    """Why a value has an array, in the order in which arrays are given up; MANDATORY never is."""

    LIGHT_SHARED = 0
    EXPENSIVE_SHARED = 1
    DOT_OPERAND = 2
    MANDATORY = 3


class Mode(Enum):
    """How arrays come to share bytes.

    DOMINANCE: once all paths from a value have joined (FusionStitching, algorithm 4). LIVENESS:
    once the last moment that reads it is over. SMALLER: whichever takes fewer bytes.
    """

    NONE = "none"
    DOMINANCE = "dominance"
    LIVENESS = "liveness"
    SMALLER = "smaller"


@frozen
class TileArray:
    """One array of a tile, as far as its bytes are concerned. Others are named by their positions.

    It holds value ``value``, is written from moment ``born`` on and read until moment ``dies``. It
    may lie ``over`` arrays that are still read while it is written: each element where one was that
    nobody else reads, nor itself later. ``operands`` are the arrays that its value is made of;
    ``root`` says that more than arrays is made of it. ``span`` counts the steps from it to what
    leaves the group. Only arrays of one ``room`` can share.
    """

    value: int
    nbytes: Extent
    born: int
    dies: int
    over: frozenset[int] = frozenset()
    operands: tuple[int, ...] = ()
    root: bool = False
    need: Need = Need.MANDATORY
    span: int = 0
    room: int = 0


@frozen
class Slot:
    """Bytes of a room that arrays have one after another."""

    room: int
    offset: Extent
    nbytes: Extent
    arrays: tuple[int, ...]


@frozen
class SlotAssignment:
    """Where the arrays of a tile lie, and the values that were given up, in that order.

    ``nbytes`` are those of all rooms, with the gaps between slots; ``requested`` is what the arrays
    would take without sharing, ``allocated`` what they do, gaps not counted.
    """

    mode: Mode
    slots: tuple[Slot, ...]
    requested: Extent
    nbytes: Extent
    dropped: tuple[int, ...] = ()

    @property
    def allocated(self) -> Extent:
        """The bytes of all slots."""
        return sum((s.nbytes for s in self.slots), 0)

    def offsets(self) -> dict[int, Extent]:
        """Where each array begins in its room."""
        return {v: s.offset for s in self.slots for v in s.arrays}


Planned = Callable[[tuple[int, ...]], Sequence[TileArray] | Diagnostic]
"""The arrays that a tile has without those of the values given, or why it cannot do without."""


def fit(
    planned: Planned, limit: int, align: int, mode: Mode = Mode.SMALLER
) -> SlotAssignment | Diagnostic:
    """Where arrays lie within ``limit`` bytes: share first, give up arrays second.

    Sizes that only a call knows are compared as far as that can be decided: nothing shares bytes
    that may not hold it, and arrays are given up only where they are certainly too large.
    """
    dropped: tuple[int, ...] = ()
    needed: set[int] = set()
    arrays = planned(dropped)
    if isinstance(arrays, Diagnostic):
        return arrays
    while True:
        found = assign_offsets(arrays, align, mode)
        if not at_least(found.nbytes, limit + 1):
            return evolve(found, dropped=dropped)
        victim = next_to_recompute(arrays, needed)
        if victim is None:
            return Diagnostic("memory.arrays", {"need": found.nbytes, "limit": limit})
        value = arrays[victim].value
        fewer = planned((*dropped, value))
        if isinstance(fewer, Diagnostic):
            needed.add(value)
        else:
            dropped, arrays = (*dropped, value), fewer


def next_to_recompute(arrays: Sequence[TileArray], needed: Collection[int] = ()) -> int | None:
    """The array that is given up first, None when only mandatory ones and ``needed`` are left.

    The lowest class; in it the nearest to a result, the largest of those, the first of those.
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
    """Whether array ``v`` may be written where ``p`` lies."""
    return arrays[p].dies < arrays[v].born or p in arrays[v].over


class _Arena:
    """Slots of a room while they are dealt out: their capacity, their bytes, and who held them."""

    def __init__(self, arrays: Sequence[TileArray], members: Sequence[int], align: int) -> None:
        self.arrays, self.members, self.align = arrays, members, align
        self.capacity: list[Extent] = []
        self.nbytes: list[Extent] = []
        self.held: list[list[int]] = []
        self.slot_of: dict[int, int] = {}

    def free(self, v: int, slots: Iterable[int]) -> list[int]:
        """Those of some slots whose last holder ``v`` may follow."""
        return [s for s in slots if may_follow(self.arrays, v, self.held[s][-1])]

    def give(self, v: int, slots: Collection[int]) -> int:
        """Let ``v`` hold the smallest of some slots that is certainly large enough, else a new one.

        A slot is as large as what it must hold: it ends where its largest array does.
        """
        nbytes, best = self.arrays[v].nbytes, self.best(slots, self.arrays[v].nbytes)
        if best is None:
            best = len(self.held)
            self.capacity.append(aligned(nbytes, self.align))
            self.nbytes.append(nbytes)
            self.held.append([])
        elif not at_least(self.nbytes[best], nbytes):  # it uses what alignment had left over
            larger = at_least(nbytes, self.nbytes[best])
            self.nbytes[best] = nbytes if larger else self.capacity[best]
        self.held[best].append(v)
        self.slot_of[v] = best
        return best

    def grow(self, v: int, slots: Collection[int]) -> None:
        """As `give`, but rather let the largest of the slots grow than open a new one."""
        nbytes = self.arrays[v].nbytes
        if self.best(slots, nbytes) is None:
            smaller = [s for s in slots if at_least(nbytes, self.capacity[s])]
            largest = self._largest(smaller)
            if largest is not None:
                self.capacity[largest] = aligned(nbytes, self.align)
                self.nbytes[largest] = nbytes
        self.give(v, slots)

    def best(self, slots: Iterable[int], nbytes: Extent) -> int | None:
        """The smallest of some slots that is certainly large enough."""
        best: int | None = None
        for s in slots:
            holds = at_least(self.nbytes[s], nbytes) or at_least(self.capacity[s], nbytes)
            if holds and (best is None or at_least(self.capacity[best], self.capacity[s] + 1)):
                best = s
        return best

    def _largest(self, slots: Iterable[int]) -> int | None:
        best: int | None = None
        for s in slots:
            if best is None or at_least(self.capacity[s], self.capacity[best] + 1):
                best = s
        return best


def aligned(nbytes: Extent, align: int) -> Extent:
    """The multiple of ``align`` that is not less."""
    exact = divide_exactly(nbytes, align) is not None
    return nbytes if exact else (nbytes + (align - 1)) // align * align


def _by_dominance(arena: _Arena) -> None:
    """An array may follow those that it dominates: all paths from them have come by."""
    arrays, tree = arena.arrays, _tree(arena.arrays)
    arriving: dict[int, tuple[int, ...]] = {}
    """Holders of slots from which a path led to an array, and has not joined all others."""
    pool: list[int] = []
    for v in arena.members:
        before = tuple(dict.fromkeys(h for p in arrays[v].operands for h in arriving.get(p, ())))
        joined = [p for p in before if tree.dominates(v, p)]
        over = arena.free(v, [arena.slot_of[p] for p in joined])
        reused = over if arena.best(over, arrays[v].nbytes) is not None else arena.free(v, pool)
        slot = arena.give(v, reused)
        pool = [s for s in pool if s != slot]
        # What is still read in this moment is free for later ones only.
        pool += [s for p in joined if (s := arena.slot_of[p]) != slot]
        arriving[v] = (*(p for p in before if p not in joined), v)


def _tree(arrays: Sequence[TileArray]) -> Dominance:
    roots = [v for v, a in enumerate(arrays) if a.root]
    return dominance([a.operands for a in arrays], roots)


def _by_liveness(arena: _Arena) -> None:
    """An array may follow those that no moment reads any more."""
    for v in arena.members:
        arena.grow(v, arena.free(v, range(len(arena.held))))


def _apart(arena: _Arena) -> None:
    for v in arena.members:
        arena.give(v, ())


WAYS: dict[Mode, Callable[[_Arena], None]] = {
    Mode.NONE: _apart,
    Mode.DOMINANCE: _by_dominance,
    Mode.LIVENESS: _by_liveness,
}


def assign_offsets(
    arrays: Sequence[TileArray], align: int, mode: Mode = Mode.SMALLER
) -> SlotAssignment:
    """Where arrays lie, in slots that begin at multiples of ``align``.

    They come in the order in which they are born; each one's operands before it.
    """
    assert all(p < v for v, a in enumerate(arrays) for p in a.operands)
    if mode is Mode.SMALLER:
        first, second = (assign_offsets(arrays, align, m) for m in (Mode.DOMINANCE, Mode.LIVENESS))
        return second if at_least(first.nbytes, second.nbytes + 1) else first
    slots: list[Slot] = []
    total: Extent = 0
    for room in dict.fromkeys(a.room for a in arrays):
        arena = _Arena(arrays, [v for v, a in enumerate(arrays) if a.room == room], align)
        WAYS[mode](arena)
        end: Extent = 0
        for nbytes, held in zip(arena.nbytes, arena.held, strict=True):
            slots.append(Slot(room, end, nbytes, tuple(held)))
            end = end + aligned(nbytes, align)
        total = total + end
    requested: Extent = sum((a.nbytes for a in arrays), 0)
    return SlotAssignment(mode, tuple(slots), requested, total)
