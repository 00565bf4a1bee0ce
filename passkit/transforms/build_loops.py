"""build_loops: the scalar form of a kernel, from the stages of a group and a schedule.

A stage is one traversal of the iteration domain between reductions. Each becomes a loop nest of its
own inside the loops over blocks and rows. Inputs that the schedule caches are loaded by nests in
front of the first stage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from attrs import evolve

from passkit.ast import Binary, Expr, Load, Select, Var
from passkit.ast.index import normal
from passkit.ast.stage import Stage
from passkit.ir.index import literal, plus, times
from passkit.ir.loop import (
    WARP,
    Bind,
    For,
    If,
    KernelIR,
    LetStmt,
    LoopBuffer,
    Return,
    Stmt,
    StorageScope,
    StoreStmt,
    index_let,
)
from passkit.schedule.nest import AxisGroup
from passkit.transforms.nest_values import NestValues, Point
from passkit.values import dtype as dt
from passkit.values.size import Extent, divide_exactly, known_factor, numel


class LoopBuilder(NestValues):
    """Builds the scalar form of one kernel; see `NestValues` for its arguments."""

    # The kernel.

    def kernel(self, index_bits: int) -> tuple[KernelIR, tuple[Extent, ...], Extent]:
        """Return the kernel, the values of its size arguments, and the number of blocks.

        Args:
            index_bits: the width of index arithmetic.
        """
        (phase,) = self.ast.phases
        (part,) = phase.parts
        count = numel(self.domain.axes[k].extent for k in self.schedule.kept.axes)
        stages = [s for s in part.stages if isinstance(s, Stage)]
        if self.schedule.reduced is None:
            body = self._elementwise(stages, count)
        else:
            body = self._rows(stages, count)
        params = tuple(
            LoopBuffer(b.name, b.dtype, StorageScope.GLOBAL, b.extent, b.written)
            for b in self.ast.params
        )
        kernel = KernelIR(
            params,
            tuple(self.sizes.names.values()),
            tuple(self.arrays.values()),
            body,
            self.schedule.launch,
            index_bits,
            self.aliased,
        )
        blocks = self.schedule.blocks([a.extent for a in self.domain.axes])
        return kernel, tuple(self.sizes.names), blocks

    def _elementwise(self, stages: Sequence[Stage], count: Extent) -> tuple[Stmt, ...]:
        """Return the body of a nest without reductions.

        A block whose points all exist runs the distributed loops, the last one a loop over points.
        """
        group, chunk = self.schedule.kept, self.schedule.kept.chunk
        tile = Var("block", dt.int64)
        first = Var("first", dt.int64)
        n = self.sizes.argument(count)
        whole = [*self._cached_loads(stages, first), *self._stage_nests(stages, first)]
        point = Var("point", dt.int64)
        at = Point(point, literal(0), self._decoded(group, point))
        threads = self.schedule.launch.threads
        lane = self._loop_variable(Bind.THREAD_X)
        rest: tuple[Stmt, ...] = tuple(s for stage in stages for s in self._scalar_body(stage, at))
        stop, end = plus(first, literal(chunk)), Var("end", dt.int64)
        last = Select(Binary("<", stop, n, dt.bool_), stop, n, dt.int64)
        points = For(point, plus(first, lane), end, Bind.SERIAL, rest, threads)
        tail = (
            index_let(end, last),
            For(lane, literal(0), literal(threads), Bind.THREAD_X, (points,)),
        )
        is_whole = Binary("<=", plus(first, literal(chunk)), n, dt.bool_)
        body: tuple[Stmt, ...] = (
            index_let(first, times(tile, chunk)),
            If(is_whole, tuple(whole), tail, is_peeled=True),
        )
        return (For(tile, literal(0), literal(1), Bind.GRID, body),)

    def _rows(self, stages: Sequence[Stage], count: Extent) -> tuple[Stmt, ...]:
        """Return the body of a nest whose rows are reduced."""
        group, launch = self.schedule.kept, self.schedule.launch
        rows = group.size_of(Bind.THREAD_Y)
        row, n = Var("row", dt.int64), self.sizes.argument(count)
        y, tile = Var("ty", dt.int64), Var("block", dt.int64)
        inner: list[Stmt] = [index_let(row, plus(times(tile, rows), y) if rows > 1 else tile)]
        store_guard: Expr | None = None
        at = row
        if rows > 1:
            exists = Binary("<", row, n, dt.bool_)
            if self.schedule.lanes % WARP == 0 or launch.threads <= self.schedule.lanes:
                inner.append(If(Binary(">=", row, n, dt.bool_), (Return(),)))
            else:  # threads of one warp have several rows: all take part in shuffles
                last = Binary("-", n, literal(1), dt.int64)
                at = Var("row_read", dt.int64)
                inner.append(index_let(at, Select(exists, row, last, dt.int64)))
                store_guard = exists
        self._bind_axes(group, at, inner)
        if self._is_serial():
            inner += self._serial_rows(stages, store_guard)
        else:
            inner += self._cached_loads(stages, None)
            inner += self._stage_nests(stages, None, store_guard)
        body: tuple[Stmt, ...] = tuple(inner)
        if rows > 1:
            body = (For(y, literal(0), literal(rows), Bind.THREAD_Y, body),)
        return (For(tile, literal(0), literal(1), Bind.GRID, body),)

    def _is_serial(self) -> bool:
        """Return whether the threads of a row go through it in several steps."""
        reduced = self.schedule.reduced
        return reduced is not None and any(p.bind is Bind.SERIAL for p in reduced.parts)

    def _serial_rows(self, stages: Sequence[Stage], store_guard: Expr | None) -> list[Stmt]:
        """Return the loops of each stage over the steps of a row, and what is computed per row.

        Each step loads some vectors of each thread before it uses the first.
        """
        reduced = self.schedule.reduced
        assert reduced is not None
        out: list[Stmt] = []
        bounds: list[Stmt] | None = None
        for stage in stages:
            if not stage.loops:
                out += self._stage(stage, None, store_guard)
                continue
            out += [LetStmt(s.var, self._value(s.value, None)) for s in stage.before]
            lets, loops = self._stepped(reduced.chunk, partial(self._row_step, stage, store_guard))
            if bounds is None:
                bounds = lets
                out += bounds
            out += loops
            self.limit = None
        return out

    def _row_step(
        self, stage: Stage, store_guard: Expr | None, base: Expr, limit: Expr | None
    ) -> tuple[Stmt, ...]:
        """Return a step of a stage through a row: loads of inputs, then the stage's loops.

        Args:
            stage: the stage.
            store_guard: the condition under which the row exists; None if it does.
            base: the first point of the step.
            limit: the end of the points if not all exist.
        """
        self.cached, self.limit = {}, limit
        inner = evolve(stage, before=())
        return (*self._cached_loads([stage], base), *self._stage(inner, base, store_guard))

    def _stepped(
        self, step: int, body: Callable[[Expr, Expr | None], tuple[Stmt, ...]]
    ) -> tuple[list[Stmt], list[Stmt]]:
        """Return definitions, and the loops through a row, or a block's chunk of one, in steps.

        What is left behind the last whole step has a loop of its own, except where each point of a
        chunk is tested anyway.

        Args:
            step: the points of a step.
            body: returns the statements of a step that begins at a point; with an end, those that
                test each point, or vector, against it.
        """
        start, stop, length = self._row_range()
        base = Var("base", dt.int64)
        if known_factor(length) % step == 0 and not isinstance(stop, Select):
            return [], [For(base, start, stop, Bind.SERIAL, body(base, None), step)]
        lets: list[Stmt] = []
        if isinstance(stop, Select):
            lets.append(index_let(Var("stop", dt.int64), stop))
            stop = Var("stop", dt.int64)
        if self.has_counted_chunks or (isinstance(length, int) and length < step):
            return lets, [For(base, start, stop, Bind.SERIAL, body(base, stop), step)]
        whole = Var("whole", dt.int64)
        rows = stop if start == literal(0) else Binary("-", stop, start, dt.int64)
        count = times(Binary("//", rows, literal(step), dt.int64), step)
        lets.append(index_let(whole, plus(start, count)))
        return lets, [
            For(base, start, whole, Bind.SERIAL, body(base, None), step),
            For(base, whole, stop, Bind.SERIAL, body(base, stop), step),
        ]

    def _row_range(self) -> tuple[Expr, Expr, Extent]:
        """Return the first point of the row's part, its end, and its length unless it is last.

        With ``has_counted_chunks`` points are counted from its begin on.
        """
        axes = self.domain.reduced
        length = numel(a.length for a in axes)
        if axes[0].chunk is None or self.has_counted_chunks:
            return literal(0), self.sizes.size(length), length
        start = self._chunk_start(axes[0])
        end = plus(start, self.sizes.size(length))
        if divide_exactly(axes[0].extent, length) is not None:
            return start, end, length
        extent = self.sizes.size(axes[0].extent)
        is_short = Binary("<", end, extent, dt.bool_)
        return start, Select(is_short, end, extent, dt.int64), length

    # Loop nests of stages.

    def _stage_nests(
        self, stages: Sequence[Stage], first: Expr | None, store_guard: Expr | None = None
    ) -> list[Stmt]:
        """Return the statements of all stages; ``first`` is the first point of the block.

        ``store_guard`` is the condition under which the row exists, if threads without a row take
        part.
        """
        out: list[Stmt] = []
        for stage in stages:
            out += self._stage(stage, first, store_guard)
        return out

    def _stage(self, stage: Stage, first: Expr | None, store_guard: Expr | None) -> list[Stmt]:
        """Return the loops of a stage, or the statements of one that computes row values."""
        if not stage.loops:
            out: list[Stmt] = []
            for s in (*stage.before, *stage.body):
                out += self._row_statement(s, store_guard)
            return out

        def body(at: Point) -> tuple[Stmt, ...]:
            statements: list[Stmt] = []
            for s in stage.body:
                statement = self._statement(s, at)
                if statement is None:
                    continue
                is_guarded = store_guard is not None and isinstance(statement, StoreStmt)
                if is_guarded and self._is_param(statement.buffer):  # type: ignore[union-attr]
                    assert store_guard is not None
                    statement = If(store_guard, (statement,))
                statements.append(statement)
            return tuple(statements)

        before: list[Stmt] = []
        if self.schedule.reduced is not None:
            before = [LetStmt(s.var, self._value(s.value, None)) for s in stage.before]
            return [*before, *self._nest(body, first)]

        def with_before(at: Point) -> tuple[Stmt, ...]:
            lets = tuple(LetStmt(s.var, self._value(s.value, at)) for s in stage.before)
            return (*lets, *body(at))

        return self._nest(with_before, first)

    def _nest(self, body: Callable[[Point], tuple[Stmt, ...]], first: Expr | None) -> list[Stmt]:
        """Return the loops of the distributed group around a body.

        They are those of the reduced axes, or without reductions of the kept ones, whose block
        begins at the point ``first``.
        """
        number = self.stage_number = self.stage_number + 1
        group = self.schedule.reduced or self.schedule.kept
        outside = (Bind.GRID, Bind.THREAD_Y, Bind.SERIAL)
        parts = [p for p in group.parts if p.bind not in outside]
        stem = "j" if self.schedule.reduced is not None else "e"
        loops: list[tuple[Var, int, Bind]] = []
        base: Expr = literal(0) if first is None else first
        position: Expr = literal(0)
        inner = 1
        for p in reversed(parts):
            assert p.size is not None
            is_thread = p.bind is Bind.THREAD_X and self.schedule.reduced is not None
            var = self._thread_of_row() if is_thread else self._loop_variable(p.bind)
            loops.append((var, p.size, p.bind))
            if p.bind is Bind.VECTOR:
                position = var
            inner *= p.size
        strides: list[int] = []
        stride = 1
        for _, size, _ in loops:
            strides.append(stride)
            stride *= size
        for (var, size, bind), step in reversed(list(zip(loops, strides, strict=True))):
            if bind is not Bind.VECTOR and size > 1:
                base = plus(base, times(var, step))
        name = f"{stem}{number}"
        point = Var(name, dt.int64)
        lets, values, guard = self._axes_at(group, point, position, name)
        statements = body(Point(point, position, values))
        has_vector = bool(loops) and loops[0][2] is Bind.VECTOR
        if has_vector:
            var, size, bind = loops.pop(0)
            statements = (For(var, literal(0), literal(size), bind, statements),)
        if group is self.schedule.reduced:
            of_chunk = self._chunk_guard({s.var.name.rpartition("_")[0]: s.var for s in lets})
            statements = statements if of_chunk is None else (If(of_chunk, statements),)
        statements = (*lets, *statements)
        if guard is not None:
            statements = (If(guard, statements),)
        statements = (index_let(point, base), *statements)
        for var, size, bind in loops:
            is_defined = bind is Bind.THREAD_X and self.schedule.tile is not None
            if not is_defined and (size > 1 or bind is Bind.THREAD_X):
                statements = (For(var, literal(0), literal(size), bind, statements),)
        return list(statements)

    def _axes_at(
        self, group: AxisGroup, point: Var, position: Expr, name: str
    ) -> tuple[tuple[LetStmt, ...], dict[str, Expr], Expr | None]:
        """Return definitions in front of the vector loop, the axes' indices, and a guard.

        The guard is the condition that the vector at ``point`` exists, for reduced axes that are
        not a multiple of the distributed points. ``name`` is the stem of new variables.
        """
        axes = [self.domain.axes[k] for k in group.axes]
        guard: Expr | None = None
        if group is self.schedule.reduced:
            count = numel(a.extent for a in axes)
            if self._is_serial():
                guard = None if self.limit is None else Binary("<", point, self.limit, dt.bool_)
            elif isinstance(count, int) and count % group.chunk:
                guard = Binary("<", point, literal(count), dt.bool_)
        vector = group.size_of(Bind.VECTOR)
        if len(axes) == 1 and not self.has_counted_chunks:
            return (), {axes[0].var.name: plus(point, position)}, guard
        lets: list[LetStmt] = []
        if known_factor(axes[-1].extent) % vector == 0:  # a vector lies in one row of the group
            values = self._decoded(group, point)
            named: dict[str, Expr] = {}
            for axis, value in values.items():
                var = Var(f"{axis}_{name}", dt.int64)
                lets.append(index_let(var, value))
                named[axis] = var
            named[axes[-1].var.name] = plus(named[axes[-1].var.name], position)
            return tuple(lets), named, guard
        return (), self._decoded(group, plus(point, position)), guard

    def _scalar_body(self, stage: Stage, at: Point) -> tuple[Stmt, ...]:
        """Return the statements of a stage without reductions at one point, without caches."""
        cached, self.cached = self.cached, {}
        registers, self.registers = self.registers, {}
        try:
            lets: list[Stmt] = [LetStmt(s.var, self._value(s.value, at)) for s in stage.before]
            statements = [self._statement(s, at) for s in stage.body]
        finally:
            self.cached, self.registers = cached, registers
        return (*lets, *(s for s in statements if s is not None))

    # Cached inputs.

    def _cached_loads(self, stages: Sequence[Stage], first: Expr | None) -> list[Stmt]:
        """Return the nests that load the cached inputs into registers; later reads use these."""
        out: list[Stmt] = []
        for number in self.schedule.cached:
            param = self.ast.params[number]
            for load in self._full_reads(stages, param.name):
                key = load.buffer, normal(load.index, self.extents)
                if key in self.cached:
                    continue
                name = f"{param.name}_r"
                self._declare(name, param.dtype)

                def body(at: Point, load: Load = load, name: str = name) -> tuple[Stmt, ...]:
                    value = Load(load.buffer, self._index(load.index, at), load.dtype)
                    return (StoreStmt(name, self._local(), value),)

                out += self._nest(body, first)
                self.cached[key] = name
        return out
