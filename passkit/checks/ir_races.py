"""The check that no two threads race for an element of memory, in kernels of loop IR.

It looks at the final form alone. Two accesses to one element by different threads, of which one is
a store, are a race unless a barrier of both threads stands between them; threads of different
blocks never wait for each other. Elements are enumerated for all threads of a block and all
iterations, so that the answer is exact where indices are sums of literals, indices of threads and
blocks, and their quotients and remainders. Where an index has strides that only a call knows, each
element must belong to one thread (`passkit.checks.own_elements`). A kernel with any other index is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import frozen

from passkit.checks.accesses import MAX_POINTS, ElementAccess, paths_of
from passkit.checks.affine import UNBOUNDED, Affine, Array, IndexAtom
from passkit.checks.cross_block import axes_of_quotients, race_of_blocks
from passkit.checks.last_block import counters_of, race_of_last_blocks
from passkit.checks.own_elements import has_own_elements
from passkit.errors import CodeGenError
from passkit.ir.loop import WARP, KernelIR, LoopBuffer, StorageScope
from passkit.ir.text import print_statement
from passkit.values.size import Extent


@frozen
class Race:
    """Two accesses without a barrier between them, or one whose index is not understood.

    Attributes:
        buffer: the name of the buffer.
        description: the element and the threads or blocks, as text behind the buffer's name.
        first: an access.
        then: another one, or the same.
    """

    buffer: str
    description: str
    first: ElementAccess
    then: ElementAccess


def check_races(kernel: KernelIR, name: str, sizes: Sequence[Extent], blocks: Extent) -> None:
    """Look for races in a kernel in final form.

    Args:
        kernel: the kernel.
        name: its name, for the error.
        sizes: the values of its size arguments.
        blocks: the number of its blocks.

    Raises: CodeGenError that names the kernel, the buffer, the element and both statements.
    """
    race = next(races(kernel, sizes, blocks), None)
    if race is not None:
        texts = [
            print_statement(a.statement, kernel, {}).splitlines()[0]
            for a in (race.first, race.then)
        ]
        where = f"in '{texts[0]}'" + ("" if race.first is race.then else f" and in '{texts[1]}'")
        raise CodeGenError(f"kernel {name} has a race at {race.buffer}{race.description}, {where}")


def races(kernel: KernelIR, sizes: Sequence[Extent], blocks: Extent) -> Iterator[Race]:
    """Yield the races of a kernel; see `check_races` for the arguments."""
    if blocks == 0:
        return
    size_pairs = zip(kernel.sizes, sizes, strict=True)
    values = {name: n if isinstance(n, int) else None for name, n in size_pairs}
    shared = {b.name: b for b in kernel.arrays if b.scope is StorageScope.SHARED}
    written = {b.name: b for b in kernel.params if b.written}
    partners = {y: _partners(kernel, b) for y, b in written.items()}
    read = {x for names in partners.values() for x in names}
    watched = frozenset((*shared, *written, *read))
    paths = paths_of(kernel, watched, values, blocks if isinstance(blocks, int) else None)
    for path in paths:
        for name in shared:
            own = [a for a in path if a.buffer == name]
            yield from _out_of_bounds(own, shared[name])
            yield from _InBlock(kernel, own).races()
    for y in written:
        races: list[Race] = []
        for x in partners[y] or ("",):  # an output that shares memory with one of several inputs
            race = next(_global_races(kernel, paths, {x, y}, blocks), None)
            if race is None or has_own_elements(kernel, frozenset((x, y)), sizes, blocks):
                break
            races.append(race)
        else:
            yield races[0]


def _global_races(
    kernel: KernelIR, paths: Sequence[list[ElementAccess]], names: set[str], blocks: Extent
) -> Iterator[Race]:
    """Yield the races at parameters that are one array, inside of blocks and among them."""
    for path in paths:
        yield from _InBlock(kernel, [a for a in path if a.buffer in names]).races()
    accesses = [a for path in paths for a in path if a.buffer in names]
    before = [a for a in accesses if a.count is None]
    if blocks != 1 and any(a.is_store for a in before):
        description = race_of_blocks(before)
        if description is not None:
            store = next(a for a in before if a.is_store)
            yield Race(store.buffer, description, before[0], store)
    for path in paths:
        yield from _races_behind(kernel, [a for a in path if a.buffer in names], blocks)


def _races_behind(
    kernel: KernelIR, accesses: Sequence[ElementAccess], blocks: Extent
) -> Iterator[Race]:
    """Yield the races of accesses behind a count of blocks, on one path."""
    behind = [a for a in accesses if a.count is not None]
    if not behind:
        return
    count = behind[0].count
    assert count is not None
    if any(a.count is not count for a in behind):
        yield Race(behind[0].buffer, ": blocks are counted twice", behind[0], behind[-1])
        return
    counters = counters_of(count, blocks if isinstance(blocks, int) else None, kernel.counters)
    if isinstance(counters, str):
        yield Race(behind[0].buffer, f": {counters}", accesses[0], behind[0])
        return
    before = [a for a in accesses if a.count is None]
    description = race_of_last_blocks(before, behind, counters)
    if description is not None:
        yield Race(behind[0].buffer, description, accesses[0], behind[0])


def _partners(kernel: KernelIR, output: LoopBuffer) -> list[str]:
    """Return the inputs that may share memory with an output: those of the same size."""
    if output.name not in kernel.aliased:
        return []
    return [
        b.name
        for b in kernel.params
        if not b.written
        and b.name in kernel.aliased
        and b.dtype.nbytes == output.dtype.nbytes
        and b.extent == output.extent
    ]


def _out_of_bounds(accesses: Sequence[ElementAccess], buffer: LoopBuffer) -> Iterator[Race]:
    """Yield the accesses beyond the extent of a shared array."""
    assert isinstance(buffer.extent, int)
    for a in accesses:
        low, high = _hull(a)
        if not a.index.terms and low <= high and (low < 0 or high >= buffer.extent):
            number = high if high >= buffer.extent else low
            shown = "[?]: an index is not understood" if abs(number) >= UNBOUNDED else f"[{number}]"
            description = f"{shown}, which is not within its extent {buffer.extent}"
            yield Race(buffer.name, description, a, a)


def _hull(a: ElementAccess) -> tuple[int, int]:
    """Return the lowest and highest number of an access; (0, -1) if no thread makes it."""
    low, high, inside = np.broadcast_arrays(a.index.low, a.index.high, a.mask)
    if not inside.any():
        return 0, -1
    return int(low[inside].min()), int(high[inside].max())


@frozen(eq=False)
class _Footprint:
    """The elements of an access, and which threads make it.

    Attributes:
        elements: the elements, each once, in order.
        first_thread: the lowest thread that accesses each of them.
        last_thread: the highest one.
    """

    elements: Array
    first_thread: Array
    last_thread: Array


class _InBlock:
    """The search for races among the threads of a block, in one array.

    Where the index has quotients of the block and a thread index, `passkit.checks.blocks` compares
    threads that differ in it.
    """

    def __init__(self, kernel: KernelIR, accesses: Sequence[ElementAccess]) -> None:
        self.launch, self.accesses = kernel.launch, accesses
        self.footprints: dict[int, _Footprint | None] = {}

    def races(self) -> Iterator[Race]:
        """Yield the races."""
        for k, a in enumerate(self.accesses):
            for b in self.accesses[k:]:
                is_ordered = a.block_epoch != b.block_epoch or a.excludes(b)
                if (a.is_store or b.is_store) and not is_ordered:
                    race = self._race(a, b)
                    if race is not None:
                        yield race

    def _race(self, a: ElementAccess, b: ElementAccess) -> Race | None:
        """Return the race between two accesses without a barrier of the block between them."""
        first, then = self._footprint(a), self._footprint(b)
        if any(f is not None and not f.elements.size for f in (first, then)):
            return None
        if a.index.is_unbounded or b.index.is_unbounded or a.index.terms != b.index.terms:
            return Race(a.buffer, "[?]: indices that are not understood", a, b)
        if first is None or then is None:
            return Race(a.buffer, "[?]: indices of too many values", a, b)
        common, low, high = first.elements, first.first_thread, first.last_thread
        if then is not first:
            common, left, right = np.intersect1d(
                first.elements, then.elements, assume_unique=True, return_indices=True
            )
            low = np.minimum(first.first_thread[left], then.first_thread[right])
            high = np.maximum(first.last_thread[left], then.last_thread[right])
        group = WARP if a.warp_epoch != b.warp_epoch else 1  # the threads that wait in between
        conflicts = np.flatnonzero(low // group != high // group)
        if not conflicts.size:
            return None
        at = int(conflicts[0])
        names = [f"({t // self.launch.x}, {t % self.launch.x})" for t in (low[at], high[at])]
        element = _element(a.index, int(common[at]))
        description = f"[{element}], of threads {names[0]} and {names[1]} (y, x)"
        return Race(a.buffer, description, a, b)

    def _footprint(self, a: ElementAccess) -> _Footprint | None:
        """Return the elements of an access and their threads; None if there are too many."""
        if id(a) not in self.footprints:
            self.footprints[id(a)] = self._new_footprint(a)
        return self.footprints[id(a)]

    def _new_footprint(self, a: ElementAccess) -> _Footprint | None:
        """Return the elements of an access and their threads; None if there are too many."""
        launch, rank = self.launch, a.index.low.ndim
        x = np.arange(launch.x).reshape([-1 if k == 1 else 1 for k in range(rank)])
        y = np.arange(launch.y).reshape([-1 if k == 0 else 1 for k in range(rank)])
        inside = axes_of_quotients(a.index)
        mask = a.mask.any(axis=tuple(inside), keepdims=True)
        thread = (0 * y if 0 in inside else y * launch.x) + (0 * x if 1 in inside else x)
        thread = thread.min(axis=tuple(inside), keepdims=True)
        low, high, mask, thread = np.broadcast_arrays(a.index.low, a.index.high, mask, thread)
        if not a.index.is_exact:  # all that lies between the bounds of a thread
            axes = tuple(range(2, rank))
            low = np.where(mask, low, UNBOUNDED).min(axis=axes)
            high = np.where(mask, high, -UNBOUNDED).max(axis=axes)
            thread, mask = thread.min(axis=axes), mask.any(axis=axes)
        low, high, thread = low[mask], high[mask], thread[mask]
        if not low.size:
            return _Footprint(low, thread, thread)
        if low.size > MAX_POINTS or int((high - low).max()) > MAX_POINTS:
            return None
        if not np.array_equal(low, high):
            counts = np.maximum(high - low + 1, 0)  # 0 where the conditions contradict each other
            if counts.sum() > MAX_POINTS:
                return None
            ends = np.cumsum(counts)
            offsets = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
            low, thread = np.repeat(low, counts) + offsets, np.repeat(thread, counts)
        if (low[1:] > low[:-1]).all():
            return _Footprint(low, thread, thread)
        order = np.argsort(low, kind="stable")
        elements, thread = low[order], thread[order]
        starts = np.flatnonzero(np.concatenate([[True], elements[1:] != elements[:-1]]))
        first, last = np.minimum.reduceat(thread, starts), np.maximum.reduceat(thread, starts)
        return _Footprint(elements[starts], first, last)


def _element(index: Affine, number: int) -> str:
    """Return an element as text: the terms of its index, and a number."""
    texts = [f"{_shown(atom)} * {c}" for atom, c in index.terms]
    return " + ".join([*texts, str(number)])


def _shown(atom: IndexAtom) -> str:
    """Return an atom as text."""
    if atom.inner is None:
        return atom.name
    return f"({_element(atom.inner, 0)} … {atom.name} {atom.divisor})"
