"""Copies of the operands of products to shared memory, from device memory or from flat arrays.

The threads of a block stand in rows whose length divides their number, so that no loop divides to
get a line or a position in it. All loads stand before the first store.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from passkit.ast import Expr, Load, const
from passkit.ir.divisors import divisor_of
from passkit.ir.index import literal, plus, times
from passkit.ir.loop import (
    ACCESS_NBYTES,
    Bind,
    CachePolicy,
    For,
    Stmt,
    StoreStmt,
    VectorLoad,
    VectorStore,
    index_let,
)
from passkit.schedule.block_memory import Region, StagedOperand, regions_around
from passkit.schedule.block_nest import ProductPart
from passkit.transforms.block_values import (
    THREAD,
    BlockValues,
    guarded,
    index_var,
    less,
    quotient,
    remainder,
    unrolled,
    zero_of,
)

MOST_REGISTERS = 64
"""The registers of a thread for elements on their way, at most."""


@frozen
class Piece:
    """Some steps of a product: the number of the first one, how many, and a name."""

    first: Expr
    count: int
    name: str


def staging_statements(values: BlockValues, operands: Sequence[StagedOperand]) -> list[Stmt]:
    """Return the statements that copy operands: the loads of all of them, then the stores."""
    copies = [_Copy(values, x) for x in operands]
    return [s for c in copies for s in c.definitions()] + _copied(copies, has_fills=True)


def staging_of_piece(
    values: BlockValues, operands: Sequence[StagedOperand], piece: Piece
) -> tuple[list[Stmt], list[Stmt]]:
    """Return what is done once, and the statements that copy some steps of operands."""
    copies = [_Copy(values, x, piece) for x in operands]
    once = [s for c in copies for s in c.definitions()]
    return once, _copied(copies, has_fills=False)


def fills_of(values: BlockValues, operands: Sequence[StagedOperand]) -> list[Stmt]:
    """Return the statements that set to 0 what register blocks reach and copies do not have."""
    fills = [fill(values, r) for x in operands for r in _Copy(values, x).regions]
    return [unrolled(index_var("once"), 1, *fills)] if fills else []


def _copied(copies: Sequence[_Copy], has_fills: bool) -> list[Stmt]:
    """Return the loads of copies, and then the stores; ``has_fills`` is as in `_Copy.stores`."""
    together = [c for c in copies if c.batches == 1]
    out = [s for c in together for s in c.loads()]
    out += [c.stores(has_fills=has_fills) for c in together]
    return out + [c.loop(has_fills) for c in copies if c.batches > 1]


def fill(values: BlockValues, region: Region) -> Stmt:
    """Return the statement that sets a region of an array in shared memory to 0."""
    (first, _), (left, right) = region.rows, region.columns
    width, threads = right - left, values.schedule.threads
    u, e = index_var("u"), index_var("e")
    row, column = quotient(e, width), remainder(e, width)
    if first:
        row = plus(row, literal(first))
    at = plus(times(row, region.pitch), plus(column, literal(left)))
    store = StoreStmt(region.array, at, zero_of(values.arrays[region.array].dtype))
    passes = -(-region.count // threads)
    conditions = [less(e, literal(region.count))] if passes * threads > region.count else []
    index = index_let(e, plus(times(u, threads), THREAD))
    return unrolled(u, passes, index, guarded(conditions, store))


class _Copy:
    """The copy of one operand, or of a piece of it.

    Threads stand ``wide`` side by side along a line; ``at_once`` lines are copied at a time.
    """

    def __init__(
        self, values: BlockValues, operand: StagedOperand, piece: Piece | None = None
    ) -> None:
        self.values, self.operand, side = values, operand, operand.side
        part = values.nest.parts[operand.product]
        assert isinstance(part, ProductPart)
        matrix, self.dtype = side.operand, part.dtype
        self.lines, self.length, self.is_along = operand.lines, side.length, side.is_along
        step, outer = matrix.down, matrix.along
        if side.is_rows:
            step, outer = outer, step
        self.line_stride, self.stride = (outer, step) if side.is_along else (step, outer)
        self.start = values.settled(matrix.start)
        if piece is not None:
            self.start = plus(self.start, times(piece.first, step))
            if side.is_along:
                self.length = piece.count
            else:
                self.lines = piece.count
        if side.lines == 1:
            self.line_stride = matrix.head
        self.bound = part.bound if side.is_rows else None
        self.head_bound = part.head_bound if matrix.head else None
        self.vector = self._vector()
        threads = values.schedule.threads
        vectors = self.length // self.vector
        divisors = [w for w in range(1, threads + 1) if threads % w == 0]
        _, widest = min((-(-vectors // w) * -(-self.lines * w // threads), -w) for w in divisors)
        self.wide = -widest
        self.at_once = threads // self.wide
        self.across = -(-vectors // self.wide)
        passes = -(-self.lines // self.at_once)
        most = max(1, MOST_REGISTERS // (self.across * self.vector))
        self.batches = -(-passes // most)
        self.passes = -(-passes // self.batches)
        self.name = f"{operand.name}_{operand.product}" + ("" if piece is None else piece.name)
        self.registers = values.register(
            f"{self.name}_r", self.passes * self.across * self.vector, self.dtype
        )

    @property
    def regions(self) -> list[Region]:
        """Return the parts of the array that register blocks reach and the operand does not."""
        x = self.operand
        needed = x.side.rows, x.side.reach
        return regions_around(x.name, x.pitch, (x.lines, x.side.length), needed)

    def _vector(self) -> int:
        """Return the elements of an access: those that a line and all addresses allow."""
        if self.stride != 1 or (self.bound is not None and not self.is_along):
            return 1
        divisor = divisor_of(self.start, self.values.definitions)
        for width in (w for w in (4, 2) if w * self.dtype.nbytes <= ACCESS_NBYTES):
            is_even = self.lines == 1 or self.line_stride % width == 0
            if self.length % width == 0 and is_even and divisor % width == 0:
                return width
        return 1

    def definitions(self) -> list[Stmt]:
        """Return the definitions of the thread's line and position."""
        line, column = quotient(THREAD, self.wide), remainder(THREAD, self.wide)
        return [
            index_let(index_var(f"{self.name}_line"), line),
            index_let(index_var(f"{self.name}_column"), times(column, self.vector)),
        ]

    def loads(self, first: Expr | None = None) -> list[Stmt]:
        """Return the loads to registers, of the lines behind ``first``.

        Of rows that a tile may not have, registers have 0.
        """
        line, column = index_var("line"), index_var("column")
        values, buffer = self.values, self.values.array(self.operand.side.operand.buffer)
        at = plus(self.start, plus(times(line, self.line_stride), times(column, self.stride)))
        if self.vector > 1:
            name = self.operand.side.operand.buffer
            access = CachePolicy.SHARED if values.is_shared(name) else values.access(name)
            load: Stmt = VectorLoad(self.registers, self._own(), buffer, at, self.vector, access)
        else:
            load = StoreStmt(self.registers, self._own(), Load(buffer, at, self.dtype))
        e, count = index_var("e"), self.passes * self.across * self.vector
        zero = unrolled(e, count, StoreStmt(self.registers, e, const(0.0, self.dtype)))
        has_zero = self.bound is not None or self.head_bound is not None
        return [zero] * has_zero + [self._each(load, first, is_load=True)]

    def stores(self, first: Expr | None = None, has_fills: bool = False) -> Stmt:
        """Return the stores to shared memory, of the lines behind ``first``.

        ``has_fills`` says whether what lies around them is set to 0.
        """
        operand = self.operand
        at = plus(times(index_var("line"), operand.pitch), index_var("column"))
        if self.vector > 1:
            store: Stmt = VectorStore(operand.name, at, self.registers, self._own(), self.vector)
        else:
            store = StoreStmt(operand.name, at, Load(self.registers, self._own(), self.dtype))
        fills = [fill(self.values, r) for r in self.regions] if has_fills else []
        return unrolled(index_var("once"), 1, *fills, self._each(store, first, is_load=False))

    def loop(self, has_fills: bool) -> Stmt:
        """Return the loop over all lines, some at a time; ``has_fills`` is as in `stores`."""
        first, step = index_var("first_line"), self.passes * self.at_once
        body = (*self.loads(first), self.stores(first))
        stop = literal(self.batches * step)
        loop = For(first, literal(0), stop, Bind.SERIAL, body, step)
        fills = [fill(self.values, r) for r in self.regions] if has_fills else []
        return unrolled(index_var("filled_once"), 1, *fills, loop) if fills else loop

    def _own(self) -> Expr:
        """Return the place of a vector among those of a thread."""
        number = plus(times(index_var("u"), self.across), index_var("w"))
        return times(number, self.vector)

    def _each(self, statement: Stmt, first: Expr | None, is_load: bool) -> Stmt:
        """Return the loops over the thread's vectors around a statement."""
        operand, u, w = self.operand, index_var("u"), index_var("w")
        line, column = index_var("line"), index_var("column")
        row = plus(times(u, self.at_once), index_var(f"{self.name}_line"))
        position = plus(times(w, self.wide * self.vector), index_var(f"{self.name}_column"))
        conditions: list[Expr] = []
        if self.batches * self.passes * self.at_once > self.lines:
            conditions.append(less(line, literal(self.lines)))
        if self.across * self.wide * self.vector > self.length:
            conditions.append(less(column, literal(self.length)))
        if self.bound is not None and is_load:
            bound = self.values.settled(self.bound)
            conditions.append(less(line if self.is_along else column, bound))
        if self.head_bound is not None and is_load:
            bound = times(self.values.settled(self.head_bound), operand.side.lines)
            conditions.append(less(line, bound))
        body = guarded(conditions, statement)
        lets = (
            index_let(line, row if first is None else plus(first, row)),
            index_let(column, position),
        )
        return unrolled(u, self.passes, unrolled(w, self.across, *lets, body))
