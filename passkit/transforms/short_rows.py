"""Short rows: a warp moves several rows through shared memory as one run of consecutive elements.

A row of 40 elements has ten vectors, which no group of 8 or 16 threads divides. So a warp loads the
elements of its rows in memory order, stores them to its own part of shared memory, and each thread
reads a row, or a half or quarter of one. Results go the other way. The pitch of a thread's part in
shared memory is odd, in vectors, so that neither direction has bank conflicts.
"""

from __future__ import annotations

from collections.abc import Sequence

from passkit.ast import Binary, Expr, Load, Select, Var
from passkit.ast.index import normal
from passkit.ast.stage import Stage, Store
from passkit.ir.index import literal, plus, times
from passkit.ir.loop import (
    WARP,
    Barrier,
    BarrierScope,
    Bind,
    CachePolicy,
    For,
    If,
    LoopBuffer,
    Return,
    Stmt,
    StorageScope,
    StoreStmt,
    ThreadIndex,
    VectorLoad,
    VectorStore,
    index_let,
)
from passkit.schedule.nest import WarpTile
from passkit.transforms.build_loops import LoopBuilder
from passkit.transforms.nest_values import Point
from passkit.values import dtype as dt
from passkit.values.dtype import DType
from passkit.values.size import Extent, numel


def _binary(op: str, a: Expr, b: Expr) -> Expr:
    """Return a binary operation of indices."""
    return Binary(op, a, b, dt.int64)


class ShortRowBuilder(LoopBuilder):
    """Builds the kernel of short rows; see `LoopBuilder` for its arguments."""

    tile: WarpTile

    def _rows(self, stages: Sequence[Stage], count: Extent) -> tuple[Stmt, ...]:
        """Return the body of the kernel: load, compute, store."""
        schedule = self.schedule
        assert schedule.tile is not None and schedule.reduced is not None
        self.tile = schedule.tile
        length = numel(self.domain.axes[k].extent for k in schedule.reduced.axes)
        assert isinstance(length, int)
        self.length = length
        self.share = schedule.reduced.size_of(Bind.THREAD_X)
        self.rows_per_warp = WARP // self.share
        self.results: dict[str, LoopBuffer] = {}
        block, ty = self._loop_variable(Bind.GRID), self._loop_variable(Bind.THREAD_Y)
        tx, n = self._loop_variable(Bind.THREAD_X), self.sizes.argument(count)
        warps = schedule.kept.size_of(Bind.THREAD_Y)
        first, there = Var("first_row", dt.int64), Var("num_rows", dt.int64)
        own, row = Var("own_row", dt.int64), Var("row", dt.int64)
        remaining = _binary("-", n, first)
        rows = literal(self.rows_per_warp)
        is_full = Binary("<", rows, remaining, dt.bool_)
        position = tx if self.share == 1 else _binary("//", tx, literal(self.share))
        last = _binary("-", there, literal(1))
        exists = Binary("<", position, there, dt.bool_)
        body: list[Stmt] = [
            index_let(block, ThreadIndex(Bind.GRID)),
            index_let(ty, ThreadIndex(Bind.THREAD_Y)),
            index_let(tx, ThreadIndex(Bind.THREAD_X)),
            index_let(first, times(plus(times(block, warps), ty), self.rows_per_warp)),
            If(Binary(">=", first, n, dt.bool_), (Return(),)),
            index_let(there, Select(is_full, rows, remaining, dt.int64)),
            # Threads without a row compute the last one, and do not store.
            index_let(own, Select(exists, position, last, dt.int64)),
            index_let(row, plus(first, own)),
        ]
        if self.share > 1:
            part = _binary("%", tx, literal(self.share))
            body.append(index_let(Var("part", dt.int64), part))
        self._bind_axes(schedule.kept, row, body)
        body += self._loads(stages)
        body += self._stage_nests(stages, None, exists)
        body += self._stores()
        return tuple(body)

    # Inputs.

    def _loads(self, stages: Sequence[Stage]) -> list[Stmt]:
        """Return the statements that load the cached inputs through shared memory."""
        out: list[Stmt] = []
        loads: list[tuple[str, LoopBuffer]] = []
        for number in self.schedule.cached:
            param = self.ast.params[number]
            for load in self._full_reads(stages, param.name):
                key = load.buffer, normal(load.index, self.extents)
                if key not in self.cached:
                    name = f"{param.name}_r"
                    self._declare(name, param.dtype)
                    self.cached[key] = name
                    loads.append((param.name, self._shared(f"{param.name}_s", param.dtype)))
        for param_name, shared in loads:
            out += self._flat(param_name, shared, is_load=True)
        out.append(Barrier(BarrierScope.WARP))
        for param_name, shared in loads:
            out += self._own_part(f"{param_name}_r", shared, is_load=True)
        return out

    def _shared(self, name: str, dtype: DType) -> LoopBuffer:
        """Add a shared array with a part for each warp of the block, and return it."""
        extent = self.schedule.kept.size_of(Bind.THREAD_Y) * WARP * self.tile.pitch
        buffer = LoopBuffer(name, dtype, StorageScope.SHARED, extent, True)
        self.arrays[name] = buffer
        return buffer

    def _flat(self, param: str, shared: LoopBuffer, is_load: bool) -> list[Stmt]:
        """Return the copy between a parameter and shared memory, in the order of the parameter.

        ``is_load`` says that it goes to shared memory.
        """
        width, own = self.tile.vector, self.tile.elements
        count = self.rows_per_warp * self.length
        steps = -(-count // (WARP * width))
        u, tx = self._loop_variable(Bind.UNROLL), self._loop_variable(Bind.THREAD_X)
        flat = f"{param}_f"
        self.arrays[flat] = LoopBuffer(
            flat, shared.dtype, StorageScope.REGISTER, steps * width, True
        )
        at = Var(f"at_{param}", dt.int64)
        where = plus(times(u, WARP * width), times(tx, width))
        total = _binary("*", Var("num_rows", dt.int64), literal(self.length))
        exists = Binary("<", at, total, dt.bool_)
        base = times(Var("first_row", dt.int64), self.length)
        memory = plus(base, at)
        registers = times(u, width)
        access = CachePolicy.CHANGING if param in self.aliased else CachePolicy.STREAM

        def loop(*body: Stmt) -> Stmt:
            inner = (index_let(at, where), If(exists, body))
            return For(u, literal(0), literal(steps), Bind.UNROLL, inner)

        pieces = [self._in_shared(plus(at, literal(k)), own) for k in range(width)]
        together = width > 1 and own % width == 0 and self.tile.pitch % width == 0
        if is_load:
            load = VectorLoad(flat, registers, param, memory, width, access)
            if together:
                to: list[Stmt] = [VectorStore(shared.name, pieces[0], flat, registers, width)]
            else:
                to = [
                    StoreStmt(shared.name, p, Load(flat, plus(registers, literal(k)), shared.dtype))
                    for k, p in enumerate(pieces)
                ]
            return [loop(load), loop(*to)]
        if together:
            back: list[Stmt] = [
                VectorLoad(flat, registers, shared.name, pieces[0], width, CachePolicy.SHARED)
            ]
        else:
            back = [
                StoreStmt(flat, plus(registers, literal(k)), Load(shared.name, p, shared.dtype))
                for k, p in enumerate(pieces)
            ]
        stream = self._is_streamed(param)
        store = VectorStore(param, memory, flat, registers, width, stream)
        return [loop(*back, store)]

    def _in_shared(self, at: Expr, own: int) -> Expr:
        """Return where an element of the warp's run is in shared memory.

        ``own`` is the number of elements of a thread.
        """
        begin = times(Var("ty", dt.int64), WARP * self.tile.pitch)
        padding = self.tile.pitch - own
        if not padding:
            return plus(begin, at)
        thread = _binary("//", at, literal(own))
        return plus(plus(begin, at), times(thread, padding))

    def _own_part(self, registers: str, shared: LoopBuffer, is_load: bool) -> list[Stmt]:
        """Return the copy between a thread's part of shared memory and its registers."""
        group = self.schedule.reduced
        assert group is not None
        width = group.size_of(Bind.VECTOR)
        u = self._loop_variable(Bind.UNROLL)
        steps = group.size_of(Bind.UNROLL)
        ty = Var("ty", dt.int64)
        thread = times(Var("own_row", dt.int64), self.share)
        if self.share > 1:
            thread = plus(thread, Var("part", dt.int64))
        base = plus(times(ty, WARP * self.tile.pitch), times(thread, self.tile.pitch))
        at = times(u, width) if steps > 1 else literal(0)
        index = plus(base, at)
        body: Stmt
        if is_load and width > 1:
            body = VectorLoad(registers, at, shared.name, index, width, CachePolicy.SHARED)
        elif is_load:
            body = StoreStmt(registers, at, Load(shared.name, index, shared.dtype))
        elif width > 1:
            body = VectorStore(shared.name, index, registers, at, width)
        else:
            body = StoreStmt(shared.name, index, Load(registers, at, shared.dtype))
        if steps == 1:
            return [body]
        return [For(u, literal(0), literal(steps), Bind.UNROLL, (body,))]

    # Results.

    def _stores(self) -> list[Stmt]:
        """Return the statements that store the results through shared memory."""
        if not self.results:
            return []
        inputs = [b for b in self.arrays.values() if b.scope is StorageScope.SHARED]
        out: list[Stmt] = []
        placed: list[tuple[str, LoopBuffer]] = []
        for param, registers in self.results.items():
            nbytes = registers.dtype.nbytes
            free = next((b for b in inputs if b.dtype.nbytes == nbytes), None)
            if free is not None and free.dtype is registers.dtype:
                inputs.remove(free)
                shared = free
            else:
                shared = self._shared(f"{param}_s", registers.dtype)
            placed.append((param, shared))
        exists = self._own_exists()
        out.append(Barrier(BarrierScope.WARP))
        for param, shared in placed:
            own = tuple(self._own_part(self.results[param].name, shared, is_load=False))
            out.append(If(exists, own))
        out.append(Barrier(BarrierScope.WARP))
        for param, shared in placed:
            out += self._flat(param, shared, is_load=False)
        return out

    def _own_exists(self) -> Expr:
        """Return the condition that the thread has a row of its own."""
        tx = self._loop_variable(Bind.THREAD_X)
        position = tx if self.share == 1 else _binary("//", tx, literal(self.share))
        return Binary("<", position, Var("num_rows", dt.int64), dt.bool_)

    def _is_streamed(self, param: str) -> bool:
        """Return whether the stores of a result are streamed."""
        stages = [s for p in self.ast.phases for s in p.stages if isinstance(s, Stage)]
        stores = [s for x in stages for s in x.body if isinstance(s, Store)]
        return any(s.stream for s in stores if s.buffer == param)

    def _place(self, buffer: str, index: Expr, at: Point | None) -> tuple[str, Expr]:
        """Return where an access goes: results at the own point are collected in registers."""
        is_result = any(b.name == buffer and b.written for b in self.ast.params)
        if at is not None and is_result and normal(index, self.extents) == self.domain.point_index:
            name = f"{buffer}_r"
            if buffer not in self.results:
                dtype = next(b.dtype for b in self.ast.params if b.name == buffer)
                self._declare(name, dtype)
                self.results[buffer] = self.arrays[name]
            return name, self._local()
        return super()._place(buffer, index, at)

    def _row_variable(self) -> Expr:
        """Return the variable of the row."""
        return Var("row", dt.int64)

    def _thread_of_row(self) -> Var:
        """Return the variable of the thread among those of a row."""
        return Var("part", dt.int64)
