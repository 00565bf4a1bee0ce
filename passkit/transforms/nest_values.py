"""The values of a nest: expressions of a stage at a point of the domain, and where they are.

An input that the schedule caches, and a value between stages, are elements of register arrays. Any
other access is to a parameter, at an index of the axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from passkit.analysis.domain import Axis, Domain
from passkit.ast import Binary, Expr, Load, SizeOf, Var
from passkit.ast.index import Extents, Sum, normal, ravel
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
from passkit.values.size import Extent, Size, divide_exactly, known_factor, numel

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
    """The sizes that are arguments of the kernel, named ``n0``, ``n1``, … in order of use.

    With ``has_factors`` a size such as ``4*n`` in an index is 4 times an argument, which shows that
    vectors of 4 elements are aligned.
    """

    def __init__(self, has_factors: bool = False) -> None:
        self.has_factors = has_factors
        self.names: dict[Extent, str] = {}

    def argument(self, size: Extent) -> Expr:
        """Return the argument that has a size as its value."""
        name = self.names.setdefault(size, f"n{len(self.names)}")
        return Var(name, dt.int64)

    def size(self, size: Extent) -> Expr:
        """Return a size: a literal, an argument, or an argument times the number that divides it.

        The latter is with ``has_factors`` only.
        """
        if isinstance(size, int):
            return literal(size)
        factor = known_factor(size) if self.has_factors else 1
        if factor == 1:
            return self.argument(size)
        return times(self.argument(size // factor), factor)

    def settle(self, x: Expr) -> Expr:
        """Return ``x`` with literals in place of known sizes, and arguments for symbols."""
        if isinstance(x, SizeOf):
            return self.size(x.size)
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
        unknown = {k for k, a in enumerate(domain.axes) if isinstance(a.extent, Size)}
        outer = {*schedule.kept.axes[:1]}
        self.sizes = SizeArguments(has_factors=not unknown <= outer)
        self.extents: Extents = domain.extents
        self.arrays: dict[str, LoopBuffer] = {}
        self.registers = {b.name: b for b in ast.scratch if b.place is Place.LANES}
        self.cached: dict[tuple[str, Sum], str] = {}
        self.stage_number = 0
        self.limit: Expr | None = None  # the end of a row whose vectors are tested
        self.has_counted_chunks = self._has_counted_chunks()

    def _bind_axes(self, group: AxisGroup, point: Expr, out: list[Stmt]) -> None:
        """Define the axes of a group from its point, in ``out``."""
        for name, value in self._decoded(group, point).items():
            out.append(index_let(Var(name, dt.int64), value))

    def _decoded(self, group: AxisGroup, point: Expr) -> dict[str, Expr]:
        """Return the index of each axis of a group at a point, by name.

        With ``has_counted_chunks`` the points of a chunk are counted from its begin on.
        """
        axes = [self.domain.axes[k] for k in group.axes]
        values: dict[str, Expr] = {}
        stride: Extent = 1
        for k, axis in reversed(list(enumerate(axes))):
            value = point
            if stride != 1:
                value = Binary("//", value, self.sizes.size(stride), dt.int64)
            if k > 0:
                value = Binary("%", value, self.sizes.size(axis.length), dt.int64)
                stride = axis.length * stride
            if axis.chunk is not None and self.has_counted_chunks:
                value = plus(self._chunk_start(axis), value)
            values[axis.var.name] = value
        return dict(reversed(values.items()))

    def _has_counted_chunks(self) -> bool:
        """Return whether the points of a chunk are counted from its begin on, and tested.

        So are those of several axes, and points that are stored where the last chunk may be
        shorter: their elements follow from the chunk and the count then.
        """
        reduced = self.domain.reduced
        axis = next((a for a in reduced if a.chunk is not None), None)
        if axis is None or len(reduced) > 1:
            return axis is not None
        stages = self.ast.phases[0].parts[0].stages
        loops = [stage for stage in stages if isinstance(stage, Stage) and stage.loops]
        of_points = [s for stage in loops for s in stage.body]
        has_stores = any(isinstance(s, Store) and self._is_param(s.buffer) for s in of_points)
        return has_stores and divide_exactly(axis.extent, axis.length) is None

    def _chunk_start(self, axis: Axis) -> Expr:
        """Return where the chunk of a row begins along the axis that is reduced in chunks."""
        number = self.domain.axes[0].var
        if axis.length == 1:
            return number
        return Binary("*", number, self.sizes.size(axis.length), dt.int64)

    def _chunk_guard(self, values: Mapping[str, Expr]) -> Expr | None:
        """Return the condition that a point is within the last chunk, if that may be shorter.

        None also without ``has_counted_chunks``: then the bounds of loops end the chunk. ``values``
        are the indices of the reduced axes.
        """
        axis = next((a for a in self.domain.reduced if a.chunk is not None), None)
        if axis is None or not self.has_counted_chunks:
            return None
        if divide_exactly(axis.extent, axis.length) is not None:
            return None
        return Binary("<", values[axis.var.name], self.sizes.size(axis.extent), dt.bool_)

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
        if len(axes) < 2 or has_loads(index):
            return False
        row = ravel([a.var for a in axes], tuple(a.extent for a in axes), self.extents)
        return normal(index, self.extents) == row

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
        if any(a.chunk is not None for a in self.domain.reduced):  # it begins at the base
            is_flat = len(self.domain.kept) == 1 and not self.has_counted_chunks
            return plus(at.base, at.position) if is_flat else None
        row = self._row_variable()
        first = row if length == 1 else Binary("*", row, self.sizes.size(length), dt.int64)
        return plus(plus(first, at.base), at.position)

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
