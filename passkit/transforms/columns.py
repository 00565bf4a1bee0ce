"""Column reductions: the threads of a block read several rows at a time, and share their columns.

A thread has one vector of columns. It reduces every ``threads_y``-th row of the block's part, loads
several rows before it uses the first, and the partial results of the threads of a column meet in
shared memory, where the first row of threads combines them in order.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit.ast import Binary, Expr, Load, Var
from passkit.ast.index import normal
from passkit.ast.stage import Fold, Let, Stage, Store
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
    VectorStore,
    index_let,
)
from passkit.ir.rewrite import combined
from passkit.transforms.build_loops import LoopBuilder
from passkit.transforms.nest_values import Point
from passkit.values import dtype as dt
from passkit.values.size import Extent


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
        self.accumulators: dict[str, Fold] = {}
        axis = self.domain.axes[schedule.columns.axes[0]]
        assert isinstance(axis.extent, int)
        self.column_axis, columns = axis.var, axis.extent
        tiles = -(-columns // self.across)
        block, outer = self._loop_variable(Bind.GRID), Var("outer", dt.int64)
        tx, ty = self._loop_variable(Bind.THREAD_X), self._loop_variable(Bind.THREAD_Y)
        self.column = Var("column", dt.int64)
        tile = literal(0) if tiles == 1 else Binary("%", block, literal(tiles), dt.int64)
        rest = block if tiles == 1 else Binary("//", block, literal(tiles), dt.int64)
        body: list[Stmt] = [
            index_let(block, ThreadIndex(Bind.GRID)),
            index_let(ty, ThreadIndex(Bind.THREAD_Y)),
            index_let(tx, ThreadIndex(Bind.THREAD_X)),
            index_let(outer, rest),
            index_let(self.column, self._first_column(tile, tiles)),
        ]
        self._bind_axes(schedule.kept, outer, body)
        exists: Expr | None = None
        if columns % self.across:
            exists = Binary("<", self.column, literal(columns), dt.bool_)
        reducing = [s for s in stages if any(isinstance(x, Fold) for x in s.body)]
        (first,) = reducing
        body += self._accumulate(first, exists)
        body += self._combine(exists)
        for stage in stages:
            if stage is not first:
                body += self._finish(stage, exists)
        return tuple(body)

    def _first_column(self, tile: Expr, tiles: int) -> Expr:
        """Return the first column of the thread, in the tile of columns of this number."""
        own = times(self._loop_variable(Bind.THREAD_X), self.width)
        return own if tiles == 1 else plus(times(tile, self.across), own)

    # The loop over rows.

    def _accumulate(self, stage: Stage, exists: Expr | None) -> list[Stmt]:
        """Return the loops in which each thread reduces its rows."""
        out: list[Stmt] = []
        for fold in (s for s in stage.body if isinstance(s, Fold)):
            name = f"{fold.var.name}_sum"
            assert fold.buffer is not None
            self.accumulators[fold.buffer] = fold
            self.results[fold.buffer] = self._array(name, fold.identity.dtype, self.width)
            out += self._each_column((StoreStmt(name, self._position(), fold.identity),))
        lets, loops = self._stepped(
            self.unroll * self.down, lambda base, stop: self._rows_at(stage, base, stop)
        )
        return [*out, *lets, *(loops if exists is None else [If(exists, tuple(loops))])]

    def _rows_at(self, stage: Stage, base: Expr, stop: Expr | None) -> tuple[Stmt, ...]:
        """Return the loads of some rows, then what is reduced of them.

        ``base`` is the first of these rows; ``stop`` the end of the rows, if not all exist.
        """
        self.cached = {}
        (axis,) = [a for a in self.domain.axes if a.reduced]
        u = self._loop_variable(Bind.UNROLL)
        row = Var(f"row{self.stage_number}", dt.int64)
        self.stage_number += 1
        where = plus(plus(base, times(u, self.down)), self._loop_variable(Bind.THREAD_Y))
        values = {axis.var.name: row, self.column_axis.name: plus(self.column, self._position())}
        at = Point(row, self._position(), values)

        def unrolled(*body: Stmt) -> Stmt:
            inner: tuple[Stmt, ...] = body
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
        lets = [LetStmt(s.var, self._value(s.value, at)) for s in stage.before]
        reduced = [self._reducing(s, at) for s in stage.body]
        statements = (*lets, *(s for s in reduced if s is not None))
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

    def _combine(self, exists: Expr | None) -> list[Stmt]:
        """Return the statements in which the first row of threads combines all partial results."""
        if self.down == 1:
            return []
        tx, ty = self._loop_variable(Bind.THREAD_X), self._loop_variable(Bind.THREAD_Y)
        out: list[Stmt] = []
        sums: list[Stmt] = []
        y = Var("y", dt.int64)
        for buffer, fold in self.accumulators.items():
            name, dtype = self.results[buffer].name, fold.identity.dtype
            shared = f"{name}s"
            extent = self.down * self.across
            self.arrays[shared] = LoopBuffer(shared, dtype, StorageScope.SHARED, extent, True)
            mine = plus(times(ty, self.across), times(tx, self.width))
            out.append(VectorStore(shared, mine, name, literal(0), self.width))
            theirs = plus(plus(times(y, self.across), times(tx, self.width)), self._position())
            total = Load(name, self._position(), dtype)
            sum_of_both = combined(fold.combine, total, Load(shared, theirs, dtype))
            sums += self._each_column((StoreStmt(name, self._position(), sum_of_both),))
        loop = For(y, literal(1), literal(self.down), Bind.UNROLL, tuple(sums))
        is_first = Binary("==", ty, literal(0), dt.bool_)
        return [*out, Barrier(BarrierScope.BLOCK), If(is_first, (loop,))]

    # Results.

    def _finish(self, stage: Stage, exists: Expr | None) -> list[Stmt]:
        """Return the statements that compute and store the values of columns."""
        self.cached = {}
        values = {self.column_axis.name: plus(self.column, self._position())}
        at = Point(self.column, self._position(), values)
        statements: list[Stmt] = []
        for s in (*stage.before, *stage.body):
            if isinstance(s, Let):
                statements.append(LetStmt(s.var, self._value(s.value, at)))
            elif isinstance(s, Store):
                index = self._index(s.index, at)
                statements.append(StoreStmt(s.buffer, index, self._value(s.value, at), s.stream))
        is_first: Expr = Binary("==", self._loop_variable(Bind.THREAD_Y), literal(0), dt.bool_)
        if exists is not None:
            is_first = Binary("&", is_first, exists, dt.bool_)
        return [If(is_first, tuple(self._each_column(tuple(statements))))]

    def _place(self, buffer: str, index: Expr, at: Point | None) -> tuple[str, Expr]:
        """Return where an access goes: a reduced value is in its accumulator."""
        if buffer in self.results:
            return self.results[buffer].name, self._position()
        return super()._place(buffer, index, at)

    def _linear(self, index: Expr, at: Point) -> Expr | None:
        """Return None: indices are sums of the row and the column."""
        return None
