"""Points inside a block: each belongs to some threads, which run all stages of a part for it.

Arrays that the part has for itself, such as totals of columns, are variables of a thread.
"""

from __future__ import annotations

from passkit.ast import Binary, Const, Expr, Load, Select, SizeOf, Var
from passkit.ast.stage import Fold, Let, Loop, Prefetch, Stage, Statement, Store
from passkit.ast.tidy import replace_children
from passkit.ir.index import literal, plus, times
from passkit.ir.loop import (
    Assign,
    Bind,
    Declare,
    For,
    If,
    LetStmt,
    Stmt,
    StoreStmt,
    WarpReduce,
    index_let,
)
from passkit.ir.rewrite import combined
from passkit.schedule.block import PointMap
from passkit.schedule.block_nest import ROW, PointPart
from passkit.transforms.block_values import (
    THREAD,
    BlockValues,
    all_of,
    guarded,
    index_var,
    less,
    quotient,
    remainder,
    unrolled,
    zero_of,
)
from passkit.values import dtype as dt

UNROLL = 4
"""The iterations of a serial loop of known length that are executed at a time."""


class PointPartBuilder:
    """Builds the statements of one part.

    Args:
        values: what the parts of the kernel have in common.
        number: the number of the part.
        part: the part.
        own: how the threads of the block share out points.
    """

    def __init__(self, values: BlockValues, number: int, part: PointPart, own: PointMap) -> None:
        self.values, self.part, self.prefix = values, part, f"p{number}"
        self.lanes = own.lanes
        self.row, self.column, self.lane = (
            index_var(f"{self.prefix}_{name}") for name in ("row", "column", "lane")
        )
        self.own: dict[str, Var] = {}
        self.store_guard: list[Expr] = []

    def statements(self) -> list[Stmt]:
        """Return the loop over points, as many at a time as the block has threads for.

        Threads of points that do not exist have nothing to do. Where threads share out a point,
        they compute the first point, and store nothing: all threads of a warp exchange totals.
        """
        part, at_once = self.part, self.values.schedule.threads // self.lanes
        count = part.rows * part.columns
        passes = -(-count // at_once)
        first, point = index_var("first_point_of_pass"), index_var(f"{self.prefix}_point")
        body: list[Stmt] = [
            index_let(point, plus(first, quotient(THREAD, self.lanes))),
            index_let(self.row, quotient(point, part.columns)),
            index_let(self.column, remainder(point, part.columns)),
        ]
        conditions = [less(point, literal(count))] if passes * at_once > count else []
        for var, bound in ((self.row, part.bound), (self.column, part.column_bound)):
            if bound is not None:
                conditions.append(less(var, self.values.settled(bound)))
        exists = all_of(conditions)
        if self.lanes > 1:
            body.append(index_let(self.lane, remainder(THREAD, self.lanes)))
            self.store_guard = [Binary("==", self.lane, literal(0), dt.bool_), *conditions]
            if exists is not None:
                body += self._read_first_point(exists)
        inner = tuple(x for stage in part.stages for x in self._stage(stage))
        body += inner if exists is None or self.lanes > 1 else [If(exists, inner)]
        stop = literal(passes * at_once)
        return [For(first, literal(0), stop, Bind.SERIAL, tuple(body), at_once)]

    def _read_first_point(self, exists: Expr) -> list[Stmt]:
        """Let threads of points that do not exist read the first one; return the definitions."""
        out: list[Stmt] = []
        for name in ("row", "column"):
            own, read = getattr(self, name), index_var(f"{self.prefix}_read_{name}")
            out.append(index_let(read, Select(exists, own, literal(0), dt.int64)))
            setattr(self, name, read)
        return out

    def _stage(self, stage: Stage) -> list[Stmt]:
        """Return the statements of a stage for the thread's point."""
        out: list[Stmt] = [LetStmt(s.var, self._value(s.value)) for s in stage.before]
        totals: list[Stmt] = []
        for s in stage.body:
            if isinstance(s, Fold):
                assert s.buffer is not None
                total = self._own(s.buffer, s.identity.dtype)
                out.append(Declare(total, s.identity))
                if self.lanes > 1:
                    totals.append(WarpReduce(total, s.combine, self.lanes))
            elif isinstance(s, Store) and not self._is_memory(s.buffer):
                dtype = s.value.dtype
                out.append(Declare(self._own(s.buffer, dtype), zero_of(dtype)))
        body = tuple(x for s in stage.body for x in self._statement(s))
        for k, loop in enumerate(reversed(stage.loops)):
            body = tuple(self._loop(loop, body, is_innermost=k == 0))
        return [*out, *body, *totals]

    def _loop(self, loop: Loop, body: tuple[Stmt, ...], is_innermost: bool) -> list[Stmt]:
        """Return a serial loop around statements; an innermost one of known length is unrolled.

        The threads of a point share its iterations out.
        """
        var, start, stop = loop.var, self._value(loop.start), self._value(loop.stop)
        if loop.limit is not None:
            limit = self._value(loop.limit)
            stop = Select(Binary("<", stop, limit, dt.bool_), stop, limit, dt.int64)
        if not is_innermost or not isinstance(start, Const) or not isinstance(stop, Const):
            return [For(var, start, stop, Bind.SERIAL, body)]
        own = self.lane if self.lanes > 1 else literal(0)
        begin, end, step = int(start.value), int(stop.value), UNROLL * self.lanes
        whole = begin + (end - begin) // step * step
        base, u = index_var(f"{var.name}_base"), index_var("u")
        out: list[Stmt] = []
        if whole > begin:
            at = plus(plus(base, times(u, self.lanes)), own)
            inner = unrolled(u, UNROLL, index_let(var, at), *body)
            out.append(For(base, start, literal(whole), Bind.SERIAL, (inner,), step))
        if end > whole:
            first = plus(literal(whole), own)
            out.append(For(var, first, stop, Bind.SERIAL, body, self.lanes))
        return out

    def _statement(self, s: Statement) -> list[Stmt]:
        """Return a statement for the thread's point."""
        match s:
            case Prefetch():
                return []
            case Let(var, value):
                return [LetStmt(var, self._value(value))]
            case Store(buffer, index, value, stream):
                if not self._is_memory(buffer):
                    return [Assign(self.own[buffer], self._value(value))]
                at, array = self._value(index), self.values.array(buffer)
                store = StoreStmt(array, at, self._value(value), stream)
                return [guarded(self.store_guard, store)]
        assert isinstance(s, Fold) and s.buffer is not None, s
        total = self.own[s.buffer]
        return [Assign(total, combined(s.combine, total, self._value(s.value)))]

    def _own(self, buffer: str, dtype: dt.DType) -> Var:
        """Return the new variable of a thread for an array of the part."""
        var = self.own[buffer] = Var(f"{self.prefix}_{buffer}", dtype)
        return var

    def _is_memory(self, buffer: str) -> bool:
        """Return whether a buffer is a parameter, or lies in shared memory."""
        return buffer in self.values.params or self.values.is_shared(buffer)

    def _value(self, x: Expr) -> Expr:
        """Return an expression at the thread's point."""
        match x:
            case Load(buffer, index):
                if not self._is_memory(buffer):
                    return self.own[buffer]
                return Load(self.values.array(buffer), self._value(index), x.dtype)
            case SizeOf():
                return self.values.settled(x)
        if isinstance(x, Var):
            own = {self.part.axis: self.column, ROW: self.row}
            return own.get(x, x)
        return replace_children(x, self._value)
