"""Vector loops of a CPU: statements of a stage at all points of an iteration.

Divisors that all points share are prepared in front of the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from passkit.ast import (
    Const,
    Expr,
    Load,
    Var,
    const,
    is_sum,
    left,
    right,
)
from passkit.ast.index import expression, normal
from passkit.ast.stage import (
    Fold,
    Let,
    Level,
    Loop,
    Prefetch,
    Running,
    Stage,
    Statement,
    Store,
)
from passkit.errors import CodeGenError
from passkit.ir.features import VectorFeatures
from passkit.ir.loop import LetStmt, StoreStmt
from passkit.ir.reciprocal import reciprocal
from passkit.ir.rewrite import combined, substitute
from passkit.ir.vector import (
    Accumulator,
    LoadRowValues,
    PrefetchStmt,
    PrepareReciprocal,
    RowValues,
    Scan,
    ScanVector,
    SerialFor,
    SetRowRegister,
    Take,
    VectorAssign,
    VectorDeclare,
    VectorFor,
    VectorLet,
    VectorStmt,
    WideStore,
)
from passkit.transforms.pack_rows import (
    RowGroups,
)
from passkit.transforms.partial_results import (
    extreme_of,
    memory_of,
    partial_name,
    partial_variable,
)
from passkit.transforms.reroll_chains import Chain, rerolled
from passkit.transforms.row_loads import RowLoads, row_loads
from passkit.transforms.vector_shape import (
    LoopShape,
    is_brief,
    literal_count,
    vector_variables,
)
from passkit.transforms.vector_values import Divisors, VectorValues
from passkit.values import dtype as dt
from passkit.values.size import Extent


class LoopVectorizer:
    """Makes the vector loops of a kernel, one after the other.

    Attributes:
        num_divisors: the number of divisors of the kernel that have a name.
        features: the vectors of the language.
        registers: the arrays of vectors that hold a row.
        shared: the extents of the shared arrays by name.
        sizes: the values of size arguments by name.
    """

    def __init__(
        self,
        features: VectorFeatures,
        registers: frozenset[str] = frozenset(),
        shared: Mapping[str, Extent] | None = None,
        sizes: Mapping[str, Extent] | None = None,
    ) -> None:
        self.num_divisors = 0
        self.features = features
        self.registers = registers
        self.shared = shared or {}
        self.sizes = sizes or {}

    def beginning(
        self, f: Fold, stage: Stage, lane: Loop, shape: LoopShape, sums_in_blocks: bool = True
    ) -> list[VectorStmt]:
        """Return the beginning of a reduction: its accumulator, or identities in memory.

        With ``sums_in_blocks`` a long sum of float32 is one of blocks.
        """
        if f.buffer is not None:
            assert f.index is not None
            return self.vector_loop([Store(f.buffer, f.index, f.identity)], stage, lane, shape)
        a, b = left(f.var.dtype), right(f.var.dtype)
        values = VectorValues(lane.var, frozenset([a, b]), None, like=a)
        is_long = sums_in_blocks and not shape.is_unrolled
        is_blocked_sum = is_long and is_sum(f.combine, dt.float32)
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

    def scan_beginning(
        self, s: Running, stage: Stage, lane: Loop, shape: LoopShape
    ) -> list[VectorStmt]:
        """Return the beginning of a scan: along the loop, or of each point in memory."""
        if s.buffer is not None:
            assert s.index is not None
            return self.vector_loop([Store(s.buffer, s.index, s.identity)], stage, lane, shape)
        a, b = left(s.var.dtype), right(s.var.dtype)
        combine = VectorValues(lane.var, frozenset([a, b]), None, like=a).splat(s.combine)
        name = partial_name(s)
        return [Scan(name, s.var.dtype, s.exclusive, lane.down, s.identity, combine)]

    def prepare(self, divisors: Divisors) -> list[VectorStmt]:
        """Return the preparation of divisors, whose names are then taken."""
        self.num_divisors += len(divisors.names)
        return [_prepared(name, value) for value, name in divisors.names.items()]

    def vector_for(
        self,
        lane: Loop,
        body: tuple[VectorStmt, ...],
        shape: LoopShape,
        aligned: tuple[str, Expr] | None,
    ) -> VectorFor:
        """Return the vector loop of a stage."""
        count = literal_count(lane)
        return VectorFor(
            lane.var,
            lane.start,
            lane.stop,
            body,
            shape.width,
            shape.is_unrolled,
            shape.is_reversed,
            aligned,
            is_paired=shape.is_paired,
            is_whole=count is not None and count % self.features.width == 0,
        )

    def vector_loop(
        self,
        statements: Sequence[Statement],
        stage: Stage,
        lane: Loop,
        shape: LoopShape,
        groups: RowGroups | None = None,
    ) -> list[VectorStmt]:
        """Return a vector loop over statements, with what its points share in front of it."""
        row_values = () if groups is None else groups.values
        vectors = vector_variables(stage.body, lane.var) | {s.var for s in row_values}
        carried = {partial_variable(s) for s in stage.body if isinstance(s, Running) and s.buffer}
        divisors = Divisors(self.num_divisors)
        values = VectorValues(lane.var, vectors | carried, divisors, is_unrolled=shape.is_unrolled)
        out: list[VectorStmt] = []
        inside: list[Statement] = []
        for s in statements:
            if isinstance(s, Let) and s in row_values:
                assert isinstance(s.value, Load)
                out.append(LoadRowValues(s.var, s.value.buffer, s.value.index))
                inside.append(s)
            elif isinstance(s, Let) and s.var not in vectors:
                out.append(LetStmt(s.var, s.value))
            else:
                inside.append(s)
        chained = rerolled(inside, self.sizes)
        inside = [s for s in chained if not isinstance(s, Chain)]
        rows: list[RowLoads] = []
        if self.features.loads_columns and not shape.is_unrolled and groups is None:
            kinds = (Store, Fold, Running)
            written = {s.buffer for s in stage.body if isinstance(s, kinds) and s.buffer}
            rows = row_loads(inside, values.stride, written | self.registers)
        columns = {load: column for row in rows for load, column in row.columns().items()}
        values = evolve(
            values,
            vectors=values.vectors | {s.total for s in chained if isinstance(s, Chain)},
            columns=columns,
            registers=self.registers,
            groups=groups,
            is_brief=is_brief(stage, lane, self.features),
        )
        is_once = all(x.level is not Level.THREAD for x in stage.loops)
        body: list[VectorStmt] = [row.statement() for row in rows]
        for x in chained:
            if isinstance(x, Chain):
                body += chain_statements(x, values)
            elif isinstance(x, Let) and x in row_values:
                body.append(RowValues(x.var))
            else:
                body += vector_statement(x, values, is_once)
        out += self.prepare(divisors)
        aligned = first_streamed(inside, lane) if shape.is_aligned else None
        loop = self.vector_for(lane, tuple(body), shape, aligned)
        return [*out, loop if groups is None else evolve(loop, is_of_rows=True, is_paired=False)]


def scalar_statement(s: Statement) -> VectorStmt:
    """Return a statement of a stage without a vector loop."""
    if isinstance(s, Let):
        return LetStmt(s.var, s.value)
    assert isinstance(s, Store), s
    return StoreStmt(s.buffer, s.index, s.value)


def vector_statement(s: Statement, values: VectorValues, is_once: bool) -> list[VectorStmt]:
    """Return a statement at all points of an iteration.

    ``is_once`` says that a row is traversed once, so that the number of a vector in an unrolled
    loop tells it from all others.

    Raises: CodeGenError for a store that does not step along the loop.
    """
    match s:
        case Let(var, value):
            return [VectorLet(var, values.value(value))]
        case Store(buffer, index, value, stream):
            return [wide_store(buffer, index, values.splat(value), stream, values)]
        case Prefetch(buffer, index):
            return [PrefetchStmt(buffer, index)]
        case Fold() if s.buffer is not None:
            memory = memory_of(s)
            value = values.splat(combined(s.combine, memory, s.value))
            return [wide_store(memory.buffer, memory.index, value, False, values)]
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
        wide_store(memory.buffer, memory.index, stored, False, values),
    ]


def chain_statements(chain: Chain, values: VectorValues) -> list[VectorStmt]:
    """Return a long chain of one operation at all points of an iteration, as a loop."""
    inner = evolve(values, inner=values.inner | {chain.position})
    start, stop = const(chain.start, dt.int64), const(chain.stop, dt.int64)
    step = VectorAssign(chain.total, inner.splat(chain.step))
    return [
        VectorDeclare(chain.total, values.splat(chain.first)),
        SerialFor(chain.position, start, stop, (step,)),
    ]


def interchanged_statement(
    s: Statement, values: VectorValues, vectors: frozenset[Var]
) -> list[VectorStmt]:
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
    return vector_statement(s, values, is_once=False)


def wide_store(
    buffer: str, index: Expr, value: Expr, stream: bool, values: VectorValues
) -> WideStore | SetRowRegister:
    """Return the store of a vector. Raises: CodeGenError if it does not step along the loop."""
    if buffer in values.registers:
        return SetRowRegister(buffer, value)
    stride = values.stride(index)
    if stride is None or stride == 0:
        raise CodeGenError(f"a store to {buffer} must step along the lanes, got index {index}")
    return WideStore(buffer, index, stride, value, stream, values.row_distance(index))


def _prepared(name: str, value: Expr) -> PrepareReciprocal:
    """Return the preparation of a divisor."""
    parts = None
    if isinstance(value, Const) and (pair := reciprocal(float(value.value), value.dtype.nbytes)):
        high, low = (const(x, value.dtype) for x in pair)
        assert isinstance(high, Const) and isinstance(low, Const)
        parts = high, low
    return PrepareReciprocal(name, value, parts)


def first_streamed(statements: Iterable[Statement], lane: Loop) -> tuple[str, Expr] | None:
    """Return the buffer and index of the first element that a loop streams; None if none is."""
    for s in statements:
        if isinstance(s, Store) and s.stream:
            first = substitute(s.index, {lane.var.name: lane.start})
            return s.buffer, expression(normal(first, {}))
    return None
