"""Ties: loops over lanes that meet in memory with no wait between them.

There a lane reads what it has stored itself. So bundles must give the same elements to the same
lane in all of them, in all turns of the loops around them, or there are none.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set

from attrs import frozen

from passkit.ast import Expr
from passkit.ast.stage import Buffer, Dot, Fold, KernelAST, Level, Loop, Phase, Stage, Store
from passkit.ast.tidy import expressions
from passkit.ast.walk import loads
from passkit.dialects.base import BundleTemplates
from passkit.dialects.bundled import Bundle, Tie, count_of, even_in, found_in, plain_of
from passkit.dialects.wholes import pays, whole_count
from passkit.values.size import Extent, at_least

FREE, APART = None, Tie(0, ())
"""A loop that may have bundles of its own; one that has none."""


@frozen
class _Touched:
    """A stage with the buffers that it reads and writes."""

    stage: Stage | Dot
    read: frozenset[str]
    written: frozenset[str]

    @property
    def lane(self) -> Loop | None:
        """Its loop over lanes."""
        if isinstance(self.stage, Dot):
            return None
        return next((x for x in self.stage.loops if x.level is Level.CTA), None)

    @property
    def own(self) -> frozenset[str]:
        """What it stores and loads again in another turn of the loops around its lanes."""
        stage = self.stage
        if isinstance(stage, Dot):
            return frozenset()
        if any(isinstance(s, Fold) and s.buffer is not None for s in stage.body):
            return self.written
        serial = any(x.level is Level.THREAD for x in stage.loops)
        return self.read & self.written if serial else frozenset()


def ties_of(
    phase: Phase, ast: KernelAST, aliased: Set[str], templates: BundleTemplates
) -> list[Tie | None]:
    """The tie of each stage of a phase of a kernel, in order.

    Buffers that are ``aliased`` have each other's bytes, as has scratch that lies in one place.
    """
    names = {**_places(ast.scratch), **dict.fromkeys(aliased, "")}
    stages, sizes = [_touched(s, names) for s in phase.stages], ast.sizes
    ties: list[Tie | None] = [FREE] * len(stages)
    for span in _intervals(phase):
        for together in _meeting([(k, stages[k]) for k in span]):
            tie = _tie([stages[k] for k in together], sizes, templates)
            for k in together:
                ties[k] = tie
    return ties


def _places(scratch: Iterable[Buffer]) -> dict[str, str]:
    """A name for the bytes of each scratch array: that of one which has some of them too."""
    found: list[tuple[str, Extent, Extent]] = []
    names: dict[str, str] = {}
    for b in scratch:
        if b.offset is None:
            continue
        end = b.offset + b.extent * b.dtype.nbytes
        meets = [n for n, first, last in found if not _apart(first, last, b.offset, end)]
        found.append((b.name, b.offset, end))
        names[b.name] = names[meets[0]] if meets else b.name
        joined = {names[n] for n in meets}
        names = {n: names[b.name] if x in joined else x for n, x in names.items()}
    return names


def _apart(first: Extent, last: Extent, begin: Extent, end: Extent) -> bool:
    """Whether two ranges of bytes surely have none in common."""
    return at_least(begin - last, 0) or at_least(first - end, 0)


def _touched(stage: Stage | Dot, places: Mapping[str, str]) -> _Touched:
    """A stage with what it reads and writes, by the names of their bytes."""
    if isinstance(stage, Dot):
        read, written = {stage.a.buffer, stage.b.buffer}, {stage.c.buffer}
    else:
        statements = (*stage.before, *stage.body, *stage.after)
        read = {x.buffer for s in statements for e in expressions(s) for x in loads(e)}
        stores = [s.buffer for s in statements if isinstance(s, (Store, Fold))]
        written = {b for b in stores if b is not None}
    names = (frozenset(places.get(b, b) for b in found) for found in (read, written))
    return _Touched(stage, *names)


def _intervals(phase: Phase) -> Iterator[list[int]]:
    """The stages between two waits, by number: as tiles and rows repeat, ends meet begins."""
    numbers, begins, count = list[int](), list[tuple[int, int]](), 0
    for part in phase.parts:
        first = len(numbers)
        for k, stage in enumerate(part.stages):
            count += stage.waits or (k == 0 and part.waits)
            numbers.append(count)
        if part.rows is not None and part.stages:
            begins.append((numbers[first], numbers[-1]))
    if not numbers:
        return
    same = {n: n for n in numbers}
    for one, other in [*begins, (numbers[0], numbers[-1])]:
        old, new = same[other], same[one]
        same = {n: new if x == old else x for n, x in same.items()}
    for interval in dict.fromkeys(same.values()):
        yield [k for k, n in enumerate(numbers) if same[n] == interval]


def _meeting(stages: Sequence[tuple[int, _Touched]]) -> Iterator[list[int]]:
    """Stages of an interval that meet in a buffer, by number: directly, or through others."""
    left = dict(stages)
    while left:
        first, own = left.popitem()
        found, names = {first: own}, own.read | own.written
        grew = True
        while grew:
            more = {k: t for k, t in left.items() if any(_meet(t, x) for x in found.values())}
            grew = bool(more)
            found |= more
            left = {k: t for k, t in left.items() if k not in more}
        if len(found) > 1 or (names and own.own):
            yield sorted(found)


def _meet(a: _Touched, b: _Touched) -> bool:
    return bool(a.written & (b.read | b.written) or b.written & a.read)


def _tie(stages: Iterable[_Touched], sizes: Container[str], templates: BundleTemplates) -> Tie:
    """What the loops of stages that meet agree upon."""
    pairs: list[tuple[Loop, list[Bundle]]] = []
    counts, paying = list[int](), False
    for touched in stages:
        lane, stage = touched.lane, touched.stage
        if lane is None or isinstance(stage, Dot):
            return APART
        plain = plain_of(stage.body)
        found = found_in(lane, plain)
        if found is None:
            return APART
        pairs.append((lane, found))
        if templates.computes:
            counts.append(whole_count(lane, plain, found, templates))
            paying |= pays(plain)
    (first, _), places = pairs[0], [b for _, found in pairs for b in found]
    if not places or any((x.start, x.stop) != (first.start, first.stop) for x, _ in pairs):
        return APART
    if templates.computes:
        return Tie(min(counts) if paying else 0, ())
    count = count_of(first, places, templates)
    if not count:
        return APART
    even: dict[Expr, None] = {}
    for lane, found in pairs:
        own = even_in(lane, found, count, sizes)
        if own is None:
            return APART
        even |= dict.fromkeys(own)
    return Tie(count, tuple(even))
