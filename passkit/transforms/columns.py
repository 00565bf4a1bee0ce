"""Column reductions: the threads of a block read several rows at a time, and share their columns.

A thread has one vector of columns. In each pass over the rows it has every ``threads_y``-th row of
the block's part, and loads several rows before it uses the first. The partial results of the
threads of a column meet in shared memory, where the first row of threads combines them in order.
Where another pass follows, all threads load the result from there.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit.ast import Binary, Expr, Load, Var
from passkit.ast.index import normal
from passkit.ast.stage import Fold, Let, Level, Stage, Store
from passkit.ir.index import literal, plus, times
from passkit.ir.loop import (
    Barrier,
    BarrierScope,
    Bind,
    CachePolicy,
    For,
    If,
    LetStmt,
    LoopBuffer,
    Stmt,
    StorageScope,
    StoreStmt,
    ThreadIndex,
    VectorLoad,
    VectorStore,
    index_let,
)
from passkit.ir.rewrite import combined
from passkit.transforms.build_loops import LoopBuilder
from passkit.transforms.nest_values import Point
from passkit.values import dtype as dt
from passkit.values.size import Extent, known_factor, quotient_above


class ColumnBuilder(LoopBuilder):
    """Builds the kernel of a column reduction; see `LoopBuilder` for its arguments."""

    def _rows(self, stages: Sequence[Stage], count: Extent) -> tuple[Stmt, ...]:
        """Return the body of the kernel.

        ``count`` is the number of blocks per tile of columns: the points of the other kept axes.
        """
        schedule = self.schedule
        assert schedule.columns is not None and schedule.reduced is not None
        self.width = schedule.columns.size_of(Bind.VECTOR)
        self.across = schedule.columns.size_of(Bind.THREAD_X) * self.width
        self.down = schedule.reduced.size_of(Bind.THREAD_Y)
        self.unroll = schedule.reduced.size_of(Bind.UNROLL)
        self.results: dict[str, LoopBuffer] = {}
        axis = self.domain.axes[schedule.columns.axes[0]]
        self.column_axis, columns = axis.var, axis.extent
        tiles = quotient_above(columns, self.across)
        block, outer = self._loop_variable(Bind.GRID), Var("outer", dt.int64)
        tx, ty = self._loop_variable(Bind.THREAD_X), self._loop_variable(Bind.THREAD_Y)
        self.column = Var("column", dt.int64)
        count_of_tiles = self.sizes.size(tiles)
        tile = literal(0) if tiles == 1 else Binary("%", block, count_of_tiles, dt.int64)
        rest = block if tiles == 1 else Binary("//", block, count_of_tiles, dt.int64)
        body: list[Stmt] = [
            index_let(block, ThreadIndex(Bind.GRID)),
            index_let(ty, ThreadIndex(Bind.THREAD_Y)),
            index_let(tx, ThreadIndex(Bind.THREAD_X)),
            index_let(outer, rest),
            index_let(self.column, self._first_column(tile, tiles)),
        ]
        self._bind_axes(schedule.kept, outer, body)
        exists: Expr | None = None
        if known_factor(columns) % self.across:
            exists = Binary("<", self.column, self.sizes.size(columns), dt.bool_)
        passes = [k for k, s in enumerate(stages) if _is_pass(s)]
        for k, stage in enumerate(stages):
            is_followed = k < passes[-1]
            if k not in passes:
                body += self._finish(stage, exists, is_followed)
                continue
            bounds, loops = self._pass(stage, exists)
            if k == passes[0]:
                body += bounds
            body += [*loops, *self._combine(stage, is_followed)]
        return tuple(body)

    def _first_column(self, tile: Expr, tiles: Extent) -> Expr:
        """Return the first column of the thread, in the tile of columns of this number."""
        own = times(self._loop_variable(Bind.THREAD_X), self.width)
        return own if tiles == 1 else plus(times(tile, self.across), own)

    # The loop over rows.

    def _pass(self, stage: Stage, exists: Expr | None) -> tuple[list[Stmt], list[Stmt]]:
        """Return the bounds of a stage's loops over rows, as definitions, and the loops.

        Each thread has its rows in them. The bounds are the same in all stages. ``exists`` is the
        condition that the thread's columns exist; None if all do.
        """
        out: list[Stmt] = []
        for fold in _reductions(stage):
            name = f"{fold.var.name}_sum"
            assert fold.buffer is not None
            self.results[fold.buffer] = self._array(name, fold.identity.dtype, self.width)
            out += self._each_column((StoreStmt(name, self._position(), fold.identity),))
        hoisted = self._hoisted(stage)
        bounds, loops = self._stepped(
            self.unroll * self.down, lambda base, stop: self._rows_at(stage, base, stop)
        )
        loops = [*hoisted, *loops]
        return bounds, [*out, *(loops if exists is None else [If(exists, tuple(loops))])]

    def _hoisted(self, stage: Stage) -> list[Stmt]:
        """Return the loop that computes a stage's values of columns, into register arrays."""
        at = self._column_point()
        statements: list[Stmt] = []
        for let in stage.before:
            self._array(_column_array(let), let.var.dtype, self.width)
            value = self._value(let.value, at)
            statements.append(LetStmt(let.var, value))
            statements.append(StoreStmt(_column_array(let), self._position(), let.var))
        return self._each_column(tuple(statements)) if statements else []

    def _rows_at(self, stage: Stage, base: Expr, stop: Expr | None) -> tuple[Stmt, ...]:
        """Return the loads of some rows, then what is reduced of them.

        ``base`` is the first of these rows; ``stop`` the end of the rows, if not all exist.
        """
        self.cached = {}
        reduced = self.schedule.reduced
        assert reduced is not None
        u = self._loop_variable(Bind.UNROLL)
        row = Var(f"row{self.stage_number}", dt.int64)
        self.stage_number += 1
        where = plus(plus(base, times(u, self.down)), self._loop_variable(Bind.THREAD_Y))
        values = self._decoded(reduced, row)
        axes: list[Stmt] = []
        for name, value in values.items() if len(values) > 1 or self.has_counted_chunks else ():
            var = Var(f"{name}_{row.name}", dt.int64)
            axes.append(index_let(var, value))
            values[name] = var
        of_chunk = self._chunk_guard(values)
        values[self.column_axis.name] = plus(self.column, self._position())
        for s in stage.before:
            values[s.var.name] = Load(_column_array(s), self._position(), s.var.dtype)
        at = Point(row, self._position(), values)

        def unrolled(*body: Stmt) -> Stmt:
            inner: tuple[Stmt, ...] = body if of_chunk is None else (If(of_chunk, body),)
            inner = (*axes, *inner)
            if stop is not None:
                inner = (If(Binary("<", row, stop, dt.bool_), inner),)
            inner = (index_let(row, where), *inner)
            return For(u, literal(0), literal(self.unroll), Bind.UNROLL, inner)

        out: list[Stmt] = []
        for number in self.schedule.cached:
            param = self.ast.params[number]
            for load in self._full_reads([stage], param.name):
                name = f"{param.name}_r"
                self._array(name, param.dtype, self.unroll * self.width)
                value = Load(load.buffer, self._index(load.index, at), load.dtype)
                out.append(unrolled(*self._each_column((StoreStmt(name, self._local(), value),))))
                self.cached[load.buffer, normal(load.index, self.extents)] = name
        body = [self._reducing(s, at) for s in stage.body]
        statements = tuple(s for s in body if s is not None)
        out.append(unrolled(*self._each_column(statements)))
        return tuple(out)

    def _reducing(self, s: object, at: Point) -> Stmt | None:
        """Return a statement of the loop; a reduction adds to its accumulator."""
        if not isinstance(s, Fold):
            return self._statement(s, at)
        assert s.buffer is not None
        name = self.results[s.buffer].name
        total = Load(name, self._position(), s.identity.dtype)
        value = combined(s.combine, total, self._value(s.value, at))
        return StoreStmt(name, self._position(), value)

    def _position(self) -> Expr:
        """Return the position in the vector of columns."""
        return literal(0) if self.width == 1 else self._loop_variable(Bind.VECTOR)

    def _each_column(self, body: tuple[Stmt, ...]) -> list[Stmt]:
        """Return the loop over the columns of a thread around a body."""
        if self.width == 1:
            return list(body)
        k = self._loop_variable(Bind.VECTOR)
        return [For(k, literal(0), literal(self.width), Bind.VECTOR, body)]

    def _array(self, name: str, dtype: dt.DType, extent: int) -> LoopBuffer:
        """Add a register array, and return it."""
        array = LoopBuffer(name, dtype, StorageScope.REGISTER, extent, True)
        return self.arrays.setdefault(name, array)

    def _local(self) -> Expr:
        """Return the position of the current row and column among those that a thread holds."""
        u = self._loop_variable(Bind.UNROLL)
        return plus(times(u, self.width), self._position())

    # Combination in shared memory.

    def _combine(self, stage: Stage, is_followed: bool) -> list[Stmt]:
        """Return the statements that combine the partial results of a stage.

        The first row of threads does it. With ``is_followed`` all threads get the results: another
        pass follows.
        """
        reductions = _reductions(stage)
        if self.down == 1 or not reductions:
            return []
        tx, ty = self._loop_variable(Bind.THREAD_X), self._loop_variable(Bind.THREAD_Y)
        out: list[Stmt] = []
        sums: list[Stmt] = []
        totals: list[Stmt] = []
        loads: list[Stmt] = []
        y = Var("y", dt.int64)
        for fold in reductions:
            assert fold.buffer is not None
            name, dtype = self.results[fold.buffer].name, fold.identity.dtype
            shared = f"{name}s"
            extent = self.down * self.across
            self.arrays[shared] = LoopBuffer(shared, dtype, StorageScope.SHARED, extent, True)
            mine = plus(times(ty, self.across), times(tx, self.width))
            out.append(VectorStore(shared, mine, name, literal(0), self.width))
            theirs = plus(plus(times(y, self.across), times(tx, self.width)), self._position())
            total = Load(name, self._position(), dtype)
            sum_of_both = combined(fold.combine, total, Load(shared, theirs, dtype))
            sums += self._each_column((StoreStmt(name, self._position(), sum_of_both),))
            first = times(tx, self.width)
            totals.append(VectorStore(shared, first, name, literal(0), self.width))
            loads.append(
                VectorLoad(name, literal(0), shared, first, self.width, CachePolicy.SHARED)
            )
        loop = For(y, literal(1), literal(self.down), Bind.UNROLL, tuple(sums))
        is_first = Binary("==", ty, literal(0), dt.bool_)
        barrier = Barrier(BarrierScope.BLOCK)
        if not is_followed:
            return [*out, barrier, If(is_first, (loop,))]
        return [*out, barrier, If(is_first, (loop, *totals)), barrier, *loads]

    # Results.

    def _finish(self, stage: Stage, exists: Expr | None, is_followed: bool) -> list[Stmt]:
        """Return the statements that compute and store the values of columns.

        The first row of threads stores outputs. Where another pass follows, all threads have the
        values that it reads in registers. ``exists`` is the condition that the thread's columns
        exist; None if all do.
        """
        at = self._column_point()
        lets: list[Stmt] = []
        inner: list[Stmt] = []
        outputs: list[Stmt] = []
        for s in (*stage.before, *stage.body):
            if isinstance(s, Let):
                lets.append(LetStmt(s.var, self._value(s.value, at)))
            elif isinstance(s, Store) and self._is_param(s.buffer):
                index = self._index(s.index, at)
                outputs.append(StoreStmt(s.buffer, index, self._value(s.value, at), s.stream))
            elif isinstance(s, Store) and is_followed:
                value = self._value(s.value, at)
                name = f"{s.buffer}_column"
                self.results[s.buffer] = self._array(name, value.dtype, self.width)
                inner.append(StoreStmt(name, self._position(), value))
        out: list[Stmt] = []
        if inner:
            loop = tuple(self._each_column((*lets, *inner)))
            out += loop if exists is None else [If(exists, loop)]
            if self.width == 1 and exists is None:
                lets = []  # they are defined in the scope of the outputs, too
        if outputs:
            is_first: Expr = Binary("==", self._loop_variable(Bind.THREAD_Y), literal(0), dt.bool_)
            if exists is not None:
                is_first = Binary("&", is_first, exists, dt.bool_)
            out.append(If(is_first, tuple(self._each_column((*lets, *outputs)))))
        return out

    def _column_point(self) -> Point:
        """Return the point of the thread's columns, outside of the loop over rows."""
        self.cached = {}
        values = {self.column_axis.name: plus(self.column, self._position())}
        return Point(self.column, self._position(), values)

    def _place(self, buffer: str, index: Expr, at: Point | None) -> tuple[str, Expr]:
        """Return where an access goes: a reduced value is in its accumulator."""
        if buffer in self.results:
            return self.results[buffer].name, self._position()
        return super()._place(buffer, index, at)

    def _linear(self, index: Expr, at: Point) -> Expr | None:
        """Return None: indices are sums of the row and the column."""
        return None


def _is_pass(stage: Stage) -> bool:
    """Return whether a stage runs over the rows, and does not compute values of columns alone."""
    return any(loop.level is Level.THREAD for loop in stage.loops)


def _reductions(stage: Stage) -> list[Fold]:
    """Return the reductions of a stage."""
    return [s for s in stage.body if isinstance(s, Fold)]


def _column_array(let: Let) -> str:
    """Return the name of the register array with a value of the thread's columns."""
    return f"{let.var.name}_column"
