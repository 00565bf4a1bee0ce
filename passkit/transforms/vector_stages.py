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
    Var,
    const,
    is_sum,
    left,
    right,
)
from passkit.ast.index import expression, normal
from passkit.ast.stage import Fold, Let, Level, Loop, Prefetch, Running, Stage, Statement, Store
from passkit.ast.tidy import replace_children
from passkit.ast.walk import variables, walk
from passkit.errors import CodeGenError
from passkit.ir.loop import LetStmt, StoreStmt
from passkit.ir.reciprocal import reciprocal
from passkit.ir.rewrite import combined, substitute
from passkit.ir.strides import Stride, stride_of
from passkit.ir.vector import (
    MASK,
    Accumulator,
    AnyStmt,
    Column,
    Finish,
    Gather,
    GuardedLoad,
    Lane,
    Masked,
    PrefetchStmt,
    Prepared,
    PrepareReciprocal,
    Scope,
    SerialFor,
    Splat,
    Take,
    VectorFor,
    VectorLet,
    When,
    WideLoad,
    WideStore,
)
from passkit.transforms.partition_loops import partition_stage
from passkit.transforms.row_loads import RowLoads, row_loads
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
    """

    var: Var
    vectors: frozenset[Var]
    divisors: Divisors | None
    mask: Expr = MASK
    like: Expr = MASK
    is_unrolled: bool = False
    columns: Mapping[Load, Column] = field(factory=dict)

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
        inner = self._vector_loop(stage.body, stage, lane, shape)
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

    def _vector_loop(
        self, statements: Sequence[Statement], stage: Stage, lane: Loop, shape: LoopShape
    ) -> list[AnyStmt]:
        """Return a vector loop over statements, with what its points share in front of it."""
        vectors = vector_variables(stage, lane.var)
        divisors = Divisors(self.num_divisors)
        values = VectorValues(lane.var, vectors, divisors, is_unrolled=shape.is_unrolled)
        out: list[AnyStmt] = []
        inside: list[Statement] = []
        for s in statements:
            if isinstance(s, Let) and s.var not in vectors:
                out.append(LetStmt(s.var, s.value))
            else:
                inside.append(s)
        rows: list[RowLoads] = []
        if self.loads_columns and not shape.is_unrolled:
            written = {s.buffer for s in stage.body if isinstance(s, (Store, Fold)) and s.buffer}
            rows = row_loads(inside, values.stride, written)
        columns = {load: column for row in rows for load, column in row.columns().items()}
        values = evolve(values, columns=columns)
        is_once = all(x.level is not Level.THREAD for x in stage.loops)
        body: list[AnyStmt] = [row.statement() for row in rows]
        body += [_vector_statement(s, values, is_once) for s in inside]
        out += [_prepared(name, value) for value, name in divisors.names.items()]
        self.num_divisors += len(divisors.names)
        aligned = _first_streamed(inside, lane) if shape.is_aligned else None
        loop = VectorFor(
            lane.var,
            lane.start,
            lane.stop,
            tuple(body),
            shape.width,
            shape.is_unrolled,
            shape.is_reversed,
            aligned,
        )
        return [*out, loop]


def _scalar_statement(s: Statement) -> AnyStmt:
    """Return a statement of a stage without a vector loop."""
    if isinstance(s, Let):
        return LetStmt(s.var, s.value)
    assert isinstance(s, Store), s
    return StoreStmt(s.buffer, s.index, s.value)


def _vector_statement(s: Statement, values: VectorValues, is_once: bool) -> AnyStmt:
    """Return a statement at all points of an iteration.

    ``is_once`` says that a row is traversed once, so that the number of a vector in an unrolled
    loop tells it from all others.

    Raises: CodeGenError for a store that does not step along the loop.
    """
    match s:
        case Let(var, value):
            return VectorLet(var, values.value(value))
        case Store(buffer, index, value, stream):
            return _store(buffer, index, values.splat(value), stream, values)
        case Prefetch(buffer, index):
            return PrefetchStmt(buffer, index)
        case Fold() if s.buffer is not None:
            assert s.index is not None
            old = Load(s.buffer, s.index, s.var.dtype)
            value = values.splat(combined(s.combine, old, s.value))
            return _store(s.buffer, s.index, value, False, values)
        case Fold():
            is_numbered = values.is_unrolled and is_once
            return Take(partial_name(s), values.splat(s.value), is_numbered)
    raise CodeGenError(f"vector_stages has no form for {type(s).__name__}")


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

    Not yet: rows inside a stage and in ``registers``, scans, loops that are carried through a
    vector loop, and transposed blocks.
    """
    if any(x.level is Level.WARP for x in stage.loops) or any(
        b in registers for b in buffers_of(stage)
    ):
        return False
    if any(isinstance(s, Running) for s in stage.body):
        return False
    serial = [x for x in stage.loops if x.level is Level.THREAD]
    reductions = [s for s in stage.body if isinstance(s, Fold)]
    return not serial or (bool(reductions) and all(f.buffer is None for f in reductions))


def buffers_of(stage: Stage) -> Iterator[str]:
    """Yield the names of the buffers that a stage reads or writes."""
    for s in (*stage.before, *stage.body, *stage.after):
        if isinstance(s, (Store, Prefetch)) or (isinstance(s, Fold) and s.buffer is not None):
            assert s.buffer is not None
            yield s.buffer
        values = () if isinstance(s, Prefetch) else (s.value,)
        for x in values:
            yield from (part.buffer for part in walk(x) if isinstance(part, Load))
