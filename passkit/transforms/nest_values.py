"""The values of a nest: expressions of a stage at a point of the domain, and where they are.

An input that the schedule caches, and a value between stages, are elements of register arrays. Any
other access is to a parameter, at an index of the axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from passkit.analysis.domain import Axis, Domain
from passkit.ast import Binary, Expr, Load, SizeOf, Var
from passkit.ast.index import Extents, Sum, normal
from passkit.ast.stage import Fold, KernelAST, Let, Place, Prefetch, Stage, Store
from passkit.ast.tidy import loads_of, replace_children
from passkit.ast.walk import has_loads
from passkit.ir.index import literal, plus, times
from passkit.ir.loop import (
    WARP,
    Bind,
    If,
    LetStmt,
    LoopBuffer,
    ReduceStmt,
    Stmt,
    StorageScope,
    StoreStmt,
    index_let,
)
from passkit.ir.rewrite import substitute
from passkit.schedule.nest import AxisGroup, NestSchedule
from passkit.values import dtype as dt
from passkit.values.size import Extent, Size, numel

_VARIABLES = {
    Bind.GRID: "block",
    Bind.THREAD_Y: "ty",
    Bind.THREAD_X: "tx",
    Bind.SERIAL: "s",
    Bind.UNROLL: "u",
    Bind.VECTOR: "k",
}
"""The names of loop variables. Those of the dialect, such as ``threadIdx.x``, are unsigned."""


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


class NestValues:
    """The values of one kernel: where each is, and its expression at a point of the domain.

    Args:
        ast: the stages of the group; values between stages are in registers.
        domain: the iteration domain.
        schedule: how it is distributed.
        aliased: the names of parameters that may share memory with another.
    """

    def __init__(
        self, ast: KernelAST, domain: Domain, schedule: NestSchedule, aliased: frozenset[str]
    ) -> None:
        self.ast, self.domain, self.schedule, self.aliased = ast, domain, schedule, aliased
        self.sizes = SizeArguments()
        self.extents: Extents = domain.extents
        self.arrays: dict[str, LoopBuffer] = {}
        self.registers = {b.name: b for b in ast.scratch if b.place is Place.LANES}
        self.cached: dict[tuple[str, Sum], str] = {}
        self.stage_number = 0
        self.limit: Expr | None = None  # the end of a row whose vectors are tested

    def _bind_axes(self, group: AxisGroup, point: Expr, out: list[Stmt]) -> None:
        """Define the axes of a group from its point, in ``out``."""
        for name, value in self._decoded(group, point).items():
            out.append(index_let(Var(name, dt.int64), value))

    def _decoded(self, group: AxisGroup, point: Expr) -> dict[str, Expr]:
        """Return the index of each axis of a group at a point, by name."""
        axes = [self.domain.axes[k] for k in group.axes]
        values: dict[str, Expr] = {}
        stride = 1
        for k, axis in reversed(list(enumerate(axes))):
            value = point
            if stride != 1:
                value = Binary("//", value, literal(stride), dt.int64)
            if k > 0:
                extent = known_extent(axis)
                value = Binary("%", value, literal(extent), dt.int64)
                stride *= extent
            values[axis.var.name] = value
        return dict(reversed(values.items()))

    # Statements and expressions.

    def _row_statement(self, s: object, store_guard: Expr | None) -> list[Stmt]:
        """Return a statement of a stage that computes row values; one thread of a row stores."""
        if isinstance(s, Let):
            return [LetStmt(s.var, self._value(s.value, None))]
        assert isinstance(s, Store), s
        index = Var("row", dt.int64) if self._is_own_row(s.index) else self._index(s.index, None)
        store = StoreStmt(s.buffer, index, self._value(s.value, None))
        if self.schedule.lanes == 1:
            return [store if store_guard is None else If(store_guard, (store,))]
        condition: Expr = Binary("==", self._thread_of_row(), literal(0), dt.bool_)
        if store_guard is not None:
            condition = Binary("&", condition, store_guard, dt.bool_)
        return [If(condition, (store,))]

    def _is_own_row(self, index: Expr) -> bool:
        """Return whether an index of several kept axes is the number of the row."""
        axes = [self.domain.axes[k] for k in self.schedule.kept.axes]
        if (
            len(axes) < 2
            or has_loads(index)
            or not all(isinstance(a.extent, int) for a in axes[1:])
        ):
            return False
        row: Expr = axes[0].var
        for axis in axes[1:]:
            row = plus(times(row, known_extent(axis)), axis.var)
        return normal(index, self.extents) == normal(row, self.extents)

    def _statement(self, s: object, at: Point) -> Stmt | None:
        """Return a statement of a stage at a point; None for one without effect on a GPU."""
        match s:
            case Prefetch():
                return None
            case Let(var, value):
                return LetStmt(var, self._value(value, at))
            case Store(buffer, index, value, stream):
                target, where = self._place(buffer, index, at)
                is_streamed = stream and self._is_param(target)
                return StoreStmt(target, where, self._value(value, at), is_streamed)
        assert isinstance(s, Fold) and s.buffer is None, s  # a nest with scans has no schedule
        value, lanes = self._value(s.value, at), self.schedule.lanes
        return ReduceStmt(s.var, value, s.identity, s.combine, lanes)

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
        if has_loads(index) or normal(index, self.extents) != self.domain.point_index:
            return None
        point = plus(at.base, at.position)
        if self.schedule.reduced is None:
            return point
        if any(a.reduced for a in self.domain.axes[: len(self.schedule.kept.axes)]):
            return None
        length = numel(a.extent for a in self.domain.reduced)
        assert isinstance(length, int)
        if self.domain.reduced[0].chunk is not None:  # the chunk begins at the base
            return plus(at.base, at.position) if len(self.domain.kept) == 1 else None
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
        array = LoopBuffer(name, dtype, StorageScope.REGISTER, group.per_thread, True)
        self.arrays.setdefault(name, array)

    def _is_param(self, buffer: str) -> bool:
        """Return whether a buffer is a parameter of the kernel."""
        return any(b.name == buffer for b in self.ast.params)

    def _full_reads(self, stages: Sequence[Stage], buffer: str) -> list[Load]:
        """Return the loads of a parameter at the own point of the iteration domain."""
        load_at: dict[Sum, Load] = {}
        for load in loads_of(x for stage in stages for x in stage.body):
            if load.buffer == buffer:
                at = normal(load.index, self.extents)
                if at == self.domain.point_index:
                    load_at.setdefault(at, load)
        return list(load_at.values())


def known_extent(axis: Axis) -> int:
    """Return the extent of an axis, which is a number: the planner sees to that."""
    assert isinstance(axis.extent, int), axis
    return axis.extent
