"""Where threads wait for each other: before what reads another's write, or overwrites its read.

A pair of accesses to one element by different threads needs a wait on every way from the one to the
other: along the stages, on from row to row, part to part and tile to tile. The waits of those ways
are sets of places; few places are chosen so that none of the sets is missed. Two threads of a row
need a wait of their row, others one of the tile, which cannot stand among the stages of a row.

Tiles write elements of results of their own, and so do the rows of a part: where they would not,
no wait could help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from attrs import evolve, frozen

from passkit.ast.stage import Buffer, Dot, KernelAST, Part, Phase, Place, Stage
from passkit.ast.walk import variables
from passkit.checks.equivalent_branches import Fact, Spans, equivalent_branches, two_of_each_kind
from passkit.transforms.index_scopes import ROW, UNTOLD
from passkit.transforms.shared_accesses import Access, By, accesses_of
from passkit.values.size import at_least

Waiting = TypeVar("Waiting", Part, Stage | Dot)


def insert_barriers(ast: KernelAST) -> KernelAST:
    """The AST with few stages and parts that wait, and all that must."""
    scratch = {b.name: b for b in ast.scratch if b.place is Place.SHARED}
    results = frozenset(b.name for b in ast.params if b.written)
    return evolve(ast, phases=tuple(_with_waits(p, scratch, results) for p in ast.phases))


def _with_waits(phase: Phase, scratch: Mapping[str, Buffer], results: frozenset[str]) -> Phase:
    several = sum(len(p.stages) for p in phase.parts) > 1
    watched = scratch.keys() | (results if several else frozenset())
    places, ways, kinds = _Places(phase), set[_Way](), list[Spans]()
    if watched:
        meetings = _Meetings(phase, scratch, places)
        found = list(accesses_of(phase, watched))
        kinds = equivalent_branches(phase.parts, scratch, map(_fact, found))
        few = two_of_each_kind(kinds)
        for accesses in _together((a for a in found if a.part in few), scratch):
            if meetings.may_be_apart(accesses) and not meetings.are_one_lane(accesses):
                pairs = ((a, b) for a in accesses for b in accesses if a.write or b.write)
                ways.update(w for a, b in pairs for w in meetings.ways(a, b))
    if not ways and not _waits(phase):
        return phase
    return places.with_chosen(places.repeated(_choose(ways), kinds))


def _fact(a: Access) -> Fact:
    """An access but for its buffer, which another span's is like."""
    whose = a.one_lane, a.one_row, a.row
    return a.part, a.buffer, (a.write, a.stage, a.by, a.in_rows, a.index, *whose)


def _waits(phase: Phase) -> bool:
    return any(p.waits or any(s.waits for s in p.stages) for p in phase.parts)


@frozen
class _Way:
    """The places between two accesses where a wait would part them, one bit each.

    ``best`` is the last of them.
    """

    places: int
    best: int
    wraps: bool


class _Places:
    """The places where threads may wait, one bit each, in order: each part's, then its stages'."""

    def __init__(self, phase: Phase) -> None:
        self.phase, self.parts = phase, phase.parts
        self.first: list[int] = []
        self.among_rows = 0
        self.of_part: list[int] = []
        count = 0
        for part in phase.parts:
            self.first.append(count)
            stages = _ones(count + 1, count + 1 + len(part.stages))
            self.of_part.append(1 << count | (0 if part.rows is not None else stages))
            self.among_rows |= stages if part.rows is not None else 0
            count += 1 + len(part.stages)

    def behind(self, a: Access) -> int:
        """The places in a part behind an access."""
        first = self.first[a.part]
        return _ones(first + a.stage + 2, first + 1 + len(self.parts[a.part].stages))

    def before(self, b: Access) -> int:
        """The places in a part up to an access, but for the part's own."""
        first = self.first[b.part]
        return _ones(first + 1, first + b.stage + 2)

    def along(self, a: Access, b: Access) -> int:
        """The places from an access to a later one of the same part."""
        return self.behind(a) & self.before(b)

    def round(self, a: Access, b: Access) -> int:
        """The places from an access on to the next turn of a part's rows."""
        return self.behind(a) | self.before(b)

    def over(self, a: Access, b: Access, wraps: bool) -> int:
        """The places from a part to another, or on to the next tile."""
        p, q, found = a.part, b.part, self.round(a, b) | 1 << self.first[b.part]
        for k in range(len(self.parts)):
            behind, before = k > p and self.goes_with(k, p), k < q and self.goes_with(k, q)
            if behind or before if wraps else (behind and k < q) or (before and k > p):
                found |= self.of_part[k]
        return found

    def goes_with(self, k: int, other: int) -> bool:
        """Whether each tile that is a part's is another's as well."""
        return self.parts[k].span in (None, self.parts[other].span)

    def apart(self, p: int, q: int) -> bool:
        """Whether no tile is of both parts."""
        return not self.goes_with(p, q) and not self.goes_with(q, p)

    def way(self, places: int, b: Access, wraps: bool) -> _Way:
        """The way through some places to an access."""
        until = places & _ones(0, self.first[b.part] + b.stage + 2)
        return _Way(places, (until or places).bit_length() - 1, wraps)

    def repeated(self, chosen: int, kinds: Iterable[Spans]) -> int:
        """The chosen places, and those like them in all spans of each kind."""
        for spans in kinds:
            starts = [self.first[span[0]] for span in spans]
            length = self.first[spans[0][-1]] + 1 + len(self.parts[spans[0][-1]].stages) - starts[0]
            wanted = 0
            for start in starts[:2]:
                wanted |= chosen >> start & _ones(0, length)
            for start in starts:
                chosen |= wanted << start
        return chosen

    def with_chosen(self, chosen: int) -> Phase:
        """The phase, waiting at the chosen places."""
        parts = []
        for part, first in zip(self.parts, self.first, strict=True):
            stages = tuple(
                _waiting(s, chosen >> first + 1 + k & 1) for k, s in enumerate(part.stages)
            )
            if any(s is not t for s, t in zip(stages, part.stages, strict=True)):
                part = evolve(part, stages=stages)
            parts.append(_waiting(part, chosen >> first & 1))
        return evolve(self.phase, parts=tuple(parts))


def _waiting(x: Waiting, wanted: int) -> Waiting:
    return x if x.waits == bool(wanted) else evolve(x, waits=bool(wanted))


def _ones(begin: int, end: int) -> int:
    """The bits from ``begin`` up to ``end``."""
    return (1 << max(end, begin)) - (1 << begin)


class _Meetings:
    """Which accesses may be of one element, and of different threads; and which waits part them."""

    def __init__(self, phase: Phase, scratch: Mapping[str, Buffer], places: _Places) -> None:
        self.parts, self.tile = phase.parts, phase.tile.var
        self.scratch, self.places = scratch, places

    def may_be_apart(self, accesses: list[Access]) -> bool:
        """Whether some of them write, and a wait could stand between two."""
        a = accesses[0]
        here = a.part, a.stage
        several = a.buffer in self.scratch or any((b.part, b.stage) != here for b in accesses)
        return several and any(b.write for b in accesses)

    def are_one_lane(self, accesses: list[Access]) -> bool:
        """Whether no element is of two lanes, nor of two rows: the usual case, seen at once."""
        a = accesses[0]
        scratch = a.buffer in self.scratch
        if scratch and a.mentions(self.tile):
            return False
        by_rows = scratch and a.in_rows and not self.is_of_row(a)
        return all(
            self.is_one(a, b)
            and b.one_lane
            and (scratch or b.part == a.part)
            and (b.one_row if by_rows else not (scratch and b.mentions(ROW)))
            for b in accesses
        )

    def ways(self, a: Access, b: Access) -> Iterator[_Way]:
        """The ways from ``a`` to ``b`` that need a wait; those on which none can stand are left."""
        places, later = self.places, a.stage < b.stage
        found: list[tuple[int, bool]] = []
        if a.part != b.part:
            if a.part < b.part and not places.apart(a.part, b.part):
                found.append((places.over(a, b, False) & self.parting(a, b), False))
        elif self.parts[a.part].rows is None:
            if later:
                found.append((places.along(a, b) & self.parting(a, b), False))
        else:
            if later and not (self.is_one(a, b) and _one_lane(a, b)):
                found.append((places.along(a, b), False))
            if self.is_of_row(a) and self.is_of_row(b):
                found.append((places.round(a, b) & self.parting(a, b), True))
        if a.buffer in self.scratch:
            found.append((places.over(a, b, True) & self.parting(a, b, True), True))
        for mask, wraps in found:
            if mask:
                yield places.way(mask, b, wraps)

    def parting(self, a: Access, b: Access, wraps: bool = False) -> int:
        """The places that part two accesses, if a wait stands there; none where nothing need."""
        one = self.is_one(a, b) and not (wraps and a.mentions(self.tile))
        if self.is_of_row(a) and self.is_of_row(b):
            one &= a.row is not None or not a.mentions(ROW)
            return 0 if one and _one_lane(a, b) else -1
        if self.is_one_row(a, b, wraps):
            return 0 if one and _one_lane(a, b) else -1
        if not a.in_rows and one and _one_lane(a, b):
            return 0
        return ~self.places.among_rows

    def is_one(self, a: Access, b: Access) -> bool:
        """Whether two accesses are of one element in equal turns of the loops."""
        if a.in_rows != b.in_rows or not self.is_array(a, b) or a.index == UNTOLD:
            return False
        return a.place is b.place or a.index == b.index

    def is_one_row(self, a: Access, b: Access, wraps: bool) -> bool:
        """Whether what both touch is of one row of a tile, or of rows of one number."""
        if not self.is_array(a, b):
            return False
        if a.row is not None and a.row == b.row:
            return not (wraps and any(self.tile in variables(x) for x, _ in a.row[1]))
        same = self.is_one(a, b) and not (wraps and a.mentions(self.tile))
        return same and a.one_row and b.one_row

    def is_array(self, a: Access, b: Access) -> bool:
        """Whether elements of the same index lie at the same place."""
        if a.buffer == b.buffer:
            return True
        x, y = self.scratch[a.buffer], self.scratch[b.buffer]
        return (x.offset, x.dtype.nbytes, x.of_row) == (y.offset, y.dtype.nbytes, y.of_row)

    def is_of_row(self, a: Access) -> bool:
        return a.buffer in self.scratch and self.scratch[a.buffer].of_row


def _one_lane(a: Access, b: Access) -> bool:
    """Whether what two accesses touch at one place is the same lane's."""
    if a.by is By.ALL is b.by:
        return a.write and b.write  # by the first lane
    return a.one_lane and b.one_lane


def _together(accesses: Iterable[Access], scratch: Mapping[str, Buffer]) -> list[list[Access]]:
    """The accesses of each buffer; those of scratch that shares memory stand together."""
    of: dict[str, list[Access]] = {}
    for a in accesses:
        of.setdefault(a.buffer, []).append(a)
    if not any(b.offset is not None for b in scratch.values()):
        return list(of.values())
    groups: list[tuple[list[str], list[Access]]] = []
    for name, found in of.items():
        names, group = [name], found
        own = scratch.get(name)
        for other in [g for g in groups if any(_overlap(own, scratch.get(n)) for n in g[0])]:
            groups.remove(other)
            names, group = [*other[0], *names], [*other[1], *group]
        groups.append((names, group))
    return [group for _, group in groups]


def _overlap(a: Buffer | None, b: Buffer | None) -> bool:
    """Whether two arrays may share memory: only those with an offset do."""
    if a is None or b is None or a.offset is None or b.offset is None or a.of_row != b.of_row:
        return False
    end_of_a = a.offset + a.extent * a.dtype.nbytes
    end_of_b = b.offset + b.extent * b.dtype.nbytes
    return not (at_least(b.offset, end_of_a) or at_least(a.offset, end_of_b))


def _choose(ways: Iterable[_Way]) -> int:
    """Few places such that none of the ways misses them, and each is needed."""
    chosen = 0
    for way in sorted(ways, key=lambda w: (w.wraps, w.best)):
        if not way.places & chosen:
            chosen |= 1 << way.best
    for place in range(chosen.bit_length()):
        fewer = chosen & ~(1 << place)
        if fewer != chosen and all(w.places & fewer for w in ways):
            chosen = fewer
    return chosen
