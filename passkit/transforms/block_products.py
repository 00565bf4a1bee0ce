"""Matrix products inside a block: register blocks of the result, operands in shared memory.

Each element of the result is a chain of fused multiply-adds in the order of the steps, so its bits
do not depend on the map. Register blocks may reach beyond the last row and column: arrays in shared
memory have room for them, and nobody reads what they leave there.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from passkit.ast import Call, Expr, Load, Var, const
from passkit.ir.divisors import divisor_of
from passkit.ir.index import literal, plus, times
from passkit.ir.loop import (
    ACCESS_NBYTES,
    Barrier,
    BarrierScope,
    Bind,
    CachePolicy,
    For,
    If,
    Stmt,
    StoreStmt,
    VectorLoad,
    VectorStore,
    index_let,
)
from passkit.schedule.block import ProductMap
from passkit.schedule.block_memory import (
    ProductSide,
    StagedOperand,
    sides_of,
    vector_of,
)
from passkit.schedule.block_nest import VECTOR, ProductPart
from passkit.transforms.block_values import (
    THREAD,
    BlockValues,
    guarded,
    index_var,
    less,
    quotient,
    remainder,
    unrolled,
)
from passkit.transforms.stage_operands import Piece, fills_of, staging_of_piece
from passkit.values.dtype import DType


@frozen
class _Operand:
    """An operand in shared memory, and the part of it that a thread has.

    Attributes:
        array: the array.
        is_copy: whether it has a piece of the operand at a time.
        is_along: whether its elements follow each other along the steps.
        pitch: the elements from one line to the next.
        size: the rows, or columns, of a thread.
        threads: the threads along them.
        own: the number of the thread among these.
        head: the elements from one head to the next.
        head_number: the number of the thread's head; None if there is one.
        registers: the register array for them.
        var: the variable of the loop over them.
        dtype: the dtype of its elements.
    """

    array: str
    is_copy: bool
    is_along: bool
    pitch: int
    size: int
    threads: int
    own: Var
    head: int
    head_number: Var | None
    registers: str
    var: Var
    dtype: DType

    def position(self, number: Expr) -> Expr:
        """Return the row, or column, of a number among those of the thread.

        The number is that of an access, which `vector` says the elements of.
        """
        return plus(times(number, self.threads * self.vector), times(self.own, self.vector))

    def element_at(self, index: Expr) -> Expr:
        """Return an index of the head's array as one of the array."""
        if self.head_number is None or not self.head:
            return index
        return plus(times(self.head_number, self.head), index)

    @property
    def vector(self) -> int:
        """Return how many consecutive rows, or columns, a thread has."""
        widest = ACCESS_NBYTES // self.dtype.nbytes
        return 1 if self.is_along else min(vector_of(self.size), widest)

    def loads_of_steps(self, step: Expr, count: int) -> list[Stmt]:
        """Return the loads of ``count`` steps at once, where these follow each other."""
        if not self.is_along:
            return []
        at = self.element_at(plus(times(self.position(self.var), self.pitch), step))
        to = times(self.var, VECTOR)
        if count in (2, VECTOR):
            width, k = min(count, ACCESS_NBYTES // self.dtype.nbytes), index_var("k")
            if width < count:
                to, at = plus(to, times(k, width)), plus(at, times(k, width))
            load: Stmt = VectorLoad(self.registers, to, self.array, at, width, CachePolicy.SHARED)
            if width < count:
                load = unrolled(k, count // width, load)
            return [unrolled(self.var, self.size, load)]
        k = index_var("k")
        value = Load(self.array, plus(at, k), self.dtype)
        one = StoreStmt(self.registers, plus(to, k), value)
        return [unrolled(self.var, self.size, unrolled(k, count, one))]

    def loads_of_step(self, step: Expr) -> list[Stmt]:
        """Return the loads of one step, where rows, or columns, follow each other."""
        if self.is_along:
            return []
        width = self.vector
        at = self.element_at(plus(times(step, self.pitch), self.position(self.var)))
        to = times(self.var, width)
        if width > 1:
            load: Stmt = VectorLoad(self.registers, to, self.array, at, width, CachePolicy.SHARED)
        else:
            load = StoreStmt(self.registers, to, Load(self.array, at, self.dtype))
        return [unrolled(self.var, self.size // width, load)]

    def element(self, step: Expr) -> Expr:
        """Return the element of the row, or column, ``var`` at one of the loaded steps."""
        at = plus(times(self.var, VECTOR), step) if self.is_along else self.var
        return Load(self.registers, at, self.dtype)


class ProductBuilder:
    """Builds the statements of one product.

    Args:
        values: what the parts of the kernel have in common.
        number: the number of the part.
        part: the product.
        own: how the threads of the block share its result out.
        staged: its operands that were copied to shared memory.
    """

    def __init__(
        self,
        values: BlockValues,
        number: int,
        part: ProductPart,
        own: ProductMap,
        staged: Sequence[StagedOperand],
    ) -> None:
        self.values, self.part, self.own = values, part, own
        self.prefix = f"p{number}"
        self.down = index_var(f"{self.prefix}_down")
        self.across = index_var(f"{self.prefix}_across")
        self.head = index_var(f"{self.prefix}_head") if part.heads > 1 else None
        self.staged = staged
        self.base: Expr | None = None
        self.sums = values.register(f"{self.prefix}_sum", own.rows * own.columns, part.dtype)
        copies = {x.side.is_rows: x for x in staged}
        side_a, side_b = sides_of(part, own)
        self.a = self._operand(side_a, copies.get(True))
        self.b = self._operand(side_b, copies.get(False))

    def _operand(self, side: ProductSide, copy: StagedOperand | None) -> _Operand:
        """Return where an operand lies; ``copy`` is that in shared memory, if there is one."""
        own, buffer = self.own, side.operand.buffer
        size, threads, var, letter = own.columns, own.across, self.across, "b"
        if side.is_rows:
            size, threads, var, letter = own.rows, own.down, self.down, "a"
        registers = self.values.register(
            f"{self.prefix}_{letter}",
            size * VECTOR if side.is_along else size,
            self.part.dtype,
        )
        array, pitch = self.values.array(buffer), self.values.pitches.get(buffer, 0)
        if copy is not None:
            array, pitch = copy.name, copy.pitch
        head = side.lines * pitch if side.operand.head else 0
        loop = index_var("r" if side.is_rows else "c")
        return _Operand(
            array,
            copy is not None,
            side.is_along,
            pitch,
            size,
            threads,
            var,
            head,
            self.head,
            registers,
            loop,
            self.part.dtype,
        )

    def statements(self) -> list[Stmt]:
        """Return the statements."""
        own, e = self.own, index_var("e")
        zero = StoreStmt(self.sums, e, const(0.0, self.part.dtype))
        zeros = unrolled(e, own.rows * own.columns, zero)
        of_head, inside = own.down * own.across, THREAD
        threads = self.part.heads * of_head
        lets: list[Stmt] = []
        if self.head is not None:
            inside = index_var(f"{self.prefix}_thread")
            lets.append(index_let(self.head, quotient(THREAD, of_head)))
            lets.append(index_let(inside, remainder(THREAD, of_head)))
        lets.append(index_let(self.down, quotient(inside, own.across)))
        lets.append(index_let(self.across, remainder(inside, own.across)))
        steps = self._chunks() if own.chunk is not None else [self._of_threads(self._steps())]
        if threads == self.values.schedule.threads:
            return [*lets, zeros, *steps, *self._results()]
        return [*lets, zeros, *steps, self._of_threads(self._results())]

    def _of_threads(self, statements: list[Stmt]) -> Stmt:
        """Return statements that the threads execute which have a part of the result."""
        threads = self.part.heads * self.own.down * self.own.across
        if threads == self.values.schedule.threads:
            return unrolled(index_var("once"), 1, *statements)
        return If(less(THREAD, literal(threads)), tuple(statements))

    def _chunks(self) -> list[Stmt]:
        """Return the loop over pieces of the operands, each of which all threads copy and use."""
        chunk, values = self.own.chunk, self.values
        assert chunk is not None
        wait = Barrier(BarrierScope.BLOCK)
        number = index_var(f"{self.prefix}_chunk")
        whole, rest = divmod(self.part.steps, chunk)
        out = fills_of(values, self.staged)
        if whole:
            piece = Piece(times(number, chunk), chunk, "")
            once, copies = staging_of_piece(values, self.staged, piece)
            self.base = piece.first
            body = (*copies, wait, self._of_threads(self._steps(chunk)), wait)
            loop = For(number, literal(0), literal(whole), Bind.SERIAL, body)
            out += [*once, loop]
        if rest:
            piece = Piece(literal(whole * chunk), rest, "_rest")
            once, copies = staging_of_piece(values, self.staged, piece)
            self.base = piece.first
            out += [*once, *copies, wait, self._of_threads(self._steps(rest))]
        return out

    def _steps(self, count: int | None = None) -> list[Stmt]:
        """Return the loop over ``count`` steps, or all of them, and those that it leaves."""
        steps, step = self.part.steps if count is None else count, self.own.step
        whole = steps // step * step
        out: list[Stmt] = []
        if whole == step:
            return [*self._some(literal(0), whole), *self._some(literal(whole), steps - whole)]
        if whole:
            first = index_var("first_step")
            body = tuple(self._some(first, step))
            out.append(For(first, literal(0), literal(whole), Bind.SERIAL, body, step))
        return [*out, *self._some(literal(whole), steps - whole)]

    def _some(self, first: Expr, count: int) -> list[Stmt]:
        """Return the products of ``count`` steps from ``first`` on."""
        groups, rest = divmod(count, VECTOR)
        out: list[Stmt] = []
        if groups:
            q = index_var("q")
            body = self._few(plus(first, times(q, VECTOR)), VECTOR)
            out.append(unrolled(q, groups, *body))
        if rest:
            out += self._few(plus(first, literal(groups * VECTOR)), rest)
        return out

    def _few(self, first: Expr, count: int) -> list[Stmt]:
        """Return the products of at most `VECTOR` steps."""
        own, s = self.own, index_var("s")
        a, b = self.a, self.b
        at = plus(times(a.var, own.columns), b.var)
        factors = a.element(s), b.element(s), Load(self.sums, at, self.part.dtype)
        one = StoreStmt(self.sums, at, Call("fma", factors, self.part.dtype))
        products = unrolled(a.var, own.rows, unrolled(b.var, own.columns, one))
        step = plus(first, s)
        of_step = (x for side in (a, b) for x in side.loads_of_step(self._step_of(side, step)))
        each = unrolled(s, count, *of_step, products)
        of_steps = (
            x for side in (a, b) for x in side.loads_of_steps(self._step_of(side, first), count)
        )
        return [*of_steps, each]

    def _step_of(self, side: _Operand, step: Expr) -> Expr:
        """Return the number of a step of the piece in an operand's array."""
        return step if side.is_copy or self.base is None else plus(self.base, step)

    def _results(self) -> list[Stmt]:
        """Return the stores of the result."""
        own, part, c = self.own, self.part, self.part.c
        array = self.values.array(c.buffer)
        is_shared = self.values.is_shared(c.buffer)
        down, along, head = c.down, c.along, c.head
        has_room = is_shared and c.buffer not in self.values.flat
        if has_room:
            down, along = self.values.pitches[c.buffer], 1
            head = part.rows * down
        start = self.values.settled(c.start)
        if self.head is not None:
            start = plus(start, times(self.head, head))
        width = self.b.vector if along == 1 else 1
        if not has_room and (part.columns % width or down % width or head % width):
            width = 1
        if is_shared and divisor_of(start, self.values.definitions) % width:
            width = 1
        r, row = self._number(self.a, "r", "x")
        inner = 1 if width == self.b.vector else self.b.vector
        g, y = index_var("g"), index_var("y")
        column = self.b.position(g) if inner == 1 else plus(self.b.position(g), y)
        own_column = plus(times(g, self.b.vector), y) if inner > 1 else times(g, width)
        at = plus(start, plus(times(row, down), times(column, along)))
        source = plus(times(r, own.columns), own_column)
        if width > 1:
            store: Stmt = VectorStore(array, at, self.sums, source, width)
        else:
            store = StoreStmt(array, at, Load(self.sums, source, part.dtype))
        conditions: list[Expr] = []
        is_exact = not has_room or part.heads > 1  # the next row is the next head's
        if is_exact and own.rows * own.down > part.rows:
            conditions.append(less(row, literal(part.rows)))
        if not is_shared and part.bound is not None:
            conditions.append(less(row, self.values.settled(part.bound)))
        if not has_room and own.columns * own.across > part.columns:
            conditions.append(less(column, literal(part.columns)))
        if not is_shared and self.head is not None and part.head_bound is not None:
            conditions.append(less(self.head, self.values.settled(part.head_bound)))
        store = guarded(conditions, store)
        if inner > 1:
            store = unrolled(y, inner, store)
        store = unrolled(g, own.columns // self.b.vector, store)
        if self.a.vector > 1:
            store = unrolled(index_var("x"), self.a.vector, store)
        return [unrolled(index_var("h"), own.rows // self.a.vector, store)]

    def _number(self, side: _Operand, name: str, inner: str) -> tuple[Expr, Expr]:
        """Return the number of a row among those of a thread, and the row."""
        h, x = index_var("h"), index_var(inner)
        if side.vector == 1:
            return h, side.position(h)
        return plus(times(h, side.vector), x), plus(side.position(h), x)
