"""build_loops: the scalar form of a kernel, from the stages of a group and a schedule.

A stage is one traversal of the iteration domain between reductions. Each becomes a loop nest of its
own inside the loops over blocks and rows. Inputs that the schedule caches are loaded by nests in
front of the first stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import evolve, field, frozen

from passkit.ast import Binary, Expr, Load, Select, SizeOf, Var, const
from passkit.ast.index import Extents, Sum, normal
from passkit.ast.stage import Fold, KernelAST, Place, Prefetch, Stage
from passkit.ast.stage import Let as StageLet
from passkit.ast.stage import Store as StageStore
from passkit.ast.tidy import replace_children
from passkit.ir.loop import (
    Barrier,
    BarrierScope,
    Bind,
    For,
    If,
    KernelIR,
    Let,
    LoopBuffer,
    Reduce,
    Return,
    Scope,
    Stmt,
    Store,
    index_let,
)
from passkit.ir.rewrite import loads_in, substitute
from passkit.schedule.nest import AxisGroup, NestSchedule
from passkit.space.space import Axis, Space
from passkit.values import dtype as dt
from passkit.values.size import Extent, Size, numel

WARP = 32
_VARIABLES = {
    Bind.GRID: "block",
    Bind.THREAD_Y: "ty",
    Bind.THREAD_X: "tx",
    Bind.SERIAL: "s",
    Bind.UNROLL: "u",
    Bind.VECTOR: "k",
}
"""The names of loop variables. Those of the dialect, such as ``threadIdx.x``, are unsigned."""


def literal(value: int) -> Expr:
    """Return an int64 literal."""
    return const(value, dt.int64)


def plus(a: Expr, b: Expr) -> Expr:
    """Return ``a + b`` of indices; a zero is left out."""
    if a == literal(0):
        return b
    return a if b == literal(0) else Binary("+", a, b, dt.int64)


def times(a: Expr, factor: int) -> Expr:
    """Return ``a * factor`` of an index; a factor of 1 is left out."""
    return a if factor == 1 else Binary("*", a, literal(factor), dt.int64)


class SizeArguments:
    """The sizes that are arguments of the kernel, named ``n0``, ``n1``, … in order of use."""

    def __init__(self) -> None:
        self.names: dict[Extent, str] = {}

    def argument(self, size: Extent) -> Expr:
        """Return the argument that has a size as its value."""
        name = self.names.setdefault(size, f"n{len(self.names)}")
        return Var(name, dt.int64)

    def settle(self, x: Expr) -> Expr:
        """Return ``x`` with literals in place of known sizes, and arguments for symbols."""
        if isinstance(x, SizeOf):
            return self.argument(x.size) if isinstance(x.size, Size) else literal(int(x.size))
        return replace_children(x, self.settle)


@frozen
class Point:
    """Where a statement is executed in a group of axes.

    Attributes:
        base: the point of the group's position 0 of the vector.
        position: the position in the vector; the literal 0 outside of vectors.
        values: the indices of the axes, by name.
    """

    base: Expr
    position: Expr
    values: Mapping[str, Expr] = field(factory=dict)


class LoopBuilder:
    """Builds the scalar form of one kernel.

    Args:
        ast: the stages of the group; values between stages are in registers.
        space: the iteration domain.
        schedule: how it is distributed.
        aliased: the names of parameters that may share memory with another.
    """

    def __init__(
        self, ast: KernelAST, space: Space, schedule: NestSchedule, aliased: frozenset[str]
    ) -> None:
        self.ast, self.space, self.schedule, self.aliased = ast, space, schedule, aliased
        self.sizes = SizeArguments()
        self.extents: Extents = space.extents
        self.arrays: dict[str, LoopBuffer] = {}
        self.registers = {b.name: b for b in ast.scratch if b.place is Place.LANES}
        self.cached: dict[tuple[str, Sum], str] = {}
        self.stage_number = 0
        self.limit: Expr | None = None  # the end of a row whose vectors are tested

    # The kernel.

    def kernel(self, index_bits: int) -> tuple[KernelIR, tuple[Extent, ...], Extent]:
        """Return the kernel, the values of its size arguments, and the number of blocks.

        Args:
            index_bits: the width of index arithmetic.
        """
        group = self.schedule.kept
        (phase,) = self.ast.phases
        (part,) = phase.parts
        count = numel(self.space.axes[k].extent for k in group.axes)
        stages = [s for s in part.stages if isinstance(s, Stage)]
        if self.schedule.reduced is None:
            body = self._elementwise(stages, count)
        else:
            body = self._rows(stages, count)
        params = tuple(
            LoopBuffer(b.name, b.dtype, Scope.GLOBAL, b.extent, b.written) for b in self.ast.params
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
        blocks = (count + (group.chunk - 1)) // group.chunk
        if self.schedule.columns is not None:
            (number,) = self.schedule.columns.axes
            columns, chunk = _known(self.space.axes[number]), self.schedule.columns.chunk
            blocks = blocks * -(-columns // chunk)
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
        rest: tuple[Stmt, ...] = tuple(
            s for stage in stages for s in self._scalar_body(stage, at)
        )
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
        """Return the loop over the steps of a row that is read once, then its results.

        Each step loads some vectors of each thread before it uses the first. What is left behind
        the last whole step has a loop of its own, in which each vector is tested.
        """
        reduced = self.schedule.reduced
        assert reduced is not None
        (first,) = [s for s in stages if s.loops]
        start, stop, length = self._row_range()
        step, base = reduced.chunk, Var("base", dt.int64)
        out: list[Stmt] = [Let(s.var, self._value(s.value, None)) for s in first.before]

        def steps(begin: Expr, end: Expr, limit: Expr | None) -> Stmt:
            self.cached, self.limit = {}, limit
            stage = evolve(first, before=())
            body = (*self._cached_loads([first], base), *self._stage(stage, base, None))
            return For(base, begin, end, Bind.SERIAL, body, step)

        if length % step == 0 and not isinstance(stop, Select):
            out.append(steps(start, stop, None))
        else:
            if isinstance(stop, Select):
                out.append(index_let(Var("stop", dt.int64), stop))
                stop = Var("stop", dt.int64)
            whole = Var("whole", dt.int64)
            rows = stop if start == literal(0) else Binary("-", stop, start, dt.int64)
            count = times(Binary("//", rows, literal(step), dt.int64), step)
            out.append(index_let(whole, plus(start, count)))
            out += [steps(start, whole, None), steps(whole, stop, stop)]
        self.limit = None
        for stage in stages:
            if stage is not first:
                out += self._stage(stage, None, store_guard)
        return out

    def _row_range(self) -> tuple[Expr, Expr, int]:
        """Return the first point of the row's part, its end, and its length unless it is last."""
        axes = self.space.reduced
        length = numel(a.steps for a in axes)
        assert isinstance(length, int)
        if axes[0].chunk is None:
            return literal(0), literal(length), length
        extent = numel(a.extent for a in axes)
        assert isinstance(extent, int)
        start = times(self.space.axes[0].var, length)
        end = plus(start, literal(length))
        if extent % length == 0:
            return start, end, length
        is_short = Binary("<", end, literal(extent), dt.bool_)
        return start, Select(is_short, end, literal(extent), dt.int64), length

    def _bind_axes(self, group: AxisGroup, point: Expr, out: list[Stmt]) -> None:
        """Define the axes of a group from its point, in ``out``."""
        for name, value in self._decoded(group, point).items():
            out.append(index_let(Var(name, dt.int64), value))

    def _decoded(self, group: AxisGroup, point: Expr) -> dict[str, Expr]:
        """Return the index of each axis of a group at a point, by name."""
        axes = [self.space.axes[k] for k in group.axes]
        values: dict[str, Expr] = {}
        stride = 1
        for k, axis in reversed(list(enumerate(axes))):
            value = point
            if stride != 1:
                value = Binary("//", value, literal(stride), dt.int64)
            if k > 0:
                extent = _known(axis)
                value = Binary("%", value, literal(extent), dt.int64)
                stride *= extent
            values[axis.var.name] = value
        return dict(reversed(values.items()))

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
            statements = (*stage.before, *stage.body)
            stored = {s.buffer for s in statements if isinstance(s, StageStore)}
            is_waiting = self.schedule.lanes > 1 and not stored.isdisjoint(self.aliased)
            for s in statements:
                if is_waiting and isinstance(s, StageStore):  # all have read what it replaces
                    is_warp = self.schedule.lanes <= WARP
                    out.append(Barrier(BarrierScope.WARP if is_warp else BarrierScope.BLOCK))
                    is_waiting = False
                out += self._row_statement(s, store_guard)
            return out

        def body(at: Point) -> tuple[Stmt, ...]:
            statements: list[Stmt] = []
            for s in stage.body:
                statement = self._statement(s, at)
                if statement is None:
                    continue
                is_guarded = store_guard is not None and isinstance(statement, Store)
                if is_guarded and self._is_param(statement.buffer):  # type: ignore[union-attr]
                    assert store_guard is not None
                    statement = If(store_guard, (statement,))
                statements.append(statement)
            return tuple(statements)

        before: list[Stmt] = []
        if self.schedule.reduced is not None:
            before = [Let(s.var, self._value(s.value, None)) for s in stage.before]
            return [*before, *self._nest(body, first)]

        def with_before(at: Point) -> tuple[Stmt, ...]:
            lets = tuple(Let(s.var, self._value(s.value, at)) for s in stage.before)
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
    ) -> tuple[tuple[Stmt, ...], dict[str, Expr], Expr | None]:
        """Return definitions in front of the vector loop, the axes' indices, and a guard.

        The guard is the condition that the vector at ``point`` exists, for reduced axes that are
        not a multiple of the distributed points. ``name`` is the stem of new variables.
        """
        axes = [self.space.axes[k] for k in group.axes]
        guard: Expr | None = None
        if group is self.schedule.reduced:
            count = numel(a.extent for a in axes)
            assert isinstance(count, int)
            if self._is_serial():
                guard = None if self.limit is None else Binary("<", point, self.limit, dt.bool_)
            elif count % group.chunk:
                guard = Binary("<", point, literal(count), dt.bool_)
        vector = group.size_of(Bind.VECTOR)
        last = axes[-1].extent
        if len(axes) == 1:
            return (), {axes[0].var.name: plus(point, position)}, guard
        lets: list[Stmt] = []
        if isinstance(last, int) and last % vector == 0:  # a vector lies in one row of the group
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
            lets: list[Stmt] = [Let(s.var, self._value(s.value, at)) for s in stage.before]
            statements = [self._statement(s, at) for s in stage.body]
        finally:
            self.cached, self.registers = cached, registers
        return (*lets, *(s for s in statements if s is not None))

    # Statements and expressions.

    def _row_statement(self, s: object, store_guard: Expr | None) -> list[Stmt]:
        """Return a statement of a stage that computes row values; one thread of a row stores."""
        if isinstance(s, StageLet):
            return [Let(s.var, self._value(s.value, None))]
        assert isinstance(s, StageStore), s
        store = Store(s.buffer, self._index(s.index, None), self._value(s.value, None))
        if self.schedule.lanes == 1:
            return [store if store_guard is None else If(store_guard, (store,))]
        condition: Expr = Binary("==", self._thread_of_row(), literal(0), dt.bool_)
        if store_guard is not None:
            condition = Binary("&", condition, store_guard, dt.bool_)
        return [If(condition, (store,))]

    def _statement(self, s: object, at: Point) -> Stmt | None:
        """Return a statement of a stage at a point; None for one without effect on a GPU."""
        match s:
            case Prefetch():
                return None
            case StageLet(var, value):
                return Let(var, self._value(value, at))
            case StageStore(buffer, index, value, stream):
                target, where = self._place(buffer, index, at)
                is_streamed = stream and self._is_param(target)
                return Store(target, where, self._value(value, at), is_streamed)
        assert isinstance(s, Fold) and s.buffer is None, s  # a nest with scans has no schedule
        value, lanes = self._value(s.value, at), self.schedule.lanes
        return Reduce(s.var, value, s.identity, s.combine, lanes)

    def _value(self, x: Expr, at: Point | None) -> Expr:
        """Return a value at a point, or of a row if ``at`` is None."""
        if isinstance(x, Load):
            buffer, index = self._place(x.buffer, x.index, at)
            return Load(buffer, index, x.dtype)
        if isinstance(x, Var):
            return x if at is None else at.values.get(x.name, x)
        if isinstance(x, SizeOf):
            return self.sizes.settle(x)
        return replace_children(x, lambda child: self._value(child, at))

    def _place(self, buffer: str, index: Expr, at: Point | None) -> tuple[str, Expr]:
        """Return the buffer and the index that an access has at a point.

        An input that is cached, and a value that is kept between stages, are in a register array.
        """
        if buffer in self.registers:
            self._declare(buffer, self.registers[buffer].dtype)
            return buffer, self._local()
        key = buffer, normal(index, self.extents)
        if at is not None and key in self.cached:
            return self.cached[key], self._local()
        return buffer, self._index(index, at)

    def _index(self, index: Expr, at: Point | None) -> Expr:
        """Return an index at a point, or of a row if ``at`` is None."""
        if at is not None:
            linear = self._linear(index, at)
            if linear is not None:
                return linear
            index = substitute(index, at.values)
        return self.sizes.settle(self._with_inner_loads(index, at))

    def _with_inner_loads(self, index: Expr, at: Point | None) -> Expr:
        """Return an index with the loads inside it at the point."""
        if isinstance(index, Load):
            return self._value(index, at)
        return replace_children(index, lambda child: self._with_inner_loads(child, at))

    def _linear(self, index: Expr, at: Point) -> Expr | None:
        """Return the index of an element at the own point of the domain; None for another one."""
        if loads_in(index) or normal(index, self.extents) != self.space.full:
            return None
        point = plus(at.base, at.position)
        if self.schedule.reduced is None:
            return point
        if any(a.reduced for a in self.space.axes[: len(self.schedule.kept.axes)]):
            return None
        length = numel(a.extent for a in self.space.reduced)
        assert isinstance(length, int)
        if self.space.reduced[0].chunk is not None:
            return plus(at.base, at.position)  # the chunk begins at the base
        row = self._row_variable()
        return plus(plus(times(row, length), at.base), at.position)

    def _row_variable(self) -> Expr:
        """Return the variable of the row that is read and written."""
        is_clamped = self.schedule.lanes % WARP and self.schedule.kept.size_of(Bind.THREAD_Y) > 1
        return Var("row_read" if is_clamped else "row", dt.int64)

    def _thread_of_row(self) -> Var:
        """Return the variable of the thread among those of a row."""
        return self._loop_variable(Bind.THREAD_X)

    def _local(self) -> Expr:
        """Return the position of the current point among those of a thread."""
        group = self.schedule.reduced or self.schedule.kept
        local: Expr = literal(0)
        for p in group.parts:
            if p.bind in (Bind.UNROLL, Bind.VECTOR) and p.size and p.size > 1:
                local = times(local, p.size) if local != literal(0) else local
                local = plus(local, self._loop_variable(p.bind))
        return local

    def _loop_variable(self, bind: Bind) -> Var:
        """Return the variable of the loop over a part of the distributed group."""
        return Var(_VARIABLES[bind], dt.int64)

    def _declare(self, name: str, dtype: dt.DType) -> None:
        """Add a register array for a thread's points."""
        group = self.schedule.reduced or self.schedule.kept
        array = LoopBuffer(name, dtype, Scope.REGISTER, group.per_thread, True)
        self.arrays.setdefault(name, array)

    def _is_param(self, buffer: str) -> bool:
        """Return whether a buffer is a parameter of the kernel."""
        return any(b.name == buffer for b in self.ast.params)

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
                    return (Store(name, self._local(), value),)

                out += self._nest(body, first)
                self.cached[key] = name
        return out

    def _full_reads(self, stages: Sequence[Stage], buffer: str) -> list[Load]:
        """Return the loads of a parameter at the own point of the iteration domain."""
        load_at: dict[Sum, Load] = {}
        for stage in stages:
            for s in stage.body:
                for x in _stage_expressions(s):
                    for load in loads_in(x):
                        at = normal(load.index, self.extents)
                        if load.buffer == buffer and at == self.space.full:
                            load_at.setdefault(at, load)
        return list(load_at.values())


def _stage_expressions(s: object) -> tuple[Expr, ...]:
    """Return the expressions of a statement of a stage."""
    match s:
        case StageLet(_, value):
            return (value,)
        case StageStore(_, index, value):
            return index, value
        case Fold(_, value):
            return (value,)
    return ()


def _known(axis: Axis) -> int:
    """Return the extent of an axis, which is a number: the planner sees to that."""
    assert isinstance(axis.extent, int), axis
    return axis.extent


