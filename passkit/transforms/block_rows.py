"""Rows inside a block: each has some threads, which go through it stage by stage.

A thread reads its part of a row once, into registers, and keeps there what later stages read.
Threads of rows beyond the last one compute what nobody reads; they load the first row's parameters
and store to none.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from passkit.ast import Binary, Expr, Load, Select, Var
from passkit.ast.index import Known, Sum, expression, normal
from passkit.ast.stage import Fold, Level, Prefetch, Stage, Statement
from passkit.ast.stage import Let as StageLet
from passkit.ast.stage import Store as StageStore
from passkit.ast.tidy import expressions, replace_children
from passkit.ast.walk import children, walk
from passkit.ir.divisors import divisor_of
from passkit.ir.index import literal, plus, times, with_literals
from passkit.ir.loop import (
    WARP,
    Assign,
    Bind,
    CachePolicy,
    Declare,
    For,
    If,
    LetStmt,
    Stmt,
    StoreStmt,
    VectorLoad,
    VectorStore,
    WarpReduce,
    index_let,
)
from passkit.ir.rewrite import combined, substitute, variable_names
from passkit.schedule.block import RowMap
from passkit.schedule.block_memory import threads_of_rows
from passkit.schedule.block_nest import ROW, RowPart
from passkit.transforms.block_values import (
    THREAD,
    BlockValues,
    all_of,
    guarded,
    in_steps,
    index_var,
    less,
    quotient,
    remainder,
    unrolled,
)
from passkit.values import dtype as dt


@frozen
class _Place:
    """Where a statement is executed.

    Attributes:
        point: the position in the row.
        own: the position among those of the thread; None for what is computed once per row.
    """

    point: Expr | None
    own: Expr | None


ONCE = _Place(None, None)
"""Once per row."""
UNROLL = 4
"""The vectors of a long row that a thread has at a time."""


class RowPartBuilder:
    """Builds the statements of one part.

    Args:
        values: what the parts of the kernel have in common.
        number: the number of the part.
        part: the part.
        own: how the threads of the block share out rows.
    """

    def __init__(self, values: BlockValues, number: int, part: RowPart, own: RowMap) -> None:
        self.values, self.part, self.map = values, part, own
        self.prefix = f"p{number}"
        self.threads = threads_of_rows(part, own, values.schedule.threads)
        self.at_once = self.threads // own.lanes
        self.passes = -(-part.rows // self.at_once)
        reach = own.lanes * own.vector
        self.whole = part.length // reach
        self.own = -(-part.length // reach)
        self.row, self.read_row = (
            index_var(f"{self.prefix}_{name}") for name in ("row", "read_row")
        )
        self.lane = index_var(f"{self.prefix}_lane")
        self.cached: dict[tuple[str, Sum], str] = {}
        conditions: list[Expr] = []
        if self.passes * self.at_once > part.rows:
            conditions.append(less(self.row, literal(part.rows)))
        if part.bound is not None:
            conditions.append(less(self.row, values.settled(part.bound)))
        self.conditions = conditions

    def statements(self) -> list[Stmt]:
        """Return the statements: a loop over rows, as many at a time as the threads have."""
        part, first = self.part, index_var("first_row_of_pass")
        line = quotient(THREAD, self.map.lanes)
        body: list[Stmt] = [index_let(self.row, plus(first, line))]
        exists = all_of(self.conditions)
        if exists is None:
            self.read_row = self.row
        else:
            first_row = Select(exists, self.row, literal(0), dt.int64)
            body.append(index_let(self.read_row, first_row))
        body.append(index_let(self.lane, remainder(THREAD, self.map.lanes)))
        body += self._loads()
        for stage in part.stages:
            body += self._stage(stage)
        stop = literal(self.passes * self.at_once)
        loop = For(first, literal(0), stop, Bind.SERIAL, tuple(body), self.at_once)
        if self.threads == self.values.schedule.threads:
            return [loop]
        return [If(less(quotient(THREAD, WARP), literal(self.threads // WARP)), (loop,))]

    # Points.

    def _point(self, u: Expr) -> Expr:
        """Return the first position of a vector of the thread in the row."""
        own = self.map
        return plus(times(u, own.lanes * own.vector), times(self.lane, own.vector))

    def _of_row(self, x: Expr, row: Var) -> Expr:
        """Return an index with a row in the place of `ROW`, and sizes settled."""
        return self.values.settled(substitute(x, {ROW.name: row}))

    def _in_array(self, buffer: str, index: Expr, point: Expr | None) -> Expr:
        """Return an index of a value in shared memory, at a position of the thread's row.

        A tile of one row has room for those that other threads go through.
        """
        total = normal(index, Known(()))
        assert isinstance(total.constant, int)
        own = times(self.row, self.values.pitches[buffer])
        if point is not None and total.coefficient(self.part.axis) != 0:
            own = plus(own, point)
        return _linear(plus(own, literal(total.constant)))

    # Loads.

    def _loads(self) -> list[Stmt]:
        """Return the loads of what the row has at the thread's own positions."""
        out: list[Stmt] = []
        if self.map.is_serial:
            return out
        loops = [s for s in self.part.stages if s.loops]
        inside = {
            y.var.name
            for s in self.part.stages
            for y in (*s.before, *s.body)
            if isinstance(y, (StageLet, Fold))
        }
        inside |= {x.var.name for s in loops for x in s.loops if x.level is Level.THREAD}
        for load in (x for s in loops for y in s.body for x in _own_loads(y, self.part.axis)):
            is_known = load.buffer in self.values.params or load.buffer in self.values.homes
            key = load.buffer, normal(load.index, Known(()))
            is_shared = self.values.is_shared(load.buffer)
            if key in self.cached or not is_known or load.buffer in self.values.flat:
                continue
            if not inside.isdisjoint(variable_names(load.index)):  # not known before the stage
                continue
            if is_shared and key[1].constant != 0:
                continue
            width = self.map.vector
            name = f"{self.prefix}_{load.buffer}_{len(self.cached)}"
            self.cached[key] = self.values.register(name, self.own * width, load.dtype)
            out += self._loads_of(load, name)
        return out

    def _loads_of(self, load: Load, name: str) -> list[Stmt]:
        """Return the loads of the thread's vectors of one array to the registers ``name``."""
        u, width = index_var("u"), self.map.vector
        point, k = index_var("point"), index_var("k")
        is_shared = self.values.is_shared(load.buffer)
        begin = self._index(load, point)

        def vector(number: Expr) -> Stmt:
            to = times(number, width)
            if is_shared:
                array = self.values.array(load.buffer)
                return VectorLoad(name, to, array, begin, width, CachePolicy.SHARED)
            if self._is_vector(load):
                is_shared_by_rows = ROW not in walk(load.index)
                access = CachePolicy.KEEP if is_shared_by_rows else CachePolicy.STREAM
                if load.buffer in self.values.aliased:
                    access = CachePolicy.CHANGING
                return VectorLoad(name, to, load.buffer, begin, width, access)
            value = Load(load.buffer, self._index(load, plus(point, k)), load.dtype)
            return unrolled(k, width, StoreStmt(name, plus(to, k), value))

        out: list[Stmt] = []
        if self.whole:
            out.append(unrolled(u, self.whole, index_let(point, self._point(u)), vector(u)))
        if self.own > self.whole:
            number = literal(self.whole)
            length = literal(self.part.length)
            if is_shared:
                rest: Stmt = If(less(point, length), (vector(number),))
            else:
                value = Load(load.buffer, self._index(load, plus(point, k)), load.dtype)
                to = plus(times(number, width), k)
                one = If(less(plus(point, k), length), (StoreStmt(name, to, value),))
                rest = unrolled(k, width, one)
            out.append(unrolled(u, 1, index_let(point, self._point(number)), rest))
        return out

    def _index(self, load: Load, point: Expr) -> Expr:
        """Return the index of a load at a position of the row."""
        if self.values.is_shared(load.buffer):
            return self._in_array(load.buffer, load.index, point)
        index = substitute(load.index, {self.part.axis.name: point})
        return self._of_row(index, self.read_row)

    def _is_vector(self, load: Load) -> bool:
        """Return whether vectors of a row of a parameter have indices that the width divides."""
        index = self._index(load, literal(0))
        return divisor_of(index, self.values.definitions) % self.map.vector == 0

    # Stages.

    def _stage(self, stage: Stage) -> list[Stmt]:
        """Return the statements of a stage."""
        out: list[Stmt] = [LetStmt(s.var, self._value(s.value, ONCE)) for s in stage.before]
        if not stage.loops:
            for s in stage.body:
                out += self._row_statement(s)
        else:
            sums = [s for s in stage.body if isinstance(s, Fold)]
            out += [Declare(s.var, s.identity) for s in sums]
            inner = self._loops(stage.body)
            for x in reversed([x for x in stage.loops if x.level is Level.THREAD]):
                start, stop = (self._of_row(end, self.read_row) for end in (x.start, x.stop))
                if x.limit is not None:
                    limit = self._of_row(x.limit, self.read_row)
                    stop = Select(less(stop, limit), stop, limit, dt.int64)
                inner = [For(x.var, start, stop, Bind.SERIAL, tuple(inner))]
            out += inner
            if self.map.lanes > 1:
                out += [WarpReduce(s.var, s.combine, self.map.lanes) for s in sums]
        for s in stage.after:
            out += self._row_statement(s)
        return out

    def _row_statement(self, s: Statement) -> list[Stmt]:
        """Return a statement of what is computed once per row; one thread of a row stores."""
        if isinstance(s, StageLet):
            return [LetStmt(s.var, self._value(s.value, ONCE))]
        assert isinstance(s, StageStore), s
        conditions: list[Expr] = []
        if self.map.lanes > 1:
            conditions.append(Binary("==", self.lane, literal(0), dt.bool_))
        if self._is_exact(s.buffer):
            conditions += self.conditions
        return [guarded(conditions, self._store(s, ONCE))]

    def _loops(self, body: Sequence[Statement]) -> list[Stmt]:
        """Return the loops over the thread's positions around a body."""
        width, length = self.map.vector, literal(self.part.length)
        u, k, point = index_var("u"), index_var("k"), index_var("point")
        out: list[Stmt] = []
        if self.whole:
            own = plus(times(u, width), k)
            inner, after = self._vector_body(body, _Place(plus(point, k), own), point)
            loop = For(k, literal(0), literal(width), Bind.VECTOR, inner)
            let = index_let(point, self._point(u))
            inside = (let, loop, *after)
            one = unrolled(u, self.whole, *inside)
            out += in_steps(u, self.whole, UNROLL, *inside) if self.map.is_serial else [one]
        if self.own > self.whole:
            number = literal(self.whole)
            place = _Place(plus(point, k), plus(times(number, width), k))
            statements = tuple(x for s in body for x in self._element_statement(s, place))
            one = If(less(plus(point, k), length), statements)
            let = index_let(point, self._point(number))
            out.append(unrolled(u, 1, let, unrolled(k, width, one)))
        return out

    def _vector_body(
        self, body: Sequence[Statement], place: _Place, point: Expr
    ) -> tuple[tuple[Stmt, ...], list[Stmt]]:
        """Return the statements for each position of a vector, and what is stored behind them."""
        inner: list[Stmt] = []
        after: list[Stmt] = []
        k, width = index_var("k"), self.map.vector
        for s in body:
            is_store = isinstance(s, StageStore) and self.values.is_shared(s.buffer)
            if is_store and isinstance(s, StageStore) and s.buffer in self.values.flat:
                inner += self._element_statement(s, place)
            elif is_store and isinstance(s, StageStore) and self._runs_along(s.index):
                value = self._value(s.value, place)
                name = f"{self.prefix}_{s.buffer}_out"
                self.values.register(name, width, value.dtype)
                inner.append(StoreStmt(name, k, value))
                index = self._in_array(s.buffer, s.index, point)
                array = self.values.array(s.buffer)
                after.append(VectorStore(array, index, name, literal(0), width))
            else:
                inner += self._element_statement(s, place)
        return tuple(inner), after

    def _runs_along(self, index: Expr) -> bool:
        """Return whether an index increases by 1 along the row, from its first element on."""
        total = normal(index, Known(()))
        return total.coefficient(self.part.axis) == 1 and total.constant == 0

    def _element_statement(self, s: Statement, place: _Place) -> list[Stmt]:
        """Return a statement at one position of the row."""
        match s:
            case Prefetch():
                return []
            case StageLet(var, value):
                return [LetStmt(var, self._value(value, place))]
            case StageStore(buffer):
                store = self._store(s, place)
                return [guarded(self.conditions if self._is_exact(buffer) else (), store)]
        assert isinstance(s, Fold)
        value = self._value(s.value, place)
        return [Assign(s.var, combined(s.combine, s.var, value))]

    def _store(self, s: StageStore, place: _Place) -> StoreStmt:
        """Return a store at one position of the row, or of a value of the row."""
        value = self._value(s.value, place)
        if self._is_exact(s.buffer):
            index = self._of_row(self._at(s.index, place), self.row)  # only if it exists
            return StoreStmt(self.values.array(s.buffer), index, value, s.stream)
        if self.values.is_shared(s.buffer):
            index = self._in_array(s.buffer, s.index, place.point)
            return StoreStmt(self.values.array(s.buffer), index, value)
        assert place.own is not None
        extent = self.own * self.map.vector
        name = self.values.register(f"{self.prefix}_{s.buffer}", extent, value.dtype)
        return StoreStmt(name, place.own, value)

    # Values.

    def _is_exact(self, buffer: str) -> bool:
        """Return whether a buffer has no room for rows that do not exist."""
        return buffer in self.values.params or buffer in self.values.flat

    def _at(self, x: Expr, place: _Place) -> Expr:
        """Return an index at a position of the row."""
        if place.point is None:
            return x
        return substitute(x, {self.part.axis.name: place.point})

    def _value(self, x: Expr, place: _Place) -> Expr:
        """Return a value at a position of the row, or one of the row."""
        if isinstance(x, Load):
            key = x.buffer, normal(x.index, Known(()))
            if place.own is not None and key in self.cached:
                return Load(self.cached[key], place.own, x.dtype)
            if self._is_exact(x.buffer):
                index = self._of_row(self._value(x.index, place), self.read_row)
                return Load(self.values.array(x.buffer), index, x.dtype)
            if self.values.is_shared(x.buffer):
                index = self._in_array(x.buffer, x.index, place.point)
                return Load(self.values.array(x.buffer), index, x.dtype)
            assert place.own is not None
            extent = self.own * self.map.vector
            name = self.values.register(f"{self.prefix}_{x.buffer}", extent, x.dtype)
            return Load(name, place.own, x.dtype)
        if isinstance(x, Var):
            if x == self.part.axis and place.point is not None:
                return place.point
            return self.read_row if x == ROW else x
        return self.values.settled(replace_children(x, lambda y: self._value(y, place)))


def _own_loads(s: Statement, axis: Var) -> list[Load]:
    """Return the loads of a statement that run along the row, but for those in arms of selects."""
    loads: list[Load] = []
    todo = list(expressions(s)) if not isinstance(s, StageStore) else [s.value]
    while todo:
        x = todo.pop()
        if isinstance(x, Load):
            if normal(x.index, Known(())).coefficient(axis) == 1:
                loads.append(x)
        elif isinstance(x, Select):
            todo.append(x.condition)
        else:
            todo += children(x)
    return loads


def _linear(x: Expr) -> Expr:
    """Return an index of shared memory in canonical form: a sum of rows and positions."""
    return with_literals(expression(normal(x, Known(()))))
