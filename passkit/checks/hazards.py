"""The check that no kernel is sent out in which threads meet at an element without a wait between.

It looks at the kernel AST alone, as it is printed, and knows nothing of how waits were placed: for
two touches of one element by different threads, of which one writes, all waits that stand between
them are counted, on from stage to stage, row to row, part to part and tile to tile. Arrays of
scratch that share memory must not lose what is still read.

Tiles never wait for each other in a phase, so that none may read what another one writes. It takes
for granted that tiles, and the rows of a part, write elements of results of their own, if only
their index depends on the tile, or on the row: the interpreter of blocks looks at every element.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum

from attrs import evolve, frozen

from passkit.ast.stage import Buffer, KernelAST, Phase, Place
from passkit.checks.among_tiles import among_tiles
from passkit.checks.equivalent_branches import Fact, equivalent_branches, two_of_each_kind
from passkit.checks.touches import LANE, ROW, Collector, Touch, disjoint
from passkit.errors import CodeGenError
from passkit.values.size import Extent, Size, at_least, substitute


class WaitScope(IntEnum):
    """Which threads wait for each other: none, those of a row, all of a tile; or no wait helps."""

    NONE = 0
    ROW = 1
    TILE = 2
    NEVER = 3


class Way(IntEnum):
    """From where to where two touches follow each other."""

    STAGE = 0
    TURN = 1
    ROWS = 2
    TILE = 3
    TILES = 4


TELL = {
    Way.STAGE: "in the same stage",
    Way.TURN: "before",
    Way.ROWS: "in a row before",
    Way.TILE: "before",
    Way.TILES: "in a tile before",
}


@frozen
class Hazard:
    """Two touches of memory between which threads do not wait as they must."""

    first: Touch
    then: Touch
    how: str

    def __str__(self) -> str:
        a, b = self.first, self.then
        verbs = ("reads", "writes")
        return (
            (
                f"stage {b.stage} {verbs[b.writes]} {b.buffer}, which {a.stage} {verbs[a.writes]} "
                f"{self.how}"
            )
            if a.buffer == b.buffer
            else (
                f"stage {b.stage} {verbs[b.writes]} {b.buffer}, whose memory {a.stage} "
                f"{verbs[a.writes]} {self.how} as {a.buffer}"
            )
        )


def check_hazards(ast: KernelAST, name: str, sizes: Sequence[Extent] = ()) -> None:
    """Look for hazards in a kernel whose size arguments have the values ``sizes``.

    Raises: CodeGenError that names the kernel, the buffer and both stages.
    """
    found = next(hazards(ast, sizes), None)
    if found is not None:
        raise CodeGenError(
            f"kernel {name} has a race: {found}, by other threads, and not all of them wait in "
            f"between; lowering.barriers.with_waits sets the waits of an AST"
        )


def hazards(ast: KernelAST, sizes: Sequence[Extent] = ()) -> Iterator[Hazard]:
    """All hazards of a kernel, phase by phase: between phases every tile waits for all."""
    known = sizes or [Size.symbol(n) for n in ast.sizes]
    values = dict(zip(ast.sizes, known, strict=True))
    scratch = {b.name: _placed(b, values) for b in ast.scratch if b.place is Place.SHARED}
    watched = scratch.keys() | {b.name for b in ast.params if b.written}
    for phase in ast.phases:
        collector = Collector(watched, values)
        for k, part in enumerate(phase.parts):
            collector.part(k, part)
        results = [t for t in collector.touches if t.buffer not in scratch]
        for a, b in among_tiles(phase, results, values):
            yield Hazard(a, b, TELL[Way.TILES])
        yield from _Check(phase, collector, scratch).hazards()


def _placed(array: Buffer, values: Mapping[str, Extent]) -> Buffer:
    """An array with its place as a number, from the values of the size arguments."""
    extent = substitute(array.extent, values)
    begin = None if array.offset is None else substitute(array.offset, values)
    return evolve(array, extent=extent, offset=begin)


class _Check:
    """The touches of a phase and where its threads wait."""

    def __init__(self, phase: Phase, collector: Collector, scratch: Mapping[str, Buffer]) -> None:
        self.parts, self.tile, self.scratch = phase.parts, phase.tile.var.name, scratch
        self.row_waits: list[list[int]] = []
        self.tile_waits: list[list[int]] = []
        for part, begin in zip(phase.parts, collector.orders, strict=True):
            among = [begin + 1 + k for k, s in enumerate(part.stages) if s.waits]
            own = [begin] * part.waits
            self.row_waits.append([] if part.rows is None else among)
            self.tile_waits.append(own if part.rows is not None else own + among)
        few = two_of_each_kind(equivalent_branches(phase.parts, scratch, self._facts(collector)))
        self.touches = [t for t in collector.touches if t.part in few]

    def _facts(self, collector: Collector) -> Iterator[Fact]:
        """All that matters of the touches and waits of a span, but for its place and its names."""
        begins = collector.orders
        for k, begin in enumerate(begins):
            waits = [tuple(w - begin for w in x[k]) for x in (self.row_waits, self.tile_waits)]
            yield k, "", (self.parts[k].rows is None, *waits)
        for t in collector.touches:
            form = None if t.form is None else frozenset(t.form.items())
            turns = tuple((name, x.most) for name, x in t.turns.items())
            flags = t.writes, t.lanes, t.rows, t.told, t.down, t.behind
            yield t.part, t.buffer, (t.order - begins[t.part], form, turns, *flags)

    def hazards(self) -> Iterator[Hazard]:
        """The pairs of touches that nothing parts, and what is lost."""
        for together in self._memories():
            touches = together[0]
            if len(together) > 1:
                shared = {found[0].buffer for found in together}
                touches = [t for t in self.touches if t.buffer in shared]
                yield from self._lost(touches)
            if not self._is_settled(touches, len(together) > 1):
                yield from self._unparted(_different(touches))

    # Memory.

    def _memories(self) -> list[list[list[Touch]]]:
        """The touches of each buffer; those of buffers that share memory stand together."""
        of: dict[str, list[Touch]] = {}
        for t in self.touches:
            of.setdefault(t.buffer, []).append(t)
        if not any(b.offset is not None for b in self.scratch.values()):
            return [[found] for found in of.values()]
        groups: list[list[str]] = []
        for name in of:
            apart, joined = [], [name]
            for group in groups:
                if any(self._overlap(name, other) for other in group):
                    joined += group
                else:
                    apart.append(group)
            groups = [*apart, joined]
        return [[of[name] for name in group] for group in groups]

    def _overlap(self, a: str, b: str) -> bool:
        if a not in self.scratch or b not in self.scratch:
            return False
        x, y = self.scratch[a], self.scratch[b]
        if x.offset is None or y.offset is None or x.of_row != y.of_row:
            return False
        behind = at_least(y.offset, x.offset + x.extent * x.dtype.nbytes)
        return not (behind or at_least(x.offset, y.offset + y.extent * y.dtype.nbytes))

    def _lost(self, touches: Iterable[Touch]) -> Iterator[Hazard]:
        """Reads of an array behind a write to another one that shares its memory, in a tile."""
        last: dict[str, Touch] = {}
        for t in touches:
            if t.writes:
                last = {n: w for n, w in last.items() if not self._overlap(n, t.buffer)}
                last[t.buffer] = t
                continue
            for w in last.values():
                if self._apart(w.part, t.part):
                    continue
                if w.buffer != t.buffer and self._overlap(w.buffer, t.buffer):
                    yield Hazard(w, t, "before")

    # Threads.

    def _is_settled(self, touches: list[Touch], several: bool) -> bool:
        """Whether each element is one thread's, as far as it can be told at once: the usual."""
        a = touches[0]
        scratch, of_row = a.buffer in self.scratch, self._is_of_row(a)
        if not (a.lanes and a.told) or (scratch and a.has(self.tile)):
            return False
        if a.rows and not of_row and not a.has(ROW):
            return False
        fixed = () if scratch else (ROW,)
        loops = [LANE] if of_row or not scratch else [LANE, ROW]
        loops = [*a.turns] if several else loops
        whose = a.rows, a.down, a.lanes, a.told, None if scratch else a.part
        for t in touches:
            here = t.rows, t.down, t.lanes, t.told, None if scratch else t.part
            if here != whose or t.form != a.form or not self._is_same_place(a, t):
                return False
            if t.turns is not a.turns and not t.is_spread(*loops, fixed=fixed):
                return False
        return a.is_spread(*loops, fixed=fixed)

    def _unparted(self, touches: list[Touch]) -> Iterator[Hazard]:
        for a in touches:
            for b in touches:
                if not (a.writes or b.writes):
                    continue
                if a.buffer != b.buffer and not self._overlap(a.buffer, b.buffer):
                    continue  # both share memory with a third
                for way, needed in self._needs(a, b):
                    if needed > self._waits(a, b, way):
                        yield Hazard(a, b, TELL[way])

    def _needs(self, a: Touch, b: Touch) -> Iterator[tuple[Way, WaitScope]]:
        """How two touches may follow each other, and who then has to wait for whom."""
        rows = self.parts[a.part].rows is not None
        if a.order == b.order:
            yield Way.STAGE, self._within_stage(a, b)
        elif a.part == b.part and a.order < b.order:
            yield (Way.TURN, self._in_turn(a, b)) if rows else (Way.TILE, self._on(a, b, Way.TILE))
        elif a.part < b.part and not self._apart(a.part, b.part):
            yield Way.TILE, self._on(a, b, Way.TILE)
        if a.part == b.part and rows:
            yield Way.ROWS, self._next_row(a, b)
        if a.buffer in self.scratch:
            yield Way.TILES, self._on(a, b, Way.TILES)

    def _within_stage(self, a: Touch, b: Touch) -> WaitScope:
        """Touches of one stage, where no wait can stand."""
        if disjoint(a, b) or (a is b and not a.told) or self._is_behind(a, b):
            return WaitScope.NONE
        if a.told and not a.lanes and not b.lanes and a.writes and b.writes:
            alone = not a.rows or a.has(ROW) or self._is_of_row(a) or a.once(ROW)
            return WaitScope.NONE if alone and a.form == b.form else WaitScope.NEVER
        if a.form is None or a.form != b.form or not (a.lanes and b.lanes and a.told):
            return WaitScope.NEVER
        own = self._is_of_row(a)  # each row has its own: no other row's threads meet it
        loops = [LANE] if own or not a.rows else [LANE, ROW]
        if a.buffer != b.buffer:
            loops = [x for x in (*a.turns, *b.turns) if x != ROW or not own]
            if not self._is_same_place(a, b):
                return WaitScope.NEVER
        if a.is_spread(*loops):
            return WaitScope.NONE
        if a.buffer != b.buffer or a.is_known:
            return WaitScope.NEVER
        return WaitScope.NONE if all(a.has(x) or a.once(x) for x in loops) else WaitScope.NEVER

    def _is_behind(self, a: Touch, b: Touch) -> bool:
        """Whether a row stores what its threads have joined in, over what they have read for it."""
        if not (a.behind or b.behind) or (a.writes and b.writes) or not self._is_same_place(a, b):
            return False
        alone = a.rows and a.has(ROW) and a.is_spread(ROW)
        return a.form is not None and a.form == b.form and a.rows == b.rows and alone

    def _in_turn(self, a: Touch, b: Touch) -> WaitScope:
        """Touches of one row."""
        return WaitScope.NONE if self._is_one_lane(a, b, (ROW,)) else WaitScope.ROW

    def _next_row(self, a: Touch, b: Touch) -> WaitScope:
        """Touches of two rows of a part that take turns, or are different threads'."""
        if self._is_of_row(a) and self._is_of_row(b):
            return WaitScope.NONE if self._is_one_lane(a, b, ()) else WaitScope.ROW
        if self._is_one_cell(a, b) or disjoint(a, b):
            return WaitScope.NONE
        if a.form is None or b.form is None or a.once(ROW):
            return WaitScope.NONE if a.once(ROW) else WaitScope.NEVER
        if a.buffer not in self.scratch:
            return WaitScope.NONE if a.has(ROW) and b.has(ROW) else WaitScope.NEVER
        steps = a.form.get(ROW, 0), b.form.get(ROW, 0)
        certain = a.is_known and b.is_known
        return WaitScope.NEVER if certain or 0 in steps or steps[0] != steps[1] else WaitScope.NONE

    def _on(self, a: Touch, b: Touch, way: Way) -> WaitScope:
        """Touches of two stages of a tile without rows, of two parts, or of two tiles."""
        again = way is Way.TILES and (a.has(self.tile) or b.has(self.tile))
        if (self._is_of_row(a) and not a.rows) or (self._is_of_row(b) and not b.rows):
            return WaitScope.NEVER
        if self._is_of_row(a) and self._is_of_row(b):
            one = not again and self._is_one_lane(a, b, ())
            return WaitScope.NONE if one else WaitScope.ROW
        if self._is_one_cell(a, b) and not again:
            return WaitScope.NONE if self._is_one_lane(a, b, (ROW,)) else WaitScope.ROW
        if not a.rows and not b.rows and not again and self._is_one_lane(a, b, ()):
            return WaitScope.NONE
        return WaitScope.TILE

    def _is_one_lane(self, a: Touch, b: Touch, fixed: tuple[str, ...]) -> bool:
        """Whether an element that both touch is the same lane's, of equal rows where ``fixed``."""
        if (
            not (a.told and b.told)
            or a.rows != b.rows
            or a.down != b.down
            or not self._is_same_place(a, b)
        ):
            return False
        if a.form is None or a.form != b.form:
            return False
        if not a.lanes and not b.lanes:
            return a.writes and b.writes
        spread = a.is_spread(LANE, fixed=fixed) and b.is_spread(LANE, fixed=fixed)
        return a.lanes and b.lanes and spread

    def _is_one_cell(self, a: Touch, b: Touch) -> bool:
        """Whether what both touch is of rows of one number."""
        if not self._is_same_place(a, b):
            return False
        cell = a.cell()
        if cell is not None and cell == b.cell():
            return True
        same = a.form == b.form and a.rows and b.rows
        return same and a.is_spread(ROW) and b.is_spread(ROW) and a.has(ROW)

    def _is_same_place(self, a: Touch, b: Touch) -> bool:
        """Whether elements of one number are at one place."""
        if a.buffer == b.buffer:
            return True
        x, y = self.scratch[a.buffer], self.scratch[b.buffer]
        return (x.offset, x.dtype.nbytes, x.of_row) == (y.offset, y.dtype.nbytes, y.of_row)

    def _is_of_row(self, a: Touch) -> bool:
        return a.buffer in self.scratch and self.scratch[a.buffer].of_row

    # Waits.

    def _waits(self, a: Touch, b: Touch, way: Way) -> WaitScope:
        """The threads that wait for each other at least, on a way from one touch to the other."""
        p, q = a.part, b.part
        leaves, enters = bisect_right(self.row_waits[p], a.order), b.order + 1
        rows = len(self.row_waits[p]) > leaves or (self.row_waits[q] or [enters])[0] < enters
        if way is Way.STAGE:
            return WaitScope.NONE
        if way is Way.TURN:
            rows = _any_between(self.row_waits[p], a.order, b.order)
        if way in (Way.TURN, Way.ROWS):
            return WaitScope.ROW if rows else WaitScope.NONE
        if way is Way.TILES:
            tile = any(
                (_any_between(waits, a.order, END) and self._goes_with(k, p))
                or (_any_between(waits, -1, b.order) and self._goes_with(k, q))
                for k, waits in enumerate(self.tile_waits)
            )
        else:
            tile = any(
                _any_between(waits, a.order, b.order)
                and (self._goes_with(k, p) or self._goes_with(k, q))
                for k, waits in enumerate(self.tile_waits)
            )
            rows = rows and p != q
        return WaitScope.TILE if tile else WaitScope.ROW if rows else WaitScope.NONE

    def _goes_with(self, k: int, other: int) -> bool:
        return self.parts[k].span in (None, self.parts[other].span)

    def _apart(self, p: int, q: int) -> bool:
        return not self._goes_with(p, q) and not self._goes_with(q, p)


END = 1 << 62


def _different(touches: Iterable[Touch]) -> list[Touch]:
    """The touches without those that are like another one of the same stage."""
    found: dict[object, Touch] = {}
    for t in touches:
        form = None if t.form is None else frozenset(t.form.items())
        found.setdefault((t.buffer, t.writes, t.order, t.lanes, form, id(t.turns)), t)
    return list(found.values())


def _any_between(waits: list[int], after: int, until: int) -> bool:
    k = bisect_right(waits, after)
    return k < len(waits) and waits[k] <= until
