"""Insertion of barriers: few, and such that no two threads race for an element.

Two accesses to an element by different threads, of which one is a store, need a barrier on every
path from the one to the other: along the stages, from row to row, from part to part and from tile
to tile. Each path is a set of places where a barrier may stand; few places are chosen so that every
path has one. Threads of one row need a barrier of their row, others one of the tile, which cannot
stand between the stages of a row.

Tiles store to different elements of outputs, and so do the rows of a part: otherwise no barrier
would help.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from attrs import evolve, frozen

from passkit.ast.stage import Dot, KernelAST, Part, Phase, Place, Stage
from passkit.checks.equivalent_branches import (
    Branches,
    Fact,
    equivalent_branches,
    representatives,
)
from passkit.checks.overlap import ScratchMemory, computes_tiles_of, have_common_tile
from passkit.checks.stage_accesses import Executor, PhaseAccesses, StageAccess
from passkit.checks.stage_indices import ROW, THREAD, variables_of

PartOrStage = TypeVar("PartOrStage", Part, Stage | Dot)


def insert_barriers(ast: KernelAST) -> KernelAST:
    """Return a kernel with the barriers it needs, in place of those it has."""
    scratch = ScratchMemory(b for b in ast.scratch if b.place is Place.SHARED)
    outputs = frozenset(b.name for b in ast.params if b.written)
    return evolve(ast, phases=tuple(_with_barriers(p, scratch, outputs) for p in ast.phases))


def _with_barriers(phase: Phase, scratch: ScratchMemory, outputs: frozenset[str]) -> Phase:
    """Return a phase with the barriers it needs."""
    has_stages = sum(len(p.stages) for p in phase.parts) > 1
    watched = scratch.arrays.keys() | (outputs if has_stages else frozenset())
    places, paths, classes = _Places(phase), set[_BarrierPath](), list[Branches]()
    if watched:
        conflicts = _Conflicts(phase, scratch, places)
        accesses = PhaseAccesses(phase, watched, {}).accesses
        classes = equivalent_branches(phase.parts, scratch.arrays, map(_fact, accesses))
        chosen = representatives(classes)
        for group in scratch.by_memory([a for a in accesses if a.part in chosen]):
            if conflicts.may_need_barriers(group) and not conflicts.have_one_thread(group):
                pairs = ((a, b) for a in group for b in group if a.is_store or b.is_store)
                paths.update(path for a, b in pairs for path in conflicts.paths(a, b))
    if not paths and not _has_barriers(phase):
        return phase
    return places.with_barriers(places.repeated(_choose(paths), classes))


def _fact(a: StageAccess) -> Fact:
    """Return what matters of an access, apart from its buffer's name and its branch."""
    threads = a.executor, a.in_rows, _has_one_thread(a), _has_one_row(a), a.row_range
    return a.part, a.buffer, (a.is_store, a.stage, a.index, *threads)


def _has_barriers(phase: Phase) -> bool:
    """Return whether a phase has any barrier."""
    return any(p.barrier_before or any(s.barrier_before for s in p.stages) for p in phase.parts)


@frozen
class _BarrierPath:
    """A path from an access to another one, on which a barrier must stand.

    Attributes:
        places: the places on the path where a barrier may stand, one bit each.
        last: the number of the last place before the second access.
        is_cyclic: whether the path leads into the next row or tile.
    """

    places: int
    last: int
    is_cyclic: bool


class _Places:
    """The places for barriers in a phase, one bit each: in front of each part, and of its stages.

    Attributes:
        first: the place in front of each part.
        between_rows: the places in front of stages of rows: those of barriers of a row.
        of_tiles: for each part the places of barriers of the tile.
    """

    def __init__(self, phase: Phase) -> None:
        self.phase, self.parts = phase, phase.parts
        self.first: list[int] = []
        self.between_rows = 0
        self.of_tiles: list[int] = []
        count = 0
        for part in phase.parts:
            self.first.append(count)
            stages = _bits(count + 1, count + 1 + len(part.stages))
            self.of_tiles.append(1 << count | (0 if part.rows is not None else stages))
            self.between_rows |= stages if part.rows is not None else 0
            count += 1 + len(part.stages)

    def behind(self, a: StageAccess) -> int:
        """Return the places behind an access in its part."""
        first = self.first[a.part]
        return _bits(first + a.stage + 2, first + 1 + len(self.parts[a.part].stages))

    def before(self, b: StageAccess) -> int:
        """Return the places before an access in its part, without the one before the part."""
        first = self.first[b.part]
        return _bits(first + 1, first + b.stage + 2)

    def between(self, a: StageAccess, b: StageAccess) -> int:
        """Return the places from an access to a later one of the same part."""
        return self.behind(a) & self.before(b)

    def cyclic(self, a: StageAccess, b: StageAccess) -> int:
        """Return the places from an access to one in the next row of the same part."""
        return self.behind(a) | self.before(b)

    def across(self, a: StageAccess, b: StageAccess, is_cyclic: bool) -> int:
        """Return the places from an access to one of a later part, or of the next tile."""
        p, q, places = a.part, b.part, self.cyclic(a, b) | 1 << self.first[b.part]
        for k, part in enumerate(self.parts):
            is_behind = k > p and computes_tiles_of(part, self.parts[p])
            is_before = k < q and computes_tiles_of(part, self.parts[q])
            if is_cyclic:
                is_on_path = is_behind or is_before
            else:
                is_on_path = (is_behind and k < q) or (is_before and k > p)
            if is_on_path:
                places |= self.of_tiles[k]
        return places

    def path(self, places: int, b: StageAccess, is_cyclic: bool) -> _BarrierPath:
        """Return the path through these places to an access."""
        before = places & _bits(0, self.first[b.part] + b.stage + 2)
        return _BarrierPath(places, (before or places).bit_length() - 1, is_cyclic)

    def repeated(self, chosen: int, classes: Iterable[Branches]) -> int:
        """Return the chosen places, and the same ones in all branches of each class."""
        for branches in classes:
            starts = [self.first[branch[0]] for branch in branches]
            last = branches[0][-1]
            length = self.first[last] + 1 + len(self.parts[last].stages) - starts[0]
            in_branch = 0
            for start in starts[:2]:
                in_branch |= chosen >> start & _bits(0, length)
            for start in starts:
                chosen |= in_branch << start
        return chosen

    def with_barriers(self, chosen: int) -> Phase:
        """Return the phase with barriers at the chosen places alone."""
        parts = []
        for part, first in zip(self.parts, self.first, strict=True):
            stages = tuple(
                _with_barrier(s, chosen >> first + 1 + k & 1) for k, s in enumerate(part.stages)
            )
            if any(s is not t for s, t in zip(stages, part.stages, strict=True)):
                part = evolve(part, stages=stages)
            parts.append(_with_barrier(part, chosen >> first & 1))
        return evolve(self.phase, parts=tuple(parts))


def _with_barrier(x: PartOrStage, bit: int) -> PartOrStage:
    """Return a part or stage with a barrier before it if the bit is set, else without."""
    return x if x.barrier_before == bool(bit) else evolve(x, barrier_before=bool(bit))


def _bits(begin: int, end: int) -> int:
    """Return a number with the bits from ``begin`` up to ``end`` set."""
    return (1 << max(end, begin)) - (1 << begin)


class _Conflicts:
    """The accesses that different threads may make to one element, and the barriers they need."""

    def __init__(self, phase: Phase, scratch: ScratchMemory, places: _Places) -> None:
        self.parts, self.tile = phase.parts, phase.tile.var
        self.scratch, self.places = scratch, places

    def may_need_barriers(self, accesses: list[StageAccess]) -> bool:
        """Return whether some of the accesses are stores, and a barrier may stand between two."""
        a = accesses[0]
        here = a.part, a.stage
        is_apart = self.scratch.has(a) or any((b.part, b.stage) != here for b in accesses)
        return is_apart and any(b.is_store for b in accesses)

    def have_one_thread(self, accesses: list[StageAccess]) -> bool:
        """Return whether each element has one thread and one row: a quick test of most cases."""
        a = accesses[0]
        is_scratch = self.scratch.has(a)
        if is_scratch and a.element.depends_on(self.tile):
            return False
        needs_row = is_scratch and a.in_rows and not self.scratch.is_of_row(a)
        return all(
            self.is_same_element(a, b)
            and _has_one_thread(b)
            and (is_scratch or b.part == a.part)
            and (_has_one_row(b) if needs_row else not (is_scratch and b.element.depends_on(ROW)))
            for b in accesses
        )

    def paths(self, a: StageAccess, b: StageAccess) -> Iterator[_BarrierPath]:
        """Yield the paths from ``a`` to ``b`` that need a barrier and have a place for one."""
        places, is_later = self.places, a.stage < b.stage
        candidates: list[tuple[int, bool]] = []
        if a.part != b.part:
            if a.part < b.part and have_common_tile(self.parts[a.part], self.parts[b.part]):
                candidates.append((places.across(a, b, False) & self.required(a, b), False))
        elif self.parts[a.part].rows is None:
            if is_later:
                candidates.append((places.between(a, b) & self.required(a, b), False))
        else:
            if is_later and not (self.is_same_element(a, b) and _is_same_thread(a, b)):
                candidates.append((places.between(a, b), False))
            if self.scratch.is_of_row(a) and self.scratch.is_of_row(b):
                candidates.append((places.cyclic(a, b) & self.required(a, b), True))
        if self.scratch.has(a):
            required = self.required(a, b, is_cyclic=True)
            candidates.append((places.across(a, b, True) & required, True))
        for mask, is_cyclic in candidates:
            if mask:
                yield places.path(mask, b, is_cyclic)

    def required(self, a: StageAccess, b: StageAccess, is_cyclic: bool = False) -> int:
        """Return the places where a barrier orders two accesses; 0 if they need none.

        ``is_cyclic`` says that ``b`` belongs to the next tile.
        """
        is_same = self.is_same_element(a, b) and not (is_cyclic and a.element.depends_on(self.tile))
        if self.scratch.is_of_row(a) and self.scratch.is_of_row(b):
            is_same &= a.row_range is not None or not a.element.depends_on(ROW)
            return 0 if is_same and _is_same_thread(a, b) else -1
        if self.is_same_row(a, b, is_cyclic):
            return 0 if is_same and _is_same_thread(a, b) else -1
        if not a.in_rows and is_same and _is_same_thread(a, b):
            return 0
        return ~self.places.between_rows

    def is_same_element(self, a: StageAccess, b: StageAccess) -> bool:
        """Return whether two accesses are to one element in equal iterations of the loops."""
        return (
            a.in_rows == b.in_rows and self.scratch.have_same_elements(a, b) and a.has_index_of(b)
        )

    def is_same_row(self, a: StageAccess, b: StageAccess, is_cyclic: bool) -> bool:
        """Return whether the elements of both belong to one row, or to rows of one number."""
        if not self.scratch.have_same_elements(a, b):
            return False
        if a.row_range is not None and a.row_range == b.row_range:
            begins_at_tile = any(self.tile in variables_of(x) for x, _ in a.row_range[1])
            return not (is_cyclic and begins_at_tile)
        is_same = self.is_same_element(a, b) and not (is_cyclic and a.element.depends_on(self.tile))
        return is_same and _has_one_row(a) and _has_one_row(b)


def _is_same_thread(a: StageAccess, b: StageAccess) -> bool:
    """Return whether each element of two accesses with equal indices belongs to one thread."""
    if a.executor is Executor.ALL is b.executor:
        return a.is_store and b.is_store  # by the first thread
    return _has_one_thread(a) and _has_one_thread(b)


def _has_one_thread(a: StageAccess) -> bool:
    """Return whether each element of a row, or of a tile without rows, belongs to one thread."""
    return a.is_per_thread and a.element.is_injective(THREAD, fixed=frozenset([ROW]))


def _has_one_row(a: StageAccess) -> bool:
    """Return whether each element belongs to one row of the tile."""
    return a.in_rows and a.element.is_injective(ROW)


def _choose(paths: Iterable[_BarrierPath]) -> int:
    """Return few places such that each path has one, and none of them is superfluous."""
    chosen = 0
    for path in sorted(paths, key=lambda p: (p.is_cyclic, p.last)):
        if not path.places & chosen:
            chosen |= 1 << path.last
    for place in range(chosen.bit_length()):
        fewer = chosen & ~(1 << place)
        if fewer != chosen and all(p.places & fewer for p in paths):
            chosen = fewer
    return chosen
