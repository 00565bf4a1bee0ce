"""The check that no two threads race for an element of memory, in kernel ASTs.

It looks at the kernel AST that is printed, and not at how barriers were inserted. Two accesses to
an element by different threads, of which one is a store, need a barrier between them: along the
stages, from row to row, from part to part and from tile to tile. A scratch array whose bytes
another array has, too, must not lose a value that is loaded later.

Tiles never wait for each other within a phase, so that none may load what another one stores. The
check assumes that tiles, and the rows of a part, store different elements of outputs, provided that
the index depends on the tile, or on the row: the interpreter of blocks looks at every element.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import evolve, frozen

from passkit.ast import Var
from passkit.ast.stage import Buffer, KernelAST, Phase, Place
from passkit.checks.cross_tile import cross_tile_races
from passkit.checks.equivalent_branches import Fact, equivalent_branches, representatives
from passkit.checks.overlap import ScratchMemory, computes_tiles_of, have_common_tile
from passkit.checks.required_barriers import BarrierRequirements, Order, RequiredBarrier
from passkit.checks.stage_accesses import PhaseAccesses, StageAccess
from passkit.checks.stage_indices import ROW, THREAD
from passkit.errors import CodeGenError
from passkit.values.size import Extent, Size, substitute


@frozen
class StageRace:
    """Two accesses to memory by different threads that no barrier separates.

    Attributes:
        first: an access.
        then: an access that may come after it.
        order: where the first one stands, seen from the second one.
    """

    first: StageAccess
    then: StageAccess
    order: Order

    def __str__(self) -> str:
        a, b, order = self.first, self.then, self.order.value
        verbs = ("reads", "writes")
        begin = f"stage {b.stage_name} {verbs[b.is_store]} {b.buffer}"
        if a.buffer == b.buffer:
            return f"{begin}, which {a.stage_name} {verbs[a.is_store]} {order}"
        memory = f"whose memory {a.stage_name} {verbs[a.is_store]} {order}"
        return f"{begin}, {memory} as {a.buffer}"


def check_stage_races(ast: KernelAST, name: str, sizes: Sequence[Extent] = ()) -> None:
    """Look for races in a kernel.

    Args:
        ast: the kernel.
        name: its name, for the error.
        sizes: the values of its size arguments; without them they may be anything.

    Raises: CodeGenError that names the kernel, the buffer and both stages.
    """
    race = next(stage_races(ast, sizes), None)
    if race is not None:
        raise CodeGenError(
            f"kernel {name} has a race: {race}, by another thread, without a barrier between "
            f"them; transforms.insert_barriers inserts the barriers of an AST"
        )


def stage_races(ast: KernelAST, sizes: Sequence[Extent] = ()) -> Iterator[StageRace]:
    """Yield the races of a kernel, phase by phase: between phases every tile waits for all.

    ``sizes`` are the values of its size arguments; without them they may be anything.
    """
    extents = sizes or [Size.symbol(n) for n in ast.sizes]
    values = dict(zip(ast.sizes, extents, strict=True))
    shared = (b for b in ast.scratch if b.place is Place.SHARED)
    scratch = ScratchMemory(_substituted(b, values) for b in shared)
    watched = scratch.arrays.keys() | {b.name for b in ast.params if b.written}
    for phase in ast.phases:
        collector = PhaseAccesses(phase, watched, values)
        outputs = [a for a in collector.accesses if not scratch.has(a)]
        for a, b in cross_tile_races(phase, outputs, values):
            yield StageRace(a, b, Order.NEXT_TILE)
        yield from _PhaseCheck(phase, collector, scratch).races()


def _substituted(array: Buffer, values: Mapping[str, Extent]) -> Buffer:
    """Return an array with the values of the size arguments in its extent and offset."""
    offset = None if array.offset is None else substitute(array.offset, values)
    return evolve(array, extent=substitute(array.extent, values), offset=offset)


class _PhaseCheck:
    """The accesses and barriers of a phase.

    ``row_barriers`` and ``tile_barriers`` are the positions of each part's barriers, in the
    numbering of `StageAccess.order`. Of equivalent branches only representatives are compared.
    """

    def __init__(self, phase: Phase, collector: PhaseAccesses, scratch: ScratchMemory) -> None:
        self.parts, self.tile, self.scratch = phase.parts, phase.tile.var, scratch
        self.requirements = BarrierRequirements(phase, scratch)
        self.row_barriers: list[list[int]] = []
        self.tile_barriers: list[list[int]] = []
        for part, first in zip(phase.parts, collector.first_order, strict=True):
            of_stages = [first + 1 + k for k, s in enumerate(part.stages) if s.barrier_before]
            of_part = [first] * part.barrier_before
            self.row_barriers.append([] if part.rows is None else of_stages)
            self.tile_barriers.append(of_part if part.rows is not None else of_part + of_stages)
        classes = equivalent_branches(phase.parts, scratch.arrays, self._facts(collector))
        chosen = representatives(classes)
        self.accesses = [a for a in collector.accesses if a.part in chosen]

    def _facts(self, collector: PhaseAccesses) -> Iterator[Fact]:
        """Yield what the check reads of accesses and barriers, relative to their branch."""
        for k, first in enumerate(collector.first_order):
            barriers = [
                tuple(order - first for order in x[k])
                for x in (self.row_barriers, self.tile_barriers)
            ]
            yield k, "", (self.parts[k].rows is None, *barriers)
        for a in collector.accesses:
            flags = a.is_store, a.executor, a.in_rows, a.follows_reduction
            yield a.part, a.buffer, (a.stage, a.index, a.element.scope.trip_counts, *flags)

    def races(self) -> Iterator[StageRace]:
        """Yield the races: values that are overwritten, and accesses without a barrier between."""
        for accesses in self.scratch.by_memory(self.accesses):
            is_overlapping = len({a.buffer for a in accesses}) > 1
            if is_overlapping:
                yield from self._overwritten(accesses)
            if not self._are_of_one_thread(accesses, is_overlapping):
                yield from self._unordered(_distinct(accesses))

    # Memory.

    def _overwritten(self, accesses: Iterable[StageAccess]) -> Iterator[StageRace]:
        """Yield loads in a tile behind a store to another array that has the same bytes."""
        last: dict[str, StageAccess] = {}
        for a in accesses:
            if a.is_store:
                last = {
                    n: store for n, store in last.items() if not self.scratch.overlap(n, a.buffer)
                }
                last[a.buffer] = a
                continue
            for store in last.values():
                if not have_common_tile(self.parts[store.part], self.parts[a.part]):
                    continue
                if store.buffer != a.buffer and self.scratch.overlap(store.buffer, a.buffer):
                    yield StageRace(store, a, Order.TILE)

    # Threads.

    def _are_of_one_thread(self, accesses: list[StageAccess], is_overlapping: bool) -> bool:
        """Return whether each element is accessed by one thread only: a quick test of most cases.

        Args:
            accesses: the accesses to a buffer, or to several that may overlap.
            is_overlapping: whether there are several buffers.
        """
        a = accesses[0]
        is_scratch, of_row = self.scratch.has(a), self.scratch.is_of_row(a)
        if not a.is_per_thread or (is_scratch and a.element.depends_on(self.tile)):
            return False
        if a.in_rows and not of_row and not a.element.depends_on(ROW):
            return False
        fixed = frozenset[Var]() if is_scratch else frozenset([ROW])
        loops = [THREAD] if of_row or not is_scratch else [THREAD, ROW]
        return all(
            b.has_index_of(a)
            and (b.in_rows, b.executor) == (a.in_rows, a.executor)
            and (is_scratch or b.part == a.part)
            and self.scratch.have_same_elements(a, b)
            and b.element.is_injective(
                *(b.element.scope.loops if is_overlapping else loops), fixed=fixed
            )
            for b in accesses
        )

    def _unordered(self, accesses: list[StageAccess]) -> Iterator[StageRace]:
        """Yield the pairs of accesses that need a barrier of more threads than there is."""
        for a in accesses:
            for b in accesses:
                if not (a.is_store or b.is_store):
                    continue
                if a.buffer != b.buffer and not self.scratch.overlap(a.buffer, b.buffer):
                    continue  # each overlaps a third one
                for order, required in self.requirements.between(a, b):
                    if required > self._barrier_between(a, b, order):
                        yield StageRace(a, b, order)

    # Barriers.

    def _barrier_between(self, a: StageAccess, b: StageAccess, order: Order) -> RequiredBarrier:
        """Return the widest barrier that certainly stands between two accesses."""
        p, q = a.part, b.part
        first_after, end = bisect_right(self.row_barriers[p], a.order), b.order + 1
        in_row = len(self.row_barriers[p]) > first_after
        in_row |= (self.row_barriers[q] or [end])[0] < end
        if order is Order.STAGE:
            return RequiredBarrier.NONE
        if order is Order.ROW:
            in_row = _has_between(self.row_barriers[p], a.order, b.order)
        if order in (Order.ROW, Order.NEXT_ROW):
            return RequiredBarrier.ROW if in_row else RequiredBarrier.NONE
        if order is Order.NEXT_TILE:
            in_tile = any(
                (_has_between(barriers, a.order, END) and self._computes_tiles_of(k, p))
                or (_has_between(barriers, -1, b.order) and self._computes_tiles_of(k, q))
                for k, barriers in enumerate(self.tile_barriers)
            )
        else:
            in_tile = any(
                _has_between(barriers, a.order, b.order)
                and (self._computes_tiles_of(k, p) or self._computes_tiles_of(k, q))
                for k, barriers in enumerate(self.tile_barriers)
            )
            in_row = in_row and p != q
        return (
            RequiredBarrier.TILE
            if in_tile
            else RequiredBarrier.ROW
            if in_row
            else RequiredBarrier.NONE
        )

    def _computes_tiles_of(self, k: int, other: int) -> bool:
        """Return whether part ``k`` computes each tile of another one."""
        return computes_tiles_of(self.parts[k], self.parts[other])


END = 1 << 62
"""A position behind all stages."""


def _distinct(accesses: Iterable[StageAccess]) -> list[StageAccess]:
    """Return the accesses without those that equal an earlier one of the same stage."""
    distinct: dict[object, StageAccess] = {}
    for a in accesses:
        key = a.buffer, a.is_store, a.order, a.is_per_thread, a.index, id(a.element.scope)
        distinct.setdefault(key, a)
    return list(distinct.values())


def _has_between(orders: list[int], after: int, until: int) -> bool:
    """Return whether one of these positions is behind ``after`` and not behind ``until``."""
    k = bisect_right(orders, after)
    return k < len(orders) and orders[k] <= until
