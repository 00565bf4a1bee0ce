"""The shared memory of a stitched kernel's block: arrays of values, and of operands of products."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from attrs import evolve, frozen

from passkit.ir.loop import WARP
from passkit.schedule.block import BlockSchedule, ProductMap, RowMap
from passkit.schedule.block_nest import VECTOR, BlockNest, Operand, ProductPart, RowPart
from passkit.values.dtype import DType


def vector_of(size: int) -> int:
    """Return the elements of the accesses to ``size`` consecutive ones."""
    return 4 if size % 4 == 0 else 2 if size % 2 == 0 else 1


def odd_pitch(elements: int) -> int:
    """Return an odd number of vectors that has at least so many elements, as elements.

    So vectors of rows that follow each other lie in different banks.
    """
    vectors = -(-elements // VECTOR)
    return VECTOR * (vectors + 1 - vectors % 2)


def threads_of_rows(part: RowPart, own: RowMap, threads: int) -> int:
    """Return how many of the threads of a block have rows: whole warps, if there are few rows."""
    needed = -(-part.rows * own.lanes // WARP) * WARP
    return min(threads, needed)


def rows_of_passes(part: RowPart, own: RowMap, threads: int) -> int:
    """Return the rows that threads go through, those beyond the last one included."""
    at_once = threads_of_rows(part, own, threads) // own.lanes
    return -(-part.rows // at_once) * at_once


def with_arrays(nest: BlockNest, schedule: BlockSchedule) -> BlockSchedule:
    """Return a schedule with the arrays in shared memory that its maps need.

    Values whose bytes the tiling shares, so that a part replaces one by the other, lie in one
    array. So do values of one dtype of which one is written when no later part reads the other: the
    result of a product replaces its operands when all threads have read them. Arrays have room for
    the rows and columns that register blocks, or the threads of a pass over rows, have beyond the
    last one. Those of `BlockNest.flat` do not, and have memory of their own while a part reads or
    writes them: a thread may read what another one replaces. So have operands of products that lie
    in device memory.

    Args:
        nest: the parts of the kernel, whose values have no pitches yet.
        schedule: the schedule.
    """
    if schedule.is_flat:
        nest = nest.with_flat_arrays()
    first: dict[tuple[object, ...], str] = {}
    names = {
        b.name: b.name
        if b.name in nest.flat
        else first.setdefault((b.offset, b.extent, b.dtype), b.name)
        for b in nest.shared
    }
    rows, lengths = _padded_rows(nest, schedule, names), _row_lengths(nest, schedule, names)
    pitches = {
        name: length if name in nest.flat else odd_pitch(length) for name, length in lengths.items()
    }
    extents = {b.name: b.extent for b in nest.shared}
    homes = _homes(nest, names)
    dtypes = {b.name: b.dtype for b in nest.shared}
    arrays: dict[str, tuple[DType, int]] = {}
    for name in rows:
        home = homes[name]
        _, extent = arrays.get(home, (dtypes[name], 0))
        own = extents[name] if name in nest.flat else rows[name] * pitches.get(name, 1)
        assert isinstance(own, int)  # the planner saw to that
        arrays[home] = dtypes[name], max(extent, own)
    for operand in staged_operands(nest, schedule):
        product = nest.parts[operand.product]
        assert isinstance(product, ProductPart)
        _, extent = arrays.get(operand.name, (product.dtype, 0))
        arrays[operand.name] = product.dtype, max(extent, operand.extent)
    pitched = zip(nest.values, nest.shared, strict=True)
    return evolve(
        schedule,
        pitches=tuple(
            (value, pitches[names[b.name]]) for value, b in pitched if names[b.name] in pitches
        ),
        homes=tuple(homes[names[b.name]] for b in nest.shared),
        arrays=tuple((name, *array) for name, array in arrays.items()),
    )


def _homes(nest: BlockNest, names: Mapping[str, str]) -> dict[str, str]:
    """Return the array of each value, by the name of one value that lies in it.

    ``names`` has for each value the one that it replaces, or itself.
    """
    begins: dict[str, int] = {}
    ends: dict[str, int] = {}
    for number, part in enumerate(nest.parts):
        for name in (home for n, home in names.items() if n in part.writes):
            begins.setdefault(name, number)
        for name in (home for n, home in names.items() if n in part.reads | part.writes):
            ends[name] = number
    dtypes = {b.name: b.dtype for b in nest.shared}
    homes: dict[str, str] = {}
    free: dict[str, int] = {}  # arrays, and the part behind which, or in which, they are free
    for name in sorted(begins, key=begins.__getitem__):
        begin = begins[name]
        is_product = isinstance(nest.parts[begin], ProductPart)
        fits = (a for a, end in free.items() if end < begin + is_product)
        array = next((a for a in fits if dtypes[a] is dtypes[name]), name)
        homes[name] = array
        free[array] = ends[name]
    return homes


def _row_lengths(
    nest: BlockNest, schedule: BlockSchedule, names: Mapping[str, str]
) -> dict[str, int]:
    """Return for arrays of rows the elements of a row, those beyond the last one included.

    ``names`` has the array of each value.
    """
    lengths: dict[str, int] = {}

    def touch(buffer: str, length: int) -> None:
        if buffer in names:
            lengths[names[buffer]] = max(lengths.get(names[buffer], 0), length)

    for part, own in zip(nest.parts, schedule.parts, strict=True):
        if isinstance(part, ProductPart):
            assert isinstance(own, ProductMap)
            if part.c.buffer not in nest.flat:
                touch(part.c.buffer, own.columns * own.across)
            for side in sides_of(part, own):
                if side.operand.buffer not in nest.flat:
                    touch(side.operand.buffer, side.reach)
    for b, length in zip(nest.shared, nest.lengths, strict=True):
        if length:
            touch(b.name, length)
    return lengths


def _padded_rows(
    nest: BlockNest, schedule: BlockSchedule, names: Mapping[str, str]
) -> dict[str, int]:
    """Return for each array the rows that parts read or write, those beyond the last included.

    ``names`` has the array of each value.
    """
    rows = dict.fromkeys(names.values(), 1)

    def touch(buffer: str, count: int) -> None:
        if buffer in names:
            rows[names[buffer]] = max(rows[names[buffer]], count)

    for part, own in zip(nest.parts, schedule.parts, strict=True):
        if isinstance(part, ProductPart):
            assert isinstance(own, ProductMap)
            touch(part.c.buffer, rows_of_heads(part, part.rows, own.rows * own.down))
            for side in sides_of(part, own):
                touch(side.operand.buffer, side.rows)
        elif isinstance(part, RowPart):
            assert isinstance(own, RowMap)
            count = rows_of_passes(part, own, schedule.threads)
            for name in names:
                if name in part.reads | part.writes:
                    touch(name, count)
    return rows


def rows_of_heads(part: ProductPart, rows: int, padded: int) -> int:
    """Return the rows of all heads of a tile, of which the last one has ``padded``.

    Those of a head follow the ``rows`` of the one before.
    """
    return (part.heads - 1) * rows + max(rows, padded)


@frozen
class ProductSide:
    """An operand of a product, as far as register blocks reach into it.

    Attributes:
        operand: the operand.
        is_rows: whether it is the first one, whose rows are those of the result.
        is_along: whether its elements follow each other along the steps.
        lines: the rows of an array of a head: rows or columns of the result, or else steps.
        length: the elements of such a row.
        rows: the rows of all heads that are read.
        reach: the elements of a row that are read.
    """

    operand: Operand
    is_rows: bool
    is_along: bool
    lines: int
    length: int
    rows: int
    reach: int


def sides_of(
    part: ProductPart, own: ProductMap, most_steps: int | None = None
) -> tuple[ProductSide, ProductSide]:
    """Return both operands of a product.

    Args:
        part: the product.
        own: how threads share it out.
        most_steps: the steps that are looked at; None for all.
    """
    steps = part.steps if most_steps is None else min(part.steps, most_steps)
    sides = (
        (part.a, part.rows, own.rows * own.down),
        (part.b, part.columns, own.columns * own.across),
    )
    sides_read = []
    for operand, count, padded in sides:
        is_along = operand.is_along
        lines, length, reach = (count, steps, steps) if is_along else (steps, count, padded)
        heads = 1 if operand.head == 0 else part.heads
        rows = (heads - 1) * lines + (max(count, padded) if is_along else lines)
        is_rows = operand is part.a
        sides_read.append(ProductSide(operand, is_rows, is_along, lines, length, rows, reach))
    return sides_read[0], sides_read[1]


@frozen
class StagedOperand:
    """An operand of a product that is copied to an array of its lines in shared memory.

    Attributes:
        product: the number of the part.
        side: the operand.
        lines: the lines that are copied at a time, of all heads: rows of the array.
        pitch: the elements from one line to the next.
        name: the name of the array.
    """

    product: int
    side: ProductSide
    lines: int
    pitch: int
    name: str

    @property
    def extent(self) -> int:
        """Return the elements of the array."""
        return self.side.rows * self.pitch


def staged_operands(nest: BlockNest, schedule: BlockSchedule) -> list[StagedOperand]:
    """Return the operands of all products that lie in device memory, or in flat arrays."""
    shared = {b.name for b in nest.shared} - nest.flat
    operands: list[StagedOperand] = []
    for number, (part, own) in enumerate(zip(nest.parts, schedule.parts, strict=True)):
        if isinstance(part, ProductPart):
            assert isinstance(own, ProductMap)
            suffix = str(number) if schedule.is_early else ""
            operands += copies_of(number, part, own, shared, suffix)
    return operands


def copies_of(
    number: int, part: ProductPart, own: ProductMap, shared: Set[str], suffix: str = ""
) -> Iterator[StagedOperand]:
    """Yield the operands of a product that are copied to shared memory.

    Args:
        number: the number of the part.
        part: the product.
        own: how threads share it out.
        shared: the arrays that are rows in shared memory, which it reads as they are.
        suffix: the end of the names of the arrays.
    """
    for side, letter in zip(sides_of(part, own, own.chunk), "ab", strict=True):
        if side.operand.buffer in shared:
            continue
        lines = side.lines * (part.heads if side.operand.head else 1)
        pitch = -(-side.reach // VECTOR) * VECTOR
        if side.is_along:
            pitch = odd_pitch(side.reach)
        yield StagedOperand(number, side, lines, pitch, f"operand_{letter}{suffix}")


@frozen
class Region:
    """Rows and columns of an array in shared memory.

    Attributes:
        array: the name of the array.
        pitch: the elements from one row to the next.
        rows: the first row and the end.
        columns: the first column and the end.
    """

    array: str
    pitch: int
    rows: tuple[int, int]
    columns: tuple[int, int]

    @property
    def count(self) -> int:
        """Return the number of elements."""
        (first, end), (left, right) = self.rows, self.columns
        return max(0, end - first) * max(0, right - left)


def regions_around(
    array: str, pitch: int, written: tuple[int, int], needed: tuple[int, int]
) -> list[Region]:
    """Return the regions of an array that are read and not written.

    Args:
        array: the name of the array.
        pitch: the elements from one row to the next.
        written: the rows and columns that are written, from the first ones on.
        needed: those that are read.
    """
    (rows, columns), (last_row, last_column) = written, needed
    below = Region(array, pitch, (rows, last_row), (0, min(columns, last_column)))
    beside = Region(array, pitch, (0, last_row), (columns, last_column))
    return [r for r in (below, beside) if r.count]


def unwritten_regions(nest: BlockNest, schedule: BlockSchedule) -> list[list[Region]]:
    """Return the rows and columns of values that are read and that no part writes, by value.

    They are beyond the last row or column, where register blocks and vectors reach; arrays that are
    flat have none. What reads them has no effect, but reads no memory that nothing has written.
    """
    homes = zip((b.name for b in nest.shared), schedule.homes, strict=True)
    names = {name: home for name, home in homes if name not in nest.flat}
    pitches = dict(schedule.pitches)
    pitch = {b.name: pitches.get(v, 1) for v, b in zip(nest.values, nest.shared, strict=True)}
    written: dict[tuple[str, int], tuple[int, int]] = {}
    needed: dict[tuple[str, int], tuple[int, int]] = {}

    def key(buffer: str) -> tuple[str, int]:
        return names[buffer], pitch[buffer]

    def read(buffer: str, rows: int, columns: int) -> None:
        if buffer in names:
            last = needed.get(key(buffer), (0, 0))
            needed[key(buffer)] = max(last[0], rows), max(last[1], columns)

    for part, own in zip(nest.parts, schedule.parts, strict=True):
        if isinstance(part, ProductPart):
            assert isinstance(own, ProductMap)
            for side in sides_of(part, own):
                read(side.operand.buffer, side.rows, side.reach)
            rows, columns = own.rows * own.down, own.columns * own.across
            if part.heads > 1:  # the row behind a head's last one is that of the next
                rows = part.heads * part.rows
            if part.c.buffer in names:
                written.setdefault(key(part.c.buffer), (rows, columns))
            continue
        if not isinstance(part, RowPart):
            continue  # it accesses flat arrays only
        assert isinstance(own, RowMap)
        rows = rows_of_passes(part, own, schedule.threads)
        whole = -(-part.length // own.vector) * own.vector
        for name in part.reads:
            read(name, rows, max(whole if name in part.wide else 1, part.reach.get(name, 1)))
        for name in part.writes & names.keys():
            length = part.length if name in part.wide else 1
            written.setdefault(key(name), (rows, 0 if name in part.partial else length))
    regions = [
        regions_around(array, distance, written[array, distance], last)
        for (array, distance), last in needed.items()
    ]
    return [r for r in regions if r]
