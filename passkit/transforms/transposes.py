"""Transposes: a block moves a tile of the kept axes, and turns inputs in shared memory.

An input whose consecutive elements lie along another axis than the last one is loaded along its own
axis, so that threads read neighbouring elements. It is stored to shared memory, and after a barrier
read along the last axis, as all other arrays are. Rows in shared memory are padded, so that neither
direction has conflicts of banks, or few. All loads of a thread stand in front of the barrier.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

from attrs import frozen

from passkit.ast import Binary, Expr, Load, Var, const
from passkit.ast.index import Sum, normal
from passkit.ast.stage import Stage
from passkit.ast.tidy import loads_of
from passkit.ir.index import literal, plus, times
from passkit.ir.loop import (
    Barrier,
    BarrierScope,
    Bind,
    For,
    If,
    LetStmt,
    LoopBuffer,
    Stmt,
    StorageScope,
    StoreStmt,
    ThreadIndex,
    index_let,
)
from passkit.schedule.nest import BlockTile
from passkit.schedule.tiles import NARROW_LANES, TileDigit, TileThreads
from passkit.transforms.build_loops import LoopBuilder
from passkit.transforms.nest_values import Point
from passkit.values import dtype as dt
from passkit.values.size import Extent


@frozen
class TurnedInput:
    """A read of an input that a block turns.

    Attributes:
        param: the parameter.
        index: the index of the element.
        axis: the number of the axis of its consecutive elements.
        dtype: the dtype of an element.
        registers: the register array that it is loaded to.
        shared: the array in shared memory.
    """

    param: str
    index: Expr
    axis: int
    dtype: dt.DType
    registers: str
    shared: str


class TransposeBuilder(LoopBuilder):
    """Builds the kernel of a nest that turns inputs; see `LoopBuilder` for its arguments."""

    tile: BlockTile

    def _elementwise(self, stages: Sequence[Stage], count: Extent) -> tuple[Stmt, ...]:
        """Return the body of the kernel.

        A block all of whose points exist moves vectors. Any other, and one of arrays that are not
        aligned, moves single elements, and tests each.
        """
        schedule = self.schedule
        assert schedule.transpose is not None
        self.tile = schedule.transpose
        self.axes = [self.domain.axes[k] for k in schedule.kept.axes]
        self.threads = schedule.launch.threads
        self.local: list[Expr] = []
        self.shared_at: Mapping[tuple[str, Sum], str] = {}
        block = self._loop_variable(Bind.GRID)
        body: list[Stmt] = [
            index_let(block, ThreadIndex(Bind.GRID)),
            index_let(self._loop_variable(Bind.THREAD_X), ThreadIndex(Bind.THREAD_X)),
        ]
        body += self._origins(block)
        ends: list[Expr] = [
            Binary("<=", plus(self._origin(k), literal(size)), self._extent(k), dt.bool_)
            for k, size in enumerate(self.tile.sizes)
            if self._is_cut(k)
        ]
        vector = schedule.vector
        pairs = zip(self.tile.sizes, self.axes, strict=True)
        fits = all(n <= a.extent for n, a in pairs if isinstance(a.extent, int))
        if not fits or (ends and vector == 1):
            return (*body, *self._moved(stages, 1, is_guarded=True))
        whole = tuple(self._moved(stages, vector, is_guarded=False))
        if vector == 1:
            return (*body, *whole)
        rest = tuple(self._moved(stages, 1, is_guarded=bool(ends)))
        is_whole: Expr = reduce(_both, ends) if ends else const(True, dt.bool_)
        return (*body, If(is_whole, whole, rest, is_peeled=True))

    # Axes.

    def _origins(self, block: Expr) -> list[Stmt]:
        """Return the definitions of the first point of the block along each axis."""
        out: list[Stmt] = []
        rest = block
        first = next((k for k in range(len(self.axes)) if self._tiles(k) != 1), 0)
        for k in reversed(range(len(self.axes))):
            number: Expr = literal(0)
            if k == first:
                number = rest
            elif self._tiles(k) != 1:
                count = self._size(self._tiles(k))
                number = Binary("%", rest, count, dt.int64)
                left = Var(f"tiles{k}", dt.int64)
                out.append(index_let(left, Binary("//", rest, count, dt.int64)))
                rest = left
            origin = Var(f"{self.axes[k].var.name}_first", dt.int64)
            out.append(index_let(origin, times(number, self.tile.sizes[k])))
            if k == first:
                out += [
                    index_let(Var(f"{self.axes[j].var.name}_first", dt.int64), literal(0))
                    for j in range(k)
                ]
                break
        return out

    def _tiles(self, k: int) -> Extent:
        """Return the number of tiles along an axis."""
        return (self.axes[k].extent + (self.tile.sizes[k] - 1)) // self.tile.sizes[k]

    def _size(self, size: Extent) -> Expr:
        """Return a number as a literal, or the argument that has a symbolic one."""
        return literal(size) if isinstance(size, int) else self.sizes.argument(size)

    def _extent(self, k: int) -> Expr:
        """Return the extent of an axis."""
        return self._size(self.axes[k].extent)

    def _origin(self, k: int) -> Expr:
        """Return the first point of the block along an axis."""
        return Var(f"{self.axes[k].var.name}_first", dt.int64)

    def _is_cut(self, k: int) -> bool:
        """Return whether the last tile along an axis may have fewer points."""
        extent = self.axes[k].extent
        return not isinstance(extent, int) or extent % self.tile.sizes[k] != 0

    # A tile.

    def _moved(self, stages: Sequence[Stage], vector: int, is_guarded: bool) -> list[Stmt]:
        """Return the statements that load a tile, turn inputs, compute and store.

        ``vector`` is the number of elements of an access.
        """
        self.vector, self.is_guarded = vector, is_guarded
        self.cached, self.shared_at = {}, {}
        self.digits: dict[Expr, Var] = {}
        turned = self._turned(stages)
        last = len(self.axes) - 1
        out: list[Stmt] = []
        for x in turned:
            load = Load(x.param, x.index, x.dtype)
            out += self._each(x.axis, partial(self._to_registers, load, x.registers))
        for number in self.schedule.cached:
            param = self.ast.params[number]
            for load in self._full_reads(stages, param.name):
                name = f"{param.name}_r"
                self._declare(name, param.dtype)
                out += self._each(last, partial(self._to_registers, load, name))
                self.cached[load.buffer, normal(load.index, self.extents)] = name
        for x in turned:
            out += self._each(x.axis, partial(self._to_shared, x))
        out.append(Barrier(BarrierScope.BLOCK))
        self.shared_at = {(x.param, normal(x.index, self.extents)): x.shared for x in turned}
        for stage in stages:
            out += self._each(last, partial(self._point, stage))
        return out

    def _turned(self, stages: Sequence[Stage]) -> list[TurnedInput]:
        """Return the reads that the block turns, and declare their arrays."""
        turned: dict[tuple[str, Sum], TurnedInput] = {}
        names = [(self.ast.params[k].name, axis) for k, axis in self.tile.inputs]
        for load in loads_of(x for stage in stages for x in stage.body):
            index = normal(load.index, self.extents)
            for name, axis in names:
                is_along = index.coefficient(self.axes[axis].var) == 1
                if load.buffer != name or not is_along or index == self.domain.point_index:
                    continue
                if (name, index) not in turned:
                    number = len(turned)
                    registers, shared = f"{name}_t{number}", f"{name}_s{number}"
                    self._declare(registers, load.dtype)
                    self.arrays[shared] = LoopBuffer(
                        shared, load.dtype, StorageScope.SHARED, self.tile.elements, True
                    )
                    turned[name, index] = TurnedInput(
                        name, load.index, axis, load.dtype, registers, shared
                    )
        return list(turned.values())

    def _to_registers(self, load: Load, registers: str, at: Point) -> tuple[Stmt, ...]:
        """Return the load of an element at a point to a register array."""
        value = Load(load.buffer, self._index(load.index, at), load.dtype)
        return (StoreStmt(registers, self._local(), value),)

    def _to_shared(self, x: TurnedInput, at: Point) -> tuple[Stmt, ...]:
        """Return the store of an element of an input that is turned to shared memory."""
        return (StoreStmt(x.shared, self._in_tile(), Load(x.registers, self._local(), x.dtype)),)

    def _point(self, stage: Stage, at: Point) -> tuple[Stmt, ...]:
        """Return the statements of a stage at a point."""
        lets: list[Stmt] = [LetStmt(s.var, self._value(s.value, at)) for s in stage.before]
        statements = [self._statement(s, at) for s in stage.body]
        return (*lets, *(s for s in statements if s is not None))

    def _each(self, axis: int, body: Callable[[Point], tuple[Stmt, ...]]) -> list[Stmt]:
        """Return the loops over the thread's points of the tile, in vectors along an axis.

        ``body`` returns the statements at a point.
        """
        is_narrow = self.vector < self.schedule.vector
        lanes = NARROW_LANES if is_narrow else self.tile.lanes
        digits = TileThreads(self.tile.sizes, self.vector, lanes, self.threads).digits(axis)
        tx, u, k = (self._loop_variable(b) for b in (Bind.THREAD_X, Bind.UNROLL, Bind.VECTOR))
        steps = self.schedule.kept.per_thread // self.vector
        vector: Expr = k if self.vector > 1 else literal(0)
        number = self.stage_number = self.stage_number + 1
        local: list[Expr] = [literal(0) for _ in self.axes]
        threads: list[Stmt] = []
        for d in digits:
            index = _digit(d, tx, self.threads) if d.is_thread else _digit(d, u, steps)
            if d.is_thread and index != tx:
                name = self.digits.get(index)
                if name is None:
                    name = self.digits[index] = Var(f"tx{len(self.digits)}", dt.int64)
                    threads.append(index_let(name, index))
                index = name
            local[d.axis] = plus(local[d.axis], times(index, d.scale))
        names = [Var(f"{a.var.name}_{number}", dt.int64) for a in self.axes]
        lets = [
            index_let(name, plus(self._origin(j), at))
            for j, (name, at) in enumerate(zip(names, local, strict=True))
        ]
        values: dict[str, Expr] = {a.var.name: n for a, n in zip(self.axes, names, strict=True)}
        values[self.axes[axis].var.name] = plus(names[axis], vector)
        local[axis] = plus(local[axis], vector)
        self.local = local
        self.position = plus(times(u if steps > 1 else literal(0), self.vector), vector)
        statements = body(Point(literal(0), vector, values))
        if self.vector > 1:
            statements = (For(k, literal(0), literal(self.vector), Bind.VECTOR, statements),)
        ends: list[Expr] = [
            Binary("<", names[j], self._extent(j), dt.bool_)
            for j in range(len(self.axes))
            if self.is_guarded and self._is_cut(j)
        ]
        if ends:
            statements = (If(reduce(_both, ends), statements),)
        statements = (*lets, *statements)
        if steps > 1:
            statements = (For(u, literal(0), literal(steps), Bind.UNROLL, statements),)
        return [*threads, *statements]

    def _in_tile(self) -> Expr:
        """Return where the current point is in a tile in shared memory."""
        row: Expr = literal(0)
        for size, index in zip(self.tile.sizes[:-1], self.local[:-1], strict=True):
            row = plus(times(row, size) if row != literal(0) else row, index)
        return plus(times(row, self.tile.pitch) if row != literal(0) else row, self.local[-1])

    # Values.

    def _local(self) -> Expr:
        """Return the position of the current point among those of a thread."""
        return self.position

    def _place(self, buffer: str, index: Expr, at: Point | None) -> tuple[str, Expr]:
        """Return where an access goes: an input that is turned is in shared memory."""
        shared = self.shared_at.get((buffer, normal(index, self.extents)))
        return super()._place(buffer, index, at) if shared is None else (shared, self._in_tile())

    def _linear(self, index: Expr, at: Point) -> Expr | None:
        """Return None: indices are sums of the axes."""
        return None


def _digit(digit: TileDigit, source: Expr, count: int) -> Expr:
    """Return the value of a digit of ``source``, which has so many values."""
    value = source
    if digit.divisor > 1:
        value = Binary("//", value, literal(digit.divisor), dt.int64)
    if digit.divisor * digit.count < count:
        value = Binary("%", value, literal(digit.count), dt.int64)
    return value


def _both(a: Expr, b: Expr) -> Expr:
    """Return the condition that both conditions hold."""
    return Binary("&", a, b, dt.bool_)
