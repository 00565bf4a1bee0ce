"""Vector loops of a CPU: a stage becomes statements of loop IR in vector form.

An expression that differs from point to point of the inner loop becomes a vector, every other one
stays a number. Indices stay numbers, those of a vector's first point. Divisors that all points
share are prepared in front of the loop.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

import numpy as np
from attrs import evolve, field, frozen

from passkit.ast import (
    Binary,
    Call,
    Const,
    Expr,
    Load,
    Select,
    SizeOf,
    Var,
    const,
    is_sum,
    left,
    right,
    size_of,
)
from passkit.ast.index import expression, normal
from passkit.ast.stage import Fold, Let, Level, Loop, Prefetch, Running, Stage, Statement, Store
from passkit.ast.tidy import map_statement, replace_children
from passkit.ast.walk import variables, walk
from passkit.errors import CodeGenError
from passkit.ir.loop import LetStmt, StoreStmt
from passkit.ir.reciprocal import reciprocal
from passkit.ir.rewrite import combined, substitute
from passkit.ir.strides import Stride, stride_of
from passkit.ir.vector import (
    MASK,
    VECTOR_WIDTH,
    Accumulator,
    AnyStmt,
    BlockFor,
    Column,
    Finish,
    Gather,
    GuardedLoad,
    Lane,
    Masked,
    PrefetchRows,
    PrefetchStmt,
    Prepared,
    PrepareReciprocal,
    PutRow,
    Scan,
    ScanVector,
    Scope,
    SerialFor,
    Splat,
    Take,
    TransposedLoad,
    TransposedRow,
    TransposedStore,
    VectorAssign,
    VectorDeclare,
    VectorFor,
    VectorLet,
    When,
    WideLoad,
    WideStore,
    WideTransposedLoad,
    high,
    low,
)
from passkit.transforms.fuse_stages import FusedStages
from passkit.transforms.interchange import StrideOf, interchanged_rows, may_interchange
from passkit.transforms.partition_loops import partition_stage
from passkit.transforms.row_loads import RowLoads, row_loads
from passkit.transforms.transpose_tiles import (
    Block,
    block_of,
    inner_variables,
    rows_ahead,
    transposed_loads,
    transposed_stores,
    wide_block,
    with_values,
)
from passkit.transforms.vector_shape import (
    LoopShape,
    is_short,
    loads_from,
    loop_shape,
    vector_variables,
)
from passkit.values import dtype as dt


@frozen
class Divisors:
    """The divisors of a loop, each with the name of its prepared form.

    Attributes:
        first: the number of the first of them in the kernel.
        names: the names.
    """

    first: int
    names: dict[Expr, str] = field(factory=dict)

    def name(self, value: Expr) -> str:
        """Return the name of a divisor, which is new if it was not asked for before."""
        return self.names.setdefault(value, f"by{self.first + len(self.names)}")


@frozen
class VectorValues:
    """Expressions at all points of an iteration of a vector loop.

    Attributes:
        var: the loop's variable.
        vectors: the variables that differ from point to point.
        divisors: what all points are divided by; None where there is no place to prepare it.
        mask: the points for which expressions are computed.
        like: a vector of the length of the loop's vectors.
        is_unrolled: whether the loop is unrolled, so that its vectors have numbers.
        columns: loads of rows of a few elements, which are loaded together.
        inner: the variables of a loop inside the vector loop: no divisor with these is prepared.
    """

    var: Var
    vectors: frozenset[Var]
    divisors: Divisors | None
    mask: Expr = MASK
    like: Expr = MASK
    is_unrolled: bool = False
    columns: Mapping[Load, Column] = field(factory=dict)
    inner: frozenset[Var] = frozenset()

    def is_vector(self, x: Expr) -> bool:
        """Return whether an expression differs from point to point."""
        return any(v in self.vectors for v in variables(x))

    def splat(self, x: Expr) -> Expr:
        """Return an expression as a vector, even where all points have the same number."""
        value = self.value(x)
        return value if self.is_vector(x) else Splat(value, self.like, x.dtype)

    def stride(self, index: Expr) -> Stride | None:
        """Return how far an index moves from point to point; None if it moves unevenly."""
        return stride_of(index, self.var, self.is_vector)

    def value(self, x: Expr) -> Expr:
        """Return an expression at all points, a number where they have the same."""
        if not self.is_vector(x):
            return x if self.mask == MASK else self._guarded(x)
        match x:
            case Var():
                return Lane(x) if x == self.var else x
            case Load():
                return self._load(x)
            case Binary():
                return self._binary(x)
            case Call("maximum" | "minimum", (a, b)):
                return Call(x.name, (self._operand(a, b), self._operand(b, a)), x.dtype)
            case Call():
                return Call(x.name, tuple(map(self.splat, x.args)), x.dtype)
            case Select():
                return self._select(x)
        return replace_children(x, self.value)

    def _guarded(self, x: Expr) -> Expr:
        """Return an expression of one number that loads nothing if no point needs it."""
        if isinstance(x, Load):
            return GuardedLoad(x.buffer, self._guarded(x.index), self.mask, x.dtype)
        return replace_children(x, self._guarded)

    def _load(self, x: Load) -> Expr:
        """Return the elements that the points load."""
        if x in self.columns:
            return self.columns[x]
        stride = self.stride(x.index)
        if stride is not None:
            return WideLoad(x.buffer, x.index, stride, self.mask, x.dtype)
        if self._is_computed(x.index):
            return Gather(x.buffer, self.value(x.index), self.mask, None, x.dtype)
        return Gather(x.buffer, x.index, self.mask, self.var, x.dtype)

    def _is_computed(self, index: Expr) -> bool:
        """Return whether an index is made of vectors other than the loop's variable."""
        return any(isinstance(x, Load) and self.is_vector(x) for x in walk(index)) or any(
            v in self.vectors and v != self.var for v in variables(index)
        )

    def _binary(self, x: Binary) -> Expr:
        """Return an operator at all points."""
        if x.op in ("/", "//", "%") and x.a.dtype.is_integer:
            name = "fmod" if x.op == "%" else "cut_divide"
            return Call(name, (self.splat(x.a), self.splat(x.b)), x.dtype)
        if self.divisors is not None and self._is_shared_quotient(x):
            divisor = Prepared(self.divisors.name(x.b), self.is_unrolled, x.dtype)
            return Binary("/", self.value(x.a), divisor, x.dtype)
        if x.a.dtype is dt.bool_:  # masks do not mix with numbers
            return Binary(x.op, self.splat(x.a), self.splat(x.b), x.dtype)
        return Binary(x.op, self.value(x.a), self.value(x.b), x.dtype)

    def _is_shared_quotient(self, x: Binary) -> bool:
        """Return whether all points are divided by a number that can be prepared.

        Under a condition of its own a division may not load its divisor in front of the loop.
        """
        if x.op != "/" or not x.dtype.is_float or self.is_vector(x.b) or _is_power_of_two(x.b):
            return False
        if not self.inner.isdisjoint(variables(x.b)):
            return False
        return self.mask == MASK or not loads_from(x.b)

    def _select(self, x: Select) -> Expr:
        """Return a choice: both values, each for the points that choose it, where these differ."""
        if not self.is_vector(x.condition):
            condition = self.value(x.condition)
            return Select(condition, self.splat(x.a), self.splat(x.b), x.dtype)
        condition = self.splat(x.condition)
        chosen, other = (
            evolve(self, mask=Masked(self.mask, condition, is_negated))
            for is_negated in (False, True)
        )
        a, b = chosen._operand(x.a, x.b), other._operand(x.b, x.a)
        return Select(condition, a, b, x.dtype)

    def _operand(self, x: Expr, other: Expr) -> Expr:
        """Return an operand of a function that takes a number beside another vector of floats."""
        is_plain = x.dtype.is_float and self.is_vector(other)
        return self.value(x) if is_plain else self.splat(x)


def _is_power_of_two(x: Expr) -> bool:
    """Return whether dividing by a literal is exactly multiplying by its reciprocal."""
    return isinstance(x, Const) and bool(x.value) and abs(np.frexp(x.value)[0]) == 0.5


def partial_name(s: Fold | Running) -> str:
    """Return the name of the accumulator of a reduction or scan."""
    return f"{s.var.name}_lanes"


def partial_variable(s: Running) -> Var:
    """Return the variable of what a scan has combined so far."""
    return Var(partial_name(s), s.var.dtype)


def memory_of(s: Fold | Running) -> Load:
    """Return the element of memory in which each point has its partial result."""
    assert s.buffer is not None and s.index is not None
    return Load(s.buffer, s.index, s.var.dtype)


def extreme_of(f: Fold) -> str:
    """Return "largest" or "smallest" for a reduction that is just that of floats, else ""."""
    a, b = left(f.var.dtype), right(f.var.dtype)
    if not f.var.dtype.is_float or not np.isinf(f.identity.value):
        return ""
    if f.identity.value < 0 and f.combine == Call("maximum", (a, b), f.var.dtype):
        return "largest"
    if f.identity.value > 0 and f.combine == Call("minimum", (a, b), f.var.dtype):
        return "smallest"
    return ""


class StageVectorizer:
    """Turns the stages of a kernel into statements, one stage after the other.

    Args:
        num_divisors: the number of divisors of the kernel that have a name.
        unrolls: whether short loops of known length are unrolled.
        loads_columns: whether rows of a few elements are loaded as whole vectors.
    """

    def __init__(self, num_divisors: int, unrolls: bool, loads_columns: bool) -> None:
        self.num_divisors = num_divisors
        self.unrolls = unrolls
        self.loads_columns = loads_columns

    def statements(self, stage: Stage) -> list[AnyStmt]:
        """Return the statements of a stage, see `has_vector_form`.

        Raises: CodeGenError for a store that does not step along the inner loop.
        """
        out: list[AnyStmt] = [LetStmt(s.var, s.value) for s in stage.before]
        lane = next((x for x in stage.loops if x.level is Level.CTA), None)
        if lane is None:
            return [*out, *map(_scalar_statement, stage.body)]
        if len(stage.loops) == 1 and not is_short(lane):
            cuts, pieces = partition_stage(stage, lane.var.name)
            if cuts:
                out += [LetStmt(s.var, s.value) for s in cuts]
                for piece in pieces:
                    out += self._piece(piece)
                return out
        return [*out, *self._loops(stage, lane)]

    def fused(self, fused: FusedStages) -> list[AnyStmt]:
        """Return several stages as one vector loop."""
        out: list[AnyStmt] = [LetStmt(s.var, s.value) for x in fused.stages for s in x.before]
        vectors, divisors = fused.vectors(), Divisors(self.num_divisors)
        inner = frozenset(fused.inner_variables()) - vectors
        values = VectorValues(fused.lane.var, vectors, divisors, inner=inner)
        body: list[AnyStmt] = []
        declared: set[Var] = set()

        def assign(total: Var, value: Expr) -> AnyStmt:
            if total in declared:
                return VectorAssign(total, values.splat(value))
            declared.add(total)
            return VectorDeclare(total, values.splat(value))

        for stage in fused.stages:
            for s in stage.body:
                if isinstance(s, Fold):
                    body.append(assign(fused.totals[str(s.buffer)], s.identity))
            statements: list[AnyStmt] = []
            for s in fused.body_of(stage):
                if isinstance(s, Fold):
                    total = fused.totals[str(s.buffer)]
                    statements.append(assign(total, combined(s.combine, total, s.value)))
                elif isinstance(s, Store) and s.buffer in fused.totals:
                    statements.append(assign(fused.totals[s.buffer], s.value))
                elif isinstance(s, Let) and s.var not in vectors:
                    statements.append(LetStmt(s.var, s.value))
                else:
                    statements += _vector_statement(s, values, is_once=False)
            for x in reversed(stage.loops[:-1]):
                statements = [SerialFor(x.var, x.start, x.stop, tuple(statements))]
            body += statements
        loop = self._vector_for(fused.lane, tuple(body), LoopShape(VECTOR_WIDTH), None)
        return [*out, *self._prepare(divisors), loop]

    def _piece(self, stage: Stage) -> list[AnyStmt]:
        """Return one of the loops that a stage was partitioned into.

        What its points share has a scope of its own. What that loads is only there if the loop has
        points.
        """
        lane = next(x for x in stage.loops if x.level is Level.CTA)
        vectors = vector_variables(stage, lane.var)
        shared = [s.value for s in stage.body if isinstance(s, Let) and s.var not in vectors]
        statements = tuple(self._loops(stage, lane))
        if any(isinstance(x, Load) for value in shared for x in walk(value)):
            has_points = Binary("<", lane.start, lane.stop, dt.bool_)
            return [When(has_points, statements)]
        return [Scope(statements)] if shared else list(statements)

    def _loops(self, stage: Stage, lane: Loop) -> list[AnyStmt]:
        """Return the loops of a stage, with the beginnings and results of its reductions."""
        shape = loop_shape(stage, lane, self.unrolls)
        reductions = [s for s in stage.body if isinstance(s, Fold)]
        serial = [x for x in stage.loops if x.level is Level.THREAD]
        out: list[AnyStmt] = []
        for f in reductions:
            out += self._beginning(f, stage, lane, shape)
        for s in stage.body:
            if isinstance(s, Running):
                out += self._scan_beginning(s, stage, lane, shape)
        vectors = vector_variables(stage, lane.var)
        stride = VectorValues(lane.var, vectors, None).stride
        if serial and may_interchange(stage, lane, serial[-1], vectors, stride):
            inner = self._interchanged(stage, lane, serial.pop(), shape)
        else:
            inner = self._transposed(stage, lane, serial, stride) if serial else []
            serial = serial[:-1] if inner else serial
            inner = inner or self._vector_loop(stage.body, stage, lane, shape)
        for x in reversed(serial):
            inner = [SerialFor(x.var, x.start, x.stop, tuple(inner), x.down)]
        out += inner
        out += [Finish(f.var, partial_name(f)) for f in reductions if f.buffer is None]
        return [*out, *(StoreStmt(s.buffer, s.index, s.value) for s in stage.after)]

    def _beginning(self, f: Fold, stage: Stage, lane: Loop, shape: LoopShape) -> list[AnyStmt]:
        """Return the beginning of a reduction: its accumulator, or identities in memory."""
        if f.buffer is not None:
            assert f.index is not None
            return self._vector_loop([Store(f.buffer, f.index, f.identity)], stage, lane, shape)
        a, b = left(f.var.dtype), right(f.var.dtype)
        values = VectorValues(lane.var, frozenset([a, b]), None, like=a)
        is_blocked_sum = not shape.is_unrolled and is_sum(f.combine, dt.float32)
        accumulator = Accumulator(
            partial_name(f),
            f.var.dtype,
            shape.width,
            extreme_of(f),
            is_blocked_sum,
            f.identity,
            values.splat(f.combine),
        )
        return [accumulator]

    def _scan_beginning(
        self, s: Running, stage: Stage, lane: Loop, shape: LoopShape
    ) -> list[AnyStmt]:
        """Return the beginning of a scan: along the loop, or of each point in memory."""
        if s.buffer is not None:
            assert s.index is not None
            return self._vector_loop([Store(s.buffer, s.index, s.identity)], stage, lane, shape)
        a, b = left(s.var.dtype), right(s.var.dtype)
        combine = VectorValues(lane.var, frozenset([a, b]), None, like=a).splat(s.combine)
        name = partial_name(s)
        return [Scan(name, s.var.dtype, s.exclusive, lane.down, s.identity, combine)]

    def _interchanged(
        self, stage: Stage, lane: Loop, serial: Loop, shape: LoopShape
    ) -> list[AnyStmt]:
        """Return the vector loop with some iterations of ``serial`` inside it."""
        reductions = [s for s in stage.body if isinstance(s, Fold)]
        scans = [s for s in stage.body if isinstance(s, Running)]
        vectors = vector_variables(stage, lane.var)
        totals = {f.var for f in reductions} | {partial_variable(s) for s in scans}
        divisors = Divisors(self.num_divisors)
        values = VectorValues(lane.var, vectors | totals, divisors, is_unrolled=shape.is_unrolled)
        body: list[AnyStmt] = []
        for f in reductions:
            body.append(VectorDeclare(f.var, values.splat(f.identity)))
        for s in scans:
            body.append(VectorDeclare(partial_variable(s), values.value(memory_of(s))))
        inner: list[AnyStmt] = []
        for statement in stage.body:
            inner += _interchanged_statement(statement, values, vectors)
        body.append(SerialFor(serial.var, low(serial.var), high(serial.var), tuple(inner)))
        for s in scans:
            memory = memory_of(s)
            total = values.splat(partial_variable(s))
            body.append(_store(memory.buffer, memory.index, total, False, values))
        for f in reductions:
            memory = memory_of(f)
            total = values.splat(combined(f.combine, memory, f.var))
            body.append(_store(memory.buffer, memory.index, total, False, values))
        size = interchanged_rows(stage, serial, lambda f: bool(extreme_of(f)))
        out: list[AnyStmt] = []
        if not isinstance(size, SizeOf):
            name = Var(f"{serial.var.name}_turns", dt.int64)
            out.append(LetStmt(name, size))
            size = name
        loop = self._vector_for(lane, tuple(body), shape, None)
        prepared = self._prepare(divisors)
        return [*out, BlockFor(serial.var, serial.start, serial.stop, size, (*prepared, loop))]

    def _transposed(
        self, stage: Stage, lane: Loop, serial: Sequence[Loop], stride: StrideOf
    ) -> list[AnyStmt]:
        """Return the last of the serial loops and the vector loop, with blocks that are transposed.

        Returns: No statements where there are none.
        """
        if any(isinstance(s, (Fold, Running)) for s in stage.body):
            return []
        loads = transposed_loads(stage, serial[-1], stride)
        stores = transposed_stores(stage, serial[-1], stride)
        if not loads and not stores:
            return []
        wide = None if stores else wide_block(stage, lane, serial[-1], loads, stride)
        if wide is None:
            return self._narrow_blocks(stage, lane, serial[-1], loads, stores)
        return self._wide_blocks(stage, lane, loads, *wide)

    def _narrow_blocks(
        self,
        stage: Stage,
        lane: Loop,
        serial: Loop,
        loads: Mapping[Load, Stride],
        stores: Sequence[Store],
    ) -> list[AnyStmt]:
        """Return the vector loop with blocks of iterations of ``serial`` inside it.

        The outer loop of both is the one over blocks, or the vector loop, as the stage says.
        """
        block = block_of(serial)
        rows = {x: Var(f"{x.buffer}_turned_{k}", x.dtype) for k, x in enumerate(loads)}
        written = {s.buffer for s in stores}
        statements = [map_statement(s, lambda x: with_values(x, rows)) for s in stage.body]
        vectors = {*vector_variables(stage, lane.var), *rows.values()}
        for s in statements:
            if isinstance(s, Let) and not vectors.isdisjoint(variables(s.value)):
                vectors.add(s.var)
        divisors = Divisors(self.num_divisors)
        inner_names = inner_variables(serial, statements)
        values = VectorValues(lane.var, frozenset(vectors), divisors, inner=inner_names)
        body: list[AnyStmt] = []
        if any(map(block.transposes, loads.values())):
            stride = VectorValues(lane.var, vector_variables(stage, lane.var), None).stride
            for x, distance in rows_ahead(stage, serial, stride).items():
                body.append(PrefetchRows(x.buffer, block.index(x.index), distance, block.count))
        for x, distance in loads.items():
            index, is_dense = block.index(x.index), not block.transposes(distance)
            body.append(
                TransposedLoad(
                    rows[x].name, x.dtype, x.buffer, index, distance, block.count, is_dense
                )
            )
        body += [TransposedStore(s.buffer, s.value.dtype, block.count, None) for s in stores]
        inner: list[AnyStmt] = [TransposedRow(row, row.name, block.place) for row in rows.values()]
        for s in statements:
            if isinstance(s, Store) and s.buffer in written:
                inner.append(PutRow(s.buffer, block.place, values.splat(s.value)))
            elif isinstance(s, Let) and s.var not in vectors:
                inner.append(LetStmt(s.var, s.value))
            else:
                inner += _vector_statement(s, values, is_once=False)
        first = low(serial.var) if block.length is None else serial.start
        body.append(SerialFor(serial.var, first, block.stop, tuple(inner)))
        body += [
            TransposedStore(s.buffer, s.value.dtype, block.count, block.index(s.index))
            for s in stores
        ]
        is_vector_outside = stage.loops.index(lane) < stage.loops.index(serial)
        at_first = serial.start if is_vector_outside else block.first
        streamed = [
            evolve(s, index=substitute(s.index, {serial.var.name: at_first}))
            for s in statements
            if isinstance(s, Store) and s.buffer not in written
        ]
        shape, aligned = LoopShape(VECTOR_WIDTH), _first_streamed(streamed, lane)

        def blocks(inside: Sequence[AnyStmt]) -> list[AnyStmt]:
            if block.length is not None:
                return list(inside)
            size = size_of(block.size)
            return [BlockFor(serial.var, serial.start, serial.stop, size, tuple(inside))]

        prepared = self._prepare(divisors)
        if is_vector_outside:
            loop = self._vector_for(lane, tuple(blocks(body)), shape, aligned)
            return [*prepared, loop]
        return blocks([*prepared, self._vector_for(lane, tuple(body), shape, aligned)])

    def _wide_blocks(
        self, stage: Stage, lane: Loop, loads: Mapping[Load, Stride], block: Block, width: int
    ) -> list[AnyStmt]:
        """Return loops over blocks of iterations and of points, in which whole rows are read."""
        first, end = low(lane.var), high(lane.var)
        place = (block.serial.var - block.first) * width + (lane.var - first)
        arrays: dict[Load, Expr] = {}
        body: list[AnyStmt] = []
        for k, (x, stride) in enumerate(loads.items()):
            name = f"{x.buffer}_rows_{k}"
            index = block.index(substitute(x.index, {lane.var.name: first}))
            body.append(
                WideTransposedLoad(
                    name,
                    x.dtype,
                    x.buffer,
                    index,
                    stride,
                    block.count,
                    block.size,
                    end - first,
                    width,
                )
            )
            arrays[x] = Load(name, place, x.dtype)
        statements = [map_statement(s, lambda x: with_values(x, arrays)) for s in stage.body]
        inner = evolve(lane, start=first, stop=end)
        own = evolve(stage, loops=(inner,), body=tuple(statements))
        loops = self._vector_loop(statements, own, inner, loop_shape(own, inner, self.unrolls))
        var = block.serial.var
        body.append(SerialFor(var, low(var), high(var), tuple(loops)))
        points = BlockFor(lane.var, lane.start, lane.stop, size_of(width), tuple(body))
        serial = block.serial
        return [BlockFor(var, serial.start, serial.stop, size_of(block.size), (points,))]

    def _prepare(self, divisors: Divisors) -> list[AnyStmt]:
        """Return the preparation of divisors, whose names are then taken."""
        self.num_divisors += len(divisors.names)
        return [_prepared(name, value) for value, name in divisors.names.items()]

    def _vector_for(
        self,
        lane: Loop,
        body: tuple[AnyStmt, ...],
        shape: LoopShape,
        aligned: tuple[str, Expr] | None,
    ) -> VectorFor:
        """Return the vector loop of a stage."""
        return VectorFor(
            lane.var,
            lane.start,
            lane.stop,
            body,
            shape.width,
            shape.is_unrolled,
            shape.is_reversed,
            aligned,
        )

    def _vector_loop(
        self, statements: Sequence[Statement], stage: Stage, lane: Loop, shape: LoopShape
    ) -> list[AnyStmt]:
        """Return a vector loop over statements, with what its points share in front of it."""
        vectors = vector_variables(stage, lane.var)
        carried = {partial_variable(s) for s in stage.body if isinstance(s, Running) and s.buffer}
        divisors = Divisors(self.num_divisors)
        values = VectorValues(lane.var, vectors | carried, divisors, is_unrolled=shape.is_unrolled)
        out: list[AnyStmt] = []
        inside: list[Statement] = []
        for s in statements:
            if isinstance(s, Let) and s.var not in vectors:
                out.append(LetStmt(s.var, s.value))
            else:
                inside.append(s)
        rows: list[RowLoads] = []
        if self.loads_columns and not shape.is_unrolled:
            kinds = (Store, Fold, Running)
            written = {s.buffer for s in stage.body if isinstance(s, kinds) and s.buffer}
            rows = row_loads(inside, values.stride, written)
        columns = {load: column for row in rows for load, column in row.columns().items()}
        values = evolve(values, columns=columns)
        is_once = all(x.level is not Level.THREAD for x in stage.loops)
        body: list[AnyStmt] = [row.statement() for row in rows]
        for s in inside:
            body += _vector_statement(s, values, is_once)
        out += self._prepare(divisors)
        aligned = _first_streamed(inside, lane) if shape.is_aligned else None
        loop = self._vector_for(lane, tuple(body), shape, aligned)
        return [*out, loop]


def _scalar_statement(s: Statement) -> AnyStmt:
    """Return a statement of a stage without a vector loop."""
    if isinstance(s, Let):
        return LetStmt(s.var, s.value)
    assert isinstance(s, Store), s
    return StoreStmt(s.buffer, s.index, s.value)


def _vector_statement(s: Statement, values: VectorValues, is_once: bool) -> list[AnyStmt]:
    """Return a statement at all points of an iteration.

    ``is_once`` says that a row is traversed once, so that the number of a vector in an unrolled
    loop tells it from all others.

    Raises: CodeGenError for a store that does not step along the loop.
    """
    match s:
        case Let(var, value):
            return [VectorLet(var, values.value(value))]
        case Store(buffer, index, value, stream):
            return [_store(buffer, index, values.splat(value), stream, values)]
        case Prefetch(buffer, index):
            return [PrefetchStmt(buffer, index)]
        case Fold() if s.buffer is not None:
            memory = memory_of(s)
            value = values.splat(combined(s.combine, memory, s.value))
            return [_store(memory.buffer, memory.index, value, False, values)]
        case Fold():
            is_numbered = values.is_unrolled and is_once
            return [Take(partial_name(s), values.splat(s.value), is_numbered)]
        case Running() if s.buffer is None:
            return [ScanVector(s.var, partial_name(s), values.splat(s.value))]
    assert isinstance(s, Running)
    memory, total = memory_of(s), partial_variable(s)
    step = combined(s.combine, total, s.value)
    result: Expr = total if s.exclusive else step
    stored = values.splat(step if s.exclusive else s.var)
    return [
        VectorLet(total, values.value(memory)),
        VectorLet(s.var, values.value(result)),
        _store(memory.buffer, memory.index, stored, False, values),
    ]


def _interchanged_statement(
    s: Statement, values: VectorValues, vectors: frozenset[Var]
) -> list[AnyStmt]:
    """Return a statement in a loop inside the vector loop, where partial results are variables.

    ``vectors`` are the variables that differ from point to point.
    """
    match s:
        case Fold():
            return [VectorAssign(s.var, values.splat(combined(s.combine, s.var, s.value)))]
        case Running():
            total = partial_variable(s)
            step = VectorAssign(total, values.splat(combined(s.combine, total, s.value)))
            result = VectorLet(s.var, total)
            return [result, step] if s.exclusive else [step, result]
        case Let(var, value) if var not in vectors:
            return [LetStmt(var, value)]
    return _vector_statement(s, values, is_once=False)


def _store(buffer: str, index: Expr, value: Expr, stream: bool, values: VectorValues) -> WideStore:
    """Return the store of a vector. Raises: CodeGenError if it does not step along the loop."""
    stride = values.stride(index)
    if stride is None or stride == 0:
        raise CodeGenError(f"a store to {buffer} must step along the lanes, got index {index}")
    return WideStore(buffer, index, stride, value, stream)


def _prepared(name: str, value: Expr) -> PrepareReciprocal:
    """Return the preparation of a divisor."""
    parts = None
    if isinstance(value, Const) and (pair := reciprocal(float(value.value), value.dtype.nbytes)):
        high, low = (const(x, value.dtype) for x in pair)
        assert isinstance(high, Const) and isinstance(low, Const)
        parts = high, low
    return PrepareReciprocal(name, value, parts)


def _first_streamed(statements: Iterable[Statement], lane: Loop) -> tuple[str, Expr] | None:
    """Return the buffer and index of the first element that a loop streams; None if none is."""
    for s in statements:
        if isinstance(s, Store) and s.stream:
            first = substitute(s.index, {lane.var.name: lane.start})
            return s.buffer, expression(normal(first, {}))
    return None


def has_vector_form(stage: Stage, registers: Container[str]) -> bool:
    """Return whether `StageVectorizer` takes a stage.

    Not yet: rows inside a stage and in ``registers``.
    """
    is_of_rows = any(x.level is Level.WARP for x in stage.loops)
    return not is_of_rows and not any(name in registers for name in buffers_of(stage))


def buffers_of(stage: Stage) -> Iterator[str]:
    """Yield the names of the buffers that a stage reads or writes."""
    for s in (*stage.before, *stage.body, *stage.after):
        if not isinstance(s, Let) and s.buffer is not None:
            yield s.buffer
        values = () if isinstance(s, Prefetch) else (s.value,)
        for x in values:
            yield from (part.buffer for part in walk(x) if isinstance(part, Load))
