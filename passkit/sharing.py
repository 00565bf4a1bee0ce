"""Sharing: which values get arrays, and which of them one after another in the same bytes.

Plain data goes in and comes out: values are numbered in the order in which a kernel computes them.
A value without an array of its own is computed where it is read; a value with one, or a root, is
computed in a pass of its own, its *closure*: itself, and back from it what has no array.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum, IntEnum

from attrs import evolve, frozen

from passkit.dominance import Dominance, dominance
from passkit.size import Extent, at_least, divide_exactly
from passkit.space import Infeasible

ALIGN = 16
"""Every array starts at a multiple of this."""


class Work(Enum):
    """What computing an element again costs: nothing but its index, a little, much, or a fold."""

    FREE = "free"
    LIGHT = "light"
    EXPENSIVE = "expensive"
    REDUCE = "reduce"
    DOT = "dot"


class Need(IntEnum):
    """Why a value wants an array, in the order in which arrays are given up; MANDATORY never is."""

    LIGHT_SHARED = 0
    EXPENSIVE_SHARED = 1
    DOT_OPERAND = 2
    MANDATORY = 3


class Mode(Enum):
    """How arrays come to share bytes.

    DOMINANCE: once all paths from a value have joined (FusionStitching, algorithm 4). LIVENESS:
    once the last closure that reads it is over. SMALLER: whichever takes fewer bytes.
    """

    NONE = "none"
    DOMINANCE = "dominance"
    LIVENESS = "liveness"
    SMALLER = "smaller"


@frozen
class Value:
    """One value of a group, as far as arrays are concerned.

    ``nbytes`` is what a tile of it takes; ``users`` counts the values of the group that read it,
    ``feeds_dot`` is whether a dot does, ``span`` the steps to what leaves the group last. All three
    look through index maps, and `with_uses` finds them.
    """

    work: Work
    nbytes: Extent
    itemsize: int
    operands: tuple[int, ...] = ()
    root: bool = False
    users: int = 0
    feeds_dot: bool = False
    span: int = 0


SamePlace = Callable[[int, int], bool]
"""``(user, value)``: whether an element of ``user`` reads the same element of ``value``, only."""


@frozen
class Slot:
    """Bytes that values hold one after another."""

    offset: Extent
    nbytes: Extent
    values: tuple[int, ...]


@frozen
class Sharing:
    """The arrays of a tile, and the values that were denied one, in the order they were given up.

    ``nbytes`` is all of them with the gaps between; ``requested`` is what they would take without
    sharing, gaps not counted. Values in ``registers`` have several users, too, but in one closure.
    """

    mode: Mode
    slots: tuple[Slot, ...]
    needs: Mapping[int, Need]
    requested: Extent
    nbytes: Extent
    dropped: tuple[int, ...] = ()
    registers: frozenset[int] = frozenset()

    @property
    def allocated(self) -> Extent:
        """The bytes of all slots, gaps not counted."""
        return sum((s.nbytes for s in self.slots), 0)

    @property
    def ratio(self) -> float | None:
        """Bytes allocated over bytes requested; None where a size is not known, or none is."""
        if isinstance(self.requested, int) and isinstance(self.allocated, int) and self.requested:
            return self.allocated / self.requested
        return None

    def offsets(self) -> dict[int, Extent]:
        """Where the array of each value begins."""
        return {v: s.offset for s in self.slots for v in s.values}


def with_uses(values: Sequence[Value]) -> tuple[Value, ...]:
    """The values with ``users``, ``feeds_dot`` and ``span`` counted from their operands."""
    readers: list[set[int]] = [set() for _ in values]
    span = [0] * len(values)
    feeds = [False] * len(values)
    for v in range(len(values) - 1, -1, -1):
        feeds[v] = any(
            values[r].work is Work.DOT
            or (values[r].work is Work.LIGHT and len(readers[r]) == 1 and feeds[r])
            for r in readers[v]
        )
        free = values[v].work is Work.FREE
        for p in values[v].operands:
            span[p] = max(span[p], span[v] + 1)
            if free:
                readers[p] |= readers[v]
            if not free or values[v].root:
                readers[p].add(v)
    return tuple(
        evolve(value, users=len(readers[v]), feeds_dot=feeds[v], span=span[v])
        for v, value in enumerate(values)
    )


def need_of(value: Value) -> Need | None:
    """Why a value wants an array, or None.

    What is folded and read must have one. Elementwise values profit where several others read
    them, and expensive ones where a dot does, which reads each element many times.
    """
    if value.users == 0 or value.work is Work.FREE:
        return None
    if value.work in (Work.REDUCE, Work.DOT):
        return Need.MANDATORY
    if value.users > 1:
        return Need.LIGHT_SHARED if value.work is Work.LIGHT else Need.EXPENSIVE_SHARED
    return Need.DOT_OPERAND if value.work is Work.EXPENSIVE and value.feeds_dot else None


def requests(values: Sequence[Value]) -> dict[int, Need]:
    """The values that want arrays, and why."""
    return {v: need for v, value in enumerate(values) if (need := need_of(value)) is not None}


def share(
    values: Sequence[Value],
    same_place: SamePlace,
    limit: int,
    mode: Mode = Mode.SMALLER,
    align: int = ALIGN,
) -> Sharing | Infeasible:
    """The arrays of a group's tile within ``limit`` bytes: share first, give up arrays second.

    Sizes that only a call knows are compared as far as that can be decided: nothing shares bytes
    that may not hold it, and arrays are given up only where they are certainly too large. Operands
    must come before users, and every value must lead to a root.
    """
    assert all(p < v for v, value in enumerate(values) for p in value.operands)
    same = {(u, p): same_place(u, p) for u, value in enumerate(values) for p in value.operands}
    roots = [v for v, value in enumerate(values) if value.root]
    tree = dominance([value.operands for value in values], roots)
    assert -1 not in tree.above
    wanted = requests(values)
    dropped: list[int] = []
    while True:
        registers = in_registers(values, wanted, same)
        needs = {v: need for v, need in wanted.items() if v not in registers}
        victim = first_to_drop(values, needs)
        if victim is None or not any(at_least(values[v].nbytes, limit + 1) for v in needs):
            flow = _Flow(values, needs, closure_reads(values, needs, same), tree, align)
            found = _arranged(flow, mode)
            if not at_least(found.nbytes, limit + 1):
                return evolve(found, dropped=tuple(dropped), registers=registers)
        if victim is None:
            return Infeasible(
                "shared_over_limit",
                f"its arrays take {found.nbytes} bytes of shared memory a tile, above {limit}",
                data={"need": found.nbytes, "limit": limit},
            )
        del wanted[victim]
        dropped.append(victim)


def in_registers(
    values: Sequence[Value], wanted: Mapping[int, Need], same: Mapping[tuple[int, int], bool]
) -> frozenset[int]:
    """Values that several others read, but in one closure, and where that writes.

    Its threads compute them once, so an array would save nothing.
    """
    found: set[int] = set()
    closures: list[set[int]] = [set() for _ in values]  # where a value is computed, or read
    here = [True] * len(values)  # whether always at the element that is written
    for v in range(len(values) - 1, -1, -1):
        optional = wanted.get(v, Need.MANDATORY) < Need.DOT_OPERAND
        if optional and not values[v].root and here[v] and len(closures[v]) == 1:
            found.add(v)
        kept = v in wanted and v not in found
        inside = ({v} if kept or values[v].root else set()) | (set() if kept else closures[v])
        folds = values[v].work in (Work.REDUCE, Work.DOT)
        for p in values[v].operands:
            closures[p] |= inside
            here[p] = here[p] and same[v, p] and not folds and (kept or here[v])
    return frozenset(found)


def first_to_drop(values: Sequence[Value], needs: Mapping[int, Need]) -> int | None:
    """The value that gives up its array first, None when only mandatory ones are left.

    The lowest class; in it the nearest to a result, the largest of those, the first of those.
    """
    optional = [v for v in needs if needs[v] is not Need.MANDATORY]
    rank = min(((needs[v], values[v].span) for v in optional), default=None)
    nearest = [v for v in sorted(optional) if (needs[v], values[v].span) == rank]
    if not nearest:
        return None
    best = nearest[0]
    for v in nearest[1:]:
        if at_least(values[v].nbytes, values[best].nbytes + 1):
            best = v
    return best


Reads = dict[int, dict[int, bool]]
"""For each closure the arrays that it reads, and whether only at the element that it writes."""


def closure_reads(
    values: Sequence[Value], kept: Collection[int], same: Mapping[tuple[int, int], bool]
) -> Reads:
    """What the closures of ``kept`` values and of roots read; ``same`` tells it of each edge."""
    found: Reads = {}
    for start, value in enumerate(values):
        if start not in kept and not value.root:
            continue
        reads: dict[int, bool] = {}
        seen, todo = {(start, True)}, [(start, True)]
        while todo:
            user, still = todo.pop()
            still = still and values[user].work not in (Work.REDUCE, Work.DOT)
            for p in values[user].operands:
                here = still and same[user, p]
                if p in kept:
                    reads[p] = reads.get(p, True) and here
                elif (p, here) not in seen:
                    seen.add((p, here))
                    todo.append((p, here))
        found[start] = reads
    return found


@frozen
class _Flow:
    """What both ways of sharing start from."""

    values: Sequence[Value]
    needs: Mapping[int, Need]
    reads: Reads
    tree: Dominance
    align: int


def safe_to_overwrite(flow: _Flow, v: int, p: int) -> bool:
    """Whether the closure of ``v`` may write where ``p`` lies.

    It may if it does not read ``p``, or only the element that it is about to write. The bytes of
    that element must be those, too: with other widths an element lies where another one is read.
    """
    if p not in flow.reads[v]:
        return True
    return flow.reads[v][p] and flow.values[v].itemsize == flow.values[p].itemsize


class _Arena:
    """Slots while they are dealt out: their capacity, their bytes, and who held them."""

    def __init__(self, align: int) -> None:
        self.align = align
        self.capacity: list[Extent] = []
        self.nbytes: list[Extent] = []
        self.held: list[list[int]] = []
        self.slot_of: dict[int, int] = {}

    def best(self, slots: Iterable[int], nbytes: Extent) -> int | None:
        """The smallest of some slots that is certainly large enough."""
        best: int | None = None
        for s in slots:
            holds = at_least(self.nbytes[s], nbytes) or at_least(self.capacity[s], nbytes)
            if holds and (best is None or at_least(self.capacity[best], self.capacity[s] + 1)):
                best = s
        return best

    def give(self, v: int, nbytes: Extent, slot: int | None) -> None:
        """Let ``v`` hold a slot, a new one if None."""
        if slot is None:
            slot = len(self.held)
            self.capacity.append(_aligned(nbytes, self.align))
            self.nbytes.append(nbytes)
            self.held.append([])
        elif not at_least(self.nbytes[slot], nbytes):  # it uses what alignment had left over
            larger = at_least(nbytes, self.nbytes[slot])
            self.nbytes[slot] = nbytes if larger else self.capacity[slot]
        self.held[slot].append(v)
        self.slot_of[v] = slot


def _aligned(nbytes: Extent, align: int) -> Extent:
    exact = divide_exactly(nbytes, align) is not None
    return nbytes if exact else (nbytes + (align - 1)) // align * align


def _by_dominance(flow: _Flow, arena: _Arena) -> None:
    """A value may follow those that it dominates: all paths from them have come by."""
    arriving: list[tuple[int, ...]] = []  # holders of slots from which a path led here, unjoined
    pool: list[int] = []
    for v, value in enumerate(flow.values):
        before = tuple(dict.fromkeys(h for p in value.operands for h in arriving[p]))
        if v not in flow.needs:
            arriving.append(before)
            continue
        joined = [p for p in before if flow.tree.dominates(v, p)]
        over = [arena.slot_of[p] for p in joined if safe_to_overwrite(flow, v, p)]
        slot = arena.best(over, value.nbytes)
        if slot is None:
            slot = arena.best(pool, value.nbytes)
            pool = [s for s in pool if s != slot]
        # What the closure itself may still read is free for later ones only.
        pool += [s for p in joined if (s := arena.slot_of[p]) != slot]
        arriving.append((*(p for p in before if p not in joined), v))
        arena.give(v, value.nbytes, slot)


def _by_liveness(flow: _Flow, arena: _Arena) -> None:
    """A value may follow those that no closure reads any more."""
    last = {v: v for v in flow.needs}
    for closure, reads in flow.reads.items():
        last.update(dict.fromkeys(reads, closure))
    for v in sorted(flow.needs):
        holders = ((s, held[-1]) for s, held in enumerate(arena.held))
        free = [
            s for s, p in holders if last[p] < v or (last[p] == v and safe_to_overwrite(flow, v, p))
        ]
        nbytes = flow.values[v].nbytes
        arena.give(v, nbytes, arena.best(free, nbytes))


def _apart(flow: _Flow, arena: _Arena) -> None:
    for v in sorted(flow.needs):
        arena.give(v, flow.values[v].nbytes, None)


WAYS: dict[Mode, Callable[[_Flow, _Arena], None]] = {
    Mode.NONE: _apart,
    Mode.DOMINANCE: _by_dominance,
    Mode.LIVENESS: _by_liveness,
}


def _arranged(flow: _Flow, mode: Mode) -> Sharing:
    if mode is Mode.SMALLER:
        first, second = _arranged(flow, Mode.DOMINANCE), _arranged(flow, Mode.LIVENESS)
        return second if at_least(first.nbytes, second.nbytes + 1) else first
    arena = _Arena(flow.align)
    WAYS[mode](flow, arena)
    slots: list[Slot] = []
    end: Extent = 0
    for nbytes, held in zip(arena.nbytes, arena.held, strict=True):
        slots.append(Slot(end, nbytes, tuple(held)))
        end = end + _aligned(nbytes, flow.align)
    requested: Extent = sum((flow.values[v].nbytes for v in flow.needs), 0)
    return Sharing(mode, tuple(slots), flow.needs, requested, end)
