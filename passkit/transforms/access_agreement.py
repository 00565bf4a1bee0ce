"""Agreement of loops over threads that meet in memory with no barrier between them.

There a thread reads what it has stored itself. So vector accesses must give the same elements to
the same thread in all of them, in all iterations of the loops around them, or there are none.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set

from attrs import evolve, frozen

from passkit.ast import Expr
from passkit.ast.stage import Dot, Fold, KernelAST, Level, Loop, Phase, Stage, Store
from passkit.ast.tidy import loads_of
from passkit.checks.overlap import ScratchMemory
from passkit.ir.features import AccessFeatures
from passkit.ir.threads import AccessArray
from passkit.transforms.thread_accesses import (
    Agreement,
    access_count,
    consecutive_elements,
    plain_statements,
    required_multiples,
)
from passkit.transforms.thread_vectors import gains_by_vectors, vector_count

FREE, APART = None, Agreement(0, ())
"""A loop that may have vector accesses of its own; one that has none."""


@frozen
class _Touched:
    """A stage with the buffers that it reads and writes."""

    stage: Stage | Dot
    read: frozenset[str]
    written: frozenset[str]

    @property
    def lane(self) -> Loop | None:
        """Its loop over threads."""
        if isinstance(self.stage, Dot):
            return None
        return next((x for x in self.stage.loops if x.level is Level.CTA), None)

    @property
    def own(self) -> frozenset[str]:
        """The buffers that it stores to and loads again in another iteration around its threads."""
        stage = self.stage
        if isinstance(stage, Dot):
            return frozenset()
        if any(isinstance(s, Fold) and s.buffer is not None for s in stage.body):
            return self.written
        serial = any(x.level is Level.THREAD for x in stage.loops)
        return self.read & self.written if serial else frozenset()


def agreements_of(
    phase: Phase, ast: KernelAST, aliased: Set[str], features: AccessFeatures
) -> list[Agreement | None]:
    """Return the agreement of each stage of a phase of a kernel, in order.

    Buffers that are ``aliased`` have each other's bytes, as has scratch that lies in one place:
    arrays of rows count as if they lay in the memory of the tile.
    ``features`` are the vector accesses of the language.
    """
    memory = ScratchMemory(evolve(b, of_row=False) for b in ast.scratch)
    groups = memory.groups(memory.arrays)
    names = {name: group[0] for group in groups for name in group} | dict.fromkeys(aliased, "")
    stages, sizes = [_touched(s, names) for s in phase.stages], ast.sizes
    agreements: list[Agreement | None] = [FREE] * len(stages)
    for span in _intervals(phase):
        for together in _meeting([(k, stages[k]) for k in span]):
            agreement = _agreement([stages[k] for k in together], sizes, features)
            for k in together:
                agreements[k] = agreement
    return agreements


def _touched(stage: Stage | Dot, places: Mapping[str, str]) -> _Touched:
    """Return a stage with what it reads and writes, by the names of their bytes."""
    if isinstance(stage, Dot):
        read, written = {stage.a.buffer, stage.b.buffer}, {stage.c.buffer}
    else:
        statements = (*stage.before, *stage.body, *stage.after)
        read = {x.buffer for x in loads_of(statements)}
        stores = [s.buffer for s in statements if isinstance(s, (Store, Fold))]
        written = {b for b in stores if b is not None}
    names = (frozenset(places.get(b, b) for b in buffers) for buffers in (read, written))
    return _Touched(stage, *names)


def _intervals(phase: Phase) -> Iterator[list[int]]:
    """Yield the stages between two barriers, by number: tiles and rows repeat, ends meet begins."""
    numbers, begins, count = list[int](), list[tuple[int, int]](), 0
    for part in phase.parts:
        first = len(numbers)
        for k, stage in enumerate(part.stages):
            count += stage.barrier_before or (k == 0 and part.barrier_before)
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
    """Yield stages of an interval that meet in a buffer, by number: also through others."""
    left = dict(stages)
    while left:
        first, own = left.popitem()
        group, names = {first: own}, own.read | own.written
        grew = True
        while grew:
            more = {k: t for k, t in left.items() if any(_meet(t, x) for x in group.values())}
            grew = bool(more)
            group |= more
            left = {k: t for k, t in left.items() if k not in more}
        if len(group) > 1 or (names and own.own):
            yield sorted(group)


def _meet(a: _Touched, b: _Touched) -> bool:
    return bool(a.written & (b.read | b.written) or b.written & a.read)


def _agreement(
    stages: Iterable[_Touched], sizes: Container[str], features: AccessFeatures
) -> Agreement:
    """Return what the loops of stages that meet agree upon."""
    pairs: list[tuple[Loop, list[AccessArray]]] = []
    counts, gains = list[int](), False
    for touched in stages:
        lane, stage = touched.lane, touched.stage
        if lane is None or isinstance(stage, Dot):
            return APART
        plain = plain_statements(stage.body)
        own = consecutive_elements(lane, plain)
        if own is None:
            return APART
        pairs.append((lane, own))
        if features.vector_functions is not None:
            counts.append(vector_count(lane, plain, own, features))
            gains |= gains_by_vectors(plain)
    (first, _), arrays = pairs[0], [a for _, own in pairs for a in own]
    if not arrays or any((x.start, x.stop) != (first.start, first.stop) for x, _ in pairs):
        return APART
    if features.vector_functions is not None:
        return Agreement(min(counts) if gains else 0, ())
    count = access_count(first, arrays, features)
    if not count:
        return APART
    multiples: dict[Expr, None] = {}
    for lane, own in pairs:
        required = required_multiples(lane, own, count, sizes)
        if required is None:
            return APART
        multiples |= dict.fromkeys(required)
    return Agreement(count, tuple(multiples))
